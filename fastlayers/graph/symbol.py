"""Symbolic values: what functions and layers get instead of arrays while they are recorded. No operation is defined here."""

from __future__ import annotations

import itertools
import operator
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from .._arguments import LARGEST, shown
from .._lazy import imported
from ..errors import DTypeError, ShapeError, UnsupportedError
from ..ir.graph import Dim, Shape

__all__ = ["RECORDED", "Call", "Input", "Label", "Symbol", "now", "symbolic"]

_order = itertools.count()


def now() -> int:
    """A number above those of all calls that have been recorded, and below those to come."""
    return next(_order)


class Label:
    """The name of a call, after which the values that it records are named."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Call:
    """One recorded operator, before names are given: symbols and arrays in, symbols out.

    A result knows its call and not the other way round: in a cycle they would keep weights until somebody looks for cycles.
    `outputs` are the results that are still there, `specs` the shapes and dtypes of all. `label` is that of the function which
    recorded the operator, None if none did; `places` has, for each result that is one of the function's, its position there, or
    -1 if it is the only one.
    """

    __slots__ = ("_made", "attributes", "inputs", "label", "op", "order", "places", "specs")

    def __init__(self, op: str, inputs: tuple[Any, ...], attributes: Mapping[str, Any]) -> None:
        self.op, self.inputs, self.attributes = op, inputs, attributes
        self.order = next(_order)
        self.specs: tuple[tuple[Shape, np.dtype[Any]], ...] = ()
        self._made: tuple[weakref.ref[Symbol], ...] = ()
        self.label: Label | None = None
        self.places: dict[int, int] = {}

    def give(self, results: Sequence[tuple[Shape, np.dtype[Any]]]) -> tuple[Symbol, ...]:
        """The results, of these shapes and dtypes, made once."""
        made = tuple(Symbol(shape, dtype, None, self) for shape, dtype in results)
        self.specs = tuple(results)
        self._made = tuple(map(weakref.ref, made))
        return made

    def settle(self, result: Symbol, shape: Shape, place: int) -> None:
        """Says of a result which one of the label's function it is, and its shape, of which the function knows more."""
        at = next(i for i, made in enumerate(self.outputs) if made is result)
        self.places[at] = place
        self.specs = (*self.specs[:at], (shape, result.dtype), *self.specs[at + 1 :])
        result.shape = shape

    @property
    def outputs(self) -> tuple[Symbol | None, ...]:
        """The results; None for one that is no longer referenced."""
        return tuple(ref() for ref in self._made)


def _operation(name: str, *arguments: Any) -> Any:
    """A function of `functional`."""
    return getattr(imported("fastlayers.functional"), name)(*arguments)


# What operators of symbolic values record, by name: `record`, which stands above this module, puts its functions here.
RECORDED: dict[str, Callable[..., Any]] = {}


def _recorded(name: str, *arguments: Any) -> Any:
    """Calls one of `RECORDED`, which is empty until `record` is imported."""
    if not RECORDED:
        imported("fastlayers.graph.record")
    return RECORDED[name](*arguments)


def _move(name: str, x: Symbol, *arguments: Any) -> Any:
    """A movement of values: as numpy does it, it leaves the dtype as it is."""
    return _operation(name, x, *arguments) if x.dtype == np.float32 else _recorded("moved", name, x, *arguments)


