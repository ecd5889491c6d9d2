"""Names of onnxruntime that cannot be had: classes that say so when they are called."""

from __future__ import annotations

from typing import Any

from ..errors import UnsupportedError

__all__ = ["ABSENT"]

_COMPILED = "models compiled by a provider (EPContext) are not supported: a session takes the ONNX file itself"
_PACKAGE = "model packages are not supported: a session takes an ONNX file"
_LORA = "adapters (LoRA) are not supported: merge them into the model"
_SPARSE = "sparse tensors are not supported: give dense arrays"
_WHY = {
    "AdapterFormat": _LORA,
    "LoraAdapter": _LORA,
    "ModelCompiler": _COMPILED,
    "ModelPackage": _PACKAGE,
    "ModelPackageComponentContext": _PACKAGE,
    "ModelPackageContext": _PACKAGE,
    "ModelPackageOptions": _PACKAGE,
    "ModelPackageWriteMode": _PACKAGE,
    "OrtEpAssignedNode": "a session does not tell which provider runs a node: there is one",
    "OrtEpAssignedSubgraph": "a session does not tell which provider runs a node: there is one",
    "OrtEpContextData": _COMPILED,
    "OrtEpContextDataBuffer": _COMPILED,
    "OrtExternalInitializerInfo": _COMPILED,
    "OrtSyncStream": "there are no streams of devices",
    "SparseTensor": _SPARSE,
}


class _Says(type):
    """A metaclass that answers for such a class, its static methods among it."""

    _why = ""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise UnsupportedError(f"{cls.__name__}.{name}: {cls._why}")


def _absent(name: str, why: str) -> type:
    def refuse(self: Any, *arguments: Any, **named: Any) -> None:
        raise UnsupportedError(f"{name}: {why}")

    doc = f"Cannot be had: {why}.\n\nRaises:\n    UnsupportedError: always."
    return _Says(name, (), {"__init__": refuse, "__doc__": doc, "__module__": "fastlayers.ort", "_why": why})


ABSENT = {name: _absent(name, why) for name, why in _WHY.items()}
