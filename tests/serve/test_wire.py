"""Tensors and requests as bytes: what they become, and what is refused. Needs none of the extra."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from fastlayers.model import TensorSpec
from fastlayers.serve.datatypes import DATATYPES, dump, from_bytes, from_json, to_bytes
from fastlayers.serve.failures import Refused
from fastlayers.serve.wire import answer, feeds_of, outputs_of, read, said, written
from tests.each import each

MOST = 1 << 20


def array_of(name: str, shape: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng(0)
    if name == "BYTES":
        made = np.empty(shape, object)
        made.ravel()[:] = ["", "é", "a\x00b", "long" * 20, "x", "y"][: made.size]
        return made
    found: np.ndarray = rng.integers(0, 2, shape).astype(DATATYPES[name])
    return found


@each("name", list(DATATYPES))
def test_arrays_come_back_as_bytes_and_as_json(name: str) -> None:
    for shape in ((), (0,), (1,), (2, 3), (0, 4)):
        array = array_of(name, shape)
        data = to_bytes(array)
        # After JSON of any length: the elements are not aligned.
        moved = memoryview(b"x" + data)[1:]
        np.testing.assert_array_equal(from_bytes("t", name, shape, array.size, moved), array)
        for listed in (dump(array), array.tolist() if shape else dump(array)):
            found = from_json("t", name, shape, array.size, json.loads(json.dumps(listed)))
            np.testing.assert_array_equal(found, array)
            assert found.dtype == array.dtype and found.shape == shape


def test_floats_that_are_no_numbers() -> None:
    array = np.array([np.nan, np.inf, -np.inf, -0.0], np.float32)
    assert from_bytes("t", "FP32", (4,), 4, memoryview(to_bytes(array))).tobytes() == array.tobytes()
    assert from_json("t", "FP32", (4,), 4, json.loads(json.dumps(dump(array)))).tobytes() == array.tobytes()
    assert np.isinf(from_json("t", "FP32", (1,), 1, [1e300])).all()


@each(
    "name,shape,data",
    [
        ("FP32", (2,), [1.0]),
        ("FP32", (2,), [[1.0, 2.0]]),
        ("FP32", (2, 2), [[1.0, 2.0], [3.0]]),
        ("FP32", (1,), ["1"]),
        ("FP32", (1,), [None]),
        ("FP32", (1,), [True]),
        ("FP32", (1,), [{}]),
        ("FP32", (1,), "1"),
        ("INT8", (1,), [128]),
        ("UINT8", (1,), [-1]),
        ("INT64", (1,), [2**63]),
        ("INT64", (1,), [10**30]),
        ("INT64", (1,), [1.5]),
        ("BOOL", (1,), [1]),
        ("BYTES", (1,), [1]),
        ("BYTES", (2,), ["x"]),
    ],
)
def test_json_that_is_refused(name: str, shape: tuple[int, ...], data: Any) -> None:
    with pytest.raises(Refused):
        from_json("t", name, shape, int(np.prod(shape)), data)


@each(
    "name,count,data",
    [
        ("FP32", 1, b"123"),
        ("FP32", 1, b"12345678"),
        ("BOOL", 1, b"\x02"),
        ("BYTES", 1, b"\x05\x00\x00\x00abc"),
        ("BYTES", 1, b"\xff\xff\xff\xff"),
        ("BYTES", 1, b"\x01"),
        ("BYTES", 1, b"\x01\x00\x00\x00\xff"),
        ("BYTES", 2, b"\x01\x00\x00\x00a"),
    ],
)
def test_bytes_that_are_refused(name: str, count: int, data: bytes) -> None:
    with pytest.raises(Refused):
        from_bytes("t", name, (count,), count, memoryview(data))


def understood(body: bytes) -> None:
    found = read(body, None, MOST)
    feeds_of(found, SPECS)
    outputs_of(found, ["y"])


SPECS = (TensorSpec("x", ("n",), np.dtype("float32")),)
GOOD = {"name": "x", "datatype": "FP32", "shape": [1], "data": [1.0]}


@each(
    "asked",
    [
        [],
        {},
        {"inputs": {}},
        {"inputs": []},
        {"inputs": [1]},
        {"inputs": [GOOD, GOOD]},
        {"inputs": [{**GOOD, "name": "y"}]},
        {"inputs": [{**GOOD, "datatype": "FP64"}]},
        {"inputs": [{**GOOD, "datatype": ["FP32"]}]},
        {"inputs": [{**GOOD, "shape": [-1]}]},
        {"inputs": [{**GOOD, "shape": [2**62, 2**62]}]},
        {"inputs": [{**GOOD, "shape": [1.0]}]},
        {"inputs": [{**GOOD, "shape": [True]}]},
        {"inputs": [{**GOOD, "shape": [1] * 33}]},
        {"inputs": [{**GOOD, "shape": 1}]},
        {"inputs": [{k: v for k, v in GOOD.items() if k != "data"}]},
        {"inputs": [{**GOOD, "parameters": {"binary_data_size": 4}}]},
        {"inputs": [{**GOOD, "parameters": []}]},
        {"inputs": [GOOD], "id": 1},
        {"inputs": [GOOD], "outputs": [{"name": "z"}]},
        {"inputs": [GOOD], "outputs": [{"name": "y"}, {"name": "y"}]},
        {"inputs": [GOOD], "outputs": [{"name": "y", "parameters": {"classification": 3}}]},
        {"inputs": [GOOD], "parameters": {"sequence_id": -1}},
        {"inputs": [GOOD], "parameters": {"sequence_id": "x" * 129}},
        {"inputs": [GOOD], "parameters": {"sequence_start": 1}},
        {"inputs": [GOOD], "parameters": {"timeout": "soon"}},
        {"inputs": [GOOD], "parameters": {"binary_data_output": "yes"}},
    ],
)
def test_requests_that_are_refused(asked: Any) -> None:
    with pytest.raises(Refused) as caught:
        understood(json.dumps(asked).encode())
    assert caught.value.status == 400


@each(
    "body,header", [(b"{", None), (b"\xff", None), (b"[" * 100_000, None), (b"{}", "3"), (b"{}", "-1"), (b"{}", "x"), (b"", None)]
)
def test_bodies_that_are_refused(body: bytes, header: str | None) -> None:
    with pytest.raises(Refused):
        read(body, header, MOST)


def test_json_has_a_size_of_its_own() -> None:
    body = b'{"inputs": [' + b" " * 2000 + b"]}"
    with pytest.raises(Refused, match="binary tensor extension") as caught:
        read(body, None, 1000)
    assert caught.value.status == 413


def test_an_answer_can_be_mixed() -> None:
    asked = read(json.dumps({"inputs": [GOOD], "id": "7", "outputs": [
        {"name": "a", "parameters": {"binary_data": True}}, {"name": "b"}]}).encode(), None, MOST)  # fmt: skip
    results = {"a": np.arange(3, dtype=np.float32), "b": np.array([[1, 2]])}
    headers, body = answer("m", "1", asked, outputs_of(asked, ["a", "b"]), results, MOST)
    length = int(dict(headers)[b"inference-header-content-length"])
    head = json.loads(body[:length])
    assert head["id"] == "7" and head["outputs"][0]["parameters"] == {"binary_data_size": 12}
    assert head["outputs"][1] == {"name": "b", "datatype": "INT64", "shape": [1, 2], "data": [1, 2]}
    assert body[length:] == results["a"].tobytes()
    with pytest.raises(Refused, match="binary_data"):
        answer("m", "1", asked, [("b", False)], {"b": np.zeros(200_000, np.int64)}, MOST)


NONE = float("nan")


@each(
    "value,text",
    [
        (NONE, "null"), (float("inf"), "null"), ([1.5, NONE, 2], "[1.5,null,2]"), ([1.5, 2], "[1.5,2]"),
        ({"a": (-float("inf"), "NaN", None, True)}, '{"a":[null,"NaN",null,true]}'), ([[{"b": [NONE]}]], '[[{"b":[null]}]]'),
    ],
)  # fmt: skip
def test_what_is_no_number_is_null(value: Any, text: str) -> None:
    assert written(value) == text and said(200, value)[2] == text.encode()
