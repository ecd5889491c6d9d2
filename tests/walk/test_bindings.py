"""Graphs whose bindings share much: walked in order, in random order beyond what is kept, asked for parts, and by threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels import dispatch
from fastlayers.model.model import Model

from .bindings import BUILDERS, PLACES, Builder, built
from .check import compare, keep_few, model_of, outcome, same, walk

builders = pytest.mark.parametrize("builder", BUILDERS, ids=lambda b: b.__name__)


@builders
@pytest.mark.sampled(3)
def test_walk(builder: Builder, variant: str) -> None:
    # The compiled engine's levels bind alike.
    m, outputs = built(builder, places=PLACES if variant in ("reference", dispatch.current()) else PLACES[:4])
    graph = m.graph(outputs)
    inner = [n for n in m.values if n not in m.constants][::3]
    walk(model_of(graph), m.steps(), (None, inner, outputs[-1:]))


@builders
def test_more_sizes_than_are_kept(builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_few(monkeypatch)
    m, outputs = built(builder, 1)
    steps = m.steps()
    random = np.random.default_rng(0)
    walk(model_of(m.graph(outputs)), [steps[i] for i in random.integers(0, len(steps), 12)])


@builders
def test_threads_walk_one_model(builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_few(monkeypatch)
    m, outputs = built(builder, 2)
    graph, steps = m.graph(outputs), m.steps()
    want = [outcome(Model(graph), step.feeds) for step in steps]
    model = Model(graph)

    def go(seed: int) -> None:
        for i in np.random.default_rng(seed).integers(0, len(steps), 15):
            compare(same(outcome(model, steps[i].feeds), want[i]), f"thread {seed}, step {i}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(go, range(4)))


@builders
def test_one_thread_and_two(builder: Builder, threads: int) -> None:
    m, outputs = built(builder, 3)
    graph = m.graph(outputs)
    model, alone = Model(graph), Model(graph)
    alone.num_threads = 1
    for i, step in enumerate(m.steps()):
        compare(same(outcome(model, step.feeds), outcome(alone, step.feeds)), f"{threads} threads, step {i}")
    assert fl.get_num_threads() == threads
