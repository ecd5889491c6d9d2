"""Products with weights that are there for one call: read where they are or packed, the bits are those of a layer."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.graph import eager
from fastlayers.kernels import dispatch

from ..each import each
from .asked import asked

SHAPES = ((0, 4), (3, 0), (1, 1), (15, 31), (16, 256), (17, 257), (33, 513), (515, 512), (130, 2049))
FORMS = ((True, False, None), (False, False, "gelu"), (True, True, "relu"))


def arrays(m: int, n: int, k: int) -> list[np.ndarray]:
    """x, weight, bias and residual; with infinities and NaN where there are two rows or more."""
    rng = np.random.default_rng(m * 7919 + n * 31 + k)
    x, weight, bias, residual = (rng.standard_normal(s).astype(np.float32) for s in ((m, k), (n, k), (n,), (m, n)))
    if m > 1 and x.size and weight.size:
        x[-1, k // 2], weight[n // 2, 0], bias[0], residual[0, -1] = np.inf, np.nan, -np.inf, np.nan
    return [x, weight, bias, residual]


@pytest.mark.without("reference", "jit")  # their layers round a sum once, and each product twice
@each("m, shape", itertools.product((0, 1, 2, 15, 17, 32, 33), SHAPES))
def test_every_call_gives_the_bits_of_packed_weights(
    m: int, shape: tuple[int, int], variant: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eager, "COLD", 0)
    n, k = shape
    x, weight, bias, residual = arrays(m, n, k)
    for with_bias, with_residual, activation in FORMS:
        given: dict[str, Any] = {"activation": activation, "residual": residual if with_residual else None}
        b = bias if with_bias else None
        want = fl.compile(lambda x, w=weight, b=b, given=given: fl.functional.linear(x, w, b, **given), x)(x)
        for _ in range(eager.BEFORE + 1):
            got = fl.functional.linear(x, weight, b, **given)
            assert got.shape == want.shape and got.tobytes() == want.tobytes(), (with_bias, activation)


@each("m, shape", itertools.product((1, 5, 40), SHAPES))
def test_computed_weights_run_in_kernels(m: int, shape: tuple[int, int], variant: str) -> None:
    x, weight, bias, residual = (np.nan_to_num(a, posinf=1, neginf=1) for a in arrays(m, *shape))
    model = fl.compile(
        lambda x, w, b, r: fl.functional.linear(x, w, b, residual=r, activation="relu"),
        *(fl.graph.Input(name, a.shape) for name, a in zip("xwbr", (x, weight, bias, residual), strict=True)),
        require_native=variant != "reference",
    )
    want = np.maximum(x.astype(np.float64) @ weight.T + bias + residual, 0)
    np.testing.assert_allclose(model(x, weight, bias, residual), want, rtol=1e-5, atol=1e-5 * max(shape[1], 1) ** 0.5)


def test_large_weights_are_not_packed_for_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    if dispatch.step("matmul") is None:
        pytest.skip("only the compiled engine reads them where they are")
    called = asked(monkeypatch)
    for m, k, want in ((1, 512, ["matmul", "binary"]), (1, 100, ["linear_pack", "linear"]), (33, 512, ["linear_pack", "linear"])):
        x, weight, bias, _ = arrays(m, 512, k)
        called.clear()
        fl.functional.linear(x, weight, bias)
        assert called == want, (m, k)
