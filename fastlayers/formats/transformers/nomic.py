"""NomicBERT and GTE: BERT with rotary embeddings and gated feed-forward parts, in their own code's words or transformers'."""

from __future__ import annotations

from . import bert, heads, roberta
from .build import BATCH, STEPS, Network
from .rotary import Rotary, parameters

__all__ = ["AUTO_MAP", "OTHERS", "write"]

PREFIX = ("nomic_bert.", "new.", "gte.")
OTHERS = rf"{bert.OTHERS}|{roberta.OTHERS}"
# Code on the hub whose networks these are.
AUTO_MAP = r"(modeling|configuration)_hf_nomic_bert\.NomicBert\w+|(modeling|configuration)\.New\w+"
_WORDS = {
    "n_embd": "hidden_size",
    "n_head": "num_attention_heads",
    "n_inner": "intermediate_size",
    "n_layer": "num_hidden_layers",
    "n_positions": "max_position_embeddings",
    "layer_norm_epsilon": "layer_norm_eps",
    "rotary_emb_base": "rope_theta",
}


def write(n: Network) -> None:
    """Writes the network."""
    c, at, nomic = n.config, n.weights.prefix, n.config.text("model_type", "") == "nomic_bert"
    _own_words(n, nomic)
    width, count, inner = c.size("hidden_size"), c.size("num_attention_heads"), c.size("intermediate_size")
    head, eps = c.size("head_dim", max(width // count, 1)), c.number("layer_norm_eps", 1e-12)
    kind, kinds = c.text("hidden_act", "silu" if nomic else "gelu"), c.whole("type_vocab_size", 2 if nomic else 1, least=0)
    ids = n.input("input_ids", BATCH, STEPS)
    mask = n.key_mask(n.input("attention_mask", BATCH, STEPS))
    turn = Rotary(n, head, parameters(c, 1000.0 if nomic else 160000.0), bert.places(n, ids))
    n.scope, table = "embeddings/", f"{at}embeddings.token_type_embeddings.weight"
    x = n.embedding(f"{at}embeddings.word_embeddings.weight", ids, c.size("vocab_size"), width)
    if kinds > 1:
        x = n.add(x, n.embedding(table, n.input("token_type_ids", BATCH, STEPS), kinds, width))
    elif kinds:
        x = n.add(x, n.constant(n.weights.take(table, kinds, width)[0], "segment 0"))
    x = n.layer_norm(f"{at}{'emb_ln' if nomic else 'embeddings.LayerNorm'}", x, eps, bias=True)
    blocks = f"{at}encoder.layers" if nomic else f"{at}encoder.layer"
    qkv, out, norm, down, last = (
        ("attn.Wqkv", "attn.out_proj", "norm1", "mlp.fc2", "norm2")
        if nomic
        else ("attention.qkv_proj", "attention.o_proj", "attn_ln", "mlp.down_proj", "mlp_ln")
    )
    for i in range(c.layers()):
        name, n.scope = f"{blocks}.{i}", f"layer.{i}/"
        q, k, v = n.linears(f"{name}.{qkv}", x, *(count * head,) * 3, bias=not nomic)
        (y,) = n.attention(turn(q, count), turn(k, count), v, count, mask=mask)
        x = n.layer_norm(f"{name}.{norm}", n.add(n.linear(f"{name}.{out}", y, width, bias=not nomic), x), eps, bias=True)
        if nomic:
            up, gate = (n.linear(f"{name}.mlp.{part}", x, inner, bias=False) for part in ("fc11", "fc12"))
        else:
            up, gate = n.linears(f"{name}.mlp.up_gate_proj", x, inner, inner, bias=False)
        y = n.linear(f"{name}.{down}", n.gated(kind, gate, up), width, bias=not nomic)
        x = n.layer_norm(f"{name}.{last}", n.add(y, x), eps, bias=True)
    heads.finish(n, x, {
        "MaskedLM": (lambda n, x: bert.masked(n, x, "layer_norm")) if nomic else (lambda n, x: roberta.masked(n, x, "norm")),
        "SequenceClassification": lambda n, x: n.linear("classifier", heads.pooled(n, f"{at}pooler.dense", x)),
    })  # fmt: skip


def _own_words(n: Network, nomic: bool) -> None:
    """Puts words of the networks' own code into those of transformers."""
    c = n.config
    if not nomic:
        c.only(position_embedding_type="rope", layer_norm_type="layer_norm", logn_attention_scale=False)
        c.unused("pack_qkv")
        return
    for old, new in _WORDS.items():
        if c.value(old) is not None:
            c.words.setdefault(new, c.words[old])
    c.only(
        activation_function="swiglu", causal=False, mlp_fc1_bias=False, mlp_fc2_bias=False, parallel_block=False, prenorm=False,
        qkv_proj_bias=False, rotary_emb_fraction=1.0, rotary_emb_interleaved=False, rotary_emb_scale_base=None,
        rotary_scaling_factor=None, scale_attn_by_inverse_layer_idx=False, scale_attn_weights=True, use_rms_norm=False,
    )  # fmt: skip
    c.unused(
        "dense_seq_output", "last_layer_subset", "max_trained_positions", "pad_vocab_size_multiple", "parallel_block_tied_norm"
    )
