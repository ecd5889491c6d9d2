"""Vocabularies of GGUF: the ids of the tokenizers that they were made of, and whole files as `fl.text` takes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.text import Encoder, Generator
from fastlayers.text._vocabulary import vocabulary
from fastlayers.text.opened import opened

from ..formats.gguf_build import gguf
from ..formats.test_gguf_models import GOLDEN
from .folders import CHAT, SPEECH, TEXTS, byte_pairs, word_pieces

ODD = ["", " ", "  two  spaces ", "Don't we'll", "12345 6", "a\n\n b\t", "ä日🙂", "x<s>y</s>", "</s>the cat", *TEXTS, SPEECH]


def as_metadata(made: Any, kind: str, **more: Any) -> dict[str, Any]:
    """The metadata that llama.cpp's converter writes of a tokenizer."""
    model = json.loads(made.to_str())["model"]
    tokens = [made.id_to_token(i) for i in range(made.get_vocab_size())]
    added = made.get_added_tokens_decoder()
    types = np.array([3 if i in added and added[i].special else 1 for i in range(len(tokens))], np.int32)
    given = {"tokenizer.ggml.model": kind, "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": types}
    if kind == "gpt2":
        given["tokenizer.ggml.merges"] = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    return given | {f"tokenizer.ggml.{name}": value for name, value in more.items()}


def test_byte_pairs(tmp_path: Path) -> None:
    made = byte_pairs(tmp_path)
    found = vocabulary(as_metadata(made, "gpt2", pre="gpt-2", bos_token_id=0, add_bos_token=True), "test")
    for text in ODD:
        assert found.encode(text).ids == made.encode(text).ids, text
        assert found.decode(found.encode(text).ids) == made.decode(made.encode(text).ids)


def test_ways_to_cut(tmp_path: Path) -> None:
    """Texts that are cut are never joined: single digits, three of them, letters after a sign."""
    made = byte_pairs(tmp_path)
    given = as_metadata(made, "gpt2")
    pieces = {}
    for pre in ("gpt-2", "smollm", "llama-bpe", "qwen2", "default"):
        cut = vocabulary({**given, "tokenizer.ggml.pre": pre}, "test").pre_tokenizer.pre_tokenize_str("a 1234+b")
        pieces[pre] = [text for text, _ in cut]
    assert pieces == {
        "gpt-2": ["a", "Ġ1234", "+", "b"], "smollm": ["a", "Ġ", "1", "2", "3", "4", "+", "b"],
        "llama-bpe": ["a", "Ġ", "123", "4", "+b"], "qwen2": ["a", "Ġ", "1", "2", "3", "4", "+b"],
        "default": ["a", "Ġ", "123", "4", "+", "b"],
    }  # fmt: skip
    with pytest.raises(fl.UnsupportedError, match=r"tokenizer.ggml.pre is 'strange'"):
        vocabulary({**given, "tokenizer.ggml.pre": "strange"}, "test")


def test_word_pieces(tmp_path: Path) -> None:
    made = word_pieces(tmp_path)
    made.no_padding()
    made.no_truncation()
    ids = {"unknown": 1, "cls": 2, "seperator": 3, "padding": 0, "mask": 4}
    given = as_metadata(made, "bert", **{f"{name}_token_id": i for name, i in ids.items()})
    tokens = given["tokenizer.ggml.tokens"]
    for i in range(5, len(tokens)):  # as llama.cpp marks them
        tokens[i] = tokens[i][2:] if tokens[i].startswith("##") else f"▁{tokens[i]}"
    found = vocabulary(given, "test")
    for text in ODD:
        assert found.encode(text).ids == made.encode(text).ids, text
    assert found.encode("the cat", "dog").type_ids == made.encode("the cat", "dog").type_ids
    assert found.encode("the cat", "dog").ids == made.encode("the cat", "dog").ids


@pytest.mark.parametrize("prefix", [True, False])
def test_pieces_are_joined_by_their_scores(prefix: bool) -> None:
    letters = ["▁", "t", "h", "e", "th", "he", "▁t", "▁th", "▁the", "the", "f"]
    words = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256)), *letters]
    scores = np.zeros(len(words), np.float32)
    for rank, word in enumerate(("th", "▁the", "he", "the", "▁t", "▁th")):
        scores[words.index(word)] = -rank
    scores[[words.index(word) for word in ("▁", "t", "h", "e", "f")]] = -1e9
    types = np.array([2, 3, 3, *[6] * 256, *[1] * 11], np.int32)
    values = {"model": "llama", "tokens": words, "scores": scores, "token_type": types, "bos_token_id": 1, "eos_token_id": 2}
    given = {f"tokenizer.ggml.{name}": value for name, value in {**values, "add_space_prefix": prefix}.items()}
    found = vocabulary(given, "test")
    want = ["<s>", *(["▁the"] if prefix else ["the"]), "f", "▁", "he", "<0xC3>", "<0xA4>"]
    assert found.encode("thef heä").tokens == want
    assert found.decode(found.encode("thef heä").ids) == "thef heä"


