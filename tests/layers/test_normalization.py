"""Normalization layers: torch's and onnxruntime's numbers, Keras' lists, folding into neighbours, errors."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from tests.goldens.make_normalization_layers import LAYERS, OPERATORS, arrays

from ..each import each

f = fl.functional
TOLERANCE: dict[str, float] = {"rtol": 2e-6, "atol": 4e-6}


@cache
def golden() -> dict[str, np.ndarray]:
    with np.load(Path(__file__).parent.parent / "goldens" / "normalization_layers.npz") as found:
        return dict(found)


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng((seed, *shape)).standard_normal(shape).astype(np.float32)


def filled(layer: Any, seed: int = 0) -> Any:
    """The layer with numbers of its own; variances are positive."""
    layer.load_state_dict(
        {
            name: np.abs(numbers(*shape, seed=seed + i)) + 0.1 if name.endswith("var") else numbers(*shape, seed=seed + i)
            for i, (name, shape) in enumerate(layer.tensor_shapes().items())
        }
    )
    return layer


@each("i", range(len(LAYERS)), ids=lambda i: f"{LAYERS[i][0]}{LAYERS[i][1:]}")
def test_torch(i: int, variant: str, threads: int) -> None:
    name, args, kwargs, shape = LAYERS[i]
    layer = getattr(fl, name)(*args, **kwargs)
    given = arrays(i, {"x": shape, **layer.tensor_shapes()})
    x = given.pop("x")
    layer.load_state_dict({**given, "num_batches_tracked": np.array(3)})
    want = golden()[f"layer {i}"]
    x.flags.writeable = False
    np.testing.assert_allclose(layer(x), want, **TOLERANCE)
    model = fl.compile(layer, fl.graph.Input("x", shape), require_native=variant != "reference")
    np.testing.assert_allclose(model(x), want, **TOLERANCE)


@pytest.mark.onnx
@pytest.mark.parametrize("i", range(len(OPERATORS)), ids=lambda i: f"{OPERATORS[i][0]} {OPERATORS[i][1]}")
def test_onnxruntime(i: int, variant: str) -> None:
    from tests.goldens.make_normalization_layers import model

    loaded = fl.load(model(*OPERATORS[i]), require_native=variant != "reference")
    given = arrays(100 + i, {f"x{k}": shape for k, shape in enumerate(OPERATORS[i][3])})
    np.testing.assert_allclose(next(iter(loaded.run(given).values())), golden()[f"operator {i}"], rtol=1e-5, atol=1e-5)


@pytest.mark.onnx
def test_a_norm_of_zero_leaves_zeros(variant: str) -> None:
    from tests.goldens.make_normalization_layers import model

    x = numbers(2, 3, 4)
    x[0, :, 1] = 0
    got = fl.load(model("LpNormalization", {"axis": 1}, 22, ((2, 3, 4),)))(x)
    np.testing.assert_array_equal(got[0, :, 1], 0)
    np.testing.assert_allclose((got**2).sum(1)[1], 1, rtol=1e-6)


def test_batch_statistics_are_those_of_the_batch(variant: str) -> None:
    """On request, and with running ones given: these are left alone."""
    x = numbers(3, 4, 5, 2) * 3 + 7
    mean, var = numbers(4), np.ones(4, np.float32)
    before = mean.copy()
    for axis, moved in ((1, x), (-1, np.ascontiguousarray(np.moveaxis(x, 1, -1)))):
        got = f.batch_norm(moved, mean, var, training=True, axis=axis)
        want = (x - x.mean((0, 2, 3), dtype=np.float64)[:, None, None]) / np.sqrt(x.astype(float).var((0, 2, 3)) + 1e-5)[
            :, None, None
        ]
        np.testing.assert_allclose(np.moveaxis(got, axis, 1), want, **TOLERANCE)
    np.testing.assert_array_equal(mean, before)


@pytest.mark.parametrize("axis", [2, 3, -1])
def test_channels_elsewhere(axis: int, variant: str) -> None:
    """What the other axis gives is what moving the channels gives."""
    x = numbers(2, 6, 4, 5)
    moved = np.ascontiguousarray(np.moveaxis(x, 1, axis))
    w, b, m, v = (np.abs(numbers(6, seed=s)) + 0.1 for s in range(4))
    for name, arguments in (
        ("batch_norm", (m, v, w, b)),
        ("group_norm", (3, w, b)),
        ("instance_norm", (None, None, w, b)),
        ("local_response_norm", (3, 0.5)),
        ("local_response_norm", (4, 0.5)),
    ):
        function = getattr(f, name)
        got = function(moved, *arguments, axis=axis)
        np.testing.assert_allclose(np.moveaxis(got, axis, 1), function(x, *arguments), rtol=1e-6, atol=1e-6)
        model = fl.compile(lambda t, g=function, a=arguments: g(t, *a, axis=axis), fl.graph.Input("x", moved.shape))
        np.testing.assert_allclose(model(moved), got, **TOLERANCE)


# ---- Keras and other names ----


def test_keras_lists() -> None:
    gamma, beta, mean, var = numbers(4), numbers(4, seed=1), numbers(4, seed=2), np.abs(numbers(4, seed=3))
    made = fl.BatchNorm2d(4, eps=1e-3, axis=-1)
    made.load_keras([gamma, beta, mean, var])
    assert {k: float(v[0]) for k, v in made.state_dict().items()} == {
        "weight": gamma[0], "bias": beta[0], "running_mean": mean[0], "running_var": var[0]
    }  # fmt: skip
    x = numbers(2, 3, 3, 4)
    np.testing.assert_allclose(made(x), (x - mean) / np.sqrt(var + 1e-3) * gamma + beta, rtol=1e-5, atol=1e-5)
    for options, given, expected in (
        ({"scale": False}, [beta, mean, var], (x - mean) / np.sqrt(var + 1e-5) + beta),
        ({"center": False}, [gamma, mean, var], (x - mean) / np.sqrt(var + 1e-5) * gamma),
        ({"affine": False}, [mean, var], (x - mean) / np.sqrt(var + 1e-5)),
    ):
        made = fl.BatchNorm2d(4, axis=-1, **options)
        made.load_keras(given)
        np.testing.assert_allclose(made(x), expected, rtol=1e-5, atol=1e-5)
    assert list(fl.LayerNorm(4, scale=False)._keras()) == ["beta"] and list(fl.LayerNorm(4, bias=False)._keras()) == ["gamma"]
    assert list(fl.GroupNorm(2, 4)._keras()) == ["gamma", "beta"] and list(fl.RMSNorm(4)._keras()) == ["scale"]
    with pytest.raises(fl.WeightsError, match="moving_variance"):
        fl.BatchNorm2d(4).load_keras([gamma, beta])


def test_older_names_in_state_dicts() -> None:
    layer = fl.LayerNorm(3)
    layer.load_state_dict({"gamma": np.ones(3), "beta": np.zeros(3)})
    net = fl.Sequential(fl.Linear(2, 3), fl.BatchNorm1d(3))
    state = {name: np.ones(shape) for name, shape in net.tensor_shapes().items()}
    state["1.moving_mean"], state["1.moving_variance"] = state.pop("1.running_mean"), state.pop("1.running_var")
    net.load_state_dict(state)


# ---- folding ----


def operators(model: fl.Model) -> list[str]:
    """Operators of the program."""
    return [node.op for node in model._main.whole_graph().nodes]


NETS: list[tuple[str, Any, tuple[int, ...], int]] = [
    ("conv, norm", lambda: (fl.Conv2d(3, 5, 3, padding=1), fl.BatchNorm2d(5)), (2, 3, 7, 6), 0),
    ("conv without bias, norm", lambda: (fl.Conv2d(4, 6, 3, groups=2, bias=False), fl.BatchNorm2d(6)), (2, 4, 7, 6), 0),
    ("nhwc", lambda: (fl.Conv2d(3, 5, 3, layout="nhwc"), fl.BatchNorm2d(5, axis=-1)), (2, 7, 5, 3), 0),
    ("nhwc, h is c", lambda: (fl.Conv2d(3, 5, 3, layout="nhwc"), fl.BatchNorm2d(5, axis=-1)), (2, 7, 7, 3), 0),
    ("nhwc, norm of rows", lambda: (fl.Conv2d(3, 5, 3, layout="nhwc"), fl.BatchNorm2d(5)), (2, 7, 6, 3), 1),
    ("1d", lambda: (fl.Conv1d(3, 5, 3), fl.BatchNorm1d(5), fl.ReLU()), (2, 3, 9), 0),
    ("3d", lambda: (fl.Conv3d(2, 3, 2), fl.BatchNorm3d(3)), (1, 2, 3, 4, 3), 0),
    ("linear", lambda: (fl.Linear(4, 6), fl.BatchNorm1d(6)), (3, 4), 0),
    ("linear, 3 axes", lambda: (fl.Linear(4, 6), fl.BatchNorm1d(6, axis=-1)), (3, 2, 4), 0),
    ("linear, norm of another axis", lambda: (fl.Linear(4, 4), fl.BatchNorm1d(4)), (3, 4, 4), 1),
    ("norm, conv", lambda: (fl.BatchNorm2d(3), fl.Conv2d(3, 5, 3)), (2, 3, 7, 6), 0),
    ("norm, conv in groups", lambda: (fl.BatchNorm2d(4), fl.Conv2d(4, 6, 3, groups=2, bias=False)), (2, 4, 7, 6), 0),
    ("norm, depthwise", lambda: (fl.BatchNorm2d(4), fl.Conv2d(4, 8, 3, groups=4)), (2, 4, 7, 6), 0),
    ("norm, nhwc", lambda: (fl.BatchNorm2d(3, axis=-1), fl.Conv2d(3, 5, 3, layout="nhwc")), (2, 7, 6, 3), 0),
    ("norm, padded conv", lambda: (fl.BatchNorm2d(3), fl.Conv2d(3, 5, 3, padding=1)), (2, 3, 7, 6), 1),
    ("norm, same", lambda: (fl.BatchNorm2d(3), fl.Conv2d(3, 5, 3, padding="same")), (2, 3, 7, 6), 1),
    ("norm, reflected", lambda: (fl.BatchNorm2d(3), fl.Conv2d(3, 5, 3, padding=1, padding_mode="reflect")), (2, 3, 7, 6), 0),
    ("norm, linear", lambda: (fl.BatchNorm1d(4), fl.Linear(4, 6, activation="relu")), (3, 4), 0),
    ("norm alone", lambda: (fl.BatchNorm2d(3), fl.ReLU()), (2, 3, 7, 6), 1),
    ("activations around", lambda: (fl.Conv2d(3, 5, 3), fl.ReLU(), fl.BatchNorm2d(5), fl.ReLU()), (2, 3, 7, 6), 1),
    ("both sides", lambda: (fl.Linear(4, 6), fl.BatchNorm1d(6), fl.Linear(6, 2)), (3, 4), 0),
]  # fmt: skip


@each(("make", "shape", "left"), [n[1:] for n in NETS], ids=[n[0] for n in NETS])
def test_folding(make: Any, shape: tuple[int, ...], left: int, variant: str) -> None:
    """`left` normalizations stay as a step; values are those of the layers one by one."""
    net = filled(fl.Sequential(*make()))
    x = numbers(*shape)
    model = fl.compile(net, fl.graph.Input("x", shape))
    want = net(x)
    np.testing.assert_allclose(model(x), want, rtol=1e-5, atol=1e-5 * max(1, np.abs(want).max()))
    ops = operators(model)
    assert ops.count("Affine") == left and "BatchNormalization" not in ops, ops


@each(("make", "shape"), [n[1:3] for n in NETS], ids=[n[0] for n in NETS])
def test_fused_networks_compute_the_same(make: Any, shape: tuple[int, ...], variant: str) -> None:
    net = filled(fl.Sequential(fl.Sequential(*make()), fl.Tanh()))
    x, want = numbers(*shape), net(numbers(*shape))
    fused = net.fuse()
    if isinstance(make()[0], fl.Linear) and len(shape) == 3 and make()[1].axis == 1:
        with pytest.raises(fl.ShapeError, match="after a Linear"):
            fused(x)
        return
    got = fused(x)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    net.load_state_dict({name: np.zeros(s) for name, s in net.tensor_shapes().items()})
    np.testing.assert_array_equal(fused(x), got)


def test_fuse_folds_what_is_right_behind() -> None:
    net = filled(fl.Sequential(fl.Conv2d(3, 4, 3, bias=False), fl.BatchNorm2d(4), fl.ReLU(), fl.BatchNorm2d(4)))
    assert list(net.fuse().tensor_shapes()) == ["0.weight", "0.bias", *(f"3.{n}" for n in fl.BatchNorm2d(4).tensor_shapes())]
    with pytest.raises(fl.WeightsError):
        fl.Sequential(fl.Linear(2, 2), fl.BatchNorm1d(2)).fuse()


# ---- errors ----

WRONG: list[tuple[Any, type[Exception], str]] = [
    (lambda: f.layer_norm(numbers(2, 3), 4), fl.ShapeError, r"layer_norm: x has shape \(2, 3\): expected \(..., 4\)"),
    (lambda: f.layer_norm(numbers(2, 3), ()), fl.ArgumentError, "layer_norm: normalized_shape is"),
    (lambda: f.layer_norm(numbers(3), (2, 3)), fl.ShapeError, "layer_norm: x has shape"),
    (lambda: f.layer_norm(numbers(3), 3.0), fl.DTypeError, "layer_norm: normalized_shape is 3.0"),
    (lambda: f.layer_norm(numbers(2, 3), 3, numbers(2)), fl.ShapeError, r"layer_norm: weight has shape \(2,\)"),
    (lambda: f.layer_norm(numbers(2, 3), 3, None, numbers(1)), fl.ShapeError, r"layer_norm: bias has shape \(1,\)"),
    (lambda: f.layer_norm(numbers(2, 3), 3, eps=-1), fl.ArgumentError, "layer_norm: eps is -1.0: expected at least 0"),
    (lambda: f.layer_norm(numbers(2, 3), 3, eps=float("nan")), fl.ArgumentError, "layer_norm: eps is nan"),
    (lambda: f.layer_norm(numbers(2, 3), 3, eps="x"), fl.DTypeError, "layer_norm: eps is 'x'"),
    (lambda: f.layer_norm(numbers(2, 3) * 1j, 3), fl.DTypeError, "layer_norm: x has dtype complex"),
    (lambda: f.rms_norm(numbers(2, 3), 3, numbers(2)), fl.ShapeError, "rms_norm: weight has shape"),
    (lambda: f.rms_norm(numbers(2, 3), 3, eps=-1), fl.ArgumentError, "rms_norm: eps is -1"),
    (lambda: f.batch_norm(numbers(3), None, None), fl.ShapeError, "batch_norm: x has shape"),
    (lambda: f.batch_norm(numbers(2, 3), None, numbers(3)), fl.ArgumentError, "batch_norm: running_mean or running_var is None"),
    (lambda: f.batch_norm(numbers(2, 3), numbers(2), numbers(3)), fl.ShapeError, "batch_norm: running_mean has shape"),
    (lambda: f.batch_norm(numbers(2, 3), numbers(3), numbers(3), axis=0), fl.ArgumentError, "batch_norm: axis is 0"),
    (lambda: f.batch_norm(numbers(2, 3), numbers(3), numbers(3), axis=2), fl.ShapeError, "batch_norm: axis is 2"),
    (lambda: f.group_norm(numbers(2, 6), 4), fl.ShapeError, "group_norm: num_groups is 4"),
    (lambda: f.group_norm(numbers(2, 6), 0), fl.ArgumentError, "group_norm: num_groups is 0"),
    (lambda: f.group_norm(numbers(2, 6), 2, numbers(2)), fl.ShapeError, "group_norm: weight has shape"),
    (lambda: f.instance_norm(numbers(2, 6), use_input_stats=False), fl.ArgumentError, "instance_norm: running_mean or"),
    (lambda: f.instance_norm(numbers(2, 6, 2), weight=numbers(2)), fl.ShapeError, "instance_norm: weight has shape"),
    (lambda: f.instance_norm("x"), fl.DTypeError, "instance_norm: x"),
    (lambda: f.local_response_norm(numbers(2, 6), 0), fl.ArgumentError, "local_response_norm: size is 0"),
    (lambda: f.local_response_norm(numbers(2, 6), 3, "x"), fl.DTypeError, "local_response_norm: alpha is 'x'"),
    (lambda: filled(fl.BatchNorm2d(3))(numbers(2, 3)), fl.ShapeError, "BatchNorm2d: x has shape .*expected 4 axes"),
    (lambda: filled(fl.BatchNorm2d(3))(numbers(2, 4, 3, 3)), fl.ShapeError, "BatchNorm2d: x has shape .*expected 3 channels"),
    (lambda: filled(fl.BatchNorm1d(3))(numbers(3)), fl.ShapeError, "BatchNorm1d: x has shape .*expected 2 or 3 axes"),
    (lambda: fl.BatchNorm1d(3)(numbers(2, 3)), fl.WeightsError, "called without weights"),
    (lambda: fl.BatchNorm1d(-1), fl.ArgumentError, "BatchNorm1d: num_features is -1"),
    (lambda: fl.BatchNorm1d(1, eps=-1), fl.ArgumentError, "BatchNorm1d: eps is -1"),
    (lambda: fl.GroupNorm(4, 6), fl.ArgumentError, "GroupNorm: num_groups is 4, num_channels 6"),
    (lambda: filled(fl.GroupNorm(2, 6))(numbers(2, 4)), fl.ShapeError, "GroupNorm: x has shape .*expected 6 channels"),
    (lambda: fl.InstanceNorm1d(3)(numbers(2, 4, 5)), fl.ShapeError, "InstanceNorm1d: x has shape .*expected 3 channels"),
    (lambda: fl.LayerNorm(()), fl.ArgumentError, "LayerNorm: normalized_shape"),
    (lambda: fl.LocalResponseNorm(0), fl.ArgumentError, "local_response_norm: size is 0"),
]


@pytest.mark.parametrize(("call", "error", "text"), WRONG, ids=[text for _, _, text in WRONG])
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
