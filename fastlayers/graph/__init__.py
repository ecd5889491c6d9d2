"""Networks as graphs: `Input` and `trace` record a function of layers, `execute` runs what was recorded.

``ir`` holds the frozen graph, ``symbol`` the values that are recorded, ``ops`` the vocabulary, which ``functional`` fills.
"""

from .execute import execute
from .ir import Graph, Node, Value
from .ops import OPS, Op
from .symbol import Input, Symbol
from .trace import trace

__all__ = ["OPS", "Graph", "Input", "Node", "Op", "Symbol", "Value", "execute", "trace"]
