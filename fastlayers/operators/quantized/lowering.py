"""The kernel calls that operators on quantized values become. Scales and zero points must be known, but for those of inputs that
are quantized while the model runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...calls.conv_choice import bytes_alone
from ...calls.geometry import Window, five, three, three_pads
from ...kernels.table import BINARY, KINDS, REDUCE
from .._base import FLOAT32, View
from ..calls import MOST_AXES, chosen, copy, merged, strides_of
from .parameters import BYTES, factor

if TYPE_CHECKING:
    from ..builder import Builder, Ref

INT32 = np.dtype(np.int32)
UINT8 = np.dtype(np.uint8)
_NO_PADS = (0,) * 6
FARTHEST = 1 << 28  # positions that a window spans


def kind_of(dtype: np.dtype[Any]) -> int:
    """A dtype's number in the table of kinds."""
    return KINDS[dtype.name]


def one(b: Builder, value: np.ndarray | None) -> Ref | None:
    """A known number as an operand."""
    return None if value is None else b.constant(value.reshape(-1)[:1])


def number(value: np.ndarray | None) -> int:
    """A known zero point."""
    return 0 if value is None else int(value.reshape(-1)[0])


def known(n: View, *positions: int) -> bool:
    """Whether these inputs are known, or left out."""
    return all(not n.has(i) or n.value(i) is not None for i in positions)


def single(n: View, *positions: int) -> bool:
    """Whether these inputs have one element, or are left out."""
    return all(not n.has(i) or math.prod(n.sizes(i)) == 1 for i in positions)


def float32(n: View, *positions: int) -> bool:
    """Whether these inputs are float32."""
    return all(n.spec(i).dtype == FLOAT32 for i in positions)


def spread(value: np.ndarray | None, count: int, dtype: Any = None) -> np.ndarray | None:
    """A number, or one per channel, as one per channel."""
    if value is None:
        return None
    return np.ascontiguousarray(np.broadcast_to(value.reshape(-1), (count,)), dtype)


# ---- layouts --------------------------------------------------------------------------------------------------------------


def turned(b: Builder, x: Ref, out: Ref, to_last: bool) -> None:
    """Copies (n, c, ...) to (n, ..., c), or back."""
    batch, pixels, channels = x.shape[0], math.prod(x.shape[2:] if to_last else x.shape[1:-1]), x.shape[1 if to_last else -1]
    shape = (batch, pixels, channels)
    last, first = (pixels * channels, channels, 1), (pixels * channels, 1, pixels)
    copy(b, x, out, shape, 0, first if to_last else last, 0, last if to_last else first)


def with_last(b: Builder, x: Ref, last: bool) -> Ref:
    """An array of images with its channels last, three spatial axes."""
    if last:
        return x.view(five(x.shape, True))
    shape = (x.shape[0], *x.shape[2:], x.shape[1])
    if x.shape[1] == 1 or math.prod(x.shape[2:]) == 1:
        return x.view(five(shape, True))
    made = b.temp(shape, x.dtype)
    turned(b, x, made, True)
    return made.view(five(shape, True))


def made_last(b: Builder, out: Ref, last: bool) -> tuple[Ref, Ref | None]:
    """The memory that a kernel writes channels last to, and what must be transposed afterwards, if anything."""
    if last:
        return out.view(five(out.shape, True)), None
    shape = (out.shape[0], *out.shape[2:], out.shape[1])
    if out.shape[1] == 1 or math.prod(out.shape[2:]) == 1:
        return out.view(five(shape, True)), None
    temp = b.temp(shape, out.dtype)
    return temp.view(five(shape, True)), temp


# ---- conversions ----------------------------------------------------------------------------------------------------------


def _granular(n: View) -> tuple[int, int, int] | None:
    """The shape of x as (outer, scales, inner); None for blocks."""
    shape, scale = n.sizes(0), n.sizes(1)
    if math.prod(scale) == 1:
        return 1, 1, math.prod(shape)
    if n.get("block_size", 0):
        return None
    axis = n.get("axis", 1) % len(shape)
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def quantize_lower(n: View, b: Builder, dtype: np.dtype[Any]) -> Any:
    shape = _granular(n)
    usual = dtype.kind in "iu" and dtype.itemsize <= 2 and float32(n, 0, 1)
    if shape is None or not usual or n.get("precision", 1) != 1 or not known(n, 1, 2) or n.get("output_dtype", 0) > 13:
        return False
    scale, zero = _scales(n, b, shape[1])
    b.call("quantize", b.input(0).view(shape), scale, zero, b.output(0).view(shape), kind_of(dtype))
    return True


