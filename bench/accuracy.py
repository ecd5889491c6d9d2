"""Errors of results: ours and ONNX Runtime's against the same file evaluated in float64.

`double` turns a model's numbers to float64, which changes no weight; `evaluated` runs that with onnx's own reference, but for
operators that it computes in float32 or number by number. `python -m bench.networks accuracy` asks for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.peers import Model

__all__ = ["Errors", "double", "errors", "evaluated", "measured"]


# ---- the file in float64 ------------------------------------------------------------------------------------------------


def double(content: bytes) -> Any:
    """The model with float64 in the place of float32 and float16: its inputs, weights, constants and casts."""
    import onnx

    model = onnx.load_from_string(content)
    _double_graph(model.graph)
    for function in model.functions:
        for node in function.node:
            _double_node(node)
    return model


def _double_graph(graph: Any) -> None:
    for value in (*graph.input, *graph.output, *graph.value_info):
        kind = value.type.tensor_type
        if kind.elem_type in _narrow():
            kind.elem_type = _DOUBLE
    for tensor in graph.initializer:
        _double_tensor(tensor)
    for node in graph.node:
        _double_node(node)


def _double_node(node: Any) -> None:
    import onnx

    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            _double_graph(attribute.g)
        elif attribute.type == onnx.AttributeProto.TENSOR:
            _double_tensor(attribute.t)
        elif node.op_type == "Constant" and attribute.name in ("value_float", "value_floats"):
            plural = attribute.name == "value_floats"
            values = np.array(attribute.floats if plural else attribute.f, np.float64)
            attribute.CopyFrom(onnx.helper.make_attribute("value", onnx.numpy_helper.from_array(values)))
        elif node.op_type in _TYPED and attribute.name in ("to", "dtype") and attribute.i in _narrow():
            attribute.i = _DOUBLE


def _double_tensor(tensor: Any) -> None:
    from onnx import numpy_helper

    if tensor.data_type in _narrow():
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))


_DOUBLE = 11  # TensorProto.DOUBLE
_TYPED = ("Cast", "EyeLike")  # whose attribute says what comes out


def _narrow() -> tuple[int, int]:
    from onnx import TensorProto

    return TensorProto.FLOAT, TensorProto.FLOAT16


def evaluated(content: bytes, feeds: dict[str, np.ndarray]) -> list[Any]:
    """The results of the file, all of whose floating point is float64."""
    from onnx.reference import ReferenceEvaluator

    given = {name: x.astype(np.float64) if x.dtype.kind == "f" else x for name, x in feeds.items()}
    with np.errstate(all="ignore"):
        return list(ReferenceEvaluator(double(content), new_ops=list(_operators())).run(None, given))


@cache
def _operators() -> tuple[Any, ...]:
    """Operators that the reference computes in float32, or by loops of Python over numbers."""
    from onnx.reference.op_run import OpRun
    from onnx.reference.ops.op_grid_sample import GridSample as SlowGridSample
    from onnx.reference.ops.op_resize import Resize as SlowResize

    class Conv(OpRun):  # type: ignore[misc]
        def _run(self, x, w, b=None, auto_pad=None, dilations=None, group=None, kernel_shape=None, pads=None, strides=None):  # type: ignore[no-untyped-def]
            axes = w.ndim - 2
            pads = _pads(auto_pad, x.shape[2:], w.shape[2:], strides or [1] * axes, dilations or [1] * axes, pads)
            return (_convolved(_padded(x, pads), w, b, strides, dilations, group or 1),)

    class ConvTranspose(OpRun):  # type: ignore[misc]
        def _run(
            self, x, w, b=None, auto_pad=None, dilations=None, group=None, kernel_shape=None, output_padding=None,
            output_shape=None, pads=None, strides=None,
        ):  # type: ignore[no-untyped-def]  # fmt: skip
            axes, group = w.ndim - 2, group or 1
            more, strides = output_padding or [0] * axes, strides or [1] * axes
            reach = [(k - 1) * d for k, d in zip(w.shape[2:], dilations or [1] * axes, strict=True)]
            if output_shape or auto_pad in ("SAME_UPPER", "SAME_LOWER"):
                wanted = output_shape or [n * s for n, s in zip(x.shape[2:], strides, strict=True)]
                whole = [s * (n - 1) + m + r + 1 for s, n, m, r in zip(strides, x.shape[2:], more, reach, strict=True)]
                total = [max(0, n - o) for n, o in zip(whole, wanted[-axes:], strict=True)]
                less, rest = [t // 2 for t in total], [t - t // 2 for t in total]
                pads = less + rest if auto_pad == "SAME_UPPER" else rest + less
            pads = pads or [0] * 2 * axes
            apart = np.zeros((*x.shape[:2], *((n - 1) * s + 1 for n, s in zip(x.shape[2:], strides, strict=True))))
            apart[(slice(None), slice(None), *(slice(None, None, s) for s in strides))] = x
            cut = [r - p for r, p in zip(reach * 2, pads, strict=True)]  # negative where more is cut off than there is
            apart = _padded(apart, [max(0, c) + m for c, m in zip(cut, [0] * axes + list(more), strict=True)])
            y = _convolved(apart, _turned(w, group), b, None, dilations, group)
            ends = [slice(max(0, -cut[i]), y.shape[2 + i] - max(0, -cut[axes + i])) for i in range(axes)]
            return (y[(slice(None), slice(None), *ends)],)

    class MaxPool(OpRun):  # type: ignore[misc]
        def _run(
            self, x, auto_pad=None, ceil_mode=None, dilations=None, kernel_shape=None, pads=None, storage_order=None, strides=None
        ):  # type: ignore[no-untyped-def]
            windows, _ = _windows(x, auto_pad, ceil_mode, dilations, kernel_shape, pads, strides, -np.inf)
            return (windows.max(axis=tuple(range(-len(kernel_shape), 0))),)

    class AveragePool(OpRun):  # type: ignore[misc]
        def _run(
            self,
            x,
            auto_pad=None,
            ceil_mode=None,
            count_include_pad=None,
            dilations=None,
            kernel_shape=None,
            pads=None,
            strides=None,
        ):  # type: ignore[no-untyped-def]
            axes = tuple(range(-len(kernel_shape), 0))
            windows, inside = _windows(x, auto_pad, ceil_mode, dilations, kernel_shape, pads, strides, 0.0)
            counted, _ = _windows(inside[1 if count_include_pad else 0], None, 0, dilations, kernel_shape, None, strides, 0.0)
            return (windows.sum(axis=axes) / counted.sum(axis=axes),)

    class Erf(OpRun):  # type: ignore[misc]
        def _run(self, x):  # type: ignore[no-untyped-def]
            return (np.vectorize(math.erf, otypes=["d"])(x),)

    class BatchNormalization(OpRun):  # type: ignore[misc]
        """As inference has it; the reference takes older versions of it for training."""

        def _run(self, x, scale, bias, mean, variance, epsilon=None, **_):  # type: ignore[no-untyped-def]
            scale, bias, mean, variance = (a.reshape(-1, *[1] * (x.ndim - 2)) for a in (scale, bias, mean, variance))
            return ((x - mean) / np.sqrt(variance + (1e-5 if epsilon is None else epsilon)) * scale + bias,)

    class LRN(OpRun):  # type: ignore[misc]
        """The reference fills as many channels as there are images."""

        def _run(self, x, alpha=None, beta=None, bias=None, size=None):  # type: ignore[no-untyped-def]
            around = np.pad(x**2, [(0, 0), ((size - 1) // 2, size // 2), *[(0, 0)] * (x.ndim - 2)])
            total = np.lib.stride_tricks.sliding_window_view(around, size, axis=1).sum(axis=-1)
            return (x / (bias + alpha / size * total) ** beta,)

    class GlobalMaxPool(OpRun):  # type: ignore[misc]
        """The reference knows images alone."""

        def _run(self, x):  # type: ignore[no-untyped-def]
            return (x.max(axis=tuple(range(2, x.ndim)), keepdims=True),)

    class GatherElements(OpRun):  # type: ignore[misc]
        """The reference takes only indices of the data's size; they may be of fewer along other axes."""

        def _run(self, data, indices, axis=None):  # type: ignore[no-untyped-def]
            at = list(np.indices(indices.shape, sparse=True))
            at[axis or 0] = np.where(indices < 0, indices + data.shape[axis or 0], indices)
            return (data[tuple(at)],)

    class GridSample(SlowGridSample):  # type: ignore[misc]
        def _run(self, x, grid, align_corners=None, mode=None, padding_mode=None):  # type: ignore[no-untyped-def]
            if x.ndim != 4 or mode not in (None, "linear", "bilinear") or padding_mode not in (None, "zeros"):
                return super()._run(x, grid, align_corners=align_corners, mode=mode, padding_mode=padding_mode)
            return (_sampled(x, grid, bool(align_corners)),)

    class Resize(SlowResize):  # type: ignore[misc]
        """An axis at a time, each a product with what the reference makes of the rows of an identity."""

        def _run(self, x, roi=None, scales=None, sizes=None, **how):  # type: ignore[no-untyped-def]
            if how.get("axes") or how.get("antialias") or how.get("coordinate_transformation_mode") == "tf_crop_and_resize":
                return super()._run(x, roi, scales, sizes, **how)
            sizes = None if sizes is None or not len(sizes) else sizes
            for axis, n in enumerate(x.shape):
                if (n == sizes[axis]) if sizes is not None else (scales[axis] == 1):
                    continue
                one = (None, sizes[axis : axis + 1]) if sizes is not None else (scales[axis : axis + 1], None)
                rows = np.stack([super(Resize, self)._run(row, None, *one, **how)[0] for row in np.eye(n)])
                x = np.moveaxis(np.moveaxis(x, axis, -1) @ rows, -1, axis)
            return (x,)

    return (
        Conv, ConvTranspose, MaxPool, AveragePool, GlobalMaxPool, BatchNormalization, LRN, Erf, GatherElements, GridSample,
        Resize,
    )  # fmt: skip


