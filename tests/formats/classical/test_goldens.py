"""Classical models of scikit-learn, LightGBM and XGBoost next to what ONNX Runtime makes of them (`make_goldens`)."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl

GOLDENS = Path(__file__).with_name("goldens.zip")
TOLERANCE = 1e-5  # of the largest number, at least of 1
with zipfile.ZipFile(GOLDENS) as _archive:
    NAMES = sorted(name.removesuffix(".onnx") for name in _archive.namelist() if name.endswith(".onnx"))


def value_of(told: Any) -> Any:
    """An array, a dict or a list of them, as `make_goldens` describes them."""
    if "dtype" in told:
        return np.array(told["values"], told["dtype"]).reshape(told["shape"])
    if "dict" in told:
        return dict(told["dict"])
    return [value_of(item) for item in told["list"]]


def golden(name: str) -> tuple[bytes, dict[str, Any], list[Any]]:
    with zipfile.ZipFile(GOLDENS) as archive:
        told = json.loads(archive.read(f"{name}.json"))
        return (
            archive.read(f"{name}.onnx"),
            {k: value_of(v) for k, v in told["feeds"].items()},
            [value_of(v) for v in told["results"]],
        )


def close(got: Any, want: Any) -> None:
    """Labels are equal, numbers near."""
    if isinstance(want, list):
        assert [list(row) for row in got] == [list(row) for row in want]
        got, want = (np.array([list(row.values()) for row in rows]) for rows in (got, want))
    assert got.shape == want.shape and got.dtype.kind == want.dtype.kind
    if want.dtype.kind != "f":
        assert (got == want).all()
        return
    scale = max(1.0, float(np.abs(want).max(initial=0)))
    np.testing.assert_allclose(got, want, rtol=0, atol=TOLERANCE * scale)


@pytest.mark.parametrize("name", NAMES)
def test_agrees(variant: str, name: str) -> None:
    content, feeds, results = golden(name)
    model = fl.load(content)
    for got, want in zip(model.run(feeds).values(), results, strict=True):
        close(got, want)
    for got, want in zip(fl.load(content, optimize=False).run(feeds).values(), results, strict=True):
        close(got, want)


@pytest.mark.parametrize("name", NAMES)
def test_our_own_file(name: str, tmp_path: Path) -> None:
    content, feeds, _ = golden(name)
    model = fl.load(content)
    model.save(tmp_path / "m.safetensors")
    again = fl.load(tmp_path / "m.safetensors")
    assert again.inputs == model.inputs and again.outputs == model.outputs
    for got, want in zip(again.run(feeds).values(), model.run(feeds).values(), strict=True):
        assert got == want if isinstance(want, list) else np.array_equal(got, want, equal_nan=want.dtype.kind == "f")


def test_zipmap_gives_dicts_or_an_array() -> None:
    content, feeds, results = golden("LogisticRegression, 3 classes, ZipMap")
    rows = fl.load(content).run(feeds)
    plain = fl.load(content, zipmap=False)
    (labels, shares), name = plain.run(feeds).values(), plain.outputs[1].name
    assert plain.outputs[1].dtype == np.float32 and fl.load(content).outputs[1].__class__.__name__ == "SequenceMapSpec"
    assert [list(row.values()) for row in rows[name]] == shares.tolist()
    assert [max(row, key=row.get) for row in rows[name]] == labels.tolist() == results[0].tolist()


def test_strings_are_checked() -> None:
    content, feeds, results = golden("OneHotEncoder strings")
    model = fl.load(content)
    (name,) = feeds
    close(model(feeds[name].tolist()), results[0])
    close(model(feeds[name].astype(str)), results[0])
    assert fl.ort.InferenceSession(content).get_inputs()[0].type == "tensor(string)"
    for bad in (np.zeros((2, 2)), [["a", 3]], [["a", None]], np.array([[b"a", b"b"]])):
        with pytest.raises(fl.errors.DTypeError, match="strings"):
            model(bad)
    with pytest.raises(fl.errors.ShapeError):
        model(["a", "b"])


def test_a_dict_is_checked() -> None:
    content, feeds, _ = golden("DictVectorizer")
    with pytest.raises(fl.errors.DTypeError, match="expected a dict"):
        fl.load(content)([1.0])
    with pytest.raises(fl.errors.DTypeError):
        fl.load(content)({"a": object()})
    assert fl.load(content)(*feeds.values()).shape == (1, 3)


def test_boosted_models_are_native() -> None:
    for name in ("XGBRegressor", "LGBMClassifier, 2 classes, missing", "SVC rbf, 2 classes", "LogisticRegression, 2 classes"):
        content, feeds, _ = golden(name)
        if fl.kernels.info()["variant"].startswith("aot"):
            fl.load(content, require_native=True, zipmap=False).run(feeds)
