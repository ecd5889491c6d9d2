"""Model: names, kinds, shapes, outputs, copies, threads; compile; our own file; the session."""

from __future__ import annotations

import asyncio
import copy
import gc
import pickle  # noqa: TID251 - models must survive it; no file is read this way
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers import functional as F
from fastlayers.ir.graph import Graph
from fastlayers.model.model import Model, Options
from tests.each import each
from tests.program.graphs import graph, node, normal


def two_outputs() -> Graph:
    nodes = [node("h = Linear(x, w, b)"), node("r = Relu(h)"), node("n = Neg(r)")]
    return graph(
        {"x": ("n", 4), "k": ((), np.int64)},
        [*nodes, node("m = Add(k, k)")],
        ["r", "n", "m"],
        {"w": normal(3, 4), "b": normal(3)},
    )


def net() -> fl.Layer:
    made = fl.Sequential(fl.Linear(4, 6), fl.ReLU(), fl.Linear(6, 2))
    made.load_state_dict({"0.weight": normal(6, 4), "0.bias": normal(6), "2.weight": normal(2, 6), "2.bias": normal(2)})
    return made


def compiled() -> Model:
    return fl.compile(net(), fl.graph.Input("x", ("n", 4)))


def test_compiled_model_is_the_layer(variant: str) -> None:
    model, layer = compiled(), net()
    assert model.variant == variant
    for n in (1, 3, 0, 300):
        x = normal(n, 4)
        np.testing.assert_array_equal(model(x), layer(x))
        np.testing.assert_array_equal(
            model.run({"x": x})["output" if "output" in model.run({"x": x}) else model.outputs[0].name], layer(x)
        )


def test_specs() -> None:
    model = Model(two_outputs())
    assert model.inputs == (("x", ("n", 4), np.dtype("f4")), ("k", (), np.dtype("i8")))
    assert [s.name for s in model.outputs] == ["r", "n", "m"]
    assert "x float32" in repr(model)


@pytest.mark.parametrize("given", [np.float64, np.float16, ">f4"])
def test_casts_within_a_kind(given: Any) -> None:
    model = compiled()
    x = normal(3, 4).astype(given)
    np.testing.assert_array_equal(model(x), model(x.astype(np.float32)))
    np.testing.assert_array_equal(model(x.tolist()), model(x.astype(np.float32)))


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.ones((2, 4), complex), "input 'x' has dtype complex128: expected float32 or another float or int or bool dtype"),
        ([["a"] * 4], "input 'x' has dtype <U1"),
        ([[None] * 4], "input 'x' has dtype object"),
        (None, "input 'x' is None of type NoneType: expected an array of float32$"),
        (print, "input 'x' is <built-in function print> of type builtin_function_or_method: expected an array of float32$"),
        ("cat.jpg", "input 'x' is 'cat.jpg' of type str: expected an array of float32; files are not opened: read it"),
        (b"\x89PNG", "of type bytes: expected an array of float32; files are not opened"),
        (Path("cat.jpg"), "Path.'cat.jpg'. of type .*: expected an array of float32; files are not opened"),
        (np.str_("a"), "input 'x' has dtype <U1"),
        (np.ma.masked_array(np.ones((2, 4))), "input 'x' is a masked array"),
    ],
)
def test_other_kinds_are_refused(x: Any, message: str) -> None:
    with pytest.raises(fl.DTypeError, match=message):
        compiled()(x)
    with pytest.raises(fl.DTypeError, match=message):
        compiled().run({"x": x})


@each("arguments", [(None, {"x": 1}), (["y"], {"x": 1}), ("y", {"x": 1}), ([], {}), ({"x": 1}, {"x": 1})])
def test_names_before_feeds_are_onnxruntimes(arguments: tuple[Any, ...]) -> None:
    for model in (compiled(), Model(two_outputs())):
        for run in (model.run, partial(model.run, timeout=9.0), lambda *a, m=model: asyncio.run(m.arun(*a))):
            with pytest.raises(fl.DTypeError, match=r"fastlayers.ort.InferenceSession; here it is model.run\(\{'x': x\}\), or"):
                run(*arguments)


