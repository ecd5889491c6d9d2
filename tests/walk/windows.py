"""Operations over windows in one, two and three spatial axes, and the choices between their algorithms, each of which is forced.

A choice is a function or a number of a module, by its dotted name: to add one, add a line to `CHOICES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from typing import Any

import numpy as np
import pytest

from fastlayers.kernels.winograd_points import tiles_of

from .maker import Maker, Place, Refused

__all__ = ["CHOICES", "KINDS", "choice", "drawn"]


def _tile(side: int) -> Callable[..., int]:
    def choose(shape: tuple[int, ...], _in: int, _out: int, kernel: tuple[int, ...], *more: Any) -> int:
        return side if min(shape) > 0 and side in tiles_of(kernel, more[2]) else 0

    return choose


# What stands in for what chooses. The first is the engine's own choice.
CHOICES: dict[str, dict[str, Any]] = {
    "own": {},
    "direct": {"fastlayers.calls.conv_choice.choose": _tile(0)},
    "Winograd 2": {"fastlayers.calls.conv_choice.choose": _tile(2)},
    "Winograd 4": {"fastlayers.calls.conv_choice.choose": _tile(4)},
    "Winograd 6": {"fastlayers.calls.conv_choice.choose": _tile(6)},
    "column and row": {"fastlayers.passes.conv_separable.two_passes_pay": lambda *_: True},
    "one pass": {"fastlayers.passes.conv_separable.two_passes_pay": lambda *_: False},
    "phases": {"fastlayers.calls.conv_transpose._FEWEST": 0},
    "no phases": {"fastlayers.calls.conv_transpose._FEWEST": 1 << 60},
}
# The operations that a choice can matter to; all, if it is not here.
AFFECTS = {
    "direct": ("conv",), "Winograd 2": ("conv",), "Winograd 4": ("conv",), "Winograd 6": ("conv",),
    "column and row": ("separable",),
    "one pass": ("separable",), "phases": ("conv_transpose",), "no phases": ("conv_transpose",),
}  # fmt: skip


@contextmanager
def choice(name: str) -> Iterator[None]:
    """Forces a choice."""
    with pytest.MonkeyPatch.context() as patch:
        for target, value in CHOICES[name].items():
            patch.setattr(target, value)
        yield


def _shape(m: Maker, axes: int) -> str:
    """An input with sizes that are open on every spatial axis."""
    return m.input("x", "n", int(m.pick(1, 2, 3, 4, 8, 16)), *("d", "h", "w")[3 - axes :])


def _channels(m: Maker, x: str) -> int:
    return m.sizes(x, 1)[0]


def _window(m: Maker, axes: int, kernel: tuple[int, ...], dilated: bool = True) -> dict[str, Any]:
    """Strides, dilations and pads for a kernel."""
    dilations = tuple(int(m.pick(1, 1, 1, 2)) if dilated else 1 for _ in range(axes))
    reach = [(k - 1) * d for k, d in zip(kernel, dilations, strict=True)]
    before, after = ([int(m.random.integers(r + 1)) for r in reach] for _ in range(2))
    if m.chance(0.5):
        before = after = [r // 2 for r in reach]
    found: dict[str, Any] = {"pads": (*before, *after)}
    if m.chance(0.4):
        found["strides"] = tuple(int(m.pick(1, 2, 3)) for _ in range(axes))
    if max(dilations) > 1:
        found["dilations"] = dilations
    return found


def _kernel(m: Maker, axes: int, sizes: tuple[int, ...] = (1, 2, 3, 3, 5)) -> tuple[int, ...]:
    return tuple(int(m.pick(*sizes)) for _ in range(axes))


def conv(m: Maker, axes: int) -> list[str]:
    """Groups of any number; half of the kernels are those that Winograd's algorithm can do."""
    x = _shape(m, axes)
    channels = _channels(m, x)
    if m.chance(0.5):
        length = int(m.pick(3, 3, 5, 7))
        kernel = (*(1,) * (axes - 2), length, length)[-axes:]
        if m.chance(0.4) or length == 7:  # along one axis
            kernel = tuple(length if i == axes - 1 else 1 for i in m.random.permutation(axes))
        found: dict[str, Any] = {"pads": tuple(int(m.random.integers(k // 2 + 1)) for k in kernel) * 2}
        return m.node("Conv", x, m.weights(int(m.pick(1, 5, 16, 17)), channels, *kernel), **found)
    groups = int(m.pick(1, channels, *(g for g in (2, 4) if channels % g == 0)))
    outputs, kernel = groups * int(m.pick(1, 2, 3)), _kernel(m, axes)
    bias = m.weights(outputs) if m.chance(0.5) else None
    found = {} if m.chance(0.9) else {"auto_pad": m.pick("SAME_UPPER", "SAME_LOWER", "VALID")}
    found = found or _window(m, axes, kernel)
    return m.node("Conv", x, m.weights(outputs, channels // groups, *kernel), bias, group=groups, **found)


def separable(m: Maker, axes: int) -> list[str]:
    """A kernel a channel that is a column times a row."""
    x = _shape(m, axes)
    channels, kernel = _channels(m, x), _kernel(m, axes, (1, 3, 7, 8))
    parts = [m.random.standard_normal((channels, 1, *(k if i == j else 1 for j in range(axes)))) for i, k in enumerate(kernel)]
    weight = reduce(np.multiply, parts).astype(np.float32)
    found = _window(m, axes, kernel)
    return m.node("Conv", x, m.constant(weight / np.float32(np.prod(kernel))), m.weights(channels), group=channels, **found)


def conv_transpose(m: Maker, axes: int) -> list[str]:
    """With and without groups, a bias, cut edges, added ones, holes."""
    x = _shape(m, axes)
    channels = _channels(m, x)
    groups = int(m.pick(1, channels))
    each, kernel = int(m.pick(1, 2, 4)) if groups == 1 else int(m.pick(1, 1, 2)), _kernel(m, axes, (1, 2, 3, 4))
    strides = tuple(int(m.pick(1, 2, 3)) for _ in range(axes))
    found: dict[str, Any] = {"strides": strides, "group": groups}
    if m.chance(0.5):
        found["output_padding"] = tuple(int(m.random.integers(s)) for s in strides)
    if m.chance(0.3):
        found["dilations"] = tuple(int(m.pick(1, 2)) for _ in range(axes))
    if m.chance(0.5):
        found["pads"] = tuple(int(m.random.integers(k)) for k in kernel) * 2
    bias = m.weights(groups * each) if m.chance(0.5) else None
    return m.node("ConvTranspose", x, m.weights(channels, each, *kernel, scale=0.3), bias, **found)


def pool(m: Maker, axes: int) -> list[str]:
    """Largest, mean and norm; the places of the largest."""
    x, kernel = _shape(m, axes), _kernel(m, axes)
    op = m.pick("MaxPool", "AveragePool", "LpPool")
    found = {"kernel_shape": kernel, **_window(m, axes, kernel)}
    found["pads"] = tuple(min(p, k - 1) for p, k in zip(found["pads"], kernel * 2, strict=True))
    if m.chance(0.3):
        found["ceil_mode"] = 1
    if op == "AveragePool" and m.chance(0.5):
        found["count_include_pad"] = 1
    outputs = 2 if op == "MaxPool" and "dilations" not in found and m.chance(0.3) else 1
    return m.node(op, x, outputs=outputs, **found)


def global_pool(m: Maker, axes: int) -> list[str]:
    """One result a channel, or bins."""
    x = _shape(m, axes)
    if m.chance(0.4):
        sizes = tuple(int(m.pick(0, 1, 2, 3)) for _ in range(axes))
        return m.node("AdaptivePool", x, sizes=sizes, reduce=m.pick("mean", "max"))
    return m.node(m.pick("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"), x)


def quantized(m: Maker, axes: int) -> list[str]:
    """Integers, of which sums are exact."""
    x = m.input("x", "n", int(m.pick(1, 2, 3, 4, 8)), *("d", "h", "w")[3 - axes :], low=0, high=256)
    channels = _channels(m, x)
    groups, kernel = int(m.pick(1, channels)), _kernel(m, axes, (1, 2, 3))
    outputs = groups * int(m.pick(1, 2))
    weight = m.constant(m.random.integers(-128, 128, (outputs, channels // groups, *kernel)).astype(np.int8))
    image = m.one("Cast", x, to=2)
    found = {"group": groups, **_window(m, axes, kernel)}
    zero, none = m.constant(np.uint8(m.pick(0, 7, 128))), m.constant(np.int8(0))
    if m.chance(0.5):
        return m.node("ConvInteger", image, weight, zero, none, exact=True, **found)
    scales = [m.constant(np.float32(s)) for s in (0.02, 0.01, 0.5)]
    bias = m.constant(m.random.integers(-500, 500, outputs).astype(np.int32)) if m.chance(0.5) else None
    inputs = (image, scales[0], zero, weight, scales[1], none, scales[2], m.constant(np.uint8(100)), bias)
    return m.node("QLinearConv", *inputs, exact=True, **found)


def resize(m: Maker, axes: int) -> list[str]:
    """By factors and to sizes, in every mode."""
    x = _shape(m, axes)
    mode = m.pick("nearest", "linear", "cubic") if axes < 3 else m.pick("nearest", "linear")
    places = m.pick("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
    found = {"mode": mode, "coordinate_transformation_mode": places, "antialias": int(m.chance(0.2) and mode != "nearest")}
    if m.chance(0.5):
        factors = [float(m.pick(0.5, 1, 1.5, 2, 3)) for _ in range(axes)]
        return m.node("Resize", x, None, m.constant(np.array([1, 1, *factors], np.float32)), **found)
    sizes = m.one("Concat", m.one("Shape", x, start=0, end=2), m.ints(*(int(m.pick(1, 3, 7)) for _ in range(axes))), axis=0)
    return m.node("Resize", x, None, None, sizes, **found)


def pad(m: Maker, axes: int) -> list[str]:
    """Constants, edges, reflections, around."""
    x = _shape(m, axes)
    mode = m.pick("constant", "edge", "reflect", "wrap")
    pads = m.ints(*(0, 0, *(int(m.random.integers(3)) for _ in range(axes))) * 2)
    return m.node("Pad", x, pads, m.constant(np.float32(0.5)), mode=mode)


def columns(m: Maker, axes: int) -> list[str]:
    """Columns added up to images."""
    kernel, image = _kernel(m, axes, (1, 2, 3)), tuple(int(m.pick(3, 5, 6)) for _ in range(axes))
    blocks = int(np.prod([i - k + 1 for i, k in zip(image, kernel, strict=True)]))
    x = m.input("x", "n", 2 * int(np.prod(kernel)), blocks)
    return m.node("Col2Im", x, m.ints(*image), m.ints(*kernel))


def layers(m: Maker, axes: int) -> list[str]:
    """Several that a pass joins, or whose layout one changes: a convolution, an activation, a residual, a pool."""
    x = _shape(m, axes)
    channels, kernel = _channels(m, x), _kernel(m, axes, (1, 3, 3))
    pads = tuple(k // 2 for k in kernel) * 2
    a = m.one("Relu", m.one("Conv", x, m.weights(16, channels, *kernel), m.weights(16), pads=pads))
    b = m.one("Add", a, m.one("Conv", a, m.weights(16, 16, *(1,) * axes)))
    c = m.one("Conv", b, m.weights(16, 16, *kernel), m.weights(16), pads=pads)
    d = m.one("Relu", m.one("Add", c, b))
    return [d, m.one("MaxPool", d, kernel_shape=(2,) * axes, pads=(0,) * axes + (1,) * axes), m.one("GlobalAveragePool", d)]


KINDS: tuple[Callable[[Maker, int], list[str]], ...] = (
    conv, separable, conv_transpose, pool, global_pool, quantized, resize, pad, columns, layers,
)  # fmt: skip


def affected(name: str, kind: Callable[..., Any]) -> bool:
    """Whether a choice can matter to a kind of operation."""
    return name not in AFFECTS or kind.__name__ in (*AFFECTS[name], "layers")


def drawn(kind: Callable[[Maker, int], list[str]], axes: int, seed: int) -> tuple[Maker, list[str]]:
    """An operation of a seed, at three places."""
    for attempt in range(20):
        random = np.random.default_rng([axes, seed, attempt])
        places: list[Place] = [
            {"n": int(random.integers(1, 3)), **{s: int(random.choice([1, 2, 3, 4, 5, 6, 7, 9, 12])) for s in "dhw"}}
            for _ in range(3)
        ]
        m = Maker(1000 * seed + 10 * attempt + axes, places, (), 1 << 20, 1e6)
        try:
            return m, kind(m, axes)
        except Refused:
            continue
    raise Refused(f"{kind.__name__} of {axes} axes, seed {seed}")
