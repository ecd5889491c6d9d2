"""Writes recorded.safetensors: the programs of all functions, as the last version saved them whose traces had names of functions.

``python -m tests.goldens.make_recorded`` would write what this version records: the file is kept as it is, since it shows that
models saved by older versions still load. Its functions are the first examples of each in `tests.graph.examples`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import fastlayers as fl
from tests.graph.examples import EXAMPLES
from tests.graph.examples._base import Example
from tests.graph.test_compiled import inputs

PATH = Path(__file__).with_name("recorded.safetensors")


class _Then(Example):
    """An LSTM's example as it was when the file was written: its label, which seeds its arrays, had no places for peepholes and
    a projection before the states.
    """

    @property
    def label(self) -> str:
        return super().label.replace(", None, None", "", 1)


def functions() -> dict[str, Any]:
    """The first example of each function that has inputs, by the function's name."""
    found: dict[str, Any] = {}
    for example in EXAMPLES:
        if inputs(example):
            found.setdefault(example.op, _Then(*example) if example.op.startswith("lstm") else example)
    return found


# Inputs whose places among the tensors of their call have changed since the file was written.
MOVED = {"lstm_cell_7": "lstm_cell_5", "lstm_cell_8": "lstm_cell_6"}


def feeds() -> dict[str, np.ndarray]:
    """The inputs of the network, by name."""
    found = {f"{op}_{i}": e.arrays()[i] for op, e in functions().items() for i in inputs(e)}
    return {MOVED.get(name, name): array for name, array in found.items()}


def network(*given: Any) -> dict[str, Any]:
    """The results of all functions."""
    left, results = iter(given), {}
    for op, example in functions().items():
        tensors: list[Any] = example.arrays()
        for i in inputs(example):
            tensors[i] = next(left)
        results[f"{op} gives"] = example.call(tensors)
    return results


def main() -> None:
    """Writes the file."""
    arrays = feeds()
    model = fl.compile(network, *(fl.graph.Input(name, a.shape, a.dtype) for name, a in arrays.items()))
    model.save(PATH)


if __name__ == "__main__":
    main()
