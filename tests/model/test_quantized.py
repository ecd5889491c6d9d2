"""Networks as onnxruntime.quantization writes them, against ONNX Runtime's numbers (tests/goldens/make_quantized.py)."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels import dispatch

GOLDEN = Path(__file__).parents[1] / "goldens" / "quantized.npz"
# Static networks give the same integers as ONNX Runtime. What is left are softmax and sigmoid of floats, whose last bit may be
# another: that moves a result by a step of 1/256 where it is between two.
STEP = 1 / 255
# Dynamic ones sum and multiply floats around the integers; a scale that differs in its last bit moves single values by a step.
NEAR = 2e-3


@cache
def golden() -> dict[str, np.ndarray]:
    with np.load(GOLDEN) as file:
        return dict(file)


NAMES = sorted(name.removesuffix(".model") for name in golden() if name.endswith(".model"))
NODES = sorted({name.partition("/")[0] for name in golden() if name.startswith("node_")})
STATIC = [name for name in NAMES if not name.endswith("dynamic")]


def model_of(name: str, **options: str) -> fl.Model:
    return fl.load(golden()[f"{name}.model"].tobytes(), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", NAMES)
def test_networks_give_the_numbers_of_onnx_runtime(name: str, variant: str) -> None:
    x, want = golden()[f"{name}.x"], golden()[f"{name}.y"]
    got = model_of(name)(x)
    if name.endswith("dynamic"):
        np.testing.assert_allclose(got, want, rtol=0, atol=NEAR)
    else:
        np.testing.assert_allclose(got, want, rtol=0, atol=STEP * 1.01 if name.startswith("conv") else 0)
        assert (got == want).mean() > 0.99


@pytest.mark.parametrize("name", STATIC)
def test_strict_graphs_too(name: str, variant: str) -> None:
    """Without the pass: floats between DequantizeLinear and QuantizeLinear."""
    x, want = golden()[f"{name}.x"], golden()[f"{name}.y"]
    got = model_of(name, precision="strict")(x)
    near = np.abs(got - want).max() <= STEP * 1.01 * max(1.0, float(np.abs(want).max()))
    assert near


@pytest.mark.parametrize("name", STATIC)
@pytest.mark.skipif(not dispatch.levels(), reason="the compiled engine is not built here")
def test_static_networks_run_on_kernels_alone(name: str, threads: int) -> None:
    model = model_of(name)
    summary = str(model.summary({"x": golden()[f"{name}.x"].shape}))
    assert "numpy: nothing" in summary
    floats = {"conv", "winograd", "depthwise", "linear"}
    assert not [line for line in summary.splitlines() if floats & set(line.split())]
    if "qdq" in name:
        assert sum("DequantizeLinear" in line for line in summary.splitlines()) == 1  # of the result
    with fl.kernels.use("reference"):
        want = model_of(name)(golden()[f"{name}.x"])
    np.testing.assert_array_equal(model(golden()[f"{name}.x"]), want)


@pytest.mark.parametrize("name", STATIC)
def test_images_do_not_depend_on_their_batch(name: str) -> None:
    model, x = model_of(name), golden()[f"{name}.x"]
    np.testing.assert_array_equal(np.concatenate([model(one[None]) for one in x]), model(x))


@pytest.mark.parametrize("name", NODES)
def test_operators_of_onnx_runtime(name: str, variant: str) -> None:
    """Integers are the same but for one by one step in a hundred, where ONNX Runtime contracts products with sums."""
    arrays = {key.partition("/")[2]: array for key, array in golden().items() if key.startswith(f"{name}/")}
    given = {key: array for key, array in arrays.items() if key[0] == "x"}
    wanted = [array for key, array in sorted(arrays.items()) if key[0] == "y"]
    for got, want in zip(fl.load(arrays["model"].tobytes()).run(given).values(), wanted, strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        if want.dtype.kind == "f":
            np.testing.assert_allclose(got, want, rtol=0, atol=1e-5)
        else:
            wrong = np.abs(got.astype(int) - want.astype(int))
            assert wrong.max() <= 1
            assert wrong.sum() <= want.size / 100
