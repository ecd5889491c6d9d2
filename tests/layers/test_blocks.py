"""Blocks of convolutional networks, and networks of them, against torch: see tests/goldens/block_cases.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
import fastlayers.functional as F

from ..goldens.block_cases import CASES, GOOGLENET, GOOGLENET_POOLS, BlockCase, inputs, weights

GOLDEN = Path(__file__).parent.parent / "goldens" / "blocks.npz"
# Parts of the largest result. A block has sums of at most 200 terms; ResNet-50 fifty layers, one after the other.
TOLERANCE, DEEP = 4e-6, 2e-5
BLOCKS = {
    "basic": fl.ResidualBlock, "bottleneck": fl.BottleneckBlock, "inception": fl.InceptionBlock, "nin": fl.NiNBlock,
}  # fmt: skip


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
    want = np.moveaxis(want, 1, -1)  # of a head's two axes, as they are
    close(last(x), want)
    close(fl.compile(last, x)(x), want)


def test_blocks_without_normalization_have_biases() -> None:
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
    with pytest.raises(fl.ArgumentError, match="ResidualBlock: in_channels is 0: expected at least 1"):
        fl.ResidualBlock(0)
    with pytest.raises(fl.ArgumentError, match="BottleneckBlock: stride is 0"):
        fl.BottleneckBlock(4, 2, stride=0)
    with pytest.raises(fl.ArgumentError, match="groups is 3"):
        fl.BottleneckBlock(4, 2, groups=3)
    with pytest.raises(fl.DTypeError, match="ResidualBlock: epsilon"):
        fl.ResidualBlock(4, epsilon="no")
    with pytest.raises(fl.WeightsError, match=r"missing bn1\.weight \(4,\)"):
        fl.ResidualBlock(4).load_state_dict({"conv1.weight": np.ones((4, 4, 3, 3))}, prefix="")


class Resnet50(fl.Layer):
    def __init__(self) -> None:
        self.conv1, self.bn1 = fl.Conv2d(3, 64, 7, 2, 3, bias=False), fl.BatchNorm2d(64)
        c = 64
        for at, (blocks, inner) in enumerate(zip((3, 4, 6, 3), (64, 128, 256, 512), strict=True), 1):
            stride = 1 if at == 1 else 2
            rest = [fl.BottleneckBlock(4 * inner, inner) for _ in range(blocks - 1)]
            setattr(self, f"layer{at}", fl.Sequential(fl.BottleneckBlock(c, inner, stride=stride), *rest))
            c = 4 * inner
        self.fc = fl.Linear(2048, 1000)

    def forward(self, x: Any) -> Any:
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        for at in range(1, 5):
            x = getattr(self, f"layer{at}")(x)
        return self.fc(F.global_avg_pool(x))


class Basic(fl.Layer):
    def __init__(self, c: int, o: int, k: int, stride: int = 1) -> None:
        self.conv, self.bn = fl.Conv2d(c, o, k, stride, k // 2, bias=False), fl.BatchNorm2d(o, eps=1e-3)

    def forward(self, x: Any) -> Any:
        return F.relu(self.bn(self.conv(x)))


class Googlenet(fl.Layer):
    def __init__(self) -> None:
        self.conv1, self.conv2, self.conv3 = Basic(3, 64, 7, 2), Basic(64, 64, 1), Basic(64, 192, 3)
        for name, widths in GOOGLENET.items():
            setattr(self, name, fl.InceptionBlock(*widths))
        self.fc = fl.Linear(1024, 1000)

    def forward(self, x: Any) -> Any:
        x = F.max_pool2d(self.conv1(x), 3, 2, ceil_mode=True)
        x = F.max_pool2d(self.conv3(self.conv2(x)), 3, 2, ceil_mode=True)
        for name in GOOGLENET:
            x = getattr(self, name)(x)
            if name in GOOGLENET_POOLS:
                x = F.max_pool2d(x, GOOGLENET_POOLS[name], 2, ceil_mode=True)
        return self.fc(F.global_avg_pool(x))


NETWORKS = {"resnet50": Resnet50, "googlenet": Googlenet}


@pytest.mark.parametrize("case", [case for case in CASES if case.kind in NETWORKS], ids=lambda case: case.kind)
def test_whole_networks_give_what_torch_gives(case: BlockCase, golden: dict[str, np.ndarray]) -> None:
    net, x = NETWORKS[case.kind](), inputs(case)
    net.load_state_dict(weights(case, net.tensor_shapes()))
    close(net(x), golden[case.label], DEEP)
    model = fl.compile(net, x, require_native=True)
    close(model(x), golden[case.label], DEEP)
    nodes = model.summary()
    assert "BatchNorm" not in nodes and "Affine" not in nodes  # all are folded
    strict = fl.compile(net, x, precision="strict")
    close(strict(x), golden[case.label], DEEP)


def test_branches_of_one_image_are_written_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    case = next(case for case in CASES if case.kind == "inception")
    block, x = made(case), inputs(case)
    want = block(x)
    monkeypatch.setattr("fastlayers.layers.blocks.concat", None)
    np.testing.assert_array_equal(block(x[:1]), want[:1])
    np.testing.assert_array_equal(block(x[1]), want[1])


def test_wrong_arguments_of_blocks_with_branches() -> None:
    with pytest.raises(fl.ArgumentError, match="InceptionBlock: large is 4: expected an odd number"):
        fl.InceptionBlock(4, 1, 1, 1, 1, 1, 1, large=4)
    with pytest.raises(fl.ArgumentError, match="InceptionBlock: ch5x5 is 0"):
        fl.InceptionBlock(4, 1, 1, 1, 1, 0, 1)
    with pytest.raises(fl.ArgumentError, match=r"NiNBlock: channels is .*expected at least one"):
        fl.NiNBlock(4, [], 3)
    block = fl.InceptionBlock(4, 1, 1, 1, 1, 1, 1)
    block.load_state_dict({name: np.ones(shape) for name, shape in block.tensor_shapes().items()})
    with pytest.raises(fl.ShapeError, match=r"InceptionBlock: x has shape \(4, 5\)"):
        block(np.ones((4, 5)))
    with pytest.raises(fl.ShapeError, match="has 3"):
        block(np.ones((1, 3, 5, 5)))
