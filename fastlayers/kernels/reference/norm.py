"""Normalization in numpy: computed in float64, rounded to float32 once at the end."""

from __future__ import annotations

import numpy as np

from ..table import Activation
from .activation import evaluate

__all__ = ["affine", "group_norm", "layer_norm", "lrn"]


def layer_norm(
    x__on: np.ndarray, weight__n: np.ndarray | None, bias__n: np.ndarray | None, out__on: np.ndarray, epsilon: float, rms: bool
) -> None:
    """out = (x - mean) / sqrt(variance + epsilon) * weight + bias of each row; rms: x / sqrt(mean of x^2 + epsilon) instead."""
    if not out__on.size:
        return
    x = x__on.astype(np.float64)
    with np.errstate(all="ignore"):
        if not rms:
            x = x - x.mean(axis=1, keepdims=True)
        x = x / np.sqrt((x * x).mean(axis=1, keepdims=True) + epsilon)
        if weight__n is not None:
            x = x * weight__n
        out__on[...] = x if bias__n is None else x + bias__n


def group_norm(
    x__oci: np.ndarray,
    weight__c: np.ndarray | None,
    bias__c: np.ndarray | None,
    out__oci: np.ndarray,
    groups: int,
    epsilon: float,
) -> None:
    """out = (x - mean) / sqrt(variance + epsilon) * weight[c] + bias[c], with mean and variance of each group of channels."""
    if not out__oci.size:
        return
    x = x__oci.astype(np.float64).reshape(x__oci.shape[0] * groups, -1)
    with np.errstate(all="ignore"):
        x = x - x.mean(axis=1, keepdims=True)
        x = (x / np.sqrt((x * x).mean(axis=1, keepdims=True) + epsilon)).reshape(x__oci.shape)
        if weight__c is not None:
            x = x * weight__c[:, None]
        out__oci[...] = x if bias__c is None else x + bias__c[:, None]


def affine(x__oci: np.ndarray, scale__c: np.ndarray, shift__c: np.ndarray, out__oci: np.ndarray, activation: Activation) -> None:
    """out = f(x * scale[c] + shift[c]); out may be x."""
    with np.errstate(all="ignore"):
        x = x__oci * scale__c[:, None].astype(np.float64) + shift__c[:, None]
        out__oci[...] = evaluate(x, activation)


def lrn(x__oci: np.ndarray, out__oci: np.ndarray, size: int, alpha: float, beta: float, bias: float) -> None:
    """out = x / (bias + alpha / size * sum of x^2 over `size` channels around this one)^beta; even sizes look further ahead."""
    x = x__oci.astype(np.float64)
    channels = x.shape[1]
    before = min((size - 1) // 2, channels)
    after = min(size - 1 - (size - 1) // 2, channels)  # beyond all channels there is nothing to add
    with np.errstate(all="ignore"):
        squares = np.pad(x * x, ((0, 0), (before, after), (0, 0)))
        total = sum((squares[:, t : t + channels] for t in range(before + after + 1)), np.zeros_like(x))
        out__oci[...] = x / (bias + alpha / size * total) ** beta
