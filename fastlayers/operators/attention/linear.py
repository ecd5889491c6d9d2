"""Layers of models that keep a state instead of keys: LinearAttention and CausalConvWithState; and SwiGLU next to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.graph import Dim, Shape
from ...kernels.table import BINARY
from .._base import Spec, View, register
from .._traits import EACH, PLAIN, Traits
from ..calls import activation, copy
from ..fused import IDENTITY
from ..shapes import need_kind, same_dtype
from .core import join_heads, split_heads

if TYPE_CHECKING:
    from ..builder import Builder, Ref

__all__: list[str] = []

# ---- SwiGLU ------------------------------------------------------------------------------------------------------------


def _agree(a: Dim, b: Dim) -> bool:
    return not (isinstance(a, int) and isinstance(b, int) and a != b)


def _swiglu_infer(n: View) -> list[Spec]:
    need_kind(n, "f")
    a, b = n.shape(0), n.shape(1)
    if a is not None and b is not None and (len(a) != len(b) or not all(map(_agree, a, b))):
        raise n.fail(f"shapes {a} and {b}: expected the same")
    return [Spec(b if a is None else a, same_dtype(n))]


def _swiglu_run(n: View, a: np.ndarray, b: np.ndarray) -> Sequence[np.ndarray]:
    """a sigmoid(alpha a) b; the gate is rounded before the products, as the operator's text has it."""
    wide = a.astype(np.promote_types(a.dtype, np.float32))
    gate = (1 / (1 + np.exp(-n.get("alpha", 1.0) * wide))).astype(a.dtype)
    return (a * gate * b,)


def _swiglu_lower(n: View, b: Builder) -> Any:
    alpha = float(n.get("alpha", 1.0))
    function = activation("silu") if alpha == 1 else activation("quick_gelu", alpha)
    if not n.float32():
        return False
    x, other, out = b.input(0), b.input(1), b.output(0)
    gated = b.temp(x.shape)
    b.call("unary", x, gated, function)
    b.call("binary", gated, other, out, BINARY["multiply"], IDENTITY)
    return True


register("SwiGLU", _swiglu_infer, _swiglu_run, _swiglu_lower, EACH)

# ---- CausalConvWithState -----------------------------------------------------------------------------------------------


def _function(n: View) -> str:
    name = n.get("activation", "none")
    if name not in ("none", "silu", "swish"):
        raise n.fail(f"activation is {name!r}: expected 'none', 'silu' or 'swish'")
    return "identity" if name == "none" else "silu"


def _conv_infer(n: View) -> list[Spec]:
    """x (b, c, l), weight (c, 1, k), bias (c,), past (b, c, k - 1): the result like x, and the last k - 1 steps."""
    _function(n)
    need_kind(n, "f")
    x, weight = n.shape(0), n.shape(1)
    for i, rank in ((0, 3), (1, 3), (2, 1), (3, 3)):
        shape = n.shape(i) if n.has(i) else None
        if shape is not None and len(shape) != rank:
            raise n.fail(f"input {i} has shape {shape}: expected {rank} axes")
    state: Shape = (None, None, None)
    if x is not None and weight is not None:
        k = weight[2]
        if k == 0 or not _agree(weight[1], 1) or not _agree(weight[0], x[1]):
            raise n.fail(f"weight has shape {weight}, x has shape {x}: expected ({x[1]}, 1, k)")
        state = (x[0], x[1], k - 1 if isinstance(k, int) else None)
    for i, wanted in ((2, state[1:2]), (3, state)):
        shape = n.shape(i) if n.has(i) else None
        if shape is not None and not all(map(_agree, shape, wanted)):
            raise n.fail(f"input {i} has shape {shape}: expected {wanted}")
    return [n.spec(0), Spec(state, n.spec(3).dtype if n.has(3) else n.spec(0).dtype)][: len(n.node.outputs)]


def _conv_run(
    n: View, x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None, past: np.ndarray | None = None
) -> Sequence[np.ndarray]:
    """act(sum over j of w[j] x[t - k + 1 + j] + bias), channel by channel; before x comes the state, or zeros."""
    k = weight.shape[2]
    before = np.zeros((*x.shape[:2], k - 1), x.dtype) if past is None else past
    whole = np.concatenate((before, x), 2)
    windows = np.lib.stride_tricks.sliding_window_view(whole.astype(np.float64), k, 2)
    y = (windows * weight[None].astype(np.float64)).sum(3)
    if bias is not None:
        y = y + bias[:, None]
    y = y.astype(x.dtype)
    if _function(n) == "silu":
        wide = y.astype(np.promote_types(y.dtype, np.float32))
        y = (wide / (1 + np.exp(-wide))).astype(x.dtype)
    return (y, whole[:, :, x.shape[2] :].astype(before.dtype))[: len(n.node.outputs)]


