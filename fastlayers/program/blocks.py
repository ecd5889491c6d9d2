"""Blocks of nodes that a graph repeats with other weights, such as its layers: once sizes are bound for the first of them, the
others are copies of it. A copy is one chunk over other buffers; its nodes have no records of their own until one is asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._tuples import NamedTuple
from ..kernels.table import Activation
from ..operators import OPERATORS, Spec
from ..operators.builder import ARENA, CONSTANT, INPUT, Buffer, Builder, Call, Ref
from .trace import Placed, Record, Repeat, Route, Trace, plain

__all__ = ["Blocks", "Copies", "copies"]

LEAST = 6  # nodes of copies, or to look for them costs more than they save
CANDIDATES = 6  # periods that are tried
LOOKS = 8  # how often it is looked for what is alike in a region, whose nodes may be lowered otherwise at other sizes
MOST_COMPARED = 4096  # bytes of constants whose values decide how a node is lowered


class Region(NamedTuple):
    """Entries `start` and the following, `blocks` times `period` of them, and the numbers of values that they make, which begin
    at `first`: so many `values` for each block.

    `outside`: a value that the first block reads of those before it, and what the second block reads there, which is the same
    value, or one of the first block's; `asked`: values of the first block, whose likes others read than their own block.
    """

    start: int
    period: int
    blocks: int
    first: int
    values: int
    outside: tuple[tuple[int, int], ...]
    asked: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def copied(self) -> range:
        """Entries that are copies."""
        return range(self.start + self.period, self.start + self.period * self.blocks)


def regions(trace: Trace) -> list[Region]:
    """The regions of a trace's route, which do not overlap."""
    route = trace.route
    gaps: Counter[int] = Counter()
    last: dict[int, int] = {}
    for at, kind in enumerate(route.kinds):
        if kind >= 0:
            if kind in last:
                gaps[at - last[kind]] += 1
            last[kind] = at
    periods = sorted(gaps, key=lambda p: -p * gaps[p])[:CANDIDATES]
    found = [region for period in periods for region in _with_period(trace, period)]
    taken: set[int] = set()
    chosen = []
    for region in sorted(found, key=lambda r: -len(r.copied)):
        entries = range(region.start, region.copied.stop)
        if taken.isdisjoint(entries):
            taken.update(entries)
            chosen.append(region)
    return chosen


def _followed(route: Route, inside: Mapping[int, Region]) -> set[int]:
    """Entries after which others of their kind come, other than copies."""
    found: set[int] = set(inside)
    last: dict[int, int] = {}
    for at, kind in enumerate(route.kinds):
        if kind >= 0 and at not in inside:
            if kind in last:
                found.add(last[kind])
            last[kind] = at
    return found


def _with_period(trace: Trace, period: int) -> list[Region]:
    route, fixed, entries = trace.route, trace.fixed, trace.route.entries
    found = []
    begin = shift = -1
    for at in range(len(entries) - period + 1):
        alike = at < len(entries) - period and _pairs(route, fixed, at, period)
        step = _shift(route, at, period) if alike else -1
        same = alike and step > 0 and all(b in (a, a + step) for a, b in alike)
        if begin >= 0 and (not same or step != shift):
            made = _region(trace, begin, at, period, shift)
            if made is not None and len(made.copied) >= LEAST:
                found.append(made)
            begin = -1
        if same and begin < 0:
            begin, shift = at, step
    return found


def _shift(route: Route, at: int, period: int) -> int:
    """By how much the numbers of an entry's results differ from those of its like; -1 if it has none, or they do not."""
    pairs = zip(route.entries[at].outs, route.entries[at + period].outs, strict=True)
    steps = {b - a for a, b in pairs if a >= 0}
    return steps.pop() if len(steps) == 1 else -1


def _pairs(route: Route, fixed: Sequence[bool], at: int, period: int) -> list[tuple[int, int]] | None:
    """Values that an entry and its like read, without constants; None if they are not alike, or read none."""
    kinds = route.kinds
    if kinds[at] < 0 or kinds[at] != kinds[at + period] or at in route.counters or at + period in route.counters:
        return None
    pairs = []
    for a, b in zip(route.entries[at].ins, route.entries[at + period].ins, strict=True):
        if (a < 0) != (b < 0) or (a >= 0 and fixed[a] != fixed[b]):
            return None
        if a >= 0 and not fixed[a]:
            pairs.append((a, b))
    return pairs or None


