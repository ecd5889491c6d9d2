"""One operator of a file as the rules see it: inputs as values of the graph that is written, options, results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ...errors import FormatError, UnsupportedError
from ...operators.shapes import NUMBERS
from .._arrays import Array
from .proto import Operator, Quantization, Tensor
from .schema import ACTIVATIONS, dtype_of

if TYPE_CHECKING:
    from ...operators.graphs import GraphBuilder
    from .graph import Converter

__all__ = ["Call", "dequantized"]


class Call:
    """Argument of a rule: ``rule(call)`` writes nodes through `e` and returns the name of the result, or a tuple of names."""

    def __init__(
        self, converter: Converter, e: GraphBuilder, operator: Operator, inputs: tuple[str | None, ...],
        tensors: tuple[Tensor | None, ...], outputs: tuple[Tensor, ...],
    ) -> None:  # fmt: skip
        self.converter, self.e, self.operator = converter, e, operator
        self.inputs, self.tensors, self.outputs = inputs, tensors, outputs

    @property
    def op(self) -> str:
        """The operator's name in TensorFlow Lite."""
        return self.operator.name

    @property
    def options(self) -> Mapping[str, Any]:
        """Its options by name."""
        return self.operator.options

    # ---- saying no ----------------------------------------------------------------------------------------------------

    def refuse(self, text: str) -> NoReturn:
        """The operator is known, but not done in this way."""
        raise UnsupportedError(f"operator {self.op} {text}")

    def fail(self, text: str) -> NoReturn:
        """The file contradicts itself."""
        raise FormatError(f"{self.converter.where}: {self.op}: {text}")

    # ---- inputs -------------------------------------------------------------------------------------------------------

    def has(self, i: int) -> bool:
        """Whether input i was given."""
        return i < len(self.inputs) and self.inputs[i] is not None

    def x(self, i: int = 0) -> str:
        """The name of input i, which must be there."""
        name = self.inputs[i] if i < len(self.inputs) else None
        if name is None:
            self.fail(f"input {i} is missing")
        return name

    def optional(self, i: int) -> str | None:
        """The name of input i, or None."""
        return self.inputs[i] if i < len(self.inputs) else None

    def tensor(self, i: int) -> Tensor:
        """Description of input i in the file."""
        found = self.tensors[i] if i < len(self.tensors) else None
        if found is None:
            self.fail(f"input {i} is missing")
        return found

    def constant(self, i: int) -> Array | None:
        """Input i's array if it is constant."""
        return self.e.value(self.optional(i))

    def ints(self, i: int, what: str) -> list[int]:
        """The integers of input i, which must be constant."""
        array = self.constant(i)
        if array is None:
            self.refuse(f"with {what} that are computed")
        if array.dtype.kind not in "iu":
            self.fail(f"{what} are of dtype {array.dtype}: expected integers")
        return [int(v) for v in array.reshape(-1)]

    def number(self, i: int, what: str) -> int:
        """The one integer of input i, which must be constant."""
        values = self.ints(i, what)
        if len(values) != 1:
            self.fail(f"{what} is {values[:8]}: expected one number")
        return values[0]

    def rank(self, i: int = 0) -> int:
        """The number of axes of input i, which must be known."""
        found = self.e.rank(self.x(i))
        if found is None:
            self.refuse("of a value whose number of axes is not known")
        return found

    def axis(self, value: int, rank: int) -> int:
        """An axis counted from the front."""
        if not -rank <= value < rank:
            self.fail(f"axis {value}: expected {-rank} to {rank - 1}")
        return value % rank

    def weight(self, i: int, axes: tuple[int, ...]) -> str:
        """Input i with its axes in another order: a view if it is constant."""
        name = self.x(i)
        array = self.e.value(name)
        if array is not None and array.ndim == len(axes):
            return self.e.constant(array.transpose(axes), f"{name}/ordered")
        return self.e.node("Transpose", name, perm=axes)

    # ---- results ------------------------------------------------------------------------------------------------------

    def dtype(self, i: int = 0) -> np.dtype[Any]:
        """The dtype that output i is to have."""
        found = dtype_of(self.outputs[i].type)
        if found is None:
            self.refuse("with a result that is not numeric")
        return found

    def cast(self, name: str, dtype: np.dtype[Any]) -> str:
        """The value in this dtype."""
        if self.e.dtype(name) == dtype:
            return name
        if dtype not in NUMBERS:
            self.refuse(f"to {dtype}")
        return self.e.node("Cast", name, to=NUMBERS[dtype])

    def activated(self, name: str) -> str:
        """Applies the fused activation to the result."""
        code = self.options.get("act", 0)
        if not code:
            return name
        if code not in ACTIVATIONS:
            self.refuse(f"with the activation number {code}")
        op, bounds = ACTIVATIONS[code]
        if self.e.dtype(name).kind in "iu" and self.outputs[0].quantization is not None:
            return self._within(name, (0.0, np.inf) if op == "Relu" else bounds, self.outputs[0].quantization)
        return self.e.node(op, name, *(self.scalar(b, name) for b in bounds))

    def _within(self, name: str, bounds: tuple[float, ...], quantization: Quantization) -> str:
        """Quantized values cut off at reals; mostly their scale has been chosen so that nothing is beyond."""
        if not bounds or len(quantization.scale) != 1:
            self.refuse(f"with the activation number {self.options['act']} on quantized values")
        info = np.iinfo(self.e.dtype(name))
        steps = [b / max(float(quantization.scale[0]), 1e-38) + float(quantization.zero_point[0]) for b in bounds]
        low, high = (int(min(max(np.floor(s + 0.5), info.min), info.max)) for s in steps)
        if (low, high) == (info.min, info.max):
            return name
        return self.e.node("Clip", name, self.scalar(low, name), self.scalar(high, name))

    def zero(self, i: int) -> str | None:
        """The number that stands for 0 in input i, None if it is 0."""
        name, quantization = self.x(i), self.tensor(i).quantization
        stored = self.e.dtype(name).kind in "iu" and quantization is not None and len(quantization.scale) == 1
        return self.scalar(float(quantization.zero_point[0]), name) if stored and quantization is not None else None

    def scalar(self, value: float, like: str) -> str:
        """A constant of one number, of the dtype of the value `like`; of integers the nearest that there is."""
        dtype = self.e.dtype(like)
        if dtype.kind not in "fiu":
            self.refuse(f"of values of dtype {dtype}")
        if dtype.kind in "iu":
            info = np.iinfo(dtype)
            if value != value:
                self.fail("nan is no integer")
            value = round(min(max(value, info.min), info.max))
        return self.e.constant(np.array(value, dtype))


