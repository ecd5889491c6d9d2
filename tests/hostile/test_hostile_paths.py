"""Paths that are no regular files, and files of gigabytes that are nothing but a hole after the first bytes of a format."""

from __future__ import annotations

import os
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fastlayers as fl

pytestmark = pytest.mark.skipif(os.name != "posix", reason="FIFOs, devices and holes are POSIX's")
READERS = (fl.load, fl.load_weights)
MAGIC = {
    "torch": b"PK\3\4", "old torch": b"\x80\2\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.", "pickle": b"\x80\4", "npy": b"\x93NUMPY\1\0",
    "hdf5": b"\x89HDF\r\n\x1a\n", "tflite": b"\x1c\0\0\0TFL3", "onnx": b"\x08\x08\x12\x04test", "msgpack": b"\x82\xa1a",
    "gguf": b"GGUF\3\0\0\0",
    "safetensors": b"\x40\0\0\0\0\0\0\0{", "nothing": b"",
}  # fmt: skip


def _loop(folder: Path) -> Path:
    (folder / "a").symlink_to(folder / "b")
    (folder / "b").symlink_to(folder / "a")
    return folder / "a"


def _fifo(folder: Path) -> Path:
    os.mkfifo(folder / "fifo")
    return folder / "fifo"


PATHS: dict[str, Callable[[Path], Path]] = {
    "FIFO": _fifo, "directory": lambda folder: folder, "loop of links": _loop, "/dev/zero": lambda folder: Path("/dev/zero"),
    "/dev/null": lambda folder: Path("/dev/null"), "nothing": lambda folder: folder / "nothing",
}  # fmt: skip


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", PATHS)
def test_paths_that_are_no_files(kind: str, reader: Any, tmp_path: Path) -> None:
    path, start = PATHS[kind](tmp_path), time.perf_counter()
    for ending in ("", ".onnx"):
        named = path if not ending or kind.startswith("/") else path.rename(path.with_suffix(ending)) if kind == "FIFO" else path
        with pytest.raises((OSError, fl.Error)):
            reader(named)
    assert time.perf_counter() - start < 5


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", MAGIC)
def test_holes_of_five_gigabytes(kind: str, reader: Any, tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_bytes(MAGIC[kind])
    os.truncate(path, 5 << 30)
    start = time.perf_counter()
    tracemalloc.start()
    try:
        with pytest.raises(fl.Error):
            reader(path)
        assert tracemalloc.get_traced_memory()[1] < 50 << 20
    finally:
        tracemalloc.stop()
    assert time.perf_counter() - start < 5
