"""Writing safetensors files: the header's JSON, then every array, each where it is aligned."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .safetensors import DTYPES
from .write import whole

__all__ = ["write"]


def write(
    path: str | os.PathLike[str],
    tensors: Mapping[str, np.ndarray],
    metadata: Mapping[str, str],
    first: Callable[[str], bool] = lambda _: False,
) -> None:
    """Writes arrays of dtypes in `DTYPES`; the file appears whole or not at all. Those whose names `first` picks come first."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    at = 0
    # Wide items first, so that every tensor is aligned and can be used in place.
    order = sorted(tensors, key=lambda name: (not first(name), -tensors[name].dtype.itemsize))
    for name in order:
        array = tensors[name]
        header[name] = {"dtype": DTYPES[array.dtype.name], "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 8) % 64)
    with whole(path) as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in order:
            array = np.ascontiguousarray(tensors[name])
            file.write(array.astype(array.dtype.newbyteorder("<"), copy=False).data if array.size else b"")
