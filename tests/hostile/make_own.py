"""Files that Model.save writes, whose graph, options and packed weights somebody has changed."""

from __future__ import annotations

import functools
import json
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import fastlayers as fl
from fastlayers.errors import FormatError, LimitError, ShapeError, UnsupportedError
from fastlayers.model.model import Model

from ..formats.test_own_control import edited
from ..program.graphs import graph, node
from .cases import Case, Refusal, Sweep, contents, sweeps, weights

F, L, U = FormatError, LimitError, UnsupportedError
X = np.ones((2, 8), np.float32)


def saved() -> bytes:
    """A network of one product, its weights packed too."""
    return _saved()


@functools.cache
def _saved() -> bytes:
    constants = {"w": np.ones((8, 16), np.float32), "b": np.ones(16, np.float32)}
    model = Model(graph({"x": ("n", 8)}, [node("h = Gemm(x, w, b)"), node("y = Relu(h)")], ["y"], constants))
    model(X)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.safetensors"
        model.save(path, packed=True)
        return path.read_bytes()


def run(source: Any, **options: Any) -> Any:
    """Reads the network and runs it, since packed weights are looked at when they are wanted."""
    return fl.load(source, **options)(X)


Header = dict[str, Any]


def rewritten(change: Callable[[Header, bytearray], Any]) -> bytes:
    """The file with its header and its data changed."""
    raw = _saved()
    (length,) = struct.unpack("<Q", raw[:8])
    head, data = json.loads(raw[8 : 8 + length]), bytearray(raw[8 + length :])
    change(head, data)
    text = json.dumps(head).encode()
    return struct.pack("<Q", len(text)) + text + bytes(data)


def about(key: str, value: Any) -> Callable[[], bytes]:
    """An entry of the metadata replaced."""
    return lambda: rewritten(lambda head, data: head["__metadata__"].__setitem__(key, value))


def described(change: Callable[[Any], Any]) -> Callable[[], bytes]:
    """The graph changed."""
    return lambda: edited(_saved(), lambda g, at: change(g))


def packed(change: Callable[[Header, bytearray, str], Any]) -> Callable[[], bytes]:
    """The entry of the packed weights changed."""

    def whole(head: Header, data: bytearray) -> None:
        (name,) = [key for key in head if key.startswith("packed/")]
        change(head, data, name)

    return lambda: rewritten(whole)


