"""Kernels of the variant "cuda" next to the reference's, on the same arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from fastlayers.kernels import dispatch
from fastlayers.kernels.table import KERNELS, UNARY, Activation

__all__ = ["activation", "agree", "numbers", "requires_cuda", "run"]

# On a GPU, `pytest -m gpu` picks these tests and those of tests/kernels that run under "cuda".
requires_cuda = [
    pytest.mark.gpu,
    pytest.mark.skipif("cuda" not in dispatch.available(), reason="neither a GPU nor Numba's simulator (NUMBA_ENABLE_CUDASIM=1)"),
]
RESULTS = ("cn", "hn", "out", "scores")
_ENTRIES = {item.name: item for item in KERNELS}


def numbers(*shape: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    """Normal float32 values, the same for the same shape and seed."""
    return np.asarray(np.random.default_rng((*shape, seed)).standard_normal(shape) * scale, np.float32)


def activation(name: str, *parameters: float) -> Activation:
    """An elementwise function with its usual parameters."""
    return Activation(UNARY[name].code, *(parameters or UNARY[name].defaults))


def run(variant: str, name: str, arguments: Sequence[Any], pack: Sequence[Any] | None = None) -> list[np.ndarray]:
    """What the kernel writes, in copies of `arguments`; "packed" among them is what it packs of `pack`."""
    functions = dispatch.variant("cuda" if variant == "cuda" else "").kernels
    if variant != "cuda":
        functions = dispatch._functions("reference")[0]
    copies: dict[int, Any] = {}
    given = [copies.setdefault(id(a), a.copy()) if isinstance(a, np.ndarray) else a for a in arguments]
    if pack is not None:
        weights = functions[f"{name}_pack"](*pack)
        given[_ENTRIES[name].arguments.index("packed")] = weights
    functions[name](*given)
    names = [a.split("__")[0] for a in _ENTRIES[name].arguments]
    for argument, before, after in zip(names, arguments, given, strict=True):
        if isinstance(before, np.ndarray) and argument not in RESULTS and not any(after is r for r in _results(names, given)):
            np.testing.assert_array_equal(after, before, err_msg=f"{name} changed {argument}")
    return _results(names, given)


def _results(names: Sequence[str], given: Sequence[Any]) -> list[np.ndarray]:
    return [a for n, a in zip(names, given, strict=True) if n in RESULTS and a is not None]


def agree(
    name: str, *arguments: Any, pack: Sequence[Any] | None = None, rtol: float = 1e-6, atol: float = 1e-6, repeat: bool = False
) -> list[np.ndarray]:
    """The kernel's results, which are those of the reference; `repeat`: and the same bits a second time."""
    got, want = run("cuda", name, arguments, pack), run("reference", name, arguments, pack)
    for a, b in zip(got, want, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)
    if repeat:
        for a, b in zip(run("cuda", name, arguments, pack), got, strict=True):
            np.testing.assert_array_equal(a, b)
    return got
