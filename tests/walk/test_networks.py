"""Whole networks, walked; in a batch and alone; on one thread and two; as streams next to calls of the same model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.model.model import Model
from tests.examples.real_models import MODELS, Real, feeds_of, path_of

from .batch import check_batch
from .check import compare, outcome, same, walk
from .networks import NETWORKS, Network, batch_axes, fresh, network, steps_of

networks = pytest.mark.parametrize("name", NETWORKS)


@networks
def test_walk(name: str, tmp_path: Path) -> None:
    def again(model: Model, step: int) -> Model:
        if step not in (3, 5):
            return model
        model.save(tmp_path / f"{step}.safetensors", packed=step == 5 and model._main.ran)
        return fl.load(tmp_path / f"{step}.safetensors", mmap=False)

    found = network(name)
    steps = steps_of(found)
    assert sum(step.want is not None for step in steps) >= 3
    walk(fresh(found.model), steps)
    walk(fresh(found.model), steps_of(found, 6, 1, plain=False), between=again)


@networks
def test_in_a_batch_and_alone(name: str) -> None:
    found = network(name)
    axes = batch_axes(found.model)
    names = [spec.name for spec in found.model.outputs]
    compared = 0
    for step in steps_of(found, 8, 2):
        if step.want is not None and any(axis is not None for axis in axes.values()):
            compared += check_batch(fresh(found.model), found.model._graph, step.feeds, axes, names)
    assert compared or name.startswith(("shapes", "branch by size", "integers", "doubles")), "nothing was compared"


@networks
def test_one_thread_and_two(name: str, threads: int) -> None:
    found = network(name)
    two, one = fresh(found.model)(), fresh(found.model)()
    one.num_threads = 1
    for i, step in enumerate(steps_of(found, 6, 3, plain=False)):
        compare(same(outcome(two, step.feeds), outcome(one, step.feeds)), f"{threads} threads, step {i}")


@pytest.mark.parametrize("name", ["padded convolutions", "convolutions and LSTM"])
def test_streams_and_calls_of_one_model(name: str) -> None:
    model, _ = network(name)
    random = np.random.default_rng(0)
    xs = [random.standard_normal((n, 4, 24)).astype(np.float32) for n in (1, 2)]
    streams = [model.stream(axis=2) for _ in xs]
    parts: list[list[np.ndarray]] = [[], []]
    whole = [fresh(model)().stream(axis=2)(x) for x in xs]
    at = [0, 0]
    while min(at) < 24:
        i = int(random.integers(2))
        size = int(random.integers(0, 6))
        found = streams[i](xs[i][:, :, at[i] : at[i] + size])
        parts[i].append(found[0] if isinstance(found, tuple) else found)
        at[i] += size
        x = xs[0][:, :, : int(random.integers(9, 24))]  # a call of the model between
        compare(same(outcome(model, {"x": x}), outcome(fresh(model)(), {"x": x})), "a call next to streams")
    for mine, want in zip(parts, whole, strict=True):
        want = want[0] if isinstance(want, tuple) else want
        axis = 1 if name.endswith("LSTM") else 2
        joined = np.concatenate(mine, axis)
        assert joined.tobytes() == want.tobytes()


# Silero alone in every run; the large ones where their wheels are, at small sizes.
@pytest.mark.parametrize("real", MODELS, ids=lambda r: r.name)
def test_trained_models(real: Real) -> None:
    model = fl.load(path_of(real))
    feeds = feeds_of(real, [spec.name for spec in model.inputs])
    if any(array.size > 200_000 for array in feeds.values()):
        feeds = {
            name: np.ascontiguousarray(array[:, :, : array.shape[2] // 2, : array.shape[3] // 2]) for name, array in feeds.items()
        }
    walk(fresh(model), steps_of(Network(model, feeds), 4, plain=False))
