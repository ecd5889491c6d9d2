"""Descriptions of a model: the metadata of the protocol, and the configuration that its extension adds."""

from __future__ import annotations

from typing import Any

from ..model.specs import TensorSpec
from .datatypes import datatype
from .served import Served

__all__ = ["config_of", "metadata_of"]


def _shape(spec: TensorSpec) -> list[int]:
    return [-1] if spec.shape is None else [size if isinstance(size, int) else -1 for size in spec.shape]


def metadata_of(served: Served, versions: list[str]) -> dict[str, Any]:
    """Names, datatypes and shapes; -1 is any size."""

    def tensors(specs: Any) -> list[dict[str, Any]]:
        return [{"name": spec.name, "datatype": datatype(spec.dtype), "shape": _shape(spec)} for spec in specs]

    return {
        "name": served.name,
        "versions": versions,
        "platform": served.platform,
        "inputs": tensors(served.model.inputs),
        "outputs": tensors(served.model.outputs),
    }


def config_of(served: Served) -> dict[str, Any]:
    """The configuration, as load generators read it. Batches are the axis 0 there, which `dims` then leaves out."""
    model = served.model
    first = served.most > 1 and all(served.axes.get(spec.name) == 0 for spec in (*model.inputs, *model.outputs))

    def tensors(specs: Any) -> list[dict[str, Any]]:
        return [
            {
                "name": s.name,
                "data_type": "TYPE_" + (datatype(s.dtype) or "").replace("BYTES", "STRING"),
                "dims": _shape(s)[first:],
            }
            for s in specs
        ]

    found: dict[str, Any] = {
        "name": served.name,
        "platform": served.platform,
        "backend": "fastlayers",
        "max_batch_size": served.most if first else 0,
        "input": tensors(model.inputs),
        "output": tensors(model.outputs),
    }
    if first:
        found["dynamic_batching"] = {"max_queue_delay_microseconds": round(served.delay * 1e6)}
    return found
