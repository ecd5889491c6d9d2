"""Dilated convolutions as phases: the plan covers every number once, results are the direct ones, and what the choice says."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.calls import conv_dilated as module
from fastlayers.calls.conv_costs import choose_phases
from fastlayers.kernels.winograd_points import tiles_of

from .space import bits

ONES = (1, 1, 1)
# height, width, kernel, dilation, dilations of padding before (None: half of what the kernel reaches)
GEOMETRIES = (
    (28, 28, (3, 3), (2, 2), None), (29, 31, (3, 3), (2, 3), None), (13, 7, (3, 3), (12, 7), None), (5, 5, (3, 3), (5, 4), None),
    (1, 40, (1, 3), (1, 8), None), (1, 37, (1, 7), (1, 4), 5), (40, 3, (5, 1), (6, 1), 0), (9, 16, (3, 3), (1, 4), None),
    (17, 12, (5, 5), (4, 2), None), (6, 6, (1, 3), (9, 2), 2), (2, 30, (3, 3), (2, 2), 1),
)  # fmt: skip


@pytest.fixture(autouse=True)
def _planned_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans are kept per shape; these tests change what they depend on."""
    monkeypatch.setattr(module, "_phases", module._phases.__wrapped__)


def forced(monkeypatch: pytest.MonkeyPatch, wanted: int = 0) -> None:
    """Phases wherever there are some, with tiles of 2 or of `wanted`."""
    monkeypatch.setattr(module, "choose_phases", lambda *a: wanted if wanted in tiles_of(a[5]) else 2)


