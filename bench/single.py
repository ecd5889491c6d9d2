"""Single operators and small classical models next to onnxruntime: those whose time is spent outside of the large kernels.

    python -m bench.single [word ...] [--threads 1] [--rounds 20]    those whose names contain a word

Every model is made here, by onnx.helper; results are compared before anything is timed. The contestants alternate; the best of
all bursts is printed, and what fastlayers takes of onnxruntime's time.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import fastlayers as fl

from .timing import Times, add_json, store, take_turns

Feeds = dict[str, np.ndarray]
Case = tuple[str, bytes, Feeds]
ML, MS = "ai.onnx.ml", "com.microsoft"
ROWS = (1, 1000)


def model(nodes: Sequence[Any], feeds: Feeds, outputs: Sequence[str], constants: Mapping[str, Any] | None = None) -> bytes:
    """A model of these nodes, whose inputs have the dtypes and ranks of the feeds."""

    def kind(array: np.ndarray) -> int:
        return TensorProto.STRING if array.dtype.kind in "OU" else helper.np_dtype_to_tensor_dtype(array.dtype)

    inputs = [helper.make_tensor_value_info(name, kind(a), [f"{name}{i}" for i in range(a.ndim)]) for name, a in feeds.items()]
    made = [helper.make_empty_tensor_value_info(name) for name in outputs]
    weights = [numpy_helper.from_array(np.asarray(a), name) for name, a in (constants or {}).items()]
    graph = helper.make_graph(list(nodes), "single", inputs, made, weights)
    sets = [helper.make_opsetid("", 21), helper.make_opsetid(ML, 4), helper.make_opsetid(MS, 1)]
    return helper.make_model(graph, opset_imports=sets, ir_version=10).SerializeToString()  # type: ignore[no-any-return]


def node(op: str, inputs: str, outputs: str, domain: str = "", **attributes: Any) -> Any:
    """A node; "_" is an input that is left out."""
    names = ["" if name == "_" else name for name in inputs.split()]
    return helper.make_node(op, names, outputs.split(), domain=domain, **attributes)


def words(count: int) -> list[str]:
    """That many different strings."""
    return [f"category {i}" for i in range(count)]


def chosen(rng: np.random.Generator, texts: Sequence[str], shape: tuple[int, ...]) -> np.ndarray:
    """An array of these strings, drawn at random."""
    return np.asarray(texts, object)[rng.integers(0, len(texts), shape)]


def classical(rng: np.random.Generator, rows: int) -> Iterator[Case]:
    """ai.onnx.ml."""
    x = rng.standard_normal((rows, 8)).astype(np.float32)
    classes, vectors = 3, 60
    svm = {
        "kernel_type": "RBF",
        "kernel_params": [0.1, 0.0, 3.0],
        "support_vectors": rng.standard_normal(vectors * 8).tolist(),
        "vectors_per_class": [20, 20, 20],
        "coefficients": rng.standard_normal(2 * vectors).tolist(),
        "rho": [0.1, -0.2, 0.3],
        "classlabels_ints": [0, 1, 2],
    }
    several = node("SVMClassifier", "x", "label scores", ML, **svm, prob_a=[-1.5] * 3, prob_b=[0.1] * 3)
    yield "SVC with probabilities", model([several], {"x": x}, ["label", "scores"]), {"x": x}
    linear = {
        "coefficients": rng.standard_normal(classes * 8).tolist(),
        "intercepts": [0.1, 0.0, -0.1],
        "post_transform": "SOFTMAX",
        "multi_class": 1,
    }
    told = node("LinearClassifier", "x", "label scores", ML, classlabels_strings=words(classes), **linear)
    yield "LogisticRegression, strings", model([told], {"x": x}, ["label", "scores"]), {"x": x}
    numbered = node("LinearClassifier", "x", "label scores", ML, classlabels_ints=[0, 1, 2], **linear)
    zipped = node("ZipMap", "scores", "maps", ML, classlabels_int64s=[0, 1, 2])
    yield "LogisticRegression, ZipMap", model([numbered, zipped], {"x": x}, ["label", "maps"]), {"x": x}
    yield "LogisticRegression", model([numbered], {"x": x}, ["label", "scores"]), {"x": x}
    columns = [words(5 + i) for i in range(4)]
    text = np.stack([chosen(rng, names, (rows,)) for names in columns], axis=1)
    nodes, constants = [], {}
    for i, names in enumerate(columns):
        constants[f"at{i}"] = np.array([i], np.int64)
        nodes.append(node("ArrayFeatureExtractor", f"x at{i}", f"column{i}", ML))
        nodes.append(node("LabelEncoder", f"column{i}", f"coded{i}", ML, keys_strings=names, values_int64s=[*range(len(names))]))
    nodes.append(node("Concat", " ".join(f"coded{i}" for i in range(4)), "y", axis=1))
    yield "OrdinalEncoder, strings", model(nodes, {"x": text}, ["y"], constants), {"x": text}
    names = words(50)
    for what, keys, values in (
        ("string to int", {"keys_strings": names}, {"values_int64s": [*range(50)]}),
        ("int to string", {"keys_int64s": [*range(50)]}, {"values_strings": names}),
        ("int to int", {"keys_int64s": [3 * i for i in range(50)]}, {"values_int64s": [*range(50)]}),
        ("int to float", {"keys_int64s": [3 * i for i in range(50)]}, {"values_floats": np.linspace(0, 1, 50).tolist()}),
    ):
        given = chosen(rng, names, (rows, 4)) if "strings" in str(keys) else rng.integers(0, 60, (rows, 4))
        yield (
            f"LabelEncoder, {what}",
            model([node("LabelEncoder", "x", "y", ML, **keys, **values)], {"x": given}, ["y"]),
            {"x": given},
        )
    numbers = rng.integers(0, 20, (rows, 4))
    hot = node("OneHotEncoder", "x", "y", ML, cats_int64s=[*range(20)], zeros=1)
    yield "OneHotEncoder, int", model([hot], {"x": numbers}, ["y"]), {"x": numbers}
    given = chosen(rng, words(20), (rows, 4))
    hot = node("OneHotEncoder", "x", "y", ML, cats_strings=words(20), zeros=1)
    yield "OneHotEncoder, strings", model([hot], {"x": given}, ["y"]), {"x": given}
    pool = rng.permutation(100)[:40].tolist() + rng.integers(0, 100, 60).tolist()
    grams = {
        "mode": "TF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 0, "ngram_counts": [0, 40],
        "ngram_indexes": [*range(70)],
    }  # fmt: skip
    numbers = rng.integers(0, 100, (rows, 20))
    yield (
        "TfIdfVectorizer, int",
        model([node("TfIdfVectorizer", "x", "y", **grams, pool_int64s=pool)], {"x": numbers}, ["y"]),
        {"x": numbers},
    )
    names = words(100)
    given = np.asarray(names, object)[numbers]
    counted = node("TfIdfVectorizer", "x", "y", **grams, pool_strings=[names[i] for i in pool])
    yield "TfIdfVectorizer, strings", model([counted], {"x": given}, ["y"]), {"x": given}


def boxes_of(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Boxes (y1, x1, y2, x2) within the unit square."""
    corner = rng.random((*shape, 2), np.float32) * 0.8
    return np.concatenate([corner, corner + 0.02 + 0.18 * rng.random((*shape, 2), np.float32)], axis=-1)


