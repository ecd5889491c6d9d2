"""Reads WAV files (RIFF, uncompressed) into float32 samples. Resamples nothing, mixes nothing, writes nothing."""

from __future__ import annotations

import os
import struct

import numpy as np

from .._tuples import NamedTuple
from ..errors import FormatError, LimitError, UnsupportedError

__all__ = ["MAX_BYTES", "Recording", "read_wav"]

MAX_BYTES = 1 << 30  # a longer file is refused: nine hours at 16 kHz, 16 bits

_PCM, _FLOAT, _EXTENSIBLE = 0x0001, 0x0003, 0xFFFE
_COMPRESSED = {0x0002: "ADPCM", 0x0006: "A-law", 0x0007: "mu-law", 0x0011: "IMA ADPCM", 0x0031: "GSM 6.10", 0x0055: "MP3"}
# Bytes 2 to 15 of an extensible header's sub-format; the first two are the format tag of a plain header.
_SUBFORMAT_TAIL = bytes.fromhex("000000001000800000aa00389b71")
# Programs that write to a pipe cannot go back to fill in the sizes; they leave one of these (or 0), all beyond MAX_BYTES.
_STREAMED = 0x7FFFF000


class Recording(NamedTuple):
    """Samples (frames, channels), float32, full scale at ±1, and their number a second."""

    samples: np.ndarray
    rate: int


class _Format(NamedTuple):
    tag: int
    channels: int
    rate: int
    bits: int


def read_wav(path: str | os.PathLike[str]) -> Recording:
    """Reads a WAV file with 8, 16, 24 or 32-bit integer, or 32 or 64-bit float samples.

    Raises:
        FormatError: not a WAV file, or a broken or truncated one.
        UnsupportedError: compressed samples, or a layout that is not read here.
        LimitError: the file has more than `MAX_BYTES` bytes.
    """
    name = os.fspath(path)
    with open(path, "rb") as file:
        head = file.read(12)
        _check_head(name, head)
        # A pipe has no size to ask for; reading one byte past the limit tells.
        body = file.read(MAX_BYTES + 1)
    if len(body) > MAX_BYTES:
        raise LimitError(f"wav: {name}: the file has more than {MAX_BYTES} bytes, the most that is read")
    whole = struct.unpack_from("<I", head, 4)[0] in (len(body) + 4, len(body) + 3)
    layout, data = _chunks(name, memoryview(body), whole)
    return Recording(_samples(name, layout, data), layout.rate)


def _check_head(name: str, head: bytes) -> None:
    if head[:4] in (b"RIFX", b"RF64", b"BW64"):
        raise UnsupportedError(f"wav: {name}: the file is {head[:4].decode()}, expected plain (little-endian, 32-bit) RIFF")
    if len(head) < 12 or head[:4] != b"RIFF" or head[8:12] != b"WAVE":
        what = "the file is empty" if not head else f"it starts with {head!r}"
        raise FormatError(f"wav: {name}: not a WAV file: {what}, expected RIFF, a size, WAVE")


def _chunks(name: str, body: memoryview, whole: bool) -> tuple[_Format, memoryview]:
    """The format and the bytes of the samples. `whole`: the size in the file's head is that of the file."""
    layout, position = None, 0
    while position + 8 <= len(body):
        kind, size = bytes(body[position : position + 4]), struct.unpack_from("<I", body, position + 4)[0]
        position += 8
        left = len(body) - position
        if kind == b"data" and layout is not None:
            return layout, body[position : position + _data_size(name, layout, size, left, whole)]
        if kind == b"data":
            raise FormatError(f"wav: {name}: the data chunk comes before the fmt chunk")
        if size > left:
            raise FormatError(f"wav: {name}: chunk {kind!r} claims {size} bytes, but {left} are left in the file")
        if kind == b"fmt ":
            layout = _format(name, bytes(body[position : position + size]))
        position += size + (size & 1)
    missing = "fmt" if layout is None else "data"
    raise FormatError(f"wav: {name}: no {missing} chunk: the file ends after {len(body) + 12} bytes")


def _data_size(name: str, layout: _Format, size: int, left: int, whole: bool) -> int:
    block = layout.channels * layout.bits // 8
    if size >= _STREAMED or (size == 0 and not whole):
        return left // block * block  # the writer of the pipe may have been stopped within a sample
    if size > left:
        raise FormatError(f"wav: {name}: truncated: the data chunk claims {size} bytes, but {left} are left in the file")
    if size % block:
        raise FormatError(f"wav: {name}: the data chunk has {size} bytes, no multiple of the {block} that one sample takes")
    return size


def _format(name: str, chunk: bytes) -> _Format:
    if len(chunk) < 16:
        raise FormatError(f"wav: {name}: the fmt chunk has {len(chunk)} bytes, expected at least 16")
    tag, channels, rate, _, block, bits = struct.unpack_from("<HHIIHH", chunk)
    if tag == _EXTENSIBLE:
        if len(chunk) < 40:
            raise FormatError(f"wav: {name}: the extensible fmt chunk has {len(chunk)} bytes, expected at least 40")
        if chunk[26:40] != _SUBFORMAT_TAIL:
            raise UnsupportedError(f"wav: {name}: sub-format {chunk[24:40].hex()} is not read: expected integer or float samples")
        tag = struct.unpack_from("<H", chunk, 24)[0]
    if tag not in (_PCM, _FLOAT):
        raise UnsupportedError(
            f"wav: {name}: samples are compressed ({_COMPRESSED.get(tag, 'format')}, tag {tag:#06x}), expected integers or floats"
        )
    if not channels or not rate:
        raise FormatError(f"wav: {name}: {channels} channels at {rate} Hz: expected at least one of each")
    if bits not in ((8, 16, 24, 32) if tag == _PCM else (32, 64)):
        kind = "integers: expected 8, 16, 24 or 32" if tag == _PCM else "floats: expected 32 or 64"
        raise UnsupportedError(f"wav: {name}: {bits}-bit {kind}")
    if block != channels * bits // 8:
        raise FormatError(f"wav: {name}: {block} bytes a block, expected {channels * bits // 8} ({channels} x {bits} bits)")
    return _Format(tag, channels, rate, bits)


def _samples(name: str, layout: _Format, data: memoryview) -> np.ndarray:
    if layout.tag == _FLOAT:
        samples = np.frombuffer(data, f"<f{layout.bits // 8}").astype(np.float32)
        if not np.isfinite(samples).all():
            raise FormatError(f"wav: {name}: samples that are not finite values (NaN or infinity, or beyond float32)")
    elif layout.bits == 8:  # the one width that is unsigned
        samples = (np.frombuffer(data, np.uint8).astype(np.float32) - 128.0) / 128.0
    elif layout.bits == 24:  # into the upper three bytes of 32: the sign comes by itself
        wide = np.zeros((len(data) // 3, 4), np.uint8)
        wide[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
        samples = wide.view("<i4").ravel().astype(np.float32) / 2.0**31
    else:
        samples = np.frombuffer(data, f"<i{layout.bits // 8}").astype(np.float32) / 2.0 ** (layout.bits - 1)
    return samples.astype(np.float32, copy=False).reshape(-1, layout.channels)
