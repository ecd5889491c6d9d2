"""Operators that rules for ONNX Runtime's own are written with; test_contrib.py holds those against its answers."""

from __future__ import annotations

import numpy as np

from . import case, numbers

_A, _B = numbers(2, 3, 4) / 8 - 1, numbers(2, 5, 4) / 16 - 1
_T = _B.swapaxes(1, 2).copy()
_X, _BIAS = numbers(2, 3, 4), numbers(12) - 5
_HEADS = numbers(2, 2, 3, 4)
_SQUARE = (numbers(2, 1, 6, 6) % 3 > 0).astype(np.int32)
_PAST = numbers(2, 2, 2, 4)


def masked(seen: np.ndarray) -> np.ndarray:
    return np.where(seen, np.float32(0), np.float32(-7))


_FIVE = np.arange(5)
_MASKED = {"data": 4, "native": True, "filter": -7.0}
_ONES = np.array([[1, 1, 0, 1, 0], [0, 0, 0, 0, 1]], np.int32)
_PAIRS = (numbers(2, 3, 5) % 2).astype(np.int32)
CASES = [
    case("FusedMatMul", "plain, scaled", [_A, _T], 0.5 * _A @ _T, data=2, native=True, ulp=32, alpha=0.5),
    case("FusedMatMul", "both turned", [_A.swapaxes(1, 2), _B], _A @ _T, data=2, native=True, ulp=32, transA=1, transB=1),
    case("FusedMatMul", "a weight", [_A, _B[0]], 2 * _A @ _B[0].T, data=1, native=True, ulp=32, transB=1, alpha=2.0),
    case("FusedMatMul", "one matrix for all", [_A, _B[:1]], _A @ _B[:1].swapaxes(1, 2), data=2, native=True, ulp=32, transB=1),
    case("FusedMatMul", "a vector", [_A, _B[0, 0]], _A @ _B[0, 0], data=2, ulp=32),
    case(
        "FusedMatMul", "the batch second", [_A.swapaxes(0, 1).copy(), _B], _A @ _T, data=2, native=True, ulp=32,
        transBatchA=1, transB=1,
    ),
    case("HeadBias", "queries", [_X, _BIAS], _X + _BIAS[:4], data=2, native=True, part=0),
    case("HeadBias", "keys", [_X, _BIAS], _X + _BIAS[4:8], data=2, native=True, part=1),
    case("HeadBias", "values", [_X[..., :3].copy(), _BIAS], _X[..., :3] + _BIAS[9:], data=2, native=True, part=2),
    case("HeadBias", "heads", [_HEADS, _BIAS], _HEADS, data=2, native=True, part=1),
    case("PaddingMask", "each key", [_ONES, _X, numbers(2, 5, 4)], masked(_ONES > 0)[:, None, None], **{**_MASKED, "data": 3}),
    case("PaddingMask", "each pair", [_PAIRS, _X, numbers(2, 5, 4)], masked(_PAIRS > 0)[:, None], **{**_MASKED, "data": 3}),
    case("PaddingMask", "keys with heads, past", [_ONES, _X, _HEADS, _PAST], masked(_ONES > 0)[:, None, None], **_MASKED),
    case("PaddingMask", "a square, past", [_SQUARE, _X, _X, _PAST], masked(_SQUARE[:, :, 2:5, :5] > 0), **_MASKED),
    case(
        "PaddingMask", "ends", [np.array([3, 0], np.int32), _X, numbers(2, 5, 4)],
        masked(np.array([[3], [0]]) > _FIVE)[:, None, None], **{**_MASKED, "data": 3},
    ),
    case(
        "PaddingMask", "ends and starts", [np.array([3, 5, 1, 4], np.int32), _X, numbers(2, 5, 4)],
        masked((np.array([[3], [5]]) > _FIVE) & (np.array([[1], [4]]) <= _FIVE))[:, None, None], **{**_MASKED, "data": 3},
    ),
    case("Positions", "each", [np.array([[4, 1, 2], [0, 1, 9]]), _X], np.array([[4, 1, 2], [0, 1, 9]]), data=2, native=True),
    case("Positions", "from one on", [np.array([4]), _HEADS], np.array([[4, 5, 6], [4, 5, 6]]), data=2),
]  # fmt: skip
