"""The position-wise network of transformers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ShapeError
from ..functional import multiply
from ..graph.arrays import as_float32
from ..graph.symbol import symbolic
from ..ir.checks import differ, integer, number
from ._affine import affine
from ._base import Layer
from .linear import Linear

if TYPE_CHECKING:
    from ..functional._types import Tensor

__all__ = ["FeedForward"]

_GATED = {"glu": "sigmoid", "reglu": "relu", "geglu": "gelu", "swiglu": "silu"}
# What files call the layers here: (expanding, gate, back).
_NAMES = (
    ("up_proj", "gate_proj", "down_proj"),
    ("w3", "w1", "w2"),
    ("fc1", "", "fc2"),
    ("intermediate.dense", "", "output.dense"),
)


class FeedForward(Layer):
    """Two affine maps with a function between them: ``W_2 act(W_1 x + b_1) + b_2``.

    Gated: ``W_2 (act(W_g x + b_g) (W_1 x + b_1)) + b_2``.

    Args:
        d_model: size of the last axis of x and of the result.
        dim_feedforward: size in between.
        activation: as for `Linear`; or ``"swiglu"``, ``"geglu"``, ``"reglu"``, ``"glu"``: gated by silu, gelu, relu or sigmoid.
        bias: whether there are biases.
        dropout: accepted for compatibility; there is none at inference.

    Tensors: ``linear1.weight`` (dim_feedforward, d_model), ``linear2.weight`` (d_model, dim_feedforward), where it is gated
    ``gate.weight`` like linear1's, and their biases. Also under the names up_proj, gate_proj and down_proj; w3, w1 and w2; fc1
    and fc2; intermediate.dense and output.dense.

    >>> import numpy as np, fastlayers as fl
    >>> layer = fl.FeedForward(2, 3, "swiglu", bias=False)
    >>> _ = layer.load_state_dict({name: np.ones(shape) for name, shape in layer.tensor_shapes().items()})
    >>> layer(np.zeros((5, 2))).shape
    (5, 2)
    """

    def __init__(
        self, d_model: int, dim_feedforward: int = 2048, activation: Any = "relu", bias: bool = True, dropout: float = 0.0
    ) -> None:
        inner = integer("FeedForward", "dim_feedforward", dim_feedforward, 1)
        self.d_model = integer("FeedForward", "d_model", d_model, 1)
        number("FeedForward", "dropout", dropout)
        gate = _GATED.get(activation) if isinstance(activation, str) else None
        self.linear1 = Linear(self.d_model, inner, bias, activation=None if gate else activation)
        if gate:
            self.gate = Linear(self.d_model, inner, bias, activation=gate)
        self.linear2 = Linear(inner, self.d_model, bias)

    def forward(self, x: Tensor) -> np.ndarray:
        """Applies the network to x ``(..., d_model)``; returns float32 of the same shape."""
        given: Any = x if symbolic(x) else as_float32(x, "FeedForward", "x")
        if given.ndim == 0 or differ(given.shape[-1], self.d_model):
            raise ShapeError(f"FeedForward: x has shape {given.shape}: expected (..., {self.d_model})")
        y, gate = affine(self.linear1, given), self.__dict__.get("gate")
        out: np.ndarray = affine(self.linear2, y if gate is None else multiply(affine(gate, given), y))
        return out

    def _convert(self, given: dict[str, Any], prefix: str) -> None:
        for names in _NAMES:
            for theirs, ours in zip(names, ("linear1", "gate", "linear2"), strict=True):
                for ending in ("weight", "bias"):
                    if theirs and f"{prefix}{theirs}.{ending}" in given:
                        given.setdefault(f"{prefix}{ours}.{ending}", given.pop(f"{prefix}{theirs}.{ending}"))
