"""Convolution and transposed convolution. Besides ONNX's inputs and attributes, which passes and recorded layers add: a residual
(input 3; of Conv alone), an activation, whether x and the result have their channels last (`x_last`, `out_last`), and, of
ConvTranspose, `output_size`: sizes of the result's space, where pads say what is cut before it. `packs`, of Conv, has its kernel
be that of a function, which packs its weights for each call; `half`, that its product may be one of bfloat16, 2 of `HALVES`.

Weights of a Conv may be integers of a byte, with their scales and zero points (inputs 4 and 5) as DequantizeLinear has them, by
its `axis` and `block_size`: they become float32 while they are packed, one layer's at a time, and only the packed ones stay."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .._windows import halves
from ..calls.conv import Convolution, call, why
from ..calls.conv_transpose import call as call_transposed
from ..calls.geometry import Window
from ..kernels.table import BINARY, PAD_MODES
from ..rules.windows import bias_rule, channels_rule, kernel_rule, letter, transposed_channels_rule, transposed_size
from ._base import FLOAT32, Spec, View, register
from ._costs import convolution, transposed
from ._layouts import convolution_sides
from ._traits import Layout, Quantized, Scaling, Sides, Traits
from .fused import IDENTITY, finished, fused, half_of, times, widened
from .window import arranged, conv_size, spatial, window

if TYPE_CHECKING:
    from .builder import Builder

_ZEROS = PAD_MODES["zeros"]
_NAMES = {code: name for name, code in PAD_MODES.items()}
_MODES: dict[int, Any] = {0: "constant", 1: "reflect", 2: "edge", 3: "wrap"}  # as numpy calls them
_SCALE, _ZERO = 4, 5  # inputs of a Conv with weights of bytes
_EACH: tuple[Any, ...] = (slice(None), slice(None))  # every image and channel


def _parts(n: View) -> tuple[Any, Any, Window | None]:
    x, w = n.shape(0), n.shape(1)
    if w is None or (x is None and n.node.attributes.get("kernel_shape") is None):
        return x, w, None
    kernel = n.get("kernel_shape") or w[2:]
    if any(not isinstance(d, int) for d in kernel):
        return x, w, None
    if tuple(kernel) != tuple(w[2:]) and all(isinstance(d, int) for d in w[2:]):
        raise n.fail(f"kernel_shape is {tuple(kernel)}, the weights have shape {w}: expected the same sizes")
    if len(w) < 3 or (x is not None and len(x) != len(w)):
        raise n.fail(f"x has shape {x}, the weights {w}: expected as many axes, three at least")
    kernel_rule(n.where, w)
    return x, w, window(n, tuple(kernel), None if x is None else spatial(x, n.get("x_last", False)))  # type: ignore[arg-type]


def conv_infer(n: View) -> list[Spec]:
    x, w, place = _parts(n)
    _stored(n)
    if x is None or place is None:
        return [Spec(None if w is None else (None,) * len(w), n.spec(0).dtype)]
    last = n.get("x_last", False)
    channels_rule(n.where, x, x[-1 if last else 1], w, n.get("group", 1))
    bias_rule(n.where, n.shape(2) if n.has(2) else None, w[0], w)
    if n.get("pad_mode", _ZEROS) not in _MODES:
        raise n.fail(f"pad_mode is {n.get('pad_mode')!r}: expected one of {tuple(_MODES)}")
    return [Spec(widened(n, _own(n, x, w[0], place)), n.spec(0).dtype)]


def _own(n: View, x: Any, channels: Any, place: Window) -> Any:
    """The shape of the convolution itself, before a residual is added."""
    sizes = conv_size(n, spatial(x, n.get("x_last", False)), place, mode=_NAMES[n.get("pad_mode", _ZEROS)])
    return arranged(x[0], channels, sizes, n.get("out_last", False))


def _stored(n: View) -> bool:
    """Whether the weights are stored in bytes, with scales; checks those."""
    if not n.has(_SCALE):
        return False
    from .quantized.quantize import weight_rule

    weight_rule(n, 1, _SCALE, _ZERO)
    return True


def _floats(n: View, weight: np.ndarray, scale: np.ndarray | None, zero: np.ndarray | None) -> np.ndarray:
    """The weights as the convolution takes them."""
    if scale is None:
        return weight
    from .quantized.quantize import dequantized_weight

    return dequantized_weight(n, weight, scale, zero)


def conv_lower(n: View, b: Builder) -> Any:
    weight, bias, scale, zero = (n.value(i) for i in (1, 2, _SCALE, _ZERO))
    if (
        weight is None
        or (n.has(2) and bias is None)
        or weight.ndim > 5
        or not n.float32(0, 2, 3, *(() if n.has(_SCALE) else (1,)))
    ):
        return False
    if (n.has(_SCALE) and scale is None) or (n.has(_ZERO) and zero is None):
        return False
    x, _, place = _parts(n)
    if place is None or place.pads is None:
        return False
    shape = _own(n, x, weight.shape[0], place)
    if any(p < 0 for pair in place.pads for p in pair):
        return False
    ref, out = b.input(0), b.output(0)
    act, residual = fused(n), b.optional(3)
    late = residual is not None and residual.shape != shape  # a residual that is broadcast comes after the kernel
    own = out if out.shape == shape else b.temp(shape)
    floats = partial(_floats, n, weight, scale, zero)
    call(b.machine, _how(n, place), ref, weight, bias, own, None if late else residual, IDENTITY if late else act, floats)
    if residual is not None and late:
        b.call("binary", own, residual, out, BINARY["add"], act)
    return True


def _how(n: View, place: Window) -> Convolution:
    sides, choice = (n.get("x_last", False), n.get("out_last", False)), (n.get("packs", False), n.get("direct", False))
    return Convolution(place, n.get("group", 1), n.get("pad_mode", _ZEROS), *sides, *choice, half_of(n))


def conv_why(n: View) -> str:
    """Words for what decided the algorithm; sizes are known."""
    x, w, place = _parts(n)
    if place is None or len(w) > 5:
        return ""
    shape: Any = _own(n, x, w[0], place)
    return why(_how(n, place), x, w, shape, n.has(3) and n.shape(3) == shape)


def conv_run(
    n: View, x: np.ndarray, w: np.ndarray, bias: np.ndarray | None = None, residual: np.ndarray | None = None,
    scale: np.ndarray | None = None, zero: np.ndarray | None = None,
) -> Sequence[np.ndarray]:  # fmt: skip
    """Windows of the padded input, multiplied with the weights of each group."""
    w = _floats(n, w, scale, zero)
    _, _, place = _parts(n)
    assert place is not None
    assert place.pads is not None
    if n.get("x_last", False):
        x = np.moveaxis(x, -1, 1)
    axes = w.ndim - 2
    wide = np.float64 if x.dtype.kind == "f" else x.dtype
    padded = np.pad(x, ((0, 0), (0, 0), *((max(p, 0), max(q, 0)) for p, q in place.pads)), _MODES[n.get("pad_mode", _ZEROS)])
    cut = tuple(slice(max(-p, 0), padded.shape[i + 2] - max(-q, 0)) for i, (p, q) in enumerate(place.pads))
    padded = padded[_EACH + cut]
    views: Any = np.lib.stride_tricks.sliding_window_view(padded, place.reach, tuple(range(2, 2 + axes)))
    steps = tuple(slice(None, None, s) for s in (*place.stride, *place.dilation))
    views = views[_EACH + steps]
    groups = n.get("group", 1)
    parts = []
    for g, weight in enumerate(np.split(w.astype(wide), groups)):
        part = views[:, g * w.shape[1] : (g + 1) * w.shape[1]].astype(wide)
        parts.append(np.tensordot(part, weight, ([1, *range(2 + axes, 2 + 2 * axes)], range(1, 2 + axes))))
    y = np.moveaxis(np.concatenate(parts, -1), -1, 1)
    if bias is not None:
        y = y + bias.reshape(-1, *(1,) * axes)
    return (finished(n, (np.moveaxis(y, 1, -1) if n.get("out_last", False) else y).astype(x.dtype), residual),)


# A depthwise kernel with more taps than this is faster with channels first.
LARGEST_DEPTHWISE = 49


def _sides(n: View) -> Sides | None:
    return convolution_sides(n, 1, 3, LARGEST_DEPTHWISE) if n.spec(0).dtype == FLOAT32 else None


def _channels_axis(n: View) -> int:
    return -1 if n.get("out_last", False) else 1


CONV = Traits(
    layout=Layout("free", _sides, lambda x, out: {"x_last": x, "out_last": out}),
    time="convolution",
    work="products",
    multiply_adds=convolution(),
    epilogue=("activation", "residual"),
    weights=(1, 2, 4, 5),
    scaling=Scaling(
        axis=_channels_axis,
        channels=lambda n, weight: int(weight.shape[0]),
        weight=lambda n, weight, factors: times(weight, factors.reshape(-1, *(1,) * (weight.ndim - 1))),
    ),
    padding=lambda n: None if n.get("pad_mode", _ZEROS) != _ZEROS else 0.0,
    quantized=Quantized("QLinearConv", "convolution"),
    why=conv_why,
)
register("Conv", conv_infer, conv_run, conv_lower, CONV)


# ---- transposed ---------------------------------------------------------------------------------------------------------


def _transposed(n: View, x: Any, w: Any) -> tuple[Window, tuple[Any, ...], tuple[tuple[int, int], ...] | None]:
    """Window, sizes of the result and its pads (how much of the full result is cropped on each side)."""
    kernel = tuple(n.get("kernel_shape") or w[2:])
    axes = len(kernel)
    auto, shape = n.get("auto_pad", "NOTSET"), n.get("output_shape")
    place = window(n, kernel, None) if auto in ("NOTSET", "", "VALID") else window(_without_auto(n), kernel, None)
    extra = tuple(n.get("output_padding") or (0,) * axes)
    space = spatial(x, n.get("x_last", False))
    steps = list(zip(space, place.stride, place.reach, extra, strict=True))
    if shape or auto in ("SAME_UPPER", "SAME_LOWER"):
        wanted = tuple(shape[-axes:]) if shape else tuple(d * s if isinstance(d, int) else None for d, s, _, _ in steps)
        if any(not isinstance(d, int) for d in space):
            return place, wanted, None
        totals = [s * (d - 1) + e + r - want for (d, s, r, e), want in zip(steps, wanted, strict=True)]  # type: ignore[operator]
        return place, wanted, tuple(halves(total, auto != "SAME_UPPER") for total in totals)
    if n.get("output_size"):
        return place, tuple(n.get("output_size")), place.pads
    pads = place.pads or ()
    sizes = (transposed_size(n.where, letter(axes, axis), d, s, r, pads[axis], e) for axis, (d, s, r, e) in enumerate(steps))
    return place, tuple(sizes), place.pads


def _without_auto(n: View) -> View:
    from ..ir.graph import Node

    kept = {k: v for k, v in n.node.attributes.items() if k not in ("auto_pad", "pads")}
    return View(Node(n.node.op, n.node.inputs, n.node.outputs, kept), n.inputs, n.values)


def conv_transpose_infer(n: View) -> list[Spec]:
    x, w = n.shape(0), n.shape(1)
    if x is None or w is None or any(not isinstance(d, int) for d in w[2:]):
        return [Spec(None if x is None else (None,) * len(x), n.spec(0).dtype)]
    if len(x) != len(w) or len(x) < 3:
        raise n.fail(f"x has shape {x}, the weights {w}: expected as many axes, three at least")
    made = transposed_channels_rule(n.where, x, x[-1 if n.get("x_last", False) else 1], w, n.get("group", 1))
    bias_rule(n.where, n.shape(2) if n.has(2) else None, made, w, n.get("group", 1))
    _, sizes, _ = _transposed(n, x, w)
    if any(isinstance(s, int) and s < 0 for s in sizes):
        raise n.fail(f"the result would have the sizes {sizes}: the padding is larger than it")
    return [Spec(arranged(x[0], made, sizes, n.get("out_last", False)), n.spec(0).dtype)]


def conv_transpose_lower(n: View, b: Builder) -> Any:
    weight, bias = n.value(1), n.value(2)
    if weight is None or not n.float32() or (n.has(2) and bias is None) or weight.ndim > 5:
        return False
    place, _, pads = _transposed(n, n.sizes(0), weight.shape)
    x, out, place = b.input(0), b.output(0), place._replace(pads=pads)
    sides = n.get("x_last", False), n.get("out_last", False)
    call_transposed(b.machine, place, n.get("group", 1), *sides, x, weight, bias, out, fused(n))
    return True


def conv_transpose_run(n: View, x: np.ndarray, w: np.ndarray, bias: np.ndarray | None = None) -> Sequence[np.ndarray]:
    """Every input pixel adds its weighted kernel to the result, which is then cropped."""
    place, sizes, pads = _transposed(n, x.shape, w.shape)
    assert pads is not None
    if n.get("x_last", False):
        x = np.moveaxis(x, -1, 1)
    groups, axes = n.get("group", 1), w.ndim - 2
    full = [max((d - 1) * s + r, 0) for d, s, r in zip(x.shape[2:], place.stride, place.reach, strict=True)]
    y = np.zeros((x.shape[0], w.shape[1] * groups, *full), np.float64)
    each_in, each_out = x.shape[1] // groups, w.shape[1]
    for g in range(groups):
        source = x[:, g * each_in : (g + 1) * each_in].astype(np.float64)
        weight = w[g * each_in : (g + 1) * each_in].astype(np.float64)
        for tap in np.ndindex(*place.kernel):
            part = np.moveaxis(np.tensordot(source, weight[_EACH + tap], ([1], [0])), -1, 1)
            at = tuple(
                slice(t * d, t * d + (size - 1) * s + 1, s)
                for t, d, s, size in zip(tap, place.dilation, place.stride, x.shape[2:], strict=True)
            )
            if part.size:
                y[:, g * each_out : (g + 1) * each_out][_EACH + at] += part
    result = np.zeros((*y.shape[:2], *sizes), np.float64)
    source_at, result_at = [], []
    for (before, _), size, have in zip(pads, sizes, full, strict=True):
        start, end = max(before, 0), min(before + size, have)
        source_at.append(slice(start, max(end, start)))
        result_at.append(slice(start - before, max(end, start) - before))
    result[_EACH + tuple(result_at)] = y[_EACH + tuple(source_at)]
    if bias is not None:
        result += bias.reshape(-1, *(1,) * axes)
    return (finished(n, (np.moveaxis(result, 1, -1) if n.get("out_last", False) else result).astype(x.dtype)),)


def _scaled_transposed(n: View, weight: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Weights (i, o / groups, ...): each group of inputs has its own outputs."""
    groups = n.get("group", 1)
    each = factors.reshape(groups, 1, -1, *(1,) * (weight.ndim - 2))
    return times(weight.reshape(groups, -1, *weight.shape[1:]), each).reshape(weight.shape)


TRANSPOSED = Traits(
    time="image",
    whole="resizes",
    work="products",
    multiply_adds=transposed,
    epilogue=("activation",),
    weights=(1, 2),
    scaling=Scaling(
        axis=_channels_axis, channels=lambda n, weight: int(weight.shape[1] * n.get("group", 1)), weight=_scaled_transposed
    ),
)
register("ConvTranspose", conv_transpose_infer, conv_transpose_run, conv_transpose_lower, TRANSPOSED)
