"""A few of the random models of `tests.formats.classical.walk`, beside onnxruntime."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.onnxruntime


def test_models_beside_onnxruntime() -> None:
    from .walk.check import one

    for seed in range(40):
        _, case, found = one(seed)
        assert not [words for what, words in found if what == "fault"], f"seed {seed}: {case}"
