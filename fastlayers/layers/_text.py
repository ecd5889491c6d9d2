"""Parts of what `repr` shows of layers."""

from __future__ import annotations

from ..functional._activation_names import specify
from ..kernels.table import Activation

__all__ = ["arguments"]


def arguments(activation: Activation) -> str:
    """The argument `activation` as it is written, with a comma before it; nothing for the identity."""
    spec = specify(activation)
    return "" if spec is None else f", activation={spec!r}"
