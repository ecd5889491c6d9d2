"""Embedding: rows by number, ids out of range, what stands for nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastlayers as fl

from ..each import each

TABLE = np.arange(15, dtype=np.float32).reshape(5, 3)


def layer(**options: Any) -> Any:
    made = fl.Embedding(5, 3, **options)
    made.load_state_dict({"weight": TABLE})
    return made


@each("dtype", [np.int64, np.int32, np.uint8, ">i4"])
@each("shape", [(), (1,), (0,), (2, 3), (2, 0, 3), (1, 2, 1, 4)])
def test_ids_of_any_rank_and_integer_dtype(shape: tuple[int, ...], dtype: Any, variant: str) -> None:
    ids = np.random.default_rng(0).integers(0, 5, shape).astype(dtype)
    for result in (
        fl.functional.embedding(ids, TABLE),
        layer()(ids),
        fl.compile(layer(), fl.graph.Input("ids", shape, dtype))(ids),
    ):
        assert result.dtype == np.float32 and result.shape == (*shape, 3)
        np.testing.assert_array_equal(result, TABLE[ids])


@pytest.mark.parametrize("wrong", [5, -1, 2**40, -(2**63)])
def test_an_id_out_of_range_is_named(wrong: int, variant: str) -> None:
    ids = np.array([[0, 4], [wrong, 7]])
    for call in (lambda: fl.functional.embedding(ids, TABLE), lambda: layer()(ids)):
        with pytest.raises(fl.ShapeError, match=f"^embedding: id {wrong} is out of range: expected 0 to 4"):
            call()
    model = fl.compile(layer(), fl.graph.Input("ids", ("n", 2), np.int64))
    for _ in range(2):  # the second time on the fast way
        with pytest.raises(fl.ShapeError, match=f"{wrong} is out of range: expected 0 to 4"):
            model(ids)
    np.testing.assert_array_equal(model(ids % 5), TABLE[ids % 5])


def test_an_onnx_gather_names_what_is_out_of_range(variant: str) -> None:
    """Gather itself lets numbers below 0 count from the end."""
    graph = fl.graph.Graph(
        (fl.graph.Value("i", (2,), np.dtype(np.int64)),), (fl.graph.Value("y", (2, 3), np.dtype(np.float32)),),
        (fl.graph.Node("Gather", ("table", "i"), ("y",), {}),), {"table": TABLE}, {},
    )  # fmt: skip
    model = fl.Model(graph)
    np.testing.assert_array_equal(model(np.array([-1, 0])), TABLE[[-1, 0]])
    with pytest.raises(fl.ShapeError, match="index -6 is out of range: expected -5 to 4"):
        model(np.array([1, -6]))


def test_the_padding_row_is_what_the_table_holds() -> None:
    np.testing.assert_array_equal(layer(padding_idx=1)([1]), TABLE[[1]])
    assert layer(padding_idx=-1).padding_idx == 4
    np.testing.assert_array_equal(layer(padding_idx=-1).mask([[4, 0], [3, 4]]), [[False, True], [True, False]])


def test_keras_list_and_weights() -> None:
    made = fl.Embedding(5, 3)
    made.load_keras([TABLE])
    np.testing.assert_array_equal(made.state_dict()["weight"], TABLE)
    assert repr(layer(padding_idx=0)) == "Embedding(5, 3, padding_idx=0)"


WRONG: list[tuple[Any, type[Exception], str]] = [
    (lambda: fl.functional.embedding([0.0], TABLE), fl.DTypeError, "embedding: ids has dtype float64: expected integers"),
    (lambda: fl.functional.embedding([True], TABLE), fl.DTypeError, "embedding: ids has dtype bool"),
    (lambda: fl.functional.embedding([0], TABLE[0]), fl.ShapeError, r"embedding: weight has shape \(3,\)"),
    (lambda: fl.functional.embedding([0], TABLE[:0]), fl.ShapeError, "embedding: id 0 is out of range"),
    (lambda: fl.functional.embedding([0], TABLE, 5), fl.ArgumentError, "embedding: padding_idx is 5: expected -5 to 4"),
    (lambda: fl.Embedding(5, 3, padding_idx=-6), fl.ArgumentError, "Embedding: padding_idx is -6"),
    (lambda: fl.Embedding(5, 3, padding_idx=0.0), fl.DTypeError, "Embedding: padding_idx is 0.0"),
    (lambda: fl.Embedding(-1, 3), fl.ArgumentError, "Embedding: num_embeddings is -1"),
    (lambda: fl.Embedding(5, 3, max_norm=1.0), fl.UnsupportedError, "Embedding: max_norm is 1.0"),
    (lambda: fl.Embedding(5, 3)([0]), fl.WeightsError, "called without weights"),
    (lambda: layer().mask([0]), fl.UnsupportedError, "no padding_idx"),
    (lambda: fl.compile(layer(), fl.graph.Input("x", (2,))), fl.DTypeError, "embedding: ids has dtype float32"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), WRONG, ids=[text for _, _, text in WRONG])
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
