"""What an input is given to, and which errors may come of it; everything else is a finding."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import fastlayers as fl
from fastlayers.errors import DTypeError, Error, FormatError, LimitError, ShapeError, UnsupportedError
from fastlayers.formats import gguf, hdf5
from fastlayers.formats.budget import Budget, check_ratio
from fastlayers.formats.source import open_source

from .mutate.folder import is_folder, join, split

__all__ = ["BYTES", "TARGETS", "Target"]

BYTES = 16 << 20  # the most that a load may allocate: sizes that are is come out as LimitError
_REFUSED = (FormatError, UnsupportedError, LimitError)


@dataclass(frozen=True)
class Target:
    """A reader: `read` is given a whole input and returns whether something was loaded, or raises one of `errors`."""

    name: str
    read: Callable[[bytes], bool]
    errors: tuple[type[Error], ...]
    modules: tuple[str, ...]  # of the reader, below fastlayers: those whose coverage is told


def _weights(source: Any, format: str | None = None) -> None:
    """Every array to its end."""
    for array in fl.load_weights(source, format=format, max_bytes=BYTES).values():
        array.tobytes()


def _network(source: Any, format: str | None = None) -> None:
    fl.load(source, format=format, max_bytes=BYTES)


def _both(source: Any, network: str | None, weights: str | None) -> bool:
    """The weights and the network; what is wrong with the network is raised, for there is more to go wrong with."""
    try:
        _weights(source, weights)
    except _REFUSED:
        pass
    except Error as error:
        raise AssertionError(f"load_weights raised {type(error).__name__}: {error}") from error
    _network(source, network)
    return True


def _read_weights(format: str) -> Callable[[bytes], bool]:
    def read(content: bytes) -> bool:
        _weights(content, format)
        return True

    return read


class _Folder:
    """A folder whose files are those of the input; they are new files each time, for the last ones may still be mapped."""

    def __init__(self) -> None:
        shared = "/dev/shm"
        self._keep = tempfile.TemporaryDirectory(prefix="fuzz-", dir=shared if os.access(shared, os.W_OK) else None)
        self.path = self._keep.name

    def write(self, content: bytes) -> str | None:
        """The path of the first file; None if its name leads out of the folder or is none."""
        first = None
        for name in os.listdir(self.path):
            path = f"{self.path}/{name}"
            shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
        for name, held in split(content):
            below, _, last = name.rpartition("/")
            if any(not _is_name(part) for part in ((below, last) if below else (name,))):
                continue
            path = f"{self.path}/{name}"
            with suppress(FileNotFoundError):
                os.unlink(path)
            with suppress(FileExistsError, IsADirectoryError, NotADirectoryError):
                os.makedirs(os.path.dirname(path), exist_ok=True)
                Path(path).write_bytes(held)
                first = first or path
        return first


def _is_name(part: str) -> bool:
    return part not in ("", ".", "..") and not any(c in part for c in "/\\\0") and len(part.encode()) <= 200


@cache
def _folder() -> _Folder:
    return _Folder()


def _index(content: bytes) -> bool:
    if not is_folder(content):
        _weights(content)
        return True
    path = _folder().write(content)
    if path is not None:
        _weights(path)
    return path is not None


def _checkpoint(content: bytes) -> bool:
    """The folder's network, then what `fastlayers.text` makes of it: a vector, or two tokens."""
    folder = _folder()
    folder.write(content if is_folder(content) else join([("config.json", content)]))
    model = fl.load(folder.path, max_bytes=BYTES)
    try:
        if any(name.startswith("past_key_values") for name in model.inputs.names):
            made = fl.text.Generator(folder.path, model=model, cache_bytes=1 << 20)
            made.generate([3, 5], max_tokens=2)
            made.generate([{"role": "user", "content": "a b question"}], max_tokens=2)
        else:
            fl.text.Encoder(folder.path, model=model).encode(["a question", "b c"])
    except Error:  # of a call, too: there may be no id of a token, or more of them than the network has places
        pass
    return True


def _onnx(content: bytes) -> bool:
    if not is_folder(content):
        return _both(content, "onnx", "onnx")
    path = _folder().write(content)
    return path is not None and _both(path, "onnx", None)


def _gguf(content: bytes) -> bool:
    told = gguf.metadata(content, max_bytes=BYTES)
    if "tokenizer.ggml.model" in told:
        from fastlayers.text._tokens import Tokenizer
        from fastlayers.text._vocabulary import vocabulary

        with suppress(*_REFUSED):
            Tokenizer(vocabulary(told, "fuzz"), "fuzz").encode(["the cat 12"])
    if str(told.get("general.architecture")) in ("llama", "qwen2", "bert"):
        return _both(content, "gguf", "gguf")
    _weights(content, "gguf")
    return True


def _hdf5(content: bytes) -> bool:
    _weights(content, "hdf5")
    file = hdf5.open_file(memoryview(content), "fuzz", Budget(BYTES, "load"))
    file.attributes("")
    for path, _ in file.datasets():
        file.attributes(path)
    return True


def _zip(content: bytes) -> bool:
    """Every member to its end, as readers take them."""
    budget = Budget(BYTES, "load")
    source = open_source(content, caller="fuzz", mapped=True, budget=budget)
    archive = source.archive()
    for member in archive.members:
        check_ratio(member.size, member.stored, "fuzz", "inflate to", "")
        budget.take(member.size, "fuzz")
        stream = archive.open(member, "fuzz")
        stream.read(member.size)
        stream.finish()
        budget.release(member.size)
    return True


def _any(content: bytes) -> bool:
    try:
        return _both(content, None, None)
    except UnsupportedError:  # weights alone
        _weights(content)
        return True


_NETWORKS = (*_REFUSED, ShapeError, DTypeError)
TARGETS = {
    target.name: target
    for target in (
        Target("npy", _read_weights("npy"), _REFUSED, ("formats/npy.py", "formats/_arrays.py")),
        Target("npz", _read_weights("npz"), _REFUSED, ("formats/npz.py", "formats/_zip.py", "formats/npy.py")),
        Target("torch", _read_weights("torch"), _REFUSED, ("formats/torch", "formats/_zip.py")),
        Target("safetensors", _read_weights("safetensors"), _REFUSED, ("formats/safetensors.py",)),
        Target("index", _index, _REFUSED, ("formats/safetensors_index.py", "formats/safetensors.py")),
        Target("checkpoint", _checkpoint, _NETWORKS, ("formats/transformers", "text")),
        Target("msgpack", _read_weights("msgpack"), _REFUSED, ("formats/msgpack.py",)),
        Target("gguf", _gguf, _NETWORKS, ("formats/gguf",)),
        Target("hdf5", _hdf5, _REFUSED, ("formats/hdf5",)),
        Target("keras", lambda content: _both(content, None, None), _REFUSED, ("formats/keras",)),
        Target("tflite", lambda content: _both(content, "tflite", "tflite"), _NETWORKS, ("formats/tflite",)),
        Target("onnx", _onnx, _NETWORKS, ("formats/onnx",)),
        Target("own", lambda content: _both(content, None, None), _NETWORKS, ("formats/own.py",)),
        Target("zip", _zip, _REFUSED, ("formats/_zip.py",)),
        Target("any", _any, _NETWORKS, ("formats/_table.py", "formats/foreign.py", "formats/source.py", "formats/graphs.py")),
    )
}
