"""Every bench case, in every variant, against the reference: what is timed is also right."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import fastlayers as fl
from bench.cases import Case, all_cases, prepare
from fastlayers.kernels import dispatch

from .space import bits

CASES = all_cases()
# Operations above which a case runs under the default variant alone: the small ones reach every tile of every level.
LARGE = 1e8

# Results are compared to the reference, which sums in float64, within this share of the largest result (of 1 if all are smaller).
# A sum of K float32 products in blocks of 256 errs by at most about (256 + K / 256) / 2 ulp of the sum of the magnitudes, and in
# practice by a few ulp of the largest output: 1e-6 at K = 4608. Elementwise kernels have bounds of their own in other files.
TOLERANCE = 1e-5


def computed(case: Case) -> dict[str, np.ndarray]:
    """What the current variant computes for a case; NaN stays where it writes nothing (a column range of "out", say)."""
    prepared = prepare(case, np.nan)
    prepared.call()
    return prepared.outputs


@cache
def wanted(case: Case) -> dict[str, np.ndarray]:
    """What the reference computes for a case."""
    with fl.kernels.use("reference"):
        return computed(case)


def compare(case: Case) -> None:
    got, want = computed(case), wanted(case)
    assert got.keys() == want.keys()
    for name in want:
        scale = max(1.0, float(np.nanmax(np.abs(want[name]), initial=0)))
        assert got[name].shape == want[name].shape
        np.testing.assert_allclose(got[name], want[name], rtol=0, atol=TOLERANCE * scale, err_msg=f"{case.id}: {name}")


def compare_step(case: Case) -> None:
    """The step gives the bits of its kernel."""
    kernel, step = prepare(case, np.nan), prepare(case, np.nan, as_step=True)
    kernel.call()
    step.call()
    step.call()  # nothing of the first run may be left in the step
    assert kernel.outputs.keys() == step.outputs.keys()
    for name, want in kernel.outputs.items():
        np.testing.assert_array_equal(bits(step.outputs[name]), bits(want), err_msg=f"{case.id}: {name}")


small = pytest.mark.parametrize("case", [c for c in CASES if c.flops < LARGE], ids=lambda case: case.id)


@small
@pytest.mark.without("reference")  # to which all are compared
@pytest.mark.sampled(2)
def test_case_in_every_variant(case: Case, variant: str) -> None:
    """Right, and the same bits as a step of a program."""
    for array in wanted(case).values():
        assert np.isfinite(array).mean() >= 0.5, "a case shall not overflow, and half of the output at least is written"
    compare(case)
    if dispatch.step(case.kernel) is not None:
        compare_step(case)


@pytest.mark.exhaustive
@pytest.mark.skipif(not dispatch.levels(), reason="the compiled engine is not built here")
@pytest.mark.parametrize("case", [c for c in CASES if c.flops >= LARGE], ids=lambda case: case.id)
def test_large_case_in_the_default_variant(case: Case) -> None:
    with fl.kernels.use("aot"):
        compare(case)


def test_comparison_can_fail() -> None:
    case = next(c for c in CASES if c.kernel == "linear")
    want = wanted(case)["out"]
    want += 1e-3
    try:
        with pytest.raises(AssertionError):
            compare(case)
    finally:
        want -= 1e-3
