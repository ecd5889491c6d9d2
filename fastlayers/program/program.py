"""A whole graph made ready to run under one kernel variant, in stages where no sizes settle it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .._held import held_by
from .._locks import Lock
from ..ir.graph import Graph, Node, captured
from ..kernels.dispatch import Variant
from ..operators import MAX_ROUNDS, traits_of
from ..operators.builder import contiguous
from ..operators.families import NESTED
from .binder import Prepare
from .bodies import Bodies
from .branches import Branches
from .known import Known
from .memory import LARGEST, counted
from .segment import Segment
from .weights import Weights

if TYPE_CHECKING:
    from ..operators.meter import Meter
    from .stages import Stages

__all__ = ["Program"]

# In as many bodies may a body be that is part of a binding; those within it run in stages, which say how deep graphs may be.
DEEPEST = 16


class Program(Segment):
    """A graph, a variant, and what was made of them so far. May be used from any number of threads at once.

    Args:
        graph: with operators of `operators.OPERATORS`.
        variant: whose kernels run, whatever is `use`d later.
        native: whether a NumPy fallback is an error (`require_native`).
        stored: weights that have been packed before, as `packed_arrays` named them.
        optimize: simplifies a branch before it is first walked: takes it, the constants around it, and the specs of values
            around it.
        bodies: simplifies what a Loop and its kin run, in the same way.
        rounds: the most that the loops of one run may take together.
        most: the most bytes that one run may take; see `memory`.
        depth: in how many bodies the graph is.
        by_value: whether integers that decide sizes are part of what it is bound to.
    """

    def __init__(
        self,
        graph: Graph,
        variant: Variant,
        native: bool = False,
        stored: Mapping[str, np.ndarray] | None = None,
        optimize: Prepare | None = None,
        bodies: Prepare | None = None,
        rounds: int = MAX_ROUNDS,
        most: int = LARGEST,
        depth: int = 0,
        by_value: bool = True,
    ) -> None:
        graph, lock, gpu = _aligned(graph), Lock(), None
        if variant.name == "cuda":
            from .on_device import Runner

            gpu = Runner(variant.kernels, graph.constants.values())
        self._inner = partial(
            Program, variant=variant, native=native, optimize=bodies, bodies=bodies, rounds=rounds, most=most, depth=depth + 1
        )
        self._simplify, self._by_value = bodies, by_value
        self.nested = Bodies(lock, bodies, self._inner)  # of loops and branches that are part of a binding
        nest = partial(_nest, bool(variant.steps) and depth < DEEPEST, self.nested)
        weights, branches = Weights(variant, lock, graph, stored), Branches(optimize, lock)
        super().__init__(graph, Known(variant, native, rounds, most, lock, weights, branches, nest, gpu), by_value)
        self.pack, self.adopt = weights.pack, weights.adopt
        self.made_stages: Stages | None
        self.grown: Segment | None = None  # the graph over caches that grow (see `caches`)
        held_by(self)

    @property
    def stages(self) -> Stages:
        """The graph in segments."""
        with self.known.lock:
            if self.made_stages is None:
                from .stages import Stages  # most networks have none

                bodies = Bodies(self.known.lock, self._simplify, self._inner)
                self.made_stages = Stages(self.graph, self.known, bodies, self._by_value)
            return self.made_stages

    def in_stages(self, values: Sequence[Any], meter: Meter, threads: int = 0) -> Sequence[Any]:
        """The outputs for arrays, lists and None whose sizes do not settle everything."""
        return (self.made_stages or self.stages).run(values, meter, threads)

    def again(self, feeds: Any, threads: int) -> Sequence[Any] | None:
        """The outputs for a dict of plain arrays of sizes that have run in stages before; None for all else."""
        inputs = self.graph.inputs
        if (
            self.made_stages is None
            or self.by_value
            or self.runner is None
            or type(feeds) is not dict
            or len(feeds) != len(inputs)
        ):
            return None
        values = [feeds.get(value.name) for value in inputs]
        key = self.runner.key(values, True)
        kept = None if key is None else self.bindings.get(key)
        if kept is None or not kept.staged:
            return None
        stages, env, meter = self.made_stages, dict(feeds), self.meter()
        at = stages.begin(env, meter, threads)
        if at == len(stages.graph.nodes) and stages.makes:
            return [env[value.name] for value in stages.graph.outputs]
        from .plain import fresh

        with self.variant.bound(), counted(self.known.most):
            return fresh(stages.go_on(env, at, meter, threads), values)

    def whole_graph(self) -> Graph:
        """The graph with every branch that has been taken in the form in which it runs, if that is the only one that it can
        have.
        """
        return self.known.branches.within(self.graph, all(value.shape is not None for value in self.graph.inputs))

    def held(self) -> tuple[int, int]:
        """Bytes of packed weights, and of what is retained for sets of sizes, for `fastlayers.memory`."""
        stages = 0 if self.made_stages is None else self.made_stages.nbytes
        stages += 0 if self.grown is None else self.grown.bindings.nbytes
        return self.known.weights.nbytes, self.bindings.nbytes + stages

    @property
    def ran(self) -> bool:
        """Whether it was bound to some sizes."""
        return len(self.bindings) > 0

    def packed_arrays(self) -> dict[str, np.ndarray]:
        """Every weight that has been packed so far and can be stored, by a name that says where it belongs."""
        return self.known.weights.named(self.whole_graph())


def _nest(able: bool, bodies: Bodies, node: Node, constants: Mapping[str, np.ndarray]) -> Any:
    """The object that binds a loop or a branch whose sizes do not depend on values; None where it must run in stages."""
    if not able or node.op not in NESTED:
        return None
    from .nested import nested  # most networks have neither

    return nested(node, lambda graph: bodies.of(graph, constants))


def _aligned(graph: Graph) -> Graph:
    """The graph, whose constants that are read in every run are aligned; those that are only packed are not copied before."""
    odd = {name for name, array in graph.constants.items() if not array.flags.aligned}
    if not odd:
        return graph
    packed: set[str | None] = set()
    others: set[str | None] = {value.name for value in graph.outputs}
    for node in graph.nodes:
        weights = traits_of(node.op).weights
        for i, name in enumerate(node.inputs):
            if name in odd:
                (packed if i in weights else others).add(name)
        others |= captured(node)
    odd -= packed - others
    constants = {name: contiguous(array) if name in odd else array for name, array in graph.constants.items()}
    return Graph(graph.inputs, graph.outputs, graph.nodes, constants, graph.values)
