"""Operators on dicts, which are inputs and outputs of a model alone: DictVectorizer and CastMap read them, ZipMap makes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base import View
from .text import strings

__all__ = ["cast_map_run", "dict_vectorizer_run", "map_keys", "zip_map_run"]

MOST = 1 << 24  # columns of a map that is spread out


def _dict(n: View, value: Any) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise n.wrong_dtype(f"its input is of type {type(value).__name__}: expected a dict")
    return value


def _row(n: View, values: list[Any], zero: Any) -> np.ndarray:
    """A row of numbers or strings."""
    filled = [zero if value is None else value for value in values]
    if any(isinstance(value, str) for value in filled):
        if not all(isinstance(value, str) or value == 0 for value in filled):
            raise n.wrong_dtype("its dict has numbers and strings: expected one of both")
        return strings([value if isinstance(value, str) else "" for value in filled], (1, len(filled)))
    row = np.asarray(filled)
    if row.dtype.kind not in "fiub" or row.ndim != 1:
        raise n.wrong_dtype(f"its dict has values of dtype {row.dtype}: expected numbers or strings")
    return row.reshape(1, -1)


def dict_vectorizer_run(n: View, value: Any) -> tuple[np.ndarray]:
    """The values of the keys of a vocabulary, in its order, 0 for those that are not there: (1, keys)."""
    found = _dict(n, value)
    keys = n.get("string_vocabulary") if n.get("string_vocabulary") is not None else n.get("int64_vocabulary")
    if keys is None:
        raise n.fail("it has no vocabulary: expected string_vocabulary or int64_vocabulary")
    row = _row(n, [found.get(key) for key in keys], 0)
    floats = row.dtype.kind == "f" or not found
    return (row if row.dtype.kind == "O" else row.astype(np.float32 if floats else np.int64),)


def cast_map_run(n: View, value: Any) -> tuple[np.ndarray]:
    """A dict's values by ascending keys (DENSE), or each at the column that its key is (SPARSE); floats, integers or strings."""
    found, form, to = _dict(n, value), n.get("map_form", "DENSE"), n.get("cast_to", "TO_FLOAT")
    if not all(isinstance(key, (int, np.integer)) for key in found):
        raise n.wrong_dtype("its dict has keys that are no integers: expected integers")
    if form == "SPARSE":
        size = n.get("max_map", 1)
        if not 0 < size <= MOST or any(not 0 <= key < size for key in found):
            raise n.fail(f"max_map is {size}: expected more than each of the dict's keys, and at most {MOST}")
        values = [found.get(i) for i in range(size)]
    else:
        values = [found[key] for key in sorted(found)]
    missing = [value is None for value in values]
    try:
        if to == "TO_STRING":
            return (strings(["0" if m else str(v) for v, m in zip(values, missing, strict=True)], (1, len(values))),)
        number: Any = float if to == "TO_FLOAT" else lambda v: int(float(v)) if isinstance(v, str) else int(v)
        made = [number(0) if m else number(v) for v, m in zip(values, missing, strict=True)]
    except (ValueError, OverflowError) as error:
        raise n.fail(f"a value of its dict is no number ({error})") from error
    return (np.asarray(made, np.float32 if to == "TO_FLOAT" else np.int64).reshape(1, -1),)


def map_keys(n: View) -> tuple[Any, ...]:
    """The labels of a ZipMap."""
    keys = n.get("classlabels_strings")
    return tuple(keys if keys is not None else n.get("classlabels_int64s") or ())


def zip_map_run(n: View, value: Any) -> tuple[list[dict[Any, Any]]]:
    """One dict a row: the number of each class by its label."""
    if not isinstance(value, np.ndarray) or value.ndim not in (1, 2):
        raise n.fail("its input is no matrix: expected (n, classes)")
    keys = map_keys(n)
    rows = value if value.ndim == 2 else value[None]
    if len(keys) != rows.shape[1]:
        raise n.fail(f"it has {len(keys)} labels for {rows.shape[1]} columns: expected one per column")
    return ([dict(zip(keys, row, strict=True)) for row in rows.tolist()],)
