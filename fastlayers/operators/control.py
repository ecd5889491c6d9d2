"""Operators that run subgraphs: If, Loop, Scan and SequenceMap. What they do with values is here; `program.stages`
makes the graphs run.

``CONTROL[op](n, values, bodies, meter)`` takes values (arrays, lists, None) and returns a list of them; ``bodies.ready(graph)``
runs a graph. A `Meter` counts iterations and what grows with them, so that no file runs for ever or fills the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..errors import Error, FormatError
from ..ir.graph import Graph, Node
from ._base import OPERATORS, Spec, View
from .meter import Meter

if TYPE_CHECKING:
    from .sequence import Anything

__all__ = ["CONTROL", "Bodies", "Ready", "check_bodies", "inferred"]

ENDLESS = 2**63 - 1


class Ready(Protocol):
    """A graph that runs again and again."""

    def __call__(self, values: Sequence[Anything]) -> list[Anything]:
        """The graph's outputs for its inputs."""

    def rounds(self, given: list[Anything], parts: list[list[np.ndarray]], at: int, most: int, n: View) -> tuple[int, Any]:
        """As many iterations of a loop as need no look at what is between them; see `kernels.aot.run.Runner`."""


class Bodies(Protocol):
    """Runs the graphs among a node's attributes."""

    def ready(self, graph: Graph) -> Ready:
        """Returns the function that computes the graph's outputs from its inputs; to be used for as long as the node runs."""

    def specs(self, graph: Graph, values: Sequence[Anything]) -> list[Spec]:
        """Infers the outputs from the inputs' specs, without running the graph."""


def check_bodies(node: Node, label: str) -> None:
    """Raises FormatError unless the node's graphs have as many inputs and outputs as the node's own tell."""
    count, most = len(node.inputs), None
    if node.op == "If":
        if count != 1 or node.inputs[0] is None:
            raise FormatError(f"{label}: has {count} inputs: expected one, the condition")
        takes, least = 0, len(node.outputs)
        most = least
    elif node.op == "Loop":
        takes = max(count, 2)
        least = takes - 1
    elif node.op == "Scan":
        scanned, first = node.attributes["num_scan_inputs"], int(bool(node.attributes.get("batched", 0)))
        takes = count - first
        if not 1 <= scanned <= takes:
            raise FormatError(f"{label}: num_scan_inputs is {scanned}: expected 1 to {takes}")
        least = takes - scanned
    else:
        takes, least = count, len(node.outputs)
        most = least
    if any(name is None for name in node.inputs[{"Loop": 2, "Scan": node.attributes.get("batched", 0)}.get(node.op, 0) :]):
        raise FormatError(f"{label}: a value that its first iteration needs is left out")
    for key, body in node.attributes.items():
        if not isinstance(body, Graph):
            continue
        outputs = len(body.outputs)
        if len(body.inputs) != takes or outputs < least or (most is not None and outputs > most):
            wanted = f"{least}" if most == least else f"at least {least}"
            raise FormatError(
                f"{label}: {key} has {len(body.inputs)} inputs and {outputs} outputs: expected {takes or 'none'} and {wanted}"
                + (", as many as the node has" if most == least else "")
            )
        if len(node.outputs) > outputs - (node.op == "Loop"):
            raise FormatError(f"{label}: has {len(node.outputs)} outputs, more than its {key} gives")
    wanted_bodies = ("then_branch", "else_branch") if node.op == "If" else ("body",)
    if any(not isinstance(node.attributes.get(key), Graph) for key in wanted_bodies):
        raise FormatError(f"{label}: expected a graph for {' and '.join(wanted_bodies)}")


def inferred(graph: Graph, known: Mapping[str, Spec]) -> list[Spec | None]:
    """Infers a graph's outputs by the shape rules; None for those of which they say nothing."""
    specs: dict[str, Spec | None] = dict(known)
    specs.update((name, Spec(array.shape, array.dtype)) for name, array in graph.constants.items())
    for node in graph.nodes:
        operator = OPERATORS.get(node.op)
        given = [None if name is None else specs.get(name) for name in node.inputs]
        if operator is None or any(s is None and name is not None for s, name in zip(given, node.inputs, strict=True)):
            continue
        values = [None if name is None else graph.constants.get(name) for name in node.inputs]
        try:
            specs.update(zip(node.outputs, operator.infer(View(node, given, values)), strict=False))
        except Error:
            continue
    return [specs.get(value.name) for value in graph.outputs]


# ---- the operators ----------------------------------------------------------------------------------------------------


def _truth(n: View, value: Anything, what: str) -> bool:
    if not isinstance(value, np.ndarray) or value.size != 1:
        shape = value.shape if isinstance(value, np.ndarray) else "no array"
        raise n.fail(f"{what} has shape {shape}: expected one boolean")
    return bool(value.item())


