"""A network, and the same with a planted slow-down: a part of its work twice, or a step that runs in numpy."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

import fastlayers as fl

LAYERS, WIDTH, ROWS = 16, 256, 64
SHAPES = {"x": (ROWS, WIDTH)}


def network(more: int = 0, layers: int = LAYERS) -> fl.Model:
    """`layers` products, and so many more."""
    rng = np.random.default_rng(0)
    net = fl.Sequential(*[fl.Linear(WIDTH, WIDTH) for _ in range(layers + more)])
    net.load_state_dict({name: rng.standard_normal(shape, np.float32) / 16 for name, shape in net.tensor_shapes().items()})
    return fl.compile(net, fl.graph.Input("x", SHAPES["x"]))


def feeds() -> dict[str, np.ndarray]:
    """Arrays for it."""
    return {"x": np.random.default_rng(1).standard_normal(SHAPES["x"], np.float32)}


@contextmanager
def neighbour(count: int = 1) -> Iterator[None]:
    """Processes that keep a core busy each."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()
