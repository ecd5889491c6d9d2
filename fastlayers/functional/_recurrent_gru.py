"""GRU: a GRU over a sequence, one layer in one or two directions, and one step. State goes in and comes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._arguments import checked
from ._recurrent import GRU, check_mask, check_merge, merged, single_state
from ._recurrent_recorded import operation

if TYPE_CHECKING:
    from ._types import Tensor

__all__ = ["gru", "gru_cell"]

_layer, _step = operation(GRU, True), operation(GRU, False)


@checked
def gru(
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
    activation: Any = "tanh",
    recurrent_activation: Any = "sigmoid",
    reset_after: bool = True,
    clip: float = 0.0,
) -> tuple[Any, np.ndarray]:
    """One layer of a GRU over a sequence, gates in the order r, z, n.

    ``r, z = sigmoid(weight_ih x + bias_ih + weight_hh h + bias_hh)``, their two thirds of the rows;
    ``n = tanh(weight_in x + bias_in + r (weight_hn h + bias_hn))``, the last third, or ``tanh(weight_in x + bias_in + weight_hn
    (r h) + bias_hn)`` without `reset_after`; ``h = (1 - z) n + z h``

    Padding never changes a valid output: where a sequence has no step, outputs are zeros and the state passes by; the final
    state is the one after the last step that the sequence has, and the reverse direction begins there. (Keras repeats the
    output before instead of the zeros.)

    Args:
        x: ``(t, n, i)``, ``(n, t, i)`` if `batch_first`, or ``(t, i)`` without a batch; any real dtype.
        state: h before the first step, ``(d, n, h)``, or ``(d, h)`` without a batch; None is zeros. d is the number of
            directions.
        weight_ih: ``(3 h, i)``, or ``(d, 3 h, i)``.
        weight_hh: ``(3 h, h)``, or ``(d, 3 h, h)``.
        bias_ih: ``(3 h,)``, or ``(d, 3 h)``, or None.
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
        activation: what stands for tanh: a name of an elementwise function, ``("hardsigmoid", {"alpha": 0.2, "beta": 0.5})`` for
            one with parameters, a layer such as ``ReLU()``, or None for the identity.
        recurrent_activation: likewise, what stands for sigmoid. ``"hardsigmoid"`` has the slope 1/6 of torch and Keras 3; that of
            Keras 2 is the one above.
        reset_after: whether r multiplies the product, as in torch and in Keras by default, or h before the product, as in ONNX
            and Keras 1 by default.
        clip: sums of the gates are clipped to ``-clip .. clip``; 0: they are not.

    Returns:
        ``(out, h)``, float32: h of every step, shaped as x with ``h`` in its last axis, or ``2 h`` if two directions are
        concatenated, forward first; and the state after the last step, shaped as `state`. Keras' ``return_sequences=False`` is
        ``h[-1]``, its ``return_state`` the state.

    Raises:
        ArgumentError: arguments do not fit, or shapes (a `ShapeError`).
        DTypeError: an argument is complex or not numeric, lengths are not integers, or a mask is not boolean.
        UnsupportedError: no elementwise function has the name that is given.

    >>> import numpy as np, fastlayers as fl
    >>> out, h = fl.functional.gru(np.ones((5, 2, 3)), None, np.ones((12, 3)), np.ones((12, 4)), lengths=[5, 3])
    >>> out.shape, h.shape
    ((5, 2, 4), (1, 2, 4))
    """
    h0 = single_state("gru", state)
    check_mask("gru", mask)
    check_merge("gru", merge, 2 if direction == "bidirectional" else 1)
    out, h = _layer(
        x, weight_ih, weight_hh, bias_ih, bias_hh, h0, lengths, mask,
        batch_first=batch_first, direction=direction, activation=activation, recurrent_activation=recurrent_activation,
        reset_after=reset_after, clip=clip,
    )  # fmt: skip
    return merged(out, merge), h


@checked
def gru_cell(
    x: Tensor,
    state: Tensor | None,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None = None,
    bias_hh: Tensor | None = None,
    *,
    activation: Any = "tanh",
    recurrent_activation: Any = "sigmoid",
    reset_after: bool = True,
    clip: float = 0.0,
) -> np.ndarray:
    """One step of a GRU, gates in the order r, z, n; the formula is that of `gru`.

    Args:
        x: ``(n, i)``, or ``(i,)`` without a batch; any real dtype.
        state: h before the step, ``(n, h)``, or ``(h,)`` without a batch; None is zeros.
        weight_ih: ``(3 h, i)``.
        weight_hh: ``(3 h, h)``.
        bias_ih: ``(3 h,)`` or None.
        bias_hh: ``(3 h,)`` or None.
        activation: as for `gru`.
        recurrent_activation: as for `gru`.
        reset_after: as for `gru`.
        clip: as for `gru`.

    Returns:
        h after the step, float32.

    Raises:
        ArgumentError: arguments do not fit, or shapes (a `ShapeError`).
        DTypeError: an argument is complex or not numeric.
        UnsupportedError: no elementwise function has the name that is given.

    >>> import numpy as np, fastlayers as fl
    >>> h = fl.functional.gru_cell(np.ones((2, 3)), None, np.ones((12, 3)), np.ones((12, 4)))
    >>> h.shape
    (2, 4)
    """
    h0 = single_state("gru_cell", state)
    made: tuple[np.ndarray, ...] = _step(
        x, weight_ih, weight_hh, bias_ih, bias_hh, h0,
        activation=activation, recurrent_activation=recurrent_activation,
        reset_after=reset_after, clip=clip,
    )  # fmt: skip
    return made[0]
