"""TensorFlow Lite files as frozen values, checked as far as one part can be without the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..._tuples import NamedTuple
from .._arrays import Array
from .flat import Table

__all__ = ["Model", "Operator", "Quantization", "Signature", "Subgraph", "Tensor"]


class Quantization(NamedTuple):
    """real = scale (stored - zero_point), one number of each, or one per slice along `axis`."""

    scale: Array
    zero_point: Array
    axis: int


class Tensor(NamedTuple):
    """A size of `shape` may be unknown. `type` is a number of `schema.TYPES`, `buffer` that of the data."""

    name: str
    shape: tuple[int | None, ...]
    type: int
    buffer: int
    quantization: Quantization | None
    variable: bool
    sparsity: Table | None
    stored: tuple[int, ...]  # the shape of the data, all sizes ints


class Options(Mapping[str, Any]):
    """An operator's options by name, which know which of them have been read."""

    def __init__(self, values: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
        self._values, self._defaults = dict(values), defaults
        self._read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self._read.add(name)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def unread(self) -> dict[str, Any]:
        """The options that were not asked for, and that say something else than if they were left out."""
        rest = {name: value for name, value in self._values.items() if name not in self._read}
        return {name: value for name, value in rest.items() if value is not None and value != self._defaults[name]}


class Operator(NamedTuple):
    """`inputs` has -1 for one that was left out. `unknown` are fields that are in the file and not in the schema."""

    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Options
    version: int
    custom: memoryview | None  # the options of a custom operator, as its writer laid them out
    unknown: tuple[str, ...] = ()


class Subgraph(NamedTuple):
    """Tensors by number, and the operators in the order in which they run."""

    name: str
    tensors: tuple[Tensor, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: tuple[Operator, ...]


class Signature(NamedTuple):
    """Names that a caller knows, each with the number of its tensor."""

    key: str
    subgraph: int
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[str, int], ...]


class Model(NamedTuple):
    """The whole file. `buffers` are views into it; None where there is no data."""

    subgraphs: tuple[Subgraph, ...]
    buffers: tuple[memoryview | None, ...]
    signatures: tuple[Signature, ...]
    metadata: Mapping[str, str]
