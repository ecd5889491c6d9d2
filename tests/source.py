"""The package's source, read and parsed once for all the rules about it."""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path

__all__ = ["text_of", "tree_of"]


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def tree_of(path: Path) -> ast.Module:
    tree = ast.parse(text_of(path))
    gc.freeze()  # millions of objects that stay: every later collection would look at them
    return tree
