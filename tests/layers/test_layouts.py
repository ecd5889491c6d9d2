"""Layers that take a layout: channels last they give what they give channels first, at once and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastlayers as fl

from ..each import each

SPACE = {1: (2, 4, 9), 2: (2, 4, 6, 5), 3: (2, 4, 3, 4, 5)}
LAYERS: list[tuple[str, dict[str, Any], tuple[int, ...]]] = [
    *((f"BatchNorm{n}d", {"num_features": 4}, shape) for n, shape in SPACE.items()),
    ("BatchNorm1d", {"num_features": 4}, (3, 4)),
    ("BatchNorm2d", {"num_features": 4, "track_running_stats": False}, SPACE[2]),
    *((f"InstanceNorm{n}d", {"num_features": 4, "affine": True}, shape) for n, shape in SPACE.items()),
    *(("GroupNorm", {"num_groups": 2, "num_channels": 4}, shape) for shape in SPACE.values()),
    *(("LocalResponseNorm", {"size": size}, SPACE[2]) for size in (2, 3)),
    *(("PReLU", {"num_parameters": count}, shape) for count in (1, 4) for shape in (*SPACE.values(), (3, 4))),
    *((f"{mode}Pad{n}d", {"padding": tuple(range(1, 2 * n + 1)) if n < 3 else 1}, (*shape[:2], *(9,) * n))
      for mode in ("Circular", "Reflection", "Replication", "Zero") for n, shape in SPACE.items()),
    *((f"ConstantPad{n}d", {"padding": tuple(range(2 * n)), "value": 1.5}, shape) for n, shape in SPACE.items()),
    *((f"Dropout{n}d", {"p": 0.5}, shape) for n, shape in SPACE.items()),
]  # fmt: skip
NAMES = {1: ("nlc", "nhwc"), 2: ("nhwc",), 3: ("ndhwc", "nhwc")}


def layers_of(name: str, given: dict[str, Any], layout: str) -> tuple[Any, Any]:
    """The layer in both layouts, with the same weights."""
    made = getattr(fl, name)(**given, layout="nchw"), getattr(fl, name)(**given, layout=layout)
    weights = {key: np.random.default_rng(1).uniform(0.1, 2, shape) for key, shape in made[0].tensor_shapes().items()}
    for layer in made:
        layer.load_state_dict(weights)
    return made


@each(("name", "given", "shape"), LAYERS, ids=lambda value: value if isinstance(value, str) else "")
def test_channels_last(name: str, given: dict[str, Any], shape: tuple[int, ...], variant: str) -> None:
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    last = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    space = int(name[-2]) if name.endswith("d") else 2
    for layout in NAMES[space]:
        first, layer = layers_of(name, given, layout)
        want = np.moveaxis(first(x), 1, -1)
        np.testing.assert_allclose(layer(last), want, rtol=1e-6, atol=1e-6)
        model = fl.compile(layer, fl.graph.Input("x", ("n", *last.shape[1:])))
        np.testing.assert_allclose(model(last), want, rtol=1e-6, atol=1e-6)
        assert "nhwc" in repr(layer) or "axis=-1" in repr(layer)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_dropout_drops_whole_channels_in_both_layouts(n: int) -> None:
    layer, x = getattr(fl, f"Dropout{n}d")(0.5, layout="nhwc"), np.ones((4, *(3,) * n, 8), np.float32)
    y = layer(x, seed=1)
    flat = y.reshape(4, -1, 8)
    assert (flat == flat[:, :1]).all() and set(np.unique(flat)) == {0.0, 2.0}
    first = getattr(fl, f"Dropout{n}d")(0.5)(np.moveaxis(x, -1, 1), seed=1)
    np.testing.assert_array_equal(np.moveaxis(first, 1, -1), y)


WRONG: list[tuple[Any, type[Exception], str]] = [
    (lambda: fl.BatchNorm2d(3, layout="ncl"), fl.ArgumentError, "^BatchNorm2d: layout is 'ncl'"),
    (lambda: fl.BatchNorm1d(3, axis=2, layout="nlc"), fl.ArgumentError, "^BatchNorm1d: layout is 'nlc' and axis 2"),
    (lambda: fl.GroupNorm(1, 3, layout="x"), fl.ArgumentError, "^GroupNorm: layout is 'x'"),
    (lambda: fl.PReLU(3, layout="last"), fl.ArgumentError, "^PReLU: layout is 'last'"),
    (lambda: fl.ZeroPad1d(1, layout="ndhwc"), fl.ArgumentError, "^ZeroPad1d: layout is 'ndhwc'"),
    (lambda: fl.Dropout3d(layout=3), (fl.Error, TypeError), "^Dropout3d: layout is 3"),
    (lambda: fl.BatchNorm2d(3, layot="nhwc"), TypeError, r"^BatchNorm2d\(\) got an unexpected keyword argument 'layot'"),
    (lambda: fl.Conv2d(3), TypeError, r"^Conv2d\(\) missing 2 required positional arguments"),
    (lambda: fl.functional.prelu(np.ones((2, 3)), np.ones(3), 2), fl.ShapeError, "^prelu: "),
    (lambda: fl.functional.prelu(np.ones((2, 3)), np.ones(2), -1), fl.ShapeError, "^prelu: weight has 2 slopes"),
]


@pytest.mark.parametrize(("call", "error", "text"), WRONG, ids=[text for _, _, text in WRONG])
def test_errors(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call()
