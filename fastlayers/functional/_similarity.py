"""Similarities of vectors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ShapeError
from ..graph.arrays import as_float32, empty
from ..graph.ops import op
from ..graph.record import ints, record, scalar
from ..ir.checks import axis
from ..ir.graph import Shape
from ..kernels import dispatch
from ..kernels.table import REDUCE
from ._activation_names import above_zero
from ._arithmetic import broadcast, clip, divide, multiply

if TYPE_CHECKING:
    from ._types import Tensor

__all__ = ["cosine_similarity"]

_NAME = "cosine_similarity"


def least_norm(eps: Any) -> float:
    """`eps`, a number above 0."""
    return above_zero(_NAME, "eps", eps)


def _rule(x1: Shape, x2: Shape, dim: Any, eps: Any) -> Shape:
    least_norm(eps)
    shape = broadcast(_NAME, x1, x2)
    if not shape:
        raise ShapeError(f"{_NAME}: x1 and x2 have no axes: expected vectors along dim={dim!r}")
    at = axis(_NAME, dim, len(shape))
    return (*shape[:at], *shape[at + 1 :])


def _record(x1: Any, x2: Any, dim: Any, eps: Any) -> Any:
    product = record("Mul", x1, x2)
    at, least = ints(axis(_NAME, dim, product.ndim)), scalar(least_norm(eps))
    norms = []
    alike = x1.shape == x2.shape and None not in x1.shape  # two unknown sizes need not be one
    for x in (x1, x2):
        whole = x if alike else record("Expand", x, record("Shape", product))
        norms.append(record("Clip", record("ReduceL2", whole, at, keepdims=0), least, None))
    return record("Div", record("ReduceSum", product, at, keepdims=0), record("Mul", *norms))


@op(_NAME, "x1 x2", _rule, _record)
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> np.ndarray:
    """Cosines of the angles between vectors: ``sum(x1 * x2) / (max(norm(x1), eps) * max(norm(x2), eps))`` along `dim`.

    Args:
        x1: any shape that broadcasts with that of x2; any real dtype.
        x2: the other vectors.
        dim: the axis of the common shape along which vectors are.
        eps: the least norm that is divided by, above 0.

    Returns:
        float32, the common shape without `dim`.

    Raises:
        ShapeError: the shapes do not broadcast, there is no such axis, or `eps` is not above 0.
        DTypeError: an argument is complex or not numeric.

    >>> import fastlayers as fl
    >>> fl.functional.cosine_similarity([[3.0, 4.0]], [[4.0, 3.0]])
    array([0.96], dtype=float32)
    """
    a, b = as_float32(x1, _NAME, "x1"), as_float32(x2, _NAME, "x2")
    shape: Any = _rule(a.shape, b.shape, dim, eps)
    product = multiply(a, b)
    at, least = axis(_NAME, dim, product.ndim), least_norm(eps)
    cut = math.prod(product.shape[:at]), product.shape[at], math.prod(product.shape[at + 1 :])

    def along(x: np.ndarray, what: str) -> np.ndarray:
        whole = x if x.shape == product.shape else np.ascontiguousarray(np.broadcast_to(x, product.shape))
        out = empty(shape)
        dispatch.kernel("reduce")(whole.reshape(cut), out.reshape(cut[0], cut[2]), REDUCE[what])
        return out

    norms = multiply(clip(along(a, "l2"), least), clip(along(b, "l2"), least))
    return divide(along(product, "sum"), norms)
