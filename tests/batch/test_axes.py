"""Values that the analysis calls independent have their lone bits in any batch; operators that mix rows are called mixing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.batch.axes import batch_axes
from fastlayers.batch.rules import NAMED, RULES
from fastlayers.ir.graph import Graph, Value
from fastlayers.model.custom import forget
from fastlayers.model.model import Model
from fastlayers.operators import OPERATORS, traits_of
from fastlayers.operators.families import FAMILIES
from tests.each import each
from tests.operators.cases import Case, all_cases
from tests.operators.test_batches import RANDOM, data_of, growths, random_like
from tests.operators.test_cases import graph_of
from tests.walk.test_graphs import batch_axes as first_axes
from tests.walk.test_graphs import cached, seeds

F32, I64 = np.dtype(np.float32), np.dtype(np.int64)
Feeds = dict[str, np.ndarray]


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal to the bit; NaN's sign and payload are no part of a result."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind == "f":
        a, b = (np.where(np.isnan(y), y.dtype.type(np.nan), y) for y in (a, b))
    return bool((a == b).all()) if a.dtype.kind == "O" else a.tobytes() == b.tobytes()


def wrong_rows(model: Model, requests: Sequence[Feeds], axes: Mapping[str, int], found: Mapping[str, int]) -> list[str]:
    """Results of which a request's part, in a batch of all, is not what the request gets alone."""
    joined = {
        name: np.concatenate([feeds[name] for feeds in requests], axes[name]) if name in axes else requests[0][name]
        for name in requests[0]
    }
    alone = [model.run(feeds, list(found)) for feeds in requests]
    try:
        whole = model.run(joined, list(found))
    except fl.Error:  # a value that is the same for all rows was for so many of them: each then runs alone
        return []
    wrong = []
    for name, axis in found.items():
        ends = np.cumsum([part[name].shape[axis] for part in alone])
        parts = np.split(whole[name], ends[:-1], axis) if whole[name].shape[axis] == ends[-1] else [whole[name]] * len(alone)
        wrong += [name for part, own in zip(parts, alone, strict=True) if not same(part, own[name])]
    return wrong


# ---- what is called independent is ------------------------------------------------------------------------------------


def requests_of(item: Case, axes: Mapping[str, int], rng: np.random.Generator) -> list[Feeds]:
    """Three requests of 1, 2 and 3 rows, each row another one."""
    found = []
    for rows in (1, 2, 3):
        feeds = {}
        for i, array in enumerate(item.inputs[: item.data]):
            if array is None:
                continue
            name = f"x{i}"
            axis = axes.get(name)
            shape = array.shape if axis is None else (*array.shape[:axis], rows, *array.shape[axis + 1 :])
            feeds[name] = array if axis is None else random_like(array, shape, rng)
        found.append(feeds)
    return found


def test_rows_of_every_operator_have_their_lone_bits() -> None:
    rng, seen, wrong = np.random.default_rng(0), Counter[str](), []
    for item in all_cases():
        if item.op in RANDOM or not data_of(item):
            continue
        graph, _ = graph_of(item, item.data)
        assert all(value.name[0] == "x" for value in graph.inputs)
        for chosen in growths(item):
            axes = {f"x{i}": axis for i, axis in chosen.items()}
            inputs = tuple(
                v._replace(shape=tuple("n" if axes.get(v.name) == k else d for k, d in enumerate(v.shape or ())))
                for v in graph.inputs
            )
            open_graph = Graph(inputs, graph.outputs, graph.nodes, graph.constants)
            try:
                found = batch_axes(open_graph, axes)
            except fl.UnsupportedError:
                continue
            try:
                problems = wrong_rows(Model(open_graph), requests_of(item, axes, rng), axes, found)
            except fl.Error:  # random values, or so few rows, do not go with the case
                continue
            seen[item.op] += 1
            wrong += [f"{item.id} {axes}: {name}" for name in problems]
    assert not wrong, "\n".join(wrong)
    assert len(seen) > 150 and seen.total() > 700, (len(seen), seen.total())


