"""The models of `classical`: each a function that trains and exports one, and gives what the library says of some rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Case = Callable[[], tuple[bytes, dict[str, Any], dict[int, Any]]]
ROWS, COLUMNS = 160, 6


class Data:
    """Rows and what is to be learnt from them, the same for every model."""

    def __init__(self, dtype: Any = np.float32) -> None:
        rng = np.random.default_rng(7)
        x = rng.normal(size=(ROWS, COLUMNS))
        signal = x[:, 0] + 0.7 * x[:, 1] * x[:, 2] - x[:, 3]
        self.x = x.astype(dtype)
        self.positive = np.abs(x).astype(dtype)
        self.counts = rng.poisson(2, (ROWS, COLUMNS)).astype(dtype)
        self.missing = np.where(rng.random(x.shape) < 0.15, np.nan, x).astype(dtype)
        self.number = (signal + rng.normal(scale=0.1, size=ROWS)).astype(dtype)
        self.numbers = np.stack([self.number, self.number * x[:, 4]], axis=1).astype(dtype)
        self.two = (signal > 0).astype(np.int64)
        self.three = np.array([3, 7, 11])[np.digitize(signal, [-0.7, 0.7])]
        self.words = np.array(["no", "maybe", "yes"])[np.digitize(signal, [-0.7, 0.7])]
        self.pair = np.array(["no", "yes"])[self.two]
        self.several = np.stack([self.two, (x[:, 4] > 0).astype(np.int64), (x[:, 5] > 0.5).astype(np.int64)], axis=1)


def _sklearn(estimator: Any, x: Any, y: Any, kind: str, zipmap: Any = False, dtype: Any = np.float32, **options: Any) -> Case:
    """An estimator of one matrix. `kind`: classify, regress, transform or outliers."""

    def make() -> tuple[bytes, dict[str, Any], dict[int, Any]]:
        from skl2onnx import convert_sklearn
        from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, Int64TensorType, StringTensorType
        from sklearn.base import clone
        from sklearn.svm import LinearSVC

        model = clone(estimator)
        model.fit(x) if y is None else model.fit(x, y)
        types = {"float32": FloatTensorType, "float64": DoubleTensorType, "int64": Int64TensorType, "object": StringTensorType}
        made = options if kind != "classify" or isinstance(model, LinearSVC) else {"zipmap": zipmap, **options}
        proto = convert_sklearn(
            model, initial_types=[("X", types[x.dtype.name]([None, x.shape[1]]))], target_opset={"": 18, "ai.onnx.ml": 3},
            options={id(model): made} if made else None,
        )  # fmt: skip
        rows = x[:40]
        want: dict[int, Any] = {}
        if kind == "transform":
            result = model.transform(rows)
            want = {0: result.toarray() if hasattr(result, "toarray") else result}
        elif kind == "raw":
            want = {0: model.predict(rows)}
        else:
            want = {0: model.predict(rows)}
            if kind == "classify" and hasattr(model, "predict_proba") and not isinstance(model.predict_proba(rows), list):
                want[1] = model.predict_proba(rows)
        return proto.SerializeToString(), {"X": rows}, want

    return make


def _classifiers() -> dict[str, Any]:
    from sklearn import (
        calibration,
        discriminant_analysis,
        ensemble,
        gaussian_process,
        linear_model,
        multiclass,
        naive_bayes,
        neighbors,
        neural_network,
        svm,
        tree,
    )  # fmt: skip

    logistic = linear_model.LogisticRegression
    return {
        "AdaBoostClassifier": ensemble.AdaBoostClassifier(n_estimators=8, random_state=0),
        "BaggingClassifier": ensemble.BaggingClassifier(n_estimators=5, random_state=0),
        "CalibratedClassifierCV sigmoid": calibration.CalibratedClassifierCV(svm.LinearSVC(random_state=0), cv=3),
        "CalibratedClassifierCV isotonic": calibration.CalibratedClassifierCV(naive_bayes.GaussianNB(), method="isotonic", cv=3),
        "DecisionTreeClassifier": tree.DecisionTreeClassifier(max_depth=6, random_state=0),
        "ExtraTreeClassifier": tree.ExtraTreeClassifier(max_depth=6, random_state=0),
        "ExtraTreesClassifier": ensemble.ExtraTreesClassifier(n_estimators=12, random_state=0),
        "GaussianNB": naive_bayes.GaussianNB(),
        "GaussianProcessClassifier": gaussian_process.GaussianProcessClassifier(random_state=0),
        "GradientBoostingClassifier": ensemble.GradientBoostingClassifier(n_estimators=12, random_state=0),
        "GradientBoostingClassifier zero": ensemble.GradientBoostingClassifier(n_estimators=6, init="zero", random_state=0),
        "HistGradientBoostingClassifier": ensemble.HistGradientBoostingClassifier(max_iter=12, random_state=0),
        "KNeighborsClassifier": neighbors.KNeighborsClassifier(4),
        "KNeighborsClassifier distance": neighbors.KNeighborsClassifier(4, weights="distance"),
        "LinearDiscriminantAnalysis": discriminant_analysis.LinearDiscriminantAnalysis(),
        "LinearSVC": svm.LinearSVC(random_state=0),
        "LogisticRegression": logistic(),
        "LogisticRegressionCV": linear_model.LogisticRegressionCV(Cs=3, cv=3),
        "MLPClassifier": neural_network.MLPClassifier((9,), max_iter=40, random_state=0),
        "MLPClassifier logistic": neural_network.MLPClassifier((5, 5), activation="logistic", max_iter=40, random_state=0),
        "NuSVC": svm.NuSVC(nu=0.3, random_state=0),
        "NuSVC probability": svm.NuSVC(nu=0.3, probability=True, random_state=0),
        "OneVsOneClassifier": multiclass.OneVsOneClassifier(logistic()),
        "OneVsRestClassifier": multiclass.OneVsRestClassifier(logistic()),
        "OneVsRestClassifier trees": multiclass.OneVsRestClassifier(
            ensemble.GradientBoostingClassifier(n_estimators=4, random_state=0)
        ),
        "PassiveAggressiveClassifier": linear_model.PassiveAggressiveClassifier(random_state=0),
        "Perceptron": linear_model.Perceptron(random_state=0),
        "QuadraticDiscriminantAnalysis": discriminant_analysis.QuadraticDiscriminantAnalysis(),
        "RadiusNeighborsClassifier": neighbors.RadiusNeighborsClassifier(9.0),
        "RandomForestClassifier": ensemble.RandomForestClassifier(n_estimators=12, random_state=0),
        "RidgeClassifier": linear_model.RidgeClassifier(),
        "RidgeClassifierCV": linear_model.RidgeClassifierCV(),
        "SGDClassifier hinge": linear_model.SGDClassifier(random_state=0),
        "SGDClassifier log": linear_model.SGDClassifier(loss="log_loss", random_state=0),
        "SGDClassifier huber": linear_model.SGDClassifier(loss="modified_huber", random_state=0),
        "SVC linear": svm.SVC(kernel="linear", random_state=0),
        "SVC rbf": svm.SVC(random_state=0),
        "SVC poly": svm.SVC(kernel="poly", coef0=0.5, random_state=0),
        "SVC sigmoid": svm.SVC(kernel="sigmoid", random_state=0),
        "SVC probability": svm.SVC(probability=True, random_state=0),
        "SVC ovo": svm.SVC(decision_function_shape="ovo", random_state=0),
        "StackingClassifier": ensemble.StackingClassifier(
            [("a", logistic()), ("b", tree.DecisionTreeClassifier(max_depth=3, random_state=0))], cv=3
        ),
        "VotingClassifier soft": ensemble.VotingClassifier(
            [("a", logistic()), ("b", tree.DecisionTreeClassifier(max_depth=3, random_state=0))],
            voting="soft",
            flatten_transform=False,
        ),
        "VotingClassifier hard": ensemble.VotingClassifier(
            [("a", logistic()), ("b", tree.DecisionTreeClassifier(max_depth=3, random_state=0))], flatten_transform=False
        ),
    }


def _counting() -> dict[str, Any]:
    """Classifiers of counts."""
    from sklearn import naive_bayes

    return {
        "BernoulliNB": naive_bayes.BernoulliNB(binarize=1.0),
        "CategoricalNB": naive_bayes.CategoricalNB(min_categories=20),
        "ComplementNB": naive_bayes.ComplementNB(),
        "MultinomialNB": naive_bayes.MultinomialNB(),
    }


def _regressors() -> dict[str, Any]:
    from sklearn import cross_decomposition, ensemble, gaussian_process, linear_model, neighbors, neural_network, svm, tree
    from sklearn.gaussian_process import kernels

    linear = {
        name: getattr(linear_model, name)()
        for name in (
            "ARDRegression", "BayesianRidge", "ElasticNet", "ElasticNetCV", "HuberRegressor", "Lars", "LarsCV", "Lasso",
            "LassoCV", "LassoLars", "LassoLarsCV", "LassoLarsIC", "LinearRegression", "OrthogonalMatchingPursuit",
            "OrthogonalMatchingPursuitCV", "PassiveAggressiveRegressor", "QuantileRegressor", "Ridge", "RidgeCV", "SGDRegressor",
            "TheilSenRegressor",
        )
        if hasattr(linear_model, name)
    }  # fmt: skip
    return {
        **linear,
        "AdaBoostRegressor": ensemble.AdaBoostRegressor(n_estimators=8, random_state=0),
        "BaggingRegressor": ensemble.BaggingRegressor(n_estimators=5, random_state=0),
        "DecisionTreeRegressor": tree.DecisionTreeRegressor(max_depth=6, random_state=0),
        "ExtraTreeRegressor": tree.ExtraTreeRegressor(max_depth=6, random_state=0),
        "ExtraTreesRegressor": ensemble.ExtraTreesRegressor(n_estimators=12, random_state=0),
        "GaussianProcessRegressor": gaussian_process.GaussianProcessRegressor(
            kernels.RBF(2.0) + kernels.WhiteKernel(0.1), random_state=0
        ),
        "GradientBoostingRegressor": ensemble.GradientBoostingRegressor(n_estimators=12, random_state=0),
        "HistGradientBoostingRegressor": ensemble.HistGradientBoostingRegressor(max_iter=12, random_state=0),
        "KNeighborsRegressor": neighbors.KNeighborsRegressor(4),
        "KNeighborsRegressor distance": neighbors.KNeighborsRegressor(4, weights="distance"),
        "LinearSVR": svm.LinearSVR(random_state=0),
        "MLPRegressor": neural_network.MLPRegressor(hidden_layer_sizes=(9,), max_iter=40, random_state=0),
        "MLPRegressor tanh": neural_network.MLPRegressor(
            hidden_layer_sizes=(5, 5), activation="tanh", max_iter=40, random_state=0
        ),
        "NuSVR": svm.NuSVR(),
        "PLSRegression": cross_decomposition.PLSRegression(2),
        "RANSACRegressor": linear_model.RANSACRegressor(random_state=0),
        "RadiusNeighborsRegressor": neighbors.RadiusNeighborsRegressor(9.0),
        "RandomForestRegressor": ensemble.RandomForestRegressor(n_estimators=12, random_state=0),
        "SVR linear": svm.SVR(kernel="linear"),
        "SVR rbf": svm.SVR(),
        "SVR poly": svm.SVR(kernel="poly"),
        "SVR sigmoid": svm.SVR(kernel="sigmoid"),
        "StackingRegressor": ensemble.StackingRegressor(
            [("a", linear_model.Ridge()), ("b", tree.DecisionTreeRegressor(max_depth=3, random_state=0))], cv=3
        ),
        "VotingRegressor": ensemble.VotingRegressor(
            [("a", linear_model.Ridge()), ("b", tree.DecisionTreeRegressor(max_depth=3, random_state=0))]
        ),
    }


def _positive_regressors() -> dict[str, Any]:
    from sklearn import linear_model

    return {name: getattr(linear_model, name)() for name in ("GammaRegressor", "PoissonRegressor", "TweedieRegressor")}


def _several() -> dict[str, Any]:
    """Regressors of two values at once."""
    from sklearn import ensemble, linear_model, multioutput, neighbors, neural_network, tree

    return {
        "MultiOutputRegressor": multioutput.MultiOutputRegressor(linear_model.Ridge()),
        "MultiTaskElasticNet": linear_model.MultiTaskElasticNet(),
        "MultiTaskLasso": linear_model.MultiTaskLasso(),
        "LinearRegression": linear_model.LinearRegression(),
        "DecisionTreeRegressor": tree.DecisionTreeRegressor(max_depth=5, random_state=0),
        "RandomForestRegressor": ensemble.RandomForestRegressor(n_estimators=10, random_state=0),
        "KNeighborsRegressor": neighbors.KNeighborsRegressor(3),
        "MLPRegressor": neural_network.MLPRegressor(hidden_layer_sizes=(6,), max_iter=40, random_state=0),
    }


def _transformers() -> dict[str, tuple[Any, str]]:
    """Each with the data that it is for."""
    from sklearn import (
        cluster,
        decomposition,
        ensemble,
        feature_selection,
        linear_model,
        mixture,
        neighbors,
        preprocessing,
        random_projection,
        tree,
    )  # fmt: skip
    from sklearn.pipeline import FeatureUnion

    small = tree.DecisionTreeClassifier(max_depth=3, random_state=0)
    return {
        "Binarizer": (preprocessing.Binarizer(threshold=0.3), "x"),
        "FeatureUnion": (FeatureUnion([("a", preprocessing.StandardScaler()), ("b", preprocessing.MinMaxScaler())]), "x"),
        "FunctionTransformer": (preprocessing.FunctionTransformer(), "x"),
        "GaussianRandomProjection": (random_projection.GaussianRandomProjection(3, random_state=0), "x"),
        "GenericUnivariateSelect": (feature_selection.GenericUnivariateSelect(param=40), "x"),
        "IncrementalPCA": (decomposition.IncrementalPCA(3), "x"),
        "KBinsDiscretizer onehot": (preprocessing.KBinsDiscretizer(4, encode="onehot-dense", quantile_method="linear"), "x"),
        "KBinsDiscretizer ordinal": (preprocessing.KBinsDiscretizer(4, encode="ordinal", quantile_method="linear"), "x"),
        "KernelPCA": (decomposition.KernelPCA(3, kernel="rbf"), "x"),
        "MaxAbsScaler": (preprocessing.MaxAbsScaler(), "x"),
        "MinMaxScaler": (preprocessing.MinMaxScaler(), "x"),
        "MinMaxScaler clip": (preprocessing.MinMaxScaler(clip=True), "x"),
        "NeighborhoodComponentsAnalysis": (neighbors.NeighborhoodComponentsAnalysis(3, random_state=0, max_iter=5), "x"),
        "Normalizer l1": (preprocessing.Normalizer("l1"), "x"),
        "Normalizer l2": (preprocessing.Normalizer("l2"), "x"),
        "Normalizer max": (preprocessing.Normalizer("max"), "positive"),
        "PCA": (decomposition.PCA(3, random_state=0), "x"),
        "PCA whiten": (decomposition.PCA(3, whiten=True, random_state=0), "x"),
        "PolynomialFeatures": (preprocessing.PolynomialFeatures(2), "x"),
        "PowerTransformer": (preprocessing.PowerTransformer(), "x"),
        "PowerTransformer box-cox": (preprocessing.PowerTransformer("box-cox"), "positive"),
        "QuantileTransformer": (preprocessing.QuantileTransformer(n_quantiles=20, random_state=0), "x"),
        "RFE": (feature_selection.RFE(small), "x"),
        "RFECV": (feature_selection.RFECV(small, cv=3), "x"),
        "RandomTreesEmbedding": (ensemble.RandomTreesEmbedding(5, sparse_output=False, random_state=0), "x"),
        "RobustScaler": (preprocessing.RobustScaler(), "x"),
        "SelectFdr": (feature_selection.SelectFdr(), "x"),
        "SelectFpr": (feature_selection.SelectFpr(), "x"),
        "SelectFromModel": (feature_selection.SelectFromModel(linear_model.LogisticRegression()), "x"),
        "SelectFwe": (feature_selection.SelectFwe(), "x"),
        "SelectKBest": (feature_selection.SelectKBest(k=3), "x"),
        "SelectPercentile": (feature_selection.SelectPercentile(percentile=50), "x"),
        "StandardScaler": (preprocessing.StandardScaler(), "x"),
        "TruncatedSVD": (decomposition.TruncatedSVD(3, random_state=0), "x"),
        "VarianceThreshold": (feature_selection.VarianceThreshold(), "x"),
        "KNeighborsTransformer": (neighbors.KNeighborsTransformer(n_neighbors=3), "x"),
        "KMeans": (cluster.KMeans(3, random_state=0, n_init=2), "labels"),
        "MiniBatchKMeans": (cluster.MiniBatchKMeans(3, random_state=0, n_init=2), "labels"),
        "GaussianMixture": (mixture.GaussianMixture(2, random_state=0), "labels"),
        "GaussianMixture tied": (mixture.GaussianMixture(2, covariance_type="tied", random_state=0), "labels"),
        "BayesianGaussianMixture": (mixture.BayesianGaussianMixture(n_components=2, random_state=0), "labels"),
    }


def _imputers() -> dict[str, Any]:
    from sklearn import impute

    return {
        **{f"SimpleImputer {s}": impute.SimpleImputer(strategy=s) for s in ("mean", "median", "most_frequent")},
        "SimpleImputer constant": impute.SimpleImputer(strategy="constant", fill_value=2.5),
        "KNNImputer": impute.KNNImputer(n_neighbors=3),
    }


def _outliers() -> dict[str, Any]:
    from sklearn import ensemble, linear_model, neighbors, svm

    return {
        "IsolationForest": ensemble.IsolationForest(n_estimators=10, random_state=0),
        "LocalOutlierFactor": neighbors.LocalOutlierFactor(5, novelty=True),
        "OneClassSVM": svm.OneClassSVM(),
        "SGDOneClassSVM": linear_model.SGDOneClassSVM(random_state=0),
    }


def cases() -> dict[str, Case]:
    """All, by name."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.multioutput import MultiOutputClassifier
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.tree import DecisionTreeClassifier

    from .classical_others import boosted, pipelines

    data, wide = Data(), Data(np.float64)
    made: dict[str, Case] = {}
    for name, model in _classifiers().items():
        made[f"{name}, 2 classes"] = _sklearn(model, data.x, data.two, "classify")
        made[f"{name}, 3 classes, ZipMap"] = _sklearn(model, data.x, data.three, "classify", zipmap=True)
        made[f"{name}, 3 strings"] = _sklearn(model, data.x, data.words, "classify")
        made[f"{name}, 2 strings, ZipMap"] = _sklearn(model, data.x, data.pair, "classify", zipmap=True)
    for name, model in _counting().items():
        made[f"{name}, 2 classes"] = _sklearn(model, data.counts, data.two, "classify")
        made[f"{name}, 3 strings, ZipMap"] = _sklearn(model, data.counts, data.words, "classify", zipmap=True)
        made[f"{name}, integers"] = _sklearn(model, data.counts.astype(np.int64), data.three, "classify")
    for name in ("RandomForestClassifier", "GradientBoostingClassifier", "LogisticRegression", "SVC rbf", "KNeighborsClassifier"):
        made[f"{name}, float64"] = _sklearn(_classifiers()[name], wide.x, wide.three, "classify")
    for name in ("LogisticRegression", "GradientBoostingClassifier", "SVC rbf", "SGDClassifier hinge", "RandomForestClassifier"):
        made[f"{name}, integers"] = _sklearn(_classifiers()[name], data.counts.astype(np.int64), data.three, "classify")
    made["HistGradientBoostingClassifier, missing"] = _sklearn(
        _classifiers()["HistGradientBoostingClassifier"], data.missing, data.three, "classify"
    )
    for name in ("DecisionTreeClassifier", "RandomForestClassifier"):
        made[f"{name}, missing"] = _sklearn(_classifiers()[name], data.missing, data.three, "classify")
    for name, model in {
        "DecisionTreeClassifier": DecisionTreeClassifier(max_depth=5, random_state=0),
        "RandomForestClassifier": RandomForestClassifier(10, random_state=0),
        "KNeighborsClassifier": KNeighborsClassifier(3),
        "MultiOutputClassifier": MultiOutputClassifier(LogisticRegression()),
    }.items():
        made[f"{name}, several labels"] = _sklearn(model, data.x, data.several, "classify")
    for name, model in _regressors().items():
        made[name] = _sklearn(model, data.x, data.number, "regress")
    for name in (
        "RandomForestRegressor",
        "GradientBoostingRegressor",
        "SVR rbf",
        "LinearRegression",
        "HistGradientBoostingRegressor",
    ):
        made[f"{name}, float64"] = _sklearn(_regressors()[name], wide.x, wide.number, "regress")
        counts = data.counts.astype(np.int64)
        made[f"{name}, integers"] = _sklearn(_regressors()[name], counts, data.number, "regress")
    made["HistGradientBoostingRegressor, missing"] = _sklearn(
        _regressors()["HistGradientBoostingRegressor"], data.missing, data.number, "regress"
    )
    for name, model in _positive_regressors().items():
        made[name] = _sklearn(model, data.x, np.exp(data.number), "regress")
    for name, model in _several().items():
        made[f"{name}, two values"] = _sklearn(model, data.x, data.numbers, "regress")
    for name, (model, which) in _transformers().items():
        kind = "regress" if which == "labels" else "transform"
        made[name] = _sklearn(model, data.x if which == "labels" else getattr(data, which), data.two, kind)
    for name in ("StandardScaler", "MinMaxScaler", "PCA", "Normalizer l2"):
        made[f"{name}, float64"] = _sklearn(_transformers()[name][0], wide.x, wide.two, "transform")
    for name, model in _imputers().items():
        made[name] = _sklearn(model, data.missing, None, "transform")
    for name, model in _outliers().items():
        made[name] = _sklearn(model, data.x, None, "raw")
    return {**made, **pipelines(data), **boosted(data)}