def geometry(case: tuple[Any, ...]) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Kernel, dilation and pads along three axes, such that the result has the input's size."""
    _, _, kernel, dilation, before = case
    pads = [0, 0]
    for k, d in zip(kernel, dilation, strict=True):
        first = d * ((k - 1) // 2 if before is None or k == 1 else min(before, k - 1))
        pads += [first, d * (k - 1) - first]
    return (1, *kernel), (1, *dilation), tuple(pads)


def call(case: tuple[Any, ...], x: np.ndarray, weight: np.ndarray, bias: np.ndarray, last: bool, **more: Any) -> Any:
    """The convolution of this geometry as a compiled model, its inputs channels-first or last."""
    _, dilation, pads = geometry(case)
    padding = ((pads[2], pads[3]), (pads[4], pads[5]))
    given = np.ascontiguousarray(x.transpose(0, 2, 3, 1)) if last else x
    options = {"dilation": dilation[1:], "padding": padding, "layout": "nhwc" if last else "nchw", **more}
    model = fl.compile(lambda x: fl.functional.conv2d(x, weight, bias, **options), fl.graph.Input("x", given.shape))
    y, names = model(given), model.kernel_names({"x": given})
    np.testing.assert_array_equal(bits(y), bits(fl.functional.conv2d(given, weight, bias, **options)))
    return (y.transpose(0, 3, 1, 2) if last else y), names


def operands(case: tuple[Any, ...], n: int = 2, c: int = 19, o: int = 17, groups: int = 1) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(3)
    shapes = ((n, c, *case[:2]), (o, c // groups, *case[2]), (o,))
    return tuple(rng.standard_normal(shape).astype(np.float32) for shape in shapes)


def test_phases_cover_inputs_and_results_once(monkeypatch: pytest.MonkeyPatch) -> None:
    forced(monkeypatch)
    for case in GEOMETRIES:
        kernel, dilation, pads = geometry(case)
        x, out = (2, 1, *case[:2], 3), (2, 1, *case[:2], 5)
        found = module.dilated_phases(x, (5, 3, *kernel), out, 1, ONES, dilation, pads, 0, 0)
        if found is None:  # a dilation beyond the size
            assert any(d > size and k > 1 for d, size, k in zip(dilation[1:], case[:2], kernel[1:], strict=True))
            continue
        assert (found.x_size, found.out_size) == (math.prod(x), math.prod(out))
        seen_in, seen_out = np.zeros(found.x_size, int), np.zeros(found.out_size, int)
        for part in found.parts:
            seen_in[part.x_start : part.x_start + math.prod(part.x_shape)] += 1
            steps = part.back.out_strides
            at = sum(np.multiply.outer(np.arange(n), s).reshape((-1,) + (1,) * (5 - i))
                     for i, (n, s) in enumerate(zip(part.back.shape, steps, strict=True)))  # fmt: skip
            seen_out[(part.back.out_offset + at).ravel()] += 1
        assert (seen_in == 1).all()
        assert (seen_out == 1).all()


@pytest.mark.without("reference")
@pytest.mark.parametrize("wanted", [2, 4])
def test_results_are_the_direct_ones(variant: str, monkeypatch: pytest.MonkeyPatch, wanted: int) -> None:
    """Of several groups and images, in both layouts, with an activation; the same bits in every batch and on every thread."""
    for i, case in enumerate(GEOMETRIES):
        groups, more = ((1, 20, 18), (2, 18, 16), (1, 33, 7))[i % 3], {"activation": (None, "relu", "silu")[i % 3]}
        x, weight, bias = operands(case, 3, groups[1], groups[2], groups[0])
        more["groups"] = groups[0]
        with monkeypatch.context() as patch:
            patch.setattr(module, "tiles_of", lambda kernel: ())
            right, direct = call(case, x, weight, bias, last=False, **more)
        assert "winograd" not in direct
        with monkeypatch.context() as patch:
            forced(patch, wanted)
            results = [call(case, x, weight, bias, last, **more) for last in (False, True)]
            alone, _ = call(case, x[1:2].copy(), weight, bias, last=False, **more)
        reachable = all(d <= size or k == 1 for d, size, k in zip(case[3], case[:2], case[2], strict=True))
        for y, names in results:
            assert ("winograd" in names) == reachable
            np.testing.assert_allclose(y, right, rtol=0, atol=3e-5 * np.abs(right).max())
            np.testing.assert_array_equal(bits(y[1:2]), bits(alone))


@pytest.mark.without("reference")
def test_not_finite_numbers_reach_what_reads_them(variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tile shares them among its outputs, but no phase has them from another one."""
    forced(monkeypatch)
    case = GEOMETRIES[0]
    x, weight, bias = operands(case, 1)
    x[0, 3, 10, 11] = np.nan
    y, names = call(case, x, weight, bias, last=True)
    assert "winograd" in names
    spoilt = np.isnan(y[0]).any(0)
    assert spoilt[[8, 10, 12]][:, [9, 11, 13]].all()
    assert not spoilt[1::2].any()
    assert not spoilt[:, 0::2].any()


@pytest.mark.without("reference")
def test_layers_and_programs_agree_and_strict_is_direct(variant: str) -> None:
    """With the choice as it is; a residual, a stride, another mode of padding and padding that is no multiple stay direct."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((1, 64, 29, 28)).astype(np.float32)
    layer = fl.Conv2d(64, 64, 3, padding=2, dilation=2)
    tensors = {name: rng.standard_normal(shape) for name, shape in layer.tensor_shapes().items()}
    layer.load_state_dict(tensors)
    model = fl.compile(layer, x)
    assert model.kernel_names({"input_0": x}) >= {"winograd", "copy"}
    for _ in range(3):
        np.testing.assert_array_equal(bits(layer(x)), bits(model(x)))
    w, b = (tensors[name].astype(np.float32) for name in ("weight", "bias"))
    for options in ({"residual": model(x)}, {"stride": 2}, {"padding_mode": "reflect"}, {"padding": 1}, {"padding": 3}):
        given = {"dilation": 2, "padding": 2, **options}
        other = fl.compile(lambda x, given=given: fl.functional.conv2d(x, w, b, **given), x)
        assert "winograd" not in other.kernel_names({"input_0": x})
    strict = fl.compile(layer, x, precision="strict")
    assert strict.kernel_names({"input_0": x}) == {"conv"}


def test_the_choice() -> None:
    """Large maps in phases, phases of a few pixels, and taps of which most are in the padding, directly; no channels, nothing."""
    assert choose_phases([(4, 14, 14)], 0.95, (1, 28, 28), 64, 64, (1, 3, 3), 1, 2) == 4
    assert choose_phases([(4, 14, 14)], 0.12, (1, 28, 28), 64, 64, (1, 3, 3), 1, 2) == 0
    assert choose_phases([(196, 2, 2)], 0.5, (1, 28, 28), 64, 64, (1, 3, 3), 1, 0) == 0
    for c, o in itertools.product((0, 1, 7), (0, 64)):
        assert choose_phases([(4, 14, 14)], 1, (1, 28, 28), c, o, (1, 3, 3), 1, 0) == 0
