"""Nodes that are alike, such as those of a network's many layers, are lowered once: the calls of the next one are those of the
first, over its own memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .._tuples import NamedTuple
from .builder import ARENA, CONSTANT, Buffer, Builder, Call, Ref
from .trace import Placed, Record

__all__ = ["Pattern", "pattern", "repeated"]


class Pattern(NamedTuple):
    """A node that was lowered, where its inputs lay, and where its results do."""

    record: Record
    ins: list[Ref | None]
    outs: list[Ref | None]


def pattern(builder: Builder, record: Record, ins: Sequence[int], outs: Sequence[int]) -> Pattern | None:
    """The pattern of a node none of whose inputs is known; None if its calls say more than where its arrays lie."""
    if record.effects or record.nbytes or not all(isinstance(call, Call) for call in record.calls):
        return None
    refs = builder.refs
    return Pattern(record, [None if n < 0 else refs[n] for n in ins], [None if n < 0 else refs[n] for n in outs])


def repeated(
    builder: Builder, like: Pattern, placed: Placed, ins: Sequence[int], outs: Sequence[int], own: Mapping[int, Buffer]
) -> Record | None:
    """The record of a node of the pattern's kind, whose inputs have the same shapes and dtypes; sets where its results lie. None,
    and nothing done, where its inputs do not lie as those of the pattern do.

    Args:
        builder: where values lie.
        like: the pattern.
        placed: the node.
        ins: the numbers of its inputs; `outs`: and of its outputs.
        own: the buffers of its outputs in the earlier binding.
    """
    refs, parents = builder.refs, builder.parents
    moved: dict[Buffer, tuple[Buffer, int]] = {}
    taken: set[Buffer] = set()
    for number, old in zip(ins, like.ins, strict=True):
        if old is None:
            continue
        new, was = refs[number], old.buffer
        to, shift = new.buffer, new.offset - old.offset
        known = moved.get(was)
        if known is not None:
            if known != (to, shift):
                return None
            continue
        if (
            to in taken
            or (was.space, was.nbytes) != (to.space, to.nbytes)
            or (was.space == ARENA and was.made != to.made)
            or was.number in parents
            or to.number in parents
        ):
            return None
        moved[was] = to, shift
        taken.add(to)
    made: dict[int, Buffer] = {}
    for i, was in like.record.own.items():
        before = own.get(i)
        made[i] = before if before is not None and before.nbytes == was.nbytes else Buffer(ARENA, was.nbytes)
        moved[was] = made[i], 0

    def over_there(ref: Ref) -> Ref:
        buffer = ref.buffer
        found = moved.get(buffer)
        if found is None:
            if buffer.space == CONSTANT:
                return ref
            found = moved[buffer] = Buffer(ARENA, buffer.nbytes), 0
        found[0].made = found[0].made or buffer.made
        return Ref(found[0], ref.offset + found[1], ref.shape, ref.dtype)

    calls = [
        Call(call.kernel, tuple([over_there(a) if a.__class__ is Ref else a for a in call.args]), call.node)  # type: ignore[union-attr]
        for call in like.record.calls
    ]
    for number, old in zip(outs, like.outs, strict=True):
        if old is not None:
            refs[number] = over_there(old)
    overs = [(moved[buffer][0], moved[other][0]) for buffer, other in like.record.overs if buffer in moved and other in moved]
    return Record(calls, [], overs, made, 0, placed)
