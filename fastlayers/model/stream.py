"""`Stream`: a model that is called piece by piece and keeps what it needs of the pieces before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _html
from .._arguments import as_mapping, shown
from ..errors import ArgumentError, DTypeError, Error, ShapeError
from ..graph.record import shape_of
from .specs import Specs

if TYPE_CHECKING:
    from ..ir.graph import Value
    from ..stream.rewrite import State
    from .model import Model

__all__ = ["Stream", "copied"]


class Stream:
    """A network over a sequence that comes in pieces; made by `Model.stream`.

    It is called like the model, with the next piece. What it must keep of earlier ones (states of recurrent layers, the last
    steps before a convolution, or what the network hands out to be given back) is its `state`: nothing is stored in the model, of
    which there may be any number of streams at once. One stream belongs to one caller at a time. If a call fails, the state is
    as it was before.

    >>> import numpy as np, fastlayers as fl
    >>> sums = fl.graph.Graph(
    ...     (fl.graph.Value("x", ("time",), np.dtype("float32")),), (fl.graph.Value("y", ("time",), np.dtype("float32")),),
    ...     (fl.graph.Node("CumSum", ("x", "axis"), ("y",), {}),), {"axis": np.array(0)},
    ... )
    >>> stream = fl.Model(sums).stream()
    >>> stream([1, 2.0]), stream([3.0])
    (array([1., 3.], dtype=float32), array([6.], dtype=float32))
    >>> again = stream.clone()
    >>> stream.reset()
    >>> stream([1.0]), again([1.0])
    (array([1.], dtype=float32), array([7.], dtype=float32))
    """

    def __init__(
        self,
        model: Model,
        pairs: Mapping[str, str],
        initial: Mapping[str, Any] | None = None,
        own: Sequence[State] | None = None,
        kept: Mapping[str, Value] | None = None,
    ) -> None:
        """See `Model.stream`.

        `own`: the states are those of a rewritten graph, and begin by themselves as scalars. `kept`: what a subclass keeps
        besides the network's states.
        """
        self._model, self._pairs, self._own = model, dict(pairs), None if own is None else {s.before: s for s in own}
        outs = set(self._pairs.values())
        self.inputs = Specs(v for v in model.inputs if v.name not in self._pairs)
        self.outputs = Specs(v for v in model.outputs if v.name not in outs)
        self._specs = {v.name: v for v in model._graph.inputs if v.name in self._pairs} | dict(kept or {})
        given = {} if initial is None else as_mapping("stream", "initial", initial)
        self._initial = {name: self._checked(name, value) for name, value in given.items()}
        self._state: dict[str, Any] = {}  # of the network
        self._kept: dict[str, Any] = {}
        self.reset()

    # ---- running ----------------------------------------------------------------------------------------------------

    def __call__(self, *arrays: Any, timeout: float | None = None) -> Any:
        """Runs on the next piece.

        Args:
            *arrays: one per input of `inputs`, in their order.
            timeout: seconds that the run may take, as of `Model.run`; None for no limit.

        Returns:
            One array, or a tuple of them if there are several outputs. Along time they may have no entries, if more is needed
            first.

        Raises:
            ArgumentError: too few or many arrays, or a shape does not fit, also to the pieces before.
            DTypeError: an array is of another kind than its input.
            TimeoutError: the run is not done after `timeout` seconds.
        """
        results = tuple(self.run(self._named(arrays), timeout=timeout).values())
        return results[0] if len(results) == 1 else results

    def run(self, feeds: Mapping[str, Any], *, timeout: float | None = None) -> dict[str, Any]:
        """Runs on the next piece, given by name; a dict in the order of `outputs`. See `__call__`."""
        self._check_names(feeds)
        for value in self.inputs:
            if value.dtype.kind == "f" and getattr(feeds[value.name], "dtype", None) == np.int16:
                raise DTypeError(
                    f"stream: input {value.name!r} has dtype int16, and {value.dtype} is expected: divide sound by 32768, as "
                    "stream(size=, overlap=) does by itself; values of another meaning need .astype"
                )
        state = self._begun(feeds)
        try:
            results = self._model.run({**feeds, **state}, timeout=timeout)
        except ShapeError as error:
            if self._own is not None:
                raise
            raise ShapeError(
                f"{error}; if the network takes windows of one length, stream(size=, overlap=) cuts pieces of any length"
            ) from error
        self._state = {name: results.pop(output) for name, output in self._pairs.items()}
        return results

    def _named(self, arrays: Sequence[Any]) -> dict[str, Any]:
        """Arrays in the order of the inputs, by their names."""
        if arrays and isinstance(arrays[0], Mapping):
            raise DTypeError("stream: a dict was given: expected arrays in the order of `inputs`; `run` takes them by name")
        if len(arrays) != len(self.inputs):
            names = self.inputs.names
            raise ArgumentError(f"stream: {len(arrays)} arrays were given: expected {len(names)}, for {names}")
        return {value.name: array for value, array in zip(self.inputs, arrays, strict=True)}

    def _check_names(self, feeds: Any) -> None:
        names = self.inputs.names
        if not isinstance(feeds, Mapping) or set(feeds) != set(names):
            given = list(feeds) if isinstance(feeds, Mapping) else type(feeds).__name__
            raise ArgumentError(f"stream: feeds has {given}: expected exactly {names}")

    def _begun(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """The state, with zeros of the right sizes for what has not begun."""
        if all(value is not None for value in self._state.values()):
            return self._state
        if self._own is not None:
            return {n: np.zeros((), self._specs[n].dtype) if v is None else v for n, v in self._state.items()}
        shapes = {v.name: shape_of(feeds[v.name], "stream", f"input {v.name!r}") for v in self.inputs}
        sizes = {d: s for v in self.inputs if v.shape is not None for d, s in zip(v.shape, shapes[v.name], strict=False)}
        first = next(iter(shapes.values()), ())
        made = {}
        for name, value in self._state.items():
            made[name] = self._zeros(name, sizes, first[0] if first else 1) if value is None else value
        return made

    def _zeros(self, name: str, sizes: Mapping[Any, int], batch: int) -> Any:
        """A state of zeros: sizes by name from the other inputs; else the first open one is the batch, and others begin at 0."""
        spec = self._specs[name]
        if spec.kind != "tensor":
            return None if spec.kind.startswith("optional") else []
        if spec.shape is None:
            raise ArgumentError(f"stream: input {name!r} is of unknown rank: give its beginning, initial={{{name!r}: ...}}")
        shape, first = [], True
        for size in spec.shape:
            known = size if isinstance(size, int) else sizes.get(size) if isinstance(size, str) else None
            if known is None:
                known = batch if first else 0
            first = first and isinstance(size, int)
            shape.append(known)
        return np.zeros(shape, spec.dtype)

    # ---- state ------------------------------------------------------------------------------------------------------

    @property
    def state(self) -> dict[str, Any]:
        """A copy of all that the stream keeps, by name; None for what has not begun, which is zeros when the first piece comes.

        Set it to such a dict, also with some of the names only, to go on from there: also of another stream, in another process,
        of the same network, made with the same arguments.
        """
        return {name: copied(value) for name, value in {**self._state, **self._kept}.items()}

    @state.setter
    def state(self, values: Mapping[str, Any]) -> None:
        if not isinstance(values, Mapping):
            raise DTypeError(f"stream: state is of type {type(values).__name__}: expected a dict of arrays by name")
        given = {name: self._checked(name, value) for name, value in values.items()}
        state, kept = ({n: given.get(n, old) for n, old in part.items()} for part in (self._state, self._kept))
        self._state, self._kept = state, kept

    def _checked(self, name: str, value: Any) -> Any:
        """A copy of a state that a caller gives."""
        from .feeds import convert

        spec = self._specs.get(name) if isinstance(name, str) else None
        if spec is None:
            raise ArgumentError(f"stream: {shown(name)} is no state: expected some of {list(self._specs)}")
        if value is None:
            return None
        try:
            made = copied(convert(spec, value))
        except Error as error:
            raise type(error)(f"stream: state: {str(error).removeprefix('run: ')}") from error
        if self._own is not None:
            self._own[name].check(made.shape)
        return made

    def reset(self) -> None:
        """Begins again: every state has its initial value."""
        self._state = {name: self._initial.get(name) for name in self._pairs}
        self._kept = {name: self._initial.get(name) for name in self._specs if name not in self._pairs}

    def clone(self) -> Stream:
        """Another stream of the same model that goes on from here; both are then independent."""
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        made._state, made._kept = dict(self._state), dict(self._kept)  # arrays in them are never written to
        return made

    def __copy__(self) -> Stream:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> Stream:
        return self.clone()

    def _repr_html_(self) -> str:
        sides = (("input", self.inputs), ("output", self.outputs))
        rows: list[tuple[Any, ...]] = [(what, s.name, s.dtype.name, _html.shape(s.shape)) for what, found in sides for s in found]
        for name, value in {**self._state, **self._kept}.items():
            array = isinstance(value, np.ndarray)
            rows.append(
                ("state", name, value.dtype.name if array else "", _html.shape(value.shape) if array else "not yet begun")
            )
        return f"<p><b>{type(self).__name__}</b></p>{_html.table(['', 'name', 'dtype', 'shape'], rows, 4)}"

    def __repr__(self) -> str:
        return f"Stream({self._model!r}; states {', '.join(self._pairs) or 'none'})"


def copied(value: Any) -> Any:
    """A copy of an array, or of a list of them."""
    if isinstance(value, list):
        return [np.array(v) for v in value]
    return None if value is None else np.array(value)
