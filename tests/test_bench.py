"""The benchmarks cover what is public."""

from __future__ import annotations

import fastlayers as fl
from bench.layers import all_rows

# What computes nothing, or is a base class.
NO_COMPUTATION = {"ClassTree", "Layer", "Loaded", "Sequential", "Identity", "identity"}


def test_every_public_function_and_layer_is_timed() -> None:
    timed = {name for row in all_rows() for name in row.names}
    public = {*fl.functional.__all__, *fl.layers.__all__} - NO_COMPUTATION
    assert timed >= public, f"no row of bench.layers times {sorted(public - timed)}"
    assert timed <= public, f"rows of bench.layers time {sorted(timed - public)}, which are not public"


def test_labels_differ() -> None:
    ids = [row.id for row in all_rows()]
    assert len(ids) == len(set(ids))
