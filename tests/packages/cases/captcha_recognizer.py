"""captcha-recognizer: where the gap of a puzzle is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..given import disc


def answers(folder: Path) -> Any:
    from captcha_recognizer.slider import Slider

    picture = np.asarray(disc(320))[..., ::-1].copy()
    picture[120:180, 200:260] = picture[120:180, 200:260] // 3
    slider = Slider()
    boxes, masks = slider.predict(picture, conf=0.01)[0]
    box, confidence = slider.identify(picture)
    return {"boxes": boxes, "masks": np.asarray(masks).sum(), "box": list(box), "confidence": float(confidence or 0)}
