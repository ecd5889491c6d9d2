"""A folder, or a GGUF file, by what is at a path."""

from __future__ import annotations

import os
from typing import Any

from .._arguments import as_path
from ..model.model import Model
from ._folder import Folder

__all__ = ["open_folder"]


def open_folder(path: Any, what: str, model: Model | None, below: str = "") -> Folder:
    """A folder, or a GGUF file that has what is in one."""
    if os.path.isfile(as_path(what, path)):
        from ._gguf import File

        return File(path, what, model)
    return Folder(path, what, model, below)
