"""One format under another's name, given as the format or as the file's suffix: the content alone says what a file is."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from fastlayers.errors import FormatError

from ..formats.build import VALID, npy, npz, safetensors_of
from ..formats.gguf_build import SMALL as GGUF
from ..formats.test_msgpack import SMALL
from ..formats.torch_build import SMALL_LEGACY, SMALL_ZIP
from .cases import Case, Sweep, Told, network, weights

A = np.arange(6, dtype=np.float32)
FILES = {
    "safetensors": safetensors_of({"a": A}),
    "torch": SMALL_ZIP,
    "torch, legacy": SMALL_LEGACY,
    "npz": npz({"a": A}),
    "npy": npy(A),
    "msgpack": SMALL,
    "gguf": GGUF,
    "onnx": VALID["onnx"],
}
SUFFIXES = {
    "safetensors": "pt",
    "torch": "npz",
    "torch, legacy": "safetensors",
    "npz": "pt",
    "npy": "h5",
    "msgpack": "onnx",
    "gguf": "npz",
    "onnx": "keras",
}


def _others(asked: str) -> Iterator[Told]:
    for name, content in FILES.items():
        kind = name.partition(",")[0]
        said = f"format='{asked}' was asked for, but the content is {kind}"
        yield Told(name, content, None if kind == asked else FormatError, said)


def suffixed(name: str) -> Callable[[Path], Path]:
    """The maker of a file with another format's suffix."""

    def make(folder: Path) -> Path:
        path = folder / f"model.{SUFFIXES[name]}"
        path.write_bytes(FILES[name])
        return path

    return make


CASES: list[Case | Sweep] = [
    *(
        Sweep("any", f"every format as {kind}", functools.partial(_others, kind), read=functools.partial(weights, format=kind))
        for kind in dict.fromkeys(name.partition(",")[0] for name in FILES)
    ),
    Sweep("any", "weights as a network", lambda: (c for n, c in FILES.items() if n != "onnx"), read=network, may_load=False),
    *(Case("any", f"{name} in a file .{SUFFIXES[name]}", suffixed(name), valid=True) for name in FILES),
]