def dequantized(converter: Converter, tensor: Tensor, array: Array) -> Array:
    """scale (array - zero_point) as float32."""
    quantization = tensor.quantization
    assert quantization is not None
    out = converter.budget.empty(array.shape, np.float32, f"{converter.where}: tensor {tensor.name!r}")
    scale, zero = spread(converter, tensor, quantization)
    with np.errstate(all="ignore"):  # a scale may be as large as it likes
        np.subtract(array, zero, out=out, dtype=np.float32, casting="unsafe")
        out *= scale
    return out


def spread(converter: Converter, tensor: Tensor, quantization: Quantization) -> tuple[Array, Array]:
    """Scale and zero point as arrays that broadcast to the tensor."""
    rank, count = len(tensor.stored), len(quantization.scale)
    if count == 1:
        return quantization.scale.reshape(()), quantization.zero_point.astype(np.float32).reshape(())
    axis = quantization.axis
    if not 0 <= axis < rank or tensor.stored[axis] != count:
        raise FormatError(
            f"{converter.where}: tensor {tensor.name!r} has {count} scales along axis {axis}, its shape is {list(tensor.stored)}"
        )
    shape = (1,) * axis + (count,) + (1,) * (rank - axis - 1)
    return quantization.scale.reshape(shape), quantization.zero_point.astype(np.float32).reshape(shape)
