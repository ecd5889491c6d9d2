"""The WAV reader on files that are right, odd, broken and hostile."""

from __future__ import annotations

import contextlib
import os
import struct
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from fastlayers.cli import _wav
from fastlayers.cli._wav import read_wav
from fastlayers.errors import FormatError, LimitError, UnsupportedError

from .wavs import chunk, extensible, fmt, wav

# The same five values in every width: silence, full scale down, half up, half down, the smallest 8-bit step.
VALUES = np.array([0.0, -1.0, 0.5, -0.5, 1 / 128])
PCM8 = (VALUES * 128 + 128).astype(np.uint8).tobytes()
PCM16 = (VALUES * 2**15).astype("<i2").tobytes()
PCM24 = b"".join(int(v * 2**23).to_bytes(3, "little", signed=True) for v in VALUES)
PCM32 = (VALUES * 2**31).astype("<i4").tobytes()
FLOAT32 = VALUES.astype("<f4").tobytes()
FLOAT64 = VALUES.astype("<f8").tobytes()
DATA = chunk(b"data", PCM16)

GOOD = {
    "8 bits": wav(fmt(bits=8), chunk(b"data", PCM8)),
    "16 bits": wav(fmt(), DATA),
    "24 bits": wav(fmt(bits=24), chunk(b"data", PCM24)),
    "32 bits": wav(fmt(bits=32), chunk(b"data", PCM32)),
    "float32": wav(fmt(3, bits=32), chunk(b"data", FLOAT32)),
    "float64": wav(fmt(3, bits=64), chunk(b"data", FLOAT64)),
    "extensible 24 bits": wav(extensible(bits=24), chunk(b"data", PCM24)),
    "extensible float32": wav(extensible(3, bits=32), chunk(b"data", FLOAT32)),
    "other chunks, one of odd length": wav(chunk(b"JUNK", b"abc"), fmt(), chunk(b"fact", b"1234"), DATA, chunk(b"LIST", b"data")),
    "streamed, all ones": wav(fmt(), chunk(b"data", PCM16, 0xFFFFFFFF), size=0xFFFFFFFF),
    "streamed, zeros": wav(fmt(), chunk(b"data", PCM16, 0), size=0),
    "streamed, sox": wav(fmt(), chunk(b"data", PCM16, 0x7FFFF000), size=0x7FFFF024),
    "streamed, cut within a sample": wav(fmt(), chunk(b"data", PCM16, 0xFFFFFFFF), size=0xFFFFFFFF) + b"\1",
    "RIFF size wrong": wav(fmt(), DATA, size=3),
    "bytes after the end": wav(fmt(), DATA) + b"\0" * 7,
}

