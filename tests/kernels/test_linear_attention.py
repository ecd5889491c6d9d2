"""Linear attention: awkward sizes, edges of memory, special values, a sequence in pieces, threads."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels import dispatch
from fastlayers.kernels.reference import linear_attention as reference
from tests.guard import guarded


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng((*shape, 1)).standard_normal(shape).astype(np.float32) * np.float32(0.5)


def operands(b: int, t: int, heads: int, groups: int, d: int, e: int, gates: int, betas: int, past: bool) -> list[Any]:
    gate = np.exp(-np.abs(numbers(b, t, groups * gates))) if gates else None
    beta = np.abs(np.tanh(numbers(b, t, betas))) if betas else None
    state = numbers(b, groups, d, e) if past else None
    return [numbers(b, t, heads * d), numbers(b, t, groups * d), numbers(b, t, groups * e), state, gate, beta]


def run(given: list[Any], groups: int, edge: str = "end", by_reference: bool = False) -> tuple[np.ndarray, np.ndarray]:
    (b, t, _), d, e = given[0].shape, given[1].shape[2] // groups, given[2].shape[2] // groups
    heads = given[0].shape[2] // max(d, 1)
    out, state = (guarded(np.zeros(s, np.float32), edge) for s in ((b, t, heads * e), (b, groups, d, e)))
    arrays = [None if x is None else guarded(x, edge) for x in given]
    kernel = reference.linear_attention if by_reference else dispatch.kernel("linear_attention")
    kernel(*arrays, out, state, 0.3)
    return np.array(out), np.array(state)


@pytest.mark.parametrize("e", [1, 2, 15, 16, 17, 63, 64, 65, 130])
@pytest.mark.sampled(2)
def test_sizes(e: int, variant: str) -> None:
    for t, (heads, groups), d, edge in product((1, 5), ((1, 1), (4, 2)), (1, 3, 16), ("start", "end")):
        for gates, betas, past in ((0, 0, False), (1, 0, True), (0, 1, False), (d, groups, True)):
            given = operands(2, t, heads, groups, d, e, gates, betas, past)
            for got, want in zip(run(given, groups, edge), run(given, groups, by_reference=True), strict=True):
                np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6)


def test_nothing(variant: str) -> None:
    for b, t, e in ((0, 3, 4), (2, 0, 4), (2, 3, 0)):
        given = operands(b, t, 2, 2, 3, e, 1, 2, True)
        _, state = run(given, 2)
        if not t:
            np.testing.assert_array_equal(state, given[3])


@pytest.mark.parametrize("spoil", [np.nan, np.inf])
def test_special_values_stay_in_their_head(spoil: float, variant: str) -> None:
    given = operands(2, 4, 2, 2, 3, 5, 1, 2, True)
    given[2][0, 1, 2] = spoil  # of head 0, from step 1 on
    out, state = run(given, 2)
    want, final = run(given, 2, by_reference=True)
    np.testing.assert_array_equal(np.isfinite(out), np.isfinite(want))
    np.testing.assert_array_equal(np.isfinite(state), np.isfinite(final))
    assert not np.isfinite(out).all()


def test_pieces_give_the_bits_of_the_whole(variant: str) -> None:
    given = operands(1, 9, 4, 2, 8, 70, 8, 2, True)
    whole, state = run(given, 2)
    parts, past = [], given[3]
    for cut in (slice(0, 1), slice(1, 6), slice(6, 9)):
        piece = [np.ascontiguousarray(x[:, cut]) if i != 3 and x is not None else past for i, x in enumerate(given)]
        out, past = run(piece, 2)
        parts.append(out)
    if fl.kernels.info()["operations"]["linear_attention"] != "reference":  # which keeps a state of float64 within a call
        np.testing.assert_array_equal(np.concatenate(parts, 1), whole)
        np.testing.assert_array_equal(past, state)


def test_threads_change_nothing() -> None:
    given = operands(2, 40, 8, 8, 32, 130, 32, 8, True)
    found = []
    before = fl.get_num_threads()
    try:
        for threads in (1, 2, 3):
            fl.set_num_threads(threads)
            found.append(run(given, 8))
    finally:
        fl.set_num_threads(before)
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)
