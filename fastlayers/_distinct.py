"""Sorted distinct values, as np.unique gives them, which imports numpy.ma: a sixth of the cold start of a tree model."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["distinct"]


def distinct(values: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The distinct values of a 1-D array in ascending order, and the index of the first of each; every NaN is separate."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    new = np.ones(len(ordered), bool)
    new[1:] = ordered[1:] != ordered[:-1]
    return ordered[new], order[new]
