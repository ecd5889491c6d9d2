"""Kernels in Numba's disk cache: which is which, the same in every process. Without a GPU nothing is compiled or kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import fastlayers as fl

from .calls import numbers, requires_cuda
from .ptx import kernels

pytestmark = requires_cuda


def test_every_kernel_has_a_key_of_its_own() -> None:
    found: dict[str, Any] = {}
    for _, kernel in kernels():
        key = f"{kernel.name} {kernel.key}"
        assert found.setdefault(key, kernel) is kernel, key
        assert "0x" not in key and "object at" not in key, key
    assert any("_math.sigmoid" in key for key in found) and any("(128, 64, 8, 8, 8)" in key for key in found)


def test_warmup_runs_a_model_and_tells_of_what_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    from fastlayers.kernels.cuda import _cuda

    if not _cuda.SIMULATED:
        pytest.skip("what was compiled before is not told of")
    model = fl.compile(lambda x: fl.functional.tanh(x), fl.graph.Input("x", ("n", 6)), device="cuda")
    launch = _cuda.Kernel.launch

    def launched(self: Any, *given: Any) -> None:
        for listen in _cuda.listeners:
            listen(self.name, 0.5)
        launch(self, *given)

    monkeypatch.setattr(_cuda.Kernel, "launch", launched)
    told: list[Any] = []
    report = lambda *of: told.append(of)  # noqa: E731
    assert fl.kernels.warmup(model, report=report) == 0.5
    assert told == [(1, 1, "activation.unary_kernel", 0.5)]
    assert fl.kernels.warmup(model, {"x": numbers(2, 6)}) == 0.5
    assert not _cuda.listeners


def test_what_is_kept_is_read_again(tmp_path: Path) -> None:
    """Two dispatchers of one kernel: the second one compiles nothing."""
    from fastlayers.kernels.cuda import _cuda, activation

    if _cuda.SIMULATED:
        pytest.skip("the simulator compiles nothing")
    hits = []
    for _ in range(2):
        made = _cuda.Kernel(activation.prelu_kernel.function, {})
        _cuda.KERNELS.remove(made)
        made.compile()
        hits.append(sum(made._made._cache_hits.values()))
    assert hits[1] == 1