def crops() -> bytes:
    """crop_and_resize as tf2onnx writes it: a loop over the boxes with a Resize in it."""
    body = helper.make_graph(
        [
            node("Add", "i one", "next"),
            node("Slice", "images i next zero", "image"),
            node("Add", "image one", "after"),
            node("Slice", "x image after zero", "picture"),
            node("Transpose", "picture", "planes", perm=[0, 3, 1, 2]),
            node("Shape", "planes", "sizes"),
            node("Slice", "sizes zero two zero", "outer"),
            node("Slice", "boxes i next zero", "box1"),
            node("Squeeze", "box1 zero", "box"),
            node("Split", "box halves", "low high", axis=0),
            node("Concat", "zeros low ones high", "roi", axis=0),
            node("Concat", "outer crop", "wanted", axis=0),
            node("Resize", "planes roi _ wanted", "part", mode="linear", coordinate_transformation_mode="tf_crop_and_resize"),
            node("Transpose", "part", "turned", perm=[0, 2, 3, 1]),
            node("Squeeze", "turned zero", "made"),
            node("Identity", "go", "on"),
        ],
        "crop",
        [helper.make_tensor_value_info("i", TensorProto.INT64, [1]), helper.make_tensor_value_info("go", TensorProto.BOOL, [])],
        [helper.make_empty_tensor_value_info("on"), helper.make_empty_tensor_value_info("made")],
    )
    nodes = [node("Size", "images", "count"), node("Loop", "count true", "y", body=body)]
    constants = {
        "zero": np.array([0]), "one": np.array([1]), "two": np.array([2]), "halves": np.array([2, 2]), "true": np.array(True),
        "zeros": np.zeros(2, np.float32), "ones": np.ones(2, np.float32), "crop": np.array([7, 7]),
    }  # fmt: skip
    feeds = {"x": np.zeros((1, 1, 1, 1), np.float32), "boxes": np.zeros((1, 4), np.float32), "images": np.zeros(1, np.int64)}
    return model(nodes, feeds, ["y"], constants)


