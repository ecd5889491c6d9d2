"""Steps of a quantized network: what is right passes, and a scale that is 2 % wrong does not, though the last result hides it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .exporting import distance, runs_of
from .steps import cut, steps_apart

pytestmark = [pytest.mark.onnx, pytest.mark.onnxruntime]


def network(depth: int, wrong: float = 1.0, dynamic: bool = False) -> bytes:
    """Convolutions with scales of their own, each on 8 bits; `wrong` is what the scale of one in the middle is multiplied by."""
    from onnx import helper, numpy_helper

    rng = np.random.default_rng(0)
    nodes, constants = [], []

    def constant(name: str, value: Any) -> str:
        constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    x = "x"
    for i in range(depth):
        w = rng.integers(-127, 128, (8, 8, 3, 3)).astype(np.int8)
        if dynamic:
            nodes.append(helper.make_node("DynamicQuantizeLinear", [x], [f"q{i}", f"s{i}", f"z{i}"]))
            given = [f"q{i}", constant(f"w{i}", w), f"z{i}"]
            nodes.append(helper.make_node("ConvInteger", given, [f"c{i}"], pads=[1] * 4))
            nodes.append(helper.make_node("Cast", [f"c{i}"], [f"f{i}"], to=1))
            nodes.append(helper.make_node("Mul", [f"f{i}", f"s{i}"], [f"g{i}"]))
            factor = np.float32(wrong if i == depth // 2 else 1) / 600
            nodes.append(helper.make_node("Mul", [f"g{i}", constant(f"t{i}", factor)], [f"x{i}"]))
        else:
            scale, zero = constant(f"s{i}", np.float32(0.03)), constant(f"z{i}", np.uint8(120))
            nodes.append(helper.make_node("QuantizeLinear", [x, scale, zero], [f"q{i}"]))
            nodes.append(helper.make_node("DequantizeLinear", [f"q{i}", scale, zero], [f"d{i}"]))
            step = np.float32((wrong if i == depth // 2 else 1) / 613.7)  # with which no sum ties
            weight = [constant(f"w{i}", w), constant(f"t{i}", step), constant(f"u{i}", np.int8(0))]
            nodes.append(helper.make_node("DequantizeLinear", weight, [f"v{i}"]))
            nodes.append(helper.make_node("Conv", [f"d{i}", f"v{i}"], [f"x{i}"], pads=[1] * 4))
        x = f"x{i}"
    first, last = helper.make_tensor_value_info("x", 1, ["n", 8, "h", "w"]), helper.make_tensor_value_info(x, 1, None)
    graph = helper.make_graph(nodes, "g", [first], [last], constants)
    made: bytes = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()
    return made


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_a_scale_that_is_wrong_by_2_percent(dynamic: bool) -> None:
    feeds = {"x": np.random.default_rng(1).standard_normal((2, 8, 9, 9)).astype(np.float32)}
    right, wrong = network(12, dynamic=dynamic), network(12, 1.02, dynamic)
    found = steps_apart(right, feeds)
    assert found.wrong == "" and found.count == (36 if dynamic else 12) and found.flips < 1e-3
    told = steps_apart(right, feeds, wrong).wrong
    assert told.startswith("q7: ") if not dynamic else told.startswith("s7 is 2.0e-02 from")
    # No more than what the tolerance of a whole network lets pass.
    (_, want), (_, got) = runs_of(right, [feeds])[0], runs_of(wrong, [feeds])[0]
    assert distance(*got.values(), *want.values()) < 0.3


def test_steps_are_cut_where_they_quantize() -> None:
    import onnx

    whole, pieces, given = cut(network(3))
    assert given == {f"q{i}": f"q{i}.given" for i in range(3)}
    assert [output.name for output in onnx.load_from_string(whole).graph.output] == ["x2", "q0", "q1", "q2"]
    made = onnx.load_from_string(pieces).graph
    read = [node.input[0] for node in made.node if node.op_type == "DequantizeLinear"]
    assert read[::2] == [f"q{i}.given" for i in range(3)]
