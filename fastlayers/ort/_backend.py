"""onnxruntime.backend: a model after the interface of onnx's backends."""

from __future__ import annotations

from typing import Any

from .._arguments import shown
from ..errors import ArgumentError
from ._options import RunOptions, SessionOptions
from .session import InferenceSession

__all__ = ["OnnxRuntimeBackend", "OnnxRuntimeBackendRep", "is_compatible", "prepare", "run", "run_model", "supports_device"]


class OnnxRuntimeBackendRep:
    """A session whose inputs go by their order."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session

    def run(self, inputs: Any, **options: Any) -> list[Any]:
        """The outputs for a list of inputs, or for one."""
        settings = RunOptions()
        for name, value in options.items():
            setattr(settings, name, value)
        names = [spec.name for spec in self._session.get_inputs()]
        given = inputs if isinstance(inputs, (list, tuple)) else [inputs]
        if len(given) != len(names):
            raise ArgumentError(f"run: {len(given)} inputs are given: expected {len(names)}, for {names}")
        return self._session.run(None, dict(zip(names, given, strict=True)), settings)


class OnnxRuntimeBackend:
    """The functions of a backend, as onnx asks for them."""

    @classmethod
    def is_compatible(cls, model: Any, device: str | None = None, **ignored: Any) -> bool:
        """Whether the model can be tried on a device."""
        return cls.supports_device(device or "CPU")

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether it is the processor."""
        return device.split(":")[0].upper() == "CPU"

    @classmethod
    def prepare(cls, model: Any, device: str | None = None, **options: Any) -> OnnxRuntimeBackendRep:
        """A model of a path, bytes, onnx's ModelProto, or a session, ready to run; other arguments are options of sessions."""
        if device is not None and not cls.supports_device(device):
            raise ArgumentError(f"Incompatible device expected '{device}', got 'CPU'")
        if isinstance(model, OnnxRuntimeBackendRep):
            return model
        if isinstance(model, InferenceSession):
            return OnnxRuntimeBackendRep(model)
        if hasattr(model, "SerializeToString"):
            model = model.SerializeToString()
        if not isinstance(model, (str, bytes)):
            raise ArgumentError(f"prepare: model is {shown(model)}: expected a path, bytes, a ModelProto or a session")
        settings = SessionOptions()
        for name, value in options.items():
            setattr(settings, name, value)
        return OnnxRuntimeBackendRep(InferenceSession(model, settings))

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str | None = None, **options: Any) -> list[Any]:
        """`prepare` and run; arguments are options of sessions."""
        return cls.prepare(model, device, **options).run(inputs)


is_compatible = OnnxRuntimeBackend.is_compatible
prepare = OnnxRuntimeBackend.prepare
run = run_model = OnnxRuntimeBackend.run_model
supports_device = OnnxRuntimeBackend.supports_device
