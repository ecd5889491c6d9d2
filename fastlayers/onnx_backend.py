"""Models as `onnx.backend.base` describes a backend: what `onnx.backend.test.BackendTest` runs, and tools that expect one.

    import fastlayers.onnx_backend as backend
    backend.run_model(model, [x])

The module needs the package onnx (the extra `onnx`) where a node is run alone, and where results are of a type that numpy lacks.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from ._extras import install
from .errors import ArgumentError, DeviceError, DTypeError, MissingExtraError
from .formats.onnx.schema import NEWEST
from .model import Model, load
from .operators.narrow import NARROW

__all__ = ["BackendRep", "prepare", "run_model", "run_node", "supports_device"]


def _onnx(what: str) -> Any:
    try:
        import onnx
        import onnx.helper
    except ImportError as error:
        raise MissingExtraError(
            f"onnx_backend: {what} needs the package onnx, which is not installed: {install('onnx')}"
        ) from error
    return onnx


class BackendRep:
    """A model that is ready to run. `model` is the `fastlayers.Model`."""

    def __init__(self, model: Model, types: Sequence[int] = ()) -> None:
        self.model = model
        self._types = tuple(types)

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs in the model's order.

        Args:
            inputs: one array (a list of arrays for a sequence, None for an optional) an input, in the model's order; the array
                itself if there is one input; or a dict by name.
            **kwargs: options of other backends, which have no meaning here.

        Returns:
            Arrays of the types that the model names: of the package ml_dtypes where numpy has no such type.

        Raises:
            ShapeError: there are too few or too many inputs, or the network cannot take their sizes.
            DTypeError: an input is of another kind than the model's.
        """
        names = [spec.name for spec in self.model.inputs]
        if isinstance(inputs, np.ndarray):
            inputs = [inputs]
        if not isinstance(inputs, dict):
            given = list(inputs)
            if len(given) != len(names):
                raise ArgumentError(f"onnx_backend: {len(given)} inputs were given: expected {len(names)}, for {names}")
            inputs = dict(zip(names, given, strict=True))
        results = list(self.model.run(inputs).values())
        return tuple(
            _narrowed(result, number) if number in NARROW else result
            for result, number in zip(results, self._types or (0,) * len(results), strict=True)
        )


def _narrowed(result: Any, number: int) -> Any:
    """A result, or a list of them, as arrays of the type that the model names."""
    if isinstance(result, (list, tuple)):
        return [_narrowed(item, number) for item in result]
    if result is None:
        return None
    return result.astype(_onnx(f"a result of type {NARROW[number].name}").helper.tensor_dtype_to_np_dtype(number))


def prepare(model: Any, device: str = "CPU", **kwargs: Any) -> BackendRep:
    """A model made ready to run any number of times.

    Args:
        model: an `onnx.ModelProto`, the bytes of one, or a path.
        device: "CPU".
        **kwargs: options of other backends, which have no meaning here.

    Raises:
        DeviceError: there is no such device.
        DTypeError: `model` is none of these.
        FormatError, UnsupportedError, LimitError: as `fastlayers.load`.
    """
    if not supports_device(device):
        raise DeviceError(f"onnx_backend: device is {device!r}: expected 'CPU'")
    if hasattr(model, "SerializeToString"):
        return BackendRep(load(model.SerializeToString(), format="onnx"), [_element(value.type) for value in model.graph.output])
    if not isinstance(model, (str, bytes, os.PathLike)):
        raise DTypeError(f"onnx_backend: model is of type {type(model).__name__}: expected an onnx.ModelProto, bytes or a path")
    return BackendRep(load(model, format="onnx"))


def _element(kind: Any) -> int:
    """The number of the element type that is innermost in a TypeProto; 0 if there is none."""
    for name in ("sequence_type", "optional_type"):
        if kind.HasField(name):
            return _element(getattr(kind, name).elem_type)
    return int(kind.tensor_type.elem_type) if kind.HasField("tensor_type") else 0


def run_model(model: Any, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
    """The outputs of a model for these inputs: `prepare` and `BackendRep.run`."""
    return prepare(model, device, **kwargs).run(inputs)


def run_node(node: Any, inputs: Any, device: str = "CPU", outputs_info: Any = None, **kwargs: Any) -> tuple[Any, ...]:
    """The outputs of one node.

    Args:
        node: an `onnx.NodeProto` of ONNX's own domain or another that is supported.
        inputs: one array for every input that is not left out, in their order.
        device: "CPU".
        outputs_info: (dtype, shape) of every output; only the dtypes are looked at, and only to name types that numpy lacks.
        **kwargs: `opset_version` is the version of the operator set, the newest by default; others have no meaning here.

    Raises:
        MissingExtraError: the package onnx is not installed.
        UnsupportedError, ShapeError, DTypeError, DeviceError: as `prepare` and `BackendRep.run`.
    """
    helper = _onnx("run_node").helper
    version = int(kwargs.get("opset_version", NEWEST))
    names = list(dict.fromkeys(name for name in node.input if name))
    arrays = [np.asarray(array) for array in inputs]
    if len(arrays) != len(names):
        raise ArgumentError(f"onnx_backend: {len(arrays)} inputs were given: expected {len(names)}, for {names}")
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in zip(names, arrays, strict=True)
    ]
    outputs = [name for name in node.output if name]
    types = [0 if info is None else helper.np_dtype_to_tensor_dtype(np.dtype(info[0])) for info in outputs_info or ()]
    types = (types + [0] * len(outputs))[: len(outputs)]
    made = [helper.make_tensor_value_info(name, number, None) for name, number in zip(outputs, types, strict=True)]
    opsets = [helper.make_opsetid("", version)]
    if node.domain not in ("", "ai.onnx"):
        opsets.append(helper.make_opsetid(node.domain, 1))
    model = helper.make_model(helper.make_graph([node], "node", values, made), opset_imports=opsets, ir_version=10)
    return run_model(model, arrays, device)


def supports_device(device: str) -> bool:
    """Whether a model can run there: only on the processor."""
    return device.partition(":")[0].upper() == "CPU"
