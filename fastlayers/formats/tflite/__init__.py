"""Reading TensorFlow Lite: a bounds-checked flatbuffer reader of our own, and the graph of operators that a file becomes.

bytes -> `flat` (tables) -> `parse` (`proto.Model`) -> `tensors` (arrays) -> `graph` (values and operators by their rules)

`call` is what a rule sees; rules are in `layers`, `maths`, `movement`, `slicing`, `recurrent`, `control` and, of 8-bit networks,
`quantized`. To teach an operator: a line in `schema` if it has options, a rule, and its name in that module's `RULES`. Custom
operators but for one of mediapipe's, and TensorFlow's own (Flex), are refused.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ...errors import FormatError
from .._arrays import Array
from ..budget import Budget
from ..source import Source, quote

if TYPE_CHECKING:
    from ...ir.graph import Graph

NAME = "tflite"
LOOKS = "TFL3 at byte 4"

_MAGIC = b"TFL3"


def sniff(source: Source) -> bool:
    """Whether it has the identifier of a TensorFlow Lite flatbuffer."""
    return source.starts_with(_MAGIC, 4)


def load_weights(source: Source, budget: Budget) -> dict[str, Array]:
    """Every constant tensor of values by its name, as it is stored: quantized ones as integers, sparse ones spread out.

    Where several graphs have a name, that of their graph stands before it: "cond/weight".
    """
    from .parse import parse
    from .tensors import read, readable

    model = parse(source, budget)
    found = []
    for number, graph in enumerate(model.subgraphs):
        for n, tensor in enumerate(graph.tensors):
            data = model.buffers[tensor.buffer] if tensor.buffer < len(model.buffers) else None
            if data is not None and len(data) and readable(tensor):
                found.append(
                    (tensor.name or f"tensor_{n}", graph.name or f"graph_{number}", read(tensor, data, budget, source.where))
                )
    times = Counter(name for name, _, _ in found)
    weights: dict[str, Array] = {}
    for name, path, array in found:
        key = f"{path}/{name}" if times[name] > 1 else name
        if key in weights:
            raise FormatError(f"{source.where}: two tensors have the name {quote(key)}")
        weights[key] = array
    return weights


def load_graph(source: Source, budget: Budget) -> tuple[Graph, dict[str, str]]:
    """The network as a graph of operators, and the file's metadata."""
    from .graph import to_graph
    from .parse import parse

    return to_graph(parse(source, budget), budget, source.where)
