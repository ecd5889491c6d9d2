"""Words for errors about what was given instead of a file to read: names, folders, and networks of other libraries."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from .._arguments import shown

__all__ = ["MODELS", "TENSORFLOW", "at_nothing", "in_folder", "of_object"]

MODELS = (".onnx", ".tflite", ".keras", ".h5", ".gguf", ".safetensors", ".pt", ".pth")
TENSORFLOW = "python -m tf2onnx.convert writes ONNX, and so does Keras' model.export(path, format='onnx')"


def at_nothing(path: str) -> str:
    """Words about a path at which there is nothing, if it looks like something else; else ""."""
    from .._example import FILES

    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", path):
        return ": nothing is downloaded: fetch the file, and give its path"
    if path in FILES:
        return f": fastlayers.example({path!r}) is the path of the packaged file"
    if re.fullmatch(r"[\w-][\w.-]*(/[\w-][\w.-]*)?", path) and not re.search(r"\.[A-Za-z]\w+$", path):
        return f": nothing is downloaded: `hf download {path} --local-dir FOLDER` fetches a model of Hugging Face's hub"
    return ""


def in_folder(path: str) -> str:
    """Words about a folder that is no checkpoint: a model in it that could be loaded."""
    names = sorted(os.listdir(path))
    if "saved_model.pb" in names:
        return f"; it is a SavedModel of TensorFlow: {TENSORFLOW}"
    found = [name for name in names if name.lower().endswith(MODELS)]
    return f"; load one of its files: {', '.join(map(shown, found[:3]))}" if found else ""


def of_object(value: Any) -> str:
    """Words about a network of another library that was given instead of a file."""
    kind = type(value)  # asked of the type, which no file can fill
    if isinstance(value, Mapping):
        return ": arrays by name go into layers, with load_state_dict"
    if kind.__module__.startswith("fastlayers."):
        return ": fastlayers.compile makes a model of layers"
    if hasattr(kind, "state_dict"):
        return ": torch.onnx.export writes a network of torch to a file, see docs/export.md"
    if hasattr(kind, "get_weights"):
        return ": model.save('net.keras') writes a network of Keras to a file"
    if hasattr(kind, "get_params") and hasattr(kind, "fit"):
        return ": skl2onnx.to_onnx makes a model of one of scikit-learn, see docs/export.md"
    return ""
