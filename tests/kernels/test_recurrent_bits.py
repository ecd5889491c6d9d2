"""The recurrent kernels: results that must be equal bit for bit, bounds of memory, steps."""

from __future__ import annotations

import time
from threading import Thread
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels import dispatch
from fastlayers.kernels.table import GruOptions, LstmOptions
from tests.guard import guarded, guarded_empty

from .sequences import KINDS, Problem, Result, alone, assert_close, assert_same_bits, call, pack, problem, reference, run

# Each kind of cell, and each path through it.
CELLS: dict[str, tuple[str, Any]] = {
    "lstm": ("lstm", None),
    "lstm clip": ("lstm", LstmOptions(clip=2.0)),
    "gru": ("gru", None),
    "gru clip": ("gru", GruOptions(clip=2.0)),
    "gru early": ("gru", GruOptions(reset_after=False)),
    "rnn": ("rnn", None),
    "lstm projections": ("lstm", None),
    "lstm projections clip": ("lstm", LstmOptions(clip=2.0)),
}
cells = pytest.mark.parametrize("cell", CELLS)


def make(cell: str, shape: tuple[int, int, int, int], directions: int = 1, lengths: Any = None) -> Problem:
    kernel, options = CELLS[cell]
    projections = (shape[3] + 1) // 2 if "projections" in cell else 0
    return problem(kernel, shape, directions, options, "lstm clip" in cell, lengths, projections=projections)


def state(p: Problem) -> tuple[np.ndarray, np.ndarray]:
    assert p.h0 is not None
    assert p.c0 is not None
    return p.h0, p.c0


@pytest.mark.later("reference")  # whose recurrence is one loop of numpy's, in every case
@cells
@pytest.mark.parametrize(("inputs", "hidden"), [(3, 20), (40, 64), (300, 290)])
@pytest.mark.parametrize("batch_first", [False, True])
def test_pieces_equal_the_whole(variant: str, cell: str, inputs: int, hidden: int, batch_first: bool) -> None:
    for batch in (1, 3):
        p = make(cell, (11, batch, inputs, hidden))
        whole = run(p, batch_first=batch_first)
        outs, (h, c) = [], state(p)
        for begin, end in ((0, 1), (1, 1), (1, 4), (4, 11)):
            piece = run(p._replace(x=p.x[begin:end], h0=h, c0=c), batch_first=batch_first)
            outs.append(piece.out)
            h, c = piece.hn, piece.cn
        assert_same_bits(Result(np.concatenate(outs), h, c if p.kernel == "lstm" else whole.cn), whole)


