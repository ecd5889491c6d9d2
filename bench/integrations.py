"""Rows per second of a network on Ray, Dask, Spark or joblib with one and two workers, next to a plain loop in this process.

    python -m bench.integrations ray|dask|spark|joblib [rows] [--json FILE]

Workers have one thread, and so has the loop. The cluster runs before the clock does, and the rows are in the engine's storage.
All results are compared with the loop's, bit for bit. Two loops, in two processes that share nothing, tell what a second core of
this machine is worth. A job of all rows and one of a quarter of them give what a job costs whatever its rows (Ray starts its
actors, which load the model, for each job), and the rate of further rows. The serial fraction is Karp and Flatt's: what part of
the work with one worker does not go faster with a second one; that of two loops is the machine's own.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import fastlayers as fl
from bench.timing import Times, Watch, add_json, store
from fastlayers.integrations import ModelFile
from tests.integrations.clusters import dask_cluster, ray_cluster, spark_session

BATCH = 64
SIZES = (3, 32, 32)
RUNS = 2
Job = Callable[[], np.ndarray]


def save(folder: str) -> Path:
    """A network of 34 million multiply-adds a row."""
    rng = np.random.default_rng(0)
    planes = (3, 32, 64, 64, 128)
    weights = [rng.standard_normal((o, i, 3, 3)).astype(np.float32) * 0.1 for i, o in pairwise(planes)]
    last = rng.standard_normal((10, planes[-1])).astype(np.float32)
    F = fl.functional

    def network(x: Any) -> Any:
        for i, weight in enumerate(weights):
            x = F.relu(F.conv2d(x, weight, padding=1, stride=1 + (i > 1)))
        return F.linear(F.flatten(F.adaptive_avg_pool2d(x, 1), 1), last)

    path = Path(folder) / "network.safetensors"
    fl.compile(network, fl.graph.Input("x", ("n", *SIZES))).save(path)
    return path


def loop(model: fl.Model, x: np.ndarray) -> Job:
    return lambda: np.concatenate([model(x[i : i + BATCH]) for i in range(0, len(x), BATCH)])


def half(path: Path, rows: Path, part: int) -> np.ndarray:
    return loop(ModelFile(path, num_threads=1).model(), np.array_split(np.load(rows, mmap_mode="r"), 2)[part])()


@contextmanager
def two_loops(path: Path, x: np.ndarray) -> Iterator[Job]:
    """Two processes with half of the rows each, which share nothing: what two cores of this machine can do."""
    rows = path.with_name("rows.npy")
    np.save(rows, x)
    with get_context("spawn").Pool(2) as pool:
        yield lambda: np.concatenate(pool.starmap(half, [(path, rows, 0), (path, rows, 1)], chunksize=1))


@contextmanager
def on_ray(path: Path, tables: Sequence[np.ndarray], workers: int) -> Iterator[list[Job]]:
    from fastlayers.integrations.ray import Predictor

    with ray_cluster(workers) as ray:

        def prepared(x: np.ndarray) -> Job:
            images = ray.data.from_numpy(np.array_split(x, 16)).rename_columns({"data": "x"})
            table = images.zip(ray.data.range(len(x), override_num_blocks=16)).materialize()

            def job() -> np.ndarray:
                words = {"keep": ["id"], "outputs": {fl.load(path).outputs.names[0]: "y"}}
                made = table.map_batches(
                    Predictor, fn_constructor_args=(ModelFile(path),), fn_constructor_kwargs=words,
                    batch_size=BATCH, concurrency=workers, num_cpus=1,
                )  # fmt: skip
                batches = list(made.iter_batches(batch_size=None))
                order = np.argsort(np.concatenate([batch["id"] for batch in batches]))
                return np.concatenate([batch["y"] for batch in batches])[order]

            return job

        yield [prepared(x) for x in tables]


@contextmanager
def on_dask(path: Path, tables: Sequence[np.ndarray], workers: int) -> Iterator[list[Job]]:
    import dask.array as da

    from fastlayers.integrations.dask import predict

    with dask_cluster(workers) as client:

        def prepared(x: np.ndarray) -> Job:
            made = predict(path, client.persist(da.from_array(x, chunks=(BATCH, *SIZES))))
            return lambda: client.compute(made).result()

        yield [prepared(x) for x in tables]


@contextmanager
def on_spark(path: Path, tables: Sequence[np.ndarray], workers: int) -> Iterator[list[Job]]:
    import pandas as pd
    from pyspark.ml.functions import predict_batch_udf
    from pyspark.sql.types import ArrayType, FloatType

    from fastlayers.integrations.spark import predict_fn

    with spark_session(workers) as session:
        network = predict_batch_udf(
            predict_fn(path), return_type=ArrayType(FloatType()), batch_size=BATCH, input_tensor_shapes=[list(SIZES)]
        )

        def prepared(x: np.ndarray) -> Job:
            table = pd.DataFrame({"id": np.arange(len(x)), "x": list(x.reshape(len(x), -1))})
            frame = session.createDataFrame(table).repartition(4 * workers).cache()
            frame.count()

            def job() -> np.ndarray:
                made = frame.select("id", network("x").alias("y")).toPandas().sort_values("id")
                return np.stack(made["y"]).astype(np.float32)

            return job

        yield [prepared(x) for x in tables]


@contextmanager
def on_joblib(path: Path, tables: Sequence[np.ndarray], workers: int) -> Iterator[list[Job]]:
    from fastlayers.integrations.joblib import predict

    def prepared(x: np.ndarray) -> Job:
        return lambda: predict(path, x, n_jobs=workers, batch_size=BATCH, num_threads=1)

    yield [prepared(x) for x in tables]


ENGINES = {"ray": on_ray, "dask": on_dask, "spark": on_spark, "joblib": on_joblib}


def turns(jobs: Sequence[Job], wanted: Sequence[np.ndarray]) -> list[Times]:
    """Times of each job, after one of the last that loads whatever there is to load. Every result is checked."""
    watches = [Watch() for _ in jobs]
    jobs[-1]()
    for _ in range(RUNS):
        for watch, job, want in zip(watches, jobs, wanted, strict=True):
            with watch:
                made = job()
            np.testing.assert_array_equal(made, want)
    return [watch.times() for watch in watches]


def serial(gain: float) -> float:
    return max(0.0, 2 / gain - 1)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.integrations", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("engine", choices=list(ENGINES))
    parser.add_argument("rows", type=int, nargs="?", default=4096)
    add_json(parser)
    options = parser.parse_args(arguments)
    engine, rows = options.engine, options.rows
    fl.set_num_threads(1)  # as the loop and the workers have it
    with tempfile.TemporaryDirectory() as folder:
        path = save(folder)
        x = np.random.default_rng(1).standard_normal((rows, *SIZES)).astype(np.float32)
        tables = [x, x[: rows // 4]]
        plain = loop(fl.load(path, num_threads=1), x)
        want = plain()
        wanted = [want, want[: rows // 4]]
        found: dict[str, dict[str, Times]] = {f"{rows} rows": {}, f"{rows // 4} rows": {}}
        of_all, of_quarter = found.values()
        of_all["loop"] = turns([plain], wanted[:1])[0]
        alone = of_all["loop"].best
        print(f"variant={fl.kernels.current()}  {rows} rows of {SIZES}, batches of {BATCH}")
        print(f"{'loop':8} {rows / alone:8.0f} rows/s  {alone:6.2f} s")
        with two_loops(path, x) as job:
            of_all["two loops"] = turns([job], wanted[:1])[0]
        both = of_all["two loops"].best
        print(f"2 loops  {rows / both:8.0f} rows/s  {both:6.2f} s  {alone / both:5.2f}x", flush=True)
        further = {}
        for workers in (1, 2):
            with ENGINES[engine](path, tables, workers) as jobs:
                name = f"{engine}, {workers} workers"
                of_all[name], of_quarter[name] = turns(jobs, wanted)
            whole, quarter = of_all[name].best, of_quarter[name].best
            further[workers] = (whole - quarter) / (rows - rows // 4)
            fixed = max(0.0, whole - rows * further[workers])
            print(
                f"{engine:6} {workers} {rows / whole:8.0f} rows/s  {whole:6.2f} s  {alone / whole:5.2f}x; "
                f"a job {fixed:5.2f} s, further rows {1 / further[workers]:6.0f} rows/s", flush=True,
            )  # fmt: skip
        gain, machine = further[1] / further[2], alone / both
        print(f"further rows: a second worker {gain:.2f}x, serial fraction {serial(gain):.3f}")
        print(f"two loops: {machine:.2f}x, {serial(machine):.3f}")
        store(options.json, found, rows_per_second={name: rows / times.best for name, times in of_all.items()})


if __name__ == "__main__":
    main()
