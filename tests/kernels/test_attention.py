"""Attention: torch's figures, awkward sizes, every shape of mask, what causality and masks forbid, special values, bits."""

from __future__ import annotations

import dataclasses
from functools import cache
from itertools import product

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels import dispatch
from fastlayers.kernels.reference import attention as reference
from tests.goldens import make_attention
from tests.guard import guarded, guarded_empty

from .space import bits

GOLDEN = make_attention.__file__.replace("make_attention.py", "attention.npz")
# Around a vector, a strip of 16 queries, the few queries that have code of their own, and a block of 64 queries or keys.
ROWS = (1, 2, 4, 8, 9, 15, 16, 17, 31, 33, 48, 63, 64, 65, 129)
KEYS = (1, 2, 3, 4, 7, 15, 16, 17, 31, 33, 63, 64, 65, 80, 127, 128, 129, 200)
INFINITY = np.float32(np.inf)
LOWEST = np.finfo(np.float32).min


@cache
def golden() -> dict[str, np.ndarray]:
    with np.load(GOLDEN) as arrays:
        return dict(arrays)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


@dataclasses.dataclass
class Problem:
    """What `attention` takes; k is (b, g, k, d) here."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    mask: np.ndarray | None = None
    lengths: np.ndarray | None = None
    scale: float | None = None
    causal: bool = False
    offset: int = 0
    empty: int = 0

    def but(self, **changes: object) -> Problem:
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]


def problem(b: int = 1, h: int = 1, g: int = 0, rows: int = 5, keys: int = 7, d: int = 8, e: int = 8, **rest: object) -> Problem:
    g = g or h
    return Problem(numbers(b, h, rows, d), numbers(b, g, keys, d), numbers(b, g, keys, e), **rest)  # type: ignore[arg-type]


def run(p: Problem, edge: str = "", k_transposed: bool = False, heads_last: bool = False) -> np.ndarray:
    """The current variant's result; `edge` puts every array against a forbidden page. Inputs are read-only."""
    b, h, rows, _ = p.q.shape
    shape = (b, rows, h, p.v.shape[3]) if heads_last else (b, h, rows, p.v.shape[3])
    out = guarded_empty(shape, edge) if edge else np.full(shape, 77, np.float32)
    k = p.k.swapaxes(2, 3) if k_transposed else p.k
    arrays = [x.swapaxes(1, 2) if heads_last else x for x in (p.q, k, p.v)]
    inputs = [None if x is None else guarded(x, edge) if edge else np.array(x, order="C") for x in (*arrays, p.mask, p.lengths)]
    for x in inputs:
        if x is not None:
            x.flags.writeable = False
    scale = max(1, p.q.shape[3]) ** -0.5 if p.scale is None else p.scale
    dispatch.kernel("attention")(*inputs, out, scale, p.causal, p.offset, p.empty, k_transposed, heads_last)
    return out.swapaxes(1, 2) if heads_last else out


def wanted(p: Problem) -> np.ndarray:
    out = np.full((*p.q.shape[:3], p.v.shape[3]), 77, np.float32)
    scale = max(1, p.q.shape[3]) ** -0.5 if p.scale is None else p.scale
    reference.attention(p.q, p.k, p.v, p.mask, p.lengths, out, scale, p.causal, p.offset, p.empty, False, False)
    return out


def close(p: Problem, got: np.ndarray) -> None:
    """A score is off by some units in its last place, and so, as a share, is the weight that it becomes: 40 units of 2^-24 for
    sums and exp, 4 more for each 1 that a score may reach with its mask, of the largest value.
    """
    want = wanted(p)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    with np.errstate(all="ignore"):
        score = np.linalg.norm(p.q, axis=3).max(initial=0) * np.linalg.norm(p.k, axis=3).max(initial=0)
        score *= max(1, p.q.shape[3]) ** -0.5 if p.scale is None else abs(p.scale)
        mask = 0 if p.mask is None else np.abs(p.mask[np.abs(p.mask) < 100]).max(initial=0)
        bound = (40 + 4 * (score + mask)) * 2.0**-24 * np.abs(p.v).max(initial=0)
    error = np.abs(np.nan_to_num(got) - np.nan_to_num(want)).max(initial=0)
    assert not np.isfinite(bound) or error <= bound, f"{error / bound:.2f} times the bound"


