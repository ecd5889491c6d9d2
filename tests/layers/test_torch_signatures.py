"""Layers and functions that torch has by name take its arguments, in its order, with its defaults.

What differs is in the table of docs/start/torch.md: a difference that is not there fails, and so does a row that is none.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastlayers as fl

ROOT = Path(__file__).parent.parent.parent
TORCH = json.loads((ROOT / "tests/goldens/torch_signatures.json").read_text(encoding="utf-8"))
PAGE = ROOT / "docs/start/torch.md"
# Said of all above the table.
ELSEWHERE = ("device", "dtype")
FIRST = {"input": "x"}


def _differences(name: str, theirs: list[list[Any]], ours: Any) -> Iterator[tuple[str, str, str, str]]:
    """Name, argument, and torch's default and ours, or what else differs."""
    found = {p.name: p for p in inspect.signature(ours).parameters.values()}
    order = [p.name for p in found.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    for at, (argument, *default) in enumerate(theirs):
        if argument.startswith("_") or argument in ELSEWHERE:
            continue
        mine = found.get(FIRST.get(argument, argument) if at == 0 else argument)
        told = repr(default[0]) if default else "required"
        if mine is None:
            yield name, argument, told, "-"
            continue
        here = "required" if mine.default is mine.empty else repr(mine.default)
        if (default or [mine.empty])[0] != mine.default or (type(mine.default) is bool) != (told in ("True", "False")):
            yield name, argument, told, here
        if mine.name not in order[at : at + 1]:
            yield (
                name,
                argument,
                f"number {at + 1}",
                "by keyword" if mine.name not in order else f"number {order.index(mine.name) + 1}",
            )


def found() -> set[tuple[str, str, str, str]]:
    """All that differs."""
    made = {
        row for name, theirs in TORCH["functional"].items() for row in _differences(name, theirs, getattr(fl.functional, name))
    }
    return made | {row for name, theirs in TORCH["nn"].items() for row in _differences(name, theirs, getattr(fl, name))}


def listed() -> list[tuple[str, str, str, str]]:
    """The table's rows, one a name; each has a reason."""
    rows = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
        if len(cells) != 5 or cells[0] in ("name", "---"):
            continue
        assert len(cells[4]) > 10, line
        names, argument, theirs, ours = (cell.replace("`", "") for cell in cells[:4])
        rows += [(name, argument, theirs, ours) for name in re.split(r",\s*", names)]
    return rows


def test_what_differs_is_listed_and_what_is_listed_differs() -> None:
    rows = listed()
    assert len(rows) == len(set(rows)), "a row comes twice"
    missing, untrue = sorted(found() - set(rows)), sorted(set(rows) - found())
    assert not missing, missing
    assert not untrue, untrue


def test_a_name_that_both_have_is_compared() -> None:
    assert len(TORCH["functional"]) > 60 and len(TORCH["nn"]) > 90
    assert {"conv2d", "dropout", "softmax"} <= set(TORCH["functional"]) and {"Conv2d", "LSTM", "Softmax"} <= set(TORCH["nn"])
