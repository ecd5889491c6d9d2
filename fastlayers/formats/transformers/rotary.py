"""Rotary embeddings: frequencies as configurations scale them, and the cosines and sines of positions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...errors import FormatError, UnsupportedError
from ..source import quote
from .build import FLOAT32, Network
from .config import Config

__all__ = ["Rotary", "parameters"]


def parameters(c: Config, theta: float = 10000.0, layer_type: str = "", partial: float = 1.0) -> dict[str, Any]:
    """Words about rotary embeddings as transformers 5 has them: of `rope_parameters`, or of `rope_scaling` and
    the words next to it in older files.
    """
    given = c.value("rope_parameters")
    old = c.value("rope_scaling")
    found = given if given is not None else old
    found = {} if found is None else found
    if not isinstance(found, Mapping):
        c.wrong("rope_parameters" if given is not None else "rope_scaling", found, "an object")
    if layer_type and isinstance(found.get(layer_type), Mapping):
        found = found[layer_type]
    made = dict(found)
    made.setdefault("rope_theta", c.number("rope_theta", theta))
    made["rope_type"] = made.pop("type", None) if made.get("rope_type") is None else made["rope_type"]
    made["rope_type"] = made["rope_type"] or "default"
    partial = c.number("partial_rotary_factor", partial)
    if made.get("partial_rotary_factor") is None:
        made["partial_rotary_factor"] = partial
    original = c.whole("original_max_position_embeddings")
    if original is not None:
        made["original_max_position_embeddings"] = original
    made["max_position_embeddings"] = c.size("max_position_embeddings", 1 << 20)
    return made


MOST_WIDTH = 1 << 14  # of a head, before weights confirm it
# Words of each kind of scaling besides these.
_COMMON = frozenset(("rope_type", "type", "rope_theta", "partial_rotary_factor", "max_position_embeddings"))
_ORIGINAL = "original_max_position_embeddings"
_KINDS: dict[str, frozenset[str]] = {
    "default": frozenset((_ORIGINAL, "factor")),
    "linear": frozenset(("factor", _ORIGINAL)),
    "dynamic": frozenset(("factor", _ORIGINAL)),
    "ntk": frozenset(("factor", _ORIGINAL)),
    "llama3": frozenset(("factor", "low_freq_factor", "high_freq_factor", _ORIGINAL)),
    "yarn": frozenset(
        ("factor", "attention_factor", "mscale", "mscale_all_dim", _ORIGINAL, "beta_fast", "beta_slow", "truncate")
    ),
    "longrope": frozenset(("factor", "attention_factor", "long_factor", "short_factor", _ORIGINAL)),
}


class Rotary:
    """Cosines and sines of a network's positions, written once for all layers.

    Args:
        n: the network.
        width: of a head.
        words: what `parameters` found.
        positions: (b, t) of int64, or (t,).
    """

    def __init__(self, n: Network, width: int, words: Mapping[str, Any], positions: str) -> None:
        self.n, self.words = n, words
        kind = words["rope_type"]
        if kind == "su":
            kind = "longrope"
        if not isinstance(kind, str) or kind not in _KINDS:
            raise UnsupportedError(f"{n.config.where}: rope_type is {quote(kind)}: supported are {', '.join(_KINDS)}")
        extra = [w for w, v in words.items() if w not in _COMMON and w not in _KINDS[kind] and v is not None]
        if extra:
            raise UnsupportedError(
                f"{n.config.where}: rope_parameters of type {kind} say {', '.join(map(quote, extra))}: not known"
            )
        self.turned = int(width * self._number("partial_rotary_factor"))
        if not 2 <= self.turned <= width <= MOST_WIDTH or self.turned % 2:
            raise FormatError(
                f"{n.config.where}: {self.turned} of {width} values of a head are rotated: expected an even number, "
                f"at most {MOST_WIDTH}"
            )
        try:
            with np.errstate(all="ignore"):
                frequencies, factor = getattr(self, f"_{kind}")(positions)
            right = isinstance(frequencies, str) or bool(np.all(np.isfinite(frequencies)))
        except ArithmeticError:
            right = False
        if not right:
            raise FormatError(f"{n.config.where}: rope_parameters {quote(dict(words))} give no frequencies")
        n.scope = "rotary/"
        rank = len(n.e.shape(positions) or ())
        places = n.op("Unsqueeze", n.cast(positions, FLOAT32), n.ints(rank))
        angles = n.op("Mul", places, frequencies if isinstance(frequencies, str) else n.constant(frequencies, "frequencies"))
        self.cos, self.sin = (n.op(op, angles) for op in ("Cos", "Sin"))
        if factor != 1:
            self.cos, self.sin = (n.mul(x, factor) for x in (self.cos, self.sin))

    def __call__(self, x: str, heads: int) -> str:
        """x (b, t, heads d) with the pairs of each head rotated."""
        return self.n.op(
            "RotaryEmbedding", x, self.cos, self.sin, num_heads=heads, rotary_embedding_dim=self.turned, interleaved=0
        )

    def _number(self, word: str, default: float | None = None) -> float:
        found: Any = self.words.get(word)
        found = default if found is None else found
        if type(found) not in (int, float) or not 0 < found < 1e30:
            raise FormatError(f"{self.n.config.where}: {word} of rope_parameters is {quote(found)}: expected a positive number")
        return float(found)

    def _powers(self, base: float | None = None) -> np.ndarray:
        """base ** (2 i / d), in float32 as networks were trained with them."""
        exponents = np.arange(0, self.turned, 2).astype(np.float32) / np.float32(self.turned)
        return np.asarray(np.power(np.float32(self._number("rope_theta") if base is None else base), exponents))

    def _default(self, positions: str) -> tuple[Any, float]:
        return np.float32(1) / self._powers(), 1.0

    def _linear(self, positions: str) -> tuple[Any, float]:
        return np.float32(1) / self._powers() / np.float32(self._number("factor")), 1.0

    def _ntk(self, positions: str) -> tuple[Any, float]:
        """A base that is larger, of all positions, as GTE's own code has it."""
        factor = self._number("factor")
        powers = self._powers(self._number("rope_theta") * factor)
        return np.float32(1) / powers / np.float32(factor ** (2 / self.turned)), 1.0

    def _llama3(self, positions: str) -> tuple[Any, float]:
        plain = np.float32(1) / self._powers()
        factor, low, high = (self._number(w) for w in ("factor", "low_freq_factor", "high_freq_factor"))
        length = self._number(_ORIGINAL, self.words["max_position_embeddings"])
        wave = 2 * math.pi / plain
        smooth = (length / wave - low) / (high - low)
        scaled = np.where(wave > length / low, plain / factor, plain)
        between = ~(wave < length / high) & ~(wave > length / low)
        return np.where(between, (1 - smooth) * scaled / factor + smooth * scaled, scaled).astype(np.float32), 1.0

    def _yarn(self, positions: str) -> tuple[Any, float]:
        theta, d = self._number("rope_theta"), self.turned
        length = self._number(_ORIGINAL, self.words["max_position_embeddings"])
        factor = self._number("factor", self.words["max_position_embeddings"] / length)

        def scale(by: float = 1.0) -> float:
            return 1.0 if factor <= 1 else 0.1 * by * math.log(factor) + 1.0

        both = self.words.get("mscale") and self.words.get("mscale_all_dim")
        default = scale(self._number("mscale")) / scale(self._number("mscale_all_dim")) if both else scale()
        ends = [
            d * math.log(length / (self._number(w, v) * 2 * math.pi)) / (2 * math.log(theta))
            for w, v in (("beta_fast", 32), ("beta_slow", 1))
        ]
        if self.words.get("truncate", True):
            ends = [math.floor(ends[0]), math.ceil(ends[1])]
        low, high = max(ends[0], 0), min(ends[1], d - 1)
        high += 0.001 if low == high else 0
        ramp = np.clip((np.arange(d // 2, dtype=np.float32) - np.float32(low)) / np.float32(high - low), 0, 1)
        powers = self._powers()
        far = np.float32(1) / (np.float32(factor) * powers)
        return (far * ramp + (np.float32(1) / powers) * (1 - ramp)).astype(np.float32), self._number("attention_factor", default)

    def _dynamic(self, positions: str) -> tuple[Any, float]:
        """The base grows with the length of a sequence, beyond that of training."""
        n, d = self.n, self.turned
        length, factor, theta = (float(self.words["max_position_embeddings"]), self._number("factor"), self._number("rope_theta"))
        if d < 4:
            raise UnsupportedError(f"{n.config.where}: dynamic scaling of {d} rotated values")
        longest = n.op("Max", n.cast(self._longest(positions), FLOAT32), n.number(length))
        base = n.op("Sub", n.mul(longest, factor / length), n.number(factor - 1))
        # theta ** -x times base ** (-x d / (d - 2)), as a product of exponentials.
        exponents = np.arange(0, d, 2).astype(np.float32) / np.float32(d)
        grown = n.op("Exp", n.op("Mul", n.op("Log", base), n.constant((-exponents * d / (d - 2)).astype(np.float32), "growth")))
        return n.op("Mul", grown, n.constant(np.float32(1) / self._powers(theta), "frequencies")), 1.0

    def _longrope(self, positions: str) -> tuple[Any, float]:
        """One of two lists of factors, chosen by the length of a sequence."""
        n = self.n
        length = self._number(_ORIGINAL, self.words["max_position_embeddings"])
        factor = self._number("factor", self.words["max_position_embeddings"] / length)
        lists = []
        for word in ("short_factor", "long_factor"):
            given = self.words.get(word)
            fits = isinstance(given, list) and len(given) == self.turned // 2
            if not fits or not all(type(f) in (int, float) and 0 < f < 1e30 for f in given):  # type: ignore[union-attr]
                raise FormatError(f"{n.config.where}: {word} is {quote(given)}: expected {self.turned // 2} positive numbers")
            lists.append(np.float32(1) / (np.array(given, np.float32) * self._powers()))
        far = n.op("Greater", self._longest(positions), n.constant(np.int64(length)))
        default = 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(length))
        chosen = n.op("Where", far, n.constant(lists[1], "frequencies.long"), n.constant(lists[0], "frequencies.short"))
        return chosen, self._number("attention_factor", default)

    def _longest(self, positions: str) -> str:
        """The largest position of each row and 1, (b, 1, 1): a row has its own, whatever is next to it."""
        n, rank = self.n, len(self.n.e.shape(positions) or ())
        longest = n.add(n.op("ReduceMax", positions, n.ints(-1), keepdims=1), n.constant(np.int64(1)))
        return n.op("Unsqueeze", longest, n.ints(rank))
