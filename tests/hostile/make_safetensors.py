"""safetensors: every rule of the format broken by itself, and indices of shards that lead elsewhere.

Each variant of the reference reader's SafeTensorError, and where it is broken here:

| variant | files |
|---|---|
| InvalidHeader | "header not UTF-8" |
| InvalidHeaderStart | "BOM", "a blank before", "a list" |
| InvalidHeaderDeserialization | "header cut", "deep", numbers, keys, fields and metadata of all kinds |
| HeaderTooLarge | "header of 100,000,001 bytes" |
| HeaderTooSmall | "7 bytes", "no bytes but the length" |
| InvalidHeaderLength | "header longer than the file", "length of 2**64 - 1" |
| TensorNotFound | "a tensor that a shard lacks" (of an index) |
| TensorInvalidInfo | "size too large", "size too small" |
| InvalidOffset | "hole", "overlap", "the same bytes twice", "backwards" |
| IoError | "a shard that is a folder", "... whose name is too long" (of an index) |
| JsonError, InvalidTensorView, MisalignedSlice | of writing and slicing, which are not done here; see "sub-byte" |
| MetadataIncompleteBuffer | "data missing", "data left over", "data without tensors" |
| ValidationOverflow | "product over 64 bits", "product that wraps", "0 times huge" |
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fastlayers.errors import Error, FormatError, UnsupportedError

from ..formats.build import safetensors_of, safetensors_raw
from ..formats.test_safetensors import BROKEN
from .cases import Case, Sweep, damaged, fixed, table

ROW = "safetensors"
GOOD = safetensors_of({"a": np.arange(2, dtype=np.float32)})
HUGE = "9" * 400


def header(text: str, data: bytes = bytes(8), before: bytes = b"") -> bytes:
    """A file with this header."""
    return safetensors_raw(before + text.encode(), data)


def one(dtype: str = '"F32"', shape: str = "[2]", offsets: str = "[0,8]", data: bytes = bytes(8), more: str = "") -> bytes:
    """A file of one tensor, whose values are written so."""
    return header(f'{{"a":{{"dtype":{dtype},"shape":{shape},"data_offsets":{offsets}{more}}}}}', data)


def two(first: tuple[int, int], second: tuple[int, int], length: int) -> bytes:
    """A file of two tensors of bytes at these offsets."""
    text = {n: {"dtype": "U8", "shape": [e - b], "data_offsets": [b, e]} for n, (b, e) in (("a", first), ("b", second))}
    return header(json.dumps(text), bytes(length))


ENTRY = '{"dtype":"F32","shape":[2],"data_offsets":[0,8]}'
OBJECT, JSON, TWICE = (
    "expected an object with exactly dtype, shape and data_offsets",
    "the header is not valid JSON",
    "more than once",
)
FILES: dict[str, tuple[bytes, type[Error] | None, str]] = {
    "good": (GOOD, None, ""),
    "good, blanks after": (header(f'{{"a":{ENTRY}}} \n\t'), None, ""),
    "good, metadata": (header(f'{{"__metadata__":{{"k":"v"}},"a":{ENTRY}}}'), None, ""),
    "good, name escaped": (header(f'{{"\\u0061":{ENTRY}}}'), None, ""),
    "good, of no elements": (one(shape="[0,3]", offsets="[0,0]", data=b""), None, ""),
    "7 bytes": (GOOD[:7], FormatError, "is of no known format"),
    "no bytes but the length": (GOOD[:8], FormatError, "is of no known format"),
    "header of no bytes": (safetensors_raw("", b"{", length=0), FormatError, "expected '{'"),
    "header of 100,000,001 bytes": (safetensors_raw("{}", length=100_000_001), FormatError, "at most 100000000 are allowed"),
    "header longer than the file": (safetensors_raw("{}", length=1000), FormatError, "1000 bytes, but only 2 follow"),
    "header longer by one": (safetensors_raw("{}", length=3), FormatError, "3 bytes, but only 2 follow"),
    "header shorter by one": (safetensors_raw(f'{{"a":{ENTRY}}}', bytes(8), len(ENTRY) + 5), FormatError, JSON),
    "length of 2**64 - 1": (b"\xff" * 8 + b"{}", FormatError, "is of no known format"),
    "length of 2**40 - 1": (b"\xff" * 5 + bytes(3) + b"{}", FormatError, "the header's length is 1099511627775 bytes"),
    "BOM": (header(f'{{"a":{ENTRY}}}', before=b"\xef\xbb\xbf"), FormatError, "is of no known format"),
    "a blank before": (header(f'{{"a":{ENTRY}}}', before=b" "), FormatError, "is of no known format"),
    "a list": (header("[1]"), FormatError, "is of no known format"),
    "header not UTF-8": (safetensors_raw(b'{"\xff":1}'), FormatError, "the header is not UTF-8: byte 2 is 0xff"),
    "header of UTF-16": (safetensors_raw("{}".encode("utf-16-le")), FormatError, JSON),
    "header cut": (header('{"a":{"dtype"'), FormatError, JSON),
    "a zero after": (header(f'{{"a":{ENTRY}}}\0'), FormatError, JSON),
    "two headers": (header(f'{{"a":{ENTRY}}}' * 2), FormatError, JSON),
    "a comma too many": (header(f'{{"a":{ENTRY},}}'), FormatError, JSON),
    "a comment": (header(f'{{"a":{ENTRY}/**/}}'), FormatError, JSON),
    "single quotes": (header("{'a':1}"), FormatError, JSON),
    "deep objects": (header('{"a":' * 100_000), FormatError, "nested too deeply"),
    "deep lists": (header('{"a":' + "[" * 100_000), FormatError, "nested too deeply"),
    "deep lists in a shape": (one(shape="[" * 500 + "]" * 500), FormatError, "shape must be a list of integers"),
    "name twice": (header(f'{{"a":{ENTRY},"a":{ENTRY}}}'), FormatError, "the key 'a' more than once"),
    "name twice, once escaped": (header(f'{{"a":{ENTRY},"\\u0061":{ENTRY}}}'), FormatError, "the key 'a' more than once"),
    "name twice, by a pair of surrogates": (header(f'{{"😀":{ENTRY},"\\ud83d\\ude00":{ENTRY}}}'), FormatError, TWICE),
    "names that differ in case": (header(f'{{"a":{ENTRY},"A":{ENTRY.replace("0,8", "8,16")}}}', bytes(16)), None, ""),
    "shape twice": (one(more=',"shape":[1]'), FormatError, "the key 'shape' more than once"),
    "offsets twice, once escaped": (one(more=',"\\u0064ata_offsets":[0,4]'), FormatError, TWICE),
    "metadata twice": (header(f'{{"__metadata__":{{}},"__metadata__":{{}},"a":{ENTRY}}}'), FormatError, TWICE),
    "key in metadata twice": (header(f'{{"__metadata__":{{"k":"1","k":"2"}},"a":{ENTRY}}}'), FormatError, "key 'k' more"),
    "metadata of numbers": (header(f'{{"__metadata__":{{"k":1}},"a":{ENTRY}}}'), FormatError, "must map strings to strings"),
    "metadata of null": (header(f'{{"__metadata__":{{"k":null}},"a":{ENTRY}}}'), FormatError, "must map strings to strings"),
    "metadata of lists": (header(f'{{"__metadata__":{{"k":[]}},"a":{ENTRY}}}'), FormatError, "must map strings to strings"),
    "metadata a list": (header(f'{{"__metadata__":[],"a":{ENTRY}}}'), FormatError, "must map strings to strings"),
    "metadata a tensor": (header(f'{{"__metadata__":{ENTRY}}}'), FormatError, "must map strings to strings"),
    "tensor a number": (header('{"a":1}'), FormatError, OBJECT),
    "tensor null": (header('{"a":null}'), FormatError, OBJECT),
    "field missing": (header('{"a":{"dtype":"F32","shape":[2]}}'), FormatError, OBJECT),
    "field too many": (one(more=',"strides":[1]'), FormatError, OBJECT),
    "dtype unknown": (one('"F128"'), FormatError, "unknown dtype 'F128'"),
    "dtype of numpy": (one('"<f4"'), FormatError, "unknown dtype '<f4'"),
    "dtype null": (one("null"), FormatError, "dtype must be a string"),
    "dtype a list": (one('["F32"]'), FormatError, "dtype must be a string"),
    "sub-byte": (one('"F4"', "[16]"), UnsupportedError, "elements of less than a byte (F4)"),
    "number of 400 digits": (one(shape=f"[{HUGE}]"), FormatError, "the header has the number '999"),
    "number of 100,000 digits": (one(shape=f"[{'9' * 100_000}]"), FormatError, "the header has the number '999"),
    "number of 400 digits in the offsets": (one(offsets=f"[0,{HUGE}]"), FormatError, "the header has the number"),
    "2**64": (one(shape=f"[{1 << 64}]"), FormatError, "beyond any memory"),
    "float": (one(shape="[2.0]"), FormatError, "the number '2.0'"),
    "exponent": (one(shape="[2e0]"), FormatError, "the number '2e0'"),
    "exponent of 10**9": (one(shape="[1e1000000000]"), FormatError, "the number '1e1000000000'"),
    "NaN": (one(shape="[NaN]"), FormatError, "the number 'NaN'"),
    "infinity": (one(shape="[-Infinity]"), FormatError, "the number '-Infinity'"),
    "negative size": (one(shape="[-2]"), FormatError, "the number '-2'"),
    "minus zero": (one(shape="[-0]"), FormatError, "the number '-0'"),
    "leading zero": (one(shape="[02]"), FormatError, JSON),
    "negative offset": (one(offsets="[-8,0]"), FormatError, "the number '-8'"),
    "size true": (one(shape="[true,2]"), FormatError, "shape must be a list of integers"),
    "size a string": (one(shape='["2"]'), FormatError, "shape must be a list of integers"),
    "offset true": (one('"U8"', "[1]", "[false,true]", b"x"), FormatError, "data_offsets must be [begin, end]"),
    "three offsets": (one(offsets="[0,4,8]"), FormatError, "data_offsets must be [begin, end]"),
    "backwards": (one(offsets="[8,0]"), FormatError, "data_offsets must be [begin, end]"),
    "size too large": (one(shape="[3]"), FormatError, "span 8 bytes, F32 of shape [3] takes 12"),
    "size too small": (one(shape="[1]"), FormatError, "span 8 bytes, F32 of shape [1] takes 4"),
    "product over 64 bits": (one(shape=f"[{1 << 32},{1 << 32},2]"), FormatError, "beyond any memory"),
    "product that wraps to 8 bytes": (one(shape=f"[{(1 << 62) + 2}]"), FormatError, "beyond any memory"),
    "0 times huge": (one(shape=f"[0,{1 << 63},{1 << 63}]", offsets="[0,0]", data=b""), FormatError, "beyond any memory"),
    "33 dimensions": (one(shape=f"[2{',1' * 32}]"), UnsupportedError, "33 dimensions, at most 32"),
    "data missing": (one(data=bytes(7)), FormatError, "end beyond the file's 7 bytes"),
    "data left over": (one(data=bytes(9)), FormatError, "1 bytes follow the last tensor"),
    "data without tensors": (header("{}", bytes(3)), FormatError, "3 bytes follow the last tensor"),
    "another file after": (GOOD + GOOD, FormatError, "bytes follow the last tensor"),
    "offset far beyond": (one(shape=f"[{1 << 40}]", offsets=f"[0,{1 << 42}]"), FormatError, "end beyond the file's 8 bytes"),
    "next to each other": (two((0, 4), (4, 8), 8), None, ""),
    "hole at the start": (two((1, 4), (4, 8), 8), FormatError, "leave a hole: expected them to begin at 0"),
    "hole": (two((0, 3), (4, 8), 8), FormatError, "leave a hole: expected them to begin at 3"),
    "overlap": (two((0, 5), (4, 8), 8), FormatError, "overlap the tensor before"),
    "the same bytes twice": (two((0, 8), (0, 8), 8), FormatError, "overlap the tensor before"),
    "one within the other": (two((0, 8), (2, 4), 8), FormatError, "overlap the tensor before"),
    "nothing within another": (two((0, 8), (4, 4), 8), FormatError, "overlap the tensor before"),
    "a name that is no text": (header(f'{{"\\ud800":{ENTRY}}}'), FormatError, "lone surrogate"),
    "no tensors": (header("{}", b""), FormatError, "holds no tensors"),
}  # fmt: skip


def many_entries(folder: Path) -> bytes:
    """A header of a megabyte of empty objects where one tensor should be described."""
    return header('{"a":[' + "{}," * 350_000 + "{}]}")


# ---- shards ---------------------------------------------------------------------------------------------------------------

SHARD = "model-00001.safetensors"
NAME = "model.safetensors.index.json"


def index(content: Any, more: Callable[[Path], None] = lambda folder: None, shard: bool = True) -> Callable[[Path], Path]:
    """The maker of a folder with an index of this weight_map (or text), and a good shard of "a"; `more` is made next to them."""

    def make(folder: Path) -> Path:
        if shard:
            (folder / SHARD).write_bytes(GOOD)
        (folder.parent / "secret.safetensors").write_bytes(GOOD)
        more(folder)
        text = content if isinstance(content, str) else json.dumps({"metadata": {}, "weight_map": content})
        (folder / NAME).write_text(text)
        return folder / NAME

    return make


def cached(folder: Path) -> Path:
    """As in the caches of publishers: links to where the index and its shards are together, by other names."""
    blobs, snapshot = folder / "blobs", folder / "snapshot"
    blobs.mkdir()
    snapshot.mkdir()
    (blobs / "1").write_bytes(GOOD)
    (blobs / "2").write_text(json.dumps({"weight_map": {"a": SHARD}}))
    (snapshot / SHARD).symlink_to("../blobs/1")
    (snapshot / NAME).symlink_to("../blobs/2")
    return snapshot / NAME


def link(name: str, target: str) -> Callable[[Path], None]:
    """Makes a link in the folder."""
    return lambda folder: (folder / name).symlink_to(target)


PLAIN = "is no plain one: expected a file next to the index"
SHARDS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "a name with ..": (index({"a": "../secret.safetensors"}), PLAIN),
    "a name with .. after a folder": (index({"a": "x/../../secret.safetensors"}), PLAIN),
    "a name with .. and backslashes": (index({"a": "..\\secret.safetensors"}), PLAIN),
    "an absolute name": (index({"a": "/etc/passwd"}), PLAIN),
    "a name with a drive": (index({"a": "c:secret.safetensors"}), PLAIN),
    "a name with a zero": (index({"a": f"{SHARD}\0.txt"}), PLAIN),
    "a name with a line's end": (index({"a": f"{SHARD}\n"}), PLAIN),
    "a name of a lone surrogate": (index({"a": "\ud800"}), PLAIN),
    "an address": (index({"a": "https://example.com/x.safetensors"}), PLAIN),
    "a name that is empty": (index({"a": ""}), PLAIN),
    "the folder itself": (index({"a": "."}), PLAIN),
    "a link to outside": (index({"a": "x"}, link("x", "../secret.safetensors")), "is a link that leads out"),
    "a link to an absolute path": (index({"a": "x"}, link("x", "/etc/hostname")), "is a link that leads out"),
    "a link to a link to outside": (
        index({"a": "x"}, lambda f: (link("x", "y")(f), link("y", "../secret.safetensors")(f), None)[-1]),
        "is a link that leads out",
    ),
    "a link to itself": (index({"a": "x"}, link("x", "x")), "cannot be opened"),
    "a link to a device": (index({"a": "x"}, link("x", "/dev/zero")), "is a link that leads out"),
    "a pipe": (index({"a": "x"}, lambda f: os.mkfifo(f / "x")), "is no regular file"),
    "a shard that is a folder": (index({"a": "x"}, lambda f: (f / "x").mkdir()), "cannot be opened"),
    "a shard whose name is too long": (index({"a": "x" * 300}), "cannot be opened"),
    "a shard that is not there": (index({"a": SHARD}, shard=False), "is not there, next to the index"),
    "the index itself": (index({"a": NAME}), "is no file of safetensors"),
    "a tensor that a shard lacks": (index({"a": SHARD, "b": SHARD}), "lacks 1 tensors that are said to be in it: 'b'"),
    "a tensor that is not listed": (index({"b": SHARD}), "lacks 1 tensors"),
    "a tensor twice": (index(f'{{"weight_map":{{"a":"{SHARD}","a":"x"}}}}'), "has the key 'a' more than once"),
    "a tensor twice, once escaped": (index(f'{{"weight_map":{{"a":"{SHARD}","\\u0061":"x"}}}}'), "the key 'a' more than once"),
    "two maps": (index(f'{{"weight_map":{{"a":"{SHARD}"}},"weight_map":{{}}}}'), "has the key 'weight_map' more than once"),
    "a shard by its number": (index({"a": 1}), "must map names of tensors to names of files"),
    "a shard of a list": (index({"a": [SHARD]}), "must map names of tensors to names of files"),
    "a list for the map": (index([SHARD]), "must map names of tensors to names of files"),
    "deep lists": (index('{"weight_map":' + "[" * 100_000), "the index is not valid JSON"),
    "a number of 400 digits": (index(f'{{"weight_map":{HUGE}}}'), "weight_map must map names"),
    "a shard of another format": (index({"a": "x"}, lambda f: (f / "x").write_bytes(b"\x80\x04.") and None), "is no file of"),
    "a shard that is cut": (index({"a": "x"}, lambda f: (f / "x").write_bytes(GOOD[:-1]) and None), "truncated?"),
}  # fmt: skip


def _damaged_index() -> Iterator[bytes]:
    return damaged(json.dumps({"weight_map": {"a": SHARD}}).encode())


CASES: list[Case | Sweep] = [
    Case(ROW, "a name twice, once escaped", fixed(FILES["name twice, once escaped"][0]), match="the key 'a' more than once"),
    Case(ROW, "a header of 100,000,001 bytes", fixed(FILES["header of 100,000,001 bytes"][0]), match="at most 100000000"),
    Case(ROW, "a header 100,000 deep", fixed(FILES["deep lists"][0]), match="nested too deeply"),
    Case(ROW, "a number of 100,000 digits", fixed(FILES["number of 100,000 digits"][0]), match="has the number"),
    Case(ROW, "a product over 64 bits", fixed(FILES["product over 64 bits"][0]), match="beyond any memory"),
    Case(ROW, "tensors that overlap", fixed(FILES["overlap"][0]), match="overlap the tensor before"),
    Case(ROW, "a hole", fixed(FILES["hole"][0]), match="leave a hole"),
    Case(ROW, "bytes after the last tensor", fixed(FILES["data left over"][0]), match="1 bytes follow the last tensor"),
    Case(ROW, "a megabyte of objects for a tensor", many_entries, match=OBJECT),
    Case(ROW, "a good file", fixed(GOOD), valid=True),
    table(ROW, "lies", FILES),
    table(ROW, "is of the reader's tests", BROKEN),
    Sweep(ROW, "damaged", lambda: damaged(GOOD)),
    *(Case(ROW, f"index: {name}", make, match=words) for name, (make, words) in SHARDS.items()),
    Case(ROW, "index: a good one", index({"a": SHARD}), valid=True),
    Case(ROW, "index: links of a cache", cached, valid=True),
    Case(ROW, "index: from memory", fixed(json.dumps({"weight_map": {"a": SHARD}}).encode()), (FormatError, UnsupportedError)),
    Sweep(ROW, "index: damaged", _damaged_index, may_load=False),
]
