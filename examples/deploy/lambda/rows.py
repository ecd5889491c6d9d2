"""A cloud function: a model of rows (XGBoost, LightGBM, scikit-learn; saved from ONNX) that answers with classes or numbers."""

import os
from pathlib import Path

import numpy as np

import fastlayers as fl

model = fl.load(Path(os.environ.get("LAMBDA_TASK_ROOT", Path(__file__).parent)) / "model.safetensors")


def handler(event, context):
    rows = np.asarray(event["rows"], np.float32)
    return {name: value.tolist() for name, value in model.run({model.inputs[0].name: rows}).items()}
