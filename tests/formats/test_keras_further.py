"""Operations of keras.ops that no golden has, against numpy; all of them were held to Keras 3.15's own values once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fastlayers as fl

from .test_keras_hostile import archive, functional, given, tensor
from .test_keras_words import operation

X = np.random.default_rng(0).standard_normal((2, 5, 4)).astype(np.float32)
SQUARE = np.random.default_rng(1).standard_normal((2, 4, 4)).astype(np.float32)
VECTORS = np.random.default_rng(2).standard_normal((2, 5, 3)).astype(np.float32)
ANGLES = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, 2, np.nan], np.float32)
Y = np.random.default_rng(3).standard_normal((2, 5, 4)).astype(np.float32)
NAN = np.where(np.arange(40).reshape(2, 5, 4) == 7, np.nan, X).astype(np.float32)
ODD = X.copy()
ODD[0, :3, 1] = np.nan, np.inf, -np.inf
SQUARES = SQUARE @ SQUARE.transpose(0, 2, 1) + np.eye(4, dtype=np.float32)
SOUND = np.random.default_rng(2).standard_normal((2, 3, 40)).astype(np.float32)
WEIGHT, BIAS = [0.5, 1.5, -1.0, 2.0], [1.0, 0.0, -1.0, 0.5]


def array(value: Any) -> dict[str, Any]:
    return {"class_name": "__numpy__", "config": {"value": np.asarray(value).tolist(), "dtype": "float32"}}


def norm(x: np.ndarray, axes: tuple[int, ...], epsilon: float = 1e-7, mean: bool = True) -> np.ndarray:
    centred = x - x.mean(axes, keepdims=True) if mean else x
    return centred / np.sqrt((centred**2).mean(axes, keepdims=True) + epsilon)  # type: ignore[no-any-return]


def sparsemax(x: np.ndarray) -> np.ndarray:
    """As Keras has it: the sum of all the running sums."""
    z = -np.sort(-x, -1)
    running = z.cumsum(-1)
    within = z - (running - 1) / np.arange(1, x.shape[-1] + 1) > 0
    return np.maximum(x - (np.where(within, running, 0).sum(-1, keepdims=True) - 1) / within.sum(-1, keepdims=True), 0)  # type: ignore[no-any-return]


def stft(x: np.ndarray, length: int, stride: int, size: int, base: float = 0.5, center: bool = True) -> tuple[Any, Any]:
    """Real and imaginary parts of windows of the last axis, as Keras' torch backend gave them for the same sizes."""
    x = np.pad(x, [*[(0, 0)] * (x.ndim - 1), (size // 2, size // 2)], mode="reflect") if center else x
    before = (size - length) // 2
    window = np.pad(base - (1 - base) * np.cos(2 * np.pi * np.arange(length) / length), (before, size - length - before))
    starts = range(0, x.shape[-1] - size + 1, stride)
    made = np.stack([np.fft.rfft(x[..., s : s + size] * window) for s in starts], -2)
    return made.real.astype(np.float32), made.imag.astype(np.float32)


def updated(x: np.ndarray) -> np.ndarray:
    y = x.copy()
    y[0:1, 1:3, 2:4] = 7
    return y


# Class, arguments next to x, configuration, the input, and what comes out.
CASES: dict[str, tuple[str, list[Any], dict[str, Any], np.ndarray, Callable[[np.ndarray], Any]]] = {
    "sort": ("Sort", [], {"axis": 1}, X, lambda x: np.sort(x, 1)),
    "sort flat": ("Sort", [], {"axis": None}, X, lambda x: np.sort(x, None)),
    "softmax of all": ("Softmax", [], {"axis": None}, X[:1], lambda x: np.exp(x) / np.exp(x).sum()),
    "argsort": ("Argsort", [], {"axis": -1}, X, lambda x: np.argsort(x, -1, kind="stable").astype(np.int32)),
    "argsort of ties": ("Argsort", [], {"axis": -1}, np.round(X), lambda x: np.argsort(x, -1, kind="stable").astype(np.int32)),
    "median": ("Median", [], {"axis": 1}, X, lambda x: np.median(x, 1)),
    "median of two axes": ("Median", [], {"axis": [1, 2], "keepdims": True}, X, lambda x: np.median(x, (1, 2), keepdims=True)),
    "median with NaN": ("Median", [], {"axis": 1}, NAN, lambda x: np.median(x, 1)),
    "sparsemax": ("Sparsemax", [], {"axis": -1}, X, sparsemax),
    "diff": ("Diff", [], {"axis": 1}, X, lambda x: np.diff(x, axis=1)),
    "diff twice": ("Diff", [], {"axis": 2, "n": 2}, X, lambda x: np.diff(x, 2, 2)),
    "slice": ("Slice", [[0, 1, 0]], {"shape": [2, 3, 2]}, X, lambda x: x[0:2, 1:4, 0:2]),
    "slice update": ("SliceUpdate", [[0, 1, 2], [[[7, 7], [7, 7]]]], {}, X, updated),
    "nan to num": ("NanToNum", [], {}, ODD, np.nan_to_num),
    "nan to num of its own": (
        "NanToNum", [], {"nan": 1.5, "posinf": 7, "neginf": None}, ODD, lambda x: np.nan_to_num(x, nan=1.5, posinf=7)
    ),
    "diagonal": ("Diagonal", [], {"offset": 1, "axis1": 1, "axis2": 2}, SQUARE, lambda x: np.diagonal(x, 1, 1, 2)),
    "diagonal below": ("Diagonal", [], {"offset": -1, "axis1": 2, "axis2": 1}, X, lambda x: np.diagonal(x, -1, 2, 1)),
    "trace": ("Trace", [], {"axis1": 1, "axis2": 2}, SQUARE, lambda x: np.trace(x, axis1=1, axis2=2)),
    "det": ("Det", [], {}, SQUARE, np.linalg.det),
    "cross": ("Cross", [array([1, 2, 3])], {}, VECTORS, lambda x: np.cross(x, [1.0, 2, 3])),
    "arctan2": ("Arctan2", [array(ANGLES[:4])], {}, X, lambda x: np.arctan2(x, ANGLES[:4])),
    "rfft": ("RFFT", [], {}, X, lambda x: (np.fft.rfft(x).real, np.fft.rfft(x).imag)),
    "rfft of 8": ("RFFT", [], {"fft_length": 8}, X, lambda x: (np.fft.rfft(x, 8).real, np.fft.rfft(x, 8).imag)),
    "layer norm": ("LayerNorm", [array(WEIGHT), array(BIAS)], {"axis": -1}, X, lambda x: norm(x, (-1,)) * WEIGHT + BIAS),
    "layer norm of two axes": ("LayerNorm", [], {"axis": [1, 2], "epsilon": 0.5}, X, lambda x: norm(x, (1, 2), 0.5)),
    "rms norm": ("RMSNorm", [array(WEIGHT)], {"axis": -1}, X, lambda x: norm(x, (-1,), mean=False) * WEIGHT),
    "isfinite": ("Isfinite", [], {}, NAN, np.isfinite),
    "trunc": ("Trunc", [], {}, X * 3, np.trunc),
    "count": ("CountNonzero", [], {"axis": 1}, np.round(X), lambda x: np.count_nonzero(x, 1).astype(np.int32)),
    "degrees": ("Rad2deg", [], {}, X, np.rad2deg),
    "radians": ("Deg2rad", [], {}, X, np.deg2rad),
    "exp2": ("Exp2", [], {}, X, np.exp2),
    "cholesky": ("Cholesky", [], {}, SQUARES, np.linalg.cholesky),
    "cholesky, upper": ("Cholesky", [], {"upper": True}, SQUARES, lambda x: np.swapaxes(np.linalg.cholesky(x), -1, -2)),
    "stft": ("STFT", [], {"sequence_length": 8, "sequence_stride": 4, "fft_length": 16}, SOUND, lambda x: stft(x, 8, 4, 16)),
    "stft, hamming": (
        "STFT", [], {"sequence_length": 7, "sequence_stride": 3, "fft_length": 10, "window": "hamming", "center": False},
        SOUND, lambda x: stft(x, 7, 3, 10, 0.54, False),
    ),
    "stft, no window": (
        "STFT", [], {"sequence_length": 6, "sequence_stride": 6, "fft_length": 6, "window": None}, SOUND,
        lambda x: stft(x, 6, 6, 6, 1.0),
    ),
    "peak to peak": ("Ptp", [], {"axis": 1}, X, lambda x: np.ptp(x, 1)),
    "flipud": ("Flipud", [], {}, X, np.flipud),
    "fliplr": ("Fliplr", [], {}, X, np.fliplr),
    "outer": ("Outer", [array(WEIGHT)], {}, X, lambda x: np.outer(x, WEIGHT)),
}  # fmt: skip


def net(kind: str, args: list[Any], config: dict[str, Any], x: np.ndarray, results: int) -> fl.Model:
    made = functional(given(*x.shape[1:]), operation(kind, tensor("x"), *args, config=config), outputs=("it", 0, 0))
    made["config"]["output_layers"] = [["it", 0, i] for i in range(results)]
    return fl.load(archive(made))


@pytest.mark.parametrize("name", CASES)
def test_what_numpy_computes(name: str) -> None:
    kind, args, config, x, function = CASES[name]
    wanted = function(x)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    got = net(kind, args, config, x, len(wanted))(x)
    for result, want in zip(got if isinstance(got, tuple) else (got,), wanted, strict=True):
        assert result.shape == want.shape and result.dtype == (np.float32 if want.dtype.kind == "f" else want.dtype)
        np.testing.assert_allclose(result, want, rtol=1e-5, atol=1e-5)


def test_angles_of_every_quarter_and_of_zeros_and_infinities() -> None:
    y, x = (a.reshape(1, -1) for a in np.meshgrid(ANGLES, ANGLES))
    made = functional(
        given(64, name="x"), given(64, name="z"), operation("Arctan2", tensor("x"), tensor("z")), outputs=("it", 0, 0)
    )
    made["config"]["input_layers"] = [["x", 0, 0], ["z", 0, 0]]
    got, want = fl.load(archive(made))(y, x), np.arctan2(y, x)
    np.testing.assert_allclose(got, want, rtol=1e-6)
    np.testing.assert_array_equal(np.signbit(got) | np.isnan(got), np.signbit(want) | np.isnan(want))


def test_stacked_side_by_side_and_on_one_another() -> None:
    for kind, function in (("Hstack", np.hstack), ("Vstack", np.vstack)):
        made = functional(given(5, 4), operation(kind, [tensor("x"), tensor("x")]), outputs=("it", 0, 0))
        np.testing.assert_array_equal(fl.load(archive(made))(X), function([X, X]))


@pytest.mark.parametrize(
    ("kind", "args", "config", "text"),
    [
        ("Slice", [[0, 1, 0]], {"shape": [2, 9, 2]}, "a slice to 10 along axis 1 of 5"),
        ("Slice", [[0, 1]], {"shape": [2, 3, 2]}, "start_indices"),
        ("SliceUpdate", [[0, -1, 0], [[[7.0]]]], {}, "start_indices"),
        ("Cross", [array([1, 2])], {}, "three elements"),
        ("Cholesky", [], {}, "a matrix of 5 rows and 4 columns"),
        ("STFT", [], {"sequence_length": 3, "sequence_stride": 1, "fft_length": 4, "window": "kaiser"}, "the window 'kaiser'"),
        ("STFT", [], {"sequence_length": 5, "sequence_stride": 0, "fft_length": 8}, "sequence_stride=0"),
    ],
)
def test_what_is_refused(kind: str, args: list[Any], config: dict[str, Any], text: str) -> None:
    with pytest.raises((fl.FormatError, fl.UnsupportedError), match=text):
        net(kind, args, config, X, 1)


FUNCTION = {"module": "builtins", "class_name": "function", "config": "up", "registered_name": "function"}
CODE = {"class_name": "__lambda__", "config": {"code": "4wAAAA==", "defaults": None, "closure": None}}


@pytest.mark.parametrize("function", [FUNCTION, CODE], ids=["by name", "as code"])
def test_operations_that_are_given_functions_say_so(function: dict[str, Any]) -> None:
    """Files that Keras writes and does not load again: one without the code, the other only if it is told to trust it."""
    kinds = ["AssociativeScan", "Cond", "ForiLoop", "JVP", "Map", "Scan", "Switch", "VectorizedMap", "WhileLoop"]
    for kind in kinds:
        for module in (True, False):
            made = functional(given(5, 4), operation(kind, tensor("x"), function, function, module=module), outputs=("it", 0, 0))
            with pytest.raises(fl.UnsupportedError, match=rf"a function of Python's own \({kind}\), which is never run: .*it"):
                fl.load(archive(made))
