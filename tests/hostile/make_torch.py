"""torch's pickles: calls of everything that ever ran code, opcodes that are misused, sizes that are, bombs.

The payloads would write ``../harmed`` next to the folder that a load is watched in; nothing here is ever to run one.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import Any

from fastlayers.errors import Error, FormatError, LimitError, UnsupportedError
from fastlayers.formats.source import quote

from ..formats.build import Entry, archive
from ..formats.test_torch_hostile import ABUSES, CALLS, GOOD, LEGACY, TENSORS, doubled
from ..formats.torch_build import (
    FLOATS,
    NONE,
    SMALL_LEGACY,
    SMALL_ZIP,
    STOP,
    call,
    dict_,
    legacy,
    named,
    number,
    sizes,
    storage,
    tensor,
    text,
    tuple_,
    zipped,
)
from .cases import Case, Sweep, Told, damaged, fixed, table, weights
from .gadgets import GADGETS

ROW = "pickle"
HARM = text("touch ../harmed")
NEVER = "nothing in a file is ever executed"
VIEWED = tensor(storage(view=NONE))  # as the legacy format refers to storages

NAMES = tuple(dict.fromkeys((*CALLS, *GADGETS)))
RENAMED = {"__builtin__": "builtins"}  # as pickles of Python 2 are read
SOME = ("os.system", "builtins.eval", "torch.hub.load", "numpy.f2py.crackfortran.getlincoef", "pkgutil.resolve_name")


def split(name: str) -> tuple[str, str]:
    """The module and the rest, where the last point is."""
    module, _, last = name.rpartition(".")
    return module, last


def by_stack(name: str) -> bytes:
    """The global, named by strings of protocol 4."""
    module, last = split(name)
    return text(module) + text(last) + b"\x93"


def by_bytes(name: str) -> bytes:
    """The global, named by strings of Python 2."""
    return b"".join(b"U" + bytes([len(part.encode())]) + part.encode() for part in split(name)) + b"\x93"


def by_memo(name: str) -> bytes:
    """The global, its names kept in the memo and mixed up in between."""
    module, last = split(name)
    return text(last) + b"\x94" + text(module) + b"\x94" + b"00" + b"h\1h\0\x93"


def calls(name: str) -> Iterator[tuple[str, bytes]]:
    """Ways to call the global, each with something good next to it."""
    arguments = tuple_(HARM)
    yield "GLOBAL", dict_({"a": GOOD, "b": named(name) + arguments + b"R"})
    yield "STACK_GLOBAL", dict_({"a": GOOD, "b": by_stack(name) + arguments + b"R"})
    if name.isascii():
        yield "STACK_GLOBAL of SHORT_BINSTRING", by_bytes(name) + arguments + b"R"
    yield "names from the memo", by_memo(name) + arguments + b"R"
    yield "dropped with POP", named(name) + arguments + b"R0" + dict_({"a": GOOD})
    yield "dropped with POP_MARK", b"(" + named(name) + arguments + b"R1" + dict_({"a": GOOD})
    yield "as a key", b"}" + named(name) + arguments + b"R" + GOOD + b"s"
    yield "around a tensor", named(name) + tuple_(GOOD) + b"R"


def _calls() -> Iterator[Told]:
    for name in NAMES:
        module, last = split(name)
        said = re.escape(quote(f"{RENAMED.get(module, module)}.{last}"))
        for way, value in calls(name) if name in SOME else list(calls(name))[:2]:
            yield Told(f"{name}, {way}", zipped(value), UnsupportedError, f"the pickle calls {said}.*{NEVER}")
        yield Told(f"{name}, legacy", legacy(call(name, VIEWED)), UnsupportedError, f"the pickle calls {said}.*{NEVER}")


def made(name: str, state: bytes = b"", ex: bool = False) -> bytes:
    """An object of a class, made without a call, and perhaps its state."""
    return named(name) + (b")}\x92" if ex else b")\x81") + (state + b"b" if state else b"")


WITHIN = "within an object of the class"
# The tricks by themselves.
TRICKS: dict[str, tuple[bytes, type[Error] | None, str]] = {
    "INST": (b"(" + HARM + b"ios\nsystem\n", UnsupportedError, "opcode INST (of protocol 0) is not supported"),
    "OBJ": (b"(" + named("os.system") + HARM + b"o", UnsupportedError, "opcode OBJ (of protocol 1) is not supported"),
    "EXT1": (b"\x82\1" + tuple_(HARM) + b"R", UnsupportedError, "opcode EXT1 (classes by number)"),
    "EXT2": (b"\x83\1\0" + tuple_(HARM) + b"R", UnsupportedError, "opcode EXT2 (classes by number)"),
    "EXT4": (b"\x84\1\0\0\0" + tuple_(HARM) + b"R", UnsupportedError, "opcode EXT4 (classes by number)"),
    "PERSID": (b"P../harmed\n", UnsupportedError, "opcode PERSID"),
    "BINPERSID of a call": (call("os.system", HARM) + b"Q", FormatError, "refers to an object of os.system, expected a storage"),
    "storage whose class is a call": (
        tensor(tuple_(text("storage"), call("os.system", HARM), text("0"), text("cpu"), number(6)) + b"Q"),
        FormatError, "which is not a torch storage class"),
    "NEWOBJ": (dict_({"a": GOOD, "b": made("subprocess.Popen")}), None, ""),
    "NEWOBJ_EX": (dict_({"a": GOOD, "b": made("subprocess.Popen", ex=True)}), None, ""),
    "NEWOBJ around a tensor": (dict_({"a": made("subprocess.Popen", dict_({"x": GOOD}))}), UnsupportedError, WITHIN),
    "NEWOBJ_EX around a tensor": (dict_({"a": made("x.Y", dict_({"x": GOOD}), ex=True)}), UnsupportedError, WITHIN),
    "an object's state that calls": (dict_({"a": GOOD, "b": made("x.Y", call("os.system", HARM))}), UnsupportedError, NEVER),
    "BUILD with __dict__": (dict_({"a": GOOD, "b": made("x.Y", dict_({"__dict__": named("os.system")}))}), None, ""),
    "BUILD with __setstate__": (made("x.Y", dict_({"__setstate__": named("os.system")})) + HARM + b"b" + b"0" + GOOD, None, ""),
    "BUILD with slots": (dict_({"a": GOOD, "b": made("x.Y", tuple_(NONE, dict_({"__reduce__": named("os.system")})))}), None, ""),
    "BUILD of a function": (named("numpy.size") + tuple_(b"}", dict_({"shape": named("numpy.__builtins__")})) + b"b",
                            FormatError, "sets the state of a Global, expected an object"),
    "BUILD that brings modules": (named("numpy.prod") + tuple_(NONE, named("numpy.core._internal.sys.modules")) + b"b0"
                                  + call("numpy.prod.os.system", HARM), FormatError, "sets the state of a Global"),
    "BUILD of a tensor": (GOOD + dict_({"data": GOOD}) + b"b", FormatError, "sets the state of a Tensor"),
    "BUILD of a dict": (b"}" + text("a") + GOOD + b"s" + dict_({"__class__": named("os.system")}) + b"b", None, ""),
    "call of what a call gave": (call("builtins.getattr", named("os.x"), text("system")) + tuple_(HARM) + b"R",
                                 FormatError, "calls a Record with a tuple"),
    "call of a dict's item": (
        call("builtins.dict.get", named("numpy.__builtins__"), text("exec")) + tuple_(HARM) + b"R",
        FormatError, "calls a Record with a tuple"),
    "call of a string": (text("os.system") + tuple_(HARM) + b"R", FormatError, "calls a str with a tuple"),
    "call with what is no tuple": (named("os.system") + HARM + b"R", FormatError, "calls a Global with a str"),
    "parameter of a call": (call("torch._utils._rebuild_parameter", call("os.system", HARM)), UnsupportedError, NEVER),
    "class of a tensor": (
        call("torch._tensor._rebuild_from_type_v2", named("os.system"), named("torch.Tensor"), tuple_(HARM), b"}"),
        UnsupportedError, NEVER),
    "a tensor of a class of the file's": (
        call("torch._tensor._rebuild_from_type_v2", named("torch._utils._rebuild_tensor_v2"), named("evil.Tensor"), b")", b"}"),
        UnsupportedError, "of the class 'evil.Tensor'"),
    "hooks of a tensor": (call("torch._utils._rebuild_tensor_v2", storage(), number(0), sizes(6), sizes(1), b"\x89",
                               call("os.system", HARM)), UnsupportedError, NEVER),
    "a pickle within": (call("torch.storage._load_from_bytes", b"C\4" + b"cos\n"), UnsupportedError, "a file within the file"),
    "a factory of a dict": (call("collections.defaultdict", named("os.system")) + text("a") + GOOD + b"s", None, ""),
    "a class by copyreg": (dict_({"a": GOOD, "b": call("copyreg._reconstructor", named("os.system"), NONE, NONE)}), None, ""),
    "decoded bytes": (call("_codecs.encode", text("import os"), text("idna")), FormatError, "not written as latin-1 text"),
    "an array of objects": (call("numpy.core.multiarray._reconstruct", named("numpy.ndarray"), sizes(0), text("b"))
                            + tuple_(number(1), sizes(1), call("numpy.dtype", text("O8")) + tuple_(number(3), text("|")) + b"b",
                                     b"\x89", tuple_(call("os.system", HARM))) + b"b", UnsupportedError, NEVER),
    "a call before the end is missing": (call("os.system", HARM) + b"X\xff\0\0\0", FormatError, "end beyond it: truncated?"),
    "a call before an unknown opcode": (call("os.system", HARM) + b"\xff", FormatError, "unknown opcode, 0xff"),
    "item of a list": (b"]" + text("a") + GOOD + b"s", FormatError, "sets an item of a list, expected a dict"),
    "items of a tensor": (GOOD + b"(" + text("a") + NONE + b"u", FormatError, "sets an item of a Tensor, expected a dict"),
    "items of a storage": (storage() + b"(" + number(1 << 40) + number(0) + b"u", FormatError, "sets an item of a Storage"),
    "append to a string": (text("a") + NONE + b"a", FormatError, "appends to a str, expected a list"),
    "BYTEARRAY8 of 2**63": (b"\x96" + struct.pack("<Q", 1 << 63), FormatError, "9223372036854775808 bytes of the pickle's"),
    "BINBYTES8 of 2**64 - 1": (b"\x8e" + b"\xff" * 8, FormatError, "18446744073709551615 bytes of the pickle's"),
    "BINUNICODE8 of 2**40": (b"\x8d" + struct.pack("<Q", 1 << 40), FormatError, "1099511627776 bytes of the pickle's"),
    "BINSTRING of -1": (b"T\xff\xff\xff\xff", FormatError, "4294967295 bytes of the pickle's"),
    "LONG4 of -1": (b"\x8b\xff\xff\xff\xff", FormatError, "an integer of 4294967295 bytes, at most 255"),
    "LONG4 of 1 MB": (b"\x8b" + struct.pack("<I", 1 << 20) + b"\x7f" * (1 << 20), FormatError, "an integer of 1048576 bytes"),
    "LONG_BINPUT of 2**32 - 1": (NONE + b"r\xff\xff\xff\xff", FormatError, "remembers a value as number 4294967295"),
    "LONG_BINGET of 2**32 - 1": (b"j\xff\xff\xff\xff", FormatError, "reads memo entry 4294967295"),
    "PUT of protocol 0": (NONE + b"p99999999999999999999\n", UnsupportedError, "opcode PUT (of protocol 0)"),
    "FRAME beyond the end": (b"\x95" + struct.pack("<Q", 1 << 62) + NONE, FormatError, "frame of 4611686018427387904 bytes"),
    "FRAME in a FRAME": (b"\x95" + struct.pack("<Q", 10) + b"\x95" + struct.pack("<Q", 1) + GOOD, None, ""),
    "protocol 0": (b"\x80\0" + GOOD, UnsupportedError, "is of pickle protocol 0, supported are 2 to 5"),
    "protocol 255": (b"\x80\xff" + GOOD, UnsupportedError, "is of pickle protocol 255"),
    "good": (dict_({"a": GOOD}), None, ""),
}  # fmt: skip


def rebuilt(offset: bytes, shape: bytes, strides: bytes, held: bytes | None = None) -> bytes:
    """A tensor whose values are any values."""
    return call("torch._utils._rebuild_tensor", storage() if held is None else held, offset, shape, strides)


def held(count: bytes, key: bytes = text("0"), made: bytes = named("torch.FloatStorage")) -> bytes:
    """A reference to a storage whose parts are any values."""
    return tuple_(text("storage"), made, key, text("cpu"), count) + b"Q"


SIZED, LARGEST = "expected values from 0 up", (1 << 63) - 1
LIES: dict[str, tuple[bytes, type[Error] | None, str]] = {
    "offset true": (rebuilt(b"\x88", sizes(1), sizes(1)), FormatError, SIZED),
    "offset 0.5": (rebuilt(b"G" + struct.pack(">d", 0.5), sizes(1), sizes(1)), FormatError, SIZED),
    "offset of 255 bytes": (rebuilt(b"\x8a\xff" + b"\x7f" * 255, sizes(1), sizes(1)), FormatError, SIZED),
    "shape a list of itself": (rebuilt(number(0), b"]\x94h\0a", sizes(1)), FormatError, SIZED),
    "shape of text": (rebuilt(number(0), tuple_(text("6")), sizes(1)), FormatError, SIZED),
    "every number the largest": (tensor(storage(), (LARGEST,) * 2, (LARGEST,) * 2, LARGEST), FormatError, "beyond any memory"),
    "strides that overflow": (tensor(storage(), (3, 3), (LARGEST, LARGEST)), FormatError, "the storage has 24"),
    "strides that wrap to 0": (tensor(storage(), (1 << 32 | 1, 1), (1 << 32, 1)), FormatError, "the storage has 24"),
    "one element beyond": (tensor(storage(), (2, 3), (3, 1), 1), FormatError, "takes 28 bytes, the storage has 24"),
    "the last element": (tensor(storage(), (1,), (1,), 5), None, ""),
    "overlapping rows": (tensor(storage(), (5, 2), (1, 1)), None, ""),
    "count of elements true": (tensor(held(b"\x88"), (1,), (1,)), FormatError, "a string and a size"),
    "count of elements 6.0": (tensor(held(b"G" + struct.pack(">d", 6))), FormatError, "a string and a size"),
    "2**63 - 1 elements of 8 bytes": (tensor(held(number(LARGEST), made=named("torch.DoubleStorage"))), FormatError, "take"),
    "key of a storage a number": (tensor(held(number(6), number(0))), FormatError, "a string and a size"),
    "key of a storage a path": (tensor(held(number(6), text("../data.pkl"))), FormatError, "has no member"),
    "key of a storage empty": (tensor(held(number(6), text(""))), FormatError, "has no member 'data/'"),
    "class of a storage a string": (tensor(held(number(6), made=text("torch.FloatStorage"))), FormatError, "not a torch storage"),
    "a storage of more bytes than its record": (tensor(storage(count=7)), FormatError, "has 24 bytes, 7 of float32 take 28"),
    "a storage of fewer bytes than its record": (tensor(storage(count=5), (5,), (1,)), FormatError, "has 24 bytes, 5 of float32"),
    "a storage of a wider dtype": (tensor(storage(kind="torch.LongStorage")), FormatError, "has 24 bytes, 6 of int64 take 48"),
    "good": (GOOD, None, ""),
}  # fmt: skip


def small(source: Any, **options: Any) -> Any:
    """Reads the arrays with a megabyte of memory, as the reader's own tests do."""
    return weights(source, max_bytes=1 << 20)


