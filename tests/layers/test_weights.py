"""Loading weights: names, shapes, dtypes, all or nothing; nobody else can change them; calls in flight keep what they had."""

from __future__ import annotations

import copy
import re
import threading
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import fastlayers as fl


def ones(layer: fl.Layer, value: float = 1.0) -> dict[str, np.ndarray]:
    """Weights for every tensor of a layer, all the same number."""
    return {name: np.full(shape, value, np.float32) for name, shape in layer.tensor_shapes().items()}


def network() -> fl.Sequential:
    return fl.Sequential(fl.Linear(3, 4), fl.PReLU(4), fl.Linear(4, 2, bias=False))


@pytest.mark.parametrize(
    "layer",
    [fl.Linear(2, 3), fl.Conv1d(2, 3, 3), fl.Conv2d(2, 3, 3), fl.Conv3d(2, 3, 3), fl.PReLU(), fl.LSTM(2, 3), fl.LSTMCell(2, 3)],
    ids=lambda layer: type(layer).__name__,
)
def test_a_layer_without_weights_says_so(layer: fl.Layer) -> None:
    for x in (np.zeros((1, 2), np.float32), fl.graph.Input("x", (1, 2))):
        with pytest.raises(
            fl.WeightsError, match=r"called without weights: weight\w*, .*|weight missing: call load_state_dict first"
        ):
            layer(x)
    with pytest.raises(fl.WeightsError, match=r"state_dict: weight\w*.* not loaded"):
        layer.state_dict()


def test_one_error_names_everything_that_is_wrong_and_nothing_is_loaded() -> None:
    net = network()
    net.load_state_dict(ones(net))
    before = net(np.ones(3))
    weights: dict[str, Any] = ones(net, 2.0)
    del weights["0.bias"]
    weights["2.bias"] = np.zeros(2)
    weights["2.weight"] = np.zeros((4, 2))
    weights["1.weight"] = np.zeros(4, complex)
    with pytest.raises(fl.WeightsError) as caught:
        net.load_state_dict(weights)
    text = str(caught.value)
    assert text.startswith("Sequential.load_state_dict: ")
    for part in (
        r"missing 0\.bias \(4,\)",
        r"not used 2\.bias",
        r"2\.weight has shape \(4, 2\), expected \(2, 4\)",
        r"1\.weight has dtype complex128",
    ):
        assert re.search(part, text), (part, text)
    assert isinstance(caught.value, KeyError)
    np.testing.assert_array_equal(net(np.ones(3)), before)


def test_not_strict_reports_and_keeps_what_is_there() -> None:
    net = network()
    net.load_state_dict(ones(net))
    result = net.load_state_dict({"0.bias": np.full(4, 5.0), "extra": np.zeros(1)}, strict=False)
    assert result == (["0.weight", "1.weight", "2.weight"], ["extra"])
    np.testing.assert_array_equal(net(np.ones(3)), np.full(2, 4 * 8.0))
    with pytest.raises(fl.WeightsError, match=r"wrong: 0\.bias has shape"):
        net.load_state_dict({"0.bias": np.zeros(5)}, strict=False)
    fresh = fl.Linear(2, 1)
    fresh.load_state_dict({"weight": np.ones((1, 2))}, strict=False)
    with pytest.raises(fl.WeightsError, match="bias missing"):
        fresh(np.ones(2))


def test_counts_of_batches_may_be_left_over() -> None:
    layer = fl.Linear(2, 1)
    layer.load_state_dict({**ones(layer), "bn.num_batches_tracked": np.array(3)})
    with pytest.raises(fl.WeightsError, match=r"not used running_mean \(expected 2 tensors\)"):
        layer.load_state_dict({**ones(layer), "running_mean": np.zeros(1)})


