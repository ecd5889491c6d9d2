"""Layers as objects: constructors, names, text, freezing, networks that users write."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import fastlayers as fl


def filled(layer: Any) -> Any:
    layer.load_state_dict({name: np.ones(shape) for name, shape in layer.tensor_shapes().items()})
    return layer


def test_layers_do_not_change() -> None:
    layer = fl.Linear(2, 3)
    for change in (
        lambda: setattr(layer, "in_features", 5),
        lambda: setattr(layer, "new", 1),
        lambda: delattr(layer, "in_features"),
    ):
        with pytest.raises(AttributeError, match="Linear: cannot"):
            change()
    with pytest.raises(AttributeError):
        layer.nonsense  # noqa: B018


def test_weight_and_bias_can_be_read() -> None:
    layer = fl.Conv1d(2, 3, 1)
    assert layer.weight is None and layer.bias is None
    filled(layer)
    assert layer.weight is not None and layer.weight.shape == (3, 2, 1) and not layer.weight.flags.writeable
    assert layer.bias is not None and layer.bias.shape == (3,)


REPRS = {
    "Linear(in_features=2, out_features=3, bias=True)": fl.Linear(2, 3),
    "Linear(in_features=2, out_features=3, bias=False, activation='relu')": fl.Linear(2, 3, False, activation=fl.ReLU()),
    "Conv1d(2, 3, kernel_size=(4,), stride=(1,))": fl.Conv1d(2, 3, 4),
    "Conv2d(2, 4, kernel_size=(3, 1), stride=(2, 2), padding='same', groups=2, bias=False)": fl.Conv2d(
        2, 4, (3, 1), stride=2, padding="same", groups=2, bias=False
    ),
    "LeakyReLU(negative_slope=0.2)": fl.LeakyReLU(0.2),
    "GELU(approximate='none')": fl.GELU(),
    "PReLU(num_parameters=1)": fl.PReLU(),
    "Softmax(dim=1)": fl.Softmax(1),
    "Flatten(start_dim=1, end_dim=-1)": fl.Flatten(),
    "ZeroPad2d((1, 1, 1, 1))": fl.ZeroPad2d(1),
    "ConstantPad1d((1, 2), value=0.5)": fl.ConstantPad1d((1, 2), 0.5),
    "LSTM(2, 3, num_layers=2, bidirectional=True)": fl.LSTM(2, 3, 2, bidirectional=True),
    "Sequential(\n  (a): ReLU()\n  (b): Sequential(\n    (0): Tanh()\n  )\n)": fl.Sequential(
        {"a": fl.ReLU(), "b": fl.Sequential(fl.Tanh())}
    ),
}


@pytest.mark.parametrize("text", REPRS)
def test_repr(text: str) -> None:
    assert repr(REPRS[text]) == text


WRONG: list[tuple[Any, type[Exception], str]] = [
    (lambda: fl.Linear(-1, 2), fl.ArgumentError, "Linear: in_features is -1: expected at least 0"),
    (lambda: fl.Linear(2.5, 2), fl.DTypeError, "Linear: in_features is 2.5 of type float: expected an int"),
    (lambda: fl.Linear(True, 2), fl.DTypeError, "Linear: in_features is True"),
    (lambda: fl.Linear(2, 2, activation="no"), fl.UnsupportedError, "Linear: activation 'no'"),
    (lambda: fl.Conv1d(3, 4, 3, groups=2), fl.ArgumentError, "Conv1d: groups is 2, in_channels 3, out_channels 4"),
    (lambda: fl.Conv2d(3, 4, (3, 3, 3)), fl.ArgumentError, "Conv2d: kernel_size .*expected one int or 2"),
    (lambda: fl.Conv2d(3, 4, 0), fl.ArgumentError, "Conv2d: kernel_size is 0: expected at least 1"),
    (lambda: fl.Conv2d(3, 4, 3, groups=0), fl.ArgumentError, "conv2d: groups is 0: expected at least 1"),
    (lambda: fl.LSTM(2, 0), fl.ArgumentError, "LSTM: hidden_size is 0"),
    (lambda: fl.LSTM(2, 3, num_layers=0), fl.ArgumentError, "LSTM: num_layers is 0"),
    (lambda: fl.LSTM(2, 3, proj_size=3), fl.ArgumentError, "LSTM: proj_size is 3: expected less than hidden_size, 3"),
    (lambda: fl.Hardtanh(1, 1), fl.ArgumentError, "Hardtanh: min_val is 1, max_val is 1"),
    (lambda: fl.LeakyReLU("x"), fl.DTypeError, "LeakyReLU: .*negative_slope"),
    (lambda: fl.Softplus(0), fl.ArgumentError, "softplus: beta is 0"),
    (lambda: fl.ReflectionPad2d((1, 2)), fl.ArgumentError, r"ReflectionPad2d: padding is \(1, 2\): expected an int or 4 of them"),
    (
        lambda: fl.ReflectionPad2d(1)(np.zeros((2, 2))),
        fl.ShapeError,
        "ReflectionPad2d: x has 2 axes: expected 4, or 3 without a batch",
    ),
    (lambda: fl.Permute(3), fl.DTypeError, "Permute: dims is 3 of type int: expected a sequence of ints"),
    (lambda: fl.Reshape((2, -2)), fl.ArgumentError, "Reshape: shape is -2: expected at least -1"),
    (lambda: fl.Sequential(fl.ReLU(), "relu"), fl.DTypeError, "Sequential: layer '1' is of type str"),
    (lambda: fl.Sequential({"a.b": fl.ReLU()}), fl.ArgumentError, "Sequential: a layer is named 'a.b'"),
    (lambda: fl.Sequential(fl.ReLU())["a"], fl.ArgumentError, "Sequential: no layer is named 'a'"),
    (
        lambda: filled(fl.Linear(2, 3))(np.zeros((2, 3))),
        fl.ShapeError,
        r"linear: x has shape \(2, 3\), weight \(.*, 2\): expected x of shape \(..., 2\)",
    ),
    (lambda: filled(fl.Conv1d(2, 3, 3))(np.zeros((1, 3, 5))), fl.ShapeError, "conv1d: weight has 2 input channels"),
    (lambda: filled(fl.LSTM(2, 3))(np.zeros((1, 3, 5))), fl.ShapeError, r"lstm: x has 5 features, weight_ih \(12, 2\) takes 2"),
    (
        lambda: filled(fl.LSTM(2, 3))(np.zeros((1, 3, 2)), (np.zeros((1, 2, 3)),) * 2),
        fl.ShapeError,
        r"lstm: h0 has shape \(1, 2, 3\): expected \(1, 3, 3\)",
    ),
    (
        lambda: filled(fl.LSTMCell(2, 3))(np.zeros((1, 2)), np.zeros((2, 1, 3))),
        fl.DTypeError,
        "lstm_cell: state .*expected None or a pair",
    ),
    (lambda: fl.Layer()(1), NotImplementedError, "Layer: define forward"),
]


@pytest.mark.parametrize(("call", "kind", "text"), WRONG, ids=[text[:40] for _, _, text in WRONG])
def test_wrong_arguments(call: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call()


def test_sequential_is_a_sequence_of_named_layers() -> None:
    a, b, c = fl.Linear(1, 1), fl.ReLU(), fl.Linear(1, 1)
    net = fl.Sequential(OrderedDict(a=a, b=b, c=c))
    assert len(net) == 3 and list(net) == [a, b, c]
    assert net[0] is a and net["b"] is b and net[-1] is c
    assert list(net[1:].tensor_shapes()) == ["c.weight", "c.bias"]
    assert fl.Sequential()(5) == 5


class Block(fl.Layer):
    def __init__(self, size: int) -> None:
        self.up = fl.Linear(size, size, activation="relu")
        self._hidden = fl.Linear(size, size)

    def forward(self, x: Any) -> Any:
        return fl.functional.add(x, self._hidden(self.up(x)))


class Net(fl.Layer):
    def __init__(self) -> None:
        self.blocks = [Block(3) for _ in range(2)]
        self.head = fl.Linear(3, 1)

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return {"score": self.head(x)}


def test_networks_that_users_write() -> None:
    net = Net()
    names = list(net.tensor_shapes())
    assert (
        names[:2] == ["blocks.0.up.weight", "blocks.0.up.bias"] and names[-1] == "head.bias" and "blocks.1._hidden.bias" in names
    )
    filled(net)
    x = np.ones((2, 3), np.float32)
    # A block of ones: 3 + 1 = 4 in each unit, 3 * 4 + 1 = 13, and x is added.
    np.testing.assert_array_equal(net(x)["score"], np.full((2, 1), 3 * (14 + 3 * (3 * 14 + 1) + 1) + 1))
    graph = fl.graph.trace(net, fl.graph.Input("x", ("n", 3)))
    assert set(graph.constants) == set(names)
    assert [value.name for value in graph.outputs] == ["score"]
    np.testing.assert_array_equal(fl.graph.execute(graph, {"x": x})["score"], net(x)["score"])
    with pytest.raises(AttributeError):
        net.head = fl.Linear(3, 1)


def test_lstm_in_pieces_is_the_whole(variant: str) -> None:
    layer = fl.LSTM(3, 5, num_layers=2)
    rng = np.random.default_rng(0)
    layer.load_state_dict({name: rng.standard_normal(shape) for name, shape in layer.tensor_shapes().items()})
    x = rng.standard_normal((7, 2, 3)).astype(np.float32)
    want, (h, c) = layer(x)
    state = None
    parts = []
    for piece in (x[:3], x[3:4], x[4:]):
        out, state = layer(piece, state)
        parts.append(out)
    np.testing.assert_array_equal(np.concatenate(parts), want)
    assert state is not None
    np.testing.assert_array_equal(state[0], h)
    np.testing.assert_array_equal(state[1], c)


def test_plans_of_shapes_are_bounded() -> None:
    layer = filled(fl.Conv1d(1, 1, 3))
    for length in range(3, 400):
        assert layer(np.zeros((1, 1, length), np.float32)).shape == (1, 1, length - 2)
    assert len(layer._plans) <= 64
