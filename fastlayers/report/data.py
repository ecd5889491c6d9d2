"""A bound network's `Report`: its steps, measured or not."""

from __future__ import annotations

from typing import Any

from .._tuples import NamedTuple
from ..program.steps import Step
from ._limits import Limits

__all__ = ["Report", "StepReport", "ValueReport"]


class ValueReport(NamedTuple):
    """An input or output: name, dtype and shape, a size by its name or None where it is open."""

    name: str
    dtype: str
    shape: tuple[int | str | None, ...] | None


class StepReport(NamedTuple):
    """A step, in the order in which they run.

    Attributes:
        step: operator, name of its result, shape, dtype, parameters, multiply-adds, bytes, the kernels that run it, and why.
        depth: in how many bodies of loops and branches it is.
        rounds: how often it runs in one run of the network; 0 if that is not known, as it is of what was not run.
        segment: the number of the program that it is part of: of a network that runs in stages there are several.
        seconds: times of single executions, one per run; none if it was not measured.
        begins: when each of these began, in seconds since its run did.
    """

    step: Step
    depth: int = 0
    rounds: int = 1
    stretch: int = 0
    seconds: tuple[float, ...] = ()
    begins: tuple[float, ...] = ()

    @property
    def best(self) -> float:
        """The shortest time; 0 if it was not measured."""
        return min(self.seconds, default=0.0)

    @property
    def median(self) -> float:
        """The time in the middle; 0 if it was not measured."""
        ordered = sorted(self.seconds)
        return ordered[len(ordered) // 2] if ordered else 0.0

    @property
    def total(self) -> float:
        """The time of all its rounds, each counted as the shortest one took."""
        return self.best * (self.rounds if self.depth else max(self.rounds, 1))

    @property
    def in_numpy(self) -> bool:
        """Whether no kernel runs it, but numpy."""
        return "numpy" in self.step.kernels

    @property
    def shape(self) -> str:
        """The result's shape in words."""
        return "x".join(map(str, self.step.shape)) or "-"

    @property
    def where(self) -> str:
        """The kernels that run it, in words."""
        return " ".join(self.step.kernels) or "(view)"


class Report(NamedTuple):
    """A network bound to sizes: its steps, what they cost, and, if it was profiled, how long they took.

    Made by `Model.report` and `Model.profile`. It prints as a table; `json`, `trace` and `html` give its other forms.

    Attributes:
        variant: the kernels that run it.
        threads: how many threads it may use.
        inputs: what goes in.
        outputs: what comes out.
        steps: what runs.
        arena: bytes of intermediate results; None if the network runs in stages.
        staged: whether it runs in stages, since sizes or branches depend on values.
        notes: what is to be said besides.
        runs: times in seconds of whole runs, without the clock of the steps; none if it was not measured.
        limits: what one core can do; None if it was not measured.
    """

    variant: str
    threads: int
    inputs: tuple[ValueReport, ...]
    outputs: tuple[ValueReport, ...]
    steps: tuple[StepReport, ...]
    arena: int | None
    staged: bool
    notes: tuple[str, ...] = ()
    runs: tuple[float, ...] = ()
    limits: Limits | None = None

    @property
    def measured(self) -> bool:
        """Whether it has times."""
        return bool(self.runs)

    @property
    def inner(self) -> bool:
        """Whether steps may run more than once, or not at all: those of stages, and of bodies of loops and branches."""
        return self.staged or any(s.depth for s in self.steps)

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds of all steps, each once."""
        return sum(s.step.multiply_adds for s in self.steps)

    @property
    def parameters(self) -> int:
        """Parameters of all steps."""
        return sum(s.step.parameters for s in self.steps)

    @property
    def bytes(self) -> int:
        """That all steps must read and write at least."""
        return sum(s.step.bytes for s in self.steps)

    @property
    def numpy_steps(self) -> tuple[StepReport, ...]:
        """The steps that run in numpy."""
        return tuple(s for s in self.steps if s.in_numpy)

    @property
    def total(self) -> float:
        """Seconds of all steps, each at its best, as often as it runs."""
        return sum(s.total for s in self.steps)

    def share(self, step: StepReport) -> float:
        """A step's part of the time of all steps, from 0 to 1."""
        return step.total / self.total if self.total > 0 else 0.0

    def least(self, step: StepReport) -> float:
        """The seconds that a step would take at the machine's limit; 0 without limits."""
        return 0.0 if self.limits is None else self.limits.least(step.step, self.threads)

    def text(self, top: int = 0) -> str:
        """A table, and the totals.

        Args:
            top: only so many steps, the longest (or, if none was measured, those with the most multiply-adds); 0 for all.
        """
        from .text import text

        return text(self, top)

    def dict(self) -> dict[str, Any]:
        """All of it as dicts, lists, numbers and strings."""
        from .json import as_dict

        return as_dict(self)

    def json(self) -> str:
        """`dict` as JSON."""
        from .json import as_json

        return as_json(self)

    def trace(self) -> str:
        """The measured runs as a Chrome trace, which ui.perfetto.dev and chrome://tracing show.

        Raises:
            ArgumentError: the report has no times: see `Model.profile`.
        """
        from ._trace import trace

        return trace(self)

    def html(self, title: str = "fastlayers") -> str:
        """A page that needs nothing but itself: the network as a picture, a flame graph, a roofline, and a table to sort."""
        from ._page import page

        return page(self, title)

    def _repr_html_(self) -> str:
        from ._page import excerpt

        return excerpt(self)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        # What a shell shows of it: a line, where a tuple of all steps would be pages.
        told = [f"{len(self.steps)} steps", f"variant={self.variant}", f"threads={self.threads}"]
        told += [f"{len(self.numpy_steps)} in numpy"] if self.numpy_steps else []
        told += [f"best run {1e6 * min(self.runs):.1f} us"] if self.runs else []
        return f"<Report: {', '.join(told)}; print it for the table>"
