"""``save(packed=True)`` writes what it says, or says why it cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels import dispatch

pytestmark = pytest.mark.skipif(not dispatch.levels(), reason="the compiled engine is not built here")


def network(*shape: Any) -> fl.Model:
    rng = np.random.default_rng(0)
    net = fl.Sequential(fl.Conv2d(8, 32, 3), fl.ReLU(), fl.Conv2d(32, 16, 1), fl.Flatten(), fl.Linear(16 * 49, 40))
    net.load_state_dict({name: rng.standard_normal(size) for name, size in net.tensor_shapes().items()})
    return fl.compile(net, fl.graph.Input("x", shape))


def test_a_model_of_fixed_sizes_is_packed_before_it_runs(tmp_path: Path) -> None:
    never, ran = network(1, 8, 9, 9), network(1, 8, 9, 9)
    x = np.random.default_rng(1).standard_normal((1, 8, 9, 9)).astype(np.float32)
    want = ran(x)
    for name, model in (("never", never), ("ran", ran)):
        model.save(tmp_path / f"{name}.safetensors", packed=True)
    files = [(tmp_path / f"{name}.safetensors").read_bytes() for name in ("never", "ran")]
    assert files[0] == files[1]
    network(1, 8, 9, 9).save(tmp_path / "plain.safetensors")
    assert len(files[0]) > 1.5 * (tmp_path / "plain.safetensors").stat().st_size
    loaded = fl.load(tmp_path / "never.safetensors")
    assert loaded(x).tobytes() == want.tobytes()
    assert loaded._main.packed_arrays().keys() == ran._main.packed_arrays().keys()


def test_open_sizes_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "net.safetensors"
    model = network("n", 8, 9, 9)
    with pytest.raises(fl.ArgumentError, match=r"has not run: call it, or model\.prepare\(shapes\).*'x': \('n', 8, 9, 9\)"):
        model.save(path, packed=True)
    assert not path.exists()
    model.save(path)
    plain = path.stat().st_size
    model.prepare((2, 8, 9, 9))
    model.save(path, packed=True)
    assert path.stat().st_size > 1.5 * plain


def test_other_variants_write_the_graph_alone(tmp_path: Path) -> None:
    with fl.kernels.use("reference"):
        network("n", 8, 9, 9).save(tmp_path / "net.safetensors", packed=True)
    assert fl.load(tmp_path / "net.safetensors")(np.zeros((1, 8, 9, 9))).shape == (1, 40)
