"""The forms in which commands give a report: a table, JSON, a page, a trace."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
from collections.abc import Sequence
from typing import Any, TextIO

from ..report import Report
from ..report.text import about, cells, chosen, head
from ._draw import printable
from ._model import notes, say, write

__all__ = ["add_faces", "show"]

BAR = 10  # characters of a bar


def add_faces(parser: argparse.ArgumentParser, trace: bool) -> None:
    """``--html`` and ``--trace``."""
    parser.add_argument(
        "--html", metavar="FILE", help="write a page: the network as a picture, a flame graph, a roofline, a table to sort"
    )
    if trace:
        parser.add_argument(
            "--trace", metavar="FILE", help="write the runs as a Chrome trace, which https://ui.perfetto.dev and Chrome show"
        )


def show(report: Report, options: argparse.Namespace, out: TextIO, top: int = 0) -> None:
    """Writes the files that are asked for, then prints."""
    told = notes(options, out)
    if options.html:
        write(options.html, report.html(f"{os.path.basename(options.model)} on {report.variant}"))
    if getattr(options, "trace", None):
        write(options.trace, report.trace())
    if options.json:
        out.write(report.json() + "\n")
    elif out.isatty() and importlib.util.find_spec("rich") is not None:
        _rich(report, out, top)
    else:
        say(out, *report.text(top).splitlines())
    for path in (options.html, getattr(options, "trace", None)):
        if path:
            say(told, f"written to {path}")


def _rich(report: Report, out: TextIO, top: int) -> None:
    """A table with colours, as wide as the terminal."""
    console = importlib.import_module("rich.console").Console(file=out)
    plain: Any = importlib.import_module("rich.text").Text
    made = importlib.import_module("rich.table").Table(box=importlib.import_module("rich.box").SIMPLE_HEAD)
    names = [*head(report), *([""] if report.measured else [])]
    for i, name in enumerate(names):
        made.add_column(name, justify="left" if i < 3 or i == len(names) - 1 else "right", overflow="fold")
    for row in chosen(report, top):
        made.add_row(*_line(report, row, plain))
    # `Text` shows what it is given: names of files may look like rich's markup.
    for note in report.notes:
        console.print(plain(printable(note, out.encoding or "ascii")))
    console.print(made)
    for line in about(report):
        console.print(plain(printable(line, out.encoding or "ascii")))


def _line(report: Report, row: Any, plain: Any) -> Sequence[Any]:
    share = report.share(row)
    style = "bold red" if row.in_numpy else "bold yellow" if share > 0.1 else ""
    found = [plain(printable(cell, "utf-8"), style=style) for cell in cells(report, row)]
    return [*found, plain("━" * round(share * BAR * 2), style="yellow")] if report.measured else found
