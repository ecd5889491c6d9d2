"""Nodes of ONNX Runtime's own operators, with seeded inputs; what it answers is in contrib.npz."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

__all__ = ["CASES", "ContribCase", "asked"]


class ContribCase(NamedTuple):
    """One node. None stands for an input that is left out; `outputs` has "" for outputs that nobody wants.

    `native`: whether kernels do it all. `constants`: inputs that models have as constants.
    """

    op: str
    label: str
    inputs: tuple[np.ndarray | None, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]
    native: bool
    constants: tuple[int, ...]
    domain: str

    @property
    def id(self) -> str:
        """A name for the test and the golden."""
        return f"{self.op}, {self.label}"


CASES: list[ContribCase] = []


def small(*shape: int, by: float = 1.7) -> np.ndarray:
    """Numbers between -1 and 1 without order."""
    return (np.sin(np.arange(np.prod(shape, dtype=int)) * by + len(shape)) * 0.9).reshape(shape).astype(np.float32)


def add(
    op: str,
    label: str,
    *inputs: Any,
    outputs: Any = 1,
    native: bool = True,
    constants: tuple[int, ...] = (),
    domain: str = "com.microsoft",
    **attributes: Any,
) -> None:
    """A case; `outputs` a number of them, or their names."""
    names = tuple(f"y{i}" for i in range(outputs)) if isinstance(outputs, int) else tuple(outputs)
    CASES.append(ContribCase(op, label, inputs, names, attributes, native, constants, domain))


def ints(*values: Any) -> np.ndarray:
    """int32, as most of these operators take."""
    return np.array(values, np.int32)


# ---- products --------------------------------------------------------------------------------------------------------------

add("FusedMatMul", "scaled", small(2, 3, 4), small(2, 4, 5), alpha=0.25)
add("FusedMatMul", "B turned", small(2, 3, 3, 4), small(2, 3, 5, 4), transB=1, alpha=0.5)
add("FusedMatMul", "both turned", small(2, 4, 3), small(5, 4), transA=1, transB=1)
add("FusedMatMul", "constant", small(2, 3, 4), small(4, 5), constants=(1,), alpha=-2.0)
add("FusedMatMul", "constant, turned", small(2, 3, 4), small(5, 4), constants=(1,), transB=1)
add("FusedMatMul", "batches turned", small(3, 2, 4, by=0.3), small(2, 4, 5), transBatchA=1, transBatchB=0)
add("FusedMatMul", "both batches turned", small(3, 2, 5, 4), small(6, 2, 5, 4), transBatchA=1, transBatchB=1, transB=1)
add("TransposeMatMul", "A turned", small(2, 4, 3), small(2, 4, 5), transA=1, alpha=3.0)
add("FusedGemm", "relu", small(3, 4), small(4, 5), small(5), constants=(1, 2), activation="Relu")
add(
    "FusedGemm",
    "leaky",
    small(4, 3),
    small(5, 4),
    small(5),
    constants=(1, 2),
    activation="LeakyRelu",
    activation_alpha=0.3,
    transA=1,
    transB=1,
    alpha=0.5,
    beta=2.0,
)
_X, _W = small(2, 4, 6, 5), small(3, 4, 3, 3)
add("FusedConv", "relu", _X, _W, small(3), constants=(1, 2), activation="Relu", pads=[1, 1, 1, 1])
add("FusedConv", "clip", _X, _W, constants=(1,), activation="Clip", activation_params=[-0.2, 0.5], strides=[2, 1])
add("FusedConv", "leaky", _X, _W, small(3), constants=(1, 2), activation="LeakyRelu", activation_params=[0.2])
add(
    "FusedConv",
    "hard sigmoid, group",
    _X,
    small(4, 2, 3, 3),
    constants=(1,),
    group=2,
    activation="HardSigmoid",
    activation_params=[0.3, 0.4],
)
add("FusedConv", "z", _X, _W, small(3), small(2, 3, 4, 3, by=0.9), constants=(1, 2), activation="Tanh")

# ---- activations -----------------------------------------------------------------------------------------------------------

add("Gelu", "plain", small(3, 7) * 3)
add("BiasGelu", "plain", small(2, 3, 7) * 3, small(7))
add("FastGelu", "plain", small(3, 7) * 3)
add("FastGelu", "bias", small(3, 7) * 3, small(7))
add("QuickGelu", "plain", small(3, 7) * 3)
add("QuickGelu", "alpha", small(3, 7) * 3, alpha=1.2)

# ---- norms -----------------------------------------------------------------------------------------------------------------

add("SkipLayerNormalization", "plain", small(2, 3, 8), small(2, 3, 8, by=0.6), small(8), small(8, by=0.4))
add(
    "SkipLayerNormalization",
    "bias, sum",
    small(2, 3, 8),
    small(2, 3, 8, by=0.6),
    small(8),
    small(8, by=0.4),
    small(8, by=2.1),
    outputs=("y", "", "", "sum"),
    epsilon=1e-5,
)
add("SkipLayerNormalization", "one skip for all", small(2, 3, 8), small(3, 8, by=0.6), small(8), None, small(8, by=0.4))
add(
    "SkipSimplifiedLayerNormalization",
    "bias, sum",
    small(2, 3, 8),
    small(2, 3, 8, by=0.6),
    small(8),
    small(8, by=2.1),
    outputs=("y", "", "", "sum"),
    epsilon=1e-6,
)
add("SimplifiedLayerNormalization", "plain", small(2, 3, 8), small(8), domain="", epsilon=1e-6, axis=-1)
_TABLES = small(11, 8), small(7, 8, by=0.8), small(2, 8, by=0.5)
_IDS, _KINDS = ints([1, 9, 4], [10, 0, 3]), ints([0, 0, 1], [1, 0, 1])
add("EmbedLayerNormalization", "plain", _IDS, _KINDS, *_TABLES, small(8), small(8, by=0.4), ints([1, 1, 0], [1, 0, 0]), outputs=3)
add(
    "EmbedLayerNormalization",
    "no segments",
    _IDS,
    None,
    *_TABLES[:2],
    None,
    small(8),
    small(8, by=0.4),
    outputs=("y", "mask"),
    epsilon=1e-3,
)
add(
    "EmbedLayerNormalization",
    "positions",
    _IDS,
    _KINDS,
    *_TABLES,
    small(8),
    small(8, by=0.4),
    None,
    ints([6, 1, 0], [2, 2, 5]),
    outputs=("y", "mask"),
)

# ---- attention -------------------------------------------------------------------------------------------------------------

_IN, _WEIGHTS, _BIAS = small(2, 3, 6), small(6, 24, by=0.37), small(24, by=2.3)
_PAST = small(2, 2, 2, 4, 4, by=0.7)
_ATT = {"constants": (1, 2), "num_heads": 2}
add("Attention", "plain", _IN, _WEIGHTS, _BIAS, **_ATT)
add("Attention", "no bias", _IN, _WEIGHTS, None, constants=(1,), num_heads=2)
add("Attention", "mask of each key", _IN, _WEIGHTS, _BIAS, ints([1, 1, 0], [0, 0, 0]), **_ATT)
add("Attention", "mask of each pair", _IN, _WEIGHTS, _BIAS, (small(2, 3, 3) > 0).astype(np.int32), **_ATT)
add("Attention", "mask of a large square", _IN, _WEIGHTS, _BIAS, (small(2, 1, 5, 5) > -0.5).astype(np.int32), **_ATT)
add("Attention", "ends", _IN, _WEIGHTS, _BIAS, ints(3, 2), **_ATT)
add("Attention", "ends and starts", _IN, _WEIGHTS, _BIAS, ints(3, 2, 0, 1), **_ATT)
add("Attention", "causal", _IN, _WEIGHTS, _BIAS, unidirectional=1, scale=0.9, **_ATT)
add("Attention", "causal, mask", _IN, _WEIGHTS, _BIAS, ints([1, 1, 1], [0, 1, 1]), unidirectional=1, **_ATT)
add("Attention", "past", _IN, _WEIGHTS, _BIAS, ints([1] * 7, [0, 0, 1, 1, 1, 1, 1]), _PAST, outputs=2, unidirectional=1, **_ATT)
add("Attention", "bias of scores", _IN, _WEIGHTS, _BIAS, None, None, small(1, 2, 3, 3), **_ATT)
add("Attention", "narrow values", _IN, small(6, 20, by=0.37), small(20), qkv_hidden_sizes=[8, 8, 4], **_ATT)

_Q, _K, _V = small(2, 3, 8), small(2, 5, 8, by=0.9), small(2, 5, 8, by=0.33)
_PK, _PV = small(2, 2, 4, 4, by=0.7), small(2, 2, 4, 4, by=1.1)
add("MultiHeadAttention", "plain", _Q, _K, _V, num_heads=2)
add("MultiHeadAttention", "bias", _Q, _K, _V, small(24), num_heads=2)
add("MultiHeadAttention", "narrow values, bias", _Q, _K, small(2, 5, 4), small(20), num_heads=2)
add("MultiHeadAttention", "packed", small(2, 3, 2, 3, 4), num_heads=2)
add("MultiHeadAttention", "packed keys and values", _Q, small(2, 5, 2, 2, 4), num_heads=2)
add(
    "MultiHeadAttention",
    "mask of each key",
    _Q,
    _K,
    _V,
    None,
    ints([1, 1, 1, 0, 0], [0] * 5),
    num_heads=2,
    mask_filter_value=-50.0,
)
add("MultiHeadAttention", "lengths", _Q, _K, _V, None, ints(5, 2), num_heads=2)
add(
    "MultiHeadAttention", "bias of scores, mask", _Q, _K, _V, None, ints([1, 1, 0, 1, 1], [1] * 5), small(1, 2, 3, 5), num_heads=2
)
add("MultiHeadAttention", "past", _Q, small(2, 3, 8), small(2, 3, 8, by=0.2), None, None, None, _PK, _PV, outputs=3, num_heads=2)
add(
    "MultiHeadAttention",
    "past, causal, mask",
    _Q,
    small(2, 3, 8),
    small(2, 3, 8, by=0.2),
    None,
    ints([1] * 7, [0, 1, 1, 1, 1, 1, 1]),
    None,
    _PK,
    _PV,
    outputs=3,
    num_heads=2,
    unidirectional=1,
)
add("MultiHeadAttention", "keys with heads", _Q, _PK, _PV, small(24), num_heads=2)
add("MultiHeadAttention", "scores", _Q, _K, _V, None, ints([1, 1, 1, 0, 0], [1] * 5), outputs=("y", "", "", "qk"), num_heads=2)

_COS, _SIN = np.cos(small(9, 2) * 3).astype(np.float32), np.sin(small(9, 2) * 3).astype(np.float32)
_LONG = np.array
add("RotaryEmbedding", "rows", small(2, 3, 8), _LONG([[0, 4, 2], [8, 1, 1]]), _COS, _SIN)
add("RotaryEmbedding", "heads", small(2, 2, 3, 4), _LONG([[0, 4, 2], [8, 1, 1]]), _COS, _SIN, interleaved=1)
add("RotaryEmbedding", "a first row", small(2, 3, 8), _LONG([5]), _COS, _SIN, constants=(1,))
add(
    "RotaryEmbedding",
    "part of a head",
    small(2, 3, 12),
    _LONG([[0, 4, 2], [8, 1, 1]]),
    _COS,
    _SIN,
    num_heads=2,
    rotary_embedding_dim=4,
)

# What is after an entry's keys in the cache is nobody's.
_GROUPED = {"num_heads": 4, "kv_num_heads": 2}
_FIRST = small(2, 3, 64), small(2, 3, 32, by=0.9), small(2, 3, 32, by=0.33)
_NEXT = small(2, 1, 64), small(2, 1, 32, by=0.9), small(2, 1, 32, by=0.33)
_CK, _CV = small(2, 2, 5, 16, by=0.7), small(2, 2, 5, 16, by=1.1)
_ROTARY = np.cos(small(9, 8) * 3).astype(np.float32), np.sin(small(9, 8) * 3).astype(np.float32)
_GQA = {"outputs": 3, "constants": (6,), **_GROUPED}
add("GroupQueryAttention", "first", *_FIRST, None, None, ints(2, 2), ints(3), **_GQA)
add("GroupQueryAttention", "first, rotary", *_FIRST, None, None, ints(2, 2), ints(3), *_ROTARY, do_rotary=1, **_GQA)
add(
    "GroupQueryAttention",
    "first, packed",
    small(2, 3, 128),
    None,
    None,
    None,
    None,
    ints(2, 2),
    ints(3),
    *_ROTARY,
    do_rotary=1,
    rotary_interleaved=1,
    **_GQA,
)
add(
    "GroupQueryAttention",
    "first, a cache to fill",
    *_FIRST,
    np.zeros((2, 2, 5, 16), np.float32),
    np.zeros((2, 2, 5, 16), np.float32),
    ints(2, 2),
    ints(3),
    softcap=0.7,
    scale=0.4,
    **_GQA,
)
add("GroupQueryAttention", "next, entries of two lengths", *_NEXT, _CK, _CV, ints(5, 3), ints(6), *_ROTARY, do_rotary=1, **_GQA)
add("GroupQueryAttention", "next, a long cache", *_NEXT, _CK, _CV, ints(3, 2), ints(4), **_GQA)
add("GroupQueryAttention", "next, window", *_NEXT, _CK, _CV, ints(5, 3), ints(6), local_window_size=2, **_GQA)
add("GroupQueryAttention", "first, window", *_FIRST, None, None, ints(2, 2), ints(3), local_window_size=2, **_GQA)
add(
    "GroupQueryAttention",
    "next, positions",
    *_NEXT,
    _CK,
    _CV,
    ints(5, 3),
    ints(6),
    *_ROTARY,
    np.array([[8], [1]]),
    do_rotary=1,
    **_GQA,
)
add("GroupQueryAttention", "next, bias", *_NEXT, _CK, _CV, ints(5, 5), ints(6), None, None, None, small(1, 4, 1, 6), **_GQA)
add(
    "GroupQueryAttention",
    "two more",
    *(x[:1, :2] for x in _FIRST),
    _CK[:1],
    _CV[:1],
    ints(6),
    ints(7),
    *_ROTARY,
    native=False,
    do_rotary=1,
    **_GQA,
)
add("GroupQueryAttention", "first, smooth", *_FIRST, None, None, ints(2, 2), ints(3), native=False, smooth_softmax=1, **_GQA)
add(
    "GroupQueryAttention",
    "first, sinks",
    *_FIRST,
    None,
    None,
    ints(2, 2),
    ints(3),
    None,
    None,
    None,
    None,
    small(4),
    native=False,
    **_GQA,
)
add("GroupQueryAttention", "first, both ways", *_FIRST, None, None, ints(2, 2), ints(3), causal=0, **_GQA)

# ---- others ----------------------------------------------------------------------------------------------------------------

add("ExpandDims", "behind", small(2, 3), np.array(-1, np.int32), constants=(1,))
add("Pad", "plain", small(2, 3), _LONG([1, 0, 0, 2]), np.full(1, 5, np.float32), constants=(1, 2), mode="constant")
add("Trilu", "lower", small(3, 4), _LONG(1), constants=(1,), native=False, upper=0)
add("Range", "no step", np.array(1, np.float32), np.array(4.5, np.float32), constants=(0, 1))


def asked(item: ContribCase) -> tuple[np.ndarray | None, ...]:
    """What ONNX Runtime is asked: on the CPU it has not got all forms, and there is another that means the same."""
    inputs = list(item.inputs)
    if item.label == "no bias":
        inputs[2] = np.zeros(inputs[1].shape[1], np.float32)
    if item.label.startswith("packed"):
        packed = inputs[-1]
        parts = [packed[:, :, :, i].reshape(*packed.shape[:2], -1) for i in range(packed.shape[3])]
        inputs[-1:] = parts
    if item.label == "mask of a large square":
        inputs[3] = np.ascontiguousarray(inputs[3][:, 0, :3, :3])
    return tuple(inputs)
