"""What operators are lowered with: memory by reference, packed weights, kernel calls. The result is a list of calls, not yet
bound to addresses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import ShapeError
from ..kernels.table import KERNELS
from ..operators._base import FLOAT32, Spec, View

__all__ = ["ARENA", "CONSTANT", "INPUT", "OUTPUT", "POSITIONS", "Buffer", "Builder", "Call", "NativeCall", "PythonCall", "Ref"]

# Where a buffer lies: in the arena of one run, in a caller's input, in a fresh output, or in the program.
ARENA, INPUT, OUTPUT, CONSTANT = range(4)
POSITIONS = {kernel.name: kernel.arrays for kernel in KERNELS}
# Of a kernel's arrays whose names tell their axes (see `kernels.table`): position, name, axes. What broadcasts is not among them.
_AXES: dict[str, list[tuple[int, str, str]]] = {
    kernel.name: [
        (i, *kernel.arguments[i].split("__"))  # type: ignore[misc]
        for i in kernel.arrays
        if "__" in kernel.arguments[i]
    ]
    for kernel in KERNELS
}
# Axes that are the result's own, a group's, or the state's where there are projections.
_OWN = {"conv_transpose_pack": "o", "lstm_pack": "h", "pad": "dhw", "resize": "dhw", "lstm": "h"}
# What another argument says has its last two axes the other way round.
_TURNED = {
    (kernel.name, name): kernel.arguments.index(flag)
    for kernel in KERNELS
    for name, flag in (("b", "transpose_b"), ("k", "k_transposed"))
    if flag in kernel.arguments
}
_REPEATED = frozenset({"a", "b", "cos", "sin"})  # where they have a size of 1
_LOOSE = frozenset({"mask", "gate", "beta"})


class Buffer:
    """A piece of memory. `first` and `last` are the numbers of the calls between which it must live.

    `parent`: it lies `offset` bytes into another buffer. `over`: it may take the place of that buffer, if that one ends where
    it begins.
    """

    __slots__ = ("array", "first", "index", "last", "nbytes", "offset", "over", "parent", "space")

    def __init__(self, space: int, nbytes: int, index: int = 0, array: np.ndarray | None = None) -> None:
        self.space, self.nbytes, self.index, self.array = space, nbytes, index, array
        self.first = self.last = -1
        self.offset = 0
        self.parent: Buffer | None = None
        self.over: Buffer | None = None

    def root(self) -> tuple[Buffer, int]:
        """The buffer that has memory of its own, and how many bytes into it this one lies."""
        buffer, offset = self, 0
        while buffer.parent is not None:
            buffer, offset = buffer.parent, offset + buffer.offset
        return buffer, offset


class Ref(NamedTuple):
    """A contiguous array in a buffer, `offset` bytes after its start."""

    buffer: Buffer
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The number of bytes."""
        return math.prod(self.shape) * self.dtype.itemsize

    def view(self, shape: Sequence[int], start: int = 0) -> Ref:
        """The same memory in another shape, from element `start` on."""
        return Ref(self.buffer, self.offset + start * self.dtype.itemsize, tuple(shape), self.dtype)


class Call(NamedTuple):
    """One kernel call; arrays among `args` are given as Refs. `node` is the number of the node that asked for it."""

    kernel: str
    args: tuple[Any, ...]
    node: int


class PythonCall(NamedTuple):
    """A numpy step: `function` takes arrays (None for None) and returns a sequence of arrays, which are copied to `outputs`.

    `native` gives the address of a C function that does the same (see `kernels.jit.users`), or None; it is asked where the
    compiled engine runs.
    """

    function: Callable[..., Any]
    inputs: tuple[Ref | None, ...]
    outputs: tuple[Ref | None, ...]
    node: int
    native: Callable[[], Any] | None = None


class NativeCall(NamedTuple):
    """A numpy step that a C function does; `call` is what it stands for."""

    call: PythonCall
    compiled: Any

    @property
    def function(self) -> Callable[..., Any]:
        """That of the numpy step."""
        return self.call.function

    @property
    def inputs(self) -> tuple[Ref | None, ...]:
        """Those of the numpy step."""
        return self.call.inputs

    @property
    def outputs(self) -> tuple[Ref | None, ...]:
        """Those of the numpy step."""
        return self.call.outputs

    @property
    def node(self) -> int:
        """That of the numpy step."""
        return self.call.node


