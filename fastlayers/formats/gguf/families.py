"""Architectures of GGUF in transformers' words: what a configuration says, and the names of the weights.

An architecture has a `Family`: its `model_type`, names of its tensors as transformers has them ({i} is the block, {e} the expert)
and a function that writes the words of its configuration. A new one is a table and a function here; `formats.transformers` must
have its network.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ..._arguments import listed
from ..._tuples import NamedTuple
from ...errors import FormatError, UnsupportedError
from .._arrays import Array
from ..source import quote
from .parse import File

__all__ = ["FAMILIES", "Family", "Words"]


# Keys of any architecture that change no result.
_HARMLESS = re.compile(
    r"vocab_size|context_length|tensor_data_layout|pooling_type|classifier\..*|rope\.scaling\.finetuned|attention\.layer_norm(_rms)?_epsilon"
)


class Words:
    """The metadata of an architecture, checked: `count`, `number`, `flag` by their keys without the architecture's name."""

    def __init__(self, file: File, arch: str, small: Mapping[str, Array]) -> None:
        self.file, self.arch, self.small, self.where = file, arch, small, file.where
        self.read: set[str] = set()

    def value(self, key: str) -> Any:
        """A key's value of any type; None without it."""
        self.read.add(key)
        return self.file.metadata.get(f"{self.arch}.{key}")

    def _typed(self, key: str, kinds: tuple[type, ...], default: Any, wanted: str) -> Any:
        found = self.value(key)
        if found is None:
            if default is not None:
                return default
            raise FormatError(f"{self.where}: has no {self.arch}.{key}: expected {wanted}")
        if type(found) not in kinds:
            raise UnsupportedError(f"{self.where}: {self.arch}.{key} is {quote(found)}: only {wanted} is supported")
        return found

    def count(self, key: str, default: int | None = None) -> int:
        """An integer; required without a default."""
        return int(self._typed(key, (int,), default, "an integer"))

    def number(self, key: str, default: float | None = None) -> float:
        """A number."""
        return float(self._typed(key, (int, float), default, "a number"))

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        return bool(self._typed(key, (bool,), default, "true or false"))

    def has(self, tensor: str) -> bool:
        """Whether there is a tensor."""
        return tensor in self.file.tensors

    def rows(self, tensor: str) -> int:
        """The rows of a tensor of two axes."""
        if tensor not in self.file.tensors or len(self.file.tensors[tensor].shape) != 2:
            raise FormatError(f"{self.where}: has no matrix {quote(tensor)}, which {self.arch} needs")
        return self.file.tensors[tensor].shape[0]

    def check(self) -> None:
        """Raises if the file says what nothing has read, and what may change results."""
        read, head = set(self.read), self.head
        share = self.count("embedding_length") // self.count("attention.head_count")
        same = {
            "attention.key_length": share, "attention.value_length": head, "attention.causal": self.arch != "bert",
            "rope.dimension_count": head, "expert_weights_norm": True, "expert_gating_func": 1, "expert_weights_scale": 1,
        }  # fmt: skip
        unknown = []
        for key, value in self.file.metadata.items():
            arch, _, word = key.partition(".")
            if arch != self.arch or word in read or _HARMLESS.fullmatch(word):
                continue
            if (type(value) in (int, float) and value == 0) or (word in same and value == same[word]):
                continue
            unknown.append(f"{key[:80]}={quote(value)}")
        if unknown:
            raise UnsupportedError(f"{self.where}: says what is not known of a {self.arch}: {listed(unknown, 8)}")

    @property
    def head(self) -> int:
        """The width of a head."""
        width, heads = self.count("embedding_length"), self.count("attention.head_count")
        if heads < 1:
            raise FormatError(f"{self.where}: {self.arch}.attention.head_count is {heads}: expected at least 1")
        return self.count("attention.key_length", width // heads)

    @property
    def turned(self) -> int:
        """Values of a head that are rotated."""
        return self.count("rope.dimension_count", self.head)


class Family(NamedTuple):
    """An architecture."""

    kind: str  # model_type
    names: Mapping[str, str]  # without ".weight" and ".bias"
    words: Callable[[Words, dict[str, Any]], None]
    head: str = "CausalLM"
    turned: bool = False  # rotary pairs of queries and keys are neighbours
    shifted: bool = False  # norms' weights have 1 added
    gathered: str = ""  # a tensor whose rows are all queries, then all keys, then all values, and not head by head
    turns: str = ""  # tensors of which transformers has arrays with input and output exchanged


_OUTER = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


def _blocks(at: str, names: Mapping[str, str]) -> dict[str, str]:
    return {f"blk.{{i}}.{ours}": f"{at}.{{i}}.{theirs}" for ours, theirs in names.items()}


_ATTENTION = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
              "attn_output": "self_attn.o_proj",
              "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}  # fmt: skip
_FEED = {"ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
_NORMS = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}
_AFTER = {"post_attention_norm": "post_attention_layernorm", "post_ffw_norm": "post_feedforward_layernorm"}

_LLAMA = {**_OUTER, **_blocks("model.layers", {**_NORMS, **_ATTENTION, **_FEED})}
# Tensors of a norm have a row for each head ({e}).
_STABLELM = {**_LLAMA, **_blocks("model.layers", {f"attn_{p}_norm": f"self_attn.{p}_layernorm.norms.{{e}}" for p in "qk"})}
_OLMO2 = {**_OUTER, **_blocks("model.layers", {**_ATTENTION, **_FEED, **_AFTER})}
_GEMMA2 = {**_OUTER, **_blocks("model.layers", {
    **_ATTENTION, **_FEED, **_AFTER, "attn_norm": "input_layernorm", "ffn_norm": "pre_feedforward_layernorm",
})}  # fmt: skip
_PHI3 = {**_OUTER, **_blocks("model.layers", {
    **_NORMS, "attn_qkv": "self_attn.qkv_proj", "attn_output": "self_attn.o_proj", "ffn_up": "mlp.gate_up_proj",
    "ffn_down": "mlp.down_proj",
})}  # fmt: skip
_MOE = {**_LLAMA, **_blocks("model.layers", {
    "ffn_gate_inp": "mlp.gate", "ffn_gate_exps": "mlp.experts.{e}.gate_proj", "ffn_up_exps": "mlp.experts.{e}.up_proj",
    "ffn_down_exps": "mlp.experts.{e}.down_proj",
})}  # fmt: skip
_GPT2 = {
    "token_embd": "transformer.wte", "position_embd": "transformer.wpe", "output_norm": "transformer.ln_f", "output": "lm_head",
    **_blocks("transformer.h", {
        "attn_norm": "ln_1", "attn_qkv": "attn.c_attn", "attn_output": "attn.c_proj", "ffn_norm": "ln_2", "ffn_up": "mlp.c_fc",
        "ffn_down": "mlp.c_proj",
    }),
}  # fmt: skip
_NEOX = {
    "token_embd": "gpt_neox.embed_in", "output_norm": "gpt_neox.final_layer_norm", "output": "embed_out",
    **_blocks("gpt_neox.layers", {
        "attn_norm": "input_layernorm", "attn_qkv": "attention.query_key_value", "attn_output": "attention.dense",
        "ffn_norm": "post_attention_layernorm", "ffn_up": "mlp.dense_h_to_4h", "ffn_down": "mlp.dense_4h_to_h",
    }),
}  # fmt: skip
_BERT = {
    "token_embd": "embeddings.word_embeddings", "token_types": "embeddings.token_type_embeddings",
    "position_embd": "embeddings.position_embeddings", "token_embd_norm": "embeddings.LayerNorm",
    **_blocks("encoder.layer", {
        "attn_q": "attention.self.query", "attn_k": "attention.self.key", "attn_v": "attention.self.value",
        "attn_output": "attention.output.dense", "attn_output_norm": "attention.output.LayerNorm",
        "ffn_up": "intermediate.dense", "ffn_down": "output.dense", "layer_output_norm": "output.LayerNorm",
    }),
}  # fmt: skip


# ---- words ----------------------------------------------------------------------------------------------------------------


def _decoder(w: Words, c: dict[str, Any], eps: str = "rms") -> None:
    """Words of nearly all decoders."""
    c.update(
        vocab_size=w.rows("token_embd.weight"), hidden_size=w.count("embedding_length"), num_hidden_layers=w.count("block_count"),
        intermediate_size=w.count("feed_forward_length"), num_attention_heads=w.count("attention.head_count"),
        max_position_embeddings=w.count("context_length"), tie_word_embeddings=not w.has("output.weight"),
    )  # fmt: skip
    if eps == "rms":
        c["rms_norm_eps"] = w.number("attention.layer_norm_rms_epsilon")
    else:
        c[eps] = w.number("attention.layer_norm_epsilon")


def _grouped(w: Words, c: dict[str, Any]) -> None:
    """A decoder with fewer heads of keys than of queries."""
    _decoder(w, c)
    c["num_key_value_heads"] = w.count("attention.head_count_kv", c["num_attention_heads"])
    c["rope_parameters"] = _rope(w)


def _rope(w: Words, theta: float = 10000.0) -> dict[str, Any]:
    """Words of rotary embeddings."""
    made: dict[str, Any] = {"rope_theta": w.number("rope.freq_base", theta), "rope_type": "default"}
    kind = w.value("rope.scaling.type")
    length = w.value("rope.scaling.original_context_length")
    if "rope_freqs" in w.small:  # what Llama 3 scales frequencies by
        made.update(rope_type="longrope", attention_factor=1.0, factor=1.0)
        length = w.count("context_length")
        made["short_factor"] = made["long_factor"] = [float(f) for f in w.small["rope_freqs"]]
    elif "rope_factors_long" in w.small or "rope_factors_short" in w.small:
        made.update(rope_type="longrope", attention_factor=w.number("rope.scaling.attn_factor", 1.0))
        for size in ("long", "short"):
            if f"rope_factors_{size}" not in w.small:
                raise FormatError(f"{w.where}: has no tensor 'rope_factors_{size}.weight'")
            made[f"{size}_factor"] = [float(f) for f in w.small[f"rope_factors_{size}"]]
    elif kind in ("linear", "yarn"):
        made.update(rope_type=kind, factor=w.number("rope.scaling.factor"))
        for ours, theirs in (
            ("yarn_attn_factor", "attention_factor"),
            ("yarn_beta_fast", "beta_fast"),
            ("yarn_beta_slow", "beta_slow"),
        ):
            if kind == "yarn" and w.value(f"rope.scaling.{ours}") is not None:
                made[theirs] = w.number(f"rope.scaling.{ours}")
    elif kind not in (None, "none", "longrope"):
        raise UnsupportedError(
            f"{w.where}: {w.arch}.rope.scaling.type is {quote(kind)}: supported are none, linear, yarn, longrope"
        )
    if length is not None and made["rope_type"] in ("yarn", "longrope"):
        made["original_max_position_embeddings"] = length
    return made


def _llama(w: Words, c: dict[str, Any]) -> None:
    _grouped(w, c)
    c["head_dim"] = w.head
    if experts := w.count("expert_count", 0):
        c.update(model_type="mixtral", num_local_experts=experts, num_experts_per_tok=w.count("expert_used_count"))
    else:
        c["attention_bias"] = w.has("blk.0.attn_q.bias") or w.has("blk.0.attn_qkv.bias")
        c["mlp_bias"] = w.has("blk.0.ffn_up.bias")


def _qwen3(w: Words, c: dict[str, Any]) -> None:
    _grouped(w, c)
    c["head_dim"] = w.head


def _qwen3moe(w: Words, c: dict[str, Any]) -> None:
    _qwen3(w, c)
    del c["intermediate_size"]  # of layers without experts
    c.update(
        num_experts=w.count("expert_count"), num_experts_per_tok=w.count("expert_used_count"),
        moe_intermediate_size=w.count("expert_feed_forward_length"), norm_topk_prob=True, decoder_sparse_step=1,
        mlp_only_layers=[],
    )  # fmt: skip


def _smollm3(w: Words, c: dict[str, Any]) -> None:
    _grouped(w, c)
    c["no_rope_layers"] = [int((i + 1) % 4 != 0) for i in range(_layers(c))]


def _layers(c: dict[str, Any]) -> int:
    return min(int(c["num_hidden_layers"]), 1 << 16)


def _gemma(w: Words, c: dict[str, Any]) -> None:
    _grouped(w, c)
    c.update(head_dim=w.head, hidden_activation="gelu_pytorch_tanh")


def _scaled(w: Words, c: dict[str, Any], largest: int) -> None:
    """The scale of queries: the width of a head, and in the network of so many layers a head's share of the whole."""
    c["query_pre_attn_scalar"] = c["hidden_size"] // c["num_attention_heads"] if c["num_hidden_layers"] == largest else w.head


def _gemma2(w: Words, c: dict[str, Any]) -> None:
    _gemma(w, c)
    _scaled(w, c, 46)
    c["sliding_window"] = w.count("attention.sliding_window", 4096)
    c["layer_types"] = _kinds(w, c, 2)
    for key in ("attn_logit_softcapping", "final_logit_softcapping"):
        c[key] = w.number(key, 0.0) or None


def _kinds(w: Words, c: dict[str, Any], every: int) -> list[str]:
    """Layers in windows, and each `every`-th with all."""
    every = w.count("attention.sliding_window_pattern", every)
    return ["full_attention" if every and (i + 1) % every == 0 else "sliding_attention" for i in range(_layers(c))]


def _gemma3(w: Words, c: dict[str, Any]) -> None:
    _gemma(w, c)
    _scaled(w, c, 62)
    window = w.count("attention.sliding_window", 0)
    c["layer_types"] = _kinds(w, c, 6) if window else ["full_attention"] * _layers(c)
    c["sliding_window"] = window or None
    c["final_logit_softcapping"] = w.number("final_logit_softcapping", 0.0) or None
    near = {"rope_type": "default", "rope_theta": w.number("rope.freq_base_swa", 10000.0)}
    c["rope_parameters"] = {"full_attention": _rope(w, 1e6), "sliding_attention": near}


def _phi3(w: Words, c: dict[str, Any]) -> None:
    _grouped(w, c)
    c["sliding_window"] = w.count("attention.sliding_window", 0) or None
    c["partial_rotary_factor"] = w.turned / w.head
    if (length := c["rope_parameters"].pop("original_max_position_embeddings", None)) is not None:
        c["original_max_position_embeddings"] = length


def _stablelm(w: Words, c: dict[str, Any]) -> None:
    _decoder(w, c, "layer_norm_eps")
    c.update(
        num_key_value_heads=w.count("attention.head_count_kv", c["num_attention_heads"]), rope_parameters=_rope(w),
        partial_rotary_factor=w.turned / w.head, use_parallel_residual=w.flag("use_parallel_residual", True),
        use_qkv_bias=w.has("blk.0.attn_q.bias") or w.has("blk.0.attn_qkv.bias"), qk_layernorm=w.has("blk.0.attn_q_norm.weight"),
    )  # fmt: skip
    c["use_parallel_residual"] = not w.has("blk.0.ffn_norm.weight")  # as llama.cpp goes by


def _gpt2(w: Words, c: dict[str, Any]) -> None:
    c.update(
        vocab_size=w.rows("token_embd.weight"), n_embd=w.count("embedding_length"), n_layer=w.count("block_count"),
        n_inner=w.count("feed_forward_length"), n_head=w.count("attention.head_count"), n_positions=w.count("context_length"),
        layer_norm_epsilon=w.number("attention.layer_norm_epsilon"), tie_word_embeddings=not w.has("output.weight"),
    )  # fmt: skip


def _neox(w: Words, c: dict[str, Any]) -> None:
    _decoder(w, c, "layer_norm_eps")
    c.update(
        rope_parameters={**_rope(w), "partial_rotary_factor": w.turned / w.head},
        use_parallel_residual=w.flag("use_parallel_residual", True),
    )  # fmt: skip


def _bert(w: Words, c: dict[str, Any]) -> None:
    c.update(
        vocab_size=w.rows("token_embd.weight"), hidden_size=w.count("embedding_length"), num_hidden_layers=w.count("block_count"),
        intermediate_size=w.count("feed_forward_length"), num_attention_heads=w.count("attention.head_count"),
        max_position_embeddings=w.rows("position_embd.weight"), type_vocab_size=w.rows("token_types.weight"),
        layer_norm_eps=w.number("attention.layer_norm_epsilon"),
    )  # fmt: skip


FAMILIES: dict[str, Family] = {
    "llama": Family("llama", _MOE, _llama, turned=True),
    "qwen2": Family("qwen2", _LLAMA, _grouped),
    "qwen3": Family("qwen3", _LLAMA, _qwen3),
    "qwen3moe": Family("qwen3_moe", _MOE, _qwen3moe),
    "smollm3": Family("smollm3", _LLAMA, _smollm3, turned=True),
    "olmo2": Family("olmo2", _OLMO2, _grouped),
    "gemma": Family("gemma", _LLAMA, _gemma, shifted=True),
    "gemma2": Family("gemma2", _GEMMA2, _gemma2, shifted=True),
    "gemma3": Family("gemma3_text", _GEMMA2, _gemma3, shifted=True),
    "phi3": Family("phi3", _PHI3, _phi3),
    "stablelm": Family("stablelm", _STABLELM, _stablelm),
    "gpt2": Family("gpt2", _GPT2, _gpt2, turns="attn_qkv attn_output ffn_up ffn_down"),
    "gptneox": Family("gpt_neox", _NEOX, _neox, gathered="attn_qkv"),
    "bert": Family("bert", _BERT, _bert, head=""),
}
