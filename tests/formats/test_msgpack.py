"""Flax's MessagePack: its own file, what is no array, and files that are."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from fastlayers.errors import FormatError, LimitError, UnsupportedError
from fastlayers.formats import load_weights

GOLDEN = Path(__file__).parent.parent / "goldens" / "flax.msgpack"
NAMES = (
    "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
    "complex64", "complex128",
)  # fmt: skip


def text(value: str) -> bytes:
    return bytes([0xA0 | len(value)]) + value.encode()


def array(shape: bytes, dtype: str, data: bytes, kind: int = 1) -> bytes:
    inner = b"\x93" + shape + text(dtype) + b"\xc4" + bytes([len(data)]) + data
    return b"\xc7" + bytes([len(inner), kind]) + inner


def mapped(**values: bytes) -> bytes:
    return bytes([0x80 | len(values)]) + b"".join(text(key) + value for key, value in values.items())


TWO = array(b"\x91\x02", "float32", struct.pack("<2f", 1, 2))
CHUNKED = {"__msgpack_chunked_array__": b"\xc3", "shape": mapped(**{"0": b"\x02", "1": b"\x02"})}


def test_flaxs_own_file() -> None:
    found = load_weights(GOLDEN)
    numbers = np.arange(6).reshape(2, 3) - 2
    assert list(found)[:2] == ["params.Dense_0.kernel", "params.Dense_0.bias"]
    np.testing.assert_array_equal(found["params.Dense_0.kernel"], numbers.astype(np.float32) / 4)
    np.testing.assert_array_equal(found["params.Dense_0.bias"], np.array([1.5, -2, 3], np.float32))
    np.testing.assert_array_equal(found["params.eight"], np.array([0.5, -448], np.float32))
    np.testing.assert_array_equal(found["params.long"], np.arange(40, dtype=np.float32).reshape(5, 8))
    for name in NAMES:
        kept = found[f"params.dtypes.{name}"]
        assert kept.dtype == name and not kept.flags.writeable and kept.flags.aligned
        np.testing.assert_array_equal(kept, (numbers % 2 if name == "bool" else abs(numbers)).astype(name))
    assert found["params.empty"].shape == (0, 3)
    assert found["params.scalar"] == np.float32(2.5) and found["list.0"] == 1
    assert {"step", "rate", "name", "nothing", "yes", "complex"}.isdisjoint(found)
    assert load_weights(GOLDEN, format="msgpack").keys() == found.keys()


def test_chunks() -> None:
    content = mapped(w=mapped(**CHUNKED, chunks=mapped(**{"0": TWO, "1": TWO})))
    np.testing.assert_array_equal(load_weights(content)["w"], [[1, 2], [1, 2]])


LIES = {
    "a rest": (mapped(a=TWO) + b"\0", FormatError, "1 bytes follow"),
    "an array of another size": (mapped(a=array(b"\x91\x03", "float32", bytes(8))), FormatError, "has 8 bytes"),
    "a shape beyond all": (
        mapped(a=array(b"\x92\xcf" + b"\xff" * 8 + b"\x02", "float32", bytes(8))),
        FormatError,
        "beyond any memory",
    ),
    "a size below 0": (mapped(a=array(b"\x91\xff", "float32", b"")), FormatError, "sizes from 0 up"),
    "a size that is none": (mapped(a=array(b"\x91\xc3", "float32", bytes(4))), FormatError, "sizes from 0 up"),
    "too many axes": (mapped(a=array(b"\xdc\x00\x21" + b"\x01" * 33, "float32", bytes(4))), FormatError, "at most 32"),
    "text": (mapped(a=array(b"\x91\x01", "str32", bytes(4))), UnsupportedError, "dtype 'str32'"),
    "no array inside": (mapped(a=b"\xd4\x01\x05"), FormatError, "expected a shape"),
    "an unknown extension": (mapped(a=b"\xd4\x09\x05"), UnsupportedError, "extension 9"),
    "a key twice": (b"\x82" + (text("a") + TWO) * 2, FormatError, "more than once"),
    "names that become one": (mapped(**{"a.b": TWO, "a": mapped(b=TWO)}), FormatError, "two arrays have the name 'a.b'"),
    "a key that is no text": (b"\x82" + text("a") + TWO + b"\xc0" + TWO, FormatError, "neither text"),
    "a byte that begins nothing": (mapped(a=b"\xc1"), FormatError, "0xc1 does not start a value"),
    "more values than bytes": (b"\xdf\xff\xff\xff\xff" + text("a") + TWO, FormatError, "are announced"),
    "more bytes than there are": (mapped(a=b"\xc9\xff\xff\xff\xff\x01"), FormatError, "is announced"),
    "maps without end": (b"\x81\xa1a" * 100 + b"\x80", FormatError, "more than 64 deep"),
    "no arrays": (mapped(a=b"\x05"), FormatError, "holds no tensors"),
    "chunks that are too few": (mapped(w=mapped(**CHUNKED, chunks=mapped(**{"0": TWO}))), FormatError, "has 4"),
    "chunks without a number": (mapped(w=mapped(**CHUNKED, chunks=mapped(**{"1": TWO}))), FormatError, "not numbered"),
    "chunks that are none": (mapped(w=mapped(**CHUNKED, chunks=mapped(**{"0": b"\x01"}))), FormatError, "no arrays"),
    "no UTF-8": (b"\x81\xa2a\xff" + TWO, FormatError, "not UTF-8"),
}


@pytest.mark.parametrize("lie", LIES)
def test_lies(lie: str) -> None:
    content, kind, match = LIES[lie]
    with pytest.raises(kind, match=match):
        load_weights(content)


def test_values_are_paid_for() -> None:
    content = b"\x82" + text("w") + TWO + text("a") + b"\xdd" + struct.pack(">I", 100_000) + b"\0" * 100_000
    with pytest.raises(LimitError, match="max_bytes"):
        load_weights(content, max_bytes=1 << 20)


SMALL = mapped(params=mapped(w=TWO, b=array(b"\x91\x01", "bfloat16", b"\x80\x3f")), n=b"\xcd\x01\x00")
