"""Pickles of models: a reference to a mapped file that is still the same, else all that is needed."""

from __future__ import annotations

import copy
import inspect
import os
import pickle  # noqa: TID251 - models must survive it; no file is read this way
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from tests.formats import onnx_build as onnx
from tests.program.graphs import graph, node, normal

WIDTH = 200
X = normal(3, WIDTH)
LARGE = WIDTH * WIDTH * 4


def write(path: Path, scale: float = 1.0) -> Path:
    """A file with one large weight."""
    weight = {"w": (scale * normal(WIDTH, WIDTH)).astype(np.float32)}
    fl.Model(graph({"x": ("n", WIDTH)}, [node("y = Linear(x, w)")], ["y"], weight)).save(path)
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "net.safetensors")


def test_a_mapped_file_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    model = fl.load(path.name, num_threads=2, precision="strict", require_native=True)
    model.num_threads = 3
    data = pickle.dumps(model)
    assert len(data) < 10_000 < LARGE
    monkeypatch.chdir("/")  # as a worker elsewhere
    again = pickle.loads(data)
    np.testing.assert_array_equal(again(X), model(X))
    assert (again.num_threads, again._options) == (3, model._options)
    assert pickle.dumps(again) == data


def test_a_reference_has_every_argument_that_the_model_was_loaded_with(path: Path) -> None:
    """One that is not kept has its default in the worker: `zipmap` once made dicts there of what was an array here."""
    model = fl.load(path, zipmap=False)
    carried = {"source", "num_threads", "mmap"}  # otherwise
    assert model._origin is not None
    assert set(model._origin.options) == set(inspect.signature(fl.load).parameters) - carried
    assert pickle.loads(pickle.dumps(model))._origin == model._origin


def test_a_worker_maps_the_same_file(path: Path) -> None:
    """In another process, where the weights are the file's own pages."""
    model = fl.load(path)
    code = """
        import pickle, sys, numpy as np, fastlayers as fl
        model = pickle.loads(sys.stdin.buffer.read())
        maps = open("/proc/self/maps").read() if sys.platform == "linux" else PATH
        assert PATH in maps
        print(float(model(np.ones((1, WIDTH), np.float32)).sum()))
    """
    code = textwrap.dedent(code).replace("PATH", repr(str(path))).replace("WIDTH", str(WIDTH))
    done = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(model), capture_output=True, check=False, timeout=120,
        env={**os.environ, "PYTHONPATH": str(Path(fl.__file__).parents[1])},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    assert float(done.stdout) == pytest.approx(float(model(np.ones((1, WIDTH), np.float32)).sum()), rel=1e-6)


def test_weights_are_carried_otherwise(path: Path) -> None:
    content = path.read_bytes()
    mapped = fl.load(path)
    for model in (fl.load(path, mmap=False), fl.load(content)):
        assert len(pickle.dumps(model)) > LARGE
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(model))(X), mapped(X))
    rewritten = mapped.stream(axis="n")._model  # which is not in the file
    assert len(pickle.dumps(rewritten)) > LARGE and pickle.loads(pickle.dumps(rewritten)).inputs == rewritten.inputs
    other = copy.deepcopy(mapped)
    path.unlink()
    np.testing.assert_array_equal(other(X), mapped(X))  # a copy in this process needs no file


def changed(path: Path, how: str) -> None:
    status = path.stat()
    if how == "content":  # of the same size, in its header, and with its old time put back
        content = bytearray(path.read_bytes())
        content[20] ^= 1
        path.write_bytes(bytes(content))
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    elif how == "time":
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000))
    elif how == "size":
        path.write_bytes(path.read_bytes() + b"\0")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    else:
        path.unlink()


@pytest.mark.parametrize("how", ["content", "time", "size", "gone"])
def test_a_file_that_has_changed(how: str, path: Path) -> None:
    model = fl.load(path)
    want, data = model(X), pickle.dumps(model)
    copied = path.with_suffix(".copy")
    copied.write_bytes(path.read_bytes())
    os.replace(copied, path)  # the model's own mapping stays what it was
    status = os.stat(path)
    os.utime(path, ns=(status.st_atime_ns, model._origin.changed))  # type: ignore[union-attr]
    changed(path, how)
    carried = pickle.dumps(model)  # it is not named any more
    assert len(carried) > LARGE
    np.testing.assert_array_equal(pickle.loads(carried)(X), want)
    with pytest.raises(fl.FormatError, match=r"pickled as a reference to this file, which (has changed|cannot be read)"):
        pickle.loads(data)


@pytest.mark.parametrize("inside", [False, True])
def test_weights_of_other_files_are_carried(inside: bool, tmp_path: Path) -> None:
    """Files next to an ONNX file may change without it, also where it has weights of its own."""
    weight, own = normal(WIDTH, WIDTH), normal(WIDTH, WIDTH)
    (tmp_path / "w.bin").write_bytes(weight.tobytes())
    entries = b"".join(onnx.field(13, onnx.field(1, k) + onnx.field(2, v)) for k, v in (("location", "w.bin"), ("offset", "0")))
    tensors = [onnx.field(1, WIDTH) + onnx.field(1, WIDTH) + onnx.field(2, 1) + onnx.field(8, "w") + entries + onnx.field(14, 1)]
    nodes = [onnx.node("MatMul", "x w", "a"), onnx.node("Add", "a o" if inside else "a a", "y")]
    tensors += [onnx.tensor(own[:3], "o")] * inside + [onnx.tensor(own, "unused")] * inside
    made = onnx.graph(nodes, [onnx.value_info("x", ("n", WIDTH))], [onnx.value_info("y", ("n", WIDTH))], tensors)
    (tmp_path / "m.onnx").write_bytes(onnx.model(made))
    model = fl.load(tmp_path / "m.onnx")
    want = X @ weight + (own[:3] if inside else X @ weight)
    np.testing.assert_allclose(model(X), want, rtol=0, atol=1e-3)
    assert len(pickle.dumps(model)) > LARGE


def test_closed_models_are_not_pickled(path: Path) -> None:
    model = fl.load(path)
    model.close()
    with pytest.raises(fl.ArgumentError, match="the model was closed"):
        pickle.dumps(model)


def test_what_a_file_says_of_itself_is_carried_too(tmp_path: Path) -> None:
    made = onnx.graph([onnx.node("Relu", "x", "y")], [onnx.value_info("x", (2,))], [onnx.value_info("y", (2,))])
    (tmp_path / "m.onnx").write_bytes(onnx.model(made))
    for options in ({}, {"mmap": False}):
        model: Any = fl.load(tmp_path / "m.onnx", **options)  # type: ignore[arg-type]
        assert pickle.loads(pickle.dumps(model))._about == model._about and model._about["producer_name"] == "tests"
