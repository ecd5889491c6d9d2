"""One layer of a transformer: encoder and decoder. Masks have torch's meaning: True means ignore. Caches go in and come out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import DTypeError
from ..functional._activation_names import resolve
from ..ir.checks import integer, number
from ._affine import affine
from ._base import Layer
from .attention_multihead import Cache, MultiheadAttention
from .linear import Linear
from .normalization import LayerNorm

if TYPE_CHECKING:
    from ..functional._types import Tensor

__all__ = ["TransformerDecoderLayer", "TransformerEncoderLayer"]

# BERT's names of the parts of an encoder layer.
_BERT = {
    "attention.self.": "self_attn.",
    "attention.output.dense.": "self_attn.out_proj.",
    "attention.output.LayerNorm.": "norm1.",
    "intermediate.dense.": "linear1.",
    "output.dense.": "linear2.",
    "output.LayerNorm.": "norm2.",
}


class _TransformerLayer(Layer):
    """The base of both: attention to itself and the feed-forward network, each next to a residual and with a normalization."""

    def _build(
        self, d_model: Any, nhead: Any, dim_feedforward: Any, dropout: Any, activation: Any, layer_norm_eps: Any,
        batch_first: Any, norm_first: Any, bias: Any, norms: int,
    ) -> None:  # fmt: skip
        name = type(self).__name__
        self.d_model, inner = integer(name, "d_model", d_model, 1), integer(name, "dim_feedforward", dim_feedforward, 1)
        self.dropout, self.norm_first = number(name, "dropout", dropout), bool(norm_first)
        resolve(name, activation)
        self.self_attn = MultiheadAttention(self.d_model, nhead, bias=bias, batch_first=batch_first)
        if norms == 3:
            self.multihead_attn = MultiheadAttention(self.d_model, nhead, bias=bias, batch_first=batch_first)
        self.linear1 = Linear(self.d_model, inner, bias, activation=activation)
        self.linear2 = Linear(inner, self.d_model, bias)
        self.norm1 = LayerNorm(self.d_model, layer_norm_eps, bias=bias)
        self.norm2 = LayerNorm(self.d_model, layer_norm_eps, bias=bias)
        if norms == 3:
            self.norm3 = LayerNorm(self.d_model, layer_norm_eps, bias=bias)

    def _feed(self, x: Any, norm: LayerNorm) -> Any:
        """x and the feed-forward network of it, normalized before or after."""
        if self.norm_first:
            return affine(self.linear2, affine(self.linear1, norm(x)), x)
        return norm(affine(self.linear2, affine(self.linear1, x), x))


class TransformerEncoderLayer(_TransformerLayer):
    """Attention to itself and a feed-forward network: ``x = norm1(x + attn(x)); norm2(x + W_2 act(W_1 x))``.

    With `norm_first`: ``x = x + attn(norm1(x)); x + W_2 act(W_1 norm2(x))``.

    Args:
        d_model: size of the last axis.
        nhead: heads.
        dim_feedforward: size within the feed-forward network.
        dropout: accepted for compatibility; there is none at inference.
        activation: as for `Linear`: "relu", "gelu", ...
        layer_norm_eps: eps of the normalizations.
        batch_first: whether inputs are ``(n, t, d_model)`` instead of ``(t, n, d_model)``.
        norm_first: whether normalization comes first.
        bias: whether there are biases.

    Tensors: torch's ``self_attn.*``, ``linear1``, ``linear2``, ``norm1`` and ``norm2``; BERT's ``attention.self.query`` and the
    like, ``attention.output.dense``, ``attention.output.LayerNorm``, ``intermediate.dense``, ``output.dense``,
    ``output.LayerNorm``.

    >>> import numpy as np, fastlayers as fl
    >>> layer = fl.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> _ = layer.load_state_dict({name: np.ones(shape) for name, shape in layer.tensor_shapes().items()})
    >>> layer(np.ones((1, 5, 8))).shape
    (1, 5, 8)
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
    ) -> None:
        self._build(d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, 2)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
        *,
        lengths: Tensor | None = None,
        cache: Cache | None = None,
    ) -> Any:
        """Applies the layer.

        Args:
            src: ``(t, n, d_model)``, ``(n, t, d_model)`` if `batch_first`, or ``(t, d_model)``.
            src_mask: as `attn_mask` of `MultiheadAttention`: True means ignore.
            src_key_padding_mask: ``(n, t)``: True where src is padding.
            is_causal: whether a position sees none after its own.
            lengths: ``(n,)``: an alternative to `src_key_padding_mask`.
            cache: as for `MultiheadAttention`.

        Returns:
            float32, the shape of src; with a cache ``(out, cache)``.
        """
        x = self.norm1(src) if self.norm_first else src
        x, _, after = self.self_attn._attend(x, x, x, src_key_padding_mask, src_mask, is_causal, lengths, cache, False, src)
        x = self._feed(x if self.norm_first else self.norm1(x), self.norm2)
        return x if cache is None else (x, after)

    def empty_cache(self, batch: int = 1) -> Cache:
        """The cache before the first token."""
        return self.self_attn.empty_cache(batch)

    def _convert(self, given: dict[str, Any], prefix: str) -> None:
        for theirs, ours in _BERT.items():
            for name in [n for n in given if n.startswith(prefix + theirs)]:
                given[prefix + ours + name[len(prefix + theirs) :]] = given.pop(name)


