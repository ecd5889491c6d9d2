"""Spark: `predict_fn`, the factory that `pyspark.ml.functions.predict_batch_udf` takes. Spark itself is not imported here."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from .._arguments import as_names
from ..errors import ArgumentError
from ._model_file import ModelFile, model_file
from ._rows import Rows

__all__ = ["predict_fn"]


def predict_fn(
    path: str | os.PathLike[str] | ModelFile,
    inputs: Iterable[str] | None = None,
    outputs: str | Mapping[str, str] | Iterable[str] | None = None,
    *,
    constants: Mapping[str, Any] | None = None,
    num_threads: int | None = None,
    **options: Any,
) -> Callable[[], Callable[..., Any]]:
    """Makes the `make_predict_fn` of ``predict_batch_udf``: it loads the model once in each Python worker.

    ::

        score = predict_batch_udf(
            predict_fn("model.onnx"), return_type=ArrayType(FloatType()), batch_size=64, input_tensor_shapes=[[3, 32, 32]]
        )
        frame.withColumn("score", score("image"))

    Args:
        path: the file of the model, which every machine must have with the same content.
        inputs: the model's inputs in the order of the columns that the function is called with; None for all that are not in
            `constants`, in their order. Flat rows take the shape of the input where that is known.
        outputs: one output, whose rows are the results, as flat arrays; or several, or ``{output: field}``, which are the fields
            of a struct. None for the model's only output, or all of several.
        constants: values of inputs that are the same for all rows.
        num_threads: the most threads of a call; None for ``spark.task.cpus``.
        **options: further arguments of `load`.

    Raises:
        FormatError, ArgumentError: here if the file cannot be read or the options are unknown; in the worker for the rest.
    """
    names = None if inputs is None else as_names("predict_fn", "inputs", inputs)
    if outputs is not None and not isinstance(outputs, (str, Mapping)):
        outputs = as_names("predict_fn", "outputs", outputs)
    return _Factory(model_file("predict_fn", path, num_threads, options), names, outputs, dict(constants or {}))


class _Factory:
    """Travels to the workers, pickled; called there."""

    def __init__(self, file: ModelFile, inputs: tuple[str, ...] | None, outputs: Any, constants: dict[str, Any]) -> None:
        self.file, self.inputs, self.outputs, self.constants = file, inputs, outputs, constants

    def __call__(self) -> Callable[..., Any]:
        file = self.file if self.file.num_threads else self.file.with_threads(granted())
        names = None if self.inputs is None else {name: name for name in self.inputs}
        rows = Rows("predict_fn", file, names, self.outputs, self.constants)
        taken = list(rows.inputs)

        def predict(*columns: np.ndarray) -> Any:
            if len(columns) != len(taken):
                raise ArgumentError(
                    f"predict_fn: {len(columns)} columns were given: expected {len(taken)}, for the inputs {taken}"
                )
            made = {name: _flat(array) for name, array in rows(dict(zip(taken, columns, strict=True))).items()}
            return made if len(made) > 1 or isinstance(self.outputs, Mapping) else next(iter(made.values()))

        # Spark counts the arguments to tell columns that are to be joined into rows from those that are arguments each.
        kind = inspect.Parameter.POSITIONAL_ONLY
        parameters = [inspect.Parameter(f"column_{i}", kind) for i in range(len(taken))]
        predict.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return predict


def granted() -> int | None:
    """The processors of the running task, at least 1; None outside of one."""
    pyspark = sys.modules.get("pyspark")
    task = pyspark and pyspark.TaskContext.get()
    return max(1, int(task.cpus())) if task else None


def _flat(array: np.ndarray) -> np.ndarray:
    """A column of Spark has scalars, or arrays of one axis."""
    if array.dtype == object:
        made = np.empty(len(array), object)
        made[:] = [np.ravel(row) for row in array]
        return made
    return array if array.ndim <= 2 else array.reshape(len(array), -1)
