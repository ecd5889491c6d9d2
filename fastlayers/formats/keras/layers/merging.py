"""Layers that make one tensor of several."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..build import BOOL, Build, Tensor
from ..layer import Layer, layer, tensors


def _ranked(b: Build, x: Tensor, rank: int) -> Tensor:
    """Axes of size 1 after the batch, as Keras broadcasts."""
    return x if x.rank == rank else b.unsqueeze(x, *range(1, 1 + rank - x.rank))


def _merged_mask(b: Build, this: Layer, given: list[Tensor]) -> Tensor | None:
    """Keras 3: valid where any is, none if one has none; Keras 1 and 2: valid where all are that have one."""
    masks = [t.mask for t in given if t.mask is not None]
    if not masks or (len(masks) < len(given) and not this.context.old):
        return None
    result = masks[0]
    for mask in masks[1:]:
        result = result if mask is result else b.op("And" if this.context.old else "Or", b.cast(result, BOOL), b.cast(mask, BOOL))
    return result


@layer("Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum", mask="own")
def merge(this: Layer, b: Build, *given: Any) -> Tensor:
    """Elementwise, with broadcasting."""
    parts = tensors(given)
    op = {"Subtract": "Sub", "Multiply": "Mul", "Maximum": "Max", "Minimum": "Min"}.get(this.kind, "Add")
    mask = _merged_mask(b, this, parts)
    rank = max(p.rank for p in parts)
    result = _ranked(b, parts[0], rank)
    for part in parts[1:]:
        result = b.two(op, result, _ranked(b, part, rank))
    if this.kind == "Average":
        result = b.op("Mul", b.floats(result), 1.0 / len(parts))
    return result.masked(mask)


@layer("CustomScaleLayer", words="scale")
def scaled_sum(this: Layer, b: Build, *given: Any) -> Tensor:
    """x + scale y, of Keras' own InceptionResNetV2."""
    parts = tensors(given)
    if len(parts) != 2:
        raise ValueError(f"{len(parts)} inputs: expected two")
    return b.op("Add", b.floats(parts[0]), b.op("Mul", b.floats(parts[1]), float(this.config["scale"])))


@layer("Concatenate", words="axis | concat_axis", mask="own")
def concatenate(this: Layer, b: Build, *given: Any) -> Tensor:
    """One after the other along an axis."""
    parts = tensors(given)
    axis = int(this.get("axis", this.get("concat_axis", -1)))
    result = parts[0]
    wanted = result.dtype
    for part in parts[1:]:
        wanted = b.together(Tensor("", None, wanted), Tensor("", None, part.dtype))[0].dtype if part.dtype != wanted else wanted
    made = b.concat([b.cast(p, wanted) for p in parts], axis)
    if all(p.mask is None for p in parts):
        return made
    masks = [_whole_mask(b, p) for p in parts]
    if made.axis(axis) == 1:
        return made.masked(b.concat(masks, 1))
    result_mask = masks[0]
    for other in masks[1:]:
        result_mask = b.op("And" if this.context.old else "Or", result_mask, other)
    return made.masked(result_mask)


def _whole_mask(b: Build, x: Tensor) -> Tensor:
    """The mask, or one that is true everywhere."""
    if x.mask is not None:
        return b.cast(x.mask, BOOL)
    return b.op("Expand", b.constant(np.ones((1, 1), np.bool_)), b.op("Shape", x, start=0, end=2))


@layer("Dot", words="axes normalize", mask="drop")
def dot(this: Layer, b: Build, *given: Any) -> Tensor:
    """Products of two tensors summed over one axis of each, batch by batch; of unit vectors if they are normalized."""
    x, y = (b.floats(t) for t in tensors(given))
    axes = this.config["axes"]
    i, j = (axes, axes) if isinstance(axes, int) else axes
    i, j = x.axis(i), y.axis(j)
    if this.get("normalize"):
        x, y = unit(b, x, [i]), unit(b, y, [j])
    x2, y2 = x.rank == 2, y.rank == 2
    # (n, rest of x, summed) times (n, summed, rest of y)
    left = b.transpose(x, 0, *(a for a in range(1, x.rank) if a != i), i)
    right = b.transpose(y, 0, j, *(a for a in range(1, y.rank) if a != j))
    a_sizes = [b.shape_of(left, a) for a in range(1, left.rank - 1)]
    b_sizes = [b.shape_of(right, a) for a in range(2, right.rank)]
    if left.rank != 3:
        left = b.reshape(left, b.shape_of(left, 0), -1 if a_sizes else 1, b.shape_of(left, left.rank - 1))
    if right.rank != 3:
        right = b.reshape(right, b.shape_of(right, 0), b.shape_of(right, 1), -1 if b_sizes else 1)
    made = b.op("MatMul", left, right)
    if x2 and y2:
        return b.squeeze(made, 2)
    return b.reshape(made, b.shape_of(made, 0), *a_sizes, *b_sizes)


def unit(b: Build, x: Tensor, axes: list[int]) -> Tensor:
    """Vectors along axes divided by their length."""
    squares = b.reduce("SumSquare", x, axes, True)
    return b.op("Div", x, b.op("Sqrt", b.op("Max", squares, 1e-12)))


@layer("Merge", words="| mode axis concat_axis", mask="own")
def merge_of_keras_1(this: Layer, b: Build, *given: Any) -> Tensor:
    """Keras 1's Merge, where it names a mode."""
    modes = {"sum": "Add", "mul": "Multiply", "ave": "Average", "max": "Maximum", "concat": "Concatenate"}
    mode = this.get("mode", "sum")
    if mode not in modes:
        this.refuse(f"mode {mode!s:.40}")
    this.kind = modes[mode]
    return concatenate(this, b, *given) if this.kind == "Concatenate" else merge(this, b, *given)
