"""audonnx: models of audio with several outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..given import speech
from ..models import Builder


def answers(folder: Path) -> Any:
    import audonnx

    b = Builder()
    x = b.input("signal", [1, "time"])
    x = b.add("Conv", b.add("Unsqueeze", x, b.constant(np.array([1], np.int64))), b.weight(16, 1, 400), strides=[160])
    x = b.add("ReduceMean", b.add("Abs", x), axes=[2], keepdims=0)
    b.output("hidden", x, [1, 16])
    b.output("logits", b.add("MatMul", x, b.weight(16, 4)), [1, 4])
    path = b.save(folder / "model.onnx")
    model = audonnx.Model(str(path), labels={"logits": ["a", "b", "c", "d"]})
    return model(speech(1)[None], 16000)
