"""Steps of optimizers (ai.onnx.preview.training): Adagrad, Adam and Momentum. Gradients come from elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ._base import Spec, View, register
from ._traits import PLAIN
from .shapes import need_kind, scalar

__all__: list[str] = []

Arrays = tuple[np.ndarray, ...]
Step = Callable[[View, float, int, np.ndarray, np.ndarray, Sequence[np.ndarray]], Arrays]


def _adagrad(n: View, rate: float, t: int, x: np.ndarray, slope: np.ndarray, state: Sequence[np.ndarray]) -> Arrays:
    """New x and sum of squares."""
    squares = state[0] + slope * slope
    rate = rate / (1 + t * n.get("decay_factor", 0.0))
    return x - rate * slope / (np.sqrt(squares) + n.get("epsilon", 1e-6)), squares


def _adam(n: View, rate: float, t: int, x: np.ndarray, slope: np.ndarray, state: Sequence[np.ndarray]) -> Arrays:
    """New x, mean and mean square; the means are corrected for having begun at 0, from step 1 on."""
    alpha, beta = n.get("alpha", 0.9), n.get("beta", 0.999)
    mean = alpha * state[0] + (1 - alpha) * slope
    square = beta * state[1] + (1 - beta) * slope * slope
    if t > 0:
        if not (0 <= alpha < 1 and 0 <= beta < 1):
            raise n.fail(f"alpha is {alpha}, beta {beta}: expected from 0 to less than 1")
        rate = rate * math.sqrt(1 - beta**t) / (1 - alpha**t)
    x = x - rate * mean / (np.sqrt(square) + n.get("epsilon", 1e-6))
    return (1 - n.get("norm_coefficient_post", 0.0)) * x, mean, square


def _momentum(n: View, rate: float, t: int, x: np.ndarray, slope: np.ndarray, state: Sequence[np.ndarray]) -> Arrays:
    """New x and momentum."""
    alpha = n.get("alpha", 0.0)
    moved = alpha * state[0] + (n.get("beta", 1.0) if t > 0 else 1.0) * slope
    by = slope + alpha * moved if n.get("mode", "standard") == "nesterov" else moved
    return x - rate * by, moved


# How many arrays each tensor has, its gradient among them, and the step.
STEPS: dict[str, tuple[int, Step]] = {"Adagrad": (3, _adagrad), "Adam": (4, _adam), "Momentum": (3, _momentum)}


def _tensors(n: View) -> int:
    """Number of tensors that are optimized: inputs are a rate, a count of steps, all tensors, all gradients, all states."""
    count, each = len(n.inputs) - 2, STEPS[n.op][0]
    if count < each or count % each:
        raise n.fail(f"it has {len(n.inputs)} inputs: expected two, and {each} for every tensor")
    return count // each


def _infer(n: View) -> list[Spec]:
    need_kind(n, "iu", 1)
    if n.op == "Momentum" and n.get("mode", "standard") not in ("standard", "nesterov"):
        raise n.fail(f"mode is {n.get('mode')!r}: expected 'standard' or 'nesterov'")
    count = _tensors(n)
    for i in range(2, len(n.inputs)):
        need_kind(n, "f", i)
        x, other = n.shape(2 + (i - 2) % count), n.shape(i)
        if x is not None and other is not None and len(x) != len(other):
            raise n.fail(f"input {i} has shape {other}: expected {x}, that of its tensor")
    return [n.spec(2 + i) for i in range(count)] + [n.spec(i) for i in range(2 + 2 * count, len(n.inputs))]


def _run(n: View, rate: np.ndarray, step: np.ndarray, *arrays: np.ndarray) -> Arrays:
    count, function = _tensors(n), STEPS[n.op][1]
    r, t = float(scalar(n, 0, rate)), int(scalar(n, 1, step))
    results = []
    for i in range(count):
        x, gradient, *state = (a.astype(np.float64) for a in arrays[i::count])
        if any(a.shape != x.shape for a in (gradient, *state)):
            raise n.fail(f"tensor {i} has shape {x.shape}, its others {[a.shape for a in (gradient, *state)]}: expected the same")
        results.append(function(n, r, t, x, n.get("norm_coefficient", 0.0) * x + gradient, state))
    kinds = [a.dtype for a in (*arrays[:count], *arrays[2 * count :])]
    return tuple(
        made.astype(kind) for made, kind in zip((m for part in zip(*results, strict=True) for m in part), kinds, strict=True)
    )


for _name in STEPS:
    register(_name, _infer, _run, traits=PLAIN)
