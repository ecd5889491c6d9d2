"""Rotary positions: every width, both orders of pairs, both places of the heads, special values, bits."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels import dispatch
from fastlayers.kernels.reference import rotary as reference
from tests.guard import guarded, guarded_empty


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def run(shape: tuple[int, ...], half: int, entries: int, interleaved: bool, edge: str, spoil: float | None = None) -> np.ndarray:
    x, cos, sin = numbers(*shape), numbers(entries, shape[2], half), numbers(entries, shape[2], half)
    if spoil is not None:
        x.reshape(-1)[3] = spoil
    inputs = [guarded(a, edge) for a in (x, cos, sin)]
    for a in inputs:
        a.flags.writeable = False
    out, want = guarded_empty(shape, edge), np.empty(shape, np.float32)
    dispatch.kernel("rotary")(*inputs, out, interleaved)
    reference.rotary(x, cos, sin, want, interleaved)
    np.testing.assert_allclose(out, want, rtol=1e-6, atol=1e-6)
    return np.array(out)


@pytest.mark.parametrize("half", [0, 1, 3, 4, 7, 8, 9, 15, 16, 17, 32, 33])
def test_widths(half: int, variant: str) -> None:
    for rest, interleaved, entries, edge in product((0, 1, 5), (False, True), (1, 2), ("start", "end")):
        for outer, inner in ((1, 3), (3, 1)):
            run((2, outer, 4, inner, 2 * half + rest), half, entries, interleaved, edge)


def test_nothing_to_do_and_special_values(variant: str) -> None:
    for shape in ((0, 1, 4, 2, 8), (1, 0, 4, 2, 8), (1, 1, 0, 2, 8), (1, 1, 4, 0, 8)):
        assert run(shape, 4, 1, False, "end").size == 0
    for value, interleaved in product((np.nan, np.inf), (False, True)):
        got = run((1, 1, 3, 2, 8), 4, 1, interleaved, "end", value)
        assert np.isfinite(got[0, 0, 1:]).all() and not np.isfinite(got[0, 0, 0, 0]).all()


def test_threads(variant: str) -> None:
    before, found = fl.get_num_threads(), []
    try:
        for threads in (1, 2):
            fl.set_num_threads(threads)
            found.append(run((2, 1, 300, 8, 64), 32, 1, False, "end"))
    finally:
        fl.set_num_threads(before)
    np.testing.assert_array_equal(*found)
