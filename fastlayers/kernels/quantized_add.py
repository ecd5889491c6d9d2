"""The sum of quantized values as onnxruntime computes it: its integers are not always those of ONNX's formula."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["factors", "fused"]

_F32, _F64 = np.float32, np.float64


def fused(x: Any, factor: Any, added: Any) -> Any:
    """x factor + added in float32, rounded once: of a byte and a float32 the product is exact in float64."""
    return (_F64(x) * _F64(factor) + _F64(added)).astype(_F32)


def factors(options: Sequence[Any]) -> tuple[np.float32, np.float32, np.float32]:
    """(p, q, r), with which a + b is ``round(fused(a, p, fused(b, q, r)))``: ratios of the scales, and all that is constant.

    Args:
        options: those of the kernel `qbinary`.
    """
    _, a_zero, b_zero, zero, a_scale, b_scale, scale = options
    with np.errstate(all="ignore"):
        p, q = _F32(a_scale) / _F32(scale), _F32(b_scale) / _F32(scale)
        return p, q, _F32(zero) - fused(_F32(a_zero), p, _F32(b_zero) * q)
