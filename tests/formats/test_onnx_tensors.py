"""Tensors of ONNX in every type and encoding, from bytes written here; what is wrong with them, one test a rule."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastlayers._codes import small_values
from fastlayers.errors import Error, FormatError, LimitError, UnsupportedError
from fastlayers.formats import load_weights
from fastlayers.formats.onnx.elements import ELEMENTS, unpacked
from fastlayers.formats.onnx.wire import MAX_VARINT

from ..each import each
from . import onnx_build as ob
from .measure import allocations
from .onnx_build import field, packed, repeated, tensor_raw, varint

GOLDENS = Path(__file__).parents[1] / "goldens"
PLAIN = ["<f4", "u1", "i1", "<u2", "<i2", "<i4", "<i8", "?", "<f2", "<f8", "<u4", "<u8"]
# The field that typed elements of a type stand in.
FIELDS = {1: 4, 11: 10, 7: 7, 12: 11, 13: 11}


def one(tensor: bytes, **options: Any) -> np.ndarray:
    """The array of the only initializer of a model."""
    return load_weights(ob.model(ob.graph(initializers=[tensor + field(8, "w")])), **options)["w"]


def values_of(dtype: np.dtype[Any], count: int = 6) -> np.ndarray:
    """Numbers of both signs, the extremes among them."""
    if dtype.kind == "f":
        return np.resize(np.array([0.0, -0.0, 1.5, -2.25, np.inf, np.nan]), count).astype(dtype)
    if dtype.kind == "b":
        return np.resize(np.array([True, False, False]), count)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    return np.resize(np.array([low, high, 0, 1, low // 2, high - 1], dtype), count)


def typed(array: np.ndarray, unpack: bool = False) -> bytes:
    """The field of typed values that holds the array, packed or not."""
    number = FIELDS.get(ob.TYPES[array.dtype.str[1:]], 5)
    if number in (4, 10):
        width = 5 if number == 4 else 1
        items = [row.tobytes() for row in array.reshape(-1, 1)]
        return b"".join(varint(number << 3 | width) + item for item in items) if unpack else field(number, array.tobytes())
    if array.dtype.kind == "f":
        array = array.view(f"u{array.dtype.itemsize}")
    numbers = [int(v) for v in array.reshape(-1)]
    return repeated(number, numbers) if unpack else packed(number, numbers)


@pytest.mark.parametrize("encoding", ["raw", "packed", "not packed"])
@pytest.mark.parametrize("dtype", PLAIN)
def test_every_plain_type_in_every_encoding(dtype: str, encoding: str) -> None:
    array = values_of(np.dtype(dtype)).reshape(2, 3)
    code = ob.TYPES[array.dtype.str[1:]]
    content = field(9, array.tobytes()) if encoding == "raw" else typed(array, encoding == "not packed")
    got = one(tensor_raw((2, 3), code, content))
    assert got.dtype == array.dtype and got.shape == (2, 3) and got.tobytes() == array.tobytes()
    assert not got.flags.writeable and got.flags.aligned


@pytest.mark.parametrize("encoding", ["raw", "packed", "not packed"])
@pytest.mark.parametrize("dtype", PLAIN)
@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0), (257,), (70_001,)])
def test_every_size(dtype: str, encoding: str, shape: tuple[int, ...]) -> None:
    array = values_of(np.dtype(dtype), int(np.prod(shape))).reshape(shape)
    content = field(9, array.tobytes()) if encoding == "raw" else typed(array, encoding == "not packed")
    got = one(tensor_raw(shape, ob.TYPES[array.dtype.str[1:]], content))
    assert got.dtype == array.dtype and got.shape == shape and got.tobytes() == array.tobytes()
    assert not got.flags.writeable and got.flags.aligned and got.flags.c_contiguous


def test_numbers_in_several_runs() -> None:
    floats = field(4, struct.pack("<2f", 1, 2)) + field(4, struct.pack("<f", 3)) + field(4, b"")
    assert one(tensor_raw((3,), 1, floats)).tolist() == [1, 2, 3]
    assert one(tensor_raw((4,), 7, packed(7, [1, -1]), packed(7, [300, 4]))).tolist() == [1, -1, 300, 4]


def test_an_empty_tensor_needs_no_content() -> None:
    for code, kind in ELEMENTS.items():
        if kind.codec is not None:
            got = one(tensor_raw((2, 0), code))
            assert got.shape == (2, 0) and got.dtype == kind.dtype


def test_empty_raw_data_beside_typed_numbers_is_no_content() -> None:
    assert one(tensor_raw((1,), 1, field(9, b""), field(4, struct.pack("<f", 5)))).tolist() == [5]


def test_a_packed_shape_and_numbers_that_are_longer_than_they_need_be() -> None:
    content = packed(1, [2, 1]) + b"\x10\x81\x80\x00" + field(9, bytes(8))
    assert one(content).shape == (2, 1)


def test_negative_numbers_of_narrow_types_with_their_sign_and_without() -> None:
    assert one(tensor_raw((4,), 3, packed(5, [-1, 255, -128, 127]))).tolist() == [-1, -1, -128, 127]
    assert one(tensor_raw((3,), 5, packed(5, [-1, 65535, -32768]))).tolist() == [-1, -1, -32768]
    assert one(tensor_raw((2,), 6, packed(5, [-(1 << 31), (1 << 32) - 1]))).tolist() == [-(1 << 31), -1]


def test_bfloat16_in_raw_data_and_numbers() -> None:
    codes = np.arange(1 << 16, dtype="<u2")
    expected = (codes.astype("<u4") << 16).tobytes()
    for content in (field(9, codes.tobytes()), packed(5, map(int, codes))):
        got = one(tensor_raw((256, 256), 16, content))
        assert got.dtype == np.float32 and got.astype("<f4").tobytes() == expected


# By hand from the tables of the OCP specifications.
FLOAT4 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
FLOAT6_E2M3 = [i / 8 for i in range(16)] + [2 + i / 4 for i in range(8)] + [4 + i / 2 for i in range(8)]
FLOAT6_E3M2 = (
    [i / 16 for i in range(8)]
    + [0.5 + i / 8 for i in range(4)]
    + [1 + i / 4 for i in range(4)]
    + [2 + i / 2 for i in range(4)]
    + [4.0 + i for i in range(4)]
    + [8.0 + 2 * i for i in range(4)]
    + [16.0 + 4 * i for i in range(4)]
)
SMALL: dict[int, tuple[int, Any, list[float]]] = {
    21: (4, np.uint8, list(range(16))),
    22: (4, np.int8, [*range(8), *range(-8, 0)]),
    23: (4, np.float32, FLOAT4 + [-v for v in FLOAT4]),
    25: (2, np.uint8, [0, 1, 2, 3]),
    26: (2, np.int8, [0, 1, -2, -1]),
    27: (6, np.float32, FLOAT6_E2M3 + [-v for v in FLOAT6_E2M3]),
    28: (6, np.float32, FLOAT6_E3M2 + [-v for v in FLOAT6_E3M2]),
}


def pack(codes: list[int], bits: int) -> bytes:
    """The codes as one number, lowest first, cut into bytes."""
    number = sum(code << (bits * i) for i, code in enumerate(codes))
    return number.to_bytes(-(-len(codes) * bits // 8), "little")


@pytest.mark.parametrize("code", SMALL)
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 63, 64, 65, 50_003])
def test_types_of_less_than_a_byte(code: int, count: int) -> None:
    bits, dtype, values = SMALL[code]
    codes = [(7 * i + i // 5) % (1 << bits) for i in range(count)]
    expected = np.array([values[c] for c in codes], dtype)
    content = (
        pack(codes[:5000], bits)
        if count < 5000
        else np.packbits(
            np.array([[c >> b & 1 for b in range(bits)] for c in codes], np.uint8).reshape(-1), bitorder="little"
        ).tobytes()
    )
    numbers = codes if bits == 6 else list(content)
    for encoded in (field(9, content), packed(5, numbers), repeated(5, numbers) if count < 100 else field(9, content)):
        got = one(tensor_raw((count,), code, encoded))
        assert got.dtype == dtype and got.tobytes() == expected.tobytes()
        assert not got.flags.writeable


def test_the_tables_of_small_types() -> None:
    for code, (bits, dtype, values) in SMALL.items():
        table = small_values(ELEMENTS[code].name, bits)
        assert table.dtype == dtype and table.tobytes() == np.array(values, dtype).tobytes()
    assert unpacked(np.array([0b11100100], np.uint8), 2).tolist() == [0, 1, 2, 3]


def test_every_type_as_the_onnx_package_writes_and_reads_it() -> None:
    weights = load_weights(GOLDENS / "onnx_tensors.onnx")
    with np.load(GOLDENS / "onnx_tensors.npz", allow_pickle=False) as expected:
        assert set(weights) == set(expected.files) and len(weights) == 50
        for name, array in weights.items():
            np.testing.assert_array_equal(array, expected[name], err_msg=name, strict=True)
            if array.dtype.kind == "f":  # equality takes -0 for 0
                told = ~np.isnan(array)
                np.testing.assert_array_equal(np.signbit(array[told]), np.signbit(expected[name][told]), err_msg=name)


def test_an_external_file_as_the_onnx_package_writes_it(tmp_path: Path) -> None:
    for name in ("onnx_external.onnx", "onnx_external.bin"):  # copied, so that they have one name each
        (tmp_path / name).write_bytes((GOLDENS / name).read_bytes())
    weights = load_weights(tmp_path / "onnx_external.onnx")
    expected = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert {name: array.tolist() for name, array in weights.items()} == {f"w{i}": (expected + i).tolist() for i in range(3)}


@pytest.mark.parametrize("code", [17, 18, 19, 20, 24])
def test_float8(code: int) -> None:
    codes = bytes(range(256))
    raw = one(tensor_raw((256,), code, field(9, codes)))
    numbers = one(tensor_raw((256,), code, packed(5, codes)))
    assert raw.dtype == np.float32 and raw.tobytes() == numbers.tobytes()
    assert raw[1] == {17: 2**-9, 18: 2**-10, 19: 2**-16, 20: 2**-17, 24: 2**-126}[code]


def test_the_model_says_which_types_were_widened() -> None:
    constant = ob.node("Constant", "", "c", value=ob.Tensor(tensor_raw((2,), 22, field(9, b"\x21"))))
    graph = ob.graph([constant], "", "c", [tensor_raw((1,), 16, field(9, b"\0\0"), name="w"), ob.tensor(np.ones(1, "f4"), "p")])
    model = ob.read(ob.model(graph))
    assert dict(model.graph.widened) == {"c": "INT4", "w": "BFLOAT16"}
    assert model.graph.nodes[0].attributes["value"].tolist() == [1, 2]


def test_strings() -> None:
    text = tensor_raw((2,), 8, field(6, "é"), field(6, b"\xff"), name="s")
    model = ob.read(ob.model(ob.graph(initializers=[text])))
    assert model.graph.initializers["s"].tolist() == ["é", b"\xff"]
    assert load_weights(ob.model(ob.graph(initializers=[text, ob.tensor(np.ones(1, "f4"), "w")]))).keys() == {"w"}


def test_sparse_tensors() -> None:
    values = ob.tensor(np.array([1.5, 2.5], "f4"), "w")
    for indices in (np.array([1, 5]), np.array([[0, 1], [1, 2]])):
        model = ob.model(ob.graph(extra=field(15, ob.sparse(values, ob.tensor(indices), (2, 3)))))
        assert load_weights(model)["w"].tolist() == [[0, 1.5, 0], [0, 0, 2.5]]
        assert not load_weights(model)["w"].flags.writeable
    none = ob.sparse(ob.tensor(np.zeros(0, "f4"), "w"), ob.tensor(np.zeros(0, "i8")), (2, 2))
    assert load_weights(ob.model(ob.graph(extra=field(15, none))))["w"].tolist() == [[0, 0], [0, 0]]


def sparse_model(values: bytes, indices: bytes, dims: tuple[int, ...]) -> bytes:
    return ob.model(ob.graph(extra=field(15, ob.sparse(values, indices, dims))))


F2 = ob.tensor(np.ones(2, "f4"), "w")
SPARSE: dict[str, tuple[bytes, type[Error], str]] = {
    "descending": (
        sparse_model(F2, ob.tensor(np.array([1, 0])), (4,)),
        FormatError,
        "must ascend without repetition, from 0 to 3",
    ),
    "twice": (sparse_model(F2, ob.tensor(np.array([1, 1])), (4,)), FormatError, "must ascend without repetition"),
    "beyond": (sparse_model(F2, ob.tensor(np.array([1, 4])), (4,)), FormatError, "must ascend"),
    "negative": (sparse_model(F2, ob.tensor(np.array([-1, 1])), (4,)), FormatError, "must ascend"),
    "beyond its dimension": (
        sparse_model(F2, ob.tensor(np.array([[0, 2], [1, 0]])), (2, 2)),
        FormatError,
        "beyond the shape (2, 2)",
    ),
    "negative in its dimension": (
        sparse_model(F2, ob.tensor(np.array([[0, -1], [1, 0]])), (2, 2)),
        FormatError,
        "beyond the shape",
    ),
    "of another shape": (
        sparse_model(F2, ob.tensor(np.array([0, 1, 2])), (4,)),
        FormatError,
        "expected int64 of shape (2,) or (2, 1)",
    ),
    "int32 indices": (
        sparse_model(F2, ob.tensor(np.array([0, 1], "i4")), (4,)),
        FormatError,
        "sparse indices of shape (2,) and int32",
    ),
    "two-dimensional": (sparse_model(ob.tensor(np.ones((1, 2), "f4"), "w"), F2, (4,)), FormatError, "expected one dimension"),
    "without indices": (ob.model(ob.graph(extra=field(15, field(1, F2)))), FormatError, "no values or no indices"),
    "values twice": (ob.model(ob.graph(extra=field(15, field(1, F2) * 2))), FormatError, "values or indices twice"),
    "many dimensions": (sparse_model(F2, F2, (1,) * 33), UnsupportedError, "more than 32 dimensions"),
    "a negative size": (sparse_model(F2, ob.tensor(np.array([0, 1])), (-4,)), FormatError, "expected sizes from 0 up"),
    "a bomb": (
        sparse_model(F2, ob.tensor(np.array([0, 1])), (1 << 20,)),
        LimitError,
        "24 bytes of a sparse tensor stand for 4194304",
    ),
    "beyond any memory": (sparse_model(F2, ob.tensor(np.array([0, 1])), (1 << 40, 1 << 40)), FormatError, "beyond any memory"),
}


@pytest.mark.parametrize("case", SPARSE)
def test_broken_sparse_tensors(case: str) -> None:
    content, error, text = SPARSE[case]
    with allocations() as measured, pytest.raises(error) as caught:
        load_weights(content)
    assert text in str(caught.value)
    assert str(caught.value).startswith("load_weights: <bytes>: initializer 'w': ") or case in (
        "without indices",
        "values twice",
        "many dimensions",
    )
    assert measured.peak < 1 << 20


# What is wrong: (the tensor, the error, a part of its text)
BROKEN: dict[str, tuple[bytes, type[Error], str]] = {
    "no type": (repeated(1, [1]) + field(9, bytes(4)), FormatError, "initializer 'w': has no element type"),
    "unknown type": (tensor_raw((1,), 99, field(9, b"")), UnsupportedError, "its elements are of type 99"),
    "complex64": (tensor_raw((1,), 14, field(9, bytes(8))), UnsupportedError, "COMPLEX64 elements are not supported"),
    "complex128": (tensor_raw((1,), 15, field(9, bytes(16))), UnsupportedError, "COMPLEX128 elements are not supported"),
    "a segment": (tensor_raw((1,), 1, field(3, b""), field(9, bytes(4))), UnsupportedError, "a tensor is cut into segments"),
    "raw_data too short": (
        tensor_raw((3,), 1, field(9, bytes(11))),
        FormatError,
        "raw_data has 11 bytes, FLOAT of shape (3,) takes 12",
    ),
    "raw_data too long": (tensor_raw((3,), 1, field(9, bytes(13))), FormatError, "raw_data has 13 bytes"),
    "large and too short": (tensor_raw((10_000,), 1, field(9, bytes(39_999))), FormatError, "raw_data has 39999 bytes"),
    "packed small too short": (
        tensor_raw((3,), 22, field(9, bytes(1))),
        FormatError,
        "raw_data has 1 bytes, INT4 of shape (3,) takes 2",
    ),
    "packed small too long": (
        tensor_raw((3,), 25, field(9, bytes(2))),
        FormatError,
        "raw_data has 2 bytes, UINT2 of shape (3,) takes 1",
    ),
    "six bits too short": (
        tensor_raw((3,), 27, field(9, bytes(2))),
        FormatError,
        "raw_data has 2 bytes, FLOAT6E2M3 of shape (3,) takes 3",
    ),
    "nothing": (tensor_raw((1,), 1), FormatError, "its FLOAT elements are nowhere, expected them in float_data or raw_data"),
    "in another field": (
        tensor_raw((1,), 1, packed(5, [1])),
        FormatError,
        "are in int32_data, expected them in float_data or raw_data",
    ),
    "int64 in int32_data": (tensor_raw((1,), 7, packed(5, [1])), FormatError, "are in int32_data, expected them in int64_data"),
    "in two fields": (tensor_raw((1,), 1, field(4, bytes(4)), packed(5, [1])), FormatError, "elements in more than one field"),
    "raw and typed": (
        tensor_raw((1,), 1, field(9, bytes(4)), field(4, bytes(4))),
        FormatError,
        "both in raw_data and in a field",
    ),
    "strings in raw_data": (tensor_raw((1,), 8, field(9, b"a")), FormatError, "are in raw_data, expected them in string_data"),
    "too few strings": (tensor_raw((2,), 8, field(6, "a")), FormatError, "string_data has 1 strings, shape (2,) takes 2"),
    "too many strings": (
        tensor_raw((), 8, field(6, "a"), field(6, "b")),
        FormatError,
        "string_data has 2 strings, shape () takes 1",
    ),
    "negative size": (tensor_raw((-1,), 1, field(9, b"")), FormatError, "has the shape (-1,), expected sizes from 0 up"),
    "two negative sizes": (tensor_raw((-1, -1), 1, field(9, bytes(4))), FormatError, "has the shape (-1, -1)"),
    "product over 64 bits": (tensor_raw((1 << 32, 1 << 32, 4), 1, field(9, bytes(4))), FormatError, "is beyond any memory"),
    "product wraps": (tensor_raw(((1 << 62) + 1,), 1, field(9, bytes(4))), FormatError, "is beyond any memory"),
    "huge": (tensor_raw((1 << 40,), 1, field(9, bytes(4))), FormatError, "raw_data has 4 bytes, FLOAT of shape"),
    "huge numbers": (
        tensor_raw((1 << 40,), 7, packed(7, [1])),
        FormatError,
        "int64_data: has 1 bytes, shape (1099511627776,) takes",
    ),
    "huge strings": (tensor_raw((1 << 40,), 8, field(6, "a")), FormatError, "string_data has 1 strings"),
    "empty and huge": (tensor_raw((0, 1 << 40, 1 << 40), 1), FormatError, "is beyond any memory"),
    "33 dimensions": (tensor_raw((1,) * 33, 1, field(9, bytes(4))), UnsupportedError, "a tensor has more than 32 dimensions"),
    "33 packed dimensions": (ob.packed(1, [1] * 33) + field(2, 1), UnsupportedError, "has 33 dimensions, at most 32"),
    "many packed dimensions": (ob.packed(1, [1 << 62] * 100_000) + field(2, 1), UnsupportedError, "more than 32 dimensions"),
    "many dimensions": (tensor_raw((1 << 62,) * 50_000), UnsupportedError, "more than 32 dimensions"),
    "bool of 2": (tensor_raw((2,), 9, field(9, b"\1\2")), FormatError, "bool elements other than 0 and 1"),
    "bool number 2": (tensor_raw((1,), 9, packed(5, [2])), FormatError, "values beyond 0 to 1, the range of BOOL"),
    "int8 out of range": (tensor_raw((1,), 3, packed(5, [256])), FormatError, "values beyond -128 to 255, the range of INT8"),
    "int8 below": (tensor_raw((1,), 3, packed(5, [-129])), FormatError, "values beyond -128 to 255"),
    "float16 out of range": (
        tensor_raw((1,), 10, packed(5, [65536])),
        FormatError,
        "beyond -32768 to 65535, the range of FLOAT16",
    ),
    "int32 out of range": (tensor_raw((1,), 6, packed(5, [1 << 32])), FormatError, "the range of INT32"),
    "uint32 out of range": (tensor_raw((1,), 12, packed(11, [1 << 32])), FormatError, "the range of UINT32"),
    "six bits out of range": (tensor_raw((1,), 27, packed(5, [64])), FormatError, "beyond 0 to 63"),
    "too few values": (tensor_raw((3,), 7, packed(7, [300, 2])), FormatError, "int64_data: has 2 values, shape (3,) takes 3"),
    "too many values": (tensor_raw((1,), 7, packed(7, [1, 2])), FormatError, "has 2 values, shape (1,) takes 1"),
    "too few in a long run": (
        tensor_raw((70,), 7, packed(7, [300] * 69)),
        FormatError,
        "has 69 values, its shape has 70 elements",
    ),
    "too many in a long run": (tensor_raw((70,), 7, packed(7, [1] * 71)), FormatError, "more than the 70 values"),
    "too few, not packed": (tensor_raw((3,), 7, repeated(7, [1, 2])), FormatError, "has 2 values, shape (3,) takes 3"),
    "packed and not": (
        tensor_raw((3,), 7, packed(7, [1]), repeated(7, [1, 2])),
        FormatError,
        "some of its values packed and some not",
    ),
    "cut number": (tensor_raw((1,), 7, field(7, b"\x80")), FormatError, "ends within a number"),
    "cut number in a long run": (tensor_raw((70,), 7, field(7, b"\1" * 69 + b"\x80")), FormatError, "is cut off"),
    "long number": (tensor_raw((1,), 7, field(7, b"\x80" * 10 + b"\1")), FormatError, "int64_data: has 11 bytes"),
    "long number in a run": (tensor_raw((70,), 7, field(7, b"\1" * 69 + b"\x80" * 10 + b"\1")), FormatError, "more than 64 bits"),
    "65 bits": (tensor_raw((1,), 7, field(7, b"\xff" * 9 + b"\x02")), FormatError, "more than 64 bits"),
    "65 bits in a long run": (
        tensor_raw((70,), 7, field(7, b"\1" * 69 + b"\xff" * 9 + b"\x02")),
        FormatError,
        "more than 64 bits",
    ),
    "endless number": (tensor_raw((10_000,), 7, field(7, b"\xff" * 70_000)), FormatError, "cut off, or longer than 10 bytes"),
    "floats cut": (tensor_raw((1,), 1, field(4, bytes(3))), FormatError, "float_data has 3 bytes, FLOAT of shape (1,) takes 4"),
    "dims a text": (
        field(2, 1) + varint(1 << 3 | 5) + bytes(4),
        FormatError,
        "field 1 is of kind 5, which is not that of its type",
    ),
}


@each("case", BROKEN)
def test_every_broken_rule_is_its_own_error(case: str) -> None:
    content, error, text = BROKEN[case]
    with allocations() as measured, pytest.raises(error) as caught:
        one(content)
    assert text in str(caught.value)
    assert str(caught.value).startswith("load_weights: <bytes>: ") and len(str(caught.value)) < 1000
    assert measured.peak < 4 << 20


def test_all_that_is_not_supported_is_named_at_once() -> None:
    tensors = [tensor_raw((1,), 14, field(9, bytes(8)), name=f"t{i}") for i in range(7)]
    with pytest.raises(UnsupportedError) as caught:
        load_weights(ob.model(ob.graph(initializers=[*tensors, ob.tensor(np.ones(1, "f4"), "w")])))
    assert "'t0'" in str(caught.value) and "'t4'" in str(caught.value) and "(7 tensors in all)" in str(caught.value)


@pytest.mark.parametrize("offset", range(8))
@pytest.mark.parametrize("count", [3, 40_000])
def test_data_at_any_offset_gives_aligned_arrays(offset: int, count: int) -> None:
    array = np.arange(count, dtype=np.float64)
    content = ob.model(ob.graph(initializers=[ob.tensor(array, "w")], name="g" * offset))
    got = load_weights(content)["w"]
    np.testing.assert_array_equal(got, array)
    assert got.flags.aligned and not got.flags.writeable


def aligned_model(array: np.ndarray, at: int = 0) -> bytes:
    """A model whose one tensor's data is, in a bytes object, at this offset from where it would be aligned."""
    for length in range(16):
        content = ob.model(None, field(7, field(2, "g" * length) + field(5, field(8, "w") + ob.tensor(array))))
        start = np.frombuffer(content, np.uint8).__array_interface__["data"][0] + content.index(array.tobytes())
        if start % 8 == at:
            return content
    raise AssertionError


