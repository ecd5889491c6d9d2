"""Has matrices stored in 8 or 4 bits, as ``load(weights="int8")`` and ``"int4"`` ask: those of products with fixed weights, and
tables of which rows are taken.

before                    after
Linear(x, W, b)           MatMulNBits(x, W8, scales, b)        MatMul and Gemm, too, and in branches
Linear(x, W, b, r)        Add(MatMulNBits(x, W8, scales, b), r)
Gather(W, i)              GatherBlockQuantized(W8, i, scales)      Embedding, too

A table that is also a matrix, as it is or turned, has one copy. A matrix of fewer than `LEAST` weights, of fewer terms than a
block, or with weights that are not finite stays as it is, and so does a table whose rows are not whole blocks. Blocks of 32
weights along the sum, or of a row of a table, share a scale, and a weight is a number times it. Numbers go from -2^(bits - 1) to
2^(bits - 1) - 1, and the scale makes the largest weight of a block the least of them, or, where a weight of the other sign would
be beyond the greatest, has the greatest for it. So no weight is off by more than half of its block's scale.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from .. import threads
from .._held import unread
from .._lazy import imported
from .._tuples import NamedTuple
from ..ir.graph import Graph, Node, captured
from ..ir.names import Names
from ..kernels import dispatch
from ._net import of_columns

__all__ = ["BLOCK", "FEW", "LEAST", "Few", "equal", "few_bits", "is_lookup", "quantized", "sizes_of"]

BLOCK = 32
LEAST = 1 << 14
_AT_ONCE = 1 << 16  # weights: what is computed of them stays in a second-level cache
_INTEGER = 4  # accuracy_level of ONNX Runtime's MatMulNBits: sums of integers, of blocks of x that are rounded to 8 bits


class Few(NamedTuple):
    """A matrix (n, k) in few bits, as MatMulNBits takes it, and how far it is from what it was.

    Attributes:
        numbers: (n, blocks, bytes of a block), lowest bits first, plus half of their range.
        scales: (n, blocks).
        rounded: Frobenius norm of the differences over that of the weights, and the largest difference.
    """

    numbers: np.ndarray
    scales: np.ndarray
    rounded: tuple[float, float]


def quantized(weight: np.ndarray, bits: int) -> Few | None:
    """A float32 matrix (n, k), which may be a view, in blocks along k; done on all threads, a piece at a time: by the compiled
    engine, or by numpy, which gives the same numbers.

    None if a weight is not finite.
    """
    if dispatch.engine() is None:
        return _by_numpy(weight, bits)
    found = imported("fastlayers.kernels.aot.nbits").nbits_round(weight, bits)
    return None if found is None else Few(found[0], found[1], _errors(*found[2].T))


def _errors(error: np.ndarray, whole: np.ndarray, largest: np.ndarray) -> tuple[float, float]:
    """`Few.rounded` of the parts' squares of differences and of weights, and largest differences."""
    return float(np.sqrt(error.sum() / whole.sum())) if whole.any() else 0.0, float(largest.max(initial=0))


