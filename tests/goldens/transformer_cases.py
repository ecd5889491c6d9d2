"""Multi-head attention and transformer layers, with torch's arguments: see make_attention_layers.py. Labels are seeds."""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

import numpy as np


class Case(NamedTuple):
    """`getattr(nn, name)(*args, **kwargs)` on float inputs of `shapes`; `call` holds further arguments, arrays among them by
    the name of a maker in `MASKS` and its arguments.
    """

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    shapes: tuple[tuple[int, ...], ...]
    call: dict[str, Any]

    @property
    def label(self) -> str:
        return f"{self.name}{self.args} {self.kwargs} {self.shapes} {self.call}"


def C(name: str, *args: Any, shapes: Any, call: Any = None, **kwargs: Any) -> Case:  # noqa: N802
    return Case(name, args, kwargs, shapes, call or {})


def arrays(label: str, *shapes: tuple[int, ...]) -> list[np.ndarray]:
    """Normal float32 values, small enough that softmax is not all one; the label is the seed."""
    rng = np.random.default_rng(zlib.crc32(label.encode()))
    return [(0.5 * rng.standard_normal(shape)).astype(np.float32) for shape in shapes]


def causal(n: int) -> np.ndarray:
    """True above the diagonal: torch's layers ignore these keys."""
    return np.triu(np.ones((n, n), bool), 1)


def padding(*lengths: int) -> np.ndarray:
    """True after each length."""
    return np.arange(max(lengths)) >= np.array(lengths)[:, None]


def numbers(*shape: int) -> np.ndarray:
    """What is added to scores."""
    return arrays(str(shape), shape)[0]


MASKS = {"causal": causal, "padding": padding, "numbers": numbers}


def made(value: Any) -> Any:
    """An argument of a call: arrays from ("maker", arguments), all else as it is."""
    return MASKS[value[0]](*value[1:]) if isinstance(value, tuple) else value


_FIRST = {"batch_first": True}
_CAUSAL = {"attn_mask": ("causal", 5)}
_BIAS = {"attn_mask": ("numbers", 4, 5, 5)}
_SELF = ((2, 5, 8),) * 3
CASES = (
    C("MultiheadAttention", 8, 2, shapes=((5, 2, 8),) * 3),
    C("MultiheadAttention", 8, 2, shapes=((5, 8),) * 3, call={"average_attn_weights": False}),
    C("MultiheadAttention", 8, 4, bias=False, **_FIRST, shapes=((2, 3, 8), *((2, 5, 8),) * 2), call={"need_weights": False}),
    C("MultiheadAttention", 8, 2, kdim=3, vdim=6, **_FIRST, shapes=((2, 4, 8), (2, 5, 3), (2, 5, 6))),
    C("MultiheadAttention", 8, 2, kdim=3, vdim=6, shapes=((5, 8), (5, 3), (5, 6)), call=_CAUSAL),
    C("MultiheadAttention", 8, 2, **_FIRST, shapes=_SELF, call={"attn_mask": ("causal", 5), "need_weights": True}),
    C("MultiheadAttention", 8, 2, **_FIRST, shapes=_SELF, call={**_BIAS, "average_attn_weights": False}),
    C("MultiheadAttention", 8, 2, **_FIRST, shapes=_SELF, call={"key_padding_mask": ("padding", 5, 2), "need_weights": False}),
    C(
        "MultiheadAttention", 8, 2, shapes=((5, 2, 8),) * 3,
        call={"key_padding_mask": ("padding", 5, 2), "attn_mask": ("causal", 5)},
    ),
    C("TransformerEncoderLayer", 8, 2, 12, **_FIRST, shapes=((2, 5, 8),)),
    C("TransformerEncoderLayer", 8, 2, 12, activation="gelu", layer_norm_eps=1e-3, shapes=((5, 2, 8),)),
    C("TransformerEncoderLayer", 8, 4, 12, norm_first=True, **_FIRST, shapes=((2, 5, 8),), call={"src_mask": ("causal", 5)}),
    C("TransformerEncoderLayer", 8, 2, 12, bias=False, shapes=((5, 8),), call={"src_mask": ("numbers", 5, 5)}),
    C("TransformerEncoderLayer", 8, 2, 12, **_FIRST, shapes=((2, 5, 8),), call={"src_key_padding_mask": ("padding", 3, 5)}),
    C("TransformerDecoderLayer", 8, 2, 12, **_FIRST, shapes=((2, 4, 8), (2, 5, 8)), call={"tgt_mask": ("causal", 4)}),
    C("TransformerDecoderLayer", 8, 2, 12, norm_first=True, activation="gelu", shapes=((4, 2, 8), (5, 2, 8))),
    C(
        "TransformerDecoderLayer", 8, 2, 12, **_FIRST, shapes=((2, 4, 8), (2, 5, 8)),
        call={"memory_mask": ("numbers", 4, 5), "memory_key_padding_mask": ("padding", 5, 3),
              "tgt_key_padding_mask": ("padding", 4, 2)},
    ),
    C("Transformer", 8, 2, 2, 1, 12, shapes=((5, 2, 8), (4, 2, 8)), call={"tgt_mask": ("causal", 4)}),
    C("Transformer", 8, 2, 1, 2, 12, norm_first=True, **_FIRST, shapes=((2, 5, 8), (2, 4, 8)),
      call={"src_key_padding_mask": ("padding", 5, 1)}),
)  # fmt: skip
