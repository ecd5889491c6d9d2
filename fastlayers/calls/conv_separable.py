"""Kernels of two axes that are products of a column and a row: which are, and as which."""

from __future__ import annotations

import numpy as np

__all__ = ["TOLERANCE", "factors"]

TOLERANCE = 1e-6  # the second singular value as a part of the first, below which a kernel counts as a product


def factors(weight: np.ndarray, tolerance: float = TOLERANCE) -> tuple[np.ndarray, np.ndarray] | None:
    """Kernels (o, 1, kh, kw) as columns (o, 1, kh, 1) and rows (o, 1, 1, kw), float32, or None if one is no product of such.

    By singular values, in float64; both parts have the same norm, so that neither leaves float32's range.
    """
    kernels = weight[:, 0]
    if not kernels.size or not np.isfinite(kernels).all():
        return None
    if _decompose(kernels[:1], tolerance) is None:  # most kernels are none, and one tells
        return None
    found = _decompose(kernels, tolerance)
    if found is None:
        return None
    column, row = (part.astype(np.float32) for part in found)
    return column[:, None, :, None], row[:, None, None, :]


def _decompose(kernels: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray] | None:
    left, values, right = np.linalg.svd(kernels.astype(np.float64), full_matrices=False)
    if values.shape[1] > 1 and (values[:, 1] > tolerance * values[:, 0]).any():
        return None
    half = np.sqrt(values[:, :1])
    return left[:, :, 0] * half, right[:, 0, :] * half
