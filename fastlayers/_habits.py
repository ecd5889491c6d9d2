"""Names that other libraries have, and what to write here instead: words for the errors about missing attributes."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["LAYER", "MODEL", "SYMBOL", "advice", "function", "in_package"]

_EVAL = "networks are always as torch's are after eval(): leave it out"
_DEVICE = "a device is chosen by fastlayers.load or fastlayers.compile: device='cuda'"
_ARRAYS = "arrays are numpy's"
_NO_GRADIENTS = "no gradients are recorded: leave it out"
_RUN = "predict predict_proba predict_on_batch infer transform"

MODEL = {
    "call it: model(x), or model.run({'x': x}) by names": f"{_RUN} forward",
    _EVAL: "eval train requires_grad_",
    _DEVICE: "to cuda cpu",
    "the width of weights is chosen by fastlayers.load: precision='bfloat16', weights='int8'": "half float bfloat16 quantize",
    "its inputs and outputs are attributes; fastlayers.ort.InferenceSession has onnxruntime's methods": (
        "get_inputs get_outputs get_modelmeta get_providers io_binding"
    ),
    "the arrays of a file are read by fastlayers.load_weights": (
        "state_dict load_state_dict parameters named_parameters weights get_weights load_weights"
    ),
}
LAYER = {
    "call it: net(x)": _RUN,
    _EVAL: "eval train requires_grad_",
    _DEVICE: "to cuda cpu",
    "sums are of float32; fastlayers.compile has precision='bfloat16'": "half float bfloat16",
    "its tensors are in state_dict()": "parameters named_parameters buffers named_buffers get_weights",
    "load_keras takes Keras' list of arrays, load_state_dict torch's names": "set_weights load_weights",
    "a Model has it: fastlayers.compile(net, fastlayers.graph.Input('x', shape))": "save summary profile run stream",
}
SYMBOL = {
    "it is reshape": "view",
    "it is astype": "float double half int long bool to type",
    "its sizes are in shape": "size dim",
    "leave it out": "contiguous detach clone copy numpy cpu cuda tolist item",
}
_PACKAGE = {
    "layers are in fastlayers itself, functions in fastlayers.functional": "nn keras",
    "it is fastlayers.Layer": "Module",
    "it is fastlayers.load": "load_model from_onnx from_pretrained",
    "it is fastlayers.graph.Input": "Input InputLayer",
    _ARRAYS: "tensor Tensor from_numpy array zeros ones randn",
    _NO_GRADIENTS: "no_grad inference_mode",
    _DEVICE: "device",
    "it is fastlayers.ort.{name}": "InferenceSession SessionOptions get_available_providers",
}
# Keras' names as torch's.
_KERAS = (
    (r"^Dense$", "Linear"), (r"^Conv(\dD)Transpose$", r"ConvTranspose\1"), (r"Pooling", "Pool"),
    (r"Average", "Avg"), (r"Normalization$", "Norm"), (r"ZeroPadding", "ZeroPad"), (r"UpSampling\dD", "Upsample"),
    (r"^(Simple|Spatial)", ""), (r"^(Global\w+)\dD$", r"\1"),
)  # fmt: skip


def advice(table: dict[str, str], name: str) -> str:
    """A hint for a name that is not there; "" where nothing is known of it."""
    return next((f": {text}".replace("{name}", name) for text, names in table.items() if name in names.split()), "")


def function(name: str, functions: Iterable[str]) -> str:
    """The advice about the name of a function."""
    return f": it is fastlayers.functional.{name}" if name in functions else ""


def in_package(name: str, layers: Iterable[str], functions: Iterable[str]) -> str:
    """The advice about a name that the package lacks."""
    plain = name
    for pattern, new in _KERAS:
        plain = re.sub(pattern, new, plain)
    pattern = re.escape(plain) + r"(\dd)?"
    found = [layer for layer in layers if name[:1].isupper() and re.fullmatch(pattern, layer, re.IGNORECASE)]
    if found:
        return f": it is {' or '.join(f'fastlayers.{layer}' for layer in found)}"
    return advice(_PACKAGE, name) or function(name, functions)
