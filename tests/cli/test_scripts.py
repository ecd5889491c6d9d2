"""What scripts get: JSON of every command, errors as JSON, help with examples, completion; progress where somebody looks."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

import fastlayers as fl
from bench.timing import store, take_turns
from fastlayers import cli
from fastlayers.cli import _progress, completion
from fastlayers.kernels import dispatch
from tests.program.graphs import normal

COMMANDS = ("demo", "doctor", "inspect", "profile", "bench", "run", "compare", "convert", "warmup", "completion")


@pytest.fixture
def model(tmp_path: Path, kept_threads: None) -> str:
    net = fl.Linear(4, 6)
    net.load_state_dict({"weight": normal(6, 4), "bias": normal(6)})
    path = tmp_path / "net.safetensors"
    fl.compile(net, fl.graph.Input("x", ("n", 4))).save(path)
    return str(path)


@pytest.mark.skipif(not dispatch.levels(), reason="the compiled engine is not built here")
@pytest.mark.parametrize(
    ("command", "key"),
    [
        (["demo"], "speech"),
        (["doctor"], "findings"),
        (["inspect", "MODEL"], "steps"),
        (["profile", "MODEL", "--runs", "1"], "seconds"),
        (["bench", "MODEL", "--seconds", "0"], "times"),
        (["bench", "MODEL", "--seconds", "0", "--against", "MODEL", "--worse", "1000"], "ratio"),
        (["run", "MODEL"], "outputs"),
        (["compare", "MODEL"], "agrees"),
        (["convert", "MODEL", "TARGET"], "written"),
    ],
)
def test_every_command_has_json(
    command: list[str], key: str, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [{"MODEL": model, "TARGET": str(tmp_path / "to.safetensors")}.get(word, word) for word in command]
    assert cli.main([*words, "--json"]) in (0, 1)
    assert key in json.loads(capsys.readouterr().out)


def test_figures_of_commands_and_benchmarks_have_one_form(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forms = []
    for against in ([], ["--against", model, "--worse", "1000"]):
        assert cli.main(["bench", model, "--seconds", "0", "--json", *against]) == 0
        forms.append(json.loads(capsys.readouterr().out))
    times = take_turns({"one": lambda: None}, 1, burst=0)
    store(tmp_path / "b.json", {"case": times}, peer="1.0")
    forms.append(json.loads((tmp_path / "b.json").read_text()))
    assert forms[-1]["times"] == {"case: one": times["one"].dict()} and forms[-1]["peer"] == "1.0"
    for form in forms:
        assert form["format"] == 1 and form["machine"].keys() == {"variant", "threads", "processor", "python"}
        assert all(each.keys() == {"best", "median", "p95", "p99", "rounds"} for each in form["times"].values())


def test_errors_are_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["inspect", "/nowhere/a.onnx", "--json"]) == 2
    told = capsys.readouterr()
    error = json.loads(told.err)
    assert told.out == "" and error["error"] == "FileNotFoundError" and error["exit_code"] == 2 and "/nowhere" in error["message"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples_and_exit_codes(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([command, "--help"]) == 0
    out = capsys.readouterr().out
    assert f"examples:\n  fastlayers {command}" in out and "exit codes: 0 done" in out


def test_bench_takes_inputs_of_a_file_and_finds_what_is_slower(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "x.npy", normal(3, 4))
    large = tmp_path / "large.safetensors"
    net = fl.Sequential(*[fl.Linear(4, 4) for _ in range(200)])
    net.load_state_dict({name: normal(*shape) for name, shape in net.tensor_shapes().items()})
    fl.compile(net, fl.graph.Input("x", ("n", 4))).save(large)
    inputs = ["--inputs", str(tmp_path / "x.npy"), "--seconds", "0"]
    assert cli.main(["bench", str(large), "--against", model, *inputs]) == 1
    assert "times as slow" in capsys.readouterr().out
    assert cli.main(["bench", model, "--against", str(large), *inputs]) == 0
    assert "times as fast" in capsys.readouterr().out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_names_every_command_and_option(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for command, options in completion.words(cli._parser()).items():
        assert command in script
        assert all((option if shell != "fish" else f"-l {option[2:]}") in script for option, _ in options)


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_completes(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["completion", "bash"])
    script = capsys.readouterr().out
    ask = 'COMP_WORDS=(fastlayers profile --ht); COMP_CWORD=2; _fastlayers; echo "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", f"{script}\n{ask}"], capture_output=True, text=True, check=True)
    assert done.stdout == "--html\n"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("rich", [True, False])
def test_what_takes_long_shows_that_it_lives(rich: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_progress, "PATIENCE", 0.01)
    monkeypatch.setattr(_progress, "PACE", 0.01)
    find = importlib_find(rich)
    monkeypatch.setattr(_progress.importlib.util, "find_spec", find)
    if rich:
        pytest.importorskip("rich")
    shown, quick, piped = _Terminal(), _Terminal(), io.StringIO()
    with _progress.waiting("loading [red]", shown) as update:
        update(0.5)
        end = time.monotonic() + 5
        while "loading" not in shown.getvalue() and time.monotonic() < end:
            time.sleep(0.01)
    assert "loading [red]" in shown.getvalue()
    with _progress.waiting("loading", piped):
        time.sleep(0.03)
    monkeypatch.setattr(_progress, "PATIENCE", 60.0)
    with _progress.waiting("loading", quick):
        pass
    assert piped.getvalue() == quick.getvalue() == ""


def importlib_find(rich: bool):  # type: ignore[no-untyped-def]
    from importlib.util import find_spec

    return lambda name: find_spec(name) if rich or name != "rich" else None
