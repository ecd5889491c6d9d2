"""Attention: dot products, sums, and many heads, with Keras' masks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..build import BOOL, Build, Tensor
from ..layer import Layer, layer, tensors
from .activation import score_mask


def causal_mask(b: Build, queries: Tensor, keys: Tensor, window: int | None = None, causal: bool = True) -> Tensor:
    """(t, s) of booleans: query i sees keys 0 to i, and at most window - 1 positions away."""

    def places(x: Tensor, axis: int) -> Tensor:
        size = b.shape_of(x, 1)
        if isinstance(size, int) and size < 1 << 16:
            row = b.constant(np.arange(size, dtype=np.int64))
        else:
            zero, one = np.array(0, np.int64), np.array(1, np.int64)
            end = np.array(size, np.int64) if isinstance(size, int) else b.squeeze(size, 0)  # type: ignore[arg-type]
            row = b.op("Range", zero, end, one)
        return b.unsqueeze(row, axis)

    rows, columns = places(queries, 1), places(keys, 0)
    result: Tensor | None = b.op("GreaterOrEqual", rows, columns) if causal else None
    if window is not None:
        near = b.op("Less", b.op("Abs", b.op("Sub", rows, columns)), np.array(window, np.int64))
        result = near if result is None else b.op("And", result, near)
    assert result is not None
    return result


def _both(b: Build, a: Tensor | None, other: Tensor | None) -> Tensor | None:
    if a is None or other is None:
        return other if a is None else a
    return b.op("And", a, other)


def _mask_of(given: Any, i: int, x: Tensor) -> Tensor | None:
    """Mask i of those that the call was given, or the tensor's own."""
    if isinstance(given, (list, tuple)):
        return given[i] if i < len(given) and isinstance(given[i], Tensor) else None
    return x.mask


def _dot_weights(this: Layer) -> list[str]:
    found = ["scale"] if this.get("use_scale", this.kind == "AdditiveAttention") else []
    return [*found, "concat_score_weight"] if this.get("score_mode", "dot") == "concat" and this.kind == "Attention" else found


@layer("Attention", "AdditiveAttention", words="use_scale score_mode causal", weights=_dot_weights, mask="own")
def attention(
    this: Layer, b: Build, inputs: Any, mask: Any = None, return_attention_scores: bool = False, use_causal_mask: bool = False
) -> Any:
    """softmax(scores of queries and keys) values; scores are products, or sums of tanh(q + k)."""
    q, v, *rest = (b.floats(t) for t in tensors(inputs))
    k = rest[0] if rest else v
    concat = this.kind == "AdditiveAttention" or this.get("score_mode", "dot") == "concat"
    if concat:
        scores = _additive_scores(this, b, q, k)
    else:
        scores = b.op("MatMul", q, b.transpose(k, *range(k.rank - 2), k.rank - 1, k.rank - 2))
        if "scale" in this.own:
            scores = b.op("Mul", scores, b.constant(this.weight("scale").reshape(()), "scale"))
    given = tensors(inputs)
    q_mask, v_mask = _mask_of(mask, 0, given[0]), _mask_of(mask, 1, given[1])
    allowed = None if v_mask is None else b.unsqueeze(b.cast(v_mask, BOOL), v_mask.rank - 1)
    if use_causal_mask or this.get("causal"):
        allowed = _both(b, allowed, causal_mask(b, q, k))
    if allowed is not None:
        scores = b.op("Add", scores, score_mask(b, allowed))
    weights = b.op("Softmax", scores, axis=scores.rank - 1)
    y = b.op("MatMul", weights, v)
    if q_mask is not None:
        y = b.op("Where", b.unsqueeze(b.cast(q_mask, BOOL), q_mask.rank), y, 0.0)
    y = y.masked(q_mask)
    return [y, weights] if return_attention_scores else y


def _additive_scores(this: Layer, b: Build, q: Tensor, k: Tensor) -> Tensor:
    total = b.op("Add", b.unsqueeze(q, q.rank - 1), b.unsqueeze(k, k.rank - 2))
    width = q.size(-1)
    if this.kind == "Attention":
        if "scale" in this.own:
            total = b.op("Mul", total, b.constant(this.weight("scale").reshape(()), "scale"))
        summed = b.reduce("Sum", b.op("Tanh", total), [-1])
        return b.op("Mul", summed, b.constant(this.weight("concat_score_weight").reshape(()), "weight"))
    scale = this.weight("scale", width) if "scale" in this.own else b.filled(1, width)
    product = b.op("MatMul", b.op("Tanh", total), b.constant(scale.reshape(width, 1), "scale"))
    return b.squeeze(product, product.rank - 1)


# ---- many heads ------------------------------------------------------------------------------------------------------------

_EINSUM = {"module": "keras.layers", "class_name": "EinsumDense"}


def _projections(this: Layer) -> list[tuple[str, Layer]]:
    use_bias = this.config.get("use_bias", True)

    def one(attribute: str, name: str, axes: str, activation: str = "linear") -> tuple[str, Layer]:
        config = {
            "name": name,
            "trainable": True,
            "dtype": this.config.get("dtype"),
            "equation": "",
            "bias_axes": axes if use_bias else None,
            "activation": activation,
        }
        return attribute, this.child({**_EINSUM, "config": config})

    found = [one("query_dense", "query", "de"), one("key_dense", "key", "de")]
    if this.get("use_gate"):
        found.append(one("gate_dense", "gate", "de"))
    return [*found, one("value_dense", "value", "de"), one("output_dense", "attention_output", "e")]


