"""The LSTM kernel: variants against the reference, the reference against torch, equality of bits, bounds, NaN, saturation."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import numpy as np
import pytest

import fastlayers as fl
from bench.cases import prepare
from bench.cases.recurrent import CASES
from fastlayers.kernels import _dispatch
from tests.guard import guarded, guarded_empty

GOLDEN = Path(__file__).parent.parent / "goldens" / "lstm.npz"

# h lies in [-1, 1]. A gate's sum of some hundred terms near 1 is off by a few 1e-7, exp and tanh by as much again; the gates keep
# the errors of earlier steps from growing. The worst of the cases below is 1.2e-6.
H_TOLERANCE = 2e-6
# c grows by up to 1 a step and has the sums' errors relative to its size.
C_TOLERANCE = 4e-6


class Result(NamedTuple):
    out: np.ndarray
    hn: np.ndarray
    cn: np.ndarray


class Problem(NamedTuple):
    """x is always (t, b, i) here; `run` lays it out."""

    x: np.ndarray
    weights: tuple[np.ndarray | None, ...]
    h0: np.ndarray
    c0: np.ndarray


def problem(steps: int, batch: int, inputs: int, hidden: int, scale: float = 1.0) -> Problem:
    rng = np.random.default_rng([steps, batch, inputs, hidden])

    def normal(*shape: int, fan_in: int = 1) -> np.ndarray:
        return (rng.standard_normal(shape) / np.sqrt(max(fan_in, 1))).astype(np.float32)

    gates = 4 * hidden
    weights = (normal(gates, inputs, fan_in=inputs), normal(gates, hidden, fan_in=hidden), normal(gates), normal(gates))
    x = normal(steps, batch, inputs) * np.float32(scale)
    return Problem(x, weights, np.tanh(normal(batch, hidden)), normal(batch, hidden))


def run(
    p: Problem, reverse: bool = False, batch_first: bool = False, state: bool = True, column: int = 0, wider: int = 0
) -> Result:
    """Runs the current variant; `out` has `wider` columns more than h, and comes back as (t, b, o)."""
    packed = _dispatch.kernel("lstm_pack")(*p.weights)
    batch, hidden = p.h0.shape
    x = np.ascontiguousarray(p.x.swapaxes(0, 1)) if batch_first else p.x
    out = np.full((*x.shape[:2], hidden + wider), 77, np.float32)
    hn, cn = (np.full((batch, hidden), np.nan, np.float32) for _ in range(2))
    _dispatch.kernel("lstm")(
        x, packed, p.h0 if state else None, p.c0 if state else None, out, column, hn, cn, reverse, batch_first
    )
    return Result(np.ascontiguousarray(out.swapaxes(0, 1)) if batch_first else out, hn, cn)


def reference(p: Problem, **options: Any) -> Result:
    before = _dispatch.current()
    with fl.kernels.use("reference"):
        result = run(p, **options)
    assert _dispatch.current() == before
    return result


def assert_close(got: Result, want: Result) -> None:
    np.testing.assert_allclose(got.out, want.out, rtol=0, atol=H_TOLERANCE)
    np.testing.assert_allclose(got.hn, want.hn, rtol=0, atol=H_TOLERANCE)
    np.testing.assert_allclose(got.cn, want.cn, rtol=C_TOLERANCE, atol=C_TOLERANCE)


def assert_same_bits(got: Result, want: Result) -> None:
    for name in Result._fields:
        np.testing.assert_array_equal(getattr(got, name).view(np.int32), getattr(want, name).view(np.int32), err_msg=name)


# ---- the reference against torch ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(5))
def test_torch(number: int) -> None:
    """1e-6: torch computed in float64; the reference rounds the state to float32 after each of at most 40 steps."""
    with np.load(GOLDEN) as file:
        case = json.loads(str(file["cases"]))[number]
        golden = {name.partition(".")[2]: file[name] for name in file.files if name.startswith(f"{number}.")}
    batch_first = case.get("batch_first", False)
    hidden = case["shape"][3]
    out = np.full_like(golden["out"], np.nan)
    hn, cn = np.full_like(golden["hn"], np.nan), np.full_like(golden["cn"], np.nan)
    with fl.kernels.use("reference"):
        for d in range(case.get("directions", 1)):
            names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
            packed = _dispatch.kernel("lstm_pack")(*(golden.get(name + "_reverse" * d) for name in names))
            h0, c0 = (golden[name][d] if name in golden else None for name in ("h0", "c0"))
            _dispatch.kernel("lstm")(golden["x"], packed, h0, c0, out, d * hidden, hn[d], cn[d], d == 1, batch_first)
    for name, got in (("out", out), ("hn", hn), ("cn", cn)):
        np.testing.assert_allclose(got, golden[name], rtol=0, atol=1e-6, err_msg=name)


# ---- variants against the reference ------------------------------------------------------------------------------------------

# steps, batch, inputs, hidden: nothing, one, around a panel (16), around two panels, around a block of K (256), batches around
# the tiles and tasks, more rows than one input product takes
SHAPES = (
    (0, 2, 3, 4),
    (3, 0, 3, 4),
    (3, 2, 0, 4),
    (3, 2, 3, 0),
    (1, 1, 1, 1),
    (1, 1, 128, 128),
    (7, 1, 15, 15),
    (6, 2, 16, 16),
    (5, 3, 17, 17),
    (5, 1, 31, 33),
    (4, 4, 33, 48),
    (3, 1, 255, 255),
    (3, 2, 256, 256),
    (3, 5, 257, 257),
    (2, 1, 515, 521),
    (2, 17, 515, 270),
    (300, 1, 3, 20),
    (270, 2, 3, 20),
    (9, 37, 4, 18),
    (2, 300, 5, 6),
)

OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"reverse": True, "column": 3, "wider": 5},
    {"batch_first": True, "state": False},
    {"batch_first": True, "reverse": True, "column": 1, "wider": 1},
)


@cache
def wanted(shape: tuple[int, int, int, int]) -> tuple[Result, ...]:
    """What the reference gives for a shape under every option."""
    return tuple(reference(problem(*shape), **option) for option in OPTIONS)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_reference(variant: str, shape: tuple[int, int, int, int]) -> None:
    p = problem(*shape)
    for option, want in zip(OPTIONS, wanted(shape), strict=True):
        got = run(p, **option)
        assert_close(got, want)
        hidden, column = shape[3], option.get("column", 0)
        assert (np.delete(got.out, np.s_[column : column + hidden], axis=2) == 77).all()


@pytest.mark.parametrize("given", range(4))
def test_bias_may_be_missing(variant: str, given: int) -> None:
    p = problem(4, 3, 5, 19)
    w_ih, w_hh, *biases = p.weights
    p = p._replace(weights=(w_ih, w_hh, *(b if given >> i & 1 else None for i, b in enumerate(biases))))
    assert_close(run(p), reference(p))


@pytest.mark.parametrize("case", [c for c in CASES if c.flops < 3e7], ids=lambda c: c.label)
def test_bench_cases(variant: str, case: Any) -> None:
    """The smaller shapes of the benchmarks; the others differ in no remainder."""
    got = prepare(case)
    got.call()
    with fl.kernels.use("reference"):
        want = prepare(case)
        want.call()
    assert_close(Result(**got.outputs), Result(**want.outputs))


# ---- equality of bits --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("inputs", "hidden"), [(3, 20), (40, 64), (300, 290)])
@pytest.mark.parametrize("batch_first", [False, True])
def test_pieces_equal_the_whole(variant: str, inputs: int, hidden: int, batch_first: bool) -> None:
    for batch in (1, 3):
        p = problem(11, batch, inputs, hidden)
        whole = run(p, batch_first=batch_first)
        outs, h, c = [], p.h0, p.c0
        for begin, end in ((0, 1), (1, 1), (1, 4), (4, 11)):
            piece = run(Problem(p.x[begin:end], p.weights, h, c), batch_first=batch_first)
            outs.append(piece.out)
            h, c = piece.hn, piece.cn
        assert_same_bits(Result(np.concatenate(outs), h, c), whole)


@pytest.mark.parametrize("batch", [2, 3, 7, 16, 17, 33])
@pytest.mark.parametrize(("inputs", "hidden"), [(5, 20), (260, 270)])
def test_batch_equals_single(variant: str, batch: int, inputs: int, hidden: int) -> None:
    p = problem(5, batch, inputs, hidden)
    whole = run(p, reverse=True)
    for j in {0, 1, batch // 2, batch - 1}:
        row = Problem(np.ascontiguousarray(p.x[:, j : j + 1]), p.weights, p.h0[j : j + 1], p.c0[j : j + 1])
        single = run(row, reverse=True)
        assert_same_bits(single, Result(whole.out[:, j : j + 1], whole.hn[j : j + 1], whole.cn[j : j + 1]))


@pytest.mark.parametrize("shape", [(300, 1, 64, 48), (40, 40, 64, 48), (3, 300, 64, 48)], ids=str)
def test_threads_do_not_matter(variant: str, shape: tuple[int, int, int, int]) -> None:
    p = problem(*shape)
    before = fl.get_num_threads()
    try:
        results = []
        for threads in (1, 2):
            fl.set_num_threads(threads)
            results.append(run(p, batch_first=True))
    finally:
        fl.set_num_threads(before)
    assert_same_bits(results[1], results[0])


def test_levels_with_fused_multiply_add_agree() -> None:
    p = problem(9, 3, 300, 70)
    results = []
    for name in ("aot/x86_v3", "aot/x86_v4"):
        if name not in fl.kernels.available():
            pytest.skip(f"{name} is not built here or this processor cannot run it")
        with fl.kernels.use(name):
            results.append(run(p))
    assert_same_bits(results[1], results[0])


def test_calls_at_once(variant: str) -> None:
    """One packed object in several threads of the caller's."""
    p = problem(20, 4, 30, 40)
    want = run(p)
    packed = _dispatch.kernel("lstm_pack")(*p.weights)
    results = [Result(*(np.full_like(a, np.nan) for a in want)) for _ in range(4)]

    def work(result: Result) -> None:
        for _ in range(5):
            _dispatch.kernel("lstm")(p.x, packed, p.h0, p.c0, result.out, 0, result.hn, result.cn, False, False)

    workers = [Thread(target=work, args=(result,)) for result in results]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for result in results:
        assert_same_bits(result, want)


