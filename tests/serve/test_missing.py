"""What the server needs, and what it refuses before it starts. Needs none of the extra."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from fastlayers import errors
from fastlayers.cli import main
from fastlayers.serve import Settings, serve


def test_a_missing_extra_is_named_with_its_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    find = importlib.util.find_spec

    def without(name: str, *rest: Any) -> Any:
        return None if name in ("uvicorn", "prometheus_client") else find(name, *rest)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    with pytest.raises(errors.MissingExtraError, match=r'serve: needs .*uvicorn.*pip install .*"uvicorn>='):
        serve(Settings(source=str(tmp_path)))
    assert main(["serve", str(tmp_path)]) == 2
    assert "pip install" in capsys.readouterr().err


@pytest.mark.parametrize(
    "wrong", [{"port": 70000}, {"workers": 0}, {"timeout": 0.0}, {"batch_delay": -1.0}, {"queue": 0}, {"timeout": float("nan")}]
)
def test_settings_out_of_range(wrong: dict[str, Any]) -> None:
    with pytest.raises(errors.ArgumentError, match=next(iter(wrong))):
        Settings(source="x", **wrong)


def test_one_source_is_expected(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve"]) == 2
    assert "FILE_OR_FOLDER" in capsys.readouterr().err
