"""Plans the kernel `fft`: cuts a transform into small ones, and makes the tables of roots of unity. Runs no kernel.

A complex transform of n points is made of passes over factors of n: 4, 2, 3, 5, then other odd primes up to `MOST_PRIME`. From
`LEAST_CUT` points on it is cut into two, n = a b: transforms of b points, a of them next to each other, a multiplication, then
those of a points, b next to each other. So one row fills vectors as well as several rows do, with the same sums. Where n has a
larger prime, or no cut fits, its transform is a convolution with a chirp, by transforms of c * c >= 2 n - 1 points (Bluestein).

Everything is found in float64 from angles within an eighth of a turn, and rounded once.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from .._tuples import NamedTuple
from ..errors import LimitError, ShapeError

__all__ = [
    "FFT", "IFFT", "IRFFT", "KINDS", "MOST_SIZE", "REAL", "REAL_INVERSE", "RFFT", "Tables", "plan_fits", "reads", "tables_of",
    "window_fits", "writes",
]  # fmt: skip

# What is made of what: complex values are pairs of floats, and half of a spectrum is its first n // 2 + 1 values.
FFT, IFFT, RFFT, IRFFT, REAL, REAL_INVERSE = range(6)
KINDS = {"fft": FFT, "ifft": IFFT, "rfft": RFFT, "irfft": IRFFT, "fft of reals": REAL, "ifft of reals": REAL_INVERSE}
MOST_PRIME, LEAST_CUT, MOST_SIZE = 31, 48, 1 << 23
_WIDTH = 16  # the widest vectors; a cut depends on no level


class Tables(NamedTuple):
    """A plan. Tables of complex values are two rows, real and imaginary parts, which end with zeros: whole vectors are read.

    `n`: points of the complex transform of the data (half of `size` where reals are taken in pairs); `b`, `a`: those of the two
    parts of what is computed, whose product is `n`, or with a chirp the points of the convolution; `first`, `second`: their
    factors; `roots`: for every factor's pass the powers of its root, [places][factor - 1][2]; `middle` (2, b, a rounded up);
    `chirp` (2, n), `filter` (2, a, a rounded up) or None; `fold` (2, n + 1): what makes half a spectrum of reals of the spectrum
    of their pairs, or None.
    """

    size: int
    op: int
    scale: float
    n: int
    b: int
    a: int
    first: tuple[int, ...]
    second: tuple[int, ...]
    roots: np.ndarray
    middle: np.ndarray | None
    chirp: np.ndarray | None
    filter: np.ndarray | None
    fold: np.ndarray | None

    @property
    def nbytes(self) -> int:
        """Bytes of the tables."""
        return sum(t.nbytes for t in (self.roots, self.middle, self.chirp, self.filter, self.fold) if t is not None)


def reads(size: int, op: int) -> int:
    """Floats of a row of x."""
    return {FFT: 2 * size, IFFT: 2 * size, IRFFT: 2 * (size // 2 + 1)}.get(op, size)


def writes(size: int, op: int) -> int:
    """Floats of a row of the result."""
    return {RFFT: 2 * (size // 2 + 1), IRFFT: size}.get(op, 2 * size)


def plan_fits(size: int, op: int) -> None:
    """Raises unless there are such transforms."""
    if op not in KINDS.values():
        raise ShapeError(f"fft_pack: op is {op}: expected a number of {KINDS}")
    if size < 1:
        raise ShapeError(f"fft_pack: size is {size}: expected at least 1")
    if size > MOST_SIZE:
        raise LimitError(f"fft_pack: size is {size}: expected at most {MOST_SIZE} points")


def window_fits(op: int, window: object, stride: int) -> None:
    """Raises ShapeError for a window where none can be, or a stride below 0."""
    if window is not None and op == IRFFT:
        raise ShapeError("fft: a window is given: expected None where half of a spectrum is read")
    if not 0 <= stride <= 1 << 40:
        raise ShapeError(f"fft: stride is {stride}: expected 0 to {1 << 40}")


def _turns(numerator: np.ndarray, whole: int) -> np.ndarray:
    """exp(-2 pi i numerator / whole), of angles within an eighth of a turn: values at eighths are exact."""
    k = numerator % whole
    eighth = (8 * k) // whole
    rest = 8 * k - eighth * whole  # of an eighth, in 1 / whole
    odd = eighth % 2 == 1
    angle = np.where(odd, whole - rest, rest) * (2 * np.pi / (8 * whole))
    c, s = np.cos(angle), np.sin(angle)
    c, s = np.where(odd, s, c), np.where(odd, c, s)  # within the quarter
    quarter = eighth // 2
    re = np.choose(quarter, [c, -s, -c, s])
    im = np.choose(quarter, [s, c, -s, -c])
    made: np.ndarray = re - 1j * im
    return made


def _factors(n: int) -> list[int] | None:
    """Factors in the order of the passes; None if a prime is too large."""
    found = []
    for factor in (4, 2, 3, 5, *range(7, MOST_PRIME + 1, 2)):
        while n % factor == 0:
            found.append(factor)
            n //= factor
    return found if n == 1 else None


@functools.lru_cache(maxsize=256)
def _cost(n: int) -> float:
    """Approximate cost of the passes per point."""
    return sum({2: 1.2, 3: 1.5, 4: 1.5, 5: 2.2}.get(f, 0.6 * f) for f in _factors(n) or ())


def _cut(n: int) -> tuple[int, int] | None:
    """(b, a) of the cheapest cut of n points; a is 1 where there are too few to cut; None if there is none that is worth it."""
    if _factors(n) is None:
        return None
    if n < LEAST_CUT:
        return n, 1
    best, least = None, math.inf
    for a in range(2, math.isqrt(n) + 1):
        if n % a == 0:
            for one, other in ((a, n // a), (n // a, a)):
                wide, high = (-(-v // _WIDTH) * _WIDTH for v in (one, other))
                cost = wide * other * (_cost(other) + 1) + high * one * (_cost(one) + 1)
                if cost < least:
                    best, least = (other, one), cost
    # A prime of up to 31 times little: the convolution fills vectors, but takes two transforms of more than twice the size.
    return best if best is not None or n > 4 * LEAST_CUT else (n, 1)


def _square(least: int) -> int:
    """The smallest c with c * c >= least whose factors are 2, 3 and 5, and cheap."""
    c = max(math.isqrt(max(least - 1, 0)) + 1, 4)
    while any(f > 5 for f in _factors(c) or (7,)):
        c += 1
    return c


def _padded(table: np.ndarray) -> np.ndarray:
    """Complex values as float32 rows of real and imaginary parts, the last axis rounded up and a vector more."""
    length = -(-table.shape[-1] // _WIDTH) * _WIDTH
    out = np.zeros((2, *table.shape[:-1], length), np.float32)
    out[0, ..., : table.shape[-1]] = table.real
    out[1, ..., : table.shape[-1]] = table.imag
    return out


def _passes(n: int, factors: tuple[int, ...]) -> list[np.ndarray]:
    """The roots of each pass: w^(p k) for its positions p and k = 1 .. factor - 1; then, of an odd prime above 5, all roots."""
    made = []
    for factor in factors:
        places = n // factor
        powers = _turns(np.outer(np.arange(places), np.arange(1, factor)), n).reshape(-1)
        if factor > 5:
            powers = np.concatenate([powers, _turns(np.arange(factor), factor)])
        made.append(np.stack([powers.real, powers.imag], axis=-1).reshape(-1))
        n = places
    return made


def tables_of(size: int, op: int, scale: float) -> Tables:
    """The plan of transforms of `size` points, whose results are multiplied by `scale`."""
    plan_fits(size, op)
    pairs = op not in (FFT, IFFT) and size % 2 == 0
    n = size // 2 if pairs else size
    cut, chirp, filtered, middle = _cut(n), None, None, None
    if cut is None:
        c = _square(2 * n - 1)
        cut, whole = (c, c), np.zeros(c * c, np.complex128)
        half = _turns(np.arange(n) ** 2, 2 * n)
        whole[:n] = half.conj()
        whole[c * c - n + 1 :] = half[1:][::-1].conj()
        chirp, filtered = _padded(half), _padded((np.fft.fft(whole) / (c * c)).reshape(c, c))
    b, a = cut
    first, second = tuple(_factors(b) or ()), tuple(_factors(a) or ())
    if a > 1:
        middle = _padded(_turns(np.outer(np.arange(b), np.arange(a)), a * b))
    roots = [np.zeros(0), *_passes(b, first), *_passes(a, second)]
    fold = _padded(_turns(np.arange(n + 1), size)) if pairs else None
    return Tables(
        size, op, float(scale), n, b, a, first, second, np.concatenate(roots).astype(np.float32), middle, chirp, filtered, fold
    )
