"""Programs whose every value is alone, before or after a page that nobody may touch.

In a program's arena a step that reads or writes past its value meets a neighbour, and nobody notices. Within `guard(edge)` every
program that is bound for the compiled engine has pages of its own for each value of the arena, constant, input and output.
Between its steps stand fences, steps themselves: they open to a step what its call names, for reading alone unless it is a
result, and close all the rest. So these end the process or fail the run:
- an access past a value's end ("end": its last byte touches a forbidden page, and its start is aligned to its items alone, as a
  caller's arrays may be) or before its start ("start"),
- one to a value before its first use or after its last, or that the call does not name,
- a write to what is only read, and to what is left of a value's page.
What nobody wrote is 0xFF, which is NaN. Before the planner's places are given up, `check_layout` looks at them.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import struct
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from fastlayers.kernels.table import KERNELS
from fastlayers.operators.builder import ARENA, CONSTANT, COUNTER, INPUT, OUTPUT, Buffer, Call, Ref
from fastlayers.program import binder, compiled, segment
from fastlayers.program.trace import Record

__all__ = ["ALIGN", "Region", "Seen", "check_layout", "guard", "uses"]

ALIGN = 64  # of places in the arena
_PAGE = mmap.PAGESIZE
_NONE, _READ, _WRITE = 0, 1, 3
_FILL, _CANARY = 0xFF, 0xA5
_RESULTS = {k.name: {i for i, name in enumerate(k.arguments) if name.split("__")[0] in k.results} for k in KERNELS}
# Where the call that runs is written to, for who looks for the reason of a crash.
_LOG = os.open(os.environ["FASTLAYERS_GUARD_LOG"], os.O_WRONLY | os.O_CREAT) if "FASTLAYERS_GUARD_LOG" in os.environ else 0
_FENCE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


class Region:
    """Bytes that end ("end") or begin ("start") at a forbidden page, on pages that can be closed."""

    filled = False  # by whoever made it: no step writes it first
    space = ARENA

    def __init__(self, nbytes: int, edge: str) -> None:
        pages = -(-max(nbytes, 1) // _PAGE)
        self._map = mmap.mmap(-1, (pages + 2) * _PAGE)
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._at = ctypes.addressof(ctypes.c_char.from_buffer(self._map)) + _PAGE
        self._size, self._now = pages * _PAGE, _WRITE
        whole = np.frombuffer(self._map, np.uint8, self._size, _PAGE)
        start = 0 if edge == "start" else self._size - nbytes
        self.data = whole[start : start + nbytes]
        self._slack = whole[nbytes:] if edge == "start" else whole[:start]
        self.data.fill(_FILL)
        self._slack.fill(_CANARY)
        for forbidden in (self._at - _PAGE, self._at + self._size):
            self._protect(forbidden, _PAGE, _NONE)

    def _protect(self, address: int, size: int, what: int) -> None:
        if self._libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), what):
            raise OSError(ctypes.get_errno(), "mprotect failed")

    def open(self, what: int = _WRITE) -> None:
        if what != self._now:
            self._protect(self._at, self._size, what)
            self._now = what

    def intact(self) -> bool:
        """Whether nobody wrote next to the value; the region is open."""
        return bool((self._slack == _CANARY).all())


def uses(call: Any) -> list[tuple[Ref, bool]]:
    """The arrays that a call names, and whether it writes them."""
    if isinstance(call, Call):
        results = _RESULTS[call.kernel]
        return [(a, i in results) for i, a in enumerate(call.args) if isinstance(a, Ref)]
    return [(r, False) for r in call.inputs if r is not None] + [(r, True) for r in call.outputs if r is not None]


def check_layout(calls: Sequence[Any], size: int) -> None:
    """Whether no two values of the arena that are needed at once share memory, and each array is within its value.

    A value is needed from the first to the last call that names it. Two may meet in one call only if what begins there was said
    to take the place of what ends there, and is of its size.
    """
    spans: dict[int, list[Any]] = {}
    for number, call in enumerate(calls):
        for ref, _ in uses(call):
            root, offset = ref.buffer.root()
            assert offset + ref.offset >= 0 and offset + ref.offset + ref.nbytes <= root.nbytes, (call, ref)
            if root.space == ARENA:
                spans.setdefault(id(root), [root, number, number])[2] = number
    heirs: dict[int, Buffer] = {}
    found = sorted(spans.values(), key=lambda span: span[0].offset)
    for i, (a, first, last) in enumerate(found):
        assert a.offset % ALIGN == 0 and a.offset >= 0 and a.offset + a.nbytes <= size, a
        for b, begin, end in found[i + 1 :]:
            if b.offset >= a.offset + max(a.nbytes, 1):
                break
            if last < begin or end < first:
                continue
            old, new = (a, b) if begin == last else (b, a)
            meets = (begin == last or first == end) and (new.over, new.offset, new.nbytes) == (old, old.offset, old.nbytes)
            assert meets, (
                f"values of {a.nbytes} and {b.nbytes} bytes are at {a.offset} and {b.offset} "
                f"and are needed from call {first} to {last} and from {begin} to {end}"
            )
            assert heirs.setdefault(id(old), new) is new, "two values take the place of one"


def _bytes(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(np.uint8)


class _Bound:
    """A bound program with fences between its steps; one run at a time."""

    code = None  # it is no body of a branch or a loop: these run in stages here

    def __init__(
        self, plan: Any, edge: str, steps: Any, inputs: int, most: int, rounds: int, ledger: Any, counted: tuple[Any, ...]
    ) -> None:
        from fastlayers.kernels.aot._plan import Chunk
        from fastlayers.kernels.aot._step import foreign_step
        from fastlayers.kernels.aot.run import Bound

        regions = _alone(plan.calls, edge)
        specs = plan.outputs
        self.specs, self.out_specs, self.lock, self.failure = specs, tuple(specs), threading.RLock(), ""
        self.counted, self.counting = counted, any(counted)
        self.counters: dict[int, Region] = {}
        self.calls, self.regions, self.used = plan.calls, set(regions.values()), 0
        nothing = Region(0, edge)
        self.given, self.made = [nothing] * inputs, [nothing] * len(specs)
        self.named: list[dict[Region, bool]] = []
        self.fresh: list[list[Region]] = []
        seen: set[Region] = set()
        for call in plan.calls:
            named: dict[Region, bool] = {}
            for ref, written in uses(call):
                root = ref.buffer.root()[0]
                region = regions[id(root)]
                named[region] = named.get(region, False) or written
                if region.space in (INPUT, OUTPUT):
                    (self.given if region.space == INPUT else self.made)[root.index] = region
                elif region.space == COUNTER:
                    self.counters[root.index] = region
            self.named.append(named)
            self.fresh.append([r for r in named if not r.filled and r not in seen])
            seen.update(named)
        function = _FENCE(self._fence)
        address = ctypes.cast(function, ctypes.c_void_p).value
        fenced: list[Any] = []
        make = compiled.Chunks(steps, inputs, len(specs), ledger)
        for number, call in enumerate([*plan.calls, None]):
            fence = foreign_step(address, struct.pack("q", number), 0, 0.0, function)
            fenced.append(Chunk([(fence, ())], [], None, ledger, 0))
            if call is not None:
                fenced.append(make(Record([call], [], [], {}, 0, None)))
        self.bound = Bound(fenced, 0, (), most, ledger, 0, rounds, ())
        self.inputs, self.outputs, self.work, self.longest = inputs, len(specs), self.bound.work, self.bound.longest
        self.arena = plan.arena

    def _fence(self, plan: int, operands: int) -> int:
        number = ctypes.cast(plan, ctypes.POINTER(ctypes.c_int64))[0]
        if number:
            for region in self.named[number - 1]:
                if not region.intact():
                    self.failure = f"bytes next to a value were written by or before {self.calls[number - 1]}"
                region.open(_NONE)
        if number < len(self.named):
            for region in self.fresh[number]:
                region.open(_WRITE)
                region.data.fill(_FILL)
            for region, written in self.named[number].items():
                region.open(_WRITE if written else _READ)
            if _LOG:
                os.pwrite(_LOG, str(self.calls[number]).encode()[:4000].ljust(4000), 0)
        return -1 if self.failure else 0

    def run(self, inputs: list[Any], outputs: Any = None, threads: int = 0, meter: Any = None) -> Any:
        """As `Bound.run`."""
        with self.lock:
            for region in self.regions:
                region.open(_NONE)
            for region, array in zip(self.given, inputs, strict=True):
                if region in self.regions:
                    region.open(_WRITE)
                    region.data[:] = _bytes(array)
                    region.open(_NONE)
            try:
                self.bound.run([], [], threads)
            finally:
                assert not self.failure, self.failure
            if outputs is None:
                outputs = tuple(np.empty(shape, dtype) for shape, dtype in self.specs)
            for region, array in zip(self.made, outputs, strict=True):
                region.open(_READ)
                _bytes(array)[:] = region.data
            return tuple(map(self._cut, outputs, self.counted)) if self.counting else outputs

    def _cut(self, array: np.ndarray, counted: tuple[int, int] | None) -> np.ndarray:
        """As `Bound.cut`, of one result."""
        if counted is None:
            return array
        axis, counter = counted
        region = self.counters[counter]
        region.open(_READ)
        shape = [*array.shape]
        shape[axis] = int(region.data.view(np.int64)[0])
        return array.reshape(-1)[: math.prod(shape)].reshape(shape)

    def profile(self, inputs: list[Any], repeat: int) -> np.ndarray:
        """As `Bound.profile`, of what is no fence."""
        with self.lock:
            return np.asarray(self.bound.profile([], repeat))[:, 1::2]

    def touch(self) -> None:
        """As `Bound.touch`."""


def _alone(calls: Sequence[Any], edge: str) -> dict[int, Region]:
    """Gives every value a region of its own, which calls name as a constant."""
    regions: dict[int, Region] = {}
    places: dict[int, tuple[Buffer, Region, int]] = {}
    for call in calls:
        for ref, _ in uses(call):
            root, offset = ref.buffer.root()
            region = regions.get(id(root))
            if region is None:
                region = regions[id(root)] = Region(root.nbytes, edge)
                region.space = root.space
                if root.space == CONSTANT:
                    region.data[:] = _bytes(root.array)
                    region.open(_READ)
                region.filled = root.space in (CONSTANT, INPUT)
            places[id(ref.buffer)] = ref.buffer, region, offset
    for buffer, region, offset in places.values():
        buffer.space, buffer.array = CONSTANT, region.data[offset:]
    return regions


class Seen:
    """What ran under a guard: how often each kernel, and bound programs."""

    def __init__(self) -> None:
        self.kernels: Counter[str] = Counter()
        self.programs = 0


@contextmanager
def guard(edge: str) -> Iterator[Seen]:
    """Programs that are bound meanwhile are guarded; they may run later."""
    from fastlayers.kernels.aot import run

    seen = Seen()
    before = segment.bound, segment.rebind, run.Runner

    def fenced(trace: Any, steps: Any, inputs: int, most: int, rounds: int, ledger: Any, *rest: Any) -> _Bound:
        plan = binder.plan(trace)
        check_layout(plan.calls, plan.arena)
        seen.programs += 1
        seen.kernels.update(call.kernel for call in plan.calls if isinstance(call, Call))
        counted = tuple([trace.route.counted.get(number) for number in trace.route.outputs])
        return _Bound(plan, edge, steps, inputs, most, rounds, ledger, counted)

    # Each binding is made again: what a guard does to its buffers no other one may see.
    segment.bound, segment.rebind, run.Runner = fenced, lambda *_: None, lambda *_: None
    try:
        yield seen
    finally:
        segment.bound, segment.rebind, run.Runner = before