def _region(trace: Trace, begin: int, end: int, period: int, shift: int) -> Region | None:
    """The region whose entries from `begin` to `end` have their likes one period later; it may begin before them, since its
    first block reads something else than the others do.
    """
    route, fixed, earliest = trace.route, trace.fixed, begin
    for at in range(begin - 1, max(begin - period, 0) - 1, -1):
        record = trace.records[at]
        if (record is not None and record.refused) or not _pairs(route, fixed, at, period) or _shift(route, at, period) != shift:
            break
        earliest = at
    for start in sorted({earliest, begin}):
        count = (end + period - start) // period
        made = [n for entry in route.entries[start : start + period] for n in entry.outs if n >= 0]
        first = min(made)
        if count < 2 or max(made) >= first + shift:
            continue
        outside: dict[int, int] = {}
        good = True
        for at in range(start, start + period * (count - 1)):
            for a, b in _pairs(route, fixed, at, period) or ((0, -1),):
                if b == a + shift and a >= first:
                    continue
                if at < start + period:
                    good = good and a < first and (b == a or first <= b < first + shift) and outside.setdefault(a, b) == b
                else:
                    good = good and a == b < first
        if good:
            stop, values = start + period * count, range(first + shift, first + shift * count)
            asked = {b for a, b in outside.items() if a != b}
            results = set(route.outputs)
            after = [n for n in values if n in results or any(reader >= stop for reader in route.readers.get(n, ()))]
            asked |= {first + (n - first) % shift for n in after}
            return Region(start, period, count, first, shift, tuple(outside.items()), tuple(sorted(asked)), tuple(after))
    return None


class Likeness(NamedTuple):
    """Constants, in which the blocks of a region differ whatever the sizes. `first`: of every entry of the first block
    those of its calls that are no arrays, by call and argument; None of an entry without calls. Of every copy: `others`, in the
    same order; `addresses` of arrays, by those of the first block, and what `keeps` them.
    """

    first: list[list[tuple[int, int, Any]] | None]
    others: list[list[list[Any]]]
    addresses: list[dict[int, int]]
    keeps: list[list[Any]]


def _packed(record: Record | None, addresses: Mapping[int, int] | None = None) -> list[tuple[int, int, Any]] | None:
    """The arguments of a record's calls that are neither arrays nor plain; None if its calls cannot be copied. `addresses`: of
    all constants that another block's are known of; sizes may bring others.
    """
    if record is None:
        return []
    if record.effects or record.nbytes:
        return None
    found = []
    for c, call in enumerate(record.calls):
        if not isinstance(call, Call):
            return None
        for i, arg in enumerate(call.args):
            if isinstance(arg, Ref):
                space = arg.buffer.space
                if space not in (ARENA, INPUT, CONSTANT):
                    return None
                if addresses is not None and space == CONSTANT and _address(arg) not in addresses:
                    return None
            elif type(arg) not in _PLAIN and not plain(arg):
                found.append((c, i, arg))
    return found


_PLAIN = frozenset({bool, int, float, type(None), Activation})  # most of what is plain


def _address(ref: Ref) -> int:
    return int(ref.buffer.array.__array_interface__["data"][0]) + ref.offset  # type: ignore[union-attr]


def likeness(
    region: Region,
    route: Route,
    specs: Sequence[Spec],
    known: Sequence[np.ndarray | None],
    fixed: Sequence[bool],
    records: Sequence[Record | None],
) -> Likeness | None:
    """Finds the constants in which the blocks of a region differ as it is bound; None if more differs."""
    made = Likeness([], [], [], [])
    start, period = region.start, region.period
    for at in range(start, start + period):
        made.first.append(_packed(records[at]))
        if made.first[-1] is None:
            return None
    for k in range(1, region.blocks):
        others: list[list[Any]] = []
        addresses: dict[int, int] = {}
        keeps: list[Any] = []
        for at, packed in zip(range(start, start + period), made.first, strict=True):
            like = at + k * period
            theirs = _compared(records[at], records[like], addresses, keeps)
            if theirs is None or len(theirs) != len(packed or ()):
                return None
            others.append(theirs)
            by_sizes = OPERATORS[route.entries[at].node.op].traits.by_sizes
            for a, b in zip(route.entries[at].ins, route.entries[like].ins, strict=True):
                if a >= 0 and fixed[a] and not (specs[a] == specs[b] and (by_sizes or _same(known[a], known[b]))):
                    return None
        made.others.append(others)
        made.addresses.append(addresses)
        made.keeps.append(keeps)
    return made


