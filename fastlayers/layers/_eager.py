"""A layer that is called at once runs what a compiled model runs: its graph of one operation, simplified and bound as a model's.

So it chooses its algorithm where models do, gives their bits, and a call of sizes that were seen before has its plan already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._locks import Lock
from ..calls.machine import Machine, of
from ..errors import refuses_shortage
from ..ir.graph import Graph, Node, Value
from ..kernels import dispatch

if TYPE_CHECKING:
    from ..program import Program

__all__ = ["Eager"]

FLOAT32 = np.dtype(np.float32)


class Eager:
    """The programs of one layer's weights under one variant. May be used from any number of threads at once.

    Each keeps its bindings, those that ran last, as far as its bytes allow: see `program.bindings`.

    Args:
        nodes: from the input ``x0`` to the output ``y``; further arrays of a call become further inputs of the last one.
        constants: the layer's tensors by name.
        rank: how many axes inputs and result have.
    """

    __slots__ = ("_lock", "_nodes", "_once", "_programs", "_shape", "_variant", "constants")

    def __init__(self, nodes: Sequence[Node], constants: Mapping[str, np.ndarray], rank: int) -> None:
        self._nodes, self.constants, self._shape = nodes, constants, (None,) * rank
        self._variant = dispatch.variant()
        self._lock = Lock()
        self._programs: dict[int, Program] = {}
        self._once: Any = None  # False: there is none

    def quick(self, arrays: tuple[Any, ...]) -> Any:
        """The result for plain arrays of sizes that were seen before; None for all others."""
        program = self._programs.get(len(arrays))
        if program is None or program.runner is None:
            return None
        found = program.runner.call(arrays)
        return None if found is None else found[0]

    @refuses_shortage("preparing a layer")
    def run(self, arrays: tuple[np.ndarray, ...], out: np.ndarray | None = None) -> np.ndarray:
        """The result, in `out` if that is given, for contiguous float32 arrays of sizes that fit."""
        found: np.ndarray | None = self.quick(arrays) if out is None else None
        if found is not None:
            return found
        binding = (self._programs.get(len(arrays)) or self._made(len(arrays))).binding(list(arrays))
        result: np.ndarray = binding.run(list(arrays), None if out is None else [out])[0]
        return result

    def bound(self) -> Any:
        """A context in which kernels of `once` run."""
        return self._variant.bound()

    def once(self) -> Machine | None:
        """The machine that runs calls of new sizes without binding them, with packed weights; None where the program
        is not the layer's one node as it was written.
        """
        if self._once is None:
            program, own = self._programs.get(1) or self._made(1), self._nodes[-1]
            node = program.graph.nodes[-1]
            same = len(program.graph.nodes) == 1 and node.op == own.op and dict(node.attributes) == dict(own.attributes)
            packed: dict[tuple[str, Any], Any] = {}

            def pack(kernel: str, arguments: Any, key: Any = None, kept: bool = True) -> Any:
                found = packed.get((kernel, key))
                if found is None:
                    found = packed[kernel, key] = program.pack((id(node), kernel, key), kernel, arguments)
                return found

            self._once = same and of(self._variant.kernels)._replace(pack=pack)
        found: Machine | None = self._once or None
        return found

    @refuses_shortage("preparing a layer")
    def _made(self, count: int) -> Program:
        """The program that takes so many arrays."""
        from ..passes import optimize
        from ..program import Program

        with self._lock:
            if count not in self._programs:
                inputs = [Value(f"x{i}", self._shape, FLOAT32) for i in range(count)]
                *nodes, last = self._nodes
                last = Node(last.op, (*last.inputs, *(value.name for value in inputs[1:])), last.outputs, last.attributes)
                graph = Graph(tuple(inputs), (Value("y", self._shape, FLOAT32),), (*nodes, last), self.constants)
                self._programs[count] = Program(optimize(graph), self._variant)
            return self._programs[count]
