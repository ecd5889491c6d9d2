"""Descriptions of a model's inputs and outputs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, SupportsIndex, overload

import numpy as np

from .._arguments import shown
from .._tuples import NamedTuple
from ..errors import ArgumentError
from ..ir.graph import Shape, Value

__all__ = ["MapSpec", "OptionalSequenceSpec", "OptionalSpec", "SequenceMapSpec", "SequenceSpec", "Specs", "TensorSpec", "specs"]


class TensorSpec(NamedTuple):
    """An input or output: its name, its shape (a size may be a name or None; None if the rank is unknown) and its dtype.

    Elements of types that numpy lacks (bfloat16, floats of 8 bits, integers of 4 ..) have a wider dtype: float32, int8 or uint8.
    Arrays of such types of the package ml_dtypes may be given; results are of the wider dtype. Strings have the dtype object.
    """

    name: str
    shape: Shape | None
    dtype: np.dtype[Any]


class SequenceSpec(TensorSpec):
    """An input or output that is a list of arrays; `dtype` is that of its elements."""


class OptionalSpec(TensorSpec):
    """An input or output that is an array or None."""


class OptionalSequenceSpec(TensorSpec):
    """An input or output that is a list of arrays or None."""


class MapSpec(TensorSpec):
    """An input that is a dict; `dtype` is that of its values."""


class SequenceMapSpec(TensorSpec):
    """An output that is a list of dicts, one per row, as ONNX's ZipMap gives; `load(..., zipmap=False)` gives the array."""


_SPECS: dict[str, type[TensorSpec]] = {
    "tensor": TensorSpec,
    "sequence(tensor)": SequenceSpec,
    "optional(tensor)": OptionalSpec,
    "optional(sequence(tensor))": OptionalSequenceSpec,
    "map": MapSpec,
    "sequence(map)": SequenceMapSpec,
}


class Specs(tuple[TensorSpec, ...]):
    """A tuple of specs that can also be asked by name.

    >>> import fastlayers as fl
    >>> model = fl.compile(lambda x: fl.functional.relu(x), fl.graph.Input("x", ("n", 2)))
    >>> model.inputs["x"].shape, model.inputs.names
    (('n', 2), ['x'])
    """

    __slots__ = ()

    @property
    def names(self) -> list[str]:
        """The names, in order."""
        return [spec.name for spec in self]

    @overload
    def __getitem__(self, key: str | SupportsIndex) -> TensorSpec: ...

    @overload
    def __getitem__(self, key: slice) -> tuple[TensorSpec, ...]: ...

    def __getitem__(self, key: Any) -> Any:
        """One by its position or its name; several by a slice.

        Raises:
            ArgumentError: there is none of that name.
        """
        if not isinstance(key, str):
            return super().__getitem__(key)
        for spec in self:
            if spec.name == key:
                return spec
        raise ArgumentError(f"there is no {shown(key)}: expected one of {self.names}")


def specs(values: Iterable[Value]) -> Specs:
    """The specs of a graph's inputs or outputs."""
    return Specs(_SPECS[v.kind](*v[:3]) for v in values)
