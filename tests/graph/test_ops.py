"""Every operation of the vocabulary: recorded and run it gives what it gives at once, and its results are its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.graph import Graph, Input

from ..each import each
from .asked import asked
from .examples import EXAMPLES, Example
from .examples._base import OTHERWISE

# Functions of numbers alone, and searches that go on by what they find: there is nothing to record.
NOT_RECORDED = {
    "beam_search", "blackman_window", "greedy_search", "hamming_window", "hann_window", "hierarchical_argmax", "melscale_fbanks",
    "rotary_tables", "sinusoidal_encoding",
}  # fmt: skip
# One test an operation goes through all of its examples: a few thousand tests would take longer to collect than to run.
operations = each("op", sorted({example.op for example in EXAMPLES}))


def of(op: str) -> list[Example]:
    return [example for example in EXAMPLES if example.op == op]


def record(example: Example, shapes: list[Any]) -> Graph:
    """The example with every float tensor an input; masks and the like are constants, as they are in most networks."""
    present = [i for i in example.floats if shapes[i] is not None]

    def function(*symbols: Any) -> Any:
        tensors: list[Any] = [None if i in present else t for i, t in enumerate(example.tensors)]
        for i, symbol in zip(present, symbols, strict=True):
            tensors[i] = symbol
        return example.call(tensors)

    return fl.graph.trace(function, *(Input(f"t{i}", shapes[i]) for i in present))


def feeds(example: Example, arrays: list[Any]) -> dict[str, np.ndarray]:
    return {f"t{i}": arrays[i] for i in example.floats if arrays[i] is not None}


def same(example: Example, got: np.ndarray, want: np.ndarray) -> None:
    """Bits, or nearly, where programs choose another algorithm."""
    tolerance = OTHERWISE.get(example.op, 0.0)
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance, err_msg=example.label)


def test_every_operation_has_an_example() -> None:
    """Every public function is an operation of the vocabulary or made of such, and can be recorded; but for searches."""
    assert {example.op for example in EXAMPLES} == set(fl.functional.__all__) - {"swish"} - NOT_RECORDED


@operations
def test_recorded_is_what_runs_at_once(op: str) -> None:
    for example in of(op):
        arrays = example.arrays()
        want = example.call(arrays)
        graph = record(example, [None if a is None else a.shape for a in arrays])
        assert [value.shape for value in graph.outputs] == [array.shape for array in want], example.label
        assert [value.dtype for value in graph.outputs] == [array.dtype for array in want], example.label
        for a, b in zip(fl.graph.execute(graph, feeds(example, arrays)).values(), want, strict=True):
            same(example, a, b)


@operations
def test_variants_agree(op: str, variant: str) -> None:
    """Within what a few roundings in float32 make of numbers up to about 20."""
    for example in of(op):
        arrays = example.arrays()
        got = example.call(arrays)
        with fl.kernels.use("reference"):
            want = example.call(arrays)
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=4e-6, atol=4e-6, err_msg=example.label)


@operations
@each("known", ["size", None], ids=["names", "unknown"])
def test_shape_rules_take_unknown_sizes(op: str, known: str | None) -> None:
    """With any one size of the first tensor open, what the rule still says of the result is true, and the graph runs."""
    for example in of(op):
        arrays = example.arrays()
        want = example.call(arrays)
        for axis, open_size in enumerate(arrays[0].shape if example.floats and example.floats[0] == 0 else ()):
            if op == "squeeze" and open_size == 1:
                continue  # whether it is 1 has to be known
            shapes: list[Any] = [None if a is None else list(a.shape) for a in arrays]
            shapes[0][axis] = known
            graph = record(example, shapes)
            for value, array in zip(graph.outputs, want, strict=True):
                assert value.shape is not None and len(value.shape) == array.ndim
                for dim, size in zip(value.shape, array.shape, strict=True):
                    assert dim in (None, size) or (dim == known and size == open_size), example.label
            for a, b in zip(fl.graph.execute(graph, feeds(example, arrays)).values(), want, strict=True):
                same(example, a, b)


@operations
def test_recording_runs_no_kernel(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    called = asked(monkeypatch)
    for example in of(op):
        record(example, example.shapes)
    assert called == []


def other_forms(array: np.ndarray) -> dict[str, Any]:
    """The same values (those of float16) in every form that a caller may give."""
    spread = np.zeros((*array.shape[:-1], 2 * array.shape[-1]) if array.ndim else (2,), np.float32)
    strided = spread[..., ::2] if array.ndim else spread[0:1].reshape(())
    strided[...] = array
    room = np.zeros(array.nbytes + 1, np.uint8)
    misaligned = room[1:].view(np.float32).reshape(array.shape)
    misaligned[...] = array
    frozen = array.copy()
    frozen.flags.writeable = False
    forms = {
        "float64": array.astype(np.float64),
        "float16": array.astype(np.float16),
        "long double": array.astype(np.longdouble),
        "other byte order": array.astype(array.dtype.newbyteorder()),
        "Fortran order": np.array(array, order="F"),
        "strided": strided,
        "misaligned": misaligned,
        "read-only": frozen,
    }
    # A list without numbers does not say its shape.
    return {**forms, "list": array.tolist()} if array.size else forms


@operations
def test_any_form_of_input_gives_the_same_fresh_result(op: str) -> None:
    for example in of(op):
        arrays = [a.astype(np.float16).astype(np.float32) if i in example.floats else a for i, a in enumerate(example.arrays())]
        want = example.call(arrays)
        every = [other_forms(a) if i in example.floats else None for i, a in enumerate(arrays)]
        for form in set.intersection(*(set(forms) for forms in every if forms is not None)) if example.floats else ():
            label = f"{form}: {example.label}"
            given = [arrays[i] if forms is None else forms[form] for i, forms in enumerate(every)]
            before = [a.copy() if isinstance(a, np.ndarray) else a for a in given]
            for result, expected in zip(example.call(given), want, strict=True):
                np.testing.assert_array_equal(result, expected, err_msg=label)
                assert type(result) is np.ndarray and result.dtype == expected.dtype and result.dtype.isnative, label
                assert result.flags.c_contiguous and result.flags.writeable and result.flags.aligned, label
                assert not any(isinstance(a, np.ndarray) and np.shares_memory(a, result) for a in [*given, *arrays]), label
            for now, then in zip(given, before, strict=True):
                np.testing.assert_array_equal(now, then)


@operations
def test_integers_are_converted(op: str) -> None:
    for example in of(op):
        for dtype in (np.int64, np.uint8, np.bool_):
            arrays = [(10 * a).astype(dtype) if i in example.floats else a for i, a in enumerate(example.arrays())]
            want = example.call([a.astype(np.float32) if i in example.floats else a for i, a in enumerate(arrays)])
            for result, expected in zip(example.call(arrays), want, strict=True):
                np.testing.assert_array_equal(result, expected)
                assert result.dtype in (np.float32, expected.dtype)


@operations
def test_what_is_no_real_number_is_refused(op: str) -> None:
    for example in of(op):
        for i, shape in enumerate(example.shapes):
            complex_too = op in ("fft", "ifft", "irfft")
            kinds = (object, "U3", "M8[s]", "V4") if complex_too else (np.complex64, object, "U3", "M8[s]", "V4")
            for dtype in kinds if shape is not None else ():
                arrays = example.arrays()
                arrays[i] = np.zeros(shape, dtype)
                with pytest.raises(fl.DTypeError, match=rf"^{op}: .*expected"):
                    example.call(arrays)
