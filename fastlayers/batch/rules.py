"""Rules of operators: where the axis of the batch is in their results, or that they mix rows.

Most are those of the trait `time` by which streams know an operator: one that takes each step by itself takes each row by itself.
`NAMED` has rules for operators that streams do not run. An operator without a rule mixes rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..ir.graph import Node
from ..operators import traits_of
from ._kinds import COUNT, ONE, ROWS, Kind, Rows, Size, over, times

if TYPE_CHECKING:
    from .axes import Walk

__all__ = ["NAMED", "RULES", "rule_of"]

Rule = Callable[["Walk", Node, Sequence[Kind]], Sequence[Kind]]
_FAR = (1 << 31) - 1  # an end this far or farther stands for the axis's own
_REST = Size(-1)  # the size -1 in the shape of a Reshape


# ---- for rules --------------------------------------------------------------------------------------------------------


def _all(w: Walk, node: Node, kinds: Sequence[Kind]) -> Rows:
    """The first of the inputs with rows, all of which have equally many entries for each."""
    found = [kind for kind in kinds if isinstance(kind, Rows)]
    if not found or any(kind is COUNT for kind in kinds):
        w.refuse("computes with the number of rows")
    if any((kind.each, kind.outer) != (found[0].each, found[0].outer) for kind in found):
        w.refuse("joins values with different numbers of entries for each row")
    return found[0]


def _only_first(w: Walk, node: Node, kinds: Sequence[Kind]) -> Rows:
    """Input 0's rows; all other inputs are the same for all rows."""
    rows = _all(w, node, kinds)
    if not isinstance(kinds[0], Rows) or any(kind is not None for kind in kinds[1:]):
        w.refuse("takes parameters that differ from row to row, or applies rows to a value that is the same for all")
    return rows


def _axes(w: Walk, node: Node, i: int, rank: int) -> list[int] | None:
    """The axes that input i names; None if there is no such input."""
    if i >= len(node.inputs) or node.inputs[i] is None:
        return None
    found = w.integers(node.inputs[i])
    if found is None:
        w.refuse("goes over axes that are not known beforehand")
    return [axis % max(rank, 1) for axis in found]


def _single(w: Walk, name: str, back: int) -> bool:
    """Whether a value has one entry, or none, along the axis of the rows, which is `back` axes from the end."""
    shape = w.shape(name)
    return shape is not None and (len(shape) < back or shape[len(shape) - back] == 1)


def _along_rows(w: Walk, node: Node) -> None:
    w.refuse("goes over the rows of the batch")


# ---- elementwise, and products ----------------------------------------------------------------------------------------


