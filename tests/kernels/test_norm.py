"""Normalization: figures of torch and onnx, awkward sizes, large means, special values, edges of memory, threads."""

from __future__ import annotations

from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels import dispatch
from fastlayers.kernels.reference import norm as reference
from fastlayers.kernels.table import UNARY, Activation
from tests.goldens.make_norm import EPSILON, RESPONSES
from tests.guard import guarded, guarded_empty

from .space import bits

LENGTHS = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 65, 129, 511, 512, 513, 768, 1100, 5000)
IDENTITY, RELU = Activation(0), Activation(1)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def call(name: str, *arguments: Any, edge: str = "") -> np.ndarray:
    """Runs a kernel on read-only copies; the result is where the argument is `...`. Its step must give the same bits."""
    shape = arguments[0].shape
    out = guarded_empty(shape, edge) if edge else np.full(shape, 77, np.float32)
    inputs = [(guarded(a, edge) if edge else a.copy()) if isinstance(a, np.ndarray) else a for a in arguments]
    for array in inputs:
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
    dispatch.kernel(name)(*(out if a is ... else a for a in inputs))
    step = dispatch.step(name)
    if step is not None:
        again = np.full(shape, 77, np.float32)
        made = step(*(shape if a is ... else a.shape if isinstance(a, np.ndarray) else a for a in inputs))
        places = {"layer_norm": 4, "group_norm": 4, "affine": 4, "lrn": 2}[name]
        made(*(again if a is ... else a for a in inputs[:places]))
        np.testing.assert_array_equal(bits(again), bits(out))
    return out


@cache
def golden() -> dict[str, np.ndarray]:
    with np.load(Path(__file__).parent.parent / "goldens" / "norm.npz") as arrays:
        return dict(arrays)


# ---- layer norm ----


def layer_norm(
    x: np.ndarray,
    weight: np.ndarray | None = None,
    bias: np.ndarray | None = None,
    epsilon: float = 1e-5,
    rms: bool = False,
    edge: str = "",
) -> np.ndarray:
    return call("layer_norm", x, weight, bias, ..., epsilon, rms, edge=edge)


def close_norm(
    got: np.ndarray, x: np.ndarray, weight: np.ndarray | None, bias: np.ndarray | None, epsilon: float, rms: bool
) -> None:
    """The mean errs by half a unit for each of 24 additions and more of the mean of magnitudes, so does the variance by a share;
    scaled like the number itself. An algorithm that takes the difference of two squares is off by the square of that."""
    want = np.empty_like(x)
    reference.layer_norm(x, weight, bias, want, epsilon, rms)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    with np.errstate(all="ignore"):
        d = x.astype(np.float64)
        centred = d if rms else d - d.mean(1, keepdims=True)
        scale = 1 / np.sqrt((centred * centred).mean(1, keepdims=True) + epsilon)
        depth = 32 + x.shape[1] / 512
        off = 0 if rms else np.abs(d).mean(1, keepdims=True) * scale
        error = depth * 2.0**-24 * (np.abs(centred) * scale + off) * (1 if weight is None else np.abs(weight))
        bound = error + 2.0**-23 * np.abs(want) + 2.0**-126
        assert not np.any(np.abs(got.astype(np.float64) - want) > bound)


@pytest.mark.parametrize("name", ["layer", "layer plain", "rms", "rms plain"])
def test_torch_layer_norm(name: str, variant: str) -> None:
    """Rows with means of 100 and -1000 and one without variance are among them."""
    x, rms, plain = golden()["x"], name.startswith("rms"), name.endswith("plain")
    weight, bias = (None, None) if plain else (golden()["weight"], None if rms else golden()["bias"])
    got = layer_norm(x, weight, bias, EPSILON, rms)
    np.testing.assert_allclose(got[[0, 1, 4]], golden()[name][[0, 1, 4]], rtol=1e-5, atol=2e-6)
    np.testing.assert_allclose(got[2:4], golden()[name][2:4], rtol=1e-4, atol=1e-4)
    close_norm(got, x, weight, bias, EPSILON, rms)


