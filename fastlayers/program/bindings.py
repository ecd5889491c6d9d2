"""The bindings of a program, by what binds them: those that ran last, as far as their bytes allow."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import LimitError
from ..operators import Spec
from .memory import counted
from .trace import Plan

if TYPE_CHECKING:
    from ..operators.control import Meter
    from .program import Program

__all__ = ["LARGEST_KEY", "Binding", "Bindings", "fresh", "keeping"]

# Inputs whose values decide sizes are part of a binding's key up to this many elements.
LARGEST_KEY = 256
# What the bindings of a program may take: as much as this, and a share of its weights, since a large model has many steps.
LEAST_BYTES, SHARE = 8 << 20, 0.25
_OBJECTS = 1000  # bytes of a binding and of its key, about, and per input
_PER_INPUT = 300
_PER_CALL = 2000  # of a plan that is run call by call

_ticks = itertools.count(1)


MadeFor = tuple[Sequence[Spec], Sequence[np.ndarray | None]]


def keeping(made_for: MadeFor) -> int:
    """Bytes that it takes to keep a binding for these inputs, about, without its calls."""
    return _OBJECTS + _PER_INPUT * len(made_for[0]) + 2 * sum(v.nbytes for v in made_for[1] if v is not None)


class Binding:
    """A program for one set of input sizes. If those do not settle everything it is `staged`: then the graph runs in stages, and
    `stuck` is the first node that says so. `bound` is the compiled engine's form. `plan` are its calls as others read them.

    In the program's cache it knows its program, but does not keep it; what callers get (`of`) does.
    """

    __slots__ = (
        "__weakref__", "_holds", "_plan", "_program", "bound", "made_for", "nbytes", "outputs", "staged", "stuck", "used",
    )  # fmt: skip

    def __init__(
        self,
        program: Callable[[], Program | None],
        made_for: MadeFor,
        plan: Plan | None,
        bound: Any,
        staged: bool,
        stuck: int = 0,
    ) -> None:
        self._program, self.made_for, self._plan, self.bound, self.staged, self.stuck = (
            program,
            made_for,
            plan,
            bound,
            staged,
            stuck,
        )
        self._holds: Program | None = None
        self.used = 0
        self.outputs = () if staged else plan.outputs if plan is not None else bound.out_specs
        # The compiled engine counts its own.
        self.nbytes = 0 if bound is not None else keeping(made_for) + _PER_CALL * (0 if plan is None else len(plan.calls))

    def of(self, program: Program) -> Binding:
        """The same binding, which keeps its program for as long as it lives."""
        made = Binding.__new__(Binding)
        for name in self.__slots__[1:]:
            setattr(made, name, getattr(self, name))
        made._holds = program
        return made

    @property
    def program(self) -> Program:
        """The program."""
        found = self._holds or self._program()
        assert found is not None, "a binding outlives its program"
        return found

    @property
    def plan(self) -> Plan | None:
        """The calls, of which the compiled engine keeps its own form alone; None if the graph runs in stages."""
        if self.staged or self._plan is not None:
            return self._plan
        return self.program.plan(*self.made_for)

    def run(
        self,
        inputs: list[Any],
        outputs: Sequence[np.ndarray] | None = None,
        threads: int = 0,
        meter: Meter | None = None,
    ) -> Sequence[Any]:
        """Fresh outputs (or the given ones, filled) for contiguous inputs of the bound shapes. Inputs on the GPU, of a program
        for it, give outputs there. `meter`: that of the run that this is a part of.
        """
        if self.bound is not None:
            return self.bound.run(inputs, outputs, threads, meter)  # type: ignore[no-any-return]
        with counted(self.program.most):
            return self._run(inputs, outputs, threads)

    def _run(self, inputs: list[Any], outputs: Sequence[np.ndarray] | None, threads: int) -> Sequence[Any]:
        from . import plain

        program, plan = self.program, self._plan
        if program.gpu is not None:
            on_host = all(isinstance(a, np.ndarray) for a in inputs)
            if plan is not None:
                made: Sequence[np.ndarray] = program.gpu.run(plan, inputs, outputs, on_host)
                return made
            if not on_host:  # in stages, values between them are on the host
                inputs = [np.asarray(a) for a in inputs]
                return program.gpu.uploaded(fresh(program.evaluate(inputs, program.meter(), threads), inputs))  # type: ignore[no-any-return]
        with program.variant.bound():
            if plan is None:
                results = fresh(program.evaluate(inputs, program.meter(), threads), inputs)
                if outputs is None:
                    return results
                plain.store(results, outputs)
                return outputs
            if outputs is None:
                try:
                    outputs = [np.empty(shape, dtype) for shape, dtype in plan.outputs]
                except MemoryError:
                    raise LimitError(f"run: no memory for outputs of the shapes {[s for s, _ in plan.outputs]}") from None
            plain.execute(plan, program.variant.kernels, inputs, outputs)
            return outputs


class Bindings:
    """Bindings by their keys. May be used from any number of threads at once: each change is a single step.

    Args:
        weights: bytes of the program's constants.
        ledger: counts what the compiled engine's programs take; None without it.
        forget: is told the key of a binding that goes.
    """

    def __init__(self, weights: int, ledger: Any, forget: Callable[[Any], object]) -> None:
        self.most = int(LEAST_BYTES + SHARE * weights)
        self.ledger, self._forget = ledger, forget
        self._found: dict[Any, Binding] = {}

    def __len__(self) -> int:
        return len(self._found)

    def values(self) -> list[Binding]:
        """All that are retained."""
        return list(self._found.values())

    @property
    def nbytes(self) -> int:
        """What they take, about."""
        return sum(binding.nbytes for binding in self.values()) + (0 if self.ledger is None else self.ledger.nbytes)

    def get(self, key: Any) -> Binding | None:
        """The binding of a key, which is now the one that was used last."""
        found = self._found.get(key)
        if found is not None:
            _touch(found)
        return found

    def add(self, key: Any, binding: Binding) -> None:
        """Keeps a binding; those go that have not been used for longest, if there are too many bytes."""
        _touch(binding)
        self._found[key] = binding
        if self.nbytes > self.most:
            # A quarter at once: to look for them costs as many steps as there are bindings.
            oldest = sorted(self._found.items(), key=lambda item: _last_use(item[1]))
            for gone, _ in oldest[: max(1, math.ceil(len(oldest) / 4))]:
                if gone != key:
                    self.drop(gone)

    def drop(self, key: Any) -> None:
        """Forgets a binding."""
        self._found.pop(key, None)
        if isinstance(key, bytes):  # others, of very many inputs, are not told to it
            self._forget(key)

    def clear(self) -> None:
        """Forgets all."""
        for key in list(self._found):
            self.drop(key)


def _touch(binding: Binding) -> None:
    if binding.bound is not None:
        binding.bound.touch()
    else:
        binding.used = next(_ticks)


def _last_use(binding: Binding) -> int:
    return int(binding.bound.used) if binding.bound is not None else binding.used


def fresh(results: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
    """The results as arrays, and lists of arrays, that nothing else holds."""
    held = {id(array) for value in inputs for array in (value if isinstance(value, list) else [value])}

    def own(value: Any) -> Any:
        if isinstance(value, list):
            return [own(v) for v in value]
        if isinstance(value, dict):  # of ZipMap, which makes new ones
            return value
        if value is None or (id(value) not in held and value.base is None and value.flags.c_contiguous and value.flags.writeable):
            held.add(id(value))
            return value
        return np.array(value, order="C")

    return [own(value) for value in results]
