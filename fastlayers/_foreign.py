"""Arrays of other libraries as numpy's: whatever numpy reads itself, `__dlpack__`, and torch's tensors that it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["as_numpy"]


def as_numpy(value: Any) -> np.ndarray:
    """`value` as an array of numpy's, without a copy where that is possible.

    numpy reads whatever has ``__array__`` or a buffer. Tensors of torch that require a gradient are read without it, and those of
    dtypes that numpy lacks (bfloat16, float8) become float32, exactly. What has ``__dlpack__`` alone is exchanged through it.
    What is on another device is left there: it is the caller who decides about such a copy.

    Raises:
        Exception: whatever numpy, or the library that `value` belongs to, raises.
    """
    try:
        found = np.asarray(value)
    except Exception:
        made = _exchanged(value)
        if made is None:
            raise
        return made
    if found.dtype.kind == "O" and found.ndim == 0:  # numpy has wrapped what it could not read
        made = _exchanged(value)
        return found if made is None else made
    return found


def _exchanged(value: Any) -> np.ndarray | None:
    """Converts, through its own library, an array that numpy itself refuses; None if there is no way."""
    kind = type(value)
    try:
        if hasattr(kind, "detach") and hasattr(kind, "float"):  # as torch's tensors; asked of the type, which no file can fill
            plain = value.detach()
            try:
                return np.asarray(plain)
            except Exception:  # of the tensor's library: there is no such dtype in numpy
                if not plain.is_floating_point():
                    return None
                return np.asarray(plain.float())
        if hasattr(kind, "__dlpack__"):
            made: np.ndarray = np.from_dlpack(value)
            return made
    except Exception:  # numpy's own error says more
        return None
    return None
