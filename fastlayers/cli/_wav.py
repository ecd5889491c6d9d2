"""Reads WAV files of integer samples into float32. Resamples nothing, mixes nothing."""

from __future__ import annotations

import io
import os
import wave

import numpy as np

from .._tuples import NamedTuple
from ..errors import FormatError, LimitError, UnsupportedError

__all__ = ["MAX_BYTES", "Recording", "read_wav"]

MAX_BYTES = 1 << 30  # a longer file is refused: nine hours at 16 kHz, 16 bits

# Programs that write to a pipe cannot go back to fill in the size of the data: they leave one that is at least this.
_STREAMED = 0x7FFFF000


class Recording(NamedTuple):
    """Samples (frames, channels), float32, full scale at ±1, and their number a second."""

    samples: np.ndarray
    rate: int


def read_wav(path: str | os.PathLike[str]) -> Recording:
    """Reads a WAV file with 8, 16, 24 or 32-bit integer samples.

    Raises:
        FormatError: not a WAV file, or a broken or truncated one.
        UnsupportedError: samples that are compressed, floats, or of another width.
        LimitError: the file has more than `MAX_BYTES` bytes.
    """
    where = f"wav: {os.fspath(path)}"
    with open(path, "rb") as file:
        body = file.read(MAX_BYTES + 1)  # a pipe has no size to ask for; reading one byte past the limit tells
    if len(body) > MAX_BYTES:
        raise LimitError(f"{where}: the file has more than {MAX_BYTES} bytes, the most that is read")
    try:
        with wave.open(io.BytesIO(body)) as content:
            channels, width, rate, count = content.getparams()[:4]
            frames = content.readframes(count)
    except (EOFError, RuntimeError, wave.Error) as error:  # RuntimeError: a chunk that claims to go beyond the file
        if "format" in str(error):
            hint = "expected integer samples; `ffmpeg -i IN -c:a pcm_s16le OUT.wav` converts"
            raise UnsupportedError(f"{where}: {error}: {hint}") from None
        about = str(error) or f"it ends within a chunk, after {len(body)} bytes"
        raise FormatError(f"{where}: not a WAV file that can be read: {about}") from None
    if width > 4:
        raise UnsupportedError(f"{where}: {8 * width}-bit integers: expected 8, 16, 24 or 32")
    wanted, size = count * channels * width, channels * width
    if len(frames) < wanted and wanted + size <= _STREAMED:
        raise FormatError(f"{where}: truncated: the data chunk claims {wanted} bytes, but {len(frames)} are left in the file")
    return Recording(_floats(frames[: len(frames) // size * size], width).reshape(-1, channels), rate)


def _floats(data: bytes, width: int) -> np.ndarray:
    if width == 1:  # the one width that is unsigned
        return (np.frombuffer(data, np.uint8).astype(np.float32) - 128.0) / 128.0
    if width == 3:  # into the upper three bytes of 32: the sign comes by itself
        wide = np.zeros((len(data) // 3, 4), np.uint8)
        wide[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
        return wide.view("<i4").ravel().astype(np.float32) / 2.0**31
    return np.frombuffer(data, f"i{width}").astype(np.float32) / 2.0 ** (8 * width - 1)
