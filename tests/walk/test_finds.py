"""What the walks are for, they find: engines that are wrong on purpose, one fault each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels import dispatch
from fastlayers.kernels.dispatch import Variant
from fastlayers.model.model import Model
from fastlayers.program import program

from .batch import check_batch
from .bindings import (
    PLACES,
    Builder,
    built,
    cache,
    chosen_weights,
    in_place,
    numbers_that_decide,
    only_one_input_changes,
    recurrent,
)
from .check import Wrong, walk

Kernels = dict[str, Callable[..., Any]]


def plain() -> Variant:
    """The reference kernels, in a table of their own."""
    with fl.kernels.use("reference"):
        found = dispatch.variant()
    return found._replace(kernels=dict(found.kernels))


def stale_weights(kernels: Kernels) -> None:
    """Packed weights are kept by their shapes."""
    kept: dict[Any, Any] = {}

    def keep(name: str, pack: Callable[..., Any]) -> Callable[..., Any]:
        def kernel(*args: Any) -> Any:
            key = (name, *(a.shape if isinstance(a, np.ndarray) else a for a in args))
            return kept.setdefault(key, pack(*args))

        return kernel

    kernels.update({name: keep(name, kernel) for name, kernel in kernels.items() if name.endswith("_pack")})


def one_more_bit(kernels: Kernels) -> None:
    """A result depends on the number of rows in its last bits."""

    def change(kernel: Callable[..., Any]) -> Callable[..., Any]:
        def changed(x: Any, *args: Any) -> Any:
            found = kernel(x, *args)
            for a in args:
                if isinstance(a, np.ndarray) and a.dtype == np.float32 and a.flags.writeable:
                    a *= np.float32(1 + len(x) * 2.0**-23)
            return found

        return changed

    for name in ("linear", "softmax"):
        kernels[name] = change(kernels[name])


def inputs_are_written(kernels: Kernels) -> None:
    """A kernel works in its input's place."""
    inner = kernels["linear"]

    def changed(x: Any, *args: Any) -> Any:
        found = inner(x, *args)
        x *= 2
        return found

    kernels["linear"] = changed


def errs(builder: Builder, change: Callable[[Kernels], None], check: Callable[..., Any]) -> bool:
    """Whether a check of a builder's graph fails under changed kernels, and does not without."""
    m, outputs = built(builder, places=PLACES[:6])
    graph = m.graph(outputs)

    def make(changes: Sequence[Callable[[Kernels], None]]) -> Model:
        variant = plain()
        for each in changes:
            each(variant.kernels)
        return Model(graph, variant=variant)

    check(lambda: make(()), m, graph, outputs)
    try:
        check(lambda: make((change,)), m, graph, outputs)
    except Wrong:
        return True
    return False


def walked(make: Callable[[], Model], m: Any, graph: Any, outputs: list[str]) -> None:
    walk(make, m.steps())


def batched(make: Callable[[], Model], m: Any, graph: Any, outputs: list[str]) -> None:
    for step in m.steps():
        check_batch(make, graph, step.feeds, {v.name: 0 for v in graph.inputs}, outputs)


@pytest.mark.parametrize("builder", [numbers_that_decide, chosen_weights, recurrent], ids=lambda b: b.__name__)
def test_stale_weights(builder: Builder) -> None:
    assert errs(builder, stale_weights, walked)


@pytest.mark.parametrize("builder", [cache, only_one_input_changes, in_place], ids=lambda b: b.__name__)
def test_bits_that_depend_on_the_batch(builder: Builder) -> None:
    assert errs(builder, one_more_bit, batched)


def test_inputs_that_are_written() -> None:
    assert errs(only_one_input_changes, inputs_are_written, walked)


def test_bindings_of_other_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A binding is kept by the inputs' shapes alone."""
    inner = program.Program.binding
    kept: dict[Any, Any] = {}

    def binding(self: Any, inputs: list[np.ndarray]) -> Any:
        return kept.setdefault((self, *(a.shape for a in inputs)), inner(self, inputs))

    m, outputs = built(chosen_weights)
    monkeypatch.setattr(program.Program, "binding", binding)
    with pytest.raises(Wrong), fl.kernels.use("reference"):
        walk(lambda: Model(m.graph(outputs)), m.steps())
