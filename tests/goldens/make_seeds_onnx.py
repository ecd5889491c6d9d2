"""Writes seeds_onnx.npz: the programs of make_seeds.py as ONNX files, exported by Keras.

Keras' torch backend writes files of fixed shapes: a program that is called twice makes two. Weights come from `seed_inputs`
again: in the files' bytes are zeros in their place, which compress to nothing, and "weights" says what belongs where.

Run from the root of the repository: ``KERAS_BACKEND=torch python -m tests.goldens.make_seeds_onnx``; made with Keras 3.15, torch
2.13 and onnxscript 0.7.
"""

from __future__ import annotations

import itertools
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from keras import InputSpec

from .make_seeds import PROGRAMS
from .seed_inputs import INPUTS, weights

FILE = Path(__file__).with_name("seeds_onnx.npz")


def without_traces(model: onnx.ModelProto) -> bytes:
    """The file without the texts in which torch's exporter says from which lines of which files every node comes."""
    graph = model.graph
    for part in (model, graph, *graph.node, *graph.input, *graph.output, *graph.value_info, *graph.initializer, *model.functions):
        del part.metadata_props[:]
        part.doc_string = ""
    assert not model.functions
    data: bytes = model.SerializeToString()
    assert b".py" not in data
    return data


def without_weights(data: bytes, arrays: list[np.ndarray]) -> tuple[bytes, list[Any]]:
    """The file with zeros in place of larger weights, and for each of them offset, number and order of axes."""
    found: list[Any] = []
    for number, array in enumerate(arrays):
        if array.size < 64:
            continue
        for order in itertools.permutations(range(array.ndim)):
            raw = array.transpose(order).astype("<f4").tobytes()
            while (offset := data.find(raw)) >= 0:
                data = data[:offset] + bytes(len(raw)) + data[offset + len(raw) :]
                found.append([offset, number, order])
    return data, found


def main() -> None:
    stored: dict[str, Any] = {}
    index: dict[str, Any] = {}
    for program in PROGRAMS:
        name = program.__name__
        model = program()
        arrays = weights(name, [tuple(w.shape) for w in model.weights])
        model.set_weights(arrays)
        for call, inputs in enumerate(INPUTS[name]()):
            signature = [InputSpec(shape=x.shape, dtype="int32" if x.dtype == np.int64 else "float32") for x in inputs]
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "model.onnx")
                # A model of several inputs takes its one argument, a list.
                spec = signature if len(signature) == 1 else [signature]
                model.export(path, format="onnx", verbose=False, input_signature=spec)
                data = without_traces(onnx.load(path))
            data, found = without_weights(data, arrays)
            stored[f"{name} {call}"] = np.frombuffer(data, np.uint8)
            index[f"{name} {call}"] = found
    np.savez_compressed(FILE, weights=np.array(json.dumps(index)), **stored)


if __name__ == "__main__":
    main()
