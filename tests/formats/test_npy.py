"""The npy reader: dtypes, orders and versions that numpy writes, and one test for each way in which a header may be."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from fastlayers.errors import Error, FormatError, LimitError, UnsupportedError
from fastlayers.formats import load_weights

from ..each import each
from .build import npy, npy_header, npy_raw

EIGHT = bytes(8)
DTYPES = ["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16", ">i2", ">u8", ">f2", ">f4", ">c16"]


# what is wrong: (the file, the error, a part of its text)
BROKEN: dict[str, tuple[bytes, type[Error], str]] = {
    "version 4": (npy_raw(npy_header(), EIGHT, (4, 0)), UnsupportedError, "npy version 4.0, supported are 1.0, 2.0 and 3.0"),
    "version 1.1": (npy_raw(npy_header(), EIGHT, (1, 1)), UnsupportedError, "npy version 1.1"),
    "nothing after the magic": (b"\x93NUMPY", FormatError, "expected an npy header"),
    "header longer than the file": (npy_raw(npy_header(), length=500), FormatError, "ends inside its header: truncated"),
    "header over the limit": (npy_raw(npy_header(), version=(2, 0), length=1 << 31), FormatError, "at most 10000 are allowed"),
    "empty header": (npy_raw(""), FormatError, "malformed npy header ''"),
    "no dict": (npy_raw("[1, 2]"), FormatError, "malformed npy header"),
    "empty dict": (npy_raw("{}"), FormatError, "malformed npy header"),
    "no braces": (npy_raw(npy_header().replace("}", "")), FormatError, "malformed npy header"),
    "key missing": (npy_raw("{'descr': '<f4', 'shape': (2,)}", EIGHT), FormatError, "malformed npy header"),
    "key too many": (npy_raw(npy_header().replace("}", "'more': True}"), EIGHT), FormatError, "malformed npy header"),
    "key twice": (npy_raw(npy_header().replace("}", "'descr': '<f4'}"), EIGHT), FormatError, "malformed npy header"),
    "no comma": (npy_raw("{'descr': '<f4' 'fortran_order': False, 'shape': (2,)}", EIGHT), FormatError, "malformed npy header"),
    "expression": (npy_raw(npy_header(shape="(1 + 1,)"), EIGHT), FormatError, "malformed npy header"),
    "call": (npy_raw(npy_header(descr="__import__('os')"), EIGHT), FormatError, "malformed npy header"),
    "nested without end": (npy_raw("(" * 9000), FormatError, "malformed npy header"),
    "nested signs": (npy_raw(npy_header(shape="(" + "-" * 9000 + "1,)")), FormatError, "malformed npy header"),
    "values of other kinds": (npy_raw(npy_header(descr="True"), EIGHT), FormatError, "malformed npy header"),
    "order a number": (npy_raw(npy_header(order="1"), EIGHT), FormatError, "malformed npy header"),
    "shape a number": (npy_raw(npy_header(shape="(2)"), EIGHT), FormatError, "malformed npy header"),
    "shape of bools": (npy_raw(npy_header(shape="(True,)"), EIGHT), FormatError, "malformed npy header"),
    "shape negative": (npy_raw(npy_header(shape="(-2,)"), EIGHT), FormatError, "malformed npy header"),
    "shape with leading zeros": (npy_raw(npy_header(shape="(02,)"), EIGHT), FormatError, "malformed npy header"),
    "shape with gaps": (npy_raw(npy_header(shape="(2,,)"), EIGHT), FormatError, "malformed npy header"),
    "shape of commas": (npy_raw(npy_header(shape="(,)"), EIGHT), FormatError, "malformed npy header"),
    "two values, no comma": (npy_raw(npy_header(shape="(1 2,)"), EIGHT), FormatError, "malformed npy header"),
    "number of 5000 digits": (npy_raw(npy_header(shape=f"({'9' * 5000},)")), FormatError, "malformed npy header"),
    "beyond memory": (npy_raw(npy_header(shape="(4611686018427387905,)"), EIGHT), FormatError, "beyond any memory"),
    "product over 64 bits": (npy_raw(npy_header(shape="(4294967296, 4294967296, 2)")), FormatError, "beyond any memory"),
    "empty, but beyond numpy": (npy_raw(npy_header(shape=f"(0, {2**40}, {2**40})")), FormatError, "beyond any memory"),
    "33 dimensions": (npy_raw(npy_header(shape=f"({'1, ' * 33})"), EIGHT), UnsupportedError, "33 dimensions, at most 32"),
    "data missing": (npy_raw(npy_header(), EIGHT[1:]), FormatError, "shape (2,) takes 8 bytes of data, 7 are there"),
    "data left over": (npy_raw(npy_header(), EIGHT + b"x"), FormatError, "shape (2,) takes 8 bytes of data, 9 are there"),
    "no data for a terabyte": (
        npy_raw(npy_header(shape="(1000000000000,)")),
        FormatError,
        "4000000000000 bytes of data, 0 are there",
    ),
    "scalar without data": (npy_raw(npy_header(shape="()")), FormatError, "shape () takes 4 bytes of data, 0 are there"),
    "bool of 2": (npy_raw(npy_header("'|b1'"), b"\1\2"), FormatError, "bool elements other than 0 and 1"),
    "objects": (
        npy_raw(npy_header("'|O'"), EIGHT),
        UnsupportedError,
        "holds Python objects (a pickle), and nothing is unpickled",
    ),
    "objects with a size": (npy_raw(npy_header("'|O8'"), EIGHT * 2), UnsupportedError, "nothing is unpickled"),
    "records": (npy_raw(npy_header("[('a', '<f4')]"), EIGHT), UnsupportedError, "holds records (a structured dtype)"),
    "records of objects": (npy_raw(npy_header("[('a', '|O')]"), EIGHT), UnsupportedError, "holds records (a structured dtype)"),
    "raw bytes": (npy_raw(npy_header("'<V2'"), EIGHT[:4]), UnsupportedError, "numpy writes bfloat16 so"),
    "long double": (npy_raw(npy_header("'<f16'"), bytes(32)), UnsupportedError, "'<f16' is a long double"),
    "float of 3 bytes": (npy_raw(npy_header("'<f3'"), EIGHT), FormatError, "unknown dtype '<f3': expected one like '<f4'"),
    "number without a size": (npy_raw(npy_header("'<f'"), EIGHT), FormatError, "unknown dtype '<f'"),
    "number without an order": (npy_raw(npy_header("'f4'"), EIGHT), FormatError, "unknown dtype 'f4'"),
    "order of no order": (npy_raw(npy_header("'|f4'"), EIGHT), FormatError, "unknown dtype '|f4'"),
    "number with a unit": (npy_raw(npy_header("'<f4[ns]'"), EIGHT), FormatError, "unknown dtype '<f4[ns]'"),
    "dtype by name": (npy_raw(npy_header("'float32'"), EIGHT), FormatError, "unknown dtype 'float32'"),
    "several dtypes": (npy_raw(npy_header("'<f4,<f4'"), bytes(16)), FormatError, "unknown dtype '<f4,<f4'"),
    "sub-array": (npy_raw(npy_header("'(2,)<f4'"), bytes(16)), FormatError, "unknown dtype '(2,)<f4'"),
    "strings": (npy(np.array(["a", "b"])), FormatError, "holds no tensors: an array of strings or dates is none"),
    "dates": (npy(np.array(["2020-01-01"], "M8[D]")), FormatError, "holds no tensors: an array of strings or dates is none"),
    "strings, data missing": (npy(np.array(["a", "b"]))[:-1], FormatError, "takes 8 bytes of data, 7 are there"),
}


@each("case", BROKEN)
def test_every_broken_rule_is_its_own_error(case: str) -> None:
    content, error, text = BROKEN[case]
    with pytest.raises(error) as caught:
        load_weights(content)
    assert text in str(caught.value)
    assert str(caught.value).startswith("load_weights: <bytes>: ")
    assert len(str(caught.value)) < 1000


@each("version", [(1, 0), (2, 0), (3, 0)])
@each("dtype", DTYPES)
def test_every_dtype_and_version(dtype: str, version: tuple[int, int]) -> None:
    array = (np.arange(6).reshape(2, 3) % 2).astype(dtype)
    loaded = load_weights(npy(array, version))["arr_0"]
    assert loaded.dtype == array.dtype.newbyteorder("=") and loaded.dtype.isnative
    np.testing.assert_array_equal(loaded, array, strict=array.dtype.isnative)


@each("shape", [(), (0,), (1,), (5,), (3, 0, 2), (2, 3), (2, 1, 3, 4)], ids=str)
@each("dtype", ["<f4", ">f8"])
@each("order", ["C", "F"])
@each("mmap", [True, False], ids=["mapped", "read"])
def test_every_rank_and_order(tmp_path: Path, shape: tuple[int, ...], dtype: str, order: str, mmap: bool) -> None:
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype, order=order)  # type: ignore[call-overload]
    path = tmp_path / "array.txt"  # the suffix says nothing
    path.write_bytes(npy(array))
    loaded = load_weights(path, mmap=mmap)["arr_0"]
    assert loaded.shape == shape and loaded.dtype.isnative
    assert loaded.flags.c_contiguous and loaded.flags.aligned and not loaded.flags.writeable
    np.testing.assert_array_equal(loaded, array)


def test_a_mapped_file_takes_no_memory_and_outlives_its_path(tmp_path: Path) -> None:
    path = tmp_path / "array.npy"
    path.write_bytes(npy(np.arange(1000.0)))
    loaded = load_weights(path, max_bytes=0)["arr_0"]
    path.unlink()
    np.testing.assert_array_equal(loaded, np.arange(1000.0))


def test_misaligned_data_is_copied(tmp_path: Path) -> None:
    header = npy_header(shape="(3,)")
    path = tmp_path / "array"
    for pad in range(4):
        path.write_bytes(npy_raw(header.replace("\n", " " * pad + "\n"), struct.pack("<3f", 1, 2, 3)))
        loaded = load_weights(path)["arr_0"]
        assert loaded.flags.aligned and loaded.tolist() == [1, 2, 3]


def test_headers_of_other_writers() -> None:
    data = struct.pack("<2f", 1, 2)
    for header in (
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
        '{"shape": (2,), "fortran_order": False, "descr": "<f4"}',
        "{'descr':'<f4','fortran_order':False,'shape':(2,),}   \n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2L,), }\n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }",
    ):
        assert load_weights(npy_raw(header, data))["arr_0"].ravel().tolist() == [1, 2]


def test_conversion_counts_against_max_bytes() -> None:
    content = npy(np.arange(1000, dtype=">f4"))
    assert load_weights(content, max_bytes=4000)["arr_0"][999] == 999
    with pytest.raises(LimitError, match="needs 4000 bytes of memory, 3999 of max_bytes=3999 are left"):
        load_weights(content, max_bytes=3999)
