"""Everything that can be called can be recorded, saved and loaded: each layer and function, with known sizes and named ones, and
the program answers with the bits of the call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.graph import Input

from ..arguments.layer_calls import layers
from ..each import each
from .examples import EXAMPLES
from .examples._base import OTHERWISE
from .test_compiled import names

# What goes on by values that it finds, draws values, or takes none: recording it is one of our errors, which says what to do.
REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "Dropout": (lambda x: fl.Dropout(0.5)(x, seed=1), "compile the network alone, and use MonteCarlo"),
    "Dropout1d": (lambda x: fl.Dropout1d(0.5)(x, seed=1), "compile the network alone, and use MonteCarlo"),
    "Dropout2d": (lambda x: fl.Dropout2d(0.5)(x, seed=1), "compile the network alone, and use MonteCarlo"),
    "Dropout3d": (lambda x: fl.Dropout3d(0.5)(x, seed=1), "compile the network alone, and use MonteCarlo"),
    "MonteCarlo": (lambda x: fl.MonteCarlo(fl.Dropout(0.5), 2)(x), "compile the network alone"),
    "beam_search": (
        lambda x: fl.functional.beam_search(lambda tokens, state: (state, state), x, 0, 1, 3, 2), "search over the two programs"
    ),
    "hierarchical_argmax": (
        lambda x: fl.functional.hierarchical_argmax(x, np.ones((2, 4)), fl.ClassTree.balanced(3)), "hierarchical_log_softmax"
    ),
    "blackman_window": (fl.functional.blackman_window, "of the symbolic value"),
    "hamming_window": (fl.functional.hamming_window, "of the symbolic value"),
    "hann_window": (fl.functional.hann_window, "of the symbolic value"),
    "melscale_fbanks": (lambda x: fl.functional.melscale_fbanks(x, 0.0, 1.0, 2, 8), "of the symbolic value"),
    "rotary_tables": (lambda x: fl.functional.rotary_tables(x, 4), "of the symbolic value"),
    "sinusoidal_encoding": (lambda x: fl.functional.sinusoidal_encoding(x, 4), "of the symbolic value"),
}  # fmt: skip
# Axes whose size must be known while the function is recorded, and why.
KNOWN = {
    ("squeeze", -2): "whether the axis goes",
    ("hierarchical_log_softmax", -1): "the tree's nodes, which the public function counts before it calls the operation",
}
# Values and sizes that the call refuses and a program, which believes its inputs' values, takes.
LENIENT = {
    **dict.fromkeys(("GRU", "LSTM", "RNN", "Seq2Seq", "gru", "lstm", "rnn"), "lengths beyond the steps count as all of them"),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d"), "an output_size out of reach is cropped or filled up"),
    "conv2d": "a residual is broadcast",
}


class Case(NamedTuple):
    """A call: `function` takes `arrays`; everything else is fixed."""

    name: str
    function: Callable[..., Any]
    arrays: list[np.ndarray]


def flat(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = tuple(value.values())
    return [part for item in value for part in flat(item)] if isinstance(value, (tuple, list)) else [value]


def taken(value: Any, arrays: list[np.ndarray]) -> Callable[[Any], Any]:
    """What puts other values in place of the arrays in nested arguments, which are added to `arrays`."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        at = len(arrays)
        arrays.append(value)
        return lambda given: given[at]
    if isinstance(value, (tuple, list)):
        parts = [taken(part, arrays) for part in value]
        return lambda given: type(value)(part(given) for part in parts)
    return lambda given: value


def of_layer(call: Any) -> Case:
    arrays: list[np.ndarray] = []
    places = {name: taken(value, arrays) for name, value in call.arguments.items()}
    return Case(
        call.name.partition("(")[0], lambda *given: call.run(**{name: place(given) for name, place in places.items()}), arrays
    )


def of_function(example: Any) -> Case:
    called, arrays = names(example), example.arrays()
    at = [i for i, a in enumerate(arrays) if isinstance(a, np.ndarray) and not called[i].startswith(("weight", "bias"))]

    def function(*given: Any) -> Any:
        tensors = list(arrays)
        for i, value in zip(at, given, strict=True):
            tensors[i] = value
        return example.call(tensors)

    return Case(example.op, function, [arrays[i] for i in at])


