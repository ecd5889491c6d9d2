"""Packing releases the GIL: another thread goes on while large weights are packed or converted."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels import dispatch


@pytest.fixture
def ticks() -> Iterator[Callable[[], int]]:
    """How often a thread has had the GIL, which it never gets but where somebody gives it up."""
    if dispatch.engine() is None:
        pytest.skip("the compiled engine is not built here")
    count, stop, before = [0], threading.Event(), sys.getswitchinterval()

    def tick() -> None:
        while not stop.is_set():
            count[0] += 1
            time.sleep(0)

    sys.setswitchinterval(1000)
    thread = threading.Thread(target=tick)
    thread.start()
    try:
        yield lambda: count[0]
    finally:
        stop.set()
        sys.setswitchinterval(before)
        thread.join()


PACKS = {
    "linear": lambda w: ("linear_pack", (w(2048, 2048), None)),
    "conv": lambda w: ("conv_pack", (w(2048, 2048, 1, 1, 1), None, (1, 1, 1), (1, 1, 1), 1)),
    "winograd": lambda w: ("winograd_pack", (w(512, 512, 1, 3, 3), None, 4, 1)),
    "depthwise": lambda w: ("depthwise_pack", (w(1 << 20, 1, 1, 3, 1), None, (1, 1, 1), (1, 1, 1), 1 << 20)),
    "conv_transpose": lambda w: ("conv_transpose_pack", (w(2048, 2048, 1, 1, 1), None, (1, 1, 1), (1, 1, 1), 1)),
}


@pytest.mark.parametrize("name", PACKS)
def test_a_pack_gives_up_the_gil(ticks: Callable[[], int], name: str) -> None:
    kernel, arguments = PACKS[name](lambda *shape: np.ones(shape, np.float32))
    pack = dispatch.kernel(kernel)
    for _ in range(50):  # the other thread needs a processor as well
        before = ticks()
        pack(*arguments)
        if ticks() > before:
            return
    pytest.fail("nobody else ran meanwhile")


@pytest.mark.parametrize("layer", [fl.LSTM, fl.GRU, fl.RNN])
def test_a_recurrent_layer_is_packed_without_the_gil(ticks: Callable[[], int], layer: type[fl.Layer]) -> None:
    net = layer(512, 512)
    weights = {name: np.ones(shape, np.float32) for name, shape in net.tensor_shapes().items()}
    for _ in range(50):
        net.load_state_dict(weights)
        before = ticks()
        net(np.ones((1, 1, 512), np.float32))
        if ticks() > before:
            return
    pytest.fail("nobody else ran meanwhile")


def test_a_conversion_gives_up_the_gil(ticks: Callable[[], int]) -> None:
    x = np.ones(1 << 24)
    for _ in range(50):
        before = ticks()
        fl.functional.relu(x[:, None])
        if ticks() > before:
            return
    pytest.fail("nobody else ran meanwhile")
