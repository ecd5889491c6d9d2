"""Normalizations, softmax, and `Affine`, what passes make of a batch normalization that nothing takes in: act(x scale + shift)
a channel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..calls import normalization as calls
from ..calls.machine import reference
from ..ir.checks import axis as checked_axis
from ..ir.checks import differ
from ..ir.graph import Shape
from ..kernels.table import BINARY, KINDS, UNARY, Activation
from ..rules.weights import groups_rule, normalized_rule, vector_rule
from ._base import FLOAT32, INT64, Spec, View, register
from ._layouts import windows
from ._traits import Layout, Quantized, Scaling, Sides, Traits
from .fused import IDENTITY, finished, fused
from .shapes import expect

if TYPE_CHECKING:
    from .builder import Builder


def same_infer(n: View) -> list[Spec]:
    """The result is like input 0."""
    return [n.spec(0)]


def _axis(n: View, default: int, rank: int) -> int:
    return checked_axis(n.where, n.get("axis", default), rank, "axis")


def mean_of(values: np.ndarray, axes: int | tuple[int, ...]) -> np.ndarray:
    """As ``values.mean(axes, keepdims=True)`` in float64, but the mean of nothing is NaN without a warning."""
    total = values.sum(axes, dtype=np.float64, keepdims=True)
    with np.errstate(all="ignore"):
        return np.asarray(total / (values.size // max(total.size, 1)))


# ---- softmax ------------------------------------------------------------------------------------------------------------


def softmax_infer(n: View) -> list[Spec]:
    x = n.shape(0)
    if x is not None:
        _axis(n, -1, len(x))
    return [n.spec(0)]


def _cut(n: View, shape: tuple[int, ...]) -> tuple[int, int, int]:
    """The shape as (outer, reduced, inner); before opset 13 everything from the axis on was reduced (`flatten`)."""
    axis = _axis(n, -1, len(shape))
    if n.get("flatten", False):
        return math.prod(shape[:axis]), math.prod(shape[axis:]), 1
    return calls.cut_at(shape, axis) if shape else (1, 1, 1)


def _softmax(name: str, kernel: str) -> None:
    def run(n: View, x: np.ndarray) -> Sequence[np.ndarray]:
        out = np.empty_like(x, order="C")
        calls.along(reference(), kernel, x, out, _cut(n, x.shape))
        return (out,)

    def lower(n: View, b: Builder) -> Any:
        if not n.float32():
            return False
        x = b.input(0)
        calls.along(b.machine, kernel, x, b.output(0), _cut(n, x.shape))
        return True

    own = Quantized("QLinearSoftmax", "one") if name == "Softmax" else None
    traits = Traits(time="along", work="elements", quantized=own, limited=name != "LogSoftmax")
    register(name, softmax_infer, run, lower, traits)


_softmax("Softmax", "softmax")
_softmax("LogSoftmax", "log_softmax")


def _hard_lower(n: View, b: Builder) -> Any:
    """1 where the largest is, 0 elsewhere."""
    if not n.float32():
        return False
    x, out = b.input(0), b.output(0)
    cut = outer, count, inner = _cut(n, x.shape)
    if count:
        at = b.temp((outer, inner), INT64)
        b.call("arg_extreme", x.view(cut), at, KINDS["float32"], False, False)
        b.call("one_hot", at, b.constant(np.array([0, 1], np.float32)), out.view(cut), 4)
    return True


def _hard_run(n: View, x: np.ndarray) -> Sequence[np.ndarray]:
    flat = x.reshape(_cut(n, x.shape))
    y = np.zeros_like(flat)
    if flat.size:
        np.put_along_axis(y, flat.argmax(1)[:, None], 1, 1)
    return (y.reshape(x.shape),)


register("Hardmax", softmax_infer, _hard_run, _hard_lower, Traits(time="along", work="elements", limited=True))


# ---- batch normalization and Affine -------------------------------------------------------------------------------------


def batch_norm_infer(n: View) -> list[Spec]:
    """Inputs: x, scale, bias, mean, variance, each of the last four (c,) or left out: then it does nothing, or is x's own."""
    x = n.shape(0)
    if x is not None and len(x) > 1:
        count = x[_axis(n, 1, len(x))]
        for i, name in ((3, "running_mean"), (4, "running_var"), (1, "weight"), (2, "bias")):
            vector_rule(n.where, name, n.shape(i) if n.has(i) else None, count)
    return [n.spec(0), *(n.spec(3 + i) for i in range(len(n.node.outputs) - 1))][: len(n.node.outputs)]


