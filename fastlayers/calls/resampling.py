"""Maps of other sizes: one kernel, which goes over three axes at most, by the taps of each place of the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .machine import Machine

__all__ = ["AXES", "resize"]

AXES = 3  # that the kernel has


def resize(
    m: Machine, x: Any, out: Any, outer: int, sizes: Sequence[int], wanted: Sequence[int], inner: int, tables: Sequence[Any]
) -> None:
    """Resamples neighbouring axes from `sizes` to those that are wanted, each by its table; None leaves one as it is.

    Outer and inner: how many values the axes before and after them have.
    """
    ones = (1,) * (AXES - len(tables))
    size = (*ones, *sizes, inner)
    packed = m.pack("resize_pack", lambda: ((*(None,) * len(ones), *tables), size), kept=False)
    m.call("resize", m.view(x, (outer, *size)), packed, m.view(out, (outer, *ones, *wanted, inner)))
