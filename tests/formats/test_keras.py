"""Models as Keras 3.15 and Keras 2.15 wrote them: what they compute is what Keras computed."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl

GOLDENS = Path(__file__).parents[1] / "goldens"
# Both compute in float32; the longest chains are a few dozen operations on numbers near 1.
TOLERANCE = 1e-5
HALVES = 1e-3  # rounded where Keras rounds: to 11 or 8 bits


@cache
def stored(version: str) -> dict[str, np.ndarray]:
    with np.load(GOLDENS / f"keras_models_{version}.npz") as file:
        return {name: file[name] for name in file.files}


FILES = [(version, *name.split("|")[::2]) for version in "23" for name in stored(version) if "|file|" in name]


def arrays(version: str, label: str, part: str) -> list[np.ndarray]:
    return [array for name, array in stored(version).items() if name.startswith(f"{label}|{part}|")]


def load(version: str, label: str, suffix: str, **options: Any) -> Any:
    return fl.load(stored(version)[f"{label}|file|{suffix}"].tobytes(), **options)


def check(model: Any, version: str, label: str) -> None:
    inputs, wanted = arrays(version, label, "input"), arrays(version, label, "output")
    got = model(*(array.astype(spec.dtype) for array, spec in zip(inputs, model.inputs, strict=True)))
    results = got if isinstance(got, tuple) else (got,)
    for spec, result, want in zip(model.outputs, results, wanted, strict=True):
        assert result.shape == want.shape and result.dtype == want.dtype, spec.name
        if want.dtype.kind == "f":
            bound = (HALVES if label == "half_precision" else TOLERANCE) * max(1.0, float(np.abs(want).max(initial=0)))
            np.testing.assert_allclose(result, want, rtol=0, atol=bound, err_msg=spec.name)
        else:
            np.testing.assert_array_equal(result, want, spec.name)


@pytest.mark.parametrize(("version", "label", "suffix"), FILES)
def test_what_keras_computes(version: str, label: str, suffix: str) -> None:
    check(load(version, label, suffix), version, label)


@pytest.mark.parametrize("label", ["image", "masks", "nested", "recurrent", "operations"])
def test_as_it_is_written_and_saved_and_in_numpy(label: str, tmp_path: Path) -> None:
    check(load("3", label, ".keras", optimize=False), "3", label)
    load("3", label, ".keras").save(tmp_path / "model.safetensors")
    check(fl.load(tmp_path / "model.safetensors"), "3", label)
    with fl.kernels.use("reference"):
        check(load("3", label, ".keras"), "3", label)


def test_names_shapes_and_metadata() -> None:
    model = load("3", "image", ".keras")
    assert [(s.name, s.shape, s.dtype.name) for s in model.inputs] == [("image", ("batch", 11, 10, 3), "float32")]
    assert [s.name for s in model.outputs] == ["dense", "global_max_pooling2d"]
    assert model.metadata["keras_version"].startswith("3.")
    model = load("3", "free_sizes", ".keras")
    assert [s.shape for s in model.inputs] == [("batch", None, None, 3), ("batch", None, 4)]
    model = load("2", "nested", ".h5")
    assert [s.name for s in model.inputs] == ["first", "second"] and model.metadata["keras_version"] == "2.15"


@pytest.mark.parametrize(("version", "suffix"), [("3", ".keras"), ("2", ".h5")])
def test_channels_last_images_are_computed_as_they_lie(version: str, suffix: str) -> None:
    model = load(version, "image", suffix)
    model(*arrays(version, "image", "input"))
    assert "Transpose" not in {node.op for node in model._main.graph.nodes}


def test_sizes_that_the_file_leaves_open() -> None:
    model = load("3", "free_sizes", ".keras")
    for batch, height, width, steps in ((1, 1, 1, 1), (3, 8, 5, 2), (2, 16, 17, 9)):
        x, *_ = model(np.ones((batch, height, width, 3), np.float32), np.ones((batch, steps, 4), np.float32))
        assert x.shape[:2] == (batch, 2 * ((height + 3) // 4))


@pytest.mark.parametrize(("version", "label", "suffix"), [("3", "nested", ".keras"), ("2", "nested", ".h5")])
def test_weights_alone(version: str, label: str, suffix: str) -> None:
    weights = fl.load_weights(stored(version)[f"{label}|file|{suffix}"].tobytes())
    model = load(version, label, suffix)
    assert weights and all(array.dtype == np.float32 for array in weights.values())
    sizes = {array.shape for array in weights.values()}
    assert (4, 5) in sizes and model is not None
