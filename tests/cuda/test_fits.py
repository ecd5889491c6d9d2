"""CUDA's kernels compare sizes with their packed weights too: the cases of tests/kernels, refused before they run."""

from __future__ import annotations

import pytest

import fastlayers as fl
from fastlayers.kernels.table import KERNELS
from tests.kernels.test_fits import CASES, Small, refused_everywhere

from .calls import requires_cuda

pytestmark = requires_cuda

ON_GPU = {kernel.name for kernel in KERNELS if "cuda" in kernel.variants}


@pytest.mark.parametrize("small", [s for s in CASES if s.kernel in ON_GPU], ids=lambda small: small.id)
def test_packed_weights_of_other_sizes_are_refused(small: Small) -> None:
    with fl.kernels.use("cuda"):
        assert refused_everywhere(small, False, run=False) > 5
