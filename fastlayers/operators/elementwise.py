"""`Elementwise`, what the pass `elementwise` makes: several elementwise operators as one node, whose attribute `body` is their
graph. It computes what they compute, bit for bit; the compiled engine does it block by block (`program.merged`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir.graph import Graph
from ._base import OPERATORS, Spec, View, register
from ._traits import Traits

if TYPE_CHECKING:
    from .builder import Builder

__all__: list[str] = []


def _body(n: View) -> Graph:
    body = n.get("body")
    if not isinstance(body, Graph) or len(body.inputs) != len(n.inputs) or len(body.outputs) != 1:
        raise n.fail("body is not a graph with one output and as many inputs as the node")
    return body


def _walk(n: View, visit: Callable[[View, list[Spec], bool], None]) -> list[Spec]:
    """The specs of the result; `visit` gets each node of the body with its results' specs, and whether it is the last."""
    body = _body(n)
    specs: dict[str, Spec] = {v.name: n.spec(i) for i, v in enumerate(body.inputs)}
    specs.update({name: Spec(a.shape, a.dtype) for name, a in body.constants.items()})
    values: dict[str, np.ndarray | None] = {v.name: n.value(i) for i, v in enumerate(body.inputs)} | dict(body.constants)
    for node in body.nodes:
        operator = OPERATORS.get(node.op)
        if operator is None or not operator.traits.elementwise or len(node.outputs) != 1:
            raise n.fail(f"its body has {node.op!s:.80}: expected elementwise operators of one result")
        if any(name is not None and name not in specs for name in node.inputs):
            raise n.fail("its body reads a value that it does not compute")
        ins = [None if name is None else specs[name] for name in node.inputs]
        view = View(node, ins, [None if name is None else values.get(name) for name in node.inputs])
        results = operator.infer(view)
        specs[node.outputs[0]] = results[0]
        visit(view, results, node is body.nodes[-1])
    if not body.nodes or body.nodes[-1].outputs[0] != body.outputs[0].name:
        raise n.fail("its body does not end with its result")
    return [specs[body.outputs[0].name]]


def _infer(n: View) -> list[Spec]:
    return _walk(n, lambda view, results, last: None)


def _run(n: View, *arrays: np.ndarray) -> Sequence[np.ndarray]:
    from .reference import run_operator

    body = _body(n)
    made: dict[str, Any] = {v.name: array for v, array in zip(body.inputs, arrays, strict=True)} | dict(body.constants)

    def visit(view: View, results: list[Spec], last: bool) -> None:
        given = [None if name is None else made[name] for name in view.node.inputs]
        # As between nodes of a graph, the result has the dtype that the rule says.
        made[view.node.outputs[0]] = np.asarray(run_operator(view.node, view, given, results)[0], results[0].dtype)

    _walk(n, visit)
    return (made[body.outputs[0].name],)


def _lower(n: View, b: Builder) -> Any:
    """The calls of all of them."""
    from .reference import numpy_step

    body = _body(n)
    outer = {v.name: i for i, v in enumerate(body.inputs)}
    given = {name: b.input(i) for name, i in outer.items()}

    def visit(view: View, results: list[Spec], last: bool) -> None:
        with b.inside(view, results, given, body.constants, last):
            lower = OPERATORS[view.op].lower
            if lower is None or lower(view, b) is False:
                numpy_step(view, results, b, view.node.inputs, (0,))

    _walk(n, visit)
    # In place of an input, the result would be written while others may still read another part of the same memory.
    roots = [b.root(ref) for ref in given.values()]
    kept = []
    for buffer, other in b.overs:
        refs = [ref for ref, root in zip(given.values(), roots, strict=True) if ref.buffer is other or root is other]
        if all(ref == refs[0] for ref in refs):
            kept.append((buffer, other))
    b.overs[:] = kept
    return None


register("Elementwise", _infer, _run, _lower, Traits(elementwise=True, time="elementwise", work="elements"))