def dequantize_lower(n: View, b: Builder) -> Any:
    shape, dtype = _granular(n), n.spec(0).dtype
    usual = dtype.kind in "iu" and dtype.itemsize <= 4 and dtype != np.uint32 and float32(n, 1)
    if shape is None or not usual or n.get("output_dtype", 0) not in (0, 1) or not known(n, 1, 2):
        return False
    scale, zero = _scales(n, b, shape[1])
    b.call("dequantize", b.input(0).view(shape), scale, zero, b.output(0).view(shape), kind_of(dtype))
    return True


def _scales(n: View, b: Builder, count: int) -> tuple[Ref, Ref]:
    zero = np.zeros(1, np.int32) if n.value(2) is None else n.value(2)
    found = spread(n.value(1), count, np.float32), spread(zero, count, np.int32)
    return b.constant(found[0]), b.constant(found[1])  # type: ignore[arg-type]


def dynamic_lower(n: View, b: Builder) -> Any:
    b.call("dynamic_quantize", b.input(0), b.output(0), b.output(1), b.output(2))
    return True


# ---- products and convolutions --------------------------------------------------------------------------------------------


def product(
    n: View, b: Builder, x: Ref, weight: np.ndarray, w_zero: np.ndarray | None, by: np.ndarray | None, x_zero: Ref | None,
    x_scale: Ref | None, y_zero: np.ndarray | None, bias: np.ndarray | None = None, shift: np.ndarray | None = None,
) -> Any:  # fmt: skip
    """Output 0 as the product of x (..., k) with a known matrix (k, n)."""
    k, columns = weight.shape
    out = b.output(0)
    packed = b.pack(
        "qconv_pack",
        lambda: (
            np.ascontiguousarray(weight.T).reshape(columns, k, 1, 1, 1), spread(w_zero, columns), spread(by, columns, np.float32),
            spread(bias, columns, np.int32), spread(shift, columns, np.float32), (1, 1, 1), (1, 1, 1), 1,
        ),
    )  # fmt: skip
    m = math.prod(x.shape[:-1])
    kinds = kind_of(x.dtype), kind_of(out.dtype), number(y_zero)
    b.call(
        "qconv", x.view((1, 1, 1, m, k)), packed, x_zero, x_scale, out.view((1, 1, 1, m, columns)), _NO_PADS, True, True, *kinds
    )
    return True


def matmul_lower(n: View, b: Builder, a: int, w: int, a_zero: int, w_zero: int) -> np.ndarray | None:
    """The known matrix of a product, or None if there is no kernel for it."""
    weight = n.value(w)
    if weight is None or weight.ndim != 2 or not n.sizes(a) or not single(n, a_zero) or not known(n, w_zero):
        return None
    if n.has(w_zero) and math.prod(n.sizes(w_zero)) not in (1, weight.shape[1]):
        return None
    return weight


def computed(
    n: View, b: Builder, a: int, w: int, a_zero: int, w_zero: int, by: np.ndarray | None, y_zero: np.ndarray | None
) -> Any:
    """Output 0 as the product of two matrices, or batches of them, that are known only when the model runs."""
    left, right, out = n.sizes(a), n.sizes(w), b.output(0)
    if len(left) < 2 or len(right) < 2 or not known(n, a_zero, w_zero) or not single(n, a_zero, w_zero):
        return False
    batch, counts = math.prod(out.shape[:-2]), (math.prod(left[:-2]), math.prod(right[:-2]))
    if any(count not in (1, batch) for count in counts):
        return False
    x, y = (b.input(i).view((count, *shape[-2:])) for i, count, shape in zip((a, w), counts, (left, right), strict=True))
    zeros = number(n.value(a_zero)), number(n.value(w_zero)), number(y_zero)
    factor = 1.0 if by is None else float(by.reshape(-1)[0])
    options = kind_of(x.dtype), kind_of(y.dtype), kind_of(out.dtype), *zeros, factor
    b.call("qmatmul", x, y, out.view((batch, *out.shape[-2:])), options)
    return True


def window_of(n: View, place: Window | None) -> bool:
    """Whether the kernels take a window; not one beyond all images, for which they would need as much scratch."""
    if place is not None and math.prod(place.reach) > FARTHEST:
        return False
    return (
        place is not None
        and place.pads is not None
        and all(p >= 0 for pair in place.pads for p in pair)
        and len(place.kernel) <= 3
    )


