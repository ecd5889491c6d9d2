"""Products, normalizations, softmax and attention. Products of small integers are exact in any order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import Case, array, numbers
from . import case as exact
from .windows import RELU, small

INF, NAN = math.inf, math.nan


def case(op: str, label: str, inputs: list[Any], *want: Any, **attributes: Any) -> Case:
    """As `exact`; what was computed in float64 here is rounded."""
    rounded = (w.astype(np.float32) if isinstance(w, np.ndarray) and w.dtype == np.float64 else w for w in want)
    return exact(op, label, inputs, *rounded, **attributes)


A, B = small(3, 5), small(5, 4, seed=1)

GEMM = [
    case("Gemm", "plain", [A, B], A @ B, native=True),
    case("Gemm", "bias", [A, B, small(4)], A @ B + small(4), native=True),
    case("Gemm", "transB", [A, small(4, 5), small(1, 4)], A @ small(4, 5).T + small(1, 4), transB=1, native=True),
    case("Gemm", "transA", [small(5, 3), B], small(5, 3).T @ B, transA=1, native=True),
    case("Gemm", "both", [small(5, 3), small(4, 5), array(2.0)], small(5, 3).T @ small(4, 5).T + 2, transA=1, transB=1,
         native=True),
    case("Gemm", "alpha and beta", [A, B, small(4)], 3 * (A @ B) - 2 * small(4), alpha=3.0, beta=-2.0, native=True),
    case("Gemm", "bias of one", [A, B, array([3.0])], A @ B + 3, native=True),
    case("Gemm", "bias a row", [A, B, small(3, 1)], A @ B + small(3, 1)),
    case("Gemm", "bias of all", [A, B, small(3, 4)], A @ B + 3 * small(3, 4), beta=3.0),
    case("Gemm", "no rows", [A[:0], B, small(4)], np.zeros((0, 4)), native=True),
    case("Gemm", "nothing to sum", [np.zeros((2, 0), np.float32), np.zeros((0, 3), np.float32), array([1.0, 2.0, 3.0])],
         [[1, 2, 3], [1, 2, 3]], native=True),
    case("Gemm", "int32", [array([[1, 2]], np.int32), array([[3], [4]], np.int32)], [[11]]),
]  # fmt: skip


def matmul(label: str, left: tuple[int, ...], right: tuple[int, ...], native: bool = True) -> Case:
    """numpy's einsum, batches written out."""
    a, b = small(*left), small(*right, seed=1)
    batch = np.broadcast_shapes(left[:-2], right[:-2])
    want = np.einsum(
        "...mk,...kn->...mn", np.broadcast_to(a, (*batch, *a.shape[-2:])), np.broadcast_to(b, (*batch, *b.shape[-2:]))
    )
    return case("MatMul", label, [a, b], want, data=2, native=native)


