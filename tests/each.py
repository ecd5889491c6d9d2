"""One test item for a rule about many subjects."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from itertools import product
from typing import Any

import pytest

__all__ = ["each"]

Ids = Callable[[Any], Any] | Iterable[Any] | None
# Of the subjects that break a rule, so many are listed.
MOST_LISTED = 30
# With --subject TEXT: others are left out.
only = ""


class _Rule:
    """What a decorated test was before, and what it goes through; decorated once more it goes through all combinations."""

    def __init__(self, test: Callable[..., None], taken: list[str], subjects: list[tuple[str, tuple[Any, ...]]]) -> None:
        self.test, self.taken, self.subjects = test, taken, subjects


def _name(value: Any) -> str:
    """As the item of a parametrized test would be called."""
    if isinstance(value, tuple):
        return "-".join(map(_name, value))
    return getattr(value, "__name__", None) or str(value)


def _subjects(count: int, subjects: Iterable[Any], ids: Ids) -> Iterator[tuple[str, tuple[Any, ...]]]:
    listed = None if ids is None or callable(ids) else list(ids)
    for i, subject in enumerate(subjects):
        name, values = None, (subject,) if count == 1 else tuple(subject)
        if isinstance(subject, type(pytest.param())):
            assert not subject.marks, "marks are of items: parametrize what has them"
            name, values = subject.id, tuple(subject.values)
        if listed is not None:
            name = str(listed[i])
        elif callable(ids):
            name = "-".join(_name(ids(value) or value) for value in values)
        yield str(name or _name(values)), values


def each(
    names: str | Sequence[str], subjects: Iterable[Any], ids: Ids = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Like ``pytest.mark.parametrize``, but one item: the test goes through all subjects, and a failure lists all that break it.

    For rules that take a few milliseconds per subject: a thousand items cost more to collect, schedule and report than to run.
    What a test takes as fixtures is shared by all subjects. ``--subject TEXT`` leaves out subjects without TEXT in their names.

    Args:
        names: the arguments that a subject fills: a sequence, or separated by commas.
        subjects: values, or tuples of as many values as there are names.
        ids: their names: a list of them, or a function of a value; else their text.
    """
    taken = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    listed = list(_subjects(len(taken), subjects, ids))
    assert listed, "a rule about nothing holds nothing"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        rule = _Rule(test, taken, listed)
        inner = getattr(test, "rule", None)
        if isinstance(inner, _Rule):
            both = [(f"{a}-{b}", (*x, *y)) for (a, x), (b, y) in product(inner.subjects, listed)]
            rule = _Rule(inner.test, [*inner.taken, *taken], both)

        @wraps(rule.test)
        def every(**fixtures: Any) -> None:
            _go_through(rule, fixtures)

        every.__dict__.update({**vars(test), "rule": rule})  # marks of a decorator between two of these
        signature = inspect.signature(rule.test)
        assert set(rule.taken) <= set(signature.parameters), "each fills arguments that the test has"
        rest = [parameter for name, parameter in signature.parameters.items() if name not in rule.taken]
        every.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        return every

    return decorate


def _go_through(rule: _Rule, fixtures: dict[str, Any]) -> None:
    broken: list[str] = []
    first: BaseException | None = None
    skipped: list[BaseException] = []
    for name, values in rule.subjects:
        if only not in name:
            continue
        try:
            rule.test(**dict(zip(rule.taken, values, strict=True)), **fixtures)
        except pytest.skip.Exception as reason:
            skipped.append(reason)
        except (Exception, pytest.fail.Exception) as error:
            first = first or error
            broken.append(f"{name}: {type(error).__name__}: {str(error).strip().partition(chr(10))[0]}")
    if broken:
        more = f"\n... and {len(broken) - MOST_LISTED} more" * (len(broken) > MOST_LISTED)
        text = f"{len(broken)} of {len(rule.subjects)} subjects:\n" + "\n".join(broken[:MOST_LISTED]) + more
        raise AssertionError(text) from first
    if len(skipped) == len(rule.subjects):
        raise skipped[0]
