"""Classical models next to ONNX Runtime and the library that trained them, at 1 row and at 10,000.

    python -m bench.classical [word ...] [--threads 1] [--rounds 20]    those whose names contain a word

Needs tests/zoo/requirements-classical.txt. The contestants alternate; the best and the median of all bursts are printed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import fastlayers as fl

from .timing import Times, add_json, store, take_turns

COLUMNS, ROWS = 30, 10_000


def models(threads: int) -> Iterator[tuple[str, Callable[[np.ndarray, np.ndarray], Any]]]:
    """Yields each model's name and the function that trains it."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import SVC
    from xgboost import XGBClassifier

    yield "XGBoost, 500 trees of depth 6", lambda x, y: XGBClassifier(n_estimators=500, max_depth=6, n_jobs=threads).fit(x, y)
    yield "random forest of 100", lambda x, y: RandomForestClassifier(100, max_depth=12, n_jobs=threads).fit(x, y)
    yield "logistic regression", lambda x, y: LogisticRegression().fit(x, y)
    yield "SVC, RBF", lambda x, y: SVC().fit(x[:1000], y[:1000])


def exported(model: Any) -> bytes:
    """The model as ONNX, without ZipMap."""
    if type(model).__module__.startswith("xgboost"):
        import onnxmltools
        from onnxmltools.convert.common.data_types import FloatTensorType

        return onnxmltools.convert_xgboost(  # type: ignore[no-any-return]
            model, initial_types=[("x", FloatTensorType([None, COLUMNS]))], target_opset=15
        ).SerializeToString()
    from skl2onnx import to_onnx

    return to_onnx(model, np.zeros((1, COLUMNS), np.float32), options={"zipmap": False}).SerializeToString()  # type: ignore[no-any-return]


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains, exports, checks and times."""
    import onnxruntime

    parser = argparse.ArgumentParser(prog="python -m bench.classical", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("words", nargs="*")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=20)
    add_json(parser)
    given = parser.parse_args(arguments)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, COLUMNS)).astype(np.float32)
    y = (x[:, 0] + x[:, 1] * x[:, 2] + np.sin(3 * x[:, 3]) + rng.normal(scale=0.3, size=ROWS) > 0).astype(np.int64)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = given.threads
    print(f"variant={fl.kernels.info()['variant']} threads={given.threads}")
    found: dict[str, dict[str, Times]] = {}
    for name, train in models(given.threads):
        if given.words and not any(word in name for word in given.words):
            continue
        trained = train(x, y)
        content = exported(trained)
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        model = fl.load(content, num_threads=given.threads)
        feed, scores = model.inputs[0].name, model.outputs[1].name
        for rows in (1, ROWS):
            part = x[:rows].copy()
            ours, theirs = model.run({feed: part})[scores], session.run([scores], {feed: part})[0]
            calls: dict[str, Callable[[], object]] = {
                "fastlayers": lambda part=part, model=model: model(part),
                "ONNX Runtime": lambda part=part, session=session, feed=feed: session.run(None, {feed: part}),
                "library": lambda part=part, trained=trained: trained.predict(part),
            }
            times = found[f"{name}, {rows} rows"] = take_turns(calls, given.rounds)
            told = ", ".join(f"{who} {t.best * 1e6:.1f} ({t.median * 1e6:.1f})" for who, t in times.items())
            print(f"{name:32} {rows:6} rows: µs {told}; off by {np.abs(ours - theirs).max():.1e}")
    store(given.json, found, onnxruntime=onnxruntime.__version__)


if __name__ == "__main__":
    main()
