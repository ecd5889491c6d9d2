"""What goes wrong when weights are ported: one test a pitfall, each on what torch or Keras computed.

Each test also handles its pitfall the wrong way, and sees that the values are then others: the goldens tell.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers import functional as F

from ..goldens.store import Case, read
from .keras_table import OLD_HARD_SIGMOID

GOLDENS = Path(__file__).parent.parent / "goldens"
TORCH, KERAS = read(GOLDENS / "pitfalls.npz"), read(GOLDENS / "keras_layers.npz")
TOLERANCE = 4e-6
Arrays = dict[str, np.ndarray]


def error(got: Any, want: Any) -> float:
    """The largest difference, as a part of the largest number, at least of 1."""
    assert got.shape == want.shape
    return float(np.abs(got - want).max() / max(1.0, np.abs(want).max()))


def right(got: Any, want: Any) -> None:
    np.testing.assert_allclose(got, want, rtol=0, atol=TOLERANCE * max(1.0, np.abs(want).max()))


def wrong(got: Any, want: Any) -> None:
    """By far more than rounding."""
    assert error(got, want) > 10 * TOLERANCE


def state(case: Case) -> Arrays:
    return {part.removeprefix("state/"): arrays[0] for part, arrays in case.items() if part.startswith("state/")}


def loaded(layer: Any, weights: Any) -> Any:
    if isinstance(weights, list):
        layer.load_keras(weights)
    else:
        layer.load_state_dict(weights)
    return layer


def out(layer: Any, weights: Any, case: Case) -> Any:
    """What a layer makes of a case's first input with these weights; of a pair, the first."""
    result = loaded(layer, weights)(case["inputs"][0])
    return result[0] if isinstance(result, tuple) else result


def gates(weights: Arrays, order: tuple[int, ...]) -> Arrays:
    """A torch state dict with its gates in another order."""
    return {name: np.concatenate([np.split(w, len(order))[k] for k in order]) for name, w in weights.items()}


# ---- recurrent layers ------------------------------------------------------------------------------------------------------


def test_lstm_gate_order(variant: str) -> None:
    """torch and Keras: i f g o. ONNX: i o f g; the first TensorFlow: i g f o."""
    case = TORCH["LSTM"]
    want = case["outputs"][0]
    right(out(fl.LSTM(4, 4, batch_first=True), state(case), case), want)
    for order in ((0, 3, 1, 2), (0, 2, 1, 3)):
        wrong(out(fl.LSTM(4, 4, batch_first=True), gates(state(case), order), case), want)


def test_lstm_layout(variant: str) -> None:
    """Keras' kernel is (inputs, 4 units): here 8 x 8."""
    case = KERAS["square LSTM"]
    kernel, *rest = case["weights"]
    right(out(fl.LSTM(8, 2, batch_first=True), [kernel, *rest], case), case["outputs"][0])
    wrong(out(fl.LSTM(8, 2, batch_first=True), [kernel.T, *rest], case), case["outputs"][0])


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_recurrent_biases(kind: str, variant: str) -> None:
    """torch has two, which are added; Keras one, but for a GRU with reset_after."""
    case = TORCH[kind]
    weights, layer = state(case), getattr(fl, kind)(4, 4, batch_first=True)
    right(out(layer, weights, case), case["outputs"][0])
    for name in ("bias_ih_l0", "bias_hh_l0"):
        wrong(out(layer, {**weights, name: np.zeros_like(weights[name])}, case), case["outputs"][0])


def test_gru_gate_order(variant: str) -> None:
    """torch: r z n; Keras and ONNX: z r n."""
    case = TORCH["GRU"]
    layer = fl.GRU(4, 4, batch_first=True)
    right(out(layer, state(case), case), case["outputs"][0])
    wrong(out(layer, gates(state(case), (1, 0, 2)), case), case["outputs"][0])
    case = KERAS["square GRU"]
    layer = fl.GRU(6, 2, batch_first=True)
    right(out(layer, case["weights"], case), case["outputs"][0])
    swapped = [np.concatenate([np.split(w, 3, axis=-1)[k] for k in (1, 0, 2)], axis=-1) for w in case["weights"]]
    wrong(out(layer, swapped, case), case["outputs"][0])


