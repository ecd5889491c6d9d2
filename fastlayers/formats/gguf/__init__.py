"""Reading GGUF: descriptions and weights in blocks of few bits, by a bounds-checked reader of our own.

bytes -> `parse` (metadata, and where each tensor is; `types` has their types) -> `parts` (those of several files together)
-> `tensors` (arrays, or blocks in place)

`network` makes a graph: `families` has transformers' words and names for an architecture's, `matrix` writes products with blocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._arrays import Array
from ..budget import Budget
from ..source import Source, open_source
from ..weights import MAX_BYTES, limit

if TYPE_CHECKING:
    from ...ir.graph import Graph
    from ..source import SourceLike

NAME = "gguf"
LOOKS = "'GGUF'"


def sniff(source: Source) -> bool:
    """Whether it has the magic number."""
    return source.starts_with(b"GGUF")


def load_weights(source: Source, budget: Budget) -> dict[str, Array]:
    """Every tensor by its name: quantized ones as float32, the others as they are stored."""
    from .parts import whole
    from .tensors import read

    return {name: read(tensor, budget) for name, tensor in whole(source, budget).tensors.items()}


def load_graph(source: Source, budget: Budget) -> tuple[Graph, dict[str, str]]:
    """The network as a graph of operators, and what the file says of itself."""
    from . import network

    return network.load_graph(source, budget)


def metadata(source: SourceLike, *, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """The metadata of a GGUF file, vocabulary included: numbers, bools and texts, lists of texts, arrays of numbers.

    Raises what `load_weights` does. Types of tensors that are not read do not matter here.
    """
    from .parse import parse, value_of

    budget = Budget(limit(max_bytes, "metadata"), "metadata")
    file = parse(open_source(source, caller="metadata", mapped=True, budget=budget), budget, tensors=False)
    return {key: value_of(file, key, budget) for key in file.metadata}
