"""`fl.text.Encoder`: its vectors are those that its parts give one by one, whatever the batch; folders are read strictly."""

from __future__ import annotations

import json
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.text import Encoder
from fastlayers.text._network import tokenized
from tests.each import each

from .folders import TEXTS, WORDS, bert, sentence_transformer, word_pieces, write_json
from .networks import encoder


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sentence_transformer(tmp_path_factory.mktemp("plain"))


def states(folder: Path, text: str, most: int = 64) -> np.ndarray:
    """States of the tokens of one text, step by step."""
    tokenizer = word_pieces(folder)
    tokenizer.no_padding()
    tokenizer.enable_truncation(most)
    ids = np.array([tokenizer.encode(text).ids])
    found: np.ndarray = encoder(len(WORDS))(ids, np.ones_like(ids), np.zeros_like(ids))[0]
    return found


def pooled(rows: np.ndarray, mode: str) -> np.ndarray:
    """The definition of each mode, in float64."""
    x = rows.astype(np.float64)
    weights = np.arange(1, len(x) + 1)[:, None]
    found: np.ndarray = {
        "mean": x.mean(0), "cls": x[0], "max": x.max(0), "lasttoken": x[-1], "mean_sqrt_len_tokens": x.sum(0) / len(x) ** 0.5,
        "weightedmean": (x * weights).sum(0) / weights.sum(),
    }[mode]  # fmt: skip
    return found


def test_vectors_are_normalized_means_of_states(plain: Path) -> None:
    found = Encoder(plain).encode(TEXTS)
    assert found.dtype == np.float32 and found.shape == (len(TEXTS), 32)
    want = np.stack([pooled(states(plain, text), "mean") for text in TEXTS])
    want /= np.linalg.norm(want, axis=1, keepdims=True)
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-6)


def test_a_text_has_the_same_bits_alone_and_in_any_batch(plain: Path, threads: int) -> None:
    made = Encoder(plain)
    rng = np.random.default_rng(0)
    alone = np.stack([made.encode(text) for text in TEXTS])
    for size in (1, 2, 3, 32):
        order = rng.permutation(len(TEXTS))
        np.testing.assert_array_equal(made.encode([TEXTS[i] for i in order], batch_size=size), alone[order])


@pytest.mark.parametrize("older", [False, True], ids=["newer", "older"])
@pytest.mark.parametrize("modes", [("cls",), ("max",), ("weightedmean",), ("cls", "max", "mean", "weightedmean")], ids=str)
def test_pooling(tmp_path: Path, modes: tuple[str, ...], older: bool) -> None:
    folder = sentence_transformer(tmp_path, list(modes), normalize=False, older=older)
    want = np.concatenate([pooled(states(tmp_path, TEXTS[3]), mode) for mode in modes])
    np.testing.assert_allclose(Encoder(folder).encode(TEXTS[3]), want, rtol=0, atol=1e-5)


@each("mode", ["lasttoken", "mean_sqrt_len_tokens"])
def test_pooling_of_newer_files(tmp_path: Path, mode: str) -> None:
    folder = sentence_transformer(tmp_path / mode, mode, normalize=False)
    np.testing.assert_allclose(Encoder(folder).encode(TEXTS[3]), pooled(states(folder, TEXTS[3]), mode), rtol=0, atol=1e-5)


@pytest.mark.parametrize("mode", ["cls", "lasttoken"])
def test_where_one_token_is_read_it_alone_is_computed(tmp_path: Path, mode: str, threads: int) -> None:
    folder, model = sentence_transformer(tmp_path, mode, normalize=False), encoder(len(WORDS))
    made = Encoder(folder, model=model)
    assert made.model is model and len(made._network.shape or ()) == 2
    for texts in (TEXTS, TEXTS[:1], []):
        found, want = made.encode(texts), [states(folder, text)[0 if mode == "cls" else -1] for text in texts]
        np.testing.assert_array_equal(found, np.array(want).reshape(-1, 32))
    settings = {"embedding_dimension": 32, "pooling_mode": mode, "include_prompt": False}
    write_json(folder / "1_Pooling" / "config.json", settings)
    assert len(Encoder(folder, model=model)._network.shape or ()) == 3  # the token is another one with a prompt


def test_a_number_of_a_token_beyond_all_others(tmp_path: Path) -> None:
    """It is the tokenizer's to say what that means; nothing counts up to it."""
    file = sentence_transformer(tmp_path) / "tokenizer.json"
    content = json.loads(file.read_text())
    content["model"]["vocab"]["zebra"] = 2**32 - 2
    write_json(file, content)
    assert Encoder(tmp_path).encode("the cat").shape == (32,)
    with pytest.raises(fl.Error, match="4294967294"):
        Encoder(tmp_path).encode("zebra")


