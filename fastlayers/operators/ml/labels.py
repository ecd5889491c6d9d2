"""Labels and categories: LabelEncoder, OneHotEncoder. Of numbers or strings."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._distinct import distinct
from ...kernels.grams import table_of
from .._base import FLOAT32, INT64, Spec, View, register
from .._traits import EACH, PLAIN
from ..calls import indexable, indices
from ..shapes import like, need_kind

__all__ = ["label_table", "placed"]

Arrays = tuple[np.ndarray, ...]
STRING = np.dtype(object)
MOST_ROWS = 64  # categories whose rows are copied from a table
_LISTS = (("tensor", None), ("int64s", INT64), ("floats", FLOAT32), ("strings", STRING))


def placed(n: View, b: Any, keys: np.ndarray) -> Any:
    """The positions of input 0, which is `indexable`, among ascending integers; their number where it is none of them."""
    x = indices(n, b, 0)
    out, (table, offset) = b.temp(x.shape, INT64), table_of(keys)
    b.call("places", x, b.constant(keys), b.constant(table), out, offset)
    return out


def _picked(b: Any, values: np.ndarray, at: Any, out: Any) -> None:
    """out[i] = values[at[i]]."""
    table, size, inner = b.constant(values), at.size, math.prod(values.shape[1:])
    b.call("gather", table.view((1, len(values), inner)), at.view((size,)), out.view((1, size, inner)), values.itemsize)


# ---- LabelEncoder ----------------------------------------------------------------------------------------------------


def _side(n: View, what: str) -> np.ndarray | None:
    """Keys or values, of whichever list or tensor has them."""
    found = [(n.get(f"{what}_{kind}"), dtype) for kind, dtype in _LISTS if n.get(f"{what}_{kind}") is not None]
    if len(found) > 1:
        raise n.fail(f"it has more than one list of {what}: expected one")
    return np.asarray(found[0][0], found[0][1]).reshape(-1) if found else None


def label_table(n: View) -> tuple[np.ndarray, np.ndarray, Any]:
    """Keys, values and what stands for all other keys."""
    keys, values = _side(n, "keys"), _side(n, "values")
    if keys is None or values is None or len(keys) != len(values) or keys.dtype.kind not in "fiubO":
        raise n.fail("it has not as many keys as values: expected one value a key")
    other = n.get("default_tensor")
    if other is not None and other.size == 1:
        if (other.dtype.kind == "O") != (values.dtype.kind == "O"):
            raise n.wrong_dtype(f"default_tensor has dtype {other.dtype}, the values {values.dtype}: expected the same")
        return keys, values, other.reshape(-1)[0]
    if values.dtype.kind == "O":
        return keys, values, n.get("default_string", "_Unused")
    return keys, values, n.get("default_int64", -1) if values.dtype.kind in "iu" else n.get("default_float", -0.0)


def _label_infer(n: View) -> list[Spec]:
    """The value of each key."""
    keys, values, _ = label_table(n)
    need_kind(n, {"f": "f", "O": "O"}.get(keys.dtype.kind, "iub"), 0)
    return [like(n.spec(0), values.dtype)]


def _label_run(n: View, x: np.ndarray) -> Arrays:
    keys, values, other = label_table(n)
    if keys.dtype.kind == "O":
        # Of keys that are there twice the last one counts.
        table = dict(zip(keys.tolist(), values.tolist(), strict=True))
        out = np.empty(x.size, values.dtype)
        out[:] = [table.get(key, other) for key in x.reshape(-1)]
        return (out.reshape(x.shape),)
    ordered, first = distinct(keys[::-1])
    chosen = values[::-1][first]
    if not len(ordered):
        return (np.full(x.shape, other, values.dtype),)
    at = np.minimum(np.searchsorted(ordered, x), len(ordered) - 1)
    same = (ordered[at] == x) | ((ordered[at] != ordered[at]) & (x != x))
    return (np.where(same, chosen[at], np.asarray(other, values.dtype)),)


def _label_lower(n: View, b: Any) -> Any:
    keys, values, other = label_table(n)
    if keys.dtype.kind not in "iu" or values.dtype.kind not in "fiu" or not indexable(n, 0):
        return False
    ordered, first = distinct(keys.astype(np.int64)[::-1])
    _picked(b, np.append(values[::-1][first], np.asarray(other, values.dtype)), placed(n, b, ordered), b.output(0))
    return True


register("LabelEncoder", _label_infer, _label_run, _label_lower, EACH)

# ---- OneHotEncoder ---------------------------------------------------------------------------------------------------


def _categories(n: View) -> np.ndarray:
    integers, strings = n.get("cats_int64s"), n.get("cats_strings")
    if (integers is None) == (strings is None):
        raise n.fail("it has two lists of categories, or none: expected cats_int64s or cats_strings")
    return np.asarray(integers, np.int64) if strings is None else np.asarray(strings, object)


def _one_hot_infer(n: View) -> list[Spec]:
    """x with one more axis, of the categories: 1 at the one that x is. Floats are cut off to integers."""
    categories = _categories(n)
    need_kind(n, "O" if categories.dtype.kind == "O" else "fiu", 0)
    shape = n.shape(0)
    return [Spec(None if shape is None else (*shape, len(categories)), FLOAT32)]


def _one_hot_run(n: View, x: np.ndarray) -> Arrays:
    categories = _categories(n)
    if categories.dtype.kind == "O":
        places = {category: i for i, category in enumerate(categories.tolist())}
        at = np.asarray([places.get(item, -1) for item in x.reshape(-1)], np.int64)
    else:
        order = np.argsort(categories, kind="stable")
        flat = np.trunc(x).astype(np.int64).reshape(-1) if x.dtype.kind == "f" else x.astype(np.int64).reshape(-1)
        place = np.searchsorted(categories[order], flat, side="right") - 1  # of equal categories the last one counts
        at = np.where(place >= 0, order[place], -1) if len(order) else np.full(len(flat), -1)
        at = np.where((at >= 0) & (categories[at] == flat), at, -1) if len(order) else at
        if x.dtype.kind == "f":
            at = np.where(np.isfinite(x).reshape(-1), at, -1)
    if not n.get("zeros", 1) and (at < 0).any():
        raise n.fail(f"{x.reshape(-1)[np.argmin(at)]!r:.80} is none of its {len(categories)} categories (zeros=0)")
    out = np.zeros((x.size, len(categories)), np.float32)
    rows = np.flatnonzero(at >= 0)
    out[rows, at[rows]] = 1
    return (out.reshape(*x.shape, len(categories)),)


def _one_hot_lower(n: View, b: Any) -> Any:
    categories = _categories(n)
    if categories.dtype.kind == "O" or not n.get("zeros", 1) or not indexable(n, 0):
        return False
    ordered, first = distinct(categories[::-1])
    count, out = len(categories), b.output(0)
    at, size = placed(n, b, ordered), math.prod(n.sizes(0))
    if count < MOST_ROWS:
        rows = np.zeros((len(ordered) + 1, count), np.float32)
        rows[np.arange(len(ordered)), count - 1 - first] = 1
        _picked(b, rows, at, out)
        return True
    number = b.temp(at.shape, INT64)
    _picked(b, np.append(count - 1 - first, count), at, number)
    values = b.constant(np.asarray([0, 1], np.float32))
    return b.call("one_hot", number.view((size, 1)), values, out.view((size, count, 1)), 4)


register("OneHotEncoder", _one_hot_infer, _one_hot_run, _one_hot_lower, PLAIN)

# ---- CategoryMapper --------------------------------------------------------------------------------------------------


def _mapper_infer(n: View) -> list[Spec]:
    """The integer of each string, or the string of each integer."""
    need_kind(n, "Oiu", 0)
    if len(n.get("cats_strings", ())) != len(n.get("cats_int64s", ())):
        raise n.fail("it has not as many strings as integers: expected one for each")
    return [like(n.spec(0), INT64 if n.spec(0).dtype.kind == "O" else STRING)]


def _mapper_run(n: View, x: np.ndarray) -> Arrays:
    strings, integers = n.get("cats_strings", ()), n.get("cats_int64s", ())
    keys, values, other = (
        (strings, integers, n.get("default_int64", -1))
        if x.dtype.kind == "O"
        else (integers, strings, n.get("default_string", "_Unused"))
    )
    table = dict(zip(keys, values, strict=True))
    out = np.empty(x.size, np.int64 if x.dtype.kind == "O" else object)
    out[:] = [table.get(key, other) for key in x.reshape(-1).tolist()]
    return (out.reshape(x.shape),)


register("CategoryMapper", _mapper_infer, _mapper_run, traits=EACH)
