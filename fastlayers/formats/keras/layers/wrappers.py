"""Layers around layers."""

from __future__ import annotations

from typing import Any

from ..build import Build, Tensor
from ..layer import Layer, layer, mapped


def _inner(this: Layer) -> list[tuple[str, Layer]]:
    return [("layer", this.child(this.config["layer"]))]


@layer("TimeDistributed", words="layer", children=_inner)
def time_distributed(this: Layer, b: Build, x: Tensor, mask: Any = None) -> Any:
    """The layer on every step: steps become part of the batch."""
    inner = this.children[0][1]
    mask = mask if isinstance(mask, Tensor) else x.mask
    folded = _folded(b, x)
    # A mask of the steps themselves says nothing about what is in one.
    folded = folded.masked(_folded(b, mask) if mask is not None and mask.rank > 2 else None)
    result = inner(b, folded)

    def unfolded(y: Tensor) -> Tensor:
        rest = [b.shape_of(y, a) for a in range(1, y.rank)]
        steps = b.shape_of(x, 1)
        if isinstance(steps, int) and all(isinstance(r, int) for r in rest):
            return b.reshape(y, -1, steps, *rest)
        return b.reshape(y, b.shape_of(x, 0), steps, *rest)

    return mapped(result, unfolded)


def _folded(b: Build, x: Tensor) -> Tensor:
    return b.reshape(x, -1, *(b.shape_of(x, a) for a in range(2, x.rank)))


@layer("SpectralNormalization", words="layer", fixed=lambda this: ["kernel", "vector_u"], children=_inner, mask="drop")
def spectral_normalization(this: Layer, b: Build, x: Tensor) -> Any:
    """The layer with the kernel as training left it."""
    return this.children[0][1](b, x)