def test_gru_reset(variant: str) -> None:
    """Before the product (Keras' reset_after=False, one bias) or after it (torch, two biases)."""
    case = KERAS["GRU reset before without bias"]
    for reset_after, check in ((False, right), (True, wrong)):
        layer = fl.GRU(4, 5, bias=False, batch_first=True, reset_after=reset_after)
        check(out(layer, case["weights"], case), case["outputs"][0])
    with pytest.raises(fl.WeightsError, match=r"\(2, 15\)"):
        fl.GRU(4, 5, batch_first=True).load_keras(KERAS["GRU reset before"]["weights"])


def test_gru_biases_are_not_summed(variant: str) -> None:
    """n = tanh(W x + b_in + r (U h + b_hn)): b_hn is multiplied by r."""
    case = TORCH["GRU"]
    weights = state(case)
    summed = {**weights, "bias_ih_l0": weights["bias_ih_l0"] + weights["bias_hh_l0"], "bias_hh_l0": 0 * weights["bias_hh_l0"]}
    wrong(out(fl.GRU(4, 4, batch_first=True), summed, case), case["outputs"][0])


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_hard_sigmoid_and_recurrent_activation(kind: str, variant: str) -> None:
    """Keras before 2.3 has hard_sigmoid by default, then sigmoid; its slope is 0.2 before Keras 3, then 1/6."""
    given = {" mask zero output": "sigmoid", " hard_sigmoid": "hardsigmoid", " old hard_sigmoid": OLD_HARD_SIGMOID}
    for label, activation in given.items():
        case = KERAS[kind + label]
        for other in given.values():
            layer = loaded(getattr(fl, kind)(4, 5, batch_first=True, recurrent_activation=other), case["weights"])
            got = layer(case["inputs"][0], mask=case.get("mask", [None])[0])[0]
            (right if other == activation else wrong)(got, case["outputs"][0])


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_both_directions_are_aligned_in_time(kind: str, variant: str) -> None:
    case = TORCH[f"{kind} both ways"]
    got = out(getattr(fl, kind)(3, 2, 2, bidirectional=True), state(case), case)
    right(got, case["outputs"][0])
    wrong(np.concatenate([got[..., :2], got[::-1, :, 2:]], axis=-1), case["outputs"][0])


# ---- convolutions, dense layers, pools -------------------------------------------------------------------------------------


