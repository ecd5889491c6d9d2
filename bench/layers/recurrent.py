"""Recurrent layers, and decoding with them."""

from __future__ import annotations

from functools import partial
from typing import Any

import fastlayers as fl

from . import Pair, Row, load, normal, np

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
# steps, batch, inputs, hidden units, directions
BOTH = [
    (1, 1, 128, 128, 1),
    (100, 1, 64, 64, 1),
    (100, 1, 128, 128, 1),
    (100, 1, 256, 256, 1),
    (100, 1, 512, 512, 1),
    (100, 16, 256, 256, 1),
    (100, 8, 128, 128, 2),
    (50, 1, 40, 32, 2),
    (50, 1, 64, 64, 2),
    (50, 1, 128, 128, 2),
]
SIZES = {
    "LSTM": [*BOTH, (50, 32, 512, 512, 1)],
    "GRU": BOTH,
    "RNN": [(100, 1, 64, 64, 1), (100, 1, 256, 256, 1), (100, 16, 256, 256, 1), (50, 1, 64, 64, 2)],
}


def sequence(kind: str, steps: int, batch: int, inputs: int, hidden: int, directions: int, **options: Any) -> Pair:
    """A layer next to torch's; `padded`: sequences of all lengths, which torch packs."""
    padded = options.pop("padded", False)
    lead = (batch, steps) if options.get("batch_first") else (steps, batch)
    x = normal(np.random.default_rng(1), *lead, inputs)
    options["bidirectional"] = directions == 2
    layer = getattr(fl, kind)(inputs, hidden, **options)
    state = load(layer, hidden)
    lengths = np.linspace(1, steps, batch).astype(np.int64) if padded else None

    def theirs(torch: Any) -> Any:
        net = getattr(torch.nn, kind)(inputs, hidden, **options).eval()
        net.load_state_dict({name: torch.tensor(array) for name, array in state.items()})
        tx = torch.tensor(x)
        if lengths is None:
            return lambda: net(tx)[0]
        pack, pad = torch.nn.utils.rnn.pack_padded_sequence, torch.nn.utils.rnn.pad_packed_sequence
        counts = torch.tensor(lengths)
        return lambda: pad(net(pack(tx, counts, enforce_sorted=False))[0], total_length=steps)[0]

    outs = options.get("proj_size") or hidden
    done = steps * batch if lengths is None else lengths.sum()
    layers = options.get("num_layers", 1)
    read = inputs + (layers - 1) * outs * directions + layers * outs
    flops = 2.0 * done * directions * hidden * (GATES[kind] * read + layers * options.get("proj_size", 0))
    return Pair(lambda: layer(x, lengths=lengths)[0], theirs, flops)


def cell(kind: str, batch: int, hidden: int) -> Pair:
    x = normal(np.random.default_rng(1), batch, hidden)
    layer = getattr(fl, f"{kind}Cell")(hidden, hidden)
    state = load(layer, hidden)
    before: Any = tuple(normal(np.random.default_rng(i), batch, hidden) for i in (2, 3))
    before = before if kind == "LSTM" else before[0]

    def first(result: Any) -> Any:
        return result[0] if kind == "LSTM" else result

    def theirs(torch: Any) -> Any:
        net = getattr(torch.nn, f"{kind}Cell")(hidden, hidden).eval()
        net.load_state_dict({name: torch.tensor(array) for name, array in state.items()})
        tx, tb = torch.tensor(x), torch.tensor(before) if kind != "LSTM" else tuple(torch.tensor(b) for b in before)
        return lambda: first(net(tx, tb))

    return Pair(lambda: first(layer(x, before)), theirs, 2.0 * batch * GATES[kind] * 2 * hidden * hidden)


def stateless(kind: str) -> Pair:
    rng, rows = np.random.default_rng(1), 64 * GATES[kind]
    x, w, r = normal(rng, 20, 4, 64), normal(rng, rows, 64, fan_in=64), normal(rng, rows, 64, fan_in=64)
    function = getattr(fl.functional, kind.lower())
    return Pair(lambda: function(x, None, w, r)[0])


def stateless_cell(kind: str) -> Pair:
    rng, rows = np.random.default_rng(1), 64 * GATES[kind]
    x, w, r = normal(rng, 4, 64), normal(rng, rows, 64, fan_in=64), normal(rng, rows, 64, fan_in=64)
    function = getattr(fl.functional, f"{kind.lower()}_cell")
    return Pair(lambda: function(x, None, w, r)[0] if kind == "LSTM" else function(x, None, w, r))


def search(beams: int) -> Pair:
    """Twenty tokens of a GRU of 256 units over a vocabulary of 74."""
    rng = np.random.default_rng(1)
    embedding, decoder, output = normal(rng, 74, 256), fl.GRUCell(256, 256), fl.Linear(256, 74)
    load(decoder, 256)
    load(output, 256)
    context = normal(rng, 1, 256)

    def step(tokens: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        h = decoder(embedding[tokens], h)
        return fl.functional.log_softmax(output(h)), h

    if beams == 1:
        return Pair(lambda: fl.functional.greedy_search(step, context, 2, 3, 20).scores)
    return Pair(lambda: fl.functional.beam_search(step, context, 2, 3, 20, beams).scores)


def seq2seq() -> Pair:
    """Twenty tokens of two GRUs of 256 units after thirty source tokens."""
    model = fl.Seq2Seq(
        fl.GRU(128, 256, batch_first=True),
        fl.GRU(128, 256, batch_first=True),
        fl.Linear(256, 1000),
        fl.Embedding(1000, 128),
        fl.Embedding(1000, 128),
    )
    load(model, 256)
    ids = np.random.default_rng(1).integers(0, 1000, (1, 30))
    return Pair(lambda: model.beam(ids, 0, 1, 20, 4).scores)


ROWS = [
    *(
        Row((kind,), f"T{t} B{b} I{i} H{h}" + (" bidirectional" if d == 2 else ""), partial(sequence, kind, t, b, i, h, d))
        for kind, sizes in SIZES.items()
        for t, b, i, h, d in sizes
    ),
    *(
        Row((kind,), "T100 B16 I128 H128 all lengths", partial(sequence, kind, 100, 16, 128, 128, 1, padded=True))
        for kind in ("LSTM", "GRU")
    ),
    Row(("LSTM",), "T100 B1 I256 H256 projected to 128", partial(sequence, "LSTM", 100, 1, 256, 256, 1, proj_size=128)),
    Row(("LSTM",), "T100 B16 I256 H256 projected to 128", partial(sequence, "LSTM", 100, 16, 256, 256, 1, proj_size=128)),
    Row(
        ("LSTM",), "T160 B2 I40 H256 three layers", partial(sequence, "LSTM", 160, 2, 40, 256, 1, num_layers=3, batch_first=True)
    ),
    *(
        Row((f"{kind}Cell",), f"B{b} H{h}", partial(cell, kind, b, h))
        for kind in GATES
        for b, h in ((1, 64), (1, 128), (16, 256))
    ),
    *(Row((kind.lower(),), "stateless T20 B4 H64, packs at each call", partial(stateless, kind)) for kind in GATES),
    *(Row((f"{kind.lower()}_cell",), "stateless B4 H64, packs at each call", partial(stateless_cell, kind)) for kind in GATES),
    Row(("greedy_search",), "GRU of 256 units, 20 tokens of 74", partial(search, 1)),
    Row(("Seq2Seq",), "GRU of 256 units, 30 tokens to 20 of 1000, 4 beams", seq2seq),
    Row(("beam_search",), "GRU of 256 units, 20 tokens of 74, 5 beams", partial(search, 5)),
]