class Builder:
    """Collects the calls of one binding. A new node begins with `begin`; operators use the other methods.

    Args:
        pack: makes or finds packed weights: takes a key, the name of the pack kernel and what gives its arguments.
    """

    def __init__(self, pack: Callable[[Any, str, Callable[[], tuple[Any, ...]]], Any]) -> None:
        self.calls: list[Call | PythonCall | NativeCall] = []
        self.refs: dict[str, Ref] = {}
        self._pack = pack
        self._number = 0
        self._view: View
        self._specs: Sequence[Spec]
        self._key: Any = None

    # ---- for operators ----------------------------------------------------------------------------------------------

    def input(self, i: int) -> Ref:
        """Where input i lies."""
        name = self._view.node.inputs[i]
        ref = self.refs.get(name)  # type: ignore[arg-type]
        if ref is None:
            ref = self.refs[name] = self.constant(self._view.values[i])  # type: ignore[index, arg-type]
        return ref

    def optional(self, i: int) -> Ref | None:
        """Where input i lies, or None if it was left out."""
        return self.input(i) if self._view.has(i) else None

    def output(self, i: int = 0, over: Ref | None = None) -> Ref:
        """Memory for output i, in its inferred shape. `over` offers an input's memory, which is taken if nobody else needs it."""
        spec = self._specs[i]
        ref = self.temp(spec.shape, spec.dtype)  # type: ignore[arg-type]
        if over is not None and over.buffer.space == ARENA and over.nbytes == ref.nbytes == over.buffer.nbytes:
            ref.buffer.over = over.buffer
        self.refs[self._view.node.outputs[i]] = ref
        return ref

    def place(self, part: Ref, whole: Ref, start: int) -> bool:
        """Puts `part`, which earlier calls have made, into `whole` from element `start` on, without a copy; False where that
        cannot be.
        """
        buffer = part.buffer
        if (
            buffer.space != ARENA
            or buffer.parent is not None
            or part.nbytes != buffer.nbytes
            or not buffer.nbytes
            or buffer.first < 0
        ):
            return False
        buffer.parent, buffer.offset, buffer.over = whole.buffer, whole.offset + start * whole.dtype.itemsize, None
        whole.buffer.first = buffer.first if whole.buffer.first < 0 else min(whole.buffer.first, buffer.first)
        whole.buffer.last = max(whole.buffer.last, buffer.last)
        return True

    def alias(self, i: int, ref: Ref) -> None:
        """Output i is memory that is there already, such as another view of an input."""
        spec = self._specs[i]
        self.refs[self._view.node.outputs[i]] = ref.view(spec.shape)  # type: ignore[arg-type]

    def temp(self, shape: Sequence[int], dtype: np.dtype[Any] = FLOAT32) -> Ref:
        """Memory that lives as long as calls use it."""
        shape = tuple(shape)
        return Ref(Buffer(ARENA, math.prod(shape) * dtype.itemsize), 0, shape, dtype)

    def constant(self, array: np.ndarray) -> Ref:
        """An array of the program."""
        shape = array.shape  # numpy gives a scalar an axis
        array = np.ascontiguousarray(array)
        return Ref(Buffer(CONSTANT, array.nbytes, array=array), 0, shape, array.dtype)

    def pack(self, kernel: str, arguments: Callable[[], tuple[Any, ...]], key: Any = None) -> Any:
        """What the pack kernel makes of its arguments: made once for a node, `key` and variant, whatever the sizes of inputs
        are.
        """

        def checked() -> tuple[Any, ...]:
            args = arguments()
            self._check(kernel, args)
            return args

        return self._pack((self._key, kernel, key), kernel, checked)

    def call(self, kernel: str, *args: Any) -> None:
        """Appends a kernel call: the kernel's arguments, arrays as Refs (or None)."""
        number = len(self.calls)
        self._check(kernel, args)
        for i in POSITIONS[kernel]:
            if args[i] is not None:
                self._used(args[i].buffer, number)
        self.calls.append(Call(kernel, args, self._number))

    def _check(self, kernel: str, args: Sequence[Any]) -> None:
        """Kernels believe what they get: axes of one name must have one size, or 1 in a second operand, which is repeated."""
        sizes: dict[str, int] = {}
        for i, name, axes in _AXES[kernel]:
            ref = args[i]
            if ref is None or name in _LOOSE or (name == "lengths" and len(ref.shape) == 2):
                continue
            if (kernel, name) in _TURNED and args[_TURNED[kernel, name]]:
                axes = f"{axes[:-2]}{axes[-1]}{axes[-2]}"
            if len(ref.shape) != len(axes) or any(
                size != (int(axis) if axis.isdigit() else sizes.setdefault(axis, size))
                for axis, size in zip(axes, ref.shape, strict=True)
                if not (size == 1 and name in _REPEATED) and axis not in _OWN.get(kernel, "")
            ):
                raise ShapeError(
                    f"{self._view.where}: {name} has shape {ref.shape}: expected axes {' '.join(axes)}"
                    + (f" with {', '.join(f'{k} = {v}' for k, v in sizes.items())}" if sizes else "")
                )

    def python(
        self,
        function: Callable[..., Any],
        inputs: Sequence[Ref | None],
        outputs: Sequence[Ref | None],
        native: Callable[[], Any] | None = None,
    ) -> None:
        """Appends a numpy step; see `PythonCall`."""
        number = len(self.calls)
        for ref in (*inputs, *outputs):
            if ref is not None:
                self._used(ref.buffer, number)
        self.calls.append(PythonCall(function, tuple(inputs), tuple(outputs), self._number, native))

    # ---- for the binder ---------------------------------------------------------------------------------------------

    def begin(self, number: int, key: Any, view: View, specs: Sequence[Spec]) -> None:
        """The calls that follow belong to this node."""
        self._number, self._key, self._view, self._specs = number, key, view, specs

    @staticmethod
    def _used(buffer: Buffer, number: int) -> None:
        if buffer.first < 0:
            buffer.first = number
        buffer.last = number
        while buffer.parent is not None:
            buffer = buffer.parent
            buffer.last = number
