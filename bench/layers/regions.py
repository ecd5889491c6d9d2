"""Boxes of detectors; torch has these in another package."""

from __future__ import annotations

import numpy as np

import fastlayers as fl
from bench.cases.regions import boxes

from . import Pair, Row, normal


def row(name: str, function: str) -> Row:
    def make() -> Pair:
        rng = np.random.default_rng(0)
        x, corners = normal(rng, 1, 256, 38, 50), boxes(rng, 32, 800, 608)
        given = np.concatenate([np.zeros((32, 1), np.float32), corners], 1)
        layer = getattr(fl, name)(7, 1 / 16)
        return Pair(lambda: layer(x, given))

    return Row((name, function), "32 boxes of 256@38x50, 7x7 bins", make)


ROWS = [row("RoIPool", "roi_pool"), row("RoIAlign", "roi_align")]
