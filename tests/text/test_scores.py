"""`fl.text.CrossEncoder` and `fl.text.Classifier`: logits of pairs, texts and tokens, and their configurations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.text import Classifier, CrossEncoder

from .folders import TEXTS, WORDS, bert, word_pieces, write_json
from .networks import encoder

PAIRS = [(a, b) for a in TEXTS[:4] for b in TEXTS[3:]]


def sigmoid(x: np.ndarray) -> Any:
    return 1 / (1 + np.exp(-x.astype(np.float64)))


def softmax(x: np.ndarray) -> Any:
    powers = np.exp(x.astype(np.float64))
    return powers / powers.sum(-1, keepdims=True)


def logits(folder: Path, text: Any, most: int = 64, **kind: Any) -> Any:
    """Logits of a text or a pair, step by step, and its tokens."""
    tokenizer = word_pieces(folder)
    tokenizer.no_padding()
    tokenizer.enable_truncation(most)
    found = tokenizer.encode(*text) if isinstance(text, tuple) else tokenizer.encode(text)
    ids, types = np.array([found.ids]), np.array([found.type_ids])
    return encoder(len(WORDS), **kind)(ids, np.ones_like(ids), types)[0], found


def test_scores_of_pairs(tmp_path: Path, threads: int) -> None:
    made = CrossEncoder(bert(tmp_path, labels=1))
    found = made.predict(PAIRS)
    assert found.dtype == np.float32 and found.shape == (len(PAIRS),)
    want = np.concatenate([logits(tmp_path, pair, labels=1)[0] for pair in PAIRS])
    np.testing.assert_allclose(found, sigmoid(want), rtol=0, atol=1e-6)
    np.testing.assert_array_equal([made.predict(pair) for pair in PAIRS], found)
    np.testing.assert_array_equal(made.predict(PAIRS[::-1], batch_size=3), found[::-1])
    assert made.predict([]).shape == (0,)


def test_activation_is_that_of_the_folder(tmp_path: Path) -> None:
    want = logits(tmp_path, PAIRS[0], labels=1)[0][0]
    identity = {"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity", "version": "5"}}
    older = {"sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity"}
    for config in (identity, older):
        folder = bert(tmp_path / "a", labels=1, **config)
        assert CrossEncoder(folder).predict(PAIRS[0]) == pytest.approx(want, abs=1e-6)
        assert CrossEncoder(folder, activation="sigmoid").predict(PAIRS[0]) == pytest.approx(sigmoid(want), abs=1e-6)
        (folder / "onnx" / "model.onnx").unlink()
    folder = bert(tmp_path / "b", labels=3)
    np.testing.assert_allclose(
        CrossEncoder(folder).predict(PAIRS[:2])[0], logits(folder, PAIRS[0], labels=3)[0], rtol=0, atol=1e-6
    )
    newest = bert(tmp_path / "c", labels=1)
    write_json(newest / "config_sentence_transformers.json", {"activation_fn": "torch.nn.modules.linear.Identity"})
    assert CrossEncoder(newest).predict(PAIRS[0]) == pytest.approx(want, abs=1e-6)
    write_json(folder / "config.json", {"sbert_ce_default_activation_function": "os.system"})
    with pytest.raises(fl.UnsupportedError, match=r"activation is 'os.system'"):
        CrossEncoder(folder)
    with pytest.raises(fl.ArgumentError, match="activation is 'tanh'"):
        CrossEncoder(folder, activation="tanh")


def test_pairs_are_truncated_together(tmp_path: Path) -> None:
    folder = bert(tmp_path, labels=1, most=20)
    pair = ("the cat " * 30, "dog " * 4)
    want, tokens = logits(tmp_path, pair, 20, labels=1)
    assert len(tokens.ids) == 20 and tokens.type_ids.count(1) == 5
    word_pieces(folder, 20)
    assert CrossEncoder(folder).predict(pair) == pytest.approx(sigmoid(want)[0], abs=1e-6)


def test_rank(tmp_path: Path) -> None:
    made = CrossEncoder(bert(tmp_path, labels=1))
    texts = TEXTS[3:]
    scores = made.predict([("the cat", text) for text in texts])
    found = made.rank("the cat", texts)
    assert [entry["corpus_id"] for entry in found] == np.argsort(-scores, kind="stable").tolist()
    assert all(entry["text"] == texts[entry["corpus_id"]] and entry["score"] == scores[entry["corpus_id"]] for entry in found)
    assert made.rank("the cat", texts, top_k=2) == found[:2]
    with pytest.raises(fl.DTypeError, match="query is of type int"):
        made.rank(3, texts)  # type: ignore[arg-type]
    with pytest.raises(fl.DTypeError, match="expected pairs of texts"):
        made.predict(["one text"])
    with pytest.raises(fl.UnsupportedError, match="3 labels"):
        CrossEncoder(tmp_path, model=encoder(len(WORDS), labels=3)).rank("a", ["b"])


def test_labels_of_texts(tmp_path: Path, threads: int) -> None:
    names = {"0": "good", "1": "bad", "2": "odd"}
    made = Classifier(bert(tmp_path, labels=3, id2label=names))
    found = made(TEXTS, top_k=None)
    for text, entries in zip(TEXTS, found, strict=True):
        want = softmax(logits(tmp_path, text, labels=3)[0])
        assert [entry["label"] for entry in entries] == [names[str(i)] for i in np.argsort(-want)]
        np.testing.assert_allclose([entry["score"] for entry in entries], np.sort(want)[::-1], rtol=0, atol=1e-6)
        assert made(text, top_k=None) == entries  # the same bits alone
    assert made(TEXTS) == [entries[:1] for entries in found] and made([]) == []


def test_problem_types(tmp_path: Path) -> None:
    want = logits(tmp_path, "the cat", labels=2)[0]
    for problem, values in [("multi_label_classification", sigmoid(want)), ("regression", want), (None, softmax(want))]:
        folder = bert(tmp_path / str(problem), labels=2, problem_type=problem)
        found = {entry["label"]: entry["score"] for entry in Classifier(folder)("the cat", top_k=None)}
        np.testing.assert_allclose([found["LABEL_0"], found["LABEL_1"]], values, rtol=0, atol=1e-6)
    (one,) = Classifier(bert(tmp_path / "one", labels=1))("the cat")
    assert one["score"] == pytest.approx(sigmoid(logits(tmp_path, "the cat", labels=1)[0])[0], abs=1e-6)
    with pytest.raises(fl.FormatError, match="problem_type is 'ranking'"):
        Classifier(bert(tmp_path / "wrong", labels=2, problem_type="ranking"))


def test_labels_of_tokens(tmp_path: Path) -> None:
    text = TEXTS[3]
    names = {"0": "O", "1": "B-LOC", "2": "I-LOC"}
    made = Classifier(bert(tmp_path, labels=3, tokens=True, id2label=names))
    values, tokens = logits(tmp_path, text, labels=3, tokens=True)
    want = softmax(values)
    each = made(text, group=False)
    assert len(each) == len(tokens.ids) - 2
    for entry, row, offsets in zip(each, want[1:-1], tokens.offsets[1:-1], strict=True):
        assert entry["label"] == names[str(row.argmax())] and (entry["start"], entry["end"]) == offsets
        assert entry["score"] == pytest.approx(row.max(), abs=1e-6) and entry["text"] == text[slice(*offsets)]
    assert made([text, "cat"], group=False)[0] == each


def test_neighbors_become_one_entry(tmp_path: Path) -> None:
    made = Classifier(bert(tmp_path, labels=3, tokens=True, id2label={"0": "O", "1": "B-LOC", "2": "I-LOC"}))
    tokens = made._tokenizer.encode(["the cat the dog cat dog"], places=True)[0]
    labels = [0, 0, 1, 2, 1, 2, 2, 0]
    values = np.full((8, 3), 0.25)
    values[range(8), labels] = 0.5
    values[3, 2] = 0.75
    found = made._spans("the cat the dog cat dog", tokens, values, True)
    assert found == [
        {"label": "LOC", "score": 0.625, "start": 4, "end": 11, "text": "cat the"},
        {"label": "LOC", "score": 0.5, "start": 12, "end": 23, "text": "dog cat dog"},
    ]


def test_broken_labels_are_refused(tmp_path: Path) -> None:
    for labels in ({"a": "x"}, {"0": 1}, [], {"99999999999": "x"}):
        bert(tmp_path, labels=2)
        write_json(tmp_path / "config.json", {"id2label": labels})
        with pytest.raises(fl.FormatError, match="id2label"):
            Classifier(tmp_path)
        (tmp_path / "onnx" / "model.onnx").unlink()
