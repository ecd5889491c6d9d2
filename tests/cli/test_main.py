"""The command's own options, exit codes and messages."""

from __future__ import annotations

import pytest

import fastlayers as fl
from fastlayers import cli
from fastlayers.errors import FormatError


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"fastlayers {fl.__version__}\n"


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    out = capsys.readouterr().out
    assert "demo" in out and "doctor" in out


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["dance"],
        ["demo", "--threshold", "2"],
        ["demo", "--threshold", "x"],
        ["demo", "--threshold", "nan"],
        ["demo", "a", "b"],
    ],
)
def test_wrong_arguments(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and "usage: fastlayers" in captured.err


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (FormatError("wav: a: broken\nin two lines"), 2, "fastlayers doctor: wav: a: broken in two lines\n"),
        (FileNotFoundError(2, "No such file or directory", "a.wav"), 2, "fastlayers doctor: a.wav: No such file or directory\n"),
        (KeyboardInterrupt(), 130, ""),
        (BrokenPipeError(), 0, ""),
    ],
)
def test_errors(
    error: BaseException, code: int, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(arguments: object) -> int:
        raise error

    monkeypatch.setattr(cli, "_run", fail)
    assert cli.main(["doctor"]) == code
    assert capsys.readouterr().err == message


def test_a_fault_of_ours_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(arguments: object) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(cli, "_run", fail)
    with pytest.raises(ZeroDivisionError):
        cli.main(["doctor"])
