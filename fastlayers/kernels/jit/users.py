"""Users' functions as C functions: what ``numba.njit`` was put on becomes a step of a compiled program, without Python.

It imports Numba as `_njit` does, for its business is that of users' own decorators; nothing is compiled here but by `c_function`.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import from_dtype, typeof, types
from numba.core import cgutils
from numba.core.errors import NumbaError
from numba.extending import intrinsic, overload
from numba.np.arrayobj import make_array, populate_array

from ..._forks import finish_before_fork
from ..._locks import Lock
from ._njit import c_function

__all__ = ["Compiled", "compiled", "positional"]

_lock = Lock()
finish_before_fork(_lock)
_made: dict[Any, Compiled | None] = {}

# The number of axes and the dtype of an array.
Kind = tuple[int, np.dtype[Any]]

# What the C function returns if the user's function raised, or gave a result of another shape: `aot/run.pyx` knows it.
RAISED = -3


class Compiled(NamedTuple):
    """A C function `int f(const int64_t *sizes, void *const *operands)`; `keep` must live as long as it is called.

    `sizes` are those of all inputs and then all outputs, one after the other.
    """

    address: int
    keep: Any


def compiled(function: Any, inputs: Sequence[Kind], outputs: Sequence[Kind], attributes: Mapping[str, Any]) -> Compiled | None:
    """The function for arrays of these kinds and these attributes, compiled once a process; None where Numba cannot.

    Args:
        function: what ``numba.njit`` returned; takes the inputs in their order and the attributes by name.
        inputs, outputs: the arrays.
        attributes: scalars, strings, or tuples of them: constants of the compiled code.
    """
    bound = inspect.signature(function.py_func).bind(*(None for _ in inputs), **attributes)
    bound.apply_defaults()
    constants = tuple(bound.arguments.values())[len(inputs) :]
    key = (function, tuple(inputs), tuple(outputs), constants, tuple(map(type, constants)))
    with _lock:
        if key not in _made:
            try:
                _made[key] = _compile(function, inputs, outputs, constants)
            except (NumbaError, TypeError, NotImplementedError) as error:
                name = getattr(function, "__name__", "function")
                warnings.warn(
                    f"operator: {name} runs as a step of Python, though Numba compiles it: no C function can be made of it for "
                    f"{len(inputs)} inputs and the attributes {dict(attributes)}: {str(error).strip()[:300]}",
                    RuntimeWarning, stacklevel=2,
                )  # fmt: skip
                _made[key] = None
        return _made[key]


def _compile(function: Any, inputs: Sequence[Kind], outputs: Sequence[Kind], constants: tuple[Any, ...]) -> Compiled:
    given, wanted = (tuple(types.Array(from_dtype(dtype), axes, "C") for axes, dtype in kinds) for kinds in (inputs, outputs))
    arguments = (*given, *map(typeof, constants))
    function = positional(function)
    function.compile(arguments)
    result = function.overloads[arguments].signature.return_type
    several = isinstance(result, types.BaseTuple)
    parts = tuple(result) if several else (result,)
    if [getattr(part, "ndim", None) for part in parts] != [kind.ndim for kind in wanted]:
        raise TypeError(f"it returns {result}: expected arrays of {[kind.ndim for kind in wanted]} axes")
    take, put = _arrays(given, 0, 0), _arrays(wanted, len(given), sum(kind.ndim for kind in given))

    def step(sizes, operands):  # type: ignore[no-untyped-def]
        try:
            result = function(*(take(sizes, operands) + constants))
            return 0 if _store(put(sizes, operands), result if several else (result,)) else RAISED
        except Exception:
            return RAISED

    made = c_function(step, types.int32(types.CPointer(types.int64), types.CPointer(types.intp)))
    return Compiled(made.address, made)


def positional(function: Any) -> Any:
    """The function with its keyword-only parameters, which Numba's calls do not take, after the others, as its code has them."""
    code = function.py_func.__code__
    if not code.co_kwonlyargcount:
        return function
    code = code.replace(co_argcount=code.co_argcount + code.co_kwonlyargcount, co_kwonlyargcount=0)
    plain = FunctionType(code, function.py_func.__globals__, function.__name__, None, function.py_func.__closure__)
    return numba.jit(**function.targetoptions)(plain)


def _arrays(kinds: Sequence[Any], first: int, at: int) -> Any:
    """Returns a function that makes a tuple of arrays of the operands from index `first` on, whose sizes begin at index `at`."""

    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def made(typingctx: Any, sizes: Any, operands: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            def entry(pointer: Any, i: int) -> Any:
                return builder.load(builder.gep(pointer, [context.get_constant(types.intp, i)]))

            found, size = [], at
            for i, kind in enumerate(kinds):
                array = make_array(kind)(context, builder)
                shape = [entry(arguments[0], size + k) for k in range(kind.ndim)]
                item = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
                strides = [item]
                for length in reversed(shape[1:]):
                    strides.insert(0, builder.mul(strides[0], length))
                data = builder.inttoptr(entry(arguments[1], first + i), array.data.type)
                populate_array(
                    array, data=data, shape=cgutils.pack_array(builder, shape, item.type),
                    strides=cgutils.pack_array(builder, strides[: kind.ndim], item.type), itemsize=item, meminfo=None,
                )  # fmt: skip
                found.append(array._getvalue())
                size += kind.ndim
            return context.make_tuple(builder, signature.return_type, found)

        return types.Tuple(tuple(kinds))(sizes, operands), generate

    return made


def _store(outputs: Any, results: Any) -> bool:
    """Copies results to outputs; False where a shape is another one."""
    raise NotImplementedError


@overload(_store)  # type: ignore[untyped-decorator, unused-ignore]
def _store_of(outputs, results):  # type: ignore[no-untyped-def]
    if not len(outputs):
        return lambda outputs, results: True

    def store(outputs, results):  # type: ignore[no-untyped-def]
        if outputs[0].shape != results[0].shape:
            return False
        outputs[0][...] = results[0]
        return _store(outputs[1:], results[1:])

    return store
