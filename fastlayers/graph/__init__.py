"""Networks as graphs: `Input` and `trace` record a function of layers, `execute` runs what was recorded.

``symbol`` has the values that are recorded, ``record`` writes operators, and ``ops`` has what
functions of ``functional`` declare of how they are recorded. Nodes are of the one vocabulary, `operators.OPERATORS`.
"""

import warnings
from typing import TYPE_CHECKING

from .._lazy import exports, functions_first, imported

_OPS = (
    "fastlayers.graph.OPS: recorded graphs have operators of fastlayers.operators.OPERATORS; a function of fastlayers.functional "
    "is recorded as graph.trace shows"
)

if TYPE_CHECKING:
    from ..ir.graph import Graph, Node, Value
    from .execute import execute
    from .ops import Op
    from .symbol import Input, Symbol
    from .trace import trace
else:
    from ..ir.graph import Graph, Node, Value

    _HOMES = {"execute": "execute", "ops": "Op", "symbol": "Input Symbol", "trace": "trace"}
    _fetch, __dir__ = exports(__name__, _HOMES)

    def __getattr__(name):
        if name == "OPS":
            warnings.warn(_OPS, DeprecationWarning, stacklevel=2)
            names = imported("fastlayers.functional").__all__
            return {
                found.name: found
                for found in map(imported("fastlayers.functional.declared").declared, names)
                if found is not None
            }
        if name in ("ir", "passes"):  # which were here
            return imported(f"{__name__}.{name}")
        return _fetch(name)

    functions_first(__name__, {"execute", "trace"})

__all__ = ["Graph", "Input", "Node", "Op", "Symbol", "Value", "execute", "trace"]
