"""Folders of checkpoints as models: alone, among others, and as a version. Needs none of the extra."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastlayers.serve import Settings
from fastlayers.serve.repository import Repository
from fastlayers.text import Generator

from ..formats.transformers.checkpoints import written
from ..text.folders import decoder
from ..text.test_genai import genai


def loaded(source: Path, name: str | None = None) -> list[tuple[str, str]]:
    repository = Repository(Settings(source=str(source), name=name))
    repository.load_all()
    return [(served.name, served.version) for served in repository.every()]


def test_a_checkpoint_is_a_model(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    written(folder)
    assert loaded(folder) == [("small", "1")]
    assert loaded(folder, "encoder") == [("encoder", "1")]
    (tmp_path / "many" / "7").mkdir(parents=True)
    written(tmp_path / "many" / "7", "llama")
    assert loaded(tmp_path) == [("many", "7"), ("small", "1")]


def test_a_folder_of_genai_is_a_model_that_generates(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    genai(decoder(folder), "model.onnx")
    (folder / "config.json").unlink()
    for source in (folder, tmp_path):
        repository = Repository(Settings(source=str(source)))
        repository.load_all()
        (served,) = repository.every()
        assert served.name == "small" and isinstance(served.text, Generator)


def test_one_that_is_broken_says_why(tmp_path: Path) -> None:
    written(tmp_path, "bert", hidden_size=40)
    with pytest.raises(Exception, match="expected"):
        loaded(tmp_path)
