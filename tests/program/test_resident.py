"""Weights of mapped files are not in memory twice: read in place, at any address, and given up once they are packed."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import fastlayers as fl
from fastlayers._held import unread

pytestmark = pytest.mark.onnx
KB = 1024


def network(folder: Path, shift: int) -> Path:
    """A file of a convolution, batch normalization, a table and a product, whose initializers all are `shift` bytes off."""
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    arrays = {"w": rng.normal(size=(256, 64, 3, 3)), "s": rng.uniform(0.5, 1.5, 256), "b": rng.normal(size=256),
              "m": rng.normal(size=256), "v": rng.uniform(0.5, 1.5, 256), "table": rng.normal(size=(50, 256)),
              "p": rng.normal(size=(256, 100))}  # fmt: skip
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["y", "s", "b", "m", "v"], ["z"]),
        helper.make_node("GlobalAveragePool", ["z"], ["g"]),
        helper.make_node("Flatten", ["g"], ["f"]),
        helper.make_node("Gather", ["table", "i"], ["t"], axis=0),
        helper.make_node("Add", ["f", "t"], ["a"]),
        helper.make_node("MatMul", ["a", "p"], ["out"]),
    ]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "g", [info("x", TensorProto.FLOAT, (1, 64, 8, 8)), info("i", TensorProto.INT64, (1,))],
        [info("out", TensorProto.FLOAT, None)], [numpy_helper.from_array(a.astype(np.float32), n) for n, a in arrays.items()],
    )  # fmt: skip
    path = folder / f"{shift}.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="p" * shift)
    path.write_bytes(model.SerializeToString())
    return path


def touched(array: np.ndarray) -> int:
    """Bytes of the mapping around an array that this process has in memory."""
    at, inside = array.__array_interface__["data"][0], False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in (word := line.split()[0]) and not word.endswith(":"):
            low, high = (int(part, 16) for part in word.split("-"))
            inside = low <= at < high
        elif inside and word == "Rss:":
            return int(line.split()[1]) * KB
    raise AssertionError("the array is in no mapping")


def test_results_do_not_depend_on_where_weights_lie(tmp_path: Path, variant: str) -> None:
    x = np.random.default_rng(1).normal(size=(1, 64, 8, 8)).astype(np.float32)
    feeds = {"x": x, "i": np.array([7])}
    results, odd = [], 0
    for shift in range(1, 5):
        model = fl.load(network(tmp_path, shift))
        odd += not model._graph.constants["w"].flags.aligned
        results.append(model.run(feeds)["out"])
        model.save(tmp_path / "own.safetensors")
        results.append(fl.load(tmp_path / "own.safetensors").run(feeds)["out"])
        with fl.load(network(tmp_path, shift), optimize=False) as plain:
            np.testing.assert_allclose(plain.run(feeds)["out"], results[-1], rtol=1e-4, atol=1e-4)
    assert odd == 3, "the shifts give every address"
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


@pytest.mark.skipif(sys.platform != "linux", reason="/proc/self/smaps")
def test_packed_weights_leave_their_file(tmp_path: Path) -> None:
    for shift in range(1, 5):
        model = fl.load(network(tmp_path, shift))
        model.run({"x": np.ones((1, 64, 8, 8), np.float32), "i": np.array([7])})
        weight = model._graph.constants["w"]
        # The convolution's weights are 576 KB, the product's 100. The table's 50 are read where they are, or were copied; with a
        # page that is read a system maps those around it, 64 KB at a time, so that some of all the others may be there again.
        assert touched(weight) < 400 * KB, shift
        before = weight.sum()  # read again, from the file
        unread(weight)
        assert weight.sum() == before


def test_what_belongs_to_others_is_not_dropped() -> None:
    import mmap

    memory = mmap.mmap(-1, 1 << 16)
    array = np.frombuffer(memory, np.uint8)
    array[:] = 7
    unread(array)
    assert array.min() == 7
    unread(np.ones(1 << 16))
    unread(np.float32(3))
