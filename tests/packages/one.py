"""One package's case in a process of its own: ``python -m tests.packages.one CASE ENGINE ANSWERS.npz``.

Engines: "onnxruntime" itself; "fastlayers", which stands in for it; and "wrong", fastlayers with its floating-point outputs two
percent off, up and down alternately, which every case must notice. Needs no more than the package and numpy: no pytest.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

OFF = 0.02


def flat(answer: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of nested dicts, lists and objects, by their paths."""
    if isinstance(answer, dict):
        for key, value in answer.items():
            yield from flat(value, f"{name}/{key}")
    elif isinstance(answer, (list, tuple)) and not all(isinstance(item, (int, float, str)) for item in answer):
        for i, value in enumerate(answer):
            yield from flat(value, f"{name}/{i}")
    else:
        array = np.asarray(answer)
        if array.dtype.kind == "O":
            raise TypeError(f"the answer {name} is a {type(answer).__name__}: a case gives arrays, numbers and texts")
        yield name, array


def wrong(found: Any, place: int) -> Any:
    """An output that is two percent off."""
    if isinstance(found, np.ndarray) and found.dtype.kind == "f":
        sign = 1 - 2 * ((np.arange(found.size) + place) % 2).reshape(found.shape)
        return (found * (1 + OFF * sign)).astype(found.dtype)
    if isinstance(found, dict):
        return {key: wrong(np.asarray(value), i).item() for i, (key, value) in enumerate(found.items())}
    if isinstance(found, (list, tuple)):
        return [wrong(item, i) for i, item in enumerate(found)]
    return found


def stand_in(off: bool) -> list[int]:
    """Installs fastlayers in place of onnxruntime; the list counts its runs."""
    import fastlayers.ort
    from fastlayers.ort import _core

    fastlayers.ort.install()
    runs = [0]
    given = _core.Core._given

    def counted(self: Any, arrays: Any, names: Any, out: Any, options: Any) -> list[Any]:
        runs[0] += 1
        found = given(self, arrays, names, None if off else out, options)
        return [wrong(item, i) for i, item in enumerate(found)] if off else found

    _core.Core._given = counted  # type: ignore[method-assign]
    run = _core.Core.run

    def slow(self: Any, output_names: Any, input_feed: Any, run_options: Any = None) -> list[Any]:
        return run(self, tuple(output_names), input_feed, run_options)  # what is no list goes by way of _given

    _core.Core.run = slow  # type: ignore[method-assign]
    return runs


def main(case: str, engine: str, target: str) -> None:
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", TQDM_DISABLE="1")
    runs = [1] if engine == "onnxruntime" else stand_in(engine == "wrong")
    np.random.seed(0)
    with tempfile.TemporaryDirectory() as folder:
        answers = dict(flat(importlib.import_module(f"tests.packages.cases.{case}").answers(Path(folder))))
    import onnxruntime

    stands_in = getattr(onnxruntime, "_stands_in", None) is not None
    if stands_in is (engine == "onnxruntime"):
        raise SystemExit(f"{case}: onnxruntime is {onnxruntime.__file__}")
    if not runs[0]:
        raise SystemExit(f"{case}: no model was run")
    np.savez(target, **answers)


if __name__ == "__main__":
    main(*sys.argv[1:])
