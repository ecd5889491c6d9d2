"""Convolutions that are called at once: the kernels and the bits of their programs, plans that are kept, and their bounds."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.calls import conv_choice
from fastlayers.kernels import dispatch
from fastlayers.layers import _windows as windows
from fastlayers.program import bindings

# Layer, its arguments, the shape of x; with kernels that programs choose otherwise than one by one: Winograd's, separable ones.
PLACES: list[tuple[Any, dict[str, Any], tuple[int, ...]]] = [
    (fl.Conv2d, {"in_channels": 32, "out_channels": 32, "kernel_size": 3, "padding": 1}, (2, 32, 28, 28)),
    (fl.Conv2d, {"in_channels": 32, "out_channels": 48, "kernel_size": 3, "padding": "same", "layout": "nhwc",
                 "activation": "silu"}, (1, 30, 31, 32)),
    (fl.Conv2d, {"in_channels": 64, "out_channels": 64, "kernel_size": 3, "bias": False}, (1, 64, 9, 9)),
    (fl.Conv2d, {"in_channels": 32, "out_channels": 32, "kernel_size": 3, "padding": 1, "padding_mode": "reflect"},
     (1, 32, 28, 28)),
    (fl.Conv2d, {"in_channels": 8, "out_channels": 8, "kernel_size": 9, "groups": 8, "padding": 4}, (2, 8, 20, 20)),
    (fl.Conv1d, {"in_channels": 8, "out_channels": 6, "kernel_size": 3, "stride": 2, "dilation": 2, "groups": 2}, (3, 8, 19)),
    (fl.Conv3d, {"in_channels": 16, "out_channels": 16, "kernel_size": (1, 3, 3), "padding": (0, 1, 1)}, (1, 16, 3, 24, 24)),
    *((fl.DepthwiseConv2d, {"in_channels": 6, "kernel_size": k, "padding": "same", "depth_multiplier": 2, "separable": how,
                            "activation": "relu"}, (2, 6, 17, 18)) for k in (3, 7) for how in ("auto", True, False)),
    (fl.DepthwiseConv1d, {"in_channels": 6, "kernel_size": 3, "layout": "nlc"}, (2, 11, 6)),
    (fl.SeparableConv2d, {"in_channels": 32, "out_channels": 32, "kernel_size": 3, "padding": 1}, (1, 32, 20, 20)),
    (fl.ConvTranspose2d, {"in_channels": 8, "out_channels": 8, "kernel_size": 4, "stride": 2, "groups": 8}, (1, 8, 20, 20)),
    (fl.ConvTranspose1d, {"in_channels": 6, "out_channels": 4, "kernel_size": 5, "stride": 3, "padding": "same", "groups": 2,
                          "layout": "nlc", "activation": "relu"}, (2, 9, 6)),
    (fl.ResidualBlock, {"in_channels": 32}, (1, 32, 28, 28)),
    (fl.InceptionBlock, {"in_channels": 8, "ch1x1": 8, "ch3x3red": 16, "ch3x3": 16, "ch5x5red": 4, "ch5x5": 8, "pool_proj": 4},
     (1, 8, 28, 28)),
]  # fmt: skip


def filled(layer: Any, seed: int = 0) -> Any:
    """Weights, of which those of depthwise kernels are products of a column and a row."""
    rng, tensors = np.random.default_rng(seed), {}
    for name, shape in layer.tensor_shapes().items():
        tensors[name] = rng.uniform(0.1, 1, shape)
        if len(shape) == 4 and shape[1] == 1:
            tensors[name] = rng.normal(size=(*shape[:3], 1)) * rng.normal(size=(*shape[:2], 1, shape[3]))
    layer.load_state_dict(tensors)
    return layer


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(("kind", "given", "shape"), PLACES, ids=lambda value: getattr(value, "__name__", ""))
def test_a_call_gives_the_bits_of_its_program(kind: Any, given: dict[str, Any], shape: Any, variant: str, threads: int) -> None:
    layer, x = filled(kind(**given)), random(*shape)
    fixed, named = fl.compile(layer, x), fl.compile(layer, fl.graph.Input("x", ("n", *shape[1:])))
    for _ in range(2):  # bound, and found again
        np.testing.assert_array_equal(layer(x), fixed(x))
    np.testing.assert_array_equal(layer(x[:1]), named(x[:1]))
    np.testing.assert_array_equal(layer(x[0]), layer(x)[0])
    np.testing.assert_array_equal(layer(x.astype(np.float64)), fixed(x))
    spread = np.zeros((*shape[:-1], 2 * shape[-1]), np.float32)[..., ::2]
    spread[...] = x
    np.testing.assert_array_equal(layer(spread), fixed(x))


def test_new_sizes_are_bound_when_they_come_again() -> None:
    """A call of sizes that never come again does not pay for a binding; its weights are those that bindings read."""
    layer, made = filled(fl.Conv2d(16, 16, 3, padding=1)), []
    for x in (random(1, 16, 12, 12), random(1, 16, 12, 13)):
        first = layer(x)
        program = layer._packed()._programs[1]
        made.append((len(program.bindings), len(program.known.weights)))
        np.testing.assert_array_equal(layer(x), first)
        made.append((len(program.bindings), len(program.known.weights)))
    assert made == [(0, 1), (1, 1), (1, 1), (2, 1)]


def kernels_of(layer: Any, x: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels that a layer chooses in three calls: sizes are bound when they come again."""
    names: list[str] = []
    own = conv_choice.kernel_for

    def spied(*args: Any, **kwargs: Any) -> Any:
        found = own(*args, **kwargs)
        names.append(found[0])
        return found

    with monkeypatch.context() as patch:
        patch.setattr(conv_choice, "kernel_for", spied)
        results = [layer(x) for _ in range(3)]
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])
    return names


