"""pyopenjtalk-plus: how a Japanese word with two readings is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


def answers(folder: Path) -> Any:
    import pyopenjtalk
    from pyopenjtalk.yomi_model import nani_predict

    texts = ["何が好きですか", "何の話ですか", "何か食べたい", "何人いますか", "何で来たの"]
    found: dict[str, Any] = {text: pyopenjtalk.g2p(text, kana=True, use_vanilla=False) for text in texts}
    session = nani_predict.model_session
    spec = session.get_inputs()[0]
    x = np.random.default_rng(0).random((8, *[d if isinstance(d, int) else 1 for d in spec.shape[1:]])).astype(np.float32)
    return {**found, "results": [np.asarray(result) for result in session.run(None, {spec.name: x})]}
