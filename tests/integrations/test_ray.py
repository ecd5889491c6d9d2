"""Ray Data on a local cluster of two workers; step `ray` of .ci/run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.integrations import ModelFile
from fastlayers.integrations.ray import Predictor

from .network import die_once, loop, rows, save

ray: Any = pytest.importorskip("ray")
pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("default")]

COUNT, BATCH = 1000, 37


class Observed(Predictor):
    """Notes what a worker sees; dies once in the middle of the rows if there is a marker."""

    def __init__(self, path: Any, *args: Any, marker: str = "", **words: Any) -> None:
        super().__init__(path, *args, **words)
        self.marker = marker

    def __call__(self, batch: Any) -> Any:
        import os

        made = super().__call__(batch)
        if self.marker and COUNT // 2 in batch["id"]:
            die_once(self.marker)
        count = len(batch["id"])
        threads = self._rows.file.model().num_threads
        return {**made, "pid": np.full(count, os.getpid()), "threads": np.full(count, threads),
                "read_only": np.full(count, not batch["image"].flags.writeable)}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    from .clusters import ray_cluster

    with ray_cluster(2):
        yield


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("model") / "network.safetensors")


def table(dataset: Any) -> dict[str, np.ndarray]:
    """All rows in the order of their ids, each of which must be there once."""
    batches = list(dataset.iter_batches(batch_size=None, batch_format="numpy"))
    found = {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
    order = np.argsort(found["id"], kind="stable")
    np.testing.assert_array_equal(found["id"][order], np.arange(len(order)))
    return {name: column[order] for name, column in found.items()}


def dataset(x: Any) -> Any:
    images = ray.data.from_numpy([*np.array_split(x, 8)]).rename_columns({"data": "image"})
    return images.zip(ray.data.range(len(x), override_num_blocks=8))


@pytest.mark.parametrize("killed", [False, True])
def test_rows_are_those_of_a_loop_whether_a_worker_dies_or_not(path: Path, tmp_path: Path, killed: bool) -> None:
    x = rows(COUNT)
    marker = tmp_path / "died"
    words = {"inputs": {"x": "image"}, "outputs": {"softmax": "score"}, "marker": str(marker) if killed else ""}
    made = dataset(x).map_batches(
        Observed, fn_constructor_args=(ModelFile(path),), fn_constructor_kwargs=words, batch_size=BATCH, concurrency=2, num_cpus=1
    )
    found = table(made)
    np.testing.assert_array_equal(found["score"], loop(path, x))
    np.testing.assert_array_equal(found["image"], x)
    assert found["read_only"].all()
    assert set(found["threads"]) == {1}
    assert marker.exists() == killed
    if killed:
        assert int(marker.read_text()) not in found["pid"] or len(set(found["pid"])) > 1


def test_threads_are_those_that_ray_grants(path: Path) -> None:
    for cpus in (1, 2):
        made = dataset(rows(20)).map_batches(
            Observed, fn_constructor_args=(path, {"x": "image"}), batch_size=7, concurrency=1, num_cpus=cpus
        )
        assert set(table(made)["threads"]) == {cpus}


def test_a_file_that_another_worker_sees_with_other_content_ends_the_job(tmp_path: Path) -> None:
    file = ModelFile(save(tmp_path / "network.safetensors"))
    save(tmp_path / "network.safetensors", seed=1)
    made = dataset(rows(20)).map_batches(
        Predictor, fn_constructor_args=(file, {"x": "image"}), batch_size=7, concurrency=1, num_cpus=1
    )
    with pytest.raises(Exception, match="has another content here"):
        made.take_all()


def test_ragged_columns(tmp_path: Path) -> None:
    fl.compile(lambda x: fl.functional.relu(x), fl.graph.Input("x", ("n", "steps", 2))).save(tmp_path / "relu.safetensors")
    rng = np.random.default_rng(5)
    items = [rng.standard_normal((1 + i % 4, 2)).astype(np.float32) for i in range(40)]
    made = ray.data.from_items([{"id": i, "x": item} for i, item in enumerate(items)], override_num_blocks=4).map_batches(
        Predictor, fn_constructor_args=(tmp_path / "relu.safetensors",), fn_constructor_kwargs={"outputs": {"relu": "y"}},
        batch_size=11, concurrency=2, num_cpus=1,
    )  # fmt: skip
    found = sorted(made.take_all(), key=lambda row: row["id"])
    assert [row["id"] for row in found] == list(range(40))
    for row, item in zip(found, items, strict=True):
        np.testing.assert_array_equal(row["y"], np.maximum(item, 0))
