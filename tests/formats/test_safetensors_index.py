"""safetensors in shards: the index and the files must agree; names lead nowhere else."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastlayers.errors import FormatError, UnsupportedError
from fastlayers.formats import load_weights

from .build import safetensors_of

A, B, C = (np.full((2, 3), n, np.float32) for n in range(3))
FILES = {"model-00001-of-00002.safetensors": {"a": A, "c": C}, "model-00002-of-00002.safetensors": {"b": B}}
FIRST, SECOND = FILES


def written(folder: Path, index: Any = None) -> Path:
    for name, arrays in FILES.items():
        (folder / name).write_bytes(safetensors_of(arrays))
    path = folder / "model.safetensors.index.json"
    if index is None:
        index = {"metadata": {"total_size": 72}, "weight_map": {"a": FIRST, "b": SECOND, "c": FIRST}}
    path.write_text(index if isinstance(index, str) else json.dumps(index, indent=2))
    return path


@pytest.mark.parametrize("mmap", [True, False])
def test_shards(tmp_path: Path, mmap: bool) -> None:
    found = load_weights(written(tmp_path), mmap=mmap)
    assert list(found) == ["a", "b", "c"]
    for name, want in zip(found, (A, B, C), strict=True):
        np.testing.assert_array_equal(found[name], want)


def test_files_may_be_links(tmp_path: Path) -> None:
    """As in the caches of those who publish models: the index and its files are links to where they are together."""
    (tmp_path / "blobs").mkdir()
    (tmp_path / "snapshot").mkdir()
    path = written(tmp_path / "snapshot")
    for name in (FIRST, SECOND, path.name):
        shutil.move(tmp_path / "snapshot" / name, tmp_path / "blobs" / name[::-1])
        (tmp_path / "snapshot" / name).symlink_to(tmp_path / "blobs" / name[::-1])
    assert len(load_weights(path)) == 3
    path.unlink()
    shutil.move(tmp_path / "blobs" / path.name[::-1], path)
    with pytest.raises(FormatError, match="is a link that leads out"):
        load_weights(path)


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/b", "a\\b", "", ".", "..", "c:x", "a\0b", "a\nb"])
def test_names_that_lead_elsewhere(tmp_path: Path, name: str) -> None:
    with pytest.raises(FormatError, match="is no plain one"):
        load_weights(written(tmp_path, {"weight_map": {"a": name}}))


BROKEN: dict[str, tuple[Any, str]] = {
    "a file that is not there": ({"weight_map": {"a": "gone.safetensors"}}, "'gone.safetensors' is not there"),
    "a tensor that is not there": ({"weight_map": {"a": FIRST, "c": FIRST, "d": FIRST, "b": SECOND}}, "lacks 1 tensors .*'d'"),
    "a tensor that is not listed": ({"weight_map": {"a": FIRST, "b": SECOND}}, "has 1 tensors that are not said .*'c'"),
    "a tensor of another file": ({"weight_map": {"a": FIRST, "c": SECOND, "b": SECOND}}, "lacks 1 tensors|has 1 tensors"),
    "a name twice": ('{"weight_map": {"a": "x", "a": "y"}}', "has the key 'a' more than once"),
    "no map": ({"weight_map": ["a"]}, "must map names"),
    "an empty map": ({"weight_map": {}}, "must map names"),
    "a number for a file": ({"weight_map": {"a": 3}}, "must map names"),
    "no JSON": ('{"weight_map": {', "not valid JSON"),
    "another file": ({"weight_map": {"a": "model.safetensors.index.json"}}, "is no file of safetensors or of torch"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_does_not_fit(tmp_path: Path, what: str) -> None:
    index, match = BROKEN[what]
    with pytest.raises(FormatError, match=match):
        load_weights(written(tmp_path, index))


def test_an_index_without_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="pass its path"):
        load_weights(written(tmp_path).read_bytes())
