"""Old forms of nodes become the newest: attributes that became inputs, modes that are gone, old broadcasting, other domains."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastlayers.errors import FormatError, UnsupportedError
from fastlayers.formats.onnx import graph as graphs
from fastlayers.ir.graph import Graph
from fastlayers.operators import OPERATORS

from ..each import each
from .models import graph, info, model, node, run, to_graph

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.fixture
def everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every operator counts as known: forms are looked at, nothing is run."""
    from fastlayers.formats.onnx.schema import schemas

    monkeypatch.setattr(graphs, "OPERATORS", {**dict.fromkeys(schemas()), **OPERATORS})


def converted(op: str, version: int, names: list[str], outputs: int = 1, domain: str = "", **attributes: Any) -> Graph:
    made = [f"y{i}" for i in range(outputs)]
    main = graph([node(op, names, made, domain, **attributes)], [info(n, X) for n in dict.fromkeys(names) if n], made)
    return to_graph(model(main, version, **({domain: 1} if domain else {})))


def told(made: Graph) -> list[tuple[Any, ...]]:
    """Operator, inputs (constants as lists or numbers) and attributes of each node."""
    return [
        (n.op, [made.constants[i].tolist() if i in made.constants else i for i in n.inputs], dict(n.attributes))
        for n in made.nodes
    ]