def test_dense_follows_the_pooling(tmp_path: Path) -> None:
    made = Encoder(sentence_transformer(tmp_path, dense=5, normalize=False))
    w = fl.load_weights(tmp_path / "2_Dense" / "model.safetensors")
    mean = pooled(states(tmp_path, "the cat"), "mean")
    want = np.tanh(w["linear.weight"] @ mean + w["linear.bias"])
    np.testing.assert_allclose(made.encode("the cat"), want, rtol=0, atol=1e-6)
    np.testing.assert_allclose(made.encode("the cat", normalize=True), want / np.linalg.norm(want), rtol=0, atol=1e-6)


def test_normalization_is_a_choice(plain: Path) -> None:
    made = Encoder(plain)
    long = made.encode(TEXTS, normalize=False)
    assert np.linalg.norm(long, axis=1).min() > 1.5
    np.testing.assert_array_equal(made.encode(TEXTS, normalize=True), made.encode(TEXTS))


def test_a_folder_of_transformers_is_averaged(tmp_path: Path) -> None:
    found = Encoder(bert(tmp_path)).encode("the cat")
    np.testing.assert_allclose(found, pooled(states(tmp_path, "the cat"), "mean"), rtol=0, atol=1e-6)


def test_truncation_and_case_are_those_of_the_folder(tmp_path: Path) -> None:
    folder = sentence_transformer(tmp_path, "lasttoken", normalize=False)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 7, "do_lower_case": True})
    long = "the cat " * 40
    np.testing.assert_allclose(Encoder(folder).encode(long.upper()), states(folder, long, 7)[-1], rtol=0, atol=1e-6)
    write_json(folder / "sentence_bert_config.json", {})
    np.testing.assert_allclose(Encoder(folder).encode(long), states(folder, long, 64)[-1], rtol=0, atol=1e-6)


def test_prompts(tmp_path: Path) -> None:
    folder = sentence_transformer(tmp_path, "mean", normalize=False)
    settings = {"prompts": {"query": "question . ", "": ""}, "default_prompt_name": "query", "similarity_fn_name": "dot"}
    write_json(folder / "config_sentence_transformers.json", settings)
    made = Encoder(folder)
    np.testing.assert_array_equal(made.encode("cat"), made.encode("question . cat", prompt=""))
    np.testing.assert_array_equal(made.encode("cat", prompt_name=""), made.encode("cat", prompt=""))
    with pytest.raises(fl.ArgumentError, match=r"encode: prompt_name is 'passage'.*'query'"):
        made.encode("cat", prompt_name="passage")
    write_json(folder / "1_Pooling" / "config.json", {"pooling_mode": "mean", "include_prompt": False})
    want = states(folder, "question . cat")[3:].mean(0)  # without [CLS] and the prompt's two tokens
    np.testing.assert_allclose(Encoder(folder).encode("cat"), want, rtol=0, atol=1e-6)


def test_similarities(plain: Path) -> None:
    a, b = np.random.default_rng(0).standard_normal((2, 3, 4))
    want = {
        "cosine": (a / np.linalg.norm(a, axis=1, keepdims=True)) @ (b / np.linalg.norm(b, axis=1, keepdims=True)).T,
        "dot": a @ b.T,
        "euclidean": -np.linalg.norm(a[:, None] - b, axis=2),
        "manhattan": -np.abs(a[:, None] - b).sum(2),
    }
    for word, value in want.items():
        np.testing.assert_allclose(Encoder(plain, similarity=word).similarity(a, b), value, rtol=1e-5, atol=1e-6)
    assert Encoder(plain).similarity(a[0], b[0]).shape == (1, 1)
    with pytest.raises(fl.ShapeError, match="vectors of a have 4 values, of b 3"):
        Encoder(plain).similarity(a, b[:, :3])