def _elementwise(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    """Every element by itself, after broadcasting; inputs that are left out are ignored."""
    rows = _all(w, node, kinds)
    ranks = {name: w.rank_of(name) for name in node.inputs if name}
    pairs = [(name, kind) for name, kind in zip(node.inputs, kinds, strict=True) if name]
    backs = {ranks[name] - kind.axis for name, kind in pairs if isinstance(kind, Rows)}
    if len(backs) > 1:
        w.refuse("joins values whose rows are along different axes")
    (back,) = backs
    for name, kind in pairs:
        if kind is None and not _single(w, name, back):
            w.refuse(f"joins rows with {name!r}, which has an entry for each of a fixed number of rows")
    return [rows._replace(axis=max(ranks.values()) - back)] * len(node.outputs)


def _matmul(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    rows, get = _all(w, node, kinds), node.attributes.get
    if any(get(flag, 0) for flag in ("transBatchA", "transBatchB")):
        w.refuse("multiplies along the axis of the batch")
    ranks = [w.rank_of(name) for name in node.inputs[:2]]
    backs = {rank - kind.axis for rank, kind in zip(ranks, kinds, strict=False) if isinstance(kind, Rows)}
    if len(backs) > 1:
        w.refuse("multiplies values whose rows are along different axes")
    (back,) = backs
    if all(isinstance(kind, Rows) for kind in kinds[:2]):
        if back < 3 or min(ranks) < 3:
            w.refuse("multiplies rows with rows")
        return [rows._replace(axis=max(ranks) - back)]
    at = 0 if isinstance(kinds[0], Rows) else 1
    # Rows may be rows of the first factor, or columns of the second one.
    if ranks[at] < 2 or back == (1 if at == 0 else 2) or (back < 3 and (get("transA", 0) or get("transB", 0))):
        w.refuse("sums over the rows of the batch")
    if back > 2 and not _single(w, node.inputs[1 - at] or "", back):
        w.refuse("multiplies with a value that has an entry for each of a fixed number of rows")
    if ranks[1 - at] == 1:  # a vector: its axis is gone
        return [rows] if at == 0 else [rows._replace(axis=rows.axis - (back == 1))]
    return [rows._replace(axis=max(ranks) - back)]


def _product(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    """Products with a matrix of weights, quantized ones too: input 0's last axis is summed."""
    rows = _only_first(w, node, kinds)
    if rows.axis == w.rank_of(node.inputs[0]) - 1 or node.attributes.get("transA", 0):
        w.refuse("sums over the rows of the batch")
    return [rows]


def _experts(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    """Tokens (tokens, h) or (b, t, h), each with its row of the router's numbers, and of weights in QMoE's input 14."""
    rows, routers = kinds[0], [kind for i, kind in enumerate(kinds) if i in (1, 14) and node.inputs[i]]
    if not isinstance(rows, Rows) or rows.axis or any(isinstance(k, Rows) for i, k in enumerate(kinds) if i not in (0, 1, 14)):
        w.refuse("takes parameters that differ from row to row, or rows that are not along its first axis")
    each = times((rows.each, w.dims(node.inputs[0] or "")[1])) if w.rank_of(node.inputs[0]) == 3 else rows.each
    if any(kind != Rows(0, each, rows.outer) for kind in routers):
        w.refuse("takes numbers of a router that are not those of its rows")
    return [rows]


def _linear(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    """A product with weights, and a residual that may have rows too."""
    _product(w, node, kinds[:3])
    others = [i for i in range(3, len(node.inputs)) if node.inputs[i]]
    own = Node(node.op, (node.inputs[0], *(node.inputs[i] for i in others)), node.outputs, {})
    return _elementwise(w, own, [kinds[0], *(kinds[i] for i in others)])


def _gemm(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    rows = _all(w, node, kinds)
    if not isinstance(kinds[0], Rows) or kinds[1] is not None or rows.axis != (1 if node.attributes.get("transA", 0) else 0):
        w.refuse("sums over the rows of the batch, or multiplies rows with rows")
    name, kind = (node.inputs[2], kinds[2]) if len(node.inputs) > 2 else (None, None)
    if name and (kind is None and not _single(w, name, 2)):
        w.refuse("adds a value that has an entry for each of a fixed number of rows")
    if name and isinstance(kind, Rows) and (w.rank_of(name), kind.axis) != (2, 0):
        w.refuse("joins values whose rows are along different axes")
    return [rows._replace(axis=0)]


def _einsum(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    rows = _all(w, node, kinds)
    terms, arrow, result = str(node.attributes.get("equation", "")).replace(" ", "").partition("->")
    operands = terms.split(",")
    if not arrow or "." in terms or len(operands) != len(kinds):
        w.refuse("has no letter for the axis of the batch")
    letters = {term[kind.axis] for term, kind in zip(operands, kinds, strict=True) if isinstance(kind, Rows)}
    letter = next(iter(letters))
    shared = any(letter in term for term, kind in zip(operands, kinds, strict=True) if kind is None)
    if len(letters) > 1 or shared or result.count(letter) != 1 or any(term.count(letter) > 1 for term in operands):
        w.refuse("sums over the rows of the batch, or joins them with others")
    return [rows._replace(axis=result.index(letter))]


# ---- along other axes -------------------------------------------------------------------------------------------------


def _channels(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    """Affine and BatchNormalization: parameters per channel."""
    rows = _only_first(w, node, kinds)
    if node.attributes.get("training_mode", 0):
        w.refuse("takes the mean over the rows of the batch")
    if node.attributes.get("axis", 1) % w.rank_of(node.inputs[0]) == rows.axis:
        w.refuse("has parameters for every row")
    return [rows] * len(node.outputs)


def _along(behind: bool) -> Rule:
    """Softmax and its kin, along `axis`, the last by default; with `behind`, along all axes from it on."""

    def rule(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
        rows, rank = _only_first(w, node, kinds), w.rank_of(node.inputs[0])
        axis = node.attributes.get("axis", -1) % max(rank, 1)
        if rows.axis == axis or (rows.axis > axis and (behind or node.attributes.get("flatten", False))):
            _along_rows(w, node)
        return [rows] * len(node.outputs)

    return rule


def _qsoftmax(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    old = node.attributes.get("opset", 13) < 13  # along all axes from `axis` on
    told = {"axis": node.attributes.get("axis", 1 if old else -1)}
    return _along(old)(w, Node(node.op, node.inputs, node.outputs, told), kinds)


def _reduce(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    rows, rank = _only_first(w, node, kinds), w.rank_of(node.inputs[0])
    axes = [node.attributes.get("axis", 0) % max(rank, 1)] if node.op in ("ArgMax", "ArgMin") else _axes(w, node, 1, rank)
    if not axes:
        if not node.attributes.get("noop_with_empty_axes", 0):
            _along_rows(w, node)
        return [rows]
    if node.attributes.get("x_last", False) and rows.axis:
        w.refuse("has rows along another axis than the first of an image")
    if rows.axis in axes:
        _along_rows(w, node)
    return [rows if node.attributes.get("keepdims", 1) else rows._replace(axis=rows.axis - sum(a < rows.axis for a in set(axes)))]


def _running(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    rows = _only_first(w, node, kinds)
    axes = _axes(w, node, 1, w.rank_of(node.inputs[0]))
    if axes is None or rows.axis in axes:
        _along_rows(w, node)
    return [rows]


def _last_two(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    """Operators on matrices, the last two axes."""
    rows = _only_first(w, node, kinds)
    if rows.axis >= w.rank_of(node.inputs[0]) - 2:
        _along_rows(w, node)
    return [rows]


def _quantize(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    """Rows of quantized values, whose scale and zero point are for all, or for each index of another axis."""
    rows, rank = _only_first(w, node, kinds), w.rank_of(node.inputs[0])
    shape = w.shape(node.inputs[1])
    axis = node.attributes.get("axis", 1) % max(rank, 1)
    if shape is None or len(shape) > 1 or (shape and shape[0] != 1 and axis == rows.axis):
        w.refuse("has parameters for every row")
    return [rows]


# ---- the first axis ---------------------------------------------------------------------------------------------------


def _leading(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    """Convolutions, pools and what else has the batch first and parameters that are the same for all rows."""
    rows = _only_first(w, node, kinds)
    if rows.axis:
        w.refuse("has the batch along its first axis, the rows are along another one")
    return [rows] * len(node.outputs)


def _window(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    made = _leading(w, node, kinds)
    if len([name for name in node.outputs if name]) > 1:
        w.refuse("gives positions in the whole batch")
    return made


def _lrn(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    return _leading(w, node, kinds)


def _first(*batched: int) -> Rule:
    """The batch is first in input 0, and may be in the inputs `batched`; values for a fixed number of rows fail when they run."""

    def rule(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
        rows = _all(w, node, kinds)
        if not isinstance(kinds[0], Rows) or any(kind.axis for kind in kinds if isinstance(kind, Rows)):
            w.refuse("has the batch along its first axis, the rows are along another one")
        if any(isinstance(kind, Rows) and i not in (0, *batched) for i, kind in enumerate(kinds)):
            w.refuse("takes parameters that differ from row to row")
        return [rows] * len(node.outputs)

    return rule


def _attention(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    """Queries, keys and values with the batch first, and a mask that broadcasts to it."""
    made = _first(*range(len(kinds)))(w, node, kinds)
    if not all(isinstance(kind, Rows) for kind in kinds[:3]):
        w.refuse("looks from rows at keys or values that are the same for all rows")
    mask = node.inputs[3] if len(node.inputs) > 3 else None
    if mask and kinds[3] is None and not _single(w, mask, 4):
        w.refuse("has a mask for each of a fixed number of rows")
    if mask and isinstance(kinds[3], Rows) and w.rank_of(mask) != 4:
        w.refuse("has a mask whose rows are along another axis")
    return made


def _rotary(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    """RotaryEmbedding: the batch is first in x, and in tables of three axes."""
    made = _first(1, 2, 3)(w, node, kinds)
    if any(isinstance(kind, Rows) and w.rank_of(name) != 3 for name, kind in zip(node.inputs[1:3], kinds[1:3], strict=True)):
        w.refuse("takes tables whose rows are positions")
    return made


def _scaled(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    """ScaledAttention: products of matrices whose axes before the last two broadcast."""
    rows = next((i for i, kind in enumerate(kinds) if isinstance(kind, Rows)), 0)
    kind, rank = kinds[rows], w.rank_of(node.inputs[rows])
    if isinstance(kind, Rows) and rank - kind.axis < 3:
        w.refuse("looks from rows at rows")
    return _elementwise(w, node, kinds)


def _table(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    """Operators on tables of samples and features; a vector is one sample."""
    if w.rank_of(node.inputs[0]) != 2:
        w.refuse("takes a value that is not a table of rows and features")
    return _leading(w, node, kinds)


def _resize(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    rows = kinds[0]
    rank = w.rank_of(node.inputs[0])
    if not isinstance(rows, Rows) or any(isinstance(kind, Rows) for kind in kinds[1:]):
        w.refuse("takes parameters that differ from row to row")
    given = [name for name in node.inputs[2:4] if name and w.shape(name) != (0,)]
    axes = [axis % rank for axis in node.attributes.get("axes") or range(rank)]
    if len(given) != 1 or (len(node.inputs) > 1 and node.inputs[1] and "crop" in str(node.attributes)):
        w.refuse("resizes in a way that is not known beforehand")
    if rows.axis in axes:
        entries = w.numbers(given[0])
        own = w.dims(node.inputs[0] or "")[rows.axis] if given[0] != node.inputs[2] else ONE
        if entries is None or len(entries) != len(axes) or entries[axes.index(rows.axis)] != own:
            w.refuse("resizes the axis of the batch, or that cannot be told")
        if any(one.counted for i, one in enumerate(entries) if i != axes.index(rows.axis)):
            w.refuse("gives a size that is computed of the number of rows")
    elif kinds[3:4] == [COUNT] or kinds[2:3] == [COUNT]:
        w.refuse("gives a size that is computed of the number of rows")
    return [rows]


def _recurrent(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    """LSTM, GRU and RNN: weights are the same for all rows; lengths, and states before the first step, have a row for each."""
    rows, get = _all(w, node, kinds), node.attributes.get
    layout, joined = int(get("layout", 0)), bool(get("joined", False))
    batch = 0 if layout else 1
    at = {0: batch, 4: 0, 5: batch if not joined else 1, 6: batch if not joined else 1}
    for i, (name, kind) in enumerate(zip(node.inputs, kinds, strict=True)):
        if i in at and name and (not isinstance(kind, Rows) or kind.axis != at[i]):
            w.refuse("has lengths or states that are the same for all rows, or rows along another axis")
        if i not in at and kind is not None:
            w.refuse("has weights that differ from row to row")
    outputs = [batch if joined else 0 if layout else 2, at[5], at[6]]
    return [rows._replace(axis=axis) for axis in outputs][: len(node.outputs)]


def _reverse_sequence(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    rows = _all(w, node, kinds)
    if rows.axis != node.attributes.get("batch_axis", 1) or not isinstance(kinds[0], Rows) or not isinstance(kinds[1], Rows):
        _along_rows(w, node)
    return [rows]


def _positions(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    """AxisPositions: the same for all rows, along another axis than theirs."""
    if _all(w, node, kinds).axis == node.attributes.get("axis", 0) % w.rank_of(node.inputs[0]):
        w.refuse("counts the rows")
    return [None] * len(node.outputs)


def _rows(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    """Operators of users who say that they keep rows apart: every input that has rows has them first."""
    rows = _all(w, node, kinds)
    if any(kind.axis for kind in kinds if isinstance(kind, Rows)):
        w.refuse("has rows along another axis than the first")
    return [rows] * len(node.outputs)


# ---- moving values ----------------------------------------------------------------------------------------------------


def _transpose(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    rows, rank = _only_first(w, node, kinds), w.rank_of(node.inputs[0])
    perm = [p % rank for p in node.attributes.get("perm") or range(rank - 1, -1, -1)]
    return [rows._replace(axis=perm.index(rows.axis))]


def _squeeze(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    rows, rank = _only_first(w, node, kinds), w.rank_of(node.inputs[0])
    axes = _axes(w, node, 1, rank)
    if axes is None or rows.axis in axes:
        w.refuse("may take out the axis of the batch")
    return [rows._replace(axis=rows.axis - sum(a < rows.axis for a in set(axes)))]


def _unsqueeze(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    rows, rank = _only_first(w, node, kinds), w.rank_of(node.inputs[0])
    axes = w.integers(node.inputs[1])
    if axes is None:
        w.refuse("goes over axes that are not known beforehand")
    new = {axis % (rank + len(axes)) for axis in axes}
    return [rows._replace(axis=[i for i in range(rank + len(axes)) if i not in new][rows.axis])]


def _concat(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    rows = _all(w, node, kinds)
    parts = [
        (name, kind)
        for name, kind in zip(node.inputs, kinds, strict=True)
        if not (node.op == "QLinearConcat" and kind is None and w.shape(name) in ((), (1,)))  # scales and zero points
    ]
    if not all(isinstance(kind, Rows) and kind.axis == rows.axis for _, kind in parts):
        w.refuse("joins rows with a value that has a fixed number of them, or rows along another axis")
    if node.attributes["axis"] % w.rank_of(parts[0][0]) == rows.axis:
        w.refuse("puts values one after the other along the axis of the batch")
    return [rows]


def _split(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    rows = _only_first(w, node, kinds)
    if node.attributes.get("axis", 0) % w.rank_of(node.inputs[0]) == rows.axis:
        w.refuse("cuts the batch into parts")
    return [rows] * len(node.outputs)


def _slice(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    rows, rank = kinds[0], w.rank_of(node.inputs[0])
    if not isinstance(rows, Rows) or any(isinstance(kind, Rows) for kind in kinds[1:]):
        w.refuse("takes parameters that differ from row to row")
    starts, ends = w.numbers(node.inputs[1]), w.numbers(node.inputs[2])
    axes = _axes(w, node, 3, rank)
    if axes is None:
        if starts is None:
            w.refuse("cuts the batch, or that cannot be told")
        axes = list(range(len(starts)))
    if rows.axis in axes:
        at = axes.index(rows.axis)
        steps = w.integers(node.inputs[4]) if len(node.inputs) > 4 and node.inputs[4] else [1] * len(axes)
        whole = w.dims(node.inputs[0] or "")[rows.axis]
        if starts is None or ends is None or steps is None or starts[at] != Size(0) or steps[at] != 1:
            w.refuse("cuts the batch, or that cannot be told")
        if not (ends[at] == whole or (ends[at].known and ends[at].factor >= _FAR)):
            w.refuse("cuts the batch, or that cannot be told")
        if any(one.counted for part in (starts, ends) for i, one in enumerate(part) if i != at):
            w.refuse("cuts at a position that is computed of the number of rows")
    elif any(kind is COUNT for kind in kinds[1:]):
        w.refuse("cuts at a position that is computed of the number of rows")
    return [rows]


def _gather(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    """Gather, Embedding and GatherBlockQuantized."""
    _all(w, node, kinds)
    if len(kinds) > 2 and any(isinstance(kind, Rows) for i, kind in enumerate(kinds) if i != 1):
        w.refuse("takes parameters that differ from row to row")
    data, index = kinds[:2]
    ranks = [w.rank_of(name) for name in node.inputs[:2]]
    axis = node.attributes.get("axis", node.attributes.get("gather_axis", 0)) % max(ranks[0], 1)
    if isinstance(data, Rows) and isinstance(index, Rows):
        w.refuse("looks up rows by rows")
    if isinstance(index, Rows):
        return [index._replace(axis=axis + index.axis)]
    if not isinstance(data, Rows) or axis == data.axis:
        w.refuse("takes single rows out of the batch")
    return [data if data.axis < axis else data._replace(axis=data.axis + ranks[1] - 1)]


def _gather_elements(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    """GatherElements and ScatterElements: all inputs have rows along one axis, which is not the one that is looked up along."""
    rows = _all(w, node, kinds)
    if not all(isinstance(kind, Rows) and kind.axis == rows.axis for kind in kinds):
        w.refuse("joins rows with a value that has a fixed number of them, or rows along another axis")
    if node.attributes.get("axis", 0) % w.rank_of(node.inputs[0]) == rows.axis:
        w.refuse("moves values from row to row")
    return [rows]


def _gather_nd(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    rows, batch = _all(w, node, kinds), node.attributes.get("batch_dims", 0)
    data, index = kinds[:2]
    if isinstance(data, Rows) and isinstance(index, Rows):
        if not data.axis == index.axis < batch:
            w.refuse("looks up rows by rows")
        return [rows]
    if not isinstance(index, Rows) or batch or index.axis == w.rank_of(node.inputs[1]) - 1:
        w.refuse("takes single rows out of the batch")
    return [index]


def _one_hot(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    rows, rank = _only_first(w, node, kinds), w.rank_of(node.inputs[0])
    axis = node.attributes.get("axis", -1) % (rank + 1)
    return [rows if rows.axis < axis else rows._replace(axis=rows.axis + 1)]


def _pad(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    rows, rank = _only_first(w, node, kinds), w.rank_of(node.inputs[0])
    pads, axes = w.integers(node.inputs[1]), _axes(w, node, 3, rank) or list(range(rank))
    if rows.axis in axes:
        at = axes.index(rows.axis)
        if pads is None or len(pads) != 2 * len(axes) or pads[at] or pads[at + len(axes)]:
            w.refuse("pads the batch, or that cannot be told")
    return [rows]


def _tile(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    rows = kinds[0]
    repeats = w.numbers(node.inputs[1])
    if not isinstance(rows, Rows) or repeats is None or rows.axis >= len(repeats) or repeats[rows.axis] != ONE:
        w.refuse("repeats the batch, or that cannot be told")
    if any(one.counted for one in repeats):
        w.refuse("repeats as often as there are rows")
    return [rows]


def _expand(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    rows, rank = kinds[0], w.rank_of(node.inputs[0])
    entries = w.numbers(node.inputs[1])
    if not isinstance(rows, Rows) or entries is None:
        w.refuse("expands in a way that is not known beforehand")
    back = rank - rows.axis
    own = w.dims(node.inputs[0] or "")[rows.axis]
    if len(entries) >= back and entries[-back] not in (ONE, own):
        w.refuse("repeats rows of the batch, or that cannot be told")
    if any(one.counted for i, one in enumerate(entries) if i != len(entries) - back):
        w.refuse("repeats as often as there are rows")
    return [rows._replace(axis=max(rank, len(entries)) - back)]


def _flatten(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    rows, dims = _only_first(w, node, kinds), w.dims(node.inputs[0] or "")
    axis = node.attributes.get("axis", 1)
    axis += len(dims) if axis < 0 else 0
    first, last = (0, axis) if axis > rows.axis else (axis, len(dims))
    each, outer = times((rows.each, *dims[rows.axis + 1 : last])), times((*dims[first : rows.axis], rows.outer))
    return [Rows(0 if axis > rows.axis else 1, each, outer)]


def _reshape(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    """Elements keep their order, so what counts is how many are before the rows, in a row, and behind them."""
    rows, dims = kinds[0], w.dims(node.inputs[0] or "")
    target = w.numbers(node.inputs[1])
    if not isinstance(rows, Rows) or target is None:
        w.refuse("gives a shape that is not known beforehand")
    copies = not node.attributes.get("allowzero", 0)
    shape = [dims[i] if copies and one == Size(0) and i < len(dims) else one for i, one in enumerate(target)]
    before, own = times((*dims[: rows.axis], rows.outer)), times((rows.each, *dims[rows.axis + 1 :]))
    counted, told = [i for i, one in enumerate(shape) if one.counted], [i for i, one in enumerate(shape) if one == _REST]
    if len(counted) > 1 or len(told) > 1 or not (counted or told):
        w.refuse("has a fixed number of rows, or one that is not known beforehand")
    at = (counted or told)[0]
    entry = over(shape[at], Size(1, (ROWS,))) if counted else None
    if counted and told and entry is not None:
        rest = over(times((before, own)), times((entry, *(one for i, one in enumerate(shape) if i not in (at, told[0])))))
        if rest is None:
            w.refuse("gives a shape that is not known beforehand")
        shape[told[0]] = rest
    outer = over(before, times(shape[:at]))
    # Whole for every number of rows: else rows of two requests could come together.
    each = None if outer is None else over(entry, outer) if entry is not None else over(own, times(shape[at + 1 :]))
    if outer is None or each is None or each.counted:
        w.refuse("joins rows with other axes, or that cannot be told")
    w.set_shape(node.outputs[0], [None if i == at or one == Size(0) else one for i, one in enumerate(shape)])
    return [Rows(at, each, outer)]


RULES: dict[str, Rule] = {
    "elementwise": _elementwise, "channels": _channels, "matmul": _matmul, "linear": _linear, "product": _product, "gemm": _gemm,
    "lrn": _lrn, "cumsum": _running, "recurrent": _recurrent, "along": _along(False), "from_axis": _along(True),
    "reduce": _reduce, "convolution": _leading, "image": _leading, "window": _window, "pad": _pad, "gather": _gather,
    "concat": _concat, "slice": _slice, "split": _split, "transpose": _transpose, "flatten": _flatten, "reshape": _reshape,
    "squeeze": _squeeze, "unsqueeze": _unsqueeze,
}  # fmt: skip

# Rules of operators that streams do not run, or run in another way.
NAMED: dict[str, Rule] = {
    name: rule
    for rule, names in (
        (_elementwise, "ByteTable QLinearAdd QLinearMul QLinearSigmoid QLinearLeakyRelu QLinearWhere"),
        (_leading, "AdaptivePool DepthToSpace Interpolate QLinearAveragePool QLinearConv QLinearGlobalAveragePool STFT "
                   "SpaceToDepth ConvInteger"),
        (_table, "OneHotEncoder Scaler SoftmaxZero SvmProbabilities TfIdfVectorizer TreeDistribution Trees"),
        (_first(2, 4), "DeformConv"),
        (_first(3), "CausalConvWithState"),
        (_rotary, "RotaryEmbedding"),
        (_first(1), "GridSample"),
        (_first(1, 2, 3, 4, 5), "LinearAttention"),
        (_attention, "Attention DotAttention"),
        (_scaled, "ScaledAttention"),
        (_matmul, "FusedMatMul"),
        (_product, "BlockLinear MatMulBnb4 MatMulInteger MatMulIntegerToFloat QGemm QLinearMatMul"),
        (_experts, "MoE QMoE"),
        (_quantize, "DequantizeLinear QuantizeLinear"),
        (_qsoftmax, "QLinearSoftmax"),
        (_running, "CumProd"),
        (_last_two, "Det Trilu"),
        (_concat, "QLinearConcat"),
        (_gather, "GatherBlockQuantized"),
        (_gather_elements, "GatherElements ScatterElements"),
        (_gather_nd, "GatherND"),
        (_one_hot, "OneHot"),
        (_resize, "Resize"), (_expand, "Expand"), (_tile, "Tile"), (_einsum, "Einsum"),
        (_reverse_sequence, "ReverseSequence"),
        (_positions, "AxisPositions"),
    )
    for name in names.split()
}  # fmt: skip


def rule_of(node: Node) -> Rule | None:
    """The rule of a node's operator; None: it mixes rows."""
    traits = traits_of(node.op)
    return _rows if traits.rows else NAMED.get(node.op) or RULES.get(traits.time)
