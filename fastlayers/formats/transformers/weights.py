"""Weights of a checkpoint by name: shapes are checked, and what no part of a network reads is refused by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..._arguments import listed
from ...errors import FormatError
from .._arrays import BFLOAT16, widened
from ..budget import Budget
from ..source import quote

__all__ = ["Weights"]

# What checkpoints carry that no network reads: tables that follow from the configuration.
_TABLES = re.compile(
    r"(.*\.)?(position_ids|token_type_ids|rotary_emb\.\w*inv_freq|attn\.bias|attn\.masked_bias|attention\.(masked_)?bias)"
)
_OLD = {"weight": "gamma", "bias": "beta"}


class Weights:
    """Arrays by name, each float32 when it is taken.

    Args:
        arrays: by the names of the checkpoint; the values of packed ones need a `shape` alone.
        where: begins the errors.
        budget: pays for what is widened.
    """

    def __init__(self, arrays: Mapping[str, Any], where: str, budget: Budget) -> None:
        self.arrays, self.where, self.budget = arrays, where, budget
        self.prefix = ""
        self.read: set[str] = set()
        self._wide: dict[str, Any] = {}

    def begin(self, prefixes: tuple[str, ...]) -> None:
        """Names of the network itself begin with one of these where a checkpoint of a network with a head has them."""
        self.prefix = next((p for p in prefixes if any(name.startswith(p) for name in self.arrays)), "")

    def full(self, name: str) -> str:
        """The name in the file; LayerNorm's parameters were called gamma and beta."""
        stem, _, last = name.rpartition(".")
        if name not in self.arrays and last in _OLD and f"{stem}.{_OLD[last]}" in self.arrays:
            return f"{stem}.{_OLD[last]}"
        return name

    def __contains__(self, name: str) -> bool:
        return self.full(name) in self.arrays

    def raw(self, name: str, *shape: int | None) -> Any:
        """An array as the file has it. Raises FormatError if there is none, or of another shape (None: any size)."""
        full = self.full(name)
        if full not in self.arrays:
            raise FormatError(f"{self.where}: has no weight {quote(name)}: expected one of shape {_shown(shape)}")
        found = self.arrays[full]
        if len(found.shape) != len(shape) or any(b is not None and a != b for a, b in zip(found.shape, shape, strict=True)):
            raise FormatError(f"{self.where}: weight {quote(full)} has shape {tuple(found.shape)}: expected {_shown(shape)}")
        self.read.add(full)
        return found

    def take(self, name: str, *shape: int | None) -> np.ndarray:
        """A float32 array; each is widened once."""
        found = self.raw(name, *shape)
        if found.dtype == np.float32:
            return np.asarray(found)
        full = self.full(name)
        if full not in self._wide:
            if found.dtype.kind != "f" and found.dtype != BFLOAT16:
                raise FormatError(f"{self.where}: weight {quote(full)} has dtype {found.dtype}: expected floats")
            self._wide[full] = widened(found, self.budget, f"{self.where}: weight {quote(full)}")
        return np.asarray(self._wide[full])

    def matrix(self, name: str, *shape: int | None) -> np.ndarray:
        """A matrix for `Network.product`: one of 16 bits stays so where that is wanted."""
        found = self.raw(name, *shape)
        stays = self.budget.narrow and found.dtype in (np.float16, BFLOAT16)
        return np.asarray(found) if stays else self.take(name, *shape)

    def check(self, unused: str = "") -> None:
        """Raises FormatError if there are weights that nothing has read; `unused`, a pattern, are those of other heads."""
        left = [name for name in self.arrays if name not in self.read and not _TABLES.fullmatch(name)]
        left = [name for name in left if not (unused and re.fullmatch(unused, name))]
        if left:
            told = listed(list(map(quote, left)), 5)
            raise FormatError(f"{self.where}: has weights that its network does not know: {told}")


def _shown(shape: tuple[int | None, ...]) -> str:
    return f"({', '.join('any' if n is None else str(n) for n in shape)}{',' if len(shape) == 1 else ''})"
