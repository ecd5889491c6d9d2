"""Convolutions, pools, pads and resampling, as they are drawn: a line for each layer and function."""

from __future__ import annotations

from typing import Any

from .draw import Call, Draw, Table

__all__ = ["TABLE"]

LETTERS = {1: "1d", 2: "2d", 3: "3d"}


def axes(kind: str) -> int:
    """Of space, by the name."""
    return int(kind[-2])


def _kernel(d: Draw, n: int) -> Any:
    return d.each(n, lambda: d.some(1, 1, 2, 3, 3, 3, 4, 5, *((7, 11, 16) if n == 1 else ())))


def _stride(d: Draw, n: int) -> Any:
    return d.each(n, lambda: d.some(1, 1, 1, 2, 2, 3, 5, *([0, -1] if d.chance(0.02) else [])))


def _dilation(d: Draw, n: int) -> Any:
    return d.each(n, lambda: d.some(1, 1, 1, 2, 3, 5, *([0] if d.chance(0.02) else [])))


def _image(d: Draw, n: int, channels: int) -> Any:
    shape = (channels, *d.space(n))
    return d.array(*shape) if d.chance(0.12) else d.array(d.some(0, 1, 1, 2, 2, 3) if d.chance(0.5) else 1, *shape)


def _channels(d: Draw, n: int) -> tuple[int, int, int]:
    """Channels in and out, and groups."""
    most = 65 if n < 3 else 24
    c = d.size(most)
    groups = d.some(1, 1, 1, 1, c or 1, d.divisor(c))
    out = groups * d.some(1, 2, 3) if groups > 1 else d.size(most)
    if d.chance(0.02):
        groups = d.some(2, 3, 0, -1)
    return c, out, groups