def detection(rng: np.random.Generator) -> Iterator[Case]:
    """Regions and boxes."""
    for count, classes in ((500, 1), (1000, 80), (300, 91)):
        feeds = {"boxes": boxes_of(rng, 1, count), "scores": rng.random((1, classes, count), np.float32) ** 8}
        limits = {"most": np.array([100]), "overlap": np.array([0.5], np.float32), "least": np.array([0.3], np.float32)}
        found = node("NonMaxSuppression", "boxes scores most overlap least", "y")
        yield f"NonMaxSuppression, {count} boxes of {classes} classes", model([found], feeds, ["y"], limits), feeds
    feeds = {
        "x": rng.standard_normal((1, 32, 32, 16)).astype(np.float32), "boxes": boxes_of(rng, 20),
        "images": np.zeros(20, np.int64),
    }  # fmt: skip
    yield "crop_and_resize, tf2onnx, 20 of 7x7x16", crops(), feeds
    box = np.array([0, 0, 0.1, 0.2, 1, 1, 0.8, 0.9], np.float32)
    feeds = {"x": rng.standard_normal((1, 32, 32, 32)).astype(np.float32), "roi": box}
    sizes = {"sizes": np.array([1, 32, 7, 7])}
    one = node("Resize", "x roi _ sizes", "y", coordinate_transformation_mode="tf_crop_and_resize", mode="linear")
    yield "Resize, tf_crop_and_resize", model([one], feeds, ["y"], sizes), feeds


def bags(rng: np.random.Generator) -> bytes:
    """EmbeddingBag as torch's exporter writes it: a loop over the bags."""
    body = helper.make_graph(
        [
            node("Gather", "starts i", "start", axis=0),
            node("Gather", "ends i", "end", axis=0),
            node("Unsqueeze", "start zero", "start1"),
            node("Unsqueeze", "end zero", "end1"),
            node("Slice", "x start1 end1 zero", "bag"),
            node("Gather", "weight bag", "rows", axis=0),
            node("ReduceMean", "rows zero", "mean", keepdims=0),
            node("Identity", "go", "on"),
        ],
        "bag",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, [])],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("mean", TensorProto.FLOAT, [64]),
        ],
    )
    nodes = [
        node("Shape", "x", "all"),
        node("Concat", "offsets all", "bounds", axis=0),
        node("Slice", "bounds zero minus zero", "starts"),
        node("Slice", "bounds one most zero", "ends"),
        node("Shape", "offsets", "count1"),
        node("Squeeze", "count1", "count"),
        node("Loop", "count true", "y", body=body),
    ]
    constants = {
        "weight": rng.standard_normal((1000, 64)).astype(np.float32), "zero": np.array([0]), "one": np.array([1]),
        "minus": np.array([-1]), "most": np.array([np.iinfo(np.int64).max]), "true": np.array(True),
    }  # fmt: skip
    return model(nodes, {"x": np.zeros(1, np.int64), "offsets": np.zeros(1, np.int64)}, ["y"], constants)


def segments(rng: np.random.Generator) -> Iterator[Case]:
    """Sums over rows that belong together."""
    bag = bags(rng)
    for count in (4, 64):
        feeds = {"x": rng.integers(0, 1000, 10 * count), "offsets": np.arange(0, 10 * count, 10)}
        yield f"EmbeddingBag, {count} bags of 10", bag, feeds
    rows, width = 1000, 16
    ids = np.sort(rng.integers(0, 50, rows))
    feeds = {"x": rng.standard_normal((rows, width)).astype(np.float32), "ids": ids}
    constants = {"one": np.array(1), "values": np.array([0, 1], np.float32), "axis": np.array([0])}
    nodes = [
        node("ReduceMax", "ids axis", "last", keepdims=0), node("Add", "last one", "count"),
        node("OneHot", "ids count values", "hot", axis=0), node("MatMul", "hot x", "y"),
    ]  # fmt: skip
    yield "segment sums, tf2onnx", model(nodes, feeds, ["y"], constants), feeds
    wide = {**feeds, "ids": np.repeat(ids[:, None], width, 1)}
    sums = node("ScatterElements", "zeros ids x", "y", axis=0, reduction="add")
    yield "segment sums, ScatterElements", model([sums], wide, ["y"], {"zeros": np.zeros((50, width), np.float32)}), wide
    sums = node("ScatterND", "zeros ids1 x", "y", reduction="add")
    nodes, constants = [node("Unsqueeze", "ids one", "ids1"), sums], {"zeros": np.zeros((50, width), np.float32)}
    yield "segment sums, ScatterND", model(nodes, feeds, ["y"], {**constants, "one": np.array([1])}), feeds


