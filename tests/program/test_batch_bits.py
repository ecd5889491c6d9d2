"""A sample has the same bits alone, in any batch, and on any number of threads: operators of sizes at which kernels choose. NaN
is given for NaN, whose sign and payload are not specified.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.ir.graph import Graph, Node
from fastlayers.kernels import dispatch
from fastlayers.program import Program
from tests.kernels.space import bits, but_for_nan, with_extremes

from .graphs import graph, node, normal

MOST = 40
PARTS = ((1, 0), (1, 39), (2, 5), (3, 30), (7, 1), (17, 20))  # how many samples, from which on


class Item(NamedTuple):
    """A graph whose inputs have the batch's size at one axis, "n"; the others are equal whatever the batch."""

    label: str
    inputs: Mapping[str, tuple[Any, ...]]
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    constants: dict[str, Any]


def item(label: str, inputs: Mapping[str, tuple[Any, ...]], *nodes: Node, **constants: Any) -> Item:
    """Its outputs are the last node's."""
    return Item(label, inputs, nodes, nodes[-1].outputs, constants)


def weight(*shape: int, seed: int = 1) -> np.ndarray:
    """Normal values that keep a product's results near 1."""
    return np.asarray(normal(*shape, seed=seed) / max(1, np.prod(shape[1:])) ** 0.5, np.float32)


REDUCTIONS = ("Sum", "Mean", "Max", "Min", "Prod", "SumSquare", "L1", "L2", "LogSum", "LogSumExp")


def reductions() -> Iterator[Item]:
    """Over an axis before the batch, whose length is around lanes, chains and blocks; and over axes around it."""
    for kind in REDUCTIONS:
        square = () if kind != "LogSum" else (node("p = Mul(x, x)"),)
        x = "p" if square else "x"
        for length in (2, 3, 7, 16, 33, 49, 127, 129, 600):
            for shape in ((length, "n"), (2, length, "n"), (length, 3, "n"), (length, "n", 5)):
                axis = shape.index(length)
                yield item(
                    f"Reduce{kind} {shape}", {"x": shape}, *square, node(f"y = Reduce{kind}({x}, a)", keepdims=0), a=[axis]
                )
        yield item(f"Reduce{kind} around", {"x": (40, "n", 6)}, *square, node(f"y = Reduce{kind}({x}, a)", keepdims=1), a=[0, 2])


def along_axes() -> Iterator[Item]:
    """What keeps the shape and works along an axis before or after the batch."""
    for length in (2, 3, 7, 16, 17, 33, 130, 600):
        for shape, axis in (
            ((length, "n"), 0),
            ((2, length, "n"), 1),
            ((length, "n", 5), 0),
            (("n", length), 1),
            (("n", 2, length), 2),
        ):
            for op in ("Softmax", "LogSoftmax"):
                yield item(f"{op} {shape}", {"x": shape}, node(f"y = {op}(x)", axis=axis))
            yield item(f"CumSum {shape}", {"x": shape}, node("y = CumSum(x, a)"), a=np.array(axis))
    yield item(
        "LayerNormalization", {"x": ("n", 9, 70)}, node("y = LayerNormalization(x, s, b)", axis=-1), s=normal(70), b=normal(70)
    )
    yield item("GroupNormalization", {"x": ("n", 12, 7, 5)}, node("y = GroupNormalization(x, s, b)", num_groups=3), s=normal(12),
               b=normal(12))  # fmt: skip
    yield item(
        "InstanceNormalization", {"x": ("n", 6, 9, 5)}, node("y = InstanceNormalization(x, s, b)"), s=normal(6), b=normal(6)
    )
    for shape in (("n", 9), ("n", 9, 3, 5), ("n", 9, 20, 21)):
        yield item(f"LRN {shape}", {"x": shape}, node("y = LRN(x)", size=5))
    yield item("LRN, axis before", {"x": (2, 9, "n")}, node("y = LRN(x)", size=5))


