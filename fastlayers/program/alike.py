"""Nodes that are alike, such as those of a network's many layers, are lowered once: the calls of the next one are those of the
first, over its own memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .._tuples import NamedTuple
from ..operators.builder import ARENA, CONSTANT, AnyCall, Buffer, Builder, Call, Ref
from .trace import Placed, Record, Repeat, plain

__all__ = ["Pattern", "pattern", "repeated"]


class _Recipe(NamedTuple):
    """A call in an earlier binding and in this one, and which of its arguments are memory, plain, and made of constants."""

    before: Call
    now: Call
    refs: list[int]
    plains: list[int]
    constants: list[int]


class Pattern(NamedTuple):
    """A node that was lowered, where its inputs lay, where its results do, and the memory that only its own calls use.

    `recipe`: of a node with constants, how its calls become those of another.
    """

    record: Record
    ins: list[Ref | None]
    outs: list[Ref | None]
    temps: list[Buffer]
    recipe: list[_Recipe] | None


def pattern(builder: Builder, record: Record, ins: Sequence[int], outs: Sequence[int], was: Record | None) -> Pattern | None:
    """The pattern of a node whose inputs are `ins` and constants; None if its calls say more than where its arrays are. `was`:
    its record in the earlier binding.
    """
    if record.effects or record.nbytes or not all(isinstance(call, Call) for call in record.calls):
        return None
    constants = any(size is not None for size in record.placed.weights)  # type: ignore[union-attr]
    recipe = _recipe(was, record) if constants else None
    if constants and recipe is None:
        return None
    refs = builder.refs
    given = [None if n < 0 else refs[n] for n in ins]
    made = [None if n < 0 else refs[n] for n in outs]
    known = {ref.buffer for ref in given if ref is not None} | set(record.own.values())
    called = [a for call in record.calls for a in call.args if isinstance(a, Ref)]  # type: ignore[union-attr]
    used = dict.fromkeys(ref.buffer for ref in [*called, *filter(None, made)])
    return Pattern(record, given, made, [b for b in used if b not in known and b.space != CONSTANT], recipe)


def _recipe(was: Record | None, record: Record) -> list[_Recipe] | None:
    """From a node's calls in two bindings, where each has what depends on sizes, memory, and what its constants became; None if
    it cannot be said which is which.
    """
    if was is None or len(was.calls) != len(record.calls):
        return None
    made = []
    for before, now in zip(was.calls, record.calls, strict=True):
        if not isinstance(before, Call) or not isinstance(now, Call) or before.kernel != now.kernel:
            return None
        places: tuple[list[int], list[int], list[int]] = [], [], []
        for i, (a, b) in enumerate(zip(before.args, now.args, strict=True)):
            constant = b.buffer.space == CONSTANT if isinstance(b, Ref) else not plain(b)
            if constant and not (a is b or (isinstance(b, Ref) and a == b)):
                return None
            places[2 if constant else 0 if isinstance(b, Ref) else 1].append(i)
        made.append(_Recipe(before, now, *places))
    return made


def _with_constants(recipe: Sequence[_Recipe], old: Record | None, repeat: Repeat) -> list[AnyCall] | None:
    """The calls of a pattern over other buffers and with another node's constants, which are where that one's earlier record has
    them; None where it was called otherwise.
    """
    if old is None or len(old.calls) != len(recipe):
        return None
    made: list[AnyCall] = []
    for (before, now, refs, plains, constants), mine in zip(recipe, old.calls, strict=True):
        if not isinstance(mine, Call) or mine.kernel != now.kernel:
            return None
        args, theirs = list(now.args), mine.args
        for i in plains:
            if theirs[i] != before.args[i] or type(theirs[i]) is not type(before.args[i]):
                return None
        for i in constants:
            own, like = theirs[i], args[i]
            if type(own) is not type(like) or (isinstance(own, Ref) and (own.buffer.space, own[1:]) != (CONSTANT, like[1:])):
                return None
            args[i] = own
        for i in refs:
            args[i] = repeat.over(args[i])
        made.append(Call(now.kernel, tuple(args), now.node))
    return made


def repeated(
    builder: Builder,
    like: Pattern,
    placed: Placed,
    ins: Sequence[int],
    outs: Sequence[int],
    own: Mapping[int, Buffer],
    mine: Record | None,
) -> Record | None:
    """The record of a node of the pattern's kind, whose inputs have the same shapes and dtypes; sets where its results are. None,
    and nothing done, where its inputs are not as those of the pattern do.

    Args:
        builder: where values are.
        like: the pattern.
        placed: the node.
        ins: the values of its inputs; `outs`: and of its outputs.
        own: the buffers of its outputs in the earlier binding.
        mine: its record there.
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
    calls = None
    if like.recipe is not None:
        calls = _with_constants(like.recipe, mine, repeat)
        if calls is None:
            return None
    for number, old in zip(outs, like.outs, strict=True):
        if old is not None:
            refs[number] = repeat.over(old)
    overs = [(moved[b][0], moved[o][0]) for b, o in like.record.overs if b in moved and o in moved] if like.record.overs else ()
    record = Record(calls, (), overs, made, 0, placed, repeat if calls is None else None)
    record.refused = like.record.refused
    return record
