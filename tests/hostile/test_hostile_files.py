"""Every malicious file: our error, nothing executed, nothing else opened, little memory; times: ``python -m tests.hostile``."""

from __future__ import annotations

import os

import pytest

from .cases import ROWS, Case, Sweep, every_case
from .child import MEMORY, Outcome, watch, watch_both

LONGEST = 2000  # characters of an error, whatever names a file has

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="a malicious file is loaded in a fork")

CASES = every_case()
SINGLE = {f"{c.row}: {c.name}": c for c in CASES if isinstance(c, Case)}
SWEEPS = {f"{c.row}: {c.name}": c for c in CASES if isinstance(c, Sweep)}


def held(outcome: Outcome | None) -> None:
    assert outcome is not None
    assert not outcome.crash
    assert outcome.ours, outcome.message
    assert not outcome.events
    assert not outcome.opened
    assert outcome.peak <= outcome.size + MEMORY
    assert len(outcome.message) <= LONGEST


def test_names_differ_and_every_row_has_cases() -> None:
    assert len(SINGLE) + len(SWEEPS) == len(CASES)
    assert {c.row for c in CASES} == set(ROWS)


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.sampled(8)
def test_refused_from_a_file_and_from_memory(name: str) -> None:
    case = SINGLE[name]
    for outcome in watch_both(case):
        held(outcome)
        if case.valid:
            assert outcome.error is None, outcome.message
            continue
        assert case.refuses(outcome.error, outcome.message), f"{outcome.error}: {outcome.message}"


@pytest.mark.parametrize("name", SWEEPS)
@pytest.mark.sampled(8)
def test_sweep(name: str) -> None:
    outcome = watch(SWEEPS[name])
    held(outcome)
    assert outcome is not None and outcome.count
    assert SWEEPS[name].may_load or not outcome.loaded
