"""Report of quantizing a network, layer by layer: a table of text, and a page."""

from __future__ import annotations

from typing import Any

from .. import _html
from .._tuples import NamedTuple
from ._page import document
from .text import count, short, table

__all__ = ["Quantization", "QuantizedLayer"]


class QuantizedLayer(NamedTuple):
    """A layer that was looked at.

    Attributes:
        name: the value that it gives.
        op: its operator.
        stored: "int8" (or "int4") or "float32".
        why: why it stays in float32, or "".
        error: the relative error that it alone adds to the outputs; of weights alone, its matrix's own; None if not measured.
        seconds: of it alone, in float32 and in integers; None if not measured.
        bytes: of its weights, before and after.
    """

    name: str
    op: str
    stored: str
    why: str
    error: float | None
    seconds: tuple[float, float] | None
    bytes: tuple[int, int]


class Quantization(NamedTuple):
    """The report of `fl.quantize`. `str` of it is a table; `html` a page.

    Attributes:
        layers: those that could be quantized.
        samples: how many samples were seen, and how many of them errors were measured on.
        asked: the largest relative error that was allowed.
        error: the relative error that was reached; None if there were no samples.
        seconds: of a run of the first sample, before and after; None if there were none.
        bytes: of all constants, before and after.
    """

    layers: tuple[QuantizedLayer, ...]
    samples: tuple[int, int]
    asked: float
    error: float | None
    seconds: tuple[float, float] | None
    bytes: tuple[int, int]

    def __str__(self) -> str:
        rows = [[short(str(c)) for c in row] for row in _cells(self)]
        return "\n".join([table(_HEAD, rows, 4), *_lines(self)])

    def html(self, title: str = "quantized network") -> str:
        """A page that needs nothing but itself: figures, and a table that can be sorted."""
        body = _html.table(_HEAD, [_numbers(self, i, row) for i, row in enumerate(_cells(self))], 4, "sortable")
        facts = "".join(f"<p>{_html.clean(line, 400)}</p>" for line in _lines(self))
        return document(title, [facts, "<h2>Layers</h2><p>Click on a heading to sort.</p>", f'<div class="wide">{body}</div>'])


_HEAD = ["layer", "operator", "stored as", "why", "error added", "us before", "us after", "bytes before", "bytes after"]


def _cells(found: Quantization) -> list[list[str]]:
    return [
        [
            row.name, row.op, row.stored, row.why, "" if row.error is None else f"{row.error:.2e}",
            *(("", "") if row.seconds is None else (f"{s * 1e6:.1f}" for s in row.seconds)), *map(count, row.bytes),
        ]
        for row in found.layers
    ]  # fmt: skip


def _numbers(found: Quantization, i: int, cells: list[str]) -> list[Any]:
    """The cells of a row, with what they are sorted by."""
    row = found.layers[i]
    numbers = [row.error or 0.0, *(row.seconds or (0.0, 0.0)), *row.bytes]
    return [*cells[:4], *zip(cells[4:], numbers, strict=True)]


def _lines(found: Quantization) -> list[str]:
    before, after = found.bytes
    lines = [
        f"{sum(row.stored != 'float32' for row in found.layers)} of {len(found.layers)} layers in integers",
        f"weights: {count(before)}B before, {count(after)}B after ({before / max(after, 1):.2f} times smaller)",
    ]
    if found.error is not None:
        lines.append(
            f"relative error of the outputs: {found.error:.2e}, asked {found.asked:.2e} ({found.samples[0]} samples, "
            f"measured on {found.samples[1]}); before: 0"
        )
    if found.seconds is not None:
        lines.append(
            f"a run: {found.seconds[0] * 1e3:.3f} ms before, {found.seconds[1] * 1e3:.3f} ms after "
            f"({found.seconds[0] / found.seconds[1]:.2f} times as fast)"
        )
    return lines
