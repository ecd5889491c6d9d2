"""Nodes that are alike, such as those of a network's many layers, are lowered once: the calls of the next one are those of the
first, over its own memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .._tuples import NamedTuple
from ..operators.builder import ARENA, CONSTANT, Buffer, Builder, Call, Ref
from .trace import Placed, Record, Repeat

__all__ = ["Pattern", "pattern", "repeated"]


class Pattern(NamedTuple):
    """A node that was lowered, where its inputs lay, where its results do, and the memory that only its own calls use."""

    record: Record
    ins: list[Ref | None]
    outs: list[Ref | None]
    temps: list[Buffer]


def pattern(builder: Builder, record: Record, ins: Sequence[int], outs: Sequence[int]) -> Pattern | None:
    """The pattern of a node none of whose inputs is known; None if its calls say more than where its arrays are."""
    if record.effects or record.nbytes or not all(isinstance(call, Call) for call in record.calls):
        return None
    refs = builder.refs
    given = [None if n < 0 else refs[n] for n in ins]
    made = [None if n < 0 else refs[n] for n in outs]
    known = {ref.buffer for ref in given if ref is not None} | set(record.own.values())
    called = [a for call in record.calls for a in call.args if isinstance(a, Ref)]  # type: ignore[union-attr]
    used = dict.fromkeys(ref.buffer for ref in [*called, *filter(None, made)])
    return Pattern(record, given, made, [b for b in used if b not in known and b.space != CONSTANT])


def repeated(
    builder: Builder, like: Pattern, placed: Placed, ins: Sequence[int], outs: Sequence[int], own: Mapping[int, Buffer]
) -> Record | None:
    """The record of a node of the pattern's kind, whose inputs have the same shapes and dtypes; sets where its results are. None,
    and nothing done, where its inputs are not as those of the pattern do.

    Args:
        builder: where values are.
        like: the pattern.
        placed: the node.
        ins: the values of its inputs; `outs`: and of its outputs.
        own: the buffers of its outputs in the earlier binding.
    """
    refs, parents = builder.refs, builder.parents
    moved: dict[Buffer, tuple[Buffer, int]] = {}
    taken: set[Buffer] = set()
    for number, old in zip(ins, like.ins, strict=True):
        if old is None:
            continue
        ref, was = refs[number], old.buffer
        to, shift = ref.buffer, ref.offset - old.offset
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
        new = made[i] = before if before is not None and before.nbytes == was.nbytes else Buffer(ARENA, was.nbytes)
        new.made = new.made or was.made
        moved[was] = new, 0
    for was in like.temps:
        new = Buffer(ARENA, was.nbytes)
        new.made = was.made
        moved[was] = new, 0
    repeat = Repeat(like.record, moved)
    for number, old in zip(outs, like.outs, strict=True):
        if old is not None:
            refs[number] = repeat.over(old)
    overs = [(moved[b][0], moved[o][0]) for b, o in like.record.overs if b in moved and o in moved] if like.record.overs else ()
    return Record(None, (), overs, made, 0, placed, repeat)
