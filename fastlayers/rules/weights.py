"""Rules of weights that belong to features: of products, tables, normalizations and recurrent layers."""

from __future__ import annotations

from ..errors import ShapeError
from ..ir.checks import differ, same_shape
from ..ir.graph import Dim, Shape

__all__ = [
    "features_rule", "gates_rule", "groups_rule", "linear_rule", "normalized_rule", "slopes_rule", "state_rule", "table_rule",
    "tree_rule", "valid_rule", "vector_rule",
]  # fmt: skip


def linear_rule(op: str, x: Shape, weight: Shape, bias: Shape | None) -> Shape:
    """The shape of x with its last axis multiplied by weights (out, in)."""
    if len(weight) != 2:
        raise ShapeError(f"{op}: weight has shape {weight}: expected (out, in)")
    if not x or differ(x[-1], weight[1]):
        raise ShapeError(f"{op}: x has shape {x}, weight {weight}: expected x of shape (..., {weight[1]}) for weight (out, in)")
    if bias is not None:
        same_shape(op, "bias", bias, (weight[0],), f"one value a row of weight {weight}")
    return (*x[:-1], weight[0])


def tree_rule(op: str, x: Shape | None, weight: Shape, bias: Shape | None, nodes: Dim) -> None:
    """Raises unless the nodes of a tree have a row of weights each, and a bias, for the last axis of x."""
    if len(weight) != 2 or differ(weight[0], nodes):
        raise ShapeError(f"{op}: weight has shape {weight}: expected ({nodes}, in), a row for each node of the tree")
    if x is not None and (not x or differ(x[-1], weight[1])):
        raise ShapeError(f"{op}: x has shape {x}, weight {weight}: expected x of shape (..., {weight[1]})")
    if bias is not None:
        same_shape(op, "bias", bias, (nodes,), "a value for each node of the tree")


def table_rule(op: str, weight: Shape) -> None:
    """Raises unless a table has rows of values."""
    if len(weight) != 2:
        raise ShapeError(f"{op}: weight has shape {weight}: expected (num_embeddings, embedding_dim)")


def vector_rule(op: str, argument: str, shape: Shape | None, count: Dim, of: str = "channel") -> None:
    """Raises unless a vector has one value per channel, or per group."""
    if shape is not None and shape != (count,):
        same_shape(op, argument, shape, (count,), f"one value per {of}")


def slopes_rule(op: str, x: Shape, slopes: Dim, channels: Dim) -> None:
    """Raises unless there is one slope, or one for each channel of x."""
    if slopes != 1 and differ(slopes, channels):
        raise ShapeError(f"{op}: weight has {slopes} slopes, x {x} has {channels} channels: expected (1,) or ({channels},)")


def normalized_rule(op: str, x: Shape, sizes: Shape, weight: Shape | None = None, bias: Shape | None = None) -> None:
    """Raises unless x ends in the sizes that are normalized together, and weight and bias, if they are given, have these."""
    if len(x) < len(sizes) or any(map(differ, x[len(x) - len(sizes) :], sizes)):
        raise ShapeError(f"{op}: x has shape {x}: expected (..., {', '.join(map(str, sizes))}), ending in normalized_shape")
    if weight is not None:
        same_shape(op, "weight", weight, sizes, "normalized_shape")
    if bias is not None:
        same_shape(op, "bias", bias, sizes, "normalized_shape")


def groups_rule(op: str, x: Shape, channels: Dim, groups: int) -> None:
    """Raises unless channels can be cut into groups of as many."""
    if groups < 1 or (isinstance(channels, int) and channels % groups):
        raise ShapeError(f"{op}: num_groups is {groups}, x {x} has {channels} channels: expected a divisor of them")


def gates_rule(op: str, gates: int, inputs: Dim, w_ih: Shape, w_hh: Shape, w_hr: Shape | None = None) -> tuple[Dim, Dim, Dim]:
    """The sizes of h and c, and the rows of the weights, of a recurrent layer with so many gates and inputs in one direction.

    Weights are (gates h, i) and (gates h, q), those of a projection (q, h); without one q is h.
    """
    outs = w_hh[1]
    hidden = outs if w_hr is None else w_hr[1]
    rows = f"{gates} h" if gates > 1 else "h"
    if w_hr is not None:
        same_shape(op, "weight_hr", w_hr, (outs, hidden), f"(q, h) for weight_hh ({rows}, q)")
    count = gates * hidden if isinstance(hidden, int) else w_hh[0]
    same_shape(op, "weight_hh", w_hh, (count, outs), f"({rows}, {'h' if w_hr is None else 'q'})")
    same_shape(op, "weight_ih", w_ih, (count, w_ih[1]), f"({rows}, i), with {rows} as in weight_hh")
    features_rule(op, inputs, w_ih)
    return outs, hidden, count


def features_rule(op: str, inputs: Dim, w_ih: Shape) -> None:
    """Raises unless x has as many features as the weights of a recurrent layer, (gates h, i), take."""
    if differ(inputs, w_ih[1]):
        raise ShapeError(f"{op}: x has {inputs} features, weight_ih {w_ih} takes {w_ih[1]}: expected equal values")


def state_rule(op: str, argument: str, state: Shape | None, want: Shape, x: Shape) -> None:
    """Raises unless a state of a recurrent layer, if it is given, has the shape that follows from x."""
    if state is not None and state != want:
        axes = "(layers x directions, n, units)" if len(want) == 3 else "(layers x directions, units)"
        same_shape(op, argument, state, want, f"{axes} for x {x}")


def valid_rule(op: str, lengths: Shape | None, mask: Shape | None, batch: Shape, steps: Dim) -> None:
    """Raises unless there is a length a sequence, or a mask of every step; `batch` is () where there is none."""
    if lengths is not None:
        same_shape(op, "lengths", lengths, batch, "one length a sequence")
    if mask is not None:
        same_shape(op, "mask", mask, (*batch, steps), "(n, t), or (t,) without a batch")
