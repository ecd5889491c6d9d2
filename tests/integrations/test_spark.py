"""Spark on two executor processes, each with a Python worker; step `spark` of .ci/run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastlayers.integrations.spark import predict_fn

from .network import CLASSES, SIZES, die_once, loop, rows, save

pyspark: Any = pytest.importorskip("pyspark")
pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("default")]

COUNT, BATCH, PARTITIONS = 600, 37, 6


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    from .clusters import spark_session

    with spark_session(2) as session:
        yield session


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("model") / "network.safetensors", two=True)


@pytest.fixture(scope="module")
def frame(session: Any) -> Any:
    import pandas as pd

    table = pd.DataFrame({"id": np.arange(COUNT), "image": [row.ravel() for row in rows(COUNT)]})
    return session.createDataFrame(table).repartition(PARTITIONS, "id").cache()


def column(made: Any, name: str) -> np.ndarray:
    """A column in the order of the ids, each of which must be there once."""
    found = sorted(made.select("id", name).collect(), key=lambda row: row["id"])
    assert [row["id"] for row in found] == list(range(COUNT))
    return np.array([row[name] for row in found], np.float32)


class Dying:
    """The factory, whose function ends its process once, when it meets a row."""

    def __init__(self, make: Callable[[], Any], marker: str, value: float) -> None:
        self.make, self.marker, self.value = make, marker, value

    def __call__(self) -> Any:
        predict = self.make()

        def dying(column: np.ndarray) -> Any:
            if (column.reshape(len(column), -1)[:, 0] == self.value).any():
                die_once(self.marker)
            return predict(column)

        return dying


@pytest.mark.parametrize("killed", [False, True])
def test_rows_are_those_of_a_loop_whether_a_worker_dies_or_not(frame: Any, path: Path, tmp_path: Path, killed: bool) -> None:
    from pyspark.ml.functions import predict_batch_udf
    from pyspark.sql.types import ArrayType, FloatType

    x = rows(COUNT)
    marker = tmp_path / "died"
    make: Any = predict_fn(path, outputs="softmax")
    if killed:
        make = Dying(make, str(marker), float(x[COUNT // 2].flat[0]))
    score = predict_batch_udf(make, return_type=ArrayType(FloatType()), batch_size=BATCH, input_tensor_shapes=[list(SIZES)])
    np.testing.assert_array_equal(column(frame.withColumn("score", score("image")), "score"), loop(path, x))
    assert marker.exists() == killed


def test_several_outputs_are_fields_of_a_struct(frame: Any, path: Path) -> None:
    from pyspark.ml.functions import predict_batch_udf
    from pyspark.sql.types import ArrayType, FloatType, StructField, StructType

    kind = StructType([StructField(name, ArrayType(FloatType())) for name in ("score", "planes")])
    make = predict_fn(path, outputs={"softmax": "score", "relu_1": "planes"})
    both = predict_batch_udf(make, return_type=kind, batch_size=BATCH, input_tensor_shapes=[list(SIZES)])
    made = frame.withColumn("both", both("image")).select("id", "both.score", "both.planes").cache()
    np.testing.assert_array_equal(column(made, "score"), loop(path, rows(COUNT)))
    assert column(made, "planes").shape == (COUNT, 16 * 5 * 5)


def test_threads_are_those_that_spark_grants(frame: Any, path: Path) -> None:
    from pyspark.ml.functions import predict_batch_udf
    from pyspark.sql.types import ArrayType, FloatType

    make = predict_fn(path, outputs="softmax")

    def threads() -> Any:
        predict = make()

        def counted(column: np.ndarray) -> Any:
            from fastlayers.integrations._model_file import _loaded

            return predict(column) * 0 + [model.num_threads for model in _loaded.values()][-1]

        return counted

    found = predict_batch_udf(threads, return_type=ArrayType(FloatType()), batch_size=BATCH, input_tensor_shapes=[list(SIZES)])
    assert (column(frame.withColumn("threads", found("image")), "threads") == np.ones((COUNT, CLASSES))).all()
