"""Texts, and the files of a tokenizer that knows single letters, for models of words."""

from __future__ import annotations

import json
from pathlib import Path
from string import ascii_lowercase

__all__ = ["TEXTS", "bert_files", "tokenizer_files"]

TEXTS = ["a question of taste", "short", "the quick brown fox jumps over the lazy dog", "what is the answer to a question"]

_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [*_SPECIAL, *ascii_lowercase, *(f"##{c}" for c in ascii_lowercase), "the", "question", "answer"]


def tokenizer_files(folder: Path) -> None:
    """tokenizer.json and what stands next to it."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    folder.mkdir(parents=True, exist_ok=True)
    made = Tokenizer(models.WordPiece({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    made.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    made.save(str(folder / "tokenizer.json"))
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
    (folder / "special_tokens_map.json").write_text(json.dumps(names), encoding="utf-8")
    settings = {"tokenizer_class": "BertTokenizer", "model_max_length": 64, "do_lower_case": True, **names}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    (folder / "vocab.txt").write_text("\n".join(WORDS), encoding="utf-8")
    (folder / "config.json").write_text(json.dumps({"pad_token_id": 0, "model_type": "bert"}), encoding="utf-8")


def bert_files(folder: Path, labels: int = 0) -> None:
    """The same with the configuration of a small BERT."""
    tokenizer_files(folder)
    settings = {
        "model_type": "bert", "architectures": ["BertModel"], "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4,
        "intermediate_size": 64, "vocab_size": 100, "max_position_embeddings": 64, "type_vocab_size": 2, "pad_token_id": 0,
    }  # fmt: skip
    if labels:
        settings |= {"id2label": {str(i): f"L{i}" for i in range(labels)}, "label2id": {f"L{i}": i for i in range(labels)}}
    (folder / "config.json").write_text(json.dumps(settings), encoding="utf-8")
