"""rapidocr-onnxruntime: detection, direction and recognition of text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..given import page


def answers(folder: Path) -> Any:
    from rapidocr_onnxruntime import RapidOCR

    lines, _ = RapidOCR()(np.asarray(page("Hello world 2024\nfast layers")))
    return [{"box": box, "text": text, "score": float(score)} for box, text, score in lines]
