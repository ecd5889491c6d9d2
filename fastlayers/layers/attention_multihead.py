"""Multi-head attention: projections, attention of all heads read in place, one projection back. Caches go in and come out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from ..functional import concat, log, permute, reshape, scaled_dot_product_attention, squeeze, subtract, unsqueeze
from ..functional._activation_names import IDENTITY
from ..functional._linear import linear, pack_linear, run_linear
from ..graph.arrays import as_float32, as_mask, contiguous, empty
from ..graph.record import shape_of
from ..graph.symbol import symbolic
from ..ir.checks import differ, integer, number
from ._affine import affine
from ._base import Layer
from ._load import as_tensor
from .linear import Linear

if TYPE_CHECKING:
    from ..functional._types import Tensor

__all__ = ["MultiheadAttention"]

Cache = tuple[np.ndarray, np.ndarray]
_PARTS = ("q_proj_weight", "k_proj_weight", "v_proj_weight")
# What files call the projections of query, key and value, and the one back, below the layer's own name.
_PROJECTIONS = (("query", "q_proj", "self.query"), ("key", "k_proj", "self.key"), ("value", "v_proj", "self.value"))
_BACK = ("output.dense", "dense", "o_proj")


class MultiheadAttention(Layer):
    """Attention of several heads: ``concat(softmax(q_i k_iᵀ / sqrt(d)) v_i) W_oᵀ + b_o`` with ``q = query W_qᵀ + b_q`` and so on.

    Args:
        embed_dim: size of the last axis of query and of the result.
        num_heads: heads, h.
        dropout: accepted for compatibility; there is none at inference.
        bias: whether the projections have biases.
        add_bias_kv: must be False.
        add_zero_attn: must be False.
        kdim: size of the last axis of key; None is `embed_dim`.
        vdim: size of the last axis of value; None is `embed_dim`.
        batch_first: whether inputs are ``(n, t, features)`` instead of ``(t, n, features)``.
        num_kv_heads: heads of keys and values, g; each serves h / g heads of queries. None is h.
        head_dim: d, the width of a head of queries and keys (Keras' key_dim); None is embed_dim / h.
        v_head_dim: the width of a head of values (Keras' value_dim); None is `head_dim`.
        rotary: None, or a `RotaryEmbedding` that turns queries and keys by their positions.

    Tensors: torch's ``in_proj_weight`` (3 embed_dim, embed_dim) and ``in_proj_bias``, or, where sizes differ, ``q_proj_weight``
    (h d, embed_dim), ``k_proj_weight`` (g d, kdim), ``v_proj_weight`` (g e, vdim) and ``in_proj_bias`` of all three; with
    ``out_proj.weight`` and ``out_proj.bias``. Also BERT's ``query.weight`` or ``self.query.weight``, key, value and
    ``output.dense.weight`` with their biases, and ``q_proj.weight``, ``k_proj``, ``v_proj``, ``o_proj``. Keras'
    MultiHeadAttention: kernels (features, heads, width) and biases (heads, width) of query, key and value, output kernel
    (heads, width, features) and bias.

    >>> import numpy as np, fastlayers as fl
    >>> layer = fl.MultiheadAttention(8, 2, batch_first=True)
    >>> _ = layer.load_state_dict({name: np.ones(shape) for name, shape in layer.tensor_shapes().items()})
    >>> x = np.ones((1, 5, 8))
    >>> out, weights = layer(x, x, x)
    >>> out.shape, weights.shape
    ((1, 5, 8), (1, 5, 5))
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        *,
        num_kv_heads: int | None = None,
        head_dim: int | None = None,
        v_head_dim: int | None = None,
        rotary: Any = None,
    ) -> None:
        name = "MultiheadAttention"
        self.embed_dim = integer(name, "embed_dim", embed_dim, 1)
        self.num_heads = integer(name, "num_heads", num_heads, 1)
        self.dropout = number(name, "dropout", dropout)
        if add_bias_kv or add_zero_attn:
            raise UnsupportedError(f"{name}: add_bias_kv and add_zero_attn are not supported: expected False")
        self.kdim = self.embed_dim if kdim is None else integer(name, "kdim", kdim, 1)
        self.vdim = self.embed_dim if vdim is None else integer(name, "vdim", vdim, 1)
        self.batch_first = bool(batch_first)
        self.num_kv_heads = self.num_heads if num_kv_heads is None else integer(name, "num_kv_heads", num_kv_heads, 1)
        if self.num_heads % self.num_kv_heads:
            raise ArgumentError(f"{name}: num_heads is {num_heads}, num_kv_heads {num_kv_heads}: expected a multiple of it")
        if head_dim is None and self.embed_dim % self.num_heads:
            raise ArgumentError(f"{name}: embed_dim is {embed_dim}, num_heads {num_heads}: expected a multiple of it")
        self.head_dim = self.embed_dim // self.num_heads if head_dim is None else integer(name, "head_dim", head_dim, 1)
        self.v_head_dim = self.head_dim if v_head_dim is None else integer(name, "v_head_dim", v_head_dim, 1)
        if rotary is not None and not isinstance(rotary, Layer):
            raise DTypeError(f"{name}: rotary of type {type(rotary).__name__}: expected None or a RotaryEmbedding")
        self.rotary = rotary
        h, g, d, e = self.num_heads, self.num_kv_heads, self.head_dim, self.v_head_dim
        self._sizes = (h * d, g * d, g * e)
        self._inputs = (self.embed_dim, self.kdim, self.vdim)
        packed = self._sizes == (self.embed_dim,) * 3 == self._inputs
        shapes: dict[str, tuple[int, ...]] = {"in_proj_weight": (3 * self.embed_dim, self.embed_dim)}
        if not packed:
            shapes = dict(zip(_PARTS, zip(self._sizes, self._inputs, strict=True), strict=True))
        self._shapes = {**shapes, "in_proj_bias": (sum(self._sizes),)} if bias else shapes
        self.out_proj = Linear(h * e, self.embed_dim, bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
        *,
        lengths: Tensor | None = None,
        cache: Cache | None = None,
    ) -> Any:
        """Attends; masks have torch's meaning for this layer: True means ignore.

        Args:
            query: ``(l, n, embed_dim)``, ``(n, l, embed_dim)`` if `batch_first`, or ``(l, embed_dim)`` without a batch.
            key: ``(s, n, kdim)``, and likewise.
            value: ``(s, n, vdim)``, and likewise.
            key_padding_mask: ``(n, s)``: True where a key is padding, or values that are added to its scores.
            need_weights: whether the weights are returned; asking for them takes more time.
            attn_mask: ``(l, s)`` or ``(n h, l, s)``: True where a query may not attend, or values that are added.
            average_attn_weights: whether weights are the mean over the heads.
            is_causal: whether a query sees no key after its own, with a cache or a mask or without.
            lengths: ``(n,)``: how many keys each entry of the batch has, an alternative to `key_padding_mask`.
            cache: keys and values of earlier calls, which come before those of this one: what `empty_cache` or the last call
                returned.

        Returns:
            ``(out, weights)``: out shaped as query; weights ``(n, l, s)``, ``(n, h, l, s)`` without the average, or None. With a
            cache ``(out, weights, cache)``. A query that sees no key has zeros in place of its heads' results.
        """
        out, weights, after = self._attend(
            query, key, value, key_padding_mask, attn_mask, is_causal, lengths, cache,
            ("mean" if average_attn_weights else True) if need_weights else False,
        )  # fmt: skip
        return (out, weights) if cache is None else (out, weights, after)

    def empty_cache(self, batch: int = 1) -> Cache:
        """The cache before the first token: keys ``(batch, 0, g d)`` and values ``(batch, 0, g e)``."""
        batch = integer("MultiheadAttention", "batch", batch, 0)
        return empty((batch, 0, self._sizes[1])), empty((batch, 0, self._sizes[2]))

    def project(self, key: Tensor, value: Tensor) -> Cache:
        """Keys and values of a memory, projected: a cache that every step of a decoder reads; inputs as in `forward`, with a
        batch.
        """
        return self._settled()._project(1, self._first(key, "key")), self._settled()._project(2, self._first(value, "value"))

    # ---- the inside, which transformers use as well -------------------------------------------------------------------

    def _attend(
        self, query: Any, key: Any, value: Any, padding: Any, mask: Any, causal: bool, lengths: Any, cache: Any, need: bool | str,
        residual: Any = None, projected: Cache | None = None,
    ) -> tuple[Any, Any, Any]:  # fmt: skip
        """The result with the residual added, the weights or None, and the cache with this call's keys and values.

        `projected`: keys and values that `project` made, in place of key and value.
        """
        single = len(shape_of(query, "MultiheadAttention", "query")) == 2
        q = self._first(query, "query")
        if projected is not None:
            (k, v), packed = projected, None
            offset: int | None = 0
        else:
            same = key is query
            kx = q if same else self._first(key, "key")
            vx = kx if value is key and self.kdim == self.vdim else self._first(value, "value")
            packed = None if symbolic(q, kx, vx) else self._packed()
            k, v = self._project(1, kx, packed), self._project(2, vx, packed)
            offset = 0 if cache is None else None
        q = self._project(0, q, packed)
        if self.rotary is not None:
            before = 0 if cache is None else _known(self._kept(cache)[0][1])
            q = self.rotary(q, offset=before, num_heads=self.num_heads)
            k = k if projected is not None else self.rotary(k, offset=before, num_heads=self.num_kv_heads)
        if cache is not None:
            k, v = self._extended(cache, k, v)
        found = scaled_dot_product_attention(
            q, k, v, self._mask(mask, padding, q.shape[0]), is_causal=causal, lengths=lengths, num_heads=self.num_heads,
            num_kv_heads=self.num_kv_heads, offset=offset, need_weights=need,
        )  # fmt: skip
        out, weights = found if need else (found, None)
        if residual is not None:
            residual = self._first(residual, "residual")
        out = affine(self.out_proj, out, residual)
        if single:
            out, weights = _squeezed(out), None if weights is None else _squeezed(weights)
        elif not self.batch_first:
            out = _swapped(out)
        return out, weights, (k, v)

    def _first(self, x: Any, what: str) -> Any:
        """An input as (n, t, features), checked."""
        width = self.kdim if what == "key" else self.vdim if what == "value" else self.embed_dim
        if not symbolic(x):
            x = as_float32(x, "MultiheadAttention", what)
        if x.ndim not in (2, 3) or differ(x.shape[-1], width):
            order = "n, t" if self.batch_first else "t, n"
            raise ShapeError(
                f"MultiheadAttention: {what} has shape {x.shape}: expected ({order}, {width}), or (t, {width}) without a batch"
            )
        if x.ndim == 2:
            return unsqueeze(x, 0) if symbolic(x) else x[None]
        return x if self.batch_first else _swapped(x)

    def _project(self, i: int, x: Any, packed: Any = None) -> Any:
        """Query (0), key (1) or value (2), as `_first` gives it, projected; `packed`: of arrays alone, if it is there."""
        if packed is None and symbolic(x):
            weight, bias = self._part(self._tensors(), i)
            return linear(x, weight, bias)
        return run_linear((packed or self._packed())[i], x, self._sizes[i], None, IDENTITY)

    def _part(self, tensors: dict[str, np.ndarray], i: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Weight and bias of one of the three projections."""
        start = sum(self._sizes[:i])
        rows = slice(start, start + self._sizes[i])
        weight = tensors["in_proj_weight"][rows] if "in_proj_weight" in tensors else tensors[_PARTS[i]]
        return weight, tensors["in_proj_bias"][rows] if "in_proj_bias" in tensors else None

    def _pack(self, tensors: dict[str, np.ndarray]) -> tuple[Any, Any]:
        return [pack_linear(*self._part(tensors, i)) for i in range(3)], None

    def _kept(self, cache: Any) -> list[Any]:
        """The shapes of the keys and values that a cache keeps."""
        if not isinstance(cache, (tuple, list)) or len(cache) != 2:
            raise DTypeError(
                f"MultiheadAttention: cache of type {type(cache).__name__}: expected a pair (keys, values) of arrays"
            )
        shapes = [shape_of(part, "MultiheadAttention", "cache") for part in cache]
        for shape, what in zip(shapes, ("keys", "values"), strict=True):
            if len(shape) != 3:
                raise ShapeError(f"MultiheadAttention: cache has {what} of shape {shape}: expected three axes")
        return shapes

    def _extended(self, cache: Any, k: Any, v: Any) -> Cache:
        for shape, new, what in zip(self._kept(cache), (k, v), ("keys", "values"), strict=True):
            if differ(shape[0], new.shape[0]) or differ(shape[2], new.shape[2]):
                raise ShapeError(
                    f"MultiheadAttention: cache has {what} of shape {shape}: expected ({new.shape[0]}, t, {new.shape[2]})"
                )
        return concat([cache[0], k], 1), concat([cache[1], v], 1)

    def _mask(self, mask: Any, padding: Any, batch: Any) -> Any:
        """Both masks as one that is added to scores (n, h, l, s), or None."""
        if mask is not None:
            mask = _added(mask, "attn_mask")
            if mask.ndim == 3:
                rows, keys = mask.shape[1:]
                if differ(mask.shape[0], batch * self.num_heads if isinstance(batch, int) else None):
                    raise ShapeError(
                        f"MultiheadAttention: attn_mask has shape {mask.shape}: expected ({batch} x {self.num_heads} heads, l, s)"
                    )
                whole = (-1 if symbolic(mask) else batch, self.num_heads, rows, keys)
                mask = reshape(mask, whole) if symbolic(mask) else mask.reshape(whole)
            elif mask.ndim != 2:
                raise ShapeError(f"MultiheadAttention: attn_mask has shape {mask.shape}: expected (l, s) or (n h, l, s)")
        if padding is not None:
            padding = _added(padding, "key_padding_mask")
            if padding.ndim == 1:
                padding = unsqueeze(padding, 0) if symbolic(padding) else padding[None]
            if padding.ndim != 2 or differ(padding.shape[0], batch):
                raise ShapeError(f"MultiheadAttention: key_padding_mask has shape {padding.shape}: expected ({batch}, s)")
            padding = unsqueeze(unsqueeze(padding, 1), 1) if symbolic(padding) else padding[:, None, None]
        if mask is None or padding is None:
            return padding if mask is None else mask
        if differ(mask.shape[-1], padding.shape[-1]):
            raise ShapeError(
                f"MultiheadAttention: attn_mask is for {mask.shape[-1]} keys, key_padding_mask for {padding.shape[-1]}: "
                "expected as many"
            )
        return mask + padding

    def _convert(self, given: dict[str, Any], prefix: str) -> None:
        for ending in ("weight", "bias"):
            for name in _BACK:
                if f"{prefix}{name}.{ending}" in given:
                    given.setdefault(f"{prefix}out_proj.{ending}", given.pop(f"{prefix}{name}.{ending}"))
            found = []
            for names in _PROJECTIONS:
                found += [name for name in (f"{prefix}{n}.{ending}" for n in names) if name in given][:1]
            if len(found) != 3:
                continue
            parts = [as_tensor(given.pop(name), "MultiheadAttention.load_state_dict", name) for name in found]
            if ending == "weight" and "in_proj_weight" not in self._shapes:
                given.update((prefix + name, part) for name, part in zip(_PARTS, parts, strict=True))
            elif len({part.shape[1:] for part in parts}) == 1:
                given[f"{prefix}in_proj_{ending}"] = np.concatenate(parts)
            else:
                raise ShapeError(
                    f"MultiheadAttention.load_state_dict: {', '.join(found)} have shapes {[p.shape for p in parts]}: "
                    f"expected {list(zip(self._sizes, self._inputs, strict=True))}"
                )

    def _keras(self) -> dict[str, tuple[int, ...]]:
        heads = (self.num_heads, self.num_kv_heads, self.num_kv_heads)
        widths = (self.head_dim, self.head_dim, self.v_head_dim)
        wanted: dict[str, tuple[int, ...]] = {}
        for name, size, h, d in zip(("query", "key", "value"), self._inputs, heads, widths, strict=True):
            wanted |= {f"{name}/kernel": (size, h, d), f"{name}/bias": (h, d)}
        wanted |= {"output/kernel": (self.num_heads, self.v_head_dim, self.embed_dim), "output/bias": (self.embed_dim,)}
        return {name: shape for name, shape in wanted.items() if "in_proj_bias" in self._shapes or name.endswith("kernel")}

    def _from_keras(self, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        names = ("query", "key", "value")
        weights = [given[f"{name}/kernel"].reshape(size, -1).T for name, size in zip(names, self._inputs, strict=True)]
        found = {"out_proj.weight": given["output/kernel"].reshape(-1, self.embed_dim).T}
        if "in_proj_weight" in self._shapes:
            found["in_proj_weight"] = np.concatenate(weights)
        else:
            found |= dict(zip(_PARTS, weights, strict=True))
        if "in_proj_bias" in self._shapes:
            found["in_proj_bias"] = np.concatenate([given[f"{name}/bias"].reshape(-1) for name in names])
            found["out_proj.bias"] = given["output/bias"]
        return found

    def __repr__(self) -> str:
        text = f"{self.embed_dim}, {self.num_heads}"
        for name, default in {"num_kv_heads": self.num_heads, "kdim": self.embed_dim, "vdim": self.embed_dim}.items():
            text += f", {name}={getattr(self, name)}" if getattr(self, name) != default else ""
        text += "" if "in_proj_bias" in self._shapes else ", bias=False"
        return f"MultiheadAttention({text}{', batch_first=True' if self.batch_first else ''})"


def _known(size: Any) -> int:
    if not isinstance(size, int):
        raise UnsupportedError(f"MultiheadAttention: the length of the cache is {size!r}: rotary positions need a known one")
    return size


def _swapped(x: Any) -> Any:
    """The first two axes the other way round."""
    return permute(x, (1, 0, 2)) if symbolic(x) else contiguous(x.swapaxes(0, 1), "MultiheadAttention")


def _squeezed(x: Any) -> Any:
    return squeeze(x, 0) if symbolic(x) else x[0]


def _added(mask: Any, what: str) -> Any:
    """A mask in which True means ignore, as values to be added: 0 and -infinity."""
    if symbolic(mask):
        # log(1 - 1) is -infinity, log(1 - 0) is 0.
        return log(subtract(1.0, mask)) if mask.dtype == np.bool_ else mask
    mask = as_mask(mask, "MultiheadAttention", what)
    return np.where(mask, np.float32(-np.inf), np.float32(0)) if mask.dtype == np.bool_ else mask
