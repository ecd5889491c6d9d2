"""openwakeword: wake words in speech, frame by frame."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..given import speech


def answers(folder: Path) -> Any:
    from openwakeword.model import Model

    model = Model(vad_threshold=0.01)
    audio = (speech(5) * 32767).astype(np.int16)
    scores = [model.predict(audio[i : i + 1280]) for i in range(0, len(audio) - 1280, 1280)]
    return {
        "scores": {name: np.array([frame[name] for frame in scores]) for name in scores[0]},
        "features": np.array(model.preprocessor.feature_buffer),
    }