def test_same_padding(variant: str) -> None:
    """Keras pads by what the input's size asks for, more of it after; torch as much before."""
    case = KERAS["Conv2D same stride 2"]  # on 8 x 7: nothing before and one after the 8, one before and after the 7
    want = case["outputs"][0]
    for padding, check in (("same", right), ([(0, 1), (1, 1)], right), ([(1, 0), (1, 1)], wrong), (1, wrong)):
        layer = fl.Conv2d(3, 4, 3, 2, padding, layout="nhwc")
        check(out(layer, case["weights"], case), want)
    layer = loaded(fl.Conv2d(3, 4, 3, 2, "same", layout="nhwc"), case["weights"])
    for size in range(1, 9):
        assert layer(np.zeros((1, size, size, 3))).shape == (1, -(-size // 2), -(-size // 2), 4)


def test_conv_kernel_layout(variant: str) -> None:
    """Keras: height, width, in, out; all 3 here. And no framework flips its kernels."""
    case = KERAS["square Conv2D"]
    kernel, bias = case["weights"]
    layer = fl.Conv2d(3, 3, 3, layout="nhwc")
    right(out(layer, [kernel, bias], case), case["outputs"][0])
    for other in (kernel.transpose(0, 1, 3, 2), kernel.transpose(1, 0, 2, 3), kernel.transpose(3, 2, 0, 1), kernel[::-1, ::-1]):
        wrong(out(layer, [other, bias], case), case["outputs"][0])
    case = TORCH["Conv2d"]
    weights = state(case)
    right(out(fl.Conv2d(3, 3, 3), weights, case), case["outputs"][0])
    wrong(out(fl.Conv2d(3, 3, 3), {**weights, "weight": weights["weight"].swapaxes(0, 1)}, case), case["outputs"][0])


def test_depthwise_order(variant: str) -> None:
    """Result c * multiplier + m is of input c; both 3 here."""
    case = KERAS["square DepthwiseConv2D"]
    kernel, bias = case["weights"]
    layer = fl.DepthwiseConv2d(3, 3, depth_multiplier=3, layout="nhwc")
    right(out(layer, [kernel, bias], case), case["outputs"][0])
    wrong(out(layer, [kernel.swapaxes(2, 3), bias], case), case["outputs"][0])


def test_dense_layout(variant: str) -> None:
    """Keras: in, out; torch: out, in; both 4 here."""
    case = KERAS["square Dense"]
    kernel, bias = case["weights"]
    right(out(fl.Linear(4, 4), [kernel, bias], case), case["outputs"][0])
    right(out(fl.Linear(4, 4), {"weight": kernel.T, "bias": bias}, case), case["outputs"][0])
    wrong(out(fl.Linear(4, 4), {"weight": kernel, "bias": bias}, case), case["outputs"][0])


def test_flatten_order(variant: str) -> None:
    """A dense layer after Keras' Flatten knows its inputs by height, width, channel: so must who has channels first."""
    case = KERAS["Flatten into Dense"]
    x, (kernel, bias) = F.to_channels_first(case["inputs"][0]), case["weights"]
    net = fl.Sequential(fl.Flatten(), fl.Linear(24, 3))
    moved = kernel.reshape(3, 4, 2, 3).transpose(2, 0, 1, 3).reshape(24, 3)
    right(loaded(net, [moved, bias])(x), case["outputs"][0])
    wrong(loaded(net, [kernel, bias])(x), case["outputs"][0])


def test_conv_transpose(variant: str) -> None:
    """Keras' kernel is (height, width, out, in), and "same" leaves out more after; torch has its own lengthening after."""
    case = KERAS["square Conv2DTranspose"]
    kernel, bias = case["weights"]
    layer = fl.ConvTranspose2d(3, 3, 3, 2, "valid", layout="nhwc")
    right(out(layer, [kernel, bias], case), case["outputs"][0])
    wrong(out(layer, [kernel.swapaxes(2, 3), bias], case), case["outputs"][0])
    case = KERAS["Conv1DTranspose same"]  # 5 to 10 by kernel 3, stride 2
    right(out(fl.ConvTranspose1d(3, 4, 3, 2, "same", layout="nhwc"), case["weights"], case), case["outputs"][0])
    wrong(out(fl.ConvTranspose1d(3, 4, 3, 2, 1, 1, layout="nhwc"), case["weights"], case), case["outputs"][0])
    case = TORCH["ConvTranspose2d"]
    layer = fl.ConvTranspose2d(4, 4, 3, 2, 1, (1, 0), groups=2, dilation=(1, 2))
    right(out(layer, state(case), case), case["outputs"][0])
    case = TORCH["ConvTranspose1d"]
    weights = state(case)
    right(out(fl.ConvTranspose1d(3, 3, 3, 2, 1), weights, case), case["outputs"][0])
    for other in (weights["weight"].swapaxes(0, 1), weights["weight"][:, :, ::-1]):
        wrong(out(fl.ConvTranspose1d(3, 3, 3, 2, 1), {**weights, "weight": other}, case), case["outputs"][0])


POOLS: dict[str, dict[str, Any]] = {
    "AvgPool2d": {},
    "AvgPool2d without padding": {"count_include_pad": False},
    "AvgPool2d ceil": {"ceil_mode": True},
    "AvgPool2d ceil without padding": {"ceil_mode": True, "count_include_pad": False},
}


def test_average_of_padding(variant: str) -> None:
    """torch counts padding by default, but never what follows it; TensorFlow's "same" does not count it."""
    for label, options in POOLS.items():
        case = TORCH[label]
        right(fl.AvgPool2d(3, 2, 1, **options)(case["inputs"][0]), case["outputs"][0])
        other = {**options, "count_include_pad": not options.get("count_include_pad", True)}
        wrong(fl.AvgPool2d(3, 2, 1, **other)(case["inputs"][0]), case["outputs"][0])
    case = KERAS["AveragePooling2D same"]  # 7 x 6: torch's backend of Keras is not the oracle here, see make_keras.py
    x, want = case["inputs"][0], case["outputs"][0]
    right(fl.AvgPool2d(3, 2, "same", layout="nhwc")(x), want)
    padded = np.pad(x, ((0, 0), (1, 1), (0, 1), (0, 0)), constant_values=np.nan)
    for i in range(4):
        for j in range(3):
            right(np.nanmean(padded[:, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3], axis=(1, 2)), want[:, i, j])
    wrong(fl.AvgPool2d(3, 2, [(1, 1), (0, 1)], layout="nhwc")(x), want)


def test_windows_that_begin_behind_the_image(variant: str) -> None:
    """With ceil_mode torch drops a window that begins in the padding after, and divides by what is there."""
    case = TORCH["AvgPool2d ceil stride 4"]
    right(fl.AvgPool2d(2, 4, 1, ceil_mode=True)(case["inputs"][0]), case["outputs"][0])
    case = TORCH["AvgPool1d overhanging"]
    right(fl.AvgPool1d(3, 2, 1, ceil_mode=True)(case["inputs"][0]), case["outputs"][0])
    case = TORCH["MaxPool1d overhanging"]
    right(fl.MaxPool1d(2, 3, 1, ceil_mode=True)(case["inputs"][0]), case["outputs"][0])


# ---- normalization ---------------------------------------------------------------------------------------------------------


def test_batch_norm_eps(variant: str) -> None:
    """1e-3 in Keras, 1e-5 in torch and here."""
    case = KERAS["BatchNormalization"]
    right(out(fl.BatchNorm2d(6, eps=1e-3, axis=-1), case["weights"], case), case["outputs"][0])
    wrong(out(fl.BatchNorm2d(6, axis=-1), case["weights"], case), case["outputs"][0])
    case = TORCH["BatchNorm2d"]
    right(out(fl.BatchNorm2d(3), state(case), case), case["outputs"][0])
    wrong(out(fl.BatchNorm2d(3, eps=1e-3), state(case), case), case["outputs"][0])


def test_batch_norm_order(variant: str) -> None:
    """gamma, beta, mean, variance: a list of four equal shapes."""
    case = KERAS["BatchNormalization"]
    for order in ((1, 0, 2, 3), (0, 2, 1, 3), (2, 1, 0, 3)):
        wrong(out(fl.BatchNorm2d(6, eps=1e-3, axis=-1), [case["weights"][k] for k in order], case), case["outputs"][0])
    named = dict(zip(("gamma", "beta", "moving_mean", "moving_variance"), case["weights"], strict=True))
    right(out(fl.BatchNorm2d(6, eps=1e-3, axis=-1), named, case), case["outputs"][0])


def test_batch_norm_without_scale_or_center(variant: str) -> None:
    """Lists of three or two: what comes first is then beta or the mean. An absent scale is 1, an absent center 0."""
    case = KERAS["BatchNormalization without scale"]
    right(out(fl.BatchNorm2d(6, eps=1e-3, axis=-1, scale=False), case["weights"], case), case["outputs"][0])
    wrong(out(fl.BatchNorm2d(6, eps=1e-3, axis=-1, center=False), case["weights"], case), case["outputs"][0])
    with pytest.raises(fl.WeightsError, match="gamma"):
        fl.BatchNorm2d(6).load_keras(case["weights"])
    case = TORCH["BatchNorm2d bare"]
    right(out(fl.BatchNorm2d(3, affine=False), state(case), case), case["outputs"][0])


def test_layer_norm_eps(variant: str) -> None:
    """1e-3 in Keras, 1e-5 in torch and here."""
    case = KERAS["LayerNormalization"]
    right(out(fl.LayerNorm(6, eps=1e-3), case["weights"], case), case["outputs"][0])
    wrong(out(fl.LayerNorm(6), case["weights"], case), case["outputs"][0])
    case = TORCH["LayerNorm"]
    right(out(fl.LayerNorm(6), state(case), case), case["outputs"][0])
    wrong(out(fl.LayerNorm(6, eps=1e-3), state(case), case), case["outputs"][0])


# ---- attention -------------------------------------------------------------------------------------------------------------


def test_mask_polarity(variant: str) -> None:
    """torch's MultiheadAttention: True is ignored. scaled_dot_product_attention and Keras: True is seen."""
    case = TORCH["MultiheadAttention"]
    x, ignored, pairs = case["inputs"]
    layer = loaded(fl.MultiheadAttention(4, 2, batch_first=True), state(case))
    got, weights = layer(x, x, x, key_padding_mask=ignored, attn_mask=pairs)
    right(got, case["outputs"][0])
    right(weights, case["outputs"][1])
    wrong(layer(x, x, x, key_padding_mask=~ignored, attn_mask=pairs)[0], case["outputs"][0])
    wrong(layer(x, x, x, key_padding_mask=ignored, attn_mask=~pairs)[0], case["outputs"][0])
    case = TORCH["attention mask"]
    q, k, v, seen = case["inputs"]
    right(F.scaled_dot_product_attention(q, k, v, seen), case["outputs"][0])
    wrong(F.scaled_dot_product_attention(q, k, v, ~seen), case["outputs"][0])


def test_rows_that_see_nothing(variant: str) -> None:
    """Zeros, not NaN, and neither numbers of what must not be seen."""
    case = TORCH["attention mask"]
    q, k, v, seen = case["inputs"]
    got = F.scaled_dot_product_attention(q, k, v, seen)
    assert not got[:, 1].any() and not case["outputs"][0][:, 1].any()
    v = v.copy()
    v[:, 3:] = 1e6  # the third query does not see these; the first one does
    other = F.scaled_dot_product_attention(q, k, v, seen)
    np.testing.assert_array_equal(other[:, 1:], got[:, 1:])
    wrong(other, got)


def test_causal_masks_begin_at_the_top_left(variant: str) -> None:
    """Three queries and five keys: the first query sees the first key alone, unless an offset says otherwise."""
    case = TORCH["attention causal"]
    q, k, v = case["inputs"]
    right(F.scaled_dot_product_attention(q, k, v, is_causal=True), case["outputs"][0])
    wrong(F.scaled_dot_product_attention(q, k, v, is_causal=True, offset=2), case["outputs"][0])


# ---- activations -----------------------------------------------------------------------------------------------------------


def test_leaky_relu_slopes(variant: str) -> None:
    """0.01 in torch, 0.3 in Keras' layer, 0.2 in its activation."""
    cases = ((TORCH["LeakyReLU"], 0.01), (KERAS["LeakyReLU"], 0.3), (KERAS["activation leaky_relu"], 0.2))
    for case, slope in cases:
        for _, other in cases:
            got = fl.LeakyReLU(other)(case["inputs"][0])
            (right if other == slope else wrong)(got, case["outputs"][0])
    np.testing.assert_array_equal(fl.LeakyReLU()(np.float32(-1)), np.float32(-0.01))


def test_gelu_forms(variant: str) -> None:
    for name, other in (("GELU", "tanh"), ("GELU tanh", "none")):
        case = TORCH[name]
        right(fl.GELU("none" if other == "tanh" else "tanh")(case["inputs"][0]), case["outputs"][0])
        wrong(fl.GELU(other)(case["inputs"][0]), case["outputs"][0])


@pytest.mark.parametrize("name", ["SiLU", "Hardsigmoid", "Hardswish", "Softplus"])
def test_activations_of_torch(name: str, variant: str) -> None:
    case = TORCH[name]
    right(getattr(fl, name)()(case["inputs"][0]), case["outputs"][0])
    if name == "Hardsigmoid":
        wrong(F.hardsigmoid(case["inputs"][0], alpha=0.2), case["outputs"][0])


# ---- tensors in files ------------------------------------------------------------------------------------------------------

NORMED: dict[str, Any] = {
    "Linear": lambda: fl.Linear(4, 3),
    "Linear dim 1": lambda: fl.Linear(4, 3),
    "Linear whole": lambda: fl.Linear(4, 3),
    "Conv1d": lambda: fl.Conv1d(4, 3, 3),
    "ConvTranspose1d": lambda: fl.ConvTranspose1d(4, 4, 3),
    "LSTM": lambda: fl.LSTM(3, 2),
}


@pytest.mark.parametrize("age", ["old", "new"])
@pytest.mark.parametrize("name", NORMED)
def test_weight_norm(name: str, age: str, variant: str) -> None:
    """Length and direction under both names that torch has had; the direction alone is another weight."""
    case = TORCH[f"{age} weight_norm {name}"]
    weights = state(case)
    right(out(NORMED[name](), weights, case), case["outputs"][0])
    direction = next(key for key in weights if key.endswith(("_v", "original1")))
    plain = "weight_hh_l0" if name == "LSTM" else "weight"
    rest = {key: w for key, w in weights.items() if not key.endswith(("_g", "_v", "original0", "original1"))}
    wrong(out(NORMED[name](), {**rest, plain: weights[direction]}, case), case["outputs"][0])


def test_bfloat16(tmp_path: Path) -> None:
    """The upper halves of float32 values, as torch writes them; read as float16 they would be other numbers."""
    case = TORCH["bfloat16"]
    bits = {name: array.astype("<u2") for name, array in state(case).items()}
    header, start = {}, 0
    for name, array in bits.items():
        header[name] = {"dtype": "BF16", "shape": list(array.shape), "data_offsets": [start, start + array.nbytes]}
        start += array.nbytes
    text = json.dumps(header).encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(array.tobytes() for array in bits.values()))
    layer = loaded(fl.Linear(5, 3), fl.load_weights(path))
    for name, array in bits.items():
        np.testing.assert_array_equal(layer.state_dict()[name], (array.astype(np.uint32) << 16).view(np.float32))
    right(layer(case["inputs"][0]), case["outputs"][0])
    halves = {name: array.view(np.float16).astype(np.float32) for name, array in bits.items()}
    assert not error(loaded(fl.Linear(5, 3), halves)(case["inputs"][0]), case["outputs"][0]) < 0.1


class Tied(fl.Layer):
    """A model of language whose head is its embedding."""

    def __init__(self) -> None:
        self.embed, self.head = fl.Embedding(7, 4), fl.Linear(4, 7, bias=False)

    def forward(self, ids: Any) -> Any:
        return self.head(self.embed(ids))


def test_tied_weights() -> None:
    """A file that stores a shared tensor once leaves its other name out: an error that names it, never a random layer."""
    case = TORCH["tied"]
    weights = state(case)
    right(out(Tied(), weights, case), case["outputs"][0])
    once = {"embed.weight": weights["embed.weight"]}
    net = Tied()
    with pytest.raises(fl.WeightsError, match=r"head\.weight"):
        net.load_state_dict(once)
    right(out(net, {**once, "head.weight": once["embed.weight"]}, case), case["outputs"][0])


def test_strict() -> None:
    """All that is wrong is named at once, and nothing is taken; torch's counter of batches may be left over."""
    case = TORCH["BatchNorm2d"]
    weights = state(case)
    assert "num_batches_tracked" in weights
    layer = loaded(fl.BatchNorm2d(3), weights)
    before = layer.state_dict()
    bad = {"weight": np.ones(4), "running_mean": np.ones(3), "running_var": np.ones(3), "extra.weight": np.ones(3)}
    with pytest.raises(fl.WeightsError) as caught:
        layer.load_state_dict(bad)
    for name in ("bias", "extra.weight", "weight has shape (4,)"):
        assert name in str(caught.value)
    for name, array in layer.state_dict().items():
        np.testing.assert_array_equal(array, before[name])
