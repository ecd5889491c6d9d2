"""Hierarchical softmax over a vocabulary, next to torch's log_softmax of a linear layer over all."""

from __future__ import annotations

from functools import partial
from typing import Any

import fastlayers as fl

from . import Pair, Row, normal, np

WIDTH, BATCH = 128, 64


def ready(n: int) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    """A layer over n classes that come up as words do, its weight, vectors, and classes drawn as often."""
    rng = np.random.default_rng(1)
    counts = 1 / np.arange(1, n + 1)
    layer = fl.HierarchicalSoftmax(WIDTH, n, counts=counts)
    weight = normal(rng, n - 1, WIDTH, fan_in=WIDTH)
    layer.load_state_dict({"weight": weight})
    return layer, weight, normal(rng, BATCH, WIDTH), rng.choice(n, BATCH, p=counts / counts.sum())


def one_class(n: int, stateless: bool = False) -> Pair:
    layer, weight, x, targets = ready(n)
    call = fl.functional.hierarchical_log_prob
    return Pair((lambda: call(x, targets, weight, layer.tree)) if stateless else (lambda: layer.log_prob(x, targets)))


def likeliest(n: int) -> Pair:
    layer, weight, x, _ = ready(n)
    return Pair(lambda: fl.functional.hierarchical_argmax(x, weight, layer.tree)[0])


def all_classes(n: int, stateless: bool = False) -> Pair:
    layer, weight, x, _ = ready(n)
    call = fl.functional.hierarchical_log_softmax
    return Pair((lambda: call(x, weight, layer.tree)) if stateless else (lambda: layer(x)))


def plain(torch: Any, n: int) -> Any:
    """torch's log-probability of one class each, for which it computes all."""
    _, weight, x, targets = ready(n)
    tw, tx, ti = (torch.tensor(a) for a in (np.concatenate([weight, weight[:1]]), x, targets))
    return lambda: torch.log_softmax(torch.nn.functional.linear(tx, tw), 1).gather(1, ti[:, None])


ROWS = [
    Row(("HierarchicalSoftmax",), "all of 10000, B64", partial(all_classes, 10000)),
    Row(("hierarchical_log_softmax",), "all of 10000, B64, packs at each call", partial(all_classes, 10000, True)),
    Row(("hierarchical_log_prob",), "one of 10000, B64", partial(one_class, 10000, True)),
    Row(("hierarchical_argmax",), "of 10000, B64", partial(likeliest, 10000)),
]
