"""Chooses which variant's kernels run, and answers what would run. The only module that knows of all variants.

Nothing happens on import: processor, ``FASTLAYERS_ISA`` and compiled engine are looked at when a kernel is first asked for.
"""

from __future__ import annotations

import functools
import importlib.util
import math
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from types import TracebackType
from typing import Any, TypeVar

import numpy as np

from .. import threads
from .._forks import finish_before_fork
from .._held import models
from .._lazy import Registry, imported
from .._locks import Lock
from .._machine import memory
from .._tuples import NamedTuple
from ..errors import DeviceError, Error, LimitError, MissingExtraError, refuses_shortage
from ..threads import get_num_threads
from .table import KERNELS

S = TypeVar("S", bound="switch")

__all__ = [
    "Variant",
    "available",
    "current",
    "empty",
    "engine",
    "generation",
    "give_way",
    "info",
    "kernel",
    "levels",
    "missing",
    "resolve",
    "source_tree",
    "step",
    "switch",
    "use",
    "variant",
]

# Names that users may know and that other machines have; an unavailable one of these gets distinguished from a misspelt one.
LEVELS = ("x86_amx", "x86_v4", "x86_v3", "x86_v1", "neon")

_DRIVER = f"{__package__}.aot._engine"

_lock = Lock()
finish_before_fork(_lock)  # a switch swaps the engine's level and the tables, one after the other
_table: dict[str, Callable[..., Any]] = {}
_steps: dict[str, Callable[..., Any]] = {}
_restores: dict[str, Callable[..., Any]] = {}
_sources: dict[str, str] = {}
_variant = ""
_make_empty: Callable[[tuple[int, ...]], np.ndarray] | None = None

# Raised by one at every switch: a layer that keeps something of a variant compares it.
generation = 0


def engine() -> Any | None:
    """The compiled driver, or None where it was not built."""
    try:
        return imported(_DRIVER)
    except ModuleNotFoundError as error:
        if error.name == _DRIVER:
            return None
        raise
    except Error:
        raise
    except ImportError as error:
        raise DeviceError(
            f"fastlayers: the compiled engine is there and cannot be loaded: {error}: expected one built for this machine; "
            "FASTLAYERS_ISA=reference runs plain numpy instead"
        ) from error


