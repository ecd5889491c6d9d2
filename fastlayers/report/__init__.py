"""A network's parts and their costs, as one object with many faces: see `Report`."""

from ._limits import Limits, limits
from ._make import STAGED, measured, planned, values_of
from .data import Report, StepReport, ValueReport

__all__ = ["STAGED", "Limits", "Report", "StepReport", "ValueReport", "limits", "measured", "planned", "values_of"]
