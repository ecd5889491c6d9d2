"""A model in several GGUF files: `NAME-00001-of-0000N.gguf` has the metadata, the others are next to it, with tensors alone."""

from __future__ import annotations

import os
import re

from ...errors import FormatError, UnsupportedError
from ..budget import Budget
from ..source import Source, beside, open_source, quote
from .parse import File, parse

__all__ = ["whole"]


def whole(source: Source, budget: Budget) -> File:
    """A file's description; of the first of several files, with the tensors of all."""
    file = parse(source, budget)
    count, where = file.metadata.get("split.count", 1), file.where
    if count in (0, 1):
        return file
    if type(count) is not int or not 1 < count < 1 << 16:
        raise FormatError(f"{where}: split.count is {quote(count)}: expected a number of files")
    if source.path is None:
        raise UnsupportedError(f"{where}: is one of {count} files: pass the path of the first, next to which the others are")
    own = os.path.basename(os.fsdecode(source.path))
    name = re.fullmatch(rf"(.*)-(\d{{5}})-of-{count:05}\.gguf", own, re.DOTALL)
    number = file.metadata.get("split.no")
    if name is None or number != int(name[2]) - 1:
        raise FormatError(f"{where}: split.no is {quote(number)} and split.count {count}: another file is called {quote(own)}")
    if number:
        raise FormatError(f"{where}: is file {number + 1} of {count}: expected {quote(f'{name[1]}-00001-of-{count:05}.gguf')}")
    tensors = dict(file.tensors)
    for i in range(1, count):
        other = f"{name[1]}-{i + 1:05}-of-{count:05}.gguf"
        try:
            path = beside(source.path, other, where)
            part = parse(open_source(path, caller=where.partition(":")[0], mapped=source.mapped, budget=budget), budget)
        except FileNotFoundError:
            raise FormatError(f"{where}: {quote(other)} is not there, next to it") from None
        mine = tuple(part.metadata.get(f"split.{key}") for key in ("no", "count"))
        if mine != (i, count):
            raise FormatError(f"{part.where}: split.no and split.count are {quote(mine)}: expected {(i, count)}, as it is called")
        if twice := tensors.keys() & part.tensors.keys():
            raise FormatError(f"{part.where}: has tensors that a file before it has: {quote(min(twice))}")
        tensors.update(part.tensors)
    if (said := file.metadata.get("split.tensors.count")) != len(tensors):
        raise FormatError(f"{where}: split.tensors.count is {quote(said)}: the {count} files have {len(tensors)} tensors")
    return file._replace(tensors=tensors)