def missing() -> str:
    """Why the compiled engine is not there, as far as the place of this package tells."""
    tree = source_tree(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    if tree is None:
        return "it was installed without a C compiler, or for another machine"
    return f"this is the source tree {tree}, which is not built: build it, or start Python elsewhere to use what is installed"


def source_tree(package: str) -> str | None:
    """The folder of sources that a package of this name is in, or None for an installed one."""
    tree = os.path.dirname(package)
    return tree if os.path.isfile(os.path.join(tree, "setup.py")) else None


def give_way() -> Callable[[], object]:
    """Lets runs in other threads go on: long work in Python calls it now and then."""
    driver = engine()
    return bool if driver is None else driver.give_way


def levels() -> tuple[str, ...]:
    """The compiled levels that are built and that this processor can run, best first."""
    driver = engine()
    return () if driver is None else _levels_of(driver)


@functools.cache  # files are looked for
def _levels_of(driver: Any) -> tuple[str, ...]:
    return tuple(name for name in LEVELS if driver.usable(name))


def _numba() -> bool:
    """Is Numba installed? It is not imported for the answer."""
    return importlib.util.find_spec("numba") is not None


def _cuda_problem(what: str) -> Error | None:
    """The error to raise where CUDA is asked for and cannot be used; None if it can."""
    problem: Callable[[str], Error | None] = imported(f"{__package__}.cuda._probe").problem
    return problem(what)


@refuses_shortage("kernels.available")
def available() -> tuple[str, ...]:
    """Names of the variants that can be used on this machine, best first; each is a name for `use`."""
    cuda = ("cuda",) if _numba() and _cuda_problem("") is None else ()
    return (*(f"aot/{name}" for name in levels()), *(("jit",) if _numba() else ()), *cuda, "reference")


def resolve(name: Any, what: str) -> str:
    """The full name of a variant: "aot" means its best level. `what` begins the errors."""
    if not isinstance(name, str):
        raise DeviceError(f"{what}: expected a str such as 'aot' or 'reference', got {type(name).__name__}")
    compiled = [f"aot/{level}" for level in levels()]
    if name == "aot" and compiled:
        name = compiled[0]
    if name == "reference" or name in compiled:
        return str(name)
    names = available()
    if name == "jit" and name not in names:
        raise _no_numba(f"{what} {name!r}")
    if name == "cuda":
        start_cuda(f"{what} 'cuda'")
    if name not in names:
        choices = ", ".join(("aot", *names) if levels() else names)
        known = name == "aot" or name.removeprefix("aot/") in LEVELS
        why = "is not available on this machine" if known else "is unknown"
        raise DeviceError(f"{what} {name!r} {why}: expected one of {choices}")
    return str(name)


def start_cuda(what: str) -> None:
    """The one place where an error says that CUDA cannot be used."""
    problem = _cuda_problem(what)
    if problem is not None:
        raise problem
    imported(f"{__package__}.cuda._cuda").start(what)


def _no_numba(what: str) -> MissingExtraError:
    from .._extras import install

    return MissingExtraError(f"{what} needs Numba, which is not installed: {install('jit')}")


def _default() -> str:
    forced = os.environ.get("FASTLAYERS_ISA", "")
    names = levels()
    if forced:
        if forced == "reference":
            return "reference"
        if forced == "jit":
            if not _numba():
                raise _no_numba("FASTLAYERS_ISA=jit")
            return "jit"
        if forced == "cuda":
            start_cuda("FASTLAYERS_ISA=cuda")
            return "cuda"
        if forced not in names:
            what = "cannot run on this machine" if forced in LEVELS else "is unknown"
            others = ("jit", "reference") if _numba() else ("reference",)
            raise DeviceError(f"FASTLAYERS_ISA: level {forced!r} {what}: expected one of {', '.join((*names, *others))}")
        return f"aot/{forced}"
    if not names:
        if getattr(sys, "frozen", False):
            raise DeviceError(
                "fastlayers: the compiled engine is not in this frozen program, which would run many times slower: freeze it "
                "with the hook of the installed package, which PyInstaller finds, or set FASTLAYERS_ISA=reference"
            )
        other = "jit" if _numba() else "reference"
        instead = {
            "jit": "running Numba's kernels, each of which is compiled when it is first called",
            "reference": "running plain numpy, which is many times slower",
        }
        warnings.warn(
            f"fastlayers: the compiled engine is missing ({missing()}); {instead[other]}. See `fastlayers doctor`.",
            RuntimeWarning,
            stacklevel=4,
        )
        return other
    return f"aot/{names[0]}"


def _install(variant: str) -> None:
    """Sets the variant of the process. The caller holds the lock."""
    global _table, _steps, _restores, _sources, _variant, _make_empty, generation
    driver = engine() if variant.startswith("aot/") else None
    if driver is not None:
        driver.set_threads(get_num_threads())
        threads.offer()
        driver.select(variant.removeprefix("aot/"))
    elif (other := engine()) is not None:
        other.deselect()
    table, steps, restores, sources = _functions(variant)
    _make_empty = driver.empty_array if driver is not None else None
    # Whole tables are swapped in: a call on another thread finds the old one or the new one.
    _table, _steps, _restores, _sources, _variant = table, steps, restores, sources, variant
    generation += 1


_Functions = dict[str, Callable[..., Any]]
_ITEMS = {item.name: item for item in KERNELS}


def _module(folder: str, file: str) -> Any | None:
    """A file of a variant; None where the variant has none of that name."""
    try:
        return imported(f"{__package__}.{folder}.{file}")
    except ModuleNotFoundError as error:
        if folder == "reference" or not (error.name or "").startswith(__package__):
            raise
        return None


def _functions(variant: str) -> tuple[_Functions, _Functions, _Functions, dict[str, str]]:
    """Kernels, steps and restores of a variant, the reference's where it has none; and which variant each kernel is of.

    A file of kernels is imported when one of them is first asked for: most networks need a few of the forty.
    """
    own = variant.partition("/")[0]
    folders = ("reference",) if own == "reference" else (own, "reference")

    def source(name: str) -> str | None:
        for folder in folders:
            module = _module(folder, _ITEMS[name].file)
            if name in getattr(module, "__all__", (name,)) and hasattr(module, name):
                return folder
        return None

    def function(name: str) -> Callable[..., Any] | None:
        folder = source(name)
        if folder is None:
            return None
        found: Callable[..., Any] = getattr(_module(folder, _ITEMS[name].file), name)
        return _guarded(name, found) if folder == "reference" else found

    def beside(name: str, other: str) -> Callable[..., Any] | None:
        """Looks up a function next to a compiled kernel by a name derived from the kernel's."""
        return getattr(_module(own, _ITEMS[name].file), other, None)

    def said(name: str) -> str | None:
        folder = source(name)
        return variant if folder == own else folder

    compiled = _ITEMS if own == "aot" else ()
    packs = [name for name in compiled if name.endswith("_pack")]
    steps = Registry(compiled, lambda name: beside(name, f"{name}_step"))
    restores = Registry(packs, lambda name: beside(name, f"{name.removesuffix('_pack')}_restore"))
    return Registry(_ITEMS, function), steps, restores, Registry(_ITEMS, said)


def _guarded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel in numpy, whose allocation failures become a fastlayers error."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except MemoryError as error:
            raise error if isinstance(error, Error) else LimitError(f"{name}: no memory for what numpy needs: {error}") from error

    return call


@refuses_shortage("fastlayers: choosing what runs")
def _begin() -> None:
    with _lock:
        if not _variant:
            _install(_default())


def _ready() -> None:
    if not _variant:
        _begin()


def current() -> str:
    """The name of the variant that runs now."""
    _ready()
    return _variant


def kernel(name: str) -> Callable[..., Any]:
    """The function that the current variant runs for `name`, an entry of `table.KERNELS`."""
    try:
        return _table[name]
    except KeyError:
        _ready()
        return _table[name]


def call(name: str, *args: Any) -> Any:
    """Runs kernel `name` of the current variant."""
    try:
        found = _table[name]
    except KeyError:
        found = kernel(name)
    return found(*args)


def step(name: str) -> Callable[..., Any] | None:
    """Returns the maker of a step of kernel `name` in the current variant, or None: only the compiled engine has steps."""
    _ready()
    return _steps.get(name)


class Variant(NamedTuple):
    """The functions of one variant, for those who keep to it whatever `use` says later: a loaded model.

    `restores`, by the name of a pack kernel: takes its arguments and the panels that it made of the same weights before.
    `strict`: products sum in finer blocks, where the variant has such (the compiled levels).
    """

    name: str
    kernels: dict[str, Callable[..., Any]]
    steps: dict[str, Callable[..., Any]]
    restores: dict[str, Callable[..., Any]]
    strict: bool = False

    def multiplies_bfloat16(self) -> bool:
        """Whether its level multiplies bfloat16, where weights are stored so."""
        return self._answers("multiplies_bfloat16")

    def multiplies_three_bytes(self) -> bool:
        """Whether its level multiplies bytes so fast that weights of 8 bits stay so, with sums as exact as those of floats."""
        return not self.strict and self._answers("multiplies_three_bytes")

    def _answers(self, question: str) -> bool:
        driver = engine() if self.name.startswith("aot/") else None
        if driver is None:
            return False
        with self.bound():
            return bool(getattr(driver, question)())

    def bound(self) -> Any:
        """A context that binds this thread's packing, planning and running to this variant's level."""
        driver, level = _driver_of(self.name)
        return nullcontext() if driver is None else _Bound(driver, level, self.strict)


@functools.cache  # a layer asks in every call of new sizes
def _driver_of(variant: str) -> tuple[Any, str]:
    """The engine and the name of its level; None where the variant is none of its own."""
    return (engine(), variant.removeprefix("aot/")) if variant.startswith("aot/") else (None, "")


class _Bound:
    """Binds a thread to a level for a while; at the end the thread has the level that it had before."""

    __slots__ = ("_before", "_driver", "_level")

    def __init__(self, driver: Any, *level: Any) -> None:
        self._driver, self._level = driver, level

    def __enter__(self) -> None:
        self._before = self._driver.bind_under(*self._level)

    def __exit__(self, *_: object) -> None:
        self._driver.bind_under(*self._before)


def variant(name: str = "", what: str = "variant") -> Variant:
    """The functions of the current variant, or of the one that is named. `what` begins the errors."""
    if not name:
        _ready()
    elif (name := resolve(name, what)) != _variant:
        driver = engine() if name.startswith("aot/") else None
        if driver is not None:  # it may not have been current so far
            driver.set_threads(get_num_threads())
            threads.offer()
        return Variant(name, *_functions(name)[:3])
    with _lock:
        return Variant(_variant, _table, _steps, _restores)


def empty(shape: tuple[int, ...]) -> np.ndarray:
    """An uninitialized float32 array for a result; the compiled engine recycles the memory of large ones."""
    _ready()
    make = _make_empty
    try:
        if make is not None:
            return make(shape)
        if 4 * math.prod(shape) > memory() // 4 * 3:
            raise MemoryError
        return np.empty(shape, np.float32)
    except LimitError:
        raise
    except (MemoryError, OverflowError, ValueError):  # numpy calls a size beyond all addresses a wrong value
        raise LimitError(f"fastlayers: no memory for a float32 result of shape {shape}") from None


@refuses_shortage("kernels.info")
def info() -> dict[str, Any]:
    """Describes the running variant: ``{"variant", "available", "threads", "operations": {kernel: variant}}``."""
    _ready()
    return {"variant": _variant, "available": available(), "threads": get_num_threads(), "operations": dict(_sources)}


class switch:  # noqa: N801 - called like a function
    """`use`, without a word about models."""

    @refuses_shortage("kernels.use")
    def __init__(self, name: str) -> None:
        variant = resolve(name, "kernels.use: variant")
        with _lock:
            self._before = _variant  # "" before the first use
            _install(variant)

    def __enter__(self: S) -> S:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        with _lock:
            _install(self._before or _default())


class use(switch):  # noqa: N801 - called like a function
    """Sets the variant for the whole process, at once; as a context manager it restores the former one at the end.

    Functions and layers run under it from then on. A model keeps the variant that it was loaded with, which holds its packed
    weights: if one lives that has another, a RuntimeWarning says so. ``load(..., variant="reference")`` loads under any variant.

    Args:
        name: one of `available()`, or ``"aot"`` for the best compiled level.

    Raises:
        DeviceError: the variant is unknown or cannot run here; the message lists those that can.

    >>> import fastlayers as fl
    >>> with fl.kernels.use("reference"):
    ...     fl.kernels.info()["variant"]
    'reference'
    """

    def __init__(self, name: str) -> None:
        full = resolve(name, "kernels.use: variant")
        kept = Counter(model.variant for model in list(models) if model.variant != full)
        if kept:
            told = ", ".join(f"{count} under {other}" for other, count in sorted(kept.items()))
            warnings.warn(
                f"kernels.use: models that were loaded before keep their variant ({told}): expected to be loaded again, or by "
                f"load(..., variant={name!r}), to run under {full}",
                RuntimeWarning,
                stacklevel=2,
            )
        super().__init__(name)
