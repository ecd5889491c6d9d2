"""`InferenceSession`: the handful of onnxruntime's methods that a service uses, over a `Model`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._arguments import as_names, shown
from ..errors import DTypeError
from ._load import load
from .model import Model
from .specs import OptionalSequenceSpec, OptionalSpec, SequenceSpec, TensorSpec

__all__ = ["InferenceSession", "NodeArg", "SessionOptions"]

# As onnxruntime names types in NodeArg.type.
_TYPES = {
    "float32": "float", "float64": "double", "float16": "float16", "bool": "bool", "str": "string",
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}  # fmt: skip


class NodeArg:
    """An input or output as onnxruntime describes it: `name`, `shape` (a list; sizes may be names or None) and `type`."""

    __slots__ = ("name", "shape", "type")

    def __init__(self, spec: TensorSpec) -> None:
        self.name = spec.name
        self.shape = None if spec.shape is None else list(spec.shape)
        kind = f"tensor({_TYPES.get(spec.dtype.name, spec.dtype.name)})"
        if isinstance(spec, (SequenceSpec, OptionalSequenceSpec)):
            kind = f"seq({kind})"
        self.type = f"optional({kind})" if isinstance(spec, (OptionalSpec, OptionalSequenceSpec)) else kind

    def __repr__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


class SessionOptions:
    """What of onnxruntime's options has a meaning here: `intra_op_num_threads`; others may be set and change nothing."""

    def __init__(self) -> None:
        self.intra_op_num_threads = 0


class _ModelMeta:
    def __init__(self, metadata: Mapping[str, str]) -> None:
        self.custom_metadata_map = dict(metadata)


class InferenceSession:
    """A model behind the interface of ``onnxruntime.InferenceSession``.

    Args:
        path_or_bytes: a path, or the model's bytes.
        sess_options: an object with `intra_op_num_threads`, or None.
        providers: must name no other device than the processor: None, or a list with "CPUExecutionProvider".
        **others: onnxruntime's other keyword arguments, which have no meaning here.

    Raises:
        DTypeError: `providers` has no "CPUExecutionProvider".
        FormatError, UnsupportedError, LimitError: as `load`.
    """

    def __init__(
        self, path_or_bytes: Any, sess_options: Any = None, providers: Sequence[Any] | None = None, **others: Any
    ) -> None:
        if providers is not None and not isinstance(providers, (tuple, list)):
            raise DTypeError(f"InferenceSession: providers is of type {type(providers).__name__}: expected a list of names")
        names = [p[0] if isinstance(p, tuple) and p else p for p in providers or ["CPUExecutionProvider"]]
        if not any(isinstance(name, str) and name == "CPUExecutionProvider" for name in names):
            raise DTypeError(f"InferenceSession: providers is {shown(names)}: expected 'CPUExecutionProvider' among them")
        threads = int(getattr(sess_options, "intra_op_num_threads", 0) or 0)
        self._model: Model = load(path_or_bytes, num_threads=threads)

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: Any = None) -> list[np.ndarray]:
        """The outputs named (all, for None or an empty list) as a list of arrays."""
        names = None if output_names is None else as_names("InferenceSession.run", "output_names", output_names) or None
        return list(self._model.run(input_feed, names).values())

    def get_inputs(self) -> list[NodeArg]:
        """The inputs, in the file's order."""
        return [NodeArg(spec) for spec in self._model.inputs]

    def get_outputs(self) -> list[NodeArg]:
        """The outputs, in the file's order."""
        return [NodeArg(spec) for spec in self._model.outputs]

    def get_providers(self) -> list[str]:
        """What runs the model: the processor."""
        return ["CPUExecutionProvider"]

    def get_modelmeta(self) -> _ModelMeta:
        """An object with `custom_metadata_map`."""
        return _ModelMeta(self._model.metadata)