FORMS: list[tuple[str, int, list[str], dict[str, Any], list[Any], dict[str, Any]]] = [
    # operator, opset, inputs, attributes; the inputs and attributes of the newest form
    ("Squeeze", 11, ["x"], {"axes": (0, 2)}, ["x", [0, 2]], {}),
    ("Squeeze", 6, ["x"], {}, ["x"], {}),
    ("Squeeze", 13, ["x", "a"], {}, ["x", "a"], {}),
    ("Unsqueeze", 6, ["x"], {"axes": (1,)}, ["x", [1]], {}),
    ("ReduceSum", 12, ["x"], {"axes": (1,), "keepdims": 0}, ["x", [1]], {"keepdims": 0}),
    ("ReduceSum", 13, ["x", "a"], {"noop_with_empty_axes": 1}, ["x", "a"], {"noop_with_empty_axes": 1}),
    ("ReduceMean", 17, ["x"], {"axes": (-1,)}, ["x", [-1]], {}),
    ("ReduceMax", 13, ["x"], {}, ["x"], {}),
    ("ReduceL2", 18, ["x", "a"], {}, ["x", "a"], {}),
    ("Split", 11, ["x"], {"split": (1, 2), "axis": 1}, ["x", [1, 2]], {"axis": 1}),
    ("Split", 11, ["x"], {}, ["x"], {"num_outputs": 2}),
    ("Split", 13, ["x", "s"], {}, ["x", "s"], {}),
    ("Split", 13, ["x"], {}, ["x"], {"num_outputs": 2}),
    ("Split", 18, ["x"], {"num_outputs": 2}, ["x"], {"num_outputs": 2}),
    ("Slice", 9, ["x"], {"starts": (0,), "ends": (2,)}, ["x", [0], [2]], {}),
    ("Slice", 1 + 5, ["x"], {"starts": (0,), "ends": (2,), "axes": (1,)}, ["x", [0], [2], [1]], {}),
    ("Slice", 10, ["x", "a", "b"], {}, ["x", "a", "b"], {}),
    ("Pad", 10, ["x"], {"pads": (0, 1, 0, 1), "value": 2.5}, ["x", [0, 1, 0, 1], 2.5], {}),
    ("Pad", 2 + 4, ["x"], {"pads": (1, 1), "mode": "edge"}, ["x", [1, 1]], {"mode": "edge"}),
    ("Pad", 11, ["x", "p", "v"], {"mode": "reflect"}, ["x", "p", "v"], {"mode": "reflect"}),
    ("Clip", 6, ["x"], {"min": 0.0, "max": 6.0}, ["x", 0.0, 6.0], {}),
    ("Clip", 10, ["x"], {"max": 6.0}, ["x", None, 6.0], {}),
    ("Clip", 11, ["x", "", "m"], {}, ["x", None, "m"], {}),
    ("TopK", 9, ["x"], {"k": 3, "axis": 1}, ["x", [3]], {"axis": 1}),
    ("TopK", 10, ["x", "k"], {}, ["x", "k"], {}),
    ("Dropout", 6, ["x"], {"is_test": 1, "ratio": 0.5}, ["x"], {}),
    ("Dropout", 7, ["x"], {"ratio": 0.5}, ["x"], {}),
    ("Dropout", 12, ["x", "r", "t"], {"seed": 1}, ["x", "r", "t"], {"seed": 1}),
    ("BatchNormalization", 6, ["x", "s", "b", "m", "v"], {"is_test": 1, "spatial": 1, "epsilon": 0.5},
     ["x", "s", "b", "m", "v"], {"epsilon": 0.5}),
    ("BatchNormalization", 7, ["x", "s", "b", "m", "v"], {"momentum": 0.5}, ["x", "s", "b", "m", "v"], {"momentum": 0.5}),
    ("BatchNormalization", 15, ["x", "s", "b", "m", "v"], {"training_mode": 0}, ["x", "s", "b", "m", "v"], {"training_mode": 0}),
    ("Softmax", 12, ["x"], {}, ["x"], {"axis": 1, "flatten": True}),
    ("LogSoftmax", 11, ["x"], {"axis": -1}, ["x"], {"axis": -1, "flatten": True}),
    ("Hardmax", 13, ["x"], {"axis": 0}, ["x"], {"axis": 0}),
    ("Softmax", 13, ["x"], {}, ["x"], {}),
    ("LSTM", 6, ["x", "w", "r"], {"hidden_size": 2, "output_sequence": 1}, ["x", "w", "r"], {"hidden_size": 2}),
    ("Gemm", 6, ["a", "b", "c"], {"broadcast": 1, "transB": 1}, ["a", "b", "c"], {"transB": 1}),
    ("Add", 6, ["a", "b"], {"broadcast": 1}, ["a", "b"], {}),
    ("Add", 7, ["a", "b"], {}, ["a", "b"], {}),
    ("RoiAlign", 10, ["x", "r", "b"], {}, ["x", "r", "b"], {"coordinate_transformation_mode": "output_half_pixel"}),
    ("RoiAlign", 16, ["x", "r", "b"], {}, ["x", "r", "b"], {}),
    ("DFT", 17, ["x"], {"axis": 2}, ["x", None, 2], {}),
    ("DFT", 20, ["x", "", "a"], {"inverse": 1}, ["x", None, "a"], {"inverse": 1}),
    ("Resize", 13, ["x", "", "s"], {"mode": "cubic"}, ["x", None, "s"], {"mode": "cubic"}),
    ("PRelu", 7, ["x", "s"], {}, ["x", "s"], {}),
    ("Gelu", 20, ["x"], {"approximate": "tanh"}, ["x"], {"approximate": "tanh"}),
    ("Cast", 9, ["x"], {"to": 1}, ["x"], {"to": 1}),
]  # fmt: skip


@pytest.mark.usefixtures("everything")
@each(
    ("op", "version", "inputs", "attributes", "new_inputs", "new"), FORMS, ids=[f"{f[0]}-{f[1]}-{i}" for i, f in enumerate(FORMS)]
)
def test_form(
    op: str, version: int, inputs: list[str], attributes: dict[str, Any], new_inputs: list[Any], new: dict[str, Any]
) -> None:
    outputs = 2 if op == "Split" else 1
    assert told(converted(op, version, inputs, outputs, **attributes)) == [(op, new_inputs, new)]


ASYMMETRIC = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}


