"""The kernels that calls look up while a test runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from fastlayers.kernels import dispatch


class _Noted:
    """A table of kernels that notes the names that are asked for."""

    def __init__(self, table: Mapping[str, Callable[..., Any]]) -> None:
        self.table, self.names = table, list[str]()

    def __getitem__(self, name: str) -> Callable[..., Any]:
        self.names.append(name)
        return self.table[name]


def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of kernels of the current variant, in the order in which they are asked for from now on."""
    noted = _Noted(dispatch._table)
    monkeypatch.setattr(dispatch, "_table", noted)
    return noted.names
