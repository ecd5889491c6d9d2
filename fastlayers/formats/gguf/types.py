"""The types of GGUF's tensors, by their numbers: plain elements, and blocks of few bits."""

from __future__ import annotations

import math

from ..._ggml import BLOCKS, Blocks
from ..._tuples import NamedTuple
from ...errors import FormatError
from .._arrays import Codec, codec, count_bytes, widen_bfloat16

__all__ = ["KINDS", "REFUSED", "Kind"]

_FLOAT = codec("<f4")


class Kind(NamedTuple):
    """A type: plain ones have a codec, the others blocks."""

    name: str
    codec: Codec | None = None
    blocks: Blocks | None = None

    def bytes_of(self, shape: tuple[int, ...], where: str) -> int:
        """The bytes of a tensor. Raises if its rows are no whole blocks, or if it is beyond any memory."""
        size = count_bytes(shape, self.codec or _FLOAT, where)
        if self.blocks is None:
            return size
        if not shape or shape[-1] % self.blocks.terms:
            raise FormatError(f"{where}: {self.name} of shape {list(shape)} has rows that are no multiple of {self.blocks.terms}")
        return math.prod(shape) // self.blocks.terms * self.blocks.size


KINDS: dict[int, Kind] = {
    0: Kind("F32", codec("<f4")),
    1: Kind("F16", codec("<f2")),
    30: Kind("BF16", codec("<u2", widen_bfloat16)),
    **{number: Kind(name, None, BLOCKS[name]) for number, name in (
        (2, "Q4_0"), (3, "Q4_1"), (6, "Q5_0"), (7, "Q5_1"), (8, "Q8_0"), (12, "Q4_K"), (13, "Q5_K"), (14, "Q6_K"),
    )},
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
