"""Every transform of the scores of classifiers and regressors: beside formulas, onnxruntime and onnx's reference evaluator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.errors import UnsupportedError
from tests.each import each

from .score_cases import CASES, KERNELS, TRANSFORMS, Case, X, onnxruntime_differs, reference_differs, transform_of

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
ROWS = X.astype(np.float32)
WHOLE = np.array([[0, 0], [1, 0], [0, 1], [1, 1], [0, 2], [3, -1], [-2, 4]])
# Strings for labels are independent of transforms.
FEW = [c for c in CASES if "classlabels_strings" not in c.given or transform_of(c) == "NONE"]
TYPED = {(c.op, "vectors_per_class" in c.given, c.raw(X).shape[1]): c for c in FEW if transform_of(c) == "LOGISTIC"}


def same(got: dict[str, Any], want: dict[str, np.ndarray], kept: Any = slice(None), atol: float = 1e-5) -> None:
    """Labels are equal, scores near."""
    for name, value in want.items():
        found = np.asarray(got[name])
        assert found.shape == value.shape, f"{name}: {found.shape}, expected {value.shape}"
        if value.dtype.kind == "f":
            np.testing.assert_allclose(found[kept], value[kept], rtol=1e-5, atol=atol, err_msg=name)
        else:
            np.testing.assert_array_equal(found[kept], value[kept], err_msg=name)


@each("case", FEW, ids=lambda c: c.name)
def test_formulas(case: Case) -> None:
    same(fl.load(case.model()).run({"x": ROWS}), case.expected(ROWS))


@pytest.mark.exhaustive
@each("optimize", [False, True])
@each("case", CASES, ids=lambda c: c.name)
def test_formulas_and_strings(case: Case, optimize: bool) -> None:
    same(fl.load(case.model(), optimize=optimize).run({"x": ROWS}), case.expected(ROWS))


@each("dtype", ["f8", "i4", "i8"])
@each("case", TYPED.values(), ids=lambda c: c.name)
def test_inputs(case: Case, dtype: str) -> None:
    if case.op == "TreeEnsemble" and dtype != "f8":
        return  # of floats alone
    model = fl.load(case.model(dtype))
    for x in (WHOLE.astype(dtype), np.zeros((0, 2), dtype)):
        got = model.run({"x": x})
        same(got, case.expected(x))
        assert got["y"].dtype == (dtype if case.op == "TreeEnsemble" else "f4")


@each("case", TYPED.values(), ids=lambda c: c.name)
def test_no_rows(case: Case) -> None:
    same(fl.load(case.model()).run({"x": ROWS[:0]}), case.expected(ROWS[:0]))


def beside(differs: Callable[[Case], str | None], run: Callable[[bytes], Any], kept: Callable[[Case, Any], Any]) -> None:
    """Every case but those that differ; of each way to differ, some case does."""
    found: dict[str, bool] = {}
    for case in FEW:
        want, reason = case.expected(ROWS), differs(case)
        try:
            same(dict(zip(want, run(case.model()), strict=True)), want, kept(case, want), 1e-4)  # their PROBIT cancels near 1/2
        except Exception as error:
            if reason is None:
                raise AssertionError(f"{case.name}: {error}") from error
            found[reason] = True
        else:
            if reason is not None:
                found.setdefault(reason, False)
    assert all(found.values()), f"no case differs: {[reason for reason, differ in found.items() if not differ]}"


@pytest.mark.onnxruntime
def test_beside_onnxruntime() -> None:
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)

    def kept(case: Case, want: Any) -> Any:
        """It makes NaN of SOFTMAX_ZERO where all scores are 0."""
        return ~(want["y"] == 0).all(axis=1) if transform_of(case) == "SOFTMAX_ZERO" else slice(None)

    def run(content: bytes) -> Any:
        return onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"]).run(None, {"x": ROWS})

    beside(onnxruntime_differs, run, kept)


@pytest.mark.onnx
@pytest.mark.exhaustive
def test_beside_the_reference() -> None:
    import onnx
    from onnx.reference import ReferenceEvaluator

    def kept(case: Case, want: Any) -> Any:
        """Its PROBIT of 0 and 1 is 0, its SOFTMAX_ZERO of zeros 1/2, and NaN is a class of its own."""
        rows = np.isfinite(want["y"]).all(axis=1) & ~np.isnan(ROWS).any(axis=1)
        return rows & ~(want["y"] == 0).all(axis=1) if transform_of(case) == "SOFTMAX_ZERO" else rows

    beside(reference_differs, lambda content: ReferenceEvaluator(onnx.load_from_string(content)).run(None, {"x": ROWS}), kept)


@each("kind", KERNELS)
def test_infinite_features(kind: str) -> None:
    """What is infinitely far from a vector adds nothing to a sum of RBF; a tanh is 1 there."""
    case = next(c for c in CASES if c.op == "SVMRegressor" and c.given["kernel_type"] == kind and c.given["n_supports"])
    x = np.array([[np.inf, 1], [1, -np.inf], [np.inf, -np.inf], [1e30, 1], [np.nan, np.inf]], np.float32)
    if kind == "RBF":
        want = np.array([[0.25], [0.25], [0.25], [0.25], [np.nan]])
        np.testing.assert_array_equal(fl.load(case.model()).run({"x": x})["y"], want)
    else:
        same(fl.load(case.model()).run({"x": x}), case.expected(x), [0, 1, 2, 4])  # 1e30 squared is no float32


def test_the_first_nan_of_some_is_the_label() -> None:
    case = next(c for c in CASES if c.op == "LinearClassifier" and len(c.given["intercepts"]) == 3)
    found = fl.load(case.model()).run({"x": np.array([[np.inf, 0], [np.nan, 0]], np.float32)})
    assert np.isnan(found["y"]).tolist() == [[False, False, True], [True, True, True]]
    assert found["l"].tolist() == [9, 5]


@each("name", [*TRANSFORMS, "SQUARE"])
def test_support_vectors_of_one_class(name: str) -> None:
    case = next(c for c in CASES if c.op == "SVMClassifier" and "vectors_per_class" in c.given)
    given = {**case.given, "vectors_per_class": [5], "classlabels_ints": [5], "post_transform": name}
    with pytest.raises(UnsupportedError, match="of one class"):
        fl.load(case._replace(given=given).model())


@each("case", [c for c in FEW if transform_of(c) == "NONE" and c.op != "TreeEnsemble"], ids=lambda c: c.name)
def test_no_such_transform(case: Case) -> None:
    if case.given.get("one_class"):
        return  # its scores are 1 and -1
    with pytest.raises(UnsupportedError, match="post_transform='SQUARE'"):
        fl.load(case._replace(given={**case.given, "post_transform": "SQUARE"}).model())
