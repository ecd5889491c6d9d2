"""onnxmltools: models of LightGBM, converted and run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..given import noise


def answers(folder: Path) -> Any:
    import onnxruntime
    from lightgbm import LGBMClassifier, LGBMRegressor
    from onnxmltools import convert_lightgbm
    from onnxmltools.convert.common.data_types import FloatTensorType

    x = noise(200, 5)
    found: dict[str, Any] = {}
    for name, model in {
        "regressor": LGBMRegressor(n_estimators=10, verbose=-1).fit(x, x[:, 0] * x[:, 1]),
        "classifier": LGBMClassifier(n_estimators=10, verbose=-1).fit(x, np.digitize(x[:, 0] + x[:, 1], [-0.5, 0.5])),
    }.items():
        converted = convert_lightgbm(model, initial_types=[("x", FloatTensorType([None, 5]))], zipmap=False, target_opset=15)
        found[name] = onnxruntime.InferenceSession(converted.SerializeToString()).run(None, {"x": x})
    return found
