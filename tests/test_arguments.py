"""Whatever is given for an argument of anything public: the right answer, or an error of ours, in time and in bounded memory."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels.dispatch import _guarded

from .arguments import judge
from .arguments.session import run, trials
from .arguments.table import calls

F = fl.functional
x3, boxes = np.ones((2, 3, 4), np.float32), np.array([[0, 0, 0, 3, 3]], np.float32)
q4, image = np.ones((1, 2, 3, 4), np.float32), np.ones((1, 2, 4, 4), np.float32)
weight = np.ones((3, 2, 3, 3), np.float32)
table = np.log(np.full((3, 3), 1 / 3))


def _attention_of_another_width() -> Any:
    layer = fl.BahdanauAttention(2, 3, 4)
    layer.load_state_dict({name: np.ones(shape) for name, shape in layer.tensor_shapes().items()})
    return layer(np.ones((1, 1, 2)), np.ones((1, 4, 8)))


# What came out of these before was no error of ours, a wrong value, or nothing at all.
ONCE: dict[str, tuple[Callable[[], Any], type[fl.Error], str]] = {
    "a mask for a flag": (
        lambda: F.scaled_dot_product_attention(q4, q4, q4, None, 0.0, np.ones((3, 3), bool)),
        fl.DTypeError,
        r"scaled_dot_product_attention: is_causal is an array of shape \(3, 3\): expected True or False",
    ),
    "a name for a flag": (lambda: fl.Linear(2, 3, bias="no"), fl.DTypeError, "Linear: bias is 'no' of type str: expected True"),  # type: ignore[arg-type]
    "no step": (lambda: F.greedy_search(None, None, [0], 1, 2), fl.DTypeError, "greedy_search: step is of type NoneType"),  # type: ignore[arg-type]
    "tables of 2**31 positions": (lambda: F.rotary_tables(2**40, 4), fl.LimitError, "rotary_tables: no memory for 1099511627776"),
    "samples": (
        lambda: F.roi_align(image, boxes, 2, sampling_ratio=2**29),
        fl.ArgumentError,
        "roi_align: sampling_ratio is 536870912: expected at most 128",
    ),
    "a stride of 2**70": (lambda: F.conv2d(image, weight, stride=2**70), fl.ArgumentError, "conv2d: stride .*more than 64 bits"),
    "a dilation of 2**62": (
        lambda: F.conv_transpose2d(image, np.ones((2, 1, 2, 2)), dilation=2**62),
        fl.ArgumentError,
        "conv_transpose2d: dilation is 4611686018427387904: expected at most 2147483647",
    ),
    "5,000 digits": (lambda: F.softmax(x3, 10**5000), fl.ArgumentError, "softmax: dim has more than 64 bits"),
    "a huge float": (lambda: F.leaky_relu(x3, 10**400), fl.ArgumentError, "leaky_relu: negative_slope has more than 64 bits"),
    "no bound": (lambda: F.clip(x3, float("nan")), fl.ArgumentError, "clip: min is nan: expected a number"),
    "an infinite factor": (lambda: F.elu(x3, float("inf")), fl.ArgumentError, "elu: alpha is inf: expected a number"),
    "a result of 2**65 values": (
        lambda: F.pad(x3, (2**31 - 1, 2**31 - 1, 2**31 - 1, 2**31 - 1)),
        fl.LimitError,
        "no memory for a float32 result of shape",
    ),
    "a penalty": (
        lambda: F.beam_search(lambda t, s: (table[t], s), None, [0], 2, 5, 2, length_penalty=2**15),
        fl.ArgumentError,
        "beam_search: length_penalty is 32768",
    ),
    "values of another width": (
        _attention_of_another_width,
        fl.ShapeError,
        r"linear: x has shape \(1, 4, 8\), weight \(4, 3\): expected x of shape \(..., 3\)",
    ),
    "a negative base": (lambda: F.local_response_norm(x3, 2, k=-1), fl.ArgumentError, "local_response_norm: k is -1: expected"),
    "2**24 layers": (lambda: fl.GRU(2, 3, 2**24), fl.ArgumentError, "GRU: num_layers is 16777216: expected at most 4096"),
    "draws": (lambda: fl.MonteCarlo(fl.Dropout(), 2**31), fl.ArgumentError, "MonteCarlo: samples is 2147483648"),
    "a path with a null byte": (lambda: fl.load("a\0b"), fl.ArgumentError, "load: .* is no path"),
    "a prefix": (lambda: fl.Linear(1, 1).load_state_dict({}, prefix=None), fl.DTypeError, "prefix is None"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", ONCE)
def test_what_once_went_wrong(name: str) -> None:
    call, kind, text = ONCE[name]
    with pytest.raises(kind, match=text) as caught:
        call()
    assert type(caught.value) is kind


def test_errors_about_shapes_are_errors_about_arguments() -> None:
    assert issubclass(fl.ShapeError, fl.ArgumentError) and issubclass(fl.ArgumentError, ValueError)
    with pytest.raises(fl.ArgumentError):
        F.softmax(x3, 3)


# A number of an axis, of a place, or of values to cut is wrong for the array's shape alone, and the message names it.
_OF_A_SHAPE = re.compile(r"x has \d+ axes|has shape|of size|along axis|is out of range")


def test_a_wrong_option_is_no_error_about_a_shape() -> None:
    """Words that no option has, and numbers far below all, in every argument that takes such, of all functions and layers."""
    wrong, count = [], 0
    for call in calls():
        for name, value in call.arguments.items():
            kind = call.kinds.get(name, "")
            words = ["no such word"] if isinstance(value, str) or "str" in kind or kind.startswith("Padding") else []
            for option in (*words, *([-(2**40)] if type(value) in (int, float) else [])):
                try:
                    call.run(**{**call.arguments, name: option})
                except fl.ShapeError as error:  # noqa: PERF203
                    if isinstance(option, str) or not _OF_A_SHAPE.search(str(error)):
                        wrong.append(f"{call.name}, {name}={option!r}: {error}")
                except (fl.Error, OSError, AttributeError):  # the last: names of attributes
                    count += 1
    assert not wrong, "\n".join(wrong)
    assert count > 1000
    for refused in (
        lambda: fl.set_num_threads(-1),
        lambda: fl.load(b"", format="foo"),
        lambda: fl.load(b"", precision="foo"),
        lambda: fl.compile(fl.ReLU(), fl.graph.Input("x", (1,))).run([1.0], timeout=-1),
    ):
        with pytest.raises(fl.ArgumentError) as caught:
            refused()
        assert caught.type is fl.ArgumentError


def test_an_axis_has_two_words() -> None:
    """An argument that torch calls dim may be called axis, and the reverse; both at once are refused."""
    seen = set()
    for call in calls():
        words = [name for name in ("dim", "axis") if name in call.arguments]
        if len(words) != 1 or call.name.startswith(("stream", "Model", "compile")) or not call.compared:
            continue
        (own,), other = words, "axis" if words == ["dim"] else "dim"
        rest = {name: value for name, value in call.arguments.items() if name != own}
        want = judge.attempt(call.run, call.arguments)
        got = judge.attempt(call.run, {**rest, other: call.arguments[own]})
        if want.results is None:
            continue
        assert got.results is not None and judge.differs(got.results, want.results) is None, (call.name, got)
        with pytest.raises(fl.ArgumentError, match=f"{own} and {other} are both given"):
            call.run(**call.arguments, **{other: call.arguments[own]})
        seen.add(call.name.split("(")[0])
    assert {"softmax", "softmin", "concat", "group_norm", "Softmax", "BatchNorm2d", "fft"} <= seen
    with pytest.raises(fl.ArgumentError, match="dim and axis are both given"):
        F.softmax(x3, 1, axis=1)  # type: ignore[call-arg]


def test_numbers_of_other_types_are_numbers() -> None:
    """Rules and kernels get Python's own, whatever type says that it is one."""

    class Two:
        def __index__(self) -> int:
            return 2

    want = F.max_pool1d(x3, 2, stride=2)
    for two in (Two(), np.uint8(2), np.array(2), np.int64(2)):
        np.testing.assert_array_equal(F.max_pool1d(x3, two, stride=[two]), want)  # type: ignore[arg-type]


