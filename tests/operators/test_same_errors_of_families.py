"""What a function says of bad shapes, layers, programs of free sizes and files say as well: products, joining, blocks, gates,
slopes, slices, borders, whole maps, boxes, positions, spectra.

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
    "a state of lstm": Case(
        "lstm", ((5, 2, 3), (16, 3), (16, 4), (1, 3, 4), (1, 2, 4)),
        "h0 has shape (1, 3, 4): expected (1, 2, 4), (layers x directions, n, units) for x (5, 2, 3)", {"state": 2},
        ("LSTM", 3, 4),
        ("LSTM", ((5, 2, 3), (1, 16, 3), (1, 16, 4), NO, NO, (1, 3, 4), (1, 2, 4)), {"hidden_size": 4}),
    ),
    "a state of gru": Case(
        "gru", ((5, 2, 3), (12, 3), (12, 4), (1, 2, 5)),
        "h0 has shape (1, 2, 5): expected (1, 2, 4), (layers x directions, n, units) for x (5, 2, 3)", {"state": 1},
        ("GRU", 3, 4), ("GRU", ((5, 2, 3), (1, 12, 3), (1, 12, 4), NO, NO, (1, 2, 5)), {"hidden_size": 4}),
    ),
    "lengths of rnn": Case(
        "rnn", ((5, 2, 3), (4, 3), (4, 4), [5, 4, 3]), "lengths has shape (3,): expected (2,), one length a sequence",
        {"state": "lengths"}, ("RNN", 3, 4),
        ("RNN", ((5, 2, 3), (1, 4, 3), (1, 4, 4), NO, [5, 4, 3]), {"hidden_size": 4}),
    ),
    "slopes": Case(
        "prelu", ((2, 3, 4), (5,)), "weight has 5 slopes, x (2, 3, 4) has 3 channels: expected (1,) or (3,)",
        layer=("PReLU", 5), onnx=("PRelu", ((2, 3, 4), (5, 1)), {}),
    ),
    **{
        f"sizes of {name}": Case(
            name, ((2, 3), (4,)), "x has shape (2, 3): expected (..., 4), ending in normalized_shape", {"normalized_shape": 4},
            (layer, 4), (op, ((2, 3), (4,)), {}),
        )
        for name, layer, op in (
            ("layer_norm", "LayerNorm", "LayerNormalization"), ("rms_norm", "RMSNorm", "RMSNormalization"),
        )
    },
    **{
        f"an axis of {name}": Case(
            name, ((2, 3),), "dim is 2, x has 2 axes: expected -2 to 1", {"dim": 2}, (layer, 2), (op, ((2, 3),), {"axis": 2}),
            fixed=True,
        )
        for name, layer, op in (("softmax", "Softmax", "Softmax"), ("log_softmax", "LogSoftmax", "LogSoftmax"))
    },
    "a step of nothing": Case(
        "slice", ((2, 3),), "step is 0: expected another number", {"step": 0},
        onnx=("Slice", ((2, 3), [0], [2], [0], [0]), {}), fixed=True,
    ),
    "an axis of a slice": Case(
        "slice", ((2, 3),), "dim is -3, x has 2 axes: expected -2 to 1", {"dim": -3},
        onnx=("Slice", ((2, 3), [0], [2], [-3]), {}), fixed=True,
    ),
    "an index": Case(
        "select", ((2, 3),), "index -4 is out of range: expected -3 to 2 along axis 1 of x (2, 3)", {"dim": 1, "index": -4},
        onnx=("Gather", ((2, 3), [-4]), {"axis": 1}),
    ),
    **{
        f"a border by {mode}": Case(
            "pad", ((2, 3),), f"(0, {most + 1}) along axis 1 of size 3: expected 0 to {most} with mode={mode!r}",
            {"pad": (0, most + 1), "mode": mode},
        )
        for mode, most in (("reflect", 2), ("circular", 3))
    },
    "a border of nothing": Case(
        "pad", ((2, 0),), "(1, 0) along axis 1 of size 0: expected 0 to 0 with mode='replicate'",
        {"pad": (1, 0), "mode": "replicate"},
    ),
    **{
        f"nothing to {name}": Case(
            name, ((1, 2, 0, 3),), "x has shape (1, 2, 0, 3): expected at least one number along each spatial axis", options,
            layer, onnx,
        )
        for name, options, layer, onnx in (
            ("global_avg_pool", {}, ("GlobalAvgPool",), ("GlobalAveragePool", ((1, 2, 0, 3),), {})),
            ("global_max_pool", {}, ("GlobalMaxPool",), ("GlobalMaxPool", ((1, 2, 0, 3),), {})),
            ("adaptive_avg_pool2d", {"output_size": 2}, ("AdaptiveAvgPool2d", 2), NO),
            ("adaptive_max_pool2d", {"output_size": 2}, ("AdaptiveMaxPool2d", 2), NO),
            ("interpolate", {"size": 2, "mode": "bilinear"}, ("Upsample", 2, NO, "bilinear"), NO),
        )
    },
    "made of less than one": Case(
        "interpolate", ((1, 2, 3),), "scale_factor is (0.25,) for x of shape (1, 2, 3): expected sizes of at least 1",
        {"scale_factor": 0.25}, ("Upsample", NO, 0.25),
    ),
    "bins of less than one": Case(
        "interpolate", ((1, 2, 3),), "scale_factor is (0.25,) for x of shape (1, 2, 3): expected sizes of at least 1",
        {"scale_factor": 0.25, "mode": "area"}, ("Upsample", NO, 0.25, "area"),
    ),
    "boxes": Case(
        "roi_pool", ((1, 2, 4, 4), (3, 4)), "boxes has shape (3, 4): expected (k, 5), each (image, x1, y1, x2, y2)",
        {"output_size": 2}, onnx=("MaxRoiPool", ((1, 2, 4, 4), (3, 4)), {"pooled_shape": [2, 2]}),
    ),
    "the scale of boxes": Case(
        "roi_pool", ((1, 2, 4, 4), (3, 5)), "spatial_scale is -1.0: expected a positive number",
        {"output_size": 2, "spatial_scale": -1.0},
        onnx=("MaxRoiPool", ((1, 2, 4, 4), (3, 5)), {"pooled_shape": [2, 2], "spatial_scale": -1.0}), fixed=True,
    ),
    "heads": Case(
        "rotary_embedding", ((1, 5, 7), (5, 1), (5, 1)), "x has shape (1, 5, 7), num_heads is 2: expected a multiple of it",
        {"num_heads": 2},
    ),
    "angles": Case(
        "rotary_embedding", ((1, 2, 5, 8), (5, 3), (5, 3)),
        "cos has shape (5, 3): expected 4 angles a position for 8 values of a head",
    ),
    "more angles than pairs": Case(
        "rotary_embedding", ((1, 2, 5, 4), (1, 5, 3), (1, 5, 3)),
        "6 values of a head of 4 are rotated: expected an even number of them, at most all", {"rotary_dim": 6},
        onnx=("RotaryEmbedding", ((1, 2, 5, 4), (1, 5, 3), (1, 5, 3)), {}),
    ),
    "positions": Case(
        "rotary_embedding", ((1, 2, 5, 4), (6, 2), (6, 2)),
        "cos has shape (6, 2), sin (6, 2), x (1, 2, 5, 4): expected both (5, r / 2) or (1, 5, 'r / 2') without position_ids",
        onnx=("RotaryEmbedding", ((1, 2, 5, 4), (6, 2), (6, 2)), {}),
    ),
    **{
        f"values of {name}": Case(
            name, ((2, least - 1, 2),), f"x has {least - 1} values along axis 1: expected at least {least}", onnx=onnx
        )
        for name, least, onnx in (
            ("fft", 1, ("DFT", ((2, 0, 2), NO, [1]), {})), ("ifft", 1, ("DFT", ((2, 0, 2), NO, [1]), {"inverse": 1})),
            ("irfft", 2, NO),
        )
    },
    "values of rfft": Case("rfft", ((2, 0),), "x has 0 values along axis 1: expected at least 1"),
    "pairs": Case(
        "irfft", ((2, 4, 3),), "x has shape (2, 4, 3): expected (..., n, 2), complex numbers as pairs"
    ),
    "a window": Case(
        "stft", ((1, 100), (15,)), "window has shape (15,): expected (16,), win_length", {"n_fft": 16, "center": False},
        onnx=("STFT", ((1, 100), 4, (15,), 16), {}),
    ),
    "values of a frame": Case(
        "stft", ((1, 10), (16,)), "x has 10 values: expected at least 16 for n_fft=16", {"n_fft": 16, "center": False},
        onnx=("STFT", ((1, 10), 4, (16,), 16), {}),
    ),
    "frequencies": Case("istft", ((1, 8, 5, 2),), "x has 8 frequencies: expected 9", {"n_fft": 16}),
}  # fmt: skip
# Words of one way in for what a function's argument is called.
ALSO = (
    (": perm is", ": dims is"),
    (": axis is", ": dim is"),
    (", frame_length", ", win_length"),
    ("for frame_length=", "for n_fft="),
)


# Arrays that functions take by name, after their first.
WORDS = {
    "group_norm": ("weight", "bias"), "layer_norm": ("weight", "bias"), "rms_norm": ("weight",), "stft": ("window",),
}  # fmt: skip


def array(given: Any) -> np.ndarray:
    """Ones of a shape, or integers that are known, one of them or a list."""
    return np.array(given, INT) if isinstance(given, (int, list)) else np.ones(given, np.float32)


def called(case: Case, *arrays: Any) -> Any:
    """The function of arrays, or of symbols."""
    if case.function == "concat":
        return F.concat(list(arrays), **case.options)
    if "state" in case.options:
        x, w_ih, w_hh, *more = arrays
        if case.options["state"] == "lengths":
            return getattr(F, case.function)(x, None, w_ih, w_hh, lengths=more[0])
        return getattr(F, case.function)(x, tuple(more) if len(more) > 1 else more[0] if more else None, w_ih, w_hh)
    names = WORDS.get(case.function, ())
    head = arrays[: len(arrays) if not names else 1]
    return getattr(F, case.function)(*head, **dict(zip(names, arrays[1:], strict=False)), **case.options)


def ways(case: Case, folder: Path) -> Iterator[tuple[str, str]]:
    """What each way says, with its name."""
    arrays = [array(shape) for shape in case.shapes]
    yield "function", said(lambda: called(case, *arrays))
    yield "recording", said(lambda: called(case, *(fl.graph.Input(f"x{i}", a.shape, a.dtype) for i, a in enumerate(arrays))))
    if case.layer:
        name, *arguments = case.layer
        layer = getattr(fl, name)(*arguments)
        layer.load_state_dict({k: np.ones(shape, np.float32) for k, shape in layer.tensor_shapes().items()})
        state = arrays[3:] if "state" in case.options else []
        if case.options.get("state") == "lengths":
            yield "layer", said(lambda: layer(arrays[0], lengths=state[0]))
        elif state:
            yield "layer", said(lambda: layer(arrays[0], tuple(state) if len(state) > 1 else state[0]))
        else:
            yield "layer", said(lambda: layer(arrays[0]))
    if not case.fixed:
        inputs = [fl.graph.Input(f"x{i}", tuple(f"d{i}_{k}" for k in range(a.ndim)), a.dtype) for i, a in enumerate(arrays)]
        compiled, path = fl.Model(fl.graph.trace(lambda *xs: called(case, *xs), *inputs)), folder / "model.safetensors"
        yield "program", said(lambda: compiled(*arrays))
        compiled.save(path)
        loaded = fl.load(path)
        yield "own file", said(lambda: loaded(*arrays))
    if case.onnx:
        op, shapes, attributes = case.onnx
        names = ["_" if shape is NO else f"x{i}" for i, shape in enumerate(shapes)]
        given = [array(s) for s in shapes[1:] if s is not NO]
        given = [a.astype(np.int32) if op == "RNN" and a.dtype == INT else a for a in given]  # its lengths
        known = [tensor(a, name) for a, name in zip(given, [name for name in names[1:] if name != "_"], strict=True)]
        written = graph([node(op, " ".join(names), "y", **attributes)], [value_info("x0", shapes[0])], "y", known)
        yield "ONNX", said(lambda: fl.load(model(written, opset=23))(array(shapes[0])))


@pytest.mark.parametrize("name", CASES)
def test_every_way_says_the_same(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    found = dict(ways(case, tmp_path))
    for own, of_functions in ALSO:
        found = {way: text.replace(own, of_functions) for way, text in found.items()}
    assert {way: text for way, text in found.items() if not text.endswith(f": {case.text}")} == {}