def _abuses() -> Iterator[Told]:
    return (Told(name, zipped(value), error, said) for name, (value, error, said) in ABUSES.items())


def _tensors() -> Iterator[Told]:
    for name, (value, error, said) in TENSORS.items():
        yield Told(name, zipped(value if value.startswith(b"}") else dict_({"x": value})), error, said)


def _legacy() -> Iterator[Told]:
    for name, (content, said) in LEGACY.items():
        yield Told(name, content, UnsupportedError if "magic" in name else FormatError, said)


def in_zip(files: dict[str, tuple[bytes, type[Error] | None, str]]) -> dict[str, tuple[bytes, type[Error] | None, str]]:
    """The values as files."""
    return {name: (zipped(value), error, said) for name, (value, error, said) in files.items()}


def script(code: str, constants: bytes) -> bytes:
    """A TorchScript archive: its object, its constants, and code that is not looked at."""
    model = named("__torch__.evil.Net") + b")\x81" + dict_({"weight": GOOD}) + b"b"
    parts = {"data.pkl": b"\x80\2" + model + STOP, "constants.pkl": b"\x80\2" + constants + STOP, "data/0": FLOATS}
    parts |= {"code/__torch__/evil.py": code.encode(), "code/__torch__/evil.py.debug_pkl": call("os.system", HARM) + STOP}
    return archive(*(Entry(f"x/{name}", content) for name, content in parts.items()))


