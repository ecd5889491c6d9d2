"""Operators of attention layers, their shared part: shape rule, reference implementation and the kernel calls of functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base import INT64, Spec, View

if TYPE_CHECKING:
    from ..builder import Builder

__all__ = ["infer_as", "lower_as", "run_as"]


def infer_as(rule: Callable[..., Any]) -> Callable[[View], list[Spec]]:
    """The shape rule: the function's."""

    def infer(n: View) -> list[Spec]:
        shapes = [n.shape(i) if n.has(i) else None for i in range(len(n.inputs))]
        outputs = len(n.node.outputs)
        if any(n.has(i) and shape is None for i, shape in enumerate(shapes)):
            return [Spec(None, n.spec(0).dtype)] * outputs
        found = rule(*shapes, **n.node.attributes)
        made = found if isinstance(found, list) else [found]
        if len(made) != outputs:
            raise n.fail(f"has {outputs} outputs: expected {len(made)}")
        return [Spec(shape, n.spec(0).dtype) for shape in made]

    return infer


def run_as(function: Callable[..., Any], operands: int) -> Callable[..., Any]:
    """The reference implementation: the function on arrays, of which the last two are a mask and lengths."""

    def run(n: View, *arrays: np.ndarray | None) -> Sequence[np.ndarray]:
        given = [*arrays, *(None,) * (operands - len(arrays))]
        for i, array in enumerate(given):
            if array is not None and array.dtype.kind not in ("iu" if i == operands - 1 else "fiub"):
                raise n.wrong_dtype(
                    f"input {i} has dtype {array.dtype}: expected {'integers' if i == operands - 1 else 'numbers'}"
                )
        *values, mask, lengths = given
        taken = [None if x is None else np.require(x, np.float32, ("C", "A")) for x in values]
        keeps = mask is None or mask.dtype == np.bool_
        found = function(
            *taken,
            mask if keeps else np.require(mask, np.float32, ("C", "A")),
            None if lengths is None else np.require(lengths, np.int64, ("C", "A")),
            **n.node.attributes,
        )
        return found if isinstance(found, tuple) else (found,)

    return run


def lower_as(function: Callable[..., None], operands: int) -> Callable[[View, Builder], Any]:
    """The kernel calls: the function's, which are written into a program."""

    def lower(n: View, b: Builder) -> Any:
        lengths = operands - 1
        if not n.float32(*range(lengths)) or (n.has(lengths) and n.spec(lengths).dtype != INT64):
            return False
        inputs = [b.optional(i) for i in range(operands)]
        results = [b.output(i) if n.wants(i) or not i else None for i in range(len(n.node.outputs))]
        function(b.machine, *inputs, results, **n.node.attributes)
        return True

    return lower
