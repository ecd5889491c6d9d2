"""Recurrent layers, functions and cells: against torch and onnxruntime, in pieces, with lengths and masks, merged, from Keras."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from tests.goldens.recurrent_cases import CASES, Case

F = fl.functional
GOLDENS = Path(__file__).parent.parent / "goldens"
# torch computed in float64, we in float32 for at most 24 steps of cells whose results are bounded, or at most 4 of ReLU's.
TOLERANCE = 4e-6
KINDS = ("LSTM", "GRU", "RNN")


def flat(result: Any) -> list[np.ndarray]:
    return [part for item in result for part in flat(item)] if isinstance(result, tuple) else [result]


def normal(*shape: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    return (np.random.default_rng([seed, *shape]).standard_normal(shape) * scale).astype(np.float32)


def filled(layer: Any, scale: float = 0.5) -> Any:
    shapes = layer.tensor_shapes().items()
    layer.load_state_dict({name: normal(*shape, seed=i, scale=scale) for i, (name, shape) in enumerate(shapes)})
    return layer


# ---- against other frameworks ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_as_torch(case: Case, variant: str) -> None:
    layer = getattr(fl, case.name)(*case.args, **case.kwargs)
    x, states, weights = case.draw(layer.tensor_shapes())
    layer.load_state_dict(weights)
    state: Any = states[0] if len(states) == 1 else tuple(states) or None
    got = flat(layer(x, state, lengths=case.lengths) if case.lengths else layer(x, state))
    with np.load(GOLDENS / "recurrent_layers.npz") as file:
        wanted = [file[f"{case.label}#{i}"] for i in range(len(got))]
    for a, b in zip(got, wanted, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE)


with np.load(GOLDENS / "recurrent.npz") as _file:
    KERNEL_CASES = [
        (i, c)
        for i, c in enumerate(json.loads(str(_file["cases"])))
        if all(a == c["activations"][0] for a in c.get("activations", ()))
        # Of an LSTM, g and c have functions of their own, which no argument names.
        if not (c["kernel"] == "lstm" and "activations" in c and c["activations"][0][1] != c["activations"][0][2])
    ]


@pytest.mark.parametrize(("number", "case"), KERNEL_CASES, ids=[str(i) for i, _ in KERNEL_CASES])
def test_functions_as_torch_and_onnxruntime(number: int, case: dict[str, Any]) -> None:
    """The goldens of the kernels, with every option, through the functions."""
    with np.load(GOLDENS / "recurrent.npz") as file:
        given = {name.partition(".")[2]: file[name] for name in file.files if name.startswith(f"{number}.")}
    kind, flags = case["kernel"], case.get("flags", "").split()
    options: dict[str, Any] = {"clip": case.get("clip", 0.0), "batch_first": "batch_first" in flags}
    options["direction"] = "bidirectional" if case.get("directions") == 2 else "reverse" if "reverse" in flags else "forward"
    options |= {"lengths": given.get("lengths")}
    if kind == "lstm":
        options |= {"weight_peephole": given.get("peephole"), "couple_input_forget": "couple_input_forget" in flags}
    if kind == "gru":
        options["reset_after"] = "early" not in flags
    if "activations" in case:
        parameters = {"hardsigmoid": ("alpha", "beta"), "elu": ("alpha",), "leaky_relu": ("negative_slope",)}
        specs = [(n, dict(zip(parameters.get(n, ()), p, strict=False))) for n, *p in case["activations"][0]]
        options |= dict(zip(("nonlinearity",) if kind == "rnn" else ("recurrent_activation", "activation"), specs, strict=False))
    states = tuple(given[name] for name in ("h0", "c0") if name in given)
    state: Any = states[0] if len(states) == 1 else states or None
    weights = [given.get(name) for name in ("w_ih", "w_hh", "b_ih", "b_hh")]
    out, after = getattr(F, kind)(given["x"], state, *weights, **options)
    want = given["out"]
    if case["by"] == "onnxruntime":  # (t, d, n, h)
        want = np.moveaxis(want, 1, 2).reshape(out.shape)
    for a, b in zip((out, *flat(after)), (want, *(given[n] for n in ("hn", "cn") if n in given)), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=TOLERANCE)


# ---- in pieces ---------------------------------------------------------------------------------------------------------------

# Each kind with each option that takes another path through the kernels.
VARIETIES: dict[str, tuple[str, dict[str, Any]]] = {
    "LSTM": ("LSTM", {}),
    "LSTM, peepholes": ("LSTM", {"peephole": True}),
    "LSTM, projections": ("LSTM", {"proj_size": 3}),
    "LSTM, both, clip": ("LSTM", {"peephole": True, "proj_size": 3, "clip": 0.7}),
    "LSTM, coupled": ("LSTM", {"couple_input_forget": True, "activation": "relu"}),
    "GRU": ("GRU", {}),
    "GRU, reset before": ("GRU", {"reset_after": False}),
    "GRU, hard": ("GRU", {"recurrent_activation": "hardsigmoid", "activation": "softsign"}),
    "RNN": ("RNN", {}),
    "RNN, relu": ("RNN", {"nonlinearity": "relu", "bias": False}),
}


@pytest.mark.parametrize("name", VARIETIES)
def test_a_stream_cut_anywhere_is_the_whole(name: str, variant: str) -> None:
    kind, options = VARIETIES[name]
    rng = np.random.default_rng(len(name))
    for hidden, batch, layers in ((5, 1, 2), (17, 3, 1), (33, 1, 1), (16, 2, 2)):
        layer = filled(getattr(fl, kind)(4, hidden, num_layers=layers, **options), 0.3)
        x = normal(24, batch, 4)
        whole, final = layer(x)
        for _ in range(3):
            cuts = [0, *sorted(rng.integers(0, 25, 4)), 24]
            outs, state = [], None
            for begin, end in pairwise(cuts):
                out, state = layer(x[begin:end], state)
                outs.append(out)
            np.testing.assert_array_equal(np.concatenate(outs), whole)
            for a, b in zip(flat(state), flat(final), strict=True):
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", [n for n in VARIETIES if "proj" not in n and "both" not in n])
def test_cells_are_the_steps_of_a_sequence(name: str, variant: str) -> None:
    kind, options = VARIETIES[name]
    layer = filled(getattr(fl, kind)(4, 19, **options))
    cell = getattr(fl, f"{kind}Cell")(4, 19, **options)
    cell.load_state_dict({tensor.removesuffix("_l0"): w for tensor, w in layer.state_dict().items()})
    for batch in (1, 3):
        x, state = normal(6, batch, 4), None
        out, final = layer(x)
        for t in range(6):
            state = cell(x[t], state)
            np.testing.assert_array_equal(flat(state)[0], out[t])
        for a, b in zip(flat(state), flat(final), strict=True):
            np.testing.assert_array_equal(a, b[0])


def test_cell_with_projections(variant: str) -> None:
    layer = filled(fl.LSTM(4, 9, proj_size=5, peephole=True))
    w = layer.state_dict()
    weights = {name.removesuffix("_l0"): array for name, array in w.items()}
    x = normal(3, 2, 4)
    out, (h, c) = layer(x)
    state: Any = None
    for t in range(3):
        state = F.lstm_cell(x[t], state, **weights)
        np.testing.assert_array_equal(state[0], out[t])
    assert state[0].shape == (2, 5) and state[1].shape == (2, 9)
    np.testing.assert_array_equal(state[1], c[0])
    np.testing.assert_array_equal(h[0], out[-1])


# ---- lengths and masks -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["LSTM", "LSTM, both, clip", "GRU", "GRU, reset before", "RNN"])
@pytest.mark.parametrize("batch_first", [False, True])
def test_padding_changes_nothing(name: str, batch_first: bool, variant: str) -> None:
    """Each sequence gives the bits that it gives alone, in two directions and layers; holes are as if they were not there."""
    kind, options = VARIETIES[name]
    layer = filled(getattr(fl, kind)(4, 9, num_layers=2, bidirectional=True, batch_first=batch_first, **options))
    alone = filled(getattr(fl, kind)(4, 9, num_layers=2, bidirectional=True, **options))
    x = normal(4, 7, 4)
    mask = np.array([[1, 1, 1, 0, 0, 0, 0], [0, 1, 1, 0, 1, 0, 1], [1] * 7, [0] * 7], bool)
    states = tuple(normal(4, 4, size, seed=i) for i, size in enumerate(layer._sizes))
    state: Any = states[0] if len(states) == 1 else states
    x[~mask] = np.nan
    out, final = layer(x if batch_first else x.swapaxes(0, 1), state, mask=mask)
    out = out if batch_first else out.swapaxes(0, 1)
    assert not out[~mask].any()
    for j, row in enumerate(mask):
        one = tuple(s[:, j] for s in states)
        want, after = alone(x[j, row], one[0] if len(one) == 1 else one)
        np.testing.assert_array_equal(out[j, row], want)
        for a, b in zip(flat(final), flat(after), strict=True):
            np.testing.assert_array_equal(a[:, j], b)


def test_a_mask_of_the_first_steps_is_lengths() -> None:
    layer, x, lengths = filled(fl.GRU(4, 9, bidirectional=True)), normal(6, 3, 4), np.array([6, 0, 2], np.uint8)
    for a, b in zip(flat(layer(x, lengths=lengths)), flat(layer(x, mask=np.arange(6) < lengths[:, None])), strict=True):
        np.testing.assert_array_equal(a, b)
    single, whole = layer(x[:, 0], lengths=4), layer(x[:4, 0])
    np.testing.assert_array_equal(single[0][:4], whole[0])
    np.testing.assert_array_equal(single[1], whole[1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("given", ["lengths", "mask"])
def test_lengths_and_masks_are_inputs_of_programs(kind: str, given: str, variant: str) -> None:
    layer = filled(getattr(fl, kind)(4, 9, num_layers=2, bidirectional=True))
    x = normal(5, 3, 4)
    value = np.array([5, 0, 2]) if given == "lengths" else np.array([[1, 0, 1, 1, 0], [0] * 5, [1] * 5], bool)
    shape = ("n",) if given == "lengths" else ("n", "t")
    model = fl.compile(
        lambda x, v: layer(x, **{given: v}),
        fl.graph.Input("x", ("t", "n", 4)),
        fl.graph.Input("v", shape, dtype=value.dtype),
        require_native=variant != "reference",
    )
    got = model.run({"x": x, "v": value})
    for a, b in zip(got.values(), flat(layer(x, **{given: value})), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-6)


# ---- two directions ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("merge", ["concat", "sum", "mul", "ave", None])
def test_merged_directions(kind: str, merge: Any, variant: str) -> None:
    layer = filled(getattr(fl, kind)(4, 6, bidirectional=True, merge=merge))
    x = normal(5, 2, 4)
    w = [
        np.stack([layer.state_dict()[n + "_l0" + r] for r in ("", "_reverse")])
        for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    ]
    one = [F.__dict__[kind.lower()](x, None, *(p[d] for p in w), direction=("forward", "reverse")[d])[0] for d in range(2)]
    want: Any = {
        "concat": np.concatenate(one, axis=-1),
        "sum": one[0] + one[1],
        "mul": one[0] * one[1],
        "ave": (one[0] + one[1]) / 2,
        None: tuple(one),
    }[merge]
    for got in (layer(x)[0], F.__dict__[kind.lower()](x, None, *w, direction="bidirectional", merge=merge)[0]):
        for a, b in zip(flat(got), flat(want), strict=True):
            np.testing.assert_array_equal(a, b)
    model = fl.compile(lambda x: layer(x)[0], fl.graph.Input("x", (5, 2, 4)))
    for a, b in zip(model.run({"x": x}).values(), flat(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-6)


@pytest.mark.parametrize("merge", ["sum", None])
def test_merged_layers_follow_each_other(merge: Any) -> None:
    both = filled(fl.LSTM(4, 6, num_layers=2, bidirectional=True, merge=merge))
    between = "concat" if merge is None else merge
    first = fl.LSTM(4, 6, bidirectional=True, merge=between)
    second = fl.LSTM(6 if merge else 12, 6, bidirectional=True, merge=merge)
    for k, layer in enumerate((first, second)):
        layer.load_state_dict({n.replace("_l1", "_l0"): a for n, a in both.state_dict().items() if f"_l{k}" in n})
    x = normal(5, 2, 4)
    for a, b in zip(flat(both(x)[0]), flat(second(first(x)[0])[0]), strict=True):
        np.testing.assert_array_equal(a, b)


# ---- Keras -------------------------------------------------------------------------------------------------------------------


def keras(kind: str, x: np.ndarray, kernel: np.ndarray, recurrent: np.ndarray, bias: Any, after: bool) -> np.ndarray:
    """h of every step of a sequence (t, i), as Keras' cells compute it."""

    def sigmoid(v: np.ndarray) -> np.ndarray:
        return np.asarray(1 / (1 + np.exp(-v)))

    h = c = np.zeros(len(recurrent))
    bias_in, bias_h = bias if np.ndim(bias) == 2 else (bias, np.zeros(kernel.shape[1]))
    outs = []
    for v in x:
        a, b = v @ kernel + bias_in, h @ recurrent + bias_h
        if kind == "LSTM":
            i, f, g, o = np.split(a + b, 4)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
        elif kind == "GRU":
            (xz, xr, xh), (hz, hr, hh) = np.split(a, 3), np.split(b, 3)
            z, r = sigmoid(xz + hz), sigmoid(xr + hr)
            n = np.tanh(xh + r * hh) if after else np.tanh(xh + (r * h) @ np.split(recurrent, 3, axis=1)[2])
            h = z * h + (1 - z) * n
        else:
            h = np.tanh(a + b)
        outs.append(h)
    return np.array(outs)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "GRU before", "RNN"])
