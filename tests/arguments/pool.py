"""What is put in place of an argument: wrong types, values at the ends of their ranges, arrays of every form."""

from __future__ import annotations

import datetime
import decimal
import fractions
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["EXTREME", "FORMS", "POOL"]


class Torn:
    """Something that cannot be read as anything."""

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise RuntimeError("torn")

    def __index__(self) -> int:
        raise RuntimeError("torn")

    def __float__(self) -> float:
        raise RuntimeError("torn")

    def __bool__(self) -> bool:
        raise RuntimeError("torn")


class Whole:
    """An integer of a type of its own, as tensors of other libraries give one."""

    def __index__(self) -> int:
        return 2


class Sub(np.ndarray):
    """A subclass of arrays."""


def _ones(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.ones(shape, dtype)


def _read_only() -> np.ndarray:
    array = _ones(2, 3)
    array.flags.writeable = False
    return array


# Made again for each call: a call that wrote to its argument would spoil the next one.
POOL: dict[str, Callable[[], Any]] = {
    # no values at all
    "None": lambda: None,
    "str": lambda: "text",
    "empty str": lambda: "",
    "digits": lambda: "3",
    "str with a null": lambda: "a\0b",
    "surrogate": lambda: "\ud800",
    "bytes": lambda: b"bytes",
    "dict": dict,
    "set": lambda: {1, 2},
    "object": object,
    "type": lambda: int,
    "function": lambda: len,
    "iterator": lambda: iter([1, 2]),
    "range": lambda: range(2),
    "ellipsis": lambda: ...,
    "slice": lambda: slice(1, 2),
    "date": lambda: datetime.date(2020, 1, 1),
    "datetime64": lambda: np.datetime64("2020-01-01"),
    "NaT": lambda: np.datetime64("NaT"),
    "torn": Torn,
    # numbers
    "True": lambda: True,
    "False": lambda: False,
    "numpy bool": lambda: np.True_,
    "0": lambda: 0,
    "1": lambda: 1,
    "2": lambda: 2,
    "3": lambda: 3,
    "-1": lambda: -1,
    "7": lambda: 7,
    "2**15": lambda: 2**15,
    "2**24": lambda: 2**24,
    "2**29": lambda: 2**29,
    "2**31 - 1": lambda: 2**31 - 1,
    "2**31": lambda: 2**31,
    "-2**31": lambda: -(2**31),
    "2**32": lambda: 2**32,
    "2**32 + 1": lambda: 2**32 + 1,
    "2**62": lambda: 2**62,
    "2**63 - 1": lambda: 2**63 - 1,
    "2**63": lambda: 2**63,
    "-2**63": lambda: -(2**63),
    "2**70": lambda: 2**70,
    "-2**70": lambda: -(2**70),
    "10**400": lambda: 10**400,
    "10**5000": lambda: 10**5000,
    "NaN": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "-inf": lambda: float("-inf"),
    "0.5": lambda: 0.5,
    "-0.0": lambda: -0.0,
    "1e-300": lambda: 1e-300,
    "1e38": lambda: 1e38,
    "1e300": lambda: 1e300,
    "-1e300": lambda: -1e300,
    "2.0": lambda: 2.0,
    "complex": lambda: 1 + 2j,
    "fraction": lambda: fractions.Fraction(1, 2),
    "decimal": lambda: decimal.Decimal("0.5"),
    "decimal NaN": lambda: decimal.Decimal("sNaN"),
    "index": Whole,
    "numpy int": lambda: np.int64(2),
    "numpy uint8": lambda: np.uint8(2),
    "numpy uint64": lambda: np.uint64(2**64 - 1),
    "numpy float": lambda: np.float64(0.5),
    "numpy NaN": lambda: np.float32("nan"),
    "numpy complex": lambda: np.complex64(1),
    # sequences
    "()": tuple,
    "[]": list,
    "(1,)": lambda: (1,),
    "(1, 2)": lambda: (1, 2),
    "[2, 2]": lambda: [2, 2],
    "(1, 2, 3)": lambda: (1, 2, 3),
    "(1, 2, 3, 4)": lambda: (1, 2, 3, 4),
    "(2,) * 65": lambda: (2,) * 65,
    "(2**31, 2**31)": lambda: (2**31, 2**31),
    "(2**70,)": lambda: (2**70,),
    "(-2**63, 2**63 - 1)": lambda: (-(2**63), 2**63 - 1),
    "(None, None)": lambda: (None, None),
    "(NaN, 1)": lambda: (float("nan"), 1),
    "('a', 'b')": lambda: ("a", "b"),
    "(True, False)": lambda: (True, False),
    "[[0]]": lambda: [[0]],
    "pairs": lambda: [(1, 1), (0, 1)],
    "ragged": lambda: [[1.0], [1.0, 2.0]],
    "pair of arrays": lambda: (_ones(2, 3), _ones(2, 3)),
    "('relu', {})": lambda: ("relu", {}),
    "('leaky_relu', NaN)": lambda: ("leaky_relu", {"negative_slope": float("nan")}),
    "('elu', 'a')": lambda: ("elu", {"alpha": "a"}),
    "('elu', 3)": lambda: ("elu", {3: 1.0}),
    # arrays: ranks
    "rank 0": lambda: _ones(),
    "rank 1": lambda: _ones(3),
    "rank 1, one": lambda: _ones(1),
    "rank 2": lambda: _ones(2, 3),
    "rank 3": lambda: _ones(2, 3, 4),
    "rank 4": lambda: _ones(2, 3, 4, 5),
    "rank 5": lambda: _ones(1, 2, 3, 2, 2),
    "rank 8": lambda: _ones(1, 2, 1, 2, 1, 2, 1, 2),
    "rank 33": lambda: _ones(*(1,) * 32),
    "empty": lambda: _ones(0),
    "size 0": lambda: _ones(2, 0, 3),
    "size 0, long": lambda: _ones(0, 2**20),
    "long": lambda: np.broadcast_to(np.float32(1), (2**16, 3)),
    # arrays: kinds
    "array of bool": lambda: _ones(2, 3, dtype=bool),
    "array of int8": lambda: _ones(2, 3, dtype=np.int8),
    "array of int": lambda: _ones(3, dtype=np.int64),
    "0-d int": lambda: np.array(2),
    "0-d bool": lambda: np.array(True),
    "0-d NaN": lambda: np.array(np.nan),
    "array of huge int": lambda: np.full(2, 2**62),
    "array of negative int": lambda: np.full(2, -5),
    "array of uint64": lambda: np.full(2, 2**64 - 1, np.uint64),
    "array of float16": lambda: _ones(2, 3, dtype=np.float16),
    "array of float64": lambda: np.full((2, 3), 1e300),
    "array of long double": lambda: _ones(2, 3, dtype=np.longdouble),
    "array of NaN": lambda: np.full((2, 3), np.nan, np.float32),
    "array of inf": lambda: np.full((2, 3), np.inf, np.float32),
    "array of complex": lambda: _ones(2, 3, dtype=np.complex64),
    "array of str": lambda: np.array(["a", "b"]),
    "array of object": lambda: np.array([1.0, None], object),
    "array of floats as objects": lambda: np.array([1.0, 2.0], object),
    "array of datetime64": lambda: np.array(["2020-01-01"], "datetime64[D]"),
    "structured array": lambda: np.zeros(2, [("a", np.float32), ("b", np.int32)]),
    "void array": lambda: np.zeros(2, "V8"),
    "masked array": lambda: np.ma.masked_array([[1.0, 2.0]], [[True, False]]),
    "matrix": lambda: _ones(2, 3).view(Sub),
    "read-only": _read_only,
    "strided": lambda: _ones(4, 6)[::2, ::-2],
    "Fortran order": lambda: np.asfortranarray(_ones(2, 3)),
    "other byte order": lambda: _ones(2, 3).astype(">f4"),
}


# Numbers whose results depend on where roundings and overflows happen: variants may differ.
EXTREME = frozenset({
    "inf", "-inf", "1e-300", "1e38", "1e300", "-1e300", "2**15", "2**24", "2**29", "2**31 - 1", "2**31", "-2**31", "2**32",
    "2**32 + 1", "2**62", "2**63 - 1", "2**63", "-2**63", "2**70", "-2**70", "10**400", "numpy uint64", "array of float64",
    "array of inf", "array of huge int", "array of uint64", "array of NaN", "numpy NaN", "0-d NaN", "NaN",
    "('leaky_relu', NaN)",
})  # fmt: skip


def _spread(array: np.ndarray) -> np.ndarray:
    room = np.zeros((*array.shape[:-1], 2 * array.shape[-1]) if array.ndim else (2,), array.dtype)
    part: np.ndarray = room[..., ::2] if array.ndim else room[0]
    if not array.ndim:
        return np.array(array)
    part[...] = array
    return part


def _frozen(array: np.ndarray) -> np.ndarray:
    made = array.copy()
    made.flags.writeable = False
    return made


# The same argument in another form: where it is taken, the result has the same bits. The first of each: for what it is.
FORMS: dict[str, tuple[type, Callable[[Any], Any]]] = {
    "numpy's int": (int, np.int64),
    "an array without axes": (int, np.array),
    "a list": (tuple, list),
    "a tuple": (list, tuple),
    "numpy ints": (tuple, lambda v: tuple(np.int32(d) if type(d) is int else d for d in v)),
    "numpy's float": (float, np.float64),
    "numpy's bool": (bool, np.bool_),
    "a str of its own": (str, lambda v: type("Str", (str,), {})(v)),
    "itself, strided": (np.ndarray, _spread),
    "itself, read-only": (np.ndarray, _frozen),
    "itself, Fortran order": (np.ndarray, lambda v: np.asarray(v, order="F")),
    "a subclass": (np.ndarray, lambda v: v.view(Sub)),
    "lists": (np.ndarray, lambda v: v.tolist() if v.size else v),
    "float64": (np.ndarray, lambda v: v.astype(np.float64) if v.dtype == np.float32 else v),
    "itself, other byte order": (np.ndarray, lambda v: v.astype(v.dtype.newbyteorder())),
}
