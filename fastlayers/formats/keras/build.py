"""Writes a graph of `operators`: nodes, constants, and what is known of every value, so that layers can ask for sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import Error, FormatError, LimitError
from ...ir.graph import Dim, Graph, Node, Shape, Value, needed
from ...ir.names import Names
from ...operators import OPERATORS, Spec, View
from ...operators.graphs import GraphBuilder, trimmed
from ...operators.shapes import NUMBERS
from ..budget import Budget

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["Build", "Refused", "Tensor"]

MOST_NODES = 50_000
MOST_FILLED = 1 << 24
BFLOAT16 = 16  # its number
_KEPT = 4096  # elements of a result that are computed at once, for shapes
FLOAT32: np.dtype[Any] = np.dtype(np.float32)
FLOAT16: np.dtype[Any] = np.dtype(np.float16)
INT64: np.dtype[Any] = np.dtype(np.int64)
INT32: np.dtype[Any] = np.dtype(np.int32)
BOOL: np.dtype[Any] = np.dtype(np.bool_)


class Refused(Exception):
    """An operation in a form that is not read: becomes an UnsupportedError with the layer's name."""


class Tensor:
    """A value of the graph: its name, what is known of it, and the mask of its time steps that Keras carries with it."""

    __slots__ = ("dtype", "mask", "name", "shape", "value")

    def __init__(
        self, name: str, shape: Shape | None, dtype: np.dtype[Any], value: np.ndarray | None = None, mask: Tensor | None = None
    ) -> None:
        self.name, self.shape, self.dtype, self.value, self.mask = name, shape, dtype, value, mask

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.sizes)

    @property
    def sizes(self) -> Shape:
        """The shape; its number of axes must be known."""
        if self.shape is None:
            raise FormatError(f"the rank of {self.name} is not known")
        return self.shape

    def size(self, axis: int) -> int:
        """A size that must be known."""
        found = self.sizes[axis]
        if not isinstance(found, int):
            raise FormatError(f"axis {axis} of a value of shape {self.shape} must have a known size")
        return found

    def axis(self, axis: Any, more: int = 0) -> int:
        """An axis counted from the front, among `more` new ones."""
        rank = self.rank + more
        if not isinstance(axis, int) or not -rank <= axis < rank:
            raise ValueError(f"axis {axis!r:.40}: expected {-rank} to {rank - 1}")
        return axis % rank

    def axes(self, axes: Any) -> list[int]:
        """One or several axes counted from the front, in their order."""
        return [self.axis(a) for a in (axes if isinstance(axes, (list, tuple)) else [axes])]

    def masked(self, mask: Tensor | None) -> Tensor:
        """The same value with another mask."""
        return Tensor(self.name, self.shape, self.dtype, self.value, mask)


Operand = Tensor | np.ndarray | float | int | bool | None


