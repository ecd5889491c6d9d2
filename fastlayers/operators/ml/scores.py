"""Transforms of a model's scores that networks do not have: probit, softmax without zeros, probabilities of pairs of classes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...kernels.reference.classical import pair_probabilities
from .._base import FLOAT32, Spec, View, register
from .._traits import EACH, PLAIN
from ..shapes import like, need_kind

__all__: list[str] = []

Arrays = tuple[np.ndarray, ...]
# Of the approximation of the inverse error function that ai.onnx.ml's engines share (Winitzki's).
_A = 0.147


def _infer(n: View) -> list[Spec]:
    need_kind(n, "f", 0)
    return [n.spec(0)]


def _probit_run(n: View, x: np.ndarray) -> Arrays:
    """The inverse of the normal distribution's integral: sqrt(2) erfinv(2x - 1)."""
    y = 2 * x.astype(np.float64) - 1  # roots cancel near 1/2
    log = np.log((1 - y) * (1 + y))
    v = 2 / (math.pi * _A) + log / 2
    return ((math.sqrt(2) * np.sign(y) * np.sqrt(np.sqrt(v * v - log / _A) - v)).astype(x.dtype),)


def _softmax_zero_run(n: View, x: np.ndarray) -> Arrays:
    """Softmax of the scores that are not 0; those that are stay it."""
    zero = np.abs(x) <= 1e-7
    most = x.max(axis=-1, keepdims=True, initial=-np.inf)
    share = np.where(zero, x * np.exp(-most), np.exp(x - most))
    total = share.sum(axis=-1, keepdims=True)
    return ((share / np.where(total == 0, 1, total)).astype(x.dtype),)


register("Probit", _infer, _probit_run, traits=EACH)
register("SoftmaxZero", _infer, _softmax_zero_run, traits=PLAIN)

# ---- support vectors -------------------------------------------------------------------------------------------------


def _pairs(n: View) -> tuple[int, np.ndarray, np.ndarray]:
    """The number of classes, and the two classes of each score: (0, 1), (0, 2), .. (1, 2), .."""
    classes = n.get("classes")
    if not 1 <= classes < 1 << 16:
        raise n.fail(f"it has {classes} classes: expected 1 to 65535")
    first, second = np.triu_indices(classes, 1)
    shape = n.shape(0)
    if shape is not None and (len(shape) != 2 or (isinstance(shape[1], int) and shape[1] != len(first))):
        raise n.fail(f"the scores have shape {shape}: expected (n, {len(first)}), one a pair of {classes} classes")
    return classes, first, second


def _probabilities_infer(n: View) -> list[Spec]:
    need_kind(n, "f", 0)
    classes, first, _ = _pairs(n)
    if any(len(n.get(name)) != len(first) for name in ("prob_a", "prob_b")):
        raise n.fail(f"prob_a and prob_b have {len(n.get('prob_a'))} and {len(n.get('prob_b'))} values: expected {len(first)}")
    shape = n.shape(0)
    return [Spec((None if shape is None else shape[0], classes), like(n.spec(0), FLOAT32).dtype)]


def _factors(n: View) -> list[np.ndarray]:
    """The factor and the summand of each pair's score."""
    return [np.asarray(n.get(name), np.float64) for name in ("prob_a", "prob_b")]


def _probabilities_run(n: View, x: np.ndarray) -> Arrays:
    out = np.empty((len(x), _pairs(n)[0]))
    scale, shift = _factors(n)
    pair_probabilities(x.astype(np.float64), scale, shift, out)
    return (out.astype(np.float32),)


def _probabilities_lower(n: View, b: Any) -> Any:
    if not n.float32():
        return False
    return b.call("pair_probabilities", b.input(0), *map(b.constant, _factors(n)), b.output(0))


register("SvmProbabilities", _probabilities_infer, _probabilities_run, _probabilities_lower, PLAIN)
