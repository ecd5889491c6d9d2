"""Folders of small networks with tokenizers, as transformers and sentence-transformers write them."""

from __future__ import annotations

import json
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import numpy as np

import fastlayers as fl

from . import networks

__all__ = ["TEXTS", "bert", "byte_pairs", "decoder", "sentence_transformer", "word_pieces", "write_json"]

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *ascii_lowercase, *(f"##{c}" for c in ascii_lowercase), "the", "question",
         "answer", "##ing", "cat", "dog", "."]  # fmt: skip
SPECIAL = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
TEXTS = ["the cat", "A question of taste", "", "the dog is answering the question of the cat", "dog", "zebra crossing", "the cat",
         "what is the answer to a question that a cat and a dog are asking. " * 3, "cat dog", "dog cat"]  # fmt: skip


def write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def word_pieces(folder: Path, most: int = 64) -> Any:
    """BERT's tokenizer of single letters and a few words; returns it."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    folder.mkdir(parents=True, exist_ok=True)
    made = Tokenizer(models.WordPiece({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    made.add_special_tokens(list(SPECIAL.values()))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    made.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    made.enable_padding(length=128)  # as published ones have it: to be ignored
    made.enable_truncation(8)
    made.save(str(folder / "tokenizer.json"))
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "BertTokenizerFast", "model_max_length": most, **SPECIAL})
    return made


def put(model: fl.Model, path: Path) -> None:
    """A model in the library's own format under an exporter's name: what a file is, its content says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    model.save(path.with_suffix(".safetensors"))
    path.with_suffix(".safetensors").rename(path)


def bert(folder: Path, labels: int = 0, tokens: bool = False, most: int = 64, **config: Any) -> Path:
    """A folder of a BERT with random weights."""
    word_pieces(folder, most)
    put(networks.encoder(len(WORDS), labels=labels, tokens=tokens), folder / "onnx" / "model.onnx")
    write_json(folder / "config.json", {"model_type": "bert", "max_position_embeddings": 128, **config})
    return folder


def sentence_transformer(
    folder: Path, pooling: Any = "mean", dense: int = 0, normalize: bool = True, older: bool = False, **config: Any
) -> Path:
    """The same with the modules of sentence-transformers."""
    bert(folder)
    names = ["Transformer", "Pooling", *(["Dense"] if dense else []), *(["Normalize"] if normalize else [])]
    paths = [f"{i}_{name}" if i else "" for i, name in enumerate(names)]
    modules = [{"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{name}"}
               for i, (name, path) in enumerate(zip(names, paths, strict=True))]  # fmt: skip
    write_json(folder / "modules.json", modules)
    modes: dict[str, Any] = {"pooling_mode": pooling}
    if older:
        words = {"mean": "mean_tokens", "cls": "cls_token", "max": "max_tokens", "weightedmean": "weightedmean_tokens"}
        modes = {f"pooling_mode_{word}": name in pooling for name, word in words.items()}
    write_json(folder / "1_Pooling" / "config.json", {"embedding_dimension": 32, **modes, **config})
    if dense:
        rng = np.random.default_rng(5)
        width = 32 * (1 if isinstance(pooling, str) else len(pooling))
        write_json(folder / "2_Dense" / "config.json", {
            "in_features": width, "out_features": dense, "bias": True, "activation_function": "torch.nn.modules.activation.Tanh"
        })  # fmt: skip
        arrays = {"linear.weight": (dense, width), "linear.bias": (dense,)}
        save({name: rng.standard_normal(shape).astype(np.float32) for name, shape in arrays.items()},
             folder / "2_Dense" / "model.safetensors")  # fmt: skip
    return folder


def save(arrays: dict[str, np.ndarray], path: Path) -> None:
    """A safetensors file."""
    header, at = {}, 0
    for name, array in arrays.items():
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(array.tobytes() for array in arrays.values()))


SPEECH = "the cat asks the dog a question . the dog gives the cat an answer . " * 4 + "日本語 und Grüße 🙂🙃 naïve " * 3
CHAT = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content | trim }}{{ eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def byte_pairs(folder: Path) -> Any:
    """A byte-level tokenizer of a few hundred tokens, as Llama 3 and GPT-2 have; returns it."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    folder.mkdir(parents=True, exist_ok=True)
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    special = ["<s>", "</s>", "<|user|>", "<|assistant|>", "<|system|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        [SPEECH], trainers.BpeTrainer(vocab_size=300, special_tokens=special, initial_alphabet=alphabet, show_progress=False)
    )
    made.post_processor = processors.TemplateProcessing("<s> $A", "<s> $A $B", [("<s>", 0)])
    made.save(str(folder / "tokenizer.json"))
    settings = {"bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": False}, "chat_template": CHAT}
    write_json(folder / "tokenizer_config.json", settings)
    return made


def decoder(folder: Path, seed: int = 0, **config: Any) -> Path:
    """A folder of a decoder with random weights."""
    made = byte_pairs(folder)
    put(networks.decoder(made.get_vocab_size(), seed=seed), folder / "model.onnx")
    write_json(folder / "config.json", {"model_type": "llama", "max_position_embeddings": 512, **config})
    return folder
