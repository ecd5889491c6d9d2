"""Runs of fastlayers.ort that are ended from outside, that give an initializer another value, and that are profiled."""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
import fastlayers.ort as ort
from fastlayers.kernels import dispatch
from fastlayers.model import hop
from fastlayers.ort import _core
from tests.formats import onnx_build as onnx

from . import networks

X = np.arange(6, dtype=np.float32).reshape(2, 3)
S = np.array(5, np.int64)
MOST = 60  # seconds, of what is to come at once


ROWS = (8192, 1024)


def long() -> bytes:
    """Products of 8,192 x 1,024 x 1,024, each a tenth of a second of a core or more."""
    weights = [onnx.tensor(np.eye(1024, dtype="f4"), "w")]
    nodes = [onnx.node("MatMul", f"h{i} w", f"h{i + 1}") for i in range(24)]
    return onnx.model(onnx.graph(nodes, [onnx.value_info("h0", ROWS)], [onnx.value_info("h24", ROWS)], weights))


def begun(what: Any) -> threading.Thread:
    thread = threading.Thread(target=what, daemon=True)
    thread.start()
    return thread


@pytest.mark.skipif(not dispatch.levels(), reason="numpy's products are done to their end")
def test_terminate_ends_a_run_that_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    session = ort.InferenceSession(long())
    session._sess._model.prepare({"h0": ROWS})
    options, told, goes = ort.RunOptions(), [], threading.Event()
    found = _core.Core._found

    def watched(self: Any, *arguments: Any) -> Any:
        goes.set()
        return found(self, *arguments)

    monkeypatch.setattr(_core.Core, "_found", watched)

    def run() -> None:
        try:
            session.run(None, {"h0": np.ones(ROWS, np.float32)}, options)
            told.append("done")
        except ort.Fail as error:
            told.append(str(error))

    thread = begun(run)
    assert goes.wait(MOST)  # past what is asked before a run
    time.sleep(0.1)
    options.terminate = True
    thread.join(MOST)
    assert told == ["[ONNXRuntimeError] : 1 : FAIL : Exiting due to terminate flag being set to true."]
    options.terminate = False  # it works afterwards, with the same options
    small = ort.InferenceSession(networks.added())
    np.testing.assert_array_equal(small.run(["y"], {"x": X, "s": S}, options)[0], X + networks.ADDED)


@pytest.mark.skipif(not dispatch.levels(), reason="numpy's products are done to their end")
def test_a_cancelled_coroutine_ends_its_run() -> None:
    model, ended, told = fl.load(long()), threading.Event(), []
    model.prepare({"h0": ROWS})

    def run(left: float | None) -> None:
        try:
            model.run(np.ones(ROWS, np.float32))
            told.append("done")
        except BaseException as error:
            told.append(type(error).__name__)
            raise
        finally:
            ended.set()

    async def main() -> None:
        task = asyncio.create_task(hop.in_thread(run, None))
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert ended.wait(MOST) and told == ["_GivenUp"]


def test_an_initializer_that_is_an_input_may_be_fed() -> None:
    session = ort.InferenceSession(networks.overridable())
    assert [arg.name for arg in session.get_inputs()] == ["x"]
    assert [(arg.name, arg.type, arg.shape) for arg in session.get_overridable_initializers()] == [
        ("w", "tensor(float)", [3]), ("b", "tensor(float)", [3]),
    ]  # fmt: skip
    w, b = np.array([1, 2, 3], "f4"), np.array([4, 5, 6], "f4")
    for _ in range(2):
        for more, want in (({}, 2 * X + 1), ({"w": w}, w * X + 1), ({"b": b}, 2 * X + b), ({"w": w, "b": b}, w * X + b)):
            np.testing.assert_array_equal(session.run(None, {"x": X, **more})[0], want)
    binding = session.io_binding()
    for name, array in (("x", X), ("w", w)):
        binding.bind_cpu_input(name, array)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], w * X + 1)
    with pytest.raises(ort.InvalidArgument, match="Got invalid dimensions for input: w"):
        session.run(None, {"x": X, "w": np.ones(4, "f4")})
    with pytest.raises(ort.InvalidArgument, match="Unexpected input data type"):
        session.run(None, {"x": X, "w": np.ones(3)})


