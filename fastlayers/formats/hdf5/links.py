"""Contents of a group: links by name, from symbol tables (old files), link messages and fractal heaps (new ones)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._tuples import NamedTuple
from .heaps import fractal_objects, local_heap
from .raw import Cursor

if TYPE_CHECKING:
    from .raw import Raw

__all__ = ["Links", "link", "link_info", "symbol_table"]

DEEPEST = 32  # levels of a B-tree
MOST_LINKS = 200_000
_ENTRY = 40


class Links(NamedTuple):
    """The addresses of objects by name; names of links that are refused, with their kind."""

    objects: dict[str, int]
    refused: dict[str, str]

    def add(self, raw: Raw, name: str, at: int | None, kind: str = "") -> None:
        """One more link."""
        if not name or "/" in name or name == ".":
            raw.fail(f"a link has the name {name[:80]!r}")
        if name in self.objects or name in self.refused:
            raw.fail(f"two links of a group have the name {name[:80]!r}")
        if len(self.objects) >= MOST_LINKS:
            raw.fail(f"a group has more than {MOST_LINKS} links")
        if at is None:
            self.refused[name] = kind
        else:
            self.objects[name] = at


def symbol_table(raw: Raw, cursor: Cursor, links: Links) -> None:
    """Links of a group of the old kind: a B-tree of symbol nodes, whose names are in a local heap."""
    tree, heap_at = cursor.number(8), cursor.number(8)
    heap = local_heap(raw, heap_at)
    seen: set[int] = set()

    def names(at: int) -> str:
        # A name ends at its zero byte; names are short, so little is looked at.
        if at >= len(heap):
            raw.fail(f"a name is at {at} of a local heap of {len(heap)} bytes")
        text = bytes(heap[at : at + 4096]).split(b"\0", 1)[0]
        try:
            return text.decode()
        except UnicodeDecodeError:
            raw.fail(f"the name {text[:80]!r} is not UTF-8")

    def node(at: int, level: int | None) -> None:
        if at in seen:
            raw.fail("a B-tree has a node that is its own parent, or another's too")
        seen.add(at)
        head = raw.block(at, b"TREE", 24, "a B-tree")
        kind, own, used = head.number(1), head.number(1), head.number(2)
        if kind != 0 or own > DEEPEST or (level is not None and own != level):
            raw.fail(f"a B-tree's node of type {kind} and level {own} is where groups' links should be")
        keys = raw.cursor(at + 24, 16 * used, "a B-tree")
        for _ in range(used):
            keys.skip(8)
            child = keys.number(8)
            if own:
                node(child, own - 1)
            else:
                leaf(child)

    def leaf(at: int) -> None:
        if at in seen:
            raw.fail("a symbol node belongs to a group twice")
        seen.add(at)
        head = raw.block(at, b"SNOD", 8, "a symbol node")
        head.skip(2)
        entries = raw.cursor(at + 8, _ENTRY * head.number(2), "a symbol node")
        while entries.left:
            name, target, cached = names(entries.number(8)), entries.number(8), entries.number(4)
            entries.skip(20)
            links.add(raw, name, None if cached == 2 else target, "SoftLink")

    node(tree, None)


def link(raw: Raw, cursor: Cursor, links: Links) -> None:
    """One link message."""
    version, flags = cursor.number(1), cursor.number(1)
    if version != 1:
        raw.refuse(f"a link message of version {version}")
    kind = cursor.number(1) if flags & 8 else 0
    cursor.skip(8 if flags & 4 else 0)
    cursor.skip(1 if flags & 16 else 0)
    name = cursor.text(cursor.number(1 << (flags & 3)))
    if kind == 0:
        links.add(raw, name, cursor.number(8))
    else:
        links.add(raw, name, None, {1: "SoftLink", 64: "ExternalLink"}.get(kind, f"link of type {kind}"))


def link_info(raw: Raw, cursor: Cursor, links: Links) -> None:
    """Links that are in a fractal heap, if there are such."""
    if cursor.number(1) != 0:
        raw.fail("a message about links is of an unknown version")
    cursor.skip(8 if cursor.number(1) & 1 else 0)
    for message in fractal_objects(raw, cursor.number(8), cursor.number(8), 4):
        link(raw, Cursor(message, raw, "a link"), links)
