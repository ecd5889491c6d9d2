"""Walks: one model called with one set of inputs after the other, each answer next to a fresh model's and next to numpy's.

`outcome` is what a call gives, an error included: a fresh model's must be of the same kind and name the same node. Results of the
two models must be equal bit for bit: what a model has seen before must not show. Numpy's must be near.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.ir.graph import Graph
from fastlayers.model.model import Model

__all__ = ["TOLERANCE", "Feeds", "Step", "Wrong", "compare", "keep_few", "model_of", "near", "outcome", "same", "walk"]

# How far from numpy's answer an element may be, as a part of the largest one, at least of 1: products of some dozen terms, after
# some dozen nodes that may enlarge an error. What this looks for, another size's weights, is wrong by a part of 1.
TOLERANCE = 2e-3

Feeds = dict[str, np.ndarray]
Outcome = dict[str, Any] | str


class Wrong(AssertionError):
    """An answer that differs."""


class Step(NamedTuple):
    """One call: the inputs, and what numpy makes of each value of the graph; None where it is not known or an error."""

    feeds: Feeds
    want: Mapping[str, Any] | None


def outcome(model: Model, feeds: Feeds, outputs: Sequence[str] | None = None) -> Outcome:
    """The results by name, or the error's kind and text."""
    try:
        return model.run(feeds, outputs)
    except fl.Error as error:
        return f"{type(error).__name__}: {error}"


def same(got: Outcome, want: Outcome) -> str:
    """What differs in any bit; "" if nothing."""
    if isinstance(got, str) or isinstance(want, str):
        return "" if _kind(got) == _kind(want) else f"{_brief(got)} instead of {_brief(want)}"
    for name, value in want.items():
        if found := _same(got[name], value):
            return f"{name}: {found}"
    return ""


def _kind(value: Outcome) -> str:
    """An error's kind and the node that it names: what it says of sizes is less while a branch is simplified."""
    return ":".join(value.split(":")[:2]) if isinstance(value, str) else ""


def _same(got: Any, want: Any) -> str:
    if isinstance(want, list):
        if len(got) != len(want):
            return f"{len(got)} arrays instead of {len(want)}"
        return next(filter(None, map(_same, got, want)), "")
    if want is None:
        return "" if got is None else "an array instead of None"
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return f"{got.dtype}{got.shape} instead of {want.dtype}{want.shape}"
    if got.tobytes() == want.tobytes():
        return ""
    differ = (got != want) & ~((got != got) & (want != want))
    if not differ.any():
        return "" if got.dtype.kind != "f" else _signs(got, want)
    at = tuple(int(i) for i in np.argwhere(differ)[0])
    return f"{int(differ.sum())} of {differ.size} elements differ, {at} is {got[at]!r} instead of {want[at]!r}"


def _signs(got: np.ndarray, want: np.ndarray) -> str:
    """Zeros of another sign; one NaN is as good as another."""
    return "zeros of another sign" if (np.signbit(got) != np.signbit(want))[want == 0].any() else ""


def near(got: Outcome, want: Mapping[str, Any], tolerance: float = TOLERANCE) -> str:
    """What is further from numpy's values than the tolerance; "" if nothing."""
    if isinstance(got, str):
        return f"{got} instead of a result"
    for name, value in got.items():
        if found := _near(value, want[name], tolerance):
            return f"{name}: {found}"
    return ""


def _near(got: Any, want: Any, tolerance: float) -> str:
    if isinstance(want, list):
        return next((f for g, w in zip(got, want, strict=True) if (f := _near(g, w, tolerance))), "")
    if want is None:
        return "" if got is None else "an array instead of None"
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return f"{got.dtype}{got.shape} instead of numpy's {want.dtype}{want.shape}"
    if want.dtype.kind not in "fc" or not want.size:
        return "" if np.array_equal(got, want) else "differs from numpy's"
    finite = np.isfinite(want)
    if not np.array_equal(np.isfinite(got), finite):
        return "is not finite where numpy's is, or the other way round"
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    off = np.abs(np.where(finite, got, 0).astype(wide) - np.where(finite, want, 0).astype(wide))
    scale = max(1.0, float(np.abs(want[finite]).max(initial=0.0)))
    return "" if off.max() <= tolerance * scale else f"{off.max():.2e} from numpy's, whose largest is {scale:.2e}"


def _brief(value: Outcome) -> str:
    return value if isinstance(value, str) else "results"


def compare(fault: str, where: str) -> None:
    """Raises Wrong if there is a fault."""
    if fault:
        raise Wrong(f"{where}: {fault}")


def walk(
    make: Callable[[], Model],
    steps: Sequence[Step],
    outputs: Sequence[Sequence[str] | None] = (None,),
    tolerance: float = TOLERANCE,
    between: Callable[[Model, int], Model] | None = None,
) -> int:
    """Calls one model with all steps, twice each (the second call may take a shorter way), and a fresh one at each.

    Args:
        make: gives a fresh model.
        steps: what it is called with.
        outputs: the names asked for; each step is called with each.
        between: may replace the walked model before a step; takes it and the step's number.

    Returns:
        The number of calls that were compared.

    Raises:
        Wrong: an answer differs; says at which step.
    """
    try:
        walked, count = make(), 0
    except fl.Error as error:
        raise Wrong(f"the model cannot be made: {error}") from None
    for i, step in enumerate(steps):
        if between is not None:
            walked = between(walked, i)
        for names in outputs:
            fresh = outcome(make(), step.feeds, names)
            where = f"step {i}, inputs {_told(step.feeds)}" + ("" if names is None else f", outputs {list(names)}")
            if step.want is not None:
                compare(near(fresh, step.want, tolerance), f"a fresh model at {where}")
            for _ in range(2):
                before = {name: array.copy() for name, array in step.feeds.items()}
                compare(same(outcome(walked, step.feeds, names), fresh), f"the walked model at {where}")
                compare(same(step.feeds, before), f"the inputs after {where}")
                count += 1
    return count


def _told(feeds: Feeds) -> str:
    return ", ".join(f"{name}{array.shape if array.size > 4 else array.tolist()}" for name, array in feeds.items())


def keep_few(patch: pytest.MonkeyPatch) -> None:
    """Models made from now on keep few bindings, so that a walk meets those that went."""
    if importlib.util.find_spec("fastlayers.program.bindings") is None:
        patch.setattr("fastlayers.program.program.KEPT", 2)
    else:
        patch.setattr("fastlayers.program.bindings.LEAST_BYTES", 8000)
        patch.setattr("fastlayers.program.bindings.SHARE", 0.0)


def model_of(graph: Graph) -> Callable[[], Model]:
    """What makes fresh models of a graph."""
    return lambda: Model(graph)
