"""One test item for a rule about many subjects."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import pytest

__all__ = ["each"]

# Of the subjects that break a rule, so many are listed.
MOST_LISTED = 30


def each(names: str, subjects: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Like ``pytest.mark.parametrize``, but one item: the test goes through all subjects, and a failure lists all that break it.

    For rules that take microseconds per subject, where a thousand items cost more to collect, schedule and report than to run.
    What a test takes as fixtures is shared by all subjects.

    Args:
        names: the arguments that a subject fills, separated by commas.
        subjects: values, or tuples of as many values as there are names.
    """
    taken = [name.strip() for name in names.split(",")]
    listed = list(subjects)
    assert listed, "a rule about nothing holds nothing"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def every(**fixtures: Any) -> None:
            broken: list[str] = []
            first: BaseException | None = None
            for subject in listed:
                values = (subject,) if len(taken) == 1 else subject
                try:
                    test(**dict(zip(taken, values, strict=True)), **fixtures)
                except (Exception, pytest.fail.Exception) as error:
                    first = first or error
                    broken.append(f"{subject}: {type(error).__name__}: {str(error).strip().partition(chr(10))[0]}")
            if broken:
                more = f"\n... and {len(broken) - MOST_LISTED} more" * (len(broken) > MOST_LISTED)
                text = f"{len(broken)} of {len(listed)} subjects:\n" + "\n".join(broken[:MOST_LISTED]) + more
                raise AssertionError(text) from first

        signature = inspect.signature(test)
        assert set(taken) <= set(signature.parameters), "each fills arguments that the test has"
        rest = [parameter for name, parameter in signature.parameters.items() if name not in taken]
        every.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        return every

    return decorate
