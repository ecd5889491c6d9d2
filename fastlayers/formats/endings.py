"""Endings of file names that stand for formats other than fastlayers' own."""

from __future__ import annotations

import os

from .source import quote

__all__ = ["named_for_another"]

# Endings that other programs read as something else: a saved model called so is refused by them, or taken for broken.
_ENDINGS = {
    "ckpt": "PyTorch", "engine": "TensorRT", "gguf": "GGUF", "h5": "HDF5", "hdf5": "HDF5", "json": "JSON",
    "keras": "Keras", "mlmodel": "Core ML", "msgpack": "MessagePack", "npy": "NumPy", "npz": "NumPy", "onnx": "ONNX",
    "ort": "ONNX Runtime", "pb": "TensorFlow", "pickle": "pickle", "pkl": "pickle", "pt": "PyTorch", "pt2": "PyTorch",
    "pth": "PyTorch", "tflite": "TensorFlow Lite", "xml": "OpenVINO", "zip": "zip",
}  # fmt: skip


def named_for_another(path: str) -> str | None:
    """Returns the objection to a name for a file to be written, if it ends like one of another format."""
    ending = os.path.splitext(path)[1][1:]
    other = _ENDINGS.get(ending.lower())
    return other and (
        f"the path is {quote(path)}, but what is written is a file of fastlayers (safetensors), not of {other}: "
        "expected a name that ends in .safetensors"
    )
