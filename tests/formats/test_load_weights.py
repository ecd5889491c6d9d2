"""load_weights itself: every kind of source, how the format is told, and its arguments."""

from __future__ import annotations

import errno
import gzip
import io
import mmap as mapping
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastlayers import formats
from fastlayers.errors import ArgumentError, DTypeError, Error, FormatError, LimitError, UnsupportedError
from fastlayers.formats import MAX_BYTES, load_weights

from .build import VALID, Entry, archive, npy, safetensors_of

A = {"a": np.arange(4, dtype=np.float32)}
CONTENT = safetensors_of(A)


class Trickle:
    """A stream that cannot seek and gives a few bytes at a time."""

    def __init__(self, content: bytes) -> None:
        self._rest = content

    def read(self, size: int) -> bytes:
        piece, self._rest = self._rest[: min(size, 7)], self._rest[min(size, 7) :]
        return piece


@pytest.mark.parametrize("kind", VALID)
@pytest.mark.parametrize("mmap", [True, False], ids=["mapped", "read"])
def test_every_source_gives_the_same_arrays(tmp_path: Path, kind: str, mmap: bool) -> None:
    content = VALID[kind]
    path = tmp_path / "no suffix that helps.txt"
    path.write_bytes(content)
    expected = {name: (array.dtype, array.tolist()) for name, array in load_weights(content).items()}
    zipped = gzip.compress(content)
    with (
        path.open("rb") as opened,
        path.open("rb", buffering=0) as raw,
        path.open("rb") as held,
        gzip.open(io.BytesIO(zipped)) as unzipped,
        os.scandir(os.fsencode(tmp_path)) as entries,
    ):
        mapped = mapping.mmap(held.fileno(), 0, access=mapping.ACCESS_READ)
        sources: dict[str, Any] = {
            "str": str(path),
            "PathLike": path,
            "PathLike of bytes": next(entries),
            "bytearray": bytearray(content),
            "memoryview": memoryview(content),
            "writable memoryview": memoryview(bytearray(content)),
            "array": np.frombuffer(content, np.uint8),
            "mmap": mapped,
            "BytesIO": io.BytesIO(content),
            "file": opened,
            "raw file": raw,
            "gzip": unzipped,
            "stream": Trickle(content),
        }
        for name, source in sources.items():
            weights = load_weights(source, mmap=mmap)
            assert {n: (array.dtype, array.tolist()) for n, array in weights.items()} == expected, name
            assert not any(array.flags.writeable for array in weights.values()), name


def test_a_file_object_is_read_from_where_it_stands() -> None:
    stream = io.BytesIO(b"prefix" + CONTENT)
    stream.seek(6)
    assert load_weights(stream)["a"].tolist() == [0, 1, 2, 3]
    assert stream.read() == b""
    assert not stream.closed


def test_bytes_are_used_in_place_and_writable_buffers_copied() -> None:
    in_place = load_weights(CONTENT, max_bytes=len(CONTENT) * 48)["a"]
    assert np.shares_memory(in_place, np.frombuffer(CONTENT, np.uint8))
    changing = bytearray(CONTENT)
    array = load_weights(changing)["a"]
    changing[:] = bytes(len(changing))
    assert array.tolist() == [0, 1, 2, 3]
    read_only = memoryview(changing).toreadonly()
    changing[:] = CONTENT
    kept = load_weights(read_only, mmap=False)["a"]
    seen = load_weights(read_only)["a"]
    changing[-4:] = bytes(4)
    assert kept.tolist() == [0, 1, 2, 3] and seen.tolist() == [0, 1, 2, 0]


@pytest.mark.parametrize("source", [3, None, 1.5, [1], {"a": 1}, object()])
def test_a_source_of_another_type(source: Any) -> None:
    with pytest.raises(DTypeError, match="source must be a path, bytes or a binary file object, got"):
        load_weights(source)


@pytest.mark.parametrize("source", [np.zeros(3, np.float32), np.zeros((4, 4), np.uint8)[:, ::2], np.zeros(3, "S1")])
def test_a_buffer_that_is_not_of_bytes(source: Any) -> None:
    with pytest.raises(DTypeError, match="must be a contiguous buffer of bytes"):
        load_weights(source)


def test_a_text_file_object() -> None:
    with pytest.raises(DTypeError, match=r"<StringIO>: read\(\) gave str, expected bytes: open it in binary mode"):
        load_weights(io.StringIO("text"))  # type: ignore[arg-type]


def test_a_file_object_without_data_yet() -> None:
    class Waiting:
        name = "socket"

        def read(self, size: int) -> None: ...

    with pytest.raises(DTypeError, match=r"socket: read\(\) gave NoneType, expected bytes: only blocking"):
        load_weights(Waiting())  # type: ignore[arg-type]


