"""The shared part of recording: operators that take what the function takes, and a batch of one put around."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..graph.record import ints, record, scalar
from ..kernels.table import Activation
from ._activation_names import IDENTITY, resolve

__all__ = ["activates", "after", "alpha", "clipped", "recorded_mask", "same", "with_batch"]

Records = Callable[..., Any]


def same(op: str, **attributes: Any) -> Records:
    """An operator of the function's tensors, whatever its other arguments are."""
    return lambda *tensors, **_: record(op, *tensors, **attributes)


def alpha(op: str, **names: str) -> Records:
    """An operator whose attributes are values that the function takes under other names."""
    return lambda x, **values: record(op, x, **_floats(values, names))


def _floats(values: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    return {to: float(values[name]) for to, name in names.items()}


def activates(name: str) -> Records:
    """A function that the engine has and ONNX has not, or has under another name; by its name among activations."""
    return lambda x, **values: record("Activate", x, activation=tuple(resolve(name, (name, values))))


def clipped(x: Any, low: float | None, high: float | None) -> Any:
    """The operator Clip."""
    return record("Clip", x, None if low is None else scalar(low), None if high is None else scalar(high))


def after(activation: Activation) -> dict[str, Any]:
    """The attribute that says what follows, where something does: passes may then put nothing else there."""
    return {} if activation.code == IDENTITY.code else {"activation": tuple(activation)}


def with_batch(x: Any, axes: int, make: Callable[[Any], Any]) -> Any:
    """The results of `make` for an x with a batch; where x has none, one of 1 is put around."""
    if x.ndim == axes + 2:
        return make(x)
    return record("Squeeze", make(record("Unsqueeze", x, ints(0))), ints(0))


def recorded_mask(mask: Any) -> Any:
    """A mask as `additive_mask` gives it, of a symbolic value or an array."""
    if mask is None or mask.dtype != np.bool_:
        return mask
    return record("Where", mask, scalar(0.0), scalar(-np.inf))
