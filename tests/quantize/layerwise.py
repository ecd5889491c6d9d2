"""Each layer of a quantized network alone, in ours and in onnxruntime, of the same input: what differs is the layer's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fastlayers.formats import onnx
from fastlayers.formats.onnx.write import content
from fastlayers.ir.graph import Graph, Value, captured
from fastlayers.model.model import Model
from fastlayers.passes.spelled import spelled

__all__ = ["layers", "session", "steps_apart"]


def layers(graph: Graph) -> dict[str, tuple[Graph, list[str]]]:
    """For each value of bytes of a graph with pairs the graph that makes it, and the names of its inputs: other values of bytes,
    floats that others are made of, and the graph's own inputs."""
    maker = {name: node for node in graph.nodes for name in node.outputs}
    pairs = [node for node in graph.nodes if node.op == "QuantizeLinear"]
    given = {v.name for v in graph.inputs}
    found = {}
    for pair in pairs:
        others = {name for other in pairs if other is not pair for name in (other.outputs[0], other.inputs[0]) if name}
        ends = (others - {pair.inputs[0]}) | given
        wanted, inside, inputs = [pair.outputs[0]], set(), set()
        while wanted:
            name = wanted.pop()
            if name in ends:
                inputs.add(name)
            elif name in maker and id(maker[name]) not in inside:
                inside.add(id(maker[name]))
                wanted += [n for n in (*maker[name].inputs, *captured(maker[name])) if n]
        nodes = tuple(node for node in graph.nodes if id(node) in inside)
        read = {name for node in nodes for name in (*node.inputs, *captured(node))}
        constants = {name: array for name, array in graph.constants.items() if name in read}
        part = Graph((), (Value(pair.outputs[0], None, np.dtype(np.uint8)),), nodes, constants)
        found[pair.outputs[0]] = part, sorted(inputs)
    return found


def session(file: bytes) -> Any:
    """onnxruntime with a file."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])


def steps_apart(model: Model, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """By how many steps each value of bytes differs in onnxruntime, where its layer has the same input in both: what onnxruntime
    computed before it."""
    parts = layers(model._graph)
    given = {v.name for v in model._graph.inputs}
    names = sorted({name for _, inputs in parts.values() for name in inputs} - given)
    whole = b"".join(bytes(part) for part in content(spelled(model._graph), {}))
    known = dict(feeds) | dict(zip(names, session(whole + onnx.more_outputs(names)).run(names, dict(feeds)), strict=True))
    found = {}
    for name, (part, inputs) in parts.items():
        values = tuple(Value(n, known[n].shape, known[n].dtype) for n in inputs)
        alone = Graph(values, part.outputs, part.nodes, part.constants)
        file = b"".join(bytes(piece) for piece in content(spelled(alone), {}))
        fed = {n: known[n] for n in inputs}
        (want,) = session(file).run(None, fed)
        got = Model(alone, model._options).run(fed)[name]
        found[name] = np.abs(got.astype(int) - want.astype(int))
    return found