def if_run(n: View, values: Sequence[Anything], bodies: Bodies, meter: Meter) -> list[Anything]:
    """One of two graphs."""
    key = "then_branch" if _truth(n, values[0], "its condition") else "else_branch"
    return bodies.ready(n.get(key))(())


def loop_run(n: View, values: Sequence[Anything], bodies: Bodies, meter: Meter) -> list[Anything]:
    """Iterations of a graph while it says so, and as often as was said beforehand."""
    body: Graph = n.get("body")
    count, condition, *carried = (*values, None, None)[: max(len(values), 2)]
    if count is not None and (not isinstance(count, np.ndarray) or count.size != 1 or count.dtype.kind not in "iu"):
        raise n.fail("its number of iterations is not a single integer")
    most = None if count is None else int(count.reshape(-1)[0])
    going = condition is None or _truth(n, condition, "its condition")
    numbered, asked = (int(v.shape is not None and len(v.shape) == 1) for v in body.inputs[:2])
    grown = _Grown(n, len(body.outputs) - 1 - len(carried), meter)
    run = bodies.ready(body)
    given = [np.array(0, np.int64, ndmin=numbered), np.array(going, ndmin=asked), *carried]
    i, states = 0, 1 + len(carried)
    while going and (most is None or i < most):
        count, results = run.rounds(given, grown.parts, i, ENDLESS if most is None else most, n)
        i += count
        if count:
            grown.keep(count - (results is not None))
        if results is None:
            going = bool(given[1].item())
            if not going or i == most:
                break
            meter.round(n)
            given[0] = np.array(i, np.int64, ndmin=numbered)
            results = run(given)
            i += 1
        going = _truth(n, results[0], "its condition after a round")
        grown.add(results[states:])
        given[2:] = results[1:states]
        if states > 1:
            meter.carried(n, given[2:])
    if i:
        return [*given[2:], *map(_stacked, grown.parts)]
    return [*given[2:], *_without_rounds(bodies.specs(body, given)[states:])]


