"""One block of memory for everything that lives within a run: each buffer gets an offset, and those that never live at once
share memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..operators.builder import ARENA, AnyCall, Buffer, Call, Ref

__all__ = ["layout"]

ALIGN = 64


def layout(calls: Sequence[AnyCall]) -> int:
    """Sets the offset of every buffer of the arena that `calls` use; returns the size of the arena in bytes."""
    starts: dict[int, list[Buffer]] = {}
    ends: dict[int, list[Buffer]] = {}
    seen: set[int] = set()
    for call in calls:
        for ref in call.args if isinstance(call, Call) else (*call.inputs, *call.outputs):
            if isinstance(ref, Ref):
                buffer = ref.buffer.root()[0]
                if buffer.space == ARENA and id(buffer) not in seen:
                    seen.add(id(buffer))
                    starts.setdefault(buffer.first, []).append(buffer)
                    ends.setdefault(buffer.last, []).append(buffer)
    free: list[list[int]] = []  # [offset, size], by offset
    top = 0
    taken: set[int] = set()  # buffers whose place another one has taken over
    for number in range(len(calls)):
        for buffer in starts.get(number, ()):
            size = -(-max(buffer.nbytes, 1) // ALIGN) * ALIGN
            old = buffer.over
            free_then = old is not None and old.parent is None and old.last == number and id(old) in seen and id(old) not in taken
            if old is not None and free_then and -(-max(old.nbytes, 1) // ALIGN) * ALIGN == size:
                buffer.offset = old.offset
                taken.add(id(old))
                continue
            best = min((hole for hole in free if hole[1] >= size), key=lambda hole: hole[1], default=None)
            if best is not None:
                buffer.offset = best[0]
                best[0] += size
                best[1] -= size
                if not best[1]:
                    free.remove(best)
            elif free and free[-1][0] + free[-1][1] == top:
                buffer.offset = free.pop()[0]  # the last hole grows
                top = buffer.offset + size
            else:
                buffer.offset = top
                top += size
        for buffer in ends.get(number, ()):
            if id(buffer) not in taken:
                _give_back(free, buffer.offset, -(-max(buffer.nbytes, 1) // ALIGN) * ALIGN)
    return top


def _give_back(free: list[list[int]], offset: int, size: int) -> None:
    at = next((i for i, hole in enumerate(free) if hole[0] > offset), len(free))
    if at < len(free) and offset + size == free[at][0]:
        size += free.pop(at)[1]
    if at and free[at - 1][0] + free[at - 1][1] == offset:
        free[at - 1][1] += size
    else:
        free.insert(at, [offset, size])
