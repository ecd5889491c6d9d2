"""Bindings for the compiled engine: each record's calls become a chunk, once, and chunks a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..operators.builder import (
    ARENA,
    COUNTER,
    INPUT,
    OUTPUT,
    POSITIONS,
    AnyCall,
    Buffer,
    Call,
    NativeCall,
    NestedCall,
    PythonCall,
    Ref,
    numbers,
)  # fmt: skip
from .trace import Record, Trace

if TYPE_CHECKING:
    from .blocks import Copies

__all__ = ["Chunks", "bound", "native"]

MOST_OPERANDS = 16  # of a compiled step
USERS_WORK = 2e6  # what a user's function costs is unknown: enough for the GIL to be given up
_FIRST = 2  # spaces of kernels.aot.run: arena, constants, then inputs, outputs and the counters
_INTO, _OVER, _OUTPUT = range(3)  # links of kernels.aot._plan

Steps = Mapping[str, Callable[..., Any]]


def native(call: AnyCall) -> AnyCall:
    """A NumPy fallback as a call of a C function, where there is one."""
    if isinstance(call, PythonCall) and call.native is not None and len(call.inputs) + len(call.outputs) <= MOST_OPERANDS:
        compiled = call.native()
        if compiled is not None:
            return NativeCall(call, compiled)
    return call


def bound(
    trace: Trace,
    steps: Steps,
    inputs: int,
    most: int,
    rounds: int,
    ledger: Any,
    nbytes: int,
    between: Callable[[], object] = bool,
) -> Any:
    """The trace as the compiled engine runs it. `most` bytes may a run take, and so many `rounds` its loops; `ledger` counts the
    bytes that this takes, and `nbytes` besides; `between` is called after each node.
    """
    from ..kernels.aot.run import Bound

    make = Chunks(steps, inputs, len(trace.outputs), ledger)
    chunks = []
    copies = {made.region.copied.start: made for made in trace.copies}
    for at in range(len(trace.records)):
        made = copies.get(at)
        if made is not None:
            copied = make.copies(made, between)
            if copied is None:
                trace.expand(made)
            else:
                chunks += copied
        record = trace.records[at]
        if record is not None:
            if record.chunk is None:
                record.chunk = make.repeated(record) or make(record)
                between()
            chunks.append(record.chunk)
    chunks.append(make(trace.last, [(_OUTPUT, number, i, 0) for number, i in trace.ends.items()]))
    between()
    counted = tuple([trace.route.counted.get(number) for number in trace.route.outputs])
    return Bound(chunks, inputs, tuple(trace.outputs), most, ledger, nbytes, rounds, counted)


def _rows(moved: Mapping[Buffer, tuple[Buffer, int]]) -> list[tuple[int, int, int, int]]:
    """Rows of a table that says to chunks which buffers take the place of which."""
    return [
        (
            was.number if was.space == ARENA else -_FIRST - was.index,
            to.number if to.space == ARENA else -1,
            0 if to.space == ARENA else _FIRST + to.index,
            shift,
        )
        for was, (to, shift) in moved.items()
    ]


class Chunks:
    """Makes chunks of records. Steps of the same kernel and arguments are made once."""

    def __init__(self, steps: Steps, inputs: int, outputs: int, ledger: Any) -> None:
        from ..kernels.aot import Chunk

        self.make, self.steps, self.ledger = Chunk, steps, ledger
        self.outputs = _FIRST + inputs
        self.counters = self.outputs + outputs
        self.made: dict[Any, Any] = {}

    def repeated(self, record: Record) -> Any:
        """A record's calls made of those that it repeats; None if it repeats none, or those are not made."""
        if record.repeat is None or record.repeat.of.chunk is None:
            return None
        return self.make.repeated([record.repeat.of.chunk], _rows(record.repeat.moved), numbers, None, {}, record.repeat.of.chunk)

    def copies(self, made: Copies, between: Callable[[], object]) -> list[Any] | None:
        """A chunk for each of these copies, of those of the block that they are of; None if they cannot be made. `between` is
        called after each.
        """
        if made.chunks is None:
            like, chunks, at = made.like, [], 0
            packed: list[tuple[int, Any, list[Any], list[tuple[int, int, int]]]] = []  # steps: where, makers, what is another's
            for offset, record in enumerate(made.records):
                if record is None:
                    continue
                own: dict[int, list[tuple[int, int, int]]] = {}
                for which, (c, i, _) in enumerate(like.first[offset] or ()):
                    own.setdefault(c, []).append((i, offset, which))
                if own and record.chunk.count != len(record.calls):
                    return None
                for c, others in own.items():
                    kernel, args, _ = record.calls[c]  # type: ignore[misc]
                    packed.append((at + c, self.steps[kernel], [a.shape if isinstance(a, Ref) else a for a in args], others))
                at += record.chunk.count
                chunks.append(record.chunk)
            found = []
            for other, addresses, keeps, moved in zip(like.others, like.addresses, like.keeps, made.moved, strict=True):
                steps = {}
                for where, step, args, places in packed:
                    for i, offset, which in places:
                        args[i] = other[offset][which]
                    steps[where] = step(*args)
                try:
                    chunk = self.make.repeated(chunks, _rows(moved), numbers, addresses, steps, keeps)
                except KeyError:  # an array that is none of what the blocks differ in
                    return None
                if chunk is None:
                    return None
                found.append(chunk)
                between()
            made.chunks = found
        return made.chunks

    def __call__(self, record: Record, ends: Sequence[tuple[int, int, int, int]] = ()) -> Any:
        """A record's calls; `ends` are links to outputs."""
        calls = []
        keep: list[Any] = []
        one = self.merged(record)
        # Where calls became one, the values between them have no memory.
        there = None if one is None else {ref.buffer for ref in one[1]}
        overs = [pair for pair in record.overs if there is None or there.issuperset(pair)]
        for step, refs in [one] if one is not None else map(self.step, record.calls):
            places: list[tuple[int, int, int, int] | None] = []
            for ref in refs:
                if ref is None:
                    places.append(None)
                    continue
                buffer, offset = ref.buffer, ref.offset
                space = buffer.space
                if space == ARENA:
                    places.append((0, buffer.number, buffer.nbytes, offset))
                elif space == INPUT:
                    places.append((_FIRST + buffer.index, -1, 0, offset))
                elif space == OUTPUT:
                    places.append((self.outputs + buffer.index, -1, 0, offset))
                elif space == COUNTER:
                    places.append((self.counters, -1, 0, 8 * buffer.index))
                else:
                    keep.append(buffer.array)
                    places.append((1, -1, 0, buffer.array.__array_interface__["data"][0] + offset))
            calls.append((step, places))
        links = [(_INTO, part.number, whole.number, offset) for part, whole, offset in record.effects]
        links += [(_OVER, buffer.number, other.number, 0) for buffer, other in overs]
        return self.make(calls, [*links, *ends], keep, self.ledger, record.nbytes)

    def step(self, call: AnyCall) -> tuple[Any, Sequence[Any]]:
        """A call's step, and where its operands are."""
        if isinstance(call, NestedCall):
            return call.step, (*call.inputs, *call.outputs)
        if not isinstance(call, Call):
            return _users(call), (*call.inputs, *call.outputs)
        kernel, args, _ = call
        key = (kernel, *[a.shape if isinstance(a, Ref) else a for a in args])
        refs: Sequence[Any] = [args[i] for i in POSITIONS[kernel]]
        try:
            step = self.made.get(key)
        except TypeError:  # an argument has no hash
            return self.steps[kernel](*key[1:]), refs
        if step is None:
            step = self.made[key] = self.steps[kernel](*key[1:])
        return step, refs

    def merged(self, record: Record) -> tuple[Any, Sequence[Any]] | None:
        """The one step of a record of elementwise calls, and where its operands are; None if there is none."""
        if record.placed is None or record.placed.node.op != "Elementwise" or record.effects:
            return None
        from .merged import merged

        found = merged(record.calls, lambda call: float(self.step(call)[0].work))
        if found is None:
            return None
        key = ("Elementwise", found.arguments)
        if key not in self.made:
            from ..kernels.aot import elementwise_step

            self.made[key] = elementwise_step(*found.arguments)
        step = self.made[key]
        return None if step is None else (step, found.refs)


def _users(call: PythonCall | NativeCall) -> Any:
    """A step of a numpy function, or of the C function that does the same."""
    from ..kernels.aot import PythonStep, UsersStep, foreign_step
    from . import plain

    specs = [tuple(None if r is None else (r.shape, r.dtype) for r in group) for group in (call.inputs, call.outputs)]
    step = PythonStep(call.function, plain.store, *specs)
    if not isinstance(call, NativeCall):
        return step
    sizes = np.array([d for r in (*call.inputs, *call.outputs) for d in r.shape], np.int64)  # type: ignore[union-attr]
    operands = len(call.inputs) + len(call.outputs)
    return UsersStep(foreign_step(call.compiled.address, sizes.tobytes(), operands, USERS_WORK, call), step)