def test_large_arrays_stay_in_the_file_or_are_copied_when_asked_for() -> None:
    array = np.arange(1 << 18, dtype=np.float32)
    content = aligned_model(array)
    model = ob.read(content, max_bytes=1 << 19)
    assert np.shares_memory(model.graph.initializers["w"], np.frombuffer(content, np.uint8))
    content = aligned_model(array, at=1)
    with pytest.raises(LimitError, match=r"initializer 'w': needs 1048576 bytes of memory"):
        ob.read(content, max_bytes=1 << 20)
    ob.read(content)  # imports
    with allocations() as measured:
        model = ob.read(content, max_bytes=2 << 20)
    assert measured.peak < 1 << 19  # nothing is copied yet
    copied = model.graph.initializers["w"]
    np.testing.assert_array_equal(copied, array)
    assert copied.flags.aligned and not copied.flags.writeable and model.graph.initializers["w"] is copied


def test_small_bfloat16_is_paid_for() -> None:
    content = tensor_raw((100_000,), 16, field(9, bytes(200_000)))
    assert one(content, max_bytes=1 << 20).size == 100_000
    with pytest.raises(LimitError, match="needs 400000 bytes"):
        one(content, max_bytes=1 << 18)


@pytest.mark.parametrize("make", [packed, repeated])
def test_numbers_cost_no_more_than_they_are_charged(make: Callable[..., bytes]) -> None:
    count = 1 << 16
    content = ob.model(ob.graph(initializers=[tensor_raw((count,), 7, make(7, [1] * count), name="w")]))
    load_weights(content)  # imports
    with allocations() as measured:
        load_weights(content, max_bytes=16 * count + (1 << 20))
    assert measured.peak < 32 * count + (4 << 20)
    with pytest.raises(LimitError):
        load_weights(content, max_bytes=8 * count - 1)
    assert MAX_VARINT == 10
