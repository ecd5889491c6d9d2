"""Channels-last layers as nodes: TensorFlow's padding and positions, and no transposition in what runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.formats import _channels_last as last
from fastlayers.model.model import Model
from fastlayers.operators.graphs import GraphBuilder

RNG = np.random.default_rng(0)


def model_of(build: Callable[[GraphBuilder, str], str], shape: tuple[int | str, ...]) -> Model:
    e = GraphBuilder()
    x = e.input("x", shape, np.dtype(np.float32))
    y = build(e, x)
    return Model(e.graph([x], [y]))


def same_conv(x: np.ndarray, w: np.ndarray, stride: int, dilation: int = 1) -> np.ndarray:
    """Tap by tap; w is (o, i, kh, kw), x (n, h, w, c)."""
    sizes, pads = [], []
    for size, k in zip(x.shape[1:3], w.shape[2:], strict=True):
        n = -(-size // stride)
        total = max((n - 1) * stride + dilation * (k - 1) + 1 - size, 0)
        sizes.append(n)
        pads.append((total // 2, total - total // 2))
    p = np.pad(x.astype(np.float64), ((0, 0), *pads, (0, 0)))
    y = np.zeros((x.shape[0], *sizes, w.shape[0]))
    for i, j in np.ndindex(*w.shape[2:]):
        a, b = i * dilation, j * dilation
        part = p[:, a : a + (sizes[0] - 1) * stride + 1 : stride, b : b + (sizes[1] - 1) * stride + 1 : stride]
        y += part @ w[:, :, i, j].T
    return y


@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (3, 1), (1, 2)])
@pytest.mark.parametrize("size", [(1, 1), (5, 6), (6, 5), (7, 8)])
def test_same_padding_is_tensorflows(size: tuple[int, int], stride: int, dilation: int) -> None:
    x, w = RNG.normal(size=(2, *size, 3)).astype(np.float32), RNG.normal(size=(4, 3, 3, 2)).astype(np.float32)

    def build(e: GraphBuilder, name: str) -> str:
        weight = e.constant(w, "w")
        return last.conv(e, name, weight, None, (stride, stride), (dilation, dilation), "SAME")

    model = model_of(build, ("n", "h", "w", 3))
    np.testing.assert_allclose(model(x), same_conv(x, w, stride, dilation), rtol=0, atol=1e-5)
    assert model.kernel_names({"x": x.shape}) <= {"conv", "winograd"}


@pytest.mark.parametrize(("k", "s"), [(1, 2), (2, 2), (3, 2), (4, 2), (5, 3), (2, 3)])
@pytest.mark.parametrize("same", [True, False], ids=["same", "valid"])
@pytest.mark.parametrize("asked", [True, False])
def test_transposed_is_the_adjoint(k: int, s: int, same: bool, asked: bool) -> None:
    """<conv(y), x> = <y, transposed(x)> for the convolution of the same padding."""
    w = RNG.normal(size=(3, 4, k, k)).astype(np.float32)
    x = RNG.normal(size=(1, 4, 5, 3)).astype(np.float32)
    sizes = tuple(d * s if same else (d - 1) * s + max(k, s) for d in x.shape[1:3])
    if asked:  # other sizes that a convolution makes as many windows of
        sizes = tuple(d - (s > 1) for d in sizes) if same else tuple((d - 1) * s + k for d in x.shape[1:3])

    def build(e: GraphBuilder, name: str) -> str:
        return last.conv_transpose(e, name, e.constant(w, "w"), None, (s, s), (1, 1), same, sizes if asked else None)

    got = model_of(build, x.shape)(x)
    assert got.shape == (1, *sizes, 4)
    y = RNG.normal(size=got.shape)
    if same:
        forward = same_conv(y, w, s)
    else:
        forward = np.zeros_like(x, np.float64)
        for i, j in np.ndindex(k, k):
            part = y[:, i : i + (x.shape[1] - 1) * s + 1 : s, j : j + (x.shape[2] - 1) * s + 1 : s]
            forward += part @ w[:, :, i, j].T
    np.testing.assert_allclose((forward * x).sum(), (y * got).sum(), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("sizes", [(4, 6, 8), ("h", "w", 8)])
def test_blocks(sizes: tuple[int | str, ...]) -> None:
    x = RNG.normal(size=(2, 4, 6, 8)).astype(np.float32)
    deep = model_of(lambda e, name: last.space_to_depth(e, name, 2), ("n", *sizes))
    back = model_of(lambda e, name: last.depth_to_space(e, name, 2), ("n", *sizes))
    want = x.reshape(2, 2, 2, 3, 2, 8).transpose(0, 1, 3, 2, 4, 5).reshape(2, 2, 3, 32)
    np.testing.assert_array_equal(deep(x), want)
    want = x.reshape(2, 4, 6, 2, 2, 2).transpose(0, 1, 3, 2, 4, 5).reshape(2, 8, 12, 2)
    np.testing.assert_array_equal(back(x), want)


def test_a_network_runs_without_transpositions() -> None:
    """Convolution, pool, depthwise, global mean, in this layout from end to end; the same values as with channels first."""
    w1, w2 = RNG.normal(size=(8, 3, 3, 3)).astype(np.float32), RNG.normal(size=(8, 1, 3, 3)).astype(np.float32)

    def build(e: GraphBuilder, x: str) -> str:
        h = e.node("Relu", last.conv(e, x, e.constant(w1, "w1"), None, (2, 2), (1, 1), ((1, 1), (1, 1))))
        h = last.pool(e, "MaxPool", h, (2, 2), (2, 2), "VALID")
        h = last.conv(e, h, e.constant(w2, "w2"), None, (1, 1), (1, 1), "SAME", 8)
        h = last.pool(e, "AveragePool", h, (4, 4), (4, 4), "VALID")
        return e.node("ReduceMean", h, e.ints([1, 2]), keepdims=0)

    x = RNG.normal(size=(1, 32, 16, 3)).astype(np.float32)
    model = model_of(build, x.shape)
    assert not model.kernel_names({"x": x.shape}) & {"transpose", "copy"}
    f = fl.functional
    h = f.relu(f.conv2d(x.transpose(0, 3, 1, 2), w1, stride=2, padding=1))
    h = f.conv2d(f.max_pool2d(h, 2), w2, padding=1, groups=8)
    want = f.avg_pool2d(h, 4).mean((2, 3))
    np.testing.assert_allclose(model(x), want, rtol=1e-4, atol=1e-4)


def test_an_average_over_a_part_is_no_global_one() -> None:
    """(w, c) is as large as the kernel, (h, w) is not."""
    x = RNG.normal(size=(1, 8, 4, 4)).astype(np.float32)
    model = model_of(lambda e, name: last.pool(e, "AveragePool", name, (4, 4), (4, 4), "VALID"), x.shape)
    np.testing.assert_allclose(model(x), x.reshape(1, 2, 4, 1, 4, 4).mean((2, 4)), rtol=1e-5, atol=1e-6)
