"""Every row of `bench.layers` by the stopwatch: calls of layers and stateless functions as a user makes them."""

from __future__ import annotations

from typing import Any

import pytest

import fastlayers as fl

from .layers import Row, all_rows


@pytest.mark.parametrize("row", all_rows(), ids=lambda row: row.id)
def test_layer(row: Row, benchmark: Any) -> None:
    pair = row.make()
    benchmark(pair.ours)
    benchmark.extra_info["variant"] = fl.kernels.current()
    benchmark.extra_info["threads"] = fl.get_num_threads()
    if pair.flops and benchmark.stats is not None:  # None under --benchmark-disable
        benchmark.extra_info["GF/s"] = round(pair.flops / benchmark.stats.stats.min / 1e9, 1)
