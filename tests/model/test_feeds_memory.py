"""Inputs that there is no memory for a copy of: an error of ours, in models, functions and layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fastlayers as fl

HUGE = np.broadcast_to(np.float64(1), (1 << 24, 1 << 24))  # 2 ** 48 values of 8 bytes, and takes none
NARROW = np.broadcast_to(np.float32(1), (1 << 24, 1 << 24))
TRUE = np.broadcast_to(np.True_, (1 << 28, 1 << 28))


class Lies:
    """Says that it is an array, and has no memory to be one."""

    def __array__(self, *arguments: Any, **more: Any) -> np.ndarray:
        raise MemoryError("none left")


@pytest.mark.parametrize("x", [HUGE, NARROW, Lies()], ids=["cast", "contiguous", "asarray"])
def test_an_input_of_a_model(x: Any) -> None:
    model = fl.compile(fl.ReLU(), fl.graph.Input("x", ("n", "m")))
    calls: list[Callable[[], Any]] = [lambda: model(x), lambda: model.run({"x": x})]
    for call in calls:
        with pytest.raises(fl.LimitError, match=r"^run: input 'x': no memory for a copy of it as float32"):
            call()


@pytest.mark.parametrize("x", [HUGE, NARROW, Lies()], ids=["cast", "contiguous", "asarray"])
def test_an_argument_of_a_function_or_a_layer(x: Any) -> None:
    calls: dict[str, Callable[[], Any]] = {
        "relu: x": lambda: fl.functional.relu(x),
        "softmax: x": lambda: fl.functional.softmax(x, 1),
        "linear: weight": lambda: fl.functional.linear(np.ones((1, 2), np.float32), x),
    }
    for begin, call in calls.items():
        with pytest.raises(fl.LimitError, match=f"^{begin}: no memory for"):
            call()


def test_masks_and_integers() -> None:
    q = np.ones((2, 4), np.float32)
    with pytest.raises(fl.LimitError, match="no memory for"):
        fl.functional.scaled_dot_product_attention(q, q, q, TRUE)
    with pytest.raises(fl.LimitError, match="no memory for"):
        fl.functional.embedding(np.broadcast_to(np.int32(0), (1 << 28, 1 << 28)), q)
