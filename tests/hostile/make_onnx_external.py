"""ONNX models whose tensors are in other files: what locations, offsets, lengths, keys and files may be about.

Each attack of CVE-2022-25882, CVE-2024-27318 (``a/../../b``), CVE-2024-27319, CVE-2026-27489 (links) and CVE-2026-34445 (keys
that are names of attributes) is here.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from fastlayers.errors import FormatError, LimitError, UnsupportedError

from ..formats import onnx_build as ob
from ..formats.onnx_build import external, field
from .cases import Case, Refusal, Sweep, network, weights

DATA = bytes(32)  # eight zeros
HUGE = 1 << 40


def model(*tensors: bytes) -> bytes:
    """A network that adds its initializer w to its input."""
    graph = ob.graph([ob.node("Add", "x w", "y")], [ob.value_info("x", (8,))], [ob.value_info("y", (8,))], tensors)
    return ob.model(graph)


def pairs(*entries: tuple[str, str | bytes], dims: tuple[int, ...] = (8,), more: bytes = b"", type_: int = 1) -> bytes:
    """The tensor w with these entries, in this order."""
    told = [field(13, field(1, key) + field(2, value)) for key, value in entries]
    return ob.tensor_raw(dims, type_, *told, field(14, 1), more, name="w")


def folder(*tensors: bytes, prepare: Callable[[Path], object] | None = None, name: str = "data.bin") -> Callable[[Path], Path]:
    """Writes the model; `prepare` gets the folder in which it is, else there is a file of data."""

    def make(where: Path) -> Path:
        if prepare is None:
            (where / name).parent.mkdir(parents=True, exist_ok=True)
            (where / name).write_bytes(DATA)
        else:
            prepare(where)
        path = where / "model.onnx"
        path.write_bytes(model(*tensors))
        return path

    return make


def located(where: str, **more: str | int) -> bytes:
    return external((8,), "w", location=where, **more)


def case(name: str, make: Callable[[Path], Path], match: str, error: Refusal = FormatError) -> Case:
    return Case("onnx", f"external data: {name}", make, error, match, network)


def twin(name: str, make: Callable[[Path], Path]) -> Case:
    return Case("onnx", f"external data: {name}", make, read=network, valid=True)


# ---- where ----

LOCATIONS: dict[str, str] = {
    "../secret": "leads upwards",
    "a/../../secret": "leads upwards",
    "a/../data.bin": "leads upwards",
    "./../secret": "leads upwards",
    "..": "leads upwards",
    "../../../../../../../../etc/passwd": "leads upwards",
    "/etc/passwd": "is absolute",
    "/proc/self/mem": "is absolute",
    "/proc/self/environ": "is absolute",
    "/dev/zero": "is absolute",
    "/": "is absolute",
    "//server/share/data": "is absolute",
    "\\\\server\\share\\data": "has a backslash or a null",
    "C:\\data.bin": "has a backslash or a null",
    "..\\secret": "has a backslash or a null",
    "a\\..\\..\\secret": "has a backslash or a null",
    "data.bin\0.txt": "has a backslash or a null",
    "": "is empty",
    ".": "names no file",
    "./": "names no file",
    "data.bin/": "names no file",
    "a/" * 100 + "b": "has 101 parts",
    "n" * 100_000: "cannot be opened: File name too long",
    "C:data.bin": "cannot be opened",
    "C:/data.bin": "cannot be opened",
    "file:///etc/passwd": "cannot be opened",
    "https://example.com/data.bin": "cannot be opened",
    "~/secret": "cannot be opened",
    "$HOME/secret": "cannot be opened",
    "%2e%2e/secret": "cannot be opened",
    "\uff0e\uff0e/secret": "cannot be opened",
    "*": "cannot be opened",
    "| touch owned": "cannot be opened",
    "data.bin ": "cannot be opened",
    "nowhere": "cannot be opened: No such file",
    "data.bin/below": "cannot be opened",
    "model.onnx/below": "cannot be opened",
}


def secret(where: Path) -> None:
    (where.parent / "secret").write_bytes(DATA)
    (where / "data.bin").write_bytes(DATA)
    (where / "a").mkdir()


def link(target: str, name: str = "link") -> Callable[[Path], None]:
    def prepare(where: Path) -> None:
        secret(where)
        (where / "a" / "data.bin").write_bytes(DATA)
        (where / name).symlink_to(target)

    return prepare


def ring(where: Path) -> None:
    (where / "one").symlink_to("two")
    (where / "two").symlink_to("one")


def hard_link(where: Path) -> None:
    secret(where)
    os.link(where.parent / "secret", where / "hard")


def sparse_file(where: Path) -> None:
    with (where / "data.bin").open("wb") as file:
        file.truncate(HUGE)


CASES: list[Case | Sweep] = [
    *(case(f"at {name[:40]!r}", folder(located(name), prepare=secret), match) for name, match in LOCATIONS.items()),
    case("at no place", folder(external((8,), "w", offset=0)), "is empty"),
    case("at bytes that are no text", folder(pairs(("location", b"\xff\xfe"))), "is not UTF-8"),
    twin("at a name of dots", folder(located("..data"), name="..data")),
    twin("in a folder below", folder(located("./a//b/data.bin"), name="a/b/data.bin")),
    twin("under a name with every sign", folder(located("%2e%2e $HOME ~|*"), name="%2e%2e $HOME ~|*")),
    # ---- what is there
    case("after a link out", folder(located("link"), prepare=link("../secret")), "after the symbolic link 'link'"),
    case("after a link that stays", folder(located("link"), prepare=link("data.bin")), "after the symbolic link 'link'"),
    case("after a link to /proc", folder(located("link"), prepare=link("/proc/self/mem")), "after the symbolic link"),
    case("after a link to nothing", folder(located("link"), prepare=link("nowhere")), "after the symbolic link"),
    case("after a ring of links", folder(located("one"), prepare=ring), "after the symbolic link"),
    case("in a linked folder", folder(located("link/secret"), prepare=link("..")), "after the symbolic link 'link'"),
    case("in a linked folder that stays", folder(located("link/data.bin"), prepare=link("a")), "after the symbolic link"),
    case(
        "in a linked folder further down", folder(located("a/link/secret"), prepare=link("..", "a/link")), "after the symbolic",
    ),
    case("a hard link", folder(located("hard"), prepare=hard_link), "is a hard link (2 names)"),
    case("a FIFO", folder(located("fifo"), prepare=lambda where: os.mkfifo(where / "fifo")), "is no regular file"),
    case("a folder", folder(located("a"), prepare=secret), "is no regular file"),
    case("a link to a device", folder(located("link"), prepare=link("/dev/zero")), "after the symbolic link"),
    case("an empty file", folder(located("data.bin"), prepare=lambda w: (w / "data.bin").touch()), "ends beyond the 0 bytes"),
    twin("eight values of a terabyte", folder(located("data.bin"), prepare=sparse_file)),
    Case(
        "onnx", "external data: a terabyte to be read", folder(located("data.bin"), prepare=sparse_file), LimitError, "max_bytes",
        lambda path: weights(path, mmap=False),
    ),
    twin("the model itself", folder(located("model.onnx", offset=0))),
    # ---- which part of it
    *(
        case(f"offset {offset[:24]!r}", folder(located("data.bin", offset=offset)), match)
        for offset, match in {
            "-1": "the offset '-1'", "-9223372036854775808": "the offset", "1": "ends beyond the 32 bytes",
            "33": "ends beyond the 32 bytes", "9223372036854775807": "ends beyond", "18446744073709551615": "the offset",
            "18446744073709551616": "the offset", "1e1": "the offset '1e1'", "0x10": "the offset", "1_0": "the offset",
            " 0": "the offset", "+0": "the offset", "\u0660": "the offset", "nan": "the offset", "9" * 100_000: "the offset",
        }.items()
    ),
    *(
        case(f"length {length[:24]!r}", folder(located("data.bin", length=length)), match)
        for length, match in {
            "0": "has the length 0", "31": "has the length 31, the tensor takes 32", "33": "has the length 33",
            "-32": "the length",
            "4096": "has the length 4096", "9223372036854775807": "has the length", "32.0": "the length",
            "9" * 100_000: "the length",
        }.items()
    ),
    case("more than the file has", folder(external((9,), "w", location="data.bin")), "0 to 36 ends beyond the 32 bytes"),
    case("a shape of 2**62 elements", folder(external((1 << 62,), "w", location="data.bin")), "w"),
    case("a shape whose size overflows", folder(external((1 << 32, 1 << 32), "w", location="data.bin", length=0)), "w"),
    case("a negative shape", folder(external((-8,), "w", location="data.bin")), "expected sizes from 0 up"),
    twin("offset and length", folder(located("data.bin", offset=0, length=32))),
    twin("offset and length of nothing said", folder(located("data.bin", offset="", length=""))),
    # ---- what else the entries say
    *(
        twin(f"the unknown key {key[:20]!r}", folder(pairs(("location", "data.bin"), (key, value))))
        for key, value in {
            "__class__": "os.system", "__dict__": "{}", "__init__": "x", "__setattr__": "x", "raw_data": "secret",
            "data_type": "8", "dims": "99999999999", "_view": "x", "location ": "../secret", "Location": "../secret",
            "basepath": "/etc", "checksum": "0" * 40, "length\0": "-1", "": "", "k" * 10_000: "v" * 10_000,
        }.items()
    ),
    case("the location twice", folder(pairs(("location", "data.bin"), ("location", "../secret"))), "gives 'location' twice"),
    case("the offset twice", folder(pairs(("location", "data.bin"), ("offset", "0"), ("offset", "0"))), "gives 'offset' twice"),
    case("a key twice", folder(pairs(("location", "data.bin"), ("a", "0"), ("a", "0"))), "gives 'a' twice"),
    case("and raw_data", folder(pairs(("location", "data.bin"), more=field(9, DATA))), "in the model and in an external file"),
    case("and float_data", folder(pairs(("location", "data.bin"), more=field(4, DATA))), "in the model and in an external file"),
    case("of text", folder(pairs(("location", "data.bin"), type_=8)), "STRING elements are in raw_data"),
    case(
        "without the flag", folder(ob.tensor_raw((8,), 1, field(13, ob.entry("location", "data.bin")), name="w")), "are nowhere",
    ),
    case(
        "a hundred thousand entries", folder(pairs(("location", "data.bin"), *((f"{i:x}", "") for i in range(100_000)))),
        "more than 32 entries",
    ),
    twin(
        "one file for many tensors",
        folder(located("data.bin"), *(external((8,), f"v{i}", location="./" * i + "data.bin") for i in range(20))),
    ),
    Case(
        "onnx", "external data: of a Constant in a branch",
        lambda where: _written(where,
        ob.model(ob.graph([ob.node("Constant", "", "y", value=ob.Tensor(located("../secret")))], "", "y"))),
        FormatError, "leads upwards",
    ),
    # ---- without a folder: nothing is opened
    Case(
        "onnx", "external data: from memory", lambda where: model(located("data.bin")), (UnsupportedError, FormatError),
        "'data.bin'", weights,
    ),
    Case(
        "onnx", "external data: /etc/passwd from memory", lambda where: model(located("/etc/passwd")), FormatError,
        "is absolute", weights,
    ),
]  # fmt: skip


def _written(where: Path, content: bytes) -> Path:
    (where / "model.onnx").write_bytes(content)
    return where / "model.onnx"
