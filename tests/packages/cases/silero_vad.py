"""silero-vad: its ONNX models on its own wrapper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..given import speech


def answers(folder: Path) -> Any:
    import torch
    from silero_vad import get_speech_timestamps, load_silero_vad

    audio = torch.from_numpy(speech(7))
    found: dict[str, Any] = {}
    for opset in (15, 16):
        model = load_silero_vad(onnx=True, opset_version=opset)
        found[f"stamps{opset}"] = get_speech_timestamps(audio, model)
        model.reset_states()
        found[f"chunks{opset}"] = np.array([model(chunk, 16000).item() for chunk in audio[: 512 * 60].split(512)])
    return found
