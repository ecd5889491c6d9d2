"""The closed table of layers, one family a file; importing this fills `layer.LAYERS`."""

from . import activation, attention, conv, core, merging, normalization, pooling, preprocessing, recurrent, shapes, wrappers

__all__ = [
    "activation",
    "attention",
    "conv",
    "core",
    "merging",
    "normalization",
    "pooling",
    "preprocessing",
    "recurrent",
    "shapes",
    "wrappers",
]
