"""Products with weights of few bits: against the reference and `linear`, in any batch, at the edges of memory, with bad input."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers._codes import CODES, values_of
from fastlayers.errors import ArgumentError, Error, ShapeError
from fastlayers.kernels import dispatch
from fastlayers.kernels.table import NBITS_SUMS, UNARY, Activation
from tests.guard import guarded, guarded_empty

EXACT, INTEGER = NBITS_SUMS["exact"], NBITS_SUMS["integer"]
IDENTITY = Activation(0)
ZEROS = (None, np.uint8, np.float32)
SIZES = ((37, 100), (64, 256), (5, 15), (130, 700), (1, 1))  # columns, terms

Weights = tuple[Any, ...]


def weights(
    n: int, k: int, bits: int = 4, block: int = 32, zeros: Any = None, bias: bool = True, scale: Any = np.float32
) -> Weights:
    """Arguments of `nbits_pack`. Zero points that are floats are no whole numbers; scales are numbers of the dtype `scale`."""
    rng, blocks = np.random.default_rng(n * k + bits), -(-k // block)
    numbers = rng.integers(0, 256, (n, blocks, block * bits // 8)).astype(np.uint8)
    scales = rng.uniform(0.5, 1.5, (n, blocks)).astype(scale).astype(np.float32)
    origin = None if zeros is None else rng.uniform(0, 1 << bits, (n, blocks)).astype(zeros)
    return numbers, scales, origin, rng.standard_normal(n).astype(np.float32) if bias else None, k, bits


def rows(m: int, k: int) -> np.ndarray:
    return np.random.default_rng(m + k).standard_normal((m, k)).astype(np.float32)


def product(x: np.ndarray, given: Weights, mode: int, activation: Activation = IDENTITY) -> np.ndarray:
    out = np.full((len(x), len(given[0])), np.nan, np.float32)
    dispatch.kernel("nbits")(x, dispatch.kernel("nbits_pack")(*given), out, mode, activation)
    return out


def by_reference(x: np.ndarray, given: Weights, mode: int) -> np.ndarray:
    with fl.kernels.use("reference"):
        return product(x, given, mode)


def every() -> Iterator[Weights]:
    """All kinds of weights, awkward sizes and scales that float16 holds by turns."""
    kinds = itertools.product((2, 4, 8), (16, 32, 64, 128, 256), ZEROS)
    turns = itertools.product(SIZES, (np.float32, np.float16))
    for (bits, block, zeros), ((n, k), scale) in zip(kinds, itertools.cycle(turns), strict=False):
        yield weights(n, k, bits, block, zeros, scale=scale)


@pytest.mark.without("reference")
@pytest.mark.parametrize("mode", [EXACT, INTEGER])
def test_all_kinds_of_weights(mode: int, variant: str) -> None:
    for given in every():
        x = rows(9, given[4])
        got, want = product(x, given, mode), by_reference(x, given, mode)
        np.testing.assert_allclose(got, want, rtol=0, atol=2e-6 * np.abs(want).max())


@pytest.mark.without("reference")
@pytest.mark.parametrize("mode", [EXACT, INTEGER])
def test_bits_depend_on_no_batch_and_no_thread(mode: int, variant: str) -> None:
    for given in (weights(333, 700, scale=np.float16), weights(90, 1030, 8, 32, np.uint8)):
        x = rows(270, given[4])
        whole = product(x, given, mode)
        for m in (1, 2, 3, 4, 5, 8, 33):
            np.testing.assert_array_equal(product(x[:m].copy(), given, mode), whole[:m])
        before = fl.get_num_threads()
        try:
            fl.set_num_threads(3)
            np.testing.assert_array_equal(product(x, given, mode), whole)
            np.testing.assert_array_equal(product(x[:1].copy(), given, mode), whole[:1])
        finally:
            fl.set_num_threads(before)


def strict() -> Any:
    """A context: what is packed and multiplied meanwhile sums as under strict precision."""
    return dispatch.variant()._replace(strict=True).bound()


def in_integers(given: Weights) -> bool:
    """Whether exact sums are of integers here, not of floats: these, of few terms, are added in strict precision's order."""
    x, few = rows(2, 15), weights(40, 15, given[5], 16)
    with strict():
        floats = product(x, few, EXACT)
    return not np.array_equal(product(x, few, EXACT), floats)


