"""Decoders' caches in memory that has room for more: what a model appends to where it is, if the caller gives it back.

The results of a call with a cache are views of such memory. What the model knows of it goes by the identity of the views, and is
taken out by the call that they are given to: a later call with the same views, or with older ones, finds nothing, and makes a
copy. So a result never changes, in whatever order callers go on.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import Error, LimitError
from ..ir.graph import Graph
from ..program import Program
from ..program.caches import Caches, find
from ..program.segment import Segment
from . import feeds

__all__ = ["Growing", "growing"]

ROUND = 64  # keys: capacities are multiples of it


class _Memory:
    """Caches with room for `capacity` keys, the views that the last call has returned, and the keys that each entry has."""

    def __init__(self, shapes: Sequence[tuple[int, int, int, int]], capacity: int) -> None:
        self.capacity = capacity
        self.parts = [np.zeros((b, g, capacity, d), np.float32) for b, g, _, d in shapes]
        self.views: list[Any] = []
        self.counts: np.ndarray | None = None

    def results(self, length: int, gone: Callable[[Any], object]) -> list[np.ndarray]:
        """New views of the first keys, read-only; `gone` is called when the first of them is."""
        views = []
        for part in self.parts:
            view = part[:, :, :length]
            view.flags.writeable = False
            views.append(view)
        self.views = [weakref.ref(view, None if i else gone) for i, view in enumerate(views)]
        return views

    def has(self, pasts: Sequence[Any], counts: np.ndarray) -> bool:
        """Whether these are the views that were returned last, and hold so many keys."""
        return (
            all(past is view() for past, view in zip(pasts, self.views, strict=True))
            and all(past.base is part and past.strides == part.strides for past, part in zip(pasts, self.parts, strict=True))
            and np.array_equal(counts, self.counts)  # type: ignore[arg-type]
        )


class Growing:
    """A model's caches. May be used from any number of threads at once."""

    def __init__(self, graph: Graph, program: Program, caches: Caches) -> None:
        self._graph, self._program, self._caches = graph, program, caches
        self._segment = program.grown = Segment(caches.main, program.known)
        self._known: dict[int, _Memory] = {}  # by the identity of the first view
        self._staged = False  # sizes do not settle everything: nothing would be won

    def run(self, given: Sequence[Any], threads: int) -> list[np.ndarray] | None:
        """The outputs of the graph; None where the caches are empty, or anything is unusual: then all runs as the graph says."""
        plan, inputs = self._caches, self._graph.inputs
        pasts = [given[i] for i in plan.pasts]
        first = pasts[0]
        # Taken out whatever comes: it belongs to one caller.
        memory = self._known.pop(id(first), None)
        if self._staged or not isinstance(first, np.ndarray) or first.ndim != 4 or not first.shape[0] or not first.shape[2]:
            return None
        try:
            arrays = [a if i in plan.pasts else feeds.convert(inputs[i], a) for i, a in enumerate(given)]
            steps, (batch, _, past, _) = arrays[plan.steps].shape[1], first.shape
            named = {value.name: array for value, array in zip(inputs, arrays, strict=True)}
            made = plan.before.run(named, (batch, steps), self._program.known.most)
            counts, total = np.full(batch, past + steps), past + steps
            if plan.ends:
                ends, totals = ([*map(int, made[name].reshape(-1))] for name in plan.ends)
                counts, total = np.array(ends, np.int64) + 1, totals[0]
            starts, length = counts - steps, max(past, total)
            fits = len(counts) == batch and steps > 0 and starts.min() >= 0 and starts.max() <= past and counts.max() <= length
            if not fits or (steps == total and starts.any()):
                return None
            if memory is None or memory.capacity < length or not memory.has(pasts, starts):
                memory = self._copied(pasts, arrays, length, past, starts)
            if memory is None:
                return None
            places = starts[:, None] + np.arange(steps)
            slots = [np.repeat(places[:, None], g, 1) for g in dict.fromkeys(plan.heads)]
            taken = [arrays[i] for i in plan.given]
            taken += [
                _longer(made[name], length, memory.capacity) if name in plan.masks else np.ascontiguousarray(made[name])
                for name in plan.made
            ]
            taken += [counts, places, *slots, *memory.parts]
            binding = self._segment.binding(taken)
        except LimitError:
            raise
        except (Error, ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError):
            return None  # what is wrong is told where the graph runs as it is
        if binding.staged:
            self._staged = True
            return None
        results = binding.run(taken, None, threads)
        back = dict(zip(plan.presents, self._views(memory, counts, length), strict=True))
        names = [value.name for value in self._graph.outputs]
        return [
            back[i] if at == -1 else np.array(made[names[i]], order="C") if at == -2 else results[at]
            for i, at in enumerate(plan.results)
        ]

    def _copied(self, pasts: Sequence[Any], arrays: Sequence[Any], length: int, past: int, starts: np.ndarray) -> _Memory | None:
        """Memory with a copy of the caches, which grows by half at least; of their own size where that is to be enough. What a
        past has after its keys (`starts` of each entry) is left out: it is zero in the results.
        """
        plan, shapes = self._caches, []
        read = [
            p if type(p) is np.ndarray and p.dtype == np.float32 else feeds.convert(self._graph.inputs[i], p)
            for p, i in zip(pasts, plan.pasts, strict=True)
        ]
        for array, i, heads in zip(read, plan.pasts, plan.heads, strict=True):
            feeds.fits(self._graph.inputs[i], array.shape)
            if array.ndim != 4 or array.shape[:3] != (read[0].shape[0], heads, past):
                return None
            shapes.append(array.shape)
        grown = length if length == past else -(-(length + max(length // 2, ROUND)) // ROUND) * ROUND
        if sum(4 * b * g * grown * d for b, g, _, d in shapes) > self._program.known.most:
            return None
        try:
            memory = _Memory(shapes, grown)
        except MemoryError as error:
            raise LimitError(f"run: no memory for caches of {grown} keys: {error}") from error
        for part, array in zip(memory.parts, read, strict=True):
            if (starts == past).all():
                part[:, :, :past] = array
                continue
            for b, count in enumerate(starts):
                part[b, :, :count] = array[b, :, :count]
        return memory

    def _views(self, memory: _Memory, counts: np.ndarray, length: int) -> list[np.ndarray]:
        """The caches as results, by which the memory is found again."""
        own, key = weakref.ref(self), 0

        def gone(_: Any) -> None:
            left = own()
            if left is not None:
                left._known.pop(key, None)

        memory.counts, views = counts, memory.results(length, gone)
        key = id(views[0])
        self._known[key] = memory
        return views


def _longer(mask: np.ndarray, length: int, capacity: int) -> np.ndarray:
    """A mask with a value for each key that there is room for; the lengths forbid those that are not there."""
    had = mask.shape[-1] if mask.ndim else 1
    if had == 1 and length > 1:
        return np.ascontiguousarray(mask)
    made = np.zeros((*mask.shape[:-1], capacity), mask.dtype)
    made[..., :had] = mask
    if had < length:  # one of fewer keys forbids the others
        made[..., had:] = False if mask.dtype == bool else -np.inf
    return made


def growing(graph: Graph, program: Program) -> Growing | None:
    """The caches of a model that grow where they are; None if it has none."""
    caches = find(program.graph)
    return None if caches is None else Growing(graph, program, caches)
