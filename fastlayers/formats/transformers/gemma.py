"""Gemma 1, 2 and the text part of 3: Llama with norms after the parts as well, soft caps, and windows in some layers."""

from __future__ import annotations

from typing import Any

from ...errors import UnsupportedError
from .build import Network
from .decoder import Decoder
from .llama import feed_forward, head_norm, kinds_of, project
from .rotary import Rotary, parameters

__all__ = ["CAUSAL", "OTHERS", "write"]

PREFIX = "model."
OTHERS = r"score\.weight|lm_head\.weight"
CAUSAL = True


def write(n: Network) -> None:
    """Writes the network."""
    c, kind, at = n.config, n.config.text("model_type", "gemma"), n.weights.prefix
    both = c.flag("use_bidirectional_attention", False)  # an encoder
    if both and n.head:
        raise UnsupportedError(f"{c.where}: use_bidirectional_attention is supported without a head: the head is {n.head}")
    c.unused("sliding_window_size")  # as sliding_window
    width, heads, head = c.size("hidden_size"), c.size("num_attention_heads"), c.size("head_dim", 256)
    eps, layers, bias = c.number("rms_norm_eps", 1e-6), c.layers(), c.flag("attention_bias", False)
    act = c.text("hidden_activation", c.text("hidden_act", "gelu_pytorch_tanh"))
    act = "gelu_pytorch_tanh" if act == "gelu" and kind == "gemma" else act  # as older files call it
    rule: dict[str, Any] = {}
    windows, size, local = [False] * layers, None, None
    far = parameters(c, 1e6 if kind == "gemma3_text" else 1e4, "full_attention")
    near = parameters(c, c.number("rope_local_base_freq", 1e4), "sliding_attention")
    d = Decoder(n, heads=heads, kv_heads=c.size("num_key_value_heads", heads), head=head, rope=far)
    if kind != "gemma":
        every = 2 if kind == "gemma2" else c.whole("sliding_window_pattern", c.whole("_sliding_window_pattern", 6))
        windows = kinds_of(n, layers, ["sliding_attention" if (i + 1) % every else "full_attention" for i in range(layers)])
        size = c.size("sliding_window", 4096)
        size = size // 2 if both else size - 1
        rule = {"scale": c.number("query_pre_attn_scalar", 256, True) ** -0.5}
        cap = c.number("attn_logit_softcapping", 0 if kind == "gemma3_text" or "attn_logit_softcapping" in c.words else 50)
        rule["softcap"] = cap or None
    if kind == "gemma3_text":
        if not isinstance(c.value("rope_parameters"), dict):  # older files scale the wide layers alone
            near = {**near, "rope_type": "default", "factor": None, "rope_theta": c.number("rope_local_base_freq", 1e4)}
        local = Rotary(n, head, near, d.positions)
    n.scope = "embeddings/"
    x = n.mul(n.embedding(f"{at}embed_tokens.weight", d.ids, c.size("vocab_size"), width), width**0.5)
    for i in range(layers):
        name, n.scope = f"{at}layers.{i}", f"layer.{i}/"
        q, k, v = project(d, f"{name}.self_attn", n.rms_norm(f"{name}.input_layernorm", x, eps, 1), bias)
        if local is not None:
            q, k = (head_norm(n, f"{name}.self_attn.{p}_norm", t, head, eps, 1) for p, t in (("q", q), ("k", k)))
        turn = local if local is not None and windows[i] else True
        span = size if windows[i] else None
        sides = {"is_causal": int(not both), "left_window_size": span, "right_window_size": span if both else None}
        y = d.attention(q, k, v, rotary=turn, **sides, **rule)
        y = n.linear(f"{name}.self_attn.o_proj", y, width, bias=bias)
        if kind == "gemma":
            x = n.add(y, x)
            y = feed_forward(n, f"{name}.mlp", n.rms_norm(f"{name}.post_attention_layernorm", x, eps, 1), act)
        else:
            x = n.add(n.rms_norm(f"{name}.post_attention_layernorm", y, eps, 1), x)
            y = feed_forward(n, f"{name}.mlp", n.rms_norm(f"{name}.pre_feedforward_layernorm", x, eps, 1), act)
            y = n.rms_norm(f"{name}.post_feedforward_layernorm", y, eps, 1)
        x = n.add(y, x)
    last = 30 if kind == "gemma2" and "final_logit_softcapping" not in c.words else 0
    cap = c.number("final_logit_softcapping", last)
    d.finish(n.rms_norm(f"{at}norm", x, eps, 1), f"{at}embed_tokens.weight", True, cap)
