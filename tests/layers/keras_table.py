"""How a user builds, with layers of this library, what each case of keras_layers.npz is in Keras.

By the label of the case: what makes the layer (it then takes Keras' list of weights by `load_keras`), and how it is called where
that is not ``layer(*inputs)``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import fastlayers as fl
from fastlayers import functional as F

from ..goldens.store import Case


class Entry(NamedTuple):
    make: Callable[[], Any]
    run: Callable[[Any, Case], Any]
    load: Callable[[Any, list[np.ndarray]], Any]


TABLE: dict[str, Entry] = {}


def call(layer: Any, case: Case) -> Any:
    return layer(*case["inputs"])


def load_keras(layer: Any, weights: list[np.ndarray]) -> None:
    layer.load_keras(weights)


def entry(label: str, make: Callable[[], Any], run: Callable[[Any, Case], Any] = call, load: Any = load_keras) -> None:
    assert label not in TABLE
    TABLE[label] = Entry(make, run, load)


def function(label: str, f: Callable[..., Any]) -> None:
    """A layer of Keras without weights that is a function here."""
    entry(label, fl.Sequential, lambda _, case: f(*case["inputs"]))


def moved(layer: Any, case: Case) -> Any:
    """A layer that has its channels after the batch, on channels-last images."""
    return F.to_channels_last(layer(F.to_channels_first(case["inputs"][0])))


# ---- affine layers ---------------------------------------------------------------------------------------------------------

entry("Dense", lambda: fl.Linear(7, 5, activation="relu"))
entry("Dense of rank 4", lambda: fl.Linear(6, 5))
entry("Dense without bias", lambda: fl.Sequential(fl.Linear(5, 4, bias=False), fl.Softmax(-1)))
entry("TimeDistributed Dense", lambda: fl.Linear(5, 3))
entry("Embedding", lambda: fl.Embedding(7, 3))

# ---- convolutions ----------------------------------------------------------------------------------------------------------

LAST: dict[str, Any] = {"layout": "nhwc"}
SAME: dict[str, Any] = {"layout": "nhwc", "padding": "same"}
entry("Conv1D same", lambda: fl.Conv1d(3, 4, 3, **SAME))
entry("Conv1D same stride 2", lambda: fl.Conv1d(3, 4, 3, 2, **SAME))
entry("Conv1D valid dilated groups", lambda: fl.Conv1d(4, 6, 3, dilation=2, groups=2, activation="tanh", **LAST))
entry("Conv1D causal", lambda: fl.Conv1d(3, 4, 3, dilation=2, padding=[(4, 0)], **LAST))
entry("Conv2D valid", lambda: fl.Conv2d(3, 4, (3, 2), activation="relu", **LAST))
entry("Conv2D same", lambda: fl.Conv2d(3, 4, (4, 3), **SAME))
entry("Conv2D same stride 2", lambda: fl.Conv2d(3, 4, 3, 2, **SAME))
entry("Conv2D same stride 3 kernel 2", lambda: fl.Conv2d(2, 3, 2, 3, **SAME))
entry("Conv2D same dilated", lambda: fl.Conv2d(2, 3, 3, dilation=(2, 1), bias=False, **SAME))
entry("Conv2D groups", lambda: fl.Conv2d(4, 6, 3, (2, 1), groups=2, **LAST))
entry("Conv2D channels first", lambda: fl.Conv2d(3, 4, 3, 2, padding="same"))
entry("Conv3D valid", lambda: fl.Conv3d(2, 3, (2, 3, 2), (1, 2, 1), **LAST))
entry("Conv3D same", lambda: fl.Conv3d(2, 4, 3, 2, groups=2, **SAME))
entry("DepthwiseConv1D", lambda: fl.DepthwiseConv1d(3, 3, 2, depth_multiplier=2, **SAME))
entry("DepthwiseConv2D", lambda: fl.DepthwiseConv2d(3, 3, 2, depth_multiplier=2, **SAME))
entry("DepthwiseConv2D valid", lambda: fl.DepthwiseConv2d(4, (3, 2), bias=False, activation="relu", **LAST))
entry("DepthwiseConv2D dilated", lambda: fl.DepthwiseConv2d(2, 3, depth_multiplier=3, dilation=2, **SAME))
entry("SeparableConv1D", lambda: fl.SeparableConv1d(3, 5, 3, 2, depth_multiplier=2, activation="relu", **SAME))
entry("SeparableConv2D", lambda: fl.SeparableConv2d(3, 5, 3, 2, depth_multiplier=2, **SAME))
entry("SeparableConv2D valid", lambda: fl.SeparableConv2d(3, 4, (2, 3), bias=False, activation="relu", **LAST))

# ---- transposed convolutions -----------------------------------------------------------------------------------------------

VALID: dict[str, Any] = {"layout": "nhwc", "padding": "valid"}
entry("Conv1DTranspose same", lambda: fl.ConvTranspose1d(3, 4, 3, 2, **SAME))
entry("Conv1DTranspose same stride 3 kernel 2", lambda: fl.ConvTranspose1d(3, 4, 2, 3, **SAME))
entry("Conv1DTranspose valid stride 4 kernel 2", lambda: fl.ConvTranspose1d(3, 4, 2, 4, **VALID))
entry("Conv1DTranspose dilated", lambda: fl.ConvTranspose1d(3, 4, 3, dilation=2, **SAME))
entry("Conv2DTranspose valid", lambda: fl.ConvTranspose2d(2, 3, (3, 2), (2, 1), activation="relu", **VALID))
entry("Conv2DTranspose same kernel 4", lambda: fl.ConvTranspose2d(2, 3, 4, 2, bias=False, **SAME))
entry("Conv2DTranspose same kernel 3 5", lambda: fl.ConvTranspose2d(2, 3, (3, 5), (2, 3), **SAME))
entry("Conv2DTranspose output padding", lambda: fl.ConvTranspose2d(2, 3, 3, 2, output_padding=(1, 0), **SAME))
entry("Conv2DTranspose valid output padding", lambda: fl.ConvTranspose2d(2, 3, 3, 2, output_padding=1, **VALID))
entry("Conv3DTranspose same", lambda: fl.ConvTranspose3d(2, 2, 3, 2, **SAME))
entry("Conv3DTranspose valid", lambda: fl.ConvTranspose3d(3, 2, (2, 1, 3), (1, 2, 2), **VALID))

# ---- recurrent layers ------------------------------------------------------------------------------------------------------

# What Keras 1 and 2 call hard_sigmoid; Keras 3 and torch have 1 / 6.
OLD_HARD_SIGMOID = ("hardsigmoid", {"alpha": 0.2, "beta": 0.5})


def states(case: Case, directions: int = 1) -> Any:
    """Keras' initial_state, a list of (n, h), as ours: (directions, n, h), in a pair for an LSTM. None if there is none."""
    given = case.get("initial_state")
    if given is None:
        return None
    kinds = len(given) // directions
    found = tuple(np.stack(given[k::kinds]) for k in range(kinds))
    return found if kinds == 2 else found[0]


