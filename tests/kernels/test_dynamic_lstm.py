"""The LSTM of bytes against the reference, which tests/goldens hold to ONNX Runtime's numbers.

Integers of x are the reference's; those of h are too, but where a state is at the edge between two bytes: then float32 and
float64 round it to different ones. One such byte changes a gate's sum by at most the largest weight times the states' step, here
127/74/sqrt(h) * 2/255 = 0.0135/sqrt(h), and h and c of the next step by a quarter of that; TOLERANCE allows three, everywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels import dispatch
from fastlayers.kernels.table import UNARY, Activation, LstmOptions

from .space import bits

TOLERANCE = 0.01
_HARD, _RELU = Activation(UNARY["hardsigmoid"].code, 0.2, 0.5), Activation(UNARY["relu"].code)
_TANH = Activation(UNARY["tanh"].code)


def weights(rng: np.random.Generator, d: int, i: int, h: int, kind: str = "int8", **more: Any) -> dict[str, Any]:
    low, high = (-127, 128) if kind == "int8" else (0, 256)
    g = 4 * h
    zeros = [rng.integers(low // 4, high * 3 // 4, (d, g)).astype(kind) if kind == "uint8" else None for _ in range(2)]
    scales = [rng.uniform(0.5, 1, (d, g)).astype(np.float32) / np.float32(74 * np.sqrt(max(k, 1))) for k in (i, h)]
    return {
        "w_ih": rng.integers(low, high, (d, g, i)).astype(kind), "w_hh": rng.integers(low, high, (d, g, h)).astype(kind),
        "ih_zero": zeros[0], "hh_zero": zeros[1], "ih_scale": scales[0], "hh_scale": scales[1],
        "b": rng.standard_normal((d, g)).astype(np.float32), "peephole": None, "options": LstmOptions(), **more,
    }  # fmt: skip


def run(variant: str, packed: dict[str, Any], x: np.ndarray, reverse: bool = False, **given: Any) -> tuple[np.ndarray, ...]:
    """out, hn and cn."""
    d, hidden, (steps, batch) = len(packed["w_hh"]), packed["w_hh"].shape[2], x.shape[:2]
    out = np.full((steps, d, batch, hidden), np.nan, np.float32)
    hn, cn = (np.full((d, batch, hidden), np.nan, np.float32) for _ in range(2))
    with fl.kernels.use(variant):
        made = dispatch.kernel("dynamic_lstm_pack")(*packed.values())
        states = given.get("h0"), given.get("c0"), given.get("lengths")
        dispatch.kernel("dynamic_lstm")(x, made, *states, out, hn, cn, reverse)
    return out, hn, cn


def same(variant: str, packed: dict[str, Any], x: np.ndarray, reverse: bool = False, **given: Any) -> None:
    for name, got, want in zip(
        ("out", "hn", "cn"), run(variant, packed, x, reverse, **given), run("reference", packed, x, reverse, **given), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=0, atol=TOLERANCE, err_msg=name)


@pytest.mark.without("reference")
@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.parametrize("h", [1, 15, 16, 17, 33])
def test_awkward_sizes(variant: str, h: int, kind: str) -> None:
    rng = np.random.default_rng(h)
    for steps, batch, i, d in ((1, 1, 1, 1), (3, 2, 3, 2), (7, 5, 17, 1), (4, 3, 8, 2)):
        packed = weights(rng, d, i, h, kind, peephole=rng.standard_normal((d, 3 * h)).astype(np.float32) if batch > 2 else None)
        states = {name: rng.standard_normal((d, batch, h)).astype(np.float32) for name in ("h0", "c0")}
        lengths = rng.integers(0, steps + 1, batch).astype(np.int32)
        for given in ({}, states, {"lengths": lengths}, {**states, "lengths": lengths}):
            same(variant, packed, rng.standard_normal((steps, batch, i)).astype(np.float32), bool(batch % 2), **given)


@pytest.mark.without("reference")
def test_no_steps_no_sequences_no_units(variant: str) -> None:
    rng = np.random.default_rng(0)
    h0 = rng.standard_normal((1, 2, 4)).astype(np.float32)
    out, hn, _ = run(variant, weights(rng, 1, 3, 4), np.empty((0, 2, 3), np.float32), h0=h0)
    assert out.shape == (0, 1, 2, 4)
    np.testing.assert_array_equal(hn, h0)
    for steps, batch, i, h in ((3, 0, 2, 4), (3, 2, 0, 4), (3, 2, 2, 0)):
        same(variant, weights(rng, 1, i, h), np.ones((steps, batch, i), np.float32))


@pytest.mark.without("reference")
def test_functions_clip_and_coupling(variant: str) -> None:
    rng = np.random.default_rng(1)
    for options in (LstmOptions(clip=0.5), LstmOptions(couple_input_forget=True), LstmOptions(((_HARD, _TANH, _RELU),))):
        same(variant, weights(rng, 1, 6, 20, options=options), rng.standard_normal((4, 2, 6)).astype(np.float32))


@pytest.mark.without("reference")
def test_lengths_out_of_range_are_the_nearest_in_it(variant: str) -> None:
    rng = np.random.default_rng(2)
    packed, x = weights(rng, 2, 4, 8), rng.standard_normal((3, 2, 4)).astype(np.float32)
    wild = run(variant, packed, x, lengths=np.array([-5, 2**31 - 1], np.int32))
    for got, want in zip(wild, run(variant, packed, x, lengths=np.array([0, 3], np.int32)), strict=True):
        np.testing.assert_array_equal(bits(got), bits(want))


@pytest.mark.without("reference")
def test_not_finite(variant: str) -> None:
    """Infinity makes the step infinite, as in ONNX Runtime's formula; nothing else is written, and later calls are as before."""
    rng = np.random.default_rng(3)
    packed, x = weights(rng, 1, 4, 8), rng.standard_normal((3, 2, 4)).astype(np.float32)
    before = run(variant, packed, x)
    for value in (np.nan, np.inf):
        wrong = x.copy()
        wrong[1, 1, 2] = value
        got, want = run(variant, packed, wrong), run("reference", packed, wrong)
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(np.isfinite(a), np.isfinite(b))
    for a, b in zip(run(variant, packed, x), before, strict=True):
        np.testing.assert_array_equal(bits(a), bits(b))


@pytest.mark.skipif(not dispatch.levels(), reason="the compiled engine is not built here")
def test_threads_and_chunks_keep_bits() -> None:
    """A sequence in pieces is quantized piece by piece, so here whole ones: more steps than an input product has, large units."""
    rng = np.random.default_rng(4)
    packed, x = weights(rng, 2, 40, 320), rng.standard_normal((70, 6, 40)).astype(np.float32)
    found, before = [], fl.get_num_threads()
    try:
        for threads in (1, 2, 3):
            fl.set_num_threads(threads)
            found.append(run("aot", packed, x))
    finally:
        fl.set_num_threads(before)
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(bits(a), bits(b))
    assert np.isfinite(found[0][0]).all()
