"""Calls of every public function: tensors in the order of its operation (None: left out), and attributes.

One file a family, with a list ``EXAMPLES``; a new file is found by itself.
"""

from __future__ import annotations

import importlib
import pkgutil

from ._base import Example

__all__ = ["EXAMPLES", "Example"]

EXAMPLES: list[Example] = [
    example
    for module in pkgutil.iter_modules(__path__)
    if not module.name.startswith("_")
    for example in importlib.import_module(f"{__name__}.{module.name}").EXAMPLES
]