def products() -> Iterator[Item]:
    for k, n in ((5, 3), (70, 17), (300, 100), (513, 33), (700, 300)):
        w, left = weight(n, k), weight(n, k, seed=2)
        yield item(f"Gemm {k}->{n}", {"x": ("n", k)}, node("y = Gemm(x, w, b)", transB=1), w=w, b=normal(n))
        yield item(f"Gemm {k}->{n} transA", {"x": (k, "n")}, node("y = Gemm(x, w, b)", transA=1, transB=1), w=w, b=normal(n))
        yield item(f"MatMul {k}->{n}", {"x": ("n", 1, k)}, node("y = MatMul(x, w)"), w=np.ascontiguousarray(w.T))
        yield item(f"MatMul {k}->{n} from the left", {"x": (k, "n")}, node("y = MatMul(w, x)"), w=left)
        yield item(f"MatMul {k}->{n} columns", {"x": ("n", k, 1)}, node("y = MatMul(w, x)"), w=left)
        yield item(f"MatMul {k}, rows", {"x": ("n", k), "k": (k, n)}, node("y = MatMul(x, k)"))
        for rows in (1, 5, 40):
            yield item(f"MatMul {rows}x{k}x{n}", {"x": ("n", rows, k), "k": ("n", k, n)}, node("y = MatMul(x, k)"))
    for equation, shapes in (
        ("nij,njk->nik", (("n", 9, 70), ("n", 70, 33))),
        ("inj,njk->nik", ((9, "n", 70), ("n", 70, 33))),
        ("ni,nj->nij", (("n", 9), ("n", 33))),
        ("nij,njk->ni", (("n", 9, 70), ("n", 70, 3))),
        ("jn,jk->nk", ((300, "n"), (300, 17))),
        ("jn,jn->n", ((300, "n"), (300, "n"))),
        ("nijk,njl->nl", (("n", 5, 70, 3), ("n", 70, 9))),
        ("nhqd,nhkd->nhqk", (("n", 2, 5, 33), ("n", 2, 7, 33))),
    ):
        yield item(f"Einsum {equation}", dict(zip("xz", shapes, strict=True)), node("y = Einsum(x, z)", equation=equation))


def attentions() -> Iterator[Item]:
    for queries in (1, 3, 4, 5, 40):
        for keys in (7, 65, 300):
            shapes = {"q": ("n", 2, queries, 24), "k": ("n", 2, keys, 24), "v": ("n", 2, keys, 20)}
            yield item(f"Attention {queries} of {keys}", shapes, node("y = Attention(q, k, v)"))
            grouped = {"q": ("n", 6, queries, 24), "k": ("n", 2, keys, 24), "v": ("n", 2, keys, 20)}
            yield item(f"Attention {queries} of {keys}, causal, grouped", grouped, node("y = Attention(q, k, v)", is_causal=1))


def recurrent() -> Iterator[Item]:
    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        for inputs, hidden in ((3, 5), (20, 64), (70, 100)):
            for direction in ("forward", "bidirectional"):
                d = 2 if direction == "bidirectional" else 1
                yield item(
                    f"{op} {inputs}->{hidden} {direction}",
                    {"x": (6, "n", inputs)},
                    node(f"y = {op}(x, w, r, b)", hidden_size=hidden, direction=direction),
                    w=np.stack([weight(gates * hidden, inputs, seed=i) for i in range(d)]),
                    r=np.stack([weight(gates * hidden, hidden, seed=2 + i) for i in range(d)]),
                    b=normal(d, 2 * gates * hidden),
                )


def windows() -> Iterator[Item]:
    """Convolutions whose best algorithm once changed with the batch, and all others that there are; pools."""
    for x, w, attributes in (
        ((16, 3, 3), (24, 16, 3, 3), {"pads": (1, 1, 1, 1)}),
        ((16, 4, 4), (16, 16, 3, 3), {"pads": (1, 1, 1, 1)}),
        ((24, 4, 4), (48, 24, 3, 3), {"pads": (1, 1, 1, 1)}),
        ((64, 2, 2), (64, 64, 3, 3), {"pads": (1, 1, 1, 1)}),
        ((96, 7, 7), (96, 96, 3, 3), {"pads": (1, 1, 1, 1)}),
        ((16, 14, 14), (16, 16, 3, 3), {"pads": (1, 1, 1, 1)}),
        ((12, 3, 4, 5), (16, 12, 1, 3, 3), {"pads": (0, 1, 1, 0, 1, 1)}),
        ((12, 3, 4, 5), (16, 12, 3, 3, 3), {"pads": (1, 1, 1, 1, 1, 1)}),
        ((3, 17, 19), (17, 3, 3, 3), {"strides": (2, 2)}),
        ((40, 5, 6), (33, 40, 1, 1), {}),
        ((300, 1, 1), (20, 300, 1, 1), {}),
        ((20, 30), (17, 20, 5), {"dilations": (2,)}),
        ((12, 9, 8), (18, 4, 3, 3), {"group": 3}),
        ((20, 9, 8), (20, 1, 3, 3), {"group": 20, "pads": (1, 1, 1, 1)}),
        ((20, 9, 8), (20, 1, 5, 5), {"group": 20, "strides": (2, 2)}),
    ):
        o = w[0]
        yield item(f"Conv {x} {w}", {"x": ("n", *x)}, node("y = Conv(x, w, b)", **attributes), w=weight(*w), b=normal(o))
        if "group" not in attributes:
            back = node("y = ConvTranspose(x, w)", strides=(2,) * (len(w) - 2))
            yield item(f"ConvTranspose {x} {w}", {"x": ("n", *x)}, back, w=weight(x[0], 9, *w[2:]))
    for shape, kernel in (((9, 31), (3,)), ((9, 14, 15), (3, 3)), ((33, 7, 7), (7, 7)), ((5, 4, 6, 7), (2, 3, 2))):
        for op in ("AveragePool", "MaxPool", "LpPool"):
            yield item(f"{op} {shape} {kernel}", {"x": ("n", *shape)}, node(f"y = {op}(x)", kernel_shape=kernel))
    for shape in ((9, 31), (33, 7, 7), (5, 4, 6, 7)):
        for op in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"):
            yield item(f"{op} {shape}", {"x": ("n", *shape)}, node(f"y = {op}(x)"))


