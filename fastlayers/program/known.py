"""The record of a graph whatever the sizes of its inputs: shared by a program and its segments, and never changed."""

from __future__ import annotations

from typing import Any

from .._locks import Lock
from .._tuples import NamedTuple
from ..kernels.dispatch import Variant
from .binder import Nest
from .branches import Branches
from .weights import Weights

__all__ = ["Known"]


class Known(NamedTuple):
    """Facts of a graph that hold for all sizes.

    `native`: whether a NumPy fallback is an error. `rounds`: the most that the loops of one run may take together, `most`: the
    most bytes that it may. `nest`: gives what binds a loop or a branch whose sizes do not depend on values; None where that must
    run in stages. `gpu`: runs plans there; None for other variants.
    """

    variant: Variant
    native: bool
    rounds: int
    most: int
    lock: Lock
    weights: Weights
    branches: Branches
    nest: Nest
    gpu: Any
