"""Records of graphs bound to sizes, and the bindings of a graph by what binds them: those that ran last, as far as their
bytes allow.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..operators import Spec
from .trace import Plan

__all__ = ["LARGEST_KEY", "Bindings", "Kept", "keeping"]

# Inputs whose values decide sizes are part of a binding's key up to this many elements.
LARGEST_KEY = 256
# What the bindings of a program may take: as much as this, and a share of its weights, since a large model has many steps.
LEAST_BYTES, SHARE = 8 << 20, 0.25
_OBJECTS = 1000  # bytes of a binding and of its key, about, and per input
_PER_INPUT = 300
_PER_CALL = 2000  # of a plan that is run call by call

_ticks = itertools.count(1)


MadeFor = tuple[Sequence[Spec], Sequence[np.ndarray | None]]


def keeping(made_for: MadeFor) -> int:
    """Bytes that it takes to keep a binding for these inputs, about, without its calls."""
    return _OBJECTS + _PER_INPUT * len(made_for[0]) + 2 * sum(v.nbytes for v in made_for[1] if v is not None)


class Kept:
    """The record of one set of input sizes. `bound` is the compiled engine's form; `plan` are the calls for other variants. With
    neither the graph runs in stages, and `stuck` is the first node that says so.
    """

    __slots__ = ("bound", "made_for", "nbytes", "outputs", "plan", "stuck", "used")

    def __init__(self, made_for: MadeFor, plan: Plan | None, bound: Any, stuck: int = 0) -> None:
        self.made_for, self.plan, self.bound, self.stuck = made_for, plan, bound, stuck
        self.used = 0
        self.outputs = bound.out_specs if bound is not None else plan.outputs if plan is not None else ()
        # The compiled engine counts its own.
        self.nbytes = 0 if bound is not None else keeping(made_for) + _PER_CALL * (0 if plan is None else len(plan.calls))

    @property
    def staged(self) -> bool:
        """Whether the graph runs in stages."""
        return self.bound is None and self.plan is None

    @property
    def last_use(self) -> int:
        """A number that rises with every use."""
        return int(self.bound.used) if self.bound is not None else self.used

    def touch(self) -> None:
        """Makes it the one that was used last."""
        if self.bound is not None:
            self.bound.touch()
        else:
            self.used = next(_ticks)


class Bindings:
    """Bindings by their keys. May be used from any number of threads at once: each change is a single step.

    Args:
        weights: bytes of the program's constants.
        ledger: counts what the compiled engine's programs take; None without it.
        forget: is told the key of a binding that goes.
    """

    def __init__(self, weights: int, ledger: Any, forget: Callable[[Any], object]) -> None:
        self.most = int(LEAST_BYTES + SHARE * weights)
        self.ledger, self._forget = ledger, forget
        self._found: dict[Any, Kept] = {}

    def __len__(self) -> int:
        return len(self._found)

    def values(self) -> list[Kept]:
        """All that are retained."""
        return list(self._found.values())

    @property
    def nbytes(self) -> int:
        """Bytes that they take, about."""
        return sum(kept.nbytes for kept in self.values()) + (0 if self.ledger is None else self.ledger.nbytes)

    def get(self, key: Any) -> Kept | None:
        """The binding of a key, which is now the one that was used last."""
        found = self._found.get(key)
        if found is not None:
            found.touch()
        return found

    def add(self, key: Any, kept: Kept, between: Callable[[], object] = bool) -> None:
        """Keeps a binding; those go that have not been used for longest, if there are too many bytes. `between` is called after
        each of these.
        """
        kept.touch()
        self._found[key] = kept
        if self.nbytes > self.most:
            # A quarter at once: to look for them costs as many steps as there are bindings.
            oldest = [gone for gone, _ in sorted(self._found.items(), key=lambda item: item[1].last_use)]
            for gone in oldest[: max(1, math.ceil(len(oldest) / 4))]:
                if gone != key:
                    self.drop(gone)
                    between()

    def drop(self, key: Any) -> None:
        """Forgets a binding."""
        self._found.pop(key, None)
        if isinstance(key, bytes):  # others, of very many inputs, are not told to it
            self._forget(key)

    def clear(self) -> None:
        """Forgets all."""
        for key in list(self._found):
            self.drop(key)
