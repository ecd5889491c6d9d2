"""The torch reader against malicious files: nothing is executed, misuse of every opcode is an error of ours, bombs stay small."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastlayers.errors import Error, FormatError, LimitError, UnsupportedError
from fastlayers.formats import load_weights
from fastlayers.formats.torch import records
from fastlayers.formats.torch.machine import _STEPS

from ..each import each
from .build import Entry, archive
from .measure import allocations
from .torch_build import (
    FLOATS,
    NONE,
    SMALL_LEGACY,
    SMALL_ZIP,
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

GOLDENS = Path(__file__).parent.parent / "goldens"
QUIET = settings(derandomize=True, deadline=None, max_examples=200, database=None)
GOOD = tensor(storage())


def check(content: bytes) -> None:
    """Loads it: arrays or an error of ours come out."""
    try:
        weights = load_weights(content, max_bytes=1 << 20)
    except (FormatError, UnsupportedError, LimitError):
        return
    for array in weights.values():
        array.tobytes()


# Calls that other loaders were tricked with, and ways to name and to make them.
CALLS = [
    "os.system",
    "posix.system",
    "nt.system",
    "subprocess.Popen",
    "builtins.eval",
    "builtins.exec",
    "__builtin__.eval",
    "builtins.getattr",
    "builtins.__import__",
    "builtins.open",
    "builtins.compile",
    "functools.partial",
    "functools.reduce",
    "operator.attrgetter",
    "operator.methodcaller",
    "importlib.import_module",
    "pkgutil.resolve_name",
    "pip.main",
    "runpy.run_path",
    "webbrowser.open",
    "ctypes.CDLL",
    "types.FunctionType",
    "torch.hub.load",
    "torch.load",
    "torch._utils._import_dotted_name",
    "torch.jit.load",
    "torch.utils.cpp_extension.load",
    "numpy.load",
    "numpy.testing._private.utils.runstring",
    "fastlayers.load_weights",
    "copyreg.__newobj__",
    "torch._utils._rebuild_tensor_v2.__globals__",
]


@pytest.mark.parametrize("name", CALLS)
def test_calls_of_what_is_not_listed_are_an_error_and_do_nothing(name: str, tmp_path: Path) -> None:
    made = tmp_path / "made"
    harm = text(f"touch {made}")
    resolved = name.replace("__builtin__", "builtins")
    module, _, last = name.rpartition(".")
    by_stack = text(module) + text(last) + b"\x93" + tuple_(harm) + b"R"
    for value in (call(name, harm), by_stack):
        for whole in (value, value + b"0" + dict_({"a": GOOD}), dict_({"a": GOOD, "b": value}), dict_({"a": call(name, GOOD)})):
            for content in (zipped(whole), legacy(whole.replace(GOOD, tensor(storage(view=NONE))))):
                with pytest.raises(UnsupportedError) as caught:
                    load_weights(content)
                assert f"the pickle calls {resolved!r}: nothing in a file is ever executed" in str(caught.value)
    assert not made.exists()


def test_all_that_is_called_is_named_at_once() -> None:
    value = b"(" + b"".join(call(f"mine.f{i}") for i in range(7)) + b"t"
    with pytest.raises(UnsupportedError, match=r"calls 'mine.f0', 'mine.f1', .*'mine.f4', \.\.\. \(7 in all\): nothing"):
        load_weights(zipped(value))


def test_objects_of_unknown_classes_are_left_out_unless_they_hold_tensors() -> None:
    def made(state: bytes) -> bytes:
        return named("subprocess.Popen") + b")\x81" + state + b"b"

    weights = load_weights(zipped(dict_({"a": GOOD, "b": made(dict_({"args": text("true")})), "c": named("os.system")})))
    assert list(weights) == ["a"]
    for state in (GOOD, dict_({"x": GOOD}), storage(), tuple_(sizes(1), b"](" + GOOD + b"e")):
        with pytest.raises(UnsupportedError, match=r"\(within an object of the class 'subprocess.Popen'\)"):
            load_weights(zipped(dict_({"a": GOOD, "b": made(state)})))
    for filled in (b"](" + GOOD + b"e", b"\x8f(" + GOOD + b"\x90"):
        assert len(load_weights(zipped(filled))) == 1
    for filling in (b"(" + GOOD + b"e", GOOD + b"a", text("k") + GOOD + b"s", b"(" + text("k") + GOOD + b"u"):
        with pytest.raises(UnsupportedError, match=r"within an object of the class 'mine.List'"):
            load_weights(zipped(named("mine.List") + b")\x81" + filling))


# What is wrong, the opcodes, and what the error says of them.
ABUSES: dict[str, tuple[bytes, type[Error], str]] = {
    "nothing": (b"", FormatError, "finds nothing on the stack"),
    "two values": (b"NN", FormatError, "leaves more than one value after"),
    "a mark left": (b"(N", FormatError, "leaves more than one value after"),
    "pop of nothing": (b"0N", FormatError, "finds nothing on the stack"),
    "pop of a mark that is not there": (b"1N", FormatError, "finds no mark"),
    "pop beyond the mark": (b"N(0", FormatError, "finds nothing on the stack"),
    "duplicate of nothing": (b"2", FormatError, "finds nothing on the stack"),
    "tuple without a mark": (b"Nt", FormatError, "finds no mark"),
    "tuple of too few": (b"N\x87", FormatError, "finds nothing on the stack"),
    "append to a tuple": (b")Na", FormatError, "appends to a tuple, expected a list"),
    "append to a dict": (b"}(Ne", FormatError, "appends to a Dict, expected a list"),
    "append to a set": (b"\x8f(Ne", FormatError, "appends to a Set, expected a list"),
    "append to nothing": (b"Na", FormatError, "finds nothing on the stack"),
    "append to a tensor": (GOOD + b"Na", FormatError, "appends to a Tensor, expected a list"),
    "item of a list": (b"]NNs", FormatError, "sets an item of a list, expected a dict"),
    "item of a tuple": (b")(NNu", FormatError, "sets an item of a tuple, expected a dict"),
    "item of None": (b"NNNs", FormatError, "sets an item of a NoneType, expected a dict"),
    "item of a number": (b"K\1NNs", FormatError, "sets an item of a int, expected a dict"),
    "item of a string": (text("a") + b"NNs", FormatError, "sets an item of a str, expected a dict"),
    "item of a tensor": (GOOD + b"NNs", FormatError, "sets an item of a Tensor, expected a dict"),
    "item of a storage": (storage() + b"(NNu", FormatError, "sets an item of a Storage, expected a dict"),
    "item of a global": (named("a.b") + b"NNs", FormatError, "sets an item of a Global, expected a dict"),
    "keys without values": (b"}(NNNu", FormatError, "fills a dict from 3 values"),
    "dict of keys without values": (b"(Nd", FormatError, "fills a dict from 1 values"),
    "added to a list": (b"](N\x90", FormatError, "adds items to a list, expected a set"),
    "call of a string": (text("os.system") + b")R", FormatError, "calls a str with a tuple"),
    "call with a list": (named("collections.OrderedDict") + b"]R", FormatError, "calls a Global with a list"),
    "call of a tensor": (GOOD + b")R", FormatError, "calls a Tensor with a tuple"),
    "call of a call": (call("torch.device", text("cpu")) + b")R", FormatError, "calls a Record with a tuple"),
    "object of a number": (b"K\1)\x81", FormatError, "calls a int with a tuple"),
    "object with names of a list": (b"])}\x92", FormatError, "calls a list with a tuple"),
    "state of a list": (b"]Nb", FormatError, "sets the state of a list, expected an object"),
    "state of a tensor": (GOOD + tuple_(storage()) + b"b", FormatError, "sets the state of a Tensor, expected an object"),
    "state of a global": (named("torch.Tensor") + b"}b", FormatError, "sets the state of a Global"),
    "global of numbers": (b"K\1K\1\x93", FormatError, "names a global by a int and a int"),
    "global of long strings": (text("a" * 1500) + text("b" * 600) + b"\x93", FormatError, "expected two short strings"),
    "global without end": (b"cos", FormatError, "has no end"),
    "global of a long line": (b"c" + b"a" * 5000 + b"\nb\n", FormatError, "has no end"),
    "global that is no text": (b"c\xff\nb\n", FormatError, "is not UTF-8"),
    "text that is no text": (b"X\2\0\0\0\xff\xfe", FormatError, "is not UTF-8"),
    "text beyond the end": (b"X\xff\xff\xff\xffa", FormatError, "4294967295 bytes of the pickle's byte 7 on end beyond it"),
    "text of 2**63 bytes": (b"\x8d" + b"\xff" * 8, FormatError, "18446744073709551615 bytes of the pickle's byte 11 on"),
    "bytes of 2**63": (b"\x8e" + b"\xff" * 7 + b"\x7f", FormatError, "end beyond it: truncated"),
    "a long number": (b"\x8b\0\1\0\0" + bytes(256), FormatError, "an integer of 256 bytes, at most 255"),
    "a number of -1 bytes": (b"\x8b\xff\xff\xff\xff", FormatError, "an integer of 4294967295 bytes"),
    "memo that is empty": (b"h\7", FormatError, "reads memo entry 7"),
    "memo far away": (b"Nr\xff\xff\xff\xff", FormatError, "remembers a value as number 4294967295"),
    "memo of nothing": (b"q\0N", FormatError, "finds nothing on the stack"),
    "memo of a mark": (b"N(q\0", FormatError, "finds nothing on the stack"),
    "a frame too long": (b"\x95" + b"\xff" * 8 + b"N", FormatError, "frame of 18446744073709551615 bytes ends beyond it"),
    "protocol 1": (b"\x80\1N", UnsupportedError, "is of pickle protocol 1, supported are 2 to 5"),
    "protocol 6": (b"\x80\6N", UnsupportedError, "is of pickle protocol 6"),
    "unknown opcode": (b"\xff", FormatError, "has an unknown opcode, 0xff, at byte 2"),
    "INST": (b"(ios\nsystem\n", UnsupportedError, "opcode INST"),
    "OBJ": (b"(" + named("os.system") + b"o", UnsupportedError, "opcode OBJ"),
    "EXT1": (b"\x82\1", UnsupportedError, r"opcode EXT1 \(classes by number\)"),
    "PERSID": (b"P0\n", UnsupportedError, "opcode PERSID"),
    "NEXT_BUFFER": (b"\x97", UnsupportedError, "opcode NEXT_BUFFER"),
    "decimal number": (b"I" + b"9" * 100_000 + b"\n", UnsupportedError, "opcode INT"),
    "reference to a string": (text("0") + b"Q", FormatError, "refers to '0', expected a storage"),
    "reference to a module": (tuple_(text("module"), NONE, NONE, NONE, NONE) + b"Q", FormatError, "expected a storage"),
    "dict of no pairs": (call("collections.OrderedDict", b"](NNe"), FormatError, "values that are no pairs"),
    "dict of a number": (call("collections.OrderedDict", b"K\1"), FormatError, "a dict is made of"),
    "set of a number": (call("builtins.set", b"K\1"), FormatError, "a set is made of"),
    "size of a list": (call("torch.Size", b"]"), FormatError, "a torch.Size is made of"),
    "parameter of nothing": (call("torch._utils._rebuild_parameter"), FormatError, "made from an empty argument list"),
    "bytes in rot13": (call("_codecs.encode", text("a"), text("rot13")), FormatError, "not written as latin-1 text"),
    "bytes beyond latin-1": (call("_codecs.encode", text("€"), text("latin1")), FormatError, "text that is not latin-1"),
    "object of no class": (call("copyreg._reconstructor", NONE), FormatError, "expected its class first"),
    "attributes within attributes": (
        call(
            "torch._tensor._rebuild_from_type_v2", named("torch._tensor._rebuild_from_type_v2"), named("torch.Tensor"), b")", b"}"
        ),
        FormatError,
        "is made of another one",
    ),
    "array without state": (call("numpy.core.multiarray._reconstruct", named("numpy.ndarray")), FormatError, "has no state"),
    "file within the file": (
        call("torch.storage._load_from_bytes", b"C\0"),
        UnsupportedError,
        r"'tensor' \(a file within the file\)",
    ),
    "tensor of nothing": (call("torch._utils._rebuild_tensor_v2"), FormatError, "is described by 0 values"),
    "tensor of a string": (
        call("torch._utils._rebuild_tensor", text("0"), b"K\0", b")", b")"),
        FormatError,
        "expected a storage",
    ),
    "tensor of no dtype": (call("torch._utils._rebuild_tensor_v3", storage()), FormatError, "dtype is None"),
}


@each("case", ABUSES)
def test_opcodes_that_are_misused(case: str) -> None:
    opcodes, error, said = ABUSES[case]
    with pytest.raises(error, match=said):
        load_weights(zipped(opcodes))


@pytest.mark.parametrize("opcode", range(256))
@pytest.mark.sampled(8)
def test_every_opcode_on_every_kind_of_value(opcode: int) -> None:
    stacks = (
        b"",
        b"N",
        b"K\1",
        b"]",
        b"}",
        b"\x8f",
        b")",
        GOOD,
        storage(),
        named("a.b"),
        named("a.b") + b")\x81",
        text("ab"),
        b"(",
    )
    for first in stacks:
        for second in stacks:
            for rest in (b"", b"\1" * 8):
                check(zipped(first + second + bytes([opcode]) + rest))


def test_every_step_has_a_case() -> None:
    assert {chr(code) for code in _STEPS} >= set("(012NJKMGUTXCB)t]lae}dsuqrhjcRbQ")
    assert len(_STEPS) == 52


# Tensors whose descriptions do not fit their storage.
TENSORS: dict[str, tuple[bytes, type[Error], str]] = {
    "too long": (tensor(storage(), (7,), (1,)), FormatError, "takes 28 bytes, the storage has 24"),
    "too far": (tensor(storage(), (1,), (1,), 6), FormatError, "takes 28 bytes, the storage has 24"),
    "strides too wide": (tensor(storage(), (2, 2), (5, 1)), FormatError, "takes 28 bytes"),
    "negative stride": (tensor(storage(), (2,), (-1,), 1), FormatError, "expected values from 0 up"),
    "negative size": (tensor(storage(), (-2,), (1,)), FormatError, "expected values from 0 up"),
    "negative offset": (tensor(storage(), (1,), (1,), -1), FormatError, "expected values from 0 up"),
    "overflowing offset": (tensor(storage(), (1,), (1,), (1 << 63) - 1), FormatError, "the storage has 24"),
    "overflowing stride": (tensor(storage(), (3,), (1 << 62,)), FormatError, "the storage has 24"),
    "wrapping stride": (tensor(storage(), (5,), (1 << 62,)), FormatError, "the storage has 24"),
    "number of 65 bits": (tensor(storage(), (1 << 64,), (0,)), FormatError, "expected values from 0 up"),
    "overflowing shape": (tensor(storage(), (1 << 32, 1 << 32), (0, 0)), FormatError, "is beyond any memory"),
    "overflowing shape, empty": (tensor(storage(), (0, 1 << 32, 1 << 32), (0, 0, 0)), FormatError, "is beyond any memory"),
    "sizes without strides": (tensor(storage(), (2, 3), (1,)), FormatError, "as many strides as dimensions"),
    "sizes of strings": (
        call("torch._utils._rebuild_tensor", storage(), b"K\0", tuple_(text("2")), sizes(1)),
        FormatError,
        "expected values from 0 up",
    ),
    "sizes of True": (
        call("torch._utils._rebuild_tensor", storage(), b"K\0", b"\x88\x85", sizes(1)),
        FormatError,
        "expected values",
    ),
    "too many dimensions": (tensor(storage(), (1,) * 33, (1,) * 33), UnsupportedError, "has 33 dimensions"),
    "expanded beyond measure": (tensor(storage(), (1 << 28,), (0,)), LimitError, "is rejected as a decompression bomb"),
    "expanded beyond max_bytes": (tensor(storage(), (1 << 19,), (0,)), LimitError, "max_bytes"),
    "expanded to one of 2**60": (tensor(storage(), (1 << 60,), (0,)), LimitError, "is rejected as a decompression bomb"),
    "storage too small": (tensor(storage(count=7)), FormatError, "has 24 bytes, 7 of float32 take 28"),
    "storage too large": (tensor(storage(count=5), (1,), (1,)), FormatError, "has 24 bytes, 5 of float32 take 20"),
    "storage of another dtype": (tensor(storage(kind="torch.DoubleStorage")), FormatError, "has 24 bytes, 6 of float64 take 48"),
    "storage of -1": (tensor(storage(count=-1)), FormatError, "a string and a size"),
    "storage of 2**62": (tensor(storage(count=1 << 62)), FormatError, "has 24 bytes"),
    "storage that is not there": (tensor(storage("1")), FormatError, "has no member 'data/1'"),
    "storage by a path": (tensor(storage("../../etc/passwd")), FormatError, "has no member"),
    "storage of a class that is none": (tensor(storage(kind="os.system")), FormatError, "which is not a torch storage class"),
    "storage in two ways": (
        dict_({"a": GOOD, "b": tensor(storage("0", 3, "torch.DoubleStorage"), (3,), (1,))}),
        FormatError,
        "is described in two ways",
    ),
    "bool of 2": (tensor(storage("0", 24, "torch.BoolStorage"), (24,), (1,)), FormatError, "bool elements other than 0 and 1"),
    "dtype that is none": (
        call("torch._utils._rebuild_tensor_v3", storage(), b"K\0", sizes(1), sizes(1), b"\x89", b"}", named("torch.system")),
        UnsupportedError,
        "of dtype 'torch.system'",
    ),
}


@pytest.mark.parametrize("case", TENSORS)
def test_tensors_that_do_not_fit(case: str) -> None:
    value, error, said = TENSORS[case]
    with allocations() as measured, pytest.raises(error, match=said):
        load_weights(zipped(dict_({"x": value}) if not value.startswith(b"}") else value), max_bytes=1 << 20)
    assert measured.peak < 4 << 20


LEGACY: dict[str, tuple[bytes, str]] = {
    "a storage not listed": (legacy(GOOD_VIEW := tensor(storage(view=NONE)), {}), "0 storages are listed, 1 are referred to"),
    "a storage not referred to": (legacy(NONE), "1 storages are listed, 0 are referred to"),
    "listed twice": (legacy(GOOD_VIEW, keys=b"](" + text("0") * 2 + b"e"), "expected a list of different strings"),
    "listed in a tuple": (legacy(GOOD_VIEW, keys=text("0") + b"\x85"), "expected a list of different strings"),
    "list of numbers": (legacy(GOOD_VIEW, keys=b"](K\0e"), "expected a list of different strings"),
    "another number of elements": (legacy(GOOD_VIEW, {"0": (5, FLOATS)}), "has 5 elements, the pickle says 6"),
    "-1 elements": (legacy(GOOD_VIEW, {"0": (-1, FLOATS)}), "has -1 elements, the pickle says 6"),
    "too few bytes": (legacy(GOOD_VIEW, {"0": (6, FLOATS[1:])}), "takes 24 bytes, 23 are there: truncated"),
    "no number": (legacy(GOOD_VIEW)[: -len(FLOATS) - 1], "is beyond the end: truncated"),
    "bytes after": (legacy(GOOD_VIEW) + b"x", "1 bytes follow the last storage"),
    "a reference without view": (legacy(GOOD), "expected a storage"),
    "another magic number": (legacy(GOOD_VIEW).replace(b"\x19.", b"\x19I", 1), "finds nothing|opcode INT|unknown opcode"),
}


@pytest.mark.parametrize("case", LEGACY)
def test_legacy_streams_that_do_not_fit(case: str) -> None:
    content, said = LEGACY[case]
    with pytest.raises(Error, match=said):
        load_weights(content)


def test_another_version_of_the_legacy_format() -> None:
    with pytest.raises(UnsupportedError, match="is of legacy version 1002, only 1001 is supported"):
        load_weights(legacy(GOOD_VIEW).replace(struct.pack("<H", 1001), struct.pack("<H", 1002), 1))


def test_archives_with_more_or_less_than_one_object() -> None:
    pickled = b"\x80\x02" + dict_({"a": GOOD}) + b"."
    with pytest.raises(FormatError, match=r"has two objects: 'x/data.pkl', 'y/data.pkl'"):
        load_weights(archive(Entry("x/data.pkl", pickled), Entry("y/data.pkl", pickled), Entry("x/data/0", FLOATS)))
    with pytest.raises(FormatError, match=r"1 bytes follow the pickle in data.pkl"):
        load_weights(archive(Entry("x/data.pkl", pickled + b"N"), Entry("x/data/0", FLOATS)))
    with pytest.raises(FormatError, match="has no member 'data/0'"):
        load_weights(archive(Entry("x/data.pkl", pickled), Entry("y/data/0", FLOATS)))


def test_self_reference_does_not_loop() -> None:
    for value in (
        b"}\x94(" + text("me") + b"h\0" + text("a") + GOOD + b"u",
        b"]\x94(h\0" + GOOD + b"e",
        b"}(" + text("x") + named("mine.Net") + b")\x81\x94}" + text("me") + b"h\0sb" + text("a") + GOOD + b"u",
    ):
        assert len(load_weights(zipped(value))) == 1


def doubled(levels: int, start: bytes, value: bytes, wrap: bytes) -> bytes:
    """A container in a container in ..., each twice in the next: 2**levels places at the bottom."""
    made = value + b"q\1"
    for i in range(levels):
        made += (
            start + b"(" + text("a") + b"h" + bytes([i + 1]) + text("b") + b"h" + bytes([i + 1]) + wrap + b"q" + bytes([i + 2])
        )
    return b"(" + made + b"t"


@pytest.mark.parametrize("start", [b"}", b"]"], ids=["dicts", "lists"])
@pytest.mark.parametrize("value", [GOOD, NONE], ids=["tensors", "nothing"])
def test_containers_that_double(start: bytes, value: bytes) -> None:
    content = zipped(doubled(60, start, value, b"u" if start == b"}" else b"e"))
    load_weights(SMALL_ZIP)  # imports
    with allocations() as measured, pytest.raises(LimitError, match="are referenced too often: rejected as a decompression bomb"):
        load_weights(content)
    assert measured.peak < 4 << 20
    weights = load_weights(zipped(doubled(2, b"}", GOOD, b"u")))
    assert len(weights) == 1 + 2 + 4


def test_a_module_in_many_places_costs_its_size_each_time() -> None:
    state = {f"k{i}": NONE for i in range(2000)} | {"_parameters": b"}", "_buffers": b"}", "_modules": b"}"}
    value = named("mine.Net") + b")\x81" + dict_(state) + b"b" + b"q\1"
    with pytest.raises(LimitError, match="are referenced too often"):
        load_weights(zipped(b"](" + value + b"h\1" * 1000 + b"e"))


@pytest.mark.parametrize(
    "value",
    [
        b")" + b"\x85" * 20_000,
        b"]" * 20_000 + b"a" * 19_999,
        b"}N" * 20_000 + b"N" + b"s" * 20_000,
        named("a.b") + b"q\1)\x81" + b"h\1)\x81" * 20_000 + b"b" * 20_000,
    ],
    ids=["tuples", "lists", "dicts", "objects"],
)
def test_values_nested_deeply(value: bytes) -> None:
    for content in (zipped(value), legacy(value, {})):
        with pytest.raises(LimitError, match="values are nested more than 100 deep"):
            load_weights(content)
        with pytest.raises(LimitError, match="max_bytes=100000"):
            load_weights(content, max_bytes=100_000)
    with pytest.raises(FormatError, match="refers to"):
        load_weights(zipped(value + b"Q"))


def test_tensors_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    made = GOOD + b"0" + GOOD
    monkeypatch.setattr(records, "_MOST_TENSORS", 2)
    assert len(load_weights(zipped(made))) == 1
    with pytest.raises(LimitError, match="makes more than 2 tensors"):
        load_weights(zipped(GOOD + b"0" + made))


def test_long_names() -> None:
    with pytest.raises(LimitError, match="name is longer than 1000 characters"):
        load_weights(zipped(dict_({"a" * 1001: GOOD})))
    assert list(load_weights(zipped(dict_({"a" * 5000: NONE, "b": GOOD})))) == ["b"]
    key, many = text("a" * 900), b"h\1" + GOOD + b"s"
    value = key + b"q\1" + b"0" + b"](" + (b"}" + many) * 50 + b"e"
    assert len(load_weights(zipped(value))) == 50
    with pytest.raises(FormatError, match="lone surrogate"):
        load_weights(zipped(dict_({"a\ud800": GOOD})))


def test_too_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_MOST_STEPS", 5000)
    for value in (b"N0" * 3000 + NONE, text("x" * 400_000)):
        with pytest.raises(LimitError, match="takes more than 5000 steps"):
            load_weights(zipped(value))
    pairs = b"](" + b"NN\x86" * 100 + b"e" + b"q\1"
    copies = b"(" + pairs + (named("collections.OrderedDict") + b"h\1\x85R") * 100 + b"t"
    with pytest.raises(LimitError, match="takes more than 5000 steps"):
        load_weights(zipped(copies))


def test_views_that_overlap_are_held_against_the_size_of_the_file() -> None:
    held = {"0": bytes(1 << 20)}
    views = b"".join(tensor(storage(count=1 << 18), ((1 << 18) - 1 - i,), (1,), i) for i in range(1200))
    with (
        allocations() as measured,
        pytest.raises(LimitError, match=r"views that expand to .* is rejected as a decompression bomb"),
    ):
        load_weights(zipped(b"](" + views + b"e", held))
    assert measured.peak < 16 << 20


def test_a_pickle_or_a_storage_that_inflates_beyond_measure() -> None:
    size = 300 << 20
    squeezed = archive(Entry("a", bytes(1 << 20), True))
    assert len(squeezed) < 3000
    pickled = Entry("x/data.pkl", b"\x80\x02N.", True, size=size)
    with pytest.raises(LimitError, match="is rejected as a decompression bomb"):
        load_weights(archive(pickled))
    value = b"\x80\x02" + dict_({"a": tensor(storage(count=size // 4), (1,), (1,))}) + b"."
    with pytest.raises(LimitError, match="is rejected as a decompression bomb"):
        load_weights(archive(Entry("x/data.pkl", value), Entry("x/data/0", b"", True, size=size)))
    with pytest.raises(LimitError, match="max_bytes"):
        load_weights(archive(Entry("x/data.pkl", value), Entry("x/data/0", b"", True, size=size)), max_bytes=1 << 20)


@pytest.mark.parametrize("name", ["zip", "legacy", "legacy_module", "script"])
def test_pickles_cut_at_every_byte(name: str) -> None:
    content = (GOLDENS / f"torch_{name}.pt").read_bytes()
    start = content.find(b"\x80\x02", 1)
    end = content.find(b"PK\x07\x08", start) if name == "zip" else min(len(content), start + 1500)
    for at in range(start, end, 1 if end - start < 2000 else 3):
        if content[:2] == b"PK":
            check(archive(Entry("x/data.pkl", content[start:at]), Entry("x/data/0", FLOATS)))
        else:
            with pytest.raises(FormatError):
                load_weights(content[:at])


@QUIET
@given(st.sampled_from(["zip", "legacy", "module", "script", "protocol4"]), st.data())
def test_files_of_torch_with_bytes_changed(name: str, data: st.DataObject) -> None:
    content = bytearray((GOLDENS / f"torch_{name}.pt").read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    check(bytes(content))


PIECES = st.sampled_from(
    [
        GOOD,
        storage(),
        named("collections.OrderedDict"),
        named("torch._utils._rebuild_tensor_v2"),
        named("torch._utils._rebuild_parameter"),
        named("mine.Net"),
        call("numpy.core.multiarray._reconstruct", named("numpy.ndarray"), sizes(0), b"C\1b"),
        text("_parameters"),
        number(1 << 40),
        *(bytes([code]) for code in _STEPS if chr(code) not in "XTUBCcGJMKqrhj\x80\x8a\x8b\x8c\x8d\x8e\x95\x96"),
        *(b"h" + bytes([i]) for i in range(4)),
        *(b"q" + bytes([i]) for i in range(4)),
        b"K\1",
        b"J\xff\xff\xff\xff",
    ]
)


@QUIET
@given(st.lists(PIECES, max_size=40))
def test_any_opcodes(pieces: list[bytes]) -> None:
    check(zipped(b"".join(pieces)))
    check(legacy(b"".join(pieces)))


@QUIET
@given(st.binary(max_size=100))
def test_any_bytes_as_a_pickle(content: bytes) -> None:
    check(archive(Entry("x/data.pkl", content), Entry("x/data/0", FLOATS)))
    check(SMALL_LEGACY[:20] + content)