def parts(state: Any) -> list[np.ndarray]:
    """Our state as Keras' list: forward h and c, backward h and c."""
    kinds = state if isinstance(state, tuple) else (state,)
    return [kind[d] for d in range(kinds[0].shape[0]) for kind in kinds]


def held(out: np.ndarray, mask: np.ndarray | None, before: np.ndarray) -> np.ndarray:
    """Keras repeats the last output where a step is masked (h before the first); here there are zeros."""
    if mask is None:
        return out
    out = out.copy()
    for t in range(out.shape[1]):
        assert not out[~mask[:, t], t].any()
        out[~mask[:, t], t] = (out[:, t - 1] if t else before)[~mask[:, t]]
    return out


def whole(layer: Any, case: Case, backwards: bool = False, zeros: bool = False) -> Any:
    """return_sequences and return_state, in one direction."""
    (x,), mask, state = case["inputs"], case.get("mask", [None])[0], states(case)
    if backwards:  # Keras returns the last step first, too
        x, mask = x[:, ::-1], None if mask is None else mask[:, ::-1]
    out, after = layer(x, state, mask=mask)
    h = parts(state)[0] if state is not None else np.zeros_like(parts(after)[0])
    return [out if zeros else held(out, mask, h), *parts(after)]


def last(layer: Any, case: Case, backwards: bool = False) -> Any:
    """return_sequences=False: the output of the last step that a sequence has."""
    return whole(layer, case, backwards)[1]


