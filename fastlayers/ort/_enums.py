"""onnxruntime's enumerations of options: names and values as there, printed as there.

Those of devices and memory, which no plain session asks for, are in `_enums_of_devices`: an enumeration takes as long to declare
as a module to import.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = ["ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "Named"]


class Named(IntEnum):
    """The base of enumerations that print their names, as onnxruntime's do; IntEnum prints the number."""

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"


class GraphOptimizationLevel(Named):
    """Levels of optimization: ORT_DISABLE_ALL runs the graph as it is written; all others are the same here."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(Named):
    """Nodes run in order, each on several threads, whatever is chosen."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(Named):
    """The order of nodes is fixed when the model is loaded, whatever is chosen."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2
