"""GridSample against torch's answers, every variant against the reference, and the edges of memory."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels import dispatch
from fastlayers.kernels.table import BORDERS

from ..each import each
from ..guard import guarded
from .models import one, run

GOLDENS = np.load(Path(__file__).parent.parent / "goldens" / "grid_sample.npz")
ANSWERS = [name for name in GOLDENS.files if name.startswith("y")]
# Torch finds places in other steps: of 33 pixels in float32, whose values differ by up to about 4 from their neighbours.
TOLERANCE = 4 * 33 * 2.0**-23


@each("name", ANSWERS)
def test_torch(name: str, variant: str) -> None:
    number, mode, border, aligned = name[1:].split("/")
    inputs = [GOLDENS[f"x{number}"], GOLDENS[f"grid{number}"]]
    made = one("GridSample", inputs, mode=mode, padding_mode=border, align_corners=int(aligned))
    np.testing.assert_allclose(run(made, inputs, variant)[0], GOLDENS[name], rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("mode", [1, 2, 4])
@pytest.mark.parametrize("border", BORDERS)
def test_every_size(border: str, mode: int, variant: str, threads: int) -> None:
    """Around the places of a task; also NaN, infinity and places far away. The numbers of a place depend on nothing else."""
    rng = np.random.default_rng(mode)
    kernel = dispatch.kernel("grid_sample")
    with fl.kernels.use("reference"):
        reference = dispatch.kernel("grid_sample")
    for size in ((5,), (4, 7), (2, 1, 3)):
        x = rng.standard_normal((2, 3, int(np.prod(size)))).astype(np.float32)
        for count in (0, 1, 32, 33, 97):
            grid = (2 * rng.standard_normal((2, count, len(size)))).astype(np.float32)
            grid.reshape(-1)[::17] = (np.nan, np.inf, -np.inf, 1e30, -1e9, 0.0, 1.0)[count % 7]
            for aligned in (0, 1, 2):
                options = (size, mode, BORDERS[border], aligned)
                want, got, part = (np.full((2, 3, count), 7, np.float32) for _ in range(3))
                reference(x, grid, want, *options)
                for edge in ("start", "end"):
                    kernel(guarded(x, edge), guarded(grid, edge), got, *options)
                    # Contracted or not: a place's shares are sums of at most three products.
                    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
                if aligned:
                    continue
                half = count // 2
                for a, b in ((0, half), (half, count)):
                    piece = np.empty((2, 3, b - a), np.float32)
                    kernel(x, np.ascontiguousarray(grid[:, a:b]), piece, *options)
                    part[:, :, a:b] = piece
                np.testing.assert_array_equal(part, got)


@pytest.mark.onnx
@pytest.mark.onnxruntime
@pytest.mark.later("reference")
def test_onnxruntime(variant: str) -> None:
    """The pixels that onnxruntime takes, also halfway between two."""
    import onnxruntime
    from onnx import helper

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    for mode, border, aligned in itertools.product(("nearest", "linear", "cubic"), BORDERS, (0, 1)):
        attributes = {"mode": mode, "padding_mode": border, "align_corners": aligned}
        infos = [helper.make_tensor_value_info(name, 1, [None] * 4) for name in ("x", "grid", "y")]
        made = helper.make_graph([helper.make_node("GridSample", ["x", "grid"], ["y"], **attributes)], "g", infos[:2], infos[2:])
        data = helper.make_model(made, opset_imports=[helper.make_opsetid("", 20)], ir_version=9).SerializeToString()
        theirs, rng = onnxruntime.InferenceSession(data, options), np.random.default_rng(0)
        for size, count in ((5, 13), (6, 40), (14, 24), (33, 21)):
            x = rng.standard_normal((1, 2, 2, size)).astype(np.float32)
            k, length = np.arange(count, dtype=np.float32), np.float32(size - aligned)
            lines = ((2 * k + 1) / np.float32(count) - 1, (2 * k + 2 - aligned) / length - 1, 1.4 * rng.standard_normal(count))
            for at in lines:  # of as many pixels, halfway between pixels, anywhere
                grid = np.full((1, 1, count, 2), 0.3, np.float32)
                grid[..., 0] = at
                got = run(one("GridSample", [x, grid], **attributes), [x, grid], variant)[0]
                want = theirs.run(None, {"x": x, "grid": grid})[0]
                np.testing.assert_allclose(got, want, rtol=0, atol=0 if mode == "nearest" else TOLERANCE)


def test_what_is_outside_is_not_read() -> None:
    """Zeros around an image of infinities stay zeros."""
    x = np.full((1, 1, 2, 2), np.inf, np.float32)
    grid = np.array([[[[-3.0, 0.0], [9.0, 9.0], [0.0, 0.0]]]], np.float32)
    for variant in ("reference", dispatch.variant().name):
        np.testing.assert_array_equal(run(one("GridSample", [x, grid]), [x, grid], variant)[0].reshape(-1), [0, 0, np.inf])