def test_an_offset_beyond_all_keys_sees_all() -> None:
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal(shape).astype(np.float32) for shape in ((2, 4, 12), (2, 6, 6), (2, 6, 10)))
    heads = {"num_heads": 4, "num_kv_heads": 2}
    for offset, want in ((2**63 - 1, {}), (-(2**63) + 1, {"lengths": [0, 0]})):
        got = F.scaled_dot_product_attention(q, k, v, is_causal=True, offset=offset, **heads)
        np.testing.assert_allclose(got, F.scaled_dot_product_attention(q, k, v, **want, **heads), atol=1e-6)
        four = F.scaled_dot_product_attention(q4, q4, q4, is_causal=True, offset=offset)
        one = {"lengths": [0]} if want else {}
        np.testing.assert_allclose(four, F.scaled_dot_product_attention(q4, q4, q4, **one), atol=1e-6)


def test_no_memory_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """What numpy says where it finds none comes out of no function, decorated or recorded, and of no kernel in numpy."""

    def none(*args: Any, **kwargs: Any) -> Any:
        raise MemoryError("numpy's own words")

    monkeypatch.setattr(importlib.import_module("fastlayers.functional._dropout"), "drop", none)
    monkeypatch.setattr(importlib.import_module("fastlayers.operators.positional_tables"), "_angles", none)
    monkeypatch.setattr(np, "concatenate", none)
    for name, call in {
        "dropout": lambda: F.dropout(x3, training=True, seed=1),
        "rotary_tables": lambda: F.rotary_tables(1, 2),
        "concat": lambda: F.concat([x3, x3]),
        "gemm": lambda: _guarded("gemm", none)(),
    }.items():
        with pytest.raises(fl.LimitError, match=f"^{name}: no memory"):
            call()


