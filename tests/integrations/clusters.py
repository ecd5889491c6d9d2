"""Clusters of worker processes on this machine: what tests and bench/integrations.py run on."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def _for_children() -> None:
    """Worker processes import this tree, as this process does."""
    os.environ["PYTHONPATH"] = str(ROOT)
    os.environ["PYSPARK_PYTHON"] = sys.executable


@contextmanager
def ray_cluster(workers: int) -> Iterator[Any]:
    """Ray on this machine, with a processor for each worker and one for what reads rows, for which it would wait for ever."""
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_DATA_DISABLE_PROGRESS_BARS="1", RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0")
    _for_children()
    import ray

    folder = tempfile.mkdtemp(prefix="r", dir="/tmp")  # sockets are in it, whose paths may have 107 bytes
    ray.init(
        num_cpus=workers + 1, include_dashboard=False, object_store_memory=512 << 20, log_to_driver=False, _temp_dir=folder,
        logging_level="error", address="local",
    )  # fmt: skip
    ray.data.DataContext.get_current().enable_progress_bars = False
    try:
        yield ray
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def dask_cluster(workers: int) -> Iterator[Any]:
    """A scheduler and worker processes of one thread each, which are replaced when they die."""
    _for_children()
    import dask
    from distributed import Client, LocalCluster

    folder = tempfile.mkdtemp(prefix="fastlayers-dask-")
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 3, "distributed.comm.timeouts.connect": "60s"}),
        LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1",
            local_directory=folder, silence_logs=50,
        ) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        yield client
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def spark_session(workers: int) -> Iterator[Any]:
    """Spark with an executor process of one core for each worker, each of which has a Python process of its own."""
    _for_children()
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    import pyspark

    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.memory": "1g",
        "spark.executor.memory": "1g", "spark.task.maxFailures": "4", "spark.sql.shuffle.partitions": str(workers),
        "spark.sql.execution.arrow.pyspark.enabled": "true", "spark.python.worker.reuse": "true",
        "spark.executorEnv.PYTHONPATH": str(ROOT), "spark.log.level": "ERROR",
        # Work begins when all executors are there, and goes to any that is free.
        "spark.scheduler.minRegisteredResourcesRatio": "1.0", "spark.locality.wait": "0s",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
    }  # fmt: skip
    builder = SparkSession.builder.master(f"local-cluster[{workers},1,1024]").appName("fastlayers")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()
