"""Operators in a stream, with the sequence along each of their axes: the bits of the whole, or the reason why that cannot be."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest

import fastlayers as fl
from tests.each import each
from tests.program.graphs import graph, node, normal

from .nets import LENGTH, run

TNC, NTC, NCT = ("time", 2, 4), (2, "time", 4), (2, 4, "time")
FILTER, FEW = {"w": normal(3, 4, 3)}, {"w": normal(4, 4, 2)}
LSTM = {"w": normal(1, 12, 4), "r": normal(1, 12, 3), "l": np.array([5, 7], np.int32)}


class Case(NamedTuple):
    """`text`: nodes, the last of which writes y; `attributes`: of those of the first one's operator; `error`: why not; none if
    a stream gives the bits of the whole.
    """

    text: str
    shape: tuple[int | str, ...]
    constants: Mapping[str, Any] = MappingProxyType({})
    attributes: Mapping[str, Any] = MappingProxyType({})
    error: str = ""


RIGHT = [
    Case("y = Conv(x, w)", NCT, FILTER, {"auto_pad": "VALID"}),
    Case("y = Conv(x, w)", NCT, FEW, {"auto_pad": "SAME_LOWER"}),
    Case("y = Conv(x, w)", NCT, FILTER, {"pads": (4, 0), "dilations": (2,)}),
    Case("y = Conv(x, w)", ("time", 4, 9), FILTER),
    Case("y = Flatten(x)", TNC),
    Case("i = Cast(x); y = Gather(p, i)", ("time",), {"p": normal(9, 3)}, {"to": 7}),
    Case("y = LRN(x)", NCT, {}, {"size": 3}),
    Case("y = MatMul(p, x)", NCT, {"p": normal(3, 4)}),
    Case("y = MatMul(x, p)", NTC, {"p": normal(4)}),
    Case("y = Gemm(x, p)", ("time", 4), {"p": normal(4, 3)}),
    Case("y = Gemm(x, p)", (4, "time"), {"p": normal(4, 3)}, {"transA": 1}),
    Case("y = CumSum(x, a)", NCT, {"a": np.array(1)}),
    Case("y = CumSum(x, a)", NCT, {"a": np.array(2)}, {"exclusive": 1}),
    Case("y = Pad(x, p)", NTC, {"p": np.array([0, 2, 0, 0, 0, 0])}),
    Case("y = Pad(x, p)", NTC, {"p": np.array([0, 2, 1, 0, 0, 3])}),
    Case("y = Pad(x, p)", NTC, {"p": np.array([0, 0, 1, 1, 0, 0])}),
]
REFUSED = [
    Case("y = Conv(x, w)", NTC, {"w": normal(3, 1, 2)}, {"group": 1}, "they are its channels"),
    Case("y = Conv(x, w)", NCT, FILTER, {"auto_pad": "SAME_UPPER", "strides": (2,)}, "depends on the number of all steps"),
    Case("y = Conv(x, w)", NCT, FILTER, {"auto_pad": "SAME_UPPER"}, "is padded with 1 after the last step"),
    Case("y = Conv(x, w)", NCT, FILTER, {"pads": (0, 1), "strides": (2,)}, "and has strides along time"),
    Case("h = Conv(x, w); y = Conv(h, v)", NCT, {"w": normal(4, 4, 3), "v": FEW["w"]}, {"pads": (2, 1)}, "begins late"),
    Case("y = MaxPool(x)", NCT, {}, {"kernel_shape": (2,), "strides": (2,), "ceil_mode": 1}, "lets a last window overhang"),
    Case("y, i = MaxPool(x)", NCT, {}, {"kernel_shape": (2,)}, "gives positions, which count all steps"),
    Case("y = AveragePool(x)", NCT, {}, {"kernel_shape": (2,), "pads": (1, 0)}, "averages over fewer values at the ends"),
    Case("y = Flatten(x)", NTC, {}, {}, "mixes steps with other axes"),
    Case("y = Gather(x, i)", NTC, {"i": np.array([0])}, {"axis": 1}, "takes single steps out of the sequence"),
    Case("i = Cast(x); y = Gather(x, i)", ("time",), {}, {"to": 7}, "looks up steps by steps"),
    Case("y = LRN(x)", NTC, {}, {"size": 3}, "covers steps on both sides of each"),
    Case("t = Transpose(x); y = MatMul(x, t)", ("time", 4), {}, {}, "multiplies steps with steps"),
    Case("y = MatMul(p, x)", NTC, {"p": normal(3, 1)}, {}, "sums over all steps"),
    Case("y = Gemm(x, p)", (4, "time"), {"p": normal(1, 3)}, {}, "sums over all steps"),
    Case("y = Split(x)", NTC, {}, {"axis": 1, "num_outputs": 1}, "cuts the sequence into parts"),
    Case("y = Squeeze(x, a)", NTC, {"a": np.array([1])}, {}, "takes out the axis of time"),
    Case("y = Squeeze(x)", ("time", 4, 1), {}, {}, "takes out all axes of size 1"),
    Case("y = Pad(x, p)", NTC, {"p": np.array([0, 0, 0, 0, 1, 0])}, {}, "it puts 1 steps after the last one"),
    Case("y = Pad(x, p)", NTC, {"p": np.array([0, -1, 0, 0, 0, 0])}, {}, "expected a constant"),
    Case("y = LSTM(x, w, r)", NTC, LSTM, {"hidden_size": 3}, "has time along axis 0, the stream's is along axis 1"),
    Case("y = LSTM(x, w, r, -, l)", TNC, LSTM, {"hidden_size": 3}, "takes lengths of sequences"),
]


def made(case: Case) -> fl.Model:
    texts = case.text.split("; ")
    first = node(texts[0]).op
    nodes = [node(text, **(case.attributes if node(text).op == first else {})) for text in texts]
    return fl.Model(graph({"x": case.shape}, nodes, ["y"], case.constants))


def named(case: Case) -> str:
    return f"{case.text} of {case.shape} {dict(case.attributes)}"


@each("case", RIGHT, ids=named)
def test_the_bits_of_the_whole(case: Case) -> None:
    model, axis = made(case), case.shape.index("time")
    x = normal(*(LENGTH if size == "time" else size for size in case.shape))
    whole = model(x)
    at = whole.shape.index(max(whole.shape))
    for sizes in ([LENGTH], [0, 1, 4, 0, LENGTH - 5], [1] * LENGTH):
        parts = [part for part in run(model.stream(), x, sizes, axis)[0] if part is not None]
        np.testing.assert_array_equal(np.concatenate(parts, at), whole)


@each("case", REFUSED, ids=named)
def test_what_is_refused_says_why(case: Case) -> None:
    with pytest.raises(fl.UnsupportedError, match=case.error):
        made(case).stream()