def others() -> Iterator[Item]:
    for op in ("Exp", "Tanh", "Erf", "Gelu", "Softplus", "Sqrt"):
        for shape in (("n",), ("n", 7), (7, "n")):
            yield item(f"{op} {shape}", {"x": shape}, node(f"y = {op}(x)"))
    yield item("Div", {"x": (5, "n"), "z": ("n",)}, node("y = Div(x, z)"))
    yield item("Pow", {"x": ("n", 5), "z": ("n", 1)}, node("a = Abs(x)"), node("y = Pow(a, z)"))


ITEMS = [*reductions(), *along_axes(), *products(), *attentions(), *recurrent(), *windows(), *others()]
FAMILIES = {
    family: [entry for entry in ITEMS if entry.nodes[-1].op == family] for family in sorted({i.nodes[-1].op for i in ITEMS})
}


def sized(entry: Item, batch: int) -> Graph:
    shapes = {name: tuple(batch if s == "n" else s for s in shape) for name, shape in entry.inputs.items()}
    return graph(shapes, entry.nodes, entry.outputs, entry.constants)


def feeds(entry: Item) -> list[np.ndarray]:
    """Those of the largest batch."""
    return [normal(*(MOST if s == "n" else s for s in shape), seed=i) for i, shape in enumerate(entry.inputs.values())]


def cut(entry: Item, arrays: list[np.ndarray], start: int, batch: int) -> list[np.ndarray]:
    """Samples start .. start + batch - 1."""
    found = []
    for shape, array in zip(entry.inputs.values(), arrays, strict=True):
        part = np.take(array, range(start, start + batch), shape.index("n")) if "n" in shape else array
        found.append(np.ascontiguousarray(part))
    return found


def run(entry: Item, arrays: list[np.ndarray], batch: int, threads: int) -> np.ndarray:
    fl.set_num_threads(threads)
    program = Program(sized(entry, batch), dispatch.variant())
    return np.asarray(program.binding(arrays).run(arrays)[0])


@pytest.mark.usefixtures("kept_threads")
@pytest.mark.parametrize("op", FAMILIES)
@pytest.mark.without("reference")  # numpy's sums promise no order
@pytest.mark.sampled(3)
def test_bits_alone_and_in_batches(op: str, variant: str) -> None:
    rng = np.random.default_rng(0)
    for entry in FAMILIES[op]:
        arrays = feeds(entry)
        whole = run(entry, arrays, MOST, 1)
        np.testing.assert_array_equal(bits(run(entry, arrays, MOST, 2)), bits(whole), f"{entry.label}: threads")
        for i, (batch, start) in enumerate(PARTS):
            part = run(entry, cut(entry, arrays, start, batch), batch, 1 + i % 2)
            axis = next(i for i, (s, t) in enumerate(zip(whole.shape, part.shape, strict=True)) if s != t)
            wanted = np.take(whole, range(start, start + batch), axis)
            np.testing.assert_array_equal(bits(part), bits(wanted), f"{entry.label}: {batch} from {start}")
        # NaN is NaN then, of any sign; numbers next to it have the same bits.
        arrays = [with_extremes(a, rng) for a in arrays]
        wanted = np.take(run(entry, arrays, MOST, 2), range(30, 33), axis)
        part = run(entry, cut(entry, arrays, 30, 3), 3, 1)
        np.testing.assert_array_equal(but_for_nan(part), but_for_nan(wanted), f"{entry.label}: not finite")
