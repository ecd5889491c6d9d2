"""The only module that imports Numba: how kernels are compiled, cached, and called through an address.

A kernel is a plain function whose arguments are integers (addresses, sizes), floats, and records of them (named tuples, by
value), as annotated, so there is one machine code of it, whatever arrays it is called for. It is compiled at its first call.
Numba's disk cache keeps the code where a directory can be written; where none can, every process compiles it again.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

import numba
from numba import types
from numba.core import caching, cgutils
from numba.core.ccallback import CFunc
from numba.core.compiler_lock import global_compiler_lock
from numba.extending import intrinsic

from ..._forks import finish_before_fork
from ..._locks import Lock
from ..records import type_of
from ._vector import Emit, V

__all__ = ["Kernel", "c_function", "call", "emitted", "inner", "kernel", "listeners"]

# No "nnan", no "ninf", no "reassoc": NaN, infinity and the order of a sum are part of the contract; no "nsz": so are zeros'
# signs.
FASTMATH = {"contract"}

# Called with the name and the seconds of every kernel that was compiled, or read from the cache.
listeners: list[Callable[[str, float], None]] = []

_lock = Lock()
finish_before_fork(_lock)
# LLVM is left half way by a child that is forked while another thread compiles, and Numba's lock stays shut.
if hasattr(global_compiler_lock, "_lock"):
    finish_before_fork(global_compiler_lock._lock)
_KINDS = {"int": types.intp, "float": types.float32, "Int": types.intp, "Real": types.float32}


def _kind(name: str, names: Mapping[str, Any]) -> Any:
    """Numba's type of an annotation: a number, or a record whose class has this name where it is used."""
    return type_of(name, names, _KINDS, types.BaseTuple.from_types)


@cache
def _stamp() -> str:
    """A digest of all sources of this folder: emitted code comes from other files than the function that it is in."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


class _Cache(caching.FunctionCache):  # type: ignore[misc]
    """Numba's disk cache, whose entries are those of the very same sources."""

    def __init__(self, py_func: Callable[..., Any]) -> None:
        super().__init__(py_func)
        self._cache_file._source_stamp = _stamp()


def _keep(made: Any, function: Callable[..., Any]) -> None:
    """Gives a dispatcher the disk cache, if there is any directory for it; else every process compiles it."""
    with contextlib.suppress(OSError, RuntimeError, AttributeError):
        made._cache = _Cache(function)


class Kernel:
    """A function that is compiled at its first call, without the GIL; `address` is that of its C function."""

    def __init__(self, function: Callable[..., Any], inner: bool = False) -> None:
        self.inner = inner
        self.function, self.name = function, f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
        names = inspect.get_annotations(function)
        self.signature = types.void(*(_kind(kind, function.__globals__) for name, kind in names.items() if name != "return"))
        self.run: Callable[..., None] | None = None
        self._address: int | None = None
        self._made: Any = None  # owns the machine code, as the next one does
        self._made_c: Any = None
        self.__doc__ = function.__doc__

    def __call__(self, *arguments: Any) -> None:
        if self.run is None:
            self.compile()
        self.run(*arguments)  # type: ignore[misc]

    def prepare(self) -> None:
        """Compiles what is not compiled yet."""
        if self.inner:
            _ = self.address
        elif self.run is None:
            self.compile()

    def compile(self) -> None:
        """Compiles the function for calls from Python."""
        with _lock:
            if self.run is None:
                begin = time.perf_counter()
                # Without Numba's own C function of it, which is never called: `address` is of another one.
                options = {"fastmath": FASTMATH, "error_model": "numpy", "no_cfunc_wrapper": True}
                made = numba.njit(nogil=True, **options)(self.function)
                _keep(made, self.function)
                made.compile(self.signature)
                made.disable_compile()
                self._tell(begin)
                # Past the dispatcher, which would look for the types of all arguments, a record's fields too: twice the time.
                self._made, self.run = made, made.overloads[self.signature.args].entry_point

    @property
    def address(self) -> int:
        """The address of the C function of the same arguments, for calls from other kernels."""
        if self._address is None:
            with _lock:
                if self._address is None:
                    begin = time.perf_counter()
                    self._made_c = _c_function(self.function, self.signature)
                    self._tell(begin)
                    self._address = self._made_c.address
        return self._address

    def _tell(self, begin: float) -> None:
        for listener in tuple(listeners):
            listener(self.name, time.perf_counter() - begin)