def _stacked(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Parts of one shape along a new first axis."""
    shape = parts[0].shape
    return np.concatenate(parts).reshape(len(parts), *shape) if shape else np.stack(parts)


class _Grown:
    """Results of which every iteration adds a part."""

    def __init__(self, n: View, count: int, meter: Meter) -> None:
        self.n, self.meter = n, meter
        self.parts: list[list[np.ndarray]] = [[] for _ in range(count)]

    def keep(self, count: int) -> None:
        """Counts parts that have been added to every result."""
        if count:
            self.meter.keep(self.n, count * sum(parts[0].nbytes for parts in self.parts))

    def add(self, values: Sequence[Anything]) -> None:
        """Adds a part to every result."""
        for parts, value in zip(self.parts, values, strict=True):
            if not isinstance(value, np.ndarray):
                raise self.n.wrong_dtype("a part of a result that grows with the iterations is not an array")
            if parts and (parts[0].shape, parts[0].dtype) != (value.shape, value.dtype):
                raise self.n.fail(
                    f"a result that grows with the iterations has a part of shape {value.shape} and dtype {value.dtype} after "
                    f"one of shape {parts[0].shape} and dtype {parts[0].dtype}: expected the same in every iteration"
                )
            self.meter.keep(self.n, value.nbytes)
            parts.append(value)


def _without_rounds(specs: Sequence[Spec]) -> list[np.ndarray]:
    """Results that grow with the iterations, if there are none: unknown sizes are 0."""
    return [np.zeros((0, *(d if isinstance(d, int) else 0 for d in s.shape or ())), s.dtype) for s in specs]


def scan_run(n: View, values: Sequence[Anything], bodies: Bodies, meter: Meter) -> list[Anything]:
    """A graph once for every position along an axis of its inputs, with states passed on."""
    if not n.get("batched", 0):
        return _scan(n, values, bodies, meter)
    lengths, *given = values
    for value in given:
        if not isinstance(value, np.ndarray) or not value.ndim:
            raise n.fail("an input is no array with an axis for the batch")
    batch = {a.shape[0] for a in given}
    if len(batch) != 1:
        raise n.fail(f"its inputs have batches of {sorted(batch)}: expected the same")
    (count,) = batch
    states = len(given) - n.get("num_scan_inputs")
    if any(a.ndim < 2 for a in given[states:]):
        raise n.fail("an input to be scanned has no axis of time after that of the batch")
    longest = given[states].shape[1]
    own = _lengths(n, lengths, count, longest)
    done = []
    for b in range(count):
        done.append(_scan(n, [*(a[b] for a in given[:states]), *(a[b, : own[b]] for a in given[states:])], bodies, meter))
    if not done:
        raise n.fail("its batch has no entries")
    results: list[Anything] = []
    for i in range(len(done[0])):
        parts = [r[i] for r in done]
        if i >= states:  # what is shorter than the longest ends in zeros
            whole = np.zeros((count, longest, *parts[int(np.argmax(own))].shape[1:]), parts[0].dtype)
            for b, part in enumerate(parts):
                whole[b, : len(part)] = part
            results.append(whole)
        else:
            results.append(_stacked(parts))
    return results


def _lengths(n: View, lengths: Anything, count: int, longest: int) -> list[int]:
    if lengths is None:
        return [longest] * count
    if not isinstance(lengths, np.ndarray) or lengths.shape != (count,) or lengths.dtype.kind not in "iu":
        raise n.fail(f"sequence_lens is no vector of {count} integers")
    if lengths.size and not 0 <= lengths.min() <= lengths.max() <= longest:
        raise n.fail(f"sequence_lens has values from {lengths.min()} to {lengths.max()}: expected 0 to {longest}")
    return [int(v) for v in lengths]


def _scan(n: View, values: Sequence[Anything], bodies: Bodies, meter: Meter) -> list[Anything]:
    body: Graph = n.get("body")
    states = len(values) - n.get("num_scan_inputs")
    carried, scanned = list(values[:states]), list(values[states:])
    axes = _listed(n, "scan_input_axes", len(scanned))
    backwards = _listed(n, "scan_input_directions", len(scanned), 2)
    for i, (x, axis) in enumerate(zip(scanned, axes, strict=True)):
        if not isinstance(x, np.ndarray) or not -x.ndim <= axis < x.ndim:
            raise n.fail(f"input {states + i} has no axis {axis}, along which it is to be scanned")
        scanned[i] = np.ascontiguousarray(np.moveaxis(x, axis, 0))
    lengths = {len(x) for x in scanned}
    if len(lengths) != 1:
        raise n.fail(f"the inputs to be scanned have lengths {sorted(lengths)}: expected the same")
    (length,) = lengths
    grown = _Grown(n, len(body.outputs) - states, meter)
    run = bodies.ready(body)
    for t in range(length):
        meter.round(n)
        parts = [x[length - 1 - t if back else t, ...] for x, back in zip(scanned, backwards, strict=True)]
        results = run([*carried, *parts])
        carried = results[:states]
        grown.add(results[states:])
    out_axes = _listed(n, "scan_output_axes", len(grown.parts))
    reverse = _listed(n, "scan_output_directions", len(grown.parts), 2)
    if length:
        made = [_stacked(parts[::-1] if back else parts) for parts, back in zip(grown.parts, reverse, strict=True)]
    else:
        empty = [np.zeros(x.shape[1:], x.dtype) for x in scanned]
        made = _without_rounds(bodies.specs(body, [*carried, *empty])[states:])
    for i, (array, axis) in enumerate(zip(made, out_axes, strict=True)):
        if not -array.ndim <= axis < array.ndim:
            raise n.fail(f"scan_output_axes has {axis}: expected {-array.ndim} to {array.ndim - 1}")
        made[i] = np.ascontiguousarray(np.moveaxis(array, 0, axis))
    return [*carried, *made]


def _listed(n: View, name: str, count: int, below: int | None = None) -> tuple[int, ...]:
    """An attribute with a number for each of `count` inputs or outputs, 0 by default."""
    found = tuple(n.get(name, ()) or (0,) * count)
    if len(found) != count or (below is not None and not all(0 <= v < below for v in found)):
        raise n.fail(f"{name} is {found}: expected {count} values" + ("" if below is None else f" from 0 to {below - 1}"))
    return found


def sequence_map_run(n: View, values: Sequence[Anything], bodies: Bodies, meter: Meter) -> list[Anything]:
    """A graph once for every array of a list, with those at the same position of other lists."""
    body: Graph = n.get("body")
    if not isinstance(values[0], list):
        raise n.wrong_dtype("input 0 is no sequence")
    lengths = {len(v) for v in values if isinstance(v, list)}
    if len(lengths) != 1:
        raise n.fail(f"its sequences have lengths {sorted(lengths)}: expected the same")
    results: list[list[Anything]] = [[] for _ in body.outputs]
    run = bodies.ready(body)
    for i in range(len(values[0])):
        meter.round(n)
        made = run([v[i] if isinstance(v, list) else v for v in values])
        for parts, value in zip(results, made, strict=True):
            if not isinstance(value, np.ndarray):
                raise n.wrong_dtype("its body returns something other than an array")
            meter.keep(n, value.nbytes)
            parts.append(value)
    return list(results)


CONTROL: dict[str, Callable[[View, Sequence[Anything], Bodies, Meter], list[Anything]]] = {
    "If": if_run,
    "Loop": loop_run,
    "Scan": scan_run,
    "SequenceMap": sequence_map_run,
}
