"""The encoder of T5: norms before the parts, and biases of scores by distance, the same in all layers."""

from __future__ import annotations

from ...errors import UnsupportedError
from . import heads, relative
from .build import BATCH, STEPS, Network

__all__ = ["OTHERS", "write"]

OTHERS = r"decoder\..*|lm_head\.weight|encoder\.embed_tokens\.weight"


def write(n: Network) -> None:
    """Writes the network."""
    c = n.config
    c.unused("is_encoder_decoder", "num_decoder_layers", "n_positions", "scale_decoder_outputs", "output_past")
    if n.head:
        raise UnsupportedError(
            f"{c.where}: of T5 the encoder alone is supported, architectures T5EncoderModel: the head is {n.head}"
        )
    width, count, head, inner = c.size("d_model"), c.size("num_heads"), c.size("d_kv", 64), c.size("d_ff")
    eps, kind = c.number("layer_norm_epsilon", 1e-6), c.text("feed_forward_proj", "relu")
    c.unused("dense_act_fn", "is_gated_act")  # follow from feed_forward_proj
    buckets, farthest = c.whole("relative_attention_num_buckets", 32, least=4), c.whole("relative_attention_max_distance", 128)
    if not buckets // 4 < farthest <= 1 << 16:
        c.wrong("relative_attention_max_distance", farthest, f"{buckets // 4 + 1} to {1 << 16}")
    ids = n.input("input_ids", BATCH, STEPS)
    mask = n.key_mask(n.input("attention_mask", BATCH, STEPS))
    first = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    scores = n.bias_mask(mask, relative.bias(n, first, ids, count, buckets, farthest))
    x = n.embedding(
        "shared.weight" if "shared.weight" in n.weights else "encoder.embed_tokens.weight", ids, c.size("vocab_size"), width
    )
    act = "gelu_new" if kind == "gated-gelu" else kind.rpartition("-")[2]
    for i in range(c.layers("num_layers")):
        name, n.scope = f"encoder.block.{i}.layer", f"layer.{i}/"
        y = n.rms_norm(f"{name}.0.layer_norm", x, eps)
        q, k, v = (n.linear(f"{name}.0.SelfAttention.{part}", y, count * head, bias=False) for part in "qkv")
        (y,) = n.attention(q, k, v, count, mask=scores, scale=1.0)
        x = n.add(n.linear(f"{name}.0.SelfAttention.o", y, width, bias=False), x)
        y, name = n.rms_norm(f"{name}.1.layer_norm", x, eps), f"{name}.1.DenseReluDense"
        if kind.startswith("gated-"):
            y = n.gated(act, *(n.linear(f"{name}.{part}", y, inner, bias=False) for part in ("wi_0", "wi_1")))
        else:
            y = n.activation(act, n.linear(f"{name}.wi", y, inner, bias=False))
        x = n.add(n.linear(f"{name}.wo", y, width, bias=False), x)
    heads.finish(n, n.rms_norm("encoder.final_layer_norm", x, eps), {})
