"""zip archives: a member changed and the archive written again, its CRCs, sizes and directory right, or one of them a are."""

from __future__ import annotations

import functools
import io
import struct
import zipfile
import zlib
from collections.abc import Callable
from random import Random
from typing import Any

from tests.formats.build import Entry, archive

from . import blocks

__all__ = ["members", "mutator", "written"]

Mutator = Callable[[Random, bytes, bytes], bytes]
_NAMES = (
    "a.npy",
    "x/data.pkl",
    "x/data/0",
    "x/version",
    "config.json",
    "model.weights.h5",
    "metadata.json",
    "",
    "/",
    "../x",
    "x\0y",
    "é.npy",
    "a" * 300,
)
_LIES: tuple[Callable[[Random, Entry], dict[str, Any]], ...] = (
    lambda r, e: {"crc": blocks.number(r, 4)},
    lambda r, e: {"size": blocks.number(r, 4)},
    lambda r, e: {"stored": blocks.number(r, 4)},
    lambda r, e: {"size": len(e.content) + r.randint(-9, 9) & 0xFFFFFFFF},
    lambda r, e: {"method": r.choice((0, 8, 9, 12, 14, 93, 99))},
    lambda r, e: {"flags": r.getrandbits(16)},
    lambda r, e: {"local_name": r.choice(_NAMES)},
    lambda r, e: {"shift": r.randint(-200, 200)},
    lambda r, e: {"raw": blocks.mutate(r, _deflated(e.content), b"")},
    lambda r, e: {"extra": blocks.mutate(r, b"\1\0\x10\0" + bytes(16), b"")[:60]},
    lambda r, e: {"size": 0xFFFFFFFF, "stored": 0xFFFFFFFF, "extra": b"\1\0\x10\0" + r.choice((len(e.content),
    blocks.number(r))).to_bytes(8, "little") * 2},
)  # fmt: skip


def _deflated(content: bytes) -> bytes:
    packer = zlib.compressobj(9, wbits=-15)
    return packer.compress(content) + packer.flush()


@functools.lru_cache(maxsize=512)
def members(content: bytes) -> tuple[Entry, ...]:
    """The members of an archive, nothing if it is broken."""
    if not content.startswith(b"PK"):
        return ()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as file:
            if sum(i.file_size for i in file.infolist()) > 1 << 22:
                return ()
            return tuple(Entry(i.filename, file.read(i), i.compress_type == zipfile.ZIP_DEFLATED) for i in file.infolist())
    except Exception:  # zipfile raises all kinds of errors
        return ()


def written(rng: Random, entries: list[Entry]) -> bytes:
    """The archive; one time out of five something of it is a are."""
    more: dict[str, Any] = {}
    if entries and rng.random() < 0.2:
        i = rng.randrange(len(entries))
        entries[i] = entries[i]._replace(**rng.choice(_LIES)(rng, entries[i]))
    if rng.random() < 0.05:
        more = rng.choice(
            ({"prefix": b"x"}, {"comment": b"PK\5\6" * 9}, {"count": rng.randint(0, 99)}, {"gap": bytes(9)}, {"end64": True})
        )
    try:
        return archive(*entries, **more)
    except (ValueError, OverflowError, struct.error):  # a are that does not fit its field
        pass
    return archive(*(Entry(e.name[:1000].replace("\ud800", "?"), e.content, e.deflated) for e in entries[:1000]))


def mutator(of: Callable[[str], Mutator]) -> Mutator:
    """A mutator of archives; `of` says by what a member of this name is changed."""

    def mutate(rng: Random, content: bytes, other: bytes) -> bytes:
        entries = list(members(content))
        if not entries or rng.random() < 0.08:
            return blocks.mutate(rng, content, other)
        kind = rng.random()
        i = rng.randrange(len(entries))
        if kind < 0.8:
            others = members(other)
            like = next((o.content for o in others if o.name[-4:] == entries[i].name[-4:]), others[0].content if others else b"")
            entries[i] = entries[i]._replace(content=of(entries[i].name)(rng, entries[i].content, like))
        elif kind < 0.84:
            entries[i] = entries[i]._replace(name=rng.choice((*_NAMES, rng.choice(entries).name)))
        elif kind < 0.88:
            entries.insert(i, rng.choice(entries))
        elif kind < 0.91:
            del entries[i]
        elif kind < 0.94:
            j = rng.randrange(len(entries))
            entries[i], entries[j] = (
                entries[i]._replace(content=entries[j].content),
                entries[j]._replace(content=entries[i].content),
            )
        elif kind < 0.96:
            rng.shuffle(entries)
        else:
            entries[i] = entries[i]._replace(deflated=not entries[i].deflated)
        return written(rng, entries)

    return mutate
