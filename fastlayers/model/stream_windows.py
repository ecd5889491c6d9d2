"""`WindowStream`: pieces of any length for a network that takes windows of one length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arguments import shown
from .._deadline import Deadline
from ..errors import ArgumentError, DTypeError, ShapeError
from ..ir.checks import integer
from .feeds import convert
from .stream import Stream

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
    ``(n,)`` as well as ``(1, n)``. Pieces of int16 for an input of floats are sound, and are divided by 32768; other dtypes keep
    their values.

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
    ) -> None:
        self._size, self._overlap = _length("size", size, 1), _length("overlap", overlap, 0)
        super().__init__(model, pairs, initial)
        self._input, self._axis = _windowed(self.inputs, self._size + self._overlap, axis, input)
        self._waiting: np.ndarray | None = None
        self._others: dict[str, Any] = {}

    def __call__(self, *arrays: Any, timeout: float | None = None) -> list[Any]:
        """Runs on every window that the next piece completes.

        Args:
            *arrays: one per input of `inputs`, in their order: the piece, and the others as they are for each of its windows.
            timeout: seconds that all of it may take; None for no limit.

        Returns:
            A list with a result for every window, in order, which may have none: an array, or a tuple if there are several
            outputs.

        Raises:
            ShapeError: too few or many arrays, or a shape does not fit, also to the pieces before.
            DTypeError: an array is of another kind than its input.
            TimeoutError: the run is not done after `timeout` seconds; no window of this piece counts then.
        """
        return [_plain(results) for results in self.run(self._named(arrays), timeout=timeout)]

    def run(self, feeds: Mapping[str, Any], *, timeout: float | None = None) -> list[dict[str, Any]]:  # type: ignore[override]
        """Runs on every window that the next piece completes, given by name; a list of dicts. See `__call__`."""
        self._check_names(feeds)
        piece, others = self._piece(feeds[self._input.name]), {k: v for k, v in feeds.items() if k != self._input.name}
        return self._windows(piece, others, timeout)

    def flush(self, *, timeout: float | None = None) -> list[Any]:
        """Runs on what still waits for more, filled up with zeros, and begins again after it.

        Other inputs are those of the last call. A list with one result, or with none if nothing waits.
        """
        results: list[Any] = []
        if self._waiting is not None and (missing := self._waiting.shape[self._axis] - self._overlap):
            shape = list(self._waiting.shape)
            shape[self._axis] = self._size - missing
            zeros = np.zeros(shape, self._waiting.dtype)
            results = [_plain(r) for r in self._windows(zeros, self._others, timeout)]
        self.reset()
        return results

    def reset(self) -> None:
        """Begins again: what waits is dropped, and every state is as it was when the stream was made."""
        super().reset()
        self._waiting, self._others = None, {}

    def _windows(self, piece: np.ndarray, others: dict[str, Any], timeout: float | None) -> list[dict[str, Any]]:
        if timeout is not None:
            with Deadline(timeout):
                return self._windows(piece, others, None)
        axis, length = self._axis, self._size + self._overlap
        waiting = self._waiting
        if waiting is None:
            shape = list(piece.shape)
            shape[axis] = self._overlap
            waiting = np.zeros(shape, piece.dtype)
        elif _without(waiting.shape, axis) != _without(piece.shape, axis):
            raise ShapeError(
                f"stream: input {self._input.name!r} has shape {piece.shape}, and pieces before had {waiting.shape}: expected "
                f"the same sizes but along axis {axis}"
            )
        whole = np.concatenate([waiting, piece], axis=axis)
        before, results, at = self._state, [], 0
        try:
            while whole.shape[axis] - at >= length:
                window = whole[(slice(None),) * axis + (slice(at, at + length),)]
                results.append(super().run({self._input.name: window, **others}))
                at += self._size
        except BaseException:
            self._state = before
            raise
        # A copy: a view would keep all of a long piece.
        self._waiting, self._others = whole[(slice(None),) * axis + (slice(at, None),)].copy(), others
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
        sizes = spec.shape or ()
        wrong = array.ndim != rank or any(
            isinstance(d, int) and i != self._axis and d != array.shape[i] for i, d in enumerate(sizes)
        )
        if wrong:
            expected = tuple("any" if i == self._axis else "?" if d is None else d for i, d in enumerate(sizes))
            raise ShapeError(
                f"stream: input {spec.name!r} has shape {given.shape}: expected {expected}, leading 1s may be left out"
            )
        return array * spec.dtype.type(FULL_SCALE) if scaled else array

    def _model_input(self) -> Any:
        return next(v for v in self._model._graph.inputs if v.name == self._input.name)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}; windows of {self._size} after {self._overlap} along axis {self._axis})"


def _plain(results: Mapping[str, Any]) -> Any:
    values = tuple(results.values())
    return values[0] if len(values) == 1 else values


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


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
            raise ShapeError(
                f"stream: size was given, and there are the inputs {[v.name for v in found]}: say with input= which is cut"
            )
        name = found[0].name
    if not isinstance(name, str):
        raise DTypeError(f"stream: input is {shown(name)}: expected one name, since size was given")
    spec = next((v for v in inputs if v.name == name), None)
    if spec is None or spec.shape is None:
        raise ShapeError(f"stream: input is {name!r}: expected one of known rank of {[v.name for v in inputs]}")
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