def test_weights_of_keras(kind: str) -> None:
    name, after = kind.split()[0], kind == "GRU"
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[name]
    options = {"reset_after": after} if name == "GRU" else {}
    layer = getattr(fl, name)(3, 5, num_layers=2, bidirectional=True, **options)
    weights, x = [], normal(7, 3)
    for k, inputs in enumerate((3, 3, 10, 10)):
        bias = normal(2, gates * 5, seed=k) if after else normal(gates * 5, seed=k)
        weights += [normal(inputs, gates * 5, seed=k), normal(5, gates * 5, seed=k, scale=0.5), bias]
    layer.load_keras(weights)
    y: Any = x.astype(np.float64)
    for k in range(2):
        forward, backward = weights[6 * k : 6 * k + 3], weights[6 * k + 3 : 6 * k + 6]
        y = np.concatenate([keras(name, y, *forward, after), keras(name, y[::-1], *backward, after)[::-1]], axis=1)
    np.testing.assert_allclose(layer(x)[0], y, rtol=0, atol=TOLERANCE)
    cell = getattr(fl, f"{name}Cell")(3, 5, **options)
    cell.load_keras(weights[:3])
    np.testing.assert_allclose(flat(cell(x[0]))[0], keras(name, x[:1], *weights[:3], after)[0], rtol=0, atol=TOLERANCE)


