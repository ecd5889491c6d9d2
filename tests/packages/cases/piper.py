"""piper: vowels for Arabic and Hebrew by its own models, and speech by a voice of random weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from ..models import Builder


def voice(folder: Path) -> Path:
    b = Builder()
    x = b.input("input", ["batch", "time"], np.int64)
    b.input("input_lengths", ["batch"], np.int64)
    scales = b.input("scales", [3])
    x = b.add("Transpose", b.add("Gather", b.weight(256, 16, scale=1.0), x), perm=[0, 2, 1])
    x = b.add("Tanh", b.add("Conv", x, b.weight(32, 16, 5), pads=[2, 2]))
    x = b.add("ConvTranspose", x, b.weight(32, 1, 256, scale=0.1), strides=[128], pads=[64, 64])
    x = b.add("Mul", x, b.add("Gather", scales, b.constant(np.array([0], np.int64))))
    b.output("output", b.add("Unsqueeze", x, b.constant(np.array([1], np.int64))), ["batch", 1, 1, "samples"])
    path = b.save(folder / "voice.onnx")
    symbols = {"_": [0], "^": [1], "$": [2], **{chr(c): [c - 90] for c in range(97, 123)}, " ": [40], ".": [41]}
    settings = {
        "audio": {"sample_rate": 16000, "quality": "low"}, "espeak": {"voice": "en-us"}, "phoneme_type": "text",
        "inference": {"noise_scale": 0.667, "length_scale": 1, "noise_w": 0.8}, "num_symbols": 256, "num_speakers": 1,
        "phoneme_id_map": symbols,
    }  # fmt: skip
    Path(f"{path}.json").write_text(json.dumps(settings), encoding="utf-8")
    return path


def answers(folder: Path) -> Any:
    from piper import PiperVoice
    from piper.tashkeel import TashkeelDiacritizer

    arabic = TashkeelDiacritizer()
    text = "السلام عليكم ورحمة الله وبركاته"
    chunks = PiperVoice.load(voice(folder)).synthesize("hello world. good morning.")
    return {"arabic": arabic(text), "audio": [chunk.audio_float_array for chunk in chunks]}
