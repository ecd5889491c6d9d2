"""``fastlayers doctor`` on an installation that is well, and on several that are not."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import numpy as np
import pytest

import fastlayers as fl
from fastlayers import _cpus, threads
from fastlayers.cli import doctor, main
from fastlayers.kernels import dispatch


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As in a process that has not chosen a variant yet."""
    monkeypatch.delenv("FASTLAYERS_ISA", raising=False)
    before = dispatch.current()
    monkeypatch.setattr(dispatch, "_variant", "")
    monkeypatch.setattr(dispatch, "_table", {})
    yield
    monkeypatch.undo()
    fl.kernels.use(before)


def report(capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = main(["doctor"])
    return code, capsys.readouterr().out


@pytest.mark.skipif(not dispatch.levels(), reason="the compiled engine is not built here")
@pytest.mark.usefixtures("fresh")
def test_healthy(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = report(capsys)
    assert code == 0, out
    assert f"variant    aot/{dispatch.levels()[0]}, the best here; FASTLAYERS_ISA forces one of " in out
    assert out.count(": ok, ") == 4
    assert "FAILED" not in out and "!" not in out
    assert out.splitlines()[-1] == "all is well"


@pytest.mark.usefixtures("fresh")
def test_without_the_engine(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "engine", lambda: None)
    monkeypatch.setattr(doctor.platform, "machine", lambda: "x86_64")
    code, out = report(capsys)
    assert code == 1
    assert "! engine     MISSING" in out
    assert "python -m pip install --force-reinstall --no-deps" in out
    assert "variant    reference, nothing compiled can run" in out
    assert out.count(": ok, ") == 4
    assert out.splitlines()[-1] == "1 problem(s), marked with !"


@pytest.mark.usefixtures("fresh")
def test_without_the_engine_where_none_exists(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "engine", lambda: None)
    monkeypatch.setattr(doctor.platform, "machine", lambda: "s390x")
    code, out = report(capsys)
    assert code == 0
    assert "none exists for s390x" in out


@pytest.mark.usefixtures("fresh")
def test_without_a_compiler(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "engine", lambda: None)
    monkeypatch.setattr(doctor.platform, "machine", lambda: "x86_64")
    monkeypatch.setenv("PATH", "")
    assert "install GCC or Clang" in report(capsys)[1]


@pytest.mark.usefixtures("fresh")
def test_forced_variant(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTLAYERS_ISA", "reference")
    assert "variant    reference, because FASTLAYERS_ISA=reference" in report(capsys)[1]


@pytest.mark.usefixtures("fresh")
def test_forced_variant_that_does_not_exist(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTLAYERS_ISA", "x86_v9")
    code, out = report(capsys)
    assert code == 1
    assert "! variant    FASTLAYERS_ISA: level 'x86_v9' is unknown" in out
    assert "check" not in out


@pytest.mark.parametrize(
    ("value", "wrong", "message"),
    [("", False, "processors, "), ("2", False, "threads    2, because FASTLAYERS_NUM_THREADS=2"), ("many", True, "got 'many'")],
)
def test_threads(
    value: str, wrong: bool, message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "_count", None)
    monkeypatch.setattr(threads, "_granted", None)
    monkeypatch.setenv("FASTLAYERS_NUM_THREADS", value)
    line = next(line for line in report(capsys)[1].splitlines() if line[2:].startswith("threads "))
    assert message in line and line.startswith("!") == wrong


def test_threads_bounded_by_other_libraries(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_count", "_granted", "_shared"):
        monkeypatch.setattr(threads, name, None)
    monkeypatch.setattr(_cpus, "usable_cpus", lambda: 4)
    monkeypatch.delenv("FASTLAYERS_NUM_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    line = next(line for line in report(capsys)[1].splitlines() if line[2:].startswith("threads "))
    assert "threads    1, because OMP_NUM_THREADS=1" in line and "FASTLAYERS_NUM_THREADS goes before it" in line


def test_wrong_results(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fl.functional, "linear", lambda x, w, b: np.full((5, 19), np.nan))

    def fail(x: np.ndarray, dim: int) -> np.ndarray:
        raise OSError("no such symbol")

    monkeypatch.setattr(fl.functional, "softmax", fail)
    code, out = report(capsys)
    assert code == 1
    assert "! check      linear: FAILED, error nan" in out
    assert "! check      softmax: FAILED: OSError: no such symbol" in out
    assert "conv2d: ok" in out


def test_command_that_builds_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.fl, "__file__", str(tmp_path / "fastlayers" / "__init__.py"))
    assert doctor._reinstall().endswith("--no-deps --no-cache-dir . in a clone of fastlayers")
    (tmp_path / "setup.py").touch()
    assert doctor._reinstall().endswith(f"-e {tmp_path}")


def test_source_tree_in_the_current_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "source tree" not in report(capsys)[1]
    (tmp_path / "setup.py").touch()
    driver = tmp_path / "fastlayers" / "kernels" / "aot" / f"_engine{EXTENSION_SUFFIXES[0]}"
    driver.parent.mkdir(parents=True)
    (tmp_path / "fastlayers" / "__init__.py").touch()
    code, out = report(capsys)
    assert code == 1
    assert f"! here       Python that is started in this folder imports the source tree {tmp_path}, which is not" in out
    driver.touch()
    code, out = report(capsys)
    assert code == 0 and "which is built" in out


@pytest.mark.usefixtures("fresh")
def test_an_engine_that_cannot_be_loaded(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> None:
        raise ImportError("_engine.so: invalid ELF header")

    monkeypatch.setattr(dispatch, "imported", broken)
    code, out = report(capsys)
    assert code == 1 and "! engine     fastlayers: the compiled engine is there and cannot be loaded: _engine.so: invalid" in out
