"""MatMulNBits and GatherBlockQuantized next to onnxruntime, and what is refused of them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.errors import Error, FormatError

onnx: Any = pytest.importorskip("onnx")
TensorProto, helper = onnx.TensorProto, onnx.helper
pytestmark = [pytest.mark.onnx, pytest.mark.onnxruntime]

F32 = np.dtype(np.float32)


def model(op: str, x: tuple[str, Any, tuple[Any, ...]], constants: list[Any], place: int = 0, **attributes: Any) -> bytes:
    """One node. `constants`: its other inputs, arrays, tensors or None; `place`: where x stands among them."""
    names = [f"c{i}" if c is not None else "" for i, c in enumerate(constants)]
    names.insert(place, "x")
    node = helper.make_node(op, names, ["y"], domain="com.microsoft", **attributes)
    tensors = [c if isinstance(c, onnx.TensorProto) else onnx.numpy_helper.from_array(c) for c in constants if c is not None]
    for name, tensor in zip([f"c{i}" for i, c in enumerate(constants) if c is not None], tensors, strict=True):
        tensor.name = name
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info(*x)], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], tensors
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    made: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
    return made


def by_onnxruntime(file: bytes, x: np.ndarray, settings: Mapping[str, str] = MappingProxyType({})) -> np.ndarray:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    for key, value in settings.items():
        options.add_session_config_entry(key, value)
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": x})[0])


def product(n: int, k: int, bits: int, block: int, zeros: str = "", level: int = 1, bias: bool = False) -> bytes:
    rng, blocks = np.random.default_rng(n + k), -(-k // block)
    weights = rng.integers(0, 256, (n, blocks, block * bits // 8)).astype(np.uint8)
    scales = (rng.uniform(0.5, 1.5, (n, blocks)) / (np.sqrt(k) * 2 ** (bits - 2))).astype(np.float32)
    origin: Any = None
    if zeros == "bytes":
        origin = rng.integers(0, 256, (n, -(-blocks * bits // 8))).astype(np.uint8)
    elif zeros:
        origin = rng.uniform(0, 1 << bits, (n, blocks)).astype(np.float32)
    added = rng.standard_normal(n).astype(np.float32) if bias else None
    constants = [weights, scales, origin, None, added]
    while constants[-1] is None:
        constants.pop()
    attributes = {"K": k, "N": n, "bits": bits, "block_size": block, "accuracy_level": level}
    return model("MatMulNBits", ("x", TensorProto.FLOAT, ("m", k)), constants, **attributes)


def compare(file: bytes, x: np.ndarray, bound: float, settings: Mapping[str, str] = MappingProxyType({})) -> None:
    want = by_onnxruntime(file, x, settings)
    np.testing.assert_allclose(fl.load(file)(x), want, rtol=0, atol=bound * np.abs(want).max())


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_exact_products_are_those_of_onnxruntime(bits: int, variant: str) -> None:
    for block, zeros, (n, k) in itertools.product((16, 32, 64, 128, 256), ("", "bytes", "floats"), ((33, 100), (64, 512))):
        if bits != 4 and zeros == "floats":  # which onnxruntime refuses
            continue
        file = product(n, k, bits, block, zeros, bias=k == 100)
        for m in (1, 6):
            compare(file, np.random.default_rng(m).standard_normal((m, k)).astype(np.float32), 2e-6)


@pytest.mark.parametrize("bits", [4, 8])
def test_integer_products_are_near_those_of_onnxruntime(bits: int, variant: str) -> None:
    """Its kernels of level 4 round rows by the same steps; where it has none for a case, it computes with floats."""
    for block, zeros, m in itertools.product((16, 32, 64, 128), ("", "bytes"), (1, 6)):
        x = np.random.default_rng(m).standard_normal((m, 512)).astype(np.float32)
        compare(product(64, 512, bits, block, zeros, 4), x, 1e-2)
        exact, integer = (fl.load(product(64, 512, bits, block, zeros, level))(x) for level in (1, 4))
        assert 1e-5 < np.abs(exact - integer).max() / np.abs(exact).max() < 1e-2
        if variant.startswith("aot"):
            strict = [fl.load(product(64, 512, bits, block, zeros, level), precision="strict")(x) for level in (1, 4)]
            np.testing.assert_array_equal(*strict)


@pytest.mark.parametrize("kind", ["FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ"])
def test_floats_of_eight_bits_stay_so(kind: str) -> None:
    """From the file's bytes to the kernel, against ONNX's reference; never as float32 of the whole matrix."""
    reference, number = pytest.importorskip("onnx.reference"), getattr(TensorProto, kind)
    rng, (k, n), block = np.random.default_rng(number), (256, 160), 32
    codes = rng.integers(0, 120, (k, n)).astype(np.uint8)
    codes += (rng.integers(0, 2, (k, n)) << 7).astype(np.uint8)
    codes[codes == 0x80] = 0  # NaN of some
    scales = rng.uniform(0.5, 1.5, (k // block, n)).astype(np.float32)
    zero = helper.make_tensor("z", number, scales.shape, bytes(scales.size), raw=True)
    tensors = [
        helper.make_tensor("w", number, codes.shape, codes.tobytes(), raw=True),
        onnx.numpy_helper.from_array(scales, "s"),
        zero,
    ]
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["f"], axis=0, block_size=block),
        helper.make_node("MatMul", ["x", "f"], ["y"]),
    ]
    given, made = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", ("m", k)), ("y", None))
    )
    opsets = [helper.make_opsetid("", 23)]
    proto = helper.make_model(helper.make_graph(nodes, "g", [given], [made], tensors), opset_imports=opsets, ir_version=11)
    model = fl.load(proto.SerializeToString())
    assert [a.dtype for a in model._main.whole_graph().constants.values() if a.size >= codes.size] == [np.uint8]
    for m in (1, 6):
        x = rng.standard_normal((m, k)).astype(np.float32)
        want = reference.ReferenceEvaluator(proto).run(None, {"x": x})[0]
        np.testing.assert_allclose(model(x), want, rtol=0, atol=2e-6 * np.abs(want).max())


@pytest.mark.parametrize("kind", [0, 1])
def test_products_of_sixteen_numbers_are_those_of_onnxruntime(kind: int, variant: str) -> None:
    """Also where a block has terms of two columns. With transB=0 it gives what is in its memory by chance."""
    rng = np.random.default_rng(kind)
    for block, (n, k) in itertools.product((16, 64, 256), ((33, 100), (7, 31), (64, 512), (40, 64))):
        packed = rng.integers(0, 256, -(-n * k // 2)).astype(np.uint8)
        largest = rng.uniform(0.1, 2, -(-n * k // block)).astype(np.float32)
        attributes = {"K": k, "N": n, "block_size": block, "quant_type": kind}
        file = model("MatMulBnb4", ("x", TensorProto.FLOAT, ("m", k)), [packed, largest], **attributes)
        compare(file, rng.standard_normal((3, k)).astype(np.float32), 2e-6)


WRONG: list[tuple[str, str, dict[int, Any], dict[str, int]]] = [
    ("MatMulNBits", "bits=3", {}, {"bits": 3}),
    ("MatMulNBits", "block_size=24", {}, {"block_size": 24}),
    ("MatMulNBits", "block_size=8", {}, {"block_size": 8}),
    ("MatMulNBits", "K=0", {}, {"K": 0}),
    ("MatMulNBits", "N=-1", {}, {"N": -1}),
    ("MatMulNBits", "input 1 has shape", {}, {"K": 1 << 62, "N": 1 << 62}),
    ("MatMulNBits", "input 1 has shape", {0: lambda a: a[:, :-1]}, {}),
    ("MatMulNBits", "input 1 has shape", {}, {"K": 129}),
    ("MatMulNBits", "input 2 has shape", {1: lambda a: a[:-1]}, {}),
    ("MatMulNBits", "input 3 has shape", {2: lambda a: a[:, :1]}, {}),
    ("MatMulNBits", "input 5 has shape", {4: lambda a: a[:-1]}, {}),
    ("MatMulNBits", "g_idx has shape", {3: lambda a: np.zeros(99, np.int32)}, {}),
    ("MatMulNBits", "g_idx has dtype", {3: lambda a: np.zeros(100, np.int64)}, {}),
    ("MatMulNBits", "the weights have dtype", {0: lambda a: a.astype(np.int32)}, {}),
    ("MatMulNBits", "the scales float16", {1: lambda a: a.astype(np.float16)}, {}),
    ("MatMulNBits", "the zero points have dtype", {2: lambda a: a.astype(np.int8)}, {}),
    ("MatMulNBits", "input 2 has NaN", {1: lambda a: a * np.float32(np.inf)}, {}),
    ("MatMulBnb4", "block_size=24", {}, {"block_size": 24}),
    ("MatMulBnb4", "quant_type=2", {}, {"quant_type": 2}),
    ("MatMulBnb4", "input 1 has shape", {0: lambda a: a[:-1]}, {}),
    ("MatMulBnb4", "input 2 has shape", {1: lambda a: a[:-1]}, {}),
    ("MatMulBnb4", "input 2 has NaN", {1: lambda a: a * np.float32(np.nan)}, {}),
    ("MatMulBnb4", "dtypes are", {0: lambda a: a.astype(np.int8)}, {}),
]


@pytest.mark.parametrize(("op", "text", "changes", "attributes"), WRONG, ids=[f"{op}: {text}" for op, text, *_ in WRONG])
def test_weights_that_do_not_fit_are_refused_at_load(
    op: str, text: str, changes: dict[int, Any], attributes: dict[str, int]
) -> None:
    n, k, block = 6, 100, 32
    if op == "MatMulNBits":
        constants: list[Any] = [np.zeros((n, 4, 16), np.uint8), np.ones((n, 4), np.float32), np.zeros((n, 2), np.uint8), None,
                                np.ones(n, np.float32)]  # fmt: skip
    else:
        constants, attributes = [np.zeros(300, np.uint8), np.ones(19, np.float32)], {"quant_type": 0, **attributes}
    for i, change in changes.items():
        constants[i] = change(constants[i])
    made = model(op, ("x", TensorProto.FLOAT, ("m", None)), constants, **{"N": n, "K": k, "block_size": block, **attributes})
    with pytest.raises(Error, match=text):
        fl.load(made)


def test_blocks_that_are_not_there_are_refused() -> None:
    constants = [np.zeros((6, 4, 16), np.uint8), np.ones((6, 4), np.float32), None, np.full(100, 4, np.int32)]
    file = model("MatMulNBits", ("x", TensorProto.FLOAT, ("m", 100)), constants, N=6, K=100, block_size=32)
    with pytest.raises(Error, match=r"g_idx has 4 .. 4: expected 0 .. 3"):
        fl.load(file)(np.ones((1, 100), np.float32))


def table(rows: int, columns: int, bits: int, kind: str, block: int, zeros: bool, axes: tuple[int, int]) -> bytes:
    """`kind`: "bytes", or the name of a type of four bits."""
    rng = np.random.default_rng(rows)
    shape = [rows, columns]
    if kind == "bytes":
        data: Any = rng.integers(0, 256, (rows, columns * bits // 8)).astype(np.uint8)
    else:
        low = -8 if kind == "INT4" else 0
        data = helper.make_tensor("d", TensorProto.DataType.Value(kind), shape, rng.integers(low, low + 16, shape).reshape(-1))
    blocks = list(shape)
    blocks[axes[1]] = -(-blocks[axes[1]] // block)
    scales = rng.uniform(0.5, 1.5, blocks).astype(np.float32)
    origin: Any = None
    if zeros and kind == "bytes":
        origin = rng.integers(0, 256, (blocks[0], -(-blocks[1] * bits // 8))).astype(np.uint8)
    elif zeros:
        origin = helper.make_tensor(
            "z", TensorProto.DataType.Value(kind), blocks, rng.integers(low, low + 16, blocks).reshape(-1)
        )
    constants = [data, scales] + ([] if origin is None else [origin])
    attributes = {"gather_axis": axes[0], "quantize_axis": axes[1], "block_size": block}
    if kind == "bytes":
        attributes["bits"] = bits
    return model("GatherBlockQuantized", ("x", TensorProto.INT64, None), constants, 1, **attributes)


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize(
    ("bits", "kind", "axes"),
    [
        (4, "bytes", (0, 1)), (8, "bytes", (0, 1)), (4, "UINT4", (0, 1)), (4, "INT4", (0, 1)), (4, "INT4", (1, 0)),
        (4, "UINT4", (0, 0)), (4, "INT4", (1, 1)),
    ],
)  # fmt: skip
def test_gathered_rows_are_those_of_onnxruntime(bits: int, kind: str, axes: tuple[int, int], zeros: bool) -> None:
    for columns, block in ((96, 32), (64, 64), (80, 32), (10, 16)):
        file = table(40, columns, bits, kind, block, zeros, axes)
        size = 40 if axes[0] == 0 else columns
        for indices in (np.array([[1, 0], [size - 1, -2]]), np.array(3), np.zeros((0, 2), np.int64)):
            np.testing.assert_array_equal(fl.load(file)(indices), by_onnxruntime(file, indices))


def test_scales_that_are_no_numbers_are_refused() -> None:
    file = product(8, 32, 4, 32)
    made = onnx.load_from_string(file)
    scales = np.full((8, 1), np.nan, np.float32)
    made.graph.initializer[1].CopyFrom(onnx.numpy_helper.from_array(scales, "c1"))
    with pytest.raises(FormatError, match=r"MatMulNBits \(y\): input 2 has NaN"):
        fl.load(made.SerializeToString())


@pytest.mark.parametrize(
    "change", [{"bits": 3}, {"block_size": 24}, {"block_size": 64}, {"gather_axis": 1}, {"quantize_axis": 5}]
)
def test_tables_that_do_not_fit_are_refused(change: dict[str, int]) -> None:
    made = onnx.load_from_string(table(40, 96, 4, "bytes", 32, True, (0, 1)))
    attributes = {a.name: a.i for a in made.graph.node[0].attribute} | change
    del made.graph.node[0].attribute[:]
    made.graph.node[0].attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
    with pytest.raises(Error, match=r"GatherBlockQuantized \(y\): "):
        fl.load(made.SerializeToString())
    file = table(40, 96, 4, "bytes", 32, True, (0, 1))
    for wrong in (40, -41):
        with pytest.raises(Error, match=r"GatherBlockQuantized \(y\): "):
            fl.load(file)(np.array([wrong]))


@pytest.mark.parametrize("kind", ["INT2", "UINT2", "INT4", "UINT4", "INT8", "UINT8"])
def test_dequantized_products_are_those_of_onnxruntime(kind: str) -> None:
    """As exporters write them: blocks along the summed axis, the matrix as it is or turned."""
    bits, rng = int(kind[-1]), np.random.default_rng(0)
    low = 0 if kind[0] == "U" else -(1 << bits - 1)
    for shape, axis, block in itertools.product(((96, 40), (100, 48)), (0, 1), (16, 32)):
        blocks = [-(-d // block) if i == axis else d for i, d in enumerate(shape)]
        numbers = [rng.integers(low, low + (1 << bits), sizes) for sizes in (shape, blocks)]
        tensors = [
            helper.make_tensor(n, getattr(TensorProto, kind), v.shape, v.reshape(-1)) for n, v in zip("qz", numbers, strict=True)
        ]
        tensors.append(onnx.numpy_helper.from_array(rng.uniform(0.01, 0.1, blocks).astype(np.float32), "s"))
        nodes = [helper.make_node("DequantizeLinear", ["q", "s", "z"], ["w"], axis=axis, block_size=block)]
        if axis:
            nodes.append(helper.make_node("Transpose", ["w"], ["t"], perm=[1, 0]))
        nodes.append(helper.make_node("MatMul", ["x", "t" if axis else "w"], ["y"]))
        values = [
            helper.make_tensor_value_info(n, TensorProto.FLOAT, sizes) for n, sizes in (("x", ["m", shape[axis]]), ("y", None))
        ]
        graph = helper.make_graph(nodes, "g", values[:1], values[1:], tensors)
        opsets = [helper.make_opsetid("", 25 if bits == 2 else 21)]
        file = helper.make_model(graph, opset_imports=opsets, ir_version=11 if bits == 2 else 10).SerializeToString()
        # onnxruntime's own rewrite of such products rounds x to bytes.
        x = rng.standard_normal((3, shape[axis])).astype(np.float32)
        compare(file, x, 2e-6, {"session.qdq_matmulnbits_accuracy_level": "1"})