def test_a_file_object_without_end() -> None:
    class Endless:
        def read(self, size: int) -> bytes:
            return bytes(size)

    with pytest.raises(LimitError, match="max_bytes=3000000"):
        load_weights(Endless(), max_bytes=3_000_000)


def test_errors_of_opening_are_those_of_open(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        load_weights(tmp_path / "missing.safetensors")
    assert str(tmp_path / "missing.safetensors") in str(caught.value)
    with pytest.raises(IsADirectoryError if os.name == "posix" else PermissionError):
        load_weights(tmp_path)
    with pytest.raises(ValueError, match="null"):
        load_weights("a\0b")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="permissions do not bind this user")
def test_an_unreadable_file(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_bytes(CONTENT)
    path.chmod(0)
    with pytest.raises(PermissionError):
        load_weights(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_a_fifo_is_refused_without_waiting_for_a_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FormatError, match="pipe: is no regular file: open it and pass the file object"):
        load_weights(tmp_path / "pipe")


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no /dev/zero here")
def test_a_device_is_refused() -> None:
    with pytest.raises(FormatError, match="/dev/zero: is no regular file"):
        load_weights("/dev/zero")


@pytest.mark.parametrize("mmap", [True, False], ids=["mapped", "read"])
def test_a_file_that_shrinks_while_it_is_opened(tmp_path: Path, mmap: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model"
    path.write_bytes(CONTENT)

    def longer(descriptor: int) -> os.stat_result:
        status = list(true_fstat(descriptor))
        status[6] += 100_000
        return os.stat_result(status)

    true_fstat = os.fstat
    monkeypatch.setattr(os, "fstat", longer)
    with pytest.raises(FormatError, match=f"was {len(CONTENT) + 100_000} bytes long when it was opened, and"):
        load_weights(path, mmap=mmap)


def test_a_file_system_that_cannot_map(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model"
    path.write_bytes(CONTENT)

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENODEV, "No such device")

    monkeypatch.setattr(mapping, "mmap", refuse)
    assert load_weights(path)["a"].tolist() == [0, 1, 2, 3]
    with pytest.raises(LimitError):
        load_weights(path, max_bytes=10)


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    folder = Path("/proc/self/fd")
    if not folder.exists():
        pytest.skip("no /proc here")
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.write_bytes(CONTENT)
    bad.write_bytes(CONTENT[:-1])
    load_weights(good)
    before = len(list(folder.iterdir()))
    load_weights(good)
    load_weights(good, mmap=False)
    for mmap in (True, False):
        with pytest.raises(FormatError):
            load_weights(bad, mmap=mmap)
    assert len(list(folder.iterdir())) == before


def zipped(*names: str) -> bytes:
    return archive(*(Entry(name, b"x") for name in names))


FOREIGN: dict[str, tuple[bytes, type[Error], str]] = {
    "PyTorch, first": (
        b"sys_info\0" + bytes(248) + b"ustar\0" + bytes(249),
        UnsupportedError,
        "the content is PyTorch's format before version 0.2 (a tar archive): load it with an old torch and save it again",
    ),
    "torch.export": (zipped("m/archive_format", "m/models/model.json"), UnsupportedError, "is a program of torch.export (.pt2)"),
    "TorchScript, first": (zipped("m/version", "m/model.json"), UnsupportedError, "is TorchScript of before PyTorch 1.4 (zip)"),
    "PyTorch, cut": (b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.", FormatError, "ends too early: truncated?"),
    "pickle": (b"\x80\x04\x95\x0a\0\0\0\0\0\0\0}\x94.", UnsupportedError, "a Python pickle, which is never unpickled"),
    "Keras": (
        zipped("metadata.json", "config.json", "model.weights.h5"),
        FormatError,
        "model.weights.h5: HDF5: has no signature",
    ),
    "HDF5": (b"\x89HDF\r\n\x1a\n" + bytes(90), UnsupportedError, "HDF5: addresses of 0 and lengths of 0 bytes"),
    "HDF5 after a user block": (bytes(2048) + b"\x89HDF\r\n\x1a\n", FormatError, "HDF5: the superblock: ends 1 bytes too early"),
    "ONNX, cut": (b"\x08\x08\x12\x07pytorch\x1a\x052.1.0", FormatError, "is an ONNX model without a graph: truncated?"),
    "GGUF, cut": (b"GGUF\3\0\0\0", FormatError, "ends within a value at byte 8: truncated?"),
    "gzip": (gzip.compress(CONTENT), UnsupportedError, "gzip-compressed: decompress it first"),
    "tar": (bytes(257) + b"ustar\0" + bytes(249), UnsupportedError, "the content is a tar archive"),
    "Git LFS": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", FormatError, "is a Git LFS pointer"),
    "web page": (b"\n<!DOCTYPE html>\n<html>", FormatError, "is a web page, not a file of weights"),
    "other archive": (
        zipped("a", "b", "c", "d", "e", "f"),
        FormatError,
        "without any npy member or data.pkl: 6 members ('a', 'b', 'c', 'd', 'e', ...)",
    ),
    "broken archive": (zipped("a")[:-1], FormatError, "zip archive: has no end-of-directory record: truncated?"),
    "empty": (b"", FormatError, "<bytes>: is empty (0 bytes)"),
    "one byte": (b"\x80", FormatError, "is of no known format: 1 bytes, beginning with 80 (.)"),
    "text": (
        b'{"a": [1, 2]}',
        FormatError,
        '13 bytes, beginning with 7b 22 61 22 3a 20 5b 31 2c 20 32 5d 7d ({"a": [1, 2]}). Known are npy: ',
    ),
    "zeros": (bytes(64), FormatError, "is of no known format"),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_other_formats_are_named(case: str, tmp_path: Path) -> None:
    content, error, text = FOREIGN[case]
    with pytest.raises(error) as caught:
        load_weights(content)
    assert text in str(caught.value)
    path = tmp_path / "model.safetensors"  # the suffix says nothing
    path.write_bytes(content)
    with pytest.raises(error, match=r"model\.safetensors: "):
        load_weights(path)


def test_every_format_is_known_by_name() -> None:
    with pytest.raises(FormatError) as caught:
        load_weights(b"nonsense")
    for name in ("npy: ", "gguf: ", "torch: ", "npz: ", "safetensors: ", "onnx: "):
        assert name in str(caught.value)


def test_the_format_that_is_asked_for() -> None:
    assert load_weights(CONTENT, format="safetensors")["a"].size == 4
    with pytest.raises(FormatError, match="format='npz' was asked for, but the content is safetensors: 88 bytes, beginning with"):
        load_weights(CONTENT, format="npz")
    with pytest.raises(FormatError, match="is of no known format"):
        load_weights(b"nonsense", format="npz")
    with pytest.raises(ArgumentError, match="format='h6' is not known: expected one of npy, gguf, torch, npz, keras, "):
        load_weights(CONTENT, format="h6")
    with pytest.raises(DTypeError, match="format must be a string or None, got 3 of type int"):
        load_weights(CONTENT, format=3)  # type: ignore[arg-type]


def test_max_bytes_must_be_a_size() -> None:
    assert load_weights(CONTENT, max_bytes=np.int64(1 << 20))["a"].size == 4  # type: ignore[arg-type]
    with pytest.raises(DTypeError, match="max_bytes must be an integer, got float"):
        load_weights(CONTENT, max_bytes=1e9)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="max_bytes must be at least 0, got -1"):
        load_weights(CONTENT, max_bytes=-1)
    assert MAX_BYTES == 16 << 30


def test_an_allocation_that_the_machine_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise MemoryError

    content = npy(np.arange(4, dtype=">f4"))
    monkeypatch.setattr(np, "empty", refuse)
    with pytest.raises(LimitError, match="allocating 16 bytes failed: out of memory"):
        load_weights(content)


def test_long_names_are_shortened_in_errors(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["long folder name" * 4] * 4)
    deep.mkdir(parents=True)
    (deep / "model.bin").write_bytes(b"nonsense")
    with pytest.raises(FormatError, match=r"load_weights: \.\.\..*model\.bin: is of no known format") as caught:
        load_weights(deep / "model.bin")
    assert len(str(caught.value)) < 700


def test_import_brings_in_nothing_that_is_not_needed_yet() -> None:
    script = (
        "import numpy, sys, types; before = set(sys.modules)\n"
        f"package = types.ModuleType('fastlayers'); package.__path__ = [{str(Path(formats.__file__).parents[1])!r}]\n"
        "sys.modules['fastlayers'] = package  # the package without the rest of what it imports\n"
        "import fastlayers.formats; print(*sorted(set(sys.modules) - before - {'fastlayers'}))"
    )
    names = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.split()
    assert {name for name in names if name.startswith("fastlayers.formats.")} == {
        f"fastlayers.formats.{name}" for name in ("weights", "_arrays", "budget", "source")
    }
    assert not {"zipfile", "json", "ast", "pickle", "zlib", "mmap", "numpy.typing"} & set(names)


def test_zip_archives_of_the_standard_library_are_told_apart() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as opened:
        opened.writestr("folder/a.npy", npy(A["a"]))
    assert load_weights(out.getvalue())["folder/a"].tolist() == [0, 1, 2, 3]
