"""Losses over classes: NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss. No gradients."""

from __future__ import annotations

import numpy as np

from ..ir.graph import Shape
from ._base import Spec, View, register
from ._traits import PLAIN
from .activation import wide
from .shapes import need_kind

__all__: list[str] = []

Arrays = tuple[np.ndarray, ...]
REDUCTIONS = ("none", "sum", "mean")


def _infer(n: View) -> list[Spec]:
    """x (n, classes, ...), targets (n, ...), weights (classes,): the loss, and x's log-probabilities."""
    need_kind(n, "f", 0)
    need_kind(n, "iu", 1)
    if n.get("reduction", "mean") not in REDUCTIONS:
        raise n.fail(f"reduction is {n.get('reduction')!r}: expected one of {', '.join(REDUCTIONS)}")
    x, target, dtype = n.shape(0), n.shape(1), n.spec(0).dtype
    if x is not None:
        own = (*x[:1], *x[2:])
        if len(x) < 2 or (target is not None and not _fits(own, target)):
            raise n.fail(f"x has shape {x}, the targets {target}: expected (n, classes, ...) and (n, ...)")
        if n.has(2):
            need_kind(n, "f", 2)
            weights = n.shape(2)
            if weights is not None and not _fits((x[1],), weights):
                raise n.fail(f"the weights have shape {weights}: expected {(x[1],)}, one number a class")
    loss = Spec(target if n.get("reduction", "mean") == "none" else (), dtype)
    return [loss, n.spec(0)]


def _fits(want: Shape, have: Shape) -> bool:
    return len(want) == len(have) and all(
        a == b or not isinstance(a, int) or not isinstance(b, int) for a, b in zip(want, have, strict=True)
    )


def _loss(n: View, scores: np.ndarray, target: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """-weight * score of the class that each target names; 0 where that is `ignore_index`."""
    classes, ignored = scores.shape[1], n.get("ignore_index")
    counted = np.ones(target.shape, bool) if ignored is None else target != ignored
    wrong = target[counted & ((target < 0) | (target >= classes))]
    if wrong.size:
        raise n.fail(f"a target is {wrong[0]}: expected 0 to {classes - 1}" + ("" if ignored is None else f", or {ignored}"))
    label = np.where(counted, target, 0).astype(np.int64)
    if not classes:
        scores = np.zeros((*scores.shape[:1], 1, *scores.shape[2:]), scores.dtype)  # every target is ignored
    found = -np.take_along_axis(scores, label[:, None], 1)[:, 0]
    share = counted.astype(scores.dtype)
    if weights is not None:
        share = share * (wide(weights)[label] if classes else 1)
    found = np.where(counted, found * share, 0).astype(scores.dtype, copy=False)
    if n.get("reduction", "mean") == "none":
        return found
    total = found.sum(dtype=scores.dtype)
    return np.asarray(total if n.get("reduction", "mean") == "sum" else total / share.sum(dtype=scores.dtype))


def _nll_run(n: View, x: np.ndarray, target: np.ndarray, weights: np.ndarray | None = None) -> Arrays:
    return (_loss(n, wide(x), target, weights).astype(x.dtype, copy=False),)


def _cross_entropy_run(n: View, x: np.ndarray, target: np.ndarray, weights: np.ndarray | None = None) -> Arrays:
    y = wide(x)
    y = y - y.max(axis=1, keepdims=True, initial=-np.inf)
    scores = y - np.log(np.exp(y).sum(axis=1, keepdims=True, dtype=y.dtype))
    return _loss(n, scores, target, weights).astype(x.dtype, copy=False), scores.astype(x.dtype, copy=False)


register("NegativeLogLikelihoodLoss", lambda n: _infer(n)[:1], _nll_run, traits=PLAIN)
register("SoftmaxCrossEntropyLoss", _infer, _cross_entropy_run, traits=PLAIN)