@pytest.mark.usefixtures("everything")
def test_upsample_and_the_first_resize_are_resize() -> None:
    want = [("Resize", ["x", None, [1, 1, 2, 3]], {"mode": "linear", **ASYMMETRIC})]
    assert told(converted("Upsample", 6, ["x"], height_scale=2.0, width_scale=3.0, mode="bilinear")) == want
    assert told(converted("Upsample", 7, ["x"], scales=(1.0, 1.0, 2.0, 3.0), mode="linear")) == want
    want = [("Resize", ["x", None, "s"], {"mode": "nearest", **ASYMMETRIC})]
    assert told(converted("Upsample", 9, ["x", "s"])) == want
    first = [("Resize", ["x", None, "s"], {"mode": "nearest", **ASYMMETRIC, "nearest_mode": "ceil_if_smaller"})]
    assert told(converted("Resize", 10, ["x", "s"])) == first


def test_scatter_is_scatter_elements() -> None:
    assert told(converted("Scatter", 9, ["x", "i", "u"], axis=1)) == [("ScatterElements", ["x", "i", "u"], {"axis": 1})]


def test_constants_of_attributes_have_the_right_dtypes() -> None:
    made = converted("Slice", 9, ["x"], starts=(0,), ends=(1 << 62,))
    assert {a.dtype for a in made.constants.values()} == {np.dtype(np.int64)}
    made = converted("Clip", 6, ["x"], min=0.0)
    assert {(a.dtype, a.shape) for a in made.constants.values()} == {(np.dtype(np.float32), ())}
    assert not any(a.flags.writeable for a in made.constants.values())


# ---- forms that are run ----------------------------------------------------------------------------------------------


def result(op: str, version: int, arrays: list[np.ndarray], **attributes: Any) -> np.ndarray:
    names = [f"x{i}" for i in range(len(arrays))]
    main = graph([node(op, names, ["y"], **attributes)], [info(n, a) for n, a in zip(names, arrays, strict=True)], ["y"])
    return run(to_graph(model(main, version)), arrays)[0]


def test_opset_6_broadcasts_from_an_axis() -> None:
    columns = np.array([10, 20, 30], np.float32)
    np.testing.assert_array_equal(result("Add", 6, [X, columns], broadcast=1, axis=1), X + columns[:, None])
    np.testing.assert_array_equal(result("Mul", 6, [X, columns[:2]], broadcast=1, axis=0), X * columns[:2, None, None])
    np.testing.assert_array_equal(result("Sub", 6, [X, X[0]], broadcast=1, axis=1), X - X[0])
    np.testing.assert_array_equal(result("Sub", 6, [X, X[0, :, :1]], broadcast=1, axis=-2), X - X[0, :, :1])
    np.testing.assert_array_equal(result("Div", 6, [X, np.array(2, np.float32)], broadcast=1, axis=1), X / 2)
    np.testing.assert_array_equal(result("Add", 6, [X, X[0, 0]], broadcast=1), X + X[0, 0])
    np.testing.assert_array_equal(result("Less", 6, [X, columns], broadcast=1, axis=1), np.less(X, columns[:, None]))


def test_opset_6_has_a_slope_a_channel() -> None:
    slope = np.array([1, 2, 3], np.float32)
    np.testing.assert_array_equal(result("PRelu", 6, [-X, slope]), -X * slope[:, None])
    np.testing.assert_array_equal(result("PRelu", 6, [-X, slope[1:2]]), -X * 2)


def test_values_of_old_opsets_fit_every_float() -> None:
    half = X.astype(np.float16)
    np.testing.assert_array_equal(result("Clip", 6, [half], min=1.5, max=7.0), np.clip(half, 1.5, 7))
    assert result("Clip", 6, [half], min=1.5).dtype == np.float16
    got = result("Pad", 10, [half[0, 0].astype(np.float64)], pads=(1, 0), value=2.5)
    np.testing.assert_array_equal(got, np.array([2.5, 0, 1, 2, 3]))


# ---- what is refused -------------------------------------------------------------------------------------------------

