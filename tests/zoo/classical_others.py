"""Models of `classical` that are no single estimator of one matrix: pipelines with strings and columns, LightGBM, XGBoost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Case = Callable[[], tuple[bytes, dict[str, Any], dict[int, Any]]]
OPSETS = {"": 18, "ai.onnx.ml": 3}


def _frame(data: Any) -> Any:
    """A table of numbers and strings, some of them missing."""
    import pandas

    rng = np.random.default_rng(3)
    rows = len(data.x)
    return pandas.DataFrame(
        {
            "age": data.missing[:, 0],
            "fare": data.x[:, 1],
            "sex": np.array(["male", "female"], object)[rng.integers(0, 2, rows)],
            "port": np.array(["S", "C", "Q"], object)[rng.integers(0, 3, rows)],
            "rank": rng.integers(1, 4, rows),
        }
    )


def _table(model: Any, frame: Any, y: Any, **options: Any) -> Case:
    """A pipeline over columns, each an input of its own."""

    def make() -> tuple[bytes, dict[str, Any], dict[int, Any]]:
        from skl2onnx import convert_sklearn
        from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType

        model.fit(frame, y)
        types = {"f": FloatTensorType, "i": Int64TensorType, "O": StringTensorType}
        kinds = {name: "O" if frame[name].dtype.kind not in "fi" else frame[name].dtype.kind for name in frame}
        initial = [(name, types[kind]([None, 1])) for name, kind in kinds.items()]
        given = {id(model): options} if options else None
        proto = convert_sklearn(model, initial_types=initial, target_opset=OPSETS, options=given)
        rows = frame[:30]
        casts = {"f": np.float32, "i": np.int64, "O": object}
        feeds = {name: rows[[name]].to_numpy().astype(casts[kind]) for name, kind in kinds.items()}
        if hasattr(model, "predict"):
            return proto.SerializeToString(), feeds, {0: model.predict(rows), 1: model.predict_proba(rows)}
        result = model.transform(rows)
        return proto.SerializeToString(), feeds, {0: result.toarray() if hasattr(result, "toarray") else result}

    return make


def _strings(model: Any, x: np.ndarray, y: Any = None) -> Case:
    def make() -> tuple[bytes, dict[str, Any], dict[int, Any]]:
        from skl2onnx import convert_sklearn
        from skl2onnx.common.data_types import StringTensorType

        model.fit(x) if y is None else model.fit(x, y)
        shape = [None, *x.shape[1:]]
        proto = convert_sklearn(model, initial_types=[("X", StringTensorType(shape))], target_opset=OPSETS)
        rows = x[:20]
        result = model.transform(rows)
        return proto.SerializeToString(), {"X": rows}, {0: result.toarray() if hasattr(result, "toarray") else result}

    return make


def _dicts() -> tuple[bytes, dict[str, Any], dict[int, Any]]:
    from skl2onnx import convert_sklearn
    from skl2onnx.common.data_types import DictionaryType, FloatTensorType, StringTensorType
    from sklearn.feature_extraction import DictVectorizer

    model = DictVectorizer(sparse=False).fit([{"a": 1.5, "b": 2.0}, {"b": 3.0, "c": -1.0}])
    types = [("X", DictionaryType(StringTensorType([1]), FloatTensorType([1])))]
    proto = convert_sklearn(model, initial_types=types, target_opset=OPSETS)
    row = {"c": 4.0, "a": 0.5}
    return proto.SerializeToString(), {"X": row}, {0: model.transform([row])}


def pipelines(data: Any) -> dict[str, Case]:
    """Pipelines, most of them with ColumnTransformer."""
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import LabelEncoder, OneHotEncoder, OrdinalEncoder, StandardScaler, TargetEncoder

    frame = _frame(data)
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    choices = OneHotEncoder(handle_unknown="ignore")

    def columns(encoder: Any) -> Any:
        return ColumnTransformer([("n", numbers, ["age", "fare"]), ("c", encoder, ["sex", "port"])], sparse_threshold=0)

    words = np.array([["red", "s"], ["green", "m"], ["blue", "l"], ["red", "l"]] * 10, object)
    integers = np.random.default_rng(5).integers(0, 4, (60, 3))
    texts = np.array(["the cat sat", "a dog ran to the cat", "no pets", "the dog sat sat"] * 6, object)
    made: dict[str, Case] = {
        "ColumnTransformer": _table(columns(choices), frame, None),
        "ColumnTransformer ordinal": _table(columns(OrdinalEncoder()), frame, None),
        "ColumnTransformer + LogisticRegression": _table(make_pipeline(columns(choices), LogisticRegression()), frame, data.two),
        "ColumnTransformer + LogisticRegression, strings": _table(
            make_pipeline(columns(choices), LogisticRegression()), frame, data.words, zipmap=False
        ),
        "ColumnTransformer + RandomForestClassifier": _table(
            make_pipeline(columns(choices), RandomForestClassifier(8, random_state=0)), frame, data.three, zipmap=False
        ),
        "ColumnTransformer + GradientBoostingClassifier": _table(
            make_pipeline(columns(choices), GradientBoostingClassifier(n_estimators=5, random_state=0)), frame, data.three
        ),
        "OneHotEncoder strings": _strings(OneHotEncoder(handle_unknown="ignore", sparse_output=False), words),
        "OneHotEncoder drop": _strings(OneHotEncoder(drop="first", sparse_output=False), words),
        "OrdinalEncoder strings": _strings(OrdinalEncoder(), words),
        "TargetEncoder strings": _strings(TargetEncoder(random_state=0), words, np.arange(40) % 2),
        "LabelEncoder strings": _strings(LabelEncoder(), words[:, 0].copy()),
        "TfidfVectorizer": _strings(TfidfVectorizer(), texts),
        "CountVectorizer": _strings(CountVectorizer(ngram_range=(1, 2)), texts),
        "DictVectorizer": _dicts,
    }
    from .classical_cases import _sklearn

    made["OneHotEncoder integers"] = _sklearn(OneHotEncoder(sparse_output=False), integers, None, "transform")
    made["OrdinalEncoder integers"] = _sklearn(OrdinalEncoder(), integers, None, "transform")
    return made


def _other(model: Any, x: np.ndarray, y: Any, tool: str, **options: Any) -> Case:
    """LightGBM and XGBoost, through onnxmltools."""

    def make() -> tuple[bytes, dict[str, Any], dict[int, Any]]:
        import onnxmltools
        from onnxmltools.convert.common.data_types import FloatTensorType

        model.fit(x, y)
        convert = getattr(onnxmltools, f"convert_{tool}")
        proto = convert(model, initial_types=[("X", FloatTensorType([None, x.shape[1]]))], target_opset=15, **options)
        rows = x[:40]
        want = {0: model.predict(rows)}
        if hasattr(model, "predict_proba"):
            want[1] = model.predict_proba(rows)
        return proto.SerializeToString(), {"X": rows}, want

    return make


def boosted(data: Any) -> dict[str, Case]:
    """LightGBM and XGBoost."""
    from lightgbm import LGBMClassifier, LGBMRegressor
    from xgboost import XGBClassifier, XGBRegressor, XGBRFClassifier, XGBRFRegressor

    quiet = {"n_estimators": 15, "min_child_samples": 5, "verbose": -1, "random_state": 0, "n_jobs": 1}
    trees = {"n_estimators": 15, "max_depth": 4, "random_state": 0, "n_jobs": 1}
    of_three = np.searchsorted([3, 7, 11], data.three)
    made: dict[str, Case] = {}
    for x, suffix in ((data.x, ""), (data.missing, ", missing")):
        made[f"LGBMRegressor{suffix}"] = _other(LGBMRegressor(**quiet), x, data.number, "lightgbm")
        made[f"LGBMClassifier, 2 classes{suffix}"] = _other(LGBMClassifier(**quiet), x, data.two, "lightgbm", zipmap=False)
        made[f"LGBMClassifier, 3 classes{suffix}"] = _other(LGBMClassifier(**quiet), x, data.three, "lightgbm")
        made[f"XGBRegressor{suffix}"] = _other(XGBRegressor(**trees), x, data.number, "xgboost")
        made[f"XGBClassifier, 2 classes{suffix}"] = _other(XGBClassifier(**trees), x, data.two, "xgboost")
        made[f"XGBClassifier, 3 classes{suffix}"] = _other(XGBClassifier(**trees), x, of_three, "xgboost")
    for objective in ("poisson", "tweedie", "quantile", "huber"):
        y = np.exp(data.number) if objective in ("poisson", "tweedie") else data.number
        made[f"LGBMRegressor {objective}"] = _other(LGBMRegressor(objective=objective, **quiet), data.x, y, "lightgbm")
    for kind in ("dart", "rf"):
        more = {"bagging_freq": 1, "bagging_fraction": 0.7} if kind == "rf" else {}
        made[f"LGBMRegressor {kind}"] = _other(
            LGBMRegressor(boosting_type=kind, **quiet, **more), data.x, data.number, "lightgbm"
        )
    made["LGBMClassifier, strings"] = _other(LGBMClassifier(**quiet), data.x, data.words, "lightgbm", zipmap=False)
    for objective in ("count:poisson", "reg:logistic", "reg:gamma", "reg:tweedie", "reg:pseudohubererror"):
        y = 1 / (1 + np.exp(-data.number)) if objective == "reg:logistic" else np.exp(data.number)
        made[f"XGBRegressor {objective}"] = _other(XGBRegressor(objective=objective, **trees), data.x, y, "xgboost")
    made["XGBRFRegressor"] = _other(XGBRFRegressor(**trees), data.x, data.number, "xgboost")
    made["XGBRFClassifier"] = _other(XGBRFClassifier(**trees), data.x, data.two, "xgboost")
    made["XGBRegressor linear"] = _other(XGBRegressor(booster="gblinear", n_estimators=5), data.x, data.number, "xgboost")
    return made
