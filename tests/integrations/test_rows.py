"""Columns through a model without any engine: shapes, fixed batches, ragged columns, and what is refused."""

from __future__ import annotations

import pickle  # noqa: TID251 - what is sent to workers
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers import ArgumentError, DTypeError, FormatError, MissingExtraError, ShapeError
from fastlayers.integrations import ModelFile, joblib
from fastlayers.integrations._rows import Rows
from fastlayers.integrations.dask import predict as dask_predict
from fastlayers.integrations.ray import Predictor
from fastlayers.integrations.spark import predict_fn

from .network import CLASSES, SIZES, loop, rows, save


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("model") / "network.safetensors", two=True)


@pytest.fixture
def elementwise(tmp_path: Path) -> Path:
    """Any number of steps a row."""
    fl.compile(lambda x: fl.functional.relu(x), fl.graph.Input("x", ("n", "steps", 2))).save(tmp_path / "relu.safetensors")
    return tmp_path / "relu.safetensors"


@pytest.mark.parametrize("count", [0, 1, 2, 7])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
def test_predictor_gives_the_bits_of_a_loop_and_keeps_columns(path: Path, count: int, dtype: str) -> None:
    x = (rows(count) * 3).astype(dtype)
    x.flags.writeable = False
    made = Predictor(path, {"x": "image"}, {"softmax": "score"})({"image": x, "id": np.arange(count)})
    want = loop(path, x) if count else np.empty((0, CLASSES), np.float32)
    assert list(made) == ["image", "id", "score"] and made["image"] is x
    assert made["score"].dtype == want.dtype
    np.testing.assert_array_equal(made["score"], want)


def test_kept_columns_are_those_named(path: Path) -> None:
    batch = {"x": rows(2), "id": np.arange(2), "name": np.array(["a", "b"], object)}
    assert list(Predictor(path, keep=False)(batch)) == ["softmax", "relu_1"]
    assert list(Predictor(path, keep=["name"], outputs=["softmax"])(batch)) == ["name", "softmax"]
    with pytest.raises(ArgumentError, match=r"keep has \['nothing'\]"):
        Predictor(path, keep=["nothing"])(batch)
    with pytest.raises(ArgumentError, match=r"would replace the columns \['id'\]"):
        Predictor(path, outputs={"softmax": "id"})(batch)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("count", [0, 1, 3, 8])
def test_a_model_of_a_fixed_batch_gets_pieces_of_it(tmp_path: Path, batch: int, count: int) -> None:
    fixed, free = save(tmp_path / "fixed.safetensors", batch=batch), save(tmp_path / "free.safetensors")
    x = rows(count)
    made = Predictor(fixed, outputs={"softmax": "y"})({"x": x})["y"]
    assert made.shape == (count, CLASSES)
    np.testing.assert_array_equal(made, Predictor(free, outputs={"softmax": "y"})({"x": x})["y"])


def test_flat_rows_take_the_shape_of_the_input(path: Path) -> None:
    x = rows(4)
    np.testing.assert_array_equal(Predictor(path)({"x": x.reshape(4, -1)})["softmax"], loop(path, x))
    with pytest.raises(ShapeError, match="input 'x' has shape"):
        Predictor(path)({"x": x.reshape(4, -1)[:, 1:]})


def test_ragged_columns_are_grouped_by_shape_and_come_back_in_order(elementwise: Path) -> None:
    rng = np.random.default_rng(3)
    items = np.empty(9, object)
    items[:] = [rng.standard_normal((n, 2)).astype(np.float32) for n in (3, 1, 3, 2, 0, 1, 3, 5, 2)]
    made = Predictor(elementwise, outputs={"relu": "y"})({"x": items})["y"]
    assert made.dtype == object
    for got, given in zip(made, items, strict=True):
        np.testing.assert_array_equal(got, np.maximum(given, 0))
    same = Predictor(elementwise, outputs={"relu": "y"})({"x": items[[0, 2, 6]]})["y"]
    assert same.shape == (3, 3, 2) and same.dtype == np.float32
    assert Predictor(elementwise)({"x": items[:0]})["relu"].shape == (0, 1, 2)
    items[4] = None
    with pytest.raises(DTypeError, match="row 4 of column 'x' is None"):
        Predictor(elementwise)({"x": items})
    items[4] = [[1, 2], [3]]
    with pytest.raises(ShapeError, match="row 4 of column 'x'"):
        Predictor(elementwise)({"x": items})


def test_ragged_rows_with_results_of_one_shape_come_back_in_order(tmp_path: Path) -> None:
    F = fl.functional
    file = tmp_path / "mean.safetensors"
    fl.compile(lambda x: F.flatten(F.adaptive_avg_pool2d(x, 1), 1), fl.graph.Input("x", ("n", 1, "h", "w"))).save(file)
    items = np.empty(7, object)
    items[:] = [np.full((1, h, 2), i, np.float32) for i, h in enumerate((3, 1, 3, 2, 1, 3, 2))]
    made = next(iter(Predictor(file, keep=False)({"x": items}).values()))
    np.testing.assert_array_equal(made, np.arange(7, dtype=np.float32)[:, None])


