"""Dask arrays on a local cluster of two worker processes; step `dask` of .ci/run."""

from __future__ import annotations

import pickle  # noqa: TID251 - what is sent to workers
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers import ArgumentError, DTypeError, FormatError, ShapeError
from fastlayers.integrations import ModelFile
from fastlayers.integrations.dask import predict

from .network import CLASSES, SIZES, die_once, loop, rows, save

da: Any = pytest.importorskip("dask.array")
pytestmark = [pytest.mark.dask, pytest.mark.filterwarnings("default")]

COUNT = 1000


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    from .clusters import dask_cluster

    with dask_cluster(2) as client:
        yield client


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("model") / "network.safetensors", two=True)


def dying(block: np.ndarray, marker: str, value: float) -> np.ndarray:
    """The chunk as it is; the worker dies when it first meets the one that begins with this value."""
    if block.size and block.flat[0] == value:
        die_once(marker)
    return block


@pytest.mark.parametrize("killed", [False, True])
def test_rows_are_those_of_a_loop_whether_a_worker_dies_or_not(client: Any, path: Path, tmp_path: Path, killed: bool) -> None:
    x = rows(COUNT)
    given = da.from_array(x, chunks=(50, -1, -1, -1))
    marker = tmp_path / "died"
    if killed:
        given = given.map_blocks(dying, str(marker), float(x[500].flat[0]), dtype=x.dtype, meta=np.empty((0,) * 4, x.dtype))
    before = set(client.run(lambda: __import__("os").getpid()).values())
    made = predict(path, given, "softmax").compute(scheduler=client)
    np.testing.assert_array_equal(made, loop(path, x))
    assert marker.exists() == killed
    if killed:
        assert int(marker.read_text()) in before


@pytest.mark.parametrize("chunks", [(3, -1, -1, -1), ((1, 6, 0, 4), 2, 5, 12), (11, 3, 12, 12)])
@pytest.mark.parametrize("outputs", ["softmax", "relu_1", None])
def test_chunks_shape_dtype_and_meta_are_those_of_the_result(path: Path, chunks: Any, outputs: Any) -> None:
    x = rows(11).astype(np.float64)
    given = da.from_array(x, chunks=chunks)
    made = predict(path, given, outputs)
    want = fl.load(path).run({"x": x})
    for name, array in zip(want if outputs is None else [outputs], made if outputs is None else [made], strict=True):
        assert array.shape == want[name].shape and array.dtype == want[name].dtype
        assert array.chunks == (given.chunks[0], *((size,) for size in want[name].shape[1:]))
        assert type(array._meta) is np.ndarray and array._meta.shape == (0,) * want[name].ndim and array._meta.dtype == np.float32
        np.testing.assert_array_equal(array.compute(scheduler="threads"), want[name])
        np.testing.assert_array_equal(array[2:4].sum(0).compute(scheduler="sync"), want[name][2:4].sum(0))


def test_several_outputs_are_computed_in_one_run(path: Path, tmp_path: Path) -> None:
    import dask

    file = Counting(path)
    made = predict(file, da.from_array(rows(12), chunks=(4, -1, -1, -1)))
    Counting.runs = 0
    first, second = dask.compute(*made, scheduler="sync")
    assert Counting.runs == 3
    np.testing.assert_array_equal(first, loop(path, rows(12)))
    assert second.shape == (12, 16, 5, 5)


class Counting(ModelFile):
    runs = 0

    def model(self) -> Any:
        Counting.runs += 1
        return super().model()


def test_unknown_numbers_of_rows(path: Path) -> None:
    x = rows(20)
    given = da.from_array(x, chunks=(6, -1, -1, -1))
    kept = given[da.from_array(x[:, 0, 0, 0] > 0, chunks=6)]
    made = predict(path, kept, "softmax")
    assert np.isnan(made.shape[0]) and made.shape[1] == CLASSES
    np.testing.assert_array_equal(made.compute(scheduler="sync"), loop(path, x[x[:, 0, 0, 0] > 0]))
    assert [part.shape[0] for part in predict(path, kept)] == pytest.approx([np.nan] * 2, nan_ok=True)


def test_the_path_travels_and_equal_work_has_equal_names(path: Path, tmp_path: Path) -> None:
    given = da.zeros((8, *SIZES), chunks=(2, -1, -1, -1), dtype=np.float32)
    made = predict(path, given, "softmax")
    assert predict(path, given, "softmax").name == made.name
    assert predict(path, given, "softmax", num_threads=2).name == made.name
    assert predict(path, given, "softmax", optimize=False).name != made.name
    other = save(tmp_path / "network.safetensors", seed=1, two=True)
    assert predict(other, given, "softmax").name != made.name
    # 2 MB of weights, of which nothing is in the graph.
    heavy = tmp_path / "heavy.safetensors"
    weights = np.ones((1024, 512), np.float32)
    fl.compile(lambda x: fl.functional.linear(x, weights), fl.graph.Input("x", ("n", 512))).save(heavy)
    task = predict(heavy, da.zeros((4, 512), chunks=(1, -1), dtype=np.float32))
    assert len(pickle.dumps(dict(task.__dask_graph__()))) < 20_000
    assert predict(fl.load(path), given, "softmax").name == made.name


def test_two_inputs_with_axes_of_their_own(tmp_path: Path) -> None:
    F = fl.functional
    file = tmp_path / "two.safetensors"
    left, right = fl.graph.Input("a", ("n", 2, 3)), fl.graph.Input("b", ("n", 1, 1))
    fl.compile(lambda a, b: F.relu(a * b), left, right).save(file)
    a, b = rows(10)[:, :2, :3, 0].copy(), rows(10)[:, :1, :1, 0].copy()
    given = {"a": da.from_array(a, chunks=(4, 1, 2)), "b": da.from_array(b, chunks=(3, 1, 1))}
    made = predict(file, given)
    assert made.chunks[0] == (4, 4, 2)
    np.testing.assert_array_equal(predict(file, given, [fl.load(file).outputs.names[0]])[0].compute(), np.maximum(a * b, 0))
    with pytest.raises(ShapeError, match="expected arrays with as many rows each"):
        predict(file, {"a": given["a"], "b": given["b"][:9]})
    np.testing.assert_array_equal(made.compute(scheduler="sync"), np.maximum(a * b, 0))


def test_what_is_asked_is_checked(client: Any, path: Path, tmp_path: Path) -> None:
    given = da.zeros((8, *SIZES), chunks=(2, -1, -1, -1), dtype=np.float32)
    with pytest.raises(DTypeError, match="x for 'x' is of type ndarray: expected a Dask array"):
        predict(path, rows(2))
    with pytest.raises(ShapeError, match="input 'x' has shape"):
        predict(path, given[:, :2])
    with pytest.raises(ArgumentError, match=r"outputs has \['z'\]"):
        predict(path, given, "z")
    file = save(tmp_path / "network.safetensors")
    made = predict(file, given)
    save(file, seed=1)
    with pytest.raises(FormatError, match="has another content here"):
        made.compute(scheduler=client)