@each("arguments", [({"x": 1},), (None, {"x": 1}), (["y"], {"x": 1}), ({}, {})])
def test_dicts_are_for_run(arguments: tuple[Any, ...]) -> None:
    for model in (compiled(), Model(two_outputs())):
        with pytest.raises(fl.DTypeError, match=r"call: a dict was given: expected arrays .* `run` takes them by name"):
            model(*arguments)


def test_float_is_never_made_an_integer() -> None:
    with pytest.raises(fl.DTypeError, match="input 'k' has dtype float64: expected int64 or another int or bool dtype"):
        Model(two_outputs()).run({"x": normal(1, 4), "k": 2.0})
    assert Model(two_outputs()).run({"x": normal(1, 4), "k": np.int32(2)})["m"] == 4


def test_numbers_that_do_not_fit_are_refused() -> None:
    made = Model(graph({"k": ((1,), np.int8)}, [node("m = Identity(k)")], ["m"]))
    assert made.run({"k": [100]})["m"].dtype == np.int8
    with pytest.raises(fl.DTypeError, match="has values that int8 cannot hold"):
        made.run({"k": [200]})
    unsigned = Model(graph({"k": ((1,), np.uint16)}, [node("m = Identity(k)")], ["m"]))
    with pytest.raises(fl.DTypeError, match="has values that uint16 cannot hold"):
        unsigned.run({"k": np.array([-1], np.int8)})


@pytest.mark.parametrize("one", [[2], [[2]], np.array([2]), np.array([[[2]]], np.int32), np.ones((4, 4), np.int64)[:1, ::4] * 2])
def test_an_array_of_one_element_is_a_scalar(one: Any) -> None:
    model, x = Model(two_outputs()), normal(1, 4)
    want = model.run({"x": x, "k": 2})
    for _ in range(3):  # also the calls that find the binding of the one before
        got = model.run({"x": x, "k": one})
        assert got.keys() == want.keys() and got["m"].shape == want["m"].shape == ()
        for name in want:
            np.testing.assert_array_equal(got[name], want[name])
            np.testing.assert_array_equal(dict(zip(model._names, model(x, one), strict=True))[name], want[name])
    out = {"m": np.zeros((), np.int64)}
    assert model.run({"x": x, "k": one}, out=out)["m"] is out["m"] and out["m"] == want["m"]


@pytest.mark.parametrize("given", [[], [1, 2], [[1], [2]], np.zeros((1, 0), np.int64)])
def test_other_arrays_are_no_scalars(given: Any) -> None:
    with pytest.raises(fl.ShapeError, match=r"input 'k' has shape .*: expected \(\)"):
        Model(two_outputs()).run({"x": normal(1, 4), "k": np.asarray(given, np.int64)})


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({}, r"feeds lacks \['x'\]: expected exactly \['x'\]"),
        ({"x": normal(1, 4), "z": 1}, r"feeds has \['z'\], which is no input"),
        ({"x": normal(1, 5)}, r"input 'x' has shape \(1, 5\): expected \('n', 4\)"),
        ({"x": normal(4)}, r"input 'x' has shape \(4,\)"),
    ],
)
def test_feeds(feeds: dict[str, Any], message: str) -> None:
    with pytest.raises(fl.ArgumentError, match=message) as caught:
        compiled().run(feeds)
    assert caught.type is (fl.ArgumentError if message.startswith("feeds") else fl.ShapeError)


def test_call_wants_one_array_an_input() -> None:
    with pytest.raises(fl.ArgumentError, match=r"2 arrays were given: expected 1, for \['x'\]"):
        compiled()(normal(1, 4), normal(1, 4))
    with pytest.raises(
        fl.DTypeError, match="a dict was given: expected arrays in the order of `inputs`; `run` takes them by name"
    ):
        compiled()({"x": normal(1, 4)})
    for inputs in ({"x": (1, 4), "k": (4,)}, {}):  # whatever their number
        with pytest.raises(fl.DTypeError, match="`run` takes them by name"):
            Model(graph(inputs, [node("y = Constant()", value=normal(2))], ["y"]))({"x": normal(1, 4)})
    with pytest.raises(fl.DTypeError, match="feeds is of type list"):
        Model(two_outputs()).run([normal(1, 4), 2])