class TransformerDecoderLayer(_TransformerLayer):
    """Attention to itself, attention to a memory and a feed-forward network, each next to a residual.

    ``x = norm1(x + self(x)); x = norm2(x + cross(x, memory)); norm3(x + W_2 act(W_1 x))``, or, with `norm_first`, each part of
    the normalized x.

    Args:
        d_model: size of the last axis.
        nhead: heads.
        dim_feedforward: size within the feed-forward network.
        dropout: accepted for compatibility; there is none at inference.
        activation: as for `Linear`: "relu", "gelu", ...
        layer_norm_eps: eps of the normalizations.
        batch_first: whether inputs are ``(n, t, d_model)`` instead of ``(t, n, d_model)``.
        norm_first: whether normalization comes first.
        bias: whether there are biases.

    Tensors: torch's ``self_attn.*``, ``multihead_attn.*``, ``linear1``, ``linear2``, ``norm1``, ``norm2`` and ``norm3``.

    >>> import numpy as np, fastlayers as fl
    >>> layer = fl.TransformerDecoderLayer(8, 2, 16, batch_first=True)
    >>> _ = layer.load_state_dict({name: np.ones(shape) for name, shape in layer.tensor_shapes().items()})
    >>> layer(np.ones((1, 5, 8)), np.ones((1, 7, 8)), tgt_is_causal=True).shape
    (1, 5, 8)
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
    ) -> None:
        self._build(d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, 3)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
        *,
        tgt_lengths: Tensor | None = None,
        memory_lengths: Tensor | None = None,
        cache: tuple[Cache, Cache] | None = None,
    ) -> Any:
        """Applies the layer.

        Args:
            tgt: ``(t, n, d_model)``, ``(n, t, d_model)`` if `batch_first`, or ``(t, d_model)``.
            memory: ``(s, n, d_model)``, and likewise; not looked at where a cache is given.
            tgt_mask: as `attn_mask` of `MultiheadAttention`: True means ignore.
            memory_mask: the same for memory.
            tgt_key_padding_mask: ``(n, t)``: True where tgt is padding.
            memory_key_padding_mask: ``(n, s)``: True where memory is padding.
            tgt_is_causal: whether a position of tgt sees none after its own.
            memory_is_causal: whether position i of tgt sees none after position i of memory.
            tgt_lengths: ``(n,)``: an alternative to `tgt_key_padding_mask`.
            memory_lengths: ``(n,)``: an alternative to `memory_key_padding_mask`.
            cache: what `start` or the last call returned: earlier keys and values, and those of the memory.

        Returns:
            float32, the shape of tgt; with a cache ``(out, cache)``.
        """
        if cache is not None and not (isinstance(cache, (tuple, list)) and len(cache) == 2):
            raise DTypeError(f"TransformerDecoderLayer: cache is of type {type(cache).__name__}: expected what `start` returns")
        own, projected = (None, None) if cache is None else cache
        first = self.norm_first
        x = self.norm1(tgt) if first else tgt
        x, _, after = self.self_attn._attend(x, x, x, tgt_key_padding_mask, tgt_mask, tgt_is_causal, tgt_lengths, own, False, tgt)
        x = x if first else self.norm1(x)
        x, _, _ = self.multihead_attn._attend(
            self.norm2(x) if first else x, memory, memory, memory_key_padding_mask, memory_mask, memory_is_causal, memory_lengths,
            None, False, x, projected,
        )  # fmt: skip
        x = self._feed(x if first else self.norm2(x), self.norm3)
        return x if cache is None else (x, (after, projected))

    def start(self, memory: Tensor) -> tuple[Cache, Cache]:
        """The cache before the first token, with the projected memory, which has a batch."""
        keys, values = self.multihead_attn.project(memory, memory)
        return self.self_attn.empty_cache(keys.shape[0]), (keys, values)