def same_bits(got: np.ndarray, want: np.ndarray) -> None:
    """The reference, whose sums numpy orders, is let off with the same numbers."""
    if fl.kernels.current() == "reference":
        np.testing.assert_allclose(got, want, rtol=0, atol=2e-6)
    else:
        np.testing.assert_array_equal(bits(got), bits(want))


@pytest.mark.parametrize("number", range(len(make_attention.ATTENTION)))
def test_torch(number: int, variant: str) -> None:
    case = make_attention.ATTENTION[number]
    q, k, v, mask = (golden().get(f"{number}.{name}") for name in ("q", "k", "v", "mask"))
    assert q is not None and k is not None and v is not None
    got = run(Problem(q, k, v, mask, None, case.scale, case.causal))
    np.testing.assert_allclose(got, golden()[f"{number}.y"], rtol=0, atol=3e-6)


@pytest.mark.parametrize("rows", ROWS)
def test_sizes(rows: int, variant: str) -> None:
    for keys, edge in zip(KEYS, ("start", "end") * len(KEYS), strict=False):
        p = problem(rows=rows, keys=keys, d=5, e=3)
        close(p, run(p, edge))
        causal = p.but(causal=True, offset=keys - rows)
        close(causal, run(causal, edge))


@pytest.mark.parametrize("rows", [1, 4, 8, 9, 20])
def test_widths(rows: int, variant: str) -> None:
    """d around a vector and around a block of K; e around the panels that a tile has."""
    for d, edge in product((0, 1, 3, 4, 7, 8, 15, 16, 17, 64, 80, 255, 256, 257, 520), ("start", "end")):
        p = problem(h=2, rows=rows, keys=19, d=d, e=4, scale=0.1)
        close(p, run(p, edge))
        same_bits(run(p, edge, k_transposed=True), run(p))
    for e, edge in product((1, 2, 15, 16, 17, 31, 32, 33, 48, 64, 80, 96, 112, 128, 129, 144), ("start", "end")):
        p = problem(h=2, rows=rows, keys=67, d=3, e=e)
        close(p, run(p, edge))


def test_nothing_to_do(variant: str) -> None:
    for shape in ({"b": 0}, {"h": 0, "g": 0}, {"rows": 0}, {"e": 0}, {"rows": 0, "keys": 0}):
        p = problem(**{"b": 2, "h": 2, **shape})
        assert run(p).size == 0
    for rows, empty in product((1, 20), (0, 1)):
        p = problem(rows=rows, keys=0, empty=empty)
        np.testing.assert_array_equal(run(p), np.full_like(run(p), np.nan if empty else 0))


@pytest.mark.parametrize("rows", [1, 3, 33])
def test_every_shape_of_mask(rows: int, variant: str) -> None:
    for full in product((False, True), repeat=4):
        p = problem(b=2, h=4, g=2, rows=rows, keys=70, d=4, e=5)
        shape = [n if keep else 1 for n, keep in zip((2, 4, rows, 70), full, strict=True)]
        forbidden = np.random.default_rng(0).random(shape) < 0.4
        for low, edge in ((-INFINITY, "start"), (np.float32(-1e9), "end"), (LOWEST, "start"), (np.float32(3), "end")):
            masked = p.but(mask=np.where(forbidden, low, np.float32(0.5)))
            close(masked, run(masked, edge))
            causal = masked.but(causal=True, offset=30)
            close(causal, run(causal, edge))


