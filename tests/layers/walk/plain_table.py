"""Activations, normalizations, products, tables, moves and transforms, as they are drawn: a line for each layer and function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .draw import Call, Draw, Given, Rule, Table

__all__ = ["TABLE"]


def _any(d: Draw, least: int = 0, most: int = 5) -> Given:
    return d.array(*(d.size(33 if i < 2 else 7) for i in range(d.int(least, most))))


def elementwise(**options: Callable[[Draw], Any]) -> Rule:
    """One array; each option is drawn or left out."""

    def rule(d: Draw, kind: str) -> Call:
        own = d.few(0.6, **{name: make(d) for name, make in options.items()})
        if kind == "Threshold" or kind == "threshold":
            own = {name: make(d) for name, make in options.items()}
        x = _any(d)
        return d.layer(kind, own, x) if kind[0].isupper() else d.function(kind, x, **own)

    return rule


def _number(*values: float) -> Callable[[Draw], Any]:
    return lambda d: d.some(*values)


def _dim(d: Draw) -> int:
    return d.axis(3)


def softmax(d: Draw, kind: str) -> Call:
    x = _any(d, 0 if d.chance(0.1) else 1)
    own = {"dim": d.axis(np.ndim(x.value))}
    return d.layer(kind, own, x) if kind[0].isupper() else d.function(kind, x, **own)


def glu(d: Draw, kind: str) -> Call:
    shape = [d.size(9) for _ in range(d.int(1, 4))]
    dim = d.axis(len(shape))
    if -len(shape) <= dim < len(shape) and d.chance(0.95):
        shape[dim] *= 2
    own = {"dim": dim} if dim not in (-1, len(shape) - 1) or d.chance(0.5) else {}
    return d.layer(kind, own, d.array(*shape)) if kind == "GLU" else d.function(kind, d.array(*shape), **own)


def prelu(d: Draw, kind: str) -> Call:
    x = _any(d, 1)
    shape = np.shape(x.value)
    c = d.some(1, shape[1] if len(shape) > 1 else 1, *([3] if d.chance(0.1) else []))
    return (
        d.layer(kind, {"num_parameters": c} if c != 1 or d.chance(0.5) else {}, x)
        if kind == "PReLU"
        else d.function(kind, x, d.array(c))
    )


def linear(d: Draw, kind: str) -> Call:
    a, b = d.size(), d.size()
    x = d.array(*(d.size(17) for _ in range(d.int(0, 3))), a if d.chance(0.97) else a + 1)
    if kind == "Linear":
        return d.layer(kind, {"in_features": a, "out_features": b} | d.few(bias=d.chance(0.5)), x)
    return d.function(kind, x, d.weights(b, a), **d.few(bias=d.weights(b)))


# ---- normalization ---------------------------------------------------------------------------------------------------

EPS = (1e-5, 1e-5, 1e-3, 1e-12, 0.0, 1.0, 100.0)


def _moments(d: Draw, c: int) -> tuple[Given, Given]:
    return d.weights(c), d.array(c, positive=True)


def batch_norm(d: Draw, kind: str) -> Call:
    c, n = d.size(40), int(kind[-2]) if kind[0] == "B" else d.int(0, 3)
    batch = (d.some(0, 1, 2, 3) if d.chance(0.5) else 2,)
    shape = (*batch, c, *(d.size(9) for _ in range(n if n > 1 or d.chance(0.6) else 0)))
    if d.chance(0.03):
        shape = shape[1:]
    own = d.few(0.4, eps=d.some(*EPS), momentum=d.some(None, 0.1, 0.5))
    if kind[0] == "B":
        return d.layer(
            kind, {"num_features": c} | own | d.few(0.4, affine=d.chance(0.5), track_running_stats=d.chance(0.5)), d.array(*shape)
        )
    mean, variance = _moments(d, c) if d.chance(0.7) else (None, None)
    own |= {"training": mean is None} | d.few(weight=d.weights(c), bias=d.weights(c))
    return d.function(kind, d.array(*shape), mean, variance, **own)


def instance_norm(d: Draw, kind: str) -> Call:
    c, n = d.size(24), int(kind[-2]) if kind[0] == "I" else d.int(1, 3)
    shape = (*((d.some(0, 1, 2, 3),) if d.chance(0.8) else ()), c, *(d.size(9) for _ in range(n)))
    own = d.few(0.4, eps=d.some(*EPS), momentum=0.5)
    if kind[0] == "I":
        return d.layer(
            kind, {"num_features": c} | own | d.few(0.4, affine=d.chance(0.6), track_running_stats=d.chance(0.6)), d.array(*shape)
        )
    mean, variance = _moments(d, c) if d.chance(0.5) else (None, None)
    own |= d.few(weight=d.weights(c), bias=d.weights(c)) | {"use_input_stats": mean is None or d.chance(0.5)}
    return d.function(kind, d.array(*shape), mean, variance, **own)


def group_norm(d: Draw, kind: str) -> Call:
    groups = d.some(1, 1, 2, 3, 5)
    c = groups * d.size(9) + (groups > 1 and d.chance(0.03))
    x = d.array(*(d.size(9) if i else d.some(0, 1, 2, 3) for i in range(1)), c, *(d.size(9) for _ in range(d.int(0, 3))))
    own = d.few(0.4, eps=d.some(*EPS))
    if kind == "GroupNorm":
        return d.layer(kind, {"num_groups": groups, "num_channels": c} | own | d.few(affine=d.chance(0.5)), x)
    return d.function(kind, x, groups, **d.few(weight=d.weights(c), bias=d.weights(c)), **own)


def layer_norm(d: Draw, kind: str) -> Call:
    shape = [d.size(33 if not i else 9) for i in range(d.int(1, 4))]
    last = shape[d.int(0, len(shape) - 1) :]
    if d.chance(0.03):
        last[0] += 1
    normalized = d.some(tuple(last), list(last), *([last[0]] if len(last) == 1 else []))
    rms = kind in ("RMSNorm", "rms_norm")
    own: dict[str, Any] = d.few(0.4, eps=d.some(*EPS, *([None] if rms else [])))
    if kind[0].isupper():
        own |= d.few(elementwise_affine=d.chance(0.5)) | ({} if rms else d.few(bias=d.chance(0.5)))
        return d.layer(kind, {"normalized_shape": normalized} | own, d.array(*shape))
    own |= d.few(weight=d.weights(*last)) | ({} if rms else d.few(bias=d.weights(*last)))
    return d.function(kind, d.array(*shape), normalized, **own)


def response_norm(d: Draw, kind: str) -> Call:
    size = d.some(1, 2, 3, 4, 5, 9, *([0] if d.chance(0.05) else []))
    own = {"size": size} | d.few(
        0.4, alpha=d.some(1e-4, 1.0, 0.0), beta=d.some(0.75, 0.5, 1.0, 2.5, 0.0), k=d.some(1.0, 2.0, 0.5)
    )
    x = d.array(*(d.size(9) for _ in range(d.int(2, 5))))
    return d.layer(kind, own, x) if kind[0] == "L" else d.function(kind, x, **own)


# ---- tables, pairs, moves --------------------------------------------------------------------------------------------


def embedding(d: Draw, kind: str) -> Call:
    rows, width = d.size(), d.size(33)
    ids = d.ids(tuple(d.size(5) for _ in range(d.int(0, 3))), rows)
    own = d.few(padding_idx=d.some(None, 0, -1, rows - 1, *([rows, -rows - 1] if d.chance(0.05) else [])))
    if kind == "Embedding":
        return d.layer(kind, {"num_embeddings": rows, "embedding_dim": width} | own | d.few(0.02, max_norm=1.0), ids)
    return d.function(kind, ids, d.array(rows, width), **own)


def _pair(d: Draw) -> tuple[Given, Given]:
    """Of shapes that broadcast, mostly."""
    shape = [d.size(9) for _ in range(d.int(0, 4))]

    def one() -> Given:
        mine = [1 if d.chance(0.2) else s for s in shape][d.int(0, len(shape)) if d.chance(0.2) else 0 :]
        if mine and d.chance(0.02):
            mine[0] += 1
        return d.array(*mine)

    return one(), one()


def cosine(d: Draw, kind: str) -> Call:
    a, b = _pair(d)
    n = max(np.ndim(a.value), np.ndim(b.value))
    own = d.few(0.7, dim=d.axis(n), eps=d.some(1e-8, 1e-3, 1.0))
    return d.layer(kind, own, a, b) if kind[0] == "C" else d.function(kind, a, b, **own)


def binary(d: Draw, kind: str) -> Call:
    return d.function(kind, *_pair(d))


def clip(d: Draw, kind: str) -> Call:
    bounds = {"min": d.some(None, -0.5, 0, 2.0, float("nan")), "max": d.some(None, 0.5, 0, -1.0, float("inf"))}
    return d.function(kind, _any(d), **(bounds if d.chance(0.6) else d.few(**bounds)))


def flatten(d: Draw, kind: str) -> Call:
    x = _any(d)
    n = np.ndim(x.value)
    own = d.few(0.6, start_dim=d.axis(n), end_dim=d.axis(n))
    return d.layer(kind, own, x) if kind == "Flatten" else d.function(kind, x, **own)


def permute(d: Draw, kind: str) -> Call:
    x = _any(d)
    order = [int(i) for i in d.rng.permutation(np.ndim(x.value))]
    order = [i - len(order) if d.chance(0.2) else i for i in order]
    if order and d.chance(0.04):
        order[0] = d.some(order[-1], 9)
    return d.function(kind, x, tuple(order))


def reshape(d: Draw, kind: str) -> Call:
    x = _any(d)
    rest, made = int(np.size(x.value)), []
    while rest > 1 and d.chance(0.7):
        made.append(d.divisor(min(rest, 600)) if rest < 600 else 1)
        rest //= made[-1]
    made.append(rest)
    if d.chance(0.4):
        made[d.int(0, len(made) - 1)] = -1
    return d.function(kind, x, tuple(made))


def squeeze(d: Draw, kind: str) -> Call:
    x = d.array(*(d.some(1, 1, 2, 3, 0) for _ in range(d.int(1, 4))))
    n = np.ndim(x.value)
    ones = [i for i, s in enumerate(np.shape(x.value)) if s == 1]
    dim = d.axis(n + 1) if kind == "unsqueeze" else d.some(*ones, *(i - n for i in ones), n, -n - 1)
    return d.function(kind, x, dim)


def select(d: Draw, kind: str) -> Call:
    x = _any(d, 1)
    n = np.ndim(x.value)
    dim = d.axis(n)
    size = np.shape(x.value)[dim] if -n <= dim < n else 3
    return d.function(kind, x, dim=dim, index=d.axis(size))


def concat(d: Draw, kind: str) -> Call:
    shape = [d.size(7) for _ in range(d.int(1, 4))]
    dim = d.axis(len(shape))
    found = []
    for _ in range(d.int(1, 4)):
        mine = list(shape)
        if -len(shape) <= dim < len(shape):
            mine[dim] = d.size(7)
        if d.chance(0.02):
            mine[-1] += 1
        found.append(d.array(*mine))
    return d.function(kind, tuple(found), **({"dim": dim} if dim else d.few(dim=dim)))


# ---- transforms ------------------------------------------------------------------------------------------------------

NORMS = (None, "backward", "ortho", "forward")


def fourier(d: Draw, kind: str) -> Call:
    """Pairs stand for complex values."""
    pairs = kind.lower() != "rfft"
    shape = [d.some(1, 2, 3, 5, 8, 12, 17, 30, 64, *([0] if d.chance(0.05) else [])) for _ in range(d.int(1, 3))]
    own = d.few(
        0.5, n=d.some(None, 1, 2, 7, 16, 33, *([0] if d.chance(0.05) else [])), dim=d.axis(len(shape)), norm=d.some(*NORMS)
    )
    x = d.array(*shape, *([2] if pairs else []))
    return d.layer(kind, own, x) if kind[0].isupper() else d.function(kind, x, **own)


def stft(d: Draw, kind: str) -> Call:
    n_fft = d.some(1, 2, 4, 7, 16, 30, 33)
    own: dict[str, Any] = {"n_fft": n_fft} | d.few(0.6, hop_length=d.int(1, n_fft + 1))
    if d.chance(0.5):
        own["win_length"] = d.int(1, n_fft + d.chance(0.05))
    own["window"] = d.weights(own.get("win_length", n_fft)) if d.chance(0.8) else None
    own |= d.few(0.4, center=d.chance(0.3), normalized=d.chance(0.6), onesided=d.chance(0.4))
    own |= d.few(0.4, pad_mode=d.some("reflect", "constant", "replicate", "circular"))
    return d.function(kind, d.array(*d.some((), (1,), (2,)), d.some(3, 8, 17, 40, 65, 100)), **own)


def istft(d: Draw, kind: str) -> Call:
    n_fft = d.some(2, 4, 7, 16, 30)
    own: dict[str, Any] = {"n_fft": n_fft, "hop_length": d.int(1, n_fft // 2 + 1)} | d.few(0.4, center=d.chance(0.5))
    if d.chance(0.4):
        own["win_length"] = d.int(n_fft // 2 + 1, n_fft)
    own |= d.few(0.7, window=Given(np.float32(d.rng.random(own.get("win_length", n_fft)) + 0.5)))
    own |= d.few(0.3, normalized=d.chance(0.6), onesided=d.chance(0.4), length=d.int(1, 40))
    bins = n_fft if own.get("onesided") is False else n_fft // 2 + 1
    return d.function(kind, d.array(*d.some((), (1,), (2,)), bins, d.some(1, 2, 5, 9), 2), **own)


def dropout(d: Draw, kind: str) -> Call:
    return d.function(kind, _any(d), **d.few(p=d.some(0.0, 0.3, 1.0)), training=False)


def window(d: Draw, kind: str) -> Call:
    return d.function(kind, d.some(0, 1, 2, 3, 8, 17, 64, *([-1] if d.chance(0.1) else [])), **d.few(periodic=d.chance(0.4)))


_ALPHA, _SLOPE = _number(1.0, 0.5, 2.0, -1.0, 0.1), _number(0.01, 0.0, 1.0, -0.3)
_LAMBDA, _FLAG = _number(0.5, 0.0, 1.0, 2.5), _number(False, True)
_INPLACE = ("ReLU", "ReLU6", "SELU", "SiLU", "Mish", "Hardsigmoid", "Hardswish")
_PLAIN = ("LogSigmoid", "Sigmoid", "Softsign", "Tanh", "Tanhshrink")
TABLE: Table = {
    **{name: elementwise(inplace=_FLAG) for name in _INPLACE},
    **{name: elementwise() for name in ("Identity", *_PLAIN)},
    **{name.lower(): elementwise() for name in (*_INPLACE, *_PLAIN, "erf", "exp", "log", "sqrt")},
    **{name: elementwise(alpha=_ALPHA) for name in ("CELU", "celu", "ELU", "elu")},
    **{name: elementwise(approximate=lambda d: d.some("none", "tanh")) for name in ("GELU", "gelu")},
    **{name: elementwise(lambd=_LAMBDA) for name in ("Hardshrink", "hardshrink", "Softshrink", "softshrink")},
    **{name: elementwise(min_val=_number(-1.0, 0, -2.5), max_val=_number(1.0, 3, 0.5)) for name in ("Hardtanh", "hardtanh")},
    **{name: elementwise(negative_slope=_SLOPE) for name in ("LeakyReLU", "leaky_relu")},
    **{name: elementwise(beta=_number(1.0, 2, 0.3, -1.0), threshold=_number(20.0, 1, 0.0)) for name in ("Softplus", "softplus")},
    **{name: elementwise(threshold=_number(0.1, -1, 0), value=_number(2.0, -3)) for name in ("Threshold", "threshold")},
    **{name: elementwise(p=_number(0.5, 0.0, 1.0)) for name in ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d")},
    **dict.fromkeys(("Softmax", "LogSoftmax", "Softmin", "softmax", "log_softmax", "softmin"), softmax),
    **dict.fromkeys(("GLU", "glu"), glu), **dict.fromkeys(("PReLU", "prelu"), prelu),
    **dict.fromkeys(("Linear", "linear"), linear),
    **dict.fromkeys(("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "batch_norm"), batch_norm),
    **dict.fromkeys(("InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "instance_norm"), instance_norm),
    **dict.fromkeys(("GroupNorm", "group_norm"), group_norm),
    **dict.fromkeys(("LayerNorm", "layer_norm", "RMSNorm", "rms_norm"), layer_norm),
    **dict.fromkeys(("LocalResponseNorm", "local_response_norm"), response_norm),
    **dict.fromkeys(("Embedding", "embedding"), embedding), **dict.fromkeys(("CosineSimilarity", "cosine_similarity"), cosine),
    **dict.fromkeys(("add", "subtract", "multiply", "divide"), binary), "clip": clip,
    **dict.fromkeys(("Flatten", "flatten"), flatten), "permute": permute, "reshape": reshape, "squeeze": squeeze,
    "unsqueeze": squeeze, "select": select, "concat": concat,
    **dict.fromkeys(("fft", "ifft", "rfft", "irfft"), fourier), "stft": stft, "istft": istft, "dropout": dropout,
    **dict.fromkeys(("hann_window", "hamming_window", "blackman_window"), window),
}  # fmt: skip