def test_open_sizes_and_files_of_before() -> None:
    session = ort.InferenceSession(networks.overridable(shape=("k",)))
    assert session.get_overridable_initializers()[0].shape == ["k"]
    np.testing.assert_array_equal(session.run(None, {"x": X, "w": np.full(1, 3, "f4")})[0], 3 * X + 1)
    old = ort.InferenceSession(networks.overridable(ir=3))
    assert old.get_overridable_initializers() == [] and len(old.get_inputs()) == 1
    with pytest.raises(ort.InvalidArgument, match="Invalid input name: w"):
        old.run(None, {"x": X, "w": np.ones(3, "f4")})


def profiled(folder: Path, content: bytes, feeds: dict[str, np.ndarray], runs: int) -> tuple[list[dict[str, Any]], list[Any]]:
    options = ort.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(folder / "p")
    before = time.time_ns()
    session = ort.InferenceSession(content, options)
    assert before - 10**9 < session.get_profiling_start_time_ns() <= time.time_ns()
    found = [session.run(None, feeds) for _ in range(runs)]
    path = session.end_profiling()
    assert Path(path).parent == folder and Path(path).name.startswith("p_20") and path.endswith(".json")
    assert session.end_profiling() == ""
    session.run(None, feeds)  # goes on without
    return json.loads(Path(path).read_text(encoding="utf-8")), found


def test_a_profile_has_the_events_of_sessions_and_nodes(tmp_path: Path) -> None:
    nodes = [onnx.node("MatMul", "x w", "a"), onnx.node("Softmax", "a", "y")]
    weights = [onnx.tensor(np.eye(64, dtype="f4"), "w")]
    graph = onnx.graph(nodes, [onnx.value_info("x", ("n", 64))], [onnx.value_info("y", ("n", 64))], weights)
    x = np.random.default_rng(0).standard_normal((32, 64), np.float32)
    events, found = profiled(tmp_path, onnx.model(graph), {"x": x}, 3)
    np.testing.assert_array_equal(found[0][0], ort.InferenceSession(onnx.model(graph)).run(None, {"x": x})[0])
    assert [e["name"] for e in events if e["cat"] == "Session"] == ["model_loading_array", *["model_run"] * 3]
    assert all(e.keys() == {"cat", "pid", "tid", "dur", "ts", "ph", "name", "args"} and e["dur"] >= 0 for e in events)
    made = [e for e in events if e["cat"] == "Node"]
    if not dispatch.current().startswith("aot/"):
        assert not made
        return
    assert len(made) == 6 and all(a["ts"] + a["dur"] <= b["ts"] + 1 for a, b in itertools.pairwise(made[:2]))
    told = made[1]["args"]
    assert told["op_name"] == "Softmax" and told["provider"] == "CPUExecutionProvider" and told["output_size"] == "8192"
    assert told["output_type_shape"] == [{"float": [32, 64]}] == told["input_type_shape"]
    assert made[0]["args"]["parameter_size"] == str(4 * 64 * 64)


def test_a_profile_is_written_when_the_session_goes_and_of_networks_in_stages(tmp_path: Path) -> None:
    nodes = [onnx.node("NonZero", "x", "i"), onnx.node("Transpose", "i", "t"), onnx.node("GatherND", "x t", "y")]
    content = onnx.model(onnx.graph(nodes, [onnx.value_info("x", ("n", 3))], [onnx.value_info("y", ("k",))]))
    options = ort.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / "p")
    session = ort.InferenceSession(content, options)
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], X[X != 0])
    (path,) = tmp_path.iterdir()
    assert path.read_text() == ""
    del session
    gc.collect()
    assert json.loads(path.read_text())[1]["name"] == "model_run"


def test_a_profile_that_cannot_be_written(tmp_path: Path) -> None:
    options = ort.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / "none" / "p")
    with pytest.raises(ort.Fail, match=r"cannot write .*No such file"):
        ort.InferenceSession(networks.added(), options)