# ---- memory, special values --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 1, 5, 7), (3, 1, 16, 32), (2, 3, 257, 17), (4, 9, 16, 48), (2, 300, 3, 5)], ids=str)
@pytest.mark.parametrize("edge", ["end", "start"])
def test_stays_inside(variant: str, threads: int, shape: tuple[int, int, int, int], edge: str) -> None:
    """Reads and writes nothing outside its operands, and does not write to read-only ones."""
    p = problem(*shape)
    _, batch, _, hidden = shape
    for batch_first in (False, True):
        x = np.ascontiguousarray(p.x.swapaxes(0, 1)) if batch_first else p.x
        inputs = [guarded(a, edge) for a in (*p.weights, x, p.h0, p.c0)]
        for a in inputs:
            a.flags.writeable = False
        packed = _dispatch.kernel("lstm_pack")(*inputs[:4])
        out = guarded_empty((*x.shape[:2], hidden), edge)
        hn, cn = guarded_empty((batch, hidden), edge), guarded_empty((batch, hidden), edge)
        _dispatch.kernel("lstm")(inputs[4], packed, inputs[5], inputs[6], out, 0, hn, cn, False, batch_first)
        out = np.ascontiguousarray(out.swapaxes(0, 1)) if batch_first else out
        assert_close(Result(out, hn, cn), reference(p))


