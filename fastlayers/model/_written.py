"""Files that a model is written to: our own, and ONNX."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._arguments import as_flag, as_path
from ..errors import ArgumentError

if TYPE_CHECKING:
    import os

    from .model import Model

__all__ = ["export", "save", "write"]


def save(model: Model, path: str | os.PathLike[str], packed: bool) -> None:
    """See `Model.save`."""
    from ..formats.endings import named_for_another

    path = as_path("save", path)
    if wrong := named_for_another(path):
        raise ArgumentError(f"save: {wrong}")
    write(model, path, packed)


def write(model: Model, path: str | os.PathLike[str], packed: bool) -> None:
    """Writes our file under any name."""
    from ..formats.own import save as written
    from ..passes.half import as_stored
    from ._packed import packed_arrays

    stored = packed_arrays(model) if as_flag("save", "packed", packed) else {}
    options = {**model._options._asdict(), "optimize": False}
    del options["variant"]  # a file is for any machine
    written(as_stored(model._main.whole_graph()), options, model.metadata, path, stored)


def export(model: Model, path: str | os.PathLike[str]) -> None:
    """See `Model.export`."""
    from ..formats.onnx.write import save as written
    from ..passes.spelled import spelled

    path = as_path("export", path)
    if not path.endswith(".onnx"):
        raise ArgumentError(f"export: the path is {path!r:.200}: expected a name that ends in .onnx")
    written(path, spelled(model._graph), model.metadata)
