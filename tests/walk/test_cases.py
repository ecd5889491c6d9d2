"""Every operator's examples, walked over sizes and over parameters that an integer input chooses."""

from __future__ import annotations

import pytest

from fastlayers.model.model import Model, Options
from tests.operators.cases import all_cases

from .batch import check_batch
from .cases import batches_of, walks_of
from .check import walk

BY_OPERATOR = {op: [c for c in all_cases() if c.op == op] for op in sorted({c.op for c in all_cases()})}
AS_WRITTEN = Options(optimize=False)


@pytest.mark.parametrize("op", BY_OPERATOR)
@pytest.mark.sampled(4)
def test_walk(op: str) -> None:
    for item in BY_OPERATOR[op]:
        for made in walks_of(item):
            walk(lambda graph=made.graph: Model(graph, AS_WRITTEN), made.steps)  # type: ignore[misc]


@pytest.mark.parametrize("op", BY_OPERATOR)
def test_in_a_batch_and_alone(op: str) -> None:
    for item in BY_OPERATOR[op]:
        for graph, feeds, axes in batches_of(item):
            names = [v.name for v in graph.outputs]
            check_batch(lambda graph=graph: Model(graph, AS_WRITTEN), graph, feeds, axes, names)  # type: ignore[misc]
