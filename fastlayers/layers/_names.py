"""Names of tensors in files, brought to those of our layers, which are torch's. `given` maps names to arrays and is changed."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import WeightsError
from ._load import as_tensor

__all__ = ["weight_norm"]

# As torch.nn.utils.weight_norm and torch.nn.utils.parametrizations.weight_norm name the length and the direction of a weight.
_PAIRS = (("{}_g", "{}_v"), ("parametrizations.{}.original0", "parametrizations.{}.original1"))


def weight_norm(given: dict[str, Any], prefix: str, layer: str, name: str = "weight") -> None:
    """Multiplies a weight out that is stored as length and direction: ``g v / ||v||``.

    The norm goes over all axes along which g has size 1: all but the first by torch's default, or all of them.
    """
    for pair in _PAIRS:
        g_name, v_name = (prefix + part.format(name) for part in pair)
        if g_name not in given or v_name not in given:
            continue
        g, v = (as_tensor(given.pop(part), f"{layer}.load_state_dict", part).astype(np.float64) for part in (g_name, v_name))
        if g.ndim == 0:
            g = g.reshape((1,) * v.ndim)
        if g.ndim != v.ndim or any(a not in (1, b) for a, b in zip(g.shape, v.shape, strict=True)):
            raise WeightsError(
                f"{layer}.load_state_dict: wrong: {g_name} has shape {g.shape}: "
                f"expected 1 or the size of {v_name} {v.shape} in every axis"
            )
        over = tuple(i for i, size in enumerate(g.shape) if size == 1)
        with np.errstate(invalid="ignore", divide="ignore"):
            given[prefix + name] = (g * v / np.sqrt((v * v).sum(axis=over, keepdims=True))).astype(np.float32)