def test_awkward_memory(threads: int) -> None:
    model, x = compiled(), normal(40, 8)
    want = model(np.ascontiguousarray(x[::2, ::2]))
    np.testing.assert_array_equal(model(x[::2, ::2]), want)
    frozen = np.ascontiguousarray(x[::2, ::2])
    frozen.flags.writeable = False
    np.testing.assert_array_equal(model(frozen), want)
    buffer = bytearray(frozen.nbytes + 1)
    odd = np.frombuffer(buffer, np.float32, frozen.size, 1).reshape(frozen.shape)
    odd[...] = frozen
    np.testing.assert_array_equal(model(odd), want)


def test_special_numbers() -> None:
    y = compiled()(np.array([[np.nan, 0, 0, 0], [np.inf, 0, 0, 0], [1, 1, 1, 1]], np.float32))
    assert np.isnan(y[0]).all() and not np.isfinite(y[1]).any() and np.isfinite(y[2]).all()


def test_out(variant: str) -> None:
    model, x = compiled(), normal(5, 4)
    want, name = model(x), model.outputs[0].name
    mine = np.full((5, 2), np.nan, np.float32)
    assert model(x, out=mine) is mine
    np.testing.assert_array_equal(mine, want)
    mine[...] = np.nan
    assert model.run({"x": x}, out={name: mine})[name] is mine
    np.testing.assert_array_equal(mine, want)


@pytest.mark.parametrize(
    ("out", "error", "message"),
    [
        (np.empty((5, 3), np.float32), fl.ShapeError, r"out for '.*' has shape \(5, 3\): expected \(5, 2\)"),
        (np.empty((5, 2), np.float64), fl.DTypeError, "has dtype float64: expected float32"),
        (np.empty((5, 4), np.float32)[:, ::2], fl.ArgumentError, "read-only or not C-contiguous"),
    ],
)
def test_wrong_out(out: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        compiled()(normal(5, 4), out=out)


def test_out_may_be_an_input_but_no_part_of_one() -> None:
    model = Model(graph({"x": (2, 2)}, [node("y = Relu(x)")], ["y"]))
    whole = normal(3, 2)
    x, want = whole[:2], np.maximum(whole[:2], 0)
    with pytest.raises(fl.ArgumentError, match="shares memory with an input"):
        model(x, out=whole[1:])
    assert model(x, out=x) is x
    np.testing.assert_array_equal(x, want)
    with pytest.raises(fl.ArgumentError, match=r"out has \['z'\], which is not asked for"):
        model.run({"x": x}, out={"z": x})


def test_out_for_some(variant: str) -> None:
    model, x = Model(two_outputs()), normal(2, 4)
    whole = model.run({"x": x, "k": 1})
    for name in whole:
        mine = np.full_like(whole[name], 7)
        found = model.run({"x": x, "k": 1}, out={name: mine})
        assert found[name] is mine and list(found) == list(whole)
        for other, array in found.items():
            np.testing.assert_array_equal(array, whole[other])
            assert array.flags.writeable and array.dtype == whole[other].dtype
            assert array is mine or not np.shares_memory(array, mine)


def test_chosen_and_intermediate_outputs(variant: str) -> None:
    model, x = Model(two_outputs()), normal(2, 4)
    whole = model.run({"x": x, "k": 1})
    assert list(whole) == ["r", "n", "m"]
    assert list(model.run({"x": x, "k": 1}, ["n", "r"])) == ["n", "r"]
    h = model.run({"x": x, "k": 1}, ["h"])["h"]  # inside what is fused otherwise
    np.testing.assert_allclose(h, x @ normal(3, 4).T + normal(3), rtol=0, atol=1e-5)
    np.testing.assert_array_equal(np.maximum(h, 0), whole["r"])
    with pytest.raises(fl.ArgumentError, match="outputs has 'q', which is not a value of the graph"):
        model.run({"x": x, "k": 1}, ["q"])
    assert model.value_names == ["h", "r", "n", "m"]
    with pytest.raises(fl.ArgumentError, match="a name twice"):
        model.run({"x": x, "k": 1}, ["r", "r"])


def test_prepare() -> None:
    model = compiled()
    model.prepare({"x": (7, 4)})
    model.prepare([(8, 4)])
    assert len(model._main.bindings) == 2
    model(normal(7, 4))
    assert len(model._main.bindings) == 2
    with pytest.raises(fl.ShapeError, match=r"input 'x' has shape \(7, 5\)"):
        model.prepare({"x": (7, 5)})
    with pytest.raises(fl.ArgumentError, match="2 shapes were given: expected 1"):
        model.prepare([(7, 4), (7, 4)])


def test_strict_means_direct_algorithms(tmp_path: Path) -> None:
    made = graph({"x": (1, 32, 28, 28)}, [node("y = Conv(x, w)")], ["y"], {"w": normal(32, 32, 3, 3)})
    kernels = {}
    for strict in (False, True):
        made_ = Model(made, Options(strict=strict))
        made_.save(tmp_path / "m.safetensors")
        for model in (made_, fl.load(tmp_path / "m.safetensors")):
            plan = model._main.binding([normal(1, 32, 28, 28)]).plan
            assert plan is not None
            kernels.setdefault(strict, set()).update(call.kernel for call in plan.calls)
    assert kernels == {False: {"winograd"}, True: {"conv"}}


@pytest.mark.parametrize("shape", [5.5, (-1, 4), ("n", 4), (2.5, 4)])
def test_shapes_that_are_none(shape: Any) -> None:
    with pytest.raises(fl.ShapeError, match="prepare: the shape of input 'x' is"):
        compiled().prepare([shape])


def test_arguments_of_the_wrong_type() -> None:
    with pytest.raises(fl.DTypeError, match="out is of type int"):
        compiled()(normal(1, 4), out=5)
    with pytest.raises(fl.DTypeError, match="outputs is the str 'y'"):
        compiled().run({"x": normal(1, 4)}, "y")


def test_model_keeps_its_variant() -> None:
    with fl.kernels.use("reference"):
        model = compiled()
    assert model.variant == "reference"
    want = net()
    np.testing.assert_allclose(model(normal(3, 4)), want(normal(3, 4)), rtol=0, atol=1e-5)
    other = compiled()
    before = other(normal(3, 4))
    with fl.kernels.use("reference"):
        np.testing.assert_array_equal(other(normal(3, 4)), before)
        np.testing.assert_array_equal(other(normal(5, 4))[:3], other(normal(5, 4)[:3]))


def test_copies_and_pickles(variant: str) -> None:
    model, x = compiled(), normal(3, 4)
    model.num_threads = 1
    for other in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other(x), model(x))
        assert other.inputs == model.inputs and other.num_threads == 1


