"""Rows of columns through a model: what is common to all engines, none of which is known here.

A row is one index of the first axis of every column. Its results do not depend on the rows that it is computed with, bit for bit,
so that pieces may be cut anywhere, repeated, and computed in any process.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Union

import numpy as np

from .._arguments import as_mapping, as_names, shown
from ..errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from ..model.model import Model
from ..model.specs import TensorSpec
from ._model_file import ModelFile

__all__ = ["Rows"]

Which = Union["np.ndarray[Any, Any]", None]  # indices of rows; None for all of them
Group = tuple[Which, dict[str, np.ndarray]]


class Rows:
    """A model that maps columns to columns. Pickled as the path of the model.

    Args:
        what: who asks, for messages.
        file: the model.
        inputs: ``{input: column}``; None where columns have the names of inputs.
        outputs: ``{output: column}``, or names of outputs, or one of them; None for all outputs under their names.
        constants: ``{input: value}`` for inputs that are the same for all rows.
    """

    def __init__(
        self,
        what: str,
        file: ModelFile,
        inputs: Mapping[str, str] | None = None,
        outputs: str | Mapping[str, str] | Iterable[str] | None = None,
        constants: Mapping[str, Any] | None = None,
    ) -> None:
        self.what, self.file = what, file
        self.constants = {} if constants is None else dict(as_mapping(what, "constants", constants))
        model = file.model()
        taken = [name for name in model.inputs.names if name not in self.constants]
        self.inputs = {name: name for name in taken} if inputs is None else _columns(what, "inputs", inputs)
        if outputs is None or isinstance(outputs, Mapping):
            names = model.outputs.names
            self.outputs = {name: name for name in names} if outputs is None else _columns(what, "outputs", outputs)
        else:
            self.outputs = {name: name for name in as_names(what, "outputs", [outputs] if isinstance(outputs, str) else outputs)}
        if sorted([*self.inputs, *self.constants]) != sorted(model.inputs.names):
            raise ArgumentError(
                f"{what}: inputs has {list(self.inputs)} and constants {list(self.constants)}: expected each of the model's "
                f"inputs {model.inputs.names} once"
            )
        if unknown := [name for name in self.outputs if name not in model.outputs.names and name not in model.value_names]:
            raise ArgumentError(f"{what}: outputs has {unknown}: expected outputs of the model, {model.outputs.names}")
        if len(set(self.outputs.values())) != len(self.outputs):
            raise ArgumentError(f"{what}: outputs {self.outputs} gives two outputs the same column: expected one for each")
        for spec in model.outputs:
            if type(spec) is not TensorSpec and spec.name in self.outputs:
                raise UnsupportedError(
                    f"{what}: output {spec.name!r} is a {type(spec).__name__}: expected outputs that are arrays; "
                    "zipmap=False gives the probabilities of a classifier as an array"
                )

    def __call__(self, columns: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The columns of results, one row for each row of the columns given; others than those of `inputs` are not read."""
        missing = [column for column in self.inputs.values() if column not in columns]
        if missing:
            raise ArgumentError(f"{self.what}: there is no column {missing}: expected columns for the inputs {self.inputs}")
        given = {name: np.asarray(columns[column]) for name, column in self.inputs.items()}
        lengths = {self.inputs[name]: len(array) if array.ndim else -1 for name, array in given.items()}
        if len(set(lengths.values())) > 1 or -1 in lengths.values():
            raise ShapeError(
                f"{self.what}: rows of the columns are {lengths}: expected as many in each (-1: an array without axes)"
            )
        model = self.file.model()
        rows = next(iter(lengths.values()), 0)
        groups = self._groups(model, given, rows)
        parts = [(where, self._run(model, feeds, len(where) if where is not None else rows)) for where, feeds in groups]
        return {column: _scattered([(where, part[i]) for where, part in parts], rows)
                for i, column in enumerate(self.outputs.values())}  # fmt: skip

    def __dask_tokenize__(self) -> Any:
        from dask.base import normalize_token

        return self.file.__dask_tokenize__(), sorted(self.inputs.items()), list(self.outputs), normalize_token(self.constants)

    def _groups(
        self, model: Model, given: dict[str, np.ndarray], rows: int
    ) -> list[tuple[np.ndarray | None, dict[str, np.ndarray]]]:
        """Rows whose arrays have the same shapes, with their values; None for all rows. Ragged columns are arrays of objects."""
        ragged = [name for name, array in given.items() if array.dtype == object and model.inputs[name].dtype != object]
        shaped = {name: self._flat(model.inputs[name], array) for name, array in given.items() if name not in ragged}
        if not ragged:
            return [(None, shaped)]
        if not rows:
            return [(None, {**shaped, **{name: _empty(model.inputs[name]) for name in ragged}})]
        items = {name: [self._item(name, i, item) for i, item in enumerate(given[name])] for name in ragged}
        groups: dict[tuple[Any, ...], list[int]] = {}
        for i in range(rows):
            groups.setdefault(tuple((a[i].shape, a[i].dtype) for a in items.values()), []).append(i)
        made: list[Group] = []
        for indices in groups.values():
            where = np.array(indices)
            feeds = {name: array[where] for name, array in shaped.items()}
            for name, arrays in items.items():
                feeds[name] = self._flat(model.inputs[name], np.stack([arrays[i] for i in indices]))
            made.append((where, feeds))
        return made

    def _item(self, name: str, row: int, item: Any) -> np.ndarray:
        try:
            array = np.asarray(item)
        except ValueError as error:
            raise ShapeError(f"{self.what}: row {row} of column {self.inputs[name]!r}: {error}") from error
        if array.dtype == object:
            raise DTypeError(
                f"{self.what}: row {row} of column {self.inputs[name]!r} is {shown(item)} of type {type(item).__name__}: "
                "expected numeric values"
            )
        return array

    def _flat(self, spec: TensorSpec, array: np.ndarray) -> np.ndarray:
        """A column of flat rows in the shape of the input, where all of that is known: tables often have no other."""
        inner = None if spec.shape is None else spec.shape[1:]
        if inner is None or array.ndim > 2 or array.shape[1:] == inner or not all(isinstance(size, int) for size in inner):
            return array
        sizes = [size for size in inner if isinstance(size, int)]
        return array.reshape(len(array), *sizes) if math.prod(array.shape[1:]) == math.prod(sizes) else array

    def _run(self, model: Model, feeds: dict[str, np.ndarray], rows: int) -> list[np.ndarray]:
        """The results of rows of one shape. No rows are computed as one of zeros, whose results are dropped."""
        names = list(self.outputs)
        fixed = self._fixed(model)
        if not rows:
            feeds = {name: _zeros(array, fixed or 1) for name, array in feeds.items()}
            return [array[:0] for array in self._checked(model, feeds, names, fixed or 1)]
        if fixed is None:
            return self._checked(model, feeds, names, rows)
        parts = []
        for start in range(0, rows, fixed):
            piece = {name: array[start : start + fixed] for name, array in feeds.items()}
            short = fixed - min(fixed, rows - start)
            if short:  # what is missing at the end is the last row again
                piece = {name: np.concatenate([array, np.repeat(array[-1:], short, 0)]) for name, array in piece.items()}
            parts.append([array[: fixed - short] for array in self._checked(model, piece, names, fixed)])
        return [np.concatenate(column) for column in zip(*parts, strict=True)]

    def _fixed(self, model: Model) -> int | None:
        """Number of rows that the model takes at once, if that is fixed."""
        specs = [model.inputs[name] for name in self.inputs]
        found = {spec.shape[0] for spec in specs if spec.shape and isinstance(spec.shape[0], int)}
        if len(found) > 1 or found == {0} or any(spec.shape == () for spec in specs):
            shapes = {spec.name: spec.shape for spec in specs}
            raise ShapeError(
                f"{self.what}: inputs have shapes {shapes}: expected the first axis of each to be that of rows; "
                "name inputs that are the same for all rows in constants"
            )
        return found.pop() if found else None

    def _checked(self, model: Model, feeds: dict[str, Any], names: list[str], rows: int) -> list[np.ndarray]:
        found = model.run({**feeds, **self.constants}, names)
        for name, array in found.items():
            if array.ndim == 0 or len(array) != rows:
                raise ShapeError(
                    f"{self.what}: output {name!r} has shape {array.shape} for {rows} rows: expected a first axis of {rows}"
                )
        return list(found.values())


