"""Trees: ensembles of decision trees, to which all of ai.onnx.ml's forms come down."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...kernels.reference import trees as reference
from ...kernels.tree_layout import AVERAGE, DEEPEST, MAX, MEMBER, MIN, SUM, trees_of
from ...kernels.tree_layout import Trees as Layout
from .._base import FLOAT32, Spec, View, register
from .._traits import PLAIN
from ..calls import number
from ..shapes import need_kind

__all__ = ["AVERAGE", "DEEPEST", "INPUTS", "MAX", "MEMBER", "MIN", "SUM", "trees_of"]

FLOAT64 = np.dtype(np.float64)
# After x. All but the last two must be there.
INPUTS = ("roots", "feature", "split", "modes", "yes", "no", "missing", "starts", "targets", "weight", "members", "base")
FIRST_OPTIONAL = 11
# How many columns trees that have been checked need, by the identities of their arrays, which are the file's constants.
_checked: dict[tuple[int, ...], tuple[tuple[weakref.ref[np.ndarray] | None, ...], int]] = {}


def _arguments(n: View, dtype: np.dtype[Any], arrays: Sequence[np.ndarray | None]) -> tuple[Any, ...]:
    """The arguments of `tree_ensemble_pack`, of the inputs after x; splits and weights in the dtype of what is computed."""
    given: dict[str, Any] = dict(zip(INPUTS, (*arrays, None, None), strict=False))
    members = given["members"]
    return (
        given["roots"], given["feature"], given["split"].astype(dtype), given["modes"], given["yes"], given["no"],
        given["missing"], None if members is None else members.astype(dtype), given["starts"], given["targets"],
        given["weight"].astype(dtype), n.get("n_targets"),
    )  # fmt: skip


def _known(n: View) -> list[np.ndarray | None] | None:
    """The inputs after x, if all of them are known beforehand."""
    values = [n.value(i) for i in range(1, len(n.inputs))]
    return None if any(v is None and n.has(i) for i, v in enumerate(values, start=1)) else values


def _computed(n: View) -> np.dtype[Any]:
    """Sums of doubles in any case; x and splits are compared as doubles where either is of them."""
    return FLOAT64 if FLOAT64 in (n.spec(0).dtype, n.spec(3).dtype) else FLOAT32


def _columns(n: View, dtype: np.dtype[Any], arrays: Sequence[np.ndarray | None]) -> int:
    """Number of columns that trees need. They are checked once, since arrays that cannot be written to do not change."""
    key = (*map(id, arrays), dtype.num, n.get("n_targets"))
    known = _checked.get(key)
    if known is not None and all(a is (r and r()) for a, r in zip(arrays, known[0], strict=True)):
        return known[1]
    features = _trees(n, dtype, arrays).features
    if not any(a is not None and a.flags.writeable for a in arrays):
        refs = tuple(None if a is None else weakref.ref(a, lambda _: _checked.pop(key, None)) for a in arrays)
        _checked[key] = refs, features
    return features


def _trees(n: View, dtype: np.dtype[Any], arrays: Sequence[np.ndarray | None]) -> Layout:
    with _named(n):
        return trees_of(*_arguments(n, dtype, arrays))


@contextmanager
def _named(n: View) -> Iterator[None]:
    """Raises the layout's errors again under the name of the node."""
    try:
        yield
    except ShapeError as error:
        raise n.fail(str(error)) from error


def _infer(n: View) -> list[Spec]:
    """x (n, columns), or (columns,) for one row: (n, n_targets)."""
    need_kind(n, "fiu", 0)
    need_kind(n, "f", 3, 10, 11, 12)
    need_kind(n, "iu", 1, 2, 4, 5, 6, 7, 8, 9)
    for i in range(FIRST_OPTIONAL):
        n.spec(i)
    targets, shape, known = n.get("n_targets"), n.shape(0), _known(n)
    if n.get("aggregate_function") not in range(4):
        raise n.fail(f"aggregate_function is {n.get('aggregate_function')}: expected 0 to 3")
    if not isinstance(targets, int) or targets < 0:
        raise n.fail(f"n_targets is {targets!r}: expected a number of at least 0")
    if n.has(12) and (n.shape(12) or (targets,)) not in ((targets,), (None,)) and isinstance((n.shape(12) or (0,))[0], int):
        raise n.fail(f"the base values have shape {n.shape(12)}: expected {(targets,)}")
    if shape is not None and len(shape) not in (1, 2):
        raise n.fail(f"x has shape {shape}: expected (n, columns)")
    if known is not None:
        columns = _columns(n, _computed(n), known)
        if shape is not None and isinstance(shape[-1], int) and shape[-1] < columns:
            raise n.fail(f"x has shape {shape}: expected (n, columns), at least {columns} columns")
    dtype = n.spec(0).dtype if n.get("same_dtype", 0) else FLOAT32
    return [Spec((None if shape is None else shape[0] if len(shape) == 2 else 1, targets), dtype)]


def _run(n: View, x: np.ndarray, *arrays: np.ndarray | None) -> tuple[np.ndarray]:
    dtype = _computed(n)
    trees = _trees(n, dtype, arrays)
    rows = x.astype(dtype).reshape(1 if x.ndim == 1 else len(x), x.shape[-1])
    out = np.empty((len(rows), trees.targets), dtype)
    base = arrays[11] if len(arrays) > 11 else None
    with _named(n):
        reference.tree_ensemble(rows, trees, None if base is None else base.astype(FLOAT64), out, n.get("aggregate_function"))
    return (out.astype(n.spec(0).dtype if n.get("same_dtype", 0) else FLOAT32),)


def _lower(n: View, b: Any) -> Any:
    dtype, shape, known = _computed(n), n.sizes(0), _known(n)
    given, wanted = number("KINDS", n.spec(0).dtype.name), number("KINDS", dtype.name)
    result = n.spec(0).dtype if n.get("same_dtype", 0) else FLOAT32
    if given is None or known is None:
        return False
    base = n.value(12)
    packed = b.pack("tree_ensemble_pack", lambda: _arguments(n, dtype, known), key=dtype.name)
    x = b.input(0).view((1 if len(shape) == 1 else shape[0], shape[-1]))
    if n.spec(0).dtype != dtype:
        wide = b.temp(x.shape, dtype)
        b.call("cast", x, wide, given, wanted)
        x = wide
    out = b.output(0)
    made = out if result == dtype else b.temp(out.shape, dtype)
    added = None if base is None else b.constant(base.astype(FLOAT64))
    b.call("tree_ensemble", x, packed, added, made, n.get("aggregate_function"))
    if made is not out:
        b.call("cast", made, out, wanted, number("KINDS", result.name))
    return True


register("Trees", _infer, _run, _lower, PLAIN)
