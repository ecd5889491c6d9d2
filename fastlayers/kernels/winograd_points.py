"""Winograd convolution: which kernels and tiles there are, and the transform of weights. The other two are in each variant.

F(m, k) makes m outputs along an axis out of n = m + k - 1 inputs, F(m x m, k x k) along two; each of n or n^2 positions is a
product of its own. An axis evaluates polynomials at n - 1 points and infinity (`POINTS`). Taps along the depth next to those are
terms of the products.

With a stride of 2 along height and width, three taps along each are two on the even inputs, F(4, 2), next to one on the odd ones.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np

from ..errors import ShapeError

__all__ = ["check_tile", "kinds", "sides", "terms_of", "tiles_of", "weights_axis"]

# By n. The product of the points' squares is 1 each time, so that the transforms need few constants; those of 6 are the most
# exact for two axes (docs/decisions/winograd-points.md), those of 8 for one, and for 5 and 7 taps along two.
POINTS = {4: (1.0, -1.0), 6: (2 / 3, -2 / 3, 3 / 2, -3 / 2), 8: (1 / 2, -1 / 2, 1.0, -1.0, 2.0, -2.0)}
# The tiles of a kernel of k taps along one axis, and along both of two
_LINE = {3: (2, 4, 6), 5: (2, 4), 7: (2,)}
_PLANE = {3: (2, 4), 5: (2, 4), 7: (2,)}
_DEEPEST = 7  # taps that are terms of the products
_ONES = (1, 1, 1)
# A stride of 2: outputs of a tile along an axis, its inputs, and the points of the even ones
_STRIDED, _INPUTS = 4, 9
EVEN_POINTS = (0.0, 1 / 2, -1.0, 2.0)


def tiles_of(kernel: Sequence[int], stride: Sequence[int] = _ONES) -> tuple[int, ...]:
    """The sides m of tiles that a kernel (kd, kh, kw) can be computed with; none if there is no such algorithm for it."""
    depth, *plane = kernel
    deep, *steps = stride
    if steps != [1, 1] or deep != 1:  # slices that no output reads would be transformed too
        if max(plane) == 1 or not 1 <= deep <= depth:
            return ()
        if steps != [1, 1]:
            return (_STRIDED,) if plane == [3, 3] and steps == [2, 2] and depth <= _DEEPEST else ()
    if plane == [1, 1]:
        return _LINE.get(depth, ())
    if not 1 <= depth <= _DEEPEST:
        return ()
    if 1 in plane:
        return _LINE.get(max(plane), ())
    return _PLANE.get(plane[0], ()) if plane[0] == plane[1] else ()


def terms_of(kernel: Sequence[int]) -> int:
    """Taps along the depth that are terms of the products: all of them, unless there are none along other axes."""
    return 1 if max(kernel[1:]) == 1 else kernel[0]


def sides(kernel: Sequence[int], tile: int, stride: Sequence[int] = _ONES) -> tuple[int, int]:
    """Positions of a tile along the two axes that are computed with: height or, where it alone has taps, depth; and width."""
    depth, height, width = kernel
    if stride[2] == 2:
        return _INPUTS, _INPUTS
    height *= depth // max(terms_of(kernel), 1)
    return (tile + height - 1 if height > 1 else 1), (tile + width - 1 if width > 1 else 1)


def kinds(kernel: Sequence[int], tile: int, stride: Sequence[int] = _ONES) -> tuple[int, int]:
    """Number of those positions with weights of their own, the first ones: the odd inputs of a stride of 2 share theirs."""
    return sides(kernel, tile) if stride[2] == 1 else (len(EVEN_POINTS) + 2, len(EVEN_POINTS) + 2)


def check_tile(kernel: Sequence[int], tile: int, stride: Sequence[int] = _ONES) -> None:
    """Raises ShapeError unless `winograd_pack` can take weights of this kernel for this tile."""
    known = tiles_of(kernel, stride)
    if not known and tiles_of(kernel):
        raise ShapeError(
            f"winograd_pack: stride is {tuple(stride)}, weight has the kernel {tuple(kernel)}: expected a stride of 1, or of 2 "
            "along height and width for (d, 3, 3); along the depth of up to d, where other axes have taps"
        )
    if not known:
        raise ShapeError(
            f"winograd_pack: weight has the kernel {tuple(kernel)}: expected (k, 1, 1), (d, 1, k) or (d, k, 1) with k 3, 5 or 7, "
            f"or (d, k, k) with k 3, 5 or 7, and d from 1 to {_DEEPEST}"
        )
    if tile not in known:
        raise ShapeError(
            f"winograd_pack: tile is {tile}: expected one of {known} for the kernel {tuple(kernel)}, stride {tuple(stride)}"
        )


@functools.lru_cache  # a call with new weights asks for it each time: a tenth of what a small one takes
def weights_axis(n: int, taps: int) -> np.ndarray:
    """One axis of the transform of weights, (n, taps), read-only: powers of the points, divided as interpolation asks.

    The row of a point p is multiplied by |p| on top, which the transform of the sums leaves out in turn; not so with a stride of
    2, whose n is that of `sides`, and of which the result has the rows of `kinds`.
    """
    if n == _INPUTS:
        even = [[1, 0, p] / math.prod(p - q for q in EVEN_POINTS if q != p) for p in map(np.float64, EVEN_POINTS)]
        axis = np.array([*even, [0, 0, 1], [0, 1, 0]])
        axis.flags.writeable = False
        return axis
    points = POINTS[n]
    rows = [np.eye(1, taps)[0]]
    for p in points:
        others = math.prod(p - q for q in points if q != p)  # and p - 0, of which |p| is left out
        rows.append(np.array([math.copysign(1, p) * p**k / others for k in range(taps)]))
    axis = np.array([*rows, np.eye(1, taps, taps - 1)[0]])
    axis.flags.writeable = False
    return axis
