"""Folders as onnxruntime-genai's builder writes them: genai_config.json beside an ONNX file."""

from __future__ import annotations

import os
from typing import NamedTuple

from ..errors import FormatError
from ..formats.source import quote
from ._settings import Settings, file_in, read_settings

__all__ = ["Written", "written"]

# Words of config.json, by the object of genai_config.json that has them and their names there.
_MODEL = {"bos_token_id": "bos_token_id", "eos_token_id": "eos_token_id", "max_position_embeddings": "context_length"}
_DECODER = {
    "head_dim": "head_size",
    "hidden_size": "hidden_size",
    "num_attention_heads": "num_attention_heads",
    "num_key_value_heads": "num_key_value_heads",
}


class Written(NamedTuple):
    """The network and the configuration of such a folder."""

    network: str  # the name of its ONNX file
    config: Settings  # with config.json's words


def written(folder: str, what: str) -> Written | None:
    """Network and configuration by genai_config.json; None where a folder has none, or has a config.json of its own."""
    name = "genai_config.json"
    if file_in(folder, name) is None or file_in(folder, "config.json") is not None:
        return None
    model = read_settings(folder, name, what).below("model")
    decoder = model.below("decoder")
    network = decoder.get("filename", str, "model.onnx")
    # A name within the folder, however a system separates them: a file does not lead elsewhere.
    if network in ("", ".", "..") or any(c in network for c in "/\\:\0") or network != os.path.basename(network):
        raise FormatError(f"{decoder.where}: filename is {quote(network)}: expected the name of a file in the folder")
    found = {name: model.values.get(there) for name, there in _MODEL.items()}
    found |= {name: decoder.values.get(there) for name, there in _DECODER.items()}
    return Written(network, Settings(f"{what}: {os.path.join(folder, name)}", found))
