"""Folders that sentence-transformers and transformers wrote: what they compute of the same texts, to float32's rounding."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastlayers.text import Classifier, CrossEncoder, Encoder

from .folders import TEXTS

SHORT = [text for text in TEXTS if len(text) < 60]
GOLDEN = Path(__file__).parent.parent / "goldens" / "text.npz"


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The folder of all folders, and what was computed."""
    root = tmp_path_factory.mktemp("goldens")
    with np.load(GOLDEN) as file:
        for name in file.files:
            if "/" in name:
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_bytes(file[name].tobytes())
        return root, {name: file[name] for name in file.files if ":" in name}


def test_vectors(golden: Any) -> None:
    root, wanted = golden
    made = Encoder(root / "encoder")
    found, query = made.encode(TEXTS), made.encode(TEXTS, prompt_name="query")
    np.testing.assert_allclose(found, wanted["encoder:vectors"], rtol=0, atol=2e-6)
    np.testing.assert_allclose(query, wanted["encoder:query"], rtol=0, atol=2e-6)
    np.testing.assert_allclose(made.similarity(found, query), wanted["encoder:similarity"], rtol=0, atol=2e-6)


def test_scores(golden: Any) -> None:
    root, wanted = golden
    found = CrossEncoder(root / "cross").predict([(a, b) for a in TEXTS[:3] for b in TEXTS])
    np.testing.assert_allclose(found, wanted["cross:scores"], rtol=0, atol=2e-6)


def test_labels(golden: Any) -> None:
    root, wanted = golden
    found = Classifier(root / "texts")(SHORT, top_k=None)
    for entries, want in zip(found, json.loads(str(wanted["texts:labels"])), strict=True):
        assert [entry["label"] for entry in entries] == [label for label, _ in want]
        np.testing.assert_allclose([entry["score"] for entry in entries], [score for _, score in want], rtol=0, atol=2e-6)
    found = Classifier(root / "tokens")(SHORT, group=False)
    for entries, want in zip(found, json.loads(str(wanted["tokens:labels"])), strict=True):
        kept = [entry for entry in entries if entry["label"] != "O"]
        assert [[e["label"], e["start"], e["end"]] for e in kept] == [[label, start, end] for label, _, start, end in want]
        np.testing.assert_allclose([entry["score"] for entry in kept], [score for _, score, _, _ in want], rtol=0, atol=2e-6)
