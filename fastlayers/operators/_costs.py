"""Multiply-adds of operators, as their traits have them: from a node whose sizes are known, and its result."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from ._traits import elements

if TYPE_CHECKING:
    from ._base import Spec, View

__all__ = ["Cost", "attention", "convolution", "product", "recurrent", "transposed"]

Cost = Callable[["View", "Spec"], int]


def _sizes(n: View, i: int) -> tuple[int, ...]:
    """The shape of input i; no axes if it is left out."""
    return n.sizes(i) if n.has(i) and n.shape(i) is not None else ()


def convolution(weight: int = 1) -> Cost:
    """Every element of the result is a sum over all but the first axis of the weights, which are input `weight`."""
    return lambda n, out: elements(out) * math.prod(_sizes(n, weight)[1:])


def transposed(n: View, out: Spec) -> int:
    """Every element of x goes into as many elements of the result as the weights (input 1) have after their first axis."""
    return elements(n.spec(0)) * math.prod(_sizes(n, 1)[1:])


def product(n: View, out: Spec) -> int:
    """Every element of the result is a sum over the last axis of input 0, or, with `transA`, the one before it."""
    x = _sizes(n, 0)
    turned = n.get("transA", 0) and len(x) > 1
    return elements(out) * (x[-2 if turned else -1] if x else 0)


def recurrent(n: View, out: Spec) -> int:
    """Two products in every step and batch: of x (..., ..., inputs) with w (input 1), of h with r (input 2)."""
    return math.prod(_sizes(n, 0)[:2]) * (math.prod(_sizes(n, 1)) + math.prod(_sizes(n, 2)))


def attention(keys: Callable[[View], int]) -> Cost:
    """The cost of attention over keys(n) keys: in both of its products every query meets every key."""
    return lambda n, out: (elements(n.spec(0)) + elements(out)) * keys(n)