def both(layer: Any, case: Case) -> Any:
    """Bidirectional with return_sequences and return_state; where a step is masked, Keras too has zeros then."""
    out, after = layer(case["inputs"][0], states(case, 2), mask=case.get("mask", [None])[0])
    return [out, *parts(after)]


def both_last(merge: str | None) -> Callable[[Any, Case], Any]:
    """Bidirectional with return_sequences=False: the two final states, merged."""

    def run(layer: Any, case: Case) -> Any:
        _, after = layer(case["inputs"][0], mask=case.get("mask", [None])[0])
        ahead, back = after
        if merge is None:
            return [ahead, back]
        if merge == "concat":
            return np.concatenate([ahead, back], axis=-1)
        return {"sum": ahead + back, "mul": ahead * back, "ave": (ahead + back) / 2}[merge]

    return run


def first(layer: Any, case: Case) -> Any:
    """The sequence of outputs alone."""
    return layer(case["inputs"][0])[0]


def rnn(kind: str, units: int = 5, **kwargs: Any) -> Callable[[], Any]:
    return lambda: getattr(fl, kind)(4, units, batch_first=True, **kwargs)


for theirs, ours in (("SimpleRNN", "RNN"), ("LSTM", "LSTM"), ("GRU", "GRU")):
    entry(theirs, rnn(ours), last)
    entry(f"{theirs} whole", rnn(ours), whole)
    entry(f"{theirs} backwards", rnn(ours), lambda layer, case: whole(layer, case, backwards=True))
    entry(f"{theirs} without bias", rnn(ours, bias=False), whole)
    entry(f"{theirs} mask", rnn(ours), whole)
    entry(f"{theirs} mask zero output", rnn(ours), lambda layer, case: whole(layer, case, zeros=True))
    entry(f"{theirs} mask with holes", rnn(ours), last)
    entry(f"{theirs} mask at the left", rnn(ours), whole)
    entry(f"{theirs} mask backwards", rnn(ours), lambda layer, case: last(layer, case, backwards=True))
    if ours != "RNN":
        entry(f"{theirs} hard_sigmoid", rnn(ours, recurrent_activation="hardsigmoid"), whole)
        entry(f"{theirs} old hard_sigmoid", rnn(ours, recurrent_activation=OLD_HARD_SIGMOID), whole)
        entry(f"{theirs} activation relu", rnn(ours, activation="relu"), whole)
entry("SimpleRNN relu", rnn("RNN", nonlinearity="relu"), whole)
entry("GRU reset before", rnn("GRU", reset_after=False), whole)
entry("GRU reset before without bias", rnn("GRU", reset_after=False, bias=False), whole)
entry("GRU reset before hard_sigmoid", rnn("GRU", reset_after=False, recurrent_activation="hardsigmoid"), last)
for merge in ("concat", "sum", "mul", "ave", None):
    entry(f"Bidirectional LSTM {merge}", rnn("LSTM", bidirectional=True, merge=merge), first)
    entry(f"Bidirectional GRU {merge} last", rnn("GRU", bidirectional=True), both_last(merge))
entry("Bidirectional SimpleRNN", rnn("RNN", bidirectional=True), both)
entry("Bidirectional LSTM whole", rnn("LSTM", bidirectional=True), both)
entry("Bidirectional GRU reset before", rnn("GRU", bidirectional=True, reset_after=False), both)
entry("Bidirectional LSTM mask", rnn("LSTM", bidirectional=True), both)
entry("Bidirectional GRU mask last", rnn("GRU", bidirectional=True), both_last("sum"))


def step(cell: Any, case: Case) -> Any:
    """Keras returns the output, which is h, and the states."""
    after = cell(case["inputs"][0], tuple(case["states"]) if len(case["states"]) > 1 else case["states"][0])
    return [after[0], *after] if isinstance(after, tuple) else [after, after]


entry("SimpleRNNCell", lambda: fl.RNNCell(4, 5), step)
entry("LSTMCell", lambda: fl.LSTMCell(4, 5), step)
entry("GRUCell", lambda: fl.GRUCell(4, 5), step)
entry("GRUCell reset before", lambda: fl.GRUCell(4, 5, reset_after=False), step)