def scale_and_shift(
    scale: np.ndarray, bias: np.ndarray, mean: np.ndarray, variance: np.ndarray, epsilon: float
) -> tuple[np.ndarray, np.ndarray]:
    """A batch normalization as x scale + shift, in float64."""
    factor = scale.astype(np.float64) / np.sqrt(variance.astype(np.float64) + epsilon)
    return factor, bias.astype(np.float64) - mean.astype(np.float64) * factor


def batch_norm_run(n: View, x: np.ndarray, *vectors: np.ndarray | None) -> Sequence[np.ndarray]:
    """Over `axis` (1), with running statistics, or with those of the batch if training_mode is set."""
    at = _axis(n, 1, x.ndim)
    axes = tuple(i for i in range(x.ndim) if i != at)
    wide = (-1, *(1,) * (x.ndim - 1 - at))
    count = x.shape[at]
    scale, bias, mean, variance = (
        np.full(count, value, np.float32) if v is None else v
        for v, value in zip((*vectors, *(None,) * (4 - len(vectors))), (1, 0, 0, 1), strict=True)
    )
    outputs: list[np.ndarray] = []
    if n.get("training_mode", 0):
        momentum, values = n.get("momentum", 0.9), x.astype(np.float64)
        now_mean = mean_of(values, axes)
        now_mean, now_variance = now_mean.reshape(-1), mean_of((values - now_mean) ** 2, axes).reshape(-1)
        outputs = [
            (old * momentum + now * (1 - momentum)).astype(old.dtype) for old, now in ((mean, now_mean), (variance, now_variance))
        ]
        mean, variance = now_mean, now_variance
    factor, shift = scale_and_shift(scale, bias, mean, variance, n.get("epsilon", 1e-5))
    return ((x * factor.reshape(wide) + shift.reshape(wide)).astype(x.dtype), *outputs)[: len(n.node.outputs)]


def batch_norm_lower(n: View, b: Builder) -> Any:
    if not n.float32() or any(n.wants(i) for i in (1, 2)):
        return False
    x = b.input(0)
    at = _axis(n, 1, len(x.shape))
    if n.get("training_mode", 0):
        weights = b.optional(1), b.optional(2)
        calls.batch(b.machine, x, *weights, b.output(0), at, float(n.get("epsilon", 1e-5)))
        return True
    values = [n.value(i) for i in range(1, 5)]
    if all(v is not None for v in values):
        factor, shift = scale_and_shift(*values, n.get("epsilon", 1e-5))  # type: ignore[call-arg, arg-type]
        factor, shift = (b.constant(v.astype(np.float32)) for v in (factor, shift))  # type: ignore[assignment]
        calls.affine(b.machine, x, factor, shift, b.output(0, over=x), at, fused(n))
        return True
    if not (n.has(3) and n.has(4)):
        return False
    # Statistics that are computed: the same formulas in float32.
    count = (x.shape[at],)

    def binary(op: str, a: Any, c: Any) -> Any:
        out = b.temp(count)
        b.call("binary", a, c, out, BINARY[op], IDENTITY)
        return out

    root = b.temp(count)
    epsilon = b.constant(np.full(1, n.get("epsilon", 1e-5), np.float32))
    b.call("unary", binary("add", b.input(4), epsilon), root, Activation(UNARY["sqrt"].code))
    scale = binary("divide", b.input(1) if n.has(1) else b.constant(np.ones(1, np.float32)), root)
    bias = b.input(2) if n.has(2) else b.constant(np.zeros(1, np.float32))
    shift = binary("subtract", bias, binary("multiply", b.input(3), scale))
    calls.affine(b.machine, x, scale, shift, b.output(0, over=x), at, fused(n))
    return True


def affine_infer(n: View) -> list[Spec]:
    """One scale and one shift a channel."""
    x = n.shape(0)
    count = None if x is None else x[_axis(n, 1, len(x))]
    expect(n, 1, count)
    expect(n, 2, count)
    return [n.spec(0)]


def affine_run(n: View, x: np.ndarray, scale: np.ndarray, shift: np.ndarray) -> Sequence[np.ndarray]:
    """act(x scale + shift), one number of each a channel, rounded once before the activation."""
    wide = (-1, *(1,) * (x.ndim - 1 - _axis(n, 1, x.ndim)))
    y = x.astype(np.float64) * scale.reshape(wide) + shift.reshape(wide)
    return (finished(n, y.astype(x.dtype)),)


