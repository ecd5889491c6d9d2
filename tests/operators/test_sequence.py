"""Operators on lists and on what may be None: results, errors, and whole models that take and give such."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.ir.graph import Node
from fastlayers.kernels import dispatch
from fastlayers.model.model import Model
from fastlayers.model.specs import OptionalSequenceSpec, OptionalSpec, SequenceSpec
from fastlayers.operators import View, sequence
from fastlayers.operators.meter import Meter
from fastlayers.operators.sequence import SEQUENCES
from fastlayers.ort import NodeArg
from fastlayers.program import Program

from .models import graph, info, model, node, to_graph

A = np.arange(12, dtype=np.float32).reshape(3, 4)


def i64(value: Any) -> np.ndarray:
    return np.array(value, np.int64)


def call(op: str, *values: Any, **attributes: Any) -> Any:
    made = Node(op, tuple(f"x{i}" for i in range(len(values))), ("y",), attributes)
    return SEQUENCES[op](View(made, [None] * len(values), []), *values)[0]


def same(got: Any, want: Any) -> None:
    assert type(got) is type(want)
    if isinstance(want, list):
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            same(a, b)
    elif want is not None:
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_array_equal(got, want)


def test_lists() -> None:
    xs = [A, A[:1], A[:2]]
    same(call("SequenceConstruct", *xs), xs)
    same(call("SequenceEmpty"), [])
    for at in (-3, -1, 0, 2):
        same(call("SequenceAt", xs, i64(at)), xs[at])
        same(call("SequenceErase", xs, i64(at)), [x for i, x in enumerate(xs) if i != at % 3])
    same(call("SequenceErase", xs), xs[:2])
    same(call("SequenceLength", xs), i64(3))
    for at, want in ((0, [A[2:], *xs]), (3, [*xs, A[2:]]), (-1, [*xs[:2], A[2:], xs[2]]), (-3, [A[2:], *xs])):
        same(call("SequenceInsert", xs, A[2:], i64(at)), want)
    same(call("SequenceInsert", [], A), [A])
    same(xs, [A, A[:1], A[:2]])


def test_splitting_and_joining() -> None:
    same(call("SplitToSequence", A), [A[i : i + 1] for i in range(3)])
    same(call("SplitToSequence", A, axis=1, keepdims=0), [A[:, i].copy() for i in range(4)])
    same(call("SplitToSequence", A, i64(3), axis=-1), [A[:, :3].copy(), A[:, 3:].copy()])
    same(call("SplitToSequence", A, i64([2, 0, 1]), keepdims=0), [A[:2], A[:0], A[2:]])
    same(call("ConcatFromSequence", [A, A[:1]], axis=0), np.concatenate([A, A[:1]]))
    same(call("ConcatFromSequence", [A, A], axis=-1), np.concatenate([A, A], -1))
    same(call("ConcatFromSequence", [A, A], axis=-1, new_axis=1), np.stack([A, A], -1))


def test_optional() -> None:
    same(call("Optional", A), A)
    same(call("Optional"), None)
    same(call("OptionalHasElement", None), np.array(False))
    same(call("OptionalHasElement"), np.array(False))
    same(call("OptionalHasElement", [A]), np.array(True))
    same(call("OptionalGetElement", [A]), [A])


WRONG: list[tuple[str, tuple[Any, ...], dict[str, Any], type[Exception], str]] = [
    ("SequenceAt", ([A], i64(1)), {}, fl.ShapeError, "position 1 in a sequence of 1: expected -1 to 0"),
    ("SequenceAt", (A, i64(0)), {}, fl.DTypeError, "input 0 is an array: expected a sequence"),
    ("SequenceAt", ([A], A), {}, fl.ShapeError, "expected one integer"),
    ("SequenceErase", ([],), {}, fl.ShapeError, "position -1 in a sequence of 0"),
    ("SequenceInsert", ([A], A, i64(-2)), {}, fl.ShapeError, "expected -1 to 1"),
    ("SequenceInsert", ([A], A.astype(int)), {}, fl.DTypeError, "dtypes float32, int64"),
    ("SequenceConstruct", (A, None), {}, fl.DTypeError, "input 1 is None"),
    ("SplitToSequence", (A,), {"axis": 2}, fl.ShapeError, "axis is 2: expected -2 to 1"),
    ("SplitToSequence", (A, i64(0)), {}, fl.ShapeError, "at least 1"),
    ("SplitToSequence", (A, i64([1, 1])), {}, fl.ShapeError, "whose sum is 3"),
    ("SplitToSequence", (A, i64([4, -1])), {}, fl.ShapeError, "whose sum is 3"),
    ("SplitToSequence", (A, A), {}, fl.ShapeError, "expected an integer or a vector"),
    ("ConcatFromSequence", ([],), {"axis": 0}, fl.ShapeError, "the sequence is empty"),
    ("ConcatFromSequence", ([A, A[:1]],), {"axis": 1}, fl.ShapeError, "cannot be concatenated along axis 1"),
    ("ConcatFromSequence", ([A],), {"axis": 2}, fl.ShapeError, "expected -2 to 1"),
    ("OptionalGetElement", (None,), {}, fl.ShapeError, "the optional value is None"),
]


@pytest.mark.parametrize(("op", "values", "attributes", "error", "text"), WRONG)
def test_errors(op: str, values: Any, attributes: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call(op, *values, **attributes)


def test_parts_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(fl.LimitError, match="parts: at most"):
        call("SplitToSequence", np.broadcast_to(np.float32(0), (1 << 40, 0)))
    monkeypatch.setattr(sequence, "MOST_PARTS", 2)
    with pytest.raises(fl.LimitError, match="would make 3 parts: at most 2"):
        call("SplitToSequence", A)


# ---- whole models --------------------------------------------------------------------------------------------------------


def typed(name: str, kind: str, dtype: Any = np.float32) -> Any:
    made = info(name, None, None, None if kind != "tensor" else dtype)
    made.kind, made.elem_type = kind, {"float32": 1, "int64": 7}[np.dtype(dtype).name]
    return made


def lists() -> Model:
    """The list with x after it, whether there was an optional value, and the first two of the list added."""
    nodes = [
        node("SequenceInsert", ["xs", "x"], ["longer"]), node("OptionalHasElement", ["maybe"], ["there"]),
        node("Constant", [], ["zero"], value_int=0), node("Constant", [], ["one"], value_int=1),
        node("SequenceAt", ["longer", "zero"], ["a"]), node("SequenceAt", ["longer", "one"], ["b"]),
        node("Add", ["a", "b"], ["sum"]), node("Identity", ["maybe"], ["same"]), node("Identity", ["xs"], ["xs2"]),
    ]  # fmt: skip
    inputs = [typed("xs", "sequence(tensor)"), info("x", None, (3, 4), np.float32), typed("maybe", "optional(sequence(tensor))")]
    outputs = [typed("longer", "sequence(tensor)"), "there", "sum", typed("same", "optional(sequence(tensor))"), "xs2"]
    return Model(to_graph(model(graph(nodes, inputs, outputs), 18)))


def test_lists_in_and_out(variant: str, tmp_path: Path) -> None:
    made = lists()
    assert [type(s) for s in made.inputs][0::2] == [SequenceSpec, OptionalSequenceSpec]
    assert made.inputs[0].dtype == np.float32
    assert [NodeArg(s).type for s in made.inputs] == ["seq(tensor(float))", "tensor(float)", "optional(seq(tensor(float)))"]
    made.save(tmp_path / "lists.safetensors")
    for each in (made, fl.load(tmp_path / "lists.safetensors")):
        for maybe in (None, [A]):
            xs = [A, A + 1]
            longer, there, total, again, xs2 = each(xs, 2 * A, maybe)
            same(longer, [A, A + 1, 2 * A])
            same(there, np.array(maybe is not None))
            same(total, 2 * A + 1)
            same(again, maybe)
            same(xs2, xs)
            held = [*xs, *longer, *(again or []), *xs2]
            assert not any(np.shares_memory(a, b) for i, a in enumerate(held) for b in held[:i])
            assert all(a.flags.writeable for a in longer)


def test_lists_are_converted_like_arrays() -> None:
    made = lists()
    same(made([A.astype(np.float64)], A, None)[0], [A, A])
    with pytest.raises(fl.DTypeError, match=r"input 'xs' is of type ndarray: expected a list of arrays"):
        made(A, A, None)
    with pytest.raises(fl.DTypeError, match=r"input 'xs' is of type NoneType: expected a list of arrays"):
        made(None, A, None)
    with pytest.raises(fl.DTypeError, match=r"input 'maybe' is of type ndarray: expected a list of arrays or None"):
        made([A], A, A)
    with pytest.raises(fl.DTypeError, match=r"input 'xs\[1\]' has dtype complex64"):
        made([A, A.astype(np.complex64)], A, None)
    with pytest.raises(fl.DTypeError, match=r"out has 'longer', which is no array but a sequence or None"):
        made.run({"xs": [A], "x": A, "maybe": None}, out={"longer": A.copy()})


def test_an_optional_array(variant: str) -> None:
    then = graph([node("OptionalGetElement", ["maybe"], ["x"]), node("Neg", ["x"], ["n"])], [], ["n"])
    other = graph([node("Constant", [], ["n"], value_floats=[7.0])], [], ["n"])
    nodes = [node("OptionalHasElement", ["maybe"], ["c"]), node("If", ["c"], ["y"], then_branch=then, else_branch=other)]
    made = Model(to_graph(model(graph(nodes, [typed("maybe", "optional(tensor)")], ["y"]), 18)))
    assert isinstance(made.inputs[0], OptionalSpec)
    same(made(A), -A)
    same(made(None), np.array([7], np.float32))
    same(made(A[0]), -A[0])


def test_arithmetic_on_a_list_is_refused() -> None:
    nodes = [node("SequenceConstruct", ["x", "x"], ["s"]), node("Neg", ["s"], ["y"])]
    program = Program(to_graph(model(graph(nodes, [info("x", A)], ["y"]), 17)), dispatch.variant())
    with pytest.raises(fl.DTypeError, match=r"Neg \(y\): an input is a sequence, or None: expected arrays"):
        program.evaluate([A], Meter())


def test_a_list_that_a_loop_fills_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    from fastlayers.operators import meter

    body = graph(
        [node("Identity", ["c"], ["c2"]), node("SequenceInsert", ["s", "x"], ["s2"])],
        [info("i"), info("c"), typed("s", "sequence(tensor)")],
        ["c2", typed("s2", "sequence(tensor)")],
    )
    nodes = [node("SequenceEmpty", [], ["e"]), node("Loop", ["m", "", "e"], ["y"], body=body)]
    main = graph(nodes, [info("m", i64(1)), info("x", A)], [typed("y", "sequence(tensor)")])
    program = Program(to_graph(model(main, 17)), dispatch.variant())
    same(program.evaluate([i64(3), A], Meter())[0], [A, A, A])
    monkeypatch.setattr(meter, "MOST_BYTES", 3 * A.nbytes)
    program.evaluate([i64(3), A], Meter())
    with pytest.raises(fl.LimitError, match=r"SequenceInsert \(s2\): what its iterations have made takes more than 144 bytes"):
        program.evaluate([i64(4), A], Meter())
