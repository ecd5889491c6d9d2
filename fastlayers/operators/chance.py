"""Random numbers: Random*, Bernoulli, Multinomial and Dropout. Another result at every run, unless the node has a seed.

With a seed the values are those of numpy's ``RandomState(seed)``, as in onnx's own evaluator; other engines have others.
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from ._base import BOOL, Spec, View, register
from ._traits import Traits
from .activation import wide
from .narrow import NARROW, narrowed
from .shapes import dtype_of, like, need_kind, need_number, scalar

__all__: list[str] = []

Arrays = tuple[np.ndarray, ...]


_own: tuple[int, np.random.Generator] | None = None  # the process, whose children need others, and what it draws from


def _draw(n: View, kind: str, shape: tuple[int, ...], dtype: Any = np.float64) -> np.ndarray:
    """Numbers of a "normal" or "uniform" distribution that no other call has, or those of the seed."""
    global _own
    seed = n.get("seed")
    if seed is None or (isinstance(seed, float) and math.isnan(seed)):
        if _own is None or _own[0] != os.getpid():
            _own = os.getpid(), np.random.Generator(np.random.SFC64())
        generator = _own[1]  # of any number of threads at once
        return generator.standard_normal(shape, dtype) if kind == "normal" else generator.random(shape, dtype)
    # Any number is a seed; usual ones are whole.
    state = np.random.RandomState(int(seed) % (1 << 32) if math.isfinite(seed) else int(seed > 0))
    return np.asarray(state.standard_normal(shape) if kind == "normal" else state.random_sample(shape))


def _made(n: View, numbers: np.ndarray, default: np.dtype[Any]) -> Arrays:
    number = n.get("dtype")
    if number in NARROW:
        return (narrowed(numbers, number),)
    return (np.asarray(numbers).astype(_dtype(n, default), copy=False),)


def _dtype(n: View, default: np.dtype[Any]) -> np.dtype[Any]:
    number = n.get("dtype")
    return default if not number else dtype_of(n, number)


# ---- Random* ---------------------------------------------------------------------------------------------------------


def _shape(n: View) -> tuple[int, ...]:
    shape = tuple(int(d) for d in n.get("shape", ()))
    if any(d < 0 for d in shape):
        raise n.fail(f"shape is {shape}: expected sizes of at least 0")
    return shape


def _floats(n: View, spec: Spec) -> list[Spec]:
    if spec.dtype.kind != "f":
        raise n.wrong_dtype(f"the result would have dtype {spec.dtype}: expected floats")
    return [spec]


def _normal(n: View, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    scale, mean, drawn = n.get("scale", 1.0), n.get("mean", 0.0), _draw(n, "normal", shape, dtype)
    return drawn if scale == 1 and mean == 0 else np.asarray(drawn * scale + mean)


def _uniform(n: View, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    low, high = n.get("low", 0.0), n.get("high", 1.0)
    drawn = _draw(n, "uniform", shape, dtype if high - low < 1e38 else np.float64)  # where float32 has no such number
    return drawn if low == 0 and high == 1 else np.asarray(drawn * (high - low) + low)


def _drawn(n: View, function: Any, shape: tuple[int, ...], default: np.dtype[Any]) -> Arrays:
    single = n.get("dtype") not in NARROW and _dtype(n, default) == F32
    return _made(n, function(n, shape, np.float32 if single else np.float64), default)


F32 = np.dtype(np.float32)
RANDOM = Traits(volatile=True)
for _name, _function in {"RandomNormal": _normal, "RandomUniform": _uniform}.items():

    def _run(n: View, function: Any = _function) -> Arrays:
        return _drawn(n, function, _shape(n), F32)

    def _like_run(n: View, x: np.ndarray, function: Any = _function) -> Arrays:
        return _drawn(n, function, n.sizes(0), n.spec(0).dtype)

    register(_name, lambda n: _floats(n, Spec(_shape(n), _dtype(n, F32))), _run, traits=RANDOM)
    register(f"{_name}Like", lambda n: _floats(n, like(n.spec(0), _dtype(n, n.spec(0).dtype))), _like_run, traits=RANDOM)

# ---- Bernoulli, Multinomial ------------------------------------------------------------------------------------------


def _bernoulli_infer(n: View) -> list[Spec]:
    """1 with the probability that x has, else 0."""
    need_kind(n, "f")
    return [like(n.spec(0), _dtype(n, n.spec(0).dtype))]


def _bernoulli_run(n: View, x: np.ndarray) -> Arrays:
    if not ((x >= 0) & (x <= 1)).all():
        raise n.fail("x has values that are no probabilities: expected 0 to 1")
    return _made(n, _draw(n, "uniform", x.shape) < x, x.dtype)


def _multinomial_infer(n: View) -> list[Spec]:
    """x (batch, classes), logarithms of shares: indices of classes (batch, sample_size)."""
    need_kind(n, "f")
    x, count = n.shape(0), n.get("sample_size", 1)
    if (x is not None and (len(x) != 2 or x[1] == 0)) or count < 0 or n.get("dtype", 6) not in (6, 7):
        raise n.fail(
            f"x has shape {x}, sample_size is {count}: expected (batch, classes), at least 0 and a dtype of int32 or int64"
        )
    return [Spec((None if x is None else x[0], count), dtype_of(n, n.get("dtype", 6)))]


def _multinomial_run(n: View, x: np.ndarray) -> Arrays:
    (spec,) = _multinomial_infer(n)
    y = x.astype(np.float64)
    share = np.exp(y - y.max(axis=1, keepdims=True))
    total = np.cumsum(share, axis=1)
    picks = _draw(n, "uniform", (len(x), n.get("sample_size", 1))) * total[:, -1:]
    found = [np.searchsorted(row, pick, side="right") for row, pick in zip(total, picks, strict=True)]
    made = np.minimum(np.array(found, np.int64).reshape(picks.shape), x.shape[1] - 1)
    return (made.astype(spec.dtype),)


register("Bernoulli", _bernoulli_infer, _bernoulli_run, traits=RANDOM)
register("Multinomial", _multinomial_infer, _multinomial_run, traits=RANDOM)

# ---- Dropout ---------------------------------------------------------------------------------------------------------


def _dropout_infer(n: View) -> list[Spec]:
    """x, or while training x / (1 - ratio) with a probability of 1 - ratio, else 0; and where it is not 0."""
    need_number(n, 1)
    return [n.spec(0), Spec(n.shape(0), BOOL)]


def _dropout_run(n: View, x: np.ndarray, ratio: np.ndarray | None = None, training: np.ndarray | None = None) -> Arrays:
    share = 0.5 if ratio is None else float(scalar(n, 1, ratio))
    if not 0 <= share < 1:
        raise n.fail(f"ratio is {share}: expected from 0 to less than 1")
    if training is None or not training.any() or not share:
        return x, np.ones(x.shape, BOOL)
    kept = _draw(n, "uniform", x.shape) >= share
    y = wide(x)
    return np.where(kept, y * y.dtype.type(1 / (1 - share)), y.dtype.type(0)).astype(x.dtype, copy=False), kept


def _dropout_lower(n: View, b: Any) -> Any:
    training = n.value(2)
    if n.has(2) and (training is None or training.any()):
        return False
    b.alias(0, b.input(0))
    if n.wants(1):
        b.alias(1, b.constant(np.ones(n.sizes(0), BOOL)))
    return None


def _dropped_nothing(n: View, result: Spec) -> bool:
    """Whether it is known not to be training."""
    training = n.value(2)
    return not n.has(2) or (training is not None and not training.any())


# While it trains, what is dropped depends on the order of the elements in memory: so its layout stays.
DROPOUT = Traits(elementwise=True, time="elementwise", work="elements", nothing=_dropped_nothing, volatile=True)
register("Dropout", _dropout_infer, _dropout_run, _dropout_lower, DROPOUT)
