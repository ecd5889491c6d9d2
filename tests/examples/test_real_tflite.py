"""Trained models straight from their TensorFlow Lite files, simplified and as written, against what its interpreter answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fastlayers as fl

from .real_models import thinned
from .real_tflite import MODELS, Real, drawn
from .wheels import wheel_file

GOLDENS = Path(__file__).parent.parent / "goldens" / "real_tflite.npz"


@pytest.mark.parametrize("real", MODELS, ids=[real.name for real in MODELS])
def test_within_tolerance(real: Real) -> None:
    path = wheel_file(real.wheel, real.member)
    with np.load(GOLDENS) as file:
        stored = {key.partition("/")[2]: file[key] for key in file.files if key.startswith(f"{real.name}/")}
    x = drawn(real) if real.shape else stored["in"]
    for optimize in (True, False):
        model = fl.load(path, optimize=optimize)
        results = model(x)
        results = results if isinstance(results, tuple) else (results,)
        assert len(results) == sum(key.startswith("out") for key in stored)
        for i, result in enumerate(results):
            assert result.shape == tuple(stored[f"shape_{i}"])
            want = stored[f"out_{i}"]
            off = float(np.abs(thinned(result).astype(np.float64) - want).max())
            assert off <= real.tolerance * max(1.0, float(np.abs(want).max())), (optimize, i)


@pytest.mark.parametrize("real", [r for r in MODELS if "mediapipe" in r.wheel], ids=lambda r: r.name)
def test_images_are_not_transposed(real: Real) -> None:
    """Only resizing that halves and doubles channels moves any elements; no step runs in numpy."""
    model = fl.load(wheel_file(real.wheel, real.member), require_native=True)
    shape = model.inputs[0].shape
    assert "transpose" not in model.kernel_names({model.inputs[0].name: np.zeros(shape, np.float32)})  # type: ignore[arg-type]


def test_custom_operators_are_listed() -> None:
    path = wheel_file("mediapipe==0.10.14", "mediapipe/modules/face_landmark/face_landmark_with_attention.tflite")
    with pytest.raises(fl.UnsupportedError) as caught:
        fl.load(path)
    assert str(caught.value).splitlines()[1:] == [
        "  operator CUSTOM 'Landmarks2TransformMatrix': 3 times",
        "  operator CUSTOM 'TransformLandmarks': 5 times",
        "  operator CUSTOM 'TransformTensorBilinear': 3 times",
    ]
