"""The program that loads a server, in short: see `load`."""

from __future__ import annotations

import pytest

from .load import main

pytestmark = pytest.mark.serve


def test_every_answer_is_right_under_load(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["--requests", "600", "--clients", "16", "--workers", "2", "--seed", "1"])
    assert code == 0, capsys.readouterr().out
