"""Recurrent layers, attention and transformers, as they are drawn: a line for each layer and function."""

from __future__ import annotations

from typing import Any

from .draw import Call, Draw, Given, Table

__all__ = ["TABLE"]

STEPS = (0, 1, 1, 2, 3, 5, 8, 17)


def recurrent(d: Draw, kind: str) -> Call:
    inputs, hidden, layers = d.size(33), d.size(33, 1), d.some(1, 1, 2, 3)
    own: dict[str, Any] = {"input_size": inputs, "hidden_size": hidden} | ({"num_layers": layers} if layers > 1 else {})
    own |= d.few(0.4, bias=d.chance(0.5), batch_first=d.chance(0.7), bidirectional=d.chance(0.7), dropout=d.some(0.0, 0.5))
    if kind == "RNN":
        own |= d.few(nonlinearity=d.some("relu", "tanh"))
    projected = kind == "LSTM" and hidden > 1 and d.chance(0.4)
    if projected:
        own["proj_size"] = d.int(1, hidden - 1 + d.chance(0.05))
    if "num_layers" not in own and "dropout" in own:
        del own["dropout"]
    t, n = d.some(*STEPS) if d.chance(0.3) else d.some(*STEPS[1:]), d.some(1, 2, 3, 5, 9) if d.chance(0.98) else 0
    alone = d.chance(0.15)
    x = d.array(t, inputs) if alone else d.array(*((n, t) if own.get("batch_first") else (t, n)), inputs)
    rows = layers * (2 if own.get("bidirectional") else 1)

    def state(width: int) -> Given:
        wrong = d.chance(0.02)
        return d.array(rows + wrong, *(() if alone else (n,)), width)

    given: list[Any] = [x]
    if d.chance(0.5):
        h = state(own.get("proj_size", hidden))
        given.append((h, state(hidden)) if kind == "LSTM" else h)
    named: dict[str, Any] = {}
    if not alone and n and t and d.chance(0.25):
        named["lengths"] = Given(d.rng.integers(1, t + 1, n), False)
    return d.layer(kind, own, *given, **named)


def cell(d: Draw, kind: str) -> Call:
    inputs, hidden = d.size(33), d.size(33, 1)
    own: dict[str, Any] = {"input_size": inputs, "hidden_size": hidden} | d.few(bias=d.chance(0.5))
    if kind == "RNNCell":
        own |= d.few(nonlinearity=d.some("relu", "tanh"))
    n = () if d.chance(0.2) else (d.size(9),)
    x, h, c = d.array(*n, inputs + d.chance(0.02)), d.array(*n, hidden), d.array(*n, hidden)
    return d.layer(kind, own, x, *([(h, c) if kind == "LSTMCell" else h] if d.chance(0.6) else []))


def cell_function(d: Draw, kind: str) -> Call:
    inputs, hidden, n = d.size(33), d.size(33, 1), (d.size(9),)
    rows = {"lstm_cell": 4, "gru_cell": 3, "rnn_cell": 1}[kind] * hidden
    h, c = d.array(*n, hidden), d.array(*n, hidden)
    weights = [d.weights(rows, inputs), d.weights(rows, hidden), *([d.weights(rows), d.weights(rows)] if d.chance(0.6) else [])]
    return d.function(kind, d.array(*n, inputs), (h, c) if kind == "lstm_cell" else h, *weights)


def dot(d: Draw, kind: str) -> Call:
    heads, rows, keys = d.some(1, 2, 3, 4, 6), d.some(*STEPS, 33), d.some(*STEPS, 40)
    width, out = d.some(1, 2, 3, 4, 8, 16, 17, 64, *([0] if d.chance(0.05) else [])), d.some(1, 3, 4, 8, 16, 33)
    groups = d.divisor(heads) if d.chance(0.3) else heads
    lead, other = d.some(((), ()), ((2,), (2,)), *[((d.some(0, 1, 2, 3), heads), (None, groups))] * 4)
    other = tuple(lead[0] if size is None else size for size in other)
    if other and d.chance(0.04):
        other = (1, *other[1:])
    if d.chance(0.5):
        out = width
    own: dict[str, Any] = {}
    if groups != heads and len(lead) == 2 and d.chance(0.95):
        own["enable_gqa"] = True
    if d.chance(0.5):
        shape = d.some(
            (rows, keys), (1, keys), (rows, 1), (keys,), (*lead[:1], *(1 for _ in lead[1:]), rows, keys), (*lead, rows, keys)
        )
        own["attn_mask"] = d.mask(*shape)
    elif d.chance(0.4):
        own["is_causal"] = True
    own |= d.few(0.3, scale=d.some(None, 1.0, 0.1, 2, 0.0, -1.0), dropout_p=0.0)
    return d.function(kind, d.array(*lead, rows, width), d.array(*other, keys, width), d.array(*other, keys, out), **own)


def _masks(d: Draw, n: int, heads: int, rows: int, keys: int, alone: bool, of: str, pad: str) -> dict[str, Any]:
    """A mask of places and one of padding."""
    found: dict[str, Any] = {}
    if d.chance(0.4):
        found[of] = d.mask(rows, keys) if d.chance(0.6) else d.mask((1 if alone else n) * heads, rows, keys)
    if d.chance(0.35):
        found[pad] = d.mask(*(() if alone else (n,)), keys, share=0.2)
    return found


