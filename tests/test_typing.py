"""What editors, notebooks and type checkers see: every layer's own constructor, and that a misspelt name is none."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import pytest

import fastlayers as fl
from fastlayers._lazy import by_name
from fastlayers.layers.homes import HOMES

from .each import each

ROOT = Path(__file__).parent.parent


def _is_layer(name: str) -> bool:
    found = getattr(fl, name)
    return isinstance(found, type) and issubclass(found, fl.Layer)


LAYERS = sorted(name for name in by_name(HOMES) if _is_layer(name))
ANY_NUMBER = {"Layer", "Identity", "Sequential"}  # as in torch, or defined by users

MISTAKES = """
import fastlayers as fl
import numpy as np

fl.laod("x")  # error
fl.functional.rleu(np.ones(3))  # error
fl.kernels.inof()  # error
fl.graph.Inptu  # error
fl.Conv2d(3, 4, kernel=3)  # error
fl.Conv2d(3, "a", 3)  # error
fl.LSTM(3, 4, batch_frist=True)  # error
model = fl.load("x", optimise=True)  # error
right = fl.load("x", optimize=True, num_threads=2)
layer: fl.Conv2d = fl.Conv2d(3, 4, 3, padding=1, activation="relu")
shape = right.inputs["x"].shape
right.inputs["x"].shpae  # error
out: dict[str, np.ndarray] = right.run(np.ones(3))
right.stream(size=5).flush()
right.stream().flush()  # error
fl.InferenceSession("x")  # error
x = np.ones((2, 3, 4), np.float32)
sequence, (h, c) = fl.LSTM(4, 5)(x)
sequence.shpae  # error
h.shpae  # error
states: str = fl.GRU(4, 5)(x)[1]  # error
cell: np.ndarray = fl.LSTMCell(4, 5)(x[0])  # error
fl.GRUCell(4, 5)(x[0]).shpae  # error
fl.Sequential(fl.Linear(4, 5))(x).shpae  # error
right(x, out=x).shpae  # error
writer = fl.text.Generator("x")
told: str = writer.generate("The cat", 20, temperature=0.8, seed=1, stop=["."])
pieces: list[str] = list(writer.generate("The cat", stream=True))
many: list[str] = writer.generate(["The cat", "A dog"])
ids: list[int] = writer.generate([1, 2, 3], max_tokens=2)
answer = writer.generate([{"role": "user", "content": "Hello"}], logprobs=2)
writer.generate("The cat").shpae  # error
writer.generate("The cat", temp=1.0)  # error
labels: list[dict[str, object]] = fl.text.Classifier("x")("Good.")
fl.text.Classifier("x")(["Good.", "Bad."]).shpae  # error
fl.text.Encoder("x").encode(["Good."]).shpae  # error
fl.quantize(right, [x]).shpae  # error
"""


@each("name", LAYERS)
def test_a_layer_has_the_signature_of_its_constructor(name: str) -> None:
    found, own = inspect.signature(getattr(fl, name)), inspect.signature(getattr(fl, name).__init__)
    assert list(found.parameters.values()) == list(own.parameters.values())[1:]
    several = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    assert name in ANY_NUMBER or not several & {p.kind for p in found.parameters.values()}


def test_users_own_layers_too() -> None:
    class Net(fl.Layer):
        def __init__(self, width: int, *, depth: int = 3) -> None:
            pass

    assert str(inspect.signature(Net)) == "(width: 'int', *, depth: 'int' = 3)"
    assert Net(3).tensor_shapes() == {}


def test_mypy_finds_what_is_wrong_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    api = pytest.importorskip("mypy.api")
    file = tmp_path / "user.py"
    file.write_text(MISTAKES, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MYPYPATH", str(ROOT))
    shown, problem, _ = api.run(["--strict", "--follow-imports=silent", "--cache-dir", str(tmp_path / "cache"), str(file)])
    assert not problem, problem
    found = {int(line.split(":")[1]) for line in shown.splitlines() if ": error: " in line}
    want = {i for i, line in enumerate(MISTAKES.splitlines(), 1) if "# error" in line}
    assert found == want, shown


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(fl.__file__).parent / "py.typed").exists() and sys.modules["fastlayers"].__all__
