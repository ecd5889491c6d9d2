"""Stacks of transformer layers, and the whole transformer, with torch's names and arguments."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arguments import checked
from ..errors import ArgumentError, DTypeError
from ..ir.checks import MOST_LAYERS, fits, integer
from ._base import Layer
from .normalization import LayerNorm
from .transformer_layer import TransformerDecoderLayer, TransformerEncoderLayer

if TYPE_CHECKING:
    from ..functional._types import Tensor

__all__ = ["Transformer", "TransformerDecoder", "TransformerEncoder"]


class _Stack(Layer):
    """`num_layers` layers like the one given, and a normalization after them."""

    def _build(self, layer: Any, num_layers: Any, norm: Any) -> None:
        name = type(self).__name__
        if not isinstance(layer, Layer) or not (norm is None or isinstance(norm, Layer)):
            kinds = f"{type(layer).__name__} and {type(norm).__name__}"
            raise DTypeError(f"{name}: layer and norm are of types {kinds}: expected layers of fastlayers")
        self.num_layers = integer(name, "num_layers", num_layers, 0, MOST_LAYERS)
        self.layers: list[Any] = [copy.deepcopy(layer) for _ in range(self.num_layers)]
        self.norm = norm

    def _caches(self, cache: Any) -> Any:
        if not isinstance(cache, (tuple, list)) or len(cache) != self.num_layers:
            raise ArgumentError(f"{type(self).__name__}: cache is no sequence of {self.num_layers}: expected one per layer")
        return cache

    def _convert(self, given: dict[str, Any], prefix: str) -> None:
        for name in [n for n in given if n.startswith(prefix + "layer.")]:
            given[f"{prefix}layers.{name[len(prefix + 'layer.') :]}"] = given.pop(name)


class TransformerEncoder(_Stack):
    """Encoder layers one after the other: ``norm(layer_k(... layer_1(src)))``.

    Args:
        encoder_layer: a layer; there will be `num_layers` of its kind with their own weights.
        num_layers: how many.
        norm: a layer that comes last, or None.
        enable_nested_tensor: accepted for compatibility.
        mask_check: accepted for compatibility.

    Tensors: ``layers.0.*``, ... (or BERT's ``layer.0.*``), ``norm.*``.

    >>> import numpy as np, fastlayers as fl
    >>> net = fl.TransformerEncoder(fl.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)
    >>> _ = net.load_state_dict({name: np.ones(shape) for name, shape in net.tensor_shapes().items()})
    >>> net(np.ones((1, 5, 8))).shape
    (1, 5, 8)
    """

    def __init__(
        self,
        encoder_layer: Layer,
        num_layers: int,
        norm: Layer | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        self._build(encoder_layer, num_layers, norm)

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
        *,
        lengths: Tensor | None = None,
        cache: Any = None,
    ) -> Any:
        """Applies all layers.

        Args:
            src: ``(t, n, d_model)``, ``(n, t, d_model)`` if the layers are `batch_first`, or ``(t, d_model)``.
            mask: as `attn_mask` of `MultiheadAttention`: True means ignore.
            src_key_padding_mask: ``(n, t)``: True where src is padding.
            is_causal: whether a position sees none after its own.
            lengths: ``(n,)``: an alternative to `src_key_padding_mask`.
            cache: what `empty_cache` or the last call returned.

        Returns:
            float32, the shape of src; with a cache ``(out, cache)``.
        """
        after = []
        caches = [None] * self.num_layers if cache is None else self._caches(cache)
        for layer, before in zip(self.layers, caches, strict=True):
            found = layer(src, mask, src_key_padding_mask, bool(is_causal), lengths=lengths, cache=before)
            src = found if cache is None else found[0]
            after.append(None if cache is None else found[1])
        out = src if self.norm is None else self.norm(src)
        return out if cache is None else (out, tuple(after))

    def empty_cache(self, batch: int = 1) -> Any:
        """The cache before the first token: one per layer."""
        return tuple(layer.empty_cache(batch) for layer in self.layers)


class TransformerDecoder(_Stack):
    """Decoder layers one after the other: ``norm(layer_k(... layer_1(tgt, memory), memory))``.

    Args:
        decoder_layer: a layer; there will be `num_layers` of its kind with their own weights.
        num_layers: how many.
        norm: a layer that comes last, or None.

    Tensors: ``layers.0.*``, ..., ``norm.*``.

    >>> import numpy as np, fastlayers as fl
    >>> net = fl.TransformerDecoder(fl.TransformerDecoderLayer(8, 2, 16, batch_first=True), 2)
    >>> _ = net.load_state_dict({name: np.ones(shape) for name, shape in net.tensor_shapes().items()})
    >>> memory = np.ones((1, 7, 8))
    >>> step, cache = net(np.ones((1, 1, 8)), memory, tgt_is_causal=True, cache=net.start(memory))
    >>> step.shape
    (1, 1, 8)
    """

    def __init__(self, decoder_layer: Layer, num_layers: int, norm: Layer | None = None) -> None:
        self._build(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
        *,
        tgt_lengths: Tensor | None = None,
        memory_lengths: Tensor | None = None,
        cache: Any = None,
    ) -> Any:
        """Applies all layers; arguments are those of `TransformerDecoderLayer`.

        Returns:
            float32, the shape of tgt; with a cache, which `start` makes, ``(out, cache)``.
        """
        after = []
        caches = [None] * self.num_layers if cache is None else self._caches(cache)
        for layer, before in zip(self.layers, caches, strict=True):
            found = layer(
                tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, bool(tgt_is_causal),
                bool(memory_is_causal), tgt_lengths=tgt_lengths, memory_lengths=memory_lengths, cache=before,
            )  # fmt: skip
            tgt = found if cache is None else found[0]
            after.append(None if cache is None else found[1])
        out = tgt if self.norm is None else self.norm(tgt)
        return out if cache is None else (out, tuple(after))

    def start(self, memory: Tensor) -> Any:
        """The cache before the first token, with the projected memory: one per layer."""
        return tuple(layer.start(memory) for layer in self._settled().layers)


class Transformer(Layer):
    """Encoder and decoder: ``decoder(tgt, encoder(src))``, each with a normalization at its end.

    Args:
        d_model: size of the last axis.
        nhead: heads.
        num_encoder_layers: layers of the encoder.
        num_decoder_layers: layers of the decoder.
        dim_feedforward: size within the feed-forward networks.
        dropout: accepted for compatibility; there is none at inference.
        activation: as for `Linear`: "relu", "gelu", ...
        custom_encoder: a layer in place of the encoder, or None.
        custom_decoder: a layer in place of the decoder, or None.
        layer_norm_eps: eps of the normalizations.
        batch_first: whether inputs are ``(n, t, d_model)`` instead of ``(t, n, d_model)``.
        norm_first: whether normalization comes first in each layer.
        bias: whether there are biases.

    Tensors: ``encoder.layers.0.*``, ..., ``encoder.norm.*``, ``decoder.layers.0.*``, ..., ``decoder.norm.*``.

    >>> import numpy as np, fastlayers as fl
    >>> net = fl.Transformer(8, 2, 1, 1, 16, batch_first=True)
    >>> _ = net.load_state_dict({name: np.ones(shape) for name, shape in net.tensor_shapes().items()})
    >>> net(np.ones((1, 5, 8)), np.ones((1, 3, 8))).shape
    (1, 3, 8)
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        custom_encoder: Layer | None = None,
        custom_decoder: Layer | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
    ) -> None:
        for name, given in (("custom_encoder", custom_encoder), ("custom_decoder", custom_decoder)):
            if given is not None and not callable(given):
                raise DTypeError(f"Transformer: {name} is of type {type(given).__name__}: expected a layer, or None")
        settings = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        self.encoder: Any = custom_encoder
        if custom_encoder is None:
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias)
            self.encoder = TransformerEncoder(TransformerEncoderLayer(*settings), num_encoder_layers, norm)
        self.decoder: Any = custom_decoder
        if custom_decoder is None:
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias)
            self.decoder = TransformerDecoder(TransformerDecoderLayer(*settings), num_decoder_layers, norm)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> np.ndarray:
        """Encodes src and decodes tgt; arguments are those of `TransformerEncoderLayer` and `TransformerDecoderLayer`."""
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        out: np.ndarray = self.decoder(
            tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, tgt_is_causal, memory_is_causal
        )
        return out

    @staticmethod
    @checked
    def generate_square_subsequent_mask(sz: int) -> np.ndarray:
        """The additive causal mask ``(sz, sz)``: -infinity above the diagonal, 0 elsewhere."""
        size = integer("Transformer.generate_square_subsequent_mask", "sz", sz, 0)
        fits("Transformer.generate_square_subsequent_mask", 2 * size * size, np.float32, f"a mask of {size} by {size} values")
        return np.triu(np.full((size, size), -np.inf, np.float32), 1)