@pytest.mark.parametrize("group", [*range(4), *(pytest.param(i, marks=pytest.mark.exhaustive) for i in range(4, 20))])
def test_rows_of_random_graphs_have_their_lone_bits(group: int) -> None:
    rng, count, wrong = np.random.default_rng(group), 0, []
    for seed in seeds(group):
        drawn = cached(seed)
        axes = {name: axis for name, axis in first_axes(drawn).items() if axis is not None}
        if not axes or any(axis for axis in axes.values()):
            continue
        values = [Value(name, None, F32) for node in drawn.graph.nodes for name in node.outputs]
        graph = Graph(drawn.graph.inputs, tuple(values), drawn.graph.nodes, drawn.graph.constants)
        found = {}
        for value in values:
            with suppress(fl.UnsupportedError):
                found |= batch_axes(Graph(graph.inputs, (value,), graph.nodes, graph.constants), axes)
        for step in drawn.steps[:3]:
            if step.want is None or not found:
                continue
            requests = [
                {n: random_like(a, (rows, *a.shape[1:]), rng) if n in axes else a for n, a in step.feeds.items()}
                for rows in (1, 3, 2)
            ]
            try:
                wrong += [f"{seed}: {name}" for name in wrong_rows(Model(drawn.graph), requests, axes, found)]
                count += len(found)
            except fl.Error:
                continue
    assert wrong == []
    assert count > 20


# ---- what mixes rows is called so -------------------------------------------------------------------------------------


def graph(nodes: Any, shape: tuple[Any, ...] = ("n", 4), **constants: Any) -> Graph:
    made = [nodes] if isinstance(nodes, fl.graph.Node) else nodes
    ends = (Value("x", shape, F32),), (Value("y", None, F32),)
    return Graph(*ends, tuple(made), {name: np.array(value) for name, value in constants.items()})


def node(op: str, *inputs: str, out: Sequence[str] = ("y",), **attributes: Any) -> fl.graph.Node:
    return fl.graph.Node(op, inputs or ("x",), tuple(out), attributes)


def reduced(op: str) -> Graph:
    return graph(node(op, "x", "a", keepdims=1), a=[0])


