"""The recurrent kernels: every variant against other frameworks, and against the reference in all shapes, layouts and options."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastlayers.kernels import dispatch
from fastlayers.kernels.table import Activation, GruOptions, LstmOptions, RnnOptions

from ..each import each
from .sequences import (
    KINDS,
    Problem,
    Result,
    alone,
    assert_close,
    assert_same_bits,
    call,
    function,
    pack,
    problem,
    reference,
    run,
)

# ---- against other frameworks ------------------------------------------------------------------------------------------------

GOLDENS = Path(__file__).parent.parent / "goldens" / "recurrent.npz"
with np.load(GOLDENS) as _file:
    GOLDEN_CASES: list[dict[str, Any]] = json.loads(str(_file["cases"]))

# torch computed in float64; the reference rounds the state to float32 after each of at most 40 steps. onnxruntime computed in
# float32, with approximations of sigmoid and tanh of its own.
GOLDEN_TOLERANCE = {"torch": 1e-6, "onnxruntime": 2e-6}


def golden_options(case: dict[str, Any]) -> Any:
    flags, clip = case.get("flags", "").split(), case.get("clip", 0.0)
    chosen: Any = [tuple(function(*f) for f in direction) for direction in case.get("activations", ())]
    changed: dict[str, Any] = {"clip": clip}
    if case["kernel"] == "rnn":
        if chosen:
            changed["activations"] = tuple(f for (f,) in chosen)
        return RnnOptions(**changed)
    if chosen:
        changed["activations"] = tuple(chosen)
    if case["kernel"] == "gru":
        return GruOptions(reset_after="early" not in flags, **changed)
    return LstmOptions(couple_input_forget="couple_input_forget" in flags, **changed)


@each("number", range(len(GOLDEN_CASES)))
def test_goldens(variant: str, number: int) -> None:
    case = GOLDEN_CASES[number]
    with np.load(GOLDENS) as file:
        golden = {name.partition(".")[2]: file[name] for name in file.files if name.startswith(f"{number}.")}
    names = ("w_ih", "w_hh", "b_ih", "b_hh", *(("peephole", "w_hr") if case["kernel"] == "lstm" else ()))
    weights = tuple(golden.get(name) for name in names)
    states = (golden.get(name) for name in ("h0", "c0"))
    p = Problem(case["kernel"], golden["x"], weights, golden_options(case), *states, golden.get("lengths"))
    flags = case.get("flags", "").split()
    wanted = {name: golden[name] for name in ("out", "hn", "cn") if name in golden}
    got = {name: np.full_like(array, np.nan) for name, array in wanted.items()}
    apart = case["by"] == "onnxruntime"  # ONNX's Y has an axis of directions
    call(p, pack(p), golden["x"], got["out"], got["hn"], got.get("cn"), "batch_first" in flags, apart, "reverse" in flags)
    # The compiled variants' own errors come on top.
    tolerance = GOLDEN_TOLERANCE[case["by"]] + (0 if variant == "reference" else 2e-6)
    for name, want in wanted.items():
        np.testing.assert_allclose(got[name], want, rtol=0, atol=tolerance, err_msg=name)


# ---- variants against the reference ------------------------------------------------------------------------------------------

# steps, batch, inputs, hidden: nothing, one, around a panel (16), around two panels, around a block of K (256), groups of units
# of several sizes, batches around the tiles, the rows of a step (64) and a slab (256), more rows than one input product takes
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
    (3, 1, 20, 144),
    (3, 1, 255, 255),
    (3, 2, 256, 256),
    (3, 5, 257, 257),
    (2, 1, 515, 521),
    (2, 17, 515, 270),
    (300, 1, 3, 20),
    (270, 2, 3, 20),
    (9, 37, 4, 18),
    (3, 65, 4, 18),
    (2, 300, 5, 6),
)

LAYOUTS: tuple[dict[str, bool], ...] = (
    {},
    {"reverse": True},
    {"apart": True},
    {"batch_first": True},
    {"batch_first": True, "apart": True, "reverse": True},
)


@cache
def wanted(kernel: str, shape: tuple[int, int, int, int], directions: int) -> tuple[Result, Result]:
    """What the reference gives, forward and with `reverse`."""
    p = problem(kernel, shape, directions)
    return reference(p), reference(p, reverse=True)


@pytest.mark.later("reference")  # test_cells and the goldens hold it
@pytest.mark.parametrize("kernel", KINDS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.sampled(2)
def test_shapes(variant: str, kernel: str, shape: tuple[int, int, int, int]) -> None:
    for layout in LAYOUTS:
        directions = 1 if layout.get("reverse") else 2
        want = wanted(kernel, shape, directions)[layout.get("reverse", False)]
        assert_close(kernel, run(problem(kernel, shape, directions), **layout), want)


HARD, TANH, SIGMOID = function("hardsigmoid", 0.2, 0.5), function("tanh"), function("sigmoid")
OPTIONS: dict[str, tuple[str, Any]] = {
    "functions": ("lstm", LstmOptions(((HARD, function("softsign"), function("relu")), (SIGMOID, function("elu", 0.5), TANH)))),
    "clip": ("lstm", LstmOptions(clip=0.75)),
    "coupled": ("lstm", LstmOptions(couple_input_forget=True)),
    "all": ("lstm", LstmOptions(((HARD, TANH, TANH), (HARD, TANH, function("softsign"))), 0.75, True)),
    "gru functions": ("gru", GruOptions(((HARD, function("softsign")), (SIGMOID, function("elu", 0.5))))),
    "gru clip": ("gru", GruOptions(clip=0.75)),
    "early": ("gru", GruOptions(reset_after=False)),
    "early, all": ("gru", GruOptions(((HARD, function("softsign")), (SIGMOID, TANH)), 0.75, False)),
    "relu": ("rnn", RnnOptions((function("relu"), function("leaky_relu", 0.1)))),
    "rnn clip": ("rnn", RnnOptions((function("softplus"), TANH), 0.75)),
}


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("shape", [(5, 1, 3, 7), (4, 3, 5, 33), (3, 1, 4, 144), (3, 70, 4, 18), (2, 2, 3, 270)], ids=str)
def test_options(variant: str, name: str, shape: tuple[int, int, int, int]) -> None:
    kernel, options = OPTIONS[name]
    for peephole in (False, True) if kernel == "lstm" else (False,):
        p = problem(kernel, shape, 2, options, peephole)
        # Results beyond 1 (ReLU, softplus) have errors relative to their size.
        assert_close(kernel, run(p), reference(p), relative=4e-6)


@pytest.mark.parametrize("given", range(4))
@pytest.mark.parametrize("kernel", [*KINDS, "early"])
def test_bias_may_be_missing(variant: str, kernel: str, given: int) -> None:
    options = GruOptions(reset_after=False) if kernel == "early" else None
    kernel = "gru" if kernel == "early" else kernel
    p = problem(kernel, (4, 3, 5, 19), 2, options)
    w_ih, w_hh, b_ih, b_hh, *peephole = p.weights
    p = p._replace(weights=(w_ih, w_hh, b_ih if given & 1 else None, b_hh if given & 2 else None, *peephole))
    assert_close(kernel, run(p), reference(p))


@pytest.mark.parametrize("kernel", KINDS)
def test_state_may_be_missing(variant: str, kernel: str) -> None:
    p = problem(kernel, (4, 3, 5, 19), 2)
    zeros = np.zeros_like(p.h0)
    for missing in ("h0", "c0"):
        assert_same_bits(run(p._replace(**{missing: None})), run(p._replace(**{missing: zeros})))


@pytest.mark.parametrize("kernel", KINDS)
def test_results_may_be_unwanted(variant: str, kernel: str) -> None:
    """Each of out, hn and cn may be None; the others are what they are with it."""
    p = problem(kernel, (4, 3, 5, 19), 2, lengths=(4, 0, 2))
    want = run(p)
    packed = pack(p)
    for missing in range(1, 8):
        full = (want.out.reshape(4, 3, -1), want.hn, want.cn)
        got = [None if missing >> i & 1 else np.full_like(a, np.nan) for i, a in enumerate(full)]
        call(p, packed, p.x, *got, False, False, False)
        for i, (a, b) in enumerate(zip(got, full, strict=True)):
            if a is not None and (i < 2 or kernel == "lstm"):
                np.testing.assert_array_equal(a, b)


def test_options_that_change_nothing(variant: str) -> None:
    """What is not the default takes another path, whose results are those of the first but for rounding."""
    far = 1e30
    for kernel, options in (("lstm", LstmOptions(clip=far)), ("gru", GruOptions(clip=far)), ("rnn", RnnOptions(clip=far))):
        for shape in ((7, 1, 5, 33), (7, 5, 5, 33), (3, 2, 300, 270)):
            p = problem(kernel, shape, 2)
            assert_close(kernel, run(p._replace(options=options)), run(p))


# ---- lengths -----------------------------------------------------------------------------------------------------------------

LENGTHS = ((5, 5, 5), (5, 3, 1), (1, 3, 5), (0, 5, 2), (0, 0, 0), (2, 4, 4))


@pytest.mark.parametrize("kernel", KINDS)
@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_lengths(variant: str, kernel: str, lengths: tuple[int, ...]) -> None:
    """Each sequence gives the bits that it gives alone, cut to its length; zeros follow."""
    for layout in LAYOUTS:
        p = problem(kernel, (5, 3, 4, 18), 1 if layout.get("reverse") else 2, lengths=lengths)
        got = run(p, **layout)
        for j, length in enumerate(lengths):
            row, one = np.s_[:, j : j + 1], alone(p, j)
            want = run(one._replace(x=np.ascontiguousarray(one.x[:length]), lengths=None), **layout)
            assert_same_bits(Result(got.out[:length, j : j + 1], got.hn[row], got.cn[row]), want)
            assert not got.out[length:, j].any()


@pytest.mark.parametrize("kernel", KINDS)
def test_many_lengths(variant: str, kernel: str) -> None:
    rng = np.random.default_rng(0)
    for shape in ((40, 23, 5, 20), (7, 300, 3, 6)):
        p = problem(kernel, shape, 2, lengths=tuple(rng.integers(0, shape[0] + 1, shape[1])))
        assert_close(kernel, run(p), reference(p))


@pytest.mark.parametrize("kernel", KINDS)
def test_padding_is_not_read(variant: str, kernel: str) -> None:
    p = problem(kernel, (6, 3, 4, 18), 2, lengths=(2, 6, 4))
    x = p.x.copy()
    x[2:, 0] = x[4:, 2] = np.nan
    assert_same_bits(run(p._replace(x=x)), run(p))


def test_lengths_out_of_range_are_cut(variant: str) -> None:
    """Callers check lengths; a kernel must at least not read elsewhere."""
    p = problem("lstm", (4, 3, 5, 7), 2)
    assert_same_bits(
        run(p._replace(lengths=np.array([9, -3, 2], np.int32))), run(p._replace(lengths=np.array([4, 0, 2], np.int32)))
    )


@pytest.mark.parametrize("kernel", KINDS)
@pytest.mark.parametrize("batch", [1, 3, 270])
def test_masks(variant: str, kernel: str, batch: int) -> None:
    """A sequence with holes gives the bits of its steps put together; zeros are in the holes, and x is not read there."""
    rng = np.random.default_rng(batch)
    mask = rng.random((batch, 7)) < 0.6
    mask[0], mask[-1, 0] = (True, False) if batch > 1 else (mask[0], False)
    for layout in LAYOUTS:
        p = problem(kernel, (7, batch, 4, 18), 1 if layout.get("reverse") else 2, lengths=mask)
        p.x[~mask.T] = np.nan
        got = run(p, **layout)
        assert not got.out[~mask.T].any()
        for j in {0, 1 % batch, batch - 1}:
            row, one, times = np.s_[:, j : j + 1], alone(p, j), mask[j]
            want = run(one._replace(x=np.ascontiguousarray(one.x[times]), lengths=None), **layout)
            assert_same_bits(Result(got.out[times, j : j + 1], got.hn[row], got.cn[row]), want)
        assert_close(kernel, got, reference(p, **layout))


@pytest.mark.parametrize("kernel", KINDS)
def test_a_mask_without_holes_is_lengths(variant: str, kernel: str) -> None:
    p = problem(kernel, (6, 5, 4, 18), 2, lengths=(6, 0, 3, 1, 6))
    assert p.lengths is not None
    assert_same_bits(run(p._replace(lengths=np.arange(6) < p.lengths[:, None])), run(p))


# ---- projections -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [None, "all"])
@pytest.mark.parametrize(
    ("shape", "projections"),
    [
        ((5, 1, 3, 7), 3), ((4, 3, 5, 33), 16), ((3, 1, 4, 144), 17), ((3, 70, 4, 18), 1), ((2, 2, 3, 270), 260),
        ((2, 1, 3, 530), 259), ((3, 1, 2, 2), 2), ((3, 300, 5, 20), 18),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.sampled(2)
def test_projections(variant: str, shape: tuple[int, int, int, int], projections: int, options: str | None) -> None:
    for layout in LAYOUTS:
        directions = 1 if layout.get("reverse") else 2
        p = problem("lstm", shape, directions, options and OPTIONS[options][1], options is not None, projections=projections)
        assert_close("lstm", run(p, **layout), reference(p, **layout))


def test_the_identity_projects_to_itself(variant: str) -> None:
    p = problem("lstm", (5, 3, 4, 20), projections=20)
    same = p._replace(weights=(*p.weights[:5], np.eye(20, dtype=np.float32)[None]))
    got, want = run(same), run(p._replace(weights=(*p.weights[:5], None)))
    if variant == "jit":  # its projections are the reference's
        np.testing.assert_allclose(got.hn, want.hn, rtol=0, atol=2e-6)
    else:
        assert_same_bits(got, want)


@pytest.mark.parametrize("scale", [0.01, 1.0, 4.0, 40.0])
@pytest.mark.parametrize("batch", [1, 500])
def test_gates_are_accurate(variant: str, scale: float, batch: int) -> None:
    """Sums are exact (W is the identity, R zero), so the error is that of the gates: 3 units in the last place of the terms that
    meet in c and in the GRU's h, and there of what n's argument has lost. A gate may stop at 2^-120 instead of 0."""
    h, unit, floor = 16, 2.0**-23, 2.0**-120
    p = problem("lstm", (1, batch, 4 * h, h), scale=scale)
    identity = np.eye(4 * h, dtype=np.float32)[None]
    p = p._replace(weights=(identity, np.zeros((1, 4 * h, h), np.float32), None, None, None, None))
    assert p.c0 is not None
    assert p.h0 is not None
    x, h0 = p.x[0].astype(np.float64), p.h0[0].astype(np.float64)
    i, f, g, o = np.split(x, 4, axis=1)
    got = run(p)
    kept, new = sigmoid(f) * p.c0[0], sigmoid(i) * np.tanh(g)
    assert (np.abs(got.cn[0] - (kept + new)) <= 3 * unit * (np.abs(kept) + np.abs(new)) + floor).all()
    want = sigmoid(o) * np.tanh(got.cn[0].astype(np.float64))
    assert (np.abs(got.hn[0] - want) <= 3 * unit * np.abs(want) + floor).all()

    bias = np.repeat(np.float32([[0, 0, 1.5]]), h, axis=1)
    gru = p._replace(kernel="gru", x=p.x[..., : 3 * h].copy(), options=GruOptions())
    gru = gru._replace(weights=(identity[:, : 3 * h, : 3 * h].copy(), np.zeros((1, 3 * h, h), np.float32), None, bias))
    r, z, n = np.split(x[:, : 3 * h], 3, axis=1)
    argument = np.abs(n) + 1.5
    n = np.tanh(n + sigmoid(r) * 1.5)
    bound = 3 * unit * (np.abs(n) + np.abs(h0) + argument * (1 - n**2)) + floor
    assert (np.abs(run(gru).hn[0] - ((1 - sigmoid(z)) * n + sigmoid(z) * h0)) <= bound).all()


def sigmoid(x: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-x)))  # no sum of the test above overflows it


# ---- special values ----------------------------------------------------------------------------------------------------------


@each("kernel", KINDS)
@each("batch", [1, 2, 5, 20])
@each("reverse", [False, True])
def test_nan_stays_in_its_sequence(variant: str, kernel: str, batch: int, reverse: bool) -> None:
    p = problem(kernel, (6, batch, 4, 21))
    clean = run(p, reverse=reverse)
    x = p.x.copy()
    x[3, batch // 2, 1] = np.nan
    got = run(p._replace(x=x), reverse=reverse)
    hit = np.zeros((6, batch), bool)
    hit[slice(None, 4) if reverse else slice(3, None), batch // 2] = True
    assert np.isnan(got.out[hit]).all()
    np.testing.assert_array_equal(got.out[~hit], clean.out[~hit])
    others = np.arange(batch) != batch // 2
    assert np.isnan(got.hn[:, ~others]).all() and (np.isnan(got.cn[:, ~others]).all() or kernel != "lstm")
    np.testing.assert_array_equal(got.hn[:, others], clean.hn[:, others])
    np.testing.assert_array_equal(got.cn[:, others], clean.cn[:, others])


@pytest.mark.parametrize("options", ["functions", "all", "gru clip", "early", "relu", "rnn clip"])
def test_nan_passes_through_any_option(variant: str, options: str) -> None:
    kernel, chosen = OPTIONS[options]
    p = problem(kernel, (2, 3, 4, 21), 2, chosen)
    p.x[:, 1] = np.nan
    got = run(p)
    assert np.isnan(got.out[:, 1]).all() and np.isfinite(got.out[:, ::2]).all()


@pytest.mark.parametrize("kernel", KINDS)
@pytest.mark.parametrize(("scale", "tolerance"), [(1e4, 5e-3), (1e30, 2)])
def test_saturates(variant: str, kernel: str, scale: float, tolerance: float) -> None:
    """Gates of any size give 0, 1 or -1, not NaN. A sum that happens to be near zero has an error relative to `scale`."""
    for batch in (1, 4):
        p = problem(kernel, (8, batch, 6, 20), scale=scale)
        assert p.c0 is not None
        got = run(p)
        assert (np.abs(got.out) <= 1).all() and (np.abs(got.cn) <= 8 + np.abs(p.c0).max()).all()
        np.testing.assert_allclose(got.out, reference(p).out, rtol=0, atol=tolerance)


@pytest.mark.parametrize("kernel", KINDS)
def test_infinite_input(variant: str, kernel: str) -> None:
    """One infinite element of x and weights of either sign: gates are saturated, and only that."""
    p = problem(kernel, (3, 2, 1, 20))
    p.x[1, 0, 0] = np.inf
    got = run(p)
    assert np.isfinite(got.out).all()
    assert_close(kernel, got, reference(p))


def test_identity_overflows_as_in_the_formula(variant: str) -> None:
    p = problem("rnn", (3, 2, 1, 20), options=RnnOptions((Activation(0),) * 2))
    p.x[1, 0, 0] = np.inf
    got, want = run(p), reference(p)
    np.testing.assert_array_equal(np.isfinite(got.out), np.isfinite(want.out))
    assert dispatch.current() == variant
