"""Llama, and families that differ from it in a few words: Mistral, Mixtral, Phi-3, Qwen2, Qwen3, Qwen3-MoE, SmolLM3."""

from __future__ import annotations

from .build import Network
from .decoder import Decoder
from .rotary import parameters

__all__ = ["AUTO_MAP", "CAUSAL", "OTHERS", "feed_forward", "head_norm", "kinds_of", "project", "write"]

PREFIX = "model."
OTHERS = r"score\.weight|lm_head\.weight"
CAUSAL = True
AUTO_MAP = r"(configuration|modeling)_phi3\.Phi3\w+"  # code on the hub that is this network
_THETA = {"mixtral": 1e6, "smollm3": 2e6}


def write(n: Network) -> None:
    """Writes the network."""
    c, kind = n.config, n.config.text("model_type", "llama")
    width, heads, at = c.size("hidden_size"), c.size("num_attention_heads"), n.weights.prefix
    eps, layers = c.number("rms_norm_eps", 1e-5 if kind in ("mixtral", "phi3") else 1e-6), c.layers()
    rope = parameters(c, _THETA.get(kind, 1e4))
    if kind == "phi3" and rope["rope_type"] == "yarn":
        rope["rope_type"] = "longrope"
    head = c.size("head_dim", 128 if kind in ("qwen3", "qwen3_moe") else max(width // heads, 1))
    d = Decoder(n, heads=heads, kv_heads=c.size("num_key_value_heads", heads), head=head, rope=rope)
    bias = {"qwen2": True}.get(kind, c.flag("attention_bias", False))
    spans, turned = _spans(n, layers, kind), _turned(n, layers, kind)
    experts = _experts(n, layers, kind)
    x = n.embedding(f"{at}embed_tokens.weight", d.ids, c.size("vocab_size"), width)
    for i in range(layers):
        name, n.scope = f"{at}layers.{i}", f"layer.{i}/"
        y = n.rms_norm(f"{name}.input_layernorm", x, eps)
        if kind == "phi3":
            q, k, v = n.linears(f"{name}.self_attn.qkv_proj", y, heads * head, *(d.kv_heads * head,) * 2, bias=False)
        else:
            q, k, v = project(d, f"{name}.self_attn", y, bias)
        if kind in ("qwen3", "qwen3_moe"):
            q, k = (head_norm(n, f"{name}.self_attn.{p}_norm", t, head, eps) for p, t in (("q", q), ("k", k)))
        y = d.attention(q, k, v, rotary=turned[i], left_window_size=spans[i])
        x = n.add(n.linear(f"{name}.self_attn.o_proj", y, width, bias=bias and kind != "qwen2"), x)
        y = n.rms_norm(f"{name}.post_attention_layernorm", x, eps)
        if experts[i]:
            from .experts import mixture

            x = n.add(mixture(n, name, y), x)
        else:
            x = n.add(feed_forward(n, f"{name}.mlp", y), x)
    d.finish(n.rms_norm(f"{at}norm", x, eps), f"{at}embed_tokens.weight", kind == "smollm3")


def project(d: Decoder, name: str, x: str, bias: bool) -> tuple[str, str, str]:
    """Queries, keys and values."""
    counts = (("q", d.heads), ("k", d.kv_heads), ("v", d.kv_heads))
    return tuple(d.n.linear(f"{name}.{p}_proj", x, count * d.head, bias=bias) for p, count in counts)  # type: ignore[return-value]


def head_norm(n: Network, name: str, x: str, head: int, eps: float, more: float = 0.0) -> str:
    """RMSNorm of each head of (b, t, heads d)."""
    y = n.rms_norm(name, n.reshape(x, 0, 0, -1, head), eps, more)
    return n.reshape(y, 0, 0, n.width(x))


def feed_forward(n: Network, name: str, x: str, kind: str = "") -> str:
    """down(act(gate x) up x)."""
    c = n.config
    inner, bias = c.size("intermediate_size"), c.flag("mlp_bias", False)
    if f"{name}.gate_up_proj.weight" in n.weights:
        gate, up = n.linears(f"{name}.gate_up_proj", x, inner, inner, bias=bias)
    else:
        gate, up = (n.linear(f"{name}.{part}_proj", x, inner, bias=bias) for part in ("gate", "up"))
    y = n.gated(kind or c.text("hidden_act", "silu"), gate, up)
    return n.linear(f"{name}.down_proj", y, n.width(x), bias=bias)


def kinds_of(n: Network, layers: int, default: list[str]) -> list[bool]:
    """Whether each layer has a window, by `layer_types`."""
    c = n.config
    names, found = ("full_attention", "sliding_attention"), c.value("layer_types", default)
    if not isinstance(found, list) or len(found) != layers or not all(kind in names for kind in found):
        c.wrong("layer_types", found, f"{layers} of {', '.join(names)}")
    return [kind == "sliding_attention" for kind in found]


def _spans(n: Network, layers: int, kind: str) -> list[int | None]:
    """Numbers of keys before its own that a query sees, by layer; None: all."""
    c = n.config
    if kind == "llama":
        return [None] * layers
    size = c.whole("sliding_window")
    if kind in ("mistral", "mixtral", "phi3"):
        return [None if size is None else size - 1] * layers
    size = size if c.flag("use_sliding_window", False) else None
    first = c.whole("max_window_layers", 28, least=0)
    first = 0 if kind == "qwen3_moe" else first
    windows = [size is not None and i >= first for i in range(layers)]
    if kind == "smollm3":
        windows = [size is not None and not turned for turned in _turned(n, layers, kind)]
    windows = kinds_of(n, layers, ["sliding_attention" if window else "full_attention" for window in windows])
    if size is None and any(windows):
        c.wrong("sliding_window", size, "an integer, for layer_types has windows")
    return [size - 1 if window else None for window in windows]


def _turned(n: Network, layers: int, kind: str) -> list[bool]:
    """Whether a layer's queries and keys are rotated."""
    c = n.config
    if kind != "smollm3":
        return [True] * layers
    every = c.whole("no_rope_layer_interval", 4)
    found = c.value("no_rope_layers", [int((i + 1) % every != 0) for i in range(layers)])
    if not isinstance(found, list) or len(found) != layers or not all(type(one) is int for one in found):
        c.wrong("no_rope_layers", found, f"{layers} numbers")
    return [bool(one) for one in found]


def _experts(n: Network, layers: int, kind: str) -> list[bool]:
    """Whether a layer's feed-forward part is a mixture."""
    c = n.config
    if kind != "qwen3_moe":
        return [kind == "mixtral"] * layers
    step, plain = c.whole("decoder_sparse_step", 1), c.value("mlp_only_layers", [])
    if not isinstance(plain, list) or not all(type(one) is int for one in plain):
        c.wrong("mlp_only_layers", plain, "numbers of layers")
    return [i not in plain and (i + 1) % step == 0 for i in range(layers)]
