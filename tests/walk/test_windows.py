"""Operations over windows: every number of spatial axes, every choice of algorithm forced, several sizes, batch and threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .batch import check_batch
from .check import compare, model_of, outcome, same, walk
from .windows import CHOICES, KINDS, affected, choice, drawn

SEEDS = 6
PAIRS = [(kind, name) for kind in KINDS for name in CHOICES if affected(name, kind)]
pairs = pytest.mark.parametrize(("kind", "name"), PAIRS, ids=[f"{kind.__name__}-{name}" for kind, name in PAIRS])
axes_of_space = pytest.mark.parametrize("axes", [1, 2, 3])


@axes_of_space
@pairs
@pytest.mark.sampled(3)
def test_walk(kind: Callable[..., Any], name: str, axes: int) -> None:
    for seed in range(SEEDS if kind.__name__ != "conv" else 2 * SEEDS):
        m, outputs = drawn(kind, axes, seed)
        with choice(name):
            walk(model_of(m.graph(outputs)), m.steps(), tolerance=1e-4)


@axes_of_space
@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__)
def test_every_variant(kind: Callable[..., Any], axes: int, variant: str) -> None:
    for seed in range(2):
        m, outputs = drawn(kind, axes, seed)
        walk(model_of(m.graph(outputs)), m.steps(), tolerance=1e-4)


@axes_of_space
@pairs
@pytest.mark.sampled(3)
def test_in_a_batch_alone_and_on_two_threads(kind: Callable[..., Any], name: str, axes: int) -> None:
    for seed in range(2):
        m, outputs = drawn(kind, axes, seed)
        graph = m.graph(outputs)
        with choice(name):
            two, one = model_of(graph)(), model_of(graph)()
            one.num_threads = 1
            for step in m.steps():
                check_batch(model_of(graph), graph, step.feeds, {"x": 0}, outputs)
                compare(same(outcome(two, step.feeds), outcome(one, step.feeds)), f"seed {seed}, threads")


def test_choices_are_taken() -> None:
    """A forced choice is one: the kernels that run are others."""
    m, outputs = next(
        found for seed in range(20) if "Conv" in str((found := drawn(KINDS[0], 2, seed))[0].nodes) and _square(found[0])
    )
    feeds, seen = m.steps()[0].feeds, {}
    for name in ("direct", "Winograd 2"):
        with choice(name):
            seen[name] = model_of(m.graph(outputs))().kernel_names(feeds)
    assert "winograd" in seen["Winograd 2"] and "winograd" not in seen["direct"]


def _square(m: Any) -> bool:
    node = m.nodes[0]
    return m.live(node.inputs[1])[0].shape[2:] in ((3, 3), (5, 5)) and "group" not in node.attributes
