"""A few of the graphs of `misses`."""

from __future__ import annotations

import pytest

from .misses import NAMES, one

pytestmark = pytest.mark.onnxruntime


@pytest.mark.parametrize("first", [0, len(NAMES)])
def test_near_misses_of_every_pattern(first: int) -> None:
    for seed in range(first, first + len(NAMES)):
        _, told, found = one(seed)
        assert not [words for what, words in found if what == "fault"], told
