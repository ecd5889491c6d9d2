"""Operators that rules for ONNX Runtime's own are written with; test_contrib.py holds those against its answers."""

from __future__ import annotations

import numpy as np

from . import Case, case, numbers

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


def grouped(label: str, steps: int, past: int, ends: list[int], total: int, native: bool = True, **a: int) -> Case:
    """Two heads of queries share one of keys; each entry has as many keys as `ends` says, and one more."""
    q, k, v = (np.sin(numbers(2, steps, w) * by).astype(np.float32) for w, by in ((8, 1.7), (4, 0.9), (4, 0.3)))
    cache = [np.cos(numbers(2, 1, past, 4) * by).astype(np.float32) for by in (1.1, 0.7)]
    present = max(past, total)
    wholes = [np.zeros((2, 1, present, 4)) for _ in range(2)]
    out = np.zeros((2, steps, 2, 4))
    for n in range(2):
        first = 0 if steps == total else ends[n] + 1 - steps
        for whole, old, new in zip(wholes, cache, (k, v), strict=True):
            whole[n, 0, :first], whole[n, 0, first : first + steps] = old[n, 0, :first], new[n]
        for s, h in np.ndindex(steps, 2):
            seen = min(first + s, ends[n]) + 1
            low = max(0, first + s + 1 - a.get("local_window_size", 99))
            e = np.exp(wholes[0][n, 0, low:seen] @ q[n, s, h * 4 : h * 4 + 4] / 2)
            out[n, s, h] = e / e.sum() @ wholes[1][n, 0, low:seen]
    inputs = [q, k, v, *(cache if past else [None, None]), np.array(ends, np.int32), np.array(total, np.int32)]
    want = [x.astype(np.float32) for x in (out.reshape(2, steps, 8), *wholes)]
    return case("GroupQueryAttention", label, inputs, *want, data=6, native=native, ulp=64, num_heads=2, kv_num_heads=1, **a)


CASES += [
    grouped("first", 3, 0, [2, 1], 3),
    grouped("first, a cache to fill", 3, 5, [2, 2], 3),
    grouped("one more", 1, 4, [4, 2], 5),
    grouped("one more, a window", 1, 6, [4, 2], 5, local_window_size=2),
    grouped("two more", 2, 4, [4, 3], 5, native=False),
]


def windowed(label: str, values: list[list[float]], cache: list[list[float]], ends: list[int], *want: list[list[float]]) -> Case:
    """One head of width 1; all keys are alike, so that the result is the mean of the values in a window of 2."""
    v, past = np.array(values, np.float32)[..., None], np.array(cache, np.float32)[:, None, :, None]
    given = [v * 0, v * 0, v, past * 0, past, np.array(ends, np.int32), np.array(max(ends) + 1, np.int32)]
    after = np.array(want[1], np.float32)[:, None, :, None]
    return case("GroupQueryWindow", label, given, np.array(want[0], np.float32)[..., None], after * 0, after, data=6, ulp=64,
                num_heads=1, kv_num_heads=1, local_window_size=2)  # fmt: skip


def stored(label: str, bits: int, past: list[int], value: float, want: list[int], result: float) -> Case:
    """One head of width 2; all keys are 0, so that the result is the mean of the values, which have two equal features."""
    cache = np.array(past, np.int8 if bits == 8 else np.uint8).reshape(1, 1, -1, 2 if bits == 8 else 1)
    nothing, v, step = np.zeros((1, 1, 2), np.float32), np.full((1, 1, 2), value, np.float32), np.array([0.5], np.float32)
    none = cache * 0 if bits == 8 else cache * 0 + np.uint8(0x88)
    ends, total = np.array([cache.shape[2]], np.int32), np.array(cache.shape[2] + 1, np.int32)
    given = [nothing, nothing, v, none, cache, ends, total, *(None,) * 5, step, step]
    after = np.array(want, cache.dtype).reshape(1, 1, -1, cache.shape[3])
    zeros = np.zeros_like(after) if bits == 8 else np.full_like(after, 0x88)
    made = case("GroupQueryQuantized", label, given, np.full((1, 1, 2), result, np.float32), zeros, after, data=6, ulp=64,
                num_heads=1, kv_num_heads=1, bits=bits)  # fmt: skip
    return made._replace(want=(made.want[0], zeros, after))


CASES += [
    stored("bytes", 8, [2, 2, -4, -4], 3.2, [2, 2, -4, -4, 6, 6], (1 - 2 + 3) / 3),
    stored("beyond", 8, [0, 0], 1e6, [0, 0, 127, 127], 63.5 / 2),
    stored("two a byte", 4, [0xAA, 0x44], -1.3, [0xAA, 0x44, 0x55], (1 - 2 - 1.5) / 3),
]

# With room for three, the third token more than that makes two be forgotten.
CASES += [
    windowed("a prompt", [[1, 2, 3, 4, 5]], [[9, 9, 9]], [4], [[1, 1.5, 2.5, 3.5, 4.5]], [[3, 4, 5]]),
    windowed("one more, entries of two lengths", [[7], [7]], [[1, 3, 9], [1, 3, 5]], [2, 3], [[5], [6]], [[1, 3, 7], [5, 7, 0]]),
    windowed("two more", [[7, 9]], [[1, 3, 5]], [4], [[6, 8]], [[5, 7, 9]]),
]
