"""Attention: tiles of queries and keys, masks, lengths, causality, groups of heads, layouts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .calls import agree, numbers, requires_cuda

pytestmark = requires_cuda


def attend(
    b: int = 1, h: int = 1, g: int = 0, n: int = 5, m: int = 7, d: int = 8, e: int = 8, mask: Any = None, lengths: Any = None,
    scale: float = 0.4, causal: bool = False, offset: int = 0, empty: int = 0, k_transposed: bool = False,
    heads_last: bool = False, special: Any = None,
) -> np.ndarray:  # fmt: skip
    g = g or h
    q, k, v = numbers(b, h, n, d), numbers(b, g, m, d, seed=1), numbers(b, g, m, e, seed=2)
    if special is not None:
        special(q, k, v)
    out = np.full((b, n, h, e) if heads_last else (b, h, n, e), 77, np.float32)
    if heads_last:
        q, k, v = (np.ascontiguousarray(x.swapaxes(1, 2)) for x in (q, k, v))
    if k_transposed:
        k = np.ascontiguousarray(k.swapaxes(2, 3))
    counts = None if lengths is None else np.array(lengths, np.int64)
    given = q, k, v, mask, counts, out, scale, causal, offset, empty, k_transposed, heads_last
    # scores of up to 5 are a few ulp off, and so are the weights
    return agree("attention", *given, rtol=5e-6, atol=5e-6)[0]


@pytest.mark.parametrize(("n", "m"), [(1, 1), (8, 7), (9, 8), (1, 17), (9, 17)])
def test_sizes(n: int, m: int) -> None:
    attend(n=n, m=m, d=4, e=4)


@pytest.mark.parametrize(("d", "e"), [(1, 3), (16, 5), (17, 16), (6, 33)])
def test_heads_of_many_widths(d: int, e: int) -> None:
    attend(n=3, m=6, d=d, e=e)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("layout", ["plain", "k_transposed", "heads_last"])
def test_layouts(layout: str, causal: bool) -> None:
    attend(b=2, h=2, g=1, n=3, m=9, d=4, e=4, causal=causal, offset=2, **({layout: True} if layout != "plain" else {}))
    attend(h=2, n=3, m=4, d=3, e=3, causal=causal, offset=2, **({layout: True} if layout != "plain" else {}))
    attend(h=2, n=3, m=1, d=4, k_transposed=layout == "k_transposed", heads_last=layout == "heads_last")


@pytest.mark.parametrize("offset", [-3, 0, 4])
@pytest.mark.parametrize("empty", [0, 1])
def test_causal(offset: int, empty: int) -> None:
    got = attend(n=10, m=9, causal=True, offset=offset, empty=empty)
    if offset < 0:
        assert (np.isnan(got[0, 0, 0]) if empty else got[0, 0, 0] == 0).all()


def test_lengths() -> None:
    def behind(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> None:
        k[0, :, 5:], v[0, :, 5:] = np.nan, np.inf

    attend(b=3, h=1, m=12, lengths=[5, 12, 0], special=behind)


@pytest.mark.parametrize("axes", [(1, 1, 1, 1), (2, 1, 1, 9), (1, 2, 4, 1), (2, 2, 4, 9)], ids=str)
def test_masks(axes: tuple[int, ...]) -> None:
    mask = numbers(*axes, seed=5)
    attend(b=2, h=2, n=4, m=9, d=4, e=4, mask=np.where(mask > 0.5, np.float32(-np.inf), mask), empty=1)


def test_special_values() -> None:
    def not_a_number(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> None:
        q[0, 0, 1, 0] = np.nan
        q[0, 0, 2] *= 1e30

    attend(special=not_a_number)


@pytest.mark.parametrize("values", [False, True])
def test_weights_of_zero_in_the_place_of_nan(values: bool) -> None:
    def special(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> None:
        q[0, 0, 1, 0] = np.nan
        if values:
            v[0, 0, 2, 1] = np.inf

    mask = np.zeros((1, 1, 5, 9), np.float32)
    mask[0, 0, 2] = -np.inf
    attend(n=5, m=9, d=4, e=4, mask=mask, empty=2, special=special)


def test_no_keys_no_numbers_and_wide_heads() -> None:
    attend(m=0, empty=1)
    attend(n=0)
    attend(d=0, e=3)
    attend(d=300, e=2, n=2, m=3)
