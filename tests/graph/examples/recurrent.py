"""Recurrent layers and cells of the three kinds."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._base import E, Example

_GATES = {"lstm": 4, "gru": 3, "rnn": 1}
_OTHERS: dict[str, dict[str, Any]] = {
    "lstm": {
        "activation": "relu",
        "recurrent_activation": ("hardsigmoid", {"alpha": 0.2, "beta": 0.5}),
        "couple_input_forget": True,
    },
    "gru": {"activation": None, "recurrent_activation": "hardsigmoid", "reset_after": False},
    "rnn": {"nonlinearity": ("leaky_relu", {"negative_slope": 0.1})},
}
_MASK = np.array([[True, False, True, True, False], [False] * 5])
_PLAIN = {"batch_first": False, "direction": "forward"}


def _kind(name: str) -> list[Example]:
    g = 2 * _GATES[name]
    weights = ((g, 3), (g, 2), (g,), (g,))
    both = tuple((2, *shape) for shape in weights)
    usual = {**_USUAL[name], "clip": 0.0}
    others = {**usual, **_OTHERS[name], "clip": 0.5}

    def states(*shape: int) -> tuple[Any, ...]:
        return (shape,) * (2 if name == "lstm" else 1)

    nones = (None,) * len(states())
    extra: tuple[Any, ...] = (None, None) if name == "lstm" else ()
    lengths = np.array([2, 5])
    return [
        E(name, (5, 2, 3), *weights, *extra, *nones, **_PLAIN, **usual),
        E(
            name,
            (2, 5, 3),
            (g, 3),
            (1, g, 2),
            None,
            (g,),
            *extra,
            *states(1, 2, 2),
            batch_first=True,
            direction="reverse",
            **others,
        ),
        E(name, (5, 3), *both, *extra, *states(2, 2), batch_first=True, direction="bidirectional", **usual),
        E(name, (0, 2, 3), *weights, *extra, *states(1, 2, 2), **_PLAIN, **usual),
        E(name, (5, 2, 3), *both, *extra, *nones, lengths, batch_first=False, direction="bidirectional", **usual),
        E(name, (2, 5, 3), *both, *extra, *states(2, 2, 2), None, _MASK, batch_first=True, direction="bidirectional", **others),
        E(name, (5, 3), *weights, *extra, *nones, None, _MASK[0], **_PLAIN, **usual),
        E(name, (5, 3), *weights, *extra, *nones, np.array(3), **_PLAIN, **usual),
        E(f"{name}_cell", (4, 3), *weights, *extra, *states(4, 2), **usual),
        E(f"{name}_cell", (3,), (g, 3), (g, 2), None, None, *extra, *states(2), **others),
        E(f"{name}_cell", (0, 3), *weights, *extra, *nones, **usual),
    ]


_USUAL: dict[str, dict[str, Any]] = {
    "lstm": {"activation": "tanh", "recurrent_activation": "sigmoid", "couple_input_forget": False},
    "gru": {"activation": "tanh", "recurrent_activation": "sigmoid", "reset_after": True},
    "rnn": {"nonlinearity": "tanh"},
}
_WIDE = ((12, 4), (12, 2), (12,), (12,))
EXAMPLES: list[Example] = [
    *(example for name in _GATES for example in _kind(name)),
    E("lstm", (5, 2, 4), *_WIDE, (9,), (2, 3), (1, 2, 2), (1, 2, 3), **_PLAIN, **_USUAL["lstm"], clip=0.0),
    E("lstm", (5, 4), *((2, *w) for w in _WIDE), None, (2, 2, 3), None, None, **{**_PLAIN, "direction": "bidirectional"},
      **_USUAL["lstm"], clip=0.0),
    E("lstm_cell", (3, 4), *_WIDE, (9,), (2, 3), (3, 2), (3, 3), **_USUAL["lstm"], clip=1.0),
]  # fmt: skip
