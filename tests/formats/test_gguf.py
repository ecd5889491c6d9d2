"""GGUF: blocks of every type to the bit, metadata, and files that lie."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers._ggml import BLOCKS as LAYOUTS
from fastlayers._ggml import Few
from fastlayers.errors import ArgumentError, Error, FormatError, LimitError, UnsupportedError
from fastlayers.formats.gguf import metadata
from fastlayers.kernels.reference.nbits import nbits_pack

from ..each import each
from .gguf_build import BLOCKS, SMALL, blocks, gguf, text
from .measure import allocations

GOLDEN = Path(__file__).parent.parent / "goldens" / "gguf.npz"
ONE = {"a": (0, (2,), bytes(8))}


def loaded(kind: str, raw: np.ndarray, rows: int = 1) -> np.ndarray:
    number, terms, _ = BLOCKS[kind]
    return fl.load_weights(gguf({"w": (number, (rows, terms * len(raw) // rows), raw.tobytes())}))["w"]


@pytest.mark.parametrize("kind", BLOCKS)
def test_blocks_are_what_gguf_makes_of_them(kind: str) -> None:
    with np.load(GOLDEN) as file:
        raw, want = file[f"{kind}/raw"], file[f"{kind}/bits"].view(np.float32)
    found = loaded(kind, raw)
    assert found.dtype == np.float32 and not found.flags.writeable and found.flags.c_contiguous
    np.testing.assert_array_equal(found[0], want)
    real = ~np.isnan(want)
    np.testing.assert_array_equal(found[0][real].view(np.uint32), want[real].view(np.uint32))
    np.testing.assert_array_equal(loaded(kind, raw, 5), found.reshape(5, -1))


@pytest.mark.parametrize("kind", BLOCKS)
def test_pieces_join(kind: str) -> None:
    raw = blocks(kind, (1 << 17) // BLOCKS[kind][1] + 3)
    whole = loaded(kind, raw)
    for at in (0, len(raw) // 2, len(raw) - 1):
        part = loaded(kind, raw[at : at + 1])
        np.testing.assert_array_equal(whole[0, at * part.size : (at + 1) * part.size], part[0])


@pytest.mark.gguf
@pytest.mark.parametrize("kind", BLOCKS)
def test_beside_gguf(kind: str) -> None:
    package: Any = pytest.importorskip("gguf")
    for wild in (False, True):
        raw = blocks(kind, 400, 7, wild)
        with np.errstate(all="ignore"):
            want = package.quants.dequantize(raw.reshape(4, -1), package.GGMLQuantizationType(BLOCKS[kind][0]))
        np.testing.assert_array_equal(loaded(kind, raw, 4), want)


@pytest.mark.gguf
def test_a_file_of_ggufs_writer(tmp_path: Path) -> None:
    package: Any = pytest.importorskip("gguf")
    path, rng = tmp_path / "m.gguf", np.random.default_rng(0)
    writer = package.GGUFWriter(path, "llama")
    writer.add_block_count(3)
    writer.add_token_list(["a", "é", "<0x0A>"])
    writer.add_token_scores([0.0, -1.5, 2.0])
    writer.add_custom_alignment(64)
    arrays = {f"w{i}": rng.normal(size=(3, 2, 5)[: 1 + i]).astype(t) for i, t in enumerate(("f4", "f2", "f4"))}
    for name, array in arrays.items():
        writer.add_tensor(name, array)
    q = package.quants.quantize(rng.normal(size=(6, 64)).astype("f4"), package.GGMLQuantizationType.Q5_1)
    writer.add_tensor("q", q, raw_dtype=package.GGMLQuantizationType.Q5_1)
    writer.write_header_to_file(), writer.write_kv_data_to_file(), writer.write_tensors_to_file(), writer.close()
    found = fl.load_weights(path)
    assert list(found) == [*arrays, "q"]
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)
    np.testing.assert_array_equal(found["q"], package.quants.dequantize(q, package.GGMLQuantizationType.Q5_1))
    told = metadata(path)
    assert told["llama.block_count"] == 3 and told["tokenizer.ggml.tokens"] == ["a", "é", "<0x0A>"]
    np.testing.assert_array_equal(told["tokenizer.ggml.scores"], np.array([0, -1.5, 2], np.float32))


def test_types_without_blocks() -> None:
    tensors = {
        "f": (0, (2, 1), struct.pack("<2f", 1, -2)),
        "h": (1, (2,), np.array([1, -2], "<f2").tobytes()),
        "b": (30, (1, 2), struct.pack("<2H", 0x3F80, 0xC000)),
        "d": (28, (), struct.pack("<d", 0.5)),
        **{name: (24 + i, (3,), np.array([1, -2, 3], f"<i{1 << i}").tobytes()) for i, name in enumerate("ijkl")},
    }
    for version in (2, 3):
        found = fl.load_weights(gguf(tensors, version=version, alignment=8), format="gguf")
        assert {name: array.dtype.str[1:] for name, array in found.items()} == {
            "f": "f4", "h": "f2", "b": "f4", "d": "f8", "i": "i1", "j": "i2", "k": "i4", "l": "i8",
        }  # fmt: skip
        for name in "fhb":
            np.testing.assert_array_equal(found[name].ravel(), [1, -2])
        for name in "ijkl":
            np.testing.assert_array_equal(found[name], [1, -2, 3])
    assert {array.shape for array in fl.load_weights(gguf({"e": (2, (0, 32), b""), "f": (0, (0, 3), b"")})).values()} == {
        (0, 32), (0, 3),
    }  # fmt: skip


def test_mapped_in_place(tmp_path: Path) -> None:
    path = tmp_path / "m"
    path.write_bytes(gguf({"a": (0, (1 << 18,), bytes(1 << 20)), "b": (1, (1 << 18,), bytes(1 << 19))}))
    assert fl.load_weights(path, max_bytes=1 << 16)["a"].nbytes == 1 << 20


def test_metadata_of_every_type() -> None:
    numbers: dict[str, Any] = {
        "u8": (0, b"\xff"), "i8": (1, b"\xff"), "u16": (2, b"\xff\xff"), "i16": (3, b"\xfe\xff"), "u32": (4, b"\xff" * 4),
        "i32": (5, b"\xff" * 4), "f32": (6, struct.pack("<f", 0.5)), "yes": (7, b"\1"), "u64": (10, b"\xff" * 8),
        "i64": (11, b"\xff" * 8), "f64": (12, struct.pack("<d", 0.1)), "s": "é", "none": (9, struct.pack("<IQ", 5, 0)),
        "no texts": (9, struct.pack("<IQ", 8, 0)), "bools": [True, False], "ints": (9, struct.pack("<IQ2q", 11, 2, -1, 7)),
        "texts": ["a", "", "bc"],
    }  # fmt: skip
    told = metadata(gguf({}, numbers))
    assert list(told) == list(numbers)
    assert [told[name] for name in list(numbers)[:12]] == [
        255, -1, 65535, -2, (1 << 32) - 1, -1, 0.5, True, (1 << 64) - 1, -1, 0.1, "é",
    ]  # fmt: skip
    assert told["none"].shape == (0,) and told["no texts"] == [] and told["texts"] == ["a", "", "bc"]
    np.testing.assert_array_equal(told["bools"], [True, False])
    np.testing.assert_array_equal(told["ints"], np.array([-1, 7]))
    assert told["ints"].dtype == np.int64 and not told["ints"].flags.writeable
    assert metadata(gguf({"a": (10, (256,), bytes(84))}, {"k": 1})) == {"k": 1}  # whatever the tensors are


def test_types_that_are_not_read_are_named() -> None:
    content = gguf({"a": (10, (256,), bytes(84)), "b": (10, (256,), bytes(84)), "c": (39, (32,), bytes(17))})
    with pytest.raises(UnsupportedError, match=r"not read: MXFP4: 1 time, Q2_K: 2 times\. Read are F32, F16, .*Q4_K, Q5_K, Q6_K"):
        fl.load_weights(content)


def with_value(raw: bytes, kind: int = 9) -> bytes:
    return gguf(ONE, {"k": (kind, raw)})


# What is wrong: the file, the error, and words of it.
LIES: dict[str, tuple[bytes, type[Error] | None, str]] = {
    "good": (SMALL, None, ""),
    "without the last padding": (gguf(ONE)[:-24], None, ""),
    "version 1": (gguf(ONE, version=1), UnsupportedError, "is version 1 of GGUF: versions 2 and 3 are read"),
    "version 4": (gguf(ONE, version=4), UnsupportedError, "is version 4"),
    "version 0": (gguf(ONE, version=0), UnsupportedError, "is version 0"),
    "big-endian": (gguf(ONE, version=3 << 24), UnsupportedError, "is big-endian"),
    "nothing else": (b"GGUF", FormatError, "ends within a value at byte 4"),
    "a count cut": (b"GGUF\3\0\0\0" + bytes(12), FormatError, "ends within a value at byte 16"),
    "no tensors": (gguf({}), FormatError, "holds no tensors"),
    "2**64 - 1 tensors": (gguf(ONE, count=(1 << 64) - 1), FormatError, "18446744073709551615 tensors are announced"),
    "2**64 - 1 pairs": (gguf(ONE, pairs=(1 << 64) - 1), FormatError, "18446744073709551615 pairs of metadata are announced"),
    "a tensor too many": (gguf(ONE, count=2), FormatError, "truncated?"),
    "a tensor too few": (gguf({**ONE, "b": ONE["a"]}, count=1), FormatError, "bytes follow the last tensor"),
    "100,000 pairs": (gguf(ONE, pairs=100_000, ends=bytes(1_300_000)), LimitError, "at most 65536 are read"),
    "100,000 tensors": (gguf(ONE, count=100_000, ends=bytes(2_400_000)), LimitError, "at most 65536 are read"),
    "a key twice": (gguf(ONE, {"k": 1, "q": 1}).replace(text("q"), text("k")), FormatError, "the key 'k' more than once"),
    "a key of 2**64 - 1 bytes": (gguf(ONE, {"k": 1}).replace(text("k"), b"\xff" * 8 + b"k"), FormatError, "a key of 1844"),
    "a key of 65536 bytes": (gguf(ONE, {"k" * 65536: 1}), FormatError, "a key is longer than 65535 bytes"),
    "a key that is no UTF-8": (gguf(ONE, {"k": 1}).replace(text("k"), text(b"\xff")), FormatError, "is not UTF-8"),
    "a value of type 13": (with_value(bytes(8), 13), FormatError, "'k' has type 13"),
    "a value of type 2**32 - 1": (with_value(bytes(8), (1 << 32) - 1), FormatError, "'k' has type 4294967295"),
    "a bool of 2": (with_value(b"\2", 7), FormatError, "'k' is a bool of 2"),
    "a text of 4 EiB": (with_value(struct.pack("<Q", 1 << 62), 8), FormatError, "of 4611686018427387904 bytes is announced"),
    "a text that is no UTF-8": (with_value(text(b"\xc0\x80"), 8), FormatError, "is not UTF-8"),
    "a list of type 13": (with_value(struct.pack("<IQ", 13, 0)), FormatError, "'k' is a list of type 13"),
    "a list of lists": (with_value(struct.pack("<IQIQ", 9, 1, 9, 1)), UnsupportedError, "'k' is a list of lists"),
    "100,000 lists in lists": (with_value(struct.pack("<IQ", 9, 1) * 100_000), UnsupportedError, "'k' is a list of lists"),
    "a list of 2**61 numbers": (with_value(struct.pack("<IQ", 10, 1 << 61)), FormatError, "a list of 2305843009213693952 values"),
    "a list of 2**61 texts": (with_value(struct.pack("<IQ", 8, 1 << 61)), FormatError, "a list of 2305843009213693952 values"),
    "a list of texts that end nowhere": (with_value(struct.pack("<IQQQ", 8, 3, 0, 1 << 63)), FormatError, "end beyond the file"),
    "a list of texts that is cut": (with_value(struct.pack("<IQQQ", 8, 2, 1, 200)), FormatError, "end beyond the file"),
    "5 million texts": (with_value(struct.pack("<IQ", 8, 5_000_000) + bytes(40_000_000)), LimitError, "at most 4194304 are"),
    "an alignment of 0": (gguf(ONE, {"general.alignment": 0}), FormatError, "general.alignment is 0, expected a power of 2"),
    "an alignment of 24": (gguf(ONE, {"general.alignment": 24}), FormatError, "general.alignment is 24"),
    "an alignment that is text": (gguf(ONE, {"general.alignment": "32"}), FormatError, "general.alignment is '32'"),
    "an alignment that is true": (gguf(ONE, {"general.alignment": True}), FormatError, "general.alignment is True"),
    "an alignment that is a list": (gguf(ONE, {"general.alignment": [32]}), FormatError, "general.alignment is "),
    "an alignment of 2**31": (gguf(ONE, {"general.alignment": 1 << 31}), FormatError, "truncated?"),
    "a name twice": (gguf({"a": ONE["a"], "b": ONE["a"]}).replace(text("b"), text("a")), FormatError, "the name 'a'"),
    "a name of 70,000 bytes": (gguf({"n" * 70_000: ONE["a"]}), FormatError, "a tensor's name is longer than 65535 bytes"),
    "5 dimensions": (gguf({"a": (0, (1,) * 5, bytes(4))}), FormatError, "has 5 dimensions, at most 4"),
    "2**32 - 1 dimensions": (gguf({"a": (0, (), bytes(4))}).replace(text("a") + bytes(4), text("a") + b"\xff" * 4),
                             FormatError, "has 4294967295 dimensions"),
    "a size of 2**64 - 1": (gguf({"a": (0, ((1 << 64) - 1,), b"")}), FormatError, "beyond any memory"),
    "0 times 2**64 - 1 elements": (gguf({"a": (0, (0, (1 << 64) - 1, 7), b"")}), FormatError, "beyond any memory"),
    "sizes whose product overflows": (gguf({"a": (2, (1 << 32, 1 << 32), b"")}), FormatError, "beyond any memory"),
    "a type that is no more": (gguf({"a": (4, (32,), bytes(18))}), FormatError, "tensor 'a' has type 4, which is not known"),
    "a type of 2**32 - 1": (gguf({"a": ((1 << 32) - 1, (32,), bytes(18))}), FormatError, "has type 4294967295"),
    "rows of half a block": (gguf({"a": (2, (2, 16), bytes(18))}), FormatError, "rows that are no multiple of 32"),
    "a block without a shape": (gguf({"a": (2, (), bytes(18))}), FormatError, "rows that are no multiple of 32"),
    "an offset that is not aligned": (gguf(ONE, offsets=[4]), FormatError, "begins at offset 4 of the data, expected 0"),
    "an offset of 2**64 - 1": (gguf(ONE, offsets=[(1 << 64) - 1]), FormatError, "begins at offset 18446744073709551615"),
    "an overlap": (gguf({**ONE, "b": ONE["a"]}, offsets=[0, 0]), FormatError, "begins at offset 0 of the data, expected 32"),
    "a hole": (gguf({**ONE, "b": ONE["a"]}, offsets=[0, 64]), FormatError, "begins at offset 64 of the data, expected 32"),
    "the order of another file": (gguf({**ONE, "b": ONE["a"]}, offsets=[32, 0]), FormatError, "begins at offset 32"),
    "a tensor of more than the file": (gguf({"a": (0, (100,), bytes(8))}), FormatError, "truncated?"),
    "a rest": (gguf(ONE) + bytes(32), FormatError, "56 bytes follow the last tensor, expected 24"),
    "a byte of padding too few": (gguf(ONE)[:-1], FormatError, "23 bytes follow the last tensor"),
}  # fmt: skip


@each("lie", LIES)
def test_lies(lie: str) -> None:
    content, kind, words = LIES[lie]
    if kind is None:
        assert fl.load_weights(content)
        return
    with pytest.raises(kind) as caught:
        fl.load_weights(content)
    assert words in str(caught.value), str(caught.value)


def test_memory_is_paid_for() -> None:
    raw = blocks("Q4_0", 1 << 15)
    with pytest.raises(LimitError, match=r"tensor 'w': needs 4194304 bytes of memory, .*max_bytes=1048576"):
        fl.load_weights(gguf({"w": (2, (1 << 20,), raw.tobytes())}), max_bytes=1 << 20)
    vocabulary = gguf(ONE, {"t": ["a"] * 20_000})
    assert fl.load_weights(vocabulary, max_bytes=1 << 16)  # nobody asked for it
    with pytest.raises(LimitError, match="max_bytes=1048576 are left: pass a larger max_bytes to metadata"):
        metadata(vocabulary, max_bytes=1 << 20)
    assert metadata(vocabulary, max_bytes=1 << 21)["t"] == ["a"] * 20_000


# ---- few bits -----------------------------------------------------------------------------------------------------------


def few(kind: str, raw: np.ndarray, rows: int) -> Few:
    return LAYOUTS[kind].few(raw.reshape(rows, -1))


def stands_for(kind: str, made: Few) -> np.ndarray:
    """The elements, as the reference of the kernel has them."""
    assert made.numbers.dtype == np.uint8 and made.scales.dtype == np.float32
    layout = LAYOUTS[kind]
    held = nbits_pack(made.numbers, made.scales, made.zeros, None, made.scales.shape[1] * layout.group, layout.bits)
    found = (held.numbers__nbt - held.zero__nb[..., None]) * held.scale__nb[..., None]
    assert found.dtype == np.float32
    return np.asarray(found.reshape(len(found), -1))


@pytest.mark.parametrize("kind", BLOCKS)
def test_few_bits_stand_for_the_same_elements(kind: str) -> None:
    raw = blocks(kind, 600, 3)
    if kind in ("Q4_1", "Q5_1"):
        raw[::7, :2] = 0  # a block whose elements are its minimum
        raw[1::7, :2] = np.frombuffer(np.float16(6e-8).tobytes(), np.uint8)  # a minimum that is much larger than a step
        raw[1::7, 2:4] = np.frombuffer(np.float16(60000).tobytes(), np.uint8)
    if kind in ("Q4_K", "Q5_K"):
        raw[::5, 4:8] &= 0xC0
    if kind == "Q6_K":
        raw[::5, 192:200] = 0
    want, made = loaded(kind, raw, 6), few(kind, raw, 6)
    found = stands_for(kind, made)
    bits, group = 4 if kind in ("Q4_0", "Q4_1", "Q4_K") else 8, 16 if kind == "Q6_K" else 32
    assert made.numbers.shape == (6, want.shape[1] // group, group * bits // 8)
    if made.zeros is None:
        np.testing.assert_array_equal(found.view(np.uint32), want.view(np.uint32))
        return
    low = np.repeat(made.zeros.astype(np.float64) * made.scales, 32, axis=1)
    difference = np.abs(found.astype(np.float64) - want)
    assert (difference <= 2**-24 * 1.001 * (np.abs(low) + 3 * np.abs(want))).all()
    assert difference.any()
    constant = np.repeat(made.scales == 1, 32, axis=1)
    assert constant.any()
    np.testing.assert_array_equal(found[constant], want[constant])


@pytest.mark.parametrize("kind", BLOCKS)
def test_few_bits_in_pieces(kind: str) -> None:
    raw = blocks(kind, (3 << 16) // BLOCKS[kind][1])
    whole = few(kind, raw, 12)
    for row in (0, 5, 11):
        part = few(kind, raw.reshape(12, -1)[row], 1)
        for a, b in zip(whole, part, strict=True):
            np.testing.assert_array_equal(a if a is None else a[row : row + 1], b)  # type: ignore[arg-type]
    with allocations() as measured:
        few(kind, raw, 12)
    assert measured.peak < sum(array.nbytes for array in whole if array is not None) + (2 << 20)


@pytest.mark.parametrize(("kind", "at"), [("Q4_0", 0), ("Q4_1", 2), ("Q6_K", 208), ("Q5_K", 2)])
def test_few_bits_of_scales_that_are_no_numbers(kind: str, at: int) -> None:
    for value in (np.inf, np.nan):
        raw = blocks(kind, 4)
        raw[2, at : at + 2] = np.frombuffer(np.float16(value).tobytes(), np.uint8)
        with pytest.raises(ArgumentError, match=f"{kind}: blocks have scales or minima that are NaN or infinite"):
            few(kind, raw, 2)
