"""LSTM layers: over a sequence, in several layers and directions, and one step. State goes in and comes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ShapeError, UnsupportedError
from ..functional import concat, slice
from ..functional import lstm as lstm_function
from ..functional import lstm_cell as lstm_cell_function
from ..functional._arrays import as_float32, empty, optional_float32
from ..functional._checks import differ, integer, number, same_shape
from ..functional.recurrent import run_lstm, run_lstm_cell, split_state
from ..graph.ir import Shape
from ..graph.symbol import Symbol
from ..kernels import _dispatch
from ..kernels.table import LstmOptions
from ._base import Layer

if TYPE_CHECKING:
    from ..functional._types import Tensor

__all__ = ["LSTM", "LSTMCell"]

State = tuple[np.ndarray, np.ndarray]
_NAMES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def _shapes(inputs: int, hidden: int, bias: bool, suffix: str = "") -> dict[str, tuple[int, ...]]:
    sizes = ((4 * hidden, inputs), (4 * hidden, hidden), (4 * hidden,), (4 * hidden,))
    return {name + suffix: size for name, size in zip(_NAMES, sizes, strict=True) if bias or name.startswith("weight")}


def _pack(tensors: dict[str, np.ndarray], suffixes: list[str]) -> Any:
    """The packed weights of one layer, whose directions' names end in `suffixes`."""
    arrays = ([tensors[name + suffix] for suffix in suffixes if name + suffix in tensors] for name in _NAMES)
    return _dispatch.kernel("lstm_pack")(*(np.stack(a) if a else None for a in arrays), None, LstmOptions())


class LSTM(Layer):
    """Long short-term memory over a sequence, gates in the order i, f, g, o; the formula is that of `functional.lstm`.

    Args:
        input_size: size of the last axis of x.
        hidden_size: units a layer and direction, h.
        num_layers: layers, each of which reads the output of the one before.
        bias: whether there are biases.
        batch_first: whether x is ``(n, t, input_size)`` instead of ``(t, n, input_size)``.
        dropout: taken for torch's sake; there is none at inference.
        bidirectional: whether each layer also runs from the last step to the first; d is then 2, else 1.
        proj_size: must be 0.

    Tensors, for layer k: ``weight_ih_l{k}`` (4 h, input), ``weight_hh_l{k}`` (4 h, h), ``bias_ih_l{k}``, ``bias_hh_l{k}`` (4
    h,), and the same with ``_reverse`` for the other direction.

    >>> import numpy as np, fastlayers as fl
    >>> layer = fl.LSTM(3, 4)
    >>> _ = layer.load_state_dict({name: np.zeros(shape) for name, shape in layer.tensor_shapes().items()})
    >>> out, (h, c) = layer(np.ones((5, 2, 3)))
    >>> out.shape, h.shape
    ((5, 2, 4), (1, 2, 4))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
    ) -> None:
        self.input_size = integer("LSTM", "input_size", input_size, 0)
        self.hidden_size = integer("LSTM", "hidden_size", hidden_size, 1)
        self.num_layers = integer("LSTM", "num_layers", num_layers, 1)
        self.batch_first, self.bidirectional = bool(batch_first), bool(bidirectional)
        self.dropout = number("LSTM", "dropout", dropout)
        if proj_size:
            raise UnsupportedError(f"LSTM: proj_size is {proj_size!r}: projections are not supported, expected 0")
        directions = 2 if bidirectional else 1
        self._suffixes = [[f"_l{k}{reverse}" for reverse in ("", "_reverse")[:directions]] for k in range(self.num_layers)]
        self._shapes = {
            name: shape
            for k, suffixes in enumerate(self._suffixes)
            for suffix in suffixes
            for name, shape in _shapes(
                directions * self.hidden_size if k else self.input_size, self.hidden_size, bias, suffix
            ).items()
        }

    def __call__(self, x: Tensor, state: tuple[Tensor, Tensor] | None = None) -> tuple[np.ndarray, State]:
        """Runs a sequence.

        Args:
            x: ``(t, n, input_size)``, ``(n, t, input_size)`` if `batch_first`, or ``(t, input_size)`` without a batch.
            state: ``(h, c)`` before the first step, each ``(num_layers d, n, h)``, or ``(num_layers d, h)`` without a batch;
                None is zeros.

        Returns:
            ``(out, (h, c))``: out shaped as x with ``d h`` in its last axis, forward columns first; the state as it came in.
        """
        h0, c0 = split_state("lstm", state)
        if x.__class__ is Symbol or h0.__class__ is Symbol or c0.__class__ is Symbol:
            return self._record(x, h0, c0)
        kernel, packed = self._packed()
        y = as_float32(x, "lstm", "x")
        h0, c0 = optional_float32(h0, "lstm", "h0"), optional_float32(c0, "lstm", "c0")
        shape = self._check(y.shape, h0, c0)
        h, c = empty(shape), empty(shape)
        d = len(self._suffixes[0])
        parts = [(h0, c0, h, c)]
        if self.num_layers > 1:
            parts = [tuple(v if v is None else v[k : k + d] for v in parts[0]) for k in range(0, shape[0], d)]  # type: ignore[misc]
        for weights, (h_before, c_before, h_after, c_after) in zip(packed, parts, strict=True):
            out = empty((*y.shape[:-1], d * self.hidden_size))
            run_lstm(kernel, y, weights, h_before, c_before, self.batch_first, False, out, h_after, c_after)
            y = out
        return y, (h, c)

    def _check(self, x: Shape, h0: Any, c0: Any) -> Any:
        """Checks the input and the state, arrays or symbols, and returns the shape of the state."""
        if len(x) not in (2, 3) or differ(x[-1], self.input_size):
            order = ("(n, t, {0})" if self.batch_first else "(t, n, {0})").format(self.input_size)
            raise ShapeError(f"lstm: x has shape {x}: expected {order}, or (t, {self.input_size}) without a batch")
        batch = () if len(x) == 2 else (x[0] if self.batch_first else x[1],)
        shape = (self.num_layers * len(self._suffixes[0]), *batch, self.hidden_size)
        for name, value in (("h0", h0), ("c0", c0)):
            if value is not None and value.shape != shape:  # symbols may still fit
                same_shape("lstm", name, value.shape, shape, f"(layers x directions, n, hidden_size) for x {x}")
        return shape

    def _record(self, x: Any, h0: Any, c0: Any) -> tuple[Any, Any]:
        """One operation a layer; the state is cut into the layers' parts and put together again."""
        tensors = self._tensors()
        x, h0, c0 = (v if v is None or v.__class__ is Symbol else as_float32(v, "lstm", "x or state") for v in (x, h0, c0))
        self._check(x.shape, h0, c0)
        d, hs, cs = len(self._suffixes[0]), [], []
        for k, suffixes in enumerate(self._suffixes):
            state: Any = (
                None if h0 is None else tuple(slice(v, 0, k * d, (k + 1) * d) if self.num_layers > 1 else v for v in (h0, c0))
            )
            weights = [
                [tensors[name + suffix] for suffix in suffixes] if name + suffixes[0] in tensors else None for name in _NAMES
            ]
            arrays: list[Any] = [w if w is None else (w[0] if d == 1 else np.stack(w)) for w in weights]
            x, (h, c) = lstm_function(
                x, state, *arrays, batch_first=self.batch_first, direction="bidirectional" if d == 2 else "forward"
            )
            hs.append(h)
            cs.append(c)
        return x, ((hs[0], cs[0]) if len(hs) == 1 else (concat(hs), concat(cs)))

    def _pack(self, tensors: dict[str, np.ndarray]) -> tuple[Any, Any]:
        return (_dispatch.kernel("lstm"), [_pack(tensors, suffixes) for suffixes in self._suffixes]), None

    def _arguments(self) -> str:
        defaults = {"num_layers": 1, "batch_first": False, "dropout": 0.0, "bidirectional": False}
        text = "".join(
            f", {name}={getattr(self, name)!r}" for name, default in defaults.items() if getattr(self, name) != default
        )
        return f"{self.input_size}, {self.hidden_size}" + text + ("" if "bias_ih_l0" in self._shapes else ", bias=False")


