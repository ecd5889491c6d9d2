"""`InferenceSession`: the handful of onnxruntime's methods that a service uses, over a `Model`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._arguments import LARGEST, as_names, shown
from ..errors import ArgumentError, DTypeError, UnsupportedError
from .loading import load
from .model import Model
from .specs import MapSpec, OptionalSequenceSpec, OptionalSpec, SequenceMapSpec, SequenceSpec, TensorSpec

__all__ = ["TYPES", "InferenceSession", "ModelMetadata", "NodeArg", "SessionOptions"]

# onnxruntime's keyword arguments that have no meaning here.
_OTHERS = ("enable_fallback", "disabled_optimizers", "read_config_from_model")

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


class SessionOptions:
    """onnxruntime's options, by their names; any other name is an AttributeError, as there.

    `intra_op_num_threads`, `graph_optimization_level` (of which ORT_DISABLE_ALL, 0, has a meaning here) and
    `optimized_model_filepath` do what they do there. Those about its allocators, its scheduling and its log change nothing.
    `enable_profiling` is refused: see ``fastlayers profile``.

    >>> import fastlayers as fl
    >>> options = fl.SessionOptions()
    >>> options.intra_op_num_threads = 2
    """

    __slots__ = (
        "_entries", "enable_cpu_mem_arena", "enable_mem_pattern", "enable_mem_reuse", "enable_profiling", "execution_mode",
        "execution_order", "graph_optimization_level", "inter_op_num_threads", "intra_op_num_threads", "log_severity_level",
        "log_verbosity_level", "logid", "optimized_model_filepath", "profile_file_prefix", "use_deterministic_compute",
        "use_per_session_threads",
    )  # fmt: skip

    def __init__(self) -> None:
        self.enable_cpu_mem_arena = self.enable_mem_pattern = self.enable_mem_reuse = self.use_per_session_threads = True
        self.enable_profiling = self.use_deterministic_compute = False
        self.execution_mode: Any = 0
        self.execution_order: Any = 0
        self.graph_optimization_level: Any = 99
        self.inter_op_num_threads = self.intra_op_num_threads = self.log_verbosity_level = 0
        self.log_severity_level = -1
        self.logid = self.optimized_model_filepath = ""
        self.profile_file_prefix = "onnxruntime_profile_"
        self._entries: dict[str, str] = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Keeps an entry; none has a meaning here."""
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """An entry that was added.

        Raises:
            ArgumentError: there is none of that key.
        """
        if key not in self._entries:
            raise ArgumentError(f"SessionOptions: no entry {shown(key)} was added: expected one of {list(self._entries)}")
        return self._entries[key]


class ModelMetadata:
    """What `InferenceSession.get_modelmeta` returns: what a file says of itself, by onnxruntime's names."""

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


class InferenceSession:
    """A model after the interface of ``onnxruntime.InferenceSession``, with the manners of `Model`.

    It has the few methods that a service uses, takes what `Model.run` takes (float64 where the model says float32), loads every
    format that `load` does, and raises our errors. `fastlayers.ort` has another of the name, which is strict where onnxruntime
    is, raises its errors, and has all of its methods: for code that is to run with either.

    Args:
        path_or_bytes: a path, or the model's bytes.
        sess_options: `SessionOptions`, or onnxruntime's, or None.
        providers: must name no other device than the processor: None, or a list with "CPUExecutionProvider".
        provider_options: has no meaning for the processor.
        **others: onnxruntime's further keyword arguments, ``enable_fallback``, ``disabled_optimizers`` and
            ``read_config_from_model``, which have no meaning here. For options of `load`, use `load`.

    Raises:
        DTypeError: `providers` has no "CPUExecutionProvider".
        ArgumentError: an argument that onnxruntime has not got either.
        UnsupportedError: `sess_options` asks for profiling.
        FormatError, UnsupportedError, LimitError: as `load`.
    """

    def __init__(
        self,
        path_or_bytes: Any,
        sess_options: Any = None,
        providers: Sequence[Any] | None = None,
        provider_options: Any = None,
        **others: Any,
    ) -> None:
        if unknown := [name for name in others if name not in _OTHERS]:
            raise ArgumentError(
                f"InferenceSession: unknown argument {', '.join(unknown)}: expected sess_options, providers, "
                f"provider_options, {', '.join(_OTHERS)}; `load` has options of its own"
            )
        if providers is not None and not isinstance(providers, (tuple, list)):
            raise DTypeError(f"InferenceSession: providers is of type {type(providers).__name__}: expected a list of names")
        names = [p[0] if isinstance(p, tuple) and p else p for p in providers or ["CPUExecutionProvider"]]
        if not any(isinstance(name, str) and name == "CPUExecutionProvider" for name in names):
            raise DTypeError(f"InferenceSession: providers is {shown(names)}: expected 'CPUExecutionProvider' among them")
        if sess_options is not None and not hasattr(sess_options, "intra_op_num_threads"):
            raise DTypeError(f"InferenceSession: sess_options is of type {type(sess_options).__name__}: expected SessionOptions")
        if getattr(sess_options, "enable_profiling", False):
            raise UnsupportedError("InferenceSession: enable_profiling is not supported: `fastlayers profile` times the steps")
        level = getattr(sess_options, "graph_optimization_level", 99)
        threads = int(getattr(sess_options, "intra_op_num_threads", 0) or 0)
        plain = getattr(level, "name", level) in ("ORT_DISABLE_ALL", 0)
        self._model: Model = load(path_or_bytes, num_threads=threads, optimize=not plain)
        if written := getattr(sess_options, "optimized_model_filepath", ""):
            from ..formats.endings import named_for_another

            if wrong := named_for_another(written):  # a program written for onnxruntime goes on
                warnings.warn(f"InferenceSession: optimized_model_filepath: {wrong}", stacklevel=2)
            self._model._write(written)

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

    def get_modelmeta(self) -> ModelMetadata:
        """What the file says of itself."""
        return ModelMetadata(self._model)
