"""Numba's disk cache for kernels: what one process has compiled, the next one reads."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["identity", "keep"]


@cache
def _stamp() -> str:
    """A digest of all sources of this folder, since kernels call functions of other files, and of the compilers' versions."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    for name in ("numba", "numba_cuda", "llvmlite"):
        with contextlib.suppress(ImportError):
            digest.update(str(getattr(importlib.import_module(name), "__version__", "")).encode())
    return digest.hexdigest()


def identity(value: Any) -> str:
    """Identity of a maker's arguments, by names and values: the same in every process."""
    function = getattr(value, "py_func", value)
    if callable(function) and hasattr(function, "__qualname__"):
        return f"{function.__module__}.{function.__qualname__}"
    return f"({', '.join(map(identity, value))})" if isinstance(value, tuple) else repr(value)


def keep(made: Any, function: Callable[..., Any], key: str) -> None:
    """Gives a dispatcher the cache, if there is any directory for it."""
    with contextlib.suppress(Exception):  # each process compiles it, then
        made._cache = _cache()(function, key)


@cache
def _cache() -> Any:
    from numba.cuda.dispatcher import CUDACache

    class Cache(CUDACache):  # type: ignore[misc, unused-ignore]
        """Cache of compiled code for the very same sources and arguments; a failure of the cache costs time, and nothing else."""

        def __init__(self, function: Callable[..., Any], key: str) -> None:
            super().__init__(function)
            self._key = key
            self._cache_file._source_stamp = _stamp()

        def _index_key(self, sig: Any, codegen: Any) -> Any:
            return str(sig), codegen.magic_tuple(), self._key

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            with contextlib.suppress(Exception):
                return super().load_overload(sig, target_context)
            return None

        def save_overload(self, sig: Any, data: Any) -> None:
            with contextlib.suppress(Exception):
                super().save_overload(sig, data)

    return Cache
