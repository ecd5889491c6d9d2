"""Fourier transforms along an axis; names and arguments are those of torch.fft.

Complex values are pairs, real and imaginary part, on a last axis of size 2, as `torch.view_as_real` gives them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .._tuples import NamedTuple
from ..calls.machine import ARRAYS
from ..calls.spectral import transform
from ..errors import ShapeError
from ..graph.arrays import as_float32, empty
from ..graph.ops import op
from ..graph.record import ints, record
from ..ir.checks import axis, integer
from ..ir.graph import Dim, Shape
from ..kernels.fft_tables import FFT, IFFT, IRFFT, MOST_SIZE, RFFT
from ..operators.spectral_rules import scale_of
from ..rules.spectral import norm_rule, pairs_rule, points_rule
from ._spectral_frames import plan

if TYPE_CHECKING:
    from ._types import Tensor

__all__ = ["fft", "ifft", "irfft", "rfft"]


class _Way(NamedTuple):
    """Kinds of transforms: whether x and the result are pairs."""

    kind: int
    pairs: bool
    gives: bool


_WAYS = {
    "fft": _Way(FFT, True, True),
    "ifft": _Way(IFFT, True, True),
    "rfft": _Way(RFFT, False, True),
    "irfft": _Way(IRFFT, True, False),
}


def _as_pairs(x: Any) -> np.ndarray:
    """Complex numbers as pairs of float32."""
    return np.ascontiguousarray(x, np.complex64).reshape(*x.shape, 1).view(np.float32)


def transform_points(name: str, shape: Shape, n: Any, at: int) -> Dim:
    """The number of points of a transform along axis `at` of values."""
    if n is not None:
        return integer(name, "n", n, 1, MOST_SIZE)
    points = points_rule(name, shape[at], at, name == "irfft")
    return points if isinstance(points, int) else None


def transform_axis(name: str, shape: Shape, dim: Any) -> int:
    """The axis that is transformed, counted from the front, as if pairs were one number."""
    pairs = _WAYS[name].pairs
    if pairs:
        pairs_rule(name, shape)
    elif not shape:
        raise ShapeError(f"{name}: x has shape {shape}: expected (..., n)")
    return axis(name, dim, len(shape) - pairs)


def check_norm(name: str, norm: Any) -> str:
    """The name of the normalization, which says what results are divided by."""
    return "backward" if norm is None else norm_rule(name, norm)


def _rule(name: str, x: Shape, n: Any, dim: Any, norm: Any) -> Shape:
    check_norm(name, norm)
    at, way = transform_axis(name, x, dim), _WAYS[name]
    points = transform_points(name, x, n, at)
    lead = list(x[:-1] if way.pairs else x)
    lead[at] = points // 2 + 1 if name == "rfft" and isinstance(points, int) else points
    if points is None and name in ("fft", "ifft"):
        lead[at] = x[at]
    return (*lead, 2) if way.gives else tuple(lead)


def _transform(name: str, x: Any, n: Any, dim: Any, norm: Any) -> np.ndarray:
    way = _WAYS[name]
    if way.pairs and isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind == "c":
        made = _transform(name, _as_pairs(x), n, dim, norm)
        return made.view(np.complex64)[..., 0] if way.gives else made
    x = as_float32(x, name, "x")
    shape: Any = _rule(name, x.shape, n, dim, norm)
    at: int = transform_axis(name, x.shape, dim)
    points: Any = transform_points(name, x.shape, n, at)
    scale, out = scale_of(check_norm(name, norm), name in ("ifft", "irfft"), points), empty(shape)
    transform(ARRAYS, plan(points, way.kind, scale), x, out, at, way.pairs, way.gives)
    return out


def _normal(attributes: dict[str, Any]) -> None:
    attributes["n"] = None if attributes["n"] is None else int(attributes["n"])
    attributes["dim"], attributes["norm"] = int(attributes["dim"]), attributes["norm"] or "backward"


def _record(name: str, x: Any, n: int | None, dim: int, norm: str) -> Any:
    at = transform_axis(name, x.shape, dim)
    points = None if n is None else np.array(n, np.int64)
    inverse, half = name in ("ifft", "irfft"), "rfft" in name
    if name == "rfft":
        x = record("Unsqueeze", x, ints(-1))
    parts = {} if half else {"parts": 2}
    at_input = np.array(at, np.int64)
    made = record("DFT", x, points, at_input, inverse=int(inverse), onesided=int(half), norm=norm, **parts)
    return record("Squeeze", made, ints(-1)) if name == "irfft" else made


@op("fft", "x", lambda x, n, dim, norm: _rule("fft", x, n, dim, norm), partial(_record, "fft"), _normal)
def fft(x: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> np.ndarray:
    """Fourier transform of complex numbers: ``out[k] = sum over j of x[j] exp(-2 pi i j k / n)``, torch.fft.fft.

    Args:
        x: complex, of any shape; or ``(..., 2)`` of a real dtype, complex values as pairs of real and imaginary part.
        n: points of the transform: x is cut, or zeros are put after it. None: all of x.
        dim: the axis, as if pairs were one number: -1 is the last one before them.
        norm: what is divided by n: ``"backward"`` nothing (the inverse is), ``"forward"`` this, ``"ortho"`` both, by its root.

    Returns:
        The shape of x with n values along `dim`: complex64 if x is complex, else float32.

    Raises:
        ShapeError: x is not made of pairs, or has no such axis or nothing along it.
        ArgumentError: `norm` is none of the three.
        DTypeError: an argument has a wrong dtype. Complex arrays are given as pairs: ``np.stack([z.real, z.imag], -1)``.

    >>> import fastlayers as fl
    >>> fl.functional.fft([[1.0, 0.0], [0.0, 0.0]])
    array([[1., 0.],
           [1., 0.]], dtype=float32)
    """
    return _transform("fft", x, n, dim, norm)


@op("ifft", "x", lambda x, n, dim, norm: _rule("ifft", x, n, dim, norm), partial(_record, "ifft"), _normal)
def ifft(x: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> np.ndarray:
    """Inverse Fourier transform: ``out[j] = 1 / n sum over k of x[k] exp(2 pi i j k / n)``, torch.fft.ifft.

    Args:
        x: complex, of any shape; or ``(..., 2)`` of a real dtype, complex values as pairs of real and imaginary part.
        n: points of the transform: x is cut, or zeros are put after it. None: all of x.
        dim: the axis, as if pairs were one number.
        norm: as in `fft`.

    Returns:
        The shape of x with n values along `dim`: complex64 if x is complex, else float32.

    Raises:
        ShapeError: x is not made of pairs, or has no such axis or nothing along it.
        ArgumentError: `norm` is none of the three.
        DTypeError: an argument has a wrong dtype.

    >>> import fastlayers as fl
    >>> fl.functional.ifft([[1.0, 0.0], [1.0, 0.0]])
    array([[1., 0.],
           [0., 0.]], dtype=float32)
    """
    return _transform("ifft", x, n, dim, norm)


@op("rfft", "x", lambda x, n, dim, norm: _rule("rfft", x, n, dim, norm), partial(_record, "rfft"), _normal)
def rfft(x: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> np.ndarray:
    """Fourier transform of reals: the first ``n // 2 + 1`` values of `fft`, which the others mirror; torch.fft.rfft.

    Args:
        x: ``(..., n)``, any real dtype.
        n: points of the transform: x is cut, or zeros are put after it. None: all of x.
        dim: the axis.
        norm: as in `fft`.

    Returns:
        float32 ``(..., n // 2 + 1, 2)``: complex values as pairs.

    Raises:
        ShapeError: x has no such axis or nothing along it.
        ArgumentError: `norm` is none of the three.
        DTypeError: an argument has a wrong dtype.

    >>> import fastlayers as fl
    >>> fl.functional.rfft([1.0, 2.0, 1.0, 0.0])
    array([[ 4.,  0.],
           [ 0., -2.],
           [ 0.,  0.]], dtype=float32)
    """
    return _transform("rfft", x, n, dim, norm)


@op("irfft", "x", lambda x, n, dim, norm: _rule("irfft", x, n, dim, norm), partial(_record, "irfft"), _normal)
def irfft(x: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> np.ndarray:
    """The reals whose `rfft` is x; torch.fft.irfft. Imaginary parts at its ends, where a spectrum of reals has none, are ignored.

    Args:
        x: complex ``(..., n // 2 + 1)``; or ``(..., n // 2 + 1, 2)`` of a real dtype, complex values as pairs.
        n: how many reals; x is cut, or zeros are put after it. None: the even one of the two that x may come from.
        dim: the axis, as if pairs were one number.
        norm: as in `fft`.

    Returns:
        float32 ``(..., n)``.

    Raises:
        ShapeError: x is not made of pairs, or has no such axis or nothing along it.
        ArgumentError: `norm` is none of the three.
        DTypeError: an argument has a wrong dtype.

    >>> import fastlayers as fl
    >>> fl.functional.irfft([[4.0, 0.0], [0.0, -2.0], [0.0, 0.0]])
    array([1., 2., 1., 0.], dtype=float32)
    """
    return _transform("irfft", x, n, dim, norm)