@pytest.mark.without("reference")
def test_exact_sums_are_within_their_bound(variant: str) -> None:
    """Also of rows whose blocks have numbers of very different sizes, tiny and huge ones, and zeros.

    Integers are off by half of a step, which is at most 2^-22 of a block's largest number, and are rounded when sums of blocks
    are made and added; floats whenever a term is.
    """
    for given in every():
        k, whole = given[4], in_integers(given)
        with fl.kernels.use("reference"):
            packed = dispatch.kernel("nbits_pack")(*given)
        weight = (packed.numbers__nbt - packed.zero__nb[..., None].astype(np.float64)) * given[1][..., None].astype(np.float64)
        n, blocks, block = weight.shape
        x = rows(7, k)
        x[1] *= np.exp(4 * np.random.default_rng(k).standard_normal(k)).astype(np.float32)
        x[2] *= np.float32(1e-30)
        x[3] *= np.float32(1e30)
        x[4, : k // 2] = 0
        x[5] = 1.9999999  # just below a power of two
        x[6] = -1000 * x[6].round()
        wide = np.zeros((len(x), blocks * block))
        wide[:, :k] = x
        want = wide @ weight.reshape(n, -1).T + given[3]
        size = np.abs(wide) @ np.abs(weight).reshape(n, -1).T + np.abs(given[3])
        largest = np.abs(wide).reshape(-1, blocks, block).max(-1)
        steps = 1.004 * 2.0**-23 * largest @ np.abs(weight).sum(-1).T
        bound = (blocks + 3 if whole else k + 3) * 2.0**-24 * size + (steps if whole else 0)
        difference = np.abs(product(x, given, EXACT) - want)
        assert (difference <= bound).all(), (given[5], given[0].shape, (difference / bound).max(-1))


@pytest.mark.without("reference")
def test_strict_exact_sums_are_those_of_floats(variant: str) -> None:
    """The order of `linear`, with weights that are rounded once."""
    for bits, zeros, scale in itertools.product((2, 4, 8), ZEROS, (np.float32, np.float16)):
        given = weights(50, 610, bits, 64, zeros, scale=scale)
        with fl.kernels.use("reference"):
            packed = dispatch.kernel("nbits_pack")(*given)
        w = ((packed.numbers__nbt - packed.zero__nb[..., None]) * given[1][..., None]).reshape(50, -1)[:, :610]
        for m in (1, 20):
            x, want = rows(m, 610), np.empty((m, 50), np.float32)
            with strict():
                linear = dispatch.kernel("linear_pack")(np.ascontiguousarray(w), given[3])
                dispatch.kernel("linear")(x, linear, want, None, IDENTITY)
                np.testing.assert_array_equal(product(x, given, EXACT), want)


@pytest.mark.parametrize("mode", [EXACT, INTEGER])
def test_scales_take_two_bytes_where_these_hold_them(mode: int, variant: str) -> None:
    """All or none: one scale that float16 lacks keeps all as they came. Subnormal ones and those below 0 are exact."""
    numbers, scales, *rest = weights(40, 256, scale=np.float16)
    scales[0, :3] = 2.0**-24, -1.5, 65504
    for i, (odd, size) in enumerate(((0.0, 2), (1 + 2.0**-11, 4), (65536, 4), (2.0**-25, 4))):
        scales[7, 1] = odd
        given = (numbers, scales.copy(), *rest)
        if variant != "reference":
            panels = (-(-40 // 16)) * 16 * (256 // 32)  # blocks, those of columns that fill up the last panel with them
            assert dispatch.kernel("nbits_pack")(*given).nbytes == panels * (16 + size), i
        x = rows(5, 256)
        want = by_reference(x, given, mode)
        np.testing.assert_allclose(product(x, given, mode), want, rtol=0, atol=2e-6 * np.abs(want).max())


@pytest.mark.without("reference")
def test_parts_are_packed_as_the_whole(variant: str) -> None:
    pack = pytest.importorskip("fastlayers.kernels.aot.nbits").nbits_pack_parts
    if not variant.startswith("aot/"):
        pytest.skip("packs whole")

    def cut(given: Weights, *ends: int) -> Iterator[Weights]:
        *arrays, size, bits = given
        for i, j in itertools.pairwise((0, *ends, len(arrays[0]))):
            yield *(None if a is None else a[i:j] for a in arrays), size, bits, None

    for (bits, zeros), scale in itertools.product(itertools.product((2, 4, 8), ZEROS), (np.float32, np.float16)):
        given = weights(331, 200, bits, 32, zeros, scale=scale)
        x, packed = rows(3, 200), pack(331, cut(given, 64, 256))
        assert packed.nbytes == dispatch.kernel("nbits_pack")(*given).nbytes
        for mode in (EXACT, INTEGER):
            out = np.full((3, 331), np.nan, np.float32)
            dispatch.kernel("nbits")(x, packed, out, mode, IDENTITY)
            np.testing.assert_array_equal(out, product(x, given, mode))
    given[1][300] = 1 + 2.0**-11  # which float16 lacks
    assert pack(331, cut(given, 64, 256)) is None
    given[1][300] = 1
    for count, ends in ((331, (63,)), (303, (64,)), (395, (64,))):
        with pytest.raises(ArgumentError, match=r"nbits_pack: .*expected"):
            pack(count, cut(given, *ends))
    with pytest.raises(ArgumentError, match="parts have 0 columns: expected 331"):
        pack(331, iter(()))


def test_integer_sums_by_hand(variant: str) -> None:
    """127 and -63.5, which becomes -64, times 3 - 2 and 0 - 2, in a block whose step is 1; the next block has a step of 2."""
    numbers = np.full((1, 2, 4), 0b10101010, np.uint8)
    numbers[0, 0, 0], numbers[0, 1, 0] = 0b10100011, 0b10101011
    x = np.zeros((1, 17), np.float32)
    x[0, :2], x[0, 16] = (127, -63.5), 254
    scale = np.array([[0.5, 4]], np.float32)
    assert product(x, (numbers, scale, None, None, 17, 2), INTEGER)[0, 0] == 0.5 * (127 + 128) + 4 * 254
    assert product(x, (numbers, scale, None, None, 17, 2), EXACT)[0, 0] == 0.5 * (127 + 127) + 4 * 254


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38, 1e-45])
def test_values_at_the_ends_of_floats(value: float, variant: str) -> None:
    """NaN and infinity make their own row NaN or infinite, and no other."""
    given = weights(20, 90, 4, 32, np.uint8, bias=False)
    for m in (2, 6):
        x = rows(m, 90)
        clean = {mode: product(x, given, mode) for mode in (EXACT, INTEGER)}
        x[1, 70] = value
        if value == 1e-45:
            x[1] = value
        for mode, want in clean.items():
            got = product(x, given, mode)
            np.testing.assert_array_equal(got[[0, *range(2, m)]], want[[0, *range(2, m)]])
            if value == 1e-45:
                assert np.abs(got[1]).max() < 1e-40
            elif not np.isfinite(value):
                assert not np.isfinite(got[1]).any()
                assert np.isnan(got[1]).all() or mode == EXACT


@pytest.mark.parametrize("edge", ["start", "end"])
@pytest.mark.without("reference")
def test_nothing_is_read_or_written_outside(edge: str, variant: str) -> None:
    float8 = (*weights(37, 100, 8, bias=False), values_of("FLOAT8E4M3FN"))
    for given in (*every(), float8):
        guards = tuple(guarded(a, edge) if isinstance(a, np.ndarray) else a for a in given)
        packed = dispatch.kernel("nbits_pack")(*guards)
        for m, mode in itertools.product((1, 2, 3, 6), (EXACT, INTEGER)):
            x, out = rows(m, given[4]), guarded_empty((m, len(given[0])), edge)
            dispatch.kernel("nbits")(guarded(x, edge), packed, out, mode, IDENTITY)
            np.testing.assert_array_equal(out, product(x, given, mode))


def test_activation_comes_after_the_bias(variant: str) -> None:
    given = weights(40, 64)
    for m, mode in itertools.product((1, 6), (EXACT, INTEGER)):
        x = rows(m, 64)
        got = product(x, given, mode, Activation(UNARY["relu"].code))
        np.testing.assert_array_equal(got, np.maximum(product(x, given, mode), 0))


def test_nothing_of_it(variant: str) -> None:
    given = weights(20, 64)
    assert product(rows(0, 64), given, EXACT).shape == (0, 20)
    none = tuple(a[:0] if isinstance(a, np.ndarray) else a for a in given)
    assert product(rows(3, 64), none, INTEGER).shape == (3, 0)


@pytest.mark.parametrize("bits", [4, 8])
def test_codes_are_looked_up(bits: int, variant: str) -> None:
    """Codes of any rows, to the bit of sums of floats: numbers whose table says that they stand for themselves; there are no sums
    of integers, and the bits are those of `linear`."""
    table = np.arange(1 << bits, dtype=np.float32) - (1 << bits - 1)
    for block, (n, k), m in itertools.product((16, 32, 128), SIZES, (1, 3, 4, 5, 70)):
        given, x = weights(n, k, bits, block), rows(m, k)
        with strict():
            want = product(x, given, EXACT)
            for mode in (EXACT, INTEGER):
                np.testing.assert_array_equal(product(x, (*given, table), mode), want)
        numbers = given[0][..., None] >> np.arange(0, 8, bits, dtype=np.uint8) & ((1 << bits) - 1)
        w = (table[numbers].reshape(n, -1, block) * given[1][..., None]).reshape(n, -1)[:, :k]
        linear = dispatch.kernel("linear_pack")(np.ascontiguousarray(w), given[3])
        dispatch.kernel("linear")(x, linear, want, None, IDENTITY)
        for mode in (EXACT, INTEGER):
            np.testing.assert_array_equal(product(x, (*given, table), mode), want)
    odd = np.random.default_rng(1).standard_normal(1 << bits).astype(np.float32)
    odd[3] = np.nan
    given, x = (*weights(33, 100, bits, 32), odd), rows(5, 100)
    want = by_reference(x, given, EXACT)
    assert np.isnan(want).any() or bits == 8
    np.testing.assert_allclose(product(x, given, EXACT), want, rtol=0, atol=1e-4)


@pytest.mark.without("reference")
def test_codes_that_are_floats_of_eight_bits(variant: str) -> None:
    """The bits of `linear`: all values, NaN and infinity too; scales of float16, tiny ones, and such as no power of two bears."""
    for kind, (n, k), m in itertools.product([name for name in CODES if "8" in name], ((70, 300), (33, 40)), (1, 2, 3, 4, 9)):
        table, rng = values_of(kind), np.random.default_rng(m)
        finite = np.flatnonzero(np.isfinite(table)).astype(np.uint8)
        blocks, x = -(-k // 32), rows(m, k)
        for every, size in ((False, 1.0), (False, 1e-38), (False, 500.0), (True, 1.0)):
            numbers = rng.permutation(np.arange(n * blocks * 32) % (256 if every else len(finite))).astype(np.uint8)
            numbers = (numbers if every else finite[numbers]).reshape(n, blocks, 32)
            scales = (rng.choice([0.5, 1.5, -2], (n, blocks)) * size).astype(np.float32)
            w = (table[numbers] * scales[..., None]).reshape(n, -1)[:, :k]
            want = np.empty((m, n), np.float32)
            dispatch.kernel("linear")(x, dispatch.kernel("linear_pack")(w.copy(), None), want, None, IDENTITY)
            np.testing.assert_array_equal(product(x, (numbers, scales, None, None, k, 8, table), EXACT), want, err_msg=kind)


def _nan(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array[-1, -1] = np.nan
    return array


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (lambda w: (w[0], w[1][:, :-1].copy(), *w[2:]), ShapeError, "scale has shape"),
        (lambda w: (w[0], w[1], w[2][:-1].copy(), *w[3:]), ShapeError, "zero has shape"),
        (lambda w: (w[0][:, :, :-1].copy(), *w[1:]), ShapeError, "terms a block: expected 16, 32"),
        (lambda w: (*w[:4], 200, w[5]), ShapeError, "size is 200"),
        (lambda w: (*w[:4], 0, w[5]), ShapeError, "size is 0"),
        (lambda w: (*w[:5], 3), ArgumentError, "bits is 3: expected 2, 4 or 8"),
        (lambda w: (w[0], _nan(w[1]), *w[2:]), ArgumentError, "scale has NaN"),
        (lambda w: (*w[:2], _nan(w[2]), *w[3:]), ArgumentError, "zero has NaN"),
        (lambda w: (*w, np.zeros(16, np.float32)), ArgumentError, "16 codes of float32 for 4 bits: .* no zero points"),
        (lambda w: (*w[:2], None, *w[3:], np.zeros(15, np.float32)), ArgumentError, "15 codes"),
    ],
)
def test_what_is_refused(change: Any, error: type[Error], text: str, variant: str) -> None:
    with pytest.raises(error, match=f"^nbits_pack: .*{text}"):
        dispatch.kernel("nbits_pack")(*change(weights(20, 96, 4, 32, np.float32)))


def test_sums_that_do_not_exist(variant: str) -> None:
    with pytest.raises(ArgumentError, match=r"^nbits: mode is 2"):
        product(rows(1, 64), weights(20, 64), 2)
