"""joblib with two worker processes; step `joblib` of .ci/run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers import ArgumentError, DTypeError, FormatError
from fastlayers.integrations import ModelFile
from fastlayers.integrations.joblib import predict

from .network import CLASSES, die_once, loop, rows, save

pytestmark = [pytest.mark.joblib, pytest.mark.filterwarnings("default")]


class Dying(ModelFile):
    """Ends the worker that first runs it for the fifth time, or more often: it may have got there before it was to die."""

    __slots__ = ("home", "marker")
    runs = 0

    def model(self) -> Any:
        import os

        Dying.runs += 1
        if os.getpid() != self.home and Dying.runs >= 5:
            die_once(self.marker)
        return super().model()

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "home": self.home, "marker": self.marker}


@pytest.fixture(autouse=True)
def for_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """Worker processes import this tree, as this process does."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("model") / "network.safetensors")


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 2000])
def test_rows_are_those_of_a_loop(path: Path, count: int) -> None:
    x = rows(count)
    want = loop(path, x) if count else np.empty((0, CLASSES), np.float32)
    np.testing.assert_array_equal(predict(path, x, n_jobs=2), want)


@pytest.mark.parametrize("count", [150, 900])  # sent in pieces, and mapped whole
def test_what_a_worker_that_died_had_not_finished_is_done_again(path: Path, tmp_path: Path, count: int) -> None:
    import os

    from joblib.externals.loky.process_executor import TerminatedWorkerError

    x = rows(count)
    file = Dying(path)
    file.home, file.marker = os.getpid(), str(tmp_path / "died")
    np.testing.assert_array_equal(predict(file, x, n_jobs=2, batch_size=10), loop(path, x))
    assert (tmp_path / "died").exists()
    file.marker = str(tmp_path / "again")
    with pytest.raises(TerminatedWorkerError):
        predict(file, x, n_jobs=2, batch_size=10, retries=0)


def test_delayed_calls_of_a_model_send_its_path(path: Path) -> None:
    from joblib import Parallel, delayed

    x = rows(12)
    want = loop(path, x)
    for called in (fl.load(path), ModelFile(path)):
        found = Parallel(n_jobs=2)(delayed(called.run)({"x": x[i : i + 3]}) for i in range(0, 12, 3))
        np.testing.assert_array_equal(np.concatenate([part["softmax"] for part in found]), want)


def test_what_is_asked_is_checked(path: Path, tmp_path: Path) -> None:
    for words, text in (({"batch_size": 0}, "batch_size is 0"), ({"retries": -1}, "retries is -1")):
        with pytest.raises(ArgumentError, match=text):
            predict(path, rows(2), **words)  # type: ignore[arg-type]
    with pytest.raises(DTypeError, match="rows of x are"):
        predict(path, np.float32(3))
    with pytest.raises(FormatError, match="no file that can be read"):
        predict(tmp_path / "nothing", rows(1))


def test_the_benchmark_stores_its_figures(tmp_path: Path, kept_threads: None) -> None:
    from bench.integrations import main
    from bench.timing import read

    main(["joblib", "8", "--json", str(tmp_path / "figures.json")])
    told, times = read(tmp_path / "figures.json")
    workers = {"joblib, 1 workers", "joblib, 2 workers"}
    assert times["8 rows"].keys() == told["rows_per_second"].keys() == {"loop", "two loops"} | workers
    assert times["2 rows"].keys() == workers
