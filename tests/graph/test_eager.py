"""Functions that are called with arrays again: what has a plan, that it gives the function's bits, and takes no other call."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.graph import eager
from fastlayers.kernels import dispatch

from .examples import EXAMPLES, Example
from .examples._base import declared

f = fl.functional
# Functions without plans, and why.
WITHOUT = {
    "weights are packed for each call": {"additive_attention"},
    "values of integers or boxes are looked at": {
        "embedding", "hard_attention", "hierarchical_log_prob", "hierarchical_log_softmax", "roi_align", "roi_pool",
    },
    "a program folds its vectors otherwise": {"batch_norm"},
}  # fmt: skip
# Not for all arguments: pads for which there is no compiled kernel, noise that is drawn, a number of numpy.
SOMETIMES = {"dropout", "leaky_relu", "pad"}


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """No plans yet, and no more to be imported."""
    monkeypatch.setattr(eager, "_plans", eager._Plans(-1))
    monkeypatch.setattr(eager, "COLD", 0)


def plans() -> dict[Any, Any]:
    """Those that are there."""
    return {key: runner for key, runner in eager._plans.runners.items() if runner is not None}


def again(call: Any, *args: Any, **kwargs: Any) -> Any:
    """The result of a call that has come so often that it has a plan."""
    for _ in range(eager.BEFORE):
        call(*args, **kwargs)
    return call(*args, **kwargs)


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def of(op: str) -> list[Example]:
    return [example for example in EXAMPLES if example.op == op]


@pytest.mark.without("reference")
@pytest.mark.parametrize("op", sorted({example.op for example in EXAMPLES if declared(example.op) is not None}))
def test_every_call_gives_the_bits_of_the_first(op: str, variant: str) -> None:
    for example in of(op):
        eager._plans = eager._Plans(-1)
        arrays = example.arrays()
        want = example.call(arrays)
        for _ in range(eager.BEFORE + 1):
            for a, b in zip(example.call(arrays), want, strict=True):
                assert (a.dtype, a.shape) == (b.dtype, b.shape), example.label
                assert a.tobytes() == b.tobytes(), example.label
        looked_at = "window" if op == "istft" else None
        if variant.startswith("aot/") and op not in SOMETIMES:
            without = any(op in names for names in WITHOUT.values()) or any(
                a is not None and (a.dtype.kind == "i" or name == looked_at)
                for name, a in zip(declared(op).tensors * len(arrays), arrays, strict=False)
            )
            assert bool(plans()) != without, example.label


@pytest.mark.without("reference")
def test_another_argument_is_another_call(variant: str) -> None:
    x = random(1, 2, 6, 6)
    want = again(f.max_pool2d, x, 2)
    for wrong in (2.0, True, "2", None, [2.0, 2], np.float32(2)):
        with pytest.raises(fl.Error):
            again(f.max_pool2d, x, wrong)
    assert again(f.max_pool2d, x, 1).shape == (1, 2, 6, 6)
    np.testing.assert_array_equal(f.max_pool2d(x, 2), want)
    x = np.array([-1.0, 1.0], np.float32)
    assert [np.signbit(again(f.leaky_relu, x, slope)[0]) for slope in (0.0, -0.0)] == [True, False]
    assert np.isnan(again(f.leaky_relu, x, float("nan"))[0])
    assert again(f.clip, x, None, 0)[1] == 0 and again(f.clip, x, 0, None)[1] == 1


@pytest.mark.without("reference")
def test_sizes_that_repeat_are_other_sizes(variant: str) -> None:
    """What is recorded may depend on which sizes are equal, or 1."""
    for a, b in (((6, 1), (6, 9)), ((6, 9), (6, 9)), ((1, 9), (6, 9)), ((6, 9), (6, 1)), ((1, 1), (1, 1))):
        x, y = random(*a), random(*b) + 0.5
        want = f.cosine_similarity(x, y)
        np.testing.assert_array_equal(again(f.cosine_similarity, x, y), want)
        np.testing.assert_array_equal(again(f.add, x, y), x + y)
    for shape in ((2, 1, 3), (2, 3, 3), (1, 1, 3)):
        x = random(*shape)
        want = f.squeeze(x, 1) if shape[1] == 1 else None
        if want is not None:
            np.testing.assert_array_equal(again(f.squeeze, x, 1), want)


@pytest.mark.without("reference")
def test_arguments_that_are_no_plain_data_have_no_plan(variant: str) -> None:
    x = random(1, 2, 6, 6)
    within: list[Any] = [2]
    within.append(within)
    deep: Any = 2
    for _ in range(1000):
        deep = (deep,)
    for wrong in (within, deep, [2] * 1000, {"a": within}, object(), x):
        with pytest.raises(fl.Error):
            again(f.max_pool2d, x, wrong)
    weight = random(3, 6)
    for activation in ("relu", ("clip", {"min": -0.0, "max": 1.0}), ("clip", {"min": 0.0, "max": 1.0}), fl.ReLU()):
        want = f.linear(x, weight, activation=activation)
        np.testing.assert_array_equal(again(f.linear, x, weight, activation=activation), want)
    values = iter(range(10**9))
    for _ in range(3 * eager.SEEN):  # what never comes again is not kept
        f.clip(x, -1.0 - next(values), 1.0)
    assert len(eager._plans.seen) <= eager.SEEN


@pytest.mark.without("reference")
def test_other_arrays_are_taken_as_the_function_takes_them(variant: str) -> None:
    x = random(2, 3, 8, 8)
    want = again(f.avg_pool2d, x, 2)
    frozen = x.copy()
    frozen.flags.writeable = False
    spread = np.zeros((2, 3, 8, 16), np.float32)[..., ::2]
    spread[...] = x
    odd = np.zeros(x.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(x.shape)
    odd[...] = x
    for other in (frozen, spread, odd, np.array(x, order="F"), x.astype(np.float64), x.astype(">f4"), x.tolist(), memoryview(x)):
        np.testing.assert_array_equal(again(f.avg_pool2d, other, 2), want)
    whole = np.arange(24).reshape(1, 1, 4, 6)
    np.testing.assert_array_equal(again(f.avg_pool2d, whole, 2), f.avg_pool2d(whole.astype(np.float32), 2))
    for shape in ((2, 3, 8), (2, 3, 1, 8), (8,), ()):
        with pytest.raises(fl.ShapeError, match="avg_pool2d: x has"):
            f.avg_pool2d(random(*shape), 2) if shape != (2, 3, 8) else f.avg_pool2d(random(2, 8), 2)
    np.testing.assert_array_equal(again(f.avg_pool2d, x[0], 2), want[0])
    a, b = random(2, 3), random(2, 1)
    again(f.add, a, b)
    with pytest.raises(fl.ShapeError, match="add: operands have shapes"):
        f.add(a, random(3, 3))


@pytest.mark.without("reference")
def test_what_is_looked_at_in_values_is_looked_at_always(variant: str) -> None:
    x, lengths = random(2, 4, 3), np.array([3, 1])
    again(f.mean_over_time, x)
    again(f.mean_over_time, x, lengths)
    with pytest.raises(fl.ArgumentError, match="lengths"):
        f.mean_over_time(x, np.array([3, 9]))
    q = random(2, 4, 3)
    again(f.scaled_dot_product_attention, q, q, q, lengths=lengths)
    with pytest.raises(fl.ArgumentError, match="lengths"):
        f.scaled_dot_product_attention(q, q, q, lengths=np.array([3, 9]))
    spectrum, window = random(5, 9, 2), np.hanning(8).astype(np.float32) + 1
    again(f.istft, spectrum, 8, 3, 8, window)
    with pytest.raises(fl.ShapeError, match="overlap"):
        f.istft(spectrum, 8, 3, 8, np.zeros(8, np.float32))


@pytest.mark.without("reference")
def test_a_variant_has_plans_of_its_own(variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = random(2, 3, 9)
    want = again(f.softmax, x)
    assert plans()
    with fl.kernels.use("reference"):
        called: list[Any] = []
        kernel = dispatch.kernel
        monkeypatch.setattr(dispatch, "kernel", lambda name: called.append(name) or kernel(name))
        again(f.softmax, x)
        assert called == ["softmax"] * (eager.BEFORE + 1) and not plans()
        monkeypatch.undo()
    np.testing.assert_array_equal(again(f.softmax, x), want)


@pytest.mark.without("reference")
def test_no_more_plans_than_there_may_be(variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With more sizes than that in turn, those that are there stay for a while."""
    monkeypatch.setattr(eager, "MOST", 5)
    monkeypatch.setattr(eager, "PATIENCE", 50)
    many = [random(2, n) for n in range(1, 20)]
    for _ in range(eager.BEFORE):
        for x in many:
            f.softmax(x)
    first = eager._plans
    assert first.count == 5
    for x in many:
        np.testing.assert_array_equal(f.softmax(x), f.softmax.__wrapped__(x))
    for _ in range(4):
        for x in many:
            f.softmax(x)
    assert eager._plans is not first and eager._plans.count <= 5
    monkeypatch.setattr(eager, "SEEN", 3)
    monkeypatch.setattr(eager, "_plans", eager._Plans(-1))
    for x in many:
        f.log_softmax(x)
    assert len(eager._plans.seen) <= 3


