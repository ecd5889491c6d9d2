"""rapidocr: the same of its third generation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..given import page


def answers(folder: Path) -> Any:
    from rapidocr import RapidOCR

    found = RapidOCR()(np.asarray(page("Hello world 2024\nfast layers")))
    return {"boxes": np.asarray(found.boxes), "texts": list(found.txts), "scores": list(found.scores)}
