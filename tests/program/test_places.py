"""Where the compiled engine lays the values of whole programs: none overlaps another that is needed at the same time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastlayers.kernels import dispatch
from fastlayers.operators.builder import ARENA, Call, Ref
from fastlayers.program import Program
from fastlayers.program.trace import Trace

from ..each import each
from .graphs import graph, node

pytestmark = pytest.mark.without("reference")


def random_graph(seed: int) -> tuple[Any, np.ndarray, Any]:
    """Views, results in place of operands, parts of others, and values that are read again much later; its input, and what
    it gives.
    """
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((24, 16)).astype(np.float32)
    values, nodes, constants = {"x": x}, [], {}
    parts: dict[str, list[str]] = {}
    for i in range(40):
        name = f"v{i}"
        a = rng.choice(list(values)[-6:])
        same = [key for key, value in values.items() if value.shape == values[a].shape]
        kind = rng.integers(6)
        if kind == 0 and len(values[a]) > 2:  # another view of its memory, not from its start on
            start = int(rng.integers(1, len(values[a])))
            constants |= {f"s{i}": np.array([start]), f"e{i}": np.array([1 << 20]), "axis": np.array([0])}
            nodes.append(node(f"{name} = Slice({a}, s{i}, e{i}, axis)"))
            values[name] = values[a][start:]
        elif kind == 1 and len(values[a]) < 100:
            b = rng.choice(list(values)[-8:])
            # of the parts of an earlier one, which may be in its memory already, or of that one itself
            parts[name] = [*(parts[a] if a in parts and rng.integers(3) else [a]), b]
            nodes.append(node(f"{name} = Concat({', '.join(parts[name])})", axis=0))
            values[name] = np.concatenate([values[part] for part in parts[name]])
        elif kind in (2, 3):
            b = rng.choice(same)
            nodes.append(node(f"{name} = Max({a}, {b})"))
            values[name] = np.maximum(values[a], values[b])
        else:
            nodes.append(node(f"{name} = Neg({a})"))
            values[name] = -values[a]
    last = rng.choice(list(values)[1:], 3, replace=False)
    return graph({"x": (24, 16)}, nodes, [str(n) for n in last], constants), x, [values[n] for n in last]


def overlaps(trace: Trace, places: list[list[tuple[int, int]]]) -> list[tuple[Any, Any]]:
    """Pairs of buffers that have bytes in common while both are needed, lifetimes and sizes being worked out from the calls."""
    parents = {part.number: (whole, offset) for record in trace.lowered for part, whole, offset in record.effects}
    calls = [call for record in trace.lowered for call in record.calls]
    found: dict[int, list[int]] = {}  # by a root's number: offset, bytes, first and last call
    for number, (call, where) in enumerate(zip(calls, places, strict=True)):
        refs = [a for a in (call.args if isinstance(call, Call) else (*call.inputs, *call.outputs)) if isinstance(a, Ref)]
        # Operands follow the order of a kernel's arrays, as places do.
        for ref, (space, offset) in zip(refs, [p for p in where if p[0] >= -1], strict=False):
            if ref.buffer.space != ARENA or space != 0:
                continue
            root, at = ref.buffer, ref.offset
            while root.number in parents:
                root, more = parents[root.number]
                at += more
            entry = found.setdefault(root.number, [offset - at, root.nbytes, number, number])
            assert entry[0] == offset - at
            entry[3] = number
    pairs = []
    live = sorted(found.items(), key=lambda item: item[1][2])
    for i, (name, (start, size, first, last)) in enumerate(live):
        for other, (start2, size2, first2, last2) in live[i + 1 :]:
            # One may take the place of the other in the call that reads the one and writes the other.
            if first2 < last and first < last2 and start < start2 + size2 and start2 < start + size:
                pairs.append((name, other))
    return pairs


@each("seed", range(120))
def test_values_of_a_program_do_not_overlap(seed: int) -> None:
    made, x, want = random_graph(seed)
    program = Program(made, dispatch.variant())
    binding = program.binding([x])
    assert binding.bound is not None
    assert not overlaps(program._traces[0], binding.bound.places())
    for got, expected in zip(binding.run([x]), want, strict=True):
        np.testing.assert_array_equal(got, expected)
