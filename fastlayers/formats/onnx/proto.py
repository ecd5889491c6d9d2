"""ONNX models as frozen values: the messages of onnx.proto that matter when a model is run, under their names there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ..._tuples import NamedTuple
from .._arrays import Array
from ..source import quote

EMPTY: Mapping[str, Any] = MappingProxyType({})


class ValueInfo(NamedTuple):
    """Declaration of a value in a model.

    `shape`: a size, the name of a size or None for each dimension; None if the rank is not known or it is no tensor.
    `dtype`: numpy's, of the elements; types that numpy lacks have the one they are widened to. None if it is not said or not one.
    `kind`: "tensor", "sparse tensor", "opaque" or, nested, "optional(sequence(tensor))" or "map(tensor)"; "" if it is not said.
    `elem_type`: ONNX's number of the elements' type, of the innermost kind; 0 if it is not said.
    """

    name: str
    shape: tuple[int | str | None, ...] | None
    dtype: np.dtype[Any] | None
    kind: str
    elem_type: int


class Reference(NamedTuple):
    """Stands in a function's body for the attribute `name` of the node that calls the function."""

    name: str


class NodeProto(NamedTuple):
    """One operation. `inputs` and `outputs` are names of values, "" for one that is left out.

    `domain` is "" for ONNX's own operators. `opset` is the version of the domain's operator set that the node was written for; 0
    if ONNX's own was not imported, 1 if another was not.
    Values of `attributes` are int, float, str (bytes if not UTF-8), a read-only array (sparse tensors too), GraphProto, ValueInfo
    (for a type) or a tuple of one of these; in a function's body also Reference.
    """

    op_type: str
    domain: str
    overload: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    opset: int


class GraphProto(NamedTuple):
    """Nodes between named inputs and outputs, with constants.

    `inputs` has every input in the file's order; one with the name of an initializer has that for its default.
    `initializers` are read-only arrays (of str or bytes for strings), sparse ones made dense.
    `widened`: for initializers and outputs of Constant and ConstantOfShape whose elements are of a type that numpy lacks, ONNX's
    name of it.
    """

    name: str
    nodes: tuple[NodeProto, ...]
    initializers: Mapping[str, Array]
    inputs: tuple[ValueInfo, ...]
    outputs: tuple[ValueInfo, ...]
    value_info: Mapping[str, ValueInfo]
    widened: Mapping[str, str]
    doc_string: str = ""


class FunctionProto(NamedTuple):
    """A function of the model: `attributes` are the names it takes, `defaults` the values of others that may be left out.

    `widened` is as in a graph.
    """

    name: str
    domain: str
    overload: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[str, ...]
    defaults: Mapping[str, Any]
    nodes: tuple[NodeProto, ...]
    opsets: Mapping[str, int]
    widened: Mapping[str, str]


class Model(NamedTuple):
    """A whole model. `opsets` maps domains ("" for ONNX's own) to versions, `metadata` is the file's own."""

    ir_version: int
    opsets: Mapping[str, int]
    producer_name: str
    producer_version: str
    domain: str
    model_version: int | None
    doc_string: str
    metadata: Mapping[str, str]
    graph: GraphProto
    functions: tuple[FunctionProto, ...]


class Pending:
    """An array that is made when it is first asked for: a copy of bytes that are checked already, its memory paid for.

    `unaligned`: the same elements where they are stored, at an odd address; None where they need more than an aligned copy.
    `codes`: the bytes of floats of 8 bits; None of other elements.
    """

    __slots__ = ("_array", "_make", "codes", "unaligned")

    def __init__(self, make: Callable[[], Array], unaligned: Array | None = None, codes: Array | None = None) -> None:
        self._make: Callable[[], Array] | None = make
        self._array: Array | None = None
        self.unaligned, self.codes = unaligned, codes

    def array(self) -> Array:
        """The array. Two threads that both ask first may get two arrays with the same content."""
        make = self._make  # before the array: another thread sets that first and then clears this
        array = self._array
        if array is None and make is not None:
            self._array = array = make()
            self._make = None
        assert array is not None
        return array


class Lazy(Mapping[str, Any]):
    """A read-only dict in which arrays that are pending are made when they are looked up."""

    __slots__ = ("_values",)

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> Any:
        value = self._values[name]
        return value.array() if type(value) is Pending else value

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __repr__(self) -> str:
        return f"<{len(self)} values: {', '.join(map(quote, self))}>"

    def stored(self) -> dict[str, Any]:
        """Content of the attribute, pending arrays as such; not to be changed."""
        return self._values


def frozen(values: dict[str, Any]) -> Mapping[str, Any]:
    """A read-only view of `values`, which nothing else may hold."""
    if not values:
        return EMPTY
    for value in values.values():
        if type(value) is Pending:
            return Lazy(values)
    return MappingProxyType(values)


def stored(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The values as `frozen` got them: what is pending stays so."""
    return values.stored() if type(values) is Lazy else values


def in_place(values: Mapping[str, Any], codes: Collection[str] = ()) -> Iterator[tuple[str, Any]]:
    """The values with their names; those that lack nothing but alignment as they are stored, without a copy, and so the bytes of
    `codes`.
    """
    for name, value in stored(values).items():
        if type(value) is Pending and name in codes and value.codes is not None:
            yield name, value.codes
        elif type(value) is Pending:
            yield name, value.array() if value.unaligned is None else value.unaligned
        else:
            yield name, value


class Place:
    """Position in a model, for errors; made into text only when there is one."""

    __slots__ = ("_kind", "_name", "_outer")

    def __init__(self, outer: object, kind: str, name: str | None = None) -> None:
        self._outer = outer
        self._kind = kind
        self._name = name

    def __str__(self) -> str:
        parts: list[str] = []
        place: object = self
        while isinstance(place, Place):
            parts.append(place._kind if place._name is None else f"{place._kind} {quote(place._name)}")
            place = place._outer
        if len(parts) > 4:
            parts[2:-1] = ["..."]
        return ": ".join((str(place), *reversed(parts)))
