"""What an example is."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import fastlayers as fl
from fastlayers.graph.ops import DECLARED, Op


def declared(op: str) -> Op | None:
    """The recorder of a function of `functional`; None if it is made of others."""
    getattr(fl.functional, op)  # imports its module
    return DECLARED.get(op)


class Example(NamedTuple):
    """Shapes of the float tensors, arrays for the others (integers, masks, lengths), and the other arguments by name.

    `op` is a function of `fl.functional`; one that is made of several takes its tensors by position.
    """

    op: str
    tensors: tuple[Any, ...]
    attributes: dict[str, Any]

    @property
    def label(self) -> str:
        return f"{self.op} {self.tensors} {self.attributes}"

    @property
    def floats(self) -> list[int]:
        """Positions of the tensors that are given by their shapes: these take any real dtype."""
        return [i for i, t in enumerate(self.tensors) if isinstance(t, tuple)]

    def arrays(self) -> list[Any]:
        """The tensors as arrays, float32 but for those that are given; positive values, for log and sqrt."""
        rng = np.random.default_rng(len(self.label))
        return [rng.uniform(0.1, 2, t).astype(np.float32) if isinstance(t, tuple) else t for t in self.tensors]

    @property
    def shapes(self) -> list[Any]:
        """Shapes of the tensors."""
        return [t.shape if isinstance(t, np.ndarray) else t for t in self.tensors]

    def dtype(self, i: int) -> Any:
        """The dtype of tensor i."""
        tensor = self.tensors[i]
        return tensor.dtype if isinstance(tensor, np.ndarray) else np.dtype(np.float32)

    def call(self, tensors: list[Any]) -> tuple[Any, ...]:
        """The operation on arrays or symbols; always a tuple, nested ones opened."""
        entry = declared(self.op)
        if entry is None:
            return tuple(_flat(getattr(fl.functional, self.op)(*tensors, **self.attributes)))
        given = {entry.tensors[0][1:]: tensors} if entry.variadic else dict(zip(entry.tensors, tensors, strict=False))
        result = entry.function(**given, **self.attributes)
        return result if isinstance(result, tuple) else (result,)


def _flat(result: Any) -> list[Any]:
    return [part for item in result for part in _flat(item)] if isinstance(result, tuple) else [result]


def E(op: str, *tensors: Any, **attributes: Any) -> Example:  # noqa: N802
    return Example(op, tensors, attributes)


# Programs choose other algorithms there: affine maps are folded, sums over a tree are formed level by level.
OTHERWISE = {
    "batch_norm": 1e-6, "instance_norm": 1e-6, "hierarchical_log_prob": 4e-6, "hierarchical_log_softmax": 1e-6,
}  # fmt: skip