@pytest.mark.without("reference")
def test_the_first_plan_waits_for_what_is_to_be_imported(variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eager, "COLD", 20)
    monkeypatch.setattr(eager, "_PROGRAM", "fastlayers.none")
    x = random(2, 3)
    for _ in range(19):
        f.softmax(x)
    assert not eager._plans.seen
    monkeypatch.setattr(eager, "_PROGRAM", "fastlayers.program")
    again(f.softmax, x)
    assert plans()


@pytest.mark.without("reference")
def test_threads_share_plans(variant: str) -> None:
    xs = [random(n, 3, 8 + n % 3, 8) for n in range(1, 7)]
    want = [f.max_pool2d.__wrapped__(x, 3, 2, 1) for x in xs]

    def work(seed: int) -> None:
        for i in np.random.default_rng(seed).integers(0, len(xs), 200):
            np.testing.assert_array_equal(f.max_pool2d(xs[i], 3, 2, 1), want[i])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


def packed() -> list[eager.Plan]:
    """The plans that have constants."""
    return [plan for alike in plans().values() for plan in alike if plan.constants]


@pytest.mark.without("reference")
def test_weights_are_told_by_their_values(variant: str) -> None:
    """What is written into an array, or at the same address, has the results of its values; those that come again have plans."""
    x, weight, bias = random(1, 4, 6, 6), random(8, 4, 3, 3), random(8)
    want = {}
    for scale in (1.0, 2.0, -0.0, np.nan, 1.0):
        given = weight * np.float32(scale)
        want[scale] = f.conv2d.__wrapped__(x, given, bias)
        weight[...], kept = given, weight.copy()
        for _ in range(eager.BEFORE + 2):
            assert f.conv2d(x, weight, bias).tobytes() == want[scale].tobytes()
        weight[...] = kept
    weight[0, 0, 0, 0] += 1  # one value, and the last
    assert f.conv2d(x, weight, bias).tobytes() == f.conv2d.__wrapped__(x, weight, bias).tobytes()
    bias[-1] = -bias[-1]
    assert again(f.conv2d, x, weight, bias=bias).tobytes() == f.conv2d.__wrapped__(x, weight, bias).tobytes()
    if variant.startswith("aot/"):
        assert len(packed()) == 5
    spread = np.repeat(weight, 2, 0)[::2]
    assert again(f.conv2d, x, spread, bias).tobytes() == f.conv2d.__wrapped__(x, weight, bias).tobytes()
    same = random(3, 3, 3, 3)
    np.testing.assert_array_equal(again(f.conv2d, same, same), f.conv2d.__wrapped__(same, same))
    with pytest.raises(fl.ShapeError, match="bias has shape"):
        f.conv2d(x, weight, bias[:3])


