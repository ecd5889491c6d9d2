"""A recurrent layer that is called again with arrays of the same sizes runs a program: a small one spends as long on its
arguments as on its steps. Calls whose sizes have not come before, and those with lengths or a mask, call kernels for themselves.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from .._locks import Lock
from ..errors import Error
from ..graph.eager import BEFORE, COLD, SEEN
from ..graph.symbol import Input
from ..ir.graph import Shape
from ..kernels import dispatch

if TYPE_CHECKING:
    from ..program import Program

__all__ = ["Again", "Calls"]

# Shapes of x and of states with names for what calls differ in, and what records a call: the results of symbols for these.
Calls = tuple[Sequence[Shape], Callable[..., tuple[Any, ...]]]

_PROGRAM = "fastlayers.program"
# Bytes of a layer's tensors from which its steps take so long that a program saves nothing worth a copy of them.
LARGEST = 1 << 22


class Again:
    """The programs of one layer's weights under one variant. May be used from any number of threads at once.

    Args:
        tensors: the layer's, by name.
        operator: which of the recorded ones is recurrent.
        packed: what the pack kernel of this name made of the weights, one a node.
        both: whether the output is a pair.
        whole: whether there is no output beside the state, as of a cell.

    `fast` takes x and a state and gives what the layer returns, or None; it is None itself until there is a program.
    """

    __slots__ = (
        "_both", "_count", "_generation", "_lock", "_operator", "_packed", "_programs", "_runners", "_seen", "_variant", "_whole",
        "fast", "tensors",
    )  # fmt: skip

    def __init__(
        self, tensors: Mapping[str, np.ndarray], operator: str, packed: Sequence[Any], both: bool = False, whole: bool = False
    ) -> None:
        self.tensors, self._operator, self._packed = tensors, operator, packed
        self._variant = dispatch.variant()
        self._lock = Lock()
        # By how many arrays a call has, and how many axes the first of them: the program, or None where there is to be none.
        self._programs: dict[tuple[int, int], Program | None] = {}
        self._seen: dict[Any, int] = {}
        small = sum(array.nbytes for array in tensors.values()) <= LARGEST
        self._count = 0 if small and self._variant.steps else -1  # of calls without a program; below 0: there is none
        self._both, self._whole, self._generation = both, whole, dispatch.generation
        self._runners: dict[int, tuple[Any, ...]] = {}
        self.fast: Callable[[Any, Any], Any] | None = None

    def came(
        self, x: np.ndarray, before: Sequence[np.ndarray | None], calls: Callable[[Mapping[str, np.ndarray], int], Calls]
    ) -> None:
        """Counts a call with contiguous float32 arrays; binds a program to their sizes if these have come often enough."""
        if self._count < 0:
            return
        generation = dispatch.generation  # before the variant, which may be another one right after
        if generation != self._generation and dispatch.current() == self._variant.name:  # it was another one in between
            self._generation = generation
            self._quicken()
        self._count += 1
        states = [] if before[0] is None else before
        key = (x.shape, *[state.shape for state in states])  # type: ignore[union-attr]
        times = self._seen.get(key, 0) + 1
        if times < BEFORE or (self._count < COLD and _PROGRAM not in sys.modules):
            if len(self._seen) >= SEEN:
                self._seen = {}
            self._seen[key] = times
            return
        self._seen.pop(key, None)
        kind = len(key), x.ndim
        if kind not in self._programs:
            self._made(kind, *calls(self.tensors, x.ndim))
        program = self._programs[kind]
        if program is not None:
            try:
                program.binding([x, *states])
            except Error:  # a step would run in numpy, or there is no memory for it: the layer has just answered without
                self._programs[kind] = None

    def _made(self, kind: tuple[int, int], shapes: Sequence[Shape], record: Callable[..., tuple[Any, ...]]) -> None:
        """Makes the program of one kind of calls, or finds that there is none."""
        from ..graph._trace import trace
        from ..passes import optimize
        from ..program import Program

        with self._lock:
            if kind in self._programs:
                return
            program = None
            with suppress(Error):  # of an operation that cannot be recorded
                inputs = [Input(f"x{i}", shape) for i, shape in enumerate(shapes[: kind[0]])]
                made = Program(optimize(trace(record, *inputs)), self._variant, native=True)
                nodes = [node for node in made.graph.nodes if node.op == self._operator]
                for node, packed in zip(nodes, self._packed, strict=True) if len(nodes) == len(self._packed) else ():
                    made.adopt(node, f"{self._operator.lower()}_pack", packed)
                program = made
            self._programs[kind] = program
            if program is not None:
                self._runners[kind[0]] = (*self._runners.get(kind[0], ()), program.runner)
                self._quicken()

    def _quicken(self) -> None:
        """Makes `fast` for the present generation, if there is a program."""
        if self._runners:
            from ..kernels.aot.run import LayerCalls

            pair = self._operator == "LSTM"
            self.fast = LayerCalls(self._runners, dispatch, self._generation, pair, self._both, self._whole).call
