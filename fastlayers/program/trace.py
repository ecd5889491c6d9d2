"""The record of binding a graph, so that a later binding of other sizes need only do again what differs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .._tuples import NamedTuple
from ..ir.graph import Graph, Node
from ..operators import Spec
from ..operators.builder import ARENA, OUTPUT, AnyCall, Buffer, Call, Ref

if TYPE_CHECKING:
    from .blocks import Blocks, Copies

__all__ = ["Entry", "Placed", "Plan", "Record", "Repeat", "Route", "Trace", "plain", "settled"]


class Placed(NamedTuple):
    """A node that is left, with all sizes known; `weights` are the sizes of the inputs that are constants."""

    node: Node
    inputs: tuple[Spec | None, ...]
    outputs: tuple[Spec, ...]
    weights: tuple[int | None, ...]


class Plan(NamedTuple):
    """The calls of a model for one set of sizes, over its own buffers. Outputs are (shape, dtype) in the order of the graph's;
    a call names its node's position. `links`: for each node the values of the values that it reads and makes.
    """

    calls: list[AnyCall]
    outputs: list[tuple[tuple[int, ...], np.dtype[Any]]]
    arena: int
    nodes: list[Placed]
    links: Sequence[tuple[tuple[int, ...], tuple[int, ...]]] = ()
    ways: tuple[tuple[int, str], ...] = ()  # which way the kernels of some calls go, in words


class Entry(NamedTuple):
    """A node on the way through the graph and the branches that are taken, its values by their values (-1: left out).

    Of an `If` whose condition is known, `chosen` is the branch, as written; its results are those of the branch. Of other
    branches and loops, `nested` makes what binds them.
    """

    node: Node
    ins: tuple[int, ...]
    outs: tuple[int, ...]
    top: int  # its position in the outermost graph, or that of the node that it is in
    chosen: Graph | None = None
    nested: Callable[[], Any] | None = None


class Record:
    """A node lowered for some sizes: calls, and what they do to buffers. Never changed.

    `effects`: (part, whole, offset): buffers that it puts into others. `own`: the buffer that was made for each output. `chunk`:
    the calls as the compiled engine has them. `repeat`: of which other record this is one over other buffers, whose calls are
    not made before they are asked for (see `program.alike`). `refused`: as a builder says it.
    """

    __slots__ = ("_calls", "chunk", "effects", "nbytes", "overs", "own", "placed", "refused", "repeat")

    def __init__(
        self,
        calls: Sequence[AnyCall] | None,
        effects: Sequence[tuple[Buffer, Buffer, int]],
        overs: Sequence[tuple[Buffer, Buffer]],
        own: Mapping[int, Buffer],
        nbytes: int,
        placed: Placed | None,
        repeat: Repeat | None = None,
    ) -> None:
        self._calls, self.effects, self.overs, self.own, self.nbytes, self.placed = calls, effects, overs, own, nbytes, placed
        self.repeat = repeat
        self.refused: bool = repeat is not None and repeat.of.refused
        self.chunk: Any = None

    @property
    def calls(self) -> Sequence[AnyCall]:
        """The node's calls, in order."""
        if self._calls is None:
            assert self.repeat is not None
            self._calls = self.repeat.calls()
        return self._calls

    @calls.setter
    def calls(self, calls: Sequence[AnyCall]) -> None:
        self._calls = calls


class Repeat(NamedTuple):
    """The record that a record repeats, and which buffers take the place of that one's: (buffer, bytes further on) each."""

    of: Record
    moved: Mapping[Buffer, tuple[Buffer, int]]

    def over(self, ref: Ref) -> Ref:
        """The place of an array of the other record for this one."""
        found = self.moved.get(ref.buffer)
        return ref if found is None else Ref(found[0], ref.offset + found[1], ref.shape, ref.dtype)

    def calls(self) -> list[AnyCall]:
        """The calls of the other record over these buffers."""
        return [
            Call(call.kernel, tuple([self.over(a) if isinstance(a, Ref) else a for a in call.args]), call.node)  # type: ignore[union-attr]
            for call in self.of.calls
        ]