def two(first: str, second: str) -> bytes:
    """An archive of two pickles, the second with a payload."""
    good, bad = b"\x80\2" + dict_({"a": GOOD}) + STOP, b"\x80\2" + call("os.system", HARM) + STOP
    return archive(Entry(first, good), Entry(second, bad), Entry("x/data/0", FLOATS))


DEEP = b"]" * 50_000 + b"a" * 49_999
ITSELF = b"}\x94(" + text("me") + b"h\0" + text("a") + GOOD + b"u"
SAVE = "def forward(self, x): return ops.aten.save(x, '../harmed')"
CASES: list[Case | Sweep] = [
    *(
        Case(ROW, f"call of {n}", fixed(zipped(call(n, HARM))), UnsupportedError, f"the pickle calls '{n}': {NEVER}")
        for n in SOME
    ),
    Case(ROW, "an opcode SETITEM on a list", fixed(zipped(TRICKS["item of a list"][0])), match="sets an item of a list"),
    Case(
        ROW, "a storage that its record is too small for", fixed(zipped(tensor(storage(count=7)))), match="7 of float32 take 28"
    ),
    Case(
        ROW,
        "an offset beyond the storage",
        fixed(zipped(tensor(storage(), offset=1))),
        match="takes 28 bytes, the storage has 24",
    ),
    Case(ROW, "a view expanded to 2**60", fixed(zipped(tensor(storage(), (1 << 60,), (0,)))), LimitError, "decompression bomb"),
    Case(ROW, "a memo that doubles 60 times", fixed(zipped(doubled(60, b"}", GOOD, b"u"))), LimitError, "decompression bomb"),
    Case(ROW, "lists 50,000 deep", fixed(zipped(DEEP)), LimitError, "nested more than 100 deep"),
    Case(ROW, "a dict within itself", fixed(zipped(ITSELF)), valid=True),
    Case(ROW, "TorchScript with code", fixed(script(SAVE, b")")), valid=True),
    Case(ROW, "TorchScript with constants that call", fixed(script("", call("os.system", HARM))), UnsupportedError, NEVER),
    Case(ROW, "two objects", fixed(two("x/data.pkl", "y/data.pkl")), match="has two objects: 'x/data.pkl', 'y/data.pkl'"),
    Case(ROW, "an object in another place", fixed(two("x/data.pkl", "x/y/data.pkl")), valid=True),
    Case(ROW, "no object", fixed(archive(Entry("x/data/0", FLOATS))), match="without any npy member or data.pkl"),
    Case(
        ROW,
        "the order of bytes is a are",
        fixed(zipped(GOOD, None, Entry("x/byteorder", b"middle"))),
        UnsupportedError,
        "byte order",
    ),
    Case(
        ROW,
        "the order of bytes is long",
        fixed(zipped(GOOD, None, Entry("x/byteorder", b"big" * 9))),
        match="byte order is of 27",
    ),
    Case(ROW, "a good zip", fixed(SMALL_ZIP), valid=True),
    Case(ROW, "a good legacy file", fixed(SMALL_LEGACY), valid=True),
    Sweep(ROW, "calls of all kinds", _calls, may_load=False),
    table(ROW, "tricks", in_zip(TRICKS)),
    table(ROW, "tensors that are", in_zip(LIES)),
    Sweep(ROW, "opcodes, of the reader's tests", _abuses, may_load=False),
    Sweep(ROW, "tensors, of the reader's tests", _tensors, read=small, may_load=False),
    Sweep(ROW, "legacy files, of the reader's tests", _legacy, may_load=False),
    Sweep(ROW, "damaged zip", lambda: damaged(SMALL_ZIP)),
    Sweep(ROW, "damaged legacy file", lambda: damaged(SMALL_LEGACY)),
]