def test_keras_has_no_projections() -> None:
    for layer in (fl.LSTM(3, 5, proj_size=2), fl.LSTM(3, 5, peephole=True), fl.LSTMCell(3, 5, peephole=True)):
        with pytest.raises(fl.UnsupportedError, match="Keras has no such layer"):
            layer.load_keras([])


# ---- errors ------------------------------------------------------------------------------------------------------------------

X = np.zeros((5, 2, 3), np.float32)
W = {
    "LSTM": (np.zeros((16, 3)), np.zeros((16, 4))),
    "GRU": (np.zeros((12, 3)), np.zeros((12, 4))),
    "RNN": (np.zeros((4, 3)), np.zeros((4, 4))),
}
LAYER = {kind: filled(getattr(fl, kind)(3, 4)) for kind in KINDS}
WRONG: list[tuple[Any, type[Exception], str]] = [
    (lambda: F.gru(X, None, *W["LSTM"]), fl.ShapeError, r"gru: weight_hh has shape \(16, 4\): expected \(12, 4\), \(3 h, h\)"),
    (lambda: F.rnn(X, None, *W["LSTM"]), fl.ShapeError, r"rnn: weight_hh has shape \(16, 4\): expected \(4, 4\), \(h, h\)"),
    (lambda: F.rnn(X, (X, X), *W["RNN"]), fl.DTypeError, "rnn: state of type tuple: expected None or an array"),
    (lambda: F.gru(X, np.zeros((2, 4)), *W["GRU"]), fl.ShapeError, r"gru: h0 has shape \(2, 4\): expected \(1, 2, 4\)"),
    (lambda: F.gru(X, None, *W["GRU"], np.zeros(4)), fl.ShapeError, r"gru: bias_ih has shape \(4,\): expected \(12,\), \(3 h,\)"),
    (lambda: F.gru(X, None, *W["GRU"], lengths=[1]), fl.ShapeError, r"gru: lengths has shape \(1,\): expected \(2,\)"),
    (lambda: F.gru(X, None, *W["GRU"], lengths=[1, 6]), fl.ArgumentError, "gru: lengths go from 1 to 6: expected 0 to 5"),
    (lambda: F.gru(X, None, *W["GRU"], lengths=[-1, 5]), fl.ArgumentError, "gru: lengths go from -1 to 5: expected 0 to 5"),
    (lambda: F.gru(X, None, *W["GRU"], lengths=[1.0, 2.0]), fl.DTypeError, "gru: lengths has dtype float64: expected integers"),
    (lambda: F.gru(X, None, *W["GRU"], mask=np.ones((2, 5))), fl.DTypeError, "gru: mask has dtype float64: expected booleans"),
    (lambda: F.gru(X, None, *W["GRU"], mask=np.ones((5, 2), bool)), fl.ShapeError,
     r"gru: mask has shape \(5, 2\): expected \(2, 5\)"),
    (lambda: F.gru(X, None, *W["GRU"], mask=np.ones((2, 5), bool), lengths=[1, 2]), fl.ArgumentError, "lengths and mask are"),
    (lambda: F.gru(X, None, *W["GRU"], merge="max"), fl.ArgumentError, "gru: merge is 'max': expected one of 'concat', 'sum'"),
    (lambda: F.gru(X, None, *W["GRU"], merge=None), fl.ArgumentError, "gru: merge is None: only a bidirectional layer"),
    (lambda: F.gru(X, None, *W["GRU"], clip=-1), fl.ArgumentError, "gru: clip is -1.0: expected at least 0"),
    (lambda: F.gru(X, None, *W["GRU"], activation="softmax"), fl.UnsupportedError, "gru: activation 'softmax'"),
    (lambda: F.rnn(X, None, *W["RNN"], nonlinearity=3), fl.DTypeError, "rnn: activation is 3"),
    (lambda: F.lstm(X, None, np.zeros((16, 3)), np.zeros((16, 2)), weight_hr=np.zeros((3, 4))), fl.ShapeError,
     r"lstm: weight_hr has shape \(3, 4\): expected \(2, 4\)"),
    (lambda: F.lstm(X, None, *W["LSTM"], weight_peephole=np.zeros((3, 4))), fl.ShapeError,
     r"lstm: weight_peephole has shape \(3, 4\): expected \(3 h,\) or \(1, 3 h\)"),
    (lambda: F.lstm(X, None, *W["LSTM"], weight_peephole=np.zeros(8)), fl.ShapeError,
     r"weight_peephole has shape \(8,\): expected \(12,\)"),
    (lambda: F.gru_cell(X, None, *W["GRU"]), fl.ShapeError, r"gru_cell: x has shape \(5, 2, 3\)"),
    (lambda: F.rnn_cell(X[0], X[0], *W["RNN"]), fl.ShapeError, r"rnn_cell: h0 has shape \(2, 3\): expected \(2, 4\)"),
    (lambda: LAYER["GRU"](X[0, 0]), fl.ShapeError, r"gru: x has shape \(3,\): expected \(t, n, i\)"),
    (lambda: LAYER["GRU"](X, np.zeros((1, 3, 4))), fl.ShapeError, r"gru: h0 has shape \(1, 3, 4\): expected \(1, 2, 4\)"),
    (lambda: LAYER["RNN"](X, lengths=[7, 1]), fl.ArgumentError, "rnn: lengths go from 1 to 7"),
    (lambda: LAYER["RNN"](X, mask=[[1] * 5] * 2), fl.DTypeError, "rnn: mask has dtype int64"),
    (lambda: filled(fl.GRUCell(3, 4))(X[0], np.zeros((1, 4))), fl.ShapeError,
     r"gru_cell: h0 has shape \(1, 4\): expected \(2, 4\)"),
    (lambda: fl.GRU(3, 4, merge="sum"), fl.ArgumentError, "GRU: merge is 'sum': only a bidirectional layer"),
    (lambda: fl.RNN(3, 4, nonlinearity="no"), fl.UnsupportedError, "RNN: activation 'no'"),
    (lambda: fl.LSTM(3, 4, proj_size=-1), fl.ArgumentError, "LSTM: proj_size is -1"),
    (lambda: fl.GRU(3, 4).load_keras([np.zeros((3, 12))]), fl.WeightsError,
     r"expected 3: kernel_l0 \(3, 12\), recurrent_kernel_l0 \(4, 12\), bias_l0 \(2, 12\)"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "text"), WRONG, ids=[text[:50] for _, _, text in WRONG])
def test_wrong_arguments(call: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call()


def test_a_mask_of_numbers_is_refused_while_recording() -> None:
    with pytest.raises(fl.DTypeError, match="gru: mask has dtype float64: expected booleans"):
        fl.compile(lambda x: LAYER["GRU"](x, mask=np.ones((2, 5)))[0], fl.graph.Input("x", (5, 2, 3)))


REPRS = {
    "LSTM(2, 3, num_layers=2, proj_size=2, peephole=True, clip=1.0)": lambda: fl.LSTM(
        2, 3, 2, proj_size=2, peephole=True, clip=1
    ),
    "GRU(2, 3, bidirectional=True, merge=None, reset_after=False, bias=False)": lambda: fl.GRU(
        2, 3, bias=False, bidirectional=True, merge=None, reset_after=False
    ),
    "RNN(2, 3, nonlinearity='relu')": lambda: fl.RNN(2, 3, nonlinearity="relu"),
    "GRUCell(2, 3, activation=None)": lambda: fl.GRUCell(2, 3, activation=None),
}


@pytest.mark.parametrize("text", REPRS)
def test_repr(text: str) -> None:
    assert repr(REPRS[text]()) == text