def test_grouped_heads_are_repeated_heads(variant: str) -> None:
    for rows, causal in product((1, 3, 40), (False, True)):
        p = problem(b=2, h=6, g=2, rows=rows, keys=70, causal=causal, offset=20)
        repeated = p.but(k=np.repeat(p.k, 3, axis=1), v=np.repeat(p.v, 3, axis=1))
        same_bits(run(p), run(repeated))
        mask = numbers(1, 1, 1, 70)
        same_bits(run(p.but(mask=mask)), run(repeated.but(mask=mask)))


@pytest.mark.parametrize("rows", [1, 3, 4, 40, 70])
def test_heads_beside_each_other_are_heads_apart(rows: int, variant: str) -> None:
    """Queries, keys and values read in place from (b, t, h d): the same bits, whatever mask, grouping and causality."""
    for g, (d, e) in product((1, 2, 4), ((8, 16), (5, 3), (16, 64))):
        p = problem(b=2, h=4, g=g, rows=rows, keys=70, d=d, e=e)
        for edge, changed in (
            ("start", p),
            ("end", p.but(causal=True, offset=3)),
            ("end", p.but(mask=numbers(2, 1, rows, 70))),
            ("start", p.but(mask=np.where(numbers(2, 1, 1, 70) < 0, -INFINITY, np.float32(0)), causal=True, offset=60)),
            ("end", p.but(lengths=np.array([70, 33]))),
        ):
            same_bits(run(changed, edge, heads_last=True), run(changed))


@pytest.mark.parametrize("rows", [1, 3, 40])
def test_lengths_are_shorter_keys(rows: int, variant: str) -> None:
    """The bits of keys that end there, whatever is after: NaN or infinity too."""
    for lengths, causal, heads_last in product(((70, 1), (17, 64), (0, 69), (-5, 1000)), (False, True), (False, True)):
        d = 6 if causal else 8
        p = problem(b=2, h=4, g=2, rows=rows, keys=70, d=d, e=7, causal=causal, offset=20, lengths=np.array(lengths))
        masks = (None, numbers(2, 1, rows, 70), np.where(numbers(1, 4, 1, 70) < 0, np.float32(-1e9), np.float32(0)))
        for mask, behind in product(masks, (np.float32(0), np.float32(np.nan), INFINITY)):
            q = p.but(k=p.k.copy(), v=p.v.copy(), mask=mask)
            for i, n in enumerate(lengths):
                n = min(max(n, 0), 70)
                q.k[i, :, n:], q.v[i, :, n:] = behind, behind
            got = run(q, "end", heads_last=heads_last)
            for i, n in enumerate(lengths):
                n = min(max(n, 0), 70)
                part = mask if mask is None or len(mask) == 1 else mask[i : i + 1]
                short = q.but(q=q.q[i : i + 1], k=q.k[i : i + 1, :, :n], v=q.v[i : i + 1, :, :n], lengths=None)
                same_bits(got[i : i + 1], run(short.but(mask=None if part is None else part[..., :n])))


def test_a_mask_that_is_low_where_a_length_allows(variant: str) -> None:
    """Its high numbers stand after the last key, so the low ones are all there is."""
    for rows, shape in ((3, (1, 1, 1, 200)), (100, (1, 1, 1, 200)), (100, (2, 1, 100, 200))):
        mask = np.where(np.arange(200) < 120, -1e9, 0).astype(np.float32) * np.ones(shape, np.float32)
        p = problem(b=2, rows=rows, keys=200, mask=mask, lengths=np.array([60, 200]))
        got = run(p)
        close(p, got)
        np.testing.assert_allclose(got[0, 0], np.broadcast_to(p.v[0, 0, :60].mean(0, np.float64), got[0, 0].shape), atol=1e-6)


