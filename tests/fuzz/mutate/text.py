"""Changes of JSON and of other short texts of values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from random import Random
from typing import Any

from . import blocks

__all__ = ["Pairs", "changed", "dump", "parse", "tokens"]

_quoted = json.encoder.encode_basestring_ascii  # json.dumps takes ten times as long
_TOKENS = re.compile(
    rb'"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|True|False|None|[\[\]{}(),:]|\'[^\']*\''
)
_JSON = (
    b"0", b"1", b"-1", b"2", b"1e999", b"-1e999", b"1.5", b"NaN", b"-Infinity", b"9" * 30, b"-0", b"true", b"false", b"null",
    b'""', b'"x"',
    b'"\\ud800"', b'"\\u0000"', b'"' + b"y" * 300 + b'"', b"[]", b"{}", b"[[]]", b"[0]", b'{"":0}', b"[" * 60 + b"]" * 60,
    b"2147483648",
    b"4294967296", b"9223372036854775807", b"18446744073709551616", b"1e3", b"[null]", b'{"x":null}', b"[1,2,3]", b"9" * 4400,
)  # fmt: skip
_VALUES = (
    *_JSON, b"00", b"0x10", b"True", b"None", b'"\xff"', b"()", b"(1,)", b"[" * 3000, b"(" * 150 + b")" * 150, b"{" * 200,
    b"1_0", b"1+1", b"'f4'",
    b"'O'", b"'|V8'", b"'>f8'", b"'<M8[ns]'", b"\\", b'"', b"'", b"\n", b"#", b"",
)  # fmt: skip
_WORDS = (
    "",
    "x",
    "a\0b",
    "..",
    "../../etc/passwd",
    "/dev/zero",
    "\ud800",
    "é" * 40,
    "name",
    "float32",
    "int64",
    "linear",
    "valid",
)


class Pairs(list[Any]):
    """A JSON object, as a list of pairs: a name may be there twice."""


class Raw(str):
    """A text that is written as it is."""


def parse(text: bytes) -> Any:
    """JSON with objects as Pairs. Raises ValueError or RecursionError."""
    return json.loads(text, object_pairs_hook=Pairs)


def dump(value: Any) -> str:
    """The JSON of what `parse` gives."""
    if isinstance(value, Pairs):
        return "{" + ",".join(f"{dump(k)}:{dump(v)}" for k, v in value) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(dump, value)) + "]"
    if isinstance(value, str):
        return value if isinstance(value, Raw) else _quoted(value)
    return repr(value) if type(value) is int else json.dumps(value)


def tokens(rng: Random, text: bytes, other: bytes = b"") -> bytes:
    """Some token of the text is another one, left out or doubled, without regard to what that means."""
    found = [m.span() for m in _TOKENS.finditer(text)]
    if not found:
        return blocks.mutate(rng, text, other)
    a, b = rng.choice(found)
    kind = rng.random()
    if kind < 0.5:
        return text[:a] + rng.choice(_VALUES) + text[b:]
    if kind < 0.75:
        c, d = rng.choice(found)
        return text[:a] + text[c:d] + text[b:]
    if kind < 0.85:
        return text[:a] + text[b:]
    return text[:b] + text[a:b] * rng.randint(1, 3) + text[b:]


Inner = Callable[[Random, str], str | None]


def changed(rng: Random, text: bytes, words: tuple[str, ...] = (), inner: Inner | None = None) -> bytes:
    """JSON with a value or a name changed somewhere. `inner` may know what to do with a string that was met."""
    if rng.random() < 0.06:
        return tokens(rng, text)
    try:
        tree = parse(text)
    except (ValueError, RecursionError):
        return tokens(rng, text)
    holder: list[Any] = [tree]
    for _ in range(1 if rng.random() < 0.8 else 3):
        _change(rng, holder, words, inner)
    try:
        return dump(holder[0]).encode("utf-8", "surrogatepass")
    except RecursionError:
        return text


def _change(rng: Random, holder: list[Any], words: tuple[str, ...], inner: Inner | None) -> None:
    """Goes down from `holder` by chance and changes what it meets at the end."""
    places = list(_places(holder))
    where, key, part = rng.choice(places)
    value = where[key] if part is None else where[key][part]
    new: Any
    if part == 0:
        kind = rng.random()
        names = [p[0] for p in where] if isinstance(where, Pairs) else []
        if kind < 0.3:
            del where[key]
            return
        if kind < 0.6:
            where.insert(rng.randint(0, len(where)), (value, Raw(dump(rng.choice(where)[1]))))
            return
        new = rng.choice((*names, *_WORDS, *words))
        where[key] = (new, where[key][1])
        return
    new = inner(rng, value) if inner is not None and isinstance(value, str) and rng.random() < 0.9 else None
    if new is None:
        new = _value(rng, value, places, words)
    if isinstance(where, Pairs):
        where[key] = (where[key][0], new)
    else:
        where[key] = new


def _places(holder: list[Any]) -> list[tuple[Any, int, int | None]]:
    """Every value (and every name) in it: what holds it, where, and whether it is the name (0) or the value (1) of a pair."""
    found: list[tuple[Any, int, int | None]] = []
    stack: list[Any] = [holder]
    while stack:
        here = stack.pop()
        pairs = isinstance(here, Pairs)
        for i, item in enumerate(here):
            if pairs:
                found += ((here, i, 0), (here, i, 1))
                item = item[1]
            else:
                found.append((here, i, None))
            if isinstance(item, list):
                stack.append(item)
    return found


def _value(rng: Random, value: Any, places: list[tuple[Any, int, int | None]], words: tuple[str, ...]) -> Any:
    kind = rng.random()
    if kind < 0.2:
        return Raw(rng.choice(_JSON if rng.random() < 0.95 else _VALUES).decode("latin-1"))
    if kind < 0.45:
        where, key, part = rng.choice(places)
        return Raw(dump(where[key] if part is None else where[key][part]))  # a copy: nothing may hold itself
    if isinstance(value, bool) or value is None:
        return rng.choice((True, False, None, 0, 1, "x", [], 1.5))
    if isinstance(value, (int, float)):
        return rng.choice(
            (
                -1,
                0,
                1,
                blocks.number(rng),
                -blocks.number(rng),
                value + 1,
                value - 1,
                -value,
                2 * value,
                float("nan"),
                0.5,
                True,
                None,
                "3",
            )
        )
    if isinstance(value, str):
        return rng.choice((*words, *_WORDS, value + "x", value[:-1], value * 2, [value], None, 3))
    if not value:
        return rng.choice((0, None, [[]], Pairs([("x", 1)]), "x"))
    new = type(value)(value)
    i = rng.randrange(len(new))
    if kind < 0.6:
        del new[i]
    elif kind < 0.7:
        new.insert(rng.randint(0, len(new)), new[i])
    elif kind < 0.8:
        new.append(new.pop(i))
    elif kind < 0.85:
        new = type(value)(new * rng.choice((2, 2, 2, 40, 300)) if len(new) < 5 else new[:i])
    elif kind < 0.95:
        return [value]
    else:
        for _ in range(rng.choice((3, 70, 400))):
            new = [new] if type(value) is list else Pairs([(value[0][0], new)])
    return new
