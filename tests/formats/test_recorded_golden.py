"""Models that the last version saved whose traces had names of functions: they load, and give what the functions give now."""

from __future__ import annotations

from typing import Any

import numpy as np

import fastlayers as fl
from fastlayers.operators import OPERATORS
from fastlayers.operators.control import CONTROL
from tests.goldens.make_recorded import PATH, feeds, functions, network
from tests.graph.examples._base import OTHERWISE


def test_what_was_saved_before_gives_the_same_bits() -> None:
    got = fl.load(PATH).run(feeds())
    named = [(op, result) for op, example in functions().items() for result in example.call(example.arrays())]
    for (op, want), (name, result) in zip(named, got.items(), strict=True):
        assert name.startswith(f"{op} gives")
        tolerance = OTHERWISE.get(op, 0.0)
        np.testing.assert_allclose(result, want, rtol=tolerance, atol=tolerance, err_msg=name)


def written(model: fl.Model) -> list[str]:
    """What all nodes say."""

    def plain(value: Any) -> Any:
        return tuple(map(plain, value)) if isinstance(value, tuple) else value

    nodes = model._main.whole_graph().nodes
    rows = [{key: plain(value) for key, value in node.attributes.items()} for node in nodes]
    for row in rows:
        for since in ("bounded", "whole"):  # with which programs refuse at a run what functions refuse
            row.pop(since, None)
        if "options" in row:  # a recurrent layer's: zeros have come to their end since, which say that weights are float32
            row["options"] = _without_zeros(row["options"])
    return sorted(f"{node.op} {sorted(row.items())}" for node, row in zip(nodes, rows, strict=True))


def _without_zeros(options: tuple[Any, ...]) -> tuple[Any, ...]:
    return options if not options or options[-1] != 0 else _without_zeros(options[:-1])


def test_what_is_recorded_now_is_the_same_graph() -> None:
    """Operators and their attributes, one by one; in an order that may differ, and with other names of what is between."""
    arrays = feeds()
    now = fl.graph.trace(network, *(fl.graph.Input(name, a.shape, a.dtype) for name, a in arrays.items()))
    saved, made = fl.load(PATH), fl.Model(now)
    assert written(made) == written(saved)
    assert [v.name for v in made.outputs] == [v.name for v in saved.outputs]
    assert {n.op for n in now.nodes} <= {*OPERATORS, *CONTROL}