class Stack(fl.Layer):
    """Recurrent layers of different sizes, one after the other: the output of the last, and its states."""

    def __init__(self, *layers: Any) -> None:
        self.layers = layers

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x, state = layer(x)
        return x, state


def lstm_stack() -> Any:
    return Stack(fl.LSTM(4, 5, batch_first=True), fl.LSTM(5, 3, batch_first=True))


def gru_stack() -> Any:
    return Stack(fl.GRU(4, 3, batch_first=True, bidirectional=True), fl.GRU(6, 2, batch_first=True, bidirectional=True))


entry("stacked LSTM", lstm_stack, lambda net, case: net(case["inputs"][0])[1][0][-1])
entry("stacked cells", lstm_stack, first)
entry("stacked bidirectional GRU", gru_stack, lambda net, case: np.concatenate(list(net(case["inputs"][0])[1]), axis=-1))


def masking(layer: Any, case: Case) -> Any:
    """Keras' Masking: steps of which every feature is zero are masked."""
    (x,) = case["inputs"]
    mask = (x != 0).any(axis=-1)
    out, _ = layer(x, mask=mask)
    return held(out, mask, np.zeros_like(out[:, 0]))


entry("Masking LSTM", rnn("LSTM"), masking)


class MaskedNet(fl.Layer):
    """Embedding with mask_zero, GRU, Dense."""

    def __init__(self) -> None:
        self.embedding = fl.Embedding(7, 4, padding_idx=0)
        self.gru = fl.GRU(4, 3, batch_first=True)
        self.dense = fl.Linear(3, 2)

    def forward(self, ids: Any, mask: Any) -> Any:
        _, h = self.gru(self.embedding(ids), mask=mask)
        return self.dense(h[-1])


def with_mask(net: Any, case: Case) -> Any:
    (ids,) = case["inputs"]
    return net(ids, net.embedding.mask(ids))


entry("Embedding mask_zero GRU", MaskedNet, with_mask)

# ---- normalization ---------------------------------------------------------------------------------------------------------

# Keras' epsilon is 1e-3 by default, torch's and ours 1e-5.
entry("BatchNormalization", lambda: fl.BatchNorm2d(6, eps=1e-3, axis=-1))
entry("BatchNormalization without scale", lambda: fl.BatchNorm2d(6, eps=1e-3, axis=-1, scale=False))
entry("BatchNormalization without center", lambda: fl.BatchNorm2d(6, axis=-1, center=False))
entry("BatchNormalization bare", lambda: fl.BatchNorm1d(6, eps=1e-3, affine=False))
entry("BatchNormalization axis 1", lambda: fl.BatchNorm2d(4, eps=1e-3))
entry("LayerNormalization", lambda: fl.LayerNorm(6, eps=1e-3))
entry("LayerNormalization over two axes", lambda: fl.LayerNorm((2, 6)))
entry("LayerNormalization without scale", lambda: fl.LayerNorm(6, eps=1e-3, scale=False))
entry("LayerNormalization without center", lambda: fl.LayerNorm(6, eps=1e-3, bias=False))
entry("GroupNormalization", lambda: fl.GroupNorm(3, 6, eps=1e-3, axis=-1))
entry("GroupNormalization instance", lambda: fl.GroupNorm(6, 6, eps=1e-3, axis=-1))
entry("GroupNormalization without scale and center", lambda: fl.GroupNorm(2, 6, eps=1e-3, affine=False, axis=-1))
entry("RMSNormalization", lambda: fl.RMSNorm(6, eps=1e-6))
entry("RMSNormalization epsilon", lambda: fl.RMSNorm(6, eps=1e-2))

# ---- pooling ---------------------------------------------------------------------------------------------------------------


def pooled(name: str, *args: Any, **kwargs: Any) -> Callable[[], Any]:
    return lambda: getattr(fl, name)(*args, **kwargs)


for axes in (1, 2, 3):
    for theirs, ours in (("Max", "Max"), ("Average", "Avg")):
        entry(f"{theirs}Pooling{axes}D valid", pooled(f"{ours}Pool{axes}d", 2, **LAST))
        entry(f"{theirs}Pooling{axes}D same", pooled(f"{ours}Pool{axes}d", 3, 2, **SAME))
        entry(f"Global{theirs}Pooling{axes}D", pooled(f"Global{ours}Pool", **LAST))
        entry(f"Adaptive{theirs}Pooling{axes}D", pooled(f"Adaptive{ours}Pool{axes}d", (3, 2, 2)[:axes], **LAST))