def conv(d: Draw, kind: str) -> Call:
    n = axes(kind)
    c, out, groups = _channels(d, n)
    kernel = _kernel(d, n)
    padding: Any = d.each(n, lambda: d.some(0, 0, 1, 1, 2, 3, 6, *([-1] if d.chance(0.02) else [])))
    padding = d.some(padding, padding, padding, "same", "valid") if d.chance(0.97) else d.some("SAME", "full", (1, 2))
    stride = 1 if padding == "same" and d.chance(0.9) else _stride(d, n)
    own = {"stride": stride, "padding": padding, "dilation": _dilation(d, n)}
    own = own | {"groups": groups} if d.chance(0.8) else d.few(**own) | {"groups": groups}
    x = _image(d, n, c if d.chance(0.98) else c + 1)
    if kind[0] == "C":
        mode = d.few(0.5, padding_mode=d.some("zeros", "reflect", "replicate", "circular"))
        return d.layer(
            kind, {"in_channels": c, "out_channels": out, "kernel_size": kernel, **own, **d.few(bias=d.chance(0.5)), **mode}, x
        )
    k = (kernel,) * n if isinstance(kernel, int) else kernel
    weight = d.weights(out, c // max(groups, 1), *k)
    return d.function(kind, x, weight, **({"bias": d.weights(out)} if d.chance(0.5) else d.few(bias=None)), **own)


def conv_transpose(d: Draw, kind: str) -> Call:
    n = axes(kind)
    c, out, groups = _channels(d, n)
    kernel = _kernel(d, n)
    own = d.few(0.6, stride=_stride(d, n), padding=d.each(n, lambda: d.some(0, 0, 1, 2, 3)), dilation=_dilation(d, n))
    own |= d.few(0.4, output_padding=d.each(n, lambda: d.some(0, 0, 1, 1, 2, 3)))
    x = _image(d, n, c)
    if kind[0] == "C":
        return d.layer(
            kind,
            {"in_channels": c, "out_channels": out, "kernel_size": kernel, **own, "groups": groups, **d.few(bias=d.chance(0.5))},
            x,
        )
    k = (kernel,) * n if isinstance(kernel, int) else kernel
    weight = d.weights(c, out // max(groups, 1), *k)
    return d.function(kind, x, weight, **({"bias": d.weights(out)} if d.chance(0.5) else {}), **own, groups=groups)


def _window(d: Draw, n: int) -> dict[str, Any]:
    made = {"kernel_size": _kernel(d, n)}
    if d.chance(0.6):
        made["stride"] = d.some(None, _stride(d, n), _stride(d, n))
    if d.chance(0.5):
        k = made["kernel_size"]
        least = min(k) if isinstance(k, tuple) else k
        made["padding"] = d.each(n, lambda: d.int(0, least // 2 + d.chance(0.05)))
    return made


def _called(d: Draw, kind: str, own: dict[str, Any], n: int) -> Call:
    x = _image(d, n, d.size(24))
    return d.layer(kind, own, x) if kind[0].isupper() else d.function(kind, x, **own)


def max_pool(d: Draw, kind: str) -> Call:
    n = axes(kind)
    more = d.few(0.4, dilation=_dilation(d, n), ceil_mode=d.chance(0.6), return_indices=d.chance(0.7))
    return _called(d, kind, _window(d, n) | more, n)


def avg_pool(d: Draw, kind: str) -> Call:
    n = axes(kind)
    more = d.few(0.4, ceil_mode=d.chance(0.7), count_include_pad=d.chance(0.3))
    if n > 1:
        more |= d.few(0.2, divisor_override=d.some(None, 1, 3, 7, -2, 0))
    return _called(d, kind, _window(d, n) | more, n)


def lp_pool(d: Draw, kind: str) -> Call:
    n = axes(kind)
    own = {"norm_type": d.some(1, 2, 2, 3, 1.5, 4, 0.5, float("inf"))} | _window(d, n) | d.few(0.4, ceil_mode=d.chance(0.7))
    own.pop("padding", None)
    return _called(d, kind, own, n)


def adaptive(d: Draw, kind: str) -> Call:
    n = axes(kind)

    def size() -> Any:
        return d.some(None, 0, 1, 2, 3, 5, 7, 8, 11, 20) if n > 1 else d.some(0, 1, 2, 3, 5, 7, 8, 11, 20, 40)

    own = {"output_size": d.each(n, size)}
    return _called(d, kind, own | (d.few(return_indices=d.chance(0.7)) if "ax" in kind else {}), n)


def _pads(d: Draw, count: int) -> tuple[int, ...]:
    return tuple(d.some(0, 0, 1, 1, 2, 3, -1, *([9, -3] if d.chance(0.1) else [])) for _ in range(count))


def pad_layer(d: Draw, kind: str) -> Call:
    n = axes(kind)
    own: dict[str, Any] = {"padding": d.int(0, 3) if d.chance(0.4) else _pads(d, 2 * n)}
    if kind.startswith("Constant"):
        own["value"] = d.some(0.0, 1, -2.5, float("inf"), float("nan"))
    return d.layer(kind, own, _image(d, n, d.size(9)))


def pad(d: Draw, kind: str) -> Call:
    mode = d.some("constant", "reflect", "replicate", "circular")
    n = d.int(1, 3)
    x = _image(d, n, d.size(9)) if mode != "constant" else d.array(*(d.size(9) for _ in range(d.int(1, 5))))
    count = 2 * d.int(1, 4) if mode == "constant" else 2 * n
    more = d.few(value=d.some(0.0, 1.5, float("nan"))) if mode == "constant" else {}
    return d.function(kind, x, pad=_pads(d, count), **({"mode": mode} if mode != "constant" else d.few(mode=mode)), **more)


def resample(d: Draw, kind: str) -> Call:
    n = d.int(1, 3)
    mode = d.some("nearest", "nearest-exact", "area", *[("linear", "bilinear", "trilinear")[n - 1]] * 3, *["bicubic"] * (n == 2))
    own: dict[str, Any] = {}
    if d.chance(0.5):
        own["size"] = d.each(n, lambda: d.some(1, 2, 3, 5, 8, 13, 20, *([0] if d.chance(0.05) else [])))
    else:
        own["scale_factor"] = d.each(n, lambda: d.some(2, 2.0, 3, 0.5, 1.5, 0.3, 1.0, 1.3, 2.7, 0.99))
        own |= d.few(0.3, recompute_scale_factor=d.some(None, True, False))
    if mode != "nearest" or d.chance(0.5):
        own["mode"] = mode
    if "linear" in mode or mode == "bicubic":
        own |= d.few(align_corners=d.chance(0.5))
    x = d.array(d.size(3), d.size(9), *d.space(n))
    return d.layer(kind, own, x) if kind[0] == "U" else d.function(kind, x, **own)


def shuffle(d: Draw, kind: str) -> Call:
    r = d.int(1, 4)
    up = "nshuffle" not in kind.lower()
    lead = tuple(d.size(3) for _ in range(d.some(0, 1, 1, 2)))
    c, h, w = d.size(5), d.size(9), d.size(9)
    off = d.chance(0.05)
    shape = (*lead, c * r * r + off, h, w) if up else (*lead, c, h * r + off, w * r)
    own = {"upscale_factor" if up else "downscale_factor": r}
    return d.layer(kind, own, d.array(*shape)) if kind[0] == "P" else d.function(kind, d.array(*shape), **own)


_BY_AXES = {
    "Conv{}": conv, "conv{}": conv, "ConvTranspose{}": conv_transpose, "conv_transpose{}": conv_transpose,
    "MaxPool{}": max_pool, "max_pool{}": max_pool, "AvgPool{}": avg_pool, "avg_pool{}": avg_pool,
    "LPPool{}": lp_pool, "lp_pool{}": lp_pool, "AdaptiveAvgPool{}": adaptive, "adaptive_avg_pool{}": adaptive,
    "AdaptiveMaxPool{}": adaptive, "adaptive_max_pool{}": adaptive, "CircularPad{}": pad_layer, "ConstantPad{}": pad_layer,
    "ReflectionPad{}": pad_layer, "ReplicationPad{}": pad_layer, "ZeroPad{}": pad_layer,
}  # fmt: skip
TABLE: Table = {name.format(LETTERS[n]): rule for name, rule in _BY_AXES.items() for n in LETTERS} | {
    "pad": pad, "Upsample": resample, "interpolate": resample, "PixelShuffle": shuffle, "PixelUnshuffle": shuffle,
    "pixel_shuffle": shuffle, "pixel_unshuffle": shuffle,
}  # fmt: skip
