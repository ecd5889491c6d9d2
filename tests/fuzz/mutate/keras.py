"""Keras: the configuration in an archive or in an HDF5 file changed as JSON, the weights as HDF5."""

from __future__ import annotations

from random import Random

from . import blocks, hdf5, text, zipped

__all__ = ["mutate"]

_WORDS = (
    "Dense", "Conv2D", "Conv1D", "LSTM", "GRU", "SimpleRNN", "Bidirectional", "TimeDistributed", "ReLU", "Softmax", "Flatten",
    "Reshape", "Permute", "RepeatVector", "Lambda",
    "BatchNormalization", "LayerNormalization", "Embedding", "MultiHeadAttention", "Concatenate", "Add", "Dot", "Masking",
    "Dropout", "InputLayer", "Sequential", "Functional",
    "MaxPooling2D", "GlobalAveragePooling2D", "UpSampling2D", "ZeroPadding2D", "Cropping1D", "Rescaling", "Normalization",
    "relu", "sigmoid", "tanh", "softmax", "linear", "gelu",
    "same", "valid", "causal", "channels_first", "channels_last", "float16", "mixed_float16", "bfloat16", "int32", "string",
    "keras.layers", "keras.src.ops.numpy", "config",
    "class_name", "module", "registered_name", "inbound_nodes", "__keras_tensor__", "keras_history", "__lambda__", "layers",
    "input_layers", "output_layers", "build_config",
    "units", "filters", "kernel_size", "strides", "padding", "activation", "use_bias", "axis", "batch_shape",
    "batch_input_shape", "data_format", "return_sequences", "go_backwards",
    "3.0.0", "2.15.0", "1.0", "x", "99999.0",
)  # fmt: skip


def _json(rng: Random, content: bytes, other: bytes) -> bytes:
    return text.changed(rng, content, _WORDS)


def _member(name: str) -> zipped.Mutator:
    return _json if name.endswith(".json") else hdf5.mutate if name.endswith(".h5") else blocks.mutate


_archive = zipped.mutator(_member)


def mutate(rng: Random, content: bytes, other: bytes) -> bytes:
    """One change of a .keras archive or of an .h5 model."""
    if not content.startswith(b"PK"):
        return _whole(rng, content, other)
    entries = list(zipped.members(content))
    i = next((i for i, e in enumerate(entries) if e.name == "config.json"), None)
    if i is None or rng.random() < 0.3:
        return _archive(rng, content, other)
    entries[i] = entries[i]._replace(content=_json(rng, entries[i].content, b""))
    return zipped.written(rng, entries)


def _whole(rng: Random, content: bytes, other: bytes) -> bytes:
    """An .h5 model: its configuration is an attribute, which cannot grow where it stands."""
    at = content.find(b'{"class_name"')
    if at < 0 or rng.random() < 0.4:
        return hdf5.mutate(rng, content, other)
    end = content.find(b"\0", at)
    held = content[at : end if end > 0 else len(content)]
    for _ in range(4):
        changed = text.changed(rng, held.rstrip(), _WORDS)
        if len(changed) <= len(held):
            return content[:at] + changed.ljust(len(held)) + content[at + len(held) :]
    changed = text.tokens(rng, held)
    return content[:at] + changed[: len(held)].ljust(len(held)) + content[at + len(held) :]