PRODUCTS = [
    matmul("plain", (3, 5), (5, 4)),
    matmul("batches", (2, 3, 5), (2, 5, 4)),
    matmul("one right for all", (2, 3, 5), (5, 4)),
    matmul("one left for all", (3, 5), (2, 5, 4)),
    matmul("one of a batch", (1, 3, 5), (6, 5, 4)),
    matmul("batches of two axes", (2, 3, 4, 5), (2, 3, 5, 2)),
    matmul("batches that broadcast", (2, 1, 4, 5), (3, 5, 2)),
    matmul("batches that broadcast both ways", (2, 1, 4, 5), (1, 3, 5, 2)),
    matmul("batches that broadcast inside", (2, 3, 2, 4, 5), (3, 1, 5, 2)),
    matmul("row", (1, 70), (70, 33)),
    matmul("column", (33, 70), (70, 1)),
    matmul("nothing to sum", (2, 3, 0), (2, 0, 4)),
    matmul("no batch", (0, 3, 2), (0, 2, 4)),
    matmul("no rows", (2, 0, 2), (2, 2, 4)),
    case("MatMul", "vector left", [array([1.0, 2.0]), numbers(2, 3)], [6, 9, 12], data=2),
    case("MatMul", "vector right", [numbers(2, 3), array([1.0, 2.0, 3.0])], [8, 26], data=2),
    case("MatMul", "vectors", [array([1.0, 2.0]), array([3.0, 4.0])], array(11.0), data=2),
    case("MatMul", "vector and batch", [array([1.0, 2.0]), numbers(2, 2, 2)], [[4, 7], [16, 19]], data=2),
    case("MatMul", "fixed weight", [numbers(2, 2, 3), numbers(3, 2)], numbers(2, 2, 3) @ numbers(3, 2), native=True),
    case("MatMul", "vector and fixed weight", [array([1.0, 2.0]), numbers(2, 3)], [6, 9, 12], native=True),
    case("MatMul", "fixed vector", [numbers(2, 3), array([1.0, 2.0, 3.0])], [8, 26]),
    case("MatMul", "infinity", [array([[INF, 1.0]]), array([[0.0, 1.0], [1.0, 2.0]])], [[NAN, INF]], data=2, native=True),
    case("MatMul", "int64", [array([[1 << 40, 1]], np.int64), array([[1 << 20], [3]], np.int64)], [[(1 << 60) + 3]], data=2),
    case("Linear", "plain", [A, B.T.copy()], A @ B, native=True),
    case("Linear", "bias, relu", [A, B.T.copy(), small(4)], np.maximum(A @ B + small(4), 0), activation=RELU, native=True),
    case("Linear", "3 axes", [small(2, 3, 5), B.T.copy(), small(4)], small(2, 3, 5) @ B + small(4), native=True),
    case("Linear", "1 axis", [A[0].copy(), B.T.copy()], A[0] @ B, native=True),
    case("Linear", "residual", [A, B.T.copy(), None, small(3, 4)], np.maximum(A @ B + small(3, 4), 0), activation=RELU,
         native=True),
    case("Linear", "residual that is broadcast", [A, B.T.copy(), small(4), small(3, 1)], np.maximum(A @ B + small(4) + small(3,
         1), 0),
         activation=RELU, native=True),
    case("Linear", "no rows", [A[:0], B.T.copy(), small(4)], np.zeros((0, 4)), native=True),
]  # fmt: skip

# ---- softmax -------------------------------------------------------------------------------------------------------------

S = small(2, 3, 4, 5)


def softmax(x: np.ndarray, axes: int | tuple[int, ...]) -> np.ndarray:
    e = np.exp(x.astype(float))
    return e / e.sum(axes, keepdims=True)  # type: ignore[no-any-return]


def softmaxes() -> list[Case]:
    found: list[Case] = []
    for op, function in (("Softmax", lambda y: y), ("LogSoftmax", np.log)):
        for axis in (-1, 0, 1, 2):
            found.append(case(op, f"axis {axis}", [S], function(softmax(S, axis)), native=True, ulp=8, axis=axis))
        found += [
            case(op, "no axis given", [S], function(softmax(S, -1)), native=True, ulp=8),
            case(op, "flatten", [S], function(softmax(S, (1, 2, 3))), native=True, ulp=8, axis=1, flatten=True),
            case(op, "flatten, axis 2", [S], function(softmax(S, (2, 3))), native=True, ulp=8, axis=2, flatten=True),
            case(op, "flatten, axis -1", [S], function(softmax(S, -1)), native=True, ulp=8, axis=-1, flatten=True),
            case(op, "one number", [array([[3.0], [-200.0]])], function(array([[1.0], [1.0]])), native=True),
            case(op, "nothing", [S[:, :0]], S[:, :0], native=True, axis=1),
            case(op, "scalar", [array(3.0)], function(array(1.0)), native=True),
        ]
    return [
        *found,
        case("Softmax", "large", [[1000.0, 1001.0, -INF]], [1 / (1 + math.e), math.e / (1 + math.e), 0], native=True, ulp=8),
        case("LogSoftmax", "large", [[1000.0, 1000.0]], [-math.log(2), -math.log(2)], native=True, ulp=8),
        case("Hardmax", "last", [[[1.0, 3.0, 3.0], [5.0, 2.0, 1.0]]], [[0, 1, 0], [1, 0, 0]]),
        case("Hardmax", "axis 0", [[[1.0, 3.0, 3.0], [5.0, 2.0, 3.0]]], [[0, 1, 1], [1, 0, 0]], axis=0),
        case("Hardmax", "flatten", [[[[1.0, 3.0], [3.0, 2.0]]]], [[[0, 1], [0, 0]]], axis=1, flatten=True),
    ]


# ---- normalizations ------------------------------------------------------------------------------------------------------

X = small(2, 4, 3, 5, low=-9, high=10)
SCALE, SHIFT = array([1.0, -2.0, 0.5, 3.0]), array([0.0, 1.0, -1.0, 2.0])
MEAN, VARIANCE = array([0.5, -1.0, 2.0, 0.0]), array([1.0, 4.0, 0.25, 9.0])


