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
from ..calls.conv import call
from ..calls.conv_choice import Convolution, why, why_transposed
from ..calls.geometry import Window, five
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
_SCALE, _ZERO = 4, 5  # inputs of a Conv with weights of bytes


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
    if n.get("pad_mode", _ZEROS) not in _NAMES:
        raise n.fail(f"pad_mode is {n.get('pad_mode')!r}: expected one of {tuple(_NAMES)}")
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
    """One product for every tap, of any number of axes."""
    from ..kernels.reference.conv import convolved, taps_first

    w = _floats(n, w, scale, zero)
    _, _, place = _parts(n)
    assert place is not None
    assert place.pads is not None
    out: np.ndarray = np.empty(_own(n, x.shape, w.shape[0], place), x.dtype)
    packed = taps_first(w, bias, place.stride, place.dilation, n.get("group", 1))
    sides, mode = (n.get("x_last", False), n.get("out_last", False)), n.get("pad_mode", _ZEROS)
    convolved(x, packed, out, sum(place.pads, ()), mode, *sides, None, IDENTITY)
    return (finished(n, out, residual),)


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
    from ..calls.conv_transpose import call

    weight, bias = n.value(1), n.value(2)
    if weight is None or not n.float32() or (n.has(2) and bias is None) or weight.ndim > 5:
        return False
    place, _, pads = _transposed(n, n.sizes(0), weight.shape)
    x, out, place = b.input(0), b.output(0), place._replace(pads=pads)
    sides = n.get("x_last", False), n.get("out_last", False)
    call(b.machine, place, n.get("group", 1), *sides, x, weight, bias, out, fused(n))
    return True


def _transposed_why(n: View) -> str:
    x, w, out = n.sizes(0), n.sizes(1), conv_transpose_infer(n)[0].shape
    if len(w) > 5:
        return ""
    place, _, pads = _transposed(n, x, w)
    x_last, out_last = n.get("x_last", False), n.get("out_last", False)
    given, made = five(x, x_last), five(out, out_last)  # type: ignore[arg-type]
    from ..calls.conv_transpose import planned

    plan = planned(place._replace(pads=pads), n.get("group", 1), x_last, out_last, given, w[0], made)
    return why_transposed(plan is not None)


def conv_transpose_run(n: View, x: np.ndarray, w: np.ndarray, bias: np.ndarray | None = None) -> Sequence[np.ndarray]:
    """Every input adds its weighted kernel to the result, of any number of axes."""
    from ..kernels.reference.conv_transpose import transposed as numbers
    from ..kernels.reference.conv_transpose import transposed_taps

    place, _, pads = _transposed(n, x.shape, w.shape)
    assert pads is not None
    shape: Any = conv_transpose_infer(n)[0].shape
    out: np.ndarray = np.empty(shape, x.dtype)
    packed = transposed_taps(w, bias, place.stride, place.dilation, n.get("group", 1))
    numbers(x, packed, out, sum(pads, ()), n.get("x_last", False), n.get("out_last", False))
    return (finished(n, out),)


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
    why=_transposed_why,
)
register("ConvTranspose", conv_transpose_infer, conv_transpose_run, conv_transpose_lower, TRANSPOSED)
