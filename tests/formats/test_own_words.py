"""What our own file says of a node is read or refused, for every operation; and all that we write is read."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.formats.own_words import _known, unread
from fastlayers.ir.graph import Graph
from fastlayers.model.custom import forget
from fastlayers.model.model import Model
from fastlayers.operators import OPERATORS
from fastlayers.operators.control import CONTROL
from fastlayers.operators.sequence import SEQUENCES
from tests.each import each
from tests.graph.examples import EXAMPLES
from tests.graph.test_ops import record
from tests.program.graphs import graph, node, normal

from . import test_keras as keras
from . import test_tflite as tflite


@each("op", sorted({*OPERATORS, *CONTROL, *SEQUENCES}))
def test_an_unknown_word_of_an_operation_is_refused(op: str) -> None:
    assert unread(op, {"whatever": 3}) == {"whatever": 3}
    assert unread(op, dict.fromkeys(_known(op), 1) if op in OPERATORS else {}) == {}


def test_operations_of_users_read_their_own_arguments() -> None:
    def first(x: Any, a: int = 1) -> Any:
        return x

    def second(x: Any, b: int = 1) -> Any:
        return x

    for function, word, other in ((first, "a", "b"), (second, "b", "a")):  # of one name, one after the other
        fl.operator("Warp", domain="com.example")(function)
        try:
            assert unread("com.example::Warp", {word: 1}) == {} and unread("com.example::Warp", {other: 3}) == {other: 3}
        finally:
            forget("Warp", "com.example")
    assert unread("warp", {"whatever": 3}) == {}  # which nobody knows


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path: Path = tmp_path_factory.mktemp("own") / "m.safetensors"
    nodes = [node("h = Linear(x, w)"), node("y = LeakyRelu(h)", alpha=0.5)]
    Model(graph({"x": ("n", 4)}, nodes, ["y"], {"w": normal(3, 4)})).save(path)
    return path.read_bytes()


def edited(saved: bytes, word: str, change: Any) -> bytes:
    """The file with what its metadata says under a word changed."""
    (length,) = struct.unpack("<Q", saved[:8])
    head = json.loads(saved[8 : 8 + length])
    value = json.loads(head["__metadata__"][word])
    change(value)
    head["__metadata__"][word] = json.dumps(value)
    text = json.dumps(head).encode()
    return struct.pack("<Q", len(text)) + text + saved[8 + length :]


@pytest.mark.parametrize(
    ("word", "change", "text"),
    [
        ("graph", lambda g: g["nodes"][0][3].update(whatever=3), r"'Linear' \('y'\) has 'whatever'=3, which is not read"),
        ("graph", lambda g: g.update(whatever=[3]), r"its graph has 'whatever'=\[3\], which is not read"),
        ("options", lambda o: o.update(whatever=True), "has the option 'whatever'=True, which is not read"),
    ],
)
def test_an_unknown_word_of_the_file_is_refused(saved: bytes, word: str, change: Any, text: str) -> None:
    np.testing.assert_equal(fl.load(edited(saved, word, lambda value: None))(np.ones((2, 4), np.float32)).shape, (2, 3))
    with pytest.raises(fl.UnsupportedError, match=text):
        fl.load(edited(saved, word, change))


def nodes(made: Graph) -> list[Any]:
    """The nodes of a graph and of those in it."""
    found = list(made.nodes)
    for one in made.nodes:
        for value in one.attributes.values():
            found += nodes(value) if isinstance(value, Graph) else []
    return found


@each("example", EXAMPLES)
def test_what_functions_record_is_read(example: Any) -> None:
    for one in nodes(record(example, example.shapes)):
        assert unread(one.op, one.attributes) == {}, one


def test_all_that_is_written_is_read() -> None:
    """By what files of others become, as they are written and simplified."""
    models = [keras.load(*file, optimize=optimize) for file in keras.FILES for optimize in (True, False)]
    models += [fl.load(case.content, optimize=optimize) for case in tflite.goldens().values() for optimize in (True, False)]
    for model in models:
        for made in (model._graph, model._main.whole_graph()):
            for one in nodes(made):
                assert unread(one.op, one.attributes) == {}, one
