"""Long lists of attributes, which are read many items at once, next to the same lists read field by field."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.formats.onnx import parse

from ..test_dispatch import python
from . import onnx_build as ob
from .classical.test_goldens import NAMES

RNG = random.Random(3)
INTS = [RNG.choice([RNG.randrange(100), -RNG.randrange(1 << 62), RNG.randrange(1 << 63), 0, -1, -(1 << 63)]) for _ in range(900)]
FLOATS = [RNG.uniform(-9, 9) for _ in range(700)] + [float("inf"), -0.0, 1e-45]
TEXTS = [RNG.choice(["LEAF", "BRANCH_LEQ", "", "é" * 9, "x" * 127, "y" * 128, "z" * 400]) for _ in range(900)]
BYTES = [RNG.choice([b"LEAF", b"\xff\xfe", "ü".encode()]) for _ in range(300)]
NUMBERS = {6: FLOATS, 7: INTS, 8: TEXTS}  # by AttributeProto's types
FIELDS = {6: 7, 7: 8, 8: 9}
BETWEEN = {
    "doc_string": ob.field(13, "told"), "unknown": ob.field(99, 5), "long tag": b"\xc0\x00\x05",
    "long tag of a string": b"\xca\x00\x01a", "packed": ob.packed(8, range(300)), "another value": ob.field(3, 1),
    "half an int": b"\x40", "half a string": b"\x4a",
}  # fmt: skip


def attribute_of(content: bytes, type_: int) -> bytes:
    return ob.model(ob.graph([ob.node("Relu", "x", "y", ob.attribute_raw("long", type_, content))], "x", "y"))


def value_of(file: bytes) -> Any:
    try:
        return ob.read(file).graph.nodes[0].attributes["long"]
    except fl.FormatError as error:
        return type(error)


def both(monkeypatch: pytest.MonkeyPatch, file: bytes) -> tuple[Any, Any]:
    """What is read many at once, and field by field."""
    fast = value_of(file)
    with monkeypatch.context() as patch:
        patch.setattr(parse, "_ITEMS", ())
        return fast, value_of(file)


def same(a: Any, b: Any) -> bool:
    return a == b and (not isinstance(a, tuple) or [*map(type, a)] == [*map(type, b)])


@pytest.mark.parametrize("type_", FIELDS)
@pytest.mark.parametrize("count", [63, 64, 65, 66, 700])
def test_long_lists(monkeypatch: pytest.MonkeyPatch, type_: int, count: int) -> None:
    values = NUMBERS[type_][:count]
    fast, slow = both(monkeypatch, attribute_of(ob.repeated(FIELDS[type_], values), type_))
    assert same(fast, slow)
    assert fast == (tuple(np.float32(values).tolist()) if type_ == 6 else tuple(values))


@pytest.mark.parametrize("type_", FIELDS)
def test_lists_longer_than_a_block(monkeypatch: pytest.MonkeyPatch, type_: int) -> None:
    values = NUMBERS[type_] * 40
    fast, slow = both(monkeypatch, attribute_of(ob.repeated(FIELDS[type_], values), type_))
    assert len(fast) == len(values) and same(fast, slow)


def test_strings_that_are_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    fast, slow = both(monkeypatch, attribute_of(ob.repeated(9, BYTES), 8))
    assert b"\xff\xfe" in fast and same(fast, slow)


@pytest.mark.parametrize("type_", FIELDS)
@pytest.mark.parametrize("between", BETWEEN)
def test_lists_that_something_interrupts(monkeypatch: pytest.MonkeyPatch, type_: int, between: str) -> None:
    items = ob.repeated(FIELDS[type_], NUMBERS[type_][:200])
    other = BETWEEN[between]
    for place in (other + items, items + other + items, items + other):
        fast, slow = both(monkeypatch, attribute_of(place, type_))
        assert same(fast, slow)


@pytest.mark.parametrize("type_", FIELDS)
def test_damaged_lists_are_read_alike_or_refused_alike(monkeypatch: pytest.MonkeyPatch, type_: int) -> None:
    content = ob.repeated(FIELDS[type_], NUMBERS[type_][:150])
    refused = 0
    for seed in range(150):
        rng = random.Random(seed)
        damaged = bytearray(content)
        for _ in range(rng.randrange(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        if rng.random() < 0.3:
            del damaged[rng.randrange(len(damaged)) :]
        fast, slow = both(monkeypatch, attribute_of(bytes(damaged), type_))
        assert same(fast, slow), seed
        refused += isinstance(fast, type)
    assert 0 < refused < 150


def test_an_integer_of_more_than_64_bits_is_refused() -> None:
    file = attribute_of(ob.repeated(8, range(100)) + b"\x40" + b"\xff" * 9 + b"\x02", 7)
    with pytest.raises(fl.FormatError, match="64 bits"):
        ob.read(file)


@pytest.mark.parametrize("make", [lambda: b"\x4a\x00" * 100_000, lambda: b"\x40\x00" * 400_000], ids=["strings", "integers"])
def test_lists_are_taken_from_the_budget(make: Callable[[], bytes]) -> None:
    with pytest.raises(fl.LimitError):
        ob.read(attribute_of(make(), 8), max_bytes=1 << 24)


def test_tree_models_load_without_numpys_masked_arrays() -> None:
    """np.unique imports them, which takes longer than reading the trees."""
    name = next(name for name in NAMES if "XGBClassifier" in name)
    code = f"""
    import sys, numpy as np, fastlayers as fl
    from tests.formats.classical.test_goldens import golden
    content, feeds, _ = golden({name!r})
    fl.load(content).run(feeds)
    print("numpy.ma" in sys.modules)
    """
    assert python(code).strip() == "False"
