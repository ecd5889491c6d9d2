"""A folder, or a GGUF file, by what is at a path."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from .._arguments import as_path
from ..model.model import Model
from ._folder import Folder

__all__ = ["open_folder"]


def open_folder(path: Any, what: str, model: Model | None, below: str = "", options: Mapping[str, Any] | None = None) -> Folder:
    """A folder, or a GGUF file that has what is in one. Arguments as for `Folder`."""
    if os.path.isfile(as_path(what, path)):
        from ._gguf import File

        return File(path, what, model, options)
    return Folder(path, what, model, below, options)