def test_prefix_takes_part_of_a_network() -> None:
    layer = fl.Linear(2, 1)
    layer.load_state_dict({"head.weight": np.ones((1, 2)), "head.bias": np.zeros(1), "body.weight": np.zeros(9)}, prefix="head.")
    np.testing.assert_array_equal(layer(np.ones(2)), [2])
    with pytest.raises(fl.WeightsError, match=r"missing tail\.weight \(1, 2\), tail\.bias \(1,\)"):
        layer.load_state_dict({}, prefix="tail.")


@pytest.mark.parametrize("weights", [None, [], np.zeros(3)])
def test_weights_must_be_a_mapping(weights: Any) -> None:
    with pytest.raises(fl.DTypeError, match=r"load_state_dict: weights of type .* expected a mapping"):
        fl.Linear(2, 1).load_state_dict(weights)


def test_names_must_be_text() -> None:
    with pytest.raises(fl.DTypeError, match=r"load_state_dict: weights has the name 0 of type int: expected str"):
        fl.Linear(2, 1).load_state_dict({0: np.zeros(1)})  # type: ignore[dict-item]


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int8, ">f4", np.bool_])
def test_weights_of_any_real_dtype(dtype: Any) -> None:
    layer = fl.Linear(3, 2)
    layer.load_state_dict({name: array.astype(dtype) for name, array in ones(layer).items()})
    np.testing.assert_array_equal(layer(np.ones(3)), [4, 4])
    assert all(array.dtype == np.float32 and array.dtype.isnative for array in layer.state_dict().values())


def test_weights_are_copied_and_read_only(variant: str) -> None:
    layer = fl.Linear(3, 2)
    weights = ones(layer)
    disguised = weights["weight"].view()
    disguised.flags.writeable = False  # but its base can be written
    layer.load_state_dict({"weight": disguised, "bias": weights["bias"]})
    for array in weights.values():
        array[...] = 7
    np.testing.assert_array_equal(layer(np.ones(3)), [4, 4])
    for array in layer.state_dict().values():
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_results_are_not_the_weights() -> None:
    layer = fl.PReLU(3)
    layer.load_state_dict(ones(layer))
    layer(np.full((1, 3), -1.0))[...] = 9
    np.testing.assert_array_equal(layer(np.full((1, 3), -1.0)), [[-1, -1, -1]])


def test_a_layer_follows_the_variant() -> None:
    """Weights are packed for each variant, and packed ones of another are never used."""
    rng = np.random.default_rng(0)
    net = fl.Sequential(fl.Conv1d(3, 4, 3), fl.Flatten(), fl.Linear(16, 5))
    net.load_state_dict({name: rng.standard_normal(shape) for name, shape in net.tensor_shapes().items()})
    x = rng.standard_normal((2, 3, 6)).astype(np.float32)
    with fl.kernels.use("reference"):
        want = net(x)
    for _ in range(2):
        for name in fl.kernels.available():
            with fl.kernels.use(name):
                np.testing.assert_allclose(net(x), want, rtol=0, atol=1e-5)


def test_loading_again_replaces_packed_weights(variant: str) -> None:
    layer = fl.Linear(3, 2)
    x = np.ones((1, 3), np.float32)
    for value in (1.0, 2.0, 3.0):
        layer.load_state_dict(ones(layer, value))
        for _ in range(3):
            np.testing.assert_array_equal(layer(x), np.full((1, 2), 4 * value))


def test_containers_follow_their_layers() -> None:
    """A layer may be loaded on its own, before and after its container was called."""
    inner = fl.Linear(2, 2, bias=False)
    net = fl.Sequential(inner, fl.Sequential(fl.Linear(2, 1, bias=False)))
    net.load_state_dict(ones(net))
    np.testing.assert_array_equal(net(np.ones(2)), [4])
    inner.load_state_dict(ones(inner, 2.0))
    np.testing.assert_array_equal(net(np.ones(2)), [8])
    net.load_state_dict(ones(net, 3.0))
    np.testing.assert_array_equal(inner(np.ones(2)), [6, 6])


