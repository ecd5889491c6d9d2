"""Every case of bench/cases under the default variant (or FASTLAYERS_ISA), checked against the reference after timing.

python -m pytest bench/test_kernels.py [-k conv] [--benchmark-disable]
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from bench.cases import Case, all_cases, prepare

SMALL = 5e7  # operations up to which the reference is fast enough to check against
TOLERANCE = 1e-5  # of the largest result; tests/kernels/test_cases.py says why


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.id)
def test_kernel(case: Case, benchmark: Any) -> None:
    prepared = prepare(case)
    benchmark(prepared.call)
    benchmark.extra_info["variant"] = fl.kernels.current()
    benchmark.extra_info["threads"] = fl.get_num_threads()
    if benchmark.stats is not None:  # None under --benchmark-disable
        best = benchmark.stats.stats.min
        benchmark.extra_info["GF/s"] = round(case.flops / best / 1e9, 1)
        benchmark.extra_info["GB/s"] = round(case.moved / best / 1e9, 1)
    if case.flops <= SMALL:
        with fl.kernels.use("reference"):
            wanted = prepare(case)
            wanted.call()
        for name, want in wanted.outputs.items():
            scale = max(1.0, float(np.max(np.abs(want), initial=0)))
            np.testing.assert_allclose(prepared.outputs[name], want, rtol=0, atol=TOLERANCE * scale, err_msg=name)
