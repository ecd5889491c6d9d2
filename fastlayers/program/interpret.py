"""Runs one node alone, where sizes depend on values that are there only at run time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import LimitError, UnsupportedError, ours
from ..ir.graph import Node
from ..kernels.dispatch import Variant
from ..operators import OPERATORS, Spec, View
from ..operators.builder import INPUT, OUTPUT, Buffer, Builder, Ref
from ..operators.reference import run_operator
from . import plain
from .binder import Pack
from .memory import result_bytes
from .trace import Plan, Record, settled

__all__ = ["run_node"]


def run_node(
    node: Node, values: Sequence[np.ndarray | None], fixed: Sequence[bool], variant: Variant, pack: Pack, most: int
) -> Sequence[np.ndarray]:
    """The results of a node, through its kernels if it has some for these inputs. `fixed`: which inputs are constants; `most`:
    how many bytes the results may take.
    """
    operator = OPERATORS.get(node.op)
    if operator is None:
        raise UnsupportedError(f"{node.op} ({', '.join(node.outputs)}): there is no such operator")
    arrays = [None if a is None else np.ascontiguousarray(a).reshape(a.shape) for a in values]
    specs = [None if a is None else Spec(a.shape, a.dtype) for a in arrays]
    everything = View(node, specs, arrays)
    results = operator.infer(everything)
    result_bytes(everything, results, most)
    strings = any(s is not None and s.dtype.kind == "O" for s in (*specs, *results))  # objects, which kernels must not copy
    # What only moves values is a view in numpy, as often as not: faster than what it takes to make a kernel's call.
    if operator.lower is not None and not operator.traits.moves and not strings and all(spec.static for spec in results):
        # Weights are packed once for a node, so only what never changes may be known to the rule.
        known = View(node, specs, [a if keep else None for a, keep in zip(arrays, fixed, strict=True)])
        made = _lowered(node, known, results, arrays, variant, pack)
        if made is not None:
            return made
    return run_operator(node, everything, arrays, results)


def _lowered(
    node: Node, view: View, results: Sequence[Spec], arrays: Sequence[np.ndarray | None], variant: Variant, pack: Pack
) -> list[np.ndarray] | None:
    """The node through its kernels, or None if it has none for these inputs."""
    builder = Builder(pack, variant.kernels)
    given: list[np.ndarray] = []
    for name, array in zip(node.inputs, arrays, strict=True):
        if name is not None and array is not None and name not in builder.refs:
            builder.refs[name] = Ref(Buffer(INPUT, array.nbytes, len(given)), 0, array.shape, array.dtype)
            given.append(array)
    builder.begin(0, view, results, node.inputs, node.outputs)
    with ours(lambda: view.where):
        if OPERATORS[node.op].lower(view, builder) is False:  # type: ignore[misc]
            return None
    outputs: list[np.ndarray] = []
    for i, name in enumerate(node.outputs):
        spec = results[i]
        try:
            out: np.ndarray = np.empty(tuple(int(d or 0) for d in spec.shape or ()), spec.dtype)
        except MemoryError as error:
            raise LimitError(f"{view.where}: no memory for its result: {error}") from error
        outputs.append(out)
        if name:
            ref = builder.refs[name]
            to = Ref(Buffer(OUTPUT, out.nbytes, i), 0, out.shape, out.dtype)
            builder.python(lambda array: (array,), [ref], [to])
    effects = [(part, *builder.parents[part.number]) for part in builder.placed]
    calls = settled([Record(builder.calls, effects, builder.overs, builder.own, builder.nbytes, None)], {})
    plain.execute(Plan(calls, [], 0, []), variant.kernels, given, outputs)
    return outputs
