"""Networks as graphs: `Input` and `trace` record a function of layers, `execute` runs what was recorded.

``symbol`` has the values that are recorded, ``record`` writes operators, and ``ops`` has what
functions of ``functional`` declare of how they are recorded. Nodes are of the one vocabulary, `operators.OPERATORS`.
"""

from typing import TYPE_CHECKING

from .._lazy import exports
from ..ir.graph import Graph, Node, Value

if TYPE_CHECKING:
    from ._execute import execute
    from ._trace import trace
    from .ops import Op
    from .symbol import Input, Symbol
else:
    __getattr__, __dir__ = exports(__name__, {"_execute": "execute", "_trace": "trace", "ops": "Op", "symbol": "Input Symbol"})

__all__ = ["Graph", "Input", "Node", "Op", "Symbol", "Value", "execute", "trace"]