def shorter(head: Header, data: bytearray, name: str) -> None:
    """The packed weights lose half of what they are, and what follows moves up."""
    begin, end = head[name]["data_offsets"]
    lost = (end - begin) // 2
    del data[end - lost : end]
    head[name] = {"dtype": "F32", "shape": [(end - begin - lost) // 4], "data_offsets": [begin, end - lost]}
    for key, entry in head.items():
        if key not in ("__metadata__", name) and entry["data_offsets"][0] >= end:
            entry["data_offsets"] = [at - lost for at in entry["data_offsets"]]


def retyped(head: Header, data: bytearray, name: str) -> None:
    begin, end = head[name]["data_offsets"]
    head[name].update(dtype="F64", shape=[(end - begin) // 8])


def cut(name: str) -> Callable[[], bytes]:
    """The first axis of a tensor loses half of what it has."""

    def change(head: Header, data: bytearray) -> None:
        shape = head[name]["shape"]
        shorter(head, data, name)
        head[name]["shape"] = [shape[0] // 2, *shape[1:]]

    return lambda: rewritten(change)


def overlapping(head: Header, data: bytearray) -> None:
    head["b"]["data_offsets"] = head["w" if "w" in head else "w~0"]["data_offsets"]


def deep(depth: int) -> Callable[[], bytes]:
    """Branches in branches."""

    def change(g: Any) -> None:
        inner: Any = {"inputs": [], "outputs": [], "nodes": [], "constants": {}}
        for _ in range(depth):
            inner = {"inputs": [], "outputs": [], "nodes": [["If", [], [], {"then_branch": {"graph": inner}}]], "constants": {}}
        g["nodes"][0][3]["x"] = {"graph": inner}

    return described(change)


def raw_graph(text: str) -> Callable[[], bytes]:
    return about("graph", text)


FILES: dict[str, tuple[Callable[[], bytes], Refusal | None, str]] = {
    "a network": (saved, None, ""),
    # ---- the header
    "another version": (about("fastlayers", "2"), U, "is a model file of version '2'"),
    "a version that is no text": (about("fastlayers", 1), F, "__metadata__ must map strings to strings"),
    "no graph": (lambda: rewritten(lambda head, data: head["__metadata__"].pop("graph")), F, "its graph is broken: KeyError"),
    "no options": (lambda: rewritten(lambda head, data: head["__metadata__"].pop("options")), F, "its graph is broken: KeyError"),
    "a graph that is no JSON": (raw_graph("{"), F, "its graph is broken: JSONDecodeError"),
    "a graph that is a list": (raw_graph("[]"), F, "its graph is broken: "),
    "a graph that is a number": (raw_graph("7"), F, "its graph is broken: "),
    "a graph of 100000 lists": (raw_graph("[" * 100_000 + "]" * 100_000), F, "its graph is broken: RecursionError"),
    "a graph of 3 million lists": (raw_graph("[" + "[]," * 3_000_000 + "[]]"), L, "more than 1000000"),
    "metadata that is a list": (about("metadata", "[]"), F, "are no JSON objects"),
    # ---- options
    "options that are a list": (about("options", "[]"), F, "are no JSON objects"),
    "an option that is a text": (about("options", '{"optimize": "no"}'), F, "option 'optimize' is 'no'"),
    "an option that is a list": (about("options", '{"strict": []}'), F, "option 'strict' is []"),
    "an option that is a number": (about("options", '{"native": 1e300}'), F, "option 'native' is 1e+300"),
    "options nobody knows": (
        about("options", '{"code": "import os", "max_bytes": 1e99, "rounds": -1}'), U, "has the option 'code'",
    ),
    # ---- the graph
    "a tensor that is not there": (
        described(lambda g: g["constants"].update(w="nowhere")), F, "a tensor that the file does not have",
    ),
    "a tensor that is a list": (described(lambda g: g["constants"].update(w=[])), F, "broken"),
    "an operator nobody knows": (
        described(lambda g: g["nodes"][0].__setitem__(0, "Evil")),
        U, "Evil (y): there is no such operator",
    ),
    "an operator of Python's": (
        described(lambda g: g["nodes"][0].__setitem__(0, "__import__('os').system")),
        U, "__import__('os').system (y): there is no such operator",
    ),
    "an operator that is a list": (
        described(lambda g: g["nodes"][0].__setitem__(0, ["Add"])),
        U, "['Add'] (y): there is no such operator",
    ),
    "a node of three parts": (described(lambda g: g["nodes"][0].pop()), F, "broken: ValueError"),
    "a node that is a number": (described(lambda g: g["nodes"].__setitem__(0, 3)), F, "broken: TypeError"),
    "an input that is a number": (described(lambda g: g["nodes"][0][1].__setitem__(0, 3)), F, "a name that is none"),
    "an input of nothing": (described(lambda g: g["nodes"][0][1].__setitem__(0, "nowhere")), F, "reads 'nowhere'"),
    "an output of nothing": (described(lambda g: g["outputs"][0].__setitem__(0, "nowhere")), F, "gives 'nowhere'"),
    "an output twice": (described(lambda g: g["nodes"].append(g["nodes"][0])), F, "writes 'y' a second time"),
    "an output that is an input": (
        described(lambda g: g["nodes"][0][2].__setitem__(0, "x")), F, "writes 'x' a second time",
    ),
    "a dtype of Python's": (described(lambda g: g["inputs"][0].__setitem__(2, "object")), F, "no known dtype"),
    "a dtype that is a list": (described(lambda g: g["inputs"][0].__setitem__(2, [["a", "f4"]])), F, "broken: TypeError"),
    "a size below 0": (described(lambda g: g["inputs"][0].__setitem__(1, [-1, 8])), F, "a size that is none"),
    "a size that is a fraction": (described(lambda g: g["inputs"][0].__setitem__(1, [0.5, 8])), F, "a size that is none"),
    "a size of 2**100": (
        described(lambda g: g["inputs"][0].__setitem__(1, [1 << 100, 8])),
        ShapeError, "has shape (2, 8): expected (1267650600228229401496703205376, 8)",
    ),
    "a thousand sizes": (
        described(lambda g: g["inputs"][0].__setitem__(1, [1] * 1000)),
        ShapeError, "has shape (2, 8): expected (1, 1, 1, 1",
    ),
    "an activation of another type": (
        described(lambda g: g["nodes"][0][3].update(activation={"tuple": ["a", None, {}]})), F, "its graph is broken: ValueError",
    ),
    "an activation of too few": (described(lambda g: g["nodes"][0][3].update(activation={"tuple": [1]})), None, ""),
    "an activation of number 99": (
        described(lambda g: g["nodes"][0][3].update(activation={"tuple": [99, 0.0, 0.0]})),
        ShapeError, "activation is (99, 0.0, 0.0): expected a number of a function",
    ),
    "an activation of number 2**70": (
        described(lambda g: g["nodes"][0][3].update(activation={"tuple": [1 << 70, 0.0, 0.0]})),
        ShapeError, "activation is (1180591620717411303424, 0.0, 0.0): expected a number of a function",
    ),
    "an activation that is a text": (
        described(lambda g: g["nodes"][0][3].update(activation="os.system")),
        ShapeError, "activation is os.system: expected a number of a function",
    ),
    "an attribute of two kinds": (
        described(lambda g: g["nodes"][0][3].update(a={"tuple": [], "float": "1"})), F, "broken: ValueError",
    ),
    "an attribute of an unknown kind": (described(lambda g: g["nodes"][0][3].update(a={"code": "1"})), F, "of an unknown kind"),
    "bytes that are none": (described(lambda g: g["nodes"][0][3].update(a={"bytes": "zz"})), F, "broken: ValueError"),
    "a float that is none": (described(lambda g: g["nodes"][0][3].update(a={"float": "evil"})), F, "broken: ValueError"),
    "branches 70 deep": (deep(70), F, "more than 64 deep"),
    # ---- tensors
    "tensors that overlap": (lambda: rewritten(overlapping), F, "data_offsets"),
    "weights of another shape": (
        lambda: rewritten(lambda head, data: head["w~0"].update(shape=[8, 16])),
        ShapeError, "x has shape (2, 8), weight (8, 16): expected x of shape (..., 16)",
    ),
    "weights of one axis": (
        lambda: rewritten(lambda head, data: head["w~0"].update(shape=[128])),
        ShapeError, "weight has shape (128,): expected (out, in)",
    ),
    "weights of integers": (lambda: rewritten(lambda head, data: head["w~0"].update(dtype="I32")), None, ""),
    "a bias of another length": (
        lambda: rewritten(lambda head, data: head["b"].update(dtype="F64", shape=[8])),
        ShapeError, "bias has shape (8,): expected (16,)",
    ),
    "a bias of half its length": (cut("b"), ShapeError, "bias has shape (8,): expected (16,)"),
    "weights of half their rows": (cut("w~0"), ShapeError, "bias has shape (16,): expected (8,)"),
    # ---- packed weights
    "packed weights of half their size": (packed(shorter), F, "float32 of shape (64,): expected 128 float32 values"),
    "packed weights of another dtype": (packed(retyped), F, "float64 of shape (64,): expected 128 float32 values"),
    "packed weights of more axes": (packed(lambda head, data, name: head[name]["shape"].insert(0, 1)), None, ""),
    "packed weights of another node": (packed(lambda head, data, name: head.update({"packed/9/x": head.pop(name)})), None, ""),
    "packed weights of another version": (about("packed", "0.0.1/1"), None, ""),
    "packed weights of a version of text": (about("packed", "../../owned"), None, ""),
}  # fmt: skip

CASES: list[Case | Sweep] = [
    *contents("fastlayers", FILES, run),
    *contents("fastlayers", {"weights alone of another version": (about("fastlayers", "2"), None, "")}, weights),
    *sweeps("fastlayers", "a small network", saved, run, 9),
]
