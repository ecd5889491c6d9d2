"""`AttentionScores` and `AttentionValues`: the two products of attention, with whatever a graph does in between (FlexAttention).

One head of keys and values serves as many neighbouring heads of queries as there are for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...kernels.table import BINARY
from .._base import Spec, View, register
from .._traits import Traits, elements
from ..calls import float32_constant
from ..fused import IDENTITY
from ..shapes import dtype_of, need_kind

if TYPE_CHECKING:
    from ..builder import Builder

__all__: list[str] = []


def _precision(n: View) -> np.dtype[Any]:
    """The dtype of softmax: float32 at least."""
    number = n.get("softmax_precision")
    return np.promote_types(n.spec(0).dtype, np.float32) if number is None else dtype_of(n, number)


def _four(n: View) -> list[Any] | None:
    """The two shapes, or None if one is unknown."""
    need_kind(n, "f", 0, 1)
    shapes = [n.shape(0), n.shape(1)]
    if None in shapes:
        return None
    a, b = shapes
    for i in (0, 1):
        if len(shapes[i]) != 4:  # type: ignore[arg-type]
            raise n.fail(f"input {i} has shape {shapes[i]}: expected (b, h, t, d)")
    inner = (a[3], b[3]) if n.op == "AttentionScores" else (a[3], b[2])  # type: ignore[index]
    for x, y in ((a[0], b[0]), inner):  # type: ignore[index]
        if isinstance(x, int) and isinstance(y, int) and x != y:
            raise n.fail(f"shapes {a} and {b} do not fit")
    h, g = a[1], b[1]  # type: ignore[index]
    if isinstance(h, int) and isinstance(g, int) and (h % g if g else h):
        raise n.fail(f"{h} heads of queries, {g} of keys: expected a multiple")
    return shapes


def _scores_infer(n: View) -> list[Spec]:
    shapes = _four(n)
    return [Spec(None if shapes is None else (*shapes[0][:3], shapes[1][2]), _precision(n))]


def _values_infer(n: View) -> list[Spec]:
    shapes = _four(n)
    return [Spec(None if shapes is None else (*shapes[0][:3], shapes[1][3]), n.spec(1).dtype)]


def _repeated(x: np.ndarray, heads: int) -> np.ndarray:
    return x if x.shape[1] == heads else np.repeat(x, heads // max(x.shape[1], 1), 1)


def _scale(n: View, width: int) -> float:
    scale = n.get("scale")
    return max(width, 1) ** -0.5 if scale is None else float(scale)


def _scores_run(n: View, q: np.ndarray, k: np.ndarray) -> Sequence[np.ndarray]:
    """scale q kᵀ."""
    products = q.astype(np.float64) @ _repeated(k, q.shape[1]).astype(np.float64).swapaxes(2, 3)
    return ((products * _scale(n, q.shape[3])).astype(_precision(n)),)


def _values_run(n: View, weights: np.ndarray, v: np.ndarray) -> Sequence[np.ndarray]:
    """weights v."""
    return ((weights.astype(np.float64) @ _repeated(v, weights.shape[1])).astype(v.dtype),)


def _scores_lower(n: View, b: Builder) -> Any:
    if not n.float32() or _precision(n) != np.float32:
        return False
    q, k, out = b.input(0), b.input(1), b.output(0)
    (batch, h, rows, d), (_, g, keys, _) = q.shape, k.shape
    folded = (batch * g, h // max(g, 1) * rows)
    b.call("matmul", q.view((*folded, d)), k.view((batch * g, keys, d)), out.view((*folded, keys)), True, IDENTITY)
    b.call("binary", out, float32_constant(b, _scale(n, d)), out, BINARY["multiply"], IDENTITY)
    return True


def _values_lower(n: View, b: Builder) -> Any:
    if not n.float32():
        return False
    weights, v, out = b.input(0), b.input(1), b.output(0)
    (batch, h, rows, keys), (_, g, _, e) = weights.shape, v.shape
    folded = (batch * g, h // max(g, 1) * rows)
    b.call("matmul", weights.view((*folded, keys)), v.view((batch * g, keys, e)), out.view((*folded, e)), False, IDENTITY)
    return True


def _scores_cost(n: View, out: Spec) -> int:
    """Each score is a product of two rows."""
    return elements(out) * n.sizes(0)[-1]


def _values_cost(n: View, out: Spec) -> int:
    """Each weight multiplies a row of values."""
    return elements(n.spec(0)) * n.sizes(1)[-1]


register("AttentionScores", _scores_infer, _scores_run, _scores_lower, Traits(whole="attends to", multiply_adds=_scores_cost))
register("AttentionValues", _values_infer, _values_run, _values_lower, Traits(whole="attends to", multiply_adds=_values_cost))
