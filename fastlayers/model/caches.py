"""Decoders' caches in memory that has room for more: what a model appends to where it is, if the caller gives it back.

The results of a call with a cache are views of such memory. What the model knows of it goes by the identity of the views, and is
taken out by the call that they are given to: a later call with the same views, or with older ones, finds nothing, and makes a
copy. So a result never changes, in whatever order callers go on.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .._pages import zeros
from ..errors import Error, LimitError, ShapeError
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
        self.parts = [zeros((b, g, capacity, d)) for b, g, _, d in shapes]
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
        # Whether what is made of masks for entries of different lengths is for each what it is alone.
        self._alike = caches.before.by_elements(caches.made)
        # Inputs whose values are asked for: of dozens of caches there is often one, for its length.
        fixed = {graph.inputs[i].name for i in caches.pasts} - {value.name for value in graph.outputs} - caches.before.reads
        self._read = frozenset(value.name for value in graph.inputs) - fixed

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
            read = self._read
            named = {value.name: array for value, array in zip(inputs, arrays, strict=True) if value.name in read}
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
            grown = {name: _longer(made[name], length, memory.capacity) for name in plan.masks}
            taken = self._taken({**made, **grown}, starts, steps, memory.parts)
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

    def _taken(self, values: Mapping[str, np.ndarray], starts: np.ndarray, steps: int, parts: Sequence[np.ndarray]) -> list[Any]:
        """The inputs of the graph that appends in place, of `steps` queries after so many keys of each entry."""
        plan, inputs = self._caches, self._graph.inputs
        places = starts[:, None] + np.arange(steps)
        slots = [np.repeat(places[:, None], g, 1) for g in dict.fromkeys(plan.heads)]
        given = [values[inputs[i].name] for i in plan.given]
        return [*given, *(np.ascontiguousarray(values[name]) for name in plan.made), starts + steps, places, *slots, *parts]

    # ---- entries of different lengths ------------------------------------------------------------------------------

    @property
    def most(self) -> int:
        """The bytes that a run may take."""
        return self._program.known.most

    @property
    def skips(self) -> bool:
        """Whether what a cache has after its keys is not read at all."""
        return bool(self._program.variant.steps)

    def append(
        self,
        parts: Sequence[np.ndarray],
        starts: np.ndarray,
        ids: np.ndarray,
        given: Callable[[np.ndarray, np.ndarray], Mapping[str, np.ndarray]],
        names: Sequence[str],
        threads: int,
    ) -> dict[str, np.ndarray] | None:
        """The outputs that are no caches, for entries of different lengths, each with its keys in its own part of memory.

        Args:
            parts: caches (b, heads, capacity, d) by `names`, of which each entry has `starts` keys; ids (b, t) follow.
            given: what the model is given besides, for ids and `starts`: a mask of keys has zeros after those of an entry.
            threads: as many at most; 0: those that may be used.

        Returns:
            The outputs by name; None if the graph cannot.
        """
        plan = self._caches
        if self._staged:
            return None
        try:
            by_name = dict(zip(names, parts, strict=True))
            ordered = [by_name[self._graph.inputs[i].name] for i in plan.pasts]
            if self._alike:
                values = self._before(given(ids, starts), starts, ids.shape[1], by_name)
            else:  # what follows from the sizes of the whole holds for each entry alone
                each = []
                for i in range(len(ids)):
                    one = {name: part[i : i + 1] for name, part in by_name.items()}
                    each.append(self._before(given(ids[i : i + 1], starts[i : i + 1]), starts[i : i + 1], ids.shape[1], one))
                values = _stacked(each, [*plan.made, *(self._graph.inputs[i].name for i in plan.given)])
            taken = self._taken(values, starts, ids.shape[1], ordered)
            binding = self._segment.binding(taken)
        except LimitError:
            raise
        except (Error, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            return None
        if binding.staged:
            self._staged = True
            return None
        results = binding.run(taken, None, threads)
        return {value.name: results[at] for value, at in zip(self._graph.outputs, plan.results, strict=True) if at >= 0}

    def _before(
        self, given: Mapping[str, np.ndarray], starts: np.ndarray, steps: int, parts: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Values made of sizes and masks, with masks as long as the memory."""
        plan, inputs = self._caches, {value.name: value for value in self._graph.inputs}
        longest = int(starts.max())
        arrays = {name: feeds.convert(inputs[name], array) for name, array in given.items()}
        pasts = {name: part[:, :, :longest] for name, part in parts.items() if name in plan.before.reads}
        made = plan.before.run({**arrays, **pasts}, (len(starts), steps), self.most)
        if plan.ends and not np.array_equal(made[plan.ends[0]].reshape(-1), starts + (steps - 1)):
            raise ShapeError("run: the graph counts other keys than there are")
        capacity = next(iter(parts.values())).shape[2]
        return {**made, **{name: _longer(made[name], longest + steps, capacity) for name in plan.masks}}

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


def _stacked(each: Sequence[Mapping[str, np.ndarray]], names: Sequence[str]) -> dict[str, np.ndarray]:
    """Values of single entries as those of all of them; of one that does not say which entry it is of, all must be the same.

    Raises:
        ShapeError: they are not.
    """
    found = {}
    for name in names:
        arrays = [values[name] for values in each]
        if all(array.ndim > 1 and len(array) == 1 and array.shape == arrays[0].shape for array in arrays):
            found[name] = np.concatenate(arrays)
        elif all(np.array_equal(array, arrays[0]) for array in arrays):
            found[name] = arrays[0]
        else:
            raise ShapeError(f"run: {name} differs from entry to entry")
    return found


def growing(graph: Graph, program: Program) -> Growing | None:
    """The caches of a model that grow where they are; None if it has none."""
    caches = find(program.graph)
    return None if caches is None else Growing(graph, program, caches)