@pytest.mark.without("reference")
def test_a_plan_keeps_the_kernel_that_a_single_call_chose(variant: str) -> None:
    """Where programs transform weights and one call would spend more time on that than on all else, the bits are the call's."""
    for x, weight in ((random(1, 64, 14, 14), random(64, 64, 3, 3)), (random(1, 64, 400), random(64, 64, 3))):
        conv = f.conv1d if x.ndim == 3 else f.conv2d
        for dilation in (1, 2):
            want = conv(x, weight, padding=dilation, dilation=dilation)
            assert again(conv, x, weight, padding=dilation, dilation=dilation).tobytes() == want.tobytes()
    if variant.startswith("aot/"):
        assert len(packed()) == 4


@pytest.mark.without("reference")
def test_constants_of_plans_have_their_limits(variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, h = random(5, 2, 3), 4
    cells = [(random(4 * h, 3) * (i + 1), random(4 * h, h) * (i + 1)) for i in range(6)]
    size = sum(w.nbytes for w in cells[0])
    monkeypatch.setattr(eager, "MOST_ALIKE", 4)
    monkeypatch.setattr(eager, "MOST_BYTES", 5 * size)
    for weights in cells:
        want = f.lstm(x, None, *weights)[0]
        np.testing.assert_array_equal(again(f.lstm, x, None, *weights)[0], want)
    if not variant.startswith("aot/"):
        return
    found = eager._plans
    assert len(packed()) == 4 and (found.count, found.bytes) == (4, 4 * size)
    again(f.gru, x, None, random(3 * 64, 3), random(3 * 64, 64))  # larger than all may be together
    assert found.bytes == 4 * size
    for i in range(50):  # weights that never come again have none, and are not kept
        f.lstm(x, None, *(random(4 * h, 3) + i, random(4 * h, h)))
    assert len(packed()) == 4 and all(eager._plans.seen[key] == 1 for key in list(eager._plans.seen)[-50:])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.without("reference")
def test_a_forked_child_has_them(variant: str) -> None:
    x = random(2, 3, 9)
    want = again(f.softmax, x)
    child = os.fork()
    if not child:
        same = all((f.softmax(x) == want).all() and again(f.softmax, random(2, n)).shape == (2, n) for n in (3, 4))
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0