@pytest.mark.later("reference")  # whose recurrence is one loop of numpy's, in every case
@cells
@pytest.mark.parametrize("batch", [2, 3, 7, 16, 17, 33, 70])
@pytest.mark.parametrize(("inputs", "hidden"), [(5, 20), (260, 270)])
def test_batch_equals_single(variant: str, cell: str, batch: int, inputs: int, hidden: int) -> None:
    lengths = tuple(3 + j % 3 for j in range(batch))
    p = make(cell, (5, batch, inputs, hidden), lengths=lengths)
    whole = run(p, reverse=True)
    for j in {0, 1, batch // 2, batch - 1}:
        row = np.s_[:, j : j + 1]
        assert_same_bits(run(alone(p, j), reverse=True), Result(whole.out[row], whole.hn[row], whole.cn[row]))


@cells
@pytest.mark.parametrize("shape", [(6, 1, 5, 20), (6, 5, 5, 20)], ids=str)
def test_two_directions_equal_two_calls(variant: str, cell: str, shape: tuple[int, int, int, int]) -> None:
    kernel, options = CELLS[cell]
    both = make(cell, shape, 2)
    if options is not None:  # the second direction's functions become the first one's
        both = both._replace(options=options._replace(activations=options.activations[:1] * 2))
    whole, (h0, c0) = run(both), state(both)
    for d in range(2):
        one = np.s_[d : d + 1]
        weights = tuple(None if w is None else w[one] for w in both.weights)
        alone = run(both._replace(weights=weights, h0=h0[one], c0=c0[one]), reverse=d == 1)
        assert_same_bits(alone, Result(whole.out[:, :, one], whole.hn[one], whole.cn[one]))
    assert kernel == both.kernel


@pytest.mark.later("reference")  # whose recurrence is one loop of numpy's, in every case
@cells
@pytest.mark.parametrize("shape", [(300, 1, 64, 48), (40, 40, 64, 48), (3, 300, 64, 48), (20, 17, 200, 130)], ids=str)
@pytest.mark.parametrize("directions", [1, 2])
def test_threads_do_not_matter(variant: str, cell: str, shape: tuple[int, int, int, int], directions: int) -> None:
    lengths = tuple(shape[0] - j % 3 for j in range(shape[1]))
    p = make(cell, shape, directions, lengths)
    before = fl.get_num_threads()
    try:
        results = []
        for threads in (1, 2, 5):
            fl.set_num_threads(threads)
            results.append(run(p, batch_first=True))
    finally:
        fl.set_num_threads(before)
    for result in results[1:]:
        assert_same_bits(result, results[0])


@cells
@pytest.mark.parametrize("shape", [(24, 1, 7, 650), (12, 3, 7, 690), (60, 1, 130, 250), (30, 2, 200, 130)], ids=str)
def test_units_may_be_cut_among_threads(cell: str, shape: tuple[int, int, int, int]) -> None:
    """Few sequences and a large R: each thread has some of the units of every step, and of the input product of few rows."""
    if not dispatch.levels():
        pytest.skip("the compiled engine is not built here")
    p = make(cell, shape, lengths=tuple(shape[0] - 3 * j for j in range(shape[1])))
    before, results = fl.get_num_threads(), []
    try:
        with fl.kernels.use("aot"):
            for threads in (1, 2, 5):
                fl.set_num_threads(threads)
                results += [run(p), run(p, reverse=True, batch_first=True)]
    finally:
        fl.set_num_threads(before)
    for forward, backward in zip(results[2::2], results[3::2], strict=True):
        assert_same_bits(forward, results[0])
        assert_same_bits(backward, results[1])


@cells
def test_levels_with_fused_multiply_add_agree(cell: str) -> None:
    results = []
    for name in ("aot/x86_v3", "aot/x86_v4"):
        if name not in fl.kernels.available():
            pytest.skip(f"{name} is not built here or this processor cannot run it")
        with fl.kernels.use(name):
            results.append([run(make(cell, shape, 2)) for shape in ((9, 3, 300, 70), (9, 1, 300, 70))])
    for a, b in zip(*results, strict=True):
        assert_same_bits(a, b)


@cells
def test_weights_packed_on_one_level_run_on_another(cell: str) -> None:
    levels = [name for name in fl.kernels.available() if name.startswith("aot/")]
    if not levels:
        pytest.skip("the compiled engine is not built here")
    p = make(cell, (5, 3, 20, 40), 2)
    with fl.kernels.use(levels[-1]):
        packed = pack(p)
    for name in levels:
        with fl.kernels.use(name):
            assert_same_bits(run(p, packed=packed), run(p))


@cells
def test_calls_at_once(variant: str, cell: str) -> None:
    """One packed object in several threads of the caller's."""
    p = make(cell, (20, 4, 30, 40), 2)
    want, packed = run(p), pack(p)
    results: list[Result] = []

    def work() -> None:
        for _ in range(5):
            results.append(run(p, packed=packed))

    workers = [Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(results) == 20
    for result in results:
        assert_same_bits(result, want)


@pytest.mark.later("reference")  # whose recurrence is one loop of numpy's, in every case
@cells
@pytest.mark.parametrize("shape", [(3, 1, 5, 7), (3, 1, 16, 32), (2, 3, 257, 17), (4, 9, 16, 48), (2, 300, 3, 5)], ids=str)
@pytest.mark.parametrize("edge", ["end", "start"])
def test_stays_inside(variant: str, threads: int, cell: str, shape: tuple[int, int, int, int], edge: str) -> None:
    """Reads and writes nothing outside its operands, and does not write to read-only ones."""
    steps, batch, *_ = shape
    p = make(cell, shape, 2, tuple(steps - j % 2 for j in range(batch)))
    want = reference(p)

    def lay(array: np.ndarray | None) -> np.ndarray | None:
        if array is None:
            return None
        result = guarded(array, edge)
        result.flags.writeable = False
        return result

    for batch_first in (False, True):
        fixed = p._replace(weights=tuple(map(lay, p.weights)), h0=lay(p.h0), c0=lay(p.c0), lengths=lay(p.lengths))
        x = lay(p.x.swapaxes(0, 1) if batch_first else p.x)
        assert x is not None
        out = guarded_empty((*x.shape[:2], 2 * p.outs), edge)
        hn, cn = guarded_empty((2, batch, p.outs), edge), guarded_empty((2, batch, p.hidden), edge)
        call(fixed, pack(fixed), x, out, hn, cn, batch_first, False, False)
        out = out.reshape(*x.shape[:2], 2, p.outs)
        out = np.ascontiguousarray(out.swapaxes(0, 1)) if batch_first else out
        assert_close(p.kernel, Result(out, hn, cn if p.kernel == "lstm" else want.cn), want)


@cells
@pytest.mark.parametrize("edge", ["end", "start"])
def test_masks_stay_inside(variant: str, cell: str, edge: str) -> None:
    mask = np.random.default_rng(1).random((5, 9)) < 0.5
    p = make(cell, (9, 5, 3, 17), 2, mask)
    assert p.lengths is not None
    assert_close(p.kernel, run(p._replace(lengths=guarded(p.lengths, edge))), reference(p))


@cells
def test_packed_holds_copies(variant: str, cell: str) -> None:
    p = make(cell, (3, 2, 4, 18), 2)
    weights = tuple(None if w is None else w.copy() for w in p.weights)
    packed = pack(p._replace(weights=weights))
    for w in weights:
        if w is not None:
            w[...] = np.nan
    assert_same_bits(run(p, packed=packed), run(p))


# ---- steps -------------------------------------------------------------------------------------------------------------------


def step_of(p: Problem, packed: Any, *missing: str) -> Any:
    """The step of a problem without its results in `missing`."""
    steps, batch, _ = p.x.shape
    shapes: dict[str, Any] = {"out": (steps, batch, p.directions * p.outs), "hn": (p.directions, batch, p.outs)}
    shapes["cn"] = (p.directions, batch, p.hidden)
    given = p._replace(**{name: None if getattr(p, name) is None else getattr(p, name).shape for name in ("h0", "c0", "lengths")})
    results = (None if name in missing else shapes[name] for name in ("out", "hn", "cn"))
    return call(given, packed, p.x.shape, *results, False, False, False, maker=dispatch.step(p.kernel))


def operands(p: Problem, result: dict[str, Any]) -> list[Any]:
    """The step's arrays in order."""
    before = [p.h0, p.c0, p.lengths] if p.kernel == "lstm" else [p.h0, p.lengths]
    return [p.x, *before, *(result.get(name) for name in ("out", "hn", *(("cn",) if p.kernel == "lstm" else ())))]


@cells
@pytest.mark.without("reference", "jit", "cuda")  # steps are the compiled engine's
def test_steps_of_many_lengths_share_their_weights(variant: str, cell: str) -> None:
    longest = make(cell, (12, 3, 5, 20), 2, (2, 12, 5))
    packed = pack(longest)
    for steps in (12, 1, 7, 0):
        p = longest._replace(x=np.ascontiguousarray(longest.x[:steps]))
        want = run(p)
        full = {"out": want.out.reshape(steps, 3, 2 * p.outs), "hn": want.hn, "cn": want.cn}
        for missing in ((), ("out",), ("hn", "cn")):
            got = {name: np.full_like(array, np.nan) for name, array in full.items() if name not in missing}
            step_of(p, packed, *missing)(*operands(p, got))
            for name, array in got.items():
                if name != "cn" or p.kernel == "lstm":
                    np.testing.assert_array_equal(array, full[name])


@pytest.mark.without("reference", "jit", "cuda")  # steps are the compiled engine's
def test_a_step_keeps_its_weights_alive(variant: str) -> None:
    p = make("lstm", (3, 2, 4, 18))
    want, step = run(p), step_of(p, pack(p))
    filler = [pack(make("lstm", (3, 2, 4, 18))._replace(x=p.x)) for _ in range(3)]  # would reuse the weights' memory
    got = {
        "out": np.empty((3, 2, 18), np.float32),
        "hn": np.empty((1, 2, 18), np.float32),
        "cn": np.empty((1, 2, 18), np.float32),
    }
    step(*operands(p, got))
    assert_same_bits(Result(got["out"].reshape(3, 2, 1, 18), got["hn"], got["cn"]), want)
    assert len(filler) == 3


@pytest.mark.parametrize("kernel", KINDS)
def test_making_a_step_costs_microseconds(kernel: str) -> None:
    """Lengths vary from call to call. Packing the weights of this size takes milliseconds."""
    if not dispatch.levels():
        pytest.skip("the compiled engine is not built here")
    with fl.kernels.use("aot"):
        p = problem(kernel, (100, 1, 512, 512))
        packed, best = pack(p), 1.0
        for _ in range(20):
            begin = time.perf_counter()
            step_of(p, packed)
            best = min(best, time.perf_counter() - begin)
    assert best < 1e-4