def _conv_lower(n: View, b: Builder) -> Any:
    weight, bias = n.value(1), n.value(2)
    if not n.float32() or weight is None or (n.has(2) and bias is None):
        return False
    x, past = b.input(0), b.optional(3)
    (batch, c, length), k = x.shape, weight.shape[2]
    held, pads = x, k - 1
    if past is not None or (n.wants(1) and length < k - 1):
        pads = 0
        held = b.temp((batch, c, length + k - 1))
        row = held.shape[2]
        to = (c * row, row, 1)
        if past is None:
            zero = b.constant(np.zeros(1, np.float32))
            copy(b, zero, held, (batch, c, k - 1), 0, (0, 0, 0), 0, to)
        else:
            copy(b, past, held, past.shape, 0, (c * (k - 1), k - 1, 1), 0, to)
        copy(b, x, held, x.shape, 0, (c * length, length, 1), k - 1, to)
    packed = b.pack(
        "depthwise_pack", lambda: (np.ascontiguousarray(weight).reshape(c, 1, 1, 1, k), bias, (1, 1, 1), (1, 1, 1), c)
    )
    spaced = (batch, c, 1, 1, held.shape[2])
    out = b.output(0)
    b.call(
        "depthwise", held.view(spaced), packed, out.view((batch, c, 1, 1, length)), (0, 0, 0, 0, pads, 0), 0, False, None,
        activation(_function(n)),
    )  # fmt: skip
    if n.wants(1):
        last, row = b.output(1), held.shape[2]
        copy(b, held, last, last.shape, row - (k - 1), (c * row, row, 1), 0, (c * (k - 1), k - 1, 1))
    return True


register("CausalConvWithState", _conv_infer, _conv_run, _conv_lower, PLAIN)

# ---- LinearAttention ---------------------------------------------------------------------------------------------------


