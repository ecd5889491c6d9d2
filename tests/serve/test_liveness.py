"""The event loop's thread runs only what is known to be short before it begins, and reads and writes in short pieces."""

from __future__ import annotations

import gc
import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.model.custom import forget
from fastlayers.serve import wire
from fastlayers.serve.config import Config
from fastlayers.serve.served import Served
from fastlayers.serve.wire import PIECE, Asked, Parameters, answer
from tests.each import each

from .decided import DECIDED, F32, I64, graph

pytestmark = pytest.mark.serve


def served(model: fl.Model, folder: Path) -> Served:
    model.save(folder / "net.safetensors")
    return Served("net", "1", folder / "net.safetensors", Config(), 8, 0.0)


COUNTED = {"NonZero", "Compress", "Unique"}  # compiled: how long they may take at most follows from sizes


@each("op", [op for op in DECIDED if op not in COUNTED])
def test_what_values_decide_is_never_run_between_other_requests(op: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    make, few, many = DECIDED[op]
    made = served(fl.Model(make()), tmp_path_factory.mktemp("net"))
    short, long = {"n": np.asarray(few)}, {"n": np.asarray(many)}
    assert not made.quick(short), "nothing is known of sizes that never ran"
    for _ in range(20):
        made.run(short, 10)
    assert not made.quick(long)
    if op == "Loop":
        made.run(long, 10)
        assert not made.quick(long), "a loop takes as long as its values say"


def test_what_is_counted_takes_as_long_as_its_most(tmp_path: Path) -> None:
    for size, quick in ((1000, True), (3_000_000, False)):
        net = fl.Model(graph("NonZero", "n", given=[("n", (size,), F32)], dtype=I64))
        made = served(net, tmp_path)
        few = {"n": np.zeros(size, F32)}
        assert not made.quick(few)
        made.run(few, 10)
        assert made.quick({"n": np.ones(size, F32)}) is quick, size


def test_short_runs_of_known_sizes_are_quick_and_long_ones_are_not(tmp_path: Path) -> None:
    layer = fl.Linear(64, 64)
    layer.load_state_dict({name: np.zeros(shape) for name, shape in layer.tensor_shapes().items()})
    made = served(fl.compile(layer, fl.graph.Input("x", ("n", 64))), tmp_path)
    for rows, quick in ((1, True), (3, True), (20_000, False)):
        feeds = {"x": np.zeros((rows, 64), np.float32)}
        assert not made.quick(feeds)
        made.run(feeds, 10)
        assert made.quick(feeds) is quick, rows


def test_a_step_of_python_is_never_quick(tmp_path: Path) -> None:
    @fl.operator("Sleepy", "com.example.serve", replace=True)
    def sleepy(x: Any) -> Any:
        return x

    try:
        made = served(fl.compile(sleepy, fl.graph.Input("x", (2,))), tmp_path)
        feeds = {"x": np.zeros(2, np.float32)}
        made.run(feeds, 10)
        assert not made.quick(feeds)
    finally:
        forget("Sleepy", "com.example.serve")


@each("size", [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE])
def test_answers_in_pieces_are_the_json_of_the_whole(size: int) -> None:
    rng = np.random.default_rng(size)
    results = {"y": rng.standard_normal((1, size)).astype(np.float32), "s": np.array([f'"{i}\\' for i in range(size)], object)}
    asked = Asked("7", Parameters(sequence=3, end=True), False, {}, memoryview(b""))
    _, body = answer("net", "1", asked, [("y", False), ("s", False)], results, 1 << 30)
    assert json.loads(body) == {
        "model_name": "net", "model_version": "1", "id": "7",
        "parameters": {"sequence_id": 3, "sequence_start": False, "sequence_end": True},
        "outputs": [
            {"name": "y", "datatype": "FP32", "shape": [1, size], "data": results["y"].ravel().tolist()},
            {"name": "s", "datatype": "BYTES", "shape": [size], "data": results["s"].tolist()},
        ],
    }  # fmt: skip


def test_long_json_is_parsed_by_calls_between_which_others_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parser is one call in C: without these, health waited for 0.24 s while 4 MB were parsed."""
    called: list[str] = []
    for name in ("parse_float", "parse_int"):
        monkeypatch.setitem(wire._GIVING_WAY, name, lambda text, name=name: called.append(name) or float(text))
        assert hasattr(wire.__dict__[{"parse_float": "_float", "parse_int": "_int"}[name]], "__code__"), "a function in Python"
    short, long = (json.dumps({"data": [1.5, 2] * count}).encode() for count in (10, wire._LONG // 4))
    assert wire.document(short, len(short)) == json.loads(short) and not called
    assert wire.document(long, len(long)) == json.loads(long)
    assert called == ["parse_float", "parse_int"] * (wire._LONG // 4)


def test_documents_that_are_parsed_side_by_side_leave_garbage_collection_on(monkeypatch: pytest.MonkeyPatch) -> None:
    second, done = threading.Event(), threading.Event()
    seen: list[bool] = []

    def other() -> None:
        wire.document(b'{"b": 2.5}' + b" " * wire._LONG, 1 << 20)
        done.set()

    def overlap(text: str) -> float:
        """The first document's parsing waits here until the second's has begun, which then waits for the end of the first."""
        if text == "1.5":
            thread.start()
            assert second.wait(10)
        else:
            seen.append(gc.isenabled())
            second.set()
            assert first.wait(10)
            seen.append(gc.isenabled())
        return float(text)

    first, thread = threading.Event(), threading.Thread(target=other)
    monkeypatch.setitem(wire._GIVING_WAY, "parse_float", overlap)
    assert gc.isenabled()
    wire.document(b'{"a": 1.5}' + b" " * wire._LONG, 1 << 20)
    first.set()
    assert done.wait(10)
    thread.join()
    assert seen == [False, False], "it is held back while either is parsed"
    assert gc.isenabled()


@each("item", ["[]", "{}", "[1]", '{"a":[]}'])
def test_json_of_very_many_lists_is_refused(item: str) -> None:
    """They are parsed without a call between them."""
    for count, refused in ((wire._LISTS // 4, False), (wire._LISTS, True)):
        text = f'{{"data":[{",".join([item] * count)}]}}'.encode()
        if refused:
            with pytest.raises(wire.Refused, match=r"^JSON of \d+ lists: expected at most") as caught:
                wire.document(text, len(text))
            assert caught.value.status == 413
        else:
            assert len(wire.document(text, len(text))["data"]) == count
