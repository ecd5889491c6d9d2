"""`WindowStream`: pieces of any length for a network that takes windows of one length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arguments import no_memory, shown
from .._deadline import Deadline
from ..errors import ArgumentError, DTypeError, Error, ShapeError
from ..ir.checks import integer
from ..ir.names import Names
from .feeds import convert
from .specs import Specs
from .stream import Stream, copied

if TYPE_CHECKING:
    from .model import Model
    from .specs import TensorSpec

__all__ = ["WindowStream"]

# Full scale of sound in 16 bits, as networks that take floats have been trained with.
FULL_SCALE = np.float32(1 / 32768)
LONGEST = 2**31 - 1


class WindowStream(Stream):
    """A stream that cuts what comes into the windows that its network takes; made by ``Model.stream(size=, overlap=)``.

    Each window has the last `overlap` steps of what came before it (zeros before the first) and `size` new ones. Pieces have any
    length: what does not fill a window waits for the next piece. Leading axes of size 1 may be left out, so a piece of sound is
    ``(n,)`` as well as ``(1, n)``; where an input is nothing but samples, more rows are an error unless `batch` says how many:
    sound of several channels is no batch. Pieces of int16 for an input of floats are sound, and are divided by 32768; other
    dtypes keep their values.

    >>> import numpy as np, fastlayers as fl
    >>> model = fl.compile(lambda x: fl.functional.relu(x), fl.graph.Input("x", (1, 5)))
    >>> stream = model.stream(size=3, overlap=2)
    >>> stream([1.0]), stream([2.0, 3.0, 4.0])
    ([], [array([[0., 0., 1., 2., 3.]], dtype=float32)])
    >>> stream(np.array([16384, 0], np.int16))
    [array([[2. , 3. , 4. , 0.5, 0. ]], dtype=float32)]
    """

    def __init__(
        self,
        model: Model,
        pairs: Mapping[str, str],
        initial: Mapping[str, Any] | None,
        size: Any,
        overlap: Any,
        axis: int | str | None,
        input: str | Sequence[str] | None,
        batch: Any = None,
    ) -> None:
        self._size, self._overlap = _length("size", size, 1), _length("overlap", overlap, 0)
        others = Specs(v for v in model.inputs if v.name not in pairs)
        self._input, self._axis = _windowed(others, self._size + self._overlap, axis, input)
        self._expected, self._samples = _expected(self._input, self._axis, batch)
        # Kept next to the network's states: the last values of earlier windows, values of no window yet, and other inputs.
        name = self._input.name
        names = Names(model.inputs.names, "~", 1)
        self._before, self._waiting = names(f"{name}~overlap"), names(f"{name}~waiting")
        values = {v.name: v for v in model._graph.inputs if v.name in others.names}
        part = values.pop(name)._replace(shape=tuple(d if isinstance(d, int) else None for d in self._expected))
        kept = {n: part._replace(name=n) for n in (self._before, self._waiting)}
        super().__init__(model, pairs, initial, kept={**kept, **values})

    def __call__(self, *arrays: Any, timeout: float | None = None) -> list[Any]:
        """Runs on every window that the next piece completes.

        Args:
            *arrays: one per input of `inputs`, in their order: the piece, and the others as they are for each of its windows.
            timeout: seconds that all of it may take; None for no limit.

        Returns:
            A list with a result for every window, in order, which may have none: an array, or a tuple if there are several
            outputs.

        Raises:
            ArgumentError: too few or many arrays, or a shape does not fit, also to the pieces before.
            DTypeError: an array is of another kind than its input.
            TimeoutError: the run is not done after `timeout` seconds; no window of this piece counts then.
        """
        return [_plain(results) for results in self.run(self._named(arrays), timeout=timeout)]

    def run(self, feeds: Mapping[str, Any], *, timeout: float | None = None) -> list[dict[str, Any]]:  # type: ignore[override]
        """Runs on every window that the next piece completes, given by name; a list of dicts. See `__call__`."""
        self._check_names(feeds)
        piece = self._piece(feeds[self._input.name])
        others = {n: convert(self._specs[n], feeds[n]) for n in self.inputs.names if n != self._input.name}
        try:
            return self._windows(piece, others, timeout)
        except MemoryError as error:
            raise error if isinstance(error, Error) else no_memory("stream") from error

    def flush(self, *, timeout: float | None = None) -> list[Any]:
        """Runs on what still waits for more, filled up with zeros, and begins again after it.

        Other inputs are those of the last call. A list with one result, or with none if nothing waits.
        """
        results: list[Any] = []
        waiting = self._kept[self._waiting]
        if waiting is not None and waiting.shape[self._axis]:
            others = {n: self._kept[n] for n in self.inputs.names if n != self._input.name}
            unknown = [n for n, value in others.items() if value is None and not self._specs[n].kind.startswith("optional")]
            if unknown:
                raise ArgumentError(f"stream: flush: the state that was set has samples that wait, but lacks {unknown}")
            shape = list(waiting.shape)
            shape[self._axis] = self._size - shape[self._axis]
            results = [_plain(r) for r in self._windows(np.zeros(shape, waiting.dtype), others, timeout)]
        self.reset()
        return results

    def _windows(self, piece: np.ndarray, others: dict[str, Any], timeout: float | None) -> list[dict[str, Any]]:
        if timeout is not None:
            with Deadline(timeout):
                return self._windows(piece, others, None)
        axis, length = self._axis, self._size + self._overlap
        overlap = self._kept[self._before]
        if overlap is None:
            overlap = np.zeros((*piece.shape[:axis], self._overlap, *piece.shape[axis + 1 :]), piece.dtype)
        parts = [part for part in (overlap, self._kept[self._waiting]) if part is not None]
        for part in parts:
            if _without(part.shape, axis) != _without(piece.shape, axis):
                raise ShapeError(
                    f"stream: input {self._input.name!r} has shape {piece.shape}, and what came before had {part.shape}: "
                    f"expected the same sizes but along axis {axis}"
                )
        whole = np.concatenate([*parts, piece], axis=axis)
        before, results, at = self._state, [], 0
        try:
            while whole.shape[axis] - at >= length:
                window = whole[(slice(None),) * axis + (slice(at, at + length),)]
                results.append(super().run({self._input.name: window, **others}))
                at += self._size
        except BaseException:
            self._state = before
            raise
        self._kept = {
            self._before: _cut(whole, axis, at, at + self._overlap),
            self._waiting: _cut(whole, axis, at + self._overlap, None),
            **{name: copied(value) for name, value in others.items()},
        }
        return results

    def _piece(self, given: Any) -> np.ndarray:
        """A piece as an array of the input's dtype and rank."""
        from .._foreign import as_numpy

        spec = self._input
        rank = len(spec.shape or ())
        if not isinstance(given, np.ndarray):
            try:
                given = as_numpy(given)
            except Exception as error:  # a third-party type may raise anything
                raise DTypeError(
                    f"stream: input {spec.name!r} of type {type(given).__name__} cannot be read as an array ({error!s:.200})"
                ) from error
        scaled = given.dtype == np.int16 and spec.dtype.kind == "f"
        array: np.ndarray = convert(self._model_input()._replace(shape=None), given)
        if array.ndim < rank:
            array = array.reshape((1,) * (rank - array.ndim) + array.shape)
        sizes = self._expected
        if array.ndim != rank or any(isinstance(d, int) and d != n for d, n in zip(sizes, array.shape, strict=True)):
            more = "; sound has one channel; several sequences at once need batch=" if self._samples else ""
            raise ShapeError(
                f"stream: input {spec.name!r} has shape {given.shape}: expected {sizes}, leading 1s may be left out{more}"
            )
        return array * spec.dtype.type(FULL_SCALE) if scaled else array

    def _model_input(self) -> Any:
        return next(v for v in self._model._graph.inputs if v.name == self._input.name)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}; windows of {self._size} after {self._overlap} along axis {self._axis})"

    def _checked(self, name: str, value: Any) -> Any:
        sound = name in (self._before, self._waiting) and self._input.dtype.kind == "f"
        if sound and getattr(value, "dtype", None) == np.int16:
            raise DTypeError(f"stream: state {name!r} has dtype int16: expected {self._input.dtype}, as `state` gives it")
        made = super()._checked(name, value)
        if made is not None and name in (self._before, self._waiting):
            steps, over = made.shape[self._axis], name == self._before
            if steps != self._overlap if over else steps >= self._size:
                expected = self._overlap if over else f"less than {self._size}"
                raise ShapeError(f"stream: state {name!r} has {steps} steps along axis {self._axis}: expected {expected}")
        return made