@pytest.mark.parametrize("rms", [False, True], ids=["mean", "rms"])
def test_layer_norm_sizes(rms: bool, variant: str) -> None:
    for n, rows in product(LENGTHS, (1, 2, 5, 17)):
        x = numbers(rows, n) * 3 + 2
        w, b = numbers(n, 1)[:, 0], numbers(n)
        for weight, bias in ((None, None), (w, None), (None, b), (w, b)):
            edge = "start" if weight is None else "end"
            got = layer_norm(x, weight, bias, 1e-5, rms, edge)
            close_norm(got, x, weight, bias, 1e-5, rms)


def test_layer_norm_of_nothing(variant: str) -> None:
    for shape in ((0, 5), (3, 0), (0, 0)):
        assert layer_norm(np.empty(shape, np.float32)).shape == shape


@pytest.mark.parametrize("rms", [False, True], ids=["mean", "rms"])
def test_layer_norm_rows_do_not_mix(rms: bool, variant: str) -> None:
    for n in (3, 19, 300, 3000):
        x = numbers(23, n)
        whole = layer_norm(x, rms=rms)
        x[::2, n // 2] = np.nan
        x[4, 0] = np.inf
        spoilt = layer_norm(x, rms=rms)
        assert np.isnan(spoilt[::2]).all()
        np.testing.assert_array_equal(bits(spoilt[1::2]), bits(whole[1::2]))
        for i in (1, 7, 21):
            np.testing.assert_array_equal(bits(layer_norm(x[i : i + 1], rms=rms)), bits(whole[i : i + 1]))


def test_layer_norm_special_values(variant: str) -> None:
    for n in (2, 40):
        x = numbers(4, n)
        x[0, 0], x[1, 1] = np.inf, -np.inf
        x[2] = 5
        got = layer_norm(x, epsilon=0)
        assert np.isnan(got[:3]).all(), "an infinite mean, and 0 / 0 without epsilon"
        assert np.isfinite(got[3]).all()
        got = layer_norm(x, epsilon=0, rms=True)
        assert np.isnan(got[0, 0]) and np.all(got[0, 1:] == 0)
        np.testing.assert_allclose(got[2], 1, rtol=1e-6)
        assert np.all(layer_norm(x[2:3], epsilon=1e-5) == 0)


@pytest.mark.parametrize("shape", [(3001, 40), (130, 768), (7, 20000)], ids=str)
def test_layer_norm_threads(shape: tuple[int, int], variant: str, threads: int) -> None:
    x, weight, bias = numbers(*shape) + 1, numbers(shape[1], 1)[:, 0], numbers(shape[1])
    got = layer_norm(x, weight, bias)
    close_norm(got, x, weight, bias, 1e-5, False)
    np.testing.assert_array_equal(bits(got[-3:]), bits(layer_norm(x[-3:], weight, bias)))


def test_sums_of_levels_agree() -> None:
    """Rows without weights: levels with a fused multiply-add give the same bits."""
    levels = [name for name in fl.kernels.available() if name in ("aot/x86_v3", "aot/x86_v4")]
    if len(levels) < 2:
        pytest.skip("needs two such levels on one processor")
    for n, rms in product((5, 49, 768, 1100), (False, True)):
        results = []
        for level in levels:
            with fl.kernels.use(level):
                results.append(bits(layer_norm(numbers(19, n), numbers(n), numbers(n, 1)[:, 0], rms=rms)))
        np.testing.assert_array_equal(*results)


# ---- groups of channels ----

# outer, channels of a group, inner, groups
GROUPED = (
    *((1, 1, 1, 1), (2, 3, 1, 4), (5, 17, 1, 3), (3, 1, 5, 7), (2, 1, 49, 40), (2, 2, 16, 3), (2, 3, 33, 2), (1, 5, 1000, 2)),
    *((1, 1, 5003, 2), (7, 4, 15, 1), (40, 1, 3, 5)),
)


def group_norm(
    x: np.ndarray, weight: np.ndarray | None, bias: np.ndarray | None, groups: int, epsilon: float = 1e-5, edge: str = ""
) -> np.ndarray:
    return call("group_norm", x, weight, bias, ..., groups, epsilon, edge=edge)


@pytest.mark.parametrize("size", GROUPED, ids=str)
def test_group_norm_is_layer_norm_of_a_group(size: tuple[int, int, int, int], variant: str) -> None:
    outer, each, inner, groups = size
    c = each * groups
    x = numbers(outer, c, inner) * 3 + 2
    w, b = numbers(c, 1)[:, 0], numbers(c)
    for weight, bias in ((None, None), (w, None), (None, b), (w, b)):
        for edge in ("start", "end"):
            got = group_norm(x, weight, bias, groups, edge=edge)
            rows = (v if v is None else np.tile(np.repeat(v, inner).reshape(groups, -1), (outer, 1)) for v in (weight, bias))
            wide = [None if v is None else v for v in rows]
            flat = x.reshape(outer * groups, each * inner)
            for r, (got_row, x_row) in enumerate(zip(got.reshape(flat.shape), flat, strict=True)):
                vectors = [None if v is None else v[r] for v in wide]
                close_norm(got_row[None], x_row[None], *vectors, 1e-5, False)


def test_group_norm_of_nothing(variant: str) -> None:
    for shape in ((0, 4, 5), (3, 0, 5), (3, 4, 0)):
        assert group_norm(np.empty(shape, np.float32), None, None, 2).shape == shape


def test_groups_do_not_mix(variant: str) -> None:
    for inner in (1, 5, 300):
        x = numbers(3, 24, inner)
        whole = group_norm(x, None, None, 6)
        x[1, 5, inner // 2] = np.nan  # in group 1 of image 1
        x[2, 20, 0] = np.inf  # in group 5 of image 2
        spoilt = group_norm(x, None, None, 6).reshape(18, -1)
        assert np.isnan(spoilt[7]).all() and np.isnan(spoilt[17]).all()
        rest = [i for i in range(18) if i not in (7, 17)]
        np.testing.assert_array_equal(bits(spoilt[rest]), bits(whole.reshape(18, -1)[rest]))


@pytest.mark.parametrize("shape", [(300, 8, 49), (2, 64, 3000), (3000, 64, 1)], ids=str)
def test_group_norm_threads(shape: tuple[int, int, int], variant: str, threads: int) -> None:
    x, weight, bias = numbers(*shape) + 1, numbers(shape[1], 1)[:, 0], numbers(shape[1])
    got = group_norm(x, weight, bias, 4)
    want = np.empty_like(x)
    reference.group_norm(x, weight, bias, want, 4, 1e-5)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(bits(got[-2:]), bits(group_norm(x[-2:], weight, bias, 4)))


# ---- a factor and a summand a channel ----


def affine(x: np.ndarray, scale: np.ndarray, shift: np.ndarray, activation: Activation = IDENTITY, edge: str = "") -> np.ndarray:
    return call("affine", x, scale, shift, ..., activation, edge=edge)


def close_affine(got: np.ndarray, x: np.ndarray, scale: np.ndarray, shift: np.ndarray, activation: Activation = IDENTITY) -> None:
    """One rounding, or two without a fused multiply-add; other functions add their own."""
    want = np.empty_like(x)
    reference.affine(x, scale, shift, want, activation)
    with np.errstate(all="ignore"):
        size = np.abs(x * scale[:, None]) + np.abs(shift[:, None])
        bound = 2.0**-24 * size + (2.0**-24 if activation.code <= 1 else 2.0**-21) * np.abs(want) + 2.0**-126
        error = np.where(got == want, 0, np.abs(got.astype(np.float64) - want))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    assert not np.any(error > bound)


SHAPES = (
    *((0, 3, 5), (2, 0, 5), (2, 3, 0), (1, 1, 1), (3, 5, 1), (1, 17, 1), (40, 3, 1), (200, 10, 1), (9, 63, 1), (9, 64, 1)),
    *((5, 65, 1), (2, 3, 2), (7, 5, 4), (1, 37, 9), (3, 37, 9), (2, 70, 15), (2, 3, 16), (2, 3, 63), (1, 3, 129), (3, 300, 14)),
)
CLIP, SILU = Activation(2, -0.5, 0.75), Activation(UNARY["silu"].code)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_affine(shape: tuple[int, int, int], variant: str) -> None:
    x, scale, shift = numbers(*shape), numbers(shape[1], 1)[:, 0], numbers(shape[1])
    for activation, edge in product((IDENTITY, RELU, CLIP, SILU), ("start", "end")):
        close_affine(affine(x, scale, shift, activation, edge), x, scale, shift, activation)


def test_torch_batch_norm(variant: str) -> None:
    """What batch normalization does with running statistics, then ReLU."""
    image = golden()["image"]
    got = affine(image, golden()["scale"], golden()["shift"], RELU)
    np.testing.assert_allclose(got, golden()["affine"], rtol=1e-6, atol=2e-6)
    assert (got == 0).any() and (got > 0).any()


@pytest.mark.parametrize("shape", [(3, 5, 1), (200, 10, 1), (3, 37, 9), (2, 3, 300), (1, 2, 9000)], ids=str)
def test_affine_in_place(shape: tuple[int, int, int], variant: str) -> None:
    for activation in (RELU, SILU):
        x, scale, shift = numbers(*shape), numbers(shape[1], 1)[:, 0], numbers(shape[1])
        want = affine(x, scale, shift, activation)
        dispatch.kernel("affine")(x, scale, shift, x, activation)
        np.testing.assert_array_equal(bits(x), bits(want))


@pytest.mark.parametrize("inner", [1, 4, 40])
def test_affine_special_values(inner: int, variant: str) -> None:
    x = numbers(3, 5, inner)
    x[0, 0], x[1, 1], x[2, 2, 0] = np.nan, np.inf, -np.inf
    scale, shift = np.array([1, 0, -2, np.nan, 3], np.float32), np.array([0, 1, 2, 3, -np.inf], np.float32)
    close_affine(affine(x, scale, shift), x, scale, shift)
    relu = affine(x, scale, shift, RELU)
    np.testing.assert_array_equal(np.isnan(relu), np.isnan(affine(x, scale, shift)))
    assert np.all(relu[:, 4] == 0) and np.isinf(relu[2, 2, 0])


@pytest.mark.parametrize("shape", [(3001, 70, 1), (2, 70, 1201), (700, 70, 3), (1, 2, 40001), (30001, 3, 1)], ids=str)
def test_affine_tasks(shape: tuple[int, int, int], variant: str, threads: int) -> None:
    """Tasks begin and end within rows and planes here."""
    x, scale, shift = numbers(*shape), numbers(shape[1], 1)[:, 0], numbers(shape[1])
    for activation in (RELU, SILU):
        close_affine(affine(x, scale, shift, activation), x, scale, shift, activation)


# ---- local response ----


def lrn(x: np.ndarray, size: int, alpha: float, beta: float, bias: float, edge: str = "") -> np.ndarray:
    return call("lrn", x, ..., size, alpha, beta, bias, edge=edge)


def close_lrn(got: np.ndarray, x: np.ndarray, size: int, alpha: float, beta: float, bias: float) -> None:
    """Half a unit for each addition and root; where the power is made of a logarithm, that many of it too."""
    want = np.empty_like(x)
    reference.lrn(x, want, size, alpha, beta, bias)
    with np.errstate(all="ignore"):
        power = np.abs(np.log(np.abs(want.astype(np.float64) / x)))  # beta times the logarithm of the denominator
        share = (min(size, 2 * x.shape[1]) + 8 + 4 * np.nan_to_num(power)) * 2.0**-24
        error = np.where(got == want, 0, np.abs(got.astype(np.float64) - want))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    assert not np.any(error > share * np.abs(want) + 2.0**-126)


@pytest.mark.parametrize("number", range(len(RESPONSES)))
def test_onnx_local_response(number: int, variant: str) -> None:
    """Windows of even size, of one channel, and larger than there are channels. onnxruntime slides its sums along the channels in
    float32, adding at one end and subtracting at the other, so they drift: by 7e-6 of the result here."""
    image = golden()["image"]
    np.testing.assert_allclose(lrn(image, *RESPONSES[number]), golden()[f"lrn {number}"], rtol=2e-5, atol=1e-7)


@pytest.mark.parametrize("beta", [0.75, 0.6, 1.0, 0.5, 0.0, -0.5])
def test_local_response_sizes(beta: float, variant: str) -> None:
    for channels, inner, size in (
        *((1, 1, 5), (2, 1, 5), (3, 1, 2), (15, 1, 5), (16, 1, 5), (17, 1, 4), (64, 1, 5), (100, 1, 3), (9, 1, 100)),
        *((5, 3, 5), (7, 7, 4), (6, 49, 5), (3, 63, 3), (6, 64, 5), (3, 65, 3), (11, 113, 6), (4, 513, 3), (2, 70, 9)),
        *((5, 70, 1), (0, 4, 3), (4, 0, 3)),
    ):
        for outer, edge in ((0, ""), (1, "start"), (3, "end")):
            x = numbers(outer, channels, inner) * 3
            close_lrn(lrn(x, size, 0.3, beta, 1.5, edge), x, size, 0.3, beta, 1.5)


@pytest.mark.parametrize("inner", [1, 5, 70])
@pytest.mark.parametrize("beta", [0.75, 0.6])
def test_local_response_special_values(inner: int, beta: float, variant: str) -> None:
    x = numbers(1, 12, inner)
    x[0, 2, 0], x[0, 9, -1] = np.nan, np.inf
    got = lrn(x, 3, 1.0, beta, 1.0)
    assert np.isnan(got[0, 1:4, 0]).all() and np.isfinite(got[0, 5, 0]) and np.isfinite(got[0, 0, 0])
    assert np.isnan(got[0, 9, -1]) and got[0, 8, -1] == 0 and got[0, 10, -1] == 0
    with np.errstate(all="ignore"):
        assert np.isnan(lrn(np.zeros((1, 3, inner), np.float32), 3, 1.0, beta, 0.0)).all(), "0 / 0"
        assert np.isnan(lrn(np.ones((1, 3, inner), np.float32), 3, 1.0, beta, -5.0)).all(), "a root of a negative number"


@pytest.mark.parametrize("shape", [(3, 40, 901), (700, 65, 1), (300, 9, 31)], ids=str)
@pytest.mark.parametrize("beta", [0.75, 0.6])
def test_local_response_threads(shape: tuple[int, int, int], beta: float, variant: str, threads: int) -> None:
    x = numbers(*shape)
    got = lrn(x, 5, 0.1, beta, 1.0)
    close_lrn(got, x, 5, 0.1, beta, 1.0)
    np.testing.assert_array_equal(bits(got[-1:]), bits(lrn(x[-1:], 5, 0.1, beta, 1.0)))


def test_comparisons_can_fail() -> None:
    x, scale, shift = numbers(2, 9, 5), numbers(9), numbers(9, 1)[:, 0]
    out = np.empty_like(x)
    reference.affine(x, scale, shift, out, IDENTITY)
    close_affine(out, x, scale, shift)
    out[1, 3, 2] += 1e-5
    with pytest.raises(AssertionError):
        close_affine(out, x, scale, shift)
    reference.lrn(x, out, 3, 1.0, 0.75, 1.0)
    close_lrn(out, x, 3, 1.0, 0.75, 1.0)
    out[1, 3, 2] *= 1 + 3e-6
    with pytest.raises(AssertionError):
        close_lrn(out, x, 3, 1.0, 0.75, 1.0)
    flat = x.reshape(2, -1)
    norm = np.empty_like(flat)
    reference.layer_norm(flat, None, None, norm, 1e-5, False)
    close_norm(norm, flat, None, None, 1e-5, False)
    norm[1, 4] += 1e-4
    with pytest.raises(AssertionError):
        close_norm(norm, flat, None, None, 1e-5, False)
