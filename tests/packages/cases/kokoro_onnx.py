"""kokoro-onnx: speech by a network of random weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..given import noise
from ..models import Builder


def answers(folder: Path) -> Any:
    from kokoro_onnx import Kokoro

    b = Builder()
    tokens = b.input("tokens", ["batch", "time"], np.int64)
    style, speed = b.input("style", [1, 256]), b.input("speed", [1])
    x = b.add("Transpose", b.add("Gather", b.weight(200, 32, scale=1.0), tokens), perm=[0, 2, 1])
    toned = b.add("Unsqueeze", b.add("MatMul", style, b.weight(256, 32)), b.constant(np.array([2], np.int64)))
    x = b.add("Tanh", b.add("Add", b.add("Conv", x, b.weight(32, 32, 3), pads=[1, 1]), toned))
    x = b.add("Div", b.add("ConvTranspose", x, b.weight(32, 1, 600, scale=0.1), strides=[300], pads=[150, 150]), speed)
    b.output("audio", b.add("Reshape", x, b.constant(np.array([-1], np.int64))), ["samples"])
    b.save(folder / "model.onnx")
    with (folder / "voices.bin").open("wb") as file:
        np.savez(file, low=noise(510, 1, 256))
    audio, rate = Kokoro(str(folder / "model.onnx"), str(folder / "voices.bin")).create("Hello there, world.", "low", trim=False)
    return {"audio": audio, "rate": rate}