def test_a_small_clip_is_not_no_clip() -> None:
    gates = np.ones((4, 2), np.float32), np.ones((4, 1), np.float32)
    got = F.lstm(np.ones((3, 2), np.float32), None, *gates, clip=1e-300)[0]
    np.testing.assert_allclose(got, 0, atol=1e-30)


def test_everything_public_is_called() -> None:
    names = {call.name.partition("(")[0].partition(".")[0] for call in calls()}
    assert {*F.__all__, *fl.layers.__all__} - names == {"Layer", "Loaded"}
    assert {"load", "load_weights", "compile", "set_num_threads", "operator"} <= names


def test_the_calls_are_right() -> None:
    for call in calls():
        outcome = judge.attempt(call.run, call.arguments)
        assert outcome.results is not None, (call.name, outcome)


def test_the_judge_sees_what_is_wrong() -> None:
    def foreign() -> None:
        raise ValueError("x")

    assert (judge.attempt(foreign, {}).fault or "").startswith("ValueError")
    assert judge.misread("bool", "no") and judge.misread("int | None", True) and judge.misread("str", 3)
    assert not judge.misread("bool | None", None) and not judge.misread("float", 3) and not judge.misread("Tensor", "x")
    one, two = [np.float32([1, np.nan])], [np.float32([1.01, np.nan])]
    assert judge.differs(one, two) and not judge.differs(one, one) and judge.differs(one, [one[0][:1]])


@pytest.mark.skipif(sys.platform != "linux", reason="limits of processes as Linux has them")
def test_replaced_arguments() -> None:
    todo = trials(calls(), singles=6000, doubles=1500, seed=14)
    report = run(calls(), todo)
    assert not report.faults, "\n".join(f"{text}: {why}" for text, why in report.faults)
    assert report.ran == len(todo) and report.answered > 500
