"""Rewrites of a graph, one file each; every file's docstring shows the graph before and after. The result computes the same
values.

To add a pass: a module with ``apply(net)``, which edits a `_net.Net`; a line in `PASSES` with the operators that it looks for;
cases in tests/graph/test_passes.py, where every pass is run alone and with all others against the graph as it was written. Which
operators are of a kind is asked of their traits; a pattern of the pass goes to tests/graph/test_changed.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from .. import _log
from .._lazy import imported
from ..errors import is_shortage
from ..ir.graph import Graph
from ..operators import Spec, Traits, traits_of
from . import fold
from ._net import Net

__all__ = ["PASSES", "Pass", "optimize"]

Need = str | Callable[[Traits], object]


class Pass:
    """A module of this package. It is imported where a graph has what the pass changes.

    Args:
        name: the module's.
        *needs: an operator of each of them must be there: one of the names of the pass's pattern (separated by spaces), or one of
            whose traits something holds; a tuple has alternatives.
        least: so many nodes must have what the last of these asks.
    """

    def __init__(self, name: str, *needs: Need | tuple[Need, ...], least: int = 1) -> None:
        self.name, self.least = name, least
        self.needs: list[tuple[Need, ...]] = [need if isinstance(need, tuple) else (need,) for need in needs]

    def apply(self, net: Net) -> None:
        """Edits the net as the module says."""
        if not all(any(_met(need, net.ops) for need in needs) for needs in self.needs):
            return
        if self.least == 1 or self.least <= sum(any(_met(n, (node.op,)) for n in self.needs[-1]) for node in net.nodes if node):
            imported(f"{__package__}.{self.name}").apply(net)


def _met(need: Need, ops: Collection[str]) -> bool:
    names = need.split() if isinstance(need, str) else None
    return any(op in names if names is not None else need(traits_of(op)) for op in ops)  # type: ignore[operator]


RAISES = False  # whether a pass's own errors are raised: so tests find them
_ACTIVATIONS = Pass("activation", lambda t: "activation" in t.epilogue, lambda t: t.unary)
# In their order. `strict` leaves them out, since they change how sums are formed.
PASSES = (
    Pass("padding", "Pad", lambda t: t.padding),
    Pass("linear", "Gemm MatMul Linear MatMulNBits"),
    Pass("normalization_affine", ("BatchNormalization Affine", lambda t: t.line), ("BatchNormalization", lambda t: t.scaling)),
    Pass("activation_gated", "Mul Div", "Sigmoid HardSigmoid Clip Erf Tanh"),
    Pass("normalization", "Div Mul LayerNormalization RMSNormalization", "Sqrt Pow LayerNormalization RMSNormalization"),
    Pass("attention", "MatMul", "Softmax"),
    Pass("layout_tokens", "Transpose", "Reshape Flatten", lambda t: t.layout is not None and t.layout.kind == "free"),
    _ACTIVATIONS,
    Pass("residual", "Add Sum", lambda t: "residual" in t.epilogue),
    _ACTIVATIONS,
    Pass("layout", ("AveragePool", lambda t: t.layout is not None and t.layout.kind == "free")),
    Pass("repeated", lambda t: not t.volatile, least=2),
    Pass("selected", "Gather", "Linear BlockLinear Attention"),
    Pass("elementwise", lambda t: t.elementwise, least=3),
)


def optimize(
    graph: Graph, strict: bool = False, known: Mapping[str, np.ndarray] | None = None, specs: Mapping[str, Spec] | None = None,
    bytes_pay: bool = False,
) -> Graph:  # fmt: skip
    """The graph simplified and with operations fused. Branches of an `If` that is left are as they were: see
    `program.Program.branch`.

    Args:
        graph: with the operators of `operators`.
        strict: constants are folded and nothing else is done.
        known: constants of the graphs around this one, where it is a branch.
        specs: ranks and dtypes of the values of those graphs.
        bytes_pay: whether products with weights of 8 bits take less time than those with float32 of them, whatever shares a
            scale: see `Variant.multiplies_three_bytes`.
    """
    with np.errstate(all="ignore"):  # weights may be of any kind: results are those of a run
        return _without(frozenset(), graph, strict, known or {}, specs or {}, bytes_pay)


class _Stuck(Exception):
    """A pass that met what it does not understand: it is left out then, and the graph is done again without it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def _without(
    left: frozenset[str], graph: Graph, strict: bool, known: Mapping[str, np.ndarray], specs: Mapping[str, Spec], bytes_pay: bool
) -> Graph:
    """`optimize` without the passes in `left`, and without any other pass that fails."""
    try:
        return _optimized(left, graph, strict, known, specs, bytes_pay)
    except _Stuck as stuck:
        return _without(left | {stuck.name}, graph, strict, known, specs, bytes_pay)


