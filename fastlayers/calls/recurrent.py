"""Recurrent layers and cells: one kernel for each kind, which goes through all steps, in one direction or both.

A cell is a layer of one step. Without a batch, x and the states have one axis fewer than the kernel's, whose batch is 1 then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .machine import Machine

__all__ = ["layer", "pack", "step"]


def pack(m: Machine, kind: str, arguments: Callable[[], tuple[Any, ...]]) -> Any:
    """The packed weights of one layer of a kind, "lstm", "gru" or "rnn"; `arguments` gives those of its pack kernel."""
    return m.pack(f"{kind}_pack", arguments)


def layer(
    m: Machine, kind: str, x: Any, packed: Any, before: Sequence[Any], valid: Any, out: Any, after: Sequence[Any],
    batch_first: bool, reverse: bool, apart: bool = False,
) -> None:  # fmt: skip
    """One layer in all its directions; fills `out` and the states `after`, each of which may be None.

    Args:
        x: ``(t, n, i)``, ``(n, t, i)`` if `batch_first`, or ``(t, i)``.
        before: states ``(d, n, size)``, or ``(d, size)`` without a batch; None is zeros.
        valid: lengths ``(n,)`` or a mask ``(n, t)``, or None; they have an axis for the batch in any case.
        apart: whether the directions are an axis of `out`, as in ONNX, instead of next to each other in the last one.
    """
    if len(x.shape) == 2:
        batch_first, x = False, m.view(x, (x.shape[0], 1, x.shape[1]))
        out = None if out is None else m.view(out, (out.shape[0], 1, out.shape[1]))
        before, after = (
            [None if s is None else m.view(s, (s.shape[0], 1, s.shape[1])) for s in some] for some in (before, after)
        )
    m.call(kind, x, packed, *before, valid, out, *after, batch_first, apart, reverse)


def _led(m: Machine, x: Any) -> Any:
    """x of two axes with a batch of 1 between them."""
    return None if x is None else m.view(x, (x.shape[0], 1, x.shape[1]))


def step(m: Machine, kind: str, x: Any, packed: Any, before: Sequence[Any], after: Sequence[Any]) -> None:
    """One step of x ``(n, i)`` or ``(i,)``; states are ``(n, size)`` or ``(size,)``; fills `after`."""
    lead = (1,) if len(x.shape) == 2 else (1, 1)  # the axis of steps or directions, and of the batch where there is none
    view = m.view
    led = [None if s is None else view(s, lead + s.shape) for s in before]
    made = [view(s, lead + s.shape) for s in after]
    m.call(kind, view(x, lead + x.shape), packed, *led, None, None, *made, False, False, False)