def test_constants_are_the_same_for_all_rows(tmp_path: Path) -> None:
    F = fl.functional
    file = tmp_path / "two.safetensors"
    fl.compile(lambda a, b: F.relu(a * b), fl.graph.Input("a", ("n", 2)), fl.graph.Input("b", (1, 2))).save(file)
    a, b = rows(1)[0, :2, :3, 0].T.copy(), np.array([[2.0, -3.0]], np.float32)
    made = Rows("test", ModelFile(file), {"a": "left"}, None, {"b": b})({"left": a})
    np.testing.assert_array_equal(next(iter(made.values())), np.maximum(a * b, 0))
    with pytest.raises(ArgumentError, match=r"expected each of the model's inputs \['a', 'b'\] once"):
        Rows("test", ModelFile(file), {"a": "left"})
    with pytest.raises(ShapeError, match=r"rows of the columns are \{'a': 3, 'b': 1\}"):
        Rows("test", ModelFile(file))({"a": a, "b": b})


def test_a_result_without_rows_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mean.safetensors"
    fl.compile(lambda x: fl.functional.flatten(x), fl.graph.Input("x", ("n", 2))).save(file)
    with pytest.raises(ShapeError, match=r"has shape \(6,\) for 3 rows"):
        Predictor(file)({"x": np.zeros((3, 2), np.float32)})


def test_what_a_predictor_is_asked_is_checked(path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"outputs has \['z'\]: expected outputs of the model, \['softmax', 'relu_1'\]"):
        Predictor(path, outputs={"z": "y"})
    with pytest.raises(ArgumentError, match="two outputs the same column"):
        Predictor(path, outputs={"softmax": "y", "relu_1": "y"})
    with pytest.raises(ArgumentError, match=r"there is no column \['image'\]"):
        Predictor(path, {"x": "image"})({"x": rows(1)})
    with pytest.raises(ArgumentError, match=r"inputs is .*: expected a dict with a name of a column"):
        Predictor(path, {"x": 3})  # type: ignore[dict-item]
    with pytest.raises(ArgumentError, match=r"\['device_'\]: expected options of `load`"):
        Predictor(path, device_="cpu")
    with pytest.raises(ArgumentError, match="num_threads: 0: expected a positive int"):
        Predictor(path, num_threads=0)
    with pytest.raises(DTypeError, match="path is of type int"):
        Predictor(3)  # type: ignore[arg-type]
    with pytest.raises(FormatError, match="no file that can be read"):
        Predictor(path.with_name("nothing"))


def test_a_model_file_travels_as_its_path_and_is_loaded_once(path: Path, tmp_path: Path) -> None:
    file = ModelFile(path, num_threads=2)
    sent = pickle.dumps(file)
    assert len(sent) < 600
    again = pickle.loads(sent)
    assert again == file and hash(again) == hash(file) and again.model() is file.model()
    assert again.model().num_threads == 2 and file.with_threads(1).model().num_threads == 1
    copy = tmp_path / "copy.safetensors"
    copy.write_bytes(path.read_bytes())
    assert ModelFile(copy).__dask_tokenize__() == file.__dask_tokenize__()
    assert ModelFile(copy, optimize=False).__dask_tokenize__() != file.__dask_tokenize__()
    np.testing.assert_array_equal(again(rows(2))[0], loop(path, rows(2)))


def test_a_file_of_other_content_is_refused_where_it_is_loaded(tmp_path: Path) -> None:
    path = save(tmp_path / "network.safetensors")
    sent = pickle.dumps(ModelFile(path))
    size = path.stat().st_size
    save(path, seed=1)
    assert path.stat().st_size == size
    with pytest.raises(FormatError, match="has another content here"):
        pickle.loads(sent).model()
    path.unlink()
    with pytest.raises(FormatError, match="no file that can be read"):
        pickle.loads(sent).model()


def test_few_models_stay_loaded(tmp_path: Path) -> None:
    from fastlayers.integrations._model_file import KEPT, _loaded

    for seed in range(KEPT + 2):
        ModelFile(save(tmp_path / f"{seed}.safetensors", seed)).model()
    assert len(_loaded) == KEPT


@pytest.mark.parametrize("outputs", [None, "softmax", ["softmax", "relu_1"], {"softmax": "score"}])
def test_spark_gets_a_function_with_an_argument_for_each_input(path: Path, outputs: Any) -> None:
    import inspect

    function = pickle.loads(pickle.dumps(predict_fn(path, outputs=outputs)))()
    assert len(inspect.signature(function).parameters) == 1
    made, want = function(rows(3).reshape(3, -1)), loop(path, rows(3))
    if outputs == "softmax":
        np.testing.assert_array_equal(made, want)
    else:
        names = ["score"] if isinstance(outputs, dict) else ["softmax", "relu_1"]
        assert list(made) == names and all(array.ndim == 2 for array in made.values())
        np.testing.assert_array_equal(made[names[0]], want)
    with pytest.raises(ArgumentError, match="2 columns were given: expected 1"):
        function(rows(3), rows(3))


def test_a_missing_engine_is_named_with_the_install_that_brings_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "dask.array", None)
    with pytest.raises(MissingExtraError, match=r'pip install "dask\[array,distributed\]'):
        dask_predict(path, rows(1))
    monkeypatch.setitem(__import__("sys").modules, "joblib", None)
    with pytest.raises(MissingExtraError, match='pip install "joblib>='):
        joblib.predict(path, rows(1))


def test_models_of_memory_are_refused_and_those_of_files_taken(path: Path) -> None:
    assert SIZES[0] == 3
    assert Predictor(fl.load(path))({"x": rows(1)})["softmax"].shape == (1, CLASSES)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"expected the path of a file; `Model.save` writes one"):
        Predictor(fl.load(path, mmap=False))  # type: ignore[arg-type]
