"""What stands where a model has no compiled runner, or has been closed."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError

__all__ = ["Closed", "NoRunner"]


class NoRunner:
    """In the place of the compiled engine's fast way in: takes no call."""

    threads = 0

    def run(self, feeds: Any) -> None:
        return None

    def call(self, arrays: Any) -> None:
        return None


class Closed:
    """In the place of a closed model's graph and program."""

    def __getattr__(self, name: str) -> Any:
        raise ArgumentError("the model was closed: load or compile it again")

    def __reduce__(self) -> Any:
        return self.nodes
