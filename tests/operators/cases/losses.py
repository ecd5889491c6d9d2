"""Losses over classes."""

from __future__ import annotations

import math

import numpy as np

from . import array, case

I64 = np.int64
NAN = math.nan
# Log-probabilities of two examples and three classes: round numbers, which need not add up.
P = array([[-1.0, -2.0, -4.0], [-0.5, -8.0, -16.0]])
T = array([2, 0], I64)
W = array([0.5, 1.0, 2.0])
L = math.log
X = np.log(array([[1.0, 2.0, 5.0], [2.0, 2.0, 4.0]])) + array([[3.0], [-7.0]])  # odds, and what is taken out
Q = np.log(array([[0.125, 0.25, 0.625], [0.25, 0.25, 0.5]]))
# Two places an example: (2, 3, 2) and (2, 2).
D = np.stack([P, P - 1], axis=-1)
U = array([[2, 1], [-1, 0]], I64)

CASES = [
    case("NegativeLogLikelihoodLoss", "mean", [P, T], array(2.25), data=2),
    case("NegativeLogLikelihoodLoss", "sum", [P, T], array(4.5), data=2, reduction="sum"),
    case("NegativeLogLikelihoodLoss", "none", [P, array([1, 1], np.int32)], [2, 8], data=2, reduction="none"),
    case("NegativeLogLikelihoodLoss", "weights", [P, T, W], array(8.25 / 2.5), data=3, ulp=1),
    case("NegativeLogLikelihoodLoss", "weights, none", [P, T, W], [8, 0.25], data=3, reduction="none"),
    case("NegativeLogLikelihoodLoss", "ignored", [P, array([9, 0], I64)], array(0.5), data=2, ignore_index=9),
    case("NegativeLogLikelihoodLoss", "all ignored", [P, array([1, 1], I64)], array(NAN), data=2, ignore_index=1),
    case("NegativeLogLikelihoodLoss", "places", [D, U], [[4, 3], [0, 1.5]], data=2, reduction="none", ignore_index=-1),
    case("NegativeLogLikelihoodLoss", "places, weights", [D, U, W], array((8 + 3 + 0.75) / 3.5), data=3, ignore_index=-1, ulp=1),
    case("NegativeLogLikelihoodLoss", "nobody", [P[:0], T[:0]], [], data=2, reduction="none"),
    case("SoftmaxCrossEntropyLoss", "mean", [X, T], array(-(L(0.625) + L(0.25)) / 2), Q, data=2, ulp=8),
    case("SoftmaxCrossEntropyLoss", "weights", [X, T, W], array(-(2 * L(0.625) + 0.5 * L(0.25)) / 2.5), Q, data=3, ulp=8),
    case("SoftmaxCrossEntropyLoss", "large", [X + 1e4, T], array([-L(0.625), -L(0.25)]), data=2, reduction="none", ulp=20000),
    case("SoftmaxCrossEntropyLoss", "ignored", [X, array([-1, 2], I64)], array(-L(0.5)), Q, data=2, ignore_index=-1,
         reduction="sum", ulp=8),
]  # fmt: skip
