"""One step of a sequence is computed where one is read, and as many as are read otherwise; its bits are those of all steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from fastlayers.ir.graph import Graph, Node
from fastlayers.passes import optimize
from tests.program.graphs import graph, node, normal

from .rewrites import check, default, ops, outputs

INPUTS = {"x": (2, 7, 12), "mask": (2, 1, 1, 7)}
CONSTANTS: dict[str, Any] = {
    "w": normal(12, 12) / 3, "v": normal(12, 12, seed=1) / 3, "u": normal(20, 12, seed=2) / 3, "d": normal(12, 20, seed=3) / 3,
    "b": normal(12, seed=4) + 1, "c": normal(20, seed=5), "i": np.array(0), "last": np.array(-1), "three": np.array([3]),
    "some": np.array([0, 2]), "row": normal(1, 7, 12),
}  # fmt: skip
HEADS: dict[str, Any] = {"q_num_heads": 3, "kv_num_heads": 3}


def block(read: str = "i", attention: Mapping[str, Any] = HEADS, mask: str = ", mask") -> list[Node]:
    """A block as BERT has it, of whose result one step is read."""
    return [
        node("q = Linear(x, w, b)"), node("k = Linear(x, v)"), node("z = Linear(x, w)"),
        node(f"a = Attention(q, k, z{mask})", **attention), node("o = Linear(a, v, b)"), node("s = Add(o, x)"),
        node("n = LayerNormalization(s, b, b)", axis=-1), node("h = Linear(n, u, c)"), node("g = Gelu(h)"),
        node("e = Linear(g, d, b)"), node("f = Add(e, n)"), node("m = LayerNormalization(f, b, b)", axis=-1),
        node(f"y = Gather(m, {read})", axis=1),
    ]  # fmt: skip


def steps(found: Graph) -> list[str]:
    """The operators before the first Gather, and after it."""
    names = ops(found)
    at = names.index("Gather")
    return [" ".join(names[:at]), " ".join(name for name in names[at:] if name != "Gather")]


@pytest.mark.parametrize("read", ["i", "last", "three"])
def test_one_step_of_a_block(read: str) -> None:
    made = graph(INPUTS, block(read), ["y"], CONSTANTS)
    found = check(INPUTS, block(read), CONSTANTS)
    assert ops(found).count("Gather") == 2
    (attention,) = (n for n in found.nodes if n.op == "Attention")
    assert ["~step" in str(name) for name in attention.inputs] == [True, False, False, False]
    assert all("~step" in n.outputs[0] for n in found.nodes[found.nodes.index(attention) : -1])
    given = [normal(*shape, seed=9) for shape in INPUTS.values()]
    (want,), (got,) = (outputs(form, given, default()) for form in (optimize(made, strict=True), found))
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("attention", "mask"),
    [({**HEADS, "is_causal": 1}, ", mask"), (HEADS, ", square"), ({**HEADS, "softcap": 2.0}, "")],
    ids=["causal", "a mask for each query", "a word that is not known"],
)
def test_queries_that_are_not_alike(attention: Mapping[str, Any], mask: str) -> None:
    """Nodes that follow are of one step all the same."""
    inputs = {"x": (2, 7, 12), "mask": (2, 1, 1, 7), "square": (2, 1, 7, 7)}
    before, after = steps(check(inputs, block("i", attention, mask), CONSTANTS))
    assert before.split().count("Linear") == 3 and "Attention" in before and after.split().count("Linear") == 3


def test_steps_that_others_need() -> None:
    for wanted, left in (("m", "LayerNormalization"), ("n", "LayerNormalization"), ("a", "Attention")):
        before, after = steps(check(INPUTS, block(), CONSTANTS, ("y", wanted)))
        assert left in before and (wanted != "m" or not after)
    assert not steps(check(INPUTS, block("some"), CONSTANTS))[1]
    whole = [*block()[:-1], node("y = Gather(m, i)", axis=0)]
    assert not steps(check(INPUTS, whole, CONSTANTS))[1]


def test_values_that_are_read_by_step_and_whole() -> None:
    """Queries that are keys as well stay whole."""
    nodes = [node("q = Linear(x, w, b)"), node("a = Attention(q, q, q, mask)", **HEADS), node("y = Gather(a, i)", axis=1)]
    before, after = steps(check(INPUTS, nodes, CONSTANTS))
    assert before == "Linear" and after == "Attention"


def test_summands_of_every_step() -> None:
    nodes = [node("q = Linear(x, w, b)"), node("s = Add(q, row)"), node("y = Gather(s, last)", axis=1)]
    before, after = steps(check({"x": (2, 7, 12)}, nodes, CONSTANTS))
    assert not before and "Linear" in after