@functools.cache
def cases() -> dict[str, list[Case]]:
    found: dict[str, list[Case]] = {}
    for case in [*(of_layer(c) for c in layers() if c.name.endswith("()(...)")), *map(of_function, EXAMPLES)]:
        if case.arrays:
            found.setdefault(case.name, []).append(case)
    return {name: found[name] for name in sorted(found) if name not in REFUSED}


NAMES = sorted(
    {name for name in fl.layers.__all__ if issubclass(getattr(fl.layers, name), fl.Layer)} - {"Layer"}
    | set(fl.functional.__all__) - {"swish"}
)  # fmt: skip


def same(name: str, got: Any, want: Any) -> None:
    """Bits, or nearly, where the program says so; and dtypes."""
    for a, b in zip(flat(got), flat(want), strict=True):
        b = np.asarray(b)
        assert a.dtype == b.dtype and a.shape == b.shape
        if name in OTHERWISE:
            np.testing.assert_allclose(a, b, rtol=OTHERWISE[name], atol=OTHERWISE[name])
        else:
            np.testing.assert_array_equal(a, b)


def program(case: Case, shapes: list[Any]) -> fl.Model:
    given = enumerate(zip(shapes, case.arrays, strict=True))
    return fl.compile(case.function, *(Input(f"i{i}", shape, array.dtype) for i, (shape, array) in given))


def results(model: fl.Model, arrays: list[np.ndarray]) -> list[Any]:
    wanted = {spec.name for spec in model.inputs}
    return list(model.run({f"i{i}": a for i, a in enumerate(arrays) if f"i{i}" in wanted}).values())


@each("name", NAMES)
def test_everything_public_has_a_case_or_is_refused(name: str) -> None:
    if name in REFUSED:
        call, text = REFUSED[name]
        with pytest.raises(fl.Error, match=text):
            fl.compile(call, Input("x", ("n", 4)))
    elif name == "greedy_search":  # see below
        assert name not in cases()
    else:
        assert cases()[name]


@pytest.mark.parametrize("name", sorted(set(NAMES) - {*REFUSED, "greedy_search"}))
def test_a_program_answers_with_the_bits_of_the_call(name: str, tmp_path: Path) -> None:
    for case in cases()[name]:
        want = case.function(*case.arrays)
        model = program(case, [a.shape for a in case.arrays])
        same(name, results(model, case.arrays), want)
        model.save(tmp_path / "m.safetensors")
        same(name, results(fl.load(tmp_path / "m.safetensors"), case.arrays), want)


@pytest.mark.parametrize("name", sorted(set(NAMES) - {*REFUSED, "greedy_search"}))
@pytest.mark.sampled(3)
def test_a_named_size_takes_what_the_call_takes(name: str, tmp_path: Path) -> None:
    """One size of the first tensor is a name: the program takes it as it was, and one less, or refuses it as the call does."""
    for case in cases()[name]:
        first, *rest = case.arrays
        for axis in range(first.ndim):
            if (name, axis - first.ndim) in KNOWN:
                continue
            shape: list[Any] = list(first.shape)
            shape[axis] = "size"
            model = program(case, [shape, *(a.shape for a in rest)])
            model.save(tmp_path / "m.safetensors")
            same(name, results(fl.load(tmp_path / "m.safetensors"), case.arrays), case.function(*case.arrays))
            less = [np.ascontiguousarray(first.take(range(max(first.shape[axis] - 1, 0)), axis)), *rest]
            try:
                want = case.function(*less)
            except (fl.Error, ValueError):
                if name not in LENIENT:
                    with pytest.raises(fl.Error):
                        results(model, less)
                continue
            same(name, results(model, less), want)


# ---- lengths of whole networks -----------------------------------------------------------------------------------------------


