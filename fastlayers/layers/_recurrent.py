"""The base of recurrent layers: names and shapes of tensors, Keras' layouts, a call over a sequence, and one of a step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np

from ..calls import recurrent
from ..calls.machine import ARRAYS
from ..errors import ArgumentError
from ..functional import concat, slice
from ..functional._recurrent import (
    LSTM,
    WEIGHTS,
    Kind,
    axes_of_step,
    axes_of_x,
    cell_state_rule,
    check_mask,
    check_merge,
    describe_options,
    merged,
    single_state,
    split_state,
    valid_steps,
)
from ..graph.arrays import as_float32, empty, optional_float32
from ..graph.symbol import symbolic
from ..ir.checks import MOST_LAYERS, integer, number
from ..ir.graph import Shape
from ..rules.weights import features_rule, state_rule
from ._again import Again, Calls
from ._base import Layer

if TYPE_CHECKING:
    from ..functional._types import Tensor

__all__ = ["Cell", "Sequences"]

State = TypeVar("State")

# Our gates' positions in Keras' order: its GRU has z r h for our r z n; an LSTM's are in torch's order.
_KERAS_ORDER = {"lstm": (0, 1, 2, 3), "gru": (1, 0, 2), "rnn": (0,)}


class Recurrent(Layer):
    """The part that sequences and cells share."""

    _kind: ClassVar[Kind]
    _function: ClassVar[Callable[..., Any]]  # the stateless one

    def _begin(self, input_size: Any, hidden_size: Any, options: dict[str, Any], proj_size: Any = 0) -> None:
        """Sets what all have; `options` are the attributes that the stateless function takes."""
        name = type(self).__name__
        self.input_size = integer(name, "input_size", input_size, 0)
        self.hidden_size = integer(name, "hidden_size", hidden_size, 1)
        self.proj_size = integer(name, "proj_size", proj_size, 0)
        if self.proj_size and self.proj_size >= self.hidden_size:
            raise ArgumentError(f"{name}: proj_size is {self.proj_size}: expected less than hidden_size, {self.hidden_size}")
        self._options = self._kind.options(name, options)
        self._attributes = dict(options)
        describe_options(self._attributes)
        # The sizes of the states.
        self._sizes = (self.proj_size or self.hidden_size, self.hidden_size)[: len(self._kind.states)]

    def _tensor_shapes(self, inputs: int, bias: bool, peephole: bool, suffix: str = "") -> dict[str, tuple[int, ...]]:
        """The tensors of one direction of one layer."""
        h = self.hidden_size
        sizes = {"g h": self._kind.gates * h, "3 h": 3 * h, "i": inputs, "q": self._sizes[0], "h": h}
        wanted = {"bias_ih": bias, "bias_hh": bias, "weight_hr": self.proj_size > 0, "weight_peephole": peephole}
        return {name + suffix: tuple(sizes[axis] for axis in axes) for name, axes in WEIGHTS.items() if wanted.get(name, True)}

    def _weights_of(self, tensors: Mapping[str, np.ndarray], suffixes: Sequence[str]) -> dict[str, np.ndarray | None]:
        """The weights of one layer by name, with an axis of directions; in the order of the pack kernel."""
        found = {name: [tensors[name + suffix] for suffix in suffixes if name + suffix in tensors] for name in self._kind.weights}
        return {name: np.stack(arrays) if arrays else None for name, arrays in found.items()}

    def _layer(self, tensors: Mapping[str, np.ndarray], suffixes: Sequence[str]) -> Any:
        """The packed weights of one layer."""
        return recurrent.pack(ARRAYS, self._kind.name, lambda: (*self._weights_of(tensors, suffixes).values(), self._options))

    def _states(self, name: str, state: Any) -> tuple[Any, ...]:
        return split_state(name, state) if self._kind is LSTM else (single_state(name, state),)

    def _joined(self, states: Sequence[Any]) -> Any:
        return tuple(states) if self._kind is LSTM else states[0]

    # ---- Keras ---------------------------------------------------------------------------------------------------------

    def _keras_one(self, suffix: str) -> dict[str, tuple[int, ...]]:
        """Keras' arrays of one direction of one layer."""
        rows, inputs = self._shapes["weight_ih" + suffix]
        found: dict[str, tuple[int, ...]] = {
            "kernel" + suffix: (inputs, rows),
            "recurrent_kernel" + suffix: (self.hidden_size, rows),
        }
        if "bias_ih" + suffix in self._shapes:
            found["bias" + suffix] = (2, rows) if getattr(self._options, "reset_after", False) else (rows,)
        return found

    def _from_keras(self, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        found: dict[str, np.ndarray] = {}
        for name, array in given.items():
            what, _, suffix = name.partition("_l")
            suffix = suffix and f"_l{suffix}"
            parts = np.split(array, self._kind.gates, axis=-1)
            ordered = np.concatenate([parts[k] for k in _KERAS_ORDER[self._kind.name]], axis=-1)
            if what == "bias":
                pair = ordered if ordered.ndim == 2 else (ordered, np.zeros_like(ordered))
                found["bias_ih" + suffix], found["bias_hh" + suffix] = pair
            else:
                found[("weight_ih" if what == "kernel" else "weight_hh") + suffix] = ordered.T
        return found

    def _no_extra(self) -> None:
        if "weight_hr" in "".join(self._shapes) or "weight_peephole" in "".join(self._shapes):
            super()._keras()  # raises: Keras has no such layer

    def _text(self, defaults: dict[str, Any], bias: bool) -> str:
        """Arguments for repr: sizes, and those that are not the defaults."""
        shown = "".join(
            f", {name}={getattr(self, name)!r}" for name, default in defaults.items() if getattr(self, name) != default
        )
        usual = _USUAL[self._kind.name]
        shown += "".join(f", {name}={value!r}" for name, value in self._attributes.items() if value != usual[name])
        return f"{self.input_size}, {self.hidden_size}" + shown + ("" if bias else ", bias=False")


_USUAL: dict[str, dict[str, Any]] = {
    "lstm": {"activation": "tanh", "recurrent_activation": "sigmoid", "clip": 0.0, "couple_input_forget": False},
    "gru": {"activation": "tanh", "recurrent_activation": "sigmoid", "reset_after": True, "clip": 0.0},
    "rnn": {"nonlinearity": "tanh", "clip": 0.0},
}


class Sequences(Recurrent, Generic[State]):
    """A recurrent layer over a sequence, in several layers and directions."""

    def _set(
        self,
        input_size: Any,
        hidden_size: Any,
        num_layers: Any,
        bias: Any,
        batch_first: Any,
        dropout: Any,
        bidirectional: Any,
        merge: Any,
        options: dict[str, Any],
        proj_size: Any = 0,
        peephole: Any = False,
    ) -> None:
        name = type(self).__name__
        self._begin(input_size, hidden_size, options, proj_size)
        self.num_layers = integer(name, "num_layers", num_layers, 1, MOST_LAYERS)
        self.batch_first, self.bidirectional, self.peephole = bool(batch_first), bool(bidirectional), bool(peephole)
        self.dropout = number(name, "dropout", dropout)
        directions = 2 if bidirectional else 1
        check_merge(name, merge, directions)
        self.merge = merge
        self._suffixes = [[f"_l{k}{reverse}" for reverse in ("", "_reverse")[:directions]] for k in range(self.num_layers)]
        later = self._sizes[0] * (directions if merge in ("concat", None) else 1)
        self._shapes = {
            tensor: shape
            for k, suffixes in enumerate(self._suffixes)
            for suffix in suffixes
            for tensor, shape in self._tensor_shapes(later if k else self.input_size, bool(bias), self.peephole, suffix).items()
        }

    def __call__(
        self, x: Tensor, state: Any = None, *, lengths: Tensor | None = None, mask: Tensor | None = None
    ) -> tuple[np.ndarray, State]:
        """Runs a sequence.

        Args:
            x: ``(t, n, input_size)``, ``(n, t, input_size)`` if `batch_first`, or ``(t, input_size)`` without a batch.
            state: h, or of an LSTM ``(h, c)``, before the first step, ``(num_layers d, n, size)``, or ``(num_layers d, size)``
                without a batch; None is zeros.
            lengths: integers ``(n,)``, how many of its steps each sequence has; an integer without a batch; None: all.
            mask: instead of lengths, booleans ``(n, t)``, or ``(t,)`` without a batch: which steps each sequence has.

        Returns:
            ``(out, state)``: out shaped as x with h of the last layer in its last axis, two directions merged as `merge` says,
            zeros where a sequence has no step; the state after the last step of each sequence, as it came in. Of Keras'
            ``return_sequences=False`` the result is ``h[-1]``, or the last two of h merged.
        """
        if lengths is None and mask is None and (fast := self._fast) is not None and (found := fast(x, state)) is not None:
            return found  # type: ignore[no-any-return]
        name, merge, last = self._kind.name, self.merge, self.num_layers - 1
        given = self._states(name, state)
        if symbolic(x, lengths, mask, *given):
            return self._record(self._tensors(), x, given, lengths, mask)
        own = self._weights
        packed, again = self._packed()
        y = as_float32(x, name, "x")
        plain = y is x and lengths is None and mask is None
        before = tuple([optional_float32(s, name, n) for s, n in zip(given, self._kind.states, strict=True)])
        shapes = self._check(y.shape, before)
        valid = None
        if lengths is not None or mask is not None:
            steps = y.shape[1] if self.batch_first and y.ndim == 3 else y.shape[0]
            valid = valid_steps(name, lengths, mask, shapes[0][1:-1], steps)
        after = [empty(shape) for shape in shapes]
        d = len(self._suffixes[0])
        outs = d * self._sizes[0]
        for k, weights in enumerate(packed):
            rows = np.s_[k * d : (k + 1) * d]
            out = empty((*y.shape[:-1], outs))
            parts = [None if s is None else s[rows] for s in before], [s[rows] for s in after]
            recurrent.layer(ARRAYS, name, y, weights, parts[0], valid, out, parts[1], self.batch_first, False)
            y = out if merge == "concat" or (merge is None and k < last) else merged(out, merge)
        if plain and all(a is b for a, b in zip(given, before, strict=True)):
            again.came(x, before, self._calls)
            self._quicken(own, again.fast)
        return y, self._joined(after)

    def _calls(self, tensors: Mapping[str, np.ndarray], axes: int) -> Calls:
        """Calls with an x of so many axes, as `Again` makes programs of them."""
        lead = ("t",) if axes == 2 else ("n", "t") if self.batch_first else ("t", "n")
        rows, batch = self.num_layers * len(self._suffixes[0]), ("n",) * (axes - 2)

        def record(x: Any, *states: Any) -> tuple[Any, ...]:
            y, state = self._record(tensors, x, states or (None,) * len(self._sizes), None, None)
            return (*(y if isinstance(y, tuple) else (y,)), *(state if isinstance(state, tuple) else (state,)))

        return [(*lead, self.input_size), *[(rows, *batch, size) for size in self._sizes]], record

    def _check(self, x: Shape, before: Sequence[Any]) -> list[Any]:
        """Checks the input and the state, arrays or symbols, and returns the shapes of the state."""
        name = self._kind.name
        if len(x) not in (2, 3):
            raise axes_of_x(name, x, self.batch_first)
        if x[-1] != self.input_size:
            features_rule(name, x[-1], self._shapes["weight_ih_l0"])
        batch = () if len(x) == 2 else (x[0] if self.batch_first else x[1],)
        shapes = [(self.num_layers * len(self._suffixes[0]), *batch, size) for size in self._sizes]
        for argument, value, shape in zip(self._kind.states, before, shapes, strict=True):
            if value is not None:
                state_rule(name, argument, value.shape, shape, x)
        return shapes

    def _record(
        self, tensors: Mapping[str, np.ndarray], x: Any, before: Sequence[Any], lengths: Any, mask: Any
    ) -> tuple[Any, Any]:
        """One operation a layer; the state is cut into the layers' parts and put together again."""
        name = self._kind.name
        check_mask(name, mask)
        x, *before = (v if v is None or symbolic(v) else as_float32(v, name, "x or state") for v in (x, *before))
        self._check(x.shape, before)
        d, many, states = len(self._suffixes[0]), self.num_layers > 1, []
        for k, suffixes in enumerate(self._suffixes):
            weights = {n: w if w is None or d == 2 else w[0] for n, w in self._weights_of(tensors, suffixes).items()}
            parts = [v if v is None or not many else slice(v, 0, k * d, (k + 1) * d) for v in before]
            x, state = type(self)._function(
                x,
                None if parts[0] is None else self._joined(parts),
                **weights,
                lengths=lengths,
                mask=mask,
                batch_first=self.batch_first,
                direction="bidirectional" if d == 2 else "forward",
                merge="concat" if self.merge is None and k + 1 < self.num_layers else self.merge,
                **self._attributes,
            )
            states.append(state if isinstance(state, tuple) else (state,))
        return x, self._joined([parts[0] if not many else concat(parts) for parts in map(list, zip(*states, strict=True))])

    def _pack(self, tensors: dict[str, np.ndarray]) -> tuple[Any, Any]:
        packed = [self._layer(tensors, suffixes) for suffixes in self._suffixes]
        again = Again(tensors, self._kind.name.upper(), packed, both=self.merge is None)
        return (packed, again), None

    def _keras(self) -> dict[str, tuple[int, ...]]:
        self._no_extra()
        return {label: shape for suffixes in self._suffixes for s in suffixes for label, shape in self._keras_one(s).items()}

    def _arguments(self) -> str:
        defaults = {"num_layers": 1, "batch_first": False, "dropout": 0.0, "bidirectional": False, "merge": "concat"}
        return self._text({**defaults, "proj_size": 0, "peephole": False}, "bias_ih_l0" in self._shapes)


class Cell(Recurrent, Generic[State]):
    """One step of a recurrent layer."""

    def _set(self, input_size: Any, hidden_size: Any, bias: Any, options: dict[str, Any], peephole: Any = False) -> None:
        self._begin(input_size, hidden_size, options)
        self.peephole = bool(peephole)
        self._name = f"{self._kind.name}_cell"
        self._shapes = self._tensor_shapes(self.input_size, bool(bias), self.peephole)

    def __call__(self, x: Tensor, state: Any = None) -> State:
        """One step.

        Args:
            x: ``(n, input_size)``, or ``(input_size,)`` without a batch.
            state: h, or of an LSTM ``(h, c)``, each ``(n, hidden_size)``, or ``(hidden_size,)`` without a batch; None is zeros.

        Returns:
            The state after the step.
        """
        if (fast := self._fast) is not None and (found := fast(x, state)) is not None:
            return found  # type: ignore[no-any-return]
        name = self._name
        given = self._states(name, state)
        if symbolic(x, *given):
            return self._record(self._tensors(), x, given)  # type: ignore[no-any-return]
        own = self._weights
        packed, again = self._packed()
        array = as_float32(x, name, "x")
        plain, x = array is x, array
        if x.ndim not in (1, 2):
            raise axes_of_step(name, x.shape)
        if x.shape[-1] != self.input_size:
            features_rule(name, x.shape[-1], self._shapes["weight_ih"])
        wanted = (*x.shape[:-1], self.hidden_size)
        before = given
        if state is not None:
            before = tuple([as_float32(s, name, n) for s, n in zip(given, self._kind.states, strict=True)])
            for argument, value in zip(self._kind.states, before, strict=True):
                if value.shape != wanted:
                    cell_state_rule(name, argument, value.shape, wanted, x.shape)
        after = tuple([empty((*x.shape[:-1], size)) for size in self._sizes])
        recurrent.step(ARRAYS, self._kind.name, x, packed, before, after)
        if plain and all(a is b for a, b in zip(given, before, strict=True)):
            again.came(x, before, self._calls)
            self._quicken(own, again.fast)
        return self._joined(after)  # type: ignore[no-any-return]

    def _record(self, tensors: Mapping[str, np.ndarray], x: Any, before: Sequence[Any]) -> Any:
        """The step on symbolic values."""
        weights = {n: tensors.get(n) for n in self._kind.weights}
        return type(self)._function(x, None if before[0] is None else self._joined(before), **weights, **self._attributes)

    def _calls(self, tensors: Mapping[str, np.ndarray], axes: int) -> Calls:
        """Calls with an x of so many axes, as `Again` makes programs of them."""
        batch: Shape = ("n",) * (axes - 1)

        def record(x: Any, *states: Any) -> tuple[Any, ...]:
            made = self._record(tensors, x, states or (None,) * len(self._sizes))
            return made if isinstance(made, tuple) else (made,)

        return [(*batch, self.input_size), *[(*batch, size) for size in self._sizes]], record

    def _pack(self, tensors: dict[str, np.ndarray]) -> tuple[Any, Any]:
        packed = self._layer(tensors, [""])
        again = Again(tensors, self._kind.name.upper(), [packed], whole=True)
        return (packed, again), None

    def _keras(self) -> dict[str, tuple[int, ...]]:
        self._no_extra()
        return self._keras_one("")

    def _arguments(self) -> str:
        return self._text({"peephole": False}, "bias_ih" in self._shapes)
