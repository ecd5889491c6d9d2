"""Random numbers (with a seed: the same at every run), and steps of optimizers."""

from __future__ import annotations

import numpy as np

from . import array, case

I64, F64 = np.int64, np.float64
HALF = np.random.RandomState(3).random_sample((2, 3))  # what a seed of 3 gives
NORMAL = np.random.RandomState(3).standard_normal((2, 3))
X = array([[1.0, 2, 3], [4, 5, 6]])
R, T0, T2 = array(0.5), array(0, I64), array(2, I64)
ONE, SLOPE = array([1.0, 2.0]), array([2.0, -4.0])
YES = array(True, bool)

CASES = [
    case("RandomUniform", "plain", [], array(HALF.astype(np.float32)), data=0, shape=(2, 3), seed=3.0),
    case("RandomUniform", "bounds, double", [], array(HALF * 4 - 1), data=0, shape=(2, 3), seed=3.0, low=-1.0, high=3.0,
         dtype=11),
    case("RandomUniform", "a seed of less than 0", [], None, data=0, shape=(0, 2), seed=-7.5),
    case("RandomNormal", "plain", [], array((NORMAL * 2 + 1).astype(np.float32)), data=0, shape=(2, 3), seed=3.0, mean=1.0,
         scale=2.0, ulp=2),
    case("RandomUniformLike", "plain", [X], HALF.astype(np.float32), seed=3.0),
    case("RandomNormalLike", "half", [X], NORMAL.astype(np.float16), seed=3.0, dtype=10),
    case("Bernoulli", "plain", [array([[0, 0.5, 1], [0.5, 0.5, 0]])], (HALF < [[0, 0.5, 1], [0.5, 0.5, 0]]).astype(np.float32),
         seed=3.0),
    case("Bernoulli", "bool", [array([1.0, 0.0])], array([True, False], bool), dtype=9, seed=1.0),
    case("Multinomial", "certain", [array([[-np.inf, 0, -np.inf], [5, -np.inf, -np.inf]])], array([[1] * 4, [0] * 4], np.int32),
         sample_size=4, seed=2.0),
    case("Multinomial", "int64", [array([[0.0, 0.0]])], None, sample_size=3, dtype=7, seed=2.0),
    case("Dropout", "training", [X, array(0.25), YES], np.where(HALF >= 0.25, X * np.float32(4 / 3), 0).astype(np.float32),
         HALF >= 0.25, seed=3),
    case("Dropout", "training, nothing dropped", [X, array(0.0), YES], X, np.ones((2, 3), bool), seed=3),
    case("Adagrad", "first step", [R, T0, ONE, SLOPE, array([0.0, 9.0])], [1 - 0.5, 2 + 0.5 * 4 / 5], array([4.0, 25.0]), data=5,
         epsilon=0.0, ulp=1),
    case("Adagrad", "decay, norm", [R, T2, ONE, SLOPE, array([0.0, 0.0])], [1 - 0.25, 2 + 0.25], array([9.0, 4.0]), data=5,
         epsilon=0.0, decay_factor=0.5, norm_coefficient=1.0, ulp=1),
    case("Adagrad", "two tensors", [R, T0, ONE, ONE * 2, SLOPE, SLOPE, array([0.0, 9.0]), array([12.0, 0.0])],
         [1 - 0.5, 2 + 0.5 * 4 / 5], [2 - 0.25, 4.5], array([4.0, 25.0]), array([16.0, 16.0]), data=8, epsilon=0.0, ulp=1),
    case("Adam", "no correction", [R, T0, ONE, SLOPE, array([2.0, 0.0]), array([4.0, 0.0])], [1 - 0.5, 2 + 0.5],
         array([2.0, -2.0]), array([4.0, 4.0]), data=6, alpha=0.5, beta=0.75, epsilon=0.0, ulp=1),
    case("Adam", "correction, norm", [R, array(1, I64), ONE, SLOPE, ONE * 0, ONE * 0], [0.75 * 0.5, 0.75 * 2.5],
         array([1.0, -2.0]), array([1.0, 4.0]), data=6, alpha=0.5, beta=0.75, epsilon=0.0, norm_coefficient_post=0.25, ulp=1),
    case("Momentum", "first step", [R, T0, ONE, SLOPE, array([1.0, 1.0])], [1 - 1.25, 2 + 1.75], array([2.5, -3.5]), data=5,
         alpha=0.5, beta=0.25, mode="standard", norm_coefficient=0.0),
    case("Momentum", "later", [R, T2, ONE, SLOPE, array([1.0, 1.0])], [1 - 0.5, 2 + 0.25], array([1.0, -0.5]), data=5,
         alpha=0.5, beta=0.25, mode="standard", norm_coefficient=0.0),
    case("Momentum", "nesterov, norm", [R, T2, ONE, SLOPE, array([1.0, 1.0])], [1 - 0.5 * (3 + 0.625), 2 - 0.5 * (-2 + 0.0)],
         array([1.25, 0.0]), data=5, alpha=0.5, beta=0.25, mode="nesterov", norm_coefficient=1.0),
]  # fmt: skip
