"""RNN: a simple RNN over a sequence, one layer in one or two directions, and one step. State goes in and comes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._arguments import checked
from ._recurrent import RNN, check_mask, check_merge, merged, single_state
from ._recurrent_recorded import operation

if TYPE_CHECKING:
    from ._types import Tensor

__all__ = ["rnn", "rnn_cell"]

_layer, _step = operation(RNN, True), operation(RNN, False)


@checked
def rnn(
    x: Tensor,
    state: Tensor | None,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None = None,
    bias_hh: Tensor | None = None,
    *,
    lengths: Tensor | None = None,
    mask: Tensor | None = None,
    batch_first: bool = False,
    direction: str = "forward",
    merge: str | None = "concat",
    nonlinearity: Any = "tanh",
    clip: float = 0.0,
) -> tuple[Any, np.ndarray]:
    """One layer of a simple RNN over a sequence.

    ``h = tanh(weight_ih x + bias_ih + weight_hh h + bias_hh)``

    Padding never changes a valid output: where a sequence has no step, outputs are zeros and the state passes by; the final
    state is the one after the last step that the sequence has, and the reverse direction begins there. (Keras repeats the
    output before instead of the zeros.)

    Args:
        x: ``(t, n, i)``, ``(n, t, i)`` if `batch_first`, or ``(t, i)`` without a batch; any real dtype.
        state: h before the first step, ``(d, n, h)``, or ``(d, h)`` without a batch; None is zeros. d is the number of
            directions.
        weight_ih: ``(h, i)``, or ``(d, h, i)``.
        weight_hh: ``(h, h)``, or ``(d, h, h)``.
        bias_ih: ``(h,)``, or ``(d, h)``, or None.
        bias_hh: as `bias_ih`.
        lengths: integers ``(n,)``, how many of its steps each sequence has, from 0 to t; an integer without a batch; None: all. A
            compiled program takes a length that is out of range for the nearest in it.
        mask: instead of lengths, booleans ``(n, t)``, whatever `batch_first` is, or ``(t,)`` without a batch: which steps each
            sequence has; the others, holes too, are passed over as if they were not there.
        batch_first: whether the first axis of x and of the output is the batch.
        direction: ``"forward"``, ``"reverse"`` (the last step first; each output stays at its own time) or ``"bidirectional"``
            (weights have d = 2: forward, then reverse).
        merge: what becomes of the outputs of two directions: ``"concat"``, ``"sum"``, ``"mul"``, ``"ave"`` (half the sum), or
            None: out is the pair of them.
        nonlinearity: the function: ``"tanh"``, ``"relu"`` or the name of any other elementwise function, ``("leaky_relu",
            {"negative_slope": 0.2})`` for one with parameters, a layer such as ``ReLU()``, or None for the identity.
        clip: the sums are clipped to ``-clip .. clip``; 0: they are not.

    Returns:
        ``(out, h)``, float32: h of every step, shaped as x with ``h`` in its last axis, or ``2 h`` if two directions are
        concatenated, forward first; and the state after the last step, shaped as `state`. Keras' ``return_sequences=False`` is
        ``h[-1]``, its ``return_state`` the state.

    Raises:
        ArgumentError: arguments do not fit, or shapes (a `ShapeError`).
        DTypeError: an argument is complex or not numeric, lengths are not integers, or a mask is not boolean.
        UnsupportedError: no elementwise function has the name that is given.

    >>> import numpy as np, fastlayers as fl
    >>> out, h = fl.functional.rnn(np.ones((5, 2, 3)), None, np.ones((4, 3)), np.ones((4, 4)), lengths=[5, 3])
    >>> out.shape, h.shape
    ((5, 2, 4), (1, 2, 4))
    """
    h0 = single_state("rnn", state)
    check_mask("rnn", mask)
    check_merge("rnn", merge, 2 if direction == "bidirectional" else 1)
    out, h = _layer(
        x, weight_ih, weight_hh, bias_ih, bias_hh, h0, lengths, mask,
        batch_first=batch_first, direction=direction, nonlinearity=nonlinearity, clip=clip,
    )  # fmt: skip
    return merged(out, merge), h


@checked
def rnn_cell(
    x: Tensor,
    state: Tensor | None,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None = None,
    bias_hh: Tensor | None = None,
    *,
    nonlinearity: Any = "tanh",
    clip: float = 0.0,
) -> np.ndarray:
    """One step of a simple RNN; the formula is that of `rnn`.

    Args:
        x: ``(n, i)``, or ``(i,)`` without a batch; any real dtype.
        state: h before the step, ``(n, h)``, or ``(h,)`` without a batch; None is zeros.
        weight_ih: ``(h, i)``.
        weight_hh: ``(h, h)``.
        bias_ih: ``(h,)`` or None.
        bias_hh: ``(h,)`` or None.
        nonlinearity: as for `rnn`.
        clip: as for `rnn`.

    Returns:
        h after the step, float32.

    Raises:
        ArgumentError: arguments do not fit, or shapes (a `ShapeError`).
        DTypeError: an argument is complex or not numeric.
        UnsupportedError: no elementwise function has the name that is given.

    >>> import numpy as np, fastlayers as fl
    >>> h = fl.functional.rnn_cell(np.ones((2, 3)), None, np.ones((4, 3)), np.ones((4, 4)))
    >>> h.shape
    (2, 4)
    """
    h0 = single_state("rnn_cell", state)
    made: tuple[np.ndarray, ...] = _step(
        x, weight_ih, weight_hh, bias_ih, bias_hh, h0,
        nonlinearity=nonlinearity, clip=clip,
    )  # fmt: skip
    return made[0]
