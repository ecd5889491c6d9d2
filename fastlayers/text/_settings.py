"""JSON files of a folder: read with a limit of size, every value that is used checked for its type."""

from __future__ import annotations

import json
import os
from typing import Any

from ..errors import FormatError, LimitError
from ..formats.budget import Budget
from ..formats.source import open_source, quote

__all__ = ["Settings", "file_in", "read_bytes", "read_settings"]

MOST_JSON = 64 << 20  # bytes: a configuration with hundreds of thousands of labels takes 20 MB
_DEEPEST = 32


class Settings:
    """Values of a JSON object, and the words that errors about it begin with."""

    def __init__(self, where: str, values: dict[str, Any]) -> None:
        self.where, self.values = where, values

    def __contains__(self, name: str) -> bool:
        return self.values.get(name) is not None

    def get(self, name: str, kind: type, default: Any = None) -> Any:
        """The value of that type; the default where there is none, or null."""
        value = self.values.get(name)
        if value is None:
            return default
        if kind is float and type(value) is int:
            return float(self.get(name, int))
        if type(value) is not kind or (isinstance(value, int) and abs(value) >= 2**63):
            raise FormatError(f"{self.where}: {name} is {quote(value)}: expected {kind.__name__}")
        return value

    def size(self, name: str) -> int | None:
        """A count of at least 1, None if there is none or it means that there is no limit."""
        value = self.values.get(name)
        if isinstance(value, (int, float)) and value >= 2**31:  # transformers writes 10**30 for no limit
            return None
        found: int | None = self.get(name, int)
        if found is not None and found < 1:
            raise FormatError(f"{self.where}: {name} is {found}: expected at least 1")
        return found

    def texts(self, name: str) -> dict[str, str]:
        """A mapping of names to texts."""
        found: dict[str, str] = self.get(name, dict, {})
        for value in found.values():
            if type(value) is not str:
                raise FormatError(f"{self.where}: {name} has the value {quote(value)}: expected texts by name")
        return found

    def below(self, name: str) -> Settings:
        """An object within."""
        return Settings(f"{self.where}: {name}", self.get(name, dict, {}))


def file_in(folder: str, name: str) -> str | None:
    """The path of a file, if it is there."""
    path = os.path.join(folder, name)
    return path if os.path.lexists(path) else None


def read_bytes(path: str, what: str, most: int = MOST_JSON) -> bytes:
    """The content of a regular file of at most that many bytes."""
    # Asked before it is read; what grows meanwhile is cut off by the budget.
    size = os.stat(path).st_size
    if size > most:
        raise LimitError(f"{what}: {path}: has {size} bytes: at most {most} are read")
    return bytes(open_source(path, caller=what, mapped=False, budget=Budget(most, what)).view)


def parsed(content: bytes, where: str) -> Any:
    """JSON as Python's values."""
    try:
        found = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{where}: is not valid JSON: {type(error).__name__}") from None
    if _deeper(found, _DEEPEST):
        raise FormatError(f"{where}: values are nested more than {_DEEPEST} deep")
    return found


def read_settings(folder: str, name: str, what: str) -> Settings:
    """A JSON file that holds an object; without any value if the file is not there."""
    path = file_in(folder, name)
    where = f"{what}: {os.path.join(folder, name)}"
    found = {} if path is None else parsed(read_bytes(path, what), where)
    if not isinstance(found, dict):
        raise FormatError(f"{where}: holds {quote(found)}: expected an object")
    return Settings(where, found)


def _deeper(value: Any, left: int) -> bool:
    """Whether values are nested more than `left` deep."""
    if not isinstance(value, (dict, list)):
        return False
    return left == 0 or any(_deeper(part, left - 1) for part in (value.values() if isinstance(value, dict) else value))
