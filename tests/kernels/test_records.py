"""Records in the place of lists of numbers: by value into kernels, from one to another, and into emitted functions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("numba")
pytestmark = pytest.mark.jit

from fastlayers.kernels.jit._njit import call, emitted, inner, kernel  # noqa: E402
from fastlayers.kernels.jit._records import Int, Real  # noqa: E402
from fastlayers.kernels.jit._threads import address  # noqa: E402
from fastlayers.kernels.jit._vector import Emit, Float, V  # noqa: E402
from fastlayers.kernels.records import type_of  # noqa: E402


class Share(NamedTuple):
    number: Int
    of: Real


class Plan(NamedTuple):
    inner: int
    first: int
    share: Share
    scale: float
    last: int


@emitted
def _put(e: Emit, to: V, share: Share) -> None:
    e.store(to, share.of)
    e.store(e.at(to, 2), share.number)


@emitted
def put_number(e: Emit, place: V, index: V, value: Float) -> None:
    e.store(e.at(place, index), value)


@inner
def _beside(to: int, share: Share, scale: float) -> None:
    _put(to, share)
    put_number(to, 1, scale)


@kernel
def _records(p: Plan, to: int) -> None:
    call(p.inner, to, p.share, p.scale)
    call(p.inner, to + 16, Share(p.first - p.last, True), 3.0)  # numbers of other types become the record's


@kernel
def _alike(share: Share, to: int) -> None:
    put_number(to, 0, share.of * 2)


def test_a_record_goes_by_value_through_kernels_and_emitted_functions() -> None:
    out = np.zeros(8, np.float32)
    _records(Plan(_beside.address, 5, Share(-(1 << 40) + 7, 1 / 3), 2.0, 12), address(out))
    np.testing.assert_array_equal(out[[0, 1, 4, 5]], np.float32([1 / 3, 2, 1, 3]))
    assert out[[2, 3]].view(np.int64) == -(1 << 40) + 7
    assert out[[6, 7]].view(np.int64) == -7
    _alike(Share(1, 0.3), address(out))
    assert out[0] == np.float32(0.3) * np.float32(2)


@pytest.mark.parametrize("wrong", [Share(1, "a"), (1,), 3], ids=str)  # type: ignore[arg-type]
def test_what_is_no_such_record_is_refused(wrong: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        _alike(wrong, 0)


def test_the_type_of_a_record_is_that_of_its_fields() -> None:
    kinds = {"int": "i", "float": "f", "Int": "I", "Real": "R"}
    assert type_of("float", {}, kinds, lambda *about: about) == "f"
    share = (("I", "R"), Share)
    assert type_of("Plan", globals(), kinds, lambda *about: about) == (("i", "i", share, "f", "i"), Plan)
    with pytest.raises(KeyError):
        type_of("Unknown", globals(), kinds, lambda *about: about)
