"""Recurrent layers: over a sequence, in several layers and directions, and one step. State goes in and comes out."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import functional
from ..functional import _recurrent as kinds
from ._recurrent import Cell, Sequences

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNCell"]


class LSTM(Sequences[tuple[np.ndarray, np.ndarray]]):
    """Long short-term memory over a sequence, gates in the order i, f, g, o; the formula is that of `functional.lstm`.

    Args:
        input_size: size of the last axis of x.
        hidden_size: units a layer and direction, h.
        num_layers: layers, each of which reads the output of the one before.
        bias: whether there are biases.
        batch_first: whether x is ``(n, t, input_size)`` instead of ``(t, n, input_size)``.
        dropout: accepted for compatibility; there is none at inference.
        bidirectional: whether each layer also runs from the last step to the first; d is then 2, else 1.
        proj_size: values that h has after torch's projections, q, less than hidden_size; 0: none, q is h.
        merge: what becomes of the outputs of two directions: ``"concat"``, ``"sum"``, ``"mul"``, ``"ave"``, or None: out is the
            pair of them. The next layer reads what was merged, as when Keras' Bidirectional layers follow each other; with None
            it reads both, concatenated.
        peephole: whether the gates i, f and o also see c.
        activation: what stands for tanh, as in the function.
        recurrent_activation: what stands for sigmoid, as in the function; Keras before 2.3 had ``("hardsigmoid", {"alpha":
            0.2, "beta": 0.5})`` by default.
        clip: sums of the gates are clipped to ``-clip .. clip``; 0: they are not.
        couple_input_forget: whether ``1 - sigmoid(i)`` stands for ``sigmoid(f)``.

    Tensors, for layer k: ``weight_ih_l{k}`` (4 h, input), ``weight_hh_l{k}`` (4 h, q), ``bias_ih_l{k}``, ``bias_hh_l{k}``
    (4 h,), and the same with ``_reverse`` for the other direction.
    With `proj_size` ``weight_hr_l{k}`` (q, h), and with `peephole` ``weight_peephole_l{k}`` (3 h,), of i, f, o
    (ONNX has i, o, f).
    Keras' LSTM: kernel, recurrent_kernel, bias (4 h,); Bidirectional: the forward three, then the
    backward three; several layers: their lists one after the other.

    >>> import numpy as np, fastlayers as fl
    >>> layer = fl.LSTM(3, 4)
    >>> _ = layer.load_state_dict({name: np.zeros(shape) for name, shape in layer.tensor_shapes().items()})
    >>> out, (h, c) = layer(np.ones((5, 2, 3)), lengths=[5, 3])
    >>> out.shape, h.shape
    ((5, 2, 4), (1, 2, 4))
    """

    _kind = kinds.LSTM
    _function = staticmethod(functional.lstm)

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
        *,
        merge: str | None = "concat",
        peephole: bool = False,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
        clip: float = 0.0,
        couple_input_forget: bool = False,
    ) -> None:
        options = {
            "activation": activation,
            "recurrent_activation": recurrent_activation,
            "clip": clip,
            "couple_input_forget": couple_input_forget,
        }
        self._set(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, merge, options, proj_size, peephole
        )


class LSTMCell(Cell[tuple[np.ndarray, np.ndarray]]):
    """One step of Long short-term memory, gates in the order i, f, g, o; the formula is that of `functional.lstm`.

    Args:
        input_size: size of the last axis of x.
        hidden_size: units, h.
        bias: whether there are biases.
        peephole: whether the gates i, f and o also see c.
        activation: what stands for tanh, as in the function.
        recurrent_activation: what stands for sigmoid, as in the function; Keras before 2.3 had ``("hardsigmoid", {"alpha":
            0.2, "beta": 0.5})`` by default.
        clip: sums of the gates are clipped to ``-clip .. clip``; 0: they are not.
        couple_input_forget: whether ``1 - sigmoid(i)`` stands for ``sigmoid(f)``.

    Tensors: ``weight_ih`` (4 h, input_size), ``weight_hh`` (4 h, h), ``bias_ih`` and ``bias_hh`` (4 h,), with `peephole`
    ``weight_peephole`` (3 h,), of i, f, o. Keras' LSTMCell: as its LSTM.

    >>> import numpy as np, fastlayers as fl
    >>> cell = fl.LSTMCell(3, 4)
    >>> _ = cell.load_state_dict({name: np.zeros(shape) for name, shape in cell.tensor_shapes().items()})
    >>> h, c = cell(np.ones((2, 3)))
    >>> h, c = cell(np.ones((2, 3)), (h, c))
    >>> h.shape
    (2, 4)
    """

    _kind = kinds.LSTM
    _function = staticmethod(functional.lstm_cell)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        *,
        peephole: bool = False,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
        clip: float = 0.0,
        couple_input_forget: bool = False,
    ) -> None:
        self._set(
            input_size,
            hidden_size,
            bias,
            {
                "activation": activation,
                "recurrent_activation": recurrent_activation,
                "clip": clip,
                "couple_input_forget": couple_input_forget,
            },
            peephole,
        )


class GRU(Sequences[np.ndarray]):
    """A gated recurrent unit over a sequence, gates in the order r, z, n; the formula is that of `functional.gru`.

    Args:
        input_size: size of the last axis of x.
        hidden_size: units a layer and direction, h.
        num_layers: layers, each of which reads the output of the one before.
        bias: whether there are biases.
        batch_first: whether x is ``(n, t, input_size)`` instead of ``(t, n, input_size)``.
        dropout: accepted for compatibility; there is none at inference.
        bidirectional: whether each layer also runs from the last step to the first; d is then 2, else 1.
        merge: what becomes of the outputs of two directions: ``"concat"``, ``"sum"``, ``"mul"``, ``"ave"``, or None: out is the
            pair of them. The next layer reads what was merged, as when Keras' Bidirectional layers follow each other; with None
            it reads both, concatenated.
        activation: what stands for tanh, as in the function.
        recurrent_activation: what stands for sigmoid, as in the function; Keras before 2.3 had ``("hardsigmoid", {"alpha":
            0.2, "beta": 0.5})`` by default.
        reset_after: whether r multiplies the product, as in torch, or h before the product (Keras' ``reset_after=False``).
        clip: sums of the gates are clipped to ``-clip .. clip``; 0: they are not.

    Tensors, for layer k: ``weight_ih_l{k}`` (3 h, input), ``weight_hh_l{k}`` (3 h, h), ``bias_ih_l{k}``, ``bias_hh_l{k}``
    (3 h,), and the same with ``_reverse`` for the other direction.
    Keras' GRU: kernel, recurrent_kernel, bias (2, 3 h), or (3 h,) without `reset_after`; gates z, r, h. Bidirectional: the
    forward three, then the backward three; several layers: their lists one after the other.

    >>> import numpy as np, fastlayers as fl
    >>> layer = fl.GRU(3, 4)
    >>> _ = layer.load_state_dict({name: np.zeros(shape) for name, shape in layer.tensor_shapes().items()})
    >>> out, h = layer(np.ones((5, 2, 3)), lengths=[5, 3])
    >>> out.shape, h.shape
    ((5, 2, 4), (1, 2, 4))
    """

    _kind = kinds.GRU
    _function = staticmethod(functional.gru)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        merge: str | None = "concat",
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
        reset_after: bool = True,
        clip: float = 0.0,
    ) -> None:
        options = {
            "activation": activation,
            "recurrent_activation": recurrent_activation,
            "reset_after": reset_after,
            "clip": clip,
        }
        self._set(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, merge, options)


class GRUCell(Cell[np.ndarray]):
    """One step of a gated recurrent unit, gates in the order r, z, n; the formula is that of `functional.gru`.

    Args:
        input_size: size of the last axis of x.
        hidden_size: units, h.
        bias: whether there are biases.
        activation: what stands for tanh, as in the function.
        recurrent_activation: what stands for sigmoid, as in the function; Keras before 2.3 had ``("hardsigmoid", {"alpha":
            0.2, "beta": 0.5})`` by default.
        reset_after: whether r multiplies the product, as in torch, or h before the product (Keras' ``reset_after=False``).
        clip: sums of the gates are clipped to ``-clip .. clip``; 0: they are not.

    Tensors: ``weight_ih`` (3 h, input_size), ``weight_hh`` (3 h, h), ``bias_ih`` and ``bias_hh`` (3 h,). Keras'
    GRUCell: as its GRU.

    >>> import numpy as np, fastlayers as fl
    >>> cell = fl.GRUCell(3, 4)
    >>> _ = cell.load_state_dict({name: np.zeros(shape) for name, shape in cell.tensor_shapes().items()})
    >>> h = cell(np.ones((2, 3)))
    >>> h = cell(np.ones((2, 3)), h)
    >>> h.shape
    (2, 4)
    """

    _kind = kinds.GRU
    _function = staticmethod(functional.gru_cell)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        *,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
        reset_after: bool = True,
        clip: float = 0.0,
    ) -> None:
        self._set(
            input_size,
            hidden_size,
            bias,
            {"activation": activation, "recurrent_activation": recurrent_activation, "reset_after": reset_after, "clip": clip},
        )


class RNN(Sequences[np.ndarray]):
    """A simple recurrent network over a sequence; the formula is that of `functional.rnn`.

    Args:
        input_size: size of the last axis of x.
        hidden_size: units a layer and direction, h.
        num_layers: layers, each of which reads the output of the one before.
        nonlinearity: ``"tanh"``, ``"relu"``, or any other elementwise function as in the function.
        bias: whether there are biases.
        batch_first: whether x is ``(n, t, input_size)`` instead of ``(t, n, input_size)``.
        dropout: accepted for compatibility; there is none at inference.
        bidirectional: whether each layer also runs from the last step to the first; d is then 2, else 1.
        merge: what becomes of the outputs of two directions: ``"concat"``, ``"sum"``, ``"mul"``, ``"ave"``, or None: out is the
            pair of them. The next layer reads what was merged, as when Keras' Bidirectional layers follow each other; with None
            it reads both, concatenated.
        clip: sums of the gates are clipped to ``-clip .. clip``; 0: they are not.

    Tensors, for layer k: ``weight_ih_l{k}`` (h, input), ``weight_hh_l{k}`` (h, h), ``bias_ih_l{k}``, ``bias_hh_l{k}``
    (h,), and the same with ``_reverse`` for the other direction.
    Keras' SimpleRNN: kernel, recurrent_kernel, bias (h,); Bidirectional: the forward three, then the
    backward three; several layers: their lists one after the other.

    >>> import numpy as np, fastlayers as fl
    >>> layer = fl.RNN(3, 4)
    >>> _ = layer.load_state_dict({name: np.zeros(shape) for name, shape in layer.tensor_shapes().items()})
    >>> out, h = layer(np.ones((5, 2, 3)), lengths=[5, 3])
    >>> out.shape, h.shape
    ((5, 2, 4), (1, 2, 4))
    """

    _kind = kinds.RNN
    _function = staticmethod(functional.rnn)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: Any = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        merge: str | None = "concat",
        clip: float = 0.0,
    ) -> None:
        options = {"nonlinearity": nonlinearity, "clip": clip}
        self._set(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, merge, options)


class RNNCell(Cell[np.ndarray]):
    """One step of a simple recurrent network; the formula is that of `functional.rnn`.

    Args:
        input_size: size of the last axis of x.
        hidden_size: units, h.
        bias: whether there are biases.
        nonlinearity: ``"tanh"``, ``"relu"``, or any other elementwise function as in the function.
        clip: sums of the gates are clipped to ``-clip .. clip``; 0: they are not.

    Tensors: ``weight_ih`` (h, input_size), ``weight_hh`` (h, h), ``bias_ih`` and ``bias_hh`` (h,). Keras'
    SimpleRNNCell: as its SimpleRNN.

    >>> import numpy as np, fastlayers as fl
    >>> cell = fl.RNNCell(3, 4)
    >>> _ = cell.load_state_dict({name: np.zeros(shape) for name, shape in cell.tensor_shapes().items()})
    >>> h = cell(np.ones((2, 3)))
    >>> h = cell(np.ones((2, 3)), h)
    >>> h.shape
    (2, 4)
    """

    _kind = kinds.RNN
    _function = staticmethod(functional.rnn_cell)

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: Any = "tanh", *, clip: float = 0.0
    ) -> None:
        self._set(input_size, hidden_size, bias, {"nonlinearity": nonlinearity, "clip": clip})
