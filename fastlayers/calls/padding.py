"""Padding: one kernel, which pads three neighbouring axes; more axes take more calls, one after the other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from .._tuples import NamedTuple
from .machine import Machine

__all__ = ["Step", "pad", "steps"]


class Step(NamedTuple):
    """One call of the kernel: its operands' shapes, its pads, and the shape of the result."""

    x: tuple[int, ...]
    out: tuple[int, ...]
    pads: tuple[int, ...]
    shape: tuple[int, ...]


@lru_cache(256)
def steps(shape: tuple[int, ...], pairs: tuple[tuple[int, int], ...]) -> tuple[Step, ...]:
    """The calls that put so many entries before and after each axis of an array of this shape."""
    todo, found = [i for i, pair in enumerate(pairs) if any(pair)], []
    while todo:
        step, todo = _three(shape, pairs, todo)
        shape = step.shape
        found.append(step)
    return tuple(found)


def _three(x: tuple[int, ...], pairs: Sequence[tuple[int, int]], todo: list[int]) -> tuple[Step, list[int]]:
    """Pads the first axes of `todo` that one call can, and returns the others. Neighbours without pads are merged."""
    first = end = todo[0]
    sizes: list[int] = []
    pads: list[tuple[int, int]] = []
    for i in range(first, todo[-1] + 1):
        if i not in todo and pads[-1] == (0, 0):
            sizes[-1] *= x[i]
        elif len(sizes) < (3 if i in todo else 2):
            sizes.append(x[i])
            pads.append(pairs[i])
        else:
            break
        end = i + 1
    done = [i for i in todo if i < end]
    lead = 3 - len(sizes)
    sizes, pads = [1] * lead + sizes, [(0, 0)] * lead + pads
    outer, inner = math.prod(x[:first]), math.prod(x[end:])
    padded = [size + before + after for size, (before, after) in zip(sizes, pads, strict=True)]
    shape = tuple(size + sum(pairs[i]) if i in done else size for i, size in enumerate(x))
    step = Step((outer, *sizes, inner), (outer, *padded, inner), tuple(p for pair in pads for p in pair), shape)
    return step, todo[len(done) :]


def pad(m: Machine, x: Any, out: Any, found: Sequence[Step], mode: int, value: float) -> None:
    """Fills `out` by these steps; `mode`: a number of `PAD_MODES`."""
    *before, last = found
    for step in before:
        to = m.temp(step.shape)
        m.call("pad", m.view(x, step.x), m.view(to, step.out), step.pads, mode, value)
        x = to
    given, made, pads, _ = last
    m.call("pad", m.view(x, given), m.view(out, made), pads, mode, value)
