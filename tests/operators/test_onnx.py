"""ONNX's own examples of nodes through conversion, binding and kernels; its table of operators against ours; every dtype."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from fastlayers.errors import UnsupportedError
from fastlayers.formats.onnx.canonical import RULES
from fastlayers.formats.onnx.domains import OTHERS
from fastlayers.formats.onnx.schema import NEWEST, OLDEST, UNCHANGED, Schema, schemas
from fastlayers.ir.graph import Node
from fastlayers.kernels import dispatch
from fastlayers.operators import OPERATORS, Spec, View
from fastlayers.operators.control import CONTROL
from fastlayers.operators.meter import Meter
from fastlayers.operators.reference import run_operator
from fastlayers.operators.sequence import SEQUENCES
from fastlayers.operators.shapes import DTYPES
from fastlayers.program import Program

from ..formats.onnx_suite import UNCHECKED, reason
from .cases import Case, all_cases
from .models import from_onnx, to_graph

onnx = pytest.importorskip("onnx")
pytestmark = pytest.mark.onnx

# Ours alone, and what the program does itself.
OWN = {
    "Activate", "AdaptivePool", "AdditiveAttention", "Affine", "AlignAxes", "AttentionScores",
    "Adagrad", "Adam", "ArrayFeatureExtractor", "AttentionValues", "AxisPositions", "Binarizer", "BlockEmbedding", "BlockLinear",
    "ByteTable", "DotAttention",
    "DequantizeCodes",
    "DynamicQuantizeLSTM", "DynamicQuantizeMatMul", "Elementwise", "Embedding", "FusedMatMul", "GatherBlockQuantized",
    "GroupQueryAttention", "GroupQueryQuantized", "GroupQueryWindow", "HardAttention", "MoE", "QMoE",
    "CategoryMapper", "FeatureVectorizer", "HeadBias", "Interpolate", "LabelEncoder", "OneHotEncoder", "Probit", "Scaler",
    "SoftmaxZero", "StringConstant", "SvmProbabilities", "Trees", "Linear", "MatMulBnb4", "MatMulIntegerToFloat", "MatMulNBits",
    "Momentum",
    "OneOf", "OverlapAdd", "PaddingMask", "Positions",
    "QGemm", "QLinearAdd", "QLinearAveragePool", "QLinearConcat", "QLinearGlobalAveragePool", "QLinearLeakyRelu",
    "QLinearMul", "QLinearReduceMean", "QLinearSigmoid", "QLinearSoftmax", "QLinearWhere", "RotaryTables",
    "RotaryTablesAt", "ScaledAttention", "SinusoidalEncoding", "StreamCut",
    "StreamFill", "StreamStart", "StreamWindow", "TimePool", "TreeDistribution", "TreeLogProb",
}  # fmt: skip


@cache
def examples() -> dict[str, Any]:
    """ONNX's cases of nodes whose operators we have, by name."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = load_model_tests(kind="node")
    known = {*OPERATORS, *CONTROL, *SEQUENCES, "FlexAttention", "Scatter"}
    known -= {"Bernoulli", "RandomUniformLike"}  # of random values
    return {c.name: c for c in found if {n.op_type for n in c.model.graph.node} <= known}


@cache
def names() -> dict[str, list[str]]:
    """The names of the examples by the operator that they are for: one test each, since they are many."""
    found: dict[str, list[str]] = {}
    for name, example in examples().items():
        found.setdefault(example.model.graph.node[0].op_type, []).append(name)
    return found


def arrays(data: Any) -> list[Any] | None:
    """An example's arrays, lists of them and None; None if one is of a type that numpy does not have."""
    made: list[Any] = []
    for value in data:
        if isinstance(value, list):
            inner = arrays(value)
            if inner is None:
                return None
            made.append(inner)
        else:
            array = onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value
            made.append(None if array is None else np.array(array, order="C"))
    flat = [a for a in made if isinstance(a, np.ndarray)]
    return made if all(a.dtype.isbuiltin == 1 and a.dtype.kind in "fiubc" for a in flat) else None


def compare(got: Any, want: Any, example: Any) -> None:
    if isinstance(want, list):
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            compare(a, b, example)
    elif want is None:
        assert got is None
    else:
        assert (got.dtype, got.shape) == (want.dtype, want.shape), example.name
        # float16: onnx forms every intermediate result in it, some of ours are rounded once.
        rtol = max(example.rtol, 2.0**-9) if want.dtype == np.float16 else example.rtol
        # onnx's own inverse transform rounds in float32, and zeros of its results are not: 2e-7, where the largest number is 54.
        atol = 2.0**-23 * float(np.abs(want).max()) if example.name.startswith("test_dft_inverse") else example.atol
        np.testing.assert_allclose(got, want, rtol=rtol, atol=atol, err_msg=example.name)


def unsupported(error: UnsupportedError) -> bool:
    """Whether it is one of what we say we do not do."""
    known = ("of text", "numpy does not have", "training", "opset 1", "operator Resize")
    return all(any(k in line for k in known) for line in str(error).splitlines()[1:] or [str(error)])


