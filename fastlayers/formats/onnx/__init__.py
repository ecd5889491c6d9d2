"""Reading ONNX: a protobuf reader of our own, and the frozen description of the model that it gives. Runs nothing.

bytes -> `wire` (fields) -> `values`, `parse` (messages) -> `functions` (calls expanded) -> `order` (checked, ordered) -> `Model`

Only `proto` need be known to use it. The rest is imported when the first model is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .._arrays import Array
from ..budget import Budget
from ..source import Source

if TYPE_CHECKING:
    from ...ir.graph import Graph
    from .proto import Model

NAME = "onnx"
LOOKS = "its version (08, then 01 to 1e), then another field of a ModelProto"

# The ir_version from which on an input that has an initializer may be given another value.
OVERRIDABLE = 4

# A ModelProto has no magic number. Every writer puts the first field first, which is ir_version; then comes one of these.
_SECOND = frozenset((0x12, 0x1A, 0x22, 0x28, 0x32, 0x3A, 0x42, 0x72))


def sniff(source: Source) -> bool:
    """Whether it begins like a ModelProto."""
    first = bytes(source.view[:3])
    return len(first) == 3 and first[0] == 0x08 and 1 <= first[1] <= 30 and first[2] in _SECOND


def load_weights(source: Source, budget: Budget) -> dict[str, Array]:
    """Every numeric initializer by its name, and every Constant by that of its output; see `reader.load_weights`."""
    from . import reader

    return reader.load_weights(source, budget)


def read(source: Source, budget: Budget) -> Model:
    """The checked model of the file; see `reader.read`."""
    from . import reader

    return reader.read(source, budget)


def load_graph(source: Source, budget: Budget) -> tuple[Graph, dict[str, str], dict[str, Any]]:
    """The model as a graph of operators, its metadata, and what the file says of itself besides, by onnxruntime's names."""
    from .graph import to_graph

    model = read(source, budget)
    graph = model.graph
    about: dict[str, Any] = {
        "producer_name": model.producer_name,
        "graph_name": graph.name,
        "graph_description": graph.doc_string,
        "domain": model.domain,
        "description": model.doc_string,
    }
    if model.model_version is not None:
        about["version"] = model.model_version
    if model.ir_version >= OVERRIDABLE:
        about["overridable"] = {value.name: value.shape for value in graph.inputs if value.name in graph.initializers}
    return to_graph(model), dict(model.metadata), about


def value_names(source: Source, budget: Budget) -> list[str]:
    """The names, in the file, of the results of the main graph's nodes."""
    from .parse import Parser

    return [name for node in Parser(source, budget).model().graph.nodes for name in node.outputs if name]


def more_outputs(names: Sequence[str]) -> bytes:
    """Bytes that make these values outputs of a model too, if appended to its bytes: a protobuf reader joins both graphs'
    lists."""

    def field(number: int, content: bytes) -> bytes:
        size, length = bytearray(), len(content)
        while length > 127:
            size.append(length & 127 | 128)
            length >>= 7
        return bytes((number << 3 | 2,)) + bytes(size) + bytes((length,)) + content

    # ModelProto.graph is field 7, GraphProto.output 12, ValueInfoProto.name 1.
    return field(7, b"".join(field(12, field(1, name.encode())) for name in names))