def c_function(function: Callable[..., Any], signature: Any) -> Any:
    """A C function of one that has no variables of an outer one but constants; it is compiled again in every process."""
    options = {"error_model": "numpy", "nopython": True, "nogil": True}
    made = CFunc(function, (signature.args, signature.return_type), locals={}, options=options)
    made.compile()
    return made


def _c_function(function: Callable[..., Any], signature: Any) -> Any:
    # Under a separate name: the cache shall not take it for the function that is called from Python.
    copy = FunctionType(function.__code__, function.__globals__, f"c_{function.__name__}")
    copy.__qualname__, copy.__module__ = copy.__name__, function.__module__
    options = {"fastmath": FASTMATH, "error_model": "numpy", "nopython": True, "nogil": True}
    made = CFunc(copy, (signature.args, signature.return_type), locals={}, options=options)
    _keep(made, copy)
    made.compile()
    return made


def kernel(function: Callable[..., None]) -> Kernel:
    """The decorator of a compiled function that is called from Python: see `Kernel`."""
    return Kernel(function)


def inner(function: Callable[..., None]) -> Kernel:
    """The decorator of a compiled function that other kernels call through its address."""
    return Kernel(function, inner=True)


def _target(kind: Any) -> Any:
    """Parameter type of a C function for such an argument: a record of its class's types, float32, or an integer."""
    if isinstance(kind, types.BaseTuple):
        made = kind.instance_class
        return _kind(made.__name__, {made.__name__: made})
    return types.float32 if isinstance(kind, types.Float) else types.intp


def _fitted(context: Any, builder: Any, value: Any, kind: Any, target: Any) -> Any:
    if not isinstance(target, types.BaseTuple):
        return context.cast(builder, value, kind, target)
    parts = zip(cgutils.unpack_tuple(builder, value), kind, target, strict=True)
    return context.make_tuple(builder, target, [_fitted(context, builder, *part) for part in parts])


def _values(e: Emit, context: Any, value: Any, kind: Any, target: Any) -> Any:
    """Argument of an emitted function: V, or a record of V."""
    if not isinstance(target, types.BaseTuple):
        return V(e, context.cast(e.builder, value, kind, target))
    parts = zip(cgutils.unpack_tuple(e.builder, value), kind, target, strict=True)
    return target.instance_class(*(_values(e, context, *part) for part in parts))


def emitted(function: Callable[..., Any]) -> Any:
    """Makes a function that emits code, (e, *values), callable in kernels. It returns None, an integer or a float.

    Annotations say what the values are, "Float", a record or, for integers, "V", and what the result is.
    """
    kinds = inspect.get_annotations(function)
    result = {"None": types.void, "Integer": types.intp, "Float": types.float32, "Double": types.float64}[
        kinds.get("return", "None")
    ]
    names = list(inspect.signature(function).parameters)[1:]
    known = {"Float": types.float32, "Double": types.float64, "V": types.intp}
    wanted = [known.get(kinds.get(name, "V")) or _kind(kinds[name], function.__globals__) for name in names]

    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def made(typingctx: Any, *values: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            given = signature.args[0]
            e = Emit(builder)
            parts = [
                _values(e, context, value, kind, target)
                for value, kind, target in zip(cgutils.unpack_tuple(builder, arguments[0]), given, wanted, strict=True)
            ]
            out = function(e, *parts)
            return context.get_dummy_value() if out is None else out.v

        return result(types.StarArgTuple(values)), generate

    made.__name__ = function.__name__
    return made


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def call(typingctx: Any, address: Any, *values: Any) -> Any:
    """Calls the C function at an address, of integers, float32 values and records of them."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        from llvmlite import ir

        given, targets = signature.args[1], [_target(kind) for kind in signature.args[1]]
        parts = zip(cgutils.unpack_tuple(builder, arguments[1]), given, targets, strict=True)
        kind = ir.FunctionType(ir.VoidType(), [context.get_value_type(target) for target in targets])
        builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), [_fitted(context, builder, *part) for part in parts])
        return context.get_dummy_value()

    return types.void(address, types.StarArgTuple(values)), generate