def test_packed_holds_copies(variant: str) -> None:
    p = problem(3, 2, 4, 18)
    weights = tuple(w.copy() for w in p.weights if w is not None)
    packed = _dispatch.kernel("lstm_pack")(*weights)
    for w in weights:
        w[...] = np.nan
    want = run(p)
    got = Result(*(np.full_like(a, np.nan) for a in want))
    _dispatch.kernel("lstm")(p.x, packed, p.h0, p.c0, got.out, 0, got.hn, got.cn, False, False)
    assert_same_bits(got, want)


@pytest.mark.parametrize("batch", [1, 2, 5, 20])
@pytest.mark.parametrize("reverse", [False, True])
def test_nan_stays_in_its_sequence(variant: str, batch: int, reverse: bool) -> None:
    p = problem(6, batch, 4, 21)
    clean = run(p, reverse=reverse)
    x = p.x.copy()
    x[3, batch // 2, 1] = np.nan
    got = run(p._replace(x=x), reverse=reverse)
    hit = np.zeros((6, batch), bool)
    hit[slice(None, 4) if reverse else slice(3, None), batch // 2] = True
    assert np.isnan(got.out[hit]).all()
    np.testing.assert_array_equal(got.out[~hit], clean.out[~hit])
    others = np.arange(batch) != batch // 2
    assert np.isnan(got.hn[~others]).all() and np.isnan(got.cn[~others]).all()
    np.testing.assert_array_equal(got.hn[others], clean.hn[others])
    np.testing.assert_array_equal(got.cn[others], clean.cn[others])


@pytest.mark.parametrize(("scale", "tolerance"), [(1e4, 5e-3), (1e30, 2)])
def test_saturates(variant: str, scale: float, tolerance: float) -> None:
    """Gates of any size give 0, 1 or -1, not NaN. A sum that happens to lie near zero has an error relative to `scale`."""
    for batch in (1, 4):
        p = problem(8, batch, 6, 20, scale)
        got = run(p)
        assert (np.abs(got.out) <= 1).all() and (np.abs(got.cn) <= 8 + np.abs(p.c0).max()).all()
        np.testing.assert_allclose(got.out, reference(p).out, rtol=0, atol=tolerance)


def test_infinite_input(variant: str) -> None:
    """One infinite element of x and weights of either sign: gates are saturated, and only that."""
    p = problem(3, 2, 1, 20)
    p.x[1, 0, 0] = np.inf
    got = run(p)
    assert np.isfinite(got.out).all()
    assert_close(got, reference(p))
