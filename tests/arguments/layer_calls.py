"""Every layer: its constructor, after which it is filled and called, and its calls."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import fastlayers as fl

from .calls import Call, of

__all__ = ["layers"]

_LONG = frozenset({"2**15", "2**24", "2**29", "2**31 - 1", "2**31", "2**32", "2**32 + 1"})
_MOST = 1 << 18  # numbers of a layer that is filled; a larger one is only made


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def filled(layer: fl.Layer) -> bool:
    """Gives it weights, positive ones for variances, unless it would take too many."""
    shapes = layer.tensor_shapes()
    if sum(math.prod(shape) for shape in shapes.values()) > _MOST:
        return False
    rng = np.random.default_rng(0)
    layer.load_state_dict({name: rng.uniform(0.05, 0.5, shape).astype(np.float32) for name, shape in shapes.items()})
    return True


def _both(name: str, shape: Any, call: dict[str, Any] | None = None, /, **given: Any) -> list[Call]:
    """The constructor, and the call; `shape` is that of x, or arguments of the call by name."""
    kind: Any = getattr(fl.layers, name)
    first = dict(shape) if isinstance(shape, dict) else {"x": numbers(*shape)}
    rest = {**first, **(call or {})}
    method = kind.forward if "__call__" not in _own(kind) else kind.__call__

    def made(**arguments: Any) -> Any:
        layer = kind(**arguments)
        return layer(**rest) if filled(layer) else repr(layer)

    fixed = kind(**given)
    filled(fixed)
    compared = not name.startswith(("Dropout",))
    return [
        of(f"{name}(...)", kind.__init__, made, **given)._replace(compared=compared),
        of(f"{name}()(...)", method, fixed, **rest)._replace(compared=compared),
    ]


def _own(kind: Any) -> set[str]:
    """What the layer and those between it and `Layer` define."""
    return {name for k in kind.__mro__ if k not in (fl.Layer, object) for name in vars(k)}


_SPACE: dict[int, tuple[int, ...]] = {1: (2, 4, 9), 2: (2, 4, 6, 5), 3: (1, 4, 4, 5, 3)}
_NORMS = {1: (3, 4, 5), 2: (3, 4, 5, 2), 3: (2, 4, 3, 2, 2)}


def _convolutions() -> list[Call]:
    made = []
    for n, shape in _SPACE.items():
        made += _both(f"Conv{n}d", shape, in_channels=4, out_channels=6, kernel_size=3, padding=1)
        made += _both(f"Conv{n}d", shape, in_channels=4, out_channels=6, kernel_size=(2,) * n, stride=2, padding="same", groups=2,
                      activation="relu", bias=False)  # fmt: skip
        made += _both(f"ConvTranspose{n}d", shape, in_channels=4, out_channels=2, kernel_size=3, stride=2)
        if n < 3:
            made += _both(f"DepthwiseConv{n}d", shape, in_channels=4, kernel_size=3, padding=1, depth_multiplier=2)
            made += _both(f"SeparableConv{n}d", shape, in_channels=4, out_channels=3, kernel_size=3, padding="same")
    return made


def _pools() -> list[Call]:
    made = []
    for n, shape in _SPACE.items():
        made += _both(f"MaxPool{n}d", shape, kernel_size=2)
        made += _both(f"AvgPool{n}d", shape, kernel_size=(2,) * n, stride=1, padding=1)
        made += _both(f"LPPool{n}d", shape, norm_type=2, kernel_size=2)
        made += _both(f"AdaptiveAvgPool{n}d", shape, output_size=2)
        made += _both(f"AdaptiveMaxPool{n}d", shape, output_size=(2,) * n)
        for mode in ("Circular", "Reflection", "Replication", "Zero"):
            made += _both(f"{mode}Pad{n}d", shape, padding=1)
        made += _both(f"ConstantPad{n}d", shape, padding=(1, 0) * n, value=2.5)
        made += _both(f"BatchNorm{n}d", _NORMS[n], num_features=4)
        made += _both(f"InstanceNorm{n}d", _NORMS[n], num_features=4, affine=True)
        made += _both(f"Dropout{n}d", shape, {"seed": 3}, p=0.25)
    made += _both("GlobalAvgPool", _SPACE[2]) + _both("GlobalMaxPool", _SPACE[2])
    steps = {"lengths": np.array([2, 5])}
    made += _both("MaxOverTime", (2, 5, 3), steps) + _both("MeanOverTime", (2, 5, 3), steps)
    boxes = np.array([[0, 0, 0, 3, 4], [1, 1, 1, 2, 2]], np.float32)
    made += _both("RoIAlign", _SPACE[2], {"boxes": boxes}, output_size=2, sampling_ratio=2)
    made += _both("RoIPool", _SPACE[2], {"boxes": boxes}, output_size=(2, 3))
    made += _both("Upsample", _SPACE[2], size=(3, 4), mode="bilinear")
    made += _both("Upsample", _SPACE[1], scale_factor=1.5)
    made += _both("PixelShuffle", _SPACE[2], upscale_factor=2) + _both("PixelUnshuffle", (1, 2, 4, 6), downscale_factor=2)
    return made


def _plain() -> list[Call]:
    x = (2, 4, 6)
    made: list[Call] = []
    for name in (
        *("Hardsigmoid", "Hardswish", "Hardtanh", "Identity", "LogSigmoid", "Mish", "QuickGELU", "ReLU", "ReLU6", "SELU", "SiLU"),
        *("Sigmoid", "Softplus", "Softsign", "Softshrink", "Hardshrink", "Tanh", "Tanhshrink", "CELU", "ELU", "GELU", "GLU"),
        *("LeakyReLU", "Softmax", "LogSoftmax", "Softmin", "SwiGLU", "PReLU", "Flatten"),
    ):
        made += _both(name, x)
    made += _both("Threshold", x, threshold=0.1, value=2.0) + _both("PReLU", x, num_parameters=4)
    made += _both("Linear", x, in_features=6, out_features=3) + _both(
        "Linear", x, in_features=6, out_features=2, activation="gelu"
    )
    made += _both("LayerNorm", x, normalized_shape=6) + _both("LayerNorm", x, normalized_shape=(4, 6), bias=False)
    made += _both("RMSNorm", x, normalized_shape=[6]) + _both("GroupNorm", x, num_groups=2, num_channels=4)
    made += _both("LocalResponseNorm", x, size=3) + _both("Dropout", x, {"seed": 1}, p=0.5)
    made += _both("CosineSimilarity", {"x1": numbers(3, 6), "x2": numbers(1, 6)})
    for name, shape in (("FFT", (2, 6, 2)), ("IFFT", (2, 6, 2)), ("RFFT", (2, 6)), ("IRFFT", (2, 6, 2))):
        made += _both(name, shape) + _both(name, shape, n=4, dim=0, norm="ortho")
    made += _both("STFT", (2, 40), n_fft=8, hop_length=3, win_length=6, window=numbers(6)) + _both("STFT", (40,), n_fft=8)
    made += _both("ISTFT", (5, 7, 2), n_fft=8, hop_length=2, length=12) + _both("ISTFT", (2, 5, 7, 2), n_fft=8)
    made += _both("Spectrogram", (2, 40), n_fft=8, hop_length=3, power=1.0, pad=2) + _both(
        "MelScale", (2, 5, 7), n_mels=3, n_stft=5
    )
    made += _both("MelSpectrogram", (40,), sample_rate=800, n_fft=16, n_mels=3)
    made += _both("Permute", x, dims=(2, 0, 1)) + _both("Reshape", x, shape=(-1, 8))
    made += _both("FeedForward", x, d_model=6, dim_feedforward=5)
    made += _both("Embedding", {"ids": np.array([[0, 3], [1, 2]])}, num_embeddings=4, embedding_dim=3)
    made += _both("HierarchicalSoftmax", (3, 6), in_features=6, num_classes=5, counts=[1, 2, 3, 4, 5])
    made[-2] = made[-2]._replace(slow=frozenset({"2**24"}))
    made += _both("PositionalEncoding", (5, 2, 6), {"offset": 2}, d_model=6)
    made += _both("LearnedPositionalEncoding", (5, 2, 6), {"offset": 2}, max_length=9, d_model=6)
    made += _both("RotaryEmbedding", (2, 3, 5, 8), {"offset": 1}, dim=8)
    made += _both("RotaryEmbedding", (2, 5, 24), {"num_heads": 3, "position_ids": np.zeros((2, 5), int)}, dim=8)
    made += _both("ResidualBlock", _SPACE[2], in_channels=4, out_channels=3, stride=2)
    made += _both("BottleneckBlock", _SPACE[2], in_channels=4, channels=2, out_channels=4)
    made += _both("InceptionBlock", _SPACE[2], in_channels=4, ch1x1=2, ch3x3red=1, ch3x3=2, ch5x5red=1, ch5x5=2, pool_proj=1)
    made += _both("NiNBlock", _SPACE[2], in_channels=4, channels=[3, 2], kernel_size=3)
    net = fl.Sequential(fl.Linear(6, 4), fl.Dropout(0.5))
    filled(net)
    made += [of("MonteCarlo(...)", fl.MonteCarlo.__init__, lambda **a: fl.MonteCarlo(**a)(numbers(2, 6)), net=net, samples=3)]
    made += [of("MonteCarlo().draw", fl.MonteCarlo.draw, lambda number, x: fl.MonteCarlo(net, 3).draw(number, x), number=1,
                x=numbers(2, 6))]  # fmt: skip
    made += [of("Sequential(...)", lambda a, b: None, lambda a, b: fl.Sequential(a, b)(numbers(2, 6)), a=net, b=fl.ReLU())]
    made += [of("Sequential()(...)", fl.Sequential.__call__, net, x=numbers(2, 6))]
    return made


def _recurrent() -> list[Call]:
    made: list[Call] = []
    x = (5, 2, 3)
    for kind in ("RNN", "GRU", "LSTM"):
        made += _both(kind, x, input_size=3, hidden_size=4)
        made += _both(kind, x, {"lengths": np.array([2, 5])}, input_size=3, hidden_size=2, num_layers=2, bidirectional=True)
        state: Any = numbers(1, 5, 4)
        state = (state, state) if kind == "LSTM" else state
        made += _both(kind, x, {"state": state, "mask": np.ones((5, 2), bool)}, input_size=3, hidden_size=4, batch_first=True)
        step = numbers(2, 4)
        made += _both(f"{kind}Cell", (2, 3), {"state": (step, step) if kind == "LSTM" else step}, input_size=3, hidden_size=4)
    made += _both("LSTM", x, input_size=3, hidden_size=4, proj_size=2)
    parts = {
        "encoder": fl.GRU(3, 4, batch_first=True), "decoder": fl.GRU(2, 4, batch_first=True),
        "output": fl.Linear(4, 7), "target": fl.Embedding(7, 2), "source": None, "attention": None,
    }  # fmt: skip
    model = fl.Seq2Seq(**parts)  # type: ignore[arg-type]
    filled(model)
    tokens = np.array([[0, 1, 2], [0, 3, 4]])
    forward = {"x": numbers(2, 5, 3), "tokens": tokens, "lengths": np.array([5, 3])}

    def sequence(**arguments: Any) -> Any:
        made = fl.Seq2Seq(**arguments)
        return made(**forward) if filled(made) else None

    x3 = numbers(2, 5, 3)
    made += [
        of("Seq2Seq(...)", fl.Seq2Seq.__init__, sequence, **parts),
        of("Seq2Seq()(...)", fl.Seq2Seq.forward, model, **forward),
        of("Seq2Seq().encode", model.encode, x=x3, lengths=np.array([5, 3])),
        of("Seq2Seq().step", model.step, tokens=np.array([1, 2]), state=model.encode(x3)),
        # They never end by themselves.
        of("Seq2Seq().greedy", model.greedy, x=x3, start=0, end=6, max_length=4)._replace(slow=_LONG),
        of("Seq2Seq().beam", model.beam, x=x3, start=0, end=6, max_length=4, beams=2)._replace(slow=_LONG),
    ]
    return made


def _attention() -> list[Call]:
    made: list[Call] = []
    q, v = numbers(2, 4, 8), numbers(2, 5, 8)
    made += _both("Attention", {"inputs": [q, v]}, {"mask": [np.ones((2, 4), bool), np.ones((2, 5), bool)]}, use_scale=True)
    made += _both("AdditiveAttention", {"inputs": [q, v]}, {"return_attention_scores": True}, units=8)
    made += _both("BahdanauAttention", {"query": numbers(2, 1, 8), "value": v}, query_dim=8, value_dim=8, units=3)
    three = {"query": q, "key": v, "value": v}
    made += _both("MultiheadAttention", three, embed_dim=8, num_heads=2, batch_first=True)
    made += _both("MultiheadAttention", three, {"key_padding_mask": np.zeros((2, 5), bool)}, embed_dim=8, num_heads=4,
                  num_kv_heads=2, batch_first=True)  # fmt: skip
    made += _both("MultiheadAttention", {"query": q, "key": q, "value": q}, embed_dim=8, num_heads=2, batch_first=True,
                  rotary=fl.RotaryEmbedding(4))  # fmt: skip
    made += _both("TransformerEncoderLayer", {"src": q}, d_model=8, nhead=2, dim_feedforward=6, batch_first=True)
    made += _both("TransformerDecoderLayer", {"tgt": q, "memory": v}, d_model=8, nhead=2, dim_feedforward=6, batch_first=True)
    encoder, decoder = fl.TransformerEncoderLayer(8, 2, 6), fl.TransformerDecoderLayer(8, 2, 6)
    made += _both("TransformerEncoder", {"src": q}, encoder_layer=encoder, num_layers=2, norm=fl.LayerNorm(8))
    made += _both(
        "TransformerDecoder", {"tgt": numbers(2, 4, 8), "memory": numbers(3, 4, 8)}, decoder_layer=decoder, num_layers=1
    )
    made += _both("Transformer", {"src": q, "tgt": numbers(2, 4, 8)}, d_model=8, nhead=2, num_encoder_layers=1,
                  num_decoder_layers=1, dim_feedforward=6)  # fmt: skip
    attention = fl.MultiheadAttention(8, 2, batch_first=True)
    filled(attention)
    stack = fl.TransformerEncoder(encoder, 1)
    filled(stack)
    made += [
        of("MultiheadAttention().empty_cache", attention.empty_cache),
        of("MultiheadAttention().project", attention.project, key=v, value=v),
        of("MultiheadAttention()(cache)", attention.forward, attention, **three, cache=attention.empty_cache(2)),
        of("TransformerEncoder().empty_cache", stack.empty_cache),
        of("Transformer.generate_square_subsequent_mask", fl.Transformer.generate_square_subsequent_mask, sz=4),
    ]
    return made


def _others() -> list[Call]:
    layer = fl.Linear(3, 2)
    weights = {"weight": np.ones((2, 3)), "bias": np.zeros(2)}
    tree = fl.ClassTree.huffman([5, 3, 2, 1])
    softmax = fl.HierarchicalSoftmax(6, 5)
    filled(softmax)
    paths = [tree.path(c) for c in range(4)]
    run: Callable[..., Any] = lambda **a: fl.ClassTree(**a).depth  # noqa: E731
    return [
        of("load_state_dict", layer.load_state_dict, weights=weights),
        of("load_state_dict(weight)", lambda weight, bias: None,
           lambda weight, bias: fl.Linear(3, 2).load_state_dict({"weight": weight, "bias": bias}), **weights),
        of("load_keras", layer.load_keras, weights=[np.ones((3, 2)), np.zeros(2)]),
        of("ClassTree", fl.ClassTree.__init__, run, left=tree.left, right=tree.right),
        of("ClassTree.huffman", fl.ClassTree.huffman, lambda counts: fl.ClassTree.huffman(counts).depth, counts=[5, 3, 2, 1]),
        of("ClassTree.balanced", fl.ClassTree.balanced, lambda num_classes: fl.ClassTree.balanced(num_classes).depth,
           num_classes=5)._replace(slow=frozenset({"2**24"})),
        of("ClassTree.from_paths", fl.ClassTree.from_paths, lambda points, codes: fl.ClassTree.from_paths(points, codes).depth,
           points=[p for p, _ in paths], codes=[c for _, c in paths]),
        of("ClassTree().path", tree.path, target=2),
        of("HierarchicalSoftmax().log_prob", softmax.log_prob, x=numbers(3, 6), targets=np.array([0, 1, 4])),
        of("HierarchicalSoftmax().predict", softmax.predict, x=numbers(3, 6)),
    ]  # fmt: skip


@functools.cache
def layers() -> list[Call]:
    """Constructors, calls and methods of all layers."""
    return [*_convolutions(), *_pools(), *_plain(), *_recurrent(), *_attention(), *_others()]
