"""Small files of torch's, well made and badly made, put together opcode by opcode."""

from __future__ import annotations

import struct

from .build import Entry, archive

MAGIC = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."
NONE, MARK, STOP = b"N", b"(", b"."


def text(value: str) -> bytes:
    """A string."""
    raw = value.encode("utf-8", "surrogatepass")
    return b"X" + struct.pack("<I", len(raw)) + raw


def number(value: int) -> bytes:
    """An integer, of up to 255 bytes."""
    raw = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(raw)]) + raw


def tuple_(*items: bytes) -> bytes:
    """A tuple of these."""
    return MARK + b"".join(items) + b"t"


def sizes(*values: int) -> bytes:
    """A tuple of integers."""
    return tuple_(*map(number, values))


def dict_(items: dict[str, bytes]) -> bytes:
    """A dict with these values."""
    return b"}" + MARK + b"".join(text(key) + value for key, value in items.items()) + b"u"


def named(name: str) -> bytes:
    """A global."""
    module, _, last = name.rpartition(".")
    return f"c{module}\n{last}\n".encode()


def call(name: str, *args: bytes) -> bytes:
    """A call of a global."""
    return named(name) + tuple_(*args) + b"R"


def storage(key: str = "0", count: int = 6, kind: str = "torch.FloatStorage", view: bytes | None = None) -> bytes:
    """A reference to a storage; the legacy format has one value more, `view`."""
    rest = () if view is None else (view,)
    return tuple_(text("storage"), named(kind), text(key), text("cpu"), number(count), *rest) + b"Q"


def tensor(held: bytes, shape: tuple[int, ...] = (2, 3), strides: tuple[int, ...] = (3, 1), offset: int = 0) -> bytes:
    """A tensor over the storage."""
    arguments = (held, number(offset), sizes(*shape), sizes(*strides), b"\x89", call("collections.OrderedDict"))
    return call("torch._utils._rebuild_tensor_v2", *arguments)


FLOATS = struct.pack("<6f", *range(6))


def zipped(value: bytes, storages: dict[str, bytes] | None = None, *more: Entry, deflated: bool = False) -> bytes:
    """A zip file whose data.pkl makes `value`."""
    held = {"0": FLOATS} if storages is None else storages
    parts = [Entry(f"x/data/{key}", content, deflated) for key, content in held.items()]
    return archive(Entry("x/data.pkl", b"\x80\x02" + value + STOP, deflated), *parts, *more)


def legacy(value: bytes, storages: dict[str, tuple[int, bytes]] | None = None, keys: bytes | None = None) -> bytes:
    """A file of the legacy format; `storages` are the counts and contents after the pickles."""
    held = {"0": (6, FLOATS)} if storages is None else storages
    listed = b"]" + MARK + b"".join(text(key) for key in held) + b"e" if keys is None else keys
    pickles = (number(1001), dict_({"little_endian": b"\x88"}), value, listed)
    head = MAGIC + b"".join(b"\x80\x02" + pickle + STOP for pickle in pickles)
    return head + b"".join(struct.pack("<q", count) + content for count, content in held.values())


SMALL_ZIP = zipped(dict_({"a": tensor(storage())}))
SMALL_LEGACY = legacy(dict_({"a": tensor(storage(view=NONE))}))
