"""The safetensors reader: every dtype, memory-mapping, and one test for each way in which a file may break the rules."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastlayers._codes import float8_values
from fastlayers.errors import Error, FormatError, LimitError, UnsupportedError
from fastlayers.formats import load_weights
from fastlayers.formats import safetensors as safetensors_reader

from ..each import each
from .build import Tensor, safetensors, safetensors_of, safetensors_raw
from .measure import allocations

GOLDENS = Path(__file__).parents[1] / "goldens"
PACKAGED = Path(__file__).parents[2] / "fastlayers" / "data" / "silero_vad_16k.safetensors"


def entry(dtype: Any = "F32", shape: Any = (2,), offsets: Any = (0, 8), **more: Any) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets, **more}


def file(tensors: dict[str, Any], data: bytes = bytes(8)) -> bytes:
    return safetensors_raw(json.dumps(tensors), data)


# what is wrong: (the file, the error, a part of its text)
BROKEN: dict[str, tuple[bytes, type[Error], str]] = {
    "header longer than the file": (safetensors_raw("{}", length=1000), FormatError, "1000 bytes, but only 2 follow: truncated"),
    "header over the limit": (safetensors_raw("{}", length=100_000_001), FormatError, "at most 100000000 are allowed"),
    "header of no bytes": (safetensors_raw("", b"{", length=0), FormatError, "expected '{'"),
    "header not UTF-8": (safetensors_raw(b'{"\xff": 1}'), FormatError, "not UTF-8: byte 2 is 0xff"),
    "header not JSON": (safetensors_raw('{"a": }'), FormatError, "not valid JSON"),
    "header cut": (safetensors_raw('{"a": {"dtype"'), FormatError, "not valid JSON"),
    "two values": (safetensors_raw("{} {}"), FormatError, "not valid JSON: Extra data"),
    "bytes after the header": (safetensors_raw("{}\0\0"), FormatError, "not valid JSON: Extra data"),
    "control character": (safetensors_raw('{"a\n": 1}'), FormatError, "not valid JSON: Invalid control character"),
    "nested without end": (safetensors_raw('{"a":' * 200_000), FormatError, "nested too deeply"),
    "nested in lists": (safetensors_raw('{"a":' + "[" * 200_000), FormatError, "nested too deeply"),
    "name twice": (
        safetensors_raw(
            '{"a": {"dtype":"U8","shape":[1],"data_offsets":[0,1]}, "a": {"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"x"
        ),
        FormatError,
        "the key 'a' more than once",
    ),
    "name twice, once escaped": (safetensors_raw(r'{"a": 1, "\u0061": 1}'), FormatError, "the key 'a' more than once"),
    "dtype twice": (
        safetensors_raw('{"a": {"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}}', b"x"),
        FormatError,
        "the key 'dtype' more than once",
    ),
    "metadata twice": (safetensors_raw('{"__metadata__": {"k": "1", "k": "2"}}'), FormatError, "the key 'k' more than once"),
    "metadata no object": (safetensors_raw('{"__metadata__": ["k"]}'), FormatError, "__metadata__ must map strings to strings"),
    "metadata of numbers": (
        safetensors_raw('{"__metadata__": {"k": 1}}'),
        FormatError,
        "__metadata__ must map strings to strings",
    ),
    "metadata nested": (safetensors_raw('{"__metadata__": {"k": {}}}'), FormatError, "__metadata__ must map strings to strings"),
    "tensor no object": (file({"a": 3}, b""), FormatError, "tensor 'a': expected an object with exactly dtype"),
    "field missing": (file({"a": {"dtype": "F32", "shape": [2]}}), FormatError, "tensor 'a': expected an object with exactly"),
    "field too many": (file({"a": entry(strides=[1])}), FormatError, "tensor 'a': expected an object with exactly dtype"),
    "dtype a number": (file({"a": entry(dtype=32)}), FormatError, "tensor 'a': dtype must be a string, got 32"),
    "dtype unknown": (file({"a": entry(dtype="F31")}), FormatError, "tensor 'a': unknown dtype 'F31': expected one of BOOL, U8"),
    "dtype in small letters": (file({"a": entry(dtype="f32")}), FormatError, "unknown dtype 'f32'"),
    "shape no list": (file({"a": entry(shape=2)}), FormatError, "tensor 'a': shape must be a list of integers from 0 up, got 2"),
    "shape of strings": (file({"a": entry(shape=["2"])}), FormatError, "shape must be a list of integers"),
    "shape of bools": (file({"a": entry(shape=[True, 2])}), FormatError, "shape must be a list of integers"),
    "shape of null": (file({"a": entry(shape=[None])}), FormatError, "shape must be a list of integers"),
    "shape negative": (file({"a": entry(shape=[-2])}), FormatError, "the number '-2', expected an integer"),
    "shape twice negative": (file({"a": entry(shape=[-2, -1])}), FormatError, "the number '-2', expected an integer"),
    "shape minus zero": (
        safetensors_raw('{"a": {"dtype":"F32","shape":[-0],"data_offsets":[0,0]}}'),
        FormatError,
        "the number '-0'",
    ),
    "shape fractional": (file({"a": entry(shape=[2.0])}), FormatError, "the number '2.0', expected an integer"),
    "shape with exponent": (
        safetensors_raw('{"a": {"dtype":"F32","shape":[2e0],"data_offsets":[0,8]}}', bytes(8)),
        FormatError,
        "'2e0'",
    ),
    "shape NaN": (file({"a": entry(shape=[float("nan")])}), FormatError, "the number 'NaN', expected an integer"),
    "shape infinite": (file({"a": entry(shape=[float("inf")])}), FormatError, "the number 'Infinity', expected an integer"),
    "number of 5000 digits": (safetensors_raw(f'{{"a": {"9" * 5000}}}'), FormatError, "the number '9999"),
    "product over 64 bits": (file({"a": entry(shape=[2**32, 2**32, 2])}), FormatError, "is beyond any memory"),
    "product wraps to the size": (file({"a": entry(shape=[2**62 + 2])}), FormatError, "is beyond any memory"),
    "empty, but beyond numpy": (
        file({"a": entry(shape=[0, 2**40, 2**40], offsets=[0, 0])}, b""),
        FormatError,
        "beyond any memory",
    ),
    "offsets no list": (file({"a": entry(offsets=8)}), FormatError, "data_offsets must be [begin, end]"),
    "offsets of one": (file({"a": entry(offsets=[8])}), FormatError, "data_offsets must be [begin, end]"),
    "offsets of three": (file({"a": entry(offsets=[0, 4, 8])}), FormatError, "data_offsets must be [begin, end]"),
    "offsets of bools": (
        file({"a": entry(dtype="U8", shape=[1], offsets=[False, True])}, b"x"),
        FormatError,
        "data_offsets must be",
    ),
    "offsets backwards": (file({"a": entry(offsets=[8, 0])}), FormatError, "data_offsets must be [begin, end]"),
    "size smaller than the shape": (
        file({"a": entry(shape=[3])}),
        FormatError,
        "tensor 'a': data_offsets [0, 8] span 8 bytes, F32 of shape [3] takes 12",
    ),
    "size larger than the shape": (file({"a": entry(shape=[1])}), FormatError, "span 8 bytes, F32 of shape [1] takes 4"),
    "data missing": (
        file({"a": entry()}, bytes(7)),
        FormatError,
        "tensor 'a': data_offsets [0, 8] end beyond the file's 7 bytes",
    ),
    "data left over": (file({"a": entry()}, bytes(9)), FormatError, "1 bytes follow the last tensor, expected none"),
    "data without tensors": (file({}, bytes(3)), FormatError, "3 bytes follow the last tensor"),
    "hole at the start": (
        file({"a": entry(offsets=[8, 16])}, bytes(16)),
        FormatError,
        "leave a hole: expected them to begin at 0",
    ),
    "hole between": (
        file({"a": entry(), "b": entry(offsets=[9, 17])}, bytes(17)),
        FormatError,
        "leave a hole: expected them to begin at 8",
    ),
    "overlap": (
        file({"a": entry(), "b": entry(offsets=[4, 12])}, bytes(12)),
        FormatError,
        "tensor 'b': data_offsets [4, 12] overlap",
    ),
    "the same bytes twice": (file({"a": entry(), "b": entry()}), FormatError, "tensor 'b': data_offsets [0, 8] overlap"),
    "bool of 2": (safetensors({"a": ("BOOL", [2], b"\1\2")}), FormatError, "tensor 'a': holds bool elements other than 0 and 1"),
    "lone surrogate": (safetensors_raw(r'{"\ud800": 1}'), FormatError, "lone surrogate"),
    "no tensors": (safetensors_raw("{}"), FormatError, "holds no tensors"),
    "only metadata": (safetensors_raw('{"__metadata__": {"k": "v"}}'), FormatError, "holds no tensors"),
    "33 dimensions": (
        file({"a": entry(dtype="U8", shape=[1] * 33, offsets=[0, 1])}, b"x"),
        UnsupportedError,
        "33 dimensions, at most 32",
    ),
    "less than a byte": (
        file({n: entry(dtype="F4", shape=[16]) for n in "abcdefg"}),
        UnsupportedError,
        "less than a byte (F4) are not supported: tensors 'a', 'b', 'c', 'd', 'e', ... (7 in all)",
    ),
    "six bits": (file({"a": entry(dtype="F6_E2M3"), "b": entry(dtype="F6_E3M2")}), UnsupportedError, "(F6_E2M3, F6_E3M2)"),
}


@each("case", BROKEN)
def test_every_broken_rule_is_its_own_error(case: str) -> None:
    content, error, text = BROKEN[case]
    with pytest.raises(error) as caught:
        load_weights(content)
    assert text in str(caught.value)
    assert str(caught.value).startswith("load_weights: <bytes>: ")
    assert len(str(caught.value)) < 1000


def test_every_dtype_of_the_real_writer() -> None:
    weights = load_weights(GOLDENS / "all_dtypes.safetensors")
    with np.load(GOLDENS / "all_dtypes.npz", allow_pickle=False) as expected:
        assert set(weights) == set(expected.files)
        for name, array in weights.items():
            assert array.dtype == expected[name].dtype, name
            np.testing.assert_array_equal(array, expected[name], err_msg=name, strict=True)
            if array.dtype.kind == "f":  # equality takes -0 for 0
                np.testing.assert_array_equal(np.signbit(array), np.signbit(expected[name]), err_msg=name)


def test_bfloat16_widens_every_code_exactly() -> None:
    codes = np.arange(1 << 16, dtype="<u2")
    widened = load_weights(safetensors({"w": ("BF16", [256, 256], codes.tobytes())}))["w"]
    upper = b"".join(bytes((0, 0, code & 0xFF, code >> 8)) for code in range(1 << 16))
    assert widened.dtype == np.float32 and widened.shape == (256, 256)
    assert widened.astype("<f4").tobytes() == upper  # bytes, not values: the payloads of NaN as well


def float8_by_its_definition(code: int, exponent_bits: int, bias: int) -> float:
    """(-1)^s * 2^(e - bias) * (1 + m / 2^M), or without the 1 and with e = 1 where e is 0: all finite in float64."""
    mantissa_bits = 7 - exponent_bits
    sign, e, m = (
        -1.0 if code >> 7 else 1.0,
        (code >> mantissa_bits) & ((1 << exponent_bits) - 1),
        code & ((1 << mantissa_bits) - 1),
    )
    fraction = m / (1 << mantissa_bits)
    return float(sign * (2.0 ** (e - bias) * (1 + fraction) if e else 2.0 ** (1 - bias) * fraction))


@pytest.mark.parametrize(
    ("dtype", "exponent_bits", "bias", "not_a_number", "infinite", "largest"),
    [
        ("F8_E4M3", 4, 7, {0x7F, 0xFF}, set(), 448.0),
        ("F8_E5M2", 5, 15, {0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF}, {0x7C, 0xFC}, 57344.0),
        ("F8_E4M3FNUZ", 4, 8, {0x80}, set(), 240.0),
        ("F8_E5M2FNUZ", 5, 16, {0x80}, set(), 57344.0),
    ],
)
def test_float8_widens_every_code_exactly(
    dtype: str, exponent_bits: int, bias: int, not_a_number: set[int], infinite: set[int], largest: float
) -> None:
    widened = load_weights(safetensors({"w": (dtype, [256], bytes(range(256)))}))["w"]
    assert widened.dtype == np.float32
    for code in range(256):
        value = float(widened[code])
        if code in not_a_number:
            assert np.isnan(value), code
        elif code in infinite:
            assert value == (-np.inf if code >> 7 else np.inf), code
        else:
            expected = float8_by_its_definition(code, exponent_bits, bias)
            assert struct.pack("<d", value) == struct.pack("<d", expected), code
    assert np.nanmax(widened[np.isfinite(widened)]) == largest


def test_float8_scale_is_a_power_of_two() -> None:
    widened = load_weights(safetensors({"w": ("F8_E8M0", [256], bytes(range(256)))}))["w"]
    assert widened[:255].tolist() == [2.0 ** (code - 127) for code in range(255)]
    assert np.isnan(widened[255])
    assert not float8_values(8, 127, "scale").flags.writeable


def test_float8_longer_than_a_block() -> None:
    codes = np.arange(200_003, dtype=np.uint32).astype(np.uint8)
    widened = load_weights(safetensors({"w": ("F8_E5M2", [200_003], codes.tobytes())}))["w"]
    np.testing.assert_array_equal(widened, float8_values(5, 15, "ieee")[codes])


def test_order_names_scalars_and_empty_tensors() -> None:
    tensors: dict[str, Tensor] = {
        "z": ("F32", [], struct.pack("<f", 1.5)),
        "empty": ("I64", [3, 0], b""),
        "layer/ünï.0": ("U8", [2], b"\1\2"),
        "": ("F16", [1, 1], b"\0\x3c"),
        "also empty": ("BF16", [0], b""),
    }
    weights = load_weights(safetensors(tensors, {"__any__": "text", "": ""}))
    assert list(weights) == list(tensors)
    assert weights["z"].shape == () and weights["z"] == 1.5
    assert weights["empty"].shape == (3, 0) and weights["empty"].dtype == np.int64
    assert weights["also empty"].shape == (0,) and weights["also empty"].dtype == np.float32
    assert weights["layer/ünï.0"].tolist() == [1, 2]
    assert weights[""].dtype == np.float16 and weights[""].tolist() == [[1.0]]


def test_header_in_another_order_than_the_data() -> None:
    header = {"b": entry(offsets=[8, 16]), "none": entry(shape=[0], offsets=[8, 8]), "a": entry(offsets=[0, 8])}
    weights = load_weights(file(header, struct.pack("<4f", 1, 2, 3, 4)))
    assert list(weights) == ["b", "none", "a"]
    assert weights["a"].tolist() == [1, 2] and weights["b"].tolist() == [3, 4]


@pytest.mark.parametrize("padding", [" " * 64, "\n\t \r"])
def test_header_padding(padding: str) -> None:
    text = json.dumps({"a": entry()}) + padding
    assert load_weights(safetensors_raw(text, struct.pack("<2f", 5, 6)))["a"].tolist() == [5, 6]


@pytest.mark.parametrize("mmap", [True, False], ids=["mapped", "read"])
@pytest.mark.parametrize("offset", range(8))
def test_data_at_any_offset_gives_aligned_arrays(tmp_path: Path, mmap: bool, offset: int) -> None:
    tensors: dict[str, Tensor] = {
        "one": ("U8", [1], b"\7"),
        "f8": ("F64", [3], struct.pack("<3d", 1, 2, 3)),
        "f4": ("F32", [2], struct.pack("<2f", 4, 5)),
        "c8": ("C64", [1], struct.pack("<2f", 6, 7)),
        "bf": ("BF16", [2], b"\x80\x3f\x00\x40"),
    }
    content = safetensors(tensors, {"pad": "x" * offset}, align=1)
    path = tmp_path / "model"
    path.write_bytes(content)
    weights = load_weights(path, mmap=mmap)
    assert all(a.flags.aligned and a.flags.c_contiguous and not a.flags.writeable for a in weights.values())
    assert weights["f8"].tolist() == [1, 2, 3] and weights["f4"].tolist() == [4, 5]
    assert weights["c8"].tolist() == [6 + 7j] and weights["bf"].tolist() == [1, 2]


def test_mapped_arrays_take_no_memory_and_outlive_everything(tmp_path: Path) -> None:
    big = np.arange(1 << 20, dtype=np.float32)
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors_of({"big": big, "small": big[:3]}))
    load_weights(path)  # imports
    with allocations() as measured:
        weights = load_weights(path, max_bytes=100_000)
    assert 0 < measured.peak < 100_000
    array = weights.pop("big")
    del weights
    path.unlink()
    np.testing.assert_array_equal(array, big)
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        array.flags.writeable = True


def test_unmapped_arrays_do_not_see_the_file_change(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors_of({"a": np.ones(4, np.float32)}))
    weights = load_weights(path, mmap=False)
    with path.open("r+b") as opened:
        opened.truncate(3)
    assert weights["a"].tolist() == [1, 1, 1, 1]
    with pytest.raises(ValueError, match="WRITEABLE"):
        weights["a"].flags.writeable = True


def test_widening_counts_against_max_bytes() -> None:
    content = safetensors({"w": ("BF16", [100_000], bytes(200_000))})
    assert load_weights(content, max_bytes=400_000)["w"].size == 100_000
    with pytest.raises(LimitError, match=r"tensor 'w': needs 400000 bytes of memory, 399999 of max_bytes=399999 are left"):
        load_weights(content, max_bytes=399_999)


@pytest.mark.parametrize("unit", ["{},", "[],", '"aa",', "1,", '{"a":1},', '{"":{}},', "\U0001f600"])
def test_a_hostile_header_costs_no_more_than_it_is_charged(unit: str) -> None:
    body = f'{{"a":"{unit * 100_000}"}}' if unit == "\U0001f600" else f'{{"a":[{unit * 100_000}0]}}'
    content = safetensors_raw(body)
    with allocations() as measured, pytest.raises(FormatError):
        load_weights(content)
    assert 0 < measured.peak < safetensors_reader._PARSE_FACTOR * len(content)
    with pytest.raises(LimitError, match="the header of"):
        load_weights(content, max_bytes=safetensors_reader._PARSE_FACTOR * (len(content) - 8) - 1)


def test_the_packaged_network() -> None:
    shapes = {
        "stft_conv.weight": (258, 1, 256),
        "conv1.weight": (128, 129, 3),
        "conv1.bias": (128,),
        "conv2.weight": (64, 128, 3),
        "conv2.bias": (64,),
        "conv3.weight": (64, 64, 3),
        "conv3.bias": (64,),
        "conv4.weight": (128, 64, 3),
        "conv4.bias": (128,),
        "lstm_cell.weight_ih": (512, 128),
        "lstm_cell.weight_hh": (512, 128),
        "lstm_cell.bias_ih": (512,),
        "lstm_cell.bias_hh": (512,),
        "final_conv.weight": (1, 128, 1),
        "final_conv.bias": (1,),
    }
    weights = load_weights(PACKAGED, max_bytes=500_000)
    assert {name: array.shape for name, array in weights.items() if name in shapes} == shapes
    assert all(array.size <= 4 for name, array in weights.items() if name not in shapes), "small constants of the graph"
    assert all(weights[name].dtype == np.float32 and np.isfinite(weights[name]).all() and weights[name].any() for name in shapes)
