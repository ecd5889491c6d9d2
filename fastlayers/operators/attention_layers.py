"""`DotAttention` and `AdditiveAttention`: the functions of that kind as operators, with values as masks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..functional._attention import Machine
from ..functional.attention import run_sdpa, scaled_dot_product_attention, sdpa_rule
from ..functional.attention_additive import additive_attention, additive_rule, hard_attention, hard_rule, run_additive
from ._base import INT64, Spec, View, register
from ._costs import attention
from ._traits import Traits

if TYPE_CHECKING:
    from ..program.builder import Builder

__all__: list[str] = []


def _infer(rule: Callable[..., Any]) -> Callable[[View], list[Spec]]:
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


def _run(function: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    def run(n: View, *arrays: np.ndarray) -> Sequence[np.ndarray]:
        found = function(**dict(zip(names, arrays, strict=False)), **n.node.attributes)
        return found if isinstance(found, tuple) else (found,)

    return run


def _lower(function: Callable[..., None], operands: int) -> Callable[[View, Builder], Any]:
    def lower(n: View, b: Builder) -> Any:
        lengths = operands - 1
        if not n.float32(*range(lengths)) or (n.has(lengths) and n.spec(lengths).dtype != INT64):
            return False
        inputs = [b.optional(i) for i in range(operands)]
        results = [b.output(i) if n.wants(i) or not i else None for i in range(len(n.node.outputs))]
        function(Machine(b.call, lambda x, shape: x.view(shape), b.temp), *inputs, results, **n.node.attributes)
        return True

    return lower


register(
    "DotAttention",
    _infer(sdpa_rule),
    _run(scaled_dot_product_attention, ("query", "key", "value", "attn_mask", "lengths")),
    _lower(run_sdpa, 5),
    # Heads are an axis of their own, or adjacent in the last one.
    Traits(whole="attends to", multiply_adds=attention(lambda n: n.sizes(1)[-2])),
)


def _additive_lower(n: View, b: Builder) -> Any:
    # Projections are operators of their own.
    return False if n.has(3) or n.has(4) else _additive(n, b)


def _run_additive(m: Machine, q: Any, k: Any, v: Any, weight_q: Any, weight_k: Any, *rest: Any, **attributes: Any) -> None:
    run_additive(m, q, k, v, *rest, **attributes)


_additive = _lower(_run_additive, 8)
register(
    "AdditiveAttention",
    _infer(additive_rule),
    _run(additive_attention, ("query", "key", "value", "weight_q", "weight_k", "scale", "attn_mask", "lengths")),
    _additive_lower,
    Traits(whole="attends to"),
)
# A choice decides by numbers: it has no kernel.
register(
    "HardAttention",
    _infer(hard_rule),
    _run(hard_attention, ("query", "key", "value", "attn_mask", "lengths")),
    traits=Traits(whole="attends to"),
)
