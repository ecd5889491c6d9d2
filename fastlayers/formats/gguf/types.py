"""The types of GGUF's tensors: how many bytes a block of elements has, and what its numbers, scales and minima are."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..._tuples import NamedTuple
from ...errors import FormatError
from .._arrays import Array, Codec, codec, count_bytes, widen_bfloat16

__all__ = ["KINDS", "REFUSED", "Apart", "Kind"]

# Of blocks (n, bytes): numbers (n, groups, elements) in uint8, a scale a group (n, groups), and what is added to each product
# (or, in Q4_K and Q5_K, subtracted from it), or None.
Apart = tuple[Array, Array, Array | None]


class Kind(NamedTuple):
    """A type. Plain ones have a `codec`; of the others an element is ``scale * (number - origin)``, and a minimum."""

    name: str
    codec: Codec | None = None
    terms: int = 1  # elements of a block, along the last axis
    size: int = 0  # its bytes
    group: int = 32  # elements with a scale in common
    bits: int = 8  # that hold every number
    origin: int = 0
    apart: Callable[[Array], Apart] | None = None
    minimum: bool = False
    minus: bool = False  # what is added is subtracted

    def bytes_of(self, shape: tuple[int, ...], where: str) -> int:
        """The bytes of a tensor. Raises if its rows are no whole blocks, or if it is beyond any memory."""
        size = count_bytes(shape, self.codec or _FLOAT, where)
        if self.codec:
            return size
        if not shape or shape[-1] % self.terms:
            raise FormatError(f"{where}: {self.name} of shape {list(shape)} has rows that are no multiple of {self.terms}")
        return math.prod(shape) // self.terms * self.size


_FLOAT = codec("<f4")


def _half(raw: Array) -> Array:
    return np.asarray(raw.view("<f2"), np.float32)


def _parts(raw: Array, of: int, bits: int = 4) -> Array:
    """Bytes in runs of `of`: the lowest bits of a run, then the next ones, and so on."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)[:, None]
    found: Array = raw.reshape(len(raw), -1, 1, of) >> shifts & np.uint8((1 << bits) - 1)
    return found


def _fifth(low: Array, high: Array) -> Array:
    """Numbers of 4 bits with a fifth one each, the lowest bit of a byte first."""
    found: Array = low | np.unpackbits(high, axis=1, bitorder="little").reshape(low.shape) << np.uint8(4)
    return found


def _q4_0(raw: Array) -> Apart:
    return _parts(raw[:, 2:], 16).reshape(-1, 1, 32), _half(raw[:, :2]), None


def _q4_1(raw: Array) -> Apart:
    return _parts(raw[:, 4:], 16).reshape(-1, 1, 32), _half(raw[:, :2]), _half(raw[:, 2:4])


def _q5_0(raw: Array) -> Apart:
    return _fifth(_parts(raw[:, 6:], 16).reshape(-1, 1, 32), raw[:, 2:6]), _half(raw[:, :2]), None


def _q5_1(raw: Array) -> Apart:
    return _fifth(_parts(raw[:, 8:], 16).reshape(-1, 1, 32), raw[:, 4:8]), _half(raw[:, :2]), _half(raw[:, 2:4])


def _q8_0(raw: Array) -> Apart:
    return (raw[:, 2:] ^ np.uint8(128)).reshape(-1, 1, 32), _half(raw[:, :2]), None


def _scales(raw: Array) -> tuple[Array, Array]:
    """Scales and minima (n, 8) of blocks of Q4_K or Q5_K: a half times 6 bits each, of which two of the later four are apart."""
    scale, low, rest = raw[:, 4:8], raw[:, 8:12], raw[:, 12:16]
    scale = np.concatenate([scale & 63, rest & 15 | scale >> 2 & 48], axis=1)
    low = np.concatenate([low & 63, rest >> 4 | low >> 2 & 48], axis=1)
    return _half(raw[:, :2]) * scale.astype(np.float32), _half(raw[:, 2:4]) * low.astype(np.float32)


def _q4_k(raw: Array) -> Apart:
    return _parts(raw[:, 16:], 32).reshape(-1, 8, 32), *_scales(raw)


def _q5_k(raw: Array) -> Apart:
    low, high = _parts(raw[:, 48:], 32).reshape(-1, 8, 32), _parts(raw[:, 16:48], 32, 1).reshape(-1, 8, 32)
    return low | high << np.uint8(4), *_scales(raw)


def _q6_k(raw: Array) -> Apart:
    low, high = _parts(raw[:, :128], 64).reshape(-1, 16, 16), _parts(raw[:, 128:192], 32, 2).reshape(-1, 16, 16)
    scale = _half(raw[:, 208:]) * raw[:, 192:208].view(np.int8).astype(np.float32)
    return low | high << np.uint8(4), scale, None


KINDS: dict[int, Kind] = {
    0: Kind("F32", codec("<f4")),
    1: Kind("F16", codec("<f2")),
    30: Kind("BF16", codec("<u2", widen_bfloat16)),
    2: Kind("Q4_0", None, 32, 18, 32, 4, 8, _q4_0),
    3: Kind("Q4_1", None, 32, 20, 32, 4, 0, _q4_1, True),
    6: Kind("Q5_0", None, 32, 22, 32, 8, 16, _q5_0),
    7: Kind("Q5_1", None, 32, 24, 32, 8, 0, _q5_1, True),
    8: Kind("Q8_0", None, 32, 34, 32, 8, 128, _q8_0),
    12: Kind("Q4_K", None, 256, 144, 32, 4, 0, _q4_k, True, True),
    13: Kind("Q5_K", None, 256, 176, 32, 8, 0, _q5_k, True, True),
    14: Kind("Q6_K", None, 256, 210, 16, 8, 32, _q6_k),
    28: Kind("F64", codec("<f8")),
    24: Kind("I8", codec("i1")),
    25: Kind("I16", codec("<i2")),
    26: Kind("I32", codec("<i4")),
    27: Kind("I64", codec("<i8")),
}  # fmt: skip
REFUSED: dict[int, str] = {
    9: "Q8_1", 10: "Q2_K", 11: "Q3_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL",
    21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4", 40: "NVFP4",
}  # fmt: skip
