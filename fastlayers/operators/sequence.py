"""Operators on lists of arrays and on what may be None. They run in Python, between the native segments of a program: lists have
no place in an arena, and nothing of them is computed.

``SEQUENCES[op](n, *values)`` takes arrays, lists and None (also for what was left out) and returns a tuple of them. Lists are
never changed once they are made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from .._lazy import imported
from ..errors import LimitError
from ._base import View

__all__ = ["MOST_PARTS", "SEQUENCES", "Anything"]

# An array, a list of arrays, or None.
Anything = Any

# Into how many parts an array may be split: one without elements may be of any size.
MOST_PARTS = 1 << 20


def _array(n: View, i: int, value: Anything) -> np.ndarray:
    if not isinstance(value, np.ndarray):
        raise n.wrong_dtype(f"input {i} is {_named(value)}: expected an array")
    return value


def _list(n: View, i: int, value: Anything) -> list[np.ndarray]:
    if not isinstance(value, list):
        raise n.wrong_dtype(f"input {i} is {_named(value)}: expected a sequence")
    return value


def _named(value: Anything) -> str:
    return "an array" if isinstance(value, np.ndarray) else "a sequence" if isinstance(value, list) else "None"


def _integer(n: View, i: int, value: Anything) -> int:
    array = _array(n, i, value)
    if array.size != 1 or array.dtype.kind not in "iu":
        raise n.fail(f"input {i} is of shape {array.shape} and dtype {array.dtype}: expected one integer")
    return int(array.reshape(-1)[0])


def _position(n: View, value: Anything, length: int, behind: int = 0) -> int:
    """A position in a list, counted from its front; `after` is 1 if it may also be its end."""
    at = _integer(n, 1 if len(n.node.inputs) < 3 else 2, value)
    if not -length <= at < length + behind:
        raise n.fail(f"position {at} in a sequence of {length}: expected {-length} to {length + behind - 1}")
    return at + length if at < 0 else at


def _same_dtype(n: View, arrays: Sequence[np.ndarray]) -> None:
    found = {a.dtype for a in arrays}
    if len(found) > 1:
        raise n.wrong_dtype(f"arrays of one sequence have the dtypes {', '.join(sorted(map(str, found)))}: expected the same")


def sequence_construct_run(n: View, *values: Anything) -> tuple[Anything]:
    """A list of its inputs."""
    arrays = [_array(n, i, value) for i, value in enumerate(values)]
    _same_dtype(n, arrays)
    return (arrays,)


def sequence_empty_run(n: View) -> tuple[Anything]:
    """A list of nothing."""
    return ([],)


def sequence_at_run(n: View, sequence: Anything, position: Anything) -> tuple[Anything]:
    """One array of a list."""
    found = _list(n, 0, sequence)
    return (found[_position(n, position, len(found))],)


def sequence_erase_run(n: View, sequence: Anything, position: Anything = None) -> tuple[Anything]:
    """The list without one of its arrays, the last by default."""
    found = _list(n, 0, sequence)
    at = (
        len(found) - 1 if position is None and found else _position(n, np.array(-1) if position is None else position, len(found))
    )
    return (found[:at] + found[at + 1 :],)


def sequence_insert_run(n: View, sequence: Anything, value: Anything, position: Anything = None) -> tuple[Anything]:
    """The list with one more array before a position, at its end by default."""
    found, array = _list(n, 0, sequence), _array(n, 1, value)
    _same_dtype(n, [*found[:1], array])
    at = len(found) if position is None else _position(n, position, len(found), 1)
    return ([*found[:at], array, *found[at:]],)


def sequence_length_run(n: View, sequence: Anything) -> tuple[Anything]:
    """Number of arrays in a list."""
    return (np.array(len(_list(n, 0, sequence)), np.int64),)


def split_to_sequence_run(n: View, x: Anything, split: Anything = None) -> tuple[Anything]:
    """Parts of an array along an axis: single ones, ones of a size, or ones of the sizes given."""
    array = _array(n, 0, x)
    axis = n.get("axis", 0)
    if not -array.ndim <= axis < array.ndim:
        raise n.fail(f"axis is {axis}: expected {-array.ndim} to {array.ndim - 1}")
    size = array.shape[axis]
    if split is None:
        parts, step = size, 1
    else:
        wanted = _array(n, 1, split)
        if wanted.dtype.kind not in "iu" or wanted.ndim > 1:
            raise n.fail(f"split has shape {wanted.shape} and dtype {wanted.dtype}: expected an integer or a vector of them")
        if wanted.ndim:
            sizes = [int(s) for s in wanted]
            if min(sizes, default=0) < 0 or sum(sizes) != size:
                raise n.fail(f"split is {sizes[:8]}: expected sizes whose sum is {size}")
            ends = np.cumsum([0, *sizes]).tolist()
            return ([_along(array, axis, a, b) for a, b in pairwise(ends)],)
        step = int(wanted)
        if step < 1:
            raise n.fail(f"split is {step}: expected a size of at least 1")
        parts = -(-size // step)
    if parts > MOST_PARTS:
        raise LimitError(f"{n.where}: would make {parts} parts: at most {MOST_PARTS} are allowed")
    found = [_along(array, axis, i * step, min((i + 1) * step, size)) for i in range(parts)]
    if split is None and not n.get("keepdims", 1):
        found = [part.reshape(*array.shape[: axis % array.ndim], *array.shape[axis % array.ndim + 1 :]) for part in found]
    return (found,)


def _along(array: np.ndarray, axis: int, start: int, stop: int) -> np.ndarray:
    part: np.ndarray = array[(slice(None),) * (axis % array.ndim) + (slice(start, stop),)]
    return part if part.flags.c_contiguous else part.copy()


def concat_from_sequence_run(n: View, sequence: Anything) -> tuple[Anything]:
    """The arrays of a list one after the other along an axis, a new one or one that they have."""
    found, axis, new = _list(n, 0, sequence), n.get("axis"), n.get("new_axis", 0)
    if not found:
        raise n.fail("the sequence is empty: expected at least one array, which determines the shape")
    rank = found[0].ndim + bool(new)
    if not -rank <= axis < rank:
        raise n.fail(f"axis is {axis}: expected {-rank} to {rank - 1}")
    _same_dtype(n, found)
    shapes = [a.shape for a in found]
    kept = [s if new else (*s[: axis % rank], *s[axis % rank + 1 :]) for s in shapes]
    if any(len(s) != len(shapes[0]) for s in shapes) or any(k != kept[0] for k in kept):
        raise n.fail(f"the arrays have shapes {', '.join(map(str, shapes[:8]))}: they cannot be concatenated along axis {axis}")
    return (np.stack(found, axis) if new else np.concatenate(found, axis),)


def optional_run(n: View, value: Anything = None) -> tuple[Anything]:
    """Its input, or None."""
    return (value,)


def optional_has_element_run(n: View, value: Anything = None) -> tuple[Anything]:
    """Whether there is something."""
    return (np.array(value is not None),)


def optional_get_element_run(n: View, value: Anything) -> tuple[Anything]:
    """Value of an optional."""
    if value is None:
        raise n.fail("the optional value is None: expected one with an element")
    return (value,)


def _of_maps(name: str) -> Callable[..., tuple[Anything, ...]]:
    """An operator on dicts, whose module is imported when it first runs."""

    def run(n: View, *values: Anything) -> tuple[Anything, ...]:
        return getattr(imported(f"{__package__}.ml.maps"), name)(n, *values)  # type: ignore[no-any-return]

    return run


SEQUENCES: dict[str, Callable[..., tuple[Anything, ...]]] = {
    "CastMap": _of_maps("cast_map_run"),
    "ConcatFromSequence": concat_from_sequence_run,
    "DictVectorizer": _of_maps("dict_vectorizer_run"),
    "Optional": optional_run,
    "OptionalGetElement": optional_get_element_run,
    "OptionalHasElement": optional_has_element_run,
    "SequenceAt": sequence_at_run,
    "SequenceConstruct": sequence_construct_run,
    "SequenceEmpty": sequence_empty_run,
    "SequenceErase": sequence_erase_run,
    "SequenceInsert": sequence_insert_run,
    "SequenceLength": sequence_length_run,
    "SplitToSequence": split_to_sequence_run,
    "ZipMap": _of_maps("zip_map_run"),
}