@pytest.mark.parametrize("op", sorted(names()))
def test_examples(op: str, variant: str) -> None:
    for name in names()[op]:
        example = examples()[name]
        if reason(UNCHECKED, name.removeprefix("test_")):
            continue
        for feeds, wanted in example.data_sets:
            given, want = arrays(feeds), arrays(wanted)
            if given is None or want is None:
                continue
            try:
                program = Program(to_graph(from_onnx(example.model)), dispatch.variant())
                results = program.evaluate(given, Meter())
            except UnsupportedError as error:
                if not unsupported(error):
                    raise
                continue
            compare(list(results), want, example)


LETTERS = {
    "INT": "i", "FLOAT": "f", "STRING": "s", "TENSOR": "t", "GRAPH": "g", "SPARSE_TENSOR": "x", "TYPE_PROTO": "y",
    "INTS": "is", "FLOATS": "fs", "STRINGS": "ss",
}  # fmt: skip


def same(ours: Schema, theirs: Any, version: int, newest: bool) -> None:
    allowed = {k: v.type for k, v in ours.attributes.items() if v.first <= version < v.gone}
    expected = {k: LETTERS[str(v.type).rpartition(".")[2]] for k, v in theirs.attributes.items()}
    assert allowed == expected, f"{theirs.name} in opset {version}"
    if newest:
        most = None if theirs.max_input > 1000 else theirs.max_input
        assert (ours.least, ours.most) == (theirs.min_input, most), theirs.name
        assert {k for k, v in ours.attributes.items() if v.required and v.gone > NEWEST} == {
            k for k, v in theirs.attributes.items() if v.required
        }, theirs.name


def test_we_have_what_onnx_has() -> None:
    """The newest opset is the one that we know, every attribute of every version is in our table and nothing else."""
    assert onnx.defs.onnx_opset_version() >= NEWEST
    for version in range(OLDEST, NEWEST + 1):
        for name, ours in schemas().items():
            try:
                theirs = onnx.defs.get_schema(name, version)
            except onnx.defs.SchemaError:
                assert version < ours.since, name
                continue
            if not theirs.deprecated:
                assert version >= ours.since or ours.since == 1, name
            same(ours, theirs, version, version == NEWEST)
    assert set(schemas()) == {s.name for s in onnx.defs.get_all_schemas() if s.domain == ""}


def test_other_domains() -> None:
    for domain, operators in OTHERS.items():
        for name, (ours, _) in operators.items():
            theirs = onnx.defs.get_schema(name, domain=domain)
            same(ours, theirs, theirs.since_version, True)


def test_what_is_said_to_be_unchanged_since_the_first_opset_is() -> None:
    for name in UNCHANGED:
        assert onnx.defs.get_schema(name, OLDEST).since_version == 1, name


def test_operators_and_rules_are_onnx_names() -> None:
    assert set(OPERATORS) - OWN <= set(schemas())
    assert set(RULES) <= set(schemas())


# ---- dtypes ----------------------------------------------------------------------------------------------------------

# ONNX's names of the dtypes that numpy has, where they are others than numpy's.
NAMES = {"float": "float32", "double": "float64"}
HAVE = {d.name for d in DTYPES.values()}


def variants(item: Case) -> Iterator[Case]:
    """The case in every dtype that the schema allows for what its first input is."""
    schema = onnx.defs.get_schema(item.op, NEWEST)
    formal = [schema.inputs[min(i, len(schema.inputs) - 1)] for i in range(len(item.inputs))]
    first = formal[0].type_str
    allowed = next((c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == first), [])
    for text in allowed:
        dtype = NAMES.get(text[7:-1], text[7:-1])
        if dtype not in HAVE:
            continue
        inputs = [a if a is None or f.type_str != first else _cast(a, dtype) for a, f in zip(item.inputs, formal, strict=True)]
        yield item._replace(inputs=tuple(inputs))


def _cast(array: np.ndarray, dtype: str) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.abs(array).astype(dtype) if dtype[0] in "ub" else array.astype(dtype)