REFUSED: list[tuple[str, int, list[str], dict[str, Any], str]] = [
    ("Nonsense", 13, ["x"], {}, "operator Nonsense"),
    ("Gelu", 13, ["x"], {}, "operator Gelu in opset 13: it came with opset 20"),
    ("Relu", 5, ["x"], {}, "opset 5: expected 6 to 28"),
    ("Relu", 29, ["x"], {}, "opset 29: expected 6 to 28"),
    ("Relu", 13, ["x"], {"slope": 1}, "operator Relu: attribute slope"),
    ("Squeeze", 13, ["x"], {"axes": (0,)}, "operator Squeeze: attribute axes in opset 13"),
    ("AveragePool", 9, ["x"], {"ceil_mode": 1, "kernel_shape": (1,)}, "attribute ceil_mode in opset 9"),
    ("Cast", 13, ["x"], {"to": 99}, "Cast: attribute to=99"),
    ("EyeLike", 13, ["x"], {"dtype": 8}, "EyeLike: attribute dtype=8"),
    ("Dropout", 6, ["x"], {}, "Dropout without is_test"),
    ("BatchNormalization", 6, ["x"] * 5, {"spatial": 0}, "spatial=0 in training mode"),
]  # fmt: skip


@pytest.mark.usefixtures("everything")
@pytest.mark.parametrize(("op", "version", "inputs", "attributes", "text"), REFUSED, ids=[f"{r[0]}-{r[4]}" for r in REFUSED])
def test_refused(op: str, version: int, inputs: list[str], attributes: dict[str, Any], text: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        converted(op, version, inputs, **attributes)
    assert str(caught.value).splitlines()[1].strip() == f"{text.strip()}: 1 time" or text in str(caught.value)


BROKEN: list[tuple[str, list[str], int, dict[str, Any], str]] = [
    ("Concat", ["x"], 1, {"axis": 1.5}, "Concat (y0): attribute axis is of the wrong type: float"),
    ("Concat", ["x"], 1, {}, "Concat (y0): attribute axis is missing"),
    ("Transpose", ["x"], 1, {"perm": (0, "1")}, "attribute perm is of the wrong type"),
    ("Transpose", ["x"], 1, {"perm": 0}, "attribute perm is of the wrong type: int"),
    ("Gelu", ["x"], 1, {"approximate": b"tanh"}, "attribute approximate is of the wrong type: bytes"),
    ("Add", ["x"], 1, {}, "Add (y0): has 1 inputs: expected 2 to 2"),
    ("Add", ["x", "x", "x"], 1, {}, "has 3 inputs"),
    ("Where", ["x", "", "x"], 1, {}, "has 3 inputs, of which number 1 is left out: expected 3 to 3"),
    ("Relu", [""], 1, {}, "Relu (y0): its first input is missing"),
    ("Relu", ["x"], 2, {}, "has 2 outputs: expected at most 1"),
    ("Relu", ["x"], 0, {}, "has no outputs"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "inputs", "outputs", "attributes", "text"), BROKEN, ids=[b[4] for b in BROKEN])
def test_broken(op: str, inputs: list[str], outputs: int, attributes: dict[str, Any], text: str) -> None:
    with pytest.raises(FormatError) as caught:
        converted(op, 20, inputs, outputs, **attributes)
    assert text in str(caught.value)


@pytest.mark.parametrize("version", [6, 7, 9, 13])
@pytest.mark.parametrize("wanted", [(0, 1, 2, 3, 4), (0, 4), (0, 1), (2, 3)], ids=str)
@pytest.mark.parametrize("shape", [(3, 4, 5, 2), (3, 4)], ids=str)
def test_batch_normalization_that_trains(version: int, wanted: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """Whoever asks for more than the first output, before there was a word for it; the last two are the batch's own."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape).astype(np.float32) * 2 + 1
    vectors = {name: rng.random(4).astype(np.float32) + 0.5 for name in "sbmv"}
    names = [f"y{i}" if i in wanted else "" for i in range(max(wanted) + 1)]
    made = [node("BatchNormalization", list("xsbmv"), names, momentum=0.75)]
    outputs = [n for n in names if n]
    got = dict(zip(outputs, run(to_graph(model(graph(made, [info("x", x)], outputs, vectors), version)), [x]), strict=True))
    axes, wide = tuple(i for i in range(len(shape)) if i != 1), (-1, *(1,) * (len(shape) - 2))
    mean, variance = x.mean(axes, np.float64), x.var(axes, np.float64)
    s, b, m, v = vectors.values()
    normal = (x - mean.reshape(wide)) / np.sqrt(variance.reshape(wide) + 1e-5) * s.reshape(wide) + b.reshape(wide)
    for i, want in enumerate((normal, m * 0.75 + mean * 0.25, v * 0.75 + variance * 0.25, mean, variance)):
        if i in wanted:
            np.testing.assert_allclose(got[f"y{i}"], want, atol=3e-6)


@pytest.mark.parametrize("version", [6, 7, 8])
def test_batch_normalization_of_every_number_of_an_image(version: int) -> None:
    """spatial=0: opset 9 has no word for it any more."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 4, 5, 2)).astype(np.float32)
    vectors = {name: rng.random((4, 5, 2)).astype(np.float32) + 0.5 for name in "sbmv"}
    words = {"spatial": 0, "epsilon": 0.25, **({"is_test": 1} if version < 7 else {})}
    made = [node("BatchNormalization", list("xsbmv"), ["y"], **words)]
    got = run(to_graph(model(graph(made, [info("x", x)], ["y"], vectors), version)), [x])[0]
    s, b, m, v = (a.astype(np.float64) for a in vectors.values())
    np.testing.assert_allclose(got, (x - m) / np.sqrt(v + 0.25) * s + b, atol=3e-6)


def test_batch_normalization_of_opset_6_trains_unless_it_is_told() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((6, 4, 5)).astype(np.float32)
    vectors = {name: rng.random(4).astype(np.float32) + 0.5 for name in "sbmv"}
    s, b, m, v = (a.reshape(4, 1).astype(np.float64) for a in vectors.values())
    for test, mean, variance in ((1, m, v), (0, x.mean((0, 2)).reshape(4, 1), x.var((0, 2)).reshape(4, 1))):
        made = [node("BatchNormalization", list("xsbmv"), ["y"], is_test=test)]
        got = run(to_graph(model(graph(made, [info("x", x)], ["y"], vectors), 6)), [x])[0]
        np.testing.assert_allclose(got, (x - mean) / np.sqrt(variance + 1e-5) * s + b, atol=3e-6)


# ---- other domains ---------------------------------------------------------------------------------------------------


def test_microsoft_gelu() -> None:
    domain = "com.microsoft"
    assert told(converted("Gelu", 13, ["x"], domain=domain)) == [("Gelu", ["x"], {})]
    assert told(converted("QuickGelu", 13, ["x"], domain=domain)) == [("Swish", ["x"], {"alpha": 1.702})]
    assert told(converted("FastGelu", 13, ["x"], domain=domain)) == [("Gelu", ["x"], {"approximate": "tanh"})]
    assert told(converted("BiasGelu", 13, ["x", "b"], domain=domain)) == [("Add", ["x", "b"], {}), ("Gelu", ["y0/Add"], {})]


def test_other_domains_are_refused() -> None:
    for domain, op in (("com.microsoft", "BeamSearch"), ("my.own", "Relu")):
        with pytest.raises(UnsupportedError, match=f"operator {op} of domain {domain}, version 1 .*: 1 time"):
            converted(op, 13, ["x"], domain=domain)
    with pytest.raises(UnsupportedError, match=r"Gelu of domain com\.microsoft, version 1: attribute a: 1 time"):
        converted("Gelu", 13, ["x"], domain="com.microsoft", a=1)


def test_onnx_own_domain_has_two_names() -> None:
    assert told(converted("Relu", 13, ["x"], domain="")) == [("Relu", ["x"], {})]
    main = graph([node("Relu", ["x"], ["y"], "ai.onnx")], [info("x", X)], ["y"])
    assert told(to_graph(model(main, 13))) == [("Relu", ["x"], {})]