def test_thread_limit_changes_no_bits() -> None:
    made = fl.Sequential(fl.Linear(256, 512), fl.ReLU(), fl.Linear(512, 256))
    made.load_state_dict(
        {"0.weight": normal(512, 256), "0.bias": normal(512), "2.weight": normal(256, 512), "2.bias": normal(256)}
    )
    model, x = fl.compile(made, fl.graph.Input("x", ("n", 256))), normal(600, 256)
    fl.set_num_threads(2)
    try:
        both = model(x)
        model.num_threads = 1
        np.testing.assert_array_equal(model(x), both)
        for wrong in (-1, 1.5, True):
            with pytest.raises(fl.ArgumentError, match="num_threads"):
                model.num_threads = wrong  # type: ignore[assignment]
    finally:
        fl.set_num_threads(1)


def test_many_threads_with_changing_sizes() -> None:
    model = compiled()
    want = {n: model(normal(n, 4)) for n in range(1, 20)}
    start = threading.Barrier(6)

    def work(seed: int) -> None:
        start.wait()
        for n in np.random.default_rng(seed).integers(1, 20, 300):
            np.testing.assert_array_equal(model(normal(int(n), 4)), want[int(n)])

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))


# ---- compile ------------------------------------------------------------------------------------------------------------


def test_compile_of_functions(variant: str) -> None:
    w = normal(6, 3, 3, 3)

    def function(x: Any) -> Any:
        y = F.conv2d(x, w, padding="same", stride=2, activation="relu", padding_mode="zeros")
        y = F.pad(y, (1, 1), mode="reflect")
        left, right = y[:, :3], y[:, 3:]
        return {"a": F.concat([left * 2, right / 3], 1), "b": F.flatten(y, 1), "c": F.glu(F.permute(y, (0, 2, 3, 1)))}

    x = normal(2, 3, 7, 9)
    model = fl.compile(function, fl.graph.Input("image", ("n", 3, "h", "w")))
    assert [s.name for s in model.outputs] == ["a", "b", "c"]
    for name, want in function(x).items():
        np.testing.assert_allclose(model.run({"image": x})[name], want, rtol=0, atol=1e-5)


