"""LSTM: an LSTM over a sequence, one layer in one or two directions, and one step. State goes in and comes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._arguments import checked
from ._recurrent import LSTM, check_mask, check_merge, merged, split_state
from ._recurrent_recorded import operation

if TYPE_CHECKING:
    from ._types import Tensor

__all__ = ["lstm", "lstm_cell"]

_layer, _step = operation(LSTM, True), operation(LSTM, False)


@checked
def lstm(
    x: Tensor,
    state: tuple[Tensor, Tensor] | None,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None = None,
    bias_hh: Tensor | None = None,
    *,
    weight_hr: Tensor | None = None,
    weight_peephole: Tensor | None = None,
    lengths: Tensor | None = None,
    mask: Tensor | None = None,
    batch_first: bool = False,
    direction: str = "forward",
    merge: str | None = "concat",
    activation: Any = "tanh",
    recurrent_activation: Any = "sigmoid",
    clip: float = 0.0,
    couple_input_forget: bool = False,
) -> tuple[Any, tuple[np.ndarray, np.ndarray]]:
    """One layer of an LSTM over a sequence, gates in the order i, f, g, o.

    ``i, f, g, o = weight_ih x + bias_ih + weight_hh h + bias_hh; c = sigmoid(f) c + sigmoid(i) tanh(g); h = sigmoid(o) tanh(c)``

    With `weight_peephole`, p: ``i + p_i c`` and ``f + p_f c`` of the c before the step, ``o + p_o c`` of the c after it. With
    `weight_hr`: ``h = weight_hr (sigmoid(o) tanh(c))``, of q values; without it q is h.

    Padding never changes a valid output: where a sequence has no step, outputs are zeros and the state passes by; the final
    state is the one after the last step that the sequence has, and the reverse direction begins there. (Keras repeats the
    output before instead of the zeros.)

    Args:
        x: ``(t, n, i)``, ``(n, t, i)`` if `batch_first`, or ``(t, i)`` without a batch; any real dtype.
        state: ``(h, c)`` before the first step, ``(d, n, q)`` and ``(d, n, h)``, or ``(d, q)`` and ``(d, h)`` without a batch;
            None is zeros. d is the number of directions.
        weight_ih: ``(4 h, i)``, or ``(d, 4 h, i)``.
        weight_hh: ``(4 h, q)``, or ``(d, 4 h, q)``.
        bias_ih: ``(4 h,)``, or ``(d, 4 h)``, or None.
        bias_hh: as `bias_ih`.
        weight_hr: ``(q, h)``, or ``(d, q, h)``, torch's projections, or None.
        weight_peephole: ``(3 h,)``, or ``(d, 3 h)``, of i, f, o, or None.
        lengths: integers ``(n,)``, how many of its steps each sequence has, from 0 to t; an integer without a batch; None: all. A
            compiled program takes a length that is out of range for the nearest in it.
        mask: instead of lengths, booleans ``(n, t)``, whatever `batch_first` is, or ``(t,)`` without a batch: which steps each
            sequence has; the others, holes too, are passed over as if they were not there.
        batch_first: whether the first axis of x and of the output is the batch.
        direction: ``"forward"``, ``"reverse"`` (the last step first; each output stays at its own time) or ``"bidirectional"``
            (weights have d = 2: forward, then reverse).
        merge: what becomes of the outputs of two directions: ``"concat"``, ``"sum"``, ``"mul"``, ``"ave"`` (half the sum), or
            None: out is the pair of them.
        activation: what stands for tanh, twice: a name of an elementwise function, ``("hardsigmoid", {"alpha": 0.2, "beta":
            0.5})`` for one with parameters, a layer such as ``ReLU()``, or None for the identity.
        recurrent_activation: likewise, what stands for sigmoid. ``"hardsigmoid"`` has the slope 1/6 of torch and Keras 3; that of
            Keras 2 is the one above.
        clip: the sums of the gates, peepholes included, are clipped to ``-clip .. clip``; 0: they are not.
        couple_input_forget: whether ``1 - sigmoid(i)`` stands for ``sigmoid(f)``.

    Returns:
        ``(out, (h, c))``, float32: h of every step, shaped as x with ``q`` in its last axis, or ``2 q`` if two directions are
        concatenated, forward first; and the state after the last step, shaped as `state`. Keras' ``return_sequences=False`` is
        ``h[-1]``, its ``return_state`` the state.

    Raises:
        ArgumentError: arguments do not fit, or shapes (a `ShapeError`).
        DTypeError: an argument is complex or not numeric, lengths are not integers, or a mask is not boolean.
        UnsupportedError: no elementwise function has the name that is given.

    >>> import numpy as np, fastlayers as fl
    >>> out, (h, c) = fl.functional.lstm(np.ones((5, 2, 3)), None, np.ones((16, 3)), np.ones((16, 4)), lengths=[5, 3])
    >>> out.shape, h.shape
    ((5, 2, 4), (1, 2, 4))
    """
    h0, c0 = split_state("lstm", state)
    check_mask("lstm", mask)
    check_merge("lstm", merge, 2 if direction == "bidirectional" else 1)
    out, h, c = _layer(
        x, weight_ih, weight_hh, bias_ih, bias_hh, weight_peephole, weight_hr, h0, c0, lengths, mask,
        batch_first=batch_first, direction=direction, activation=activation, recurrent_activation=recurrent_activation, clip=clip,
        couple_input_forget=couple_input_forget,
    )  # fmt: skip
    return merged(out, merge), (h, c)


@checked
def lstm_cell(
    x: Tensor,
    state: tuple[Tensor, Tensor] | None,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None = None,
    bias_hh: Tensor | None = None,
    *,
    weight_hr: Tensor | None = None,
    weight_peephole: Tensor | None = None,
    activation: Any = "tanh",
    recurrent_activation: Any = "sigmoid",
    clip: float = 0.0,
    couple_input_forget: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """One step of an LSTM, gates in the order i, f, g, o; the formula is that of `lstm`.

    Args:
        x: ``(n, i)``, or ``(i,)`` without a batch; any real dtype.
        state: ``(h, c)`` before the step, ``(n, q)`` and ``(n, h)``, or without a batch ``(q,)`` and ``(h,)``; None is zeros.
        weight_ih: ``(4 h, i)``.
        weight_hh: ``(4 h, q)``.
        bias_ih: ``(4 h,)`` or None.
        bias_hh: ``(4 h,)`` or None.
        weight_hr: ``(q, h)``, torch's projections, or None.
        weight_peephole: ``(3 h,)``, of i, f, o, or None.
        activation: as for `lstm`.
        recurrent_activation: as for `lstm`.
        clip: as for `lstm`.
        couple_input_forget: as for `lstm`.

    Returns:
        ``(h, c)`` after the step, float32.

    Raises:
        ArgumentError: arguments do not fit, or shapes (a `ShapeError`).
        DTypeError: an argument is complex or not numeric.
        UnsupportedError: no elementwise function has the name that is given.

    >>> import numpy as np, fastlayers as fl
    >>> h, c = fl.functional.lstm_cell(np.ones((2, 3)), None, np.ones((16, 3)), np.ones((16, 4)))
    >>> h.shape
    (2, 4)
    """
    h0, c0 = split_state("lstm_cell", state)
    made: tuple[np.ndarray, ...] = _step(
        x, weight_ih, weight_hh, bias_ih, bias_hh, weight_peephole, weight_hr, h0, c0,
        activation=activation, recurrent_activation=recurrent_activation, clip=clip,
        couple_input_forget=couple_input_forget,
    )  # fmt: skip
    return made[0], made[1]