def reference(item: Case) -> list[np.ndarray] | None:
    """What onnx's evaluator makes of it, or None where it cannot do it."""
    from onnx.reference import ReferenceEvaluator

    names = ["" if a is None else f"x{i}" for i, a in enumerate(item.inputs)]
    made = [f"y{i}" for i in range(len(item.want))]
    node = onnx.helper.make_node(item.op, names, made, **item.attributes)
    types = [
        onnx.helper.make_tensor_value_info(n, onnx.helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in zip(names, item.inputs, strict=True)
        if a is not None
    ]
    outputs = [onnx.helper.make_tensor_value_info(m, onnx.TensorProto.UNDEFINED, None) for m in made]
    model = onnx.helper.make_model(
        onnx.helper.make_graph([node], "g", types, outputs), opset_imports=[onnx.helper.make_opsetid("", NEWEST)], ir_version=10
    )
    feeds = {n: a for n, a in zip(names, item.inputs, strict=True) if a is not None}
    try:
        return list(ReferenceEvaluator(model).run(None, feeds))
    except Exception:
        return None


# Constants have no inputs; a bit cast to another size is an error; a range that is cut off to integers may have steps of 0.
# Nor can random values be compared.
OPEN = OWN | {"Bernoulli", "BitCast", "Constant", "ConstantOfShape", "Dropout", "Multinomial", "Range"}
OPEN |= {f"Random{kind}{like}" for kind in ("Normal", "Uniform") for like in ("", "Like")}
# Attributes of ours that onnx does not know.
OURS = {"activation", "divisor", "flatten", "out_last", "scaled", "x_last"}
# onnx's evaluator computes these with float32 values, which float64 shows.
ROUGH = {
    "Attention": 1e-7,
    "BatchNormalization": 2e-6,
    "Erf": 1e-7,
    "Gelu": 1e-7,
    "GridSample": 1e-7,
    "GroupNormalization": 2e-6,
    "HardSwish": 1e-7,
    "LinearAttention": 2e-6,
}
# Positions in float32 are ours, as onnxruntime's.
ROUGH |= {"Resize": 1e-6}
# Of integers it rounds what is between them to other ones.
FLOATS = {"GridSample"}
# It sums these in float16, where ours are rounded once.
HALF = {"Attention", "BatchNormalization", "Conv", "GroupNormalization", "LayerNormalization"}
# It cuts slices off as Python does, takes global pools over two axes, and has other windows where a pool's last ones overhang
# or the padding is
# automatic; the text of the operators, and onnxruntime, say otherwise.
WRONG = {
    "Slice-backward from below",
    "GlobalMaxPool-3 axes",
    "LpPool-ceil_mode",
    "LpPool-ceil_mode, pads",
    "LpPool-SAME_LOWER",
    "MaxPool-SAME_LOWER",
}
# With a soft cap its first kind of scores is the second.
WRONG |= {"Attention-soft cap, scores 0"}
# Nor does it count the pixels of earlier channels and images in the positions of the largest.
WRONG |= {"MaxPool-positions by column", "MaxPool-positions of later channels"}
# Of a range of zeros its scale is 1/255; its own comment, and onnxruntime, say 1.
WRONG |= {"DynamicQuantizeLinear-zeros"}
# A weight belongs to a sequence of the pool, as onnxruntime has it; onnx takes it for one of a place in the result.
WRONG |= {"TfIdfVectorizer-weights of sequences, not of places"}
# Corners are those of the result's real size, and the samples of a box are counted in float32, as onnxruntime has both.
WRONG |= {"Resize-corners by scale", "RoiAlign-samples"}
# It does not read the clip and the lengths of recurrent layers, and of LRN does as many channels as there are images.
UNREAD = {"GRU", "LRN", "LSTM", "RNN"}
# How many results they have only their values tell.
COUNTED = {"NonMaxSuppression", "Unique"}
# And slices of another axis than the first are taken from that.
WRONG |= {"Unique-columns as they come"}
BY_OPERATOR = {op: [c for c in all_cases() if c.op == op] for op in sorted(OPERATORS)}


@pytest.mark.parametrize("op", [op for op in BY_OPERATOR if op not in OPEN])
@pytest.mark.sampled(4)
def test_every_dtype(op: str) -> None:
    """`run` and the rule in every dtype; the results are those of onnx's evaluator where it has some."""
    for item in BY_OPERATOR[op]:
        if (
            item.id in WRONG
            or OURS & set(item.attributes)
            or not all(a is None or (a.dtype.kind not in "cO" and np.isfinite(a).all()) for a in item.inputs)
        ):
            continue
        for other in variants(item):
            node = Node(
                op,
                tuple(None if a is None else f"x{i}" for i, a in enumerate(other.inputs)),
                ("y",) * len(item.want),
                other.attributes,
            )
            specs = [None if a is None else Spec(a.shape, a.dtype) for a in other.inputs]
            view = View(node, specs, other.inputs)
            results = run_operator(node, view, other.inputs)
            for result, spec in zip(results, OPERATORS[op].infer(view), strict=False):
                assert result.dtype == spec.dtype
                assert result.shape == spec.shape or (op in COUNTED and not spec.static)
            first = other.inputs[0]
            unread = op in UNREAD or (op in FLOATS and first is not None and first.dtype.kind != "f")
            wanted = None if unread else reference(other)
            for result, want in zip(results, wanted or [], strict=False):
                if want is None or np.asarray(want).dtype != result.dtype:
                    continue
                if result.dtype == np.float16 and op in HALF:
                    continue
                floats = {2: 2e-3, 4: 2e-6, 8: ROUGH.get(op, 1e-12)}
                tolerance = floats.get(result.dtype.itemsize, 0) if result.dtype.kind in "fc" else 0
                np.testing.assert_allclose(result, want, rtol=tolerance, atol=tolerance, err_msg=f"{other}")
