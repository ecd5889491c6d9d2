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
DATA = chunk(b"data", PCM16)

GOOD = {
    "8 bits": wav(fmt(bits=8), chunk(b"data", PCM8)),
    "16 bits": wav(fmt(), DATA),
    "24 bits": wav(fmt(bits=24), chunk(b"data", PCM24)),
    "32 bits": wav(fmt(bits=32), chunk(b"data", PCM32)),
    "other chunks, one of odd length": wav(chunk(b"JUNK", b"abc"), fmt(), chunk(b"fact", b"1234"), DATA, chunk(b"LIST", b"data")),
    "streamed, all ones": wav(fmt(), chunk(b"data", PCM16, 0xFFFFFFFF), size=0xFFFFFFFF),
    "streamed, sox": wav(fmt(), chunk(b"data", PCM16, 0x7FFFF000), size=0x7FFFF024),
    "streamed, cut within a sample": wav(fmt(), chunk(b"data", PCM16, 0xFFFFFFFF), size=0xFFFFFFFF) + b"\1",
    "bytes after the end": wav(fmt(), DATA) + b"\0" * 7,
}

BAD = {
    "empty": (b"", FormatError, "not a WAV file that can be read"),
    "text": (b"hello, this is no audio", FormatError, "not a WAV file that can be read"),
    "head cut": (wav(fmt(), DATA)[:10], FormatError, "not a WAV file that can be read"),
    "RIFF but AVI": (b"RIFF\x10\0\0\0AVI " + bytes(8), FormatError, "not a WAV file that can be read"),
    "big-endian": (b"RIFX" + wav(fmt(), DATA)[4:], FormatError, "not a WAV file that can be read"),
    "head alone": (wav(), FormatError, "not a WAV file that can be read"),
    "no data": (wav(fmt()), FormatError, "not a WAV file that can be read"),
    "data first": (wav(DATA, fmt()), FormatError, "not a WAV file that can be read"),
    "fmt too short": (wav(chunk(b"fmt ", bytes(13))), FormatError, "not a WAV file that can be read"),
    "fmt beyond the file": (wav(chunk(b"fmt ", fmt()[8:], 4000)), FormatError, "not a WAV file that can be read"),
    "unknown chunk beyond the file": (
        wav(chunk(b"LIST", b"", 0xFFFFFFF0), fmt(), DATA),
        FormatError,
        "not a WAV file that can be read",
    ),
    "truncated": (wav(fmt(), DATA)[:-4], FormatError, "truncated: the data chunk claims 10 bytes, but 6 are left"),
    "mu-law": (wav(fmt(7, bits=8), chunk(b"data", PCM8)), UnsupportedError, "unknown format: 7.*pcm_s16le"),
    "floats": (wav(fmt(3, bits=32), DATA), UnsupportedError, "unknown format: 3: expected integer samples; .*pcm_s16le"),
    "extensible floats": (wav(extensible(3, bits=32), DATA), UnsupportedError, "expected integer samples"),
    "no channels": (wav(fmt(channels=0), DATA), FormatError, "not a WAV file that can be read"),
    "40 bits": (wav(fmt(bits=40), DATA), UnsupportedError, "40-bit integers"),
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
    path, content = tmp_path / "a.wav", GOOD["24 bits"]
    for length in range(len(content) - 1):  # the last byte pads the chunk to an even length
        path.write_bytes(content[:length])
        with pytest.raises(FormatError):
            read_wav(path)


def test_every_changed_byte_reads_or_is_an_error_of_ours(tmp_path: Path) -> None:
    path, content = tmp_path / "a.wav", GOOD["16 bits"]
    for position in range(44):
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