class Route:
    """The way through a graph: nodes in order, with the branches that were taken.

    `counters`: of entries whose results' sizes are counted by their kernels, which counter; `counted`: of such results, by
    number, the axis and the counter.
    """

    def __init__(self) -> None:
        self.counters: dict[int, int] = {}
        self.counted: dict[int, tuple[int, int]] = {}
        self.entries: list[Entry] = []
        self.inputs: list[int] = []
        self.outputs: list[int] = []
        self.branches = False
        self.blocks: Blocks | None = None

    @cached_property
    def readers(self) -> dict[int, list[int]]:
        """Positions of the entries that read a value."""
        found: dict[int, list[int]] = {}
        for at, entry in enumerate(self.entries):
            for value in dict.fromkeys(entry.ins):
                found.setdefault(value, []).append(at)
        return found

    @cached_property
    def kinds(self) -> list[int]:
        """A number for each entry: the same for those with the same operator and attributes; -1 where that cannot be told."""
        numbers: dict[Any, int] = {}
        return [
            numbers.setdefault((node.op, len(ins), *[n < 0 for n in outs], *sorted(node.attributes.items())), len(numbers))
            if all(map(plain, node.attributes.values()))
            else -1
            for node, ins, outs, *_ in self.entries
        ]


_PLAIN = (bool, int, float, str, type(None))


def plain(value: Any) -> bool:
    """Whether it is a number, a word, None, or a tuple of such: equal ones mean the same."""
    return isinstance(value, _PLAIN) or (isinstance(value, tuple) and all(map(plain, value)))


class Trace:
    """A graph bound to sizes. What is in lists goes by the indices of values, or of entries. Never changed once it is made.

    `fixed`: whether a value is known whatever the sizes. `last`: the copies to outputs. `ends`: of buffers that are outputs, by
    number, which ones. `fresh`: positions of the records that no earlier trace has. `copies`: blocks without records, which are
    copies of others (see `program.blocks`).
    """

    def __init__(
        self,
        route: Route,
        specs: list[Spec],
        known: list[np.ndarray | None],
        fixed: list[bool],
        refs: dict[int, Ref],
        records: list[Record | None],
    ) -> None:
        self.route, self.specs, self.known, self.fixed, self.refs, self.records = route, specs, known, fixed, refs, records
        self.last: Record
        self.ends: dict[int, int]
        self.outputs: list[tuple[tuple[int, ...], np.dtype[Any]]]
        self.fresh: Sequence[int]
        self.copies: Sequence[Copies] = ()

    def expand(self, made: Copies) -> None:
        """Gives copies their own records."""
        made.expand(self.route, self.records, self.refs)
        self.copies = [other for other in self.copies if other is not made]

    @property
    def lowered(self) -> list[Record]:
        """The records that there are, in order, that of the copies to outputs last."""
        return [*filter(None, self.records), self.last]

    @property
    def nodes(self) -> list[Placed]:
        """The nodes that are left."""
        return [record.placed for record in self.lowered if record.placed is not None]

    @property
    def links(self) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """The values that each of `nodes` reads and makes, by their indices."""
        pairs = zip(self.route.entries, self.records, strict=True)
        return [(entry.ins, entry.outs) for entry, record in pairs if record is not None and record.placed is not None]


def settled(records: Sequence[Record], ends: Mapping[int, int]) -> list[AnyCall]:
    """All calls in order, for a plan: sets in the buffers, which no other binding may use, what a plan says of them."""
    made = [call for record in records for call in record.calls]
    for record in records:
        for part, whole, offset in record.effects:
            part.parent, part.offset = whole, offset
        for buffer, other in record.overs:
            buffer.over = other
    for number, call in enumerate(made):
        for ref in call.args if isinstance(call, Call) else (*call.inputs, *call.outputs):
            if not isinstance(ref, Ref):
                continue
            around: Buffer | None = ref.buffer
            while around is not None:
                if around.first < 0:
                    around.first = number
                around.last = number
                if around.parent is not None:
                    around.over = None
                elif around.space == ARENA and around.number in ends:
                    around.space, around.index = OUTPUT, ends[around.number]
                around = around.parent
    return made