BODY = Graph(
    (Value("s", (4,), F32), Value("e", (4,), F32)), (Value("t", (4,), F32), Value("u", (4,), F32)),
    (fl.graph.Node("Add", ("s", "e"), ("t",), {}), fl.graph.Node("Identity", ("t",), ("u",), {})), {},
)  # fmt: skip
W = np.eye(4, dtype=np.float32)
MIXING: dict[str, Callable[[], Graph]] = {
    "DynamicQuantizeLinear": lambda: graph(
        [node("DynamicQuantizeLinear", out=("q", "s", "z")), node("DequantizeLinear", "q", "s", "z")]
    ),
    "a product that is quantized from all rows": lambda: graph(
        node("DynamicQuantizeMatMul", "x", "w", "s"), w=W.astype(np.int8), s=np.float32(1)
    ),
    **{op: partial(reduced, op) for op in OPERATORS if op.startswith("Reduce")},
    "a reduction over all axes": lambda: graph(node("ReduceSum", keepdims=0)),
    "ArgMax": lambda: graph(node("ArgMax", axis=0)),
    "Softmax over the batch": lambda: graph(node("Softmax", axis=0)),
    "LogSoftmax over the batch": lambda: graph(node("LogSoftmax", axis=-2)),
    "Hardmax over the batch": lambda: graph(node("Hardmax", axis=0)),
    "LayerNormalization from the batch on": lambda: graph(node("LayerNormalization", "x", "w", axis=0), w=W[0]),
    "InstanceNormalization of channels that are the batch": lambda: graph(
        node("InstanceNormalization", "x", "w", "w"), (2, "n", 5), w=np.ones(3, np.float32)
    ),
    "BatchNormalization in training": lambda: graph(
        node("BatchNormalization", "x", "w", "w", "w", "w", out=("y", "m", "v"), training_mode=1), w=np.ones(4, np.float32)
    ),
    "TopK": lambda: graph(node("TopK", "x", "k", out=("y", "i"), axis=0), k=[1]),
    "CumSum": lambda: graph(node("CumSum", "x", "a"), a=0),
    "CumProd": lambda: graph(node("CumProd", "x", "a"), a=0),
    "Unique": lambda: graph(node("Unique", axis=0)),
    "NonZero": lambda: graph(node("NonZero")),
    "Compress": lambda: graph(node("Compress", "x", "c", axis=0), c=[True, False]),
    "Scan over the batch": lambda: graph(
        node("Scan", "s", "x", out=("f", "y"), body=BODY, num_scan_inputs=1), s=np.zeros(4, np.float32)
    ),
    "random values": lambda: graph(node("RandomNormalLike")),
    "Dropout in training": lambda: graph(node("Dropout", "x", "r", "t"), r=np.float32(0.5), t=True),
    "values by the number of rows": lambda: graph([
        node("Shape", out=("s",)), node("Gather", "s", "i", out=("c",)), node("Cast", "c", out=("f",), to=F32),
        node("Div", "x", "f"),
    ], i=0),
    "positions in the batch": lambda: graph([
        node("Shape", out=("s",)), node("Gather", "s", "i", out=("c",)), node("Range", "i", "c", "o", out=("r",)),
        node("Cast", "r", out=("f",), to=F32), node("Unsqueeze", "f", "o", out=("g",)), node("Add", "x", "g"),
    ], i=0, o=1),
    "a vector of rows along the columns": lambda: graph(
        [node("ReduceSum", "x", "o", out=("v",), keepdims=0), node("Add", "x", "v")], ("n", "n"), o=[1]
    ),
    "rows times rows": lambda: graph([node("Transpose", out=("t",), perm=(1, 0)), node("MatMul", "x", "t")]),
    "a sum over rows": lambda: graph([node("Transpose", out=("t",), perm=(1, 0)), node("MatMul", "t", "x")]),
    "Gemm of transposed rows": lambda: graph(node("Gemm", "x", "w", transA=1), w=W),
    "Einsum over rows": lambda: graph(node("Einsum", "x", "x", equation="ni,nj->ij")),
    "a convolution whose channels are the batch": lambda: graph(
        node("Conv", "x", "w"), (1, "n", 5), w=np.ones((2, 3, 2), np.float32)
    ),
    "rows in another order": lambda: graph(node("Slice", "x", "s", "e", "a", "d"), s=[-1], e=[-100], a=[0], d=[-1]),
    "one row": lambda: graph(node("Gather", "x", "i", axis=0), i=[0]),
    "rows one after the other": lambda: graph(node("Concat", "x", "x", axis=0)),
    "rows with fixed ones": lambda: graph(node("Add", "x", "b"), b=np.ones((3, 4), np.float32)),
    "rows in one": lambda: graph(node("Reshape", "x", "s"), s=[1, -1]),
    "rows cut otherwise": lambda: graph([node("Reshape", "x", "s", out=("r",)), node("Softmax", "r", axis=-1)], s=[-1, 8]),
    "padded rows": lambda: graph(node("Pad", "x", "p"), p=[1, 0, 0, 0]),
    "repeated rows": lambda: graph(node("Tile", "x", "r"), r=[2, 1]),
    "resized rows": lambda: graph(
        fl.graph.Node("Resize", ("x", None, "s"), ("y",), {}), ("n", 1, 4, 4), s=np.float32([2, 1, 1, 1])
    ),
    "positions of the largest in the whole batch": lambda: graph(
        node("MaxPool", out=("m", "y"), kernel_shape=(2, 2)), ("n", 1, 4, 4)
    ),
    "an LSTM over the batch": lambda: graph(node("LSTM", "x", "w", "w"), ("n", 3, 2), w=np.ones((1, 8, 2), np.float32)),
}  # fmt: skip


@each("name", list(MIXING))
def test_operators_that_mix_rows_are_called_mixing(name: str) -> None:
    made = MIXING[name]()
    axes = {v.name: (v.shape or ()).index("n") for v in made.inputs}
    with pytest.raises(fl.UnsupportedError, match="batch_axes"):
        batch_axes(made, axes)


# Without a rule, and so mixing: a new operator gets a rule, or a place here.
WITHOUT = (
    "Adagrad Adam AdditiveAttention AffineGrid AlignAxes ArrayFeatureExtractor AttentionScores AttentionValues "
    "Bernoulli BlackmanWindow CenterCropPad Col2Im Compress Constant ConstantOfShape DFT DynamicQuantizeLSTM "
    "DequantizeCodes DynamicQuantizeLinear DynamicQuantizeMatMul EyeLike FeatureVectorizer GroupQueryAttention "
    "GroupQueryQuantized GroupQueryWindow "
    "HammingWindow HannWindow HardAttention HeadBias MaxRoiPool MaxUnpool MelWeightMatrix Momentum "
    "Multinomial NegativeLogLikelihoodLoss NonMaxSuppression NonZero OverlapAdd PaddingMask Positions QLinearReduceMean "
    "RandomNormal RandomNormalLike RandomUniform RandomUniformLike Range RoiAlign RotaryTables RotaryTablesAt ScatterND Shape "
    "SinusoidalEncoding Size SoftmaxCrossEntropyLoss StreamCut StreamFill StreamStart StreamWindow StringConstant "
    "StringNormalizer StringSplit TensorScatter TimePool TreeLogProb Unique"
)


