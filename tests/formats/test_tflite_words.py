"""What a TensorFlow Lite file says of an operator is read, known to change nothing, or refused: for every operator and option."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.formats.tflite import graph, quantized
from fastlayers.formats.tflite.schema import IGNORED, ignored, options_of
from tests.each import each

from .test_tflite import goldens
from .tflite_build import Field, Net, single

RULES = sorted({*graph.RULES, *quantized.OWN})
OPTIONS = [(op, field) for op in RULES for field in (options_of(op) or (0, ()))[1]]
ONE = np.ones((1, 2), np.float32)


def net(op: str, **options: Any) -> Net:
    made = Net()
    made.inputs, made.outputs = [made.tensor((1, 2), name="x")], [made.tensor((1, 2), name="y")]
    made.op(op.removeprefix("CUSTOM '").rstrip("'"), made.inputs, made.outputs, **options)
    return made


@each("op", RULES)
def test_an_unknown_option_is_refused(op: str) -> None:
    made = net(op)
    fields = made.operators[0]
    fields.setdefault(3, Field("B", 126))
    fields.setdefault(4, Field("table", {}))
    fields[4].value[60] = Field("i", 3)
    with pytest.raises(fl.UnsupportedError, match=r"\('y'\) with field 60 of its options, which is not read"):
        fl.load(made.file())


@pytest.mark.parametrize(
    ("number", "field", "text"),
    [
        (20, Field("i", 0), "field 20"),
        (9, Field("Q", 1000), "field 9"),
        (11, Field("B", 3), "options of a second kind, number 3"),
        (5, Field("bytes", b"abc"), "options of a custom operator"),
    ],
)
def test_an_unknown_field_of_an_operator_is_refused(number: int, field: Field, text: str) -> None:
    made = net("RELU")
    made.operators[0][number] = field
    with pytest.raises(fl.UnsupportedError, match=rf"operator RELU \('y'\) with {text}, which is not read"):
        fl.load(made.file())


@each("op, field", OPTIONS)
def test_an_option_that_no_rule_reads_is_refused(op: str, field: Any) -> None:
    """Whatever the rule is: it is replaced by one that reads nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(graph.RULES, op, lambda c: c.e.node("Relu", c.x(0)))
        patch.delitem(quantized.OWN, op, raising=False)
        check_option(op, field)


def check_option(op: str, field: Any) -> None:
    other = [7] if field.code == "list" else 1 - int(field.default) if field.code == "b" else field.default + 3
    np.testing.assert_array_equal(
        fl.load(net(op, **({} if field.default is None else {field.name: field.default})).file())(ONE), ONE
    )
    if {(op, field.name), ("*", field.name)} & IGNORED.keys():
        np.testing.assert_array_equal(fl.load(net(op, **{field.name: other}).file())(ONE), ONE)
    else:
        with pytest.raises(fl.UnsupportedError, match=rf"\('y'\) with {field.name}=.*, which is not read"):
            fl.load(net(op, **{field.name: other}).file())


def test_what_is_ignored_exists_and_has_a_reason() -> None:
    words = {(op, field.name) for op, field in OPTIONS}
    for (op, word), why in IGNORED.items():
        assert why and ((op, word) in words or (op == "*" and any(word == other for _, other in words))), (op, word)


def test_every_option_is_read_by_some_case_or_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    read: dict[str, set[str]] = {}
    written = graph.Converter.written

    def recorded(self: graph.Converter, c: Any) -> Any:
        found = written(self, c)
        read.setdefault(c.op, set()).update(c.operator.options._read)
        return found

    monkeypatch.setattr(graph.Converter, "written", recorded)
    for case in goldens().values():
        fl.load(case.content)
    unread = {(op, field.name) for op, field in OPTIONS if field.name not in read[op]}
    assert {(op, word) for op, word in unread if not ignored(op, word)} == set()


def test_more_options_of_a_custom_operator_are_refused() -> None:
    weight, x = np.ones((1, 1, 1, 1), np.float32), np.ones((1, 2, 2, 1), np.float32)

    def model(more: list[int]) -> fl.Model:
        options = np.array([1, 1, 1, *more], np.int32).tobytes()
        given = (x,), {1: weight, 2: np.zeros(1, np.float32)}
        return fl.load(single("Convolution2DTransposeBias", *given, shapes=[(1, 2, 2, 1)], custom=options))

    np.testing.assert_array_equal(model([])(x), x)
    np.testing.assert_array_equal(model([0, 0])(x), x)
    with pytest.raises(fl.UnsupportedError, match="options of 16 bytes, of which the first 12 are known"):
        model([1])