entry("MaxPooling2D stride 1", lambda: fl.MaxPool2d((2, 3), 1, **SAME))
entry("AveragePooling2D stride 3", lambda: fl.AvgPool2d(2, 3, **SAME))
entry("AveragePooling2D channels first", lambda: fl.AvgPool2d(3, 2, padding="same"))
entry("GlobalAveragePooling2D keepdims", lambda: fl.GlobalAvgPool(keepdims=True, layout="nhwc"))
entry(
    "GlobalAveragePooling1D mask", lambda: fl.MeanOverTime(), lambda layer, case: layer(case["inputs"][0], mask=case["mask"][0])
)


class MaskedMean(fl.Layer):
    """Embedding with mask_zero, GlobalAveragePooling1D."""

    def __init__(self) -> None:
        self.embedding = fl.Embedding(7, 4, padding_idx=0)

    def forward(self, ids: Any, mask: Any) -> Any:
        return F.mean_over_time(self.embedding(ids), mask=mask)


entry("Embedding mask_zero pool", MaskedMean, with_mask)

# ---- attention -------------------------------------------------------------------------------------------------------------


def attend(layer: Any, case: Case, **kwargs: Any) -> Any:
    """Keras' arguments: a list of query, value and key, masks of queries and values."""
    masks = case.get("mask")
    if masks is not None:
        masks = [None] * (2 - len(masks)) + masks
    return layer(case["inputs"], masks, return_attention_scores=len(case["outputs"]) > 1, **kwargs)


def attend_causal(layer: Any, case: Case) -> Any:
    return attend(layer, case, use_causal_mask=True)


entry("Attention", lambda: fl.Attention(), attend)
entry("Attention of two inputs", lambda: fl.Attention(), attend)
entry("Attention scaled", lambda: fl.Attention(use_scale=True), attend)
entry("Attention concat", lambda: fl.Attention(score_mode="concat"), attend)
entry("Attention concat scaled", lambda: fl.Attention(score_mode="concat", use_scale=True), attend)
entry("Attention masks", lambda: fl.Attention(), attend)
entry("Attention all masked", lambda: fl.Attention(), attend)
entry("Attention causal", lambda: fl.Attention(use_scale=True), attend_causal)
entry("AdditiveAttention", lambda: fl.AdditiveAttention(4), attend)
entry("AdditiveAttention unscaled", lambda: fl.AdditiveAttention(4, use_scale=False), attend)
entry("AdditiveAttention masks", lambda: fl.AdditiveAttention(4), attend)
entry("AdditiveAttention causal", lambda: fl.AdditiveAttention(4), attend_causal)

# ---- multi-head attention --------------------------------------------------------------------------------------------------


def heads(layer: Any, case: Case, **kwargs: Any) -> Any:
    """Keras' order of arguments is query, value, key; its scores are weights of every head, and True in its masks is seen."""
    query, value = case["inputs"]
    (key,) = case.get("key", [value])
    mask = case.get("attention_mask")
    if mask is not None:
        kwargs["attn_mask"] = np.repeat(~mask[0], layer.num_heads, axis=0)
    seen = case.get("value_mask")
    if seen is not None:
        kwargs["key_padding_mask"] = ~seen[0]
    out, weights = layer(query, key, value, average_attn_weights=False, **kwargs)
    return [out, weights] if len(case["outputs"]) > 1 else out


def causal(layer: Any, case: Case) -> Any:
    return heads(layer, case, is_causal=True)


def masked_queries(layer: Any, case: Case) -> Any:
    """Keras' query_mask: rows that nobody reads; here no such mask is needed, and they are left out of the comparison."""
    return np.where(case["query_mask"][0][:, :, None], heads(layer, case), case["outputs"][0])


def nothing_seen(layer: Any, case: Case) -> Any:
    """A sequence without any key: Keras takes the mean of the values it should not see, here there are zeros."""
    out, weights = heads(layer, case)
    assert not weights[1].any()
    np.testing.assert_array_equal(out[1], np.broadcast_to(layer.out_proj.bias, out[1].shape))
    return [np.stack([got[0], want[1]]) for got, want in zip((out, weights), case["outputs"], strict=True)]