@layer(
    "MultiHeadAttention", "GroupedQueryAttention", "GroupQueryAttention",
    words="use_bias use_gate attention_axes sliding_window", children=_projections,
)  # fmt: skip
def multi_head_attention(
    this: Layer, b: Build, query: Any, value: Any = None, key: Any = None, query_mask: Any = None, value_mask: Any = None,
    key_mask: Any = None, attention_mask: Any = None, return_attention_scores: bool = False, use_causal_mask: bool = False,
    **more: Any,
) -> Any:  # fmt: skip
    """Attention in several heads; the keys' heads may be fewer and serve several queries each."""
    if more:
        this.refuse(f"an argument {next(iter(more))[:40]!r}")
    if isinstance(query, (list, tuple)):
        query, value, *others = tensors(query)
        key = others[0] if others else key
    if value is None:
        this.fail("is called without a value")
    same_key = key is None
    key = value if key is None else key
    own = ((query_mask, query), (value_mask, value), (key_mask, None if same_key else key))
    masks = [mask if isinstance(mask, Tensor) else None if x is None else x.mask for mask, x in own]
    lead = query.sizes[1:-1]
    axes = this.get("attention_axes")
    if axes is not None and sorted(query.axes(axes)) != list(range(1, query.rank - 1)):
        this.refuse("attention along some of the axes")
    flat = [t if t.rank == 3 else b.reshape(t, b.shape_of(t, 0), -1, b.shape_of(t, t.rank - 1)) for t in (query, value, key)]
    q_in, v_in, k_in = (b.floats(t) for t in flat)
    child = dict(this.children)
    q, k, v = _heads(b, child["query_dense"], q_in), _heads(b, child["key_dense"], k_in), _heads(b, child["value_dense"], v_in)
    heads, groups = q.size(2), k.size(2)
    q, k, v = b.transpose(q, 0, 2, 1, 3), b.transpose(k, 0, 2, 3, 1), b.transpose(v, 0, 2, 1, 3)
    if groups != heads:
        index = np.repeat(np.arange(groups, dtype=np.int64), heads // groups)
        k, v = (b.op("Gather", t, b.constant(index), axis=1) for t in (k, v))
    scores = b.op("Mul", b.op("MatMul", q, k), 1.0 / math.sqrt(q.size(3)))
    allowed = _allowed(this, b, q_in, v_in, masks, attention_mask, bool(use_causal_mask))
    if allowed is not None:
        scores = b.op("Add", scores, score_mask(b, allowed))
    weights = b.op("Softmax", scores, axis=3)
    y = b.transpose(b.op("MatMul", weights, v), 0, 2, 1, 3)
    if "gate_dense" in child:
        y = b.op("Mul", y, b.op("Sigmoid", _heads(b, child["gate_dense"], q_in)))
    out = child["output_dense"]
    kernel = out.weight("kernel")
    width = kernel.shape[0] * kernel.shape[1]
    y = b.op(
        "MatMul", b.reshape(y, b.shape_of(y, 0), b.shape_of(y, 1), width), b.constant(kernel.reshape(width, -1), "output_kernel")
    )
    if "bias" in out.own:
        y = b.op("Add", y, b.constant(out.weight("bias").reshape(-1), "output_bias"))
    if query.rank > 3 or kernel.ndim > 3:
        sizes = [b.shape_of(query, i + 1) for i in range(len(lead))]
        y = b.reshape(y, b.shape_of(query, 0), *sizes, *kernel.shape[2:])
    return [y, weights] if return_attention_scores else y


def _heads(b: Build, this: Layer, x: Tensor) -> Tensor:
    """(n, t, f) as (n, t, heads, size)."""
    kernel = this.weight("kernel", x.size(-1), None, None)
    y = b.op("MatMul", x, b.constant(kernel.reshape(kernel.shape[0], -1), f"{this.name}_kernel"))
    if "bias" in this.own:
        y = b.op("Add", y, b.constant(this.weight("bias", *kernel.shape[1:]).reshape(-1), f"{this.name}_bias"))
    return b.reshape(y, b.shape_of(x, 0), b.shape_of(x, 1), *kernel.shape[1:])


def _allowed(this: Layer, b: Build, q: Tensor, v: Tensor, masks: list[Any], given: Any, causal: bool) -> Tensor | None:
    """The keys that each query sees, for (n, heads, t, s) scores; None: all."""
    result: Tensor | None = None
    for mask, axis in zip(masks, (2, 1, 1), strict=True):
        if mask is not None:
            result = _both(b, result, b.unsqueeze(b.cast(mask, BOOL), axis))
    window = this.get("sliding_window")
    if causal or window is not None:
        result = _both(b, result, causal_mask(b, q, v, window, causal))
    if isinstance(given, Tensor):
        given = b.cast(given, BOOL)
        if given.rank == 4:  # with heads
            return _both(b, given, None if result is None else b.unsqueeze(result, result.rank - 2))
        result = _both(b, result, given)
    if result is None or result.rank != 3:
        return result
    return b.unsqueeze(result, 1)
