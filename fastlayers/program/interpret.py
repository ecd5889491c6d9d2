"""Runs a graph node by node, where sizes or branches depend on numbers that are there only at run time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import UnsupportedError
from ..graph.ir import Graph, Node
from ..kernels._dispatch import Variant
from ..operators import OPERATORS, Spec, View
from . import plain
from .binder import Pack, Plan, Prepare, as_written, result_bytes, run_operator
from .builder import INPUT, OUTPUT, Buffer, Builder, Ref

__all__ = ["interpret"]


def interpret(
    graph: Graph, inputs: Sequence[np.ndarray], variant: Variant, pack: Pack, prepare: Prepare = as_written
) -> list[np.ndarray]:
    """The outputs of a graph: fresh arrays. `prepare` gives the form of a branch that is to be walked."""
    values: dict[str, np.ndarray] = {}
    constants: set[str] = set()
    values.update((value.name, array) for value, array in zip(graph.inputs, inputs, strict=True))
    _walk(graph, values, constants, variant, pack, prepare)
    return [np.array(values[value.name], order="C") for value in graph.outputs]


def _walk(
    graph: Graph, values: dict[str, np.ndarray], constants: set[str], variant: Variant, pack: Pack, prepare: Prepare
) -> None:
    values.update(graph.constants)
    constants.update(graph.constants)
    for node in graph.nodes:
        if node.op == "If":
            condition = values[node.inputs[0]].reshape(-1)[:1].any()  # type: ignore[index]
            chosen: Graph = node.attributes["then_branch" if condition else "else_branch"]
            specs = {name: Spec(array.shape, array.dtype) for name, array in values.items()}
            branch = prepare(chosen, {name: values[name] for name in constants}, specs)
            _walk(branch, values, constants, variant, pack, prepare)
            values.update((name, values[v.name]) for name, v in zip(node.outputs, branch.outputs, strict=True))
        else:
            made = _run(node, values, constants, variant, pack)
            values.update((name, array) for name, array in zip(node.outputs, made, strict=False) if name)


def _run(node: Node, values: dict[str, np.ndarray], constants: set[str], variant: Variant, pack: Pack) -> Sequence[np.ndarray]:
    operator = OPERATORS.get(node.op)
    if operator is None:
        raise UnsupportedError(f"{node.op} ({', '.join(node.outputs)}): there is no such operator")
    arrays = [None if name is None else np.ascontiguousarray(values[name]).reshape(values[name].shape) for name in node.inputs]
    specs = [None if a is None else Spec(a.shape, a.dtype) for a in arrays]
    if operator.lower is not None:
        everything = View(node, specs, arrays)
        results = operator.infer(everything)
        if all(spec.static for spec in results):
            result_bytes(everything, results)
            # Weights are packed once for a node, so only what never changes may be known to the rule.
            known = View(node, specs, [a if n in constants else None for n, a in zip(node.inputs, arrays, strict=True)])
            made = _lowered(node, known, results, arrays, variant, pack)
            if made is not None:
                return made
    return run_operator(node, View(node, specs, arrays), arrays)


def _lowered(
    node: Node, view: View, results: Sequence[Spec], arrays: Sequence[np.ndarray | None], variant: Variant, pack: Pack
) -> list[np.ndarray] | None:
    """The node through its kernels, or None if it has none for these inputs."""
    builder = Builder(pack)
    given: list[np.ndarray] = []
    for name, array in zip(node.inputs, arrays, strict=True):
        if name is not None and array is not None and name not in builder.refs:
            builder.refs[name] = Ref(Buffer(INPUT, array.nbytes, len(given)), 0, array.shape, array.dtype)
            given.append(array)
    builder.begin(0, id(node), view, results)
    if OPERATORS[node.op].lower(view, builder) is False:  # type: ignore[misc]
        return None
    outputs: list[np.ndarray] = []
    for i, name in enumerate(node.outputs):
        spec = results[i]
        out: np.ndarray = np.empty(tuple(int(d or 0) for d in spec.shape or ()), spec.dtype)
        outputs.append(out)
        if name:
            ref = builder.refs[name]
            to = Ref(Buffer(OUTPUT, out.nbytes, i), 0, out.shape, out.dtype)
            builder.python(lambda array: (array,), [ref], [to])
    plain.execute(Plan(builder.calls, [], 0, []), variant.kernels, given, outputs)
    return outputs
