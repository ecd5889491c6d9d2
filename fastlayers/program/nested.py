"""Branches, loops and scans as steps of a bound program: where no size depends on what is chosen, or on what an iteration makes.

Every body is bound for the sizes that it gets, and its program is run over memory that is laid out with all other memory. What
does not fit (results of other sizes in the other branch, a state that grows, results of an unknown number of iterations, steps in
NumPy) runs in stages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .._tuples import NamedTuple
from ..ir.graph import Graph, Node
from ..operators import UNDECIDED, Spec, View
from ..operators.builder import Builder, Ref
from .binder import Interpret
from .bodies import Body, kind_of_spec
from .segment import Binding

__all__ = ["nested"]

# As kernels.aot._nested has them: what an input of a body is that is no operand, and a result that is no input.
_INDEX, _GOING = -2, -1
_MADE, _FIXED = -1, -2
MOST_VALUES, MOST_OPERANDS = 48, 64

_BOOL = np.dtype(np.bool_)
_BYTES = np.dtype(np.uint8)


class Nested:
    """A branch or a loop: a node that reads what its bodies read, and what binds it (called again for every binding)."""

    def __init__(self, node: Node, bodies: dict[str, Body]) -> None:
        self.bodies = bodies
        self.captured = tuple(dict.fromkeys(name for body in bodies.values() for name in body.captured))
        self.explicit = len(node.inputs)
        self.node = Node(node.op, (*node.inputs, *self.captured), node.outputs, node.attributes)

    def __call__(self) -> _Lowered:
        return _KINDS[self.node.op](self)


def nested(node: Node, body: Callable[[Graph], Body]) -> Nested:
    """A node with graphs as the binder takes it; `body` makes each of them ready."""
    keys = ("else_branch", "then_branch") if node.op == "If" else ("body",)
    return Nested(node, {key: body(node.attributes[key]) for key in keys})


class _Bound(NamedTuple):
    """A body for some sizes: its binding (None if it has no steps), where its results come from, and what they are."""

    binding: Binding | None
    gives: list[tuple[int, np.ndarray | None, int]]
    results: list[Spec]

    def arena(self) -> int:
        return 0 if self.binding is None else int(self.binding.bound.arena)

    def side(self, takes: Sequence[int]) -> tuple[Any, Sequence[int], Sequence[Any]]:
        """The body as `kernels.aot._nested` takes one: its program, where its inputs come from, and where its results go."""
        return None if self.binding is None else self.binding.bound, takes, self.gives


def _bound(n: View, body: Body, specs: Sequence[Spec], values: Sequence[np.ndarray | None]) -> _Bound:
    program, handed = body.form(tuple(map(kind_of_spec, specs)))
    binding = None
    made: Iterator[Spec] = iter(())
    if program.graph.outputs:
        binding = program.bind(specs, values)
        if binding.staged or binding.counted or binding.bound is None or binding.bound.code is None:
            raise Interpret(f"{n.where}: a step of it is NumPy's, or its sizes depend on values")
        made = iter([Spec(tuple(shape), dtype) for shape, dtype in binding.outputs])
    gives: list[tuple[int, np.ndarray | None, int]] = []
    results = []
    for source in handed:
        constant = None
        if not isinstance(source, int):
            constant = np.ascontiguousarray(source)
            spec, source = Spec(source.shape, source.dtype), _FIXED
        else:
            spec = specs[source] if source >= 0 else next(made)
        if spec.dtype.kind == "O":
            raise Interpret(f"{n.where}: its body gives strings")
        results.append(spec)
        gives.append((source, constant, int(np.prod(spec.shape, dtype=np.int64)) * spec.dtype.itemsize))  # type: ignore[arg-type]
    if len(specs) > MOST_VALUES or len(gives) > MOST_VALUES:
        raise Interpret(f"{n.where}: it has more than {MOST_VALUES} inputs or results")
    return _Bound(binding, gives, results)


def _one(spec: Spec | None, kinds: str) -> bool:
    """Whether a value is a single number of these kinds of dtypes."""
    return spec is not None and spec.dtype.kind in kinds and spec.static and int(np.prod(spec.shape)) == 1  # type: ignore[arg-type]


class _Lowered:
    """A branch or a loop in place of its operator; made for one binding."""

    op: str
    traits = UNDECIDED
    run = None

    def __init__(self, of: Nested) -> None:
        self.of = of

    def around(self, n: View) -> tuple[list[Spec], list[np.ndarray | None]]:
        """Sizes and known values that the bodies read of the graphs around them."""
        specs, values = n.inputs[self.of.explicit :], n.values[self.of.explicit :]
        _settled(n, specs)
        return list(specs), list(values)  # type: ignore[arg-type]

    def results(self, builder: Builder, n: View, specs: Sequence[Spec]) -> list[Ref]:
        """Memory for every result; somebody may read it or not."""
        names = (*n.node.outputs, *[None] * len(specs))
        return [
            builder.output(i) if names[i] else builder.temp(spec.shape, spec.dtype)  # type: ignore[arg-type]
            for i, spec in enumerate(specs)
        ]


class _Branch(_Lowered):
    """``If``."""

    op = "If"

    def infer(self, n: View) -> list[Spec]:
        """Results that both branches give."""
        if not _one(n.inputs[0], "b"):
            raise Interpret(f"{n.where}: its condition is no single boolean")
        specs, values = self.around(n)
        place = {name: i for i, name in enumerate(self.of.captured)}
        self.takes = [[place[name] for name in body.captured] for body in self.of.bodies.values()]
        self.sides = [
            _bound(n, body, [specs[i] for i in takes], [values[i] for i in takes])
            for body, takes in zip(self.of.bodies.values(), self.takes, strict=True)
        ]
        other, then = self.sides
        if other.results != then.results:
            raise Interpret(f"{n.where}: its branches give {other.results} and {then.results}")
        if 2 + len(specs) + len(then.results) > MOST_OPERANDS:
            raise Interpret(f"{n.where}: it reads and makes more than {MOST_OPERANDS} values")
        return then.results

    def lower(self, n: View, builder: Builder) -> None:
        """One step."""
        from ..kernels.aot import branch_step

        explicit = self.of.explicit
        inputs = [builder.input(i) for i in range(explicit + len(self.of.captured))]
        results = self.results(builder, n, self.sides[0].results)
        arena = builder.temp((max(side.arena() for side in self.sides),), _BYTES)
        sides = tuple(side.side([explicit + i for i in takes]) for side, takes in zip(self.sides, self.takes, strict=True))
        first = len(inputs)
        step = branch_step(n.where, sides, first, first + len(results), first + len(results) + 1)
        bodies = [(side.binding, key, 0) for side, key in zip(self.sides, self.of.bodies, strict=True)]
        builder.nested("branch", step, inputs, [*results, arena], bodies)


class _Rounds(_Lowered):
    """A loop or a scan: its `head` (number of iterations, condition), its states, and its further inputs and results."""

    made: _Bound
    carried: int
    settled: int  # how many iterations there are, or -1

    def check(self, n: View, before: Sequence[Spec], after: Sequence[Spec], operands: int) -> None:
        """Raises unless the states stay what they are."""
        if list(after) != list(before):
            raise Interpret(f"{n.where}: its states become {after} in a round, and were {before}")
        if operands > MOST_OPERANDS:
            raise Interpret(f"{n.where}: it reads and makes more than {MOST_OPERANDS} values")

    def rounds(
        self, n: View, builder: Builder, head: Sequence[Ref | None], rest: Sequence[Ref], takes: Sequence[int], **more: Any
    ) -> None:
        """One step. `rest`: all inputs after the head."""
        from ..kernels.aot import loop_step

        carried = self.carried
        specs = self.made.results[-len(self.shapes) :] if self.shapes else []
        results = self.results(builder, n, self.shapes)
        spare = [builder.temp(spec.shape, spec.dtype) for spec in specs[:carried]]  # type: ignore[arg-type]
        arena = builder.temp((self.made.arena(),), _BYTES)
        count_bytes = 8 if head[0] is None else head[0].dtype.itemsize
        side = self.made.side(takes)
        step = loop_step(n.where, side, carried, len(results) - carried, 2 + len(rest), count_bytes, self.settled, **more)
        bodies = [(self.made.binding, "body", max(self.settled, 0))]
        builder.nested(n.op.lower(), step, [*head, *rest], [*results, *spare, arena], bodies)

    shapes: list[Spec]  # of the node's results


class _Loop(_Rounds):
    """``Loop``."""

    op = "Loop"

    def infer(self, n: View) -> list[Spec]:
        """The states that pass from iteration to iteration, and what grows with them."""
        count, going, *carried = (*n.inputs[: self.of.explicit], None, None)[: max(self.of.explicit, 2)]
        if (count is not None and not (_one(count, "i") and count.dtype.itemsize in (4, 8))) or (
            going is not None and not _one(going, "b")
        ):
            raise Interpret(f"{n.where}: its number of iterations or its condition is not a single value")
        _settled(n, carried)
        specs, values = self.around(n)
        (body,) = self.of.bodies.values()
        ones = [(1,) if v.shape is not None and len(v.shape) == 1 else () for v in body.graph.inputs[:2]]
        given = [Spec(ones[0], np.dtype(np.int64)), Spec(ones[1], _BOOL), *carried, *specs]
        self.made = _bound(n, body, given, [None, None, *[None] * len(carried), *values])  # type: ignore[arg-type]
        self.carried = len(carried)
        goes_on, *results = self.made.results
        if not _one(goes_on, "b"):
            raise Interpret(f"{n.where}: its condition after a round is no single boolean")
        states, parts = results[: len(carried)], results[len(carried) :]
        self.check(n, carried, states, 3 + 3 * len(carried) + len(specs) + len(parts))  # type: ignore[arg-type]
        self.settled = self._count(n) if parts else -1
        self.shapes = [*states, *_grown(parts, self.settled)]
        return self.shapes

    def _count(self, n: View) -> int:
        """The number of iterations, whatever the body computes."""
        going = n.values[1] if self.of.explicit > 1 else None
        starts = self.of.explicit < 2 or n.inputs[1] is None or (going is not None and bool(going.reshape(-1)[0]))
        source, constant, _ = self.made.gives[0]
        stays = source == 1 or (constant is not None and bool(constant.reshape(-1)[0]))
        count = n.values[0] if self.of.explicit else None
        if count is None or not starts or not stays:
            raise Interpret(f"{n.where}: its results grow with an unknown number of iterations")
        return max(int(count.reshape(-1)[0]), 0)

    def lower(self, n: View, builder: Builder) -> None:
        """One step."""
        explicit = self.of.explicit
        head = [builder.optional(i) if i < explicit else None for i in range(2)]
        rest = [builder.input(i) for i in range(2, explicit + len(self.of.captured))]
        self.rounds(n, builder, head, rest, [_INDEX, _GOING, *range(2, 2 + len(rest))])


class _Scan(_Rounds):
    """``Scan``, along first axes."""

    op = "Scan"

    def infer(self, n: View) -> list[Spec]:
        """The last states, and what grows with the iterations."""
        explicit, scanned = self.of.explicit, n.get("num_scan_inputs")
        self.carried = explicit - scanned
        given = n.inputs[:explicit]
        _settled(n, given)
        if n.get("batched", 0) or any(n.get("scan_input_axes", ()) or ()) or any(n.get("scan_output_axes", ()) or ()):
            raise Interpret(f"{n.where}: it iterates over another axis than the first")
        carried, whole = given[: self.carried], given[self.carried :]
        lengths = {spec.shape[0] if spec.shape else None for spec in whole}  # type: ignore[union-attr]
        self.back = [tuple(n.get(name, ()) or ()) for name in ("scan_input_directions", "scan_output_directions")]
        specs, values = self.around(n)
        (body,) = self.of.bodies.values()
        grown = len(body.graph.outputs) - self.carried
        if (
            len(lengths) != 1
            or None in lengths
            or any(
                len(back) not in (0, count) or not {*back} <= {0, 1}
                for back, count in zip(self.back, (scanned, grown), strict=True)
            )
        ):
            raise Interpret(f"{n.where}: the sequences that it iterates over have different lengths")
        (self.settled,) = lengths  # type: ignore[assignment]
        parts = [Spec(spec.shape[1:], spec.dtype) for spec in whole]  # type: ignore[union-attr, index]
        self.strides = [int(np.prod(part.shape, dtype=np.int64)) * part.dtype.itemsize for part in parts]  # type: ignore[arg-type]
        self.made = _bound(n, body, [*carried, *parts, *specs], [*[None] * explicit, *values])  # type: ignore[list-item]
        states, more = self.made.results[: self.carried], self.made.results[self.carried :]
        self.check(n, carried, states, 3 + 3 * len(carried) + len(parts) + len(specs) + len(more))  # type: ignore[arg-type]
        self.shapes = [*states, *_grown(more, self.settled)]
        return self.shapes

    def lower(self, n: View, builder: Builder) -> None:
        """One step."""
        rest = [builder.input(i) for i in range(self.of.explicit + len(self.of.captured))]
        turned, backwards = self.back
        strides = [-stride if back else stride for stride, back in zip(self.strides, turned or [0] * 64, strict=False)]
        takes = range(2, 2 + len(rest))
        self.rounds(n, builder, [None, None], rest, takes, scanned=tuple(strides), backwards=tuple(map(bool, backwards)))


def _settled(n: View, specs: Sequence[Spec | None]) -> None:
    if any(spec is None or not spec.static or spec.dtype.kind == "O" for spec in specs):
        raise Interpret(f"{n.where}: it takes a value that is not an array of known size")


def _grown(parts: Sequence[Spec], rounds: int) -> list[Spec]:
    return [Spec((rounds, *part.shape), part.dtype) for part in parts]  # type: ignore[misc]


_KINDS = {kind.op: kind for kind in (_Branch, _Loop, _Scan)}
