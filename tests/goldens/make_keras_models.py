"""Writes keras_models_3.npz or keras_models_2.npz: files of small models, as Keras itself saves them, with inputs and outputs.

    python tests/goldens/make_keras_models.py        needs keras 3 (with a backend), or tensorflow 2.15 with its keras 2

Every model is in one file of the native format (.keras) and, where `LEGACY` says so, in one of HDF5 (.h5). Keras 2 writes HDF5
for all and .keras for some. Weights and inputs are multiples of 1/64, which compress well.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "torch")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

try:
    import keras
except ImportError:
    from tensorflow import keras

L = keras.layers
K3 = keras.__version__.startswith("3")
HERE = Path(__file__).parent
RNG = np.random.default_rng(0)
Built = tuple[Any, list[np.ndarray]]
CASES: dict[str, tuple[Callable[[], Built], str]] = {}


def case(where: str = "23", legacy: bool = False) -> Callable[[Callable[[], Built]], Callable[[], Built]]:
    """`where`: which Kerases have what the case needs; `legacy`: whether Keras 3 writes it in HDF5 as well."""

    def put(function: Callable[[], Built]) -> Callable[[], Built]:
        CASES[function.__name__] = (function, where + ("h" if legacy else ""))
        return function

    return put


def grid(*shape: int, scale: float = 0.5) -> np.ndarray:
    return np.asarray(np.round(RNG.standard_normal(shape) * scale * 64) / 64, np.float32)


def sequential(*layers: Any, shape: tuple[int | None, ...], name: str = "sequential", **options: Any) -> Any:
    return keras.Sequential([keras.Input(shape, **options) if K3 else L.InputLayer(shape, **options), *layers], name=name)


@case()
def dense() -> Built:
    hidden = [
        L.Dense(5, activation=a) for a in ("relu", "gelu", "selu", "swish", "softplus", "hard_sigmoid", "elu", "softsign", "tanh")
    ]
    return sequential(*hidden, L.Dense(4, use_bias=False), L.Activation("softmax"), shape=(7,)), [grid(3, 7)]


@case()
def activations() -> Built:
    x = i = keras.Input((6,), name="given")
    slopes = (
        L.LeakyReLU(),
        L.ELU(0.7),
        L.ReLU(1.0, 0.1, 0.2),
        L.ReLU(0.5),
        L.ReLU(None, 0.2),
        L.ReLU(6.0, 0.0, 0.3),
        L.PReLU(),
        L.Softmax(),
    )
    parts = [f(x) for f in slopes]
    parts += [
        L.Activation(a)(x)
        for a in ("exponential", "hard_sigmoid", "linear", "sigmoid", "selu", "gelu", "mish" if K3 else "relu6")
    ]
    return keras.Model(i, L.Concatenate(name="all")(parts)), [grid(4, 6, scale=2)]


@case(legacy=True)
def image() -> Built:
    i = keras.Input((11, 10, 3), name="image")
    x = L.Conv2D(8, 3, padding="same", use_bias=False)(i)
    x = L.ReLU(6.0)(L.BatchNormalization()(x))
    x = L.DepthwiseConv2D(3, strides=2, padding="same")(x)
    x = L.BatchNormalization(scale=False)(x)
    y = L.SeparableConv2D(8, 3, padding="same", activation="relu")(x)
    x = L.Add()([x, y])
    x = L.MaxPooling2D(2, padding="same")(x)
    z = L.Conv2D(6, (3, 2), strides=(2, 1), dilation_rate=1, groups=2)(L.ZeroPadding2D(((1, 0), (1, 2)))(x))
    z = L.Conv2D(4, 3, dilation_rate=2, padding="same", activation="tanh")(z)
    z = L.AveragePooling2D(2, strides=1, padding="same")(z)
    return keras.Model(i, [L.Dense(3)(L.GlobalAveragePooling2D()(z)), L.GlobalMaxPooling2D(keepdims=True)(x)]), [
        grid(2, 11, 10, 3)
    ]


@case()
def convolutions() -> Built:
    one, three = keras.Input((12, 3), name="one"), keras.Input((5, 6, 4, 2), name="three")
    x = L.Conv1D(4, 3, padding="causal", dilation_rate=2)(one)
    x = L.Conv1D(5, 4, strides=2, padding="same", activation="relu")(x)
    x = L.SeparableConv1D(4, 3, depth_multiplier=2, padding="same")(x)
    x = L.UpSampling1D(2)(L.Cropping1D((1, 2))(L.ZeroPadding1D(2)(x)))
    x = L.MaxPooling1D(2)(x)
    y = L.Conv3D(3, (2, 3, 2), padding="same", strides=(1, 2, 1))(three)
    y = L.AveragePooling3D(2, padding="same")(L.UpSampling3D((1, 2, 1))(L.ZeroPadding3D(1)(y)))
    y = L.Cropping3D(((1, 0), (0, 1), (1, 1)))(y)
    d = L.DepthwiseConv1D(3, depth_multiplier=2)(x)
    return keras.Model([one, three], [d, y, L.GlobalAveragePooling1D()(x), L.GlobalMaxPooling3D()(y)]), [
        grid(2, 12, 3),
        grid(1, 5, 6, 4, 2),
    ]


@case()
def transposed() -> Built:
    i = keras.Input((4, 5, 3), name="image")
    j = keras.Input((6, 2), name="series")
    parts = [
        L.Conv2DTranspose(4, 3, strides=2, padding="same")(i),
        L.Conv2DTranspose(2, (4, 3), strides=(2, 3), padding="same", activation="relu")(i),
        L.Conv2DTranspose(2, 3, strides=2)(i),
        L.Conv2DTranspose(2, 2, strides=3, use_bias=False)(i),
        L.Conv2DTranspose(2, 3, strides=2, padding="same", output_padding=(1, 0))(i),
        L.Conv2DTranspose(2, 3, dilation_rate=2)(i),
        L.Conv1DTranspose(3, 4, strides=2, padding="same")(j),
        L.Conv3DTranspose(2, 2, strides=2)(L.Reshape((2, 2, 5, 3))(i)),
    ]
    return keras.Model([i, j], parts), [grid(2, 4, 5, 3), grid(2, 6, 2)]


@case()
def channels_first() -> Built:
    kw = {"data_format": "channels_first"}
    i = keras.Input((3, 8, 9), name="image")
    # Convolutions with channels first have no kernels on the CPU in TensorFlow.
    x = L.Conv2D(4, 3, **kw)(i) if K3 else L.ZeroPadding2D(1, **kw)(i)
    x = L.MaxPooling2D(2, **kw)(x) if K3 else L.Cropping2D(1, **kw)(x)
    x = L.BatchNormalization(axis=1)(x)
    x = L.UpSampling2D(2, **kw)(L.ZeroPadding2D((1, 2), **kw)(x))
    return keras.Model(i, [L.Flatten(**kw)(x), L.GlobalAveragePooling2D(**kw)(x)]), [grid(2, 3, 8, 9)]


@case(legacy=True)
def normalizations() -> Built:
    i = keras.Input((5, 6, 8), name="x")
    n = L.Normalization(name="learnt")
    n.adapt(grid(20, 5, 6, 8, scale=2))
    parts = [
        L.LayerNormalization()(i), L.LayerNormalization(axis=[2, 3] if K3 else [1, 2], center=False)(i),
        L.GroupNormalization(4)(i),
        L.GroupNormalization(-1, scale=False)(i), L.UnitNormalization()(i), L.UnitNormalization(axis=(1, 2))(i),
        L.BatchNormalization(axis=1, center=False)(i), n(i), L.Normalization(axis=None, mean=0.5, variance=2.0)(i),
        L.Normalization(mean=[0.5] * 8, variance=[2.0] * 8, invert=True)(i), L.Rescaling(0.5, -1.0)(i),
        L.SpatialDropout2D(0.5)(i),
    ]  # fmt: skip
    if K3:
        parts += [L.RMSNormalization()(i), L.LayerNormalization(rms_scaling=True)(i), L.RMSNormalization(axis=[2, 3])(i)]
    return keras.Model(i, parts), [grid(2, 5, 6, 8)]


@case()
def merging() -> Built:
    a, b, c = keras.Input((4, 6), name="a"), keras.Input((4, 6), name="b"), keras.Input((6,), name="c")
    parts = [f()([a, b]) for f in (L.Add, L.Subtract, L.Multiply, L.Average, L.Maximum, L.Minimum)]
    parts += [
        L.Concatenate(axis=1)([a, b]),
        L.Dot(2)([a, b]),
        L.Dot((1, 1), normalize=True)([a, b]),
        L.Add()([a, c]),
        L.Dot(1)([c, c]),
    ]
    parts += [L.Permute((2, 1))(a), L.RepeatVector(3)(c), L.Reshape((-1, 3))(a), L.Flatten()(b), L.Reshape((2, 2, 6))(b)]
    return keras.Model([a, b, c], parts), [grid(2, 4, 6), grid(2, 4, 6), grid(2, 6)]


@case(legacy=True)
def recurrent() -> Built:
    i, h = keras.Input((6, 4), name="x"), keras.Input((5,), name="h")
    parts = [
        L.LSTM(5)(i), L.GRU(5)(i), L.SimpleRNN(5)(i), L.LSTM(3, return_sequences=True, go_backwards=True)(i),
        *L.LSTM(5, return_sequences=True, return_state=True)(i),
        *L.GRU(5, return_state=True, reset_after=False)(i, initial_state=h),
        L.GRU(3, recurrent_activation="hard_sigmoid", activation="relu", use_bias=False)(i),
        L.SimpleRNN(2, activation="relu", go_backwards=True)(i),
        L.LSTM(4, unit_forget_bias=False)(i, initial_state=[L.Dense(4)(h), L.Dense(4)(h)]),
        L.RNN(L.StackedRNNCells([L.LSTMCell(3), L.GRUCell(2)]), return_sequences=True)(i), L.RNN(L.SimpleRNNCell(3))(i),
    ]  # fmt: skip
    return keras.Model([i, h], parts), [grid(2, 6, 4), grid(2, 5)]


@case()
def bidirectional() -> Built:
    i = keras.Input((6, 4), name="x")
    both = L.Bidirectional
    parts = [
        both(L.LSTM(3))(i),
        both(L.GRU(3, return_sequences=True), merge_mode="sum")(i),
        both(L.SimpleRNN(3), merge_mode="mul")(i),
    ]
    parts += [
        *both(L.LSTM(2, return_sequences=True), merge_mode=None)(i),
        *both(L.GRU(2, return_state=True), merge_mode="ave")(i),
    ]
    parts += [both(L.LSTM(2), backward_layer=L.LSTM(3, go_backwards=True))(i)]
    return keras.Model(i, parts), [grid(2, 6, 4)]


def words() -> np.ndarray:
    return np.array([[3, 1, 4, 0, 0, 0], [5, 9, 2, 6, 5, 3], [0, 7, 0, 8, 0, 0]])


@case(legacy=True)
def masks() -> Built:
    i, f = keras.Input((6,), name="words", dtype="int32"), keras.Input((6, 4), name="frames")
    e = L.Embedding(10, 4, mask_zero=True)(i)
    m = L.Masking(0.0)(f)
    parts = [
        L.LSTM(3)(e), L.GRU(3, return_sequences=True)(e), L.LSTM(3, go_backwards=True, return_sequences=True)(e),
        L.Bidirectional(L.LSTM(3, return_sequences=True))(e), L.Bidirectional(L.GRU(2))(m),
        L.GlobalAveragePooling1D()(L.Dropout(0.1)(e)),
        L.GlobalAveragePooling1D()(L.TimeDistributed(L.Dense(3))(m)), L.LSTM(2)(L.Add()([e, m])),
        L.LSTM(2)(L.Dense(3, activation="relu")(m)),
        L.GRU(3)(e, initial_state=L.Dense(3)(L.GlobalMaxPooling1D()(f))),
        L.LSTM(3, return_sequences=True)(m, initial_state=[L.Dense(3)(L.Flatten()(f))] * 2),
        L.SimpleRNN(2)(L.LSTM(3, return_sequences=True)(m)), L.GRU(2)(L.Concatenate()([e, m])),
        L.LSTM(2)(L.Concatenate(axis=1)([e, f if K3 else m])), m,
    ]  # fmt: skip
    x = grid(3, 6, 4)
    x[0, 4:], x[2, 2], x[2, 5] = 0, 0, 0
    return keras.Model([i, f], parts), [words(), x]


@case()
def attention() -> Built:
    q, v = keras.Input((5, 6), name="q"), keras.Input((7, 6), name="v")
    parts = [
        L.Attention()([q, v]), L.Attention(use_scale=True)([q, v, L.Dense(6)(v)]),
        L.Attention(score_mode="concat", use_scale=True)([q, v]),
        L.AdditiveAttention()([q, v]), L.AdditiveAttention(use_scale=False)([q, v]), L.MultiHeadAttention(2, 3)(q, v),
        L.MultiHeadAttention(3, 2, value_dim=4, output_shape=5, use_bias=False)(q, v, key=L.Dense(6)(v)),
        L.Attention()([q, q], use_causal_mask=True),
        L.MultiHeadAttention(2, 3)(q, q, use_causal_mask=True), *L.MultiHeadAttention(2, 3)(q, v, return_attention_scores=True),
    ]  # fmt: skip
    if K3:
        parts.append(L.GroupQueryAttention(3, 4, 2)(q, v))
        parts.append(L.GroupQueryAttention(3, 4, 1)(q, q, use_causal_mask=True))
    return keras.Model([q, v], parts), [grid(2, 5, 6), grid(2, 7, 6)]


@case()
def masked_attention() -> Built:
    i, m = keras.Input((6,), name="words", dtype="int32"), keras.Input((6, 6), name="allowed", dtype="bool" if K3 else "int32")
    e = L.Embedding(10, 4, mask_zero=True)(i)
    plain, own = L.Embedding(10, 4)(i), L.Embedding(10, 4, mask_zero=True)(i)  # MultiHeadAttention takes masks away from others
    parts = [
        L.GlobalAveragePooling1D()(L.MultiHeadAttention(2, 3)(own, own)), L.GlobalAveragePooling1D()(L.Attention()([e, e])),
        L.Attention()([plain, e]), L.AdditiveAttention()([plain, e]),
        L.MultiHeadAttention(2, 3)(plain, plain, attention_mask=m),
        L.Softmax()(L.Dot(2)([plain, plain]), mask=m),
    ]  # fmt: skip
    allowed = np.tril(np.ones((3, 6, 6), bool))
    return keras.Model([i, m], parts), [words(), allowed if K3 else allowed.astype(np.int32)]


@case(legacy=True)
def nested() -> Built:
    inner = sequential(L.Dense(5, activation="relu"), L.BatchNormalization(trainable=False), L.Dense(3), shape=(4,), name="inner")
    x, y = keras.Input((4,), name="x1"), keras.Input((4,), name="y1")
    shared = L.Dense(4, name="shared")
    two = keras.Model([x, y], [L.Add()([shared(x), shared(y)]), L.Multiply()([x, y])], name="two")
    a, b = keras.Input((4,), name="a"), keras.Input((4,), name="b")
    s, p = two([a, b])
    t, _ = two([b, inner_dense := L.Dense(4, name="again")(s)])
    out = L.Concatenate()([inner(s), inner(p), t, inner_dense])
    outer = keras.Model([a, b], [out, inner(t)], name="outer")
    top = [keras.Input((4,), name="first"), keras.Input((4,), name="second")]
    return keras.Model(top, outer(top)), [grid(3, 4), grid(3, 4)]


@case()
def time_distributed() -> Built:
    i = keras.Input((3, 8, 7, 2), name="frames")
    net = sequential(
        L.Conv2D(4, 3, activation="relu"), L.BatchNormalization(), L.Flatten(), L.Dense(5), shape=(8, 7, 2), name="net"
    )
    x = L.TimeDistributed(net)(i)
    y = L.TimeDistributed(L.Conv2D(2, 3))(i)
    w = keras.Input((3, 4), name="words", dtype="int32")
    z = L.TimeDistributed(L.LSTM(3))(L.Embedding(9, 2, mask_zero=True)(w))
    v = L.TimeDistributed(L.LSTM(2, return_sequences=True))(L.Embedding(9, 3)(w))
    parts = [L.LSTM(4)(x), y, L.TimeDistributed(L.GlobalMaxPooling2D())(y), z, v]
    return keras.Model([i, w], parts), [
        grid(2, 3, 8, 7, 2),
        np.array([[[1, 2, 3, 0]] * 3, [[4, 0, 5, 6], [1, 1, 0, 0], [7, 8, 2, 3]]]),
    ]


@case()
def free_sizes() -> Built:
    i, s = keras.Input((None, None, 3), name="image"), keras.Input((None, 4), name="series")
    x = L.Conv2D(4, 3, strides=2, padding="same")(i)
    x = L.MaxPooling2D(3, strides=2, padding="same")(x)
    x = L.Conv2DTranspose(3, 3, strides=2, padding="same")(x)
    y = L.Bidirectional(L.LSTM(3, return_sequences=True))(s)
    y = L.Concatenate()([y, L.TimeDistributed(L.Dense(2))(y)])
    y = L.MultiHeadAttention(2, 3)(y, y, use_causal_mask=True)
    y = L.Conv1D(4, 3, padding="causal")(y)
    return keras.Model([i, s], [x, y, L.UpSampling2D(2)(x), L.GlobalMaxPooling1D()(y)]), [grid(2, 9, 7, 3), grid(2, 5, 4)]


@case()
def further() -> Built:
    i, n = keras.Input((6, 4), name="x"), keras.Input((8, 6, 3), name="image")
    parts = [
        L.EinsumDense("abc,cd->abd", output_shape=(6, 7), bias_axes="d")(i),
        L.EinsumDense("abc,bcd->abd", output_shape=(6, 2))(i),
        L.EinsumDense("abc,cde->abde", output_shape=(6, 2, 3), bias_axes="de", activation="relu")(i),
        L.EinsumDense("...x,xy->...y", output_shape=5)(i), L.SpectralNormalization(L.Conv2D(4, 3))(n), L.CenterCrop(4, 3)(n),
        L.UpSampling2D(2, interpolation="bilinear")(n), L.Resizing(5, 9)(n), L.Identity()(i) if K3 else L.Dropout(0.3)(i),
        L.ConvLSTM2D(2, (2, 3), padding="same", return_sequences=True)(L.Reshape((3, 2, 2, 2))(i)),
        L.ConvLSTM2D(2, 2)(L.Reshape((3, 2, 2, 2))(i)),
        L.CategoryEncoding(5, output_mode="multi_hot")(L.Discretization([-0.5, 0.0, 0.5])(L.GlobalMaxPooling1D()(i))),
    ]  # fmt: skip
    if K3:
        parts += [
            L.AdaptiveAveragePooling2D((3, 2))(n),
            L.AdaptiveMaxPooling1D(4)(i),
            L.UpSampling2D(2)(n),
            L.Resizing(11, 4, "nearest")(n),
        ]
        for table in (L.ReversibleEmbedding(7, 4, logit_soft_cap=2.0), L.ReversibleEmbedding(7, 4, tie_weights=False)):
            parts += [table(keras.ops.argmax(i, axis=-1)), table(i, reverse=True)]
    return keras.Model([i, n], parts), [grid(2, 6, 4), grid(2, 8, 6, 3)]


@case("3", legacy=True)
def operations() -> Built:
    o = keras.ops
    x, y = keras.Input((4, 6), name="x"), keras.Input((4, 6), name="y")
    p = [
        x + y, x * 2 - y, 1.0 / (o.abs(x) + 1), -x, o.exp(x) ** 0.5, o.maximum(x, 0.25), x > y, o.where(x > 0, x, y),
        o.clip(x, -0.5, 0.5),
        o.mean(x, axis=-1, keepdims=True), o.sum(x, axis=(1, 2)), o.max(x, axis=1), o.var(x, axis=1), o.std(x, axis=-1),
        o.argmax(x, axis=-1),
        o.matmul(x, o.transpose(y, (0, 2, 1))), o.einsum("abc,adc->abd", x, y), o.reshape(x, (-1, 3, 8)),
        o.concatenate([x, y], axis=1),
        o.stack([x, y], axis=2), *o.split(x, 2, axis=-1), o.expand_dims(x, -1), o.squeeze(x[:, :1], 1), x[:, 1:3, ::2],
        x[..., -1], x[:, None, 2],
        o.relu(x), o.gelu(x), o.silu(x), o.softmax(x, axis=1), o.leaky_relu(x), o.log_softmax(x), o.hard_sigmoid(x),
        o.sigmoid(x), o.softplus(x),
        o.tile(x, (1, 2, 1)), o.repeat(x, 2, axis=1), o.flip(x, axis=1), o.pad(x, ((0, 0), (1, 2), (0, 1))),
        o.take(x, [0, 2], axis=1),
        o.cumsum(x, axis=1), o.swapaxes(x, 1, 2), o.moveaxis(x, 1, 2), o.cast(x > 0, "float32"),
        o.one_hot(o.argmax(x, axis=-1), 6),
        o.logical_and(x > 0, y > 0), o.any(x > 1, axis=-1), o.norm(x, axis=-1), o.normalize(x), o.roll(x, 2, axis=1),
        o.square(x), o.rsqrt(o.abs(x) + 1),
        o.zeros_like(x), o.logsumexp(x, axis=-1), o.floor(x), o.sign(x), o.log1p(o.abs(x)), x // 0.5, o.top_k(x, 2)[0],
        o.squareplus(x), o.tril(x),
        o.log_sigmoid(x), o.hard_tanh(x), o.soft_shrink(x), o.hard_shrink(x), o.tanh_shrink(x), o.glu(x), o.celu(x),
        o.sparse_plus(x), o.erf(x),
        o.image.resize(o.reshape(x, (-1, 4, 3, 2)), (8, 6)), o.max_pool(o.reshape(x, (-1, 4, 3, 2)), 2), o.power(o.abs(x), 1.5),
        o.threshold(x, 0.1, 2.0),
    ]  # fmt: skip
    return keras.Model({"x": x, "y": y}, p), [grid(2, 4, 6), grid(2, 4, 6)]


@case("2")
def functions() -> Built:
    import tensorflow as tf

    x, y = keras.Input((4, 6), name="x"), keras.Input((4, 6), name="y")
    p = [
        x + y, x * 2 - y, 1.0 / (tf.abs(x) + 1), -x, tf.exp(x) ** 0.5, tf.maximum(x, 0.25), tf.where(x > 0, x, y),
        tf.clip_by_value(x, -0.5, 0.5),
        tf.reduce_mean(x, axis=-1, keepdims=True), tf.reduce_sum(x, axis=[1, 2]), tf.reduce_max(x, 1),
        tf.matmul(x, y, transpose_b=True),
        tf.reshape(x, (-1, 3, 8)), tf.concat([x, y], axis=1), tf.stack([x, y], axis=2), *tf.split(x, 2, axis=-1),
        tf.expand_dims(x, -1),
        tf.squeeze(x[:, :1], 1), x[:, 1:3, ::2], x[..., -1], x[:, tf.newaxis, 2], tf.nn.relu(x), tf.nn.silu(x),
        tf.nn.softmax(x), tf.nn.gelu(x),
        tf.tile(x, [1, 2, 1]), tf.transpose(x, [0, 2, 1]), tf.cast(x > 0, tf.float32), tf.math.sigmoid(x), tf.nn.leaky_relu(x),
        tf.nn.relu6(x * 9),
        tf.math.square(x), tf.math.rsqrt(tf.abs(x) + 1), tf.pad(x, [[0, 0], [1, 2], [0, 1]]), tf.gather(x, [0, 2], axis=1),
        3.0 - x, tf.math.tanh(x),
        tf.math.reduce_std(x, axis=1), tf.math.l2_normalize(x, axis=-1), tf.image.resize(tf.reshape(x, (-1, 4, 3, 2)), (8, 6)),
    ]  # fmt: skip
    return keras.Model([x, y], p), [grid(2, 4, 6), grid(2, 4, 6)]


@case("3", legacy=True)
def half_precision() -> Built:
    """Stored in halves; what Keras computes in halves is computed in float32 here."""
    layers = [
        L.Conv2D(4, 3, activation="relu", dtype="float16"),
        L.Flatten(),
        L.Dense(5, dtype="bfloat16"),
        L.Dense(3, dtype="mixed_float16"),
    ]
    return sequential(*layers, L.Activation("linear", dtype="float32"), shape=(6, 5, 2), name="halves"), [grid(2, 6, 5, 2)]


@case("3")
def keras_1() -> Built:
    """The network that `keras_1_file` writes as Keras 1.2 did."""
    lstm = L.LSTM(3, recurrent_activation=old_hard_sigmoid)
    return sequential(lstm, L.Dense(2, activation="softmax"), shape=(5, 4)), [grid(2, 5, 4)]


def old_hard_sigmoid(x: Any) -> Any:
    return keras.ops.clip(0.2 * x + 0.5, 0.0, 1.0)


def keras_1_file(model: Any) -> np.ndarray:
    """Written by hand after Keras 1.2.2: three weights a gate (i c f o), old words, a list for a configuration."""
    import json

    import h5py

    lstm, dense = ([np.asarray(keras.ops.convert_to_numpy(w)) for w in layer.weights] for layer in model.layers)
    parts = [np.split(w, 4, axis=-1) for w in lstm]  # i f c o
    gates = [parts[k][g] for g in (0, 2, 1, 3) for k in range(3)]
    shared = {"trainable": True, "W_regularizer": None, "U_regularizer": None, "b_regularizer": None}
    config = [
        {"class_name": "LSTM", "config": {
            "name": "lstm_1", "batch_input_shape": [None, 5, 4], "input_dtype": "float32", "return_sequences": False,
            "go_backwards": False,
            "stateful": False, "unroll": False, "consume_less": "cpu", "input_dim": 4, "input_length": 5, "output_dim": 3,
            "init": "glorot_uniform",
            "inner_init": "orthogonal", "forget_bias_init": "one", "activation": "tanh", "inner_activation": "hard_sigmoid",
            "dropout_W": 0.0,
            "dropout_U": 0.0, **shared}},
        {"class_name": "Dense", "config": {
            "name": "dense_1", "output_dim": 2, "init": "glorot_uniform", "activation": "softmax", "bias": True, "input_dim": 3,
            **shared}},
    ]  # fmt: skip
    memory = io.BytesIO()
    with h5py.File(memory, "w") as file:
        file.attrs["keras_version"] = b"1.2.2"
        file.attrs["model_config"] = json.dumps({"class_name": "Sequential", "config": config}).encode()
        root = file.create_group("model_weights")
        root.attrs["layer_names"] = [b"lstm_1", b"dense_1"]
        names = [f"lstm_1_{w}_{g}" for g in "icfo" for w in "WUb"]
        for layer, labels, arrays in (("lstm_1", names, gates), ("dense_1", ["dense_1_W", "dense_1_b"], dense)):
            group = root.create_group(layer)
            group.attrs["weight_names"] = [label.encode() for label in labels]
            for label, array in zip(labels, arrays, strict=True):
                group[label] = array
    return np.frombuffer(memory.getvalue(), np.uint8)


@case("2")
def cudnn() -> Built:
    """Layers that run on GPUs alone; `cudnn_twin` computes what they would."""
    import tensorflow as tf

    old = tf.compat.v1.keras.layers
    i = keras.Input((5, 4), name="x")
    parts = [old.CuDNNLSTM(3)(i), old.CuDNNGRU(3, return_sequences=True)(i), L.Bidirectional(old.CuDNNLSTM(2))(i)]
    return keras.Model(i, parts), [grid(2, 5, 4)]


def cudnn_twin(model: Any) -> Any:
    i = keras.Input((5, 4), name="x")
    twin = keras.Model(i, [L.LSTM(3)(i), L.GRU(3, return_sequences=True)(i), L.Bidirectional(L.LSTM(2))(i)])
    for layer, other in zip(model.layers[1:], twin.layers[1:], strict=True):
        weights = layer.get_weights()
        for k in range(2, len(weights), 3):  # biases of x and of h, one after the other
            both = weights[k].reshape(2, -1)
            weights[k] = both if "GRU" in type(layer).__name__ else both.sum(0)
        other.set_weights(weights)
    return twin


def randomized(model: Any) -> None:
    """Weights near what training leaves."""
    for w in model.weights:
        name = (w.path if K3 else w.name).split("/")[-1].split(":")[0]
        if (
            name in ("mean", "variance", "count", "vector_u")
            or "seed" in name
            or not np.issubdtype(np.dtype(getattr(w.dtype, "name", w.dtype)), np.floating)
        ):
            continue
        value = grid(*w.shape, scale=0.4)
        w.assign(
            np.abs(value) + 0.5 if "variance" in name else value + 1 if name in ("gamma", "scale") and len(w.shape) else value
        )


def stored(model: Any, suffix: str) -> np.ndarray:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"model{suffix}"
        model.save(path if K3 else str(path))
        return np.frombuffer(path.read_bytes(), np.uint8)


def main() -> None:
    arrays: dict[str, np.ndarray] = {}
    only = sys.argv[1:]
    for label, (make, where) in CASES.items():
        if ("3" if K3 else "2") not in where or (only and label not in only):
            continue
        keras.backend.clear_session()
        model, inputs = make()
        randomized(model)
        given = dict(zip("xy", inputs, strict=True)) if label == "operations" else inputs if len(inputs) > 1 else inputs[0]
        flat = (cudnn_twin(model) if label == "cudnn" else model)(given)
        outputs = flat if isinstance(flat, (list, tuple)) else [flat]
        suffixes = (
            [".h5"]
            if label == "keras_1"
            else [".keras", *([".h5"] if "h" in where else [])]
            if K3
            else [".h5", *([".keras"] if "h" in where else [])]
        )
        for suffix in suffixes:
            arrays[f"{label}|file|{suffix}"] = keras_1_file(model) if label == "keras_1" else stored(model, suffix)
        for i, array in enumerate(inputs):
            arrays[f"{label}|input|{i}"] = np.asarray(array)
        for i, tensor in enumerate(outputs):
            array = np.asarray(keras.ops.convert_to_numpy(tensor) if K3 else tensor.numpy())
            arrays[f"{label}|output|{i}"] = array
    memory = io.BytesIO()
    np.savez_compressed(memory, **arrays)
    (HERE / f"keras_models_{'3' if K3 else '2'}.npz").write_bytes(memory.getvalue())


if __name__ == "__main__":
    main()