def mha(embed_dim: int, num_heads: int, **kwargs: Any) -> Callable[[], Any]:
    return lambda: fl.MultiheadAttention(embed_dim, num_heads, batch_first=True, **kwargs)


class OtherOutput(fl.Layer):
    """Keras' output_shape: a result of another size than the queries, which our layer does not have; in parts."""

    def __init__(self) -> None:
        self.q, self.k, self.v, self.out = fl.Linear(8, 8), fl.Linear(6, 8), fl.Linear(6, 8), fl.Linear(8, 5)

    def forward(self, query: Any, value: Any) -> Any:
        q, k, v = self.q(query), self.k(value), self.v(value)
        return self.out(F.scaled_dot_product_attention(q, k, v, num_heads=2))


def flat_kernels(layer: Any, weights: list[np.ndarray]) -> None:
    """Keras' kernels (features, heads, width) and biases (heads, width) with heads next to each other, as Dense has them."""
    wanted = [shape[::-1] for shape in layer.tensor_shapes().values()]
    layer.load_keras([w.reshape(shape) for w, shape in zip(weights, wanted, strict=True)])


entry("MultiHeadAttention output size", OtherOutput, load=flat_kernels)
OTHER = {"kdim": 6, "vdim": 6}  # the size of what is attended to, where it is not that of the queries
entry("MultiHeadAttention", mha(8, 2), heads)
entry("MultiHeadAttention cross", mha(8, 2, kdim=7, vdim=6, head_dim=3, v_head_dim=5), heads)
entry("MultiHeadAttention without bias", mha(8, 4, bias=False, **OTHER), heads)
entry("MultiHeadAttention mask", mha(8, 2, **OTHER), heads)
entry("MultiHeadAttention masks", mha(8, 2, **OTHER), masked_queries)
entry("MultiHeadAttention all masked", mha(8, 2, **OTHER), nothing_seen)
entry("MultiHeadAttention causal", mha(8, 2), causal)
entry("GroupQueryAttention", mha(8, 6, head_dim=4, num_kv_heads=2, **OTHER), heads)
entry("GroupQueryAttention causal", mha(8, 4, head_dim=4, num_kv_heads=2, bias=False), causal)

# ---- weights whose shapes do not tell their axes apart ---------------------------------------------------------------------

entry("square Dense", lambda: fl.Linear(4, 4))
entry("square Conv2D", lambda: fl.Conv2d(3, 3, 3, **LAST))
entry("square Conv2DTranspose", lambda: fl.ConvTranspose2d(3, 3, 3, 2, **VALID))
entry("square DepthwiseConv2D", lambda: fl.DepthwiseConv2d(3, 3, depth_multiplier=3, **LAST))
entry("square SimpleRNN", lambda: fl.RNN(4, 4, batch_first=True), whole)
entry("square LSTM", lambda: fl.LSTM(8, 2, batch_first=True), whole)
entry("square GRU", lambda: fl.GRU(6, 2, batch_first=True), whole)
entry("square MultiHeadAttention", mha(3, 3, head_dim=3), heads)

# ---- awkward sizes ---------------------------------------------------------------------------------------------------------

entry("Conv2D same of a small image", lambda: fl.Conv2d(2, 3, 5, 3, **SAME))
entry("DepthwiseConv2D of one window", lambda: fl.DepthwiseConv2d(2, (4, 3), depth_multiplier=2, **LAST))
entry("Conv1DTranspose same kernel 1 stride 3", lambda: fl.ConvTranspose1d(3, 2, 1, 3, **SAME))
entry("Conv1DTranspose same of one step", lambda: fl.ConvTranspose1d(3, 2, 5, 2, **SAME))
entry("Conv1DTranspose same kernel 6 stride 4", lambda: fl.ConvTranspose1d(3, 2, 6, 4, **SAME))
entry("MaxPooling2D same of a small image", lambda: fl.MaxPool2d(4, 3, **SAME))
entry("AveragePooling2D same of a small image", lambda: fl.AvgPool2d(4, 3, **SAME))
for theirs, ours in (("SimpleRNN", "RNN"), ("LSTM", "LSTM"), ("GRU", "GRU")):
    entry(f"{theirs} of one step", rnn(ours), last)
