"""What the tests of `conv` and `depthwise` share: cases with three space axes, their golden file, and how to run one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import fastlayers as fl
from fastlayers.kernels import dispatch
from fastlayers.kernels.table import PAD_MODES, Activation

IDENTITY = Activation(0)
RELU = Activation(1)
Place = Callable[[np.ndarray], np.ndarray]
# Is x, and is the result, channels-last?
Layout = tuple[bool, bool]
FIRST, LAST = (False, False), (True, True)


class Problem(NamedTuple):
    """A convolution; arrays channels-first with three space axes."""

    x: np.ndarray
    weight: np.ndarray
    bias: np.ndarray | None
    stride: tuple[int, ...] = (1, 1, 1)
    dilation: tuple[int, ...] = (1, 1, 1)
    groups: int = 1
    pads: tuple[int, ...] = (0, 0, 0, 0, 0, 0)
    mode: int = 0

    @property
    def out_shape(self) -> tuple[int, ...]:
        size = [
            (n + before + after - dilation * (k - 1) - 1) // stride + 1
            for n, k, stride, dilation, before, after in zip(
                self.x.shape[2:], self.weight.shape[2:], self.stride, self.dilation, self.pads[::2], self.pads[1::2], strict=True
            )
        ]
        return (self.x.shape[0], self.weight.shape[0], *size)

    @property
    def depthwise(self) -> bool:
        return self.weight.shape[1] == 1 and self.groups == self.x.shape[1]


def golden() -> list[tuple[Problem, np.ndarray]]:
    """Every case of goldens/conv.npz with its result."""
    with np.load(Path(__file__).parent.parent / "goldens" / "conv.npz") as file:
        cases = json.loads(str(file["cases"]))
        return [(_problem(case, file, i), _three_axes(file[f"{i}.y"])) for i, case in enumerate(cases)]


def random_problem(
    rng: np.random.Generator, x: tuple[int, ...], weight: tuple[int, ...], bias: bool = True, **rest: Any
) -> Problem:
    """Normal values in the given shapes, weights scaled so that outputs stay near 1."""
    fan_in = max(1, int(np.prod(weight[1:])))
    return Problem(
        rng.standard_normal(x).astype(np.float32),
        (rng.standard_normal(weight) / np.sqrt(fan_in)).astype(np.float32),
        rng.standard_normal(weight[0]).astype(np.float32) if bias else None,
        **rest,
    )


def run(
    kernel: str,
    problem: Problem,
    layout: Layout = FIRST,
    residual: np.ndarray | None = None,
    activation: Activation = IDENTITY,
    place: Place = np.ascontiguousarray,
    as_step: bool = False,
) -> np.ndarray:
    """Runs `conv` or `depthwise` of the current variant; `place` puts every array, NaN-filled outputs too, where it should be.

    `residual` and the result are channels-first whatever the layout that the kernel works on (`depthwise` has one for both).
    `as_step` runs a step, twice, after its weights' own object has gone.
    """
    p = problem
    bias = None if p.bias is None else place(p.bias)
    count = p.groups if kernel == "conv" else p.x.shape[1]
    packed = dispatch.kernel(f"{kernel}_pack")(place(p.weight), bias, p.stride, p.dilation, count)
    x, out = p.x, np.full(p.out_shape, np.nan, np.float32)
    x_last, out_last = layout
    if x_last:
        x = np.moveaxis(x, 1, -1)
    if out_last:
        out = np.moveaxis(out, 1, -1)
        residual = None if residual is None else np.moveaxis(residual, 1, -1)
    x, out = place(np.ascontiguousarray(x)), place(np.ascontiguousarray(out))
    residual = None if residual is None else place(np.ascontiguousarray(residual))
    x.flags.writeable = False
    flags = layout if kernel == "conv" else (x_last,)
    if as_step:
        shape = None if residual is None else residual.shape
        step = dispatch.step(kernel)(x.shape, packed, out.shape, p.pads, p.mode, *flags, shape, activation)  # type: ignore[misc]
        del packed
        step(x, out, residual)
        step(x, out, residual)
    else:
        dispatch.kernel(kernel)(x, packed, out, p.pads, p.mode, *flags, residual, activation)
    return np.moveaxis(out, -1, 1) if out_last else out


def reference(kernel: str, problem: Problem, **options: Any) -> np.ndarray:
    """What the numpy reference gives for the same problem."""
    with fl.kernels.use("reference"):
        return run(kernel, problem, **options)


def bits(x: np.ndarray) -> np.ndarray:
    """x as integers, so that equality tells 0 from -0 and compares NaN."""
    return x if x.dtype.kind == "O" else np.ascontiguousarray(x).view(f"i{x.itemsize}")


def but_for_nan(x: np.ndarray) -> np.ndarray:
    """The bits of x, every NaN having the same: which of two that meet is the result, the order of operands decides, and that
    differs between a loop's body and what is left after it.
    """
    found = bits(x)
    return np.where(np.isnan(x), bits(np.full(1, np.nan, x.dtype)), found) if x.dtype.kind == "f" else found


# NaN of both signs and with payloads, infinities and zeros, by their bits: copying a float might change those of a NaN.
_EXTREME = np.array([0x7FC00000, 0xFFC00000, 0x7FC01234, 0x7F800000, 0xFF800000, 0, 0x80000000, 0x3F800000], np.uint32)


def with_extremes(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Float32 values of which a third are no numbers, infinite, zeros or 1."""
    found = np.where(rng.random(x.shape) < 0.3, rng.choice(_EXTREME, x.shape), np.ascontiguousarray(x).view(np.uint32))
    return np.asarray(found, np.uint32).view(np.float32)


def _problem(case: dict[str, Any], file: Any, i: int) -> Problem:
    axes = len(case["w"]) - 2
    ones = [1] * axes
    pads = [p for pair in case.get("pads", [[0, 0]] * axes) for p in pair]
    return Problem(
        _three_axes(file[f"{i}.x"]),
        _three_axes(file[f"{i}.w"]),
        file.get(f"{i}.b"),
        (1,) * (3 - axes) + tuple(case.get("stride", ones)),
        (1,) * (3 - axes) + tuple(case.get("dilation", ones)),
        case.get("groups", 1),
        (0,) * (6 - len(pads)) + tuple(pads),
        PAD_MODES[case.get("mode", "zeros")],
    )


def _three_axes(array: np.ndarray) -> np.ndarray:
    """Adds leading space axes of size 1 to (n, c, ...)."""
    return array.reshape(*array.shape[:2], *(1,) * (5 - array.ndim), *array.shape[2:])
