"""Where the planner puts values: never two at once in one place, and little more memory than they need together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastlayers.operators.builder import Builder, Ref
from fastlayers.program import arena
from fastlayers.program.trace import Record, settled

from .guarded import ALIGN, check_layout, uses


def random_calls(seed: int) -> list[Any]:
    """Calls that read and write values of random sizes, take the places of some, and put some into others."""
    rng = np.random.default_rng(seed)
    builder = Builder(lambda *_: None)
    values: list[Ref] = []
    sizes = rng.choice([0, 1, 3, 16, 17, 64, 200, 1000], 4)  # few, so that holes fit and places are taken over
    for _ in range(rng.integers(1, 40)):
        some = [values[i] for i in rng.integers(0, len(values), rng.integers(0, 4))] if values else []
        made = [builder.temp((int(rng.choice(sizes)),)) for _ in range(rng.integers(1, 3))]
        for ref in some:
            if rng.random() < 0.5 and ref.nbytes == made[0].nbytes == ref.buffer.nbytes:
                builder.overs.append((made[0].buffer, ref.buffer))  # as `Builder.output` offers it
                break
        builder.python(len, some, [*made, *(builder.temp((5,)) for _ in range(rng.integers(0, 2)))])
        values += made
        if rng.random() < 0.3:
            parts = [values[i] for i in rng.integers(0, len(values), 3)]
            whole = builder.temp((sum(p.size for p in parts) + 3,))
            starts = np.cumsum([0, *(p.size for p in parts)])
            for part, start in zip(parts, starts, strict=False):
                if not builder.place(part, whole, int(start)):
                    builder.python(len, [part], [whole.view(part.shape, int(start))])
            values.append(whole.view((max(whole.size - 4, 0),), 1))
            builder.python(len, [values[-1]], [builder.temp((2,))])
    effects = [(part, *builder.parents[part.number]) for part in builder.placed]
    return settled([Record(builder.calls, effects, builder.overs, {}, 0, None)], {})


def compare_with_compiled(calls: list[Any], size: int) -> None:
    """The compiled planner puts the same values into the same places."""
    compiled = pytest.importorskip("fastlayers.kernels.aot._plan", reason="the engine is not compiled")
    roots = list({id(r.buffer.root()[0]): r.buffer.root()[0] for call in calls for r, _ in uses(call)}.values())
    places = {id(root): i for i, root in enumerate(roots)}
    values = [(r.nbytes, r.first, r.last, places.get(id(r.over), -1)) for r in roots]
    assert compiled.layout(values, len(calls)) == ([r.offset for r in roots], size)


@pytest.mark.parametrize("seed", range(8))
def test_values_that_are_needed_at_once_do_not_overlap(seed: int) -> None:
    shared = 0
    for i in range(60):
        calls = random_calls(seed * 1000 + i)
        size = arena.layout(calls)
        check_layout(calls, size)
        compare_with_compiled(calls, size)
        roots = {id(r.buffer.root()[0]): r.buffer.root()[0] for call in calls for r, _ in uses(call)}
        alone = sum(-(-max(root.nbytes, 1) // ALIGN) * ALIGN for root in roots.values())
        shared += size < alone
        assert size <= alone and size % ALIGN == 0
    assert shared > 40


def test_a_wrong_planner_is_found() -> None:
    calls, found = random_calls(3), 0
    buffers = list({id(r.buffer.root()[0]): r.buffer.root()[0] for call in calls for r, _ in uses(call)}.values())
    for buffer in buffers:
        if buffer.first < buffer.last:  # a value that the planner lets go one call too early, or takes one call too late
            for name, by in (("last", -1), ("first", 1)):
                right = getattr(buffer, name)
                setattr(buffer, name, right + by)
                size = arena.layout(calls)
                setattr(buffer, name, right)
                try:
                    check_layout(calls, size)
                except AssertionError:
                    found += 1
    assert found > 5
    with pytest.raises(AssertionError):
        check_layout(calls, arena.layout(calls) - ALIGN)
