"""Small files of every format, well made and badly made, from struct and json alone."""

from __future__ import annotations

import io
import json
import struct
import zlib
from typing import Any, NamedTuple

import numpy as np

from . import onnx_build

Tensor = tuple[str, list[int], bytes]  # dtype as the file spells it, shape, data

_SAFETENSORS_NAMES = {"f4": "F32", "f8": "F64", "f2": "F16", "i8": "I64", "i4": "I32", "u1": "U8", "b1": "BOOL", "c8": "C64"}


def safetensors_raw(header: bytes | str, data: bytes = b"", length: int | None = None) -> bytes:
    """A safetensors file with this header text, whatever it is; `length` lies about its length."""
    text = header.encode() if isinstance(header, str) else header
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def safetensors(tensors: dict[str, Tensor], metadata: dict[str, str] | None = None, align: int = 8) -> bytes:
    """A well-made safetensors file, its header padded so that the data begins at a multiple of `align`."""
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": metadata}
    position = 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [position, position + len(data)]}
        position += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-(8 + len(text)) % align)
    return safetensors_raw(text, b"".join(data for _, _, data in tensors.values()))


def safetensors_of(arrays: dict[str, np.ndarray]) -> bytes:
    """A well-made safetensors file of these arrays."""
    return safetensors({n: (_SAFETENSORS_NAMES[a.dtype.str[1:]], list(a.shape), a.tobytes()) for n, a in arrays.items()})


def npy_raw(header: bytes | str, data: bytes = b"", version: tuple[int, int] = (1, 0), length: int | None = None) -> bytes:
    """An npy file with this header text, whatever it is; `length` lies about its length."""
    text = header.encode("latin-1") if isinstance(header, str) else header
    width = "<H" if version == (1, 0) else "<L"
    return b"\x93NUMPY" + bytes(version) + struct.pack(width, len(text) if length is None else length) + text + data


def npy_header(descr: str = "'<f4'", order: str = "False", shape: str = "(2,)") -> str:
    """The text of an npy header, each value as it is written there."""
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"


def npy(array: np.ndarray, version: tuple[int, int] | None = None) -> bytes:
    """An npy file as numpy writes it."""
    out = io.BytesIO()
    np.lib.format.write_array(out, array, version=version, allow_pickle=False)
    return out.getvalue()


def npz(arrays: dict[str, np.ndarray], compressed: bool = False) -> bytes:
    """An npz file as numpy writes it."""
    out = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(out, **arrays)
    return out.getvalue()


class Entry(NamedTuple):
    """A member of an archive; everything but the first two lies about it."""

    name: str
    content: bytes
    deflated: bool = False
    method: int | None = None
    flags: int = 0x0800
    crc: int | None = None
    size: int | None = None
    stored: int | None = None
    local_name: str | None = None
    shift: int = 0  # added to the offset that the directory gives
    raw: bytes | None = None  # the compressed data
    extra: bytes = b""  # of both headers


def archive(
    *entries: Entry, prefix: bytes = b"", comment: bytes = b"", count: int | None = None, gap: bytes = b"", end64: bool = False
) -> bytes:
    """A zip archive of these entries."""
    body, directory = prefix, b""
    for e in entries:
        packer = zlib.compressobj(9, wbits=-15)
        packed = packer.compress(e.content) + packer.flush() if e.deflated else e.content
        packed = packed if e.raw is None else e.raw
        method = (8 if e.deflated else 0) if e.method is None else e.method
        crc = zlib.crc32(e.content) if e.crc is None else e.crc
        size = len(e.content) if e.size is None else e.size
        stored = len(packed) if e.stored is None else e.stored
        numbers = (e.flags, method, 0, 0x21, crc, stored, size)
        name, local = e.name.encode(), (e.local_name or e.name).encode()
        fields = (b"PK\x01\x02", 20, 20, *numbers, len(name), len(e.extra), 0, 0, 0, 0, len(body) + e.shift)
        directory += struct.pack("<4s6H3L5H2L", *fields) + name + e.extra
        body += struct.pack("<4s5H3L2H", b"PK\x03\x04", 20, *numbers, len(local), len(e.extra)) + local + e.extra + packed
    count = len(entries) if count is None else count
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, count, count, len(directory), len(body), len(comment)) + comment
    if end64:
        at = len(body) + len(directory) + len(gap)
        wide = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, len(directory), len(body))
        end = wide + struct.pack("<4sLQL", b"PK\x06\x07", 0, at, 1) + end
    return body + directory + gap + end


_SMALL = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b.c": np.array(True), "e": np.zeros((0, 2), np.int64)}

# One small valid file of every format and flavour: each is truncated at every byte, and each bit of it flipped.
VALID: dict[str, bytes] = {
    "safetensors": safetensors_of(_SMALL),
    "npy": npy(_SMALL["a"]),
    "npz stored": npz({"a": _SMALL["a"]}),
    "npz deflated": npz({"a": _SMALL["a"], "b": _SMALL["b.c"]}, compressed=True),
    "onnx": onnx_build.model(
        onnx_build.graph(initializers=[onnx_build.tensor(a, name) for name, a in _SMALL.items()]), opset=None
    ),
}