BAD = {
    "empty": (b"", FormatError, "the file is empty"),
    "text": (b"hello, this is no audio", FormatError, "not a WAV file"),
    "head cut": (wav(fmt(), DATA)[:10], FormatError, "not a WAV file"),
    "RIFF but AVI": (b"RIFF\x10\0\0\0AVI " + bytes(8), FormatError, "not a WAV file"),
    "big-endian": (b"RIFX" + wav(fmt(), DATA)[4:], UnsupportedError, "RIFX"),
    "64-bit": (b"RF64" + wav(fmt(), DATA)[4:], UnsupportedError, "RF64"),
    "head alone": (wav(), FormatError, "no fmt chunk"),
    "no data": (wav(fmt()), FormatError, "no data chunk"),
    "data first": (wav(DATA, fmt()), FormatError, "before the fmt chunk"),
    "fmt too short": (wav(chunk(b"fmt ", bytes(14)), DATA), FormatError, "14 bytes, expected at least 16"),
    "fmt beyond the file": (wav(chunk(b"fmt ", bytes(16), 4000)), FormatError, "claims 4000 bytes, but 16 are left"),
    "unknown chunk beyond the file": (wav(chunk(b"LIST", b"", 0xFFFFFFF0), fmt(), DATA), FormatError, "claims 4294967280 bytes"),
    "truncated": (wav(fmt(), DATA)[:-4], FormatError, "truncated: the data chunk claims 10 bytes, but 6 are left"),
    "half a sample": (wav(fmt(), chunk(b"data", PCM16[:-1])), FormatError, "no multiple of the 2"),
    "mu-law": (wav(fmt(7, bits=8), chunk(b"data", PCM8)), UnsupportedError, "mu-law, tag 0x0007"),
    "unknown tag": (wav(fmt(0x1234), DATA), UnsupportedError, "tag 0x1234"),
    "extensible mu-law": (wav(extensible(7, bits=8), chunk(b"data", PCM8)), UnsupportedError, "mu-law"),
    "extensible, other sub-format": (wav(extensible(tail=bytes(14)), DATA), UnsupportedError, "sub-format"),
    "extensible, too short": (wav(fmt(0xFFFE), DATA), FormatError, "expected at least 40"),
    "no channels": (wav(fmt(channels=0), DATA), FormatError, "0 channels"),
    "no rate": (wav(fmt(rate=0), DATA), FormatError, "at 0 Hz"),
    "12 bits": (wav(fmt(bits=12, block=2), DATA), UnsupportedError, "12-bit integers"),
    "float16": (wav(fmt(3, bits=16), DATA), UnsupportedError, "16-bit floats"),
    "block size wrong": (wav(fmt(block=4), DATA), FormatError, "4 bytes a block, expected 2"),
    "NaN": (wav(fmt(3, bits=32), chunk(b"data", np.array([np.nan], "<f4").tobytes())), FormatError, "not finite"),
}


@pytest.mark.parametrize("content", GOOD.values(), ids=GOOD.keys())
def test_reads(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(content)
    recording = read_wav(path)
    assert recording.rate == 16000
    assert recording.samples.dtype == np.float32
    np.testing.assert_array_equal(recording.samples, VALUES.astype(np.float32)[:, None])


@pytest.mark.parametrize(("content", "kind", "message"), BAD.values(), ids=BAD.keys())
def test_refuses(tmp_path: Path, content: bytes, kind: type[Exception], message: str) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(content)
    with pytest.raises(kind, match=message) as raised:
        read_wav(path)
    assert str(path) in str(raised.value)


def test_every_prefix_is_an_error_of_ours(tmp_path: Path) -> None:
    path, content = tmp_path / "a.wav", GOOD["extensible 24 bits"]
    for length in range(len(content) - 1):  # the last byte pads the chunk to an even length
        path.write_bytes(content[:length])
        with pytest.raises(FormatError):
            read_wav(path)


def test_every_changed_byte_reads_or_is_an_error_of_ours(tmp_path: Path) -> None:
    path, content = tmp_path / "a.wav", GOOD["extensible float32"]
    for position in range(68):
        for value in (0, 0xFF):
            path.write_bytes(content[:position] + bytes([value]) + content[position + 1 :])
            with contextlib.suppress(FormatError, UnsupportedError):
                assert read_wav(path).samples.size <= len(content)


def test_channels_are_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(wav(fmt(channels=2, rate=8000), chunk(b"data", struct.pack("<4h", 0, 2**14, -(2**15), 0))))
    recording = read_wav(path)
    assert recording.rate == 8000
    np.testing.assert_array_equal(recording.samples, [[0.0, 0.5], [-1.0, 0.0]])


def test_no_samples(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(wav(fmt(), chunk(b"data", b""), chunk(b"LIST", b"name")))
    assert read_wav(path).samples.shape == (0, 1)


def test_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(GOOD["16 bits"])
    monkeypatch.setattr(_wav, "MAX_BYTES", 20)
    with pytest.raises(LimitError, match="more than 20 bytes"):
        read_wav(path)


@pytest.mark.skipif(sys.platform == "win32", reason="no named pipes in the file system")
def test_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(GOOD["streamed, all ones"],))
    writer.start()
    assert len(read_wav(path).samples) == len(VALUES)
    writer.join()