@pytest.mark.parametrize("copied", ["deepcopy", "reduce"])
def test_layers_can_be_copied_and_pickled(copied: str) -> None:
    """Through the protocol that pickle uses; weights come along, packed ones and snapshots do not."""
    import pickle  # noqa: TID251 - a user may; the library never does

    net = fl.Sequential(OrderedDict(first=fl.Linear(3, 4, activation="relu"), cell=fl.Flatten(), last=fl.Conv1d(1, 2, 1)))
    blank = copy.deepcopy(net)
    net[:1].load_state_dict(ones(net[:1]))
    net.load_state_dict(ones(net))
    x = np.ones((1, 3), np.float32)
    want = net[:2](x)
    twin = copy.deepcopy(net) if copied == "deepcopy" else pickle.loads(pickle.dumps(net))
    assert repr(twin) == repr(net)
    np.testing.assert_array_equal(twin[:2](x), want)
    twin.load_state_dict(ones(net, 2.0))
    np.testing.assert_array_equal(net[:2](x), want)
    assert not np.array_equal(twin[:2](x), want)
    assert all(not array.flags.writeable for array in twin.state_dict().values())
    with pytest.raises(fl.WeightsError):
        blank.state_dict()
    with pytest.raises(AttributeError):
        twin.extra = 1


def test_no_call_mixes_old_and_new_weights() -> None:
    """While a thread loads all ones or all twos, every result is that of ones or that of twos, for containers and for classes."""

    class Net(fl.Layer):
        def __init__(self) -> None:
            self.blocks = [fl.Linear(8, 8, bias=False) for _ in range(6)]
            self.last = fl.Sequential(fl.Linear(8, 1, bias=False))

        def forward(self, x: Any) -> Any:
            for block in self.blocks:
                x = block(x)
            return self.last(x)

    net = Net()
    states = [ones(net), ones(net, 2.0)]
    net.load_state_dict(states[0])
    x = np.ones(8, np.float32)
    allowed = {8.0**7, 16.0**7}
    seen: list[float] = []
    errors: list[BaseException] = []
    stop = threading.Event()

    def call() -> None:
        try:
            while not stop.is_set():
                seen.append(float(net(x)[0]))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    for i in range(150):
        net.load_state_dict(states[i % 2])
    stop.set()
    for thread in threads:
        thread.join()
    assert not errors
    assert set(seen) <= allowed
    assert float(net(x)[0]) == 16.0**7


def test_a_call_in_flight_keeps_its_weights() -> None:
    """A load between the first and the second layer of a running call changes that call's second layer no more."""

    class Load(fl.Layer):
        def __init__(self) -> None:
            self.active = [False]

        def __call__(self, x: Any) -> Any:
            if self.active[0]:
                net.load_state_dict(ones(net, 2.0))
            return x

    hook = Load()
    net = fl.Sequential(fl.Linear(2, 2, bias=False), hook, fl.Linear(2, 1, bias=False))
    net.load_state_dict(ones(net))
    hook.active[0] = True
    np.testing.assert_array_equal(net(np.ones(2)), [4])
    hook.active[0] = False
    np.testing.assert_array_equal(net(np.ones(2)), [16])


def test_threads_pack_once_and_agree(variant: str) -> None:
    rng = np.random.default_rng(1)
    net = fl.Sequential(fl.Conv2d(3, 5, 3), fl.ReLU(), fl.Flatten(), fl.Linear(80, 7))
    net.load_state_dict({name: rng.standard_normal(shape) for name, shape in net.tensor_shapes().items()})
    x = rng.standard_normal((2, 3, 6, 6)).astype(np.float32)
    start = threading.Barrier(6)
    results: list[np.ndarray] = []

    def call() -> None:
        start.wait()
        results.extend(net(x) for _ in range(5))

    threads = [threading.Thread(target=call) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 30
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])
