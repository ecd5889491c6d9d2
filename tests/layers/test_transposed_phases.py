"""Depthwise transposed convolutions as several depthwise ones: the bits of the kernel that makes them in one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastlayers as fl
import fastlayers.functional as F
from fastlayers.calls import conv_transpose as transposed_phases

from ..goldens.front_cases import arrays
from ..graph.asked import asked

# channels, multiplier, size, kernel, stride, padding, output padding, dilation
PLACES: list[tuple[int, int, tuple[int, int], int, Any, Any, Any, int]] = [
    (3, 1, (5, 7), 4, 2, 1, 0, 1),
    (3, 2, (5, 7), 3, 2, 1, 1, 1),
    (2, 1, (4, 5), 3, 2, 1, 0, 1),  # phases of different sizes
    (4, 1, (6, 5), 3, 1, 0, 0, 2),
    (2, 3, (3, 4), 5, (3, 2), (2, 0), (2, 1), 1),
    (2, 1, (7, 3), 6, 3, 5, 0, 2),
    (2, 1, (1, 1), 8, 4, 2, 3, 1),
    (3, 1, (5, 4), 2, 2, 0, 0, 1),
]
ALONE = [
    (3, 1, (5, 4), 2, 3, 0, 0, 1),
    (2, 3, (3, 4), 5, (3, 2), (4, 0), (2, 1), 1),
]  # phases without a tap, or that begin after the first input


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results of any size go this way."""
    monkeypatch.setattr(transposed_phases, "_FEWEST", 0)


@pytest.mark.parametrize("place", PLACES, ids=str)
@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
def test_phases_give_the_bits_of_the_kernel(
    place: Any, last: bool, variant: str, threads: int, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    c, m, size, k, stride, padding, extra, dilation = place
    x, w, b = arrays(str(place), (2, c, *size), (c, m, k, k), (c * m,))
    given: dict[str, Any] = {
        "stride": stride, "padding": padding, "output_padding": extra, "dilation": dilation, "groups": c, "activation": "silu",
    }  # fmt: skip
    if last:
        given["layout"], x = "nhwc", np.ascontiguousarray(np.moveaxis(x, 1, -1))
    with monkeypatch.context() as patch:
        called = asked(patch)
        got = F.conv_transpose2d(x, w, b, **given)
    assert "depthwise" in called and "conv_transpose" not in called
    model = fl.compile(lambda x: F.conv_transpose2d(x, w, b, **given), x, require_native=variant != "reference")
    compiled = model(x)
    assert "depthwise" in model.summary() or variant == "reference"
    monkeypatch.setattr(transposed_phases.Phases, "plan", lambda *_: None)
    want = F.conv_transpose2d(x, w, b, **given)
    if variant in ("reference", "aot/x86_v1"):  # sums of numpy's have no order; without a fused multiply-add code may round twice
        for one in (got, compiled):
            np.testing.assert_allclose(one, want, rtol=0, atol=4e-6 * max(1.0, float(np.abs(want).max())))
    else:
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(compiled, want)
    with fl.kernels.use("reference"):
        oracle = F.conv_transpose2d(x, w, b, **given)
    np.testing.assert_allclose(got, oracle, rtol=0, atol=4e-6 * max(1.0, float(np.abs(oracle).max())))


@pytest.mark.parametrize("place", ALONE, ids=str)
def test_what_the_kernel_does_itself(place: Any, small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    c, m, size, k, stride, padding, extra, dilation = place
    x, w = arrays(str(place), (1, c, *size), (c, m, k, k))
    given: dict[str, Any] = {"stride": stride, "padding": padding, "output_padding": extra, "dilation": dilation, "groups": c}
    with monkeypatch.context() as patch:
        called = asked(patch)
        got = F.conv_transpose2d(x, w, **given)
    assert called.count("conv_transpose") == 1 and "depthwise" not in called
    with fl.kernels.use("reference"):
        np.testing.assert_allclose(got, F.conv_transpose2d(x, w, **given), rtol=0, atol=1e-5)


def test_infinity_and_nan_reach_what_they_reach(variant: str, small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = arrays("infinite", (1, 3, 5, 6), (3, 1, 4, 4))
    x[0, 0, 2, 3], x[0, 1, 0, 0] = np.inf, np.nan
    got = F.conv_transpose2d(x, w, stride=2, padding=1, groups=3)
    monkeypatch.setattr(transposed_phases.Phases, "plan", lambda *_: None)
    with fl.kernels.use("reference"):
        want = F.conv_transpose2d(x, w, stride=2, padding=1, groups=3)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(want))


def test_large_results_go_this_way_and_small_ones_do_not() -> None:
    found = transposed_phases.phases((1, 4, 4), (1, 2, 2), (1, 1, 1), 64, 64)
    assert found is not None
    assert found.plan((1, 64, 1, 28, 28), (1, 64, 1, 56, 56), (0, 0, 1, 1, 1, 1), False) is not None
    assert found.plan((1, 64, 1, 2, 2), (1, 64, 1, 4, 4), (0, 0, 1, 1, 1, 1), False) is None
    assert transposed_phases.phases((1, 4, 4), (1, 2, 2), (1, 1, 1), 64, 32) is None
    assert transposed_phases.phases((1, 1, 4), (1, 2, 2), (1, 1, 1), 64, 64) is None