def test_layers_choose_as_programs_do(variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = random(1, 64, 56, 56)
    layer = filled(fl.Conv2d(64, 64, 3, padding=1))
    assert kernels_of(layer, x, monkeypatch) == ["winograd"] * 2
    assert kernels_of(layer, x, monkeypatch) == []
    assert kernels_of(layer, x[:, :, :2, :2].copy(), monkeypatch) == ["conv"] * 2
    assert kernels_of(filled(fl.Conv2d(64, 64, 3, stride=2)), x, monkeypatch) == ["winograd"] * 2
    assert kernels_of(filled(fl.Conv2d(64, 64, 3, stride=3)), x, monkeypatch) == ["conv"] * 2
    assert kernels_of(filled(fl.DepthwiseConv2d(64, 3)), x, monkeypatch) == ["depthwise"] * 2
    assert kernels_of(filled(fl.DepthwiseConv2d(64, 7)), x, monkeypatch) == ["depthwise"] * 2
    assert kernels_of(filled(fl.DepthwiseConv2d(64, 7, separable=False)), x, monkeypatch) == ["depthwise"] * 2
    assert kernels_of(filled(fl.DepthwiseConv2d(64, 3, separable=True)), x, monkeypatch) == ["depthwise"] * 2


def test_a_transposed_layer_takes_a_size_at_a_time() -> None:
    """Sizes of the result that one call wants are never bound, and run with the layer's packed weights."""
    layer, x = filled(fl.ConvTranspose2d(4, 6, 3, stride=2, padding=1, activation="relu")), random(2, 4, 5, 6)
    for size in ((9, 11), (10, 12), (2, 6, 10, 11), (9, 11)):
        want = fl.functional.conv_transpose2d(
            x, layer.weight, layer.bias, stride=2, padding=1, activation="relu", output_size=size
        )
        np.testing.assert_array_equal(layer(x, output_size=size), want)
        np.testing.assert_array_equal(layer(x[0], output_size=size[-2:]), want[0])
    program = layer._packed()._programs[1]
    assert len(program.bindings) == 0 and len(program.known.weights) == 1


def test_functions_count_the_packing() -> None:
    """Winograd where it pays although weights are packed for one call, with a program's bits; directly where it does not."""
    for size, wanted in ((112, 4), (7, 0)):
        assert conv_choice.choose((1, size, size), 256, 256, packs=True) == wanted
    assert conv_choice.choose((1, 7, 7), 512, 512) == 2
    x, w, b = random(1, 32, 112, 112), random(32, 32, 3, 3), random(32)
    model = fl.compile(lambda x: fl.functional.conv2d(x, w, b, padding=1), x)
    assert model.kernel_names({"input_0": x}) == {"winograd"}
    np.testing.assert_array_equal(fl.functional.conv2d(x, w, b, padding=1), model(x))
    x, w = random(1, 64, 400), random(64, 64, 5)
    model = fl.compile(lambda x: fl.functional.conv1d(x, w, padding=2), x)
    assert model.kernel_names({"input_0": x}) == {"winograd"}
    np.testing.assert_array_equal(fl.functional.conv1d(x, w, padding=2), model(x))


def test_a_forced_variant_runs_at_once() -> None:
    """A layer that has run under one variant runs under another one as soon as that is chosen, and packs for each once."""
    layer, x = filled(fl.Conv2d(16, 16, 3, padding=1)), random(1, 16, 12, 12)
    names = [name for name in fl.kernels.available() if name.startswith(("aot", "reference"))]
    results = {}
    for _ in range(2):
        for name in names:
            with fl.kernels.use(name):
                results[name] = layer(x)
                np.testing.assert_array_equal(results[name], fl.compile(layer, x)(x))
    assert set(layer._weights.packed) == set(names)
    for name in names:
        np.testing.assert_allclose(results[name], results["reference"], rtol=1e-4, atol=1e-4)


def test_strict_sums_are_a_programs() -> None:
    """A call has no precision; strict results come from a program."""
    layer, x = filled(fl.Conv2d(32, 32, 3, padding=1)), random(1, 32, 28, 28)
    strict = fl.compile(layer, x, precision="strict")
    assert strict.kernel_names({"input_0": x}) == {"conv"}
    assert not np.array_equal(strict(x), layer(x))
    np.testing.assert_allclose(strict(x), layer(x), rtol=1e-4, atol=1e-4)


def test_new_weights_are_taken_and_old_programs_go() -> None:
    layer, x = filled(fl.Conv2d(8, 8, 3)), random(1, 8, 6, 6)
    first = layer(x)
    made = layer._packed()
    program = weakref.ref(made._programs[1])
    filled(layer, 1)
    assert not np.array_equal(layer(x), first)
    del made
    gc.collect()
    assert program() is None


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "_PLANS", 4)
    monkeypatch.setattr(bindings, "LEAST_BYTES", 20000)
    layer = filled(fl.Conv1d(2, 2, 3))
    for size in range(3, 60):
        x = random(1, 2, size)
        np.testing.assert_array_equal(layer(x), fl.functional.conv1d(x, layer.weight, layer.bias))
        assert len(layer._plans) <= 4
    assert len(layer._packed()._programs[1].bindings) < 20


def test_many_threads_with_many_sizes() -> None:
    layer = filled(fl.Conv2d(8, 16, 3, padding=1))
    xs = [random(1 + i % 3, 8, 5 + i % 7, 9) for i in range(60)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(layer, xs))
    for x, y in zip(xs, found, strict=True):
        np.testing.assert_array_equal(y, layer(x))
    assert dispatch.current() in layer._weights.packed


def test_results_are_fresh() -> None:
    layer, x = filled(fl.Conv2d(4, 4, 1)), random(1, 4, 3, 3)
    a, b = layer(x), layer(x)
    assert not np.shares_memory(a, b) and a.flags.writeable and a.flags.c_contiguous
