"""CUDA's kernels compare sizes with their packed weights too: the cases of tests/kernels, refused before they run."""

from __future__ import annotations

import pytest

import fastlayers as fl
from tests.kernels.test_fits import CASES, Small, refused_everywhere
from tests.test_table import NOT_IN_CUDA

from .calls import requires_cuda

pytestmark = requires_cuda


@pytest.mark.parametrize("small", [s for s in CASES if s.kernel not in NOT_IN_CUDA], ids=lambda small: small.id)
def test_packed_weights_of_other_sizes_are_refused(small: Small) -> None:
    with fl.kernels.use("cuda"):
        assert refused_everywhere(small, False, run=False) > 5
