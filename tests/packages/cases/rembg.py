"""rembg: a picture without its ground, by a network of one's own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from ..given import disc
from ..models import segmenter


def answers(folder: Path) -> Any:
    os.environ["U2NET_HOME"] = str(folder)
    from rembg import new_session, remove

    session = new_session("u2net_custom", model_path=str(segmenter(folder / "model.onnx")))
    return {
        "mask": np.asarray(remove(disc(), session=session, only_mask=True)),
        "cut": np.asarray(remove(disc(), session=session)),
    }