def _optimized(
    left: frozenset[str], graph: Graph, strict: bool, known: Mapping[str, np.ndarray], specs: Mapping[str, Spec], bytes_pay: bool
) -> Graph:
    """See `optimize`; without the passes `left`."""
    room = fold.Room(graph)
    if "float16" not in left:
        graph = _float32(graph, strict, known, specs, room)
    ops = {node.op for node in graph.nodes}
    grouped = any(node.op == "Conv" and node.attributes.get("group") != 1 for node in graph.nodes)
    if not strict and grouped and "conv_separable" not in left:
        from .conv_separable import separated

        with _guarded("conv_separable"):
            graph = separated(graph)
    if not ops.isdisjoint(("Loop", "Scan")) and "control" not in left:
        from .control import unchanging

        with _guarded("control"):
            graph = unchanging(graph)
    net = Net(graph, known, specs)
    if not ops.isdisjoint((*_KEPT, "MatMulInteger")) and "quantized" not in left:
        from . import quantized, quantized_weights

        fold.apply(net, _KEPT, room)
        with _guarded("quantized"):
            if not strict:
                quantized.apply(net)
            quantized_weights.apply(net, bytes_pay)
        net = Net(net.graph(), known, specs)
    fold.apply(net, room=room)
    if not strict:
        for change in PASSES:
            if change.name not in left:
                with _guarded(change.name):
                    change.apply(net)
    return net.graph()


_KEPT = frozenset({"DequantizeCodes", "DequantizeLinear"})  # of constants, until few bits were kept
# Attributes that may ask for a result of float16, which is 10 as TensorProto.DataType counts.
_HALF, _ASKING = np.dtype(np.float16), ("to", "dtype", "output_dtype", "stash_type")


def _has_float16(graph: Graph, around: Mapping[str, np.ndarray], specs: Mapping[str, Spec]) -> bool:
    """Whether there may be values of float16 in the graph; `around`, `specs`: see `optimize`."""
    dtypes = [a.dtype for a in (*graph.constants.values(), *around.values())]
    if _HALF in dtypes or _HALF in [v.dtype for v in graph.inputs] or _HALF in [s.dtype for s in specs.values()]:
        return True
    attributes = [node.attributes for node in graph.nodes]
    asked = any(a.get(name) == 10 for a in attributes for name in _ASKING)
    return asked or any(getattr(value, "dtype", None) == _HALF for a in attributes for value in a.values())


def _float32(graph: Graph, strict: bool, known: Mapping[str, np.ndarray], specs: Mapping[str, Spec], room: fold.Room) -> Graph:
    """The graph, computed in float32 where it is one of float16."""
    if not _has_float16(graph, known, specs):
        return graph

    from . import float16

    net = Net(graph, known, specs)
    fold.apply(net, _KEPT, room)
    with _guarded("float16"):
        return float16.computed(net, strict)
    return graph


@contextmanager
def _guarded(name: str) -> Iterator[None]:
    """Runs a pass, and gives the graph unchanged where it fails: a network that runs without it is never refused for its sake."""
    try:
        yield
    except Exception as error:
        if RAISES or is_shortage(error):  # without memory for a moment, it would be without the pass for good
            raise
        _log.info("the pass %s is left out: %s: %s", name, type(error).__name__, error)
        raise _Stuck(name) from error
