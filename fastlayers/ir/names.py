"""Names of values that no other value has: the one maker of them."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["Names"]


class Names:
    """Makes names unique: a hint as it is if nothing is called so, else with a number after it, counted per hint.

    Args:
        taken: names that are there already.
        mark: between the hint and the number.
        first: the first number.
    """

    __slots__ = ("_count", "_first", "_mark", "_next")

    def __init__(self, taken: Iterable[str] = (), mark: str = "_", first: int = 2) -> None:
        self._mark, self._first, self._count = mark, first, first
        # By name. Thousands of branches may call a value the same: the search goes on where the last one ended.
        self._next = dict.fromkeys(taken, first)

    def __contains__(self, name: object) -> bool:
        return name in self._next

    def __call__(self, hint: str) -> str:
        """A name like `hint`, taken from now on."""
        number = self._next.get(hint)
        if number is None:
            self._next[hint] = self._first
            return hint
        while (name := f"{hint}{self._mark}{number}") in self._next:
            number += 1
        self._next[hint] = number + 1
        self._next[name] = self._first
        return name

    def numbered(self, hint: str) -> str:
        """A name like `hint`, with a number in any case: one count for all hints."""
        while (name := f"{hint}{self._mark}{self._count}") in self._next:
            self._count += 1
        self._count += 1
        self._next[name] = self._first
        return name

    def take(self, names: Iterable[str]) -> None:
        """Notes names that stay as they are."""
        for name in names:
            self._next.setdefault(name, self._first)
