"""ONNX: nodes of any operator that there is, with attributes of its own and inputs that are there, put into a model's graph."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any

import numpy as np

from fastlayers.formats.onnx.contrib import MICROSOFT, PREVIEW
from fastlayers.formats.onnx.domains import OTHERS
from fastlayers.formats.onnx.schema import Schema, schemas
from tests.formats import onnx_build as ob

from . import blocks
from .protobuf import Part, fields, joined

__all__ = ["mutate"]

_STRINGS = (
    "", "SAME_UPPER", "VALID", "NOTSET", "linear", "nearest", "cubic", "constant", "reflect", "edge", "wrap", "Relu", "Tanh",
    "half_pixel",
    "align_corners", "add", "mul", "NHWC", "DCR", "CRD", "ij,jk->ik", "...i,i", "bilinear", "forward", "bidirectional",
    "reverse", "mean", "left", "x",
)  # fmt: skip
_DTYPES = ("f4", "f4", "f4", "i8", "i8", "i4", "b1", "u1", "i1", "f8", "f2", "u8")
_OWN = 7  # the graph's field in a model; a graph has nodes 1, initializers 5, inputs 11 and outputs 12


@cache
def _operators() -> tuple[tuple[str, str, Schema], ...]:
    """Domain, name and schema of each."""
    found = [("", name, schema) for name, schema in schemas().items()]
    for domain, table in {"com.microsoft": MICROSOFT, "ai.onnx.preview": PREVIEW, **OTHERS}.items():
        found += [(domain, name, schema) for name, (schema, _) in table.items()]
    return tuple(found)


def _array(rng: Random) -> np.ndarray:
    """A small array, as axes, sizes, weights and the like are."""
    dtype = np.dtype(rng.choice(_DTYPES))
    shape = tuple(rng.choice((0, 1, 1, 2, 3, 4)) for _ in range(rng.choice((0, 1, 1, 1, 2, 3, 4))))
    kind = rng.random()
    if kind < 0.1 and dtype.kind in "iu":
        big = np.array([blocks.number(rng, dtype.itemsize) for _ in range(int(np.prod(shape)))], np.uint64)
        return big.astype(dtype).reshape(shape)
    values = [rng.choice((-1, 0, 1, 1, 2, 2, 3, 4)) if kind < 0.8 else i for i in range(int(np.prod(shape)))]
    return np.array(values).astype(dtype).reshape(shape)


def _attribute(rng: Random, name: str, kind: str, body: bytes) -> bytes:
    if kind == "g":
        return ob.attribute(name, ob.Graph(body))
    if kind in ("t", "x", "y"):
        return ob.attribute(name, _array(rng))
    one: dict[str, Any] = {
        "i": lambda: rng.choice((-1, 0, 0, 1, 1, 2, 3, 7, blocks.number(rng) - (1 << 62))),
        "f": lambda: rng.choice((0.0, 1.0, -1.0, 0.5, 1e30, float("nan"), float("inf"))),
        "s": lambda: rng.choice(_STRINGS),
    }
    if len(kind) == 2:
        return ob.attribute(name, [one[kind[0]]() for _ in range(rng.choice((1, 2, 2, 3, 4, 4, 6)))])
    return ob.attribute(name, one[kind]())


def _text(content: bytes, number: int) -> str:
    return next((f[2].decode("utf-8", "replace") for f in fields(content) if f[0] == number and f[1] == 2), "")


def mutate(rng: Random, content: bytes, other: bytes) -> bytes:
    """A node added to the model's graph, or in place of one that is there. What is no model is changed as bytes."""
    parts: list[Part] = list(fields(content))
    at = next((i for i, part in enumerate(parts) if part[0] == _OWN and part[1] == 2), None)
    if at is None:
        return blocks.mutate(rng, content, other)
    graph = list(fields(parts[at][2]))
    places = [i for i, part in enumerate(graph) if part[0] == 1]
    names = [_text(part[2], 8 if part[0] == 5 else 1) for part in graph if part[0] in (5, 11)]
    names += [f[2].decode("utf-8", "replace") for i in places for f in fields(graph[i][2]) if f[0] == 2]
    domain, op, schema = rng.choice(_operators())
    least, most = schema.least, schema.least + 3 if schema.most is None else schema.most
    inputs = [rng.choice(names) if names and rng.random() < 0.8 else "" for _ in range(rng.randint(least, most))]
    for i, name in enumerate(inputs):
        if name == "" and (i < least or rng.random() < 0.5):
            inputs[i] = f"made{rng.getrandbits(20)}"
            graph.append((5, 2, ob.tensor(_array(rng), inputs[i]), 0))
    count = 2 if schema.outputs is None else schema.outputs
    outputs = [f"out{rng.getrandbits(20)}" for _ in range(max(1, rng.randint(1, max(count, 1))))]
    replaced = rng.choice(places) if places and rng.random() < 0.5 else None
    if replaced is not None:
        old = [f[2].decode("utf-8", "replace") for f in fields(graph[replaced][2]) if f[0] == 2]
        outputs[: len(old)] = old[: len(outputs)]
    body = parts[at][2] if len(parts[at][2]) < 2000 else b""
    made = b"".join(ob.field(1, name) for name in inputs) + b"".join(ob.field(2, name) for name in outputs) + ob.field(4, op)
    for name, known in schema.attributes.items():
        if known.required or rng.random() < 0.35:
            made += ob.field(5, _attribute(rng, name, known.type, body))
    made += ob.field(7, domain) if domain else b""
    if replaced is not None:
        graph[replaced] = (1, 2, made, 0)
    else:
        graph.append((1, 2, made, 0))
        graph.append((12, 2, ob.value_info(outputs[0], None), 0))
    parts[at] = (_OWN, 2, joined(graph), 0)
    if domain:
        parts.append((8, 2, ob.field(1, domain) + ob.field(2, rng.choice((1, 2, 3, 5))), 0))
    if rng.random() < 0.3:
        parts = [p for p in parts if p[0] != 8 or _text(p[2], 1)]
        parts.append((8, 2, ob.field(1, "") + ob.field(2, rng.randint(max(6, min(schema.since, 28)), 28)), 0))
    return joined(parts)