def channel(values: Any) -> np.ndarray:
    return np.asarray(values, float).reshape(-1, 1, 1)


def normalized(x: np.ndarray, axes: tuple[int, ...], epsilon: float = 1e-5) -> np.ndarray:
    values = x.astype(float)
    centred = values - values.mean(axes, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axes, keepdims=True) + epsilon)  # type: ignore[no-any-return]


def batch(x: np.ndarray, epsilon: float) -> np.ndarray:

    return (x - channel(MEAN)) / np.sqrt(channel(VARIANCE) + epsilon) * channel(SCALE) + channel(SHIFT)  # type: ignore[no-any-return]


GROUPED = normalized(X.reshape(2, 2, -1), (2,)).reshape(X.shape)
W5, B5 = array([1.0, 2.0, -1.0, 0.5, 0.0]), array([0.0, 1.0, 2.0, 3.0, 4.0])
ROWS = normalized(X, (3,))
RMS = X / np.sqrt((X.astype(float) ** 2).mean(3, keepdims=True) + 1e-5)

NORMS = [
    case("BatchNormalization", "plain", [X, SCALE, SHIFT, MEAN, VARIANCE], batch(X, 1e-5), native=True, ulp=32),
    case("BatchNormalization", "epsilon", [X, SCALE, SHIFT, MEAN, VARIANCE], batch(X, 0.5), native=True, ulp=32, epsilon=0.5),
    case("BatchNormalization", "2 axes", [X[:, :, 0, 0].copy(), SCALE, SHIFT, MEAN, VARIANCE], batch(X, 1e-5)[:, :, 0, 0],
         native=True, ulp=32),
    case("BatchNormalization", "no images", [X[:0], SCALE, SHIFT, MEAN, VARIANCE], X[:0], native=True),
    case("Affine", "plain", [X, SCALE, SHIFT], X * channel(SCALE) + channel(SHIFT), native=True, ulp=2),
    case("Affine", "relu", [X, SCALE, SHIFT], np.maximum(X * channel(SCALE) + channel(SHIFT), 0), native=True, ulp=2,
         activation=RELU),
    case("Affine", "last", [np.moveaxis(X, 1, -1), SCALE, SHIFT], np.moveaxis(X, 1, -1) * SCALE + SHIFT, native=True, ulp=2,
         axis=-1),
    case("LayerNormalization", "plain", [X, W5, B5], ROWS * W5 + B5, native=True, ulp=32),
    case("LayerNormalization", "no bias", [X, W5], ROWS * W5, native=True, ulp=32),
    case("LayerNormalization", "axis 2", [X, numbers(3, 5), numbers(3, 5)], normalized(X, (2, 3)) * numbers(3, 5) + numbers(3,
         5), native=True,
         ulp=64, axis=2),
    case("LayerNormalization", "axis -3, epsilon", [X, np.ones((4, 3, 5), np.float32)], normalized(X, (1, 2, 3), 0.5),
         native=True, ulp=32,
         axis=-3, epsilon=0.5),
    case("LayerNormalization", "scale of one", [X, array([2.0])], ROWS * 2, ulp=32),
    case("LayerNormalization", "mean and root", [X, W5], ROWS * W5, X.astype(float).mean(3, keepdims=True).astype(np.float32),
         (1 / np.sqrt(X.astype(float).var(3, keepdims=True) + 1e-5)).astype(np.float32), ulp=32),
    case("LayerNormalization", "nothing", [X[:0], W5, B5], X[:0], native=True),
    case("RMSNormalization", "plain", [X, W5], RMS * W5, native=True, ulp=32),
    case("RMSNormalization", "axis 1, epsilon", [X, np.ones((4, 3, 5), np.float32)],
         X / np.sqrt((X.astype(float) ** 2).mean((1, 2, 3), keepdims=True) + 0.5), native=True, ulp=32, axis=1, epsilon=0.5),
    case("GroupNormalization", "plain", [X, SCALE, SHIFT], GROUPED * channel(SCALE) + channel(SHIFT), ulp=32, num_groups=2),
    case("GroupNormalization", "one group", [X, SCALE, SHIFT], normalized(X, (1, 2, 3), 0.5) * channel(SCALE) + channel(SHIFT),
         ulp=32,
         num_groups=1, epsilon=0.5),
    case("InstanceNormalization", "plain", [X, SCALE, SHIFT], normalized(X, (2, 3)) * channel(SCALE) + channel(SHIFT), ulp=32),
    case("InstanceNormalization", "1 axis", [X[:, :, 0].copy(), SCALE, SHIFT],
         normalized(X[:, :, 0], (2,), 0.5) * SCALE[:, None] + SHIFT[:, None], ulp=32, epsilon=0.5),
]  # fmt: skip


