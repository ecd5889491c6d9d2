"""Dask arrays: `predict`, which computes every chunk of rows where it is."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from .._extras import install
from ..errors import ArgumentError, DTypeError, MissingExtraError, ShapeError
from ._model_file import ModelFile, model_file
from ._rows import Rows

__all__ = ["predict"]


def predict(
    path: str | os.PathLike[str] | ModelFile,
    x: Any,
    outputs: str | Iterable[str] | None = None,
    *,
    constants: Mapping[str, Any] | None = None,
    num_threads: int | None = None,
    **options: Any,
) -> Any:
    """The model over the rows of a Dask array, lazily: one chunk of results for each chunk of rows.

    Rows are along the first axis. The graph has the path of the file, which each worker loads once. Chunks, shape, dtype and meta
    of the result are known at once: one row of zeros is computed here. Names of tasks follow from the content of the file, so
    that Dask recognizes equal work.

    Args:
        path: the file of the model, which every worker must have with the same content; or a `ModelFile`, or a model that was
            loaded from a mapped file.
        x: a Dask array, or ``{input: array}`` for several inputs. Axes other than the first are made one chunk.
        outputs: the name of the wanted output; or several names, for a tuple of arrays that are computed together. None for the
            model's only output, or a tuple of all.
        constants: values of inputs that are the same for all rows.
        num_threads: the most threads of a call; None for 1, which is what Dask counts a task as.
        **options: further arguments of `load`.

    Returns:
        A Dask array, or a tuple of them.

    Raises:
        MissingExtraError: Dask is not installed.
        DTypeError: x is no Dask array. ShapeError: the model cannot take such rows.
        FormatError: the file cannot be read; also in a worker that finds another content there.
    """
    try:
        import dask.array as da
    except ImportError:
        raise MissingExtraError(f"dask.predict: needs Dask, which is not installed: {install('dask')}") from None

    file = model_file("dask.predict", path, 1 if num_threads is None else num_threads, options)
    given = dict(x) if isinstance(x, Mapping) else _only(file, x, constants or {})
    single = isinstance(outputs, str) or (outputs is None and len(file.model().outputs) == 1)
    rows = Rows("dask.predict", file, {name: name for name in given}, outputs, constants)
    for name, array in given.items():
        if not isinstance(array, da.Array) or array.ndim == 0:
            raise DTypeError(f"dask.predict: x for {name!r} is of type {type(array).__name__}: expected a Dask array of rows")
    given = _aligned(given)
    results = _probed(rows, given)

    pairs: list[Any] = []
    free = 1  # indices of axes: 0 is that of rows, all others are each array's own
    for array in given.values():
        pairs += [array, (0, *range(free, free + array.ndim - 1))]
        free += array.ndim - 1
    names = tuple(given)
    if single:
        return _blocks(da, _one, pairs, results[0], free, {"rows": rows, "names": names, "shape": results[0].shape[1:]})
    # A chunk of all outputs is one object, from which each output's array takes its own.
    shapes = [result.shape[1:] for result in results]
    whole = da.blockwise(
        _all, (0,), *pairs, rows=rows, names=names, shapes=shapes, token="predict", dtype=object, meta=np.empty(0, object),
        concatenate=True, adjust_chunks={0: lambda size: 1},
    )  # fmt: skip
    kept = {"adjust_chunks": {0: next(iter(given.values())).chunks[0]}}
    return tuple(_blocks(da, _part, [whole, (0,)], result, 1, {"index": i}, **kept) for i, result in enumerate(results))


def _only(file: ModelFile, x: Any, constants: Mapping[str, Any]) -> dict[str, Any]:
    names = [name for name in file.model().inputs.names if name not in constants]
    if len(names) != 1:
        raise ArgumentError(f"dask.predict: x is one array, but the model has the inputs {names}: expected a dict with each")
    return {names[0]: x}


def _aligned(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays in chunks of the same rows, and of all that belongs to a row."""
    first = next(iter(given.values())).chunks[0]
    made = {}
    for name, array in given.items():
        made[name] = array.rechunk(dict.fromkeys(range(1, array.ndim), -1))
        if array.chunks[0] != first and not np.isnan(sum(first)) and not np.isnan(array.shape[0]):
            if array.shape[0] != sum(first):
                shapes = {key: value.shape for key, value in given.items()}
                raise ShapeError(f"dask.predict: x has shapes {shapes}: expected arrays with as many rows each")
            made[name] = made[name].rechunk({0: first})
    return made


def _probed(rows: Rows, given: Mapping[str, Any]) -> list[np.ndarray]:
    """Results of no rows, which have the shape and the dtype of others."""
    empty = {}
    for name, array in given.items():
        if any(np.isnan(size) for size in array.shape[1:]):
            raise ShapeError(f"dask.predict: x for {name!r} has shape {array.shape}: expected sizes that are known, but for rows")
        empty[name] = np.empty((0, *array.shape[1:]), array.dtype)
    return list(rows(empty).values())


def _blocks(da: Any, function: Any, pairs: list[Any], like: np.ndarray, free: int, words: Mapping[str, Any], **kept: Any) -> Any:
    """An array whose chunks are what a function makes of those of others."""
    axes = range(free, free + like.ndim - 1)
    return da.blockwise(
        function, (0, *axes), *pairs, **words, new_axes=dict(zip(axes, like.shape[1:], strict=True)), dtype=like.dtype,
        meta=np.empty((0,) * like.ndim, like.dtype), concatenate=True, token="predict", **kept,
    )  # fmt: skip


def _run(arrays: tuple[Any, ...], rows: Rows, names: tuple[str, ...], shapes: Any) -> list[np.ndarray]:
    made = rows(dict(zip(names, arrays, strict=True)))
    for (name, array), shape in zip(made.items(), shapes, strict=True):
        if array.shape[1:] != tuple(shape):
            raise ShapeError(
                f"dask.predict: output {name!r} has rows of shape {array.shape[1:]}: expected {tuple(shape)}, as for a row of "
                "zeros; a Dask array cannot have shapes that depend on values"
            )
    return list(made.values())


def _one(*arrays: Any, rows: Rows, names: tuple[str, ...], shape: tuple[int, ...]) -> np.ndarray:
    return _run(arrays, rows, names, [shape])[0]


def _all(*arrays: Any, rows: Rows, names: tuple[str, ...], shapes: Any) -> np.ndarray:
    made = np.empty(1, object)
    made[0] = _run(arrays, rows, names, shapes)
    return made


def _part(whole: np.ndarray, index: int) -> np.ndarray:
    return whole[0][index]  # type: ignore[no-any-return]
