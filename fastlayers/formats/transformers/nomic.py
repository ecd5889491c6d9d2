"""NomicBERT: BERT with rotary embeddings and gated feed-forward parts."""

from __future__ import annotations

from . import bert, heads
from .build import BATCH, STEPS, Network
from .rotary import Rotary, parameters

__all__ = ["OTHERS", "write"]

PREFIX = "nomic_bert."
OTHERS = bert.OTHERS


def write(n: Network) -> None:
    """Writes the network."""
    c, at = n.config, n.weights.prefix
    width, count, inner = c.size("hidden_size"), c.size("num_attention_heads"), c.size("intermediate_size")
    head, kind, eps = c.size("head_dim", width // count), c.text("hidden_act", "silu"), c.number("layer_norm_eps", 1e-12)
    ids = n.input("input_ids", BATCH, STEPS)
    mask = n.key_mask(n.input("attention_mask", BATCH, STEPS))
    types = n.input("token_type_ids", BATCH, STEPS)
    turn = Rotary(n, head, parameters(c, 1000.0), bert.places(n, ids))
    n.scope = "embeddings/"
    x = n.embedding(f"{at}embeddings.word_embeddings.weight", ids, c.size("vocab_size"), width)
    x = n.add(x, n.embedding(f"{at}embeddings.token_type_embeddings.weight", types, c.size("type_vocab_size", 2), width))
    x = n.layer_norm(f"{at}emb_ln", x, eps, bias=True)
    for i in range(c.layers()):
        name, n.scope = f"{at}encoder.layers.{i}", f"layer.{i}/"
        q, k, v = n.linears(f"{name}.attn.Wqkv", x, *(count * head,) * 3, bias=False)
        (y,) = n.attention(turn(q, count), turn(k, count), v, count, mask=mask)
        x = n.add(n.linear(f"{name}.attn.out_proj", y, width, bias=False), x)
        x = n.layer_norm(f"{name}.norm1", x, eps, bias=True)
        gate, up = (n.linear(f"{name}.mlp.{part}", x, inner, bias=False) for part in ("fc12", "fc11"))
        x = n.add(n.linear(f"{name}.mlp.fc2", n.gated(kind, gate, up), width, bias=False), x)
        x = n.layer_norm(f"{name}.norm2", x, eps, bias=True)
    heads.finish(n, x, {
        "MaskedLM": lambda n, x: bert.masked(n, x, "layer_norm"),
        "SequenceClassification": lambda n, x: n.linear("classifier", heads.pooled(n, f"{at}pooler.dense", x)),
    })  # fmt: skip
