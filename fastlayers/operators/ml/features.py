"""Values prepared for a model, or picked: Scaler, Binarizer, FeatureVectorizer, ArrayFeatureExtractor."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...kernels.table import Activation
from .._base import FLOAT32, INT64, Spec, View, register
from .._traits import EACH, PLAIN
from ..calls import number
from ..shapes import like, need_kind, product

__all__: list[str] = []

Arrays = tuple[np.ndarray, ...]
NOTHING = Activation(0, 0.0, 0.0)

# ---- Scaler ----------------------------------------------------------------------------------------------------------


def _factors(n: View) -> tuple[np.ndarray, np.ndarray]:
    offset, scale = (np.asarray(n.get(name, ()), np.float32) for name in ("offset", "scale"))
    return (offset if offset.size else np.zeros(1, np.float32)), (scale if scale.size else np.ones(1, np.float32))


def _scaler_infer(n: View) -> list[Spec]:
    """(x - offset) * scale, a number per column or one for all, as float32."""
    need_kind(n, "fiu", 0)
    shape = n.shape(0)
    for name, array in zip(("offset", "scale"), _factors(n), strict=True):
        if shape is not None and array.size != 1 and (not shape or (isinstance(shape[-1], int) and shape[-1] != array.size)):
            raise n.fail(f"{name} has {array.size} values, x the shape {shape}: expected one per column, or one")
    return [like(n.spec(0), FLOAT32)]


def _scaler_run(n: View, x: np.ndarray) -> Arrays:
    offset, scale = _factors(n)
    # Large integers and doubles lose their differences as float32.
    x = x if x.dtype == FLOAT32 else x.astype(np.float64)
    return (((x - offset) * scale).astype(np.float32),)


def _scaler_lower(n: View, b: Any) -> Any:
    if not n.float32(0):
        return False
    offset, scale = _factors(n)
    x, out = b.input(0), b.output(0)
    middle = b.temp(out.shape)
    b.call("binary", x, b.constant(offset), middle, number("BINARY", "subtract"), NOTHING)
    b.call("binary", middle, b.constant(scale), out, number("BINARY", "multiply"), NOTHING)
    return True


register("Scaler", _scaler_infer, _scaler_run, _scaler_lower, PLAIN)

# ---- Binarizer -------------------------------------------------------------------------------------------------------


def _binarizer_infer(n: View) -> list[Spec]:
    """1 where x is above the threshold, else 0."""
    need_kind(n, "fiu", 0)
    return [n.spec(0)]


def _binarizer_lower(n: View, b: Any) -> Any:
    source, target = number("KINDS", "bool"), number("KINDS", "float32")
    if not n.float32(0) or source is None or target is None:
        return False
    above = b.temp(n.sizes(0), np.dtype(np.bool_))
    threshold = b.constant(np.asarray(n.get("threshold", 0.0), np.float32))
    b.call("compare", b.input(0), threshold, above, number("COMPARE", "greater"))
    return b.call("cast", above, b.output(0), source, target)


register("Binarizer", _binarizer_infer, lambda n, x: ((x > n.get("threshold", 0.0)).astype(x.dtype),), _binarizer_lower, EACH)

# ---- FeatureVectorizer -----------------------------------------------------------------------------------------------


def _vectorizer_infer(n: View) -> list[Spec]:
    """Inputs of (n, c) next to each other as float32, each with as many columns as `inputdimensions` says."""
    need_kind(n, "fiu")
    sizes = n.get("inputdimensions", ())
    if len(sizes) != len(n.inputs) or min(sizes, default=0) < 0:
        raise n.fail(f"inputdimensions is {tuple(sizes)[:8]} for {len(n.inputs)} inputs: expected a size for each")
    rows = [1 if len(s.shape) < 2 else s.shape[0] for s in n.inputs if s is not None and s.shape is not None]
    fixed = [r for r in rows if isinstance(r, int)]
    if len(set(fixed)) > 1:
        raise n.fail(f"its inputs have {fixed} rows: expected the same for all")
    return [Spec((fixed[0] if fixed else rows[0] if rows else None, sum(sizes)), FLOAT32)]


def _vectorizer_run(n: View, *arrays: np.ndarray) -> Arrays:
    parts = []
    for x, size in zip(arrays, n.get("inputdimensions", ()), strict=True):
        rows = 1 if x.ndim < 2 else len(x)
        x = x.reshape(rows, math.prod(x.shape) // rows if rows else 0).astype(np.float32)
        part = np.zeros((rows, size), np.float32)
        part[:, : x.shape[1]] = x[:, :size]
        parts.append(part)
    return (np.concatenate(parts, axis=1),)


register("FeatureVectorizer", _vectorizer_infer, _vectorizer_run, traits=PLAIN)

# ---- ArrayFeatureExtractor -------------------------------------------------------------------------------------------


def _extract_infer(n: View) -> list[Spec]:
    """Elements of the last axis by their values, below 0 from its end; a vector is taken as a row."""
    need_kind(n, "iu", 1)
    x, indices = n.shape(0), n.shape(1)
    if x is None:
        return [Spec(None, n.spec(0).dtype)]
    if not x:
        raise n.fail("x has no axes: expected one at least")
    count = None if indices is None else product(indices)
    return [Spec((*(x[:-1] if len(x) > 1 else (1,)), count), n.spec(0).dtype)]


def _extract_run(n: View, x: np.ndarray, indices: np.ndarray) -> Arrays:
    at, size = indices.reshape(-1), x.shape[-1]
    if at.size and (at.min() < -size or at.max() >= size):
        raise n.fail(f"the indices are from {at.min()} to {at.max()}: expected {-size} to {size - 1}")
    return (np.take(x if x.ndim > 1 else x[None], at, axis=-1),)


def _extract_lower(n: View, b: Any) -> Any:
    shape, known, itemsize = n.sizes(0), n.value(1), n.spec(0).dtype.itemsize
    if itemsize not in (1, 2, 4, 8) or (known is None and n.spec(1).dtype != INT64):
        return False
    indices = b.input(1) if known is None else b.constant(known.astype(np.int64))
    rows, count = math.prod(shape[:-1]), math.prod(indices.shape)
    x, out = b.input(0).view((rows, shape[-1], 1)), b.output(0).view((rows, count, 1))
    return b.call("gather", x, indices.view((count,)), out, itemsize)


register("ArrayFeatureExtractor", _extract_infer, _extract_run, _extract_lower, PLAIN)