def test_unigrams() -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers

    few = {"<pad>": 0.0, "<unk>": -9.0, "</s>": 0.0, "▁": -3.0, "▁the": -4.0, "cat": -5.0}
    pieces = [*few.items(), *((c, -8.0) for c in "theca")]
    made = Tokenizer(models.Unigram(pieces, 1, False))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    scores, types = np.array([score for _, score in pieces]), np.array([3, 2, 3, *[1] * 8])
    values = {"model": "t5", "tokens": [piece for piece, _ in pieces], "scores": scores, "token_type": types}
    given = {f"tokenizer.ggml.{name}": value for name, value in {**values, "unknown_token_id": 1, "eos_token_id": 2}.items()}
    found = vocabulary(given, "test")
    for text in ("the cat", "a cat", "zz"):
        assert found.encode(text, add_special_tokens=False).ids == made.encode(text).ids
        assert found.encode(text).ids == [*made.encode(text).ids, 2]


def test_what_is_broken_is_refused(tmp_path: Path) -> None:
    good = as_metadata(byte_pairs(tmp_path), "gpt2", pre="gpt-2")
    for name, value in [
        ("model", "none"), ("model", 3), ("tokens", None), ("tokens", [1, 2]), ("token_type", np.zeros(3)), ("merges", None),
        ("merges", ["ab"]), ("merges", ["never there"]), ("add_bos_token", True),
    ]:  # fmt: skip
        more = {"tokenizer.ggml.bos_token_id": 10**6} if name == "add_bos_token" else {}
        with pytest.raises((fl.FormatError, fl.UnsupportedError)):
            vocabulary({**good, f"tokenizer.ggml.{name}": value, **more}, "test")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama with a vocabulary and a chat template."""
    folder = tmp_path_factory.mktemp("gguf")
    made = byte_pairs(folder)
    given = as_metadata(made, "gpt2", pre="gpt-2", bos_token_id=0, eos_token_id=1, add_bos_token=True)
    sizes = {
        "block_count": 1, "context_length": 64, "embedding_length": 32, "feed_forward_length": 64, "attention.head_count": 4,
        "attention.head_count_kv": 2, "attention.layer_norm_rms_epsilon": 1e-5, "rope.freq_base": 10000.0,
    }  # fmt: skip
    given |= {"general.architecture": "llama", "tokenizer.chat_template": CHAT}
    given |= {f"llama.{name}": value for name, value in sizes.items()}
    given["tokenizer.ggml.token_type"] = given["tokenizer.ggml.token_type"].tolist()
    rng, words = np.random.default_rng(0), made.get_vocab_size()
    shapes: dict[str, tuple[int, ...]] = {"token_embd": (words, 32), "output": (words, 32), "output_norm": (32,)}
    shapes |= {
        f"blk.0.{name}": shape for name, shape in {
            "attn_norm": (32,), "ffn_norm": (32,), "attn_q": (32, 32), "attn_k": (16, 32), "attn_v": (16, 32),
            "attn_output": (32, 32), "ffn_gate": (64, 32), "ffn_up": (64, 32), "ffn_down": (32, 64),
        }.items()
    }  # fmt: skip
    tensors = {f"{name}.weight": (0, shape, rng.normal(0, 0.3, shape).astype("<f4").tobytes()) for name, shape in shapes.items()}
    (folder / "model.gguf").write_bytes(gguf(tensors, given))
    return folder / "model.gguf"


def test_a_file_generates_text(file: Path) -> None:
    made = Generator(file)
    assert made.encode("the cat") == byte_pairs(file.parent).encode("the cat").ids
    found = made.generate("the cat", 10, temperature=1.0, seed=3)
    ids = made.generate(made.encode("the cat"), 10, temperature=1.0, seed=3)
    assert isinstance(found, str) and found == made.decode(made.encode("the cat") + ids)[len("the cat") :]
    text = "<|user|>why</s><|assistant|>"
    assert made.encode([{"role": "user", "content": "why"}]) == byte_pairs(file.parent).encode(text, add_special_tokens=False).ids
    assert made._ends == {1} and len(made.generate([5] * 60, 10, ignore_eos=True)) == 4
    (logits,) = (spec for spec in made.model.outputs if spec.name == "logits")
    assert logits.shape is not None and logits.shape[1] == 1  # of the last token alone


def test_files_without_a_vocabulary_take_ids(tmp_path: Path) -> None:
    with np.load(GOLDEN) as files:
        for name in ("llama", "bert"):
            (tmp_path / f"{name}.gguf").write_bytes(files[f"{name}/file"].tobytes())
        wanted = files["bert/wanted"]
        logits = files["llama/wanted"]
    ids = [3, 17, 42, 8, 25, 11, 4, 49, 30]
    assert Generator(tmp_path / "llama.gguf").generate(ids, 1, ignore_eos=True) == [int(logits[0, -1].argmax())]
    with pytest.raises(fl.UnsupportedError, match="model is 'none'"):
        Generator(tmp_path / "llama.gguf").generate("text")
    mean = wanted[0].mean(0)
    strict = fl.load(tmp_path / "bert.gguf", precision="strict")  # which rounds nothing to bytes
    found = Encoder(tmp_path / "bert.gguf", model=strict).encode([ids])[0]
    np.testing.assert_allclose(found, mean / np.linalg.norm(mean), rtol=0, atol=1e-5)


def test_the_kind_of_a_file_is_told_by_its_network(file: Path, tmp_path: Path) -> None:
    made, model = opened(file)
    assert isinstance(made, Generator) and made.model is not None and "logits" in model.outputs.names
    assert made.generate("the cat", 5) == Generator(file).generate("the cat", 5)
    with np.load(GOLDEN) as files:
        (tmp_path / "bert.gguf").write_bytes(files["bert/file"].tobytes())
    assert isinstance(opened(tmp_path / "bert.gguf")[0], Encoder)