def conv_lower(
    n: View, b: Builder, place: Window, weight: np.ndarray, w_zero: np.ndarray | None, by: np.ndarray | None, x_zero: Ref | None,
    y_zero: np.ndarray | None, bias: np.ndarray | None = None,
) -> Any:  # fmt: skip
    """Output 0 as a convolution of input 0."""
    x, out = b.input(0), b.output(0)
    x_last, out_last, groups = n.get("x_last", False), n.get("out_last", False), n.get("group", 1)
    o = weight.shape[0]
    shaped = weight.reshape(*weight.shape[:2], *three(weight.shape[2:]))
    packed = b.pack(
        "qconv_pack",
        lambda: (
            np.ascontiguousarray(shaped), spread(w_zero, o), spread(by, o, np.float32), spread(bias, o, np.int32), None,
            three(place.stride), three(place.dilation), groups,
        ),
    )  # fmt: skip
    kinds = kind_of(x.dtype), kind_of(out.dtype), number(y_zero)
    pads = three_pads(place.pads or ())
    if bytes_alone(weight.shape, groups):
        to, temp = made_last(b, out, out_last)
        b.call("qconv", with_last(b, x, x_last), packed, x_zero, None, to, pads, True, True, *kinds)
        if temp is not None:
            turned(b, temp, out, False)
        return True
    x5, out5 = x.view(five(x.shape, x_last)), out.view(five(out.shape, out_last))
    b.call("qconv", x5, packed, x_zero, None, out5, pads, x_last, out_last, *kinds)
    return True


# ---- others ---------------------------------------------------------------------------------------------------------------


def binary_lower(n: View, b: Builder, op: str) -> Any:
    """QLinearAdd and QLinearMul of arrays of which one may repeat itself along up to three runs of axes."""
    if not known(n, 1, 2, 4, 5, 6, 7) or not float32(n, 1, 4, 6):
        return False
    a, c, out = n.sizes(0), n.sizes(3), b_shape(n)
    swap = math.prod(a) < math.prod(c)
    whole, wide = ((*(1,) * (len(out) - len(shape)), *shape) for shape in ((c, a) if swap else (a, c)))
    if whole != out:
        return False
    groups: list[list[int]] = []
    for size, other in zip(whole, wide, strict=True):
        if size == 1:
            continue
        if groups and (groups[-1][1] == groups[-1][0]) == (other == size):
            groups[-1] = [groups[-1][0] * size, groups[-1][1] * other]
        else:
            groups.append([size, other])
    if len(groups) > 3:
        return False
    groups = [[1, 1]] * (3 - len(groups)) + groups
    first, second = (3, 0) if swap else (0, 3)
    ra, rb = b.input(first), b.input(second)
    scales = [np.float32(n.value(i).reshape(-1)[0]) for i in (first + 1, second + 1, 6)]  # type: ignore[union-attr]
    if op == "multiply":
        scales[2] = (n.value(1).reshape(-1)[0] * n.value(4).reshape(-1)[0]) / scales[2]  # type: ignore[union-attr]
    zeros = [number(n.value(i)) for i in (first + 2, second + 2, 7)]
    options = (kind_of(ra.dtype), *zeros, *(float(s) for s in scales))
    left, right = (tuple(g[k] for g in groups) for k in range(2))
    if ra.dtype != n.spec(7).dtype if n.has(7) else False:
        return False
    target = b.output(0)
    b.call("qbinary", ra.view(left), rb.view(right), target.view(left), BINARY[op], options)
    return True


def b_shape(n: View) -> tuple[int, ...]:
    """The shape of the result."""
    return tuple(np.broadcast_shapes(n.sizes(0), n.sizes(3)))


def table_lower(n: View, b: Builder, run: Any, parameters: Sequence[int]) -> Any:
    """A function of single bytes as a table of what `run` makes of each."""
    dtype = n.spec(0).dtype
    if dtype not in BYTES or not known(n, *parameters):
        return False
    every = np.arange(256, dtype=np.uint8).view(dtype)
    with np.errstate(all="ignore"):
        table = run(n, every, *(n.value(i) for i in parameters))[0]
    x = b.input(0)
    b.call("lookup", x, b.constant(np.ascontiguousarray(table)), b.output(0, over=x))
    return True


