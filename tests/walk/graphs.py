"""Random graphs: sizes, inputs and a few dozen nodes, drawn by a seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fastlayers.ir.graph import Graph

from .check import Step
from .growth import RULES
from .maker import Maker, Place, Refused

__all__ = ["Drawn", "draw"]

# The most that each size is, mostly; `t` is sometimes around the number whose square no longer counts as a small constant.
MOST = {"n": 3, "t": 9, "h": 8, "w": 8, "d": 3, "k": 5, "j": 3}
FOLDED = (127, 128, 129)  # 128 * 128 float32 values are 64 KB
PLACES = 6


class Drawn(NamedTuple):
    """A graph, what it is called with, names of values within it that may be asked for, and its inputs' axes."""

    graph: Graph
    steps: list[Step]
    inner: tuple[str, ...]
    kinds: Mapping[str, tuple[int | str, ...]]


def places(m: Maker, count: int, names: Sequence[str], wide: bool) -> list[Place]:
    """Sizes that go up and down, mostly one at a time, and come back."""
    found: list[Place] = []
    for _ in range(count):
        if len(found) > 1 and m.chance(0.2):
            found.append(dict(m.pick(*found)))
        elif found and m.chance(0.65):
            name = m.pick(*names)
            found.append({**found[-1], name: int(m.random.integers(1, MOST[name] + 1))})
        else:
            found.append({name: int(m.random.integers(1, most + 1)) for name, most in MOST.items()})
        if wide and m.chance(0.7):
            found[-1] = {**found[-1], "n": 1, "t": int(m.pick(*FOLDED, 3, 8))}
    return found


def draw(seed: int, count: int = PLACES, counter: Counter[str] | None = None) -> Drawn:
    """The graph of a seed. `counter` counts which rules were followed and refused."""
    m = Maker(seed, [])
    kinds = _kinds(m)
    names = sorted({dim for kind in kinds.values() for dim in kind if isinstance(dim, str)})
    m.places = places(m, count, names, wide=m.chance(0.1))
    m.count = count
    if m.chance(0.3):  # one place without elements along one axis
        name, place = m.pick(*(n for n in names if n not in ("k", "j"))), int(m.random.integers(count))
        m.places[place] = {**m.places[place], name: 0}
        m.optional = frozenset([place])
    _inputs(m, kinds)
    values = [v.name for v in m.inputs if v.dtype.kind == "f"]
    target = int(m.random.integers(3, 15))
    for _ in range(target * 4):
        rule = m.pick(*RULES)
        x = values[-1 - min(int(m.random.exponential(2.0)), len(values) - 1)]
        try:
            made = rule(m, x)
        except Refused as reason:
            if counter is not None:
                counter[f"{rule.__name__}: refused"] += 1
                counter[f"  why {rule.__name__}: {str(reason)[:90]}"] += 1
            continue
        if counter is not None:
            counter[rule.__name__] += 1
        values += [v for v in made if m.kind(v) == "f" and m.rank(v) < 6]
        target -= 1
        if not target:
            break
    made = [v for v in values if v not in {i.name for i in m.inputs}] or [m.one("Identity", values[0])]
    outputs = dict.fromkeys([made[-1], *(str(m.pick(*made)) for _ in range(int(m.random.integers(3))))])
    if m.chance(0.1):
        outputs[m.pick(*values)] = None  # perhaps an input
    whole = [n for n in m.values if n not in m.constants]
    inner = tuple(dict.fromkeys(str(m.pick(*whole)) for _ in range(2)))
    return Drawn(m.graph(list(outputs)), m.steps(), inner, kinds)


# A sequence, rows, what is as long as it is wide, images in one to three axes, a product of sizes.
FLOATS: tuple[tuple[int | str, ...], ...] = (
    ("n", "t", 4), ("n", 6), ("t", "t"), ("n", 4, "t"), ("n", 3, "h", "w"), ("n", 8, "h", "w"), ("n", 2, "d", "h", "w"),
    ("n", "t", "w"),
)  # fmt: skip


def _kinds(m: Maker) -> dict[str, tuple[int | str, ...]]:
    """Some inputs: floats, integers that decide (`k` and `j`), numbers of rows."""
    chosen = m.random.permutation(len(FLOATS))[: int(m.random.integers(1, 4))]
    found: dict[str, tuple[int | str, ...]] = {f"x{i}": FLOATS[i] for i in chosen}
    for name, part in (("k", 0.7), ("j", 0.3)):
        if m.chance(part):
            found[name] = (name,)
    if m.chance(0.4):
        found["ids"] = ("n", "t")
    return found


def _inputs(m: Maker, kinds: Mapping[str, tuple[int | str, ...]]) -> None:
    hidden = m.chance(0.3)
    for name, dims in kinds.items():
        if dims == (name,):
            m.steer(name, int(m.random.integers(2)))
        elif name == "ids":
            m.input(name, *dims, low=0, high=9, hidden=hidden)
        else:
            m.input(name, *dims, hidden=hidden)