def _same(a: np.ndarray | None, b: np.ndarray | None) -> bool:
    return a is b or (a is not None and b is not None and a.nbytes <= MOST_COMPARED and a.tobytes() == b.tobytes())


def _compared(first: Record | None, other: Record | None, addresses: dict[int, int], keeps: list[Any]) -> list[Any] | None:
    """The constants of another record that are no arrays; None if more differs. Adds those that are to `addresses`, `keeps`."""
    if first is None or other is None:
        return [] if first is other else None
    if _packed(other) is None or len(first.calls) != len(other.calls):
        return None
    found = []
    for mine, theirs in zip(first.calls, other.calls, strict=True):
        if not isinstance(mine, Call) or not isinstance(theirs, Call) or mine.kernel != theirs.kernel:
            return None
        for a, b in zip(mine.args, theirs.args, strict=True):
            if type(a) is not type(b):
                return None
            if isinstance(a, Ref):
                if a[1:] != b[1:] or (a.buffer.space == CONSTANT) != (b.buffer.space == CONSTANT):
                    return None
                if a.buffer.space == CONSTANT:
                    if a.buffer.nbytes != b.buffer.nbytes or addresses.setdefault(_address(a), _address(b)) != _address(b):
                        return None
                    keeps += a.buffer.array, b.buffer.array  # both: the address of what is gone may be another's
            elif plain(a):
                if a != b:
                    return None
            else:
                found.append(b)
    return found


class Blocks:
    """The regions of a route, what is alike in them, and how often that was looked for. May be used from any number of threads
    at once.
    """

    def __init__(self, trace: Trace) -> None:
        self.regions = regions(trace)
        self.inside = {at: region for region in self.regions for at in region.copied}
        self.followed = _followed(trace.route, self.inside)
        self.likes: dict[Region, Likeness | None] = {}
        self._looks = dict.fromkeys(self.regions, LOOKS)

    def learn(self, trace: Trace) -> None:
        """Finds what is alike in regions that were not copied."""
        copied = [made.region for made in trace.copies]
        for region in self.regions:
            if region not in copied and self._looks[region]:
                self._looks[region] -= 1
                self.likes[region] = likeness(region, trace.route, trace.specs, trace.known, trace.fixed, trace.records)


class Copies:
    """The copies of the first block of a region, bound to the same sizes.

    Args:
        region: where they are; `like`: what differs.
        records: of the first block.
        moved: of every copy the buffers that others than it know, by those of the first block: (buffer, bytes further on).
    """

    def __init__(
        self, region: Region, like: Likeness, records: list[Record | None], moved: list[dict[Buffer, tuple[Buffer, int]]]
    ) -> None:
        self.region, self.like, self.records, self.moved = region, like, records, moved
        self.chunks: list[Any] | None = None

    def record(self, k: int, moved: Mapping[Buffer, tuple[Buffer, int]], offset: int, placed: Placed) -> Record:
        """The record of an entry of copy `k`, over these buffers."""
        first = self.records[offset]
        assert first is not None
        over, addresses = Repeat(first, moved).over, self.like.addresses[k]
        arrays = {_start(array): array for array in self.like.keeps[k]}
        packed = iter(self.like.others[k][offset])
        calls = []
        for call in first.calls:
            args = []
            for arg in call.args:  # type: ignore[union-attr]
                if not isinstance(arg, Ref):
                    args.append(arg if plain(arg) else next(packed))
                elif arg.buffer.space != CONSTANT:
                    args.append(over(arg))
                else:
                    array = arrays[addresses[_address(arg)] - arg.offset]
                    args.append(arg._replace(buffer=Buffer(CONSTANT, array.nbytes, array=array)))
            calls.append(Call(call.kernel, tuple(args), call.node))  # type: ignore[union-attr]
        overs = [(moved[a][0], moved[b][0]) for a, b in first.overs]
        return Record(calls, (), overs, {i: moved[buffer][0] for i, buffer in first.own.items()}, 0, placed)

    def expand(self, route: Route, records: list[Record | None], refs: dict[int, Ref]) -> None:
        """Gives every entry its record, and its values their places."""
        region = self.region
        used: dict[Buffer, None] = {}
        for record in self.records:
            if record is not None:
                used |= dict.fromkeys(record.own.values())
                used |= dict.fromkeys(b for pair in record.overs for b in pair)
                used |= dict.fromkeys(a.buffer for c in record.calls for a in c.args if isinstance(a, Ref))  # type: ignore[union-attr]
        for k, known in enumerate(self.moved):
            moved = dict(known)
            for buffer in used:
                if buffer.space == ARENA and buffer not in moved:
                    moved[buffer] = _another(buffer)
            for offset, first in enumerate(self.records):
                at = region.start + offset
                entry = route.entries[at + (k + 1) * region.period]
                if first is not None:
                    _, *sizes = first.placed  # type: ignore[misc]
                    records[at + (k + 1) * region.period] = self.record(k, moved, offset, Placed(entry.node, *sizes))
                for n in route.entries[at].outs:
                    if n in refs:
                        refs[n + (k + 1) * region.values] = Repeat(first, moved).over(refs[n])  # type: ignore[arg-type]