def multihead(d: Draw, kind: str) -> Call:
    heads = d.some(1, 1, 2, 3, 4)
    width = heads * d.some(1, 2, 4, 8, 16)
    own: dict[str, Any] = {"embed_dim": width + (heads > 1 and d.chance(0.02)), "num_heads": heads}
    own |= d.few(0.4, dropout=d.some(0.0, 0.3), bias=d.chance(0.4), batch_first=d.chance(0.7))
    own |= d.few(0.25, kdim=d.some(None, 1, 5, 16), vdim=d.some(None, 2, 7, 16)) | d.few(
        0.02, add_bias_kv=True, add_zero_attn=True
    )
    n, rows, keys, alone = d.some(1, 2, 3, 0) if d.chance(0.3) else 2, d.some(*STEPS[1:]), d.some(*STEPS[1:]), d.chance(0.15)

    def part(steps: int, size: int) -> Given:
        return d.array(*((steps,) if alone else (n, steps) if own.get("batch_first") else (steps, n)), size)

    query = part(rows, width)
    itself = d.chance(0.4) and own.get("kdim", width) in (None, width) and own.get("vdim", width) in (None, width)
    if itself:
        keys = rows
    key = query if itself else part(keys, own.get("kdim") or width)
    value = query if itself else part(keys, own.get("vdim") or width)
    named = _masks(d, n, heads, rows, keys, alone, "attn_mask", "key_padding_mask")
    named |= d.few(0.5, need_weights=d.chance(0.5), average_attn_weights=d.chance(0.3)) | d.few(0.15, is_causal=True)
    return d.layer(kind, own, query, key, value, **named)


def _transformer(d: Draw) -> dict[str, Any]:
    heads = d.some(1, 2, 3)
    own = {"d_model": heads * d.some(2, 4, 8), "nhead": heads}
    return own, d.few(
        0.4, dropout=d.some(0.0, 0.1), activation=d.some("relu", "gelu"), layer_norm_eps=d.some(1e-5, 1e-2, 0.0),
        batch_first=d.chance(0.7), norm_first=d.chance(0.7), bias=d.chance(0.4),
    ) | {"dim_feedforward": d.some(1, 7, 16, 33)}  # fmt: skip


def encoder(d: Draw, kind: str) -> Call:
    own, more = _transformer(d)
    n, t, alone = d.some(1, 2, 3), d.some(*STEPS[1:]), d.chance(0.15)
    x = d.array(*((t,) if alone else (n, t) if more.get("batch_first") else (t, n)), own["d_model"])
    named = _masks(
        d, n, own["nhead"], t, t, alone, "mask" if kind == "TransformerEncoder" else "src_mask", "src_key_padding_mask"
    )
    named |= d.few(0.2, is_causal=True)
    if kind == "TransformerEncoder":
        return Call(kind, ([], own | more | {"num_layers": d.some(1, 2), "norm": d.chance(0.5)}), ([x], named), d.seed)
    return d.layer(kind, own | more, x, **named)


def decoder(d: Draw, kind: str) -> Call:
    own, more = _transformer(d)
    n, t, s, alone = d.some(1, 2, 3), d.some(*STEPS[1:]), d.some(*STEPS[1:]), d.chance(0.15)

    def part(steps: int) -> Given:
        return d.array(*((steps,) if alone else (n, steps) if more.get("batch_first") else (steps, n)), own["d_model"])

    heads = own["nhead"]
    if kind == "Transformer":
        more |= {"num_encoder_layers": d.some(1, 2), "num_decoder_layers": d.some(1, 2)}
        named = _masks(d, n, heads, s, s, alone, "src_mask", "src_key_padding_mask")
    else:
        named = {}
    named |= _masks(d, n, heads, t, t, alone, "tgt_mask", "tgt_key_padding_mask")
    named |= _masks(d, n, heads, t, s, alone, "memory_mask", "memory_key_padding_mask") | d.few(0.2, tgt_is_causal=True)
    if kind == "TransformerDecoder":
        more |= {"num_layers": d.some(1, 2), "norm": d.chance(0.5)}
        return Call(kind, ([], own | more), ([part(t), part(s)], named), d.seed)
    inputs = [part(s), part(t)] if kind == "Transformer" else [part(t), part(s)]
    return d.layer(kind, own | more, *inputs, **named)


TABLE: Table = {
    "RNN": recurrent, "GRU": recurrent, "LSTM": recurrent, "RNNCell": cell, "GRUCell": cell, "LSTMCell": cell,
    "rnn_cell": cell_function, "gru_cell": cell_function, "lstm_cell": cell_function,
    "scaled_dot_product_attention": dot, "MultiheadAttention": multihead, "TransformerEncoderLayer": encoder,
    "TransformerEncoder": encoder, "TransformerDecoderLayer": decoder, "TransformerDecoder": decoder, "Transformer": decoder,
}  # fmt: skip