class Symbol:
    """An array that is not there yet: its shape (sizes may be names or None) and dtype, and the call that will make it.

    Functions and layers of fastlayers take it wherever they take an array, and so do ``+ - * /``, comparisons, ``& | ^ ~``,
    indexing, `reshape`, `transpose`, `swapaxes`, `astype`, `sum`, `mean`, `max`, `min`, ``numpy.where`` and the numpy functions
    of the same names, and exp, log, sqrt, square and tanh. What needs the values themselves (``if``, ``float()``, other functions
    of numpy) is refused.
    """

    __slots__ = ("__weakref__", "call", "casts", "dtype", "name", "shape")

    def __init__(self, shape: Shape, dtype: np.dtype[Any], name: str | None = None, call: Call | None = None) -> None:
        self.shape, self.dtype, self.name, self.call = shape, dtype, name, call
        self.casts: dict[np.dtype[Any], weakref.ref[Symbol]] = {}  # itself as other dtypes, where that is still needed

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def __repr__(self) -> str:
        made = f" from {self.call.op}" if self.call is not None else ""
        return f"Symbol({'' if self.name is None else self.name + ' '}{self.dtype.name}{list(self.shape)}{made})"

    def reshape(self, *shape: Any) -> Any:
        """The same values in another shape; one size may be -1."""
        return _move("reshape", self, shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape)

    def transpose(self, *axes: Any) -> Any:
        """The axes in another order, all reversed by default, as in numpy."""
        if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], Sequence)):
            axes = tuple(range(self.ndim))[::-1] if axes[0] is None else tuple(axes[0])
        return _move("permute", self, axes or tuple(range(self.ndim))[::-1])

    def swapaxes(self, axis1: int, axis2: int) -> Any:
        """Two axes exchanged."""
        order = list(range(self.ndim))
        try:
            order[axis1], order[axis2] = order[axis2], order[axis1]
        except (IndexError, TypeError):
            raise ShapeError(f"swapaxes: axes are {shown(axis1)} and {shown(axis2)}: expected two of {self!r}") from None
        return self.transpose(order)

    def astype(self, dtype: Any) -> Any:
        """The same values in another dtype."""
        return _recorded("cast", self, dtype)

    @property
    def T(self) -> Any:  # noqa: N802
        """The axes reversed."""
        return self.transpose()

    def sum(self, axis: Any = None, keepdims: bool = False) -> Any:
        """Sums along an axis, or several, or all; this and the next three as numpy's methods."""
        return _recorded("reduced", "Sum", self, axis, keepdims)

    def mean(self, axis: Any = None, keepdims: bool = False) -> Any:
        """Means."""
        return _recorded("reduced", "Mean", self, axis, keepdims)

    def max(self, axis: Any = None, keepdims: bool = False) -> Any:
        """Largest values."""
        return _recorded("reduced", "Max", self, axis, keepdims)

    def min(self, axis: Any = None, keepdims: bool = False) -> Any:
        """Smallest values."""
        return _recorded("reduced", "Min", self, axis, keepdims)

    def __getattr__(self, name: str) -> Any:
        from .._habits import SYMBOL, advice, function

        told = "" if name.startswith("_") else advice(SYMBOL, name) or function(name, imported("fastlayers.functional").__all__)
        raise AttributeError(f"'Symbol' object has no attribute {name!r}{told}")

    def __getitem__(self, key: Any) -> Any:
        return _index(self, key if isinstance(key, tuple) else (key,))

    def __add__(self, other: Any) -> Any:
        return _operation("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return _operation("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return _operation("subtract", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _operation("subtract", other, self)

    def __mul__(self, other: Any) -> Any:
        return _operation("multiply", self, other)

    def __rmul__(self, other: Any) -> Any:
        return _operation("multiply", other, self)

    def __truediv__(self, other: Any) -> Any:
        return _operation("divide", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _operation("divide", other, self)

    def __neg__(self) -> Any:
        return _operation("multiply", self, -1.0)

    def __pos__(self) -> Any:
        return self

    def __pow__(self, exponent: Any) -> Any:
        if isinstance(exponent, (int, float)) and exponent in (1, 2, 0.5):
            return self if exponent == 1 else (self * self if exponent == 2 else _operation("sqrt", self))
        return self._refuse(f"** {exponent!r}", "only the exponents 0.5, 1 and 2 can be recorded")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        record = _UFUNCS.get(ufunc.__name__)
        if record is None or method != "__call__" or keywords:
            what = (
                ufunc.__name__
                + ("" if method == "__call__" else f".{method}")
                + (f" with {sorted(keywords)}" if keywords else "")
            )
            self._refuse(f"numpy.{what}", f"numpy functions that can be recorded: {', '.join(sorted(_UFUNCS))}")
        return record(*inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function is np.where and len(args) == 3 and not kwargs:
            return _recorded("where", *args)
        name = _REDUCED.get(function)
        if name and len(args) <= 2 and isinstance(args[0], Symbol) and not kwargs.keys() - {"axis", "keepdims"}:
            return getattr(args[0], name)(*args[1:], **kwargs)
        return self._refuse(f"numpy.{function.__name__}", f"use the function of fastlayers.functional; of numpy's {_RECORDED}")

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        self._refuse("conversion to an array", "use the functions of fastlayers.functional instead of numpy's")

    def __bool__(self) -> NoReturn:
        self._refuse("a decision by value (if, while, and, or, not)", "decide by shape, or outside of the recorded function")

    def __float__(self) -> NoReturn:
        self._refuse("float()", "keep the value as it is")

    def __int__(self) -> NoReturn:
        self._refuse("int()", "keep the value as it is")

    def __index__(self) -> NoReturn:
        self._refuse("use as an index", "index with plain integers and slices")

    def __complex__(self) -> NoReturn:
        self._refuse("complex()", "keep the value as it is")

    def __iter__(self) -> NoReturn:
        self._refuse("iteration", "take the parts by index: x[0], x[1], ...")

    def __len__(self) -> int:
        if self.ndim and isinstance(self.shape[0], int):
            return self.shape[0]
        return self._refuse("len()", "its first size is not known while the function is recorded")

    def __contains__(self, item: object) -> NoReturn:
        self._refuse("in", "its values are not known while the function is recorded")

    def __and__(self, other: Any) -> Any:
        return _recorded("logic", "bitwise_and", self, other)

    def __rand__(self, other: Any) -> Any:
        return _recorded("logic", "bitwise_and", other, self)

    def __or__(self, other: Any) -> Any:
        return _recorded("logic", "bitwise_or", self, other)

    def __ror__(self, other: Any) -> Any:
        return _recorded("logic", "bitwise_or", other, self)

    def __xor__(self, other: Any) -> Any:
        return _recorded("logic", "bitwise_xor", self, other)

    def __rxor__(self, other: Any) -> Any:
        return _recorded("logic", "bitwise_xor", other, self)

    def __invert__(self) -> Any:
        return _recorded("invert", self)

    def __lt__(self, other: Any) -> Any:
        return _recorded("compare", "less", self, other)

    def __le__(self, other: Any) -> Any:
        return _recorded("compare", "less_equal", self, other)

    def __gt__(self, other: Any) -> Any:
        return _recorded("compare", "greater", self, other)

    def __ge__(self, other: Any) -> Any:
        return _recorded("compare", "greater_equal", self, other)

    def __eq__(self, other: object) -> Any:
        return _recorded("compare", "equal", self, other)

    def __ne__(self, other: object) -> Any:
        return _recorded("compare", "not_equal", self, other)

    __hash__ = object.__hash__

    def _refuse(self, what: str, fix: str) -> NoReturn:
        raise UnsupportedError(
            f"trace: {what} of the symbolic value {self!r}: its values are unknown while it is recorded; {fix}"
        )


_REDUCED = {np.sum: "sum", np.mean: "mean", np.max: "max", np.amax: "max", np.min: "min", np.amin: "min"}
_RECORDED = "those that can be recorded are where, and sum, mean, max and min with axis and keepdims"
_UFUNCS: dict[str, Any] = {
    **{name: (lambda *inputs, op=name: _operation(op, *inputs)) for name in ("add", "subtract", "multiply", "divide")},
    **{name: (lambda *inputs, op=name: _operation(op, *inputs)) for name in ("exp", "log", "sqrt", "tanh")},
    "negative": operator.neg,
    "square": lambda x: x * x,
    **{
        name: (lambda *inputs, op=name: _recorded("compare", op, *inputs))
        for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
    },
    **{name: (lambda *inputs, op=name: _recorded("logic", op, *inputs)) for name in ("bitwise_and", "bitwise_or", "bitwise_xor")},
    "invert": operator.invert,
}


def _index(x: Symbol, key: tuple[Any, ...]) -> Any:
    """Records basic indexing (integers, slices, None, ...) as slices, selections and new axes of size one."""
    given = sum(k is not None and k is not Ellipsis for k in key)
    if sum(k is Ellipsis for k in key) > 1 or given > x.ndim:
        raise ShapeError(f"getitem: {x!r} has {x.ndim} axes, the index has {given} entries and at most one '...' may stand in it")
    if not any(k is Ellipsis for k in key):
        key = (*key, Ellipsis)
    at = next(i for i, k in enumerate(key) if k is Ellipsis)
    key = key[:at] + (slice(None),) * (x.ndim - given) + key[at + 1 :]
    axis = 0
    for part in key:
        if part is None:
            x, axis = _move("unsqueeze", x, axis), axis + 1
        elif isinstance(part, slice):
            if part != slice(None):
                x = _move("slice", x, axis, part.start, part.stop, 1 if part.step is None else part.step)
            axis += 1
        elif isinstance(part, (int, np.integer)) and not isinstance(part, bool):
            x = _move("select", x, axis, int(part))
        else:
            raise UnsupportedError(
                f"getitem: an index of type {type(part).__name__} cannot be recorded: use integers, slices, None and ..."
            )
    return x


def Input(name: str, shape: Sequence[Dim], dtype: Any = np.float32) -> Symbol:  # noqa: N802
    """A symbolic value for an input of a graph.

    Args:
        name: the input's name.
        shape: sizes; a str names a size that is known only when the graph runs (equal names
            are equal sizes), None leaves it open.
        dtype: anything numpy.dtype takes.

    Returns:
        A value that functions and layers of fastlayers take in place of an array.

    Raises:
        ShapeError: a size is neither an int of at least 0, nor a str, nor None.
        DTypeError: the dtype is not boolean, integer or real; or the name is no str.

    >>> import fastlayers as fl
    >>> fl.functional.relu(fl.graph.Input("x", ("n", 4)))
    Symbol(float32['n', 4] from Relu)
    """
    if not isinstance(name, str) or not name:
        raise DTypeError(f"Input: name is {shown(name)}: expected a str")
    if isinstance(shape, str) or not isinstance(shape, Sequence):
        raise ShapeError(f"Input: shape of {name!r} is {shown(shape)}: expected a sequence of sizes such as (1, 'time', 16)")
    sizes: list[Dim] = []
    for size in shape:
        try:
            sizes.append(size if isinstance(size, str | None) else -1 if isinstance(size, bool) else operator.index(size))
        except Exception:  # a third-party type may raise anything
            sizes.append(-1)
        if isinstance(sizes[-1], int) and not 0 <= sizes[-1] <= LARGEST:
            raise ShapeError(
                f"Input: shape of {name!r} is {shown(shape)}: each size must be an int of at least 0, a name or None, got "
                f"{shown(size)}"
            )
    try:
        if isinstance(dtype, (tuple, list, dict)):  # of several parts, which numpy reads in many ways
            raise TypeError
        kind = np.dtype(dtype)
    except (TypeError, ValueError):
        raise DTypeError(f"Input: dtype of {name!r} is {shown(dtype)}: expected a boolean, an integer or a real dtype") from None
    if kind.kind not in "fiub":
        raise DTypeError(f"Input: dtype of {name!r} is {kind}: expected a boolean, an integer or a real dtype")
    return Symbol(tuple(sizes), kind, name)


def symbolic(*values: Any) -> bool:
    """Whether one of the values is recorded instead of computed. A loop: it stands before calls of microseconds."""
    for value in values:  # noqa: SIM110
        if value.__class__ is Symbol:
            return True
    return False
