"""Calls of recurrent layers: make_recurrent_layers.py runs them on torch, tests/layers/test_recurrent.py on fastlayers.

Values are not stored: both sides draw them from the seed that a case's label gives.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .front_cases import arrays


class Case(NamedTuple):
    """`getattr(nn, name)(*args, **kwargs)` on x of `shape`, from states of the shapes `states`, with `lengths`."""

    name: str
    args: tuple[int, ...]
    kwargs: dict[str, Any]
    shape: tuple[int, ...]
    states: tuple[tuple[int, ...], ...]
    lengths: tuple[int, ...] | None

    @property
    def label(self) -> str:
        keywords = ", ".join(f"{k}={v!r}" for k, v in self.kwargs.items())
        return f"{self.name}{self.args} {keywords} {self.shape} {self.states} {self.lengths or ''}"

    def draw(self, shapes: dict[str, tuple[int, ...]]) -> tuple[np.ndarray, list[np.ndarray], dict[str, np.ndarray]]:
        """x, states and tensors, whose shapes are given by torch's names."""
        x, *rest = arrays(self.label, self.shape, *self.states, *shapes.values())
        count = len(self.states)
        return x, rest[:count], {name: w * np.float32(0.7) for name, w in zip(shapes, rest[count:], strict=True)}


def C(name: str, *args: int, shape: Any, states: Any = (), lengths: Any = None, **kwargs: Any) -> Case:  # noqa: N802
    return Case(name, args, kwargs, shape, states, lengths)


CASES = (
    C("LSTM", 5, 7, shape=(6, 3, 5), lengths=(2, 6, 3)),
    C("LSTM", 5, 7, proj_size=3, shape=(6, 3, 5), states=((1, 3, 3), (1, 3, 7))),
    C("LSTM", 5, 7, num_layers=2, bidirectional=True, proj_size=4, shape=(6, 2, 5), lengths=(6, 4)),
    C("LSTM", 4, 19, num_layers=2, proj_size=17, bias=False, batch_first=True, shape=(2, 3, 4)),
    C("LSTM", 4, 3, proj_size=1, bidirectional=True, shape=(5, 4), states=((2, 1), (2, 3))),
    C("GRU", 5, 7, shape=(6, 3, 5), states=((1, 3, 7),)),
    C("GRU", 5, 4, shape=(6, 5)),
    C("GRU", 3, 17, num_layers=3, bias=False, shape=(4, 1, 3), states=((3, 1, 17),)),
    C("GRU", 5, 4, num_layers=2, bidirectional=True, batch_first=True, shape=(3, 6, 5), states=((4, 3, 4),), lengths=(3, 1, 6)),
    C("RNN", 5, 7, shape=(6, 3, 5), states=((1, 3, 7),)),
    C("RNN", 5, 4, shape=(6, 5), states=((1, 4),)),
    C("RNN", 3, 4, num_layers=2, nonlinearity="relu", bidirectional=True, shape=(4, 3, 3), lengths=(4, 2, 2)),
    C("RNN", 3, 17, num_layers=3, bias=False, batch_first=True, shape=(1, 4, 3)),
    C("GRUCell", 5, 4, shape=(3, 5), states=((3, 4),)),
    C("GRUCell", 5, 4, bias=False, shape=(5,)),
    C("RNNCell", 5, 4, shape=(3, 5), states=((3, 4),)),
    C("RNNCell", 5, 4, nonlinearity="relu", shape=(5,), states=((4,),)),
    C("RNNCell", 5, 4, bias=False, shape=(2, 5)),
)