def test_ids_go_in_without_the_extra(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [2, WORDS.index("the"), WORDS.index("cat"), 3]
    want = Encoder(plain).encode(["the cat"])
    np.testing.assert_array_equal(Encoder(plain).encode([ids]), want)
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    made = Encoder(plain)
    np.testing.assert_array_equal(made.encode([ids]), want)
    np.testing.assert_array_equal(made.encode(np.array(ids)), want[0])
    with pytest.raises(fl.MissingExtraError, match=r'pip install "jinja2>=3.1" "tokenizers>=0.20"'):
        made.encode("the cat")


def test_a_model_of_ones_own(plain: Path) -> None:
    other = encoder(len(WORDS), seed=3)
    assert Encoder(plain, model=other).model is other
    assert not np.allclose(Encoder(plain, model=other).encode("cat"), Encoder(plain).encode("cat"))


def test_no_texts(plain: Path) -> None:
    assert Encoder(plain).encode([]).shape == (0, 32)


def test_progress(plain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told: list[Any] = []
    Encoder(plain).encode(["cat", "dog", "the cat"], batch_size=2, progress=lambda *counts: told.append(counts))
    assert told == [(1, 3), (3, 3)]
    Encoder(plain).encode(["cat"], progress=True)
    assert capsys.readouterr().err.endswith("1 of 1\n")


_FIRST = '{"type": "a.Transformer", "path": ""}'
WRONG = {
    "modules.json": [
        "{", "[]", "{}", '[{"type": "a.Transformer", "path": "../x"}]', '[{"type": 3}]', '[{"type": "x.StaticEmbedding"}]',
        f'[{_FIRST}, {{"type": "a.Normalize", "path": "/etc"}}]', f'[{_FIRST}, {{"type": "os.system", "path": "1_Pooling"}}]',
        "[" * 100000,
    ],
    "1_Pooling/config.json": [
        '{"pooling_mode": "median"}', '{"pooling_mode": 3}', '{"pooling_mode": []}', "[]", '{"include_prompt": 1}'
    ],
    "2_Dense/config.json": [
        "{}", '{"in_features": -1, "out_features": 5}', '{"in_features": 32, "out_features": 4}',
        '{"in_features": 32, "out_features": 5, "activation_function": "os.system"}',
    ],
    "config_sentence_transformers.json": [
        '{"prompts": []}', '{"prompts": {"a": 1}}', '{"default_prompt_name": "none"}', '{"similarity_fn_name": "cos"}'
    ],
    "sentence_bert_config.json": [
        '{"max_seq_length": "long"}', '{"max_seq_length": 0}', '{"do_lower_case": "no"}', "\xff"
    ],
    "config.json": ["3", '{"max_position_embeddings": true}'],
    "tokenizer.json": ["{}", "", '{"version": "1.0", "model": {"type": "BPE"}}', "null"],
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_broken_files_are_refused(tmp_path: Path, name: str) -> None:
    folder = sentence_transformer(tmp_path, dense=5)
    for content in WRONG[name]:
        (folder / name).write_text(content, encoding="latin-1")
        with pytest.raises(fl.Error):  # noqa: PT012
            Encoder(folder)
            pytest.fail(f"{name}: {content[:80]}")


def test_sizes_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = sentence_transformer(tmp_path)
    monkeypatch.setattr("fastlayers.text._tokens.MOST", 100)
    with pytest.raises(fl.LimitError, match=r"tokenizer.json: has \d+ bytes: at most 100"):
        Encoder(folder)


def test_arguments(plain: Path, tmp_path: Path) -> None:
    made = Encoder(plain)
    for call, error, words in [
        (lambda: Encoder(tmp_path / "none"), fl.ArgumentError, "expected a folder"),
        (lambda: Encoder(3), fl.DTypeError, "path is .*of type int"),
        (lambda: Encoder(plain, model=3), fl.DTypeError, "model is of type int"),
        (lambda: Encoder(plain, similarity="cos"), fl.ArgumentError, "similarity is 'cos'"),
        (lambda: made.encode(3), fl.DTypeError, "texts is of type int"),
        (lambda: made.encode(["a", 3]), fl.DTypeError, "got 3 of type int"),
        (lambda: made.encode([("a", "b")]), fl.DTypeError, "expected texts, or ids"),
        (lambda: made.encode([[-1]]), fl.ArgumentError, "ids"),
        (lambda: made.encode("a", batch_size=0), fl.ArgumentError, "batch_size"),
        (lambda: made.encode("a", normalize="no"), fl.DTypeError, "normalize"),
        (lambda: made.encode("a", prompt=3), fl.DTypeError, "prompt is of type int"),
    ]:
        with pytest.raises(error, match=words):
            call()


def test_tokens_of_many_texts_are_their_numbers_alone(plain: Path) -> None:
    """Their places in the text, as Python has them, would be a hundred bytes a token."""
    made = Encoder(plain)
    texts = [" ".join(np.random.default_rng(i).choice(["cat", "dog", "the"], 60)) for i in range(400)]
    count = sum(len(one.ids) for one in tokenized(texts, made._tokenizer, "encode"))
    tracemalloc.start()
    try:
        tokens = tokenized(texts, made._tokenizer, "encode")
        retained, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(one.ids.nbytes + one.types.nbytes for one in tokens) == 8 * count
    objects = 400 * len(texts)  # two arrays, and a tuple of them
    assert retained < 8 * count + objects and most < 16 * count + objects, (retained, most, count)
