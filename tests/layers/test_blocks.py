"""Blocks of convolutional networks, and networks of them, against torch: see tests/goldens/block_cases.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl

from ..goldens.block_cases import CASES, BlockCase, inputs, weights

GOLDEN = Path(__file__).parent.parent / "goldens" / "blocks.npz"
# Parts of the largest result. A block has sums of at most 200 terms; ResNet-50 fifty layers, one behind the other.
TOLERANCE, DEEP = 4e-6, 2e-5
BLOCKS = {"basic": fl.ResidualBlock, "bottleneck": fl.BottleneckBlock}


@pytest.fixture(scope="module")
def golden() -> dict[str, np.ndarray]:
    with np.load(GOLDEN) as file:
        return dict(file)


def made(case: BlockCase, **options: Any) -> fl.Layer:
    """The block with the case's arguments and weights."""
    kwargs = {"stride_first" if name == "first" else name: value for name, value in case.kwargs.items()}
    layer = BLOCKS[case.kind](*case.args, **kwargs, **options)
    layer.load_state_dict(weights(case, layer.tensor_shapes()))
    return layer


def close(got: np.ndarray, want: np.ndarray, tolerance: float = TOLERANCE) -> None:
    assert got.shape == want.shape and got.dtype == np.float32
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * max(1.0, float(np.abs(want).max())))


SMALL = [case for case in CASES if case.kind in BLOCKS]


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.label)
def test_blocks_give_what_torch_gives(case: BlockCase, variant: str, golden: dict[str, np.ndarray]) -> None:
    layer, x = made(case), inputs(case)
    want = golden[case.label]
    close(layer(x), want)
    close(layer(x[0]), want[0])
    close(fl.compile(layer, x, require_native=variant != "reference")(x), want)
    last = made(case, layout="nhwc")
    x = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    close(np.moveaxis(last(x), -1, 1), want)
    close(np.moveaxis(fl.compile(last, x)(x), -1, 1), want)


def test_blocks_without_normalisation_have_biases() -> None:
    block = fl.ResidualBlock(3, 3, batch_norm=False, activation=("leaky_relu", {"negative_slope": 0.1}))
    shapes = block.tensor_shapes()
    assert list(shapes) == ["conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias"]
    rng = np.random.default_rng(0)
    state = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    block.load_state_dict(state)
    x = rng.standard_normal((1, 3, 5, 4)).astype(np.float32)
    act = fl.LeakyReLU(0.1)
    first = act(fl.functional.conv2d(x, state["conv1.weight"], state["conv1.bias"], padding=1))
    close(block(x), act(fl.functional.conv2d(first, state["conv2.weight"], state["conv2.bias"], padding=1) + x))


def test_counts_of_batches_are_passed_over_and_loads_replace_what_is_packed() -> None:
    case = SMALL[0]
    block, x = made(case), inputs(case)
    before = block(x)
    state = {name: array * 2 for name, array in block.state_dict().items()}
    block.load_state_dict({**state, "bn1.num_batches_tracked": np.array(3)})
    assert np.abs(block(x) - before).max() > 0.1


def test_a_block_does_not_add_what_does_not_fit() -> None:
    block = fl.ResidualBlock(3, 5, projection=False)
    block.load_state_dict({name: np.ones(shape) for name, shape in block.tensor_shapes().items()})
    for x in (np.ones((1, 3, 4, 4)), fl.graph.Input("x", (1, 3, 4, 4))):
        with pytest.raises(fl.ShapeError, match=r"residual has shape \(1, 3, 4, 4\): expected \(1, 5, 4, 4\)"):
            block(x)


def test_wrong_arguments() -> None:
    with pytest.raises(fl.ShapeError, match="ResidualBlock: in_channels is 0: expected at least 1"):
        fl.ResidualBlock(0)
    with pytest.raises(fl.ShapeError, match="BottleneckBlock: stride is 0"):
        fl.BottleneckBlock(4, 2, stride=0)
    with pytest.raises(fl.ShapeError, match="groups is 3"):
        fl.BottleneckBlock(4, 2, groups=3)
    with pytest.raises(fl.DTypeError, match="ResidualBlock: epsilon"):
        fl.ResidualBlock(4, epsilon="no")
    with pytest.raises(fl.WeightsError, match=r"missing bn1\.weight \(4,\)"):
        fl.ResidualBlock(4).load_state_dict({"conv1.weight": np.ones((4, 4, 3, 3))}, prefix="")
