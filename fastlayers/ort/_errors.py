"""onnxruntime's errors by its names and codes, and which fastlayers error becomes which.

As there, none of them is a ValueError or a RuntimeError: who catches those for something else does not catch these. All are
`fastlayers.Error`, and the fastlayers error that one was made from is its ``__cause__``.
"""

from __future__ import annotations

from ..errors import Error

__all__ = [
    "DeviceReset", "EPFail", "EngineError", "Fail", "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "ModelLoadCanceled",
    "ModelLoaded", "ModelRequiresCompilation", "NoModel", "NoSuchFile", "NotFound", "NotImplemented", "OrtError",
    "OrtRuntimeError", "RuntimeException",
]  # fmt: skip


class OrtError(Error):
    """Base of the errors that have a status code."""

    code = 0
    status = ""

    def __init__(self, text: str) -> None:
        super().__init__(f"[ONNXRuntimeError] : {self.code} : {self.status} : {text}")
        self.text = text  # without the code, as callbacks and bindings are told it

    def __reduce__(self) -> tuple[type[OrtError], tuple[str]]:
        return type(self), (self.text,)


class Fail(OrtError):
    """Anything else that went wrong."""

    code, status = 1, "FAIL"


class InvalidArgument(OrtError):
    """An input or output has another name, type or shape than the model says."""

    code, status = 2, "INVALID_ARGUMENT"


class NoSuchFile(OrtError):
    """There is no file of the path."""

    code, status = 3, "NO_SUCHFILE"


class NoModel(OrtError):
    """Never raised."""

    code, status = 4, "NO_MODEL"


class EngineError(OrtError):
    """Never raised."""

    code, status = 5, "ENGINE_ERROR"


class RuntimeException(OrtError):
    """A run took more memory or time than it may."""

    code, status = 6, "RUNTIME_EXCEPTION"


class InvalidProtobuf(OrtError):
    """The content is no model, or a broken one."""

    code, status = 7, "INVALID_PROTOBUF"


class ModelLoaded(OrtError):
    """Never raised."""

    code, status = 8, "MODEL_LOADED"


class NotImplemented(OrtError):
    """The model has an operator of ONNX, or a form of it, that fastlayers does not run."""

    code, status = 9, "NOT_IMPLEMENTED"


class InvalidGraph(OrtError):
    """The content is a model that breaks ONNX's rules, or has operators that ONNX does not."""

    code, status = 10, "INVALID_GRAPH"


class EPFail(OrtError):
    """Never raised."""

    code, status = 11, "EP_FAIL"


class ModelLoadCanceled(OrtError):
    """`SessionOptions.set_load_cancellation_flag` was set."""

    code, status = 12, "MODEL_LOAD_CANCELED"


class ModelRequiresCompilation(OrtError):
    """Never raised."""

    code, status = 13, "MODEL_REQUIRES_COMPILATION"


class NotFound(OrtError):
    """Never raised."""

    code, status = 14, "NOT_FOUND"


class DeviceReset(OrtError):
    """Never raised."""

    code, status = 15, "DEVICE_RESET"


class OrtRuntimeError(Error, RuntimeError):
    """A stand-in for the plain RuntimeError that onnxruntime raises."""
