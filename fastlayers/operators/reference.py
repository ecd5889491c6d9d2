"""Runs what an operator has in numpy: by itself, and as a step of a program that no kernel covers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import Error, LimitError, ShapeError, UnsupportedError
from ..ir.graph import Node
from ._base import OPERATORS, Spec, View

if TYPE_CHECKING:
    from .builder import Builder

__all__ = ["numpy_step", "run_operator"]


def numpy_step(view: View, results: Sequence[Spec], builder: Builder, ins: Sequence[Any], wanted: Sequence[int]) -> None:
    """Has the builder run a node in numpy. `wanted`: which results somebody reads."""
    if OPERATORS[view.op].run is None:
        raise UnsupportedError(f"{view.where}: these inputs are not supported: {[str(s.dtype) for s in view.inputs if s]}")
    inputs = [builder.optional(i) for i in range(len(ins))]
    outputs = [builder.output(i) if i in wanted else None for i in range(max(wanted, default=-1) + 1)]
    builder.python(_Numpy(view, results), inputs, outputs)


class _Numpy:
    """A node as a function of arrays."""

    def __init__(self, view: View, specs: Sequence[Spec]) -> None:
        self.view, self.specs = view, specs

    def __call__(self, *arrays: np.ndarray | None) -> Sequence[np.ndarray]:
        return run_operator(self.view.node, self.view, arrays, self.specs)


def run_operator(node: Node, view: View, arrays: Sequence[np.ndarray | None], specs: Sequence[Spec] = ()) -> Sequence[np.ndarray]:
    """Runs a node's reference implementation; numpy's warnings about infinity and NaN are silent, its errors are ours. `specs`:
    what the rule has said of the results, which others believe.
    """
    run = OPERATORS[node.op].run
    if run is None:
        raise UnsupportedError(f"{view.where}: has no reference implementation")
    with np.errstate(all="ignore"):
        try:
            made = run(view, *arrays)
            for array, spec in zip(made, specs, strict=False):
                if spec.static and np.shape(array) != spec.shape:
                    raise view.fail(f"its inputs give a result of shape {np.shape(array)}: expected {spec.shape}")
            return made
        except Error:
            raise
        except MemoryError as error:
            raise LimitError(f"{view.where}: no memory for its result: {error}") from error
        except (ArithmeticError, AttributeError, IndexError, TypeError, ValueError) as error:
            raise ShapeError(f"{view.where}: cannot be computed from these inputs: {error}") from error
