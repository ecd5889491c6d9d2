"""Writes what the build makes of the kernel table: enums for C, declarations for Cython, and each kernel's way in from Python.

``setup.py`` calls `write`; after a change of the table or of a header, ``python -m codegen`` shows the result without a build.
All of it is in one folder, ``fastlayers/kernels/aot/made``, which is neither committed nor shipped.
"""

from __future__ import annotations

import importlib
import sys
import types
from pathlib import Path
from typing import Any

from . import codes, headers, pairs

__all__ = ["AOT", "MADE", "table", "write"]

AOT = Path("fastlayers/kernels/aot")
MADE = AOT / "made"
# In the order in which they include each other.
HEADERS = ("fft_types.h", "nbits_types.h", "quantized_table.h", "kernels.h")


def table(root: Path) -> Any:
    """``fastlayers/kernels/table.py`` of the tree at `root`, without the packages around it, which a build has no use for."""
    name = "_fastlayers_built"
    for part, folder in ((name, "fastlayers"), (f"{name}.kernels", "fastlayers/kernels")):
        module = types.ModuleType(part)
        module.__path__ = [str(root / folder)]
        sys.modules[part] = module
    try:
        return importlib.import_module(f"{name}.kernels.table")
    finally:
        for part in [part for part in sys.modules if part.split(".")[0] == name]:
            del sys.modules[part]


def write(root: Path) -> list[Path]:
    """Writes every file that is missing or out of date; others keep their time, so that nothing is compiled again."""
    found = table(root)
    csrc = root / AOT / "csrc"
    sources = {name: (csrc / name).read_text(encoding="utf-8") for name in (*HEADERS, "kernels.def")}
    files = {"codes.h": codes.header(found, "".join(sources.values()))}
    files["level.pxi"] = headers.declarations(
        [files["codes.h"], *(sources[name] for name in HEADERS)], sources["kernels.def"], "csrc/kernels.h"
    )
    for file in sorted({item.file for item in found.KERNELS}):
        driver = (root / AOT / f"{file}.pyx").read_text(encoding="utf-8")
        files[f"{file}.pxi"] = pairs.functions(driver, [item for item in found.KERNELS if item.file == file], found.PLAIN)
    made = root / MADE
    made.mkdir(exist_ok=True)
    written = []
    for name, text in files.items():
        path = made / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            written.append(path)
    for path in set(made.iterdir()) - {made / name for name in files}:
        path.unlink()
    return written
