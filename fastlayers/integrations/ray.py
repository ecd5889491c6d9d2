"""Ray Data: `Predictor`, the class that `Dataset.map_batches` makes one actor a worker of. Ray itself is not imported here."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from .._arguments import as_names
from ..errors import ArgumentError
from ._model_file import ModelFile, model_file
from ._rows import Rows

__all__ = ["Predictor"]


class Predictor:
    """A model over the columns of batches: loaded once in each worker, with as many threads as Ray grants it.

    ::

        dataset.map_batches(
            Predictor, fn_constructor_args=(ModelFile("model.onnx"),),
            fn_constructor_kwargs={"inputs": {"x": "image"}, "outputs": {"y": "score"}},
            batch_size=64, concurrency=2, num_cpus=1,
        )

    Batches are read-only views of Ray's object store, which the model reads where they are. Ray runs a batch again if its worker
    died: its rows are in the result once, with the same bits.

    Args:
        path: the file of the model, which every machine must have; or a `ModelFile`, so that no worker takes another content.
        inputs: ``{input: column}``. None if columns have the names of inputs.
        outputs: ``{output: column}``, or names of outputs. None for all outputs under their names.
        keep: whether the other columns stay in the result; or the names of those that do.
        constants: values of inputs that are the same for all rows.
        num_threads: the most threads of a call; None for the processors that Ray has assigned to the worker.
        **options: further arguments of `load`.

    A column of rows of different shapes (an array of objects) is grouped by shape; a model whose batch size is fixed gets pieces
    of that size.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | ModelFile,
        inputs: Mapping[str, str] | None = None,
        outputs: Mapping[str, str] | Iterable[str] | None = None,
        *,
        keep: bool | Iterable[str] = True,
        constants: Mapping[str, Any] | None = None,
        num_threads: int | None = None,
        **options: Any,
    ) -> None:
        file = model_file("Predictor", path, granted() if num_threads is None else num_threads, options)
        self._rows = Rows("Predictor", file, inputs, outputs, constants)
        self._keep = keep if isinstance(keep, bool) else as_names("Predictor", "keep", keep)

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """The kept columns of a batch, as they are, and the results.

        Raises:
            ArgumentError: a column is missing, or would be replaced by one of the results.
            ShapeError, DTypeError: the model cannot take the rows.
        """
        made = self._rows(batch)
        kept = list(batch) if self._keep is True else self._keep or ()
        if twice := [name for name in kept if name in made]:
            raise ArgumentError(
                f"Predictor: results would replace the columns {twice}: expected other names in outputs, or in keep"
            )
        if missing := [name for name in kept if name not in batch]:
            raise ArgumentError(f"Predictor: keep has {missing}: expected columns of the batch, {list(batch)}")
        return {**{name: batch[name] for name in kept}, **made}


def granted() -> int | None:
    """The processors that Ray has assigned to this worker, at least 1; None outside of one."""
    ray = sys.modules.get("ray")
    if ray is None or not ray.is_initialized():
        return None
    context = ray.get_runtime_context()
    if context.worker.mode != ray.WORKER_MODE:
        return None
    return max(1, int(context.get_assigned_resources().get("CPU", 1)))
