"""What clients meet is stored as every benchmark stores its times."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fastlayers as fl
from bench import serve
from bench.timing import read

pytestmark = pytest.mark.serve


def test_latencies_are_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "CLIENTS", (1, 2))
    net = fl.Sequential(fl.AvgPool2d(32), fl.Flatten(1), fl.Linear(147, 4))
    net.load_state_dict({name: np.ones(shape, np.float32) for name, shape in net.tensor_shapes().items()})
    model = tmp_path / "pooled.safetensors"
    fl.compile(net, fl.graph.Input("x", (1, 3, 224, 224))).save(model)
    serve.main(["load", str(model), "--servers", "serve", "--seconds", "2", "--json", str(tmp_path / "figures.json")])
    told, times = read(tmp_path / "figures.json")
    rates = told["requests_per_second"]
    assert rates.keys() == {"pooled, 1 clients: serve", "pooled, 2 clients: serve"} and max(rates.values()) > 0
    # What nothing answered in time, on a machine that is busy elsewhere, has a rate of 0 and no times.
    assert {f"{case}: serve": turns["serve"]["rounds"] for case, turns in times.items()} == {
        name: round(2 * rate) for name, rate in rates.items() if rate
    }
    assert set(told["errors"].values()) == {0}
