"""nudenet: detections in a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def answers(folder: Path) -> Any:
    import skimage.data
    from nudenet import NudeDetector

    return NudeDetector().detect(skimage.data.astronaut()[..., ::-1].copy())
