"""Random graphs, walked; in a batch and alone; on one thread and two; saved and loaded between; walked by several threads."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.model.model import Model

from .batch import check_batch
from .check import compare, keep_few, model_of, outcome, same, walk
from .graphs import Drawn, draw
from .growth import RULES

GRAPHS = 200
EACH = 10  # graphs of a test
SHARED = 40
FIRST = 5  # groups of the default run
GROUPS = [*range(FIRST), *(pytest.param(i, marks=pytest.mark.exhaustive) for i in range(FIRST, GRAPHS // EACH))]
groups = pytest.mark.parametrize("group", GROUPS)


def seeds(group: int) -> range:
    return range(group * EACH, (group + 1) * EACH)


# Of the seeds that several tests take: drawing one takes a third of the time of its walk.
cached = lru_cache(SHARED)(draw)


@groups
@pytest.mark.sampled(3)
def test_walk(group: int) -> None:
    for seed in seeds(group):
        drawn = cached(seed) if seed < SHARED else draw(seed)
        walk(model_of(drawn.graph), drawn.steps, [None] if seed % 5 else [None, drawn.inner])


@pytest.mark.parametrize("group", range(2))
def test_every_variant(group: int, variant: str) -> None:
    for seed in seeds(group)[: 4 if variant.startswith("aot") else 2]:
        drawn = cached(seed)
        walk(model_of(drawn.graph), drawn.steps[:3])


@pytest.mark.parametrize("group", range(3))
def test_saved_and_loaded_between(group: int, tmp_path: Path) -> None:
    def again(model: Model, step: int) -> Model:
        if step not in (2, 4):
            return model
        path = tmp_path / f"{step}.safetensors"
        model.save(path, packed=step == 4 and model._main.ran)
        return fl.load(path, mmap=False)

    for seed in seeds(group):
        drawn = cached(seed)
        walk(model_of(drawn.graph), drawn.steps, between=again)


def batch_axes(drawn: Drawn) -> dict[str, int | None]:
    """Axis 0 of the inputs whose size is n."""
    return {name: 0 if kind[0] == "n" else None for name, kind in drawn.kinds.items()}


@pytest.mark.parametrize("group", range(4))
def test_in_a_batch_and_alone(group: int) -> None:
    for seed in seeds(group):
        drawn = cached(seed)
        axes = batch_axes(drawn)
        # All values, which nothing is then joined with; or the outputs alone.
        values = [name for node in drawn.graph.nodes for name in node.outputs]
        names = values if seed % 2 else [v.name for v in drawn.graph.outputs]
        for step in drawn.steps[:4]:
            if step.want is not None and any(axis == 0 for axis in axes.values()):
                check_batch(model_of(drawn.graph), drawn.graph, step.feeds, axes, names)


@pytest.mark.parametrize("group", range(3))
def test_one_thread_and_two(group: int, threads: int) -> None:
    for seed in seeds(group):
        drawn = cached(seed)
        model, one = Model(drawn.graph), Model(drawn.graph)
        one.num_threads = 1
        for i, step in enumerate(drawn.steps[:4]):
            compare(same(outcome(model, step.feeds), outcome(one, step.feeds)), f"seed {seed}, {threads} threads, step {i}")


@pytest.mark.parametrize("group", range(3))
def test_threads_walk_one_model(group: int, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_few(monkeypatch)
    for seed in seeds(group):
        drawn = cached(seed)
        want = [outcome(Model(drawn.graph), step.feeds) for step in drawn.steps]
        model = Model(drawn.graph)

        def go(number: int, seed: int = seed, drawn: Drawn = drawn, model: Model = model, want: Any = want) -> None:
            for i in np.random.default_rng(number).integers(0, len(drawn.steps), 10):
                compare(same(outcome(model, drawn.steps[i].feeds), want[i]), f"seed {seed}, thread {number}, step {i}")

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(go, range(4)))


def test_graphs_have_what_they_are_for() -> None:
    """Every rule of growth is followed; graphs have some dozen nodes."""
    counter: Counter[str] = Counter()
    nodes = 0
    for seed in range(80):
        nodes += len(draw(seed, 2, counter).graph.nodes)
    assert {rule.__name__ for rule in RULES} <= {name for name, times in counter.items() if times}
    assert nodes > 80 * 20