def affine_lower(n: View, b: Builder) -> Any:
    """Inputs: x, scale (c,), shift (c,); attributes axis (of the channels) and activation."""
    scale, shift = n.value(1), n.value(2)
    if scale is None or shift is None or not n.float32(0):
        return False
    x = b.input(0)
    factor, summand = (b.constant(v.astype(np.float32)) for v in (scale, shift))
    calls.affine(b.machine, x, factor, summand, b.output(0, over=x), _axis(n, 1, len(x.shape)), fused(n))
    return True


def _affine_sides(n: View) -> Sides | None:
    known = n.value(1) is not None and n.value(2) is not None
    return Sides(((0, -1),)) if known and n.get("axis", 1) == 1 and n.spec(0).dtype == FLOAT32 else None


register("BatchNormalization", batch_norm_infer, batch_norm_run, batch_norm_lower, Traits(time="channels", work="elements"))
register(
    "Affine",
    affine_infer,
    affine_run,
    affine_lower,
    Traits(
        layout=Layout("tied", _affine_sides, lambda x, out: {"axis": -1}),
        time="channels",
        work="elements",
        epilogue=("activation",),
        weights=(1, 2),
        scaling=Scaling(
            axis=lambda n: int(n.get("axis", 1)),
            channels=lambda n, weight: int(weight.shape[0]),
            weight=lambda n, weight, factors: weight * factors,
            rounds=False,
        ),
    ),
)


# ---- layer, root-mean-square, instance and group normalization ----------------------------------------------------------


def _check_scales(n: View, x: Shape, axes: int) -> None:
    """Scale and bias are as functions have them, of the sizes that are normalized together, or broadcast to x, as in files."""
    for i, name in ((1, "weight"), (2, "bias")):
        shape = n.shape(i) if n.has(i) else None
        if shape is None:
            continue
        if len(shape) == axes and 1 not in shape:
            normalized_rule(n.where, x, shape)
        elif len(shape) > len(x) or any(a != 1 and differ(a, b) for a, b in zip(shape[::-1], x[::-1], strict=False)):
            raise n.fail(f"{name} has shape {shape}, x {x}: expected one that broadcasts to x")


def layer_norm_infer(n: View) -> list[Spec]:
    x = n.shape(0)
    specs = [n.spec(0)]
    if x is not None:
        _check_scales(n, x, len(x) - _axis(n, -1, len(x)))
    if len(n.node.outputs) > 1:
        kept: Shape | None = None
        if x is not None:
            axis = _axis(n, -1, len(x))
            kept = (*x[:axis], *(1,) * (len(x) - axis))
        specs += [Spec(kept, FLOAT32)] * (len(n.node.outputs) - 1)
    return specs


def _layer_norm(n: View, x: np.ndarray, scale: np.ndarray, bias: np.ndarray | None, rms: bool) -> Sequence[np.ndarray]:
    axis = _axis(n, -1, x.ndim)
    axes = tuple(range(axis, x.ndim))
    values = x.astype(np.float64)
    mean = mean_of(values, axes)
    mean = np.zeros_like(mean) if rms else mean
    centred = values - mean
    root = 1 / np.sqrt(mean_of(centred**2, axes) + n.get("epsilon", 1e-5))
    y = (centred * root).astype(x.dtype) * scale
    if bias is not None:
        y = y + bias
    return y.astype(x.dtype), mean.astype(np.float32), root.astype(np.float32)


