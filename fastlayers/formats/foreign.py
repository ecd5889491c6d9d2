"""Formats that are recognized but not read, so that the error can say what to do. Nothing of them is decoded."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NoReturn

from ..errors import FormatError, UnsupportedError
from .elsewhere import MODELS, TENSORFLOW
from .source import Source, quote

__all__ = ["refuse", "script"]

# (name, what the content starts with, at which offset)
_MAGICS: tuple[tuple[str, bytes, int], ...] = (
    ("ncnn (.param)", b"7767517\n", 0),
    ("MATLAB", b"MATLAB 5.0 MAT-file", 0),
    # Its first member tells it from other archives.
    ("PyTorch's format before version 0.2 (a tar archive): load it with an old torch and save it again", b"sys_info\0", 0),
    ("a tar archive", b"ustar", 257),
    ("gzip-compressed: decompress it first", b"\x1f\x8b", 0),
    ("xz-compressed: decompress it first", b"\xfd7zXZ\x00", 0),
    ("zstandard-compressed: decompress it first", b"\x28\xb5\x2f\xfd", 0),
    ("bzip2-compressed: decompress it first", b"BZh", 0),
    ("ONNX Runtime's own (.ort): load the ONNX file that it was made of", b"ORTM", 4),
)
# What has no magic number, by the file's name.
_NAMED = {
    ".pb": f"may be a graph of TensorFlow, which is not read: {TENSORFLOW}",
    ".xml": "may be OpenVINO's, which is not read: load the ONNX file that it was made of",
    ".mlmodel": "may be Core ML's, which is not read: load the model that it was made of, or its ONNX file",
}
# Texts that stand where a file of weights was meant.
_TEXTS: tuple[tuple[str, bytes], ...] = (
    ("a Git LFS pointer, not the file that it stands for: fetch that with `git lfs pull`", b"version https://git-lfs"),
    ("a web page, not a file of weights", b"<!doctype html"),
    ("a web page, not a file of weights", b"<html"),
)
# (name, whether the names of a zip archive's members show it)
_ARCHIVES: tuple[tuple[str, Callable[[list[str]], bool]], ...] = (
    (
        "a program of torch.export (.pt2): export it as ONNX, torch.onnx.export(program, f='net.onnx'), see docs/export.md",
        lambda names: any(n.rpartition("/")[2] == "archive_format" for n in names),
    ),
    ("TorchScript of before PyTorch 1.4 (zip)", lambda names: any(n.endswith("/model.json") for n in names)),
    ("a zip archive with a model: unpack it, and load that", lambda names: any(n.lower().endswith(MODELS) for n in names)),
)


def refuse(source: Source) -> None:
    """Raises an error that names the format if the content is one of these, else returns."""
    if _starts_zip(source):
        _refuse_archive(source)
    for name, magic, at in _MAGICS:
        if source.starts_with(magic, at):
            _unsupported(source, name)
    if _is_pickle(source):
        _unsupported(
            source, "a Python pickle, which is never unpickled: save the model as ONNX, or its arrays as safetensors or npz"
        )
    first = bytes(source.view[:64]).lstrip().lower()
    for name, text in _TEXTS:
        if first.startswith(text):
            raise FormatError(f"{source.where}: is {name}")
    if source.path is not None and (named := _NAMED.get(os.path.splitext(os.fsdecode(source.path))[1].lower())):
        raise UnsupportedError(f"{source.where}: {named}")


def script(source: Source) -> bool:
    """Whether an archive of torch has code of TorchScript."""
    return _starts_zip(source) and any("/code/" in member.name for member in source.archive().members)


def _unsupported(source: Source, name: str) -> NoReturn:
    raise UnsupportedError(f"{source.where}: the content is {name}{'' if ':' in name else ', which is not read'}")


def _starts_zip(source: Source) -> bool:
    return source.starts_with(b"PK\x03\x04") or source.starts_with(b"PK\x05\x06")


def _refuse_archive(source: Source) -> NoReturn:
    names = [member.name for member in source.archive().members]
    for name, shows in _ARCHIVES:
        if shows(names):
            _unsupported(source, name)
    some = ", ".join(quote(n) for n in names[:5]) + (", ..." if len(names) > 5 else "")
    members = f"{len(names)} member{'s' * (len(names) != 1)} ({some})"
    raise FormatError(f"{source.where}: is a zip archive without any npy member or data.pkl: {members}")


def _is_pickle(source: Source) -> bool:
    return len(source) > 2 and source.view[0] == 0x80 and 2 <= source.view[1] <= 5
