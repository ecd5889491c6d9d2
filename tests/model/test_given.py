"""What a caller may hand over: pictures of bytes, arrays of other libraries, one array for one input, specs by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers._foreign import as_numpy
from tests.program.graphs import graph, node, normal


def doubled(dtype: Any = np.float32) -> fl.Model:
    return fl.Model(graph({"x": (("n", 4), dtype)}, [node("y = Add(x, x)")], ["y"]))


@pytest.mark.parametrize("given", [np.uint8, np.int8, np.int16, np.uint16, np.int32, np.int64, np.uint64, bool, ">i2"])
def test_integers_and_booleans_become_floats(given: Any) -> None:
    x = np.array([[0, 1, 100, 127], [3, 4, 5, 6]]).astype(given)
    model = doubled()
    for _ in range(2):  # also where the binding is there
        got = model(x)
        assert got.dtype == np.float32
        np.testing.assert_array_equal(got, 2 * x.astype(np.float32))
        np.testing.assert_array_equal(model.run({"x": x})["y"], got)
    if given is np.uint8:
        np.testing.assert_array_equal(model(x.tolist()), got)
        np.testing.assert_array_equal(model(x[::-1, ::-1]), got[::-1, ::-1])
    session_like = fl.Model(model._graph).run({"x": x})["y"]
    np.testing.assert_array_equal(session_like, got)


def test_booleans_become_integers_and_nothing_becomes_a_boolean() -> None:
    assert doubled(np.int64)(np.array([[True, False, True, True]])).tolist() == [[2, 0, 2, 2]]
    flag = fl.Model(graph({"x": ((2,), bool)}, [node("y = Not(x)")], ["y"]))
    with pytest.raises(fl.DTypeError, match="has dtype int64: expected bool or another bool dtype"):
        flag([1, 0])


class Interface:
    """As arrays of other libraries: ``__array__`` and nothing else."""

    def __init__(self, array: np.ndarray) -> None:
        self._held = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self._held


class Exchanged:
    """``__dlpack__`` and nothing else."""

    def __init__(self, array: np.ndarray) -> None:
        self._held = array

    def __dlpack__(self, **given: Any) -> Any:
        return self._held.__dlpack__(**given)

    def __dlpack_device__(self) -> Any:
        return self._held.__dlpack_device__()


class Tensor:
    """As torch's tensors: numpy may not have those with a gradient, nor dtypes that it has not got."""

    def __init__(self, array: np.ndarray, gradient: bool = False, odd: bool = False, floats: bool = True) -> None:
        self._held, self._gradient, self._odd, self._floats = array, gradient, odd, floats

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        if self._gradient:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        if self._odd:
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self._held

    def detach(self) -> Tensor:
        return Tensor(self._held, False, self._odd, self._floats)

    def is_floating_point(self) -> bool:
        return self._floats

    def float(self) -> Tensor:
        return Tensor(self._held.astype(np.float32))


@pytest.mark.parametrize(
    "kind",
    [
        Interface, Exchanged, Tensor, lambda x: Tensor(x, gradient=True), lambda x: Tensor(x, odd=True),
        lambda x: Tensor(x, gradient=True, odd=True), memoryview,
    ],
)  # fmt: skip
def test_arrays_of_other_libraries(kind: Any) -> None:
    x = normal(3, 4)
    np.testing.assert_array_equal(doubled()(kind(x)), 2 * x)
    np.testing.assert_array_equal(doubled().run({"x": kind(x)})["y"], 2 * x)
    np.testing.assert_array_equal(fl.functional.relu(kind(x)), np.maximum(x, 0))


def test_nothing_is_copied_that_need_not_be() -> None:
    x = normal(3, 4)
    for kind in (Interface, Exchanged, lambda x: Tensor(x, gradient=True)):
        assert np.shares_memory(as_numpy(kind(x)), x)


def test_what_cannot_be_read_keeps_its_own_words() -> None:
    with pytest.raises(fl.DTypeError, match="BFloat16"):  # of a dtype that is none of floats
        doubled()(Tensor(normal(3, 4), odd=True, floats=False))

    class Away(Exchanged):
        def __dlpack__(self, **given: Any) -> Any:
            raise BufferError("on another device")

    with pytest.raises(fl.DTypeError, match="of type Away: expected an array of float32"):
        doubled()(Away(normal(3, 4)))


def test_torch() -> None:
    torch: Any = pytest.importorskip("torch")
    x = normal(3, 4)
    tensor = torch.tensor(x, requires_grad=True)
    np.testing.assert_array_equal(doubled()(tensor), 2 * x)
    half = tensor.to(torch.bfloat16)
    np.testing.assert_array_equal(doubled()(half), 2 * half.detach().float().numpy())
    np.testing.assert_array_equal(doubled()(torch.ones(2, 4, dtype=torch.uint8)), 2 * np.ones((2, 4)))
    np.testing.assert_array_equal(fl.functional.relu(half), np.maximum(half.detach().float().numpy(), 0))


def test_one_array_for_the_one_input() -> None:
    model, x = doubled(), normal(2, 4)
    np.testing.assert_array_equal(model.run(x)["y"], 2 * x)
    np.testing.assert_array_equal(model.run(x.tolist(), ["y"], timeout=60)["y"], 2 * x)
    out = np.empty_like(x)
    assert model.run(x, out={"y": out})["y"] is out


def test_shapes_as_one_types_them_first() -> None:
    model = doubled()
    for shape in ((3, 4), [3, 4], [(3, 4)], {"x": (3, 4)}, np.ones((3, 4), np.float32)):
        assert "3x4" in model.summary(shape)
        model.prepare(shape)
    for wrong in ((3,), (3, 5), (-3, 4), (), ((3, 4), (3, 4)), 3):
        with pytest.raises(fl.Error):
            model.prepare(wrong)  # type: ignore[arg-type]
    two = fl.Model(graph({"x": ("n", 4), "k": (4,)}, [node("y = Add(x, k)")], ["y"]))
    with pytest.raises(fl.ShapeError, match=r"the shape of input 'x' is 3: expected a tuple of sizes"):
        two.prepare((3, 4))


def test_specs_by_name() -> None:
    model = doubled()
    assert model.inputs["x"] == model.inputs[0] == ("x", ("n", 4), np.dtype("f4"))
    assert model.outputs["y"].dtype == np.float32 and model.inputs.names == ["x"] and model.outputs[:1] == (model.outputs["y"],)
    assert isinstance(model.inputs, tuple) and len(model.inputs) == 1
    with pytest.raises(fl.ArgumentError, match=r"there is no 'z': expected one of \['x'\]"):
        model.inputs["z"]


def test_an_error_lists_a_few_of_many_open_inputs() -> None:
    """A decoder has two caches a layer: all of them would hide what is asked."""
    names = [f"x{i}" for i in range(40)]
    model = fl.Model(graph(dict.fromkeys(names, ("n", 4)), [node(f"y = Sum({', '.join(names)})")], ["y"]))
    with pytest.raises(fl.ArgumentError, match=r"sizes are open: .*x3 \('n', 4\), and 36 more: give the shape") as told:
        model.summary()
    assert len(str(told.value)) < 400
