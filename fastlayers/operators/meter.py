"""The limits of one run of a model with loops, and what is used of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._deadline import check
from ..errors import LimitError
from ._base import MAX_ROUNDS, View

__all__ = ["Meter"]

# Bytes that the results of loops which grow with every round, and what a loop carries, may take in one run, if nothing else was
# said.
MOST_BYTES = 1 << 32
# Graphs in graphs that run at once.
DEEPEST = 32


class Meter:
    """Remaining budget of one run of a model: its loops all together do `iterations` of `most`."""

    __slots__ = ("_bytes", "_depth", "_left", "most", "rounds")

    def __init__(self, rounds: int = MAX_ROUNDS, most: int | None = None) -> None:
        self.most = self.rounds = rounds
        self._bytes = self._left = MOST_BYTES if most is None else most
        self._depth = 0

    def round(self, n: View) -> None:
        """Counts one iteration of a loop."""
        check()
        self.rounds -= 1
        if self.rounds < 0:
            raise LimitError(
                f"{n.where}: its loop, with all others of this run, takes more than {self.most} iterations: "
                "pass a larger max_rounds to load if the model is to be trusted"
            )

    def keep(self, n: View, count: int) -> None:
        """Counts bytes that a loop has added to what it will return."""
        self._left -= count
        if self._left < 0:
            raise LimitError(f"{n.where}: what its iterations have made takes more than {self._bytes} bytes")

    def carried(self, n: View, values: Sequence[Any]) -> None:
        """Checks what a loop hands to its next iteration."""
        if sum(v.nbytes for v in values if isinstance(v, np.ndarray)) > self._bytes:  # lists are counted as they grow
            raise LimitError(f"{n.where}: hands more than {self._bytes} bytes from one iteration to the next")

    def enter(self, n: View) -> None:
        """Meanwhile, until `leave`, a graph in a graph runs."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise LimitError(f"{n.where}: graphs are in graphs more than {DEEPEST} deep")

    def leave(self) -> None:
        """Ends what `enter` began."""
        self._depth -= 1
