"""onnx-asr: its own preprocessors, and recognition by a network of random weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..given import speech
from ..models import Builder


def recognizer(folder: Path, letters: str) -> None:
    b = Builder()
    x = b.input("audio_signal", ["batch", 80, "time"])
    b.input("length", ["batch"], np.int64)
    for outer, inner in ((32, 80), (32, 32), (len(letters) + 1, 32)):
        x = b.add("Tanh", b.add("Conv", x, b.weight(outer, inner, 3, scale=0.3), strides=[2], pads=[1, 1]))
    x = b.add("LogSoftmax", b.add("Mul", b.add("Transpose", x, perm=[0, 2, 1]), b.constant(np.float32(4))), axis=-1)
    b.output("logprobs", x, ["batch", "steps", len(letters) + 1])
    b.save(folder / "model.onnx")
    lines = [f"{letter if letter != ' ' else '▁'} {i}" for i, letter in enumerate(letters)] + [f"<blk> {len(letters)}"]
    (folder / "vocab.txt").write_text("\n".join(lines), encoding="utf-8")
    (folder / "config.json").write_text('{"model_type": "nemo-conformer-ctc", "features_size": 80}', encoding="utf-8")


def answers(folder: Path) -> Any:
    import onnx_asr

    recognizer(folder, " abcdefghijklmnopqrstuvwxyz")
    found: dict[str, Any] = {}
    for rate in (16000, 8000):
        model = onnx_asr.load_model("nemo-conformer-ctc", str(folder))
        result = model.with_timestamps().recognize(speech(3, rate), sample_rate=rate)
        found[str(rate)] = {"text": result.text, "at": result.timestamps, "logprobs": result.logprobs}
    return found