def counted(rng: np.random.Generator) -> Iterator[Case]:
    """Results whose sizes depend on values."""
    for count in (100, 10_000):
        x = np.where(rng.random(count) < 0.1, rng.standard_normal(count), 0).astype(np.float32)
        yield f"NonZero of {count}", model([node("NonZero", "x", "y")], {"x": x}, ["y"]), {"x": x}
        rows = rng.standard_normal((count, 4)).astype(np.float32)
        feeds = {"x": rows, "keep": rng.random(count) < 0.3}
        yield f"Compress of {count}", model([node("Compress", "x keep", "y", axis=0)], feeds, ["y"]), feeds
        numbers = rng.integers(0, 50, count)
        unique = [node("Unique", "x", "y first inverse counts", sorted=1)]
        yield f"Unique of {count}", model(unique, {"x": numbers}, ["y", "first", "inverse", "counts"]), {"x": numbers}
        where = [node("Greater", "x least", "above"), node("NonZero", "above", "at1"), node("Squeeze", "at1 axis", "at")]
        kept = [*where, node("Gather", "rows at", "some", axis=0), node("Relu", "some", "y")]
        feeds = {"x": rng.random(count, np.float32), "rows": rows}
        constants = {"least": np.float32(0.7), "axis": np.array([0])}
        yield f"rows above a score, of {count}", model(kept, feeds, ["y"], constants), feeds
    for shape, axis in (((10_000,), 0), ((64, 512), 1), ((64, 512), 0)):
        x = rng.standard_normal(shape).astype(np.float32)
        yield (
            f"CumSum of {shape} along {axis}",
            model([node("CumSum", "x axis", "y")], {"x": x}, ["y"], {"axis": np.array(axis)}),
            {"x": x},
        )
    numbers = rng.integers(0, 9, (8, 512))
    yield (
        "CumSum of (8, 512) int64",
        model([node("CumSum", "x axis", "y")], {"x": numbers}, ["y"], {"axis": np.array(1)}),
        {"x": numbers},
    )


