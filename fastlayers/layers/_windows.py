"""Base of the layers that are one convolution, transposed or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ..calls.machine import Machine
from ..errors import ArgumentError, refuses_shortage
from ..functional._activation_names import resolve
from ..graph.arrays import as_float32
from ..graph.symbol import Symbol
from ..ir.checks import integer, integers, same_shape
from ..ir.graph import Node
from ._base import WithWeight
from ._eager import Eager
from ._text import arguments

__all__ = ["Windowed"]

# Shapes of inputs that a layer remembers as checked; with more than these, it starts again.
_PLANS = 64


class Windowed(WithWeight):
    """A convolution over `_axes` axes: `_function`, `_operator` in a program. Subclasses define what raises here."""

    _axes = 0
    _function: Any = None
    _operator = "Conv"
    _defaults: ClassVar[dict[str, Any]] = {}  # of the arguments that `repr` shows where they differ
    _place: Any

    def _sizes(self, in_channels: int, out_channels: int, kernel_size: int | Sequence[int]) -> str:
        """Takes these arguments, and returns the function's name."""
        kind = type(self).__name__
        self.in_channels = integer(kind, "in_channels", in_channels, 0)
        self.out_channels = integer(kind, "out_channels", out_channels, 0)
        self.kernel_size = integers(kind, "kernel_size", kernel_size, self._axes, 1)
        self._name = name = str(self._function.__name__)
        return name

    def _begin(self, bias: bool, activation: Any, given: dict[str, Any]) -> None:
        """Takes the rest; `given` are the arguments by which `_place` was made."""
        name, groups = type(self).__name__, given["groups"]
        if self.in_channels % groups or self.out_channels % groups:
            raise ArgumentError(
                f"{name}: groups is {groups}, in_channels {self.in_channels}, out_channels {self.out_channels}: "
                "expected multiples of groups"
            )
        self._activation_code, self._given = resolve(name, activation), given
        ends = self.out_channels, self.in_channels
        first, second = ends if self._operator == "Conv" else ends[::-1]
        self._weight_shape = (first, second // groups, *self.kernel_size)
        shapes: dict[str, tuple[int, ...]] = {"weight": self._weight_shape}
        self._shapes = {**shapes, "bias": (self.out_channels,)} if bias else shapes
        self._plans: dict[Any, tuple[tuple[int, ...], tuple[int, ...]]] = {}

    def _record(self, x: Symbol, weight: np.ndarray, bias: np.ndarray | None, **more: Any) -> np.ndarray:
        """The layer on a symbolic value, with these tensors."""
        result: np.ndarray = self._function(x, weight, bias, **self._given, activation=self._activation_code, **more)
        return result

    def _shape(self, x: tuple[int, ...]) -> Any:
        """The shape of the result for an input of shape x, which is checked."""
        raise NotImplementedError

    def _run(self, m: Machine, shape: tuple[int, ...], x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
        """The kernel calls, whose result has this shape."""
        raise NotImplementedError

    def _apply(self, made: Eager, x: Any, residual: np.ndarray | None = None, out: np.ndarray | None = None) -> np.ndarray:
        """The layer on an array, with packed tensors; `residual` and `out` have the shape of the result."""
        if residual is None and out is None:
            found: np.ndarray | None = made.quick((x,))
            if found is not None:
                return found
        x = as_float32(x, self._name, "x")
        plan = self._plans.get(x.shape)
        if plan is None:
            plan = self._plan(x.shape)
            if residual is None and out is None and (first := self._once(made, x, plan[1])) is not None:
                return first
        given, shape = plan
        if residual is None:
            arrays: tuple[np.ndarray, ...] = (x.reshape(given),)
        else:
            same_shape(self._name, "residual", residual.shape, shape, "the shape of the result")
            arrays = (x.reshape(given), residual.reshape(self._batched(shape)))
        result = made.run(arrays, None if out is None else out.reshape(self._batched(shape)))
        return (result if out is None else out).reshape(shape)

    @refuses_shortage("preparing a layer")
    def _once(self, made: Eager, x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray | None:
        """The layer on an array of new sizes, without binding them; None if that cannot be, and they must be bound."""
        found = made.once()
        if found is None:
            return None
        with made.bound():
            return self._run(found, shape, x, made.constants["weight"], made.constants.get("bias"))

    def _batched(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """A shape with a batch of one where it has none."""
        return shape if len(shape) == self._axes + 2 else (1, *shape)

    @refuses_shortage("preparing a layer")
    def _plan(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """For an input of this shape, checked: its shape with a batch, and that of the result as the caller sees it."""
        found = self._shape(shape)
        if len(self._plans) >= _PLANS:
            self._plans.clear()
        plan = self._plans[shape] = self._batched(shape), found
        return plan

    def _pack(self, tensors: dict[str, np.ndarray]) -> tuple[Any, Any]:
        bias = "bias" if "bias" in tensors else None  # of a block it may be that of a normalization
        node = Node(self._operator, ("x0", "weight", bias), ("y",), self._attributes())
        return Eager([node], tensors, self._axes + 2), None

    def _attributes(self) -> dict[str, Any]:
        """Attributes of the operator that the layer is in a program."""
        raise NotImplementedError

    def _keras(self) -> dict[str, tuple[int, ...]]:
        kernel: dict[str, tuple[int, ...]] = {"kernel": (*self.kernel_size, *self._weight_shape[1::-1])}
        return {**kernel, "bias": (self.out_channels,)} if "bias" in self._shapes else kernel

    def _from_keras(self, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        given["weight"] = np.moveaxis(given.pop("kernel"), (-1, -2), (0, 1))
        return given

    def _arguments(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, {self._rest(self._given)}"

    def _rest(self, given: dict[str, Any]) -> str:
        text = f"kernel_size={self.kernel_size}, stride={self._place.stride}"
        text += "".join(f", {name}={given[name]!r}" for name, value in self._defaults.items() if given[name] != value)
        return text + ("" if "bias" in self._shapes else ", bias=False") + arguments(self._activation_code)
