"""Recurrent layers that are called again: their programs give the bits of the first call, in its form, and go with weights."""

from __future__ import annotations

import gc
import itertools
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
import fastlayers.program  # without which a thousand calls come before the first program
from fastlayers.layers import _again
from tests.each import each

KINDS = ("LSTM", "GRU", "RNN")
ENOUGH = _again.BEFORE + 2
FORMS = [
    {"num_layers": layers, "bidirectional": both, "batch_first": first, "merge": merge, "bias": layers == 1}
    for layers, both, first, merge in itertools.product((1, 2), (False, True), (False, True), ("concat", "ave", None))
    if both or merge == "concat"
]


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * 0.3).astype(np.float32)


def filled(layer: Any, seed: int = 0) -> Any:
    layer.load_state_dict({k: drawn(*s, seed=seed + i) for i, (k, s) in enumerate(layer.tensor_shapes().items())})
    return layer


def parts(value: Any) -> Iterator[Any]:
    """Arrays and the kinds of what holds them, in order."""
    if isinstance(value, np.ndarray):
        yield value.shape
        yield value.tobytes()
    else:
        yield type(value)
        for part in value:
            yield from parts(part)


def runs_a_program(layer: Any, *call: Any) -> bool:
    return layer._fast is not None and layer._fast(call[0], call[1] if len(call) > 1 else None) is not None


def states(kind: str, *shape: int) -> Any:
    return (drawn(*shape, seed=2), drawn(*shape, seed=3)) if kind.startswith("LSTM") else drawn(*shape, seed=2)


@each("form", FORMS, ids=str)
@each("kind", KINDS)
def test_every_call_gives_the_bits_of_the_first(kind: str, form: dict[str, Any]) -> None:
    layer = filled(getattr(fl, kind)(5, 7, **form))
    rows = form["num_layers"] * (1 + form["bidirectional"])
    for shape in ((3, 2, 5), (4, 5)):
        batch = () if len(shape) == 2 else (shape[0 if form["batch_first"] else 1],)
        for state in (None, states(kind, rows, *batch, 7)):
            results = [list(parts(layer(drawn(*shape), state))) for _ in range(ENOUGH)]
            assert results[1:] == results[:1] * (ENOUGH - 1)
            assert runs_a_program(layer, drawn(*shape), state) == (fl.kernels.current() != "reference")
    assert all(runs_a_program(layer, drawn(*shape)) == (fl.kernels.current() != "reference") for shape in ((3, 2, 5), (4, 5)))


@each("kind", KINDS)
def test_cells_too(kind: str) -> None:
    cell = filled(getattr(fl, f"{kind}Cell")(5, 7))
    for shape in ((2, 5), (5,)):
        for state in (None, states(kind, *shape[:-1], 7)):
            results = [list(parts(cell(drawn(*shape), state))) for _ in range(ENOUGH)]
            assert results[1:] == results[:1] * (ENOUGH - 1)
            assert runs_a_program(cell, drawn(*shape), state) == (fl.kernels.current() != "reference")


def called(layer: Any, x: np.ndarray) -> Any:
    for _ in range(ENOUGH):
        layer(x)
    return layer


@pytest.mark.without("reference")
def test_what_kernels_do_not_take_as_it_is_gets_no_program(variant: str) -> None:
    layer, x = filled(fl.GRU(5, 7)), drawn(6, 4, 5)
    for given in (x.astype(np.float64), x[::2], x.tolist()):
        want = list(parts(layer(np.ascontiguousarray(given, np.float32))))
        layer = filled(fl.GRU(5, 7))
        for _ in range(ENOUGH):
            assert list(parts(layer(given))) == want
        assert not layer._packed()[1]._programs
    with pytest.raises(fl.ShapeError, match="x has 4 features"):
        called(layer, x)(x[..., :4])
    with pytest.raises(fl.DTypeError, match="state of type ndarray"):
        called(filled(fl.LSTM(5, 7)), x)(x, x)


@pytest.mark.without("reference")
def test_weights_are_packed_once_and_large_ones_have_no_program(variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    layer = called(filled(fl.LSTM(5, 7, num_layers=2)), drawn(3, 2, 5))
    (program,) = layer._packed()[1]._programs.values()
    assert [id(p) for p in program.known.weights._packed.values()] == [id(p) for p in layer._packed()[0]]
    monkeypatch.setattr(_again, "LARGEST", 100)
    assert not called(filled(fl.LSTM(5, 7)), drawn(3, 2, 5))._packed()[1]._programs


def test_new_weights_are_taken_and_old_programs_go() -> None:
    x = drawn(3, 2, 5)
    layer = called(filled(fl.GRU(5, 7)), x)
    first, kept = list(parts(layer(x))), [weakref.ref(program) for program in layer._packed()[1]._programs.values()]
    filled(layer, 9)
    gc.collect()
    assert [program() for program in kept] == [None] * len(kept)
    assert list(parts(layer(x))) == list(parts(filled(fl.GRU(5, 7), 9)(x))) != first


def test_another_variant_runs_at_once() -> None:
    x = drawn(3, 2, 5)
    layer = called(filled(fl.RNN(5, 7)), x)
    with fl.kernels.use("reference"):
        assert list(parts(layer(x))) == list(parts(filled(fl.RNN(5, 7))(x)))
        assert not runs_a_program(layer, x)
    assert list(parts(layer(x))) == list(parts(layer(x)))
    assert runs_a_program(layer, x) == (fl.kernels.current() != "reference")  # again, after one call


def test_many_threads_with_many_sizes() -> None:
    layer = filled(fl.LSTM(5, 7))
    inputs = [drawn(1 + i % 7, 2, 5, seed=i) for i in range(7)]
    want = [list(parts(filled(fl.LSTM(5, 7))(x))) for x in inputs]
    with ThreadPoolExecutor(4) as pool:
        for at, found in enumerate(pool.map(lambda i: list(parts(layer(inputs[i % 7]))), range(210))):
            assert found == want[at % 7]