def placed(rng: np.random.Generator) -> Iterator[Case]:
    """Values moved to other places."""
    x = rng.standard_normal((1, 16 * 9, 30 * 30)).astype(np.float32)
    sizes = {"image": np.array([32, 32]), "block": np.array([3, 3])}
    yield "Col2Im 16@32, 3x3", model([node("Col2Im", "x image block", "y")], {"x": x}, ["y"], sizes), {"x": x}
    x = rng.standard_normal((1, 32, 256)).astype(np.float32)
    sizes = {"image": np.array([32, 32]), "block": np.array([2, 2])}
    yield "Col2Im 8@32, 2x2 s2", model([node("Col2Im", "x image block", "y", strides=[2, 2])], {"x": x}, ["y"], sizes), {"x": x}
    theta = rng.standard_normal((2, 2, 3)).astype(np.float32)
    grid = node("AffineGrid", "theta size", "y", align_corners=0)
    yield "AffineGrid 2@64", model([grid], {"theta": theta}, ["y"], {"size": np.array([2, 3, 64, 64])}), {"theta": theta}
    x = rng.standard_normal((1, 16, 32, 32)).astype(np.float32)
    nodes = [
        node("MaxPool", "x", "small places", kernel_shape=[2, 2], strides=[2, 2]),
        node("MaxUnpool", "small places", "y", kernel_shape=[2, 2], strides=[2, 2]),
    ]
    yield "MaxPool and MaxUnpool 16@32", model(nodes, {"x": x}, ["y"]), {"x": x}
    shape = (16, 32, 32)
    feeds = {
        "if": rng.random(shape) < 0.5, "x": rng.integers(0, 255, shape, np.uint8), "z": rng.integers(0, 255, shape, np.uint8)
    }  # fmt: skip
    scales = {"s": np.float32(0.1), "p": np.uint8(100), "t": np.float32(0.2), "q": np.uint8(90), "u": np.float32(0.15)}
    chosen_ = node("QLinearWhere", "if x s p z t q u p", "y", MS)
    yield "QLinearWhere 16x32x32", model([chosen_], feeds, ["y"], scales), feeds
    feeds = {"x": rng.standard_normal((1, 32, 64, 64)).astype(np.float32), "grid": rng.random((1, 64, 64, 2), np.float32) * 2 - 1}
    sampled = node("GridSample", "x grid", "y", mode="linear", padding_mode="zeros", align_corners=1)
    yield "GridSample 32@64", model([sampled], feeds, ["y"]), feeds
    feeds = {
        "x": rng.standard_normal((55 * 40, 1, 32, 48)).astype(np.float32)[:400],
        "grid": rng.random((400, 7, 7, 2), np.float32) * 2 - 1,
    }
    yield "GridSample of a correlation, 400 x 1@32x48 at 7x7", model([sampled], feeds, ["y"]), feeds
    feeds = {
        "past": rng.standard_normal((1, 8, 256, 64)).astype(np.float32),
        "now": rng.standard_normal((1, 8, 1, 64)).astype(np.float32), "at": np.array([100]),
    }  # fmt: skip
    graph = onnx.load_from_string(model([node("TensorScatter", "past now at", "y", axis=2)], feeds, ["y"]))
    graph.opset_import[0].version = 24
    yield "TensorScatter", graph.SerializeToString(), feeds


def cases() -> Iterator[Case]:
    """All of them."""
    rng = np.random.default_rng(0)
    for rows in ROWS:
        for name, content, feeds in classical(rng, rows):
            yield f"{name}, {rows} rows", content, feeds
    for family in (detection, segments, counted, placed):
        yield from family(rng)


def agree(ours: Any, theirs: Any, name: str) -> None:
    """Raises where results differ."""
    if isinstance(theirs, list):
        for one, other in zip(ours, theirs, strict=True):
            assert one.keys() == other.keys(), name
            np.testing.assert_allclose([*one.values()], [*other.values()], 1e-3, 1e-4, err_msg=name)
    elif theirs.dtype.kind in "fc":
        np.testing.assert_allclose(ours, theirs, 1e-3, 1e-4, err_msg=name)
    else:
        np.testing.assert_array_equal(ours, theirs, err_msg=name)


def main(arguments: Sequence[str] | None = None) -> None:
    """Makes, checks and times."""
    import onnxruntime

    parser = argparse.ArgumentParser(prog="python -m bench.single", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("words", nargs="*")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=20)
    add_json(parser)
    given = parser.parse_args(arguments)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = given.threads, 3
    print(f"variant={fl.kernels.info()['variant']} threads={given.threads} onnxruntime={onnxruntime.__version__}")
    print(f"{'microseconds, best':48} {'fastlayers':>10} {'onnxruntime':>12} {'share':>6}")
    found: dict[str, dict[str, Times]] = {}
    shares = []
    for name, content, feeds in cases():
        if given.words and not any(word in name for word in given.words):
            continue
        ours = fl.load(content, num_threads=given.threads)
        try:
            session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
            names = [o.name for o in session.get_outputs()]
            expected = dict(zip(names, session.run(names, feeds), strict=True))
        except Exception as error:
            print(f"{name:48} onnxruntime refuses it: {str(error)[:100]}")
            continue
        got = ours.run(feeds)
        for output in names:
            agree(got[output], expected[output], f"{name}: {output}")
        calls: dict[str, Callable[[], object]] = {
            "fastlayers": lambda ours=ours, feeds=feeds: ours.run(feeds),
            "onnxruntime": lambda session=session, names=names, feeds=feeds: session.run(names, feeds),
        }
        times = found[name] = take_turns(calls, given.rounds)
        a, b = (times[who].best * 1e6 for who in calls)
        shares.append(a / b)
        print(f"{name:48} {a:10.1f} {b:12.1f} {a / b:6.2f}")
    if shares:
        print(f"{len(shares)} cases; geometric mean {math.exp(sum(map(math.log, shares)) / len(shares)):.2f}")
    store(given.json, found, onnxruntime=onnxruntime.__version__)


if __name__ == "__main__":
    main()
