"""The decorator that makes one item of a rule about many subjects."""

from __future__ import annotations

import inspect

import pytest

from .each import each


def test_every_subject_that_breaks_a_rule_is_listed() -> None:
    seen = []

    @each("a, b", [(1, 1), (1, 2), (2, 2), (3, 4)])
    def rule(a: int, b: int) -> None:
        seen.append((a, b))
        assert a == b, f"{a} is not {b}"

    with pytest.raises(AssertionError, match=r"(?s)2 of 4 subjects:\n1-2: .*1 is not 2.*\n3-4: .*3 is not 4") as caught:
        rule()
    assert len(seen) == 4 and isinstance(caught.value.__cause__, AssertionError)


def test_what_pytest_raises_is_a_failure_too() -> None:
    @each("a", ["x"])
    def rule(a: str) -> None:
        with pytest.raises(ValueError):  # noqa: PT011
            a.strip()

    with pytest.raises(AssertionError, match="1 of 1 subjects"):
        rule()


def test_fixtures_stay_arguments() -> None:
    @each("a", [1, 2])
    def rule(a: int, tmp_path: str) -> None:
        assert tmp_path == "there"

    assert list(inspect.signature(rule).parameters) == ["tmp_path"]
    rule(tmp_path="there")


def test_nothing_is_no_subject() -> None:
    with pytest.raises(AssertionError, match="a rule about nothing"):
        each("a", [])


def test_two_lists_are_gone_through_in_all_combinations() -> None:
    seen = []

    @each("a", [pytest.param("x", id="the first"), "y"])
    @each("b", [1, 2], ids=["one", "two"])
    def rule(a: str, b: int) -> None:
        seen.append((a, b))
        assert (a, b) != ("x", 2)

    with pytest.raises(AssertionError, match="1 of 4 subjects:\ntwo-the first: "):
        rule()
    assert sorted(seen) == [("x", 1), ("x", 2), ("y", 1), ("y", 2)]


def test_a_test_is_skipped_if_every_subject_is() -> None:
    @each("a", [1, 2])
    def rule(a: int) -> None:
        if a <= most:
            pytest.skip("none")

    most = 1
    rule()
    most = 2
    with pytest.raises(pytest.skip.Exception):
        rule()


def test_a_subject_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    @each("a", ["relu", "gelu", "add"])
    def rule(a: str) -> None:
        seen.append(a)

    monkeypatch.setattr("tests.each.only", "elu")
    rule()
    assert seen == ["relu", "gelu"]