def _columns(what: str, argument: str, given: Any) -> dict[str, str]:
    found = dict(as_mapping(what, argument, given))
    if not found or not all(isinstance(word, str) for pair in found.items() for word in pair):
        raise ArgumentError(f"{what}: {argument} is {shown(given)}: expected a dict with a name of a column for each name")
    return found


def _zeros(array: np.ndarray, rows: int) -> np.ndarray:
    return np.full((rows, *array.shape[1:]), "" if array.dtype.kind in "OU" else 0, array.dtype)


def _empty(spec: TensorSpec) -> np.ndarray:
    """No rows of a column that does not say of which shape they would be: open sizes are 1."""
    inner = (spec.shape or ())[1:]
    return np.zeros((0, *(size if isinstance(size, int) else 1 for size in inner)), spec.dtype)


def _scattered(parts: list[tuple[Which, np.ndarray]], rows: int) -> np.ndarray:
    """Results of groups of rows in the order of the rows: an array of objects if their shapes differ."""
    first = parts[0][1]
    if parts[0][0] is None:
        return first
    if all(part.shape[1:] == first.shape[1:] for _, part in parts):
        made = np.empty((rows, *first.shape[1:]), first.dtype)
        for where, part in parts:
            made[where] = part
        return made
    made = np.empty(rows, object)
    for where, part in parts:
        for i, row in zip(where if where is not None else range(rows), part, strict=True):
            made[i] = row
    return made
