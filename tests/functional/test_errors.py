"""What wrong calls say: errors are ours, name operation and argument, what came and the rule; recorded calls say the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers import functional as F

from ..each import each

x2, x3, x4 = np.zeros((2, 6), np.float32), np.zeros((2, 3, 8), np.float32), np.zeros((1, 3, 8, 8), np.float32)
w1, w2 = np.zeros((4, 3, 3), np.float32), np.zeros((32, 16, 3, 3), np.float32)
W = np.zeros((5, 6), np.float32)
LSTM = (np.zeros((8, 6)), np.zeros((8, 2)))

Call = Callable[[Any], Any]
# (the array that comes first, the call, class, parts of the message in order)
CALLS: dict[str, tuple[Any, Call, type[Exception], str]] = {
    "linear features": (
        x2,
        lambda x: F.linear(x, np.zeros((5, 7))),
        fl.ShapeError,
        r"linear: x has shape \(2, 6\), weight \(5, 7\): expected",
    ),
    "linear weight": (
        x2,
        lambda x: F.linear(x, np.zeros(6)),
        fl.ShapeError,
        r"linear: weight has shape \(6,\): expected \(out, in\)",
    ),
    "linear bias": (x2, lambda x: F.linear(x, W, np.zeros(4)), fl.ShapeError, r"linear: bias has shape \(4,\): expected \(5,\)"),
    "linear scalar": (np.float32(1), lambda x: F.linear(x, W), fl.ShapeError, r"linear: x has shape \(\)"),
    "linear residual": (
        x2,
        lambda x: F.linear(x, W, residual=x),
        fl.ShapeError,
        r"linear: residual has shape \(2, 6\): expected \(2, 5\)",
    ),
    "unknown activation": (
        x2,
        lambda x: F.linear(x, W, activation="rellu"),
        fl.UnsupportedError,
        "linear: activation 'rellu' .*expected one of .*relu",
    ),
    "softmax fused": (x2, lambda x: F.linear(x, W, activation="softmax"), fl.UnsupportedError, "layer after"),
    "activation type": (
        x2,
        lambda x: F.linear(x, W, activation=3),
        fl.DTypeError,
        "linear: activation is 3 of type int: expected",
    ),
    "activation layer": (x2, lambda x: F.linear(x, W, activation=fl.Softmax()), fl.DTypeError, "elementwise layer"),
    "activation parameter": (
        x2,
        lambda x: F.linear(x, W, activation=("leaky_relu", {"slope": 1})),
        fl.ArgumentError,
        r"'leaky_relu' has no parameter \['slope'\]: expected some of \['negative_slope'\]",
    ),
    "conv channels": (
        x4,
        lambda x: F.conv2d(x, w2),
        fl.ShapeError,
        r"conv2d: weight has 16 input channels, x \(1, 3, 8, 8\) has 3 \(groups=1\): expected weight of shape "
        r"\(o, 3, 3, 3\), got \(32, 16, 3, 3\)",
    ),
    "conv rank": (
        x2[0],
        lambda x: F.conv1d(x, w1),
        fl.ShapeError,
        r"conv1d: x has shape \(6,\) \(1 axes\): expected \(n, c, l\), or \(c, l\)",
    ),
    "conv layout": (
        x3,
        lambda x: F.conv1d(x, w1, layout="nhcw"),
        fl.ArgumentError,
        "conv1d: layout is 'nhcw': expected one of .*'nlc'",
    ),
    "conv layout rank": (
        x4,
        lambda x: F.conv2d(x, w2, layout="ncl"),
        fl.ArgumentError,
        "conv2d: layout is 'ncl': expected one of 'nchw', 'nhwc'",
    ),
    "conv weight rank": (
        x3,
        lambda x: F.conv1d(x, w1[0]),
        fl.ShapeError,
        r"conv1d: weight has shape \(3, 3\): expected \(o, i / groups, kl\)",
    ),
    "conv groups": (
        x3,
        lambda x: F.conv1d(x, w1, groups=2),
        fl.ShapeError,
        "conv1d: x has 3 channels: expected a multiple of groups=2",
    ),
    "conv group outputs": (
        x3,
        lambda x: F.conv1d(x, np.zeros((4, 1, 3)), groups=3),
        fl.ShapeError,
        "conv1d: weight has 4 output channels: expected a multiple of groups=3",
    ),
    "conv bias": (x3, lambda x: F.conv1d(x, w1, np.zeros(3)), fl.ShapeError, r"conv1d: bias has shape \(3,\): expected \(4,\)"),
    "conv stride": (x3, lambda x: F.conv1d(x, w1, stride=0), fl.ArgumentError, "conv1d: stride is 0: expected at least 1"),
    "conv stride type": (
        x3,
        lambda x: F.conv1d(x, w1, stride=1.0),
        fl.DTypeError,
        "conv1d: stride is 1.0 of type float: expected an int",
    ),
    "conv stride count": (
        x4,
        lambda x: F.conv2d(x, w2, stride=(1, 2, 3)),
        fl.ArgumentError,
        r"conv2d: stride is \(1, 2, 3\) of length 3: expected one int or 2",
    ),
    "conv padding": (x3, lambda x: F.conv1d(x, w1, padding=-1), fl.ArgumentError, "conv1d: padding is -1: expected at least 0"),
    "conv padding name": (
        x3,
        lambda x: F.conv1d(x, w1, padding="full"),
        fl.ArgumentError,
        "conv1d: padding is 'full': expected 'same', 'valid', 'causal' or integers",
    ),
    "conv padding pairs": (
        x4,
        lambda x: F.conv2d(x, w2, padding=[(1, 2)]),
        fl.ArgumentError,
        r"conv2d: padding is \[\(1, 2\)\]: expected 2 pairs",
    ),
    "conv padding mode": (
        x3,
        lambda x: F.conv1d(x, w1, padding_mode="edge"),
        fl.ArgumentError,
        "conv1d: padding_mode is 'edge': expected one of 'zeros'",
    ),
    "conv reflect": (
        x3,
        lambda x: F.conv1d(x, w1, padding=8, padding_mode="reflect"),
        fl.ShapeError,
        r"padding \(8, 8\) along l: expected at most 7",
    ),
    "conv too small": (
        x3,
        lambda x: F.conv1d(x, w1, dilation=4),
        fl.ShapeError,
        "conv1d: x has size 8 along l, 8 with padding: expected at least 9",
    ),
    "conv residual": (
        x3,
        lambda x: F.conv1d(x, w1, residual=x),
        fl.ShapeError,
        r"conv1d: residual has shape \(2, 3, 8\): expected \(2, 4, 6\)",
    ),
    "softmax axis": (x2, lambda x: F.softmax(x, 2), fl.ShapeError, "softmax: dim is 2, x has 2 axes: expected -2 to 1"),
    "softmax axis type": (x2, lambda x: F.softmax(x, 1.0), fl.DTypeError, "softmax: dim is 1.0 of type float: expected an int"),
    "glu odd": (
        x3,
        lambda x: F.glu(x, 1),
        fl.ShapeError,
        r"glu: x has shape \(2, 3, 8\), size 3 along dim=1: expected an even size",
    ),
    "prelu slopes": (
        x3,
        lambda x: F.prelu(x, np.zeros(8)),
        fl.ShapeError,
        r"prelu: weight has 8 slopes, x \(2, 3, 8\) has 3 channels: expected",
    ),
    "slope": (x2, lambda x: F.leaky_relu(x, "a"), fl.DTypeError, "leaky_relu: negative_slope is 'a': expected a number"),
    "softplus beta": (x2, lambda x: F.softplus(x, beta=0), fl.ArgumentError, "softplus: beta is 0: expected another number"),
    "gelu": (x2, lambda x: F.gelu(x, "erf"), fl.ArgumentError, "gelu: approximate is 'erf': expected 'none' or 'tanh'"),
    "clip": (x2, lambda x: F.clip(x, min=[]), fl.DTypeError, "clip: min of type list is no number"),
    "lstm x": (x2[0], lambda x: F.lstm(x, None, *LSTM), fl.ShapeError, r"lstm: x has shape \(6,\): expected \(t, n, i\)"),
    "lstm features": (x3, lambda x: F.lstm(x, None, *LSTM), fl.ShapeError, "lstm: x has 8 features, weight_ih .*takes 6"),
    "lstm gates": (
        x2,
        lambda x: F.lstm(x, None, np.zeros((7, 6)), LSTM[1]),
        fl.ShapeError,
        r"lstm: weight_ih has shape \(7, 6\): expected \(8, 6\)",
    ),
    "lstm direction": (
        x2,
        lambda x: F.lstm(x, None, *LSTM, direction="back"),
        fl.ArgumentError,
        "lstm: direction is 'back': expected one of",
    ),
    "lstm directions": (
        x2,
        lambda x: F.lstm(x, None, *LSTM, direction="bidirectional"),
        fl.ShapeError,
        r"lstm: weight_ih has shape \(8, 6\): expected \(2, 4 h, i\) for direction='bidirectional'",
    ),
    "lstm state": (
        x2,
        lambda x: F.lstm(x, (np.zeros(2), np.zeros(2)), *LSTM),
        fl.ShapeError,
        r"lstm: h0 has shape \(2,\): expected \(1, 2\)",
    ),
    "lstm half a state": (
        x2,
        lambda x: F.lstm(x, (np.zeros(2), None), *LSTM),
        fl.DTypeError,
        r"lstm: state .*expected None or a pair \(h, c\)",
    ),
    "cell state": (
        x2,
        lambda x: F.lstm_cell(x, (x, x), *LSTM),
        fl.ShapeError,
        r"lstm_cell: h0 has shape \(2, 6\): expected \(2, 2\)",
    ),
    "pad odd": (
        x2,
        lambda x: F.pad(x, (1, 2, 3)),
        fl.ArgumentError,
        "pad: pad has 3 values, x 2 axes: expected an even count of at most 4",
    ),
    "pad type": (x2, lambda x: F.pad(x, 1), fl.ArgumentError, "pad: pad is 1: expected a sequence"),
    "pad reflect": (
        x2,
        lambda x: F.pad(x, (6, 0), "reflect"),
        fl.ShapeError,
        r"pad: \(6, 0\) along axis 1 of size 6: expected 0 to 5 with mode='reflect'",
    ),
    "pad negative": (x2, lambda x: F.pad(x, (-1, 0), "circular"), fl.ShapeError, "expected 0 to 6 with mode='circular'"),
    "pad cut": (x2, lambda x: F.pad(x, (-4, -3)), fl.ShapeError, r"pad: \(-4, -3\) cuts more than there is from size 6"),
    "pad mode": (x2, lambda x: F.pad(x, (1, 1), "edge"), fl.ArgumentError, "pad: mode is 'edge': expected one of 'constant'"),
    "permute": (
        x3,
        lambda x: F.permute(x, (0, 1)),
        fl.ShapeError,
        r"permute: dims is \(0, 1\), x has shape \(2, 3, 8\): expected each of the 3 axes",
    ),
    "reshape": (x2, lambda x: F.reshape(x, (5, -1)), fl.ShapeError, r"reshape: x has shape \(2, 6\) with 12 values: expected"),
    "reshape holes": (x2, lambda x: F.reshape(x, (-1, -1)), fl.ShapeError, "reshape: .*at most one -1"),
    "flatten": (x3, lambda x: F.flatten(x, 2, 1), fl.ShapeError, "flatten: start_dim=2 is after end_dim=1"),
    "squeeze": (x2, lambda x: F.squeeze(x, 0), fl.ShapeError, r"squeeze: x has shape \(2, 6\): expected size 1 along axis 0"),
    "channels last": (x2, F.to_channels_last, fl.ShapeError, "to_channels_last: .*at least 3 axes"),
    "add": (
        x2,
        lambda x: F.add(x, np.zeros((3, 1, 5))),
        fl.ShapeError,
        r"add: operands have shapes \(2, 6\) and \(3, 1, 5\): expected",
    ),
    "concat": (
        x2,
        lambda x: F.concat([x, np.zeros((3, 6))], 1),
        fl.ShapeError,
        r"concat: input 1 has shape \(3, 6\), input 0 \(2, 6\)",
    ),
    "concat type": (x2, lambda x: F.concat([x, "no"]), fl.DTypeError, r"concat: tensors\[1\] "),
    "slice step": (x2, lambda x: F.slice(x, step=0), fl.ArgumentError, "slice: step is 0"),
    "select": (
        x2,
        lambda x: F.select(x, 1, 6),
        fl.ShapeError,
        r"select: index 6 is out of range: expected -6 to 5 along axis 1 of x \(2, 6\)",
    ),
}


@each("symbolic", [False, True], ids=["array", "symbol"])
@each("name", CALLS)
def test_wrong_calls_say_what_is_wrong(name: str, symbolic: bool) -> None:
    x, call, kind, text = CALLS[name]
    given = fl.graph.Input("x", np.shape(x)) if symbolic else x
    with pytest.raises(kind) as caught:
        call(given)
    assert type(caught.value) is kind
    assert re.search(text, str(caught.value)), str(caught.value)
    assert re.match(r"\w+: ", str(caught.value))
    assert len(str(caught.value)) < 500


class Torn:
    """Something that numpy cannot read."""

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise RuntimeError("torn")


@pytest.mark.parametrize("bad", [None, "text", b"bytes", [[1.0], [1.0, 2.0]], {}, object(), Torn(), np.ma.masked_array([1.0])])
def test_what_is_no_array_is_refused(bad: Any) -> None:
    with pytest.raises(fl.DTypeError, match=r"^relu: x "):
        F.relu(bad)


def test_values_out_of_range_become_infinite_as_in_numpy() -> None:
    np.testing.assert_array_equal(F.relu(np.array([1e300, -1e300, np.nan])), np.array([np.inf, 0, np.nan], np.float32))


def test_misspelt_arguments_are_type_errors() -> None:
    for x in (x2, fl.graph.Input("x", (2, 6))):
        with pytest.raises(TypeError):
            F.relu(x, slope=1)  # type: ignore[call-arg]


@pytest.mark.parametrize(("shape", "layout", "meant"), [((1, 8, 8, 3), "nchw", "nhwc"), ((1, 3, 8, 8), "nhwc", "nchw")])
def test_channels_at_the_other_end_are_told(shape: tuple[int, ...], layout: str, meant: str) -> None:
    x, weight = np.zeros(shape, np.float32), np.zeros((4, 3, 3, 3), np.float32)
    with pytest.raises(fl.ShapeError, match=f"or is layout='{meant}' meant"):
        F.conv2d(x, weight, layout=layout)
    with pytest.raises(fl.ShapeError, match="has 5 ") as caught:
        F.conv2d(np.zeros((1, 5, 5, 5), np.float32), weight)
    assert "meant" not in str(caught.value)