def layer_norm_run(n: View, x: np.ndarray, scale: np.ndarray, bias: np.ndarray | None = None) -> Sequence[np.ndarray]:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias over the axes from `axis` on."""
    return _layer_norm(n, x, scale, bias, False)[: len(n.node.outputs)]


def rms_norm_run(n: View, x: np.ndarray, scale: np.ndarray) -> Sequence[np.ndarray]:
    """x / sqrt(mean(x²) + epsilon) * scale."""
    return _layer_norm(n, x, scale, None, True)[:1]


def layer_norm_lower(n: View, b: Builder) -> Any:
    x = n.sizes(0)
    axis = _axis(n, -1, len(x))
    inner = x[axis:]
    fits = all(not n.has(i) or (n.sizes(i)[-len(inner) :] == inner and math.prod(n.sizes(i)) == math.prod(inner)) for i in (1, 2))
    if not n.float32() or any(n.wants(i) for i in (1, 2)) or not fits:
        return False
    operands = b.input(0), b.input(1), b.optional(2), b.output(0)
    calls.rows(b.machine, *operands, len(inner), float(n.get("epsilon", 1e-5)), n.op == "RMSNormalization")
    return True


_LAST = Traits(time="from_axis", work="elements", by_sizes=True)
register("LayerNormalization", layer_norm_infer, layer_norm_run, layer_norm_lower, _LAST)
register("RMSNormalization", layer_norm_infer, rms_norm_run, layer_norm_lower, _LAST)


def _groups(n: View, x: Shape, channels: int) -> int:
    groups = int(n.get("num_groups", channels))
    if channels:
        groups_rule(n.where, x, channels, groups)
    return max(groups, 1)


def group_norm_infer(n: View) -> list[Spec]:
    """Inputs: x, scale, bias; the last two a number per channel, or left out, or a number per group if `per_group` (opset 18)."""
    x = n.shape(0)
    if x is not None:
        if len(x) < 2:
            raise n.fail(f"x has shape {x}: expected (n, c, ...)")
        count = x[1]
        if isinstance(count, int):
            groups, of = _groups(n, x, count), "group" if n.get("per_group", 0) else "channel"
            for i, name in ((1, "weight"), (2, "bias")):
                vector_rule(n.where, name, n.shape(i) if n.has(i) else None, groups if of == "group" else count, of)
    return [n.spec(0)]


def group_norm_run(
    n: View, x: np.ndarray, scale: np.ndarray | None = None, bias: np.ndarray | None = None
) -> Sequence[np.ndarray]:
    """Each group of channels of each image is normalized; scale and bias have one number a channel."""
    count = _groups(n, x.shape, x.shape[1])
    each, out = x.shape[1] // count if n.get("per_group", 0) else 1, np.empty_like(x, order="C")
    scale, bias = (None if a is None else a.repeat(each) for a in (scale, bias))
    calls.groups(reference(), x, scale, bias, out, count, n.get("epsilon", 1e-5))
    return (out,)


def group_norm_lower(n: View, b: Builder) -> Any:
    if not n.float32():
        return False
    x = b.input(0)
    groups = _groups(n, x.shape, x.shape[1])
    weights = [b.optional(1), b.optional(2)]
    if n.get("per_group", 0):
        numbers = b.constant(np.repeat(np.arange(groups), x.shape[1] // groups).astype(np.int64))
        for i, given in enumerate(weights):
            if given is not None:
                each = weights[i] = b.temp((x.shape[1],))
                b.call("gather", given.view((1, groups, 1)), numbers, each.view((1, x.shape[1], 1)), 4)
    calls.groups(b.machine, x, weights[0], weights[1], b.output(0), groups, float(n.get("epsilon", 1e-5)))
    return True


register(
    "GroupNormalization",
    group_norm_infer,
    group_norm_run,
    group_norm_lower,
    Traits(time="image", whole="normalizes over", work="elements"),
)
register(
    "InstanceNormalization",
    group_norm_infer,
    group_norm_run,
    group_norm_lower,
    Traits(time="image", whole="normalizes over", work="elements"),
)


# ---- local response -----------------------------------------------------------------------------------------------------


def _response(n: View) -> tuple[int, float, float, float]:
    size = int(n.get("size", 0))
    if size < 1:
        raise n.fail(f"size is {size}: expected at least 1")
    return size, float(n.get("alpha", 1e-4)), float(n.get("beta", 0.75)), float(n.get("bias", 1.0))


def _channels(n: View, shape: tuple[int, ...]) -> tuple[int, int, int]:
    return calls.cut_at(shape, len(shape) - 1 if n.get("x_last", False) else 1)


def lrn_run(n: View, x: np.ndarray) -> Sequence[np.ndarray]:
    """x / (bias + alpha / size * sum of squares over `size` neighbouring channels) ** beta."""
    out = np.empty_like(x, order="C")
    calls.response(reference(), x, out, _channels(n, x.shape), *_response(n))
    return (out,)


def lrn_lower(n: View, b: Builder) -> Any:
    if not n.float32():
        return False
    x = b.input(0)
    calls.response(b.machine, x, b.output(0), _channels(n, x.shape), *_response(n))
    return True


register("LRN", same_infer, lrn_run, lrn_lower, Traits(layout=windows(FLOAT32), time="lrn"))
