"""`fastlayers.memory` and `trim_memory`: what is counted, and what is given back."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels import dispatch

MB = 1 << 20


@pytest.fixture(autouse=True)
def _empty() -> None:
    if dispatch.engine() is None:
        pytest.skip("the compiled engine is not built here")
    fl.trim_memory()


def loaded(net: fl.Layer) -> fl.Layer:
    net.load_state_dict({name: np.ones(shape, np.float32) for name, shape in net.tensor_shapes().items()})
    return net


def test_results_and_what_they_leave() -> None:
    model = fl.compile(fl.ReLU(), fl.graph.Input("x", ("n",)))
    before = fl.memory()
    assert before.free == 0
    y = model(np.ones(20 * MB, np.float32))
    assert 80 * MB <= fl.memory().used - before.used <= 90 * MB
    del y
    assert 80 * MB <= fl.memory().free <= 90 * MB and fl.memory().used == before.used
    fl.trim_memory()
    assert fl.memory().free == 0


@pytest.mark.parametrize(
    ("net", "shape", "least"),
    [
        (fl.Linear(512, 512), (1, 512), 512 * 512 * 4),
        (fl.Conv2d(64, 64, 5), (1, 64, 8, 8), 64 * 64 * 25 * 4),
        (fl.ConvTranspose2d(64, 64, 3), (1, 64, 8, 8), 64 * 64 * 9 * 4),
        (fl.Conv2d(4096, 4096, 3, groups=4096), (1, 4096, 8, 8), 4096 * 9 * 4),
        (fl.LSTM(128, 128), (3, 1, 128), 2 * 4 * 128 * 128 * 4),
    ],
    ids=lambda v: type(v).__name__ if isinstance(v, fl.Layer) else "",
)
def test_packed_weights(net: Any, shape: tuple[int, ...], least: int) -> None:
    before = fl.memory().packed
    loaded(net)
    model = fl.compile(lambda x: y[0] if isinstance(y := net(x), tuple) else y, fl.graph.Input("x", shape))
    model(np.ones(shape, np.float32))
    assert least <= fl.memory().packed - before <= 3.2 * least  # depthwise: a copy for each of three walks, and a bias
    del model
    gc.collect()
    assert fl.memory().packed <= before


def test_mapped_files(tmp_path: Path) -> None:
    net = loaded(fl.Linear(512, 512))
    fl.compile(net, fl.graph.Input("x", ("n", 512))).save(tmp_path / "model.safetensors")
    before = fl.memory().mapped
    model = fl.load(tmp_path / "model.safetensors")
    assert fl.memory().mapped - before == (tmp_path / "model.safetensors").stat().st_size
    del model
    gc.collect()
    assert fl.memory().mapped <= before


def test_who_is_gone_is_not_asked() -> None:
    from fastlayers._held import Memory, held_by

    class Holder:
        def held(self) -> tuple[int, int]:
            return 3, 5

    before, holder = fl.memory(), Holder()
    held_by(holder)
    now = fl.memory()
    assert (now.packed - before.packed, now.bindings - before.bindings) == (3, 5)
    del holder
    gc.collect()
    assert fl.memory().bindings == before.bindings
    assert Memory._fields == ("free", "used", "packed", "bindings", "mapped")
