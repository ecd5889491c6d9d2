"""Networks as graphs: `Input` and `trace` record a function of layers, `execute` runs what was recorded.

``ir`` holds the frozen graph, ``symbol`` the values that are recorded, ``ops`` the vocabulary, which ``functional`` fills.
"""

from typing import TYPE_CHECKING

from .._lazy import exports, functions_first

if TYPE_CHECKING:
    from .execute import execute
    from .ir import Graph, Node, Value
    from .ops import OPS, Op
    from .symbol import Input, Symbol
    from .trace import trace
else:
    _HOMES = {"execute": "execute", "ir": "Graph Node Value", "ops": "OPS Op", "symbol": "Input Symbol", "trace": "trace"}
    __getattr__, __dir__ = exports(__name__, _HOMES)
    functions_first(__name__, {"execute", "trace"})

__all__ = ["OPS", "Graph", "Input", "Node", "Op", "Symbol", "Value", "execute", "trace"]