def _linear_infer(n: View) -> list[Spec]:
    """q (b, t, h d), k (b, t, g d), v (b, t, g e), state (b, g, d, e), decay (b, t, g) or (b, t, g d), beta (b, t, g or 1).

    With `inverse` (of com.microsoft) g may be a multiple of h: neighbouring heads of values share one of q, and of k if it has h.
    """
    need_kind(n, "f")
    rule = n.get("update_rule", "gated_delta")
    if rule not in ("linear", "gated", "delta", "gated_delta"):
        raise n.fail(f"update_rule is {rule!r}: expected 'linear', 'gated', 'delta' or 'gated_delta'")
    heads, groups = n.get("q_num_heads", 0), n.get("kv_num_heads", 0)
    inverse = bool(n.get("inverse", 0)) and heads >= 1 and not groups % heads
    if heads < 1 or groups < 1 or (heads % groups and not inverse):
        raise n.fail(f"q_num_heads is {heads}, kv_num_heads {groups}: expected a multiple of it")
    for i, name, wanted in ((4, "decay", "gated" in rule), (5, "beta", "delta" in rule)):
        if n.has(i) != wanted:
            raise n.fail(f"update_rule is {rule!r} and {name} is {'there' if n.has(i) else 'left out'}")
    q, k, v = n.shape(0), n.shape(1), n.shape(2)
    state = n.spec(3).dtype if n.has(3) else n.spec(0).dtype
    if q is None or k is None or v is None:
        return [Spec(None, n.spec(0).dtype), Spec(None, state)][: len(n.node.outputs)]
    widths: list[Dim] = []
    for i, by in ((0, heads), (1, _key_heads(n)), (2, groups), (4, groups), (5, 1)):
        shape = n.shape(i) if n.has(i) else None
        if shape is None:
            continue
        if len(shape) != 3 or not all(map(_agree, shape[:2], q[:2])) or (isinstance(shape[2], int) and shape[2] % by):
            raise n.fail(f"input {i} has shape {shape}, query {q}: expected (b, t, width), width a multiple of {by}")
        widths.append(shape[2] // by if isinstance(shape[2], int) else None)
    d, e = widths[0] if widths[0] is not None else widths[1], widths[2]
    wanted_state = (q[0], groups, d, e)
    past = n.shape(3) if n.has(3) else None
    if not _agree(widths[0], widths[1]) or (past is not None and (len(past) != 4 or not all(map(_agree, past, wanted_state)))):
        raise n.fail(f"query has shape {q}, key {k}, past_state {past}: expected one width of heads, and {wanted_state}")
    for i, name, options in ((4, "decay", (groups, groups * d if isinstance(d, int) else None)), (5, "beta", (groups, 1))):
        shape = n.shape(i) if n.has(i) else None
        if shape is not None and isinstance(shape[2], int) and None not in options and shape[2] not in options:
            raise n.fail(f"{name} has shape {shape}: expected a width of {options[0]} or {options[1]}")
    width = max(heads, groups) * e if isinstance(e, int) else None
    return [Spec((*q[:2], width), n.spec(0).dtype), Spec(wanted_state, state)][: len(n.node.outputs)]


def _key_heads(n: View) -> int:
    """The number of heads that keys have: that of queries where those are fewer and as wide."""
    heads, groups, q, k = n.get("q_num_heads", 0), n.get("kv_num_heads", 0), n.shape(0), n.shape(1)
    shared = heads < groups and q is not None and k is not None and q[-1:] == k[-1:] and isinstance(q[-1], int)
    return int(heads if shared else groups)


def _linear_run(
    n: View,
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    past: np.ndarray | None = None,
    decay: np.ndarray | None = None,
    beta: np.ndarray | None = None,
) -> Sequence[np.ndarray]:
    """For each step S = exp(g) S, u = beta (v - Sᵀ k), S = S + k uᵀ, out = scale Sᵀ q; without decay and beta what is left."""
    heads, groups = n.get("q_num_heads"), n.get("kv_num_heads")
    qs, ks, vs = (split_heads(x.astype(np.float64), h) for x, h in ((q, heads), (k, _key_heads(n)), (v, groups)))
    if heads < groups:
        qs, ks = (np.repeat(x, groups // x.shape[1], 1) for x in (qs, ks))
        heads = groups
    (b, _, t, d), e = qs.shape, vs.shape[3]
    state = np.zeros((b, groups, d, e)) if past is None else past.astype(np.float64)
    gates = None if decay is None else np.exp(split_heads(decay.astype(np.float64), groups))
    betas = None if beta is None else beta.astype(np.float64).swapaxes(1, 2)
    scale = n.get("scale", 0.0) or max(d, 1) ** -0.5
    out = np.zeros((b, heads, t, e))
    for i in range(t):
        if gates is not None:
            state = state * gates[:, :, i, :, None]
        u = vs[:, :, i]
        if betas is not None:
            u = betas[:, :, i, None] * (u - np.einsum("bhde,bhd->bhe", state, ks[:, :, i]))
        state = state + ks[:, :, i, :, None] * u[:, :, None]
        out[:, :, i] = scale * np.einsum("bhd,bhde->bhe", qs[:, :, i], np.repeat(state, heads // groups, 1))
    made = (join_heads(out).astype(q.dtype), state.astype(q.dtype if past is None else past.dtype))
    return made[: len(n.node.outputs)]


def _shared(b: Builder, x: Ref, heads: int, groups: int) -> Ref:
    """(b, t, h d) with each head as often as there are groups for it."""
    if heads == groups:
        return x
    (batch, steps, width), times = x.shape, groups // heads
    d, out = width // heads, b.temp((batch, steps, width * times))
    copy(b, x, out, (batch * steps * heads, times, d), 0, (d, 0, 1), 0, (times * d, d, 1))
    return out


def _linear_lower(n: View, b: Builder) -> Any:
    if not n.float32():
        return False
    groups, heads = int(n.get("kv_num_heads")), int(n.get("q_num_heads"))
    q, k, v = (b.input(i) for i in range(3))
    if heads < groups:
        q, k = (_shared(b, x, h, groups) for x, h in ((q, heads), (k, _key_heads(n))))
    d, e = k.shape[2] // groups, v.shape[2] // groups
    gate = None
    if n.has(4):
        gate = b.temp(n.sizes(4))
        b.call("unary", b.input(4), gate, activation("exp"))
    state = b.output(1) if n.wants(1) else b.temp((q.shape[0], groups, d, e))
    scale = float(n.get("scale", 0.0) or max(d, 1) ** -0.5)
    b.call("linear_attention", q, k, v, b.optional(3), gate, b.optional(5), b.output(0), state, scale)
    return True


register("LinearAttention", _linear_infer, _linear_run, _linear_lower, Traits(whole="attends to"))