def test_compile_takes_integers_as_functions_do() -> None:
    model = fl.compile(lambda x: F.relu(x) + 1, fl.graph.Input("x", ("n",), np.int64))
    np.testing.assert_array_equal(model(np.array([-1, 2])), [1.0, 3.0])


@pytest.mark.parametrize(
    "options", [{}, {"batch_first": True}, {"bidirectional": True}, {"bidirectional": True, "batch_first": True, "num_layers": 2}]
)
def test_compile_of_lstm(options: dict[str, Any], variant: str) -> None:
    layer = fl.LSTM(5, 6, **options)
    layer.load_state_dict({name: normal(*shape, seed=1) * 0.5 for name, shape in layer.tensor_shapes().items()})
    directions = 2 if options.get("bidirectional") else 1
    x, state = normal(4, 3, 5), normal(directions * options.get("num_layers", 1), 4 if options.get("batch_first") else 3, 6)
    model = fl.compile(
        lambda x, h, c: layer(x, (h, c)),
        fl.graph.Input("x", x.shape),
        fl.graph.Input("h", state.shape),
        fl.graph.Input("c", state.shape),
    )
    out, (h, c) = layer(x, (state, state * 2))
    for got, want in zip(model(x, state, state * 2), (out, h, c), strict=True):
        np.testing.assert_array_equal(got, want)
    alone = fl.compile(layer, fl.graph.Input("x", ("t", 5)))
    for length in (1, 7):
        np.testing.assert_array_equal(alone(normal(length, 5))[0], layer(normal(length, 5))[0])


def test_compile_of_lstm_cell(variant: str) -> None:
    cell = fl.LSTMCell(5, 6)
    cell.load_state_dict({name: normal(*shape, seed=1) for name, shape in cell.tensor_shapes().items()})
    for shape in ((5,), (3, 5)):
        model = fl.compile(cell, fl.graph.Input("x", shape))
        for got, want in zip(model(normal(*shape)), cell(normal(*shape)), strict=True):
            np.testing.assert_array_equal(got, want)


# ---- our own file -------------------------------------------------------------------------------------------------------


def test_save_and_load(tmp_path: Path, variant: str) -> None:
    model = compiled()
    model.save(tmp_path / "net.safetensors")
    other = fl.load(tmp_path / "net.safetensors")
    x = normal(3, 4)
    np.testing.assert_array_equal(other(x), model(x))
    assert other.inputs == model.inputs and [s.name for s in other.outputs] == [s.name for s in model.outputs]
    assert fl.load((tmp_path / "net.safetensors").read_bytes())(x).tobytes() == model(x).tobytes()
    assert list(tmp_path.iterdir()) == [tmp_path / "net.safetensors"]


