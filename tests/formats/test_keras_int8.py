"""Dense and EinsumDense layers with int8 weights, as Keras writes them (keras_int8.npz), and transforms of complex numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.formats.keras import model, weights

from .test_keras_hostile import archive, functional, given, layer, sequential, tensor
from .test_keras_words import operation

GOLDEN = np.load(Path(__file__).parents[1] / "goldens" / "keras_int8.npz")
NAMES = sorted({key.rpartition(" ")[0] for key in GOLDEN.files})
X = np.random.default_rng(0).standard_normal((2, 5, 4)).astype(np.float32)


@pytest.mark.parametrize("name", NAMES)
def test_numbers_are_those_of_keras(name: str, variant: str) -> None:
    got = fl.load(GOLDEN[f"{name} file"].tobytes())(GOLDEN[f"{name} x"])
    np.testing.assert_allclose(got, GOLDEN[f"{name} y"], rtol=0, atol=2e-6)


class _Legacy:
    """The weights of a .keras file as `.h5` has them: layer by layer, what is trained first, which the bias alone is."""

    def __init__(self, model: Any, file: Any) -> None:
        self.stored: dict[str, Any] = dict(file.datasets())
        self.groups: dict[str, list[str]] = {}
        for _, child in model.children:
            found = sorted(path for path in self.stored if path.startswith(f"layers/{weights.snake(child.kind)}/"))
            self.groups[child.name] = [found[1], found[0], *found[2:]] if "bias" in child.own else found

    def find(self, path: str) -> Any:
        return self.groups.get(path) if path else self

    def attributes(self, path: str) -> Any:
        return {"weight_names": self.groups[path]} if path else {"layer_names": [*self.groups]}

    def dataset(self, path: str) -> Any:
        return self.stored[path.partition("/")[2]]


@pytest.mark.parametrize("name", NAMES)
def test_weights_in_the_order_of_h5(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def assign(net: Any, file: Any, legacy: bool, where: str) -> None:
        weights.assign(net, _Legacy(net, file), True, where)  # type: ignore[arg-type]

    monkeypatch.setattr(model, "assign", assign)
    test_numbers_are_those_of_keras(name, "")


@pytest.mark.parametrize("mode", ["float8", "int4", "gptq"])
def test_other_weights_are_refused(mode: str) -> None:
    policy = {"class_name": "QuantizedDTypePolicy", "config": {"mode": mode, "source_name": "float32"}}
    with pytest.raises(fl.UnsupportedError, match=f"weights quantized as {mode}"):
        fl.load(archive(sequential(layer("Dense", units=2, dtype=policy))))


def test_the_scaled_sum_of_inception_resnet() -> None:
    twice = operation("Add", tensor("x"), tensor("x"), name="twice")
    custom = layer("CustomScaleLayer", "it", [{"args": [[tensor("x"), tensor("twice")]], "kwargs": {}}], scale=0.25)
    got = fl.load(archive(functional(given(5, 4), twice, custom, outputs=("it", 0, 0))))(X)
    np.testing.assert_allclose(got, X * 1.5, atol=1e-6)


def transformed(kind: str, outputs: int, **config: Any) -> list[np.ndarray]:
    """What an operation makes of x and of twice x as the real and imaginary parts."""
    twice = operation("Add", tensor("x"), tensor("x"), name="twice")
    net = functional(given(5, 4), twice, operation(kind, [tensor("x"), tensor("twice")], config=config))
    ends = [["it", 0, i] for i in range(outputs)]
    net["config"]["output_layers"] = ends if outputs > 1 else ends[0]
    return list(fl.load(archive(net)).run({"x": X}).values())


@pytest.mark.parametrize(("kind", "call"), [("FFT", np.fft.fft), ("FFT2", np.fft.fft2), ("IFFT2", np.fft.ifft2)])
def test_transforms_of_complex_numbers(kind: str, call: Any) -> None:
    want = call(X + 2j * X)
    for got, part in zip(transformed(kind, 2), (want.real, want.imag), strict=True):
        np.testing.assert_allclose(got, part, atol=1e-5)


@pytest.mark.parametrize("length", [None, 5, 6])
def test_the_reals_of_half_a_spectrum(length: int | None) -> None:
    (got,) = transformed("IRFFT", 1, fft_length=length)
    np.testing.assert_allclose(got, np.fft.irfft(X + 2j * X, length), atol=1e-6)
