"""Checkpoints of every family that is read, tiny and of awkward sizes. Weights and inputs follow from names."""

from __future__ import annotations

from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

__all__ = ["CASES", "TOKENS", "Case", "weights"]

TOKENS = 100  # that are generated


class Case(NamedTuple):
    """A class of transformers, the words of its configuration, and inputs: whether there are token_type_ids, position_ids."""

    cls: str
    config: dict[str, Any]
    types: bool = False
    places: bool = False

    @property
    def decodes(self) -> bool:
        return "CausalLM" in self.cls or "LMHead" in self.cls

    def feeds(self) -> dict[str, np.ndarray]:
        """Ids, mask, and what else it takes."""
        return _decoder_feeds(self) if self.decodes or self.places else _encoder_feeds(self)


def noise(name: str, *shape: int) -> np.ndarray:
    return np.random.default_rng(crc32(name.encode())).standard_normal(shape, np.float32)


def weights(shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Matrices that let attention choose, and norms that are not 1."""
    return {
        name: noise(name, *shape) * np.float32(0.2 if len(shape) > 1 else 0.3)
        + np.float32(len(shape) == 1 and name.endswith("weight"))
        for name, shape in shapes.items()
    }


def _encoder_feeds(case: Case, steps: int = 9) -> dict[str, np.ndarray]:
    """Three texts, two of them padded at the end."""
    rng = np.random.default_rng(7)
    vocabulary, pad = case.config["vocab_size"], case.config.get("pad_token_id") or 0
    mask = np.ones((3, steps), np.int64)
    mask[1, 6:], mask[2, 2:] = 0, 0
    ids = np.where(mask > 0, rng.integers(5, vocabulary, (3, steps)), pad)
    types = {"token_type_ids": np.where(mask > 0, np.arange(steps) > 3, 0).astype(np.int64)} if case.types else {}
    return {"input_ids": ids, "attention_mask": mask, **types}


def _decoder_feeds(case: Case, steps: int = 11) -> dict[str, np.ndarray]:
    """Two prompts, one of them padded at its beginning."""
    rng = np.random.default_rng(7)
    mask = np.ones((2, steps), np.int64)
    mask[1, :4] = 0
    ids = np.where(mask > 0, rng.integers(5, case.config["vocab_size"], (2, steps)), 1)
    return {"input_ids": ids, "attention_mask": mask, "position_ids": np.maximum(mask.cumsum(1) - 1, 0)}


_BERT = {"vocab_size": 61, "hidden_size": 36, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 53,
         "max_position_embeddings": 40}  # fmt: skip
_LLAMA = {**_BERT, "num_attention_heads": 6, "num_key_value_heads": 2, "max_position_embeddings": 300,
          "bos_token_id": 1, "eos_token_id": 2}  # fmt: skip

CASES: dict[str, Case] = {
    "bert": Case("BertModel", _BERT, True),
    "bert words": Case("BertForMaskedLM", _BERT, True),
    "bert sequences": Case("BertForSequenceClassification", {**_BERT, "hidden_act": "relu"}, True),
    "bert tokens": Case("BertForTokenClassification", {**_BERT, "num_labels": 5, "hidden_act": "gelu_new"}, True),
    "bert answers": Case("BertForQuestionAnswering", _BERT, True),
    "llama": Case("LlamaForCausalLM", _LLAMA),
    "llama, biases, tied": Case(
        "LlamaForCausalLM", {**_LLAMA, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True}),
    "llama 3": Case("LlamaForCausalLM", {**_LLAMA, "head_dim": 8, "rope_parameters": {
        "rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64}}),
    "llama, hidden states": Case("LlamaModel", _LLAMA, places=True),
    "mistral": Case("MistralForCausalLM", {**_LLAMA, "sliding_window": 4}),
    "mistral, whole": Case("MistralForCausalLM", {**_LLAMA, "sliding_window": None, "head_dim": 10}),
    "qwen2": Case("Qwen2ForCausalLM", {**_LLAMA, "use_sliding_window": True, "sliding_window": 3, "max_window_layers": 1,
                                       "tie_word_embeddings": True}),
    "qwen3": Case("Qwen3ForCausalLM", {**_LLAMA, "head_dim": 8, "rope_parameters": {
        "rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 64}}),
    "qwen3, biases": Case("Qwen3ForCausalLM", {**_LLAMA, "head_dim": 6, "attention_bias": True}),
}  # fmt: skip
