"""Trained models straight from their ONNX files, simplified and as written, against what ONNX Runtime answers."""

from __future__ import annotations

import pytest

import fastlayers as fl

from .real_models import MODELS, Real, differences, feeds_of, path_of


@pytest.mark.later("reference")  # it takes seconds a network
@pytest.mark.parametrize("real", MODELS, ids=[real.name for real in MODELS])
def test_within_tolerance(real: Real, variant: str) -> None:
    path = path_of(real)
    for optimize in (True, False):
        model = fl.load(path, optimize=optimize)
        results = model.run(feeds_of(real, [spec.name for spec in model.inputs]))
        found = differences(real, list(results.values()))
        assert found
        assert max(found) <= real.tolerance, optimize