entry("Attention of one key", lambda: fl.Attention(), attend)

# ---- shapes ----------------------------------------------------------------------------------------------------------------

function("ZeroPadding1D", lambda x: F.pad(x, (0, 0, 1, 2)))
function("ZeroPadding2D", lambda x: F.pad(x, (0, 0, 3, 0, 1, 2)))
function("ZeroPadding3D", lambda x: F.pad(x, (0, 0, 1, 1, 1, 1, 1, 1)))
entry("Flatten", lambda: fl.Flatten())
# Keras' layer brings its input to channels-last order before it flattens.
entry("Flatten channels first", lambda: fl.Sequential(fl.Permute((0, 2, 3, 1)), fl.Flatten()))
entry("Reshape", lambda: fl.Reshape((2, 6, -1)))
entry("Permute", lambda: fl.Permute((0, 3, 1, 2)))
entry("Flatten into Dense", lambda: fl.Sequential(fl.Flatten(), fl.Linear(24, 3)))
function("Add", F.add)
function("Subtract", F.subtract)
function("Multiply", F.multiply)
function("Cropping1D", lambda x: F.pad(x, (0, 0, -1, -2)))
function("Cropping2D", lambda x: F.pad(x, (0, 0, 0, -2, -1, 0)))
function("Concatenate", lambda a, b: F.concat([a, b], -1))

entry("UpSampling1D", lambda: fl.Upsample(scale_factor=3, layout="nhwc"))
entry("UpSampling2D nearest", lambda: fl.Upsample(scale_factor=(2, 3), layout="nhwc"))
entry("UpSampling2D bilinear", lambda: fl.Upsample(scale_factor=(2, 3), mode="bilinear", layout="nhwc"))
entry("UpSampling3D", lambda: fl.Upsample(scale_factor=2, layout="nhwc"))
entry("Dropout", lambda: fl.Dropout(0.5))
entry("SpatialDropout1D", lambda: fl.Dropout1d(0.5))

# ---- activations -----------------------------------------------------------------------------------------------------------

for name, ours in {
    "celu": "ELU", "elu": "ELU", "gelu": "GELU", "hard_sigmoid": "Hardsigmoid", "hard_silu": "Hardswish",
    "hard_swish": "Hardswish", "linear": "Identity", "log_softmax": "LogSoftmax", "mish": "Mish", "relu": "ReLU",
    "relu6": "ReLU6", "selu": "SELU", "sigmoid": "Sigmoid", "silu": "SiLU", "softmax": "Softmax", "softplus": "Softplus",
    "softsign": "Softsign", "swish": "SiLU", "tanh": "Tanh",
}.items():  # fmt: skip
    entry(f"activation {name}", getattr(fl, ours))
function("activation exponential", F.exp)
entry("activation leaky_relu", lambda: fl.LeakyReLU(0.2))
entry("activation gelu tanh", lambda: fl.GELU(approximate="tanh"))
function("activation old hard_sigmoid", lambda x: F.hardsigmoid(x, alpha=0.2, beta=0.5))
entry("LeakyReLU", lambda: fl.LeakyReLU(0.3))
entry("ReLU of 6", lambda: fl.ReLU6())
entry("ReLU with slope", lambda: fl.LeakyReLU(0.1))
entry("ELU", lambda: fl.ELU(0.7))
entry("Softmax axis 1", lambda: fl.Softmax(1))
entry("GLU", lambda: fl.GLU())


def slopes(layer: Any, weights: list[np.ndarray]) -> None:
    """Keras' slopes have the shape of the input, 1 along shared axes; ours one axis."""
    layer.load_state_dict({"weight": weights[0].ravel()})


entry("PReLU shared", lambda: fl.PReLU(5), moved, slopes)


def sloped(parts: dict[str, np.ndarray], case: Case) -> np.ndarray:
    """A slope for every number of x, or for all but one axis."""
    (x,) = case["inputs"]
    return F.subtract(F.relu(x), F.multiply(parts["alpha"], F.relu(-x)))


for label in ("PReLU", "PReLU shared over one"):
    entry(label, dict, sloped, lambda parts, weights: parts.update(alpha=weights[0]))
