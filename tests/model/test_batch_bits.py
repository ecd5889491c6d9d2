"""Networks: an example has the same bits alone, in any batch, on one thread and on two, called layer by layer and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers import functional as F
from tests.kernels.space import bits
from tests.program.graphs import normal
from tests.program.test_guarded import NETWORKS, filled

Network = tuple[Callable[[Any], Any], tuple[Any, ...]]  # a function of x, and its shape with "n" for the batch
MOST = 13
PARTS = ((1, 0), (1, 12), (2, 3), (8, 4))  # how many examples, from which on


def residual() -> Network:
    """Maps of 8, 4 and 2 pixels a side, where what is fastest for a batch is not what is for one image."""
    first, pool = filled(fl.Conv2d(3, 16, 7, stride=2, padding=3)), fl.MaxPool2d(3, 2, 1)
    blocks = [
        (
            filled(fl.Conv2d(a, b, 3, stride=s, padding=1)),
            filled(fl.Conv2d(b, b, 3, padding=1)),
            filled(fl.Conv2d(a, b, 1, stride=s)),
        )
        for a, b, s in ((16, 32, 1), (32, 64, 2), (64, 96, 2))
    ]
    norms = [filled(fl.BatchNorm2d(b)) for b in (32, 64, 96)]
    last, mean = filled(fl.Linear(96, 10)), fl.GlobalAvgPool()

    def net(x: Any) -> Any:
        y = pool(F.relu(first(x)))
        for (one, two, skip), norm in zip(blocks, norms, strict=True):
            y = F.relu(two(F.relu(norm(one(y)))) + skip(y))
        return F.softmax(last(mean(y)), 1)

    return net, ("n", 3, 32, 32)


def video() -> Network:
    """Convolutions over space and over time in turn."""
    space, time = filled(fl.Conv3d(3, 24, (1, 3, 3), padding=(0, 1, 1))), filled(fl.Conv3d(24, 32, (3, 1, 1), padding=(1, 0, 0)))
    deep, down = filled(fl.Conv3d(32, 32, (1, 3, 3), padding=(0, 1, 1))), filled(fl.Conv3d(32, 20, 3, stride=2, padding=1))
    pool, mean = fl.MaxPool3d((1, 2, 2)), fl.GlobalAvgPool()

    def net(x: Any) -> Any:
        return mean(down(F.relu(deep(pool(F.relu(time(F.relu(space(x)))))))))

    return net, ("n", 3, 3, 8, 8)


def mobile() -> Network:
    front, norm = filled(fl.Conv2d(3, 16, 3, stride=2, padding=1)), filled(fl.GroupNorm(4, 16))
    deep, wide = filled(fl.DepthwiseConv2d(16, 5, padding=2)), filled(fl.Conv2d(16, 40, 1))
    up = filled(fl.ConvTranspose2d(40, 6, 4, stride=2, padding=1))

    def net(x: Any) -> Any:
        return up(F.hardswish(wide(deep(F.silu(norm(front(x)))))))

    return net, ("n", 3, 18, 15)


def times_first() -> Network:
    """The batch is the second axis: sums and softmax over time have it after them."""
    lstm, layer = filled(fl.LSTM(9, 12, bidirectional=True)), filled(fl.TransformerEncoderLayer(24, 4, 40))

    def net(x: Any) -> Any:
        y = layer(lstm(x)[0])
        weights = F.softmax(y, 0)
        return F.mean_over_time(y, batch_first=False), F.mean_over_time(weights * y, batch_first=False), F.log_softmax(weights, 0)

    return net, (37, "n", 9)


def of_first_axis(network: Callable[[], tuple[Callable[..., Any], tuple[int, ...]]]) -> Callable[[], Network]:
    def made() -> Network:
        function, shape = network()
        return function, ("n", *shape)

    made.__name__ = network.__name__
    return made


ALL = (*map(of_first_axis, NETWORKS), residual, video, mobile, times_first)


@pytest.mark.usefixtures("kept_threads")
@pytest.mark.parametrize("network", ALL, ids=[n.__name__ for n in ALL])
@pytest.mark.without("reference")  # numpy's sums promise no order
def test_examples_do_not_depend_on_their_batch(network: Callable[[], Network], variant: str) -> None:
    function, shape = network()
    axis = shape.index("n")
    x = normal(*(MOST if s == "n" else s for s in shape))
    model = fl.compile(function, fl.graph.Input("x", shape))
    for call in (model, function):
        fl.set_num_threads(1)
        whole = arrays(call(x))
        fl.set_num_threads(2)
        same(arrays(call(x)), whole, "two threads")
        for i, (count, start) in enumerate(PARTS):
            fl.set_num_threads(1 + i % 2)
            here = range(start, start + count)
            part = arrays(call(np.ascontiguousarray(np.take(x, here, axis))))
            places = [
                [s != t for s, t in zip(w.shape, p.shape, strict=True)].index(True) for w, p in zip(whole, part, strict=True)
            ]
            same(part, [np.take(w, here, at) for w, at in zip(whole, places, strict=True)], f"{count} from {start}")


def arrays(y: Any) -> list[np.ndarray]:
    return list(y) if isinstance(y, tuple) else [y]


def same(got: list[np.ndarray], want: list[np.ndarray], what: str) -> None:
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(bits(a), bits(b), what)
