"""Maps of other sizes: one kernel, which goes over three axes at most, by the taps of each place of the result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .machine import Machine

__all__ = ["AXES", "resize"]

AXES = 3  # that the kernel has


def resize(m: Machine, x: Any, out: Any, first: int, tables: Sequence[Any]) -> None:
    """Resamples the axes from `first` on, each by its table; None leaves one as it is."""
    last, ones = first + len(tables), AXES - len(tables)

    def cut(shape: tuple[int, ...]) -> tuple[int, ...]:
        return (math.prod(shape[:first]), *(1,) * ones, *shape[first:last], math.prod(shape[last:]))

    size = cut(x.shape)
    packed = m.pack("resize_pack", lambda: ((*(None,) * ones, *tables), size[1:]), kept=False)
    m.call("resize", m.view(x, size), packed, m.view(out, cut(out.shape)))