def response(size: int, before: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> np.ndarray:
    """Channel by channel; `before` of the `size` channels come before the one in question."""
    y = np.zeros(X.shape)
    for c in range(X.shape[1]):
        squares = sum(X[:, k].astype(float) ** 2 for k in range(c - before, c - before + size) if 0 <= k < X.shape[1])
        y[:, c] = X[:, c] / (bias + alpha / size * squares) ** beta
    return y


RESPONSES = [
    case("LRN", "plain", [X], response(3, 1), native=True, ulp=16, size=3),
    case("LRN", "even size", [X], response(4, 1, 0.5, 0.6, 2.0), native=True, ulp=16, size=4, alpha=0.5, beta=0.6, bias=2.0),
    case("LRN", "size 1", [X], response(1, 0, 1.0, 0.5), native=True, ulp=16, size=1, alpha=1.0, beta=0.5),
    case("LRN", "more than channels", [X], response(9, 4, 1.0, 1.0), native=True, ulp=16, size=9, alpha=1.0, beta=1.0),
    case("LRN", "last", [np.moveaxis(X, 1, -1)], np.moveaxis(response(3, 1), 1, -1), native=True, ulp=16, size=3, x_last=True),
]

# ---- attention -----------------------------------------------------------------------------------------------------------


def attention(
    label: str,
    q: tuple[int, ...],
    k: tuple[int, ...],
    v: tuple[int, ...],
    mask: Any = None,
    native: bool = True,
    **attributes: Any,
) -> Case:
    """softmax(scale q kᵀ + mask) v, with k (..., t, d)."""
    a, b, c = small(*q), small(*k, seed=1), small(*v, seed=2)
    scores = np.einsum("...sd,...td->...st", a, b).astype(float) * attributes.get("scale", 1.0)
    want = softmax(scores if mask is None else scores + mask, -1) @ c
    keys = np.ascontiguousarray(np.swapaxes(b, -1, -2)) if attributes.get("transposed") else b
    inputs = [a, keys, c] if mask is None else [a, keys, c, array(mask)]
    return case("ScaledAttention", label, inputs, want, data=len(inputs), native=native, ulp=64, **attributes)


HIDDEN = np.triu(np.full((3, 5), -INF, np.float32), 3)

ATTENTION = [
    attention("3 axes", (2, 3, 4), (2, 5, 4), (2, 5, 6), scale=0.5),
    attention("4 axes", (2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 6), scale=0.25),
    attention("transposed", (2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 6), scale=0.5, transposed=True),
    attention("mask", (2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 6), small(2, 1, 3, 5), scale=0.5),
    attention("mask of keys", (2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 6), small(2, 1, 1, 5), transposed=True),
    attention("hidden", (2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 6), HIDDEN, scale=0.5),
    attention("mask that is larger", (1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 6), small(3, 1, 3, 5), native=False),
    attention("shared values", (2, 3, 4), (2, 5, 4), (1, 5, 6), native=False),
    attention("shared keys", (2, 3, 4), (1, 5, 4), (1, 5, 6), native=False),
    attention("one key", (1, 1, 4), (1, 1, 4), (1, 1, 3)),
    attention("no queries", (2, 0, 4), (2, 5, 4), (2, 5, 3)),
    case("Activate", "relu", [[-1.0, 0.0, 2.0]], [0, 0, 2], activation=RELU, native=True),
    case("Activate", "clip", [[[-1.0, 0.5, 2.0]]], [[0, 0.5, 1]], activation=(2, 0.0, 1.0), native=True),
    case("Activate", "softplus", [[-1.0, 0.0, 2.0]], [math.log1p(math.exp(2 * v)) / 2 for v in (-1, 0, 2)], activation=(13, 2.0,
         20.0),
         native=True, ulp=8),
]  # fmt: skip

CASES = [*GEMM, *PRODUCTS, *softmaxes(), *NORMS, *RESPONSES, *ATTENTION]
