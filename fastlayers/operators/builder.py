"""Builder that operators are lowered with: memory by reference, packed weights, kernel calls. The result is a list of calls,
not yet bound to addresses.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import numpy as np

from .._held import unread
from .._lazy import Registry
from .._tuples import NamedTuple
from ..calls.machine import Machine
from ..errors import ShapeError
from ..kernels import dispatch
from ..kernels.table import KERNELS
from ._base import FLOAT32, Spec, View

__all__ = [
    "ARENA", "CONSTANT", "COUNTER", "INPUT", "OUTPUT", "POSITIONS", "AnyCall", "Buffer", "Builder", "Call", "NativeCall",
    "NestedCall", "Parts", "PythonCall", "Ref", "contiguous", "numbers",
]  # fmt: skip

# Where a buffer is: in the arena of one run, in a caller's input, in a fresh output, in the program, or what a run counts.
ARENA, INPUT, OUTPUT, CONSTANT, COUNTER = range(5)
_KERNELS = {kernel.name: kernel for kernel in KERNELS}
_OWN = {"lstm_pack": "h"}  # with projections, w_hh has their number
# What another argument says has its last two axes the other way round.
_TURNED = {"b": "transpose_b", "k": "k_transposed"}


def _axes_of(kernel: str) -> list[tuple[int, str, str, int]]:
    """Arrays of a kernel whose names tell their axes (see `kernels.table`): position, name, axes, and the position of what says
    that they are turned, or -1. What broadcasts is not among them.
    """
    arguments = _KERNELS[kernel].arguments
    found = []
    for i in POSITIONS[kernel]:
        name, _, axes = arguments[i].partition("__")
        if axes:
            flag = _TURNED.get(name)
            found.append((i, name, axes, arguments.index(flag) if flag in arguments else -1))
    return found


# Of the kernels that a network calls; it calls few.
POSITIONS: Registry[tuple[int, ...]] = Registry(_KERNELS, lambda kernel: _KERNELS[kernel].arrays)
_AXES: Registry[list[tuple[int, str, str, int]]] = Registry(_KERNELS, _axes_of)
_REPEATED = frozenset({"a", "b", "cos", "sin"})  # where they have a size of 1
_LOOSE = frozenset({"mask", "gate", "beta"})


numbers = itertools.count()  # of buffers


class Parts:
    """Arguments of `nbits_pack` that are made a part after the other: what a whole matrix takes on the way is never there.

    Args:
        count: rows of all parts, of which each but the last one has a multiple of 64.
        of: makes arguments of the rows from one number to another.
        step: rows of a part.
    """

    def __init__(self, count: int, of: Callable[[int, int], tuple[Any, ...]], step: int) -> None:
        self.count, self._of, self._step = count, of, max(step // 64, 1) * 64

    def whole(self) -> tuple[Any, ...]:
        """Arguments of all rows."""
        return self._of(0, self.count)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return (self._of(i, min(i + self._step, self.count)) for i in range(0, self.count, self._step))


class Buffer:
    """A piece of memory, known by its number. A later binding may use it as well, for the same bytes.

    `made`: some call has written or read it. The rest is set in a `Plan` alone, whose buffers no other shares: `first` and
    `last` are the values of the calls between which it must live; `parent`: it is `offset` bytes into another buffer; `over`:
    it may take the place of that buffer, if that one ends where it begins.
    """

    __slots__ = ("array", "first", "index", "last", "made", "nbytes", "number", "offset", "over", "parent", "space")

    def __init__(self, space: int, nbytes: int, index: int = 0, array: np.ndarray | None = None) -> None:
        self.space, self.nbytes, self.index, self.array = space, nbytes, index, array
        self.number = next(numbers)
        self.made = False
        self.first = self.last = -1
        self.offset = 0
        self.parent: Buffer | None = None
        self.over: Buffer | None = None

    def root(self) -> tuple[Buffer, int]:
        """In a plan, the buffer that has its own memory, and how many bytes into it this one is."""
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
    """A NumPy fallback: `function` takes arrays (None for None) and returns a sequence of arrays, which are copied to `outputs`.

    `native` gives the address of a C function that does the same (see `kernels.jit.users`), or None; it is asked where the
    compiled engine runs.
    """

    function: Callable[..., Any]
    inputs: tuple[Ref | None, ...]
    outputs: tuple[Ref | None, ...]
    node: int
    native: Callable[[], Any] | None = None


class NativeCall(NamedTuple):
    """A C function in place of a NumPy fallback, which is `call`."""

    call: PythonCall
    compiled: Any

    @property
    def function(self) -> Callable[..., Any]:
        """Function of the NumPy fallback."""
        return self.call.function

    @property
    def inputs(self) -> tuple[Ref | None, ...]:
        """Inputs of the NumPy fallback."""
        return self.call.inputs

    @property
    def outputs(self) -> tuple[Ref | None, ...]:
        """Outputs of the NumPy fallback."""
        return self.call.outputs

    @property
    def node(self) -> int:
        """Node of the NumPy fallback."""
        return self.call.node


class NestedCall(NamedTuple):
    """A branch or a loop whose bodies are bound programs: the compiled engine runs `step`; `name` is its name in reports.

    `bodies`: the binding of each, what it is called, and how often it runs in a run (0: unknown).
    """

    name: str
    step: Any
    inputs: tuple[Ref | None, ...]
    outputs: tuple[Ref | None, ...]
    node: int
    bodies: tuple[tuple[Any, str, int], ...]


AnyCall = Call | PythonCall | NativeCall | NestedCall


class Builder:
    """Collects the calls of one binding, node by node. A new node begins with `begin`; operators use the other methods.

    Args:
        pack: makes or finds packed weights: takes a key (None: for this binding alone), the name of the pack kernel and what
            gives its arguments.
        kernels: those of the variant, by name, for NumPy fallbacks that call some.

    Attributes:
        refs: where each value is, by its name or number.
        calls: those of the node.
        parents: buffers that are within others, by number, and how many bytes from their start.
        placed: of these, the ones that the node has put there.
        overs: of buffers that the node has made, which ones' memory they may take.
        own: the buffer that was made for each output of the node.
        nbytes: what was packed for this binding alone takes.
        refused: whether it matters to the node that an input is none of the arena's buffers.
        counter: where a node whose results' size is counted writes it, an int64; None for others (see `Traits.counts`).
    """

    def __init__(
        self,
        pack: Callable[[Any, str, Callable[[], tuple[Any, ...] | Parts]], Any],
        kernels: Mapping[str, Callable[..., Any]] | None = None,
    ) -> None:
        self.refs: dict[Any, Ref] = {}
        self.calls: list[Call | PythonCall | NestedCall] = []
        self.parents: dict[int, tuple[Buffer, int]] = {}
        self.placed: list[Buffer] = []
        self.overs: list[tuple[Buffer, Buffer]] = []
        self.own: dict[int, Buffer] = {}
        self.nbytes = 0
        self.refused = False
        self.counter: Ref | None = None
        self._pack, self._kernels = pack, kernels
        self._number = 0
        self._view: View
        self._specs: Sequence[Spec]
        self._ins: Sequence[Any]
        self._outs: Sequence[Any]
        self._before: Mapping[int, Buffer] = {}
        self._fixed = False

    # ---- for operators ----------------------------------------------------------------------------------------------

    @property
    def machine(self) -> Machine:
        """The machine that a text of kernel calls is given to be recorded by this builder."""
        return Machine(self.call, Ref.view, self.temp, Ref.view, self.pack)

    def kernel(self, name: str) -> Callable[..., Any]:
        """A kernel of the variant, for a NumPy fallback that calls it."""
        return dispatch.kernel(name) if self._kernels is None else self._kernels[name]

    def input(self, i: int) -> Ref:
        """Reference to input i."""
        key = self._ins[i]
        ref = self.refs.get(key)
        if ref is None:
            ref = self.refs[key] = self.constant(self._view.values[i])  # type: ignore[arg-type]
        return ref

    def optional(self, i: int) -> Ref | None:
        """Reference to input i, or None if it was left out."""
        return self.input(i) if self._view.has(i) else None

    def output(self, i: int = 0, over: Ref | None = None) -> Ref:
        """Memory for output i, in its inferred shape. `over` offers an input's memory, taken if nothing else needs it."""
        spec = self._specs[i]
        ref = self.temp(spec.shape, spec.dtype)  # type: ignore[arg-type]
        before = self._before.get(i)
        if before is not None and before.nbytes == ref.buffer.nbytes:
            ref = ref._replace(buffer=before)  # so that nodes that read it need not change
        self.own[i] = ref.buffer
        self.refused = self.refused or (over is not None and over.buffer.space == INPUT)
        if over is not None and over.buffer.space == ARENA and over.nbytes == ref.nbytes == over.buffer.nbytes:
            self.overs.append((ref.buffer, over.buffer))
        self.refs[self._outs[i]] = ref
        return ref

    def place(self, part: Ref, whole: Ref, start: int) -> bool:
        """Puts `part`, which earlier calls have made, into `whole` from element `start` on, without a copy; False where that
        cannot be.
        """
        buffer = part.buffer
        self.refused = self.refused or buffer.space == INPUT
        if (
            buffer.space != ARENA
            or buffer.number in self.parents
            or part.nbytes != buffer.nbytes
            or not buffer.nbytes
            or not buffer.made
        ):
            return False
        self.parents[buffer.number] = whole.buffer, whole.offset + start * whole.dtype.itemsize
        self.placed.append(buffer)
        whole.buffer.made = True
        return True

    def joined(self, refs: Sequence[Ref]) -> tuple[Ref, int]:
        """The array that the first of these has been placed in, and how many of them it is made of, if they are all that is in
        it, one after the other; else the first one, alone.
        """
        first = self.root(refs[0])
        end = 0
        for count, ref in enumerate(refs, 1):
            buffer, start = ref.buffer, ref.offset
            while (found := self.parents.get(buffer.number)) is not None:
                buffer, start = found[0], start + found[1]
            if buffer is not first or start != end:
                break
            end += ref.nbytes
            if end == first.nbytes:
                return Ref(first, 0, (end // ref.dtype.itemsize,), ref.dtype), count
        return refs[0], 1

    def root(self, ref: Ref) -> Buffer:
        """The buffer with its own memory in which an array is."""
        buffer = ref.buffer
        while (found := self.parents.get(buffer.number)) is not None:
            buffer = found[0]
        return buffer

    def alias(self, i: int, ref: Ref) -> None:
        """Output i is memory that is there already, such as another view of an input."""
        spec = self._specs[i]
        self.refs[self._outs[i]] = ref.view(spec.shape)  # type: ignore[arg-type]

    def temp(self, shape: Sequence[int], dtype: np.dtype[Any] = FLOAT32) -> Ref:
        """Memory that lives as long as calls use it."""
        shape = tuple(shape)
        return Ref(Buffer(ARENA, math.prod(shape) * dtype.itemsize), 0, shape, dtype)

    def constant(self, array: np.ndarray) -> Ref:
        """An array of the program."""
        shape = array.shape  # numpy gives a scalar an axis
        array = contiguous(np.ascontiguousarray(array))
        return Ref(Buffer(CONSTANT, array.nbytes, array=array), 0, shape, array.dtype)

    def pack(self, kernel: str, arguments: Callable[[], tuple[Any, ...] | Parts], key: Any = None, kept: bool = True) -> Any:
        """Packs by the pack kernel; the result must follow from the node's attributes, from `key` and from its known inputs
        alone. Where all of those are constants of the graph it is made once for a node, `key` and variant, whatever the sizes
        of inputs are; else it belongs to this binding. So does what is not `kept`, since it follows from sizes.
        """
        kept = kept and self._fixed

        def checked() -> tuple[Any, ...] | Parts:
            args = arguments()
            read.extend(self._view.values)
            if isinstance(args, Parts):
                if kept:
                    return args
                args = args.whole()
            self._check(kernel, args)
            if not kept:
                self.nbytes += _nbytes(args)
            return args

        read: list[np.ndarray | None] = []
        packed = self._pack((id(self._view.node), kernel, key) if kept else None, kernel, checked)
        for array in read:
            if array is not None:
                unread(array)  # weights of a file are not in memory twice
        return packed

    def call(self, kernel: str, *args: Any) -> None:
        """Appends a kernel call: the kernel's arguments, arrays as Refs (or None)."""
        self._check(kernel, args)
        for i in POSITIONS[kernel]:
            if args[i] is not None:
                args[i].buffer.made = True
        self.calls.append(Call(kernel, args, self._number))

    def _check(self, kernel: str, args: Sequence[Any]) -> None:
        """Kernels believe what they get: axes of one name must have one size, or 1 in a second operand, which is repeated."""
        sizes: dict[str, int] = {}
        own = _OWN.get(kernel, "")
        for i, name, axes, turned in _AXES[kernel]:
            ref = args[i]
            if ref is None or name in _LOOSE or (name == "lengths" and len(ref.shape) == 2):
                continue
            if turned >= 0 and args[turned]:
                axes = f"{axes[:-2]}{axes[-1]}{axes[-2]}"
            shape = ref.shape
            wrong = len(shape) != len(axes)
            if not wrong:
                for axis, size in zip(axes, shape):  # noqa: B905 (of one length)
                    if (size == 1 and name in _REPEATED) or axis in own:
                        continue
                    if size != (int(axis) if axis.isdigit() else sizes.setdefault(axis, size)):
                        wrong = True
            if wrong:
                raise ShapeError(
                    f"{self._view.where}: {name} has shape {shape}: expected axes {' '.join(axes)}"
                    + (f" with {', '.join(f'{k} = {v}' for k, v in sizes.items())}" if sizes else "")
                )

    def python(
        self,
        function: Callable[..., Any],
        inputs: Sequence[Ref | None],
        outputs: Sequence[Ref | None],
        native: Callable[[], Any] | None = None,
    ) -> None:
        """Appends a NumPy fallback; see `PythonCall`."""
        for ref in (*inputs, *outputs):
            if ref is not None:
                ref.buffer.made = True
        self.calls.append(PythonCall(function, tuple(inputs), tuple(outputs), self._number, native))

    def nested(
        self, name: str, step: Any, inputs: Sequence[Ref | None], outputs: Sequence[Ref | None], bodies: Sequence[Any]
    ) -> None:
        """Appends a branch or a loop; see `NestedCall`."""
        for ref in (*inputs, *outputs):
            if ref is not None:
                ref.buffer.made = True
        self.nbytes += sum(binding.bound.nbytes for binding, *_ in bodies if binding is not None)
        self.calls.append(NestedCall(name, step, tuple(inputs), tuple(outputs), self._number, tuple(bodies)))

    @contextmanager
    def inside(
        self, view: View, specs: Sequence[Spec], given: dict[str, Ref], constants: Mapping[str, np.ndarray], last: bool
    ) -> Iterator[None]:
        """Begins a node within the node, `view` with results of `specs`; references to values of the inner graph are in
        `given`, by their names, and its result is added. The `last` one's result is that of the node itself.
        """
        around = self._view, self._specs, self._ins, self._outs, self._before, self.own, self.refs
        refs: dict[Any, Ref] = dict(given)
        self._view, self._specs, self._ins, self.refs = view, specs, view.node.inputs, refs
        self._outs = view.node.outputs
        if not last:
            self._before, self.own = {}, {}
        for name in view.node.inputs:
            if name is not None and name not in refs:
                refs[name] = given[name] = self.constant(constants[name])
        try:
            yield
        finally:
            self._view, self._specs, self._ins, self._outs, self._before, self.own, self.refs = around
        given[view.node.outputs[0]] = made = refs[view.node.outputs[0]]
        if last:
            self.refs[self._outs[0]] = made

    # ---- for the binder ---------------------------------------------------------------------------------------------

    def begin(
        self,
        number: int,
        view: View,
        specs: Sequence[Spec],
        ins: Sequence[Any],
        outs: Sequence[Any],
        fixed: bool = True,
        before: Mapping[int, Buffer] = MappingProxyType({}),
    ) -> None:
        """Begins a node: the calls that follow belong to it.

        Args:
            number: of the node among those of the plan.
            view: the node; `specs`: its results'.
            ins: by what `refs` knows its inputs; `outs`: and its outputs.
            fixed: whether those of its inputs that are known are so for every binding.
            before: `own` of the same node in an earlier binding.
        """
        self._number, self._view, self._specs, self._fixed = number, view, specs, fixed
        self._ins, self._outs, self._before = ins, outs, before
        self.calls, self.placed, self.overs, self.own, self.nbytes, self.refused = [], [], [], {}, 0, False


def contiguous(array: np.ndarray) -> np.ndarray:
    """The array as kernels take it: itself, or a read-only copy of a file's weights, which may be at an odd address, or be a
    view of them with the axes in another order.
    """
    if array.flags.c_contiguous and array.flags.aligned:
        return array
    copy = np.array(array, order="C")
    copy.flags.writeable = False
    return copy


def _nbytes(value: Any) -> int:
    """Bytes of the arrays among nested arguments."""
    if isinstance(value, (tuple, list)):
        return sum(map(_nbytes, value))
    return value.nbytes if isinstance(value, np.ndarray) else 0
