"""The executor for kernels of the GPU: arena, weights and intermediate results stay there, and nothing is waited for.

Steps that have no kernel there, numpy's or the reference's, go through the host. Views of a binding's arena are made once and
retained for the next run with it, since making one costs more than launching a kernel.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .._deadline import check
from .._locks import Lock
from ..kernels.table import KERNELS, Kernel
from ..operators.builder import CONSTANT, INPUT, OUTPUT, Call, Ref
from .trace import Plan

__all__ = ["Runner", "feed", "is_on_device"]

KEPT = 4  # arenas with their views, of different sizes of inputs or streams, that a program keeps
_ENTRIES: dict[str, Kernel] = {kernel.name: kernel for kernel in KERNELS}
# What a step takes; the refs among it with their positions.
_Later = list[tuple[int, Ref]]


def is_on_device(value: Any) -> bool:
    """Is it an array on the GPU, fastlayers' or another library's?"""
    from ..kernels.cuda import is_foreign

    return is_foreign(value)  # type: ignore[no-any-return]


def feed(value: Any, what: str) -> Any:
    """An array on the GPU as ours, without a copy."""
    from ..kernels.cuda import wrap

    return wrap(value, what)


class _Frame:
    """A plan over an arena: functions with their arguments, of which those in inputs and outputs are set for every run."""

    def __init__(self, plan: Plan, kernels: Mapping[str, Callable[..., Any]], constants: Any) -> None:
        from ..kernels.cuda import Array, empty

        self.arena = empty((max(plan.arena, 1),), np.uint8)
        self.steps: list[tuple[Callable[..., None], list[Any], _Later]] = []

        def place(ref: Ref) -> Any:
            root, offset = ref.buffer.root()
            offset += ref.offset
            if root.space in (INPUT, OUTPUT):
                return None
            if root.space == CONSTANT:
                whole = constants(root.array)
                return Array(whole.block, whole.offset + offset, ref.shape, ref.dtype)
            return Array(self.arena.block, self.arena.offset + root.offset + offset, ref.shape, ref.dtype)

        for call in plan.calls:
            if isinstance(call, Call):
                function, given = kernels[call.kernel], call.args
                if not hasattr(function, "on_device"):
                    function = _through_host(function, _ENTRIES[call.kernel])
            else:
                given = (*call.inputs, *call.outputs)
                function = _numpy_step(call.function, len(call.inputs))  # type: ignore[union-attr] # branches and loops run in stages here
            arguments = [place(a) if isinstance(a, Ref) else a for a in given]
            later = [(i, a) for i, a in enumerate(given) if isinstance(a, Ref) and arguments[i] is None]
            self.steps.append((function, arguments, later))

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        from ..kernels.cuda import Array

        for function, arguments, later in self.steps:
            check()
            for i, ref in later:
                root, offset = ref.buffer.root()
                whole = (inputs if root.space == INPUT else outputs)[root.index]
                arguments[i] = Array(whole.block, whole.offset + offset + ref.offset, ref.shape, ref.dtype)
            function(*arguments)
            for i, _ in later:
                arguments[i] = None  # no memory of a caller is retained


def _through_host(function: Callable[..., Any], entry: Kernel) -> Callable[..., None]:
    """A kernel of the reference, on copies."""
    from ..kernels.cuda import Array

    results = [name.split("__")[0] in entry.results for name in entry.arguments]

    def run(*arguments: Any) -> None:
        # A copy may leave parts of its result as they are.
        given = [
            (np.empty(a.shape, a.dtype) if written and entry.name != "copy" else a.numpy()) if isinstance(a, Array) else a
            for a, written in zip(arguments, results, strict=True)
        ]
        function(*given)
        for array, made, written in zip(arguments, given, results, strict=True):
            if written and isinstance(array, Array):
                array.fill_from(made)

    return run


def _numpy_step(function: Callable[..., Any], count: int) -> Callable[..., None]:
    """A NumPy fallback, on copies; its results are cast and broadcast to what the program wants."""

    def run(*arguments: Any) -> None:
        results = function(*[None if a is None else a.numpy() for a in arguments[:count]])
        for result, out in zip(results, arguments[count:], strict=False):
            if out is not None:
                made: np.ndarray = np.empty(out.shape, out.dtype)
                made[...] = result
                out.fill_from(made)

    return run


class Runner:
    """Runs the plans of one program. May be used from any number of threads at once."""

    def __init__(self, kernels: Mapping[str, Callable[..., Any]], weights: Iterable[np.ndarray]) -> None:
        self.kernels = kernels
        self._weights = {id(array): array for array in weights}
        self.away = frozenset(name for name, function in kernels.items() if not hasattr(function, "on_device"))
        self._lock = Lock()
        self._frames: OrderedDict[tuple[int, int], tuple[Plan, _Frame]] = OrderedDict()
        self._constants: dict[int, Any] = {}

    def constant(self, array: np.ndarray | None) -> Any:
        """A constant of a plan on the GPU, where the graph's are once."""
        from ..kernels.cuda import upload

        assert array is not None
        found = self._constants.get(id(array))
        if found is None:
            found = upload(array)
            if id(array) in self._weights:  # others are made for one binding
                self._constants[id(array)] = found
        return found

    def uploaded(self, arrays: Sequence[np.ndarray]) -> list[Any]:
        """Results of the host on the GPU."""
        from ..kernels.cuda import placed

        return [placed(array) for array in arrays]

    def run(self, plan: Plan, inputs: Sequence[Any], outputs: Sequence[np.ndarray] | None, on_host: bool) -> Sequence[Any]:
        """Runs a plan on host arrays or arrays on the GPU; gives the same as `on_host` says, or fills `outputs`."""
        from ..kernels.cuda import empty, event, sent, start, stream_pointer

        start("run")
        given = [sent(a) if isinstance(a, np.ndarray) else a for a in inputs]
        made = [empty(shape, dtype) for shape, dtype in plan.outputs]
        key = id(plan), stream_pointer()
        with self._lock:
            kept = self._frames.pop(key, None)  # a concurrent run makes another
            frame = kept[1] if kept is not None else _Frame(plan, self.kernels, self.constant)
        for array in given:
            array.block.ready()
        frame.run(given, made)
        if stream_pointer() or any(array.block.away for array in given):  # else everything is in one order
            done = event()
            for array in given:
                array.block.used(done)
            for array in made:
                array.block.finished(done)
        with self._lock:
            self._frames[key] = plan, frame
            while len(self._frames) > KEPT:
                self._frames.popitem(last=False)
        if not on_host and outputs is None:
            return made
        targets = [a.numpy() for a in made] if outputs is None else outputs
        if outputs is not None:
            for array, target in zip(made, targets, strict=True):
                array.copy_to(target)
        return targets
