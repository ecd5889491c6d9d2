"""The calls of an `Elementwise` node as one step of the compiled engine, which passes over memory once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._tuples import NamedTuple
from ..kernels.table import BINARY
from ..operators import FLOAT32
from ..operators.builder import CONSTANT, AnyCall, Call, Ref

__all__ = ["MOST_INPUTS", "Merged", "merged"]

# Of a step; see kernels/aot/_elementwise.pyx, whose values of operations these are as well.
MOST_INPUTS, MOST_OPERATIONS, MOST_SLOTS = 14, 32, 12
UNARY, ARITHMETIC, WHERE, CAST = range(4)
# Fewer calls are as fast alone, where what they read and write is in the second-level cache and where it does not.
FEWEST_NEAR, FEWEST_FAR, FAR = 5, 3, 1 << 22
# By kernel: the kind, how many arrays it reads, and what `parameters` of the step are from its arguments after them.
_KINDS: dict[str, tuple[int, int, Callable[..., tuple[int, tuple[Any, ...]]]]] = {
    "unary": (UNARY, 1, lambda activation: (activation[0], tuple(activation[1:]))),
    "binary": (ARITHMETIC, 2, lambda op, activation: (op, tuple(activation))),
    "where": (WHERE, 3, lambda: (0, ())),
    "cast": (CAST, 1, lambda source, target: (0, (source, target))),
}
_MEMORY = 9.0  # operations that an element costs which is read from memory and written to it, of those that a kernel counts


class Merged(NamedTuple):
    """Arguments of `elementwise_step`, and the places of its operands."""

    refs: tuple[Ref, ...]
    arguments: tuple[Any, ...]


def merged(calls: Sequence[AnyCall], works: Callable[[Call], float]) -> Merged | None:
    """All of the calls as one step; None if they cannot be. The last one makes the result, the others values that nothing else
    reads. `works`: what a call costs alone.
    """
    last = calls[-1] if 1 < len(calls) <= MOST_OPERATIONS else None
    if not isinstance(last, Call) or last.kernel not in _KINDS:
        return None
    result: Ref = last.args[_KINDS[last.kernel][1]]
    maker = _Maker(result)
    for i, call in enumerate(calls):
        if not isinstance(call, Call) or not maker.add(call, i == len(calls) - 1):
            return None
    found = maker.done()
    if found is None or len(maker.inputs) > MOST_INPUTS:
        return None
    operations, slots = found
    moved = sum(ref.nbytes for ref in (*maker.inputs, result) if ref.size == result.size)
    if len(calls) < (FEWEST_FAR if moved >= FAR else FEWEST_NEAR):
        return None
    work = sum(works(call) for call in calls if isinstance(call, Call)) - _MEMORY * result.size * (len(calls) - 1)
    refs = tuple(maker.inputs)
    shapes, sizes = tuple(ref.shape for ref in refs), tuple(ref.dtype.itemsize for ref in refs)
    arguments = (shapes, sizes, result.shape, operations, slots, max(work, _MEMORY * result.size))
    return Merged((*refs, result), arguments)


class _Maker:
    """Numbers the values of calls; a value is known by its buffer, which may be written more than once."""

    def __init__(self, result: Ref) -> None:
        self.result = result
        self.inputs: dict[Ref, int] = {}
        self.made: dict[int, int] = {}  # the value that is in a buffer, by the buffer's number
        self.operations: list[tuple[int, int, list[int], tuple[Any, ...]]] = []  # of: values, or -1 - an input's number

    def add(self, call: Call, last: bool) -> bool:
        """Takes a call; False if it is none of those that can be merged."""
        kind = _KINDS.get(call.kernel)
        if kind is None:
            return False
        number, count, rest = kind
        *of, out = call.args[: count + 1]
        if any(ref is None for ref in of) or not self.alike(out) or (out.buffer.space == CONSTANT):
            return False
        values = [self.value(ref, out) for ref in of]
        if any(value is None for value in values):
            return False
        code, parameters = rest(*call.args[count + 1 :])
        if call.kernel == "binary" and code == BINARY["power"] and of[1].size not in (1, self.result.size):
            return False  # which function it is may depend on the exponents of a row
        if out.dtype != FLOAT32:
            return False
        whole = out.offset == 0 and out.nbytes == out.buffer.nbytes
        if not whole and not (last and out is self.result):
            return False
        self.made[out.buffer.number] = len(self.operations)
        self.operations.append((number, code, values, parameters))  # type: ignore[arg-type]
        return True

    def alike(self, ref: Ref) -> bool:
        """Whether a value has as many elements as the result, in the same order."""
        return ref.size == self.result.size

    def value(self, ref: Ref, out: Ref) -> int | None:
        """The number of a value that is read next to others of the shape of `out`; None if it cannot be told."""
        made = self.made.get(ref.buffer.number)
        if made is not None:
            return made if self.alike(ref) and ref.offset == 0 else None
        if ref.size not in (1, self.result.size) and _bare(out.shape) != _bare(self.result.shape):
            return None  # which elements it has depends on a shape that is not the result's
        if ref.size == self.result.size:
            ref = ref.view(self.result.shape)
        elif ref.size == 1:
            ref = ref.view(())
        return -1 - self.inputs.setdefault(ref, len(self.inputs))

    def done(self) -> tuple[tuple[Any, ...], int] | None:
        """The operations by slots, and the number of slots."""
        final = len(self.operations) - 1
        ends = {value: i for i, (_, _, of, _) in enumerate(self.operations) for value in of if value >= 0}
        if any(value not in ends for value in range(final)):
            return None  # a value that is not read here may be wanted elsewhere
        places: dict[int, int] = {}
        free: list[int] = []
        slots = 0
        found = []
        for i, (kind, code, of, parameters) in enumerate(self.operations):
            sources = tuple(places[value] if value >= 0 else value for value in of)
            to = -1
            if i != final:
                if free:
                    to = free.pop()
                else:
                    to, slots = slots, slots + 1
                places[i] = to
            free += [places[value] for value in dict.fromkeys(of) if value >= 0 and ends[value] == i]
            found.append((kind, code, to, sources, parameters))
        return None if slots > MOST_SLOTS else (tuple(found), slots)


def _bare(shape: Sequence[int]) -> tuple[int, ...]:
    """A shape without the axes of size 1 in front."""
    lead = next((i for i, size in enumerate(shape) if size != 1), len(shape))
    return tuple(shape[lead:])
