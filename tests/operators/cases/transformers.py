"""ONNX's operators of transformers: attention key by key, linear attention step by step, causal convolution tap by tap."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import Case, case, numbers


def small(*shape: int) -> np.ndarray:
    return (np.sin(numbers(*shape) * 1.7 + len(shape)) * 0.8).astype(np.float32)


def softmax(scores: list[float]) -> np.ndarray:
    """Of the scores of the keys that a query sees; -infinity alone gives zeros."""
    largest = max(scores, default=-np.inf)
    if largest == -np.inf:
        return np.zeros(len(scores))
    e = np.exp(np.array(scores) - largest)
    return np.asarray(e / e.sum())


def attended(q: Any, k: Any, v: Any, mask: Any, lengths: Any, first: Any, a: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """The result, and the scores that are asked for, query by query."""
    (b, h, rows, d), (_, g, keys, _) = q.shape, k.shape
    scale, cap = a.get("scale", d**-0.5), a.get("softcap", 0)
    left, right, mode = a.get("left_window_size", -1), a.get("right_window_size", -1), a.get("qk_matmul_output_mode", 0)
    out, wanted = np.zeros((b, h, rows, v.shape[3])), np.zeros((b, h, rows, keys))
    if mask is not None:
        full = np.full((*mask.shape[:-1], keys), False if mask.dtype == bool else -np.inf, mask.dtype)
        full[..., : mask.shape[-1]] = mask
        mask = np.broadcast_to(full, (b, h, rows, keys))
    for n, i, s in np.ndindex(b, h, rows):
        own = s + (first if lengths is None else int(lengths[n]) - rows)
        raw = np.array([q[n, i, s].astype(float) @ k[n, i // (h // g), t] * scale for t in range(keys)])
        capped = cap * np.tanh(raw / cap) if cap else raw
        biased = []
        for t in range(keys):
            shut = (a.get("is_causal", 0) and t > own) or (left >= 0 and own - t > left) or (right >= 0 and t - own > right)
            shut = shut or (lengths is not None and t >= lengths[n])
            extra = 0.0 if mask is None else (0.0 if mask[n, i, s, t] else -np.inf) if mask.dtype == bool else mask[n, i, s, t]
            biased.append(-np.inf if shut else capped[t] + extra)
        weights = softmax(biased)
        out[n, i, s] = weights @ v[n, i // (h // g)].astype(float)
        wanted[n, i, s] = (raw, capped, biased, weights)[mode]
    return out, wanted


def attention(
    label: str, q: Any, k: Any, e: int = 6, mask: Any = None, past: int = 0, lengths: Any = None, outputs: int = 1, **a: Any
) -> Case:
    """q (b, h, s, d), k (b, g, t, d), v (b, g, t, e); flat if `q_num_heads` is there."""
    b, g, t = k[:3]
    arrays = [small(*q), small(*k) * np.float32(1.3), small(b, g, t, e)]
    befores = [small(b, g, past, k[3]) * 2, small(b, g, past, e) - 1] if past else [None, None]
    keys, values = (x if old is None else np.concatenate((old, x), 2) for x, old in zip(arrays[1:], befores, strict=True))
    y, scores = attended(arrays[0], keys, values, mask, lengths, past, a)
    given = arrays
    if "q_num_heads" in a:
        given = [x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1) for x in arrays]
        y = y.swapaxes(1, 2).reshape(q[0], q[2], -1)
    inputs = [*given, mask, *befores, lengths]
    while inputs[-1] is None:
        inputs.pop()
    want = [y.astype(np.float32), keys, values, scores.astype(np.float32)][:outputs]
    return case("Attention", label, inputs, *want, data=len(inputs), native=True, ulp=128, **a)


def flex(label: str, h: int, g: int) -> list[Case]:
    q, k, v = small(2, h, 3, 4), small(2, g, 5, 4) + 1, small(2, g, 5, 6)
    scores = np.zeros((2, h, 3, 5))
    out = np.zeros((2, h, 3, 6))
    for n, i in np.ndindex(2, h):
        scores[n, i] = q[n, i].astype(float) @ k[n, i // (h // g)].T
        out[n, i] = scores[n, i] @ v[n, i // (h // g)]
    weights = scores.astype(np.float32)
    return [
        case("AttentionScores", label, [q, k], (scores / 2).astype(np.float32), data=2, native=True, ulp=32),
        case(
            "AttentionScores", f"{label}, scaled", [q, k], (scores * 3).astype(np.float32), data=2, native=True, ulp=64, scale=3.0
        ),
        case("AttentionValues", label, [weights, v], out.astype(np.float32), data=2, native=True, ulp=256),
    ]


def causal_conv(label: str, length: int, k: int, bias: bool, past: bool, activation: str = "none", outputs: int = 2) -> Case:
    x, w = small(2, 3, length), small(3, 1, k)
    b, before = small(3) if bias else None, small(2, 3, k - 1) if past else None
    whole = np.concatenate((np.zeros((2, 3, k - 1), np.float32) if before is None else before, x), 2)
    y = np.zeros(x.shape)
    for n, c, t in np.ndindex(*x.shape):
        y[n, c, t] = sum(float(whole[n, c, t + j]) * w[c, 0, j] for j in range(k)) + (0 if b is None else b[c])
    if activation != "none":
        y = y / (1 + np.exp(-y))
    inputs = [x, w] if b is None and before is None else [x, w, b, before] if before is not None else [x, w, b]
    want = [y.astype(np.float32), whole[:, :, length:]][:outputs]
    return case("CausalConvWithState", label, inputs, *want, data=1, native=True, ulp=32, activation=activation)


def linear(label: str, heads: int, groups: int, rule: str, past: bool, gates: int = 1, betas: int = 1, **a: Any) -> Case:
    """`gates`: how many of a head; `betas`: for each head (1), or one for all (0)."""
    b, t, d, e = 2, 4, 3, 5
    q, k, v = small(b, t, heads * d), small(b, t, groups * d) + 0.1, small(b, t, groups * e)
    decay = small(b, t, groups * gates) - 1 if "gated" in rule else None
    beta = abs(small(b, t, groups if betas else 1)) if "delta" in rule else None
    state = small(b, groups, d, e) if past else None
    out, final = np.zeros((b, t, heads, e)), np.zeros((b, groups, d, e))
    for n, g in np.ndindex(b, groups):
        s = np.zeros((d, e)) if state is None else state[n, g].astype(float)
        for i in range(t):
            key, value = (x[n, i].reshape(groups, -1)[g].astype(float) for x in (k, v))
            if decay is not None:
                s = s * np.exp(decay[n, i].reshape(groups, -1)[g].astype(float))[:, None]
            if beta is not None:
                value = float(beta[n, i][g if betas else 0]) * (value - s.T @ key)
            s = s + np.outer(key, value)
            for h in range(g * heads // groups, (g + 1) * heads // groups):
                out[n, i, h] = a.get("scale", d**-0.5) * (s.T @ q[n, i].reshape(heads, -1)[h])
        final[n, g] = s
    inputs = [q, k, v, state, decay, beta]
    while inputs[-1] is None:
        inputs.pop()
    want = out.reshape(b, t, -1).astype(np.float32), final.astype(np.float32)
    settings = {"q_num_heads": heads, "kv_num_heads": groups, "update_rule": rule, **a}
    return case("LinearAttention", label, inputs, *want, data=len(inputs), native=True, ulp=64, **settings)


_A, _B = small(2, 3, 4), small(2, 3, 4) * 3


def swiglu(alpha: float) -> np.ndarray:
    return (_A / (1 + np.exp(-alpha * _A.astype(float))) * _B).astype(np.float32)


_SEEN = np.array([[True, False, True, True, False], [False] * 5, [True] * 5])
_FLAT = {"q_num_heads": 4, "kv_num_heads": 2}
_MODES = range(4)
CASES = [
    attention("plain", (2, 2, 3, 4), (2, 2, 5, 4)),
    attention("grouped heads next to each other", (2, 4, 3, 4), (2, 2, 5, 4), **_FLAT),
    attention("all results", (2, 4, 3, 4), (2, 2, 5, 4), outputs=4, scale=0.3, **_FLAT),
    attention("past, causal", (2, 2, 3, 4), (2, 2, 3, 4), past=4, outputs=3, is_causal=1),
    attention("past, flat, one query", (2, 4, 1, 4), (2, 2, 1, 4), past=7, outputs=3, is_causal=1, **_FLAT),
    attention("booleans, a row without keys", (2, 2, 3, 4), (2, 2, 5, 4), mask=_SEEN),
    attention("booleans of few keys", (2, 2, 3, 4), (2, 2, 5, 4), mask=_SEEN[:, :3]),
    attention("numbers of few keys, one head", (2, 2, 3, 4), (2, 2, 5, 4), mask=small(2, 1, 3, 4)),
    attention("numbers, one axis", (2, 2, 3, 4), (2, 2, 5, 4), mask=small(5), is_causal=1),
    attention("lengths", (3, 2, 3, 4), (3, 2, 5, 4), lengths=np.array([5, 3, 0])),
    attention("lengths, causal", (3, 2, 3, 4), (3, 2, 5, 4), lengths=np.array([5, 3, 2]), is_causal=1, outputs=4),
    attention("lengths, causal, one query", (2, 2, 1, 4), (2, 2, 5, 4), lengths=np.array([5, 3]), is_causal=1),
    attention(
        "lengths, windows, mask", (2, 2, 3, 4), (2, 2, 5, 4), lengths=np.array([5, 4]), mask=_SEEN[None, None],
        left_window_size=1, right_window_size=1,
    ),
    attention("windows", (1, 2, 4, 4), (1, 2, 6, 4), left_window_size=2, right_window_size=0),
    attention("window, past", (1, 2, 2, 4), (1, 2, 2, 4), past=5, left_window_size=3, is_causal=1),
    *(
        attention(
            f"soft cap, scores {i}", (2, 4, 3, 4), (2, 2, 5, 4), mask=small(3, 5), outputs=4, softcap=0.5, qk_matmul_output_mode=i
        )
        for i in _MODES
    ),
    *(
        attention(f"scores {i}", (2, 2, 3, 4), (2, 2, 5, 4), mask=_SEEN, outputs=4, qk_matmul_output_mode=i)
        for i in _MODES
    ),
    attention("soft cap, flat", (2, 4, 3, 4), (2, 2, 5, 4), softcap=2.0, **_FLAT),
    *flex("as many heads", 2, 2),
    *flex("grouped", 4, 2),
    causal_conv("plain", 5, 3, False, False),
    causal_conv("bias, state, silu", 5, 4, True, True, "silu"),
    causal_conv("shorter than the state", 2, 5, True, False),
    causal_conv("one step", 1, 4, False, True, "swish"),
    causal_conv("a kernel of one", 4, 1, True, False),
    causal_conv("the result alone", 2, 4, True, False, outputs=1),
    linear("linear", 2, 2, "linear", False),
    linear("gated, a gate for each number", 2, 2, "gated", True, gates=3),
    linear("delta, one beta", 2, 2, "delta", False, betas=0),
    linear("gated delta, grouped, scaled", 4, 2, "gated_delta", True, scale=0.7),
    case("SwiGLU", "plain", [_A, _B], swiglu(1), data=2, native=True, ulp=8),
    case("SwiGLU", "alpha", [_A, _B], swiglu(1.5), data=2, native=True, ulp=8, alpha=1.5),
]  # fmt: skip