def _plain(results: Mapping[str, Any]) -> Any:
    values = tuple(results.values())
    return values[0] if len(values) == 1 else values


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


def _cut(array: np.ndarray, axis: int, start: int, end: int | None) -> np.ndarray:
    """Steps of an array, copied: a view would keep all of a long piece."""
    return np.array(array[(slice(None),) * axis + (slice(start, end),)])


def _expected(spec: TensorSpec, axis: int, batch: Any) -> tuple[tuple[Any, ...], bool]:
    """The sizes that pieces must have, in words where any will do; and whether an input is one row of samples."""
    sizes: list[Any] = ["?" if d is None else d for d in spec.shape or ()]
    sizes[axis], lead = "any", 0 if axis else 1
    samples = batch is None and len(sizes) == 2 and not isinstance(sizes[lead], int)
    if samples:
        sizes[lead] = 1
    elif batch is not None:
        rows = integer("stream", "batch", batch)
        if rows < 1 or lead >= len(sizes) or (isinstance(sizes[lead], int) and sizes[lead] != rows):
            raise ArgumentError(
                f"stream: batch is {shown(batch)}, and input {spec.name!r} has the shape {spec.shape}: expected the size of axis "
                f"{lead}, from 1 up"
            )
        sizes[lead] = rows
    return tuple(sizes), samples


