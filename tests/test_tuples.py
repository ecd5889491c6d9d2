"""Named tuples of `_tuples` are as those of the standard library, whatever is done with them."""

from __future__ import annotations

import copy
from collections import namedtuple
from typing import Any

import pytest

from fastlayers._tuples import NamedTuple


class Point(NamedTuple):
    """Two numbers."""

    x: int
    y: int = 7

    @property
    def total(self) -> int:
        """x + y"""
        return self.x + self.y


class Wider(Point):
    """A subclass."""


Same = namedtuple("Same", "x y", defaults=[7])


class Long(NamedTuple):
    """More fields than there are constructors."""

    a: int
    b: int
    c: int
    d: int
    e: int
    f: int
    g: int
    h: int
    i: int
    j: int
    k: int
    m: int
    n: int
    o: int = 15


def test_many_fields() -> None:
    made = Long(*range(13))
    assert made == (*range(13), 15)
    assert made._replace(o=3)[-2:] == (12, 3)
    assert type(made) is Long
    with pytest.raises(TypeError, match="missing 1 required"):
        Long(*range(12))


@pytest.mark.parametrize("given", [((1,), {}), ((1, 2), {}), ((), {"x": 3}), ((), {"y": 1, "x": 3}), ((1,), {"y": 2})])
def test_made(given: tuple[Any, Any]) -> None:
    made, expected = Point(*given[0], **given[1]), Same(*given[0], **given[1])
    assert made == expected
    assert hash(made) == hash(expected)
    assert (made.x, made.y, made.total) == (*expected, sum(expected))
    assert made._asdict() == expected._asdict()
    assert repr(made) == repr(expected).replace("Same", "Point")
    for again in (copy.copy(made), copy.deepcopy([made])[0], made._replace(), Point._make(made)):
        assert type(again) is Point
        assert again == made
    assert made._replace(y=5) == (made.x, 5)
    first, second = made
    assert (first, second) == made


@pytest.mark.parametrize("given", [((), {}), ((1, 2, 3), {}), ((1,), {"z": 1}), ((1,), {"x": 1})])
def test_refused(given: tuple[Any, Any]) -> None:
    with pytest.raises(TypeError) as expected:
        Same(*given[0], **given[1])
    with pytest.raises(TypeError) as error:
        Point(*given[0], **given[1])
    assert str(error.value) == str(expected.value).replace("Same", "Point").replace("namedtuple_Point", "Point")


def test_of_classes() -> None:
    for name in ("_fields", "_field_defaults", "__match_args__"):
        assert getattr(Point, name) == getattr(Same, name)
    assert Point.__doc__ == "Two numbers."
    assert Point.__module__ == __name__
    assert Point.x.__doc__ == Same.x.__doc__
    assert type(Wider(1)) is Wider
    assert type(Wider(1)._replace(x=2)) is Wider
    assert not hasattr(Point(1), "__dict__")
    with pytest.raises(AttributeError):
        Point(1).x = 2  # type: ignore[misc]
    with pytest.raises((TypeError, ValueError), match="unexpected field names"):
        Point(1)._replace(z=1)
    with pytest.raises(TypeError, match="Expected 2 arguments, got 3"):
        Point._make((1, 2, 3))
    match Point(4):
        case Point(x, y):
            assert (x, y) == (4, 7)