def _padded(x: np.ndarray, pads: Sequence[int], fill: float = 0.0) -> np.ndarray:
    """Images with so much around them: at the beginning of each axis, then at the end."""
    axes = len(pads) // 2
    return np.pad(x, [(0, 0), (0, 0), *zip(pads[:axes], pads[axes:], strict=True)], constant_values=fill)


def _convolved(x: np.ndarray, w: np.ndarray, b: Any, strides: Any, dilations: Any, group: int) -> np.ndarray:
    """A convolution of padded images, as a product of all windows with the weights."""
    axes, wide = w.ndim - 2, w.shape[0] // group
    windows, _ = _windows(x, None, 0, dilations, w.shape[2:], None, strides, 0.0)
    taps, parts = tuple(range(-axes, 0)), []
    for g in range(group):
        mine = windows[:, g * w.shape[1] : (g + 1) * w.shape[1]]
        weights = w[g * wide : (g + 1) * wide]
        parts.append(np.tensordot(mine, weights, axes=((1, *taps), (1, *taps))))
    y = np.moveaxis(np.concatenate(parts, axis=-1), -1, 1)
    return y if b is None else y + b.reshape(1, -1, *[1] * axes)


def _turned(w: np.ndarray, group: int) -> np.ndarray:
    """Weights of a transposed convolution as those of the convolution of its spread images: taps reversed, channels changed."""
    axes = w.ndim - 2
    back = w[(slice(None), slice(None), *[slice(None, None, -1)] * axes)].reshape(group, w.shape[0] // group, *w.shape[1:])
    return np.swapaxes(back, 1, 2).reshape(group * w.shape[1], w.shape[0] // group, *w.shape[2:])


def _sampled(x: np.ndarray, grid: np.ndarray, corners: bool) -> np.ndarray:
    """Images at places between pixels, from the four around; beyond an image there is zero."""
    size = np.array([x.shape[3], x.shape[2]], np.float64)
    place = (grid + 1) / 2 * (size - 1) if corners else ((grid + 1) * size - 1) / 2
    low = np.floor(place)
    part, low = place - low, low.astype(np.int64)
    y = np.zeros((x.shape[0], x.shape[1], *grid.shape[1:3]))
    for dx in (0, 1):
        for dy in (0, 1):
            column, row = low[..., 0] + dx, low[..., 1] + dy
            there = (column >= 0) & (column < x.shape[3]) & (row >= 0) & (row < x.shape[2])
            share = np.abs(1 - dx - part[..., 0]) * np.abs(1 - dy - part[..., 1]) * there
            column, row = np.where(there, column, 0), np.where(there, row, 0)
            for n in range(x.shape[0]):
                y[n] += x[n][:, row[n], column[n]] * share[n]
    return y


def _pads(
    how: str | None, size: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int], pads: Any
) -> list[int]:
    """Padding of a convolution or pool, at the beginning of each axis and then at the end."""
    if how not in ("SAME_UPPER", "SAME_LOWER"):
        return list(pads or [0] * 2 * len(size))
    wholes = [
        max(0, (-(-n // s) - 1) * s + (k - 1) * d + 1 - n) for n, k, s, d in zip(size, kernel, strides, dilations, strict=True)
    ]
    less, more = [whole // 2 for whole in wholes], [whole - whole // 2 for whole in wholes]
    return less + more if how == "SAME_UPPER" else more + less


def _windows(
    x: np.ndarray, how: str | None, ceil_mode: int | None, dilations: Any, kernel: Any, pads: Any, strides: Any, fill: float
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Windows of a pool at each position, and padded ones: inside the input, and inside the input or its declared padding."""
    axes = len(kernel)
    strides, dilations = strides or [1] * axes, dilations or [1] * axes
    pads = _pads(how, x.shape[2:], kernel, strides, dilations, pads)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    more = [0] * axes
    if ceil_mode:
        for i in range(axes):
            whole = x.shape[2 + i] + pads[i] + pads[axes + i]
            count = -(-(whole - reach[i]) // strides[i]) + 1
            if (count - 1) * strides[i] >= x.shape[2 + i] + pads[i]:  # a window that would begin in the padding after
                count -= 1
            more[i] = max(0, (count - 1) * strides[i] + reach[i] - whole)
    beyond, ones = [0] * axes + more, np.ones((1, 1, *x.shape[2:]))
    inside = (_padded(_padded(ones, pads), beyond), _padded(_padded(ones, pads, 1.0), beyond))
    x = _padded(_padded(x, pads, fill), beyond, fill)
    view = np.lib.stride_tricks.sliding_window_view(x, reach, axis=tuple(range(2, 2 + axes)))
    places = tuple(slice(None, None, s) for s in strides)
    taps = tuple(slice(None, None, d) for d in dilations)
    return view[(slice(None), slice(None), *places, *taps)], inside


# ---- errors -------------------------------------------------------------------------------------------------------------


class Errors(NamedTuple):
    """The worst error as a share of the largest result, the rms error as one of the rms result; of several outputs the worst."""

    worst: float
    rms: float


def errors(got: Sequence[Any], want: Sequence[Any]) -> Errors:
    """Errors of results against float64; infinity where shapes, integers or the sets of finite values differ."""
    worst = rms = 0.0
    for g, w in zip(got, want, strict=True):
        g, w = np.asarray(g), np.asarray(w)
        if g.shape != w.shape:
            return Errors(math.inf, math.inf)
        if w.dtype.kind != "f":
            if not np.array_equal(g, w):
                return Errors(math.inf, math.inf)
            continue
        there = np.isfinite(w)
        if not np.array_equal(there, np.isfinite(g)):
            return Errors(math.inf, math.inf)
        if not there.any():
            continue
        apart, size = g[there].astype(np.float64) - w[there], w[there]
        worst = max(worst, float(np.abs(apart).max() / max(np.abs(size).max(), 1e-300)))
        rms = max(rms, float(np.sqrt((apart**2).mean() / max((size**2).mean(), 1e-300))))
    return Errors(worst, rms)


NEAR = 1e-4  # of the largest result: so near float32 results are where nothing in a network is badly conditioned
# Numbers of the smallest output: one probability may be near its float64 value by chance, so small outputs are looked at for more
# inputs, at most so many.
FEWEST, MOST_INPUTS = 256, 64


def several(feeds: Mapping[str, np.ndarray], count: int) -> list[dict[str, np.ndarray]]:
    """So many inputs of the same values: those given, then with their last axes rolled on."""
    return [
        {name: np.roll(x, k * (x.shape[-1] // count or 1), -1) if k and x.ndim else x for name, x in feeds.items()}
        for k in range(count)
    ]


def together(runs: Sequence[Sequence[Any]]) -> list[Any]:
    """The outputs of several runs, each as one array."""
    return list(runs[0]) if len(runs) == 1 else [np.stack(arrays) for arrays in zip(*runs, strict=True)]


def measured(model: Model, kept: Path | None = None) -> dict[str, Any]:
    """Errors of ours (default and strict) and of ONNX Runtime. `kept`: where the float64 results are, or are put."""
    import fastlayers as fl

    session = _onnxruntime(model)
    first = session.run(None, model.feeds)
    smallest = min((y.size for y in first if y.dtype.kind == "f" and y.size), default=FEWEST)
    feeds = several(model.feeds, max(1, min(MOST_INPUTS, -(-FEWEST // smallest))))
    if kept is not None and kept.exists():
        with np.load(kept) as file:
            want = [file[key] for key in file.files]
    else:
        want = together([evaluated(model.content, given) for given in feeds])
        if kept is not None:
            np.savez(kept, **{f"{i:03}": w for i, w in enumerate(want)})  # type: ignore[arg-type]
    found = {"onnxruntime": errors(together([session.run(None, given) for given in feeds]), want)}
    for precision in ("default", "strict"):
        loaded = fl.load(model.content, precision=precision)
        found[precision] = errors(together([list(loaded.run(given).values()) for given in feeds]), want)
    theirs = found["onnxruntime"]
    return {
        "network": model.name, "family": model.family, "near": min(e.worst for e in found.values()) <= NEAR, "inputs": len(feeds),
        **{name: {"worst": e.worst, "rms": e.rms} for name, e in found.items()},
        **{f"{name}_ratio": found[name].rms / theirs.rms if theirs.rms else None for name in ("default", "strict")},
    }  # fmt: skip


def _onnxruntime(model: Model) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    return onnxruntime.InferenceSession(model.content, options, providers=["CPUExecutionProvider"])
