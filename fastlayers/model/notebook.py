"""A model as notebooks show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _html
from ..errors import Error
from .summary import report

if TYPE_CHECKING:
    from .model import Model

__all__ = ["model_html"]


def model_html(model: Model) -> str:
    """Inputs and outputs, and the report where all sizes are known and the network need not be run for it."""
    rows = [
        (what, spec.name, spec.dtype.name, _html.shape(spec.shape))
        for what, specs in (("input", model.inputs), ("output", model.outputs))
        for spec in specs
    ]
    head = f"<p><b>Model</b> on {_html.clean(model.variant)}</p>{_html.table(['', 'name', 'dtype', 'shape'], rows, 4)}"
    if any(s.shape is None or not all(isinstance(d, int) for d in s.shape) for s in model.inputs):
        return f"{head}<p>sizes are open: <code>model.report(shapes)</code> lists the steps</p>"
    try:
        if model._main.binding(model._placeholders([s.shape for s in model.inputs])).staged:
            return f"{head}<p>runs in stages: <code>model.report()</code> runs it once and lists its parts</p>"
        return head + report(model, None)._repr_html_()
    except Error as error:
        return f"{head}<p>{_html.clean(error, 400)}</p>"