def softmax_lower(n: View, b: Builder, axis: int, flat: bool) -> Any:
    """Through float32."""
    if not known(n, 1, 2, 3, 4) or not float32(n, 1, 3):
        return False
    x, shape = b.input(0), n.sizes(0)
    size = math.prod(shape)
    axis %= max(len(shape), 1)
    cut = (math.prod(shape[:axis]), math.prod(shape[axis:]), 1)
    if not flat:
        cut = (math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]))
    line, floats = (1, 1, size), b.temp(shape)
    out = b.output(0)
    for i, source, target, name, kind in ((1, x, floats, "dequantize", x.dtype), (3, floats, out, "quantize", out.dtype)):
        zero = np.zeros(1, np.int32) if n.value(i + 1) is None else n.value(i + 1)
        scale, origin = spread(n.value(i), 1, np.float32), spread(zero, 1, np.int32)
        if i == 3:
            b.call("softmax", floats.view(cut), floats.view(cut))
        b.call(name, source.view(line), b.constant(scale), b.constant(origin), target.view(line), kind_of(kind))  # type: ignore[arg-type]
    return True


def pool_lower(n: View, b: Builder, place: Window, last: bool, op: str, options: tuple[Any, ...]) -> Any:
    """A pool of bytes; `out` is channels-last as x is."""
    if not window_of(n, place):
        return False
    out = b.output(0)
    to, temp = made_last(b, out, last)
    geometry = three(place.kernel), three(place.stride), three(place.dilation), three_pads(place.pads or ())
    x = with_last(b, b.input(0), last)
    b.call("qpool", x, to, *geometry, REDUCE[op], kind_of(out.dtype), options)
    if temp is not None:
        turned(b, temp, out, False)
    return True


def max_pool_lower(n: View, b: Builder, place: Window) -> Any:
    """MaxPool of bytes."""
    return pool_lower(n, b, place, n.get("x_last", False), "max", (0, 1.0, 1.0, 0, False))


def mean_options(n: View) -> tuple[Any, ...] | None:
    """Options of a mean from inputs x, its scale and zero point, scale and zero point of the result."""
    if not known(n, 1, 2, 3, 4) or not float32(n, 1, 3) or (n.has(4) and n.spec(4).dtype != n.spec(0).dtype):
        return None
    scales = [float(n.value(i).reshape(-1)[0]) for i in (1, 3)]  # type: ignore[union-attr]
    return number(n.value(2)), *scales, number(n.value(4)), bool(n.get("count_include_pad", 0))


def concat_lower(n: View, b: Builder, parts: Sequence[int], run: Any) -> Any:
    """Each part, with the scale of the result, to its place."""
    if not known(n, 0, 1, *(i for p in parts for i in (p + 1, p + 2))):
        return False
    shape = n.sizes(parts[0])
    axis = n.get("axis", 1) % len(shape)
    out_shape = [*shape]
    out_shape[axis] = sum(n.sizes(p)[axis] for p in parts)
    steps, start = strides_of(out_shape), 0
    if any(len(merged(n.sizes(p), strides_of(n.sizes(p)), steps)) > MOST_AXES for p in parts):
        return False
    out = b.output(0)
    for p in parts:
        size = n.sizes(p)
        copy(b, _rescaled(n, b, p, run), out, size, 0, strides_of(size), start, steps)
        start += size[axis] * steps[axis]
    return True


def _rescaled(n: View, b: Builder, i: int, run: Any) -> Ref:
    """Input i, whose scale and zero point follow it, with those of the result: `run` makes its bytes of them."""
    x = b.input(i)
    every = np.arange(256, dtype=np.uint8).view(x.dtype)
    table = run(every, n.value(i + 1), n.value(i + 2))
    if (table.view(np.uint8) == every.view(np.uint8)).all():
        return x
    made = b.temp(x.shape, table.dtype)
    b.call("lookup", x, b.constant(np.ascontiguousarray(table)), made)
    return made


def where_lower(n: View, b: Builder, run: Any) -> Any:
    """Both arrays with the scale of the result, then one of them."""
    if not known(n, 2, 3, 5, 6, 7, 8):
        return False
    return chosen(b, b.input(0), _rescaled(n, b, 1, run), _rescaled(n, b, 4, run), n.spec(1).dtype)


def conv_factor(n: View) -> np.ndarray:
    """QLinearConv's and QLinearMatMul's factors."""
    x, w, y = (n.value(i) for i in (1, 4, 6))
    assert x is not None
    assert w is not None
    assert y is not None
    return factor(x.reshape(()), w.reshape(-1), y.reshape(()))
