"""The public interface is what tests/api.txt says: a change of it is made on purpose, with ``python -m tests.api``."""

from __future__ import annotations

import pytest

import fastlayers as fl

from .api import PAGE, differences, lines


def test_the_public_interface_is_that_of_the_page() -> None:
    assert differences() == [], "if this is meant: python -m tests.api, and an entry in CHANGELOG.md"


def test_the_page_has_every_public_name() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert all(f"fastlayers.{name}" in text for name in fl.__all__)
    assert "def fastlayers.functional.conv2d(x, weight, bias=None" in text
    assert "    def fastlayers.Model.run(" in text
    assert len(lines()) == len(set(lines()))


def test_a_change_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fl, "load", lambda source, other=1: None)
    assert "+def fastlayers.load(source, other=1)" in differences()
