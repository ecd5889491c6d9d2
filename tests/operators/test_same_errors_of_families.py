"""What a function says of bad shapes, layers, programs of free sizes and files say as well: products, joining, blocks, gates.

Convolutions and pools have `test_same_errors`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import fastlayers as fl
from tests.formats.onnx_build import graph, model, node, tensor, value_info

from .test_same_errors import said

F = fl.functional
INT, NO = np.int64, None
Shapes = tuple[tuple[int, ...], ...]


class Case(NamedTuple):
    """A call of a function, and what the error says after its name.

    Attributes:
        function: of `fl.functional`.
        shapes: of its arrays, which come first, or first among those of a sequence.
        text: of the error.
        options: its other arguments.
        layer: the layer that does the same, with its arguments; its tensors are drawn in its own shapes.
        onnx: an operator of ONNX with the same rule, what its inputs are (shapes, or integers that are known), and attributes.
        fixed: whether the sizes of the arrays do not matter, so that it is refused where it is recorded.
    """

    function: str
    shapes: Shapes
    text: str
    options: dict[str, Any] = {}  # noqa: RUF012 (never changed)
    layer: tuple[Any, ...] = ()
    onnx: tuple[str, tuple[Any, ...], dict[str, Any]] | None = None
    fixed: bool = False


BROADCAST = "operands have shapes (2, 3) and (2, 4): expected sizes that are equal or 1, aligned at the last axis"
COUNT = "x has shape (2, 3, 4) with 24 values: expected a shape of as many, got "
CASES = {
    **{
        f"{name} of sizes that differ": Case(name, ((2, 3), (2, 4)), BROADCAST, onnx=(op, ((2, 3), (2, 4)), {}))
        for name, op in (("add", "Add"), ("subtract", "Sub"), ("multiply", "Mul"), ("divide", "Div"))
    },
    "features": Case(
        "linear", ((2, 3), (4, 5)), "x has shape (2, 3), weight (4, 5): expected x of shape (..., 5) for weight (out, in)",
        layer=("Linear", 5, 4),
    ),
    "axes of weights": Case("linear", ((2, 3), (4, 3, 1)), "weight has shape (4, 3, 1): expected (out, in)", fixed=True),
    "a bias for each row": Case(
        "linear", ((2, 5), (4, 5), (3,)), "bias has shape (3,): expected (4,), one value a row of weight (4, 5)"
    ),
    "squeezed": Case(
        "squeeze", ((2, 3, 4),), "x has shape (2, 3, 4): expected size 1 along axis 1", {"dim": 1},
        onnx=("Squeeze", ((2, 3, 4), [1]), {}),
    ),
    "reshaped": Case(
        "reshape", ((2, 3, 4),), COUNT + "(5, -1)", {"shape": (5, -1)}, onnx=("Reshape", ((2, 3, 4), [5, -1]), {})
    ),
    "reshaped to other sizes": Case(
        "reshape", ((2, 3, 4),), COUNT + "(5, 5)", {"shape": (5, 5)}, onnx=("Reshape", ((2, 3, 4), [5, 5]), {})
    ),
    "two open sizes": Case(
        "reshape", ((2, 3, 4),), "shape is (-1, -1): expected sizes of at least 0, at most one -1", {"shape": (-1, -1)},
        onnx=("Reshape", ((2, 3, 4), [-1, -1]), {}), fixed=True,
    ),
    "an axis twice": Case(
        "permute", ((2, 3, 4),), "dims is (0, 2, 2), x has shape (2, 3, 4): expected each of the 3 axes once",
        {"dims": (0, 2, 2)},
        onnx=("Transpose", ((2, 3, 4),), {"perm": [0, 2, 2]}), fixed=True,
    ),
    "joined": Case(
        "concat", ((2, 3), (2, 3), (1, 3)), "input 2 has shape (1, 3), input 0 (2, 3): expected equal sizes but along axis 1",
        {"dim": 1}, onnx=("Concat", ((2, 3), (2, 3), (1, 3)), {"axis": 1}),
    ),
    "joined of other axes": Case(
        "concat", ((2, 3), (2, 3, 1)), "input 1 has shape (2, 3, 1), input 0 (2, 3): expected equal sizes but along axis 1",
        {"dim": 1}, onnx=("Concat", ((2, 3), (2, 3, 1)), {"axis": 1}), fixed=True,
    ),
    "groups": Case(
        "group_norm", ((2, 6, 4),), "num_groups is 4, x (2, 6, 4) has 6 channels: expected a divisor of them", {"num_groups": 4},
        onnx=("GroupNormalization", ((2, 6, 4), (6,), (6,)), {"num_groups": 4}),
    ),
    "a weight per channel": Case(
        "group_norm", ((2, 6, 4), (5,)), "weight has shape (5,): expected (6,), one value per channel", {"num_groups": 3},
        onnx=("GroupNormalization", ((2, 6, 4), (5,), (6,)), {"num_groups": 3}),
    ),
    "a mean per channel": Case(
        "batch_norm", ((2, 6, 4), (5,), (6,)), "running_mean has shape (5,): expected (6,), one value per channel",
        onnx=("BatchNormalization", ((2, 6, 4), (6,), (6,), (5,), (6,)), {}),
    ),
    "a variance per channel": Case(
        "batch_norm", ((2, 6, 4), (6,), (7,)), "running_var has shape (7,): expected (6,), one value per channel",
        onnx=("BatchNormalization", ((2, 6, 4), (6,), (6,), (6,), (7,)), {}),
    ),
    "blocks of channels": Case(
        "pixel_shuffle", ((2, 6, 4, 4),), "x has shape (2, 6, 4, 4), 6 channels: expected a multiple of 4",
        {"upscale_factor": 2}, ("PixelShuffle", 2), ("DepthToSpace", ((2, 6, 4, 4),), {"blocksize": 2, "mode": "CRD"}),
    ),
    "blocks of rows": Case(
        "pixel_unshuffle", ((2, 6, 5, 4),), "x has shape (2, 6, 5, 4), 5 rows: expected a multiple of 2",
        {"downscale_factor": 2}, ("PixelUnshuffle", 2), ("SpaceToDepth", ((2, 6, 5, 4),), {"blocksize": 2}),
    ),
    **{
        f"features of {name}": Case(
            name, ((5, 2, 3), (g * 4, 6), (g * 4, 4)),
            f"x has 3 features, weight_ih ({g * 4}, 6) takes 6: expected equal values", {"state": None},
            onnx=(name.upper(), ((5, 2, 3), (1, g * 4, 6), (1, g * 4, 4)), {"hidden_size": 4}),
        )
        for name, g in (("lstm", 4), ("gru", 3), ("rnn", 1))
    },
    **{
        f"rows of {name}": Case(
            name, ((5, 2, 3), (g * 4 + 1, 3), (g * 4, 4)),
            f"weight_ih has shape ({g * 4 + 1}, 3): expected ({g * 4}, 3), ({rows}, i), with {rows} as in weight_hh",
            {"state": None},
            onnx=(name.upper(), ((5, 2, 3), (1, g * 4 + 1, 3), (1, g * 4, 4)), {"hidden_size": 4}),
        )
        for name, g, rows in (("lstm", 4, "4 h"), ("gru", 3, "3 h"), ("rnn", 1, "h"))
    },
}  # fmt: skip


def array(given: Any) -> np.ndarray:
    """Ones of a shape, or integers that are known."""
    return np.array(given, INT) if isinstance(given, list) else np.ones(given, np.float32)


def called(case: Case, *arrays: Any) -> Any:
    """The function of arrays, or of symbols."""
    if case.function == "concat":
        return F.concat(list(arrays), **case.options)
    if "state" in case.options:
        return getattr(F, case.function)(arrays[0], None, *arrays[1:])
    names = {"group_norm": ("weight", "bias")}.get(case.function, ())
    head = arrays[: len(arrays) if not names else 1]
    return getattr(F, case.function)(*head, **dict(zip(names, arrays[1:], strict=False)), **case.options)


def ways(case: Case, folder: Path) -> Iterator[tuple[str, str]]:
    """What each way says, with its name."""
    arrays = [array(shape) for shape in case.shapes]
    yield "function", said(lambda: called(case, *arrays))
    yield "recording", said(lambda: called(case, *(fl.graph.Input(f"x{i}", a.shape) for i, a in enumerate(arrays))))
    if case.layer:
        name, *arguments = case.layer
        layer = getattr(fl, name)(*arguments)
        layer.load_state_dict({k: np.ones(shape, np.float32) for k, shape in layer.tensor_shapes().items()})
        yield "layer", said(lambda: layer(arrays[0]))
    if not case.fixed:
        inputs = [fl.graph.Input(f"x{i}", tuple(f"d{i}_{k}" for k in range(a.ndim))) for i, a in enumerate(arrays)]
        compiled, path = fl.Model(fl.graph.trace(lambda *xs: called(case, *xs), *inputs)), folder / "model.safetensors"
        yield "program", said(lambda: compiled(*arrays))
        compiled.save(path)
        loaded = fl.load(path)
        yield "own file", said(lambda: loaded(*arrays))
    if case.onnx:
        op, shapes, attributes = case.onnx
        names = [f"x{i}" for i in range(len(shapes))]
        known = [tensor(array(s), name) for s, name in zip(shapes[1:], names[1:], strict=True)]
        written = graph([node(op, " ".join(names), "y", **attributes)], [value_info("x0", shapes[0])], "y", known)
        yield "ONNX", said(lambda: fl.load(model(written, opset=21))(array(shapes[0])))


@pytest.mark.parametrize("name", CASES)
def test_every_way_says_the_same(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    found = {way: text.replace(": perm is", ": dims is") for way, text in ways(case, tmp_path)}  # each by its own argument's name
    assert {way: text for way, text in found.items() if not text.endswith(f": {case.text}")} == {}