def _start(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def _another(buffer: Buffer) -> tuple[Buffer, int]:
    made = Buffer(ARENA, buffer.nbytes)
    made.made = buffer.made
    return made, 0


def copies(
    region: Region,
    like: Likeness,
    builder: Builder,
    specs: list[Spec],
    known: list[np.ndarray | None],
    records: list[Record | None],
) -> Copies | None:
    """Binds the copies of a region's first block, which is bound: writes their specs, values and refs, and takes their records
    off. None, and nothing done, where they are no copies of it now.
    """
    start, period, count, first, values, outside, asked, _ = region
    block = records[start : start + period]
    for record, packed in zip(block, like.first, strict=True):
        found = _packed(record, like.addresses[0])
        if found is None or len(found) != len(packed or ()):
            return None
        for (c, i, mine), (call, at, theirs) in zip(found, packed or (), strict=True):
            if c != call or i != at or mine is not theirs:
                return None
    refs, parents = builder.refs, builder.parents
    given: dict[Buffer, tuple[Buffer, int]] = {}
    for a, b in outside:
        if specs[a] != specs[b] or not _same(known[a], known[b]):
            return None
        if known[a] is not None:
            continue
        ref, to = refs.get(a), refs.get(b)
        if ref is None or to is None:
            return None
        was, now, shift = ref.buffer, to.buffer, to.offset - ref.offset
        if given.setdefault(was, (now, shift)) != (now, shift):
            return None
        if was is now:
            continue
        # An input that was offered to a result as memory was not taken, and another value might be.
        same = was.space == now.space == ARENA and was.made == now.made
        taken = was.space == INPUT and now.space == ARENA and not any(r is not None and r.refused for r in block)
        if not (same or taken) or was.nbytes != now.nbytes or was.number in parents or now.number in parents:
            return None
    own = [(n, refs[n]) for n in asked if known[n] is None]
    if len({buffer for buffer, _ in given.values()}) < len(given) or any(
        ref.buffer.space != ARENA or ref.buffer.number in parents for _, ref in own
    ):
        return None
    moved: list[dict[Buffer, tuple[Buffer, int]]] = []
    for _ in range(1, count):
        table = dict(given)
        if moved:
            for was, (now, shift) in given.items():
                if was is not now:
                    if now not in moved[-1]:
                        return None
                    buffer, more = moved[-1][now]
                    table[was] = buffer, shift + more
        for _, ref in own:
            if ref.buffer not in table:
                table[ref.buffer] = _another(ref.buffer)
        moved.append(table)
    copied = region.copied
    earlier = records[copied.start : copied.stop]
    if any(earlier):
        if any(record is not None and record.effects for record in earlier):
            return None
        records[copied.start : copied.stop] = [None] * len(copied)
        for n in range(first + values, first + count * values):
            refs.pop(n, None)
    low, high, end = first, first + values, first + count * values
    specs[high:end], known[high:end] = specs[low:high] * (count - 1), known[low:high] * (count - 1)
    for n, ref in own:
        for table in moved:
            n += values
            buffer, shift = table[ref.buffer]
            refs[n] = Ref(buffer, ref.offset + shift, ref.shape, ref.dtype)
    return Copies(region, like, block, moved)
