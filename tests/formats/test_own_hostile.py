"""Our own files with a graph that was changed at random: whatever comes of it, an error is one of ours."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.ir.graph import Graph, Node, Value
from fastlayers.model.model import Model
from tests.program.graphs import graph, node, normal
from tests.program.test_stages import decoder, rows
from tests.stream.nets import compiled, conv_lstm, tcn

from .test_own_control import edited

VOID = np.dtype(np.void)
OPS = ("Add", "Relu", "Reshape", "Concat", "Loop", "If", "Scan", "SequenceAt", "Transpose", "Slice", "Gather", "CumSum",
       "Identity", "MatMul", "Shape", "Expand", "Optional", "StreamWindow", "StreamCut", "StreamStart", "Conv",
       "LSTM")  # fmt: skip
NONSENSE = (0, 1, -1, 7, 1 << 40, "x", None, {"tuple": [1, 2]}, {"tuple": []}, {"float": "nan"})


def lists() -> Model:
    body = Graph(
        tuple(Value(n, None, VOID) for n in "ics"), tuple(Value(n, None, VOID) for n in ("c", "t")),
        (node("t = SequenceInsert(s, x)"),), {},
    )  # fmt: skip
    nodes = [
        Node("SequenceEmpty", (), ("e",), {}), node("y = Loop(m, -, e)", body=body), node("z = ConcatFromSequence(y)", axis=0),
        node("l = SequenceLength(y)"), node("p = SplitToSequence(z, l)", axis=0),
    ]  # fmt: skip
    return Model(graph({"x": ("n", 4), "m": ((), np.int64)}, nodes, ["z", "l"]))


CASES: dict[str, tuple[Any, tuple[np.ndarray, ...]]] = {
    "loop": (lambda: Model(decoder()), (normal(2, 8), np.array(3))),
    "sizes by numbers": (lambda: Model(rows()), (normal(5, 4),)),
    "lists": (lists, (normal(2, 4), np.array(3))),
    "recurrent": (lambda: compiled(conv_lstm(), "n", 4, "time"), (normal(2, 4, 30),)),
    "dilated": (lambda: compiled(tcn(), "n", 4, "time"), (normal(2, 4, 30),)),
}


def inner(described: Any) -> list[Any]:
    """A graph and those in it."""
    found = [described]
    for _, _, _, attributes in described["nodes"]:
        for value in attributes.values():
            if isinstance(value, dict) and "graph" in value:
                found += inner(value["graph"])
    return found


def change(described: Any, rng: random.Random) -> None:
    """One thing that a malicious writer would try."""
    part = rng.choice(inner(described))
    if not part["nodes"]:
        return
    chosen = rng.choice(part["nodes"])
    names = [o for g in inner(described) for n in g["nodes"] for o in n[2]] + list(described["constants"])
    kind = rng.randrange(9)
    if kind == 0 and chosen[1]:
        chosen[1][rng.randrange(len(chosen[1]))] = rng.choice([*names, None])
    elif kind == 1:
        chosen[0] = rng.choice(OPS)
    elif kind == 2 and chosen[3]:
        chosen[3][rng.choice(list(chosen[3]))] = rng.choice(NONSENSE)
    elif kind == 3 and part["outputs"]:
        rng.choice(part["outputs"])[0] = rng.choice(names)
    elif kind == 4:
        chosen[1].append(rng.choice(names))
    elif kind == 5 and chosen[1]:
        chosen[1].pop()
    elif kind == 6:
        part["nodes"].remove(chosen)
    elif kind == 7 and part["inputs"]:
        rng.choice(part["inputs"])[1:] = [rng.choice([None, [], [2], [2, 3, "t"]]), rng.choice(["float32", "int64", "bool"])]
    elif kind == 8:
        chosen[2].append("extra")


@pytest.mark.parametrize("name", CASES)
def test_only_our_errors(name: str, tmp_path: Path) -> None:
    make, arrays = CASES[name]
    make().save(tmp_path / "m.safetensors")
    saved, rng, ran = (tmp_path / "m.safetensors").read_bytes(), random.Random(name), 0
    for _ in range(120):
        with suppress(fl.Error):
            model = fl.load(edited(saved, lambda described, at: change(described, rng)), max_rounds=20)
            model(*arrays)
            stream = model.stream()
            stream(*arrays[: len(stream.inputs)])
            ran += 1
    assert ran or name in ("loop", "sizes by numbers", "lists")