def test_every_operator_is_decided() -> None:
    names = {name for names in FAMILIES.values() for name in names.split()}
    assert {name for name in names if name not in NAMED and traits_of(name).time not in RULES} == set(WITHOUT.split())
    assert set(NAMED) <= names and not set(NAMED) & set(WITHOUT.split()) and names <= set(OPERATORS)


# ---- networks, and how users ask --------------------------------------------------------------------------------------


def filled(layer: fl.Layer) -> fl.Layer:
    rng = np.random.default_rng(0)
    layer.load_state_dict({name: 0.3 * rng.standard_normal(shape) for name, shape in layer.tensor_shapes().items()})
    return layer


NETWORKS: dict[str, tuple[Callable[[], fl.Layer], tuple[Any, ...]]] = {
    "perceptron": (lambda: fl.Sequential(fl.Linear(5, 8), fl.GELU(), fl.LayerNorm(8), fl.Linear(8, 3), fl.Softmax(-1)), ("n", 5)),
    "images": (
        lambda: fl.Sequential(
            fl.Conv2d(3, 8, 3, padding=1), fl.BatchNorm2d(8), fl.ReLU(), fl.MaxPool2d(2), fl.Conv2d(8, 4, 3),
            fl.AdaptiveAvgPool2d(1), fl.Flatten(), fl.Linear(4, 5),
        ),
        ("n", 3, 8, 8),
    ),
    "sequence": (lambda: fl.LSTM(4, 6, batch_first=True, bidirectional=True), ("n", 7, 4)),
    "transformer": (lambda: fl.TransformerEncoder(fl.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2), ("n", "t", 8)),
}  # fmt: skip


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("saved", [False, True])
def test_usual_networks_keep_rows_apart(name: str, saved: bool, tmp_path: Any) -> None:
    make, shape = NETWORKS[name]
    layer = filled(make())
    model = fl.compile(lambda x: y[0] if isinstance(y := layer(x), tuple) else y, fl.graph.Input("x", shape))
    if saved:  # passes have fused it
        model.save(tmp_path / "net.safetensors")
        model = fl.load(tmp_path / "net.safetensors")
    found = model.batch_axes()
    assert set(found.values()) == {0}
    rng = np.random.default_rng(1)
    requests = [{"x": rng.standard_normal((rows, *(6 if d == "t" else d for d in shape[1:]))).astype(F32)} for rows in (1, 2, 5)]
    assert not wrong_rows(model, requests, {"x": 0}, {name: axis for name, axis in found.items() if name != "x"})


def test_a_users_operator_keeps_rows_apart_only_if_it_says_so() -> None:
    for name, says in (("Centred", {}), ("Apart", {"batched": True})):

        @fl.operator(name, "com.example.batch", replace=True, **says)
        def function(x: Any) -> Any:
            return x * 2

        try:
            model = fl.compile(function, fl.graph.Input("x", ("n", 2)))
            if says:
                assert set(model.batch_axes().values()) == {0}
            else:
                with pytest.raises(fl.UnsupportedError, match=f"{name}.*not known to keep rows apart"):
                    model.batch_axes()
        finally:
            forget(name, "com.example.batch")


def test_what_is_asked_wrongly() -> None:
    model = fl.compile(lambda x: fl.functional.relu(x), fl.graph.Input("x", ("n", 2)))
    assert model.batch_axes({"x": 1}) == {"x": 1, "relu": 1}
    for axes in ({"z": 0}, {"x": 2}, {"x": -1}, {"x": "n"}):
        with pytest.raises(fl.ArgumentError, match="batch_axes"):
            model.batch_axes(axes)  # type: ignore[arg-type]
    with pytest.raises(fl.UnsupportedError, match="no input has a named first size"):
        fl.compile(lambda x: fl.functional.relu(x), fl.graph.Input("x", (3, 2))).batch_axes()
    with pytest.raises(fl.DTypeError, match="axes"):
        model.batch_axes(0)  # type: ignore[arg-type]
