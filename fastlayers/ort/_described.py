"""Inputs, outputs and metadata of a model as onnxruntime describes them."""

from __future__ import annotations

from .._arguments import LARGEST
from ..model.model import Model
from ..model.specs import MapSpec, OptionalSequenceSpec, OptionalSpec, SequenceMapSpec, SequenceSpec, TensorSpec

__all__ = ["TYPES", "ModelMetadata", "NodeArg"]

# As onnxruntime names types in NodeArg.type.
TYPES = {
    "float32": "float", "float64": "double", "float16": "float16", "bool": "bool", "object": "string",
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}  # fmt: skip


class NodeArg:
    """An input or output as onnxruntime describes it: `name`, `shape` (a list; sizes may be names or None) and `type`."""

    __slots__ = ("name", "shape", "type")

    def __init__(self, spec: TensorSpec) -> None:
        self.name = spec.name
        self.shape = None if spec.shape is None else list(spec.shape)
        kind = f"tensor({TYPES.get(spec.dtype.name, spec.dtype.name)})"
        if isinstance(spec, (SequenceSpec, OptionalSequenceSpec)):
            kind = f"seq({kind})"
        if isinstance(spec, (MapSpec, SequenceMapSpec)):
            kind = "map" if isinstance(spec, MapSpec) else "seq(map)"
        self.type = f"optional({kind})" if isinstance(spec, (OptionalSpec, OptionalSequenceSpec)) else kind

    def __repr__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


class ModelMetadata:
    """The result of `InferenceSession.get_modelmeta`: what a file says of itself, by onnxruntime's names."""

    __slots__ = (
        "custom_metadata_map", "description", "domain", "graph_description", "graph_name", "producer_name", "version",
    )  # fmt: skip

    def __init__(self, model: Model) -> None:
        told = model._about
        self.custom_metadata_map = dict(model.metadata)
        self.description: str = told.get("description", "")
        self.domain: str = told.get("domain", "")
        self.graph_description: str = told.get("graph_description", "")
        self.graph_name: str = told.get("graph_name", "")
        self.producer_name: str = told.get("producer_name", "")
        self.version: int = told.get("version", LARGEST)  # as onnxruntime gives what a file does not say
