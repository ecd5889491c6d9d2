"""Writes goldens.zip: small classical models, what they are given, and what ONNX Runtime makes of it.

python -m tests.formats.classical.make_goldens     in an environment with tests/zoo/requirements-classical.txt
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from tests.zoo.classical import plain_attributes
from tests.zoo.classical_cases import cases

TO = Path(__file__).with_name("goldens.zip")
ROWS = 8
NAMES = (
    "ColumnTransformer + GradientBoostingClassifier", "ColumnTransformer + LogisticRegression, strings",
    "DecisionTreeClassifier, missing", "DecisionTreeClassifier, several labels", "DecisionTreeRegressor, two values",
    "DictVectorizer", "GaussianNB, 2 classes", "GradientBoostingClassifier, integers", "GradientBoostingRegressor",
    "IsolationForest", "KMeans", "LGBMClassifier, 2 classes, missing", "LGBMClassifier, 3 classes", "LinearRegression",
    "LinearSVC, 3 strings", "LogisticRegression, 2 classes", "LogisticRegression, 3 classes, ZipMap",
    "LogisticRegression, float64", "MultinomialNB, integers", "Normalizer l1", "Normalizer max", "OneClassSVM",
    "OneHotEncoder integers", "OneHotEncoder strings", "OrdinalEncoder strings", "PCA", "SVC rbf, 2 classes", "SVR rbf",
    "SVR sigmoid", "SimpleImputer median", "SVC probability, 3 classes, ZipMap", "StandardScaler", "TargetEncoder strings",
    "XGBClassifier, 2 classes, missing", "XGBRegressor",
)  # fmt: skip


def described(value: Any) -> Any:
    """Inputs and results as JSON: arrays with their dtypes, dicts and lists as pairs."""
    if isinstance(value, np.ndarray):
        return {"dtype": value.dtype.name, "shape": value.shape, "values": value.reshape(-1).tolist()}
    if isinstance(value, dict):
        return {"dict": [[key, float(number)] for key, number in value.items()]}
    return {"list": [described(item) for item in value]}


def main() -> None:
    """Writes the file."""
    plain_attributes()
    found = cases()
    with zipfile.ZipFile(TO, "w", zipfile.ZIP_LZMA) as archive:
        for name in NAMES:
            content, feeds, _ = found[name]()
            feeds = {k: v[:ROWS] if isinstance(v, np.ndarray) else v for k, v in feeds.items()}
            results = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"]).run(None, feeds)
            told = {"feeds": {k: described(v) for k, v in feeds.items()}, "results": [described(v) for v in results]}
            for suffix, data in (("onnx", content), ("json", json.dumps(told).encode())):
                archive.writestr(zipfile.ZipInfo(f"{name}.{suffix}", (1980, 1, 1, 0, 0, 0)), data, zipfile.ZIP_LZMA)
    print(f"{len(NAMES)} models, {TO.stat().st_size} bytes")


if __name__ == "__main__":
    main()