class Build:
    """The graph that is being written. `path` are the names of the layers that are being called, outermost first."""

    def __init__(self, where: str, budget: Budget) -> None:
        self.where, self.budget = where, budget
        self.e = GraphBuilder(None, Names(first=1))
        self.path: list[str] = []
        self.calls = 0
        self._known: dict[Any, Tensor] = {}

    def input(self, name: str, shape: Shape | None, dtype: np.dtype[Any]) -> Tensor:
        """A value that the caller gives."""
        return Tensor(self.e.input(name, shape, dtype), shape, dtype)

    def constant(self, array: np.ndarray, hint: str = "number") -> Tensor:
        """A constant; equal ones of a few elements, and views of the same memory, are one."""
        key = (
            (array.dtype.str, array.shape, array.tobytes())
            if array.size <= 64
            else (array.dtype.str, array.shape, array.strides, array.ctypes.data)
        )
        found = self._known.get(key)
        if found is None:
            made = array
            if not (array.flags.c_contiguous and array.dtype.isnative):
                self.budget.take(array.nbytes, f"{self.where}: {hint}")
                made = np.ascontiguousarray(array, array.dtype.newbyteorder("="))
            name = self.e.constant(made, "/".join([*self.path, hint]))
            found = self._known[key] = Tensor(name, made.shape, made.dtype, self.e.constants[name])
            if array.size > 64:
                self._known[key, "held"] = Tensor(name, None, made.dtype, array)  # so that its memory stays its own
        return found

    def filled(self, value: float, *shape: int) -> np.ndarray:
        """An array of one number, for what a layer leaves out; no size is trusted that no weight confirms."""
        if math.prod(shape) > MOST_FILLED:
            raise LimitError(
                f"{self.where}: layer {'/'.join(self.path)}: needs {math.prod(shape)} values that the file does not hold"
            )
        return np.full(shape, value, np.float32)

    def ints(self, *values: int) -> Tensor:
        """A constant vector of integers."""
        return self.constant(np.array(values, np.int64))

    def operand(self, value: Operand, dtype: np.dtype[Any] = FLOAT32) -> Tensor:
        """A tensor as it is, a number or an array as a constant."""
        if isinstance(value, Tensor):
            return value
        if isinstance(value, np.ndarray):
            return self.constant(value)
        return self.constant(np.array(value, dtype))

    def op(self, op: str, *inputs: Operand, **attributes: Any) -> Tensor:
        """Appends a node; returns its output."""
        return self.many(op, 1, *inputs, **attributes)[0]

    def many(self, op: str, count: int, *inputs: Operand, **attributes: Any) -> tuple[Tensor, ...]:
        """Appends a node of `count` outputs; small results of constants are computed at once."""
        if len(self.e.nodes) >= MOST_NODES:
            raise LimitError(f"{self.where}: the model needs more than {MOST_NODES} nodes")
        given = trimmed([None if value is None else self.operand(value) for value in inputs])
        name = "/".join([*self.path, op])
        outputs = tuple(self.e.name(name) for _ in range(count))
        node = Node(op, tuple(None if t is None else t.name for t in given), outputs, attributes)
        known = [None if t is None else t.value for t in given]
        view = View(node, [None if t is None else Spec(t.shape, t.dtype) for t in given], known)
        operator = OPERATORS[op]
        try:
            specs = operator.infer(view)
            ready = operator.run is not None and all(t is None or v is not None for t, v in zip(given, known, strict=True))
            if ready and operator.run is not None and all(_small(spec) for spec in specs):
                with np.errstate(all="ignore"):
                    arrays = operator.run(view, *known)
                return tuple(self.constant(np.asarray(a, s.dtype)) for a, s in zip(arrays, specs, strict=False))
        except Error as error:
            raise FormatError(f"{self.where}: layer {'/'.join(self.path)}: {error}") from None
        self.e.nodes.append(node)
        return tuple(Tensor(o, s.shape, s.dtype) for o, s in zip(outputs, specs, strict=False))

    # ---- what many layers need ------------------------------------------------------------------------------------------

    def cast(self, x: Tensor, dtype: npt.DTypeLike) -> Tensor:
        """x of another dtype."""
        wanted = np.dtype(dtype)
        return x if x.dtype == wanted else self.op("Cast", x, to=NUMBERS[wanted]).masked(x.mask)

    def cast_to(self, x: Tensor, name: str) -> Tensor:
        """x of a dtype by Keras' name. Of bfloat16, which numpy lacks, the values, in float32; float64 is float32."""
        if name == "bfloat16":
            return self.op("Cast", x, to=BFLOAT16).masked(x.mask)
        try:
            wanted = np.dtype("float32" if name == "float64" else name)
        except TypeError:
            raise Refused(f"dtype {name!s:.40}") from None
        if wanted not in NUMBERS:
            raise Refused(f"dtype {name!s:.40}")
        return self.cast(x, wanted)

    def floats(self, x: Tensor) -> Tensor:
        """x in float32, in which everything is computed."""
        return self.cast(x, FLOAT32)

    def together(self, a: Operand, b: Operand) -> tuple[Tensor, Tensor]:
        """Two operands of one dtype: a Python number takes the tensor's unless it has a fraction, floats win over integers."""
        kinds = [v.dtype for v in (a, b) if isinstance(v, (Tensor, np.ndarray))]
        wanted = FLOAT32
        if kinds:
            wanted = np.result_type(*kinds) if len(set(kinds)) > 1 else kinds[0]
            loose = [v for v in (a, b) if not isinstance(v, (Tensor, np.ndarray))]
            if wanted.kind != "f" and any(isinstance(v, float) for v in loose):
                wanted = FLOAT32
            elif wanted.kind == "b" and any(isinstance(v, int) and not isinstance(v, bool) for v in loose):
                wanted = INT32
            wanted = FLOAT32 if wanted.kind == "f" else wanted
        return tuple(self.cast(self.operand(v, wanted), wanted) for v in (a, b))  # type: ignore[return-value]

    def two(self, op: str, a: Operand, b: Operand) -> Tensor:
        """An operator of two operands."""
        return self.op(op, *self.together(a, b))

    def shape_of(self, x: Tensor, axis: int) -> Operand:
        """A size as a number or, where it is not known, as a vector of one integer."""
        size = x.sizes[axis]
        if isinstance(size, int):
            return size
        at = x.axis(axis)
        return self.op("Shape", x, start=at, end=at + 1)

    def reshape(self, x: Tensor, *sizes: Any) -> Tensor:
        """x in another shape: each size is an int, -1 once, or what `shape_of` gave."""
        if all(isinstance(s, int) for s in sizes):
            wanted = [int(s) for s in sizes]
            attributes = {"allowzero": 1} if 0 in wanted else {}
            return self.op("Reshape", x, self.ints(*wanted), **attributes)
        unknown = [s for s in sizes if not isinstance(s, int)]
        if len(unknown) == 1 and -1 not in sizes and 0 not in sizes:
            return self.reshape(x, *(s if isinstance(s, int) else -1 for s in sizes))
        parts = [self.ints(s) if isinstance(s, int) else s for s in sizes]
        made = self.op("Reshape", x, self.op("Concat", *parts, axis=0))
        if made.shape is None or None in made.sizes:
            made = Tensor(made.name, tuple(s if isinstance(s, int) and s >= 0 else None for s in sizes), made.dtype)
        return made

    def transpose(self, x: Tensor, *perm: int) -> Tensor:
        """The axes in another order."""
        if perm == tuple(range(len(perm))):
            return x
        return self.op("Transpose", x, perm=tuple(perm))

    def squeeze(self, x: Tensor, *axes: int) -> Tensor:
        """Without axes of size 1."""
        return self.op("Squeeze", x, self.ints(*axes))

    def unsqueeze(self, x: Tensor, *axes: int) -> Tensor:
        """With axes of size 1."""
        return self.op("Unsqueeze", x, self.ints(*axes))

    def slice(self, x: Tensor, axis: int, start: int | None, stop: int | None, step: int = 1) -> Tensor:
        """Part of an axis, as Python slices it."""
        far = (1 << 62) if step > 0 else -(1 << 62)
        begin = (0 if step > 0 else (1 << 62)) if start is None else start
        return self.op(
            "Slice", x, self.ints(begin), self.ints(far if stop is None else stop), self.ints(x.axis(axis)), self.ints(step)
        )

    def take(self, x: Tensor, axis: int, index: int) -> Tensor:
        """One place of an axis, which goes."""
        return self.op("Gather", x, self.constant(np.array(index, np.int64)), axis=x.axis(axis))

    def flip(self, x: Tensor, axis: int) -> Tensor:
        """An axis the other way round."""
        return self.slice(x, axis, None, None, -1)

    def concat(self, parts: Sequence[Tensor], axis: int) -> Tensor:
        """Tensors one after the other."""
        if len(parts) == 1:
            return parts[0]
        return self.op("Concat", *parts, axis=parts[0].axis(axis))

    def reduce(self, op: str, x: Tensor, axes: Sequence[int] | None, keep: bool = False) -> Tensor:
        """ReduceMean and its kin; None: over all axes."""
        chosen = range(x.rank) if axes is None else sorted(set(x.axes(axes)))
        return self.op(f"Reduce{op}", x, self.ints(*chosen), keepdims=int(keep))

    # ---- the end ----------------------------------------------------------------------------------------------------------

    def graph(self, inputs: Sequence[Tensor], outputs: Sequence[tuple[str, Tensor]]) -> Graph:
        """The whole, its outputs having the names that are given (or others, where these are taken)."""
        names: list[str] = []
        renamed: dict[str, str] = {}
        made = {name for node in self.e.nodes for name in node.outputs}
        for wanted, tensor in outputs:
            name = self.e.name(f"{wanted}_output" if wanted in self.e.names else wanted)
            names.append(name)
            if tensor.name in made and tensor.name not in renamed:
                renamed[tensor.name] = name
        nodes = [
            Node(
                n.op,
                tuple(None if i is None else renamed.get(i, i) for i in n.inputs),
                tuple(renamed.get(o, o) for o in n.outputs),
                n.attributes,
            )
            for n in self.e.nodes
        ]
        values = []
        for name, (_, tensor) in zip(names, outputs, strict=True):
            if renamed.get(tensor.name) != name:
                nodes.append(Node("Identity", (renamed.get(tensor.name, tensor.name),), (name,), {}))
            values.append(Value(name, tensor.shape, tensor.dtype))
        kept, read = needed(nodes, names)
        constants = {name: array for name, array in self.e.constants.items() if name in read}
        return Graph(tuple(Value(t.name, t.shape, t.dtype) for t in inputs), tuple(values), kept, constants)


def _small(spec: Spec) -> bool:
    return spec.static and math.prod(spec.shape) <= _KEPT  # type: ignore[arg-type]


def dims(shape: Sequence[Any], name: str) -> tuple[Dim, ...]:
    """The shape of an input as Keras' configuration has it: the first unknown size is the batch's."""
    found: list[Dim] = []
    for i, size in enumerate(shape):
        if size is not None and (not isinstance(size, int) or isinstance(size, bool) or size < 0):
            raise FormatError(f"input {name[:80]!r} has shape {tuple(shape)!r:.120}: expected sizes or null")
        found.append("batch" if size is None and i == 0 else size)
    return tuple(found)
