"""skl2onnx: models of scikit-learn, converted and run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..given import noise


def answers(folder: Path) -> Any:
    import onnxruntime
    from skl2onnx import to_onnx
    from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x = noise(80, 5)
    y = (x[:, 0] + x[:, 1] * x[:, 2] > 0).astype(int)
    models = {
        "forest": RandomForestClassifier(10, random_state=0).fit(x, y),
        "line": make_pipeline(StandardScaler(), LogisticRegression()).fit(x, y),
        "boosted": GradientBoostingRegressor(n_estimators=20, random_state=0).fit(x, x[:, 0] * x[:, 1]),
    }
    found: dict[str, Any] = {}
    for name, model in models.items():
        session = onnxruntime.InferenceSession(to_onnx(model, x[:1], target_opset=17).SerializeToString())
        results = session.run(None, {"X": x})
        found[name] = [[list(row.values()) for row in r] if isinstance(r, list) else np.asarray(r) for r in results]
    return found