@pytest.mark.parametrize(("kind", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_recurrent_layers_can_be_saved(kind: str, gates: int, tmp_path: Path) -> None:
    """Their options come back as what kernels take."""
    net, rng = getattr(fl, kind)(3, 4), np.random.default_rng(0)
    shapes = {
        "weight_ih_l0": (4 * gates, 3),
        "weight_hh_l0": (4 * gates, 4),
        "bias_ih_l0": (4 * gates,),
        "bias_hh_l0": (4 * gates,),
    }
    net.load_state_dict({name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()})
    model, x = fl.compile(net, fl.graph.Input("x", ("t", 2, 3))), rng.normal(size=(5, 2, 3)).astype(np.float32)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(fl.load(tmp_path / "model")(x)[0], model(x)[0])


def test_weights_of_a_saved_model_can_be_listed(tmp_path: Path) -> None:
    compiled().save(tmp_path / "net.safetensors")
    weights = fl.load_weights(tmp_path / "net.safetensors")
    assert any(np.array_equal(array, normal(6, 4)) for array in weights.values())


def test_branches_can_be_saved(tmp_path: Path) -> None:
    then, other = graph({}, [node("a = Neg(x)")], ["a"]), graph({}, [node("b = Relu(x)")], ["b"])
    made = Model(graph({"x": (2,), "c": ((), bool)}, [node("y = If(c)", then_branch=then, else_branch=other)], ["y"]))
    made.save(tmp_path / "m.safetensors")
    loaded = fl.load(tmp_path / "m.safetensors")
    for c in (True, False):
        np.testing.assert_array_equal(loaded(normal(2), c), made(normal(2), c))


def test_weights_alone_are_no_model(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", normal(2))
    with pytest.raises(fl.UnsupportedError, match="npy file, which holds weights alone: read them with load_weights"):
        fl.load(tmp_path / "a.npy")
    with pytest.raises(fl.FormatError, match="no known format"):
        fl.load(b"what is this?")
    with pytest.raises(fl.FormatError, match="is empty"):
        fl.load(b"")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"device": "tpu"}, fl.DeviceError),
        ({"precision": "half"}, fl.ArgumentError),
        ({"weights": "int3"}, fl.ArgumentError),
        ({"format": "docx"}, fl.ArgumentError),
        ({"max_bytes": -1}, fl.ArgumentError),
        ({"max_bytes": "x"}, fl.DTypeError),
    ],
)
def test_options_of_load(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        fl.load(b"1234", **options)


def test_closed() -> None:
    model = compiled()
    x = normal(7, 4)
    want = model(x)
    weights = [weakref.ref(array) for array in model._graph.constants.values()]
    stream_like = copy.deepcopy(model)
    with model as same:
        assert same is model
    uses: list[Callable[[], Any]] = [
        lambda: model(x),
        lambda: model.run({"x": x}),
        lambda: model.run({"x": x}, ["y"]),
        lambda: model.summary([(7, 4)]),
        lambda: model.stream(axis=0),
        lambda: model.prepare([(7, 4)]),
        lambda: model.save("nowhere"),
        lambda: pickle.dumps(model),
    ]
    for use in uses:
        with pytest.raises(fl.ArgumentError, match="the model was closed"):
            use()
    model.close()
    assert model.inputs and "Model(" in repr(model)
    np.testing.assert_array_equal(stream_like(x), want)
    del stream_like
    assert all(ref() is None for ref in weights)


def test_a_model_that_ran_goes_without_the_cycle_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        for use in (
            lambda m: m(normal(7, 4)),
            lambda m: m.run({"x": normal(7, 4)}, [m.outputs[0].name]),
            lambda m: m.summary([(7, 4)]),
        ):
            model = compiled()
            use(model)
            gone = weakref.ref(model), weakref.ref(model._main)
            del model
            assert [ref() for ref in gone] == [None, None]
    finally:
        gc.enable()


def test_calls_by_name() -> None:
    made = fl.graph.Input
    model = fl.compile(lambda x, y: F.relu(x) - y, made("x", ("n", 3)), made("y", ("n", 3)))
    x, y = np.array([[-1, 2, 3]], np.float32), np.array([[4, 5, 6]], np.float32)
    for found in (model(x=x, y=y), model(y=y, x=x), model(x=x, y=y, out=np.empty_like(x)), model(x=x, y=y, timeout=60)):
        np.testing.assert_array_equal(found, model(x, y))
    for call, error, message in (
        (lambda: model(x=x), fl.ArgumentError, r"^call lacks \['y'\]: expected exactly \['x', 'y'\]"),
        (lambda: model(x=x, y=y, z=y), fl.ArgumentError, r"has \['z'\], which is no input"),
        (lambda: model(x, y=y), fl.DTypeError, r"^call: y by name after 1 in order: expected all of \['x', 'y'\] in one of both"),
    ):
        with pytest.raises(error, match=message):
            call()