def test_low_numbers_of_a_mask_where_something_is_not_finite(variant: str) -> None:
    """A key that a tile of low numbers hides is left out, unless it or its value is not finite: 0 times infinity is NaN, and a
    score of NaN is one whatever is added to it.
    """
    for rows, place, value in product((3, 40), (0, 20, 100, 149), (np.nan, np.inf)):
        mask = np.zeros((1, 1, rows, 150), np.float32)
        mask[..., 16:32], mask[..., 96:] = -1e9, -1e9
        for spoil in ("v", "k", "mask"):
            p = problem(rows=rows, keys=150, d=4, e=5, mask=mask.copy())
            array = getattr(p, spoil)
            array[(0, 0, rows - 1, place) if spoil == "mask" else (0, 0, place, 2)] = value
            got = run(p)
            close(p, got)
            assert not np.isfinite(got).all() or (spoil == "k" and value == np.inf)


@pytest.mark.parametrize("offset", [-300, -65, -17, -1, 0, 1, 16, 63, 64, 130, 1 << 40])
def test_causal_offsets(offset: int, variant: str) -> None:
    for rows, keys, empty in product((1, 3, 17, 70, 130), (1, 65, 140), (0, 1)):
        p = problem(rows=rows, keys=keys, d=4, e=4, causal=True, offset=offset, empty=empty)
        close(p, run(p))