def _length(name: str, value: Any, least: int) -> int:
    found = integer("stream", name, value)
    if not least <= found <= LONGEST:
        raise ArgumentError(f"stream: {name} is {shown(value)}: expected an int of at least {least}")
    return found


def _windowed(
    inputs: Sequence[TensorSpec], length: int, axis: int | str | None, name: str | Sequence[str] | None
) -> tuple[TensorSpec, int]:
    """The input that is cut into windows, and along which of its axes."""
    from ..stream.axes import times

    if name is None:
        # Scalars, such as a rate, are the same for every window.
        found = [v for v in inputs if v.shape is None or v.shape]
        if len(found) != 1:
            raise ArgumentError(
                f"stream: size was given, and there are the inputs {[v.name for v in found]}: say with input= which is cut"
            )
        name = found[0].name
    if not isinstance(name, str):
        raise DTypeError(f"stream: input is {shown(name)}: expected one name, since size was given")
    spec = next((v for v in inputs if v.name == name), None)
    if spec is None or spec.shape is None:
        raise ArgumentError(f"stream: input is {name!r}: expected one of known rank of {[v.name for v in inputs]}")
    if axis is None:
        exact = [i for i, d in enumerate(spec.shape) if d == length]
        if len(exact) == 1:
            axis = exact[0]
        elif not exact and all(isinstance(d, int) for d in spec.shape[1:]):
            raise ArgumentError(
                f"stream: input {name!r} has the shape {spec.shape}: expected size + overlap, which are {length}, to be one of "
                "its sizes"
            )
    at = times([spec], axis, None)[name]
    size = spec.shape[at]
    if isinstance(size, int) and size != length:
        raise ArgumentError(
            f"stream: input {name!r} takes {size} steps along axis {at}: expected size + overlap to be that, not {length}"
        )
    return spec, at
