"""joblib: `predict`, rows over worker processes, which does again what a worker that died had not finished."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from .._arguments import shown
from .._extras import install
from ..errors import ArgumentError, DTypeError, MissingExtraError
from ._model_file import ModelFile, model_file
from ._rows import Rows

__all__ = ["predict"]

MAPPED = 1 << 20  # bytes from which joblib maps an array into its workers' memory instead of sending it


def predict(
    path: str | os.PathLike[str] | ModelFile,
    x: Any,
    outputs: str | Iterable[str] | None = None,
    *,
    n_jobs: int | None = None,
    batch_size: int = 64,
    retries: int = 3,
    constants: Mapping[str, Any] | None = None,
    num_threads: int | None = None,
    **options: Any,
) -> Any:
    """The model over the rows of arrays, in worker processes of joblib, which stay for the next call.

    Args:
        path: the file of the model; or a `ModelFile`, or a model loaded from a mapped file.
        x: an array with rows along its first axis, or ``{input: array}`` for several inputs.
        outputs: the name of the wanted output, or several names. None for the model's only output, or all.
        n_jobs: how many processes; None as `joblib.parallel_config` says, or 1.
        batch_size: rows of a task.
        retries: how often processes that died are replaced, and what they had not finished is computed again.
        constants: values of inputs that are the same for all rows.
        num_threads: the most threads of a call; None for what joblib grants a worker.
        **options: further arguments of `load`.

    Returns:
        An array if there is one output, else a tuple.

    Raises:
        MissingExtraError: joblib is not installed.
        ShapeError, DTypeError: the model cannot take the rows.
        TerminatedWorkerError: joblib's, once more workers died than `retries`.
    """
    try:
        from joblib import Parallel, delayed
        from joblib.externals.loky.process_executor import TerminatedWorkerError
    except ImportError:
        raise MissingExtraError(f"joblib.predict: needs joblib, which is not installed: {install('joblib')}") from None

    for name, number, least in (("batch_size", batch_size, 1), ("retries", retries, 0)):
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < least:
            raise ArgumentError(f"joblib.predict: {name} is {shown(number)}: expected an int of at least {least}")
    file = model_file("joblib.predict", path, num_threads, options)
    if isinstance(x, Mapping):
        given = {name: np.asarray(array) for name, array in x.items()}
        rows = Rows("joblib.predict", file, {name: name for name in given}, outputs, constants)
    else:
        rows = Rows("joblib.predict", file, None, outputs, constants)
        if len(rows.inputs) != 1:
            raise ArgumentError(
                f"joblib.predict: x is one array, but the model has the inputs {list(rows.inputs)}: expected a dict"
            )
        given = {next(iter(rows.inputs)): np.asarray(x)}
    lengths = {name: len(array) if array.ndim else -1 for name, array in given.items()}
    if len(set(lengths.values())) != 1 or -1 in lengths.values():
        raise DTypeError(f"joblib.predict: rows of x are {lengths}: expected arrays with as many rows each")
    count = next(iter(lengths.values()))
    if not count:
        return _whole([list(rows(given).values())])

    pieces: dict[int, list[np.ndarray]] = {}
    starts = range(0, count, batch_size)
    while True:
        left = [start for start in starts if start not in pieces]
        tasks = (delayed(_piece)(rows, _sent(given, start, batch_size), start, batch_size) for start in left)
        try:
            # One by one: what had come when a worker died stays.
            pieces.update(Parallel(n_jobs=n_jobs, return_as="generator_unordered")(tasks))
            return _whole([pieces[start] for start in starts])
        except TerminatedWorkerError:
            if not retries:
                raise
            retries -= 1


def _sent(given: Mapping[str, np.ndarray], start: int, size: int) -> dict[str, tuple[bool, np.ndarray]]:
    """Large arrays whole, as joblib maps them once; of others, the rows of the task."""
    return {
        name: (True, array) if array.nbytes >= MAPPED and array.dtype != object else (False, array[start : start + size])
        for name, array in given.items()
    }


def _piece(rows: Rows, sent: Mapping[str, tuple[bool, np.ndarray]], start: int, size: int) -> tuple[int, list[np.ndarray]]:
    made = rows({name: array[start : start + size] if whole else array for name, (whole, array) in sent.items()})
    return start, list(made.values())


def _whole(pieces: list[list[np.ndarray]]) -> Any:
    made = tuple(_joined(column) for column in zip(*pieces, strict=True))
    return made[0] if len(made) == 1 else made


def _joined(column: tuple[np.ndarray, ...]) -> np.ndarray:
    """Rows in one array: of objects, if they have different shapes."""
    if len({array.shape[1:] for array in column}) == 1:
        return np.concatenate(column)
    rows = [row for array in column for row in array]
    made = np.empty(len(rows), object)
    for i, row in enumerate(rows):
        made[i] = row
    return made
