"""Compiles Numba's kernels before they are needed."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ..errors import ArgumentError, DTypeError
from . import dispatch
from .table import KERNELS

__all__ = ["Report", "warmup"]

Report = Callable[[int, int, str, float], None]


def warmup(what: Any = None, feeds: Mapping[str, Any] | None = None, *, report: Report | None = None) -> float:
    """Compiles the kernels of Numba's variants, "jit" and "cuda", that a model needs, so that its first call need not.

    Where the disk cache can be written (see README.md), the next process finds them there. The compiled engine and numpy need no
    warming up: for them, this does nothing. Kernels of the GPU are made for sizes: those of a model, by running it.

    Args:
        what: a `Model` made under ``use("jit")`` or with ``device="cuda"``; or names of kernels of "jit", as `info` lists them;
            None for all of them.
        feeds: inputs of the model by name, which is then run on them once; without them, zeros, where sizes that are not known
            are 1.
        report: called for each kernel with how many are done, how many there are (of the GPU's, are known so far), its name,
            and the seconds that it took.

    Returns:
        The seconds that compilation (or reading the cache) took.

    Raises:
        ShapeError: a name is no kernel's.
        DTypeError: `what` is something else.

    >>> import fastlayers as fl
    >>> with fl.kernels.use("reference"):
    ...     fl.kernels.warmup()
    0.0
    """
    model: Any = what if hasattr(what, "kernel_names") else None
    if isinstance(what, str) or not (what is None or model is not None or isinstance(what, Iterable)):
        raise DTypeError(f"warmup: expected a model, names of kernels, or None, got {type(what).__name__}")
    variant = model.variant if model is not None else dispatch.current()
    if model is not None and variant == "cuda":
        return _run_on_gpu(model, dict(feeds) if feeds is not None else _zeros(model), report)
    if variant != "jit":
        return 0.0
    known = {item.name for item in KERNELS}
    names = known
    given: dict[str, Any] = {}
    if model is not None:
        given = dict(feeds) if feeds is not None else _zeros(model)
        names = model.kernel_names(given) or known
    elif what is not None:
        names = set(what)
        if not names <= known:
            raise ArgumentError(f"warmup: there are no kernels {sorted(names - known)}: expected some of {sorted(known)}")
    seconds = _compile(names, report)
    if model is not None:
        model.run(given)
    return seconds


def _compile(names: Iterable[str], report: Report | None) -> float:
    from .jit import _njit

    kernels = list(_needed(names))
    spent: list[float] = []

    def listen(name: str, seconds: float) -> None:
        spent.append(seconds)

    _njit.listeners.append(listen)
    try:
        for done, kernel in enumerate(kernels):
            before = len(spent)
            kernel.prepare()
            if report is not None:
                report(done + 1, len(kernels), kernel.name, sum(spent[before:]))
    finally:
        _njit.listeners.remove(listen)
    return sum(spent)


def _run_on_gpu(model: Any, given: dict[str, Any], report: Report | None) -> float:
    from .cuda import _cuda

    spent: list[float] = []

    def listen(name: str, seconds: float) -> None:
        spent.append(seconds)
        if report is not None:
            report(len(spent), len(spent), name, seconds)

    _cuda.listeners.append(listen)
    try:
        model.run(given)
    finally:
        _cuda.listeners.remove(listen)
    return sum(spent)


def _needed(names: Iterable[str]) -> Iterator[Any]:
    """The compiled functions of the files that have these kernels, and those that they call."""
    from .jit import _njit

    package = f"{__package__}.jit."
    modules: dict[str, Any] = {}

    def add(name: str) -> None:
        if name in modules or importlib.util.find_spec(name) is None:
            return  # the reference's runs
        modules[name] = module = importlib.import_module(name)
        for value in list(vars(module).values()):
            other = getattr(value, "__module__", None) or ""
            if callable(value) and not isinstance(value, _njit.Kernel) and other.startswith(package):
                add(other)

    for file in sorted({item.file for item in KERNELS if item.name in names}):
        add(f"{package}{file}")
    found = (value for module in modules.values() for value in vars(module).values() if isinstance(value, _njit.Kernel))
    yield from {id(value): value for value in found}.values()


def _zeros(model: Any) -> dict[str, np.ndarray]:
    shapes = {spec.name: [d if isinstance(d, int) else 1 for d in spec.shape or ()] for spec in model.inputs}
    return {spec.name: np.full(shapes[spec.name], model._only.get(spec.name, 0), spec.dtype) for spec in model.inputs}
