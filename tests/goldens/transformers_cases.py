"""Checkpoints of every family that is read, tiny and of awkward sizes. Weights and inputs follow from names."""

from __future__ import annotations

from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

__all__ = ["CASES", "KEPT", "TOKENS", "Case", "weights"]

TOKENS = 100  # that are generated
KEPT = slice(None, None, 3)  # of the last axis of results for every token


class Case(NamedTuple):
    """A class of transformers, the words of its configuration, and inputs: whether there are token_type_ids, position_ids;
    `whole` for decoders that compute a prompt otherwise in pieces.
    """

    cls: str
    config: dict[str, Any]
    types: bool = False
    places: bool = False
    whole: bool = False

    @property
    def decodes(self) -> bool:
        return "CausalLM" in self.cls or "LMHead" in self.cls

    def feeds(self, steps: int = 0) -> dict[str, np.ndarray]:
        """Ids, mask, and what else it takes."""
        return _decoder_feeds(self, steps or 11) if self.decodes or self.places else _encoder_feeds(self, steps or 9)


def noise(name: str, *shape: int) -> np.ndarray:
    return np.random.default_rng(crc32(name.encode())).standard_normal(shape, np.float32)


def weights(shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Matrices that let attention choose, and norms that are not 1."""
    return {
        name: noise(name, *shape) * np.float32(0.2 if len(shape) > 1 else 0.3)
        + np.float32(len(shape) == 1 and name.endswith("weight"))
        for name, shape in shapes.items()
    }


def _encoder_feeds(case: Case, steps: int) -> dict[str, np.ndarray]:
    """Three texts, two of them padded at the end."""
    rng = np.random.default_rng(7)
    vocabulary, pad = case.config["vocab_size"], case.config.get("pad_token_id") or 0
    mask = np.ones((3, steps), np.int64)
    mask[1, 6:], mask[2, 2:] = 0, 0
    ids = np.where(mask > 0, rng.integers(5, vocabulary, (3, steps)), pad)
    types = {"token_type_ids": np.where(mask > 0, np.arange(steps) > 3, 0).astype(np.int64)} if case.types else {}
    return {"input_ids": ids, "attention_mask": mask, **types}


def _decoder_feeds(case: Case, steps: int) -> dict[str, np.ndarray]:
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
_ROBERTA = {**_BERT, "pad_token_id": 1, "type_vocab_size": 1}
_DISTILBERT = {"vocab_size": 61, "dim": 36, "n_layers": 2, "n_heads": 3, "hidden_dim": 53, "max_position_embeddings": 40}
_MODERN = {"vocab_size": 61, "hidden_size": 36, "num_hidden_layers": 4, "num_attention_heads": 3, "intermediate_size": 26,
           "local_attention": 4, "global_attn_every_n_layers": 2, "pad_token_id": 3, "bos_token_id": 1, "eos_token_id": 2,
           "cls_token_id": 1, "sep_token_id": 2}  # fmt: skip
_GPT2 = {"vocab_size": 61, "n_embd": 36, "n_layer": 2, "n_head": 3, "n_positions": 200, "bos_token_id": 1, "eos_token_id": 2}
_PHI = {**_LLAMA, "pad_token_id": 0}
_NEOX = {**_BERT, "max_position_embeddings": 300, "bos_token_id": 1, "eos_token_id": 2}
_STABLE = {**_LLAMA, "num_attention_heads": 2, "num_key_value_heads": 1, "rope_parameters": {
    "rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.25}}  # fmt: skip
_T5 = {"vocab_size": 61, "d_model": 36, "d_kv": 10, "d_ff": 53, "num_layers": 2, "num_heads": 3}
_DEBERTA = {**_BERT, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]}

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
    "roberta": Case("RobertaModel", _ROBERTA),
    "roberta words": Case("RobertaForMaskedLM", _ROBERTA),
    "roberta sequences": Case("RobertaForSequenceClassification", {**_ROBERTA, "num_labels": 3}),
    "xlm-roberta tokens": Case("XLMRobertaForTokenClassification", _ROBERTA),
    "camembert": Case("CamembertModel", _ROBERTA),
    "distilbert": Case("DistilBertModel", _DISTILBERT),
    "distilbert words": Case("DistilBertForMaskedLM", _DISTILBERT),
    "distilbert sequences": Case("DistilBertForSequenceClassification", {**_DISTILBERT, "sinusoidal_pos_embds": True}),
    "mpnet": Case("MPNetModel", {**_BERT, "pad_token_id": 1}),
    "mpnet words": Case("MPNetForMaskedLM", {**_BERT, "pad_token_id": 1}),
    "mpnet sequences": Case("MPNetForSequenceClassification", {**_BERT, "pad_token_id": 1}),
    "electra": Case("ElectraModel", {**_BERT, "embedding_size": 20}, True),
    "electra words": Case("ElectraForMaskedLM", {**_BERT, "embedding_size": 20}, True),
    "electra sequences": Case("ElectraForSequenceClassification", {**_BERT, "embedding_size": 36}, True),
    "albert": Case("AlbertModel", {**_BERT, "embedding_size": 20, "num_hidden_layers": 3}, True),
    "albert words": Case("AlbertForMaskedLM", {**_BERT, "embedding_size": 20, "inner_group_num": 2}, True),
    "albert sequences": Case("AlbertForSequenceClassification", {**_BERT, "embedding_size": 20, "num_hidden_groups": 2}, True),
    "modernbert": Case("ModernBertModel", _MODERN),
    "modernbert words": Case("ModernBertForMaskedLM", {**_MODERN, "attention_bias": True, "mlp_bias": True, "norm_bias": True}),
    "modernbert sequences": Case("ModernBertForSequenceClassification", {**_MODERN, "classifier_pooling": "mean"}),
    "modernbert tokens": Case("ModernBertForTokenClassification", {**_MODERN, "classifier_bias": True}),
    "nomic_bert": Case("NomicBertModel", {**_BERT, "num_attention_heads": 6}, True),
    "nomic_bert words": Case("NomicBertForMaskedLM", {**_BERT, "num_attention_heads": 6}, True),
    "gpt2": Case("GPT2LMHeadModel", _GPT2),
    "gpt2, scaled by layer": Case("GPT2LMHeadModel", {**_GPT2, "scale_attn_by_inverse_layer_idx": True, "n_inner": 50}),
    "phi3": Case("Phi3ForCausalLM", {**_PHI, "sliding_window": 5}),
    "phi3, long": Case("Phi3ForCausalLM", {**_PHI, "max_position_embeddings": 300, "original_max_position_embeddings": 150,
        "rope_parameters": {"rope_type": "longrope", "rope_theta": 1e4, "partial_rotary_factor": 0.5,
        "short_factor": [1.0, 1.2], "long_factor": [2.0, 4.5]}, "num_attention_heads": 4, "hidden_size": 32}),
    "phi3, longer": Case("Phi3ForCausalLM", {**_PHI, "max_position_embeddings": 64, "original_max_position_embeddings": 8,
        "rope_parameters": {"rope_type": "longrope", "rope_theta": 1e4, "short_factor": [1.0] * 3,
        "long_factor": [2.0, 3.0, 4.5]}}, whole=True),
    "llama, longer": Case("LlamaForCausalLM", {**_LLAMA, "max_position_embeddings": 8, "rope_parameters": {
        "rope_type": "dynamic", "rope_theta": 1e4, "factor": 3.0}}, whole=True),
    "smollm3": Case("SmolLM3ForCausalLM", {**_PHI, "num_hidden_layers": 4, "no_rope_layer_interval": 2}),
    "smollm3, windows": Case("SmolLM3ForCausalLM", {
        **_PHI, "no_rope_layers": [0, 1], "use_sliding_window": True, "sliding_window": 4}),
    "gemma": Case("GemmaForCausalLM", {**_LLAMA, "head_dim": 8}),
    "gemma2": Case("Gemma2ForCausalLM", {**_LLAMA, "head_dim": 8, "query_pre_attn_scalar": 11, "sliding_window": 4,
        "attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0}),
    "gemma3": Case("Gemma3ForCausalLM", {**_LLAMA, "head_dim": 8, "num_hidden_layers": 3, "sliding_window": 4,
        "sliding_window_pattern": 3, "query_pre_attn_scalar": 9}),
    "gpt_neox": Case("GPTNeoXForCausalLM", {**_NEOX, "rope_parameters": {
        "rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}}),
    "gpt_neox, not parallel": Case("GPTNeoXForCausalLM", {**_NEOX, "use_parallel_residual": False, "attention_bias": False,
        "rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4, "partial_rotary_factor": 1.0}}),
    "olmo2": Case("Olmo2ForCausalLM", _LLAMA),
    "stablelm": Case("StableLmForCausalLM", {**_STABLE, "use_qkv_bias": True}),
    "stablelm, parallel": Case("StableLmForCausalLM", {**_STABLE, "qk_layernorm": True, "use_parallel_residual": True}),
    "mixtral": Case("MixtralForCausalLM", {**_LLAMA, "num_local_experts": 4, "sliding_window": 5, "intermediate_size": 52}),
    "qwen3_moe": Case("Qwen3MoeForCausalLM", {**_LLAMA, "head_dim": 6, "num_experts": 5, "num_experts_per_tok": 2,
        "moe_intermediate_size": 16, "mlp_only_layers": [0], "norm_topk_prob": True}),
    "t5": Case("T5EncoderModel", _T5),
    "t5, gated": Case("T5EncoderModel", {**_T5, "feed_forward_proj": "gated-gelu", "relative_attention_max_distance": 20}),
    "deberta-v2": Case("DebertaV2Model", _DEBERTA),
    "deberta-v2, v3": Case("DebertaV2Model", {**_DEBERTA, "position_buckets": 6, "share_att_key": True,
        "norm_rel_ebd": "layer_norm",
        "max_relative_positions": 12, "position_biased_input": False, "type_vocab_size": 2}, True),
    "deberta-v2, convolution": Case("DebertaV2Model", {**_DEBERTA, "conv_kernel_size": 3, "conv_act": "gelu",
        "pos_att_type": ["c2p"], "position_buckets": 4, "embedding_size": 24}),
    "deberta-v2, plain": Case("DebertaV2Model", {**_DEBERTA, "relative_attention": False, "pos_att_type": None}),
    "deberta-v2 words": Case("DebertaV2ForMaskedLM", _DEBERTA),
    "deberta-v2 sequences": Case("DebertaV2ForSequenceClassification", {**_DEBERTA, "num_labels": 3}),
    "gte": Case("GteModel", {**_BERT, "num_attention_heads": 6}),
    "gte words": Case("GteForMaskedLM", {**_BERT, "num_attention_heads": 6, "type_vocab_size": 0}),
    "gte sequences": Case("GteForSequenceClassification", {**_BERT, "num_attention_heads": 6, "type_vocab_size": 2}, True),
    "gemma3, both ways": Case("Gemma3TextModel", {**_LLAMA, "head_dim": 8, "num_hidden_layers": 3, "sliding_window": 6,
        "sliding_window_pattern": 3, "use_bidirectional_attention": True}, places=True),
    "llama sequences": Case("LlamaForSequenceClassification", {**_LLAMA, "pad_token_id": 1}, places=True),
    "qwen3 sequences": Case("Qwen3ForSequenceClassification", {**_LLAMA, "head_dim": 6, "num_labels": 1, "pad_token_id": 0},
        places=True),
}  # fmt: skip
