"""Folders of onnxruntime-genai's builder: genai_config.json says which file the network is, and the sizes of its caches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
import fastlayers.functional as F
from fastlayers.graph import Input
from fastlayers.text import Generator
from fastlayers.text._decoder import Decoder
from fastlayers.text._genai import written
from fastlayers.text._settings import Settings

from .folders import decoder, write_json

SIZES: dict[str, Any] = {"head_size": 8, "hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2}


def genai(folder: Path, filename: str = "net.onnx", **model: Any) -> Path:
    """The folder as the builder would have written it."""
    config = {"bos_token_id": 1, "eos_token_id": [2, 7], "context_length": 40, **model}
    write_json(folder / "genai_config.json", {"model": {**config, "decoder": {"filename": filename, **SIZES}}})
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = decoder(tmp_path)
    (made / "model.onnx").rename(made / "net.onnx")
    (made / "config.json").unlink()
    return genai(made)


def test_its_file_ends_and_context_are_used(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    plain = Generator(decoder(tmp_path_factory.mktemp("plain"), eos_token_id=[2, 7]))
    made = Generator(folder)
    for prompt in ("the cat asks", "a question . the dog"):
        assert made.generate(prompt, 20) == plain.generate(prompt, 20)
    assert len(made.generate([5] * 10, 100, ignore_eos=True)) == 30
    assert len(plain.generate([5] * 10, 100, ignore_eos=True)) == 100


def test_sizes_of_caches_that_the_network_leaves_open(folder: Path) -> None:
    """Newer builders name the width of a head instead of saying it."""

    def step(input_ids: Any, key: Any, value: Any) -> dict[str, Any]:
        logits = F.embedding(input_ids, np.ones((300, 300), np.float32))
        return {"logits": logits, "present.0.key": F.concat([key, key], 2), "present.0.value": F.concat([value, value], 2)}

    past = [Input(f"past_key_values.0.{kind}", ("n", "heads", "p", "kv_cache_dim")) for kind in ("key", "value")]
    network = fl.compile(step, Input("input_ids", ("n", "t"), np.int64), *past)
    told = written(str(folder), "Generator")
    assert told is not None
    assert Decoder(network, "Generator", told.config).shapes == [(2, 8)] * 2
    with pytest.raises(fl.UnsupportedError, match="the folder's configuration does not tell it either"):
        Decoder(network, "Generator", Settings("x", {}))


@pytest.mark.parametrize("name", ["../net.onnx", "a/net.onnx", "/net.onnx", "..", "", "C:net.onnx", "a\\net.onnx", "net\0.onnx"])
def test_a_file_elsewhere_is_refused(folder: Path, name: str) -> None:
    with pytest.raises(fl.FormatError, match=r"filename is .*expected the name of a file in the folder"):
        Generator(genai(folder, name))


def test_wrong_values_are_told_by_name(folder: Path) -> None:
    with pytest.raises(fl.FormatError, match=r"genai_config\.json: max_position_embeddings is"):
        Generator(genai(folder, context_length="long"))
    write_json(folder / "genai_config.json", {"model": [1]})
    with pytest.raises(fl.FormatError, match=r"genai_config\.json: model is"):
        Generator(folder)
