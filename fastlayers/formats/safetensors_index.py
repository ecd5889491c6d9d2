"""Reading shards of safetensors or torch: the index (``model.safetensors.index.json``) says for every tensor in which file it is.

A file's name must be a plain one, so that it is next to the index; what the index and the files say must agree exactly.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from typing import Any

from ..errors import FormatError, UnsupportedError
from . import safetensors
from ._arrays import Array
from .budget import Budget
from .source import Source, beside, open_source, quote

NAME = "safetensors index"
LOOKS = 'JSON with "weight_map"'

MAX_INDEX = 100_000_000  # bytes; as long as a header of the format may be
_BEGINNING = 1 << 16  # where the key must be: what stands before it is short
_PARSE_FACTOR = 48  # bytes of memory for a byte of JSON; see `safetensors`


def sniff(source: Source) -> bool:
    """A JSON object that has the key near its beginning."""
    first = bytes(source.view[:_BEGINNING])
    return first.lstrip()[:1] == b"{" and b'"weight_map"' in first


def load_weights(source: Source, budget: Budget) -> dict[str, Array]:
    """Every tensor of all files, in the order of the index."""
    where, places = source.where, _places(source, budget)
    if source.path is None:
        raise UnsupportedError(f"{where}: is an index of files that are next to it: pass its path, or load each file")
    caller = where.partition(":")[0]
    files: dict[str, dict[str, Array]] = {}
    said: dict[str, set[str]] = {}
    for name, file in places.items():
        said.setdefault(file, set()).add(name)
    for file in said:
        files[file] = _file(beside(source.path, file, where), file, where, caller, source.mapped, budget)
    for file, tensors in files.items():
        listed = said[file]
        if missing := [name for name in listed if name not in tensors]:
            raise FormatError(f"{where}: {quote(file)} lacks {len(missing)} tensors that are said to be in it: {_some(missing)}")
        if extra := [name for name in tensors if name not in listed]:
            raise FormatError(f"{where}: {quote(file)} has {len(extra)} tensors that are not said to be in it: {_some(extra)}")
    return {name: files[file][name] for name, file in places.items()}


def _file(path: str, file: str, where: str, caller: str, mapped: bool, budget: Budget) -> dict[str, Array]:
    try:
        if stat.S_ISDIR(os.stat(path).st_mode):  # what is in it, and what else a name might mean, is for callers' paths alone
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        opened = open_source(path, caller=caller, mapped=mapped, budget=budget)
    except FileNotFoundError:
        raise FormatError(f"{where}: {quote(file)} is not there, next to the index") from None
    except PermissionError:
        raise
    except OSError as error:  # a folder, a name that no file can have
        raise FormatError(f"{where}: {quote(file)} cannot be opened: {error.strerror or error}") from None
    if safetensors.sniff(opened):
        return safetensors.load_weights(opened, budget)
    from . import torch

    if not torch.sniff(opened):
        raise FormatError(f"{opened.where}: is no file of safetensors or of torch, as {where} says")
    return torch.load_weights(opened, budget)


def _some(names: list[str]) -> str:
    return ", ".join(quote(name) for name in sorted(names)[:3]) + (", ..." if len(names) > 3 else "")


def _places(source: Source, budget: Budget) -> dict[str, str]:
    """The name of each tensor's file."""
    where = source.where
    if len(source) > MAX_INDEX:
        raise FormatError(f"{where}: the index has {len(source)} bytes, at most {MAX_INDEX} are allowed")
    budget.check(len(source) * _PARSE_FACTOR, f"{where}: the index of {len(source)} bytes")

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) < len(items):
            seen: set[str] = set()
            twice = next(key for key, _ in items if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            raise FormatError(f"{where}: the index has the key {quote(twice)} more than once")
        return found

    try:
        index = json.loads(bytes(source.view).decode("utf-8"), object_pairs_hook=pairs)
    except FormatError:
        raise
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{where}: the index is not valid JSON: {type(error).__name__}") from None
    places = index.get("weight_map")
    if not isinstance(places, dict) or not places or not all(isinstance(file, str) for file in places.values()):
        raise FormatError(f"{where}: weight_map must map names of tensors to names of files, got {quote(places)}")
    for file in dict.fromkeys(places.values()):
        if not _is_plain(file):
            raise FormatError(f"{where}: the file's name {quote(file)} is no plain one: expected a file next to the index")
    return places


def _is_plain(file: str) -> bool:
    """Whether it names something in a folder itself, on every system."""
    return bool(file) and file not in (".", "..") and file.isprintable() and not any(c in file for c in "/\\:\0")