def filled(net: Any, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    net.load_state_dict({name: rng.normal(size=shape).astype(np.float32) for name, shape in net.tensor_shapes().items()})
    return net


class Attending(fl.Layer):
    """Bahdanau's attention, as `Seq2Seq` describes it."""

    def __init__(self) -> None:
        self.query, self.keys = fl.Linear(4, 5), fl.Linear(4, 5)

    def forward(self, h: Any, memory: Any, mask: Any) -> Any:
        found = fl.functional.additive_attention(self.query(h)[:, None], self.keys(memory), memory, attn_mask=mask[:, None])
        return found[:, 0]


def seq2seq(kind: Any, attention: bool) -> fl.Seq2Seq:
    made: fl.Seq2Seq = filled(fl.Seq2Seq(
        encoder=kind(3, 4, batch_first=True), decoder=kind(6 if attention else 2, 4, batch_first=True),
        output=fl.Linear(4, 7), target=fl.Embedding(7, 2), attention=Attending() if attention else None,
    ))  # fmt: skip
    return made


def sequences(n: int, t: int, u: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng((n, t, u))
    return rng.normal(size=(n, t, 3)).astype(np.float32), rng.integers(0, 7, (n, u)), rng.integers(1, t + 1, n)


SIZES = ((2, 5, 3), (1, 1, 1), (4, 3, 6))


@pytest.mark.parametrize("attention", [False, True], ids=["plain", "attention"])
@pytest.mark.parametrize("kind", [fl.GRU, fl.LSTM, fl.RNN], ids=lambda kind: kind.__name__)
def test_sequence_to_sequence(kind: Any, attention: bool, variant: str, tmp_path: Path) -> None:
    net = seq2seq(kind, attention)
    x = Input("x", ("n", "t", 3))
    lengths, mask = Input("lengths", ("n",), np.int64), Input("mask", ("n", "t"), np.bool_)
    tokens = Input("tokens", ("n", "u"), np.int64)
    masked = fl.compile(lambda a, b, m: net(a, b, mask=m), x, tokens, mask)
    models = [fl.compile(net, x, tokens), fl.compile(net, x, tokens, lengths), masked]
    models[1].save(tmp_path / "m.safetensors")
    models[1] = fl.load(tmp_path / "m.safetensors")
    for n, t, u in SIZES:
        a, b, ends = sequences(n, t, u)
        valid = np.arange(t) < ends[:, None]
        fixed = fl.compile(net, Input("x", a.shape), Input("t", b.shape, np.int64), Input("l", ends.shape, np.int64))
        np.testing.assert_array_equal(models[0](a, b), net(a, b))
        for got in (models[1](a, b, ends), models[2](a, b, valid), fixed(a, b, ends)):
            np.testing.assert_array_equal(got, net(a, b, ends))


@pytest.mark.parametrize("attention", [False, True], ids=["plain", "attention"])
def test_greedy_search(attention: bool, variant: str, tmp_path: Path) -> None:
    """Sequences end at different steps, at once, or never."""
    net, met = seq2seq(fl.LSTM, attention), set()
    for end in range(7):
        given = Input("x", ("n", "t", 3)), Input("l", ("n",), np.int64)
        model = fl.compile(lambda x, ends, end=end: net.greedy(x, 0, end, 9, ends), *given)
        model.save(tmp_path / "m.safetensors")
        for n, t, _ in (*SIZES, (0, 2, 1)):
            x, _, ends = sequences(n, t, 1)
            want = net.greedy(x, 0, end, 9, ends)
            met.update(want.lengths.tolist())
            for found in (model, fl.load(tmp_path / "m.safetensors")):
                for a, b in zip(found(x, ends), want, strict=True):
                    assert a.dtype == b.dtype
                    np.testing.assert_array_equal(a, b)
    assert len(met) > 2 and 9 in met


def test_greedy_search_of_a_step_of_ones_own() -> None:
    table = filled(fl.Embedding(5, 5)).weight

    def search(start: Any, state: Any) -> Any:
        def step(tokens: Any, state: Any) -> Any:
            return fl.functional.log_softmax(fl.functional.embedding(tokens, table) + state["h"]), {"h": state["h"] * 0.5}

        return fl.functional.greedy_search(step, {"h": state}, start, end=1, max_length=6)

    model = fl.compile(search, Input("start", ("n",), np.int32), Input("state", ("n", 5)))
    start, state = np.array([0, 3, 4], np.int32), np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    for a, b in zip(model(start, state), search(start, state), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
def test_a_transformer_of_every_length(positions: str, variant: str) -> None:
    layer: dict[str, Any] = {
        "sinusoidal": lambda: fl.PositionalEncoding(8, batch_first=True),
        "learned": lambda: fl.LearnedPositionalEncoding(9, 8, batch_first=True), "rotary": fl.Identity,
    }  # fmt: skip
    attention = fl.MultiheadAttention(8, 2, batch_first=True, rotary=fl.RotaryEmbedding(4) if positions == "rotary" else None)
    net = filled(fl.Sequential(fl.Embedding(11, 8), layer[positions](), fl.LayerNorm(8)))
    filled(attention)

    def function(ids: Any) -> Any:
        x = net(ids)
        return attention(x, x, x)[0], net[0].mask(ids) if net[0].padding_idx is not None else ids != 0

    model = fl.compile(function, Input("ids", ("n", "t"), np.int64))
    for n, t in ((2, 5), (1, 1), (3, 9), (2, 0)):
        ids = np.random.default_rng((n, t)).integers(0, 11, (n, t))
        for a, b in zip(model(ids), function(ids), strict=True):
            np.testing.assert_array_equal(a, b)
    if positions == "learned":
        with pytest.raises(fl.Error, match="id"):
            model(np.zeros((1, 10), np.int64))


def test_long_encodings_are_constants_of_a_binding() -> None:
    """Beyond what a binder folds: no step in numpy, and the rows of the one table."""
    net = fl.PositionalEncoding(64, batch_first=True)
    model = fl.compile(net, Input("x", ("n", "t", 64)), require_native=True)
    for t in (3, 700, 2000):
        x = np.random.default_rng(t).normal(size=(1, t, 64)).astype(np.float32)
        np.testing.assert_array_equal(model(x), net(x))


# ---- comparisons and logic ---------------------------------------------------------------------------------------------------

COMPARED: list[Callable[[Any, Any], Any]] = [
    lambda x, i: x > 0.5, lambda x, i: x >= 1, lambda x, i: i > 0, lambda x, i: i <= 2.5, lambda x, i: x == i,
    lambda x, i: i != [1, 2, 3], lambda x, i: (x > 0) & (i < 2) | ~(x == 1), lambda x, i: (x > 0) ^ (i > 0), lambda x, i: ~i & 3,
    lambda x, i: i | np.array([4, 1, 2]), lambda x, i: np.where(x > 0.5, x, 0), lambda x, i: np.where(i == 1, i, -1),
    lambda x, i: np.less(x, i), lambda x, i: np.not_equal(i, 2), lambda x, i: np.invert(i > 1), lambda x, i: (i > 0) < (i > 1),
    lambda x, i: i[:, ::-1].T, lambda x, i: (i > 1)[0, None], lambda x, i: i.reshape(-1, 1), lambda x, i: i[..., -1],
    lambda x, i: x.swapaxes(0, 1), lambda x, i: i.astype(np.float32), lambda x, i: x.astype(np.int32), lambda x, i: i,
    lambda x, i: fl.functional.relu(i > 1), lambda x, i: fl.functional.add(i > 1, x),
]  # fmt: skip


@each("at", range(len(COMPARED)))
@each("size", [2, "n"], ids=["known", "named"])
def test_values_of_other_dtypes_are_recorded_as_numpy_has_them(at: int, size: Any, variant: str) -> None:
    x, i = np.array([[0.25, 1.0, -2.0], [0.5, 3.0, 1.0]], np.float32), np.array([[0, 1, 2], [3, 1, 1]])
    given = [Input("x", (size, 3)), Input("i", (size, 3), np.int64)]
    graph = fl.graph.trace(COMPARED[at], *given)
    want = np.asarray(COMPARED[at](x, i))
    for got in (fl.compile(COMPARED[at], *given)(x, i), *fl.graph.execute(graph, {"x": x, "i": i}).values()):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda x: x & 1, fl.DTypeError, "bitwise_and"),
    (lambda x: ~x, fl.DTypeError, "invert"),
    (lambda x: np.where(x, 1, 2), fl.DTypeError, "condition has dtype float32"),
    (lambda x: x == "a", fl.DTypeError, "operand of equal|an operand has dtype"),
    (lambda x: x.astype("M8[s]"), fl.DTypeError, "astype"),
    (lambda x: x.swapaxes(0, 2), fl.ShapeError, "swapaxes"),
    (lambda x: x > np.ones(4), fl.ShapeError, "Greater"),
    (lambda x: 1 if x > 1 else 2, fl.UnsupportedError, "decision by value"),
    (lambda x: fl.Embedding(3, 2, padding_idx=0).mask(x), fl.DTypeError, "Embedding.mask"),
    (lambda x: fl.RotaryEmbedding(2)(x[None], position_ids=x), fl.DTypeError, "position_ids"),
], ids=range(10))  # fmt: skip
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        fl.compile(call, Input("x", (2, 3)))
