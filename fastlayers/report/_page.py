"""A report as a page of HTML that needs nothing but itself, and as the excerpt that notebooks show."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import _html
from .._html import clean
from ._flame import flame
from ._network import drawing
from ._roofline import roofline
from .text import about, chosen, count, limit

if TYPE_CHECKING:
    from .data import Report, StepReport

__all__ = ["document", "excerpt", "page"]

MOST_ROWS = 5000
FEW_ROWS = 20  # of an excerpt
FEW_BOXES = 60

STYLE = """
:root{color-scheme:light dark;--ground:#fff;--ink:#1c2024;--line:#d5dae0;--soft:#f5f7f9}
@media(prefers-color-scheme:dark){:root{--ground:#14171a;--ink:#e4e8ec;--line:#3a424b;--soft:#1d2226}}
body{background:var(--ground);color:var(--ink);font:14px/1.5 system-ui,sans-serif;margin:0 auto;
max-width:1160px;padding:16px 20px 60px}
h1{font-size:20px;overflow-wrap:anywhere}h2{font-size:16px;margin:28px 0 8px}p{margin:4px 0}
.picture{background:var(--soft);border:1px solid var(--line);border-radius:8px;padding:8px;overflow-x:auto}
@media(max-width:700px){.picture svg{min-width:var(--wide)}}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:8px}
.facts div{background:var(--soft);border-radius:8px;padding:8px 12px}.facts b{display:block;font-size:17px}
.wide{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:13px}
td,th{padding:3px 10px;border-bottom:1px solid var(--line);white-space:nowrap;
max-width:420px;overflow:hidden;text-overflow:ellipsis}
.sortable th{cursor:pointer;position:sticky;top:0;background:var(--ground)}.sortable th[aria-sort]{text-decoration:underline}
"""
# Sorts by the number of a cell where it has one, else by its text; a second click turns the order round.
SCRIPT = """
document.querySelectorAll('table.sortable').forEach(function(table){
  var body=table.tBodies[0];
  Array.prototype.forEach.call(table.tHead.rows[0].cells,function(head,column){
    head.tabIndex=0;
    function sort(){
      var up=head.getAttribute('aria-sort')==='descending';
      Array.prototype.forEach.call(table.tHead.rows[0].cells,function(other){other.removeAttribute('aria-sort')});
      head.setAttribute('aria-sort',up?'ascending':'descending');
      var rows=Array.prototype.slice.call(body.rows);
      rows.sort(function(a,b){
        var x=a.cells[column],y=b.cells[column],order;
        if(x.dataset.sort!==undefined&&y.dataset.sort!==undefined)order=x.dataset.sort-y.dataset.sort;
        else order=x.textContent.localeCompare(y.textContent);
        return up?order:-order;
      });
      rows.forEach(function(row){body.appendChild(row)});
    }
    head.addEventListener('click',sort);
    head.addEventListener('keydown',function(event){if(event.key==='Enter')sort()});
  });
});
"""


def document(title: str, parts: Sequence[str]) -> str:
    """A page that needs nothing but itself. Its policy allows this script alone, by its digest: a name that passed for one would
    not run.
    """
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    first = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width,initial-scale=1">',
        f"<title>{clean(title)}</title><style>{STYLE}</style></head><body>",
        f"<h1>{clean(title)}</h1>",
    ]
    return "\n".join([*first, *parts, f"<script>{SCRIPT}</script></body></html>", ""])


def page(report: Report, title: str) -> str:
    """See `Report.html`."""
    what = "time" if report.measured else "work (multiply-adds, and bytes)"
    roof = roofline(report)
    parts = [
        *(f"<p>{clean(note, 400)}</p>" for note in report.notes),
        f'<div class="facts">{"".join(f"<div>{clean(k)}<b>{clean(v)}</b></div>" for k, v in _facts(report))}</div>',
        "<h2>Inputs and outputs</h2>",
        f'<div class="wide">{_sides(report)}</div>',
        f"<h2>The network, coloured by {what}</h2><p>Dashed: runs in numpy. Point at a box to read what it is.</p>",
        f'<div class="picture">{drawing(report)}</div>',
        f"<h2>By scope: {what}</h2>",
        f'<div class="picture">{flame(report)}</div>',
    ]
    if roof:
        parts += [
            "<h2>Next to the limits of this machine</h2>",
            "<p>The line is what a core's arithmetic and memory allow; steps whose data is in a cache may pass its slope.</p>",
            f'<div class="picture">{roof}</div>',
        ]
    parts += [
        "<h2>Steps</h2><p>Click on a heading to sort.</p>",
        f'<div class="wide">{_steps(report, MOST_ROWS)}</div>',
        *(f"<p>{clean(line, 400)}</p>" for line in about(report)),
    ]
    return document(title, parts)


def excerpt(report: Report) -> str:
    """A small picture and the steps that cost most, for notebooks."""
    rows = "longest" if report.measured else "largest"
    more = f"<p>the {FEW_ROWS} {rows} of {len(report.steps)} steps</p>" if len(report.steps) > FEW_ROWS else ""
    return (
        f'<div style="max-height:300px;overflow:auto">{drawing(report, 900, FEW_BOXES)}</div>'
        f"{more}{_steps(report, FEW_ROWS, '')}{''.join(f'<p>{clean(line, 400)}</p>' for line in about(report))}"
    )


def _facts(report: Report) -> list[tuple[str, str]]:
    found = [
        ("steps", str(len(report.steps))),
        ("parameters", count(report.parameters)),
        ("multiply-adds", count(report.multiply_adds)),
        ("in numpy", str(len(report.numpy_steps))),
        ("kernels", report.variant),
        ("threads", str(report.threads)),
    ]
    if report.arena is not None:
        found.append(("intermediate results", f"{count(report.arena)}B"))
    if report.measured:
        found.append(("a run at best", f"{min(report.runs) * 1e6:.1f} us"))
    return found


def _sides(report: Report) -> str:
    rows = []
    for what, values in (("input", report.inputs), ("output", report.outputs)):
        for value in values:
            rows.append((what, value.name, value.dtype, _html.shape(value.shape)))
    return _html.table(["", "name", "dtype", "shape"], rows, 4)


def _steps(report: Report, most: int, kind: str = "sortable") -> str:
    head = ["operator", "result", "shape", "parameters", "multiply-adds", "bytes"]
    head += ["us", "times", "of all", "of limit"] if report.measured else []
    few = chosen(report, most) if len(report.steps) > most else report.steps
    return _html.table([*head, "runs in"], [_row(report, row) for row in few], 3, kind)


def _row(report: Report, row: StepReport) -> list[Any]:
    step = row.step
    found: list[Any] = [step.op, step.name, row.shape]
    found += [(count(number), number) for number in (step.parameters, step.multiply_adds, step.bytes)]
    if report.measured:
        found += [(f"{row.best * 1e6:.1f}", row.best), (row.rounds, row.rounds), (f"{report.share(row):.1%}", report.share(row))]
        share, kind = limit(report, row)
        found.append((f"{share:.0%}" if share else kind, share))
    return [*found, row.where]