def _by_numpy(weight: np.ndarray, bits: int) -> Few | None:
    n, k = weight.shape
    blocks, half = -(-k // BLOCK), 1 << (bits - 1)
    numbers, scales = np.empty((n, blocks, BLOCK * bits // 8), np.uint8), np.empty((n, blocks), np.float32)
    count = min(n, max(16, _AT_ONCE // k // 16 * 16))
    spare: list[tuple[np.ndarray, np.ndarray]] = []  # what threads compute in

    def some(first: int) -> tuple[float, float, float]:
        with np.errstate(all="ignore"):  # what is not finite is found
            return rounded(first)

    def rounded(first: int) -> tuple[float, float, float]:
        rows = weight[first : first + count]
        buffers = (
            spare.pop() if spare else (np.zeros((count, blocks, BLOCK), np.float32), np.empty((count, blocks, BLOCK), np.float32))
        )
        w, q = (buffer[: len(rows)] for buffer in buffers)
        w.reshape(len(rows), -1)[:, :k] = rows
        most, least = w.max(-1), w.min(-1)
        sign = np.where(most > -least, np.float32(1), np.float32(-1))
        largest, opposite = np.maximum(most, -least), np.minimum(most, -least)
        wide = opposite <= largest * np.float32((half - 0.5) / half)
        scale = np.where(wide, -sign * largest / np.float32(half), largest / np.float32(half - 1))
        scale[np.abs(scale) < np.finfo(np.float32).tiny] = 0
        scales[first : first + count] = scale
        if not np.isfinite(scale).all():
            return np.nan, np.nan, np.nan
        np.divide(w, np.where(scale == 0, np.float32(1), scale)[..., None], out=q)
        np.clip(np.rint(q, out=q), -half, half - 1, out=q)
        q8 = (q + np.float32(half)).astype(np.uint8)
        numbers[first : first + count] = q8 if bits == 8 else q8[..., ::2] | q8[..., 1::2] << 4
        whole = _squares(w)
        np.subtract(w, np.multiply(q, scale[..., None], out=q), out=q)
        found = _squares(q), whole, float(max(q.max(), -q.min()))
        spare.append(buffers)
        return found

    error, whole, largest = (np.array(v) for v in zip(*_each(some, range(0, n, count)), strict=True))
    if np.isnan(largest).any():
        return None
    return Few(numbers, scales, _errors(error, whole, largest))


def _squares(array: np.ndarray) -> float:
    flat = array.reshape(-1)
    found = float(np.dot(flat, flat))
    return found if np.isfinite(found) else float(np.square(flat, dtype=np.float64).sum())


def _each(function: Any, items: range) -> list[Any]:
    """Results of a function of numpy, which lets other threads run meanwhile."""
    if min(threads.get_num_threads(), len(items)) < 2:
        return [function(item) for item in items]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads.get_num_threads()) as pool:
        return list(pool.map(function, items))


def few_bits(
    graph: Graph, bits: int, exact: bool, known: Mapping[str, np.ndarray] | None = None, left: Collection[str] = ()
) -> Graph:
    """The graph with every such product changed.

    Args:
        graph: with the passes done, or without them.
        bits: 8 or 4.
        exact: whether sums are of floats.
        known: constants of the graphs around it.
        left: results of products that stay as they are.
    """
    constants: dict[str, np.ndarray] = dict(graph.constants)
    seen = ChainMap(constants, dict(known or {}))
    names = Names((*seen, *(v.name for v in graph.inputs)), "~", 0)
    names.take(name for node in graph.nodes for name in node.outputs)
    made: dict[tuple[str, bool, float], tuple[Any, Few] | None] = {}  # of matrices that several nodes read
    lookups = {id(node): str(node.inputs[0]) for node in graph.nodes if _is_table(node, seen) and node.outputs[0] not in left}
    tables = set(lookups.values())
    nodes: list[Node] = []

    def constant(array: np.ndarray, hint: str) -> str:
        constants[name := names(hint)] = array
        return name

    def few(name: str, turned: bool, factor: float) -> tuple[Any, Few] | None:
        key = name, turned, factor
        if key not in made:
            weight = seen[name].T if turned else seen[name]
            same = next((t for t in tables if t != name and factor == 1 and equal(seen[t], weight)), None)
            if same is not None:
                made[key] = few(same, False, 1.0)
                return made[key]
            found = quantized(weight if factor == 1 else weight * np.float32(factor), bits)
            unread(weight)  # those of a file are not in memory any more
            made[key] = None
            if found is not None:
                if name in tables and not turned and factor == 1:  # as rows of bytes, which a product takes as well
                    found = found._replace(
                        numbers=found.numbers.reshape(len(found.numbers), -1)[:, : weight.shape[1] * bits // 8]
                    )
                made[key] = (constant(found.numbers, f"{name} int{bits}"), constant(found.scales, f"{name} scales")), found
        return made[key]

    for node in graph.nodes:
        inner = {
            name: few_bits(value, bits, exact, seen, left) if isinstance(value, Graph) else value
            for name, value in node.attributes.items()
        }
        if id(node) in lookups and (matrix := few(str(node.inputs[0]), False, 1.0)) is not None:
            (numbers, scales), found = matrix
            words = {"bits": bits, "block_size": BLOCK, "gather_axis": 0, "quantize_axis": 1, "rounded": found.rounded}
            if node.op == "Embedding":
                words["from_front"] = 1
            nodes.append(Node("GatherBlockQuantized", (numbers, node.inputs[1], scales), node.outputs, words))
            continue
        product = None if node.outputs[:1] and node.outputs[0] in left else _product(node, seen)
        matrix = None if product is None else few(str(node.inputs[1]), product.turned, product.factor)
        if product is None or matrix is None:
            nodes.append(Node(node.op, node.inputs, node.outputs, inner))
            continue
        (numbers, scales), found = matrix
        n, k = len(found.numbers), product.terms
        bias = product.bias
        inputs: tuple[str | None, ...] = (node.inputs[0], numbers, scales)
        if isinstance(bias, np.ndarray):
            bias = constant(np.ascontiguousarray(np.broadcast_to(bias, (n,)), np.float32), f"{node.inputs[2]} of {n}")
        attributes = {"N": n, "K": k, "bits": bits, "block_size": BLOCK, "rounded": found.rounded}
        if not exact:
            attributes["accuracy_level"] = _INTEGER
        last = {"activation": inner["activation"]} if "activation" in inner else {}
        inputs = inputs if bias is None else (*inputs, None, None, bias)
        if product.residual is None:
            nodes.append(Node("MatMulNBits", inputs, node.outputs, {**attributes, **last}))
        else:
            summed = names(f"{node.outputs[0]} alone")
            nodes.append(Node("MatMulNBits", inputs, (summed,), attributes))
            nodes.append(Node("Add", (summed, product.residual), node.outputs, last))
    read = {name for node in nodes for name in (*node.inputs, *captured(node))} | {v.name for v in graph.outputs}
    kept = {name: array for name, array in constants.items() if name in read}
    return Graph(graph.inputs, graph.outputs, tuple(nodes), kept, graph.values)


FEW = ("MatMulNBits", "GatherBlockQuantized")  # operators that have weights of few bits


def sizes_of(node: Node, known: Mapping[str, np.ndarray]) -> tuple[str, int, int] | None:
    """The name of the weights of a node of `FEW`, their bytes as float32, and those that they and their scales have.

    None where they are no constants.
    """
    name, scales = str(node.inputs[node.op == FEW[0]]), str(node.inputs[2])
    numbers = known.get(name)
    if numbers is None:
        return None
    count = node.attributes.get("N", 0) * node.attributes.get("K", 0) or numbers.size * 8 // node.attributes.get("bits", 4)
    return name, 4 * count, numbers.nbytes + (known[scales].nbytes if scales in known else 0)


def _is_table(node: Node, known: Mapping[str, np.ndarray]) -> bool:
    """Whether a node takes rows, whole blocks, of a large table."""
    weight = known.get(node.inputs[0] or "") if is_lookup(node) else None
    if weight is None or weight.ndim != 2 or weight.dtype != np.float32 or weight.size < LEAST:
        return False
    return not weight.shape[1] % BLOCK


def is_lookup(node: Node) -> bool:
    """Whether a node gives rows of its first input by number."""
    plain = node.op == "Embedding" and not node.attributes.get("half")
    return len(node.inputs) == 2 and (plain or (node.op == "Gather" and node.attributes.get("axis", 0) in (0, -2)))


def equal(table: np.ndarray, weight: np.ndarray) -> bool:
    """Whether a matrix has the values of a table."""
    same = table.shape == weight.shape and np.array_equal(table[:1], weight[:1])
    return same and all(np.array_equal(table[i : i + 256], weight[i : i + 256]) for i in range(0, len(table), 256))


class _Product(NamedTuple):
    """A product that becomes one with weights of few bits: of x and the matrix, or what it is `turned`, times `factor`.

    Attributes:
        bias: the name of a vector, or one of numbers.
    """

    terms: int
    turned: bool
    factor: float = 1.0
    bias: str | np.ndarray | None = None
    residual: str | None = None


def _product(node: Node, known: Mapping[str, np.ndarray]) -> _Product | None:
    """The node as such a product; None where it is none, or its matrix stays."""
    get = node.attributes.get
    turned = node.op == "MatMul" or (node.op == "Gemm" and not get("transB", 0))
    if not (turned or node.op in ("Linear", "Gemm")) or len(node.inputs) < 2 or get("half") or get("transA"):
        return None
    weight = known.get(node.inputs[1] or "")
    if weight is None or weight.ndim != 2 or weight.dtype != np.float32 or weight.size < LEAST:
        return None
    terms = weight.shape[0] if turned else weight.shape[1]
    alpha = float(get("alpha", 1.0))
    if terms < BLOCK or not np.isfinite(alpha):
        return None
    third = node.inputs[2] if len(node.inputs) > 2 else None
    if third is None or node.op == "MatMul":
        return _Product(terms, turned, alpha, None, _fourth(node))
    bias = known.get(third)
    if bias is None or bias.dtype != np.float32 or not of_columns(bias, weight.shape[turned]):
        return None
    beta = np.float32(get("beta", 1.0))
    plain = beta == 1 and bias.shape == (weight.shape[turned],)
    return _Product(terms, turned, alpha, third if plain else bias.reshape(-1) * beta, _fourth(node))


def _fourth(node: Node) -> str | None:
    return node.inputs[3] if len(node.inputs) > 3 else None
