"""Writes keras_layers.npz: layers of Keras with the lists of their ``get_weights()``, and what they make of their inputs.

Run from the root of the repository: ``KERAS_BACKEND=jax python -m tests.goldens.make_keras``; made with Keras 3.15 and jax 0.10.
With ``--check`` nothing is written: what this run computes is compared with the file. The backends numpy and torch pass, but for
AveragePooling2D and 3D with padding "same", where torch (Keras 3.15) counts some of the padding as numbers.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import layers as K
from keras import ops

from .store import Case, grid, read, write

FILE = Path(__file__).with_name("keras_layers.npz")


class KerasCase(NamedTuple):
    """A layer, the shapes of its inputs (or arrays as they are), and the named inputs of its call, masks above all."""

    label: str
    make: Callable[[], Any]
    inputs: tuple[Any, ...]
    named: dict[str, Any]


CASES: list[KerasCase] = []


def case(label: str, make: Callable[[], Any], *inputs: Any, **named: Any) -> None:
    CASES.append(KerasCase(label, make, inputs, named))


def lengths(steps: int, *sizes: int) -> np.ndarray:
    """A mask that is true for the first so many steps of each sequence."""
    return np.arange(steps) < np.array(sizes)[:, None]


def old_hard_sigmoid(x: Any) -> Any:
    """What Keras 1 and 2 call hard_sigmoid."""
    return ops.clip(0.2 * x + 0.5, 0.0, 1.0)


def linear_layers() -> None:
    case("Dense", lambda: K.Dense(5, activation="relu"), (3, 7))
    case("Dense of rank 4", lambda: K.Dense(5), (2, 4, 3, 6))
    case("Dense without bias", lambda: K.Dense(4, use_bias=False, activation="softmax"), (2, 3, 5))
    case("TimeDistributed Dense", lambda: K.TimeDistributed(K.Dense(3)), (2, 4, 5))
    case("Embedding", lambda: K.Embedding(7, 3), np.array([[1, 0, 6], [5, 5, 2]]))


def square() -> None:
    """Weights whose shapes stay the same when axes are exchanged by mistake."""
    whole = {"return_sequences": True, "return_state": True}
    case("square Dense", lambda: K.Dense(4), (3, 4))
    case("square Conv2D", lambda: K.Conv2D(3, 3), (1, 5, 4, 3))
    case("square Conv2DTranspose", lambda: K.Conv2DTranspose(3, 3, 2), (1, 3, 2, 3))
    case("square DepthwiseConv2D", lambda: K.DepthwiseConv2D(3, depth_multiplier=3), (1, 5, 4, 3))
    case("square SimpleRNN", lambda: K.SimpleRNN(4, **whole), (2, 5, 4))
    case("square LSTM", lambda: K.LSTM(2, **whole), (2, 5, 8))
    case("square GRU", lambda: K.GRU(2, **whole), (2, 5, 6))
    case("square MultiHeadAttention", lambda: K.MultiHeadAttention(3, 3), (2, 3, 3), (2, 3, 3))


def awkward() -> None:
    """Kernels larger than what they slide over, strides larger than kernels, single steps."""
    case("Conv2D same of a small image", lambda: K.Conv2D(3, 5, 3, padding="same"), (1, 2, 1, 2))
    case("DepthwiseConv2D of one window", lambda: K.DepthwiseConv2D((4, 3), depth_multiplier=2), (1, 4, 3, 2))
    case("Conv1DTranspose same kernel 1 stride 3", lambda: K.Conv1DTranspose(2, 1, 3, "same"), (2, 4, 3))
    case("Conv1DTranspose same of one step", lambda: K.Conv1DTranspose(2, 5, 2, "same"), (2, 1, 3))
    case("Conv1DTranspose same kernel 6 stride 4", lambda: K.Conv1DTranspose(2, 6, 4, "same"), (2, 4, 3))
    case("MaxPooling2D same of a small image", lambda: K.MaxPooling2D(4, 3, "same"), (1, 2, 1, 3))
    case("AveragePooling2D same of a small image", lambda: K.AveragePooling2D(4, 3, "same"), (1, 5, 1, 3))
    for name in ("SimpleRNN", "LSTM", "GRU"):
        case(f"{name} of one step", lambda name=name: getattr(K, name)(5), (1, 1, 4))
    case("Attention of one key", lambda: K.Attention(), [(1, 1, 3), (1, 1, 2), (1, 1, 3)])


def convolutions() -> None:
    case("Conv1D same", lambda: K.Conv1D(4, 3, padding="same"), (2, 7, 3))
    case("Conv1D same stride 2", lambda: K.Conv1D(4, 3, 2, padding="same"), (2, 8, 3))
    case("Conv1D valid dilated groups", lambda: K.Conv1D(6, 3, dilation_rate=2, groups=2, activation="tanh"), (2, 9, 4))
    case("Conv1D causal", lambda: K.Conv1D(4, 3, padding="causal", dilation_rate=2), (2, 8, 3))
    case("Conv2D valid", lambda: K.Conv2D(4, (3, 2), activation="relu"), (2, 6, 5, 3))
    case("Conv2D same", lambda: K.Conv2D(4, (4, 3), padding="same"), (2, 6, 5, 3))
    case("Conv2D same stride 2", lambda: K.Conv2D(4, 3, 2, padding="same"), (2, 8, 7, 3))
    case("Conv2D same stride 3 kernel 2", lambda: K.Conv2D(3, 2, 3, padding="same"), (2, 8, 7, 2))
    case("Conv2D same dilated", lambda: K.Conv2D(3, 3, padding="same", dilation_rate=(2, 1), use_bias=False), (1, 7, 6, 2))
    case("Conv2D groups", lambda: K.Conv2D(6, 3, groups=2, strides=(2, 1)), (2, 7, 5, 4))
    case("Conv2D channels first", lambda: K.Conv2D(4, 3, 2, padding="same", data_format="channels_first"), (2, 3, 6, 7))
    case("Conv3D valid", lambda: K.Conv3D(3, (2, 3, 2), (1, 2, 1)), (1, 4, 6, 3, 2))
    case("Conv3D same", lambda: K.Conv3D(4, 3, 2, padding="same", groups=2), (1, 4, 5, 6, 2))
    case("DepthwiseConv1D", lambda: K.DepthwiseConv1D(3, 2, "same", depth_multiplier=2), (2, 8, 3))
    case("DepthwiseConv2D", lambda: K.DepthwiseConv2D(3, padding="same", depth_multiplier=2, strides=2), (2, 6, 7, 3))
    case("DepthwiseConv2D valid", lambda: K.DepthwiseConv2D((3, 2), use_bias=False, activation="relu"), (2, 6, 5, 4))
    case("DepthwiseConv2D dilated", lambda: K.DepthwiseConv2D(3, 1, "same", 3, dilation_rate=2), (1, 7, 6, 2))
    case("SeparableConv1D", lambda: K.SeparableConv1D(5, 3, 2, "same", depth_multiplier=2, activation="relu"), (2, 8, 3))
    case("SeparableConv2D", lambda: K.SeparableConv2D(5, 3, 2, "same", depth_multiplier=2), (2, 8, 7, 3))
    case("SeparableConv2D valid", lambda: K.SeparableConv2D(4, (2, 3), use_bias=False, activation="relu"), (2, 5, 6, 3))


def transposed() -> None:
    case("Conv1DTranspose same", lambda: K.Conv1DTranspose(4, 3, 2, "same"), (2, 5, 3))
    case("Conv1DTranspose same stride 3 kernel 2", lambda: K.Conv1DTranspose(4, 2, 3, "same"), (2, 5, 3))
    case("Conv1DTranspose valid stride 4 kernel 2", lambda: K.Conv1DTranspose(4, 2, 4, "valid"), (2, 5, 3))
    case("Conv1DTranspose dilated", lambda: K.Conv1DTranspose(4, 3, 1, "same", dilation_rate=2), (2, 6, 3))
    case("Conv2DTranspose valid", lambda: K.Conv2DTranspose(3, (3, 2), (2, 1), activation="relu"), (2, 4, 3, 2))
    case("Conv2DTranspose same kernel 4", lambda: K.Conv2DTranspose(3, 4, 2, "same", use_bias=False), (2, 4, 3, 2))
    case("Conv2DTranspose same kernel 3 5", lambda: K.Conv2DTranspose(3, (3, 5), (2, 3), "same"), (2, 4, 3, 2))
    case("Conv2DTranspose output padding", lambda: K.Conv2DTranspose(3, 3, 2, "same", output_padding=(1, 0)), (2, 4, 3, 2))
    case("Conv2DTranspose valid output padding", lambda: K.Conv2DTranspose(3, 3, 2, output_padding=1), (1, 4, 3, 2))
    case("Conv3DTranspose same", lambda: K.Conv3DTranspose(2, 3, 2, "same"), (1, 2, 3, 2, 2))
    case("Conv3DTranspose valid", lambda: K.Conv3DTranspose(2, (2, 1, 3), (1, 2, 2), "valid"), (1, 2, 3, 2, 3))


def recurrent() -> None:
    x, mask, state = (3, 6, 4), lengths(6, 6, 2, 4), (3, 5)
    holes = mask & (np.arange(6) != 1)
    left = lengths(6, 6, 2, 4)[:, ::-1]
    whole = {"return_sequences": True, "return_state": True}
    for name, states in (("SimpleRNN", 1), ("LSTM", 2), ("GRU", 1)):
        layer = getattr(K, name)
        initial = [state] * states
        case(f"{name}", lambda layer=layer: layer(5), x)
        case(f"{name} whole", lambda layer=layer: layer(5, **whole), x, initial_state=initial)
        case(f"{name} backwards", lambda layer=layer: layer(5, go_backwards=True, **whole), x, initial_state=initial)
        case(f"{name} without bias", lambda layer=layer: layer(5, use_bias=False, **whole), x)
        case(f"{name} mask", lambda layer=layer: layer(5, **whole), x, mask=mask, initial_state=initial)
        case(f"{name} mask zero output", lambda layer=layer: layer(5, zero_output_for_mask=True, **whole), x, mask=mask)
        case(f"{name} mask with holes", lambda layer=layer: layer(5), x, mask=holes)
        case(f"{name} mask at the left", lambda layer=layer: layer(5, **whole), x, mask=left)
        case(f"{name} mask backwards", lambda layer=layer: layer(5, go_backwards=True), x, mask=mask)
        if name != "SimpleRNN":
            case(f"{name} hard_sigmoid", lambda layer=layer: layer(5, recurrent_activation="hard_sigmoid", **whole), x)
            case(f"{name} old hard_sigmoid", lambda layer=layer: layer(5, recurrent_activation=old_hard_sigmoid, **whole), x)
            case(f"{name} activation relu", lambda layer=layer: layer(5, activation="relu", **whole), x)
    case("SimpleRNN relu", lambda: K.SimpleRNN(5, activation="relu", **whole), x)
    case("GRU reset before", lambda: K.GRU(5, reset_after=False, **whole), x, initial_state=[state])
    case("GRU reset before without bias", lambda: K.GRU(5, reset_after=False, use_bias=False, **whole), x)
    case("GRU reset before hard_sigmoid", lambda: K.GRU(5, reset_after=False, recurrent_activation="hard_sigmoid"), x, mask=mask)
    for merge in ("concat", "sum", "mul", "ave", None):
        case(f"Bidirectional LSTM {merge}", lambda m=merge: K.Bidirectional(K.LSTM(5, return_sequences=True), merge_mode=m), x)
        case(f"Bidirectional GRU {merge} last", lambda m=merge: K.Bidirectional(K.GRU(5), merge_mode=m), x)
    case("Bidirectional SimpleRNN", lambda: K.Bidirectional(K.SimpleRNN(5, **whole)), x, initial_state=[state, state])
    case("Bidirectional LSTM whole", lambda: K.Bidirectional(K.LSTM(5, **whole)), x, initial_state=[state] * 4)
    case("Bidirectional GRU reset before", lambda: K.Bidirectional(K.GRU(5, reset_after=False, **whole)), x)
    case("Bidirectional LSTM mask", lambda: K.Bidirectional(K.LSTM(5, **whole)), x, mask=mask)
    case("Bidirectional GRU mask last", lambda: K.Bidirectional(K.GRU(5), merge_mode="sum"), x, mask=mask)
    for name, states in (("SimpleRNN", 1), ("LSTM", 2), ("GRU", 1)):
        case(f"{name}Cell", lambda name=name: getattr(K, f"{name}Cell")(5), (3, 4), states=[state] * states)
    case("GRUCell reset before", lambda: K.GRUCell(5, reset_after=False), (3, 4), states=[state])
    case("stacked LSTM", lambda: keras.Sequential([K.LSTM(5, return_sequences=True), K.LSTM(3)]), x)
    case("stacked cells", lambda: K.RNN([K.LSTMCell(5), K.LSTMCell(3)], return_sequences=True), x)
    case(
        "stacked bidirectional GRU",
        lambda: keras.Sequential([K.Bidirectional(K.GRU(3, return_sequences=True)), K.Bidirectional(K.GRU(2))]),
        x,
    )
    padded = grid(np.random.default_rng(0), x) * mask[:, :, None]
    case("Masking LSTM", lambda: keras.Sequential([K.Masking(0.0), K.LSTM(5, return_sequences=True)]), padded)
    ids = np.array([[3, 1, 4, 1, 5], [6, 2, 0, 0, 0], [5, 3, 5, 0, 0]])
    case("Embedding mask_zero GRU", lambda: keras.Sequential([K.Embedding(7, 4, mask_zero=True), K.GRU(3), K.Dense(2)]), ids)
    case(
        "Embedding mask_zero pool", lambda: keras.Sequential([K.Embedding(7, 4, mask_zero=True), K.GlobalAveragePooling1D()]), ids
    )


def normalization() -> None:
    x = (3, 4, 2, 6)
    case("BatchNormalization", lambda: K.BatchNormalization(), x)
    case("BatchNormalization without scale", lambda: K.BatchNormalization(scale=False), x)
    case("BatchNormalization without center", lambda: K.BatchNormalization(center=False, epsilon=1e-5), x)
    case("BatchNormalization bare", lambda: K.BatchNormalization(scale=False, center=False), (3, 6))
    case("BatchNormalization axis 1", lambda: K.BatchNormalization(axis=1), x)
    case("LayerNormalization", lambda: K.LayerNormalization(), x)
    case("LayerNormalization over two axes", lambda: K.LayerNormalization(axis=(2, 3), epsilon=1e-5), x)
    case("LayerNormalization without scale", lambda: K.LayerNormalization(scale=False), (3, 6))
    case("LayerNormalization without center", lambda: K.LayerNormalization(center=False), (3, 6))
    case("GroupNormalization", lambda: K.GroupNormalization(3), x)
    case("GroupNormalization instance", lambda: K.GroupNormalization(-1), x)
    case("GroupNormalization without scale and center", lambda: K.GroupNormalization(2, center=False, scale=False), x)
    case("RMSNormalization", lambda: K.RMSNormalization(), (3, 5, 6))
    case("RMSNormalization epsilon", lambda: K.RMSNormalization(epsilon=1e-2), (3, 5, 6))


def attention() -> None:
    q, v, k = (2, 3, 4), (2, 5, 6), (2, 5, 4)
    same = (2, 5, 4)
    q_mask, v_mask = lengths(3, 3, 2), lengths(5, 4, 2)
    scores = {"return_attention_scores": True}
    case("Attention", lambda: K.Attention(), [q, v, k], **scores)
    case("Attention of two inputs", lambda: K.Attention(), [q, same])
    case("Attention scaled", lambda: K.Attention(use_scale=True), [q, v, k], **scores)
    case("Attention concat", lambda: K.Attention(score_mode="concat"), [q, v, k], **scores)
    case("Attention concat scaled", lambda: K.Attention(score_mode="concat", use_scale=True), [q, same], **scores)
    case("Attention masks", lambda: K.Attention(), [q, v, k], mask=[q_mask, v_mask], **scores)
    case("Attention all masked", lambda: K.Attention(), [q, v, k], mask=[None, lengths(5, 4, 0)], **scores)
    case("Attention causal", lambda: K.Attention(use_scale=True), [same, same], use_causal_mask=True, **scores)
    case("AdditiveAttention", lambda: K.AdditiveAttention(), [q, v, k], **scores)
    case("AdditiveAttention unscaled", lambda: K.AdditiveAttention(use_scale=False), [q, same], **scores)
    case("AdditiveAttention masks", lambda: K.AdditiveAttention(), [q, v, k], mask=[q_mask, v_mask], **scores)
    case("AdditiveAttention causal", lambda: K.AdditiveAttention(), [same, same], use_causal_mask=True, **scores)
    x, y, z = (2, 3, 8), (2, 5, 6), (2, 5, 7)
    square = np.random.default_rng(0).random((2, 3, 5)) < 0.7
    square[:, :, 0] = True
    case("MultiHeadAttention", lambda: K.MultiHeadAttention(2, 4), x, x, **scores)
    case("MultiHeadAttention cross", lambda: K.MultiHeadAttention(2, 3, value_dim=5), x, y, key=z, **scores)
    case("MultiHeadAttention output size", lambda: K.MultiHeadAttention(2, 4, output_shape=5), x, y)
    case("MultiHeadAttention without bias", lambda: K.MultiHeadAttention(4, 2, use_bias=False), x, y, **scores)
    case("MultiHeadAttention mask", lambda: K.MultiHeadAttention(2, 4), x, y, attention_mask=square, **scores)
    case("MultiHeadAttention masks", lambda: K.MultiHeadAttention(2, 4), x, y, query_mask=q_mask, value_mask=v_mask)
    case("MultiHeadAttention all masked", lambda: K.MultiHeadAttention(2, 4), x, y, value_mask=lengths(5, 3, 0), **scores)
    case("MultiHeadAttention causal", lambda: K.MultiHeadAttention(2, 4), (2, 5, 8), (2, 5, 8), use_causal_mask=True, **scores)
    case("GroupQueryAttention", lambda: K.GroupQueryAttention(4, 6, 2), x, y, **scores)
    case("GroupQueryAttention causal", lambda: K.GroupQueryAttention(4, 4, 2, use_bias=False), x, x, use_causal_mask=True)


def pooling() -> None:
    sizes = ((7,), (7, 6), (4, 5, 3))
    for axes, size in enumerate(sizes, 1):
        x = (2, *size, 3)
        for kind in ("Max", "Average"):
            pool, whole = getattr(K, f"{kind}Pooling{axes}D"), getattr(K, f"Global{kind}Pooling{axes}D")
            case(f"{kind}Pooling{axes}D valid", lambda pool=pool: pool(2), x)
            case(f"{kind}Pooling{axes}D same", lambda pool=pool: pool(3, 2, "same"), x)
            case(f"Global{kind}Pooling{axes}D", lambda whole=whole: whole(), x)
            adaptive = getattr(K, f"Adaptive{kind}Pooling{axes}D")
            case(f"Adaptive{kind}Pooling{axes}D", lambda pool=adaptive, n=axes: pool((3, 2, 2)[:n]), x)
    case("MaxPooling2D stride 1", lambda: K.MaxPooling2D((2, 3), 1, "same"), (1, 5, 4, 2))
    case("AveragePooling2D stride 3", lambda: K.AveragePooling2D(2, 3, "same"), (1, 8, 7, 2))
    case("AveragePooling2D channels first", lambda: K.AveragePooling2D(3, 2, "same", "channels_first"), (1, 2, 7, 6))
    case("GlobalAveragePooling2D keepdims", lambda: K.GlobalAveragePooling2D(keepdims=True), (2, 4, 3, 5))
    case("GlobalAveragePooling1D mask", lambda: K.GlobalAveragePooling1D(), (3, 6, 4), mask=lengths(6, 6, 2, 4))


def shapes() -> None:
    image = (2, 3, 4, 2)
    case("UpSampling1D", lambda: K.UpSampling1D(3), (2, 4, 3))
    case("UpSampling2D nearest", lambda: K.UpSampling2D((2, 3)), image)
    case("UpSampling2D bilinear", lambda: K.UpSampling2D((2, 3), interpolation="bilinear"), image)
    case("UpSampling3D", lambda: K.UpSampling3D(2), (1, 2, 3, 2, 2))
    case("ZeroPadding1D", lambda: K.ZeroPadding1D((1, 2)), (2, 4, 3))
    case("ZeroPadding2D", lambda: K.ZeroPadding2D(((1, 2), (3, 0))), image)
    case("ZeroPadding3D", lambda: K.ZeroPadding3D(1), (1, 2, 1, 3, 2))
    case("Flatten", lambda: K.Flatten(), image)
    case("Flatten channels first", lambda: K.Flatten(data_format="channels_first"), image)
    case("Reshape", lambda: K.Reshape((6, -1)), image)
    case("Permute", lambda: K.Permute((3, 1, 2)), image)
    case("Flatten into Dense", lambda: keras.Sequential([K.Flatten(), K.Dense(3)]), image)
    case("Add", lambda: K.Add(), [(2, 3), (2, 3)])
    case("Subtract", lambda: K.Subtract(), [(2, 3), (2, 3)])
    case("Multiply", lambda: K.Multiply(), [(2, 3), (2, 3)])
    case("Cropping1D", lambda: K.Cropping1D((1, 2)), (2, 5, 3))
    case("Cropping2D", lambda: K.Cropping2D(((1, 0), (0, 2))), image)
    case("Concatenate", lambda: K.Concatenate(axis=-1), [(2, 3, 2), (2, 3, 4)])
    case("Dropout", lambda: K.Dropout(0.5), image)
    case("SpatialDropout1D", lambda: K.SpatialDropout1D(0.5), (2, 4, 3))


def activations() -> None:
    x = np.concatenate([np.linspace(-8, 8, 65), [-3.0, 3.0, -2.5, 2.5, 6.0, 6.5, -1.0]])[None].astype(np.float32)
    for name in (
        "celu", "elu", "exponential", "gelu", "hard_sigmoid", "hard_silu", "hard_swish", "leaky_relu", "linear", "log_softmax",
        "mish", "relu", "relu6", "selu", "sigmoid", "silu", "softmax", "softplus", "softsign", "swish", "tanh",
    ):  # fmt: skip
        case(f"activation {name}", lambda name=name: K.Activation(name), x)
    case("activation gelu tanh", lambda: K.Activation(lambda x: keras.activations.gelu(x, approximate=True)), x)
    case("activation old hard_sigmoid", lambda: K.Activation(old_hard_sigmoid), x)
    case("LeakyReLU", lambda: K.LeakyReLU(), x)
    case("ReLU of 6", lambda: K.ReLU(max_value=6.0), x)
    case("ReLU with slope", lambda: K.ReLU(negative_slope=0.1), x)
    case("ELU", lambda: K.ELU(0.7), x)
    case("Softmax axis 1", lambda: K.Softmax(axis=1), (2, 3, 4))
    case("PReLU", lambda: K.PReLU(), (2, 3, 4, 5))
    case("PReLU shared", lambda: K.PReLU(shared_axes=[1, 2]), (2, 3, 4, 5))
    case("PReLU shared over one", lambda: K.PReLU(shared_axes=[1]), (2, 3, 4, 5))
    case("GLU", lambda: K.Activation(lambda x: keras.activations.glu(x)), (2, 3, 8))


def flat(value: Any) -> list[Any]:
    return [leaf for part in value for leaf in flat(part)] if isinstance(value, (list, tuple)) else [value]


def run(this: KerasCase) -> Case:
    """The weights that the layer makes, filled with seeded numbers, and what it computes with them."""
    rng = np.random.default_rng(zlib.crc32(this.label.encode()))

    def drawn(value: Any) -> Any:
        if isinstance(value, list):
            return [drawn(v) for v in value]
        return grid(rng, value, 1.0) if isinstance(value, tuple) else value

    inputs, named = drawn(list(this.inputs)), {name: drawn(value) for name, value in this.named.items()}
    layer = this.make()
    layer(*inputs, **named)  # makes the weights
    weights = [grid(rng, w.shape) for w in layer.weights]
    positive = [v.name.endswith("variance") for v in layer.weights]
    layer.set_weights([np.abs(w) + np.float32(0.5) if p else w for w, p in zip(weights, positive, strict=True)])
    outputs = [ops.convert_to_numpy(y) for y in flat(layer(*inputs, **named))]
    arrays = {name: [a for a in flat(v) if isinstance(a, np.ndarray)] for name, v in named.items()}
    return {"weights": layer.get_weights(), "inputs": flat(inputs), "outputs": outputs, **{n: a for n, a in arrays.items() if a}}


def main() -> None:
    for family in (
        linear_layers,
        square,
        awkward,
        convolutions,
        transposed,
        recurrent,
        normalization,
        attention,
        pooling,
        shapes,
        activations,
    ):
        family()
    found = {this.label: run(this) for this in CASES}
    if "--check" not in sys.argv:
        write(FILE, found)
        return
    stored = read(FILE)
    for label, parts in found.items():
        for got, want in zip(parts["outputs"], stored[label]["outputs"], strict=True):
            worst = np.max(np.abs(got - want), initial=0.0)
            if got.shape != want.shape or not worst <= 4e-6 * max(1.0, np.max(np.abs(want), initial=0.0)):
                print(f"{label}: {got.shape} {want.shape} {worst}")


if __name__ == "__main__":
    main()