class LSTMCell(Layer):
    """One step of an LSTM, gates in the order i, f, g, o; the formula is that of `functional.lstm`.

    Args:
        input_size: size of the last axis of x.
        hidden_size: units, h.
        bias: whether there are biases.

    Tensors: ``weight_ih`` (4 h, input_size), ``weight_hh`` (4 h, h), ``bias_ih`` and ``bias_hh`` (4 h,).

    >>> import numpy as np, fastlayers as fl
    >>> cell = fl.LSTMCell(3, 4)
    >>> _ = cell.load_state_dict({name: np.zeros(shape) for name, shape in cell.tensor_shapes().items()})
    >>> h, c = cell(np.ones((2, 3)))
    >>> h, c = cell(np.ones((2, 3)), (h, c))
    >>> h.shape
    (2, 4)
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        self.input_size = integer("LSTMCell", "input_size", input_size, 0)
        self.hidden_size = integer("LSTMCell", "hidden_size", hidden_size, 1)
        self._shapes = _shapes(self.input_size, self.hidden_size, bias)

    def __call__(self, x: Tensor, state: tuple[Tensor, Tensor] | None = None) -> State:
        """One step.

        Args:
            x: ``(n, input_size)``, or ``(input_size,)`` without a batch.
            state: ``(h, c)``, each ``(n, h)``, or ``(h,)`` without a batch; None is zeros.

        Returns:
            ``(h, c)`` after the step.
        """
        h0, c0 = split_state("lstm_cell", state)
        if x.__class__ is Symbol or h0.__class__ is Symbol or c0.__class__ is Symbol:
            tensors = self._tensors()
            return lstm_cell_function(x, state, *(tensors.get(name) for name in _NAMES))  # type: ignore[arg-type]
        kernel, packed = self._packed()
        x = as_float32(x, "lstm_cell", "x")
        h0, c0 = optional_float32(h0, "lstm_cell", "h0"), optional_float32(c0, "lstm_cell", "c0")
        self._check(x.shape, h0, c0)
        return run_lstm_cell(kernel, x, packed, self.hidden_size, h0, c0)

    def _check(self, x: tuple[int, ...], h0: np.ndarray | None, c0: np.ndarray | None) -> None:
        if len(x) not in (1, 2) or x[-1] != self.input_size:
            raise ShapeError(
                f"lstm_cell: x has shape {x}: expected (n, {self.input_size}), or ({self.input_size},) without a batch"
            )
        state = (*x[:-1], self.hidden_size)
        if h0 is not None and c0 is not None and not (h0.shape == c0.shape == state):
            raise ShapeError(f"lstm_cell: state has shapes {h0.shape} and {c0.shape}: expected {state} each for x {x}")

    def _pack(self, tensors: dict[str, np.ndarray]) -> tuple[Any, Any]:
        return (_dispatch.kernel("lstm"), _pack(tensors, [""])), None

    def _arguments(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if "bias_ih" in self._shapes else ", bias=False")
