"""Calls of layers and functions, drawn at random: what the tables of this folder are written with."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import fastlayers as fl

__all__ = ["Call", "Draw", "Given", "Rule", "Table"]

# Sizes of axes, the small ones most often; around the widths of vectors and tiles.
SIZES = (1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 24, 33, 40, 65)
DTYPES = (np.float64, np.float64, np.float16, np.float16, np.int64, np.int32, np.int8, np.uint8)


class Given(NamedTuple):
    """An array as fastlayers gets it, and whether torch is to get it as floats."""

    value: Any
    floats: bool = True


class Call(NamedTuple):
    """A call: its name, the arguments of the constructor (None: a function), and those of the call."""

    kind: str
    made: tuple[list[Any], dict[str, Any]] | None
    given: tuple[list[Any], dict[str, Any]]
    seed: int

    def told(self) -> str:
        """One line."""
        made = "" if self.made is None else f"({_told(*self.made)})"
        return f"{self.kind}{made}({_told(*self.given)})"


def _told(values: Sequence[Any], named: dict[str, Any]) -> str:
    return ", ".join([*map(_short, values), *(f"{name}={_short(value)}" for name, value in named.items())])


def _short(value: Any) -> str:
    if isinstance(value, Given):
        x = value.value
        if not isinstance(x, np.ndarray):
            return f"list {np.shape(x)}"
        if x.dtype.kind in "iub" and x.size < 9:
            return str(x.tolist())
        odd = "".join(f" {word}" for word, of in (("NaN", np.isnan), ("inf", np.isinf)) if x.dtype.kind == "f" and of(x).any())
        return f"{x.dtype}{x.shape}{'' if x.flags.c_contiguous else f' strides {x.strides}'}{odd}"
    return f"({', '.join(map(_short, value))})" if isinstance(value, tuple) else repr(value)


class Draw:
    """What is drawn for one call; all of its arrays are of one kind."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = np.random.default_rng(seed)
        self.values = self.some(*["normal"] * 13, "odd", "odd", "huge", "tiny", "zeros", "equal", "offset")
        self.dtype: Any = self.some(*[np.float32] * 12, *DTYPES)
        self.order = self.some(*["C"] * 9, "F", "strided", "reversed", "read-only", "list", "turned")

        self.empty = 0.3 if self.chance(0.06) else 0.01

    # ---- numbers ----

    def some(self, *values: Any) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def int(self, low: int, high: int) -> int:
        """From low to high, both included."""
        return int(self.rng.integers(low, high + 1))

    def size(self, most: int = 65, least: int = 0) -> int:
        return 0 if not least and self.chance(self.empty) else self.some(*[s for s in SIZES if s <= most])

    def each(self, n: int, make: Callable[[], Any]) -> Any:
        """One value, or one per axis."""
        return make() if self.chance(0.5) else tuple(make() for _ in range(n))

    def space(self, n: int) -> tuple[int, ...]:
        """Spatial sizes."""
        return tuple(self.size((65, 24, 9)[n - 1]) for _ in range(n))

    def divisor(self, of: int) -> int:
        return int(self.some(*[g for g in range(1, of + 1) if of % g == 0])) if of else 1

    def axis(self, n: int) -> int:
        """Of n axes, counted from either end; rarely one that is not there."""
        return self.int(-n - 1, n) if self.chance(0.03) else self.int(-n, max(n - 1, 0))

    # ---- arrays ----

    def array(self, *shape: int, positive: bool = False) -> Given:
        """Of floats, or of what counts as such."""
        rng, dtype = self.rng, np.dtype(self.dtype)
        if dtype.kind in "iu":
            x = rng.integers(0 if dtype.kind == "u" or positive else -5, 6, shape).astype(dtype)
        else:
            x = rng.standard_normal(shape)
            if self.values == "huge":
                x = x * (1e3 if dtype.itemsize == 2 else self.some(1e8, 1e18, 1e33))
            elif self.values == "tiny":
                x = x * (1e-7 if dtype.itemsize == 2 else self.some(1e-10, 1e-22, 1e-38, 1e-42))
            elif self.values == "zeros":
                x = x * (rng.random(shape) < 0.3) * rng.choice([-1.0, 1.0], shape)
            elif self.values == "equal":
                x = np.round(x)
            elif self.values == "offset":
                x = x + self.some(3.0, -10.0, 100.0)
            with np.errstate(over="ignore"):
                x = np.asarray(abs(x) if positive else x, dtype)
            if self.values == "odd" and not positive:
                x[rng.random(shape) < self.some(0.01, 0.1)] = self.some(np.nan, np.inf, -np.inf)
        return Given(self.placed(x))

    def weights(self, *shape: int) -> Given:
        """An array as networks have them: finite, and of no odd size."""
        x = self.rng.standard_normal(shape) / np.sqrt(max(1, int(np.prod(shape[1:]))))
        return Given(self.placed(x.astype(np.float32)))

    def placed(self, x: np.ndarray) -> Any:
        """The same values, in another order of memory."""
        if self.order == "F":
            return np.asfortranarray(x)
        if self.order == "strided":
            wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype) if x.ndim else np.zeros(2, x.dtype)
            wide[..., ::2] = x
            return wide[..., ::2] if x.ndim else x
        if self.order == "reversed" and x.ndim:
            return np.ascontiguousarray(x[..., ::-1])[..., ::-1]
        if self.order == "turned" and x.ndim > 1:
            return np.ascontiguousarray(np.swapaxes(x, 0, 1)).swapaxes(0, 1)
        if self.order == "read-only":
            x.flags.writeable = False
        if self.order == "list" and 0 < x.size < 200 and x.ndim:
            return x.tolist()
        return x

    def ids(self, shape: tuple[int, ...], below: int, wrong: float = 0.03) -> Given:
        x = self.rng.integers(0, max(below, 1), shape).astype(self.some(np.int64, np.int64, np.int32))
        if x.size and self.chance(wrong):
            x.reshape(-1)[0] = self.some(-1, below, 1 << 30)
        return Given(self.placed(x), False)

    def mask(self, *shape: int, share: float = 0.3, floats: bool = True) -> Given:
        """Booleans, or values that are added; some rows say one thing alone."""
        hidden = self.rng.random(shape) < share
        if hidden.size and self.chance(0.2):
            hidden.reshape(-1, shape[-1])[self.int(0, hidden.size // shape[-1] - 1)] = self.chance(0.5)
        if not floats or self.chance(0.5):
            return Given(self.placed(hidden), False)
        return Given(self.placed(np.where(hidden, -np.inf, self.rng.standard_normal(shape)).astype(np.float32)))

    # ---- calls ----

    def split(self, function: Any, given: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Some arguments by position, the others by name and in any order. Those of names that begin with _ are by position."""
        names, first = list(inspect.signature(function).parameters), [v for k, v in given.items() if k.startswith("_")]
        rest = {k: v for k, v in given.items() if not k.startswith("_")}
        lead = 0
        for name in names[len(first) :]:
            if name not in rest:
                break
            lead += 1
        lead = self.some(0, lead, self.int(0, lead))
        by_place = [rest.pop(name) for name in names[len(first) : len(first) + lead]]
        order = list(rest)
        self.rng.shuffle(order)
        return [*first, *by_place], {name: rest[name] for name in order}

    def layer(self, kind: str, made: dict[str, Any], *given: Any, **named: Any) -> Call:
        return Call(kind, self.split(getattr(fl, kind), made), (list(given), named), self.seed)

    def function(self, kind: str, *given: Any, **named: Any) -> Call:
        """`given` by position; of `named` some are."""
        call = {f"_{i}": value for i, value in enumerate(given)} | named
        return Call(kind, None, self.split(getattr(fl.functional, kind), call), self.seed)

    def few(self, share: float = 0.5, /, **named: Any) -> dict[str, Any]:
        """Some of the arguments: the others have their defaults."""
        return {name: value for name, value in named.items() if self.chance(share)}


Rule = Callable[[Draw, str], Call]
Table = dict[str, Rule]
