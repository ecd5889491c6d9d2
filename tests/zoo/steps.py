"""Quantized networks step by step: each step is given the integers that ONNX Runtime's step before it made.

A network of 8 bits multiplies what a sum does that lands on the other side of a half, so its last result says little: the
tolerance that it needs lets wrong scales pass. Cut where it quantizes, every piece is a few operators deep. Its integers may
differ by one, where a sum all but ties, and only in few places; a scale that is 2 % wrong moves most of the large ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

import fastlayers as fl

from .exporting import distance, session_of

__all__ = ["FLIPS", "Steps", "cut", "steps_apart"]

FLIPS = 2e-4  # of a step's integers, and 2 of a step of few; what was right had a thousandth of it
FLOATS = 2e-4  # as shares of the largest number
QUANTIZERS = ("QuantizeLinear", "DynamicQuantizeLinear")


class Steps(NamedTuple):
    """What came of the steps.

    Attributes:
        count: how many there are.
        wrong: the first of those that are wrong, and why; empty if none is.
        flips: the share of all integers that differ, by one.
    """

    count: int
    wrong: str
    flips: float


def cut(file: bytes) -> tuple[bytes, bytes, dict[str, str]]:
    """The network with what its steps give as further outputs; the steps alone; names of their inputs by what they stand for."""
    import onnx

    whole = onnx.load_from_string(file)
    known = {constant.name for constant in whole.graph.initializer}
    made = [
        name
        for node in whole.graph.node
        if node.op_type in QUANTIZERS and node.input[0] not in known
        for name in node.output
        if name
    ]
    pieces = onnx.ModelProto()
    pieces.CopyFrom(whole)
    given = {name: f"{name}.given" for name in made}
    for node in pieces.graph.node:
        for i, name in enumerate(node.input):
            node.input[i] = given.get(name, name)
    there = {output.name for output in whole.graph.output}
    for graph in (whole.graph, pieces.graph):
        graph.output.extend(onnx.ValueInfoProto(name=name) for name in made if name not in there)
    del pieces.graph.value_info[:]
    return whole.SerializeToString(), pieces.SerializeToString(), given


def _fed(pieces: bytes, arrays: Mapping[str, np.ndarray]) -> bytes:
    """The steps with inputs of these sizes."""
    import onnx
    from onnx import helper

    model = onnx.load_from_string(pieces)
    model.graph.input.extend(
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in arrays.items()
    )
    return model.SerializeToString()


def steps_apart(file: bytes, feeds: Mapping[str, np.ndarray], ours: bytes | None = None) -> Steps:
    """Runs all steps on what ONNX Runtime, which runs the operators one by one as they are written, gives each of them.

    Args:
        ours: the file whose steps are run here; `file` itself if None.
    """
    with_steps, pieces, given = cut(file)
    session = session_of(with_steps, optimize=False)
    names = [output.name for output in session.get_outputs()]
    want = dict(zip(names, session.run(None, dict(feeds)), strict=True))
    known = {other: want[name] for name, other in given.items()}
    model = fl.load(_fed(pieces if ours is None else cut(ours)[1], known))
    unused = {spec.name for spec in model.inputs}
    got: Mapping[str, Any] = model.run({name: x for name, x in {**feeds, **known}.items() if name in unused})
    wrong, flipped, integers = "", 0, 0
    for name, array in want.items():
        mine = np.asarray(got[name])
        if mine.shape != array.shape or mine.dtype != array.dtype:
            return Steps(len(given), f"{name} is {mine.dtype}{mine.shape}: expected {array.dtype}{array.shape}", np.inf)
        if array.dtype.kind in "iu":
            apart = np.abs(mine.astype(np.int64) - array)
            count, most = int((apart > 0).sum()), int(apart.max(initial=0))
            flipped, integers = flipped + count, integers + array.size
            if most > 1 or count > max(2, FLIPS * array.size):
                wrong = wrong or f"{name}: {count} of {array.size} integers differ, by {most} at most"
        elif not distance(mine, array) <= FLOATS:
            wrong = wrong or f"{name} is {distance(mine, array):.1e} from ONNX Runtime's"
    return Steps(len(given), wrong, flipped / max(integers, 1))
