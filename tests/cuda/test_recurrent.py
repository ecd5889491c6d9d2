"""LSTM, GRU and RNN: several hidden sizes, layouts, directions, lengths, options."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastlayers.kernels.table import UNARY, Activation, GruOptions, LstmOptions, RnnOptions
from tests.kernels.sequences import C_TOLERANCE, TOLERANCE, Problem, problem

from .calls import requires_cuda, run

pytestmark = requires_cuda
KINDS = ("lstm", "gru", "rnn")


def function(name: str, *parameters: float) -> Activation:
    return Activation(UNARY[name].code, *(parameters or UNARY[name].defaults))


def agree(p: Problem, batch_first: bool = False, apart: bool = False, reverse: bool = False, states: bool = True) -> None:
    """Outputs and final states next to the reference's, in one layout."""
    x = np.ascontiguousarray(p.x.swapaxes(0, 1)) if batch_first else p.x
    steps, batch = p.x.shape[:2]
    d, h = p.directions, p.outs
    shape: tuple[int, ...] = (batch, steps) if batch_first else (steps, batch)
    shape = (*shape, d, h) if apart and batch_first else (steps, d, batch, h) if apart else (*shape, d * h)
    out, hn = np.full(shape, 77, np.float32), np.full((d, batch, h), 77, np.float32)
    cn = np.full((d, batch, p.hidden), 77, np.float32)
    more: tuple[Any, ...] = (p.h0 if states else None,)
    finals: tuple[Any, ...] = (hn,)
    if p.kernel == "lstm":
        more, finals = (*more, p.c0 if states else None), (hn, cn)
    given = x, None, *more, p.lengths, out, *finals, batch_first, apart, reverse
    got, want = (run(variant, p.kernel, given, (*p.weights, p.options)) for variant in ("cuda", "reference"))
    for a, b, tolerance in zip(got, want, (TOLERANCE[p.kernel],) * 2 + (C_TOLERANCE,), strict=False):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hidden", [1, 8, 11])
def test_hidden_sizes(kind: str, hidden: int) -> None:
    """In registers, and in several turns with weights that are read in every step."""
    agree(problem(kind, (3, 2, 4, hidden)))


@pytest.mark.parametrize("kind", KINDS)
def test_no_steps_no_batch_no_states(kind: str) -> None:
    agree(problem(kind, (0, 2, 3, 4)))
    agree(problem(kind, (2, 0, 3, 4)))
    agree(problem(kind, (2, 2, 3, 0)))
    agree(problem(kind, (2, 2, 0, 3)))
    agree(problem(kind, (2, 1, 3, 4)), states=False)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", [(False, False), (True, False), (False, True), (True, True)], ids=str)
def test_directions_and_lengths(kind: str, layout: tuple[bool, bool]) -> None:
    agree(problem(kind, (3, 3, 2, 4), directions=2, lengths=[2, 0, 3]), *layout)
    agree(problem(kind, (3, 3, 2, 4), directions=2, lengths=[5, -1, 2**30]), *layout)  # nobody has looked at them


@pytest.mark.parametrize("kind", KINDS)
def test_from_the_last_step_to_the_first(kind: str) -> None:
    agree(problem(kind, (3, 1, 2, 4)), reverse=True)


@pytest.mark.parametrize("kind", KINDS)
def test_masks_of_steps(kind: str) -> None:
    mask = np.array([[1, 0, 1, 1], [0, 0, 0, 0], [0, 1, 0, 1]], bool)
    agree(problem(kind, (4, 3, 2, 4), directions=2, lengths=mask))


@pytest.mark.parametrize("kind", KINDS)
def test_four_sequences_a_block(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from fastlayers.kernels.cuda import recurrent

    monkeypatch.setattr(recurrent, "processors", lambda: 1)
    agree(problem(kind, (2, 5, 2, 3), directions=2, lengths=[2, 1, 2, 0, 2]))


def test_options() -> None:
    some = function("hardsigmoid"), function("relu"), function("softsign")
    other = function("sigmoid"), function("clip", -0.5, 0.75), function("tanh")
    agree(problem("lstm", (2, 1, 2, 5), options=LstmOptions(clip=0.3), peephole=True))
    agree(problem("lstm", (2, 1, 2, 5), 2, LstmOptions((some, other), couple_input_forget=True), peephole=True))
    agree(problem("gru", (2, 1, 2, 5), 2, GruOptions((some[:2], other[:2]), clip=0.5)))
    agree(problem("gru", (3, 2, 2, 5), options=GruOptions(reset_after=False)))
    agree(problem("rnn", (2, 1, 2, 5), 2, RnnOptions((function("relu"), function("leaky_relu", 0.2)), clip=0.4)))
    agree(problem("lstm", (3, 2, 2, 5), projections=3))


def test_special_values() -> None:
    p = problem("lstm", (3, 3, 2, 4), lengths=[3, 2, 3])
    p.x[0, 0, 0], p.x[2, 1], p.x[1, 2, 0] = np.nan, np.nan, np.inf
    agree(p)