@pytest.mark.parametrize("low", [-1e9, -1e30, LOWEST, -INFINITY])
def test_causality_spelt_as_a_mask_gives_the_same_bits(low: float, variant: str) -> None:
    """What has no weight is left out, or multiplied by exactly 0: nobody can tell."""
    for rows, keys in ((3, 3), (40, 40), (70, 200), (130, 130)):
        p = problem(h=2, rows=rows, keys=keys, d=16)
        mask = np.triu(np.full((1, 1, rows, keys), low, np.float32), 1)
        same_bits(run(p.but(mask=mask)), run(p.but(causal=True)))
        # Padding on the left, then on both sides: windows that begin late.
        for begin, end in ((20, keys), (keys // 2, keys - 1)):
            inside = (np.arange(keys) >= begin) & (np.arange(keys) < max(end, begin + 1))
            mask = np.where(inside, np.float32(0), np.float32(low)).reshape(1, 1, 1, keys)
            padded = p.but(mask=mask)
            close(padded, run(padded))
            same_bits(run(p.but(mask=np.broadcast_to(mask, (1, 2, rows, keys)))), run(padded))


def test_a_row_of_low_numbers_weighs_all_keys_alike(variant: str) -> None:
    for rows, low in product((2, 30), (-1e9, LOWEST)):
        p = problem(rows=rows, keys=90, d=4, mask=np.full((1, 1, rows, 90), low, np.float32))
        assert p.mask is not None
        p.mask[0, 0, 1, :45] = 0
        got = run(p)
        np.testing.assert_allclose(got[0, 0, 0], p.v[0, 0].mean(axis=0, dtype=np.float64), atol=1e-6)
        assert np.abs(got[0, 0, 1] - got[0, 0, 0]).max() > 0.01
        close(p, got)


def test_low_numbers_that_large_scores_lift(variant: str) -> None:
    """A key among many that the mask puts down by 1e4, with a score of 4e4 more than the others': it is all that counts."""
    for rows in (3, 40):
        p = problem(rows=rows, keys=200, d=4, scale=1.0)
        p.q[:] = 100
        p.k[:] = 1
        p.k[:, :, 150] = 100
        p = p.but(mask=np.where(np.arange(200) >= 100, -1e4, 0).astype(np.float32).reshape(1, 1, 1, 200))
        np.testing.assert_array_equal(run(p), np.broadcast_to(p.v[:, :, 150:151], (*p.q.shape[:3], 8)))


def test_numbers_of_a_mask_weigh_block_by_block(variant: str) -> None:
    """Masks that lower later blocks of keys by 2 to 60: scores are large enough to make up for it, so every block counts."""
    for rows, keys, drop in product((1, 3, 40), (300, 700), (2.0, 20.0, 60.0)):
        p = problem(rows=rows, keys=keys, d=16, scale=1.0)
        p.q[:] *= 3
        p.k[:] *= 2
        ramp = -np.linspace(0, drop, keys, dtype=np.float32)
        for line in (ramp, ramp[::-1].copy()):
            mask = np.broadcast_to(line, (1, 1, rows, keys)) + 0.1 * numbers(1, 1, rows, keys)
            close(p.but(mask=mask), run(p.but(mask=mask)))


def test_a_mask_that_is_low_where_causality_allows(variant: str) -> None:
    """Its high numbers stand beyond what a query sees, so the low ones are all there is."""
    for rows in (3, 100):
        mask = np.where(np.arange(200) < 120, -1e9, 0).astype(np.float32).reshape(1, 1, 1, 200)
        p = problem(rows=rows, keys=200, causal=True, mask=mask)
        got = run(p)
        close(p, got)
        np.testing.assert_array_equal(got[0, 0, 0], p.v[0, 0, 0])


def test_rows_that_see_no_key(variant: str) -> None:
    for rows, empty in product((4, 40), (0, 1)):
        p = problem(b=2, rows=rows, keys=70, empty=empty, mask=np.zeros((2, 1, rows, 70), np.float32))
        assert p.mask is not None
        p.mask[1, 0, 2] = -np.inf
        got, plain = run(p), run(p.but(mask=None))
        np.testing.assert_array_equal(got[1, 0, 2], np.full(8, np.nan if empty else 0))
        got[1, 0, 2] = plain[1, 0, 2]
        same_bits(got, plain)
        p.mask[:] = -np.inf
        np.testing.assert_array_equal(run(p), np.full_like(got, np.nan if empty else 0))


@pytest.mark.parametrize("heads_last", [False, True])
@pytest.mark.parametrize("rows", [1, 4, 40, 70])
def test_weights_of_zero_in_the_place_of_nan(rows: int, heads_last: bool, variant: str) -> None:
    """empty=2: as if the softmax were written out, its NaN replaced by 0, and multiplied by the values."""
    for keys, place, value in product((1, 3, 70, 150), ("q", "k", "v", "mask"), (0, np.nan, np.inf, -np.inf)):
        p = problem(b=2, h=4, g=2, rows=rows, keys=keys, d=4, e=5, empty=2, mask=np.zeros((2, 1, rows, keys), np.float32))
        assert p.mask is not None
        p.mask[0, 0, 0] = p.mask[1, 0, rows // 2 :] = -np.inf
        getattr(p, place)[1, 0, -1, -1] = value
        got = run(p, heads_last=heads_last)
        close(p, got)
        with np.errstate(all="ignore"):
            scores = p.q.astype(float) @ np.repeat(p.k, 2, 1).swapaxes(2, 3).astype(float) * 0.5 + p.mask
            weights = np.exp(scores - scores.max(3, keepdims=True))
            weights /= weights.sum(3, keepdims=True)
            want = np.where(np.isnan(weights), 0, weights) @ np.repeat(p.v, 2, 1).astype(float)
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-4)
        if place != "v" or np.isfinite(value):
            assert not got[0, :, 0].any()


@pytest.mark.parametrize("rows", [4, 70])
def test_special_values(rows: int, variant: str) -> None:
    """Each spoils what the formula says and nothing else: 0 times infinity is NaN, for keys without weight too."""
    low = np.triu(np.full((1, 1, rows, 150), -1e9, np.float32), 1)
    for value, causal, mask in product((np.nan, np.inf, -np.inf), (False, True), (None, low)):
        p = problem(h=2, rows=rows, keys=150, d=4, e=5, causal=causal, mask=mask)
        p.q[0, 1, 2, 1] = value
        got = run(p)
        assert np.isnan(got[0, 1, 2]).all() or np.isinf(value)
        close(p, got)
        assert np.isfinite(got[0, 0]).all() and np.isfinite(got[0, 1, :2]).all() and np.isfinite(got[0, 1, 3:]).all()
        for place in (0, 3, 149):
            p = problem(h=2, rows=rows, keys=150, d=4, e=5, causal=causal, mask=mask)
            p.v[0, 1, place, 2] = value
            got = run(p)
            close(p, got)
            assert np.isnan(got[0, 1, :2, 2]).all() or place == 0 or (mask is None and not causal)
            assert np.isfinite(got[0, 0]).all() and np.isfinite(got[0, 1, :, 3:]).all()
            p = problem(h=2, rows=rows, keys=150, d=4, e=5, causal=causal, mask=mask)
            p.k[0, 1, place, 2] = value
            got = run(p)
            close(p, got)
            assert np.isfinite(got[0, 0]).all()
            p = problem(h=2, rows=rows, keys=150, d=4, e=5, causal=causal, mask=np.zeros((1, 2, rows, 150), np.float32))
            assert p.mask is not None
            p.mask[0, 1, 1, place] = value
            got = run(p)
            close(p, got)
            got[0, 1, 1] = 0
            assert np.isfinite(got).all()


def test_scores_too_large_for_exp(variant: str) -> None:
    for rows in (3, 20):
        p = problem(rows=rows, keys=100, d=16, scale=1.0)
        p.q[:] *= 300
        got = run(p)
        assert np.isfinite(got).all()
        close(p, got)


@pytest.mark.parametrize("mask", [None, (3, 2, 70, 150), (1, 1, 70, 150), (3, 1, 1, 150)], ids=str)
def test_a_row_does_not_depend_on_the_others(mask: tuple[int, ...] | None, variant: str) -> None:
    """Nor does it on the number of rows, the batch, or the place in a block; and rows that hold NaN spoil no neighbour."""
    p = problem(b=3, h=2, rows=70, keys=150, d=24, e=20)
    if mask:
        p.mask = np.where(numbers(*mask) < 0.5, np.float32(-1e9), numbers(*mask))
    whole = run(p)
    for first, n in ((0, 1), (5, 2), (13, 3), (60, 4), (1, 5), (40, 17), (3, 67)):
        some = p.but(q=p.q[1:2, :, first : first + n])
        if p.mask is not None:
            rows = p.mask[:, :, first : first + n] if p.mask.shape[2] > 1 else p.mask
            some.mask = rows[1:2] if len(rows) > 1 else rows
        same_bits(run(some.but(k=p.k[1:2], v=p.v[1:2])), whole[1:2, :, first : first + n])
    p.q[:, :, ::2] = np.nan
    spoilt = run(p)
    assert np.isnan(spoilt[:, :, ::2]).all()
    same_bits(spoilt[:, :, 1::2], whole[:, :, 1::2])


@pytest.mark.without("reference")  # numpy cuts no tasks
def test_threads(variant: str) -> None:
    low = np.triu(np.full((1, 1, 300, 300), -1e9, np.float32), 1)
    for p in (
        problem(b=2, h=6, g=3, rows=300, keys=300, d=32, e=32),
        problem(b=2, h=6, rows=300, keys=300, d=32, e=33, causal=True),
        problem(b=2, h=6, rows=300, keys=300, d=32, e=32, lengths=np.array([100, 257]), causal=True),
        problem(b=2, h=6, rows=300, keys=300, d=32, e=32, mask=low),
        problem(b=4, h=16, rows=2, keys=2000, d=32, e=32),
    ):
        before = fl.get_num_threads()
        results = []
        try:
            for threads in (1, 2):
                fl.set_num_threads(threads)
                results.append(run(p))
        finally:
            fl.set_num_threads(before)
        same_bits(results[1], results[0])
        close(p, results[0])


def test_comparison_can_fail() -> None:
    p = problem()
    got = wanted(p)
    close(p, got)
    got[0, 0, 1, 2] += 2e-5
    with pytest.raises(AssertionError, match="times the bound"):
        close(p, got)
