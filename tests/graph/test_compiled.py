"""Every public function compiled: the program gives what the function gives, and runs without NumPy fallbacks."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import fastlayers as fl

from .examples import EXAMPLES, Example
from .examples._base import declared

# Programs may choose other kernels than single calls do (fused, in other layouts), which round otherwise.
TOLERANCE = 4e-6
# Operations whose programs may hold a step that runs in numpy, and why.
IN_NUMPY = {"hard_attention": "a choice by numbers, which may be drawn: nobody runs it often"}


def names(example: Example) -> list[str]:
    """What the operation calls its tensors."""
    entry = declared(example.op)
    if entry is not None:
        return list(entry.tensors) * (len(example.tensors) if entry.variadic else 1)
    return list(inspect.signature(getattr(fl.functional, example.op)).parameters)


def inputs(example: Example) -> list[int]:
    """Positions of the tensors that are inputs: all floats that are no weights, which a program packs beforehand."""
    called = names(example)
    return [i for i in example.floats if not called[i].startswith(("weight", "bias"))]


def compiled(example: Example, arrays: list[Any], **options: Any) -> tuple[fl.Model, list[Any]]:
    places = inputs(example)

    def function(*symbols: Any) -> Any:
        tensors = list(arrays)
        for i, symbol in zip(places, symbols, strict=True):
            tensors[i] = symbol
        return example.call(tensors)

    feeds = [fl.graph.Input(f"t{i}", arrays[i].shape) for i in places]
    return fl.compile(function, *feeds, **options), [arrays[i] for i in places]


@pytest.mark.parametrize("op", sorted({example.op for example in EXAMPLES}))
def test_a_program_gives_what_the_function_gives(op: str, variant: str) -> None:
    for example in (e for e in EXAMPLES if e.op == op and inputs(e)):
        arrays = example.arrays()
        native = variant != "reference" and op not in IN_NUMPY
        model, feeds = compiled(example, arrays, require_native=native)
        got = model.run(dict(zip([spec.name for spec in model.inputs], feeds, strict=True)))
        for a, b in zip(got.values(), example.call(arrays), strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape, example.label
            np.testing.assert_allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE, err_msg=example.label)


def test_a_compile_without_inputs_says_what_an_input_is() -> None:
    net = fl.Linear(3, 4)
    net.load_state_dict({"weight": np.ones((4, 3)), "bias": np.zeros(4)})
    with pytest.raises(
        fl.DTypeError, match=r"Linear cannot be called with 0 inputs: .* expected an example array, or a fl\.graph"
    ):
        fl.compile(net)
    with pytest.raises(fl.DTypeError, match=r"input 0 is the tuple \(1, 3\): .* fl\.graph\.Input\('x', \(1, 3\)\)"):
        fl.compile(net, (1, 3))

    def fails(x: object) -> None:
        raise TypeError("its own")

    with pytest.raises(TypeError, match="its own"):
        fl.compile(fails, np.ones((1, 3), np.float32))
