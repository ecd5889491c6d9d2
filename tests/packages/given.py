"""What cases run on: speech, tones, pictures and texts that are there without a download."""

from __future__ import annotations

import wave
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["SPEECH", "disc", "noise", "page", "speech", "tones"]

SPEECH = Path(__file__).parents[2] / "fastlayers" / "data" / "speech_16k.wav"


def speech(seconds: float = 4.0, rate: int = 16000) -> np.ndarray:
    """The packaged recording of speech as float32, of 16 kHz or, by interpolation, of another rate."""
    with wave.open(str(SPEECH)) as file:
        samples = np.frombuffer(file.readframes(file.getnframes()), np.int16)
    samples = samples[: int(seconds * 16000)].astype(np.float32) / 32768
    if rate == 16000:
        return samples
    at = np.arange(0, len(samples), 16000 / rate)
    return np.interp(at, np.arange(len(samples)), samples).astype(np.float32)


def tones(seconds: float, rate: int) -> np.ndarray:
    """A scale of four tones with overtones."""
    time = np.arange(int(seconds * rate)) / rate
    pitch = 220 * 2 ** (np.floor(time / seconds * 4) * 4 / 12)
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    return (0.4 * np.sin(phase) + 0.2 * np.sin(2 * phase)).astype(np.float32)


def noise(*shape: int, seed: int = 0) -> np.ndarray:
    """Normal noise."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def page(text: str, size: tuple[int, int] = (640, 160), height: int = 48) -> Any:
    """A picture (of Pillow) of lines of text."""
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.new("RGB", size, "white")
    ImageDraw.Draw(picture).multiline_text((20, 15), text, fill="black", font=ImageFont.load_default(height))
    return picture


def disc(size: int = 240) -> Any:
    """A picture (of Pillow) of a bright disc on a striped ground."""
    from PIL import Image

    y, x = np.mgrid[:size, :size]
    ground = 60 + 40 * np.sin(x / 7)
    inside = (x - size / 2) ** 2 + (y - size / 2) ** 2 < (size / 3) ** 2
    plane = np.where(inside, 230, ground)
    return Image.fromarray(np.stack([plane, plane * 0.8, plane * 0.6], axis=-1).astype(np.uint8))
