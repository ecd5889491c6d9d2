"""Messages as one text: the chat template of a folder, a program of a stranger, in a sandbox with limits of time and memory.

jinja2's immutable sandbox keeps a template from Python's objects, and from changing the messages. What it does not limit is done
here: each round of a loop, call and operator counts, and looks at the clock; filters, tests and methods are those of a list; and
whatever could make a value much longer than those that it is made of is measured before.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from .._extras import install
from .._lazy import imported
from ..errors import ArgumentError, DTypeError, Error, FormatError, LimitError, MissingExtraError
from ..formats.source import quote
from ._folder import Folder
from ._settings import file_in, read_bytes

__all__ = ["Template", "open_template"]

MOST_SOURCE = 1 << 18  # characters of a template: the longest published ones have 20,000
MOST_TEXT = 1 << 22  # characters of the result, and of all values that one operation takes
MOST_MADE = 1 << 27  # of all values that were made, since any of them may be kept
MOST_STEPS = 400_000
MOST_SECONDS = 5.0
_DEEPEST = 64
_ELEMENT = 16  # characters that an element counts


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


FILTERS = _names(
    "abs capitalize count d default dictsort e escape first float indent int items join last length list lower map max min "
    "reject rejectattr replace reverse safe select selectattr sort string title tojson trim unique upper"
)
METHODS = {
    str: _names(
        "capitalize count endswith find index isalnum isalpha isdigit isnumeric isspace isupper islower join lower lstrip "
        "partition removeprefix removesuffix replace rfind rindex rpartition rsplit rstrip split splitlines startswith strip "
        "title upper"
    ),
    dict: _names("get items keys values"),
    list: _names("count index"),
    tuple: _names("count index"),
}


class Refused(Exception):
    """Raised by the template itself, of messages that it does not take."""


class Template:
    """A chat template. May be used by any number of threads at once.

    Args:
        source: in jinja2's language.
        where: the beginning of errors.
        special: special tokens by their roles, which it may write.
    """

    def __init__(self, source: str, where: str, special: Mapping[str, str]) -> None:
        if len(source) > MOST_SOURCE:
            raise LimitError(f"{where}: has {len(source)} characters: at most {MOST_SOURCE} are read")
        self._source, self._where, self._special = source, where, special

    def render(self, messages: Sequence[Mapping[str, Any]], variables: Mapping[str, Any]) -> str:
        """The prompt for messages: the text up to where the answer begins."""
        given = {"add_generation_prompt": True, "tools": None, "documents": None, **self._special, **variables}
        given["messages"] = messages
        given = {name: _plain(value, name) for name, value in given.items()}
        try:
            jinja2 = imported("jinja2")
            environment = imported(f"{__package__}._sandbox").environment()
        except ImportError:
            raise MissingExtraError(f"{self._where}: needs jinja2, which is not installed: {install('text')}") from None
        try:
            budget = environment.budget
            budget.until = time.monotonic() + MOST_SECONDS
            parts: list[str] = []
            for part in environment.from_string(self._source).generate(**given):
                budget.text(len(part))
                parts.append(part)
            return "".join(parts)
        except Refused as error:
            raise ArgumentError(f"{self._where}: refuses the messages: {quote(str(error))}") from None
        except Error:
            raise
        except RecursionError:
            raise LimitError(f"{self._where}: is nested too deeply: the stack is exhausted") from None
        except (jinja2.TemplateError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise FormatError(f"{self._where}: {type(error).__name__}: {quote(str(error))}") from None


def _plain(value: Any, name: str, depth: int = 0) -> Any:
    """A value as JSON has it, copied: of no other type, which a template could call."""
    if value is None or type(value) in (str, bool, int, float):
        return value
    if depth < _DEEPEST and isinstance(value, Mapping):
        return {_plain(key, name, _DEEPEST): _plain(part, name, depth + 1) for key, part in value.items()}
    if depth < _DEEPEST and isinstance(value, (list, tuple)):
        return [_plain(part, name, depth + 1) for part in value]
    raise DTypeError(
        f"encode: {name} has a value of type {type(value).__name__}: expected texts, numbers, lists and dicts of such"
    )


class Budget:
    """Counts what a template does."""

    def __init__(self, where: str = "chat template") -> None:
        self.where, self.steps, self.length, self.made, self.until = where, 0, 0, 0, float("inf")

    def step(self) -> str:
        """Counts a step; for use in a template it is the empty text."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise LimitError(f"{self.where}: takes more than {MOST_STEPS} steps")
        if time.monotonic() > self.until:
            raise LimitError(f"{self.where}: takes more than {MOST_SECONDS:g} s")
        return ""

    def text(self, length: int) -> None:
        """Counts characters of the result."""
        self.length += length
        if self.length > MOST_TEXT:
            raise self.too_long()

    def kept(self, value: Any) -> Any:
        """The value, whose characters or elements count from now on."""
        if isinstance(value, (str, list, tuple, dict)):
            self.made += len(value) if isinstance(value, str) else _ELEMENT * len(value)
            if self.made > MOST_MADE:
                raise self.too_long()
        return value

    def too_long(self) -> LimitError:
        """Returns the error to raise where a value, or the result, has too many characters."""
        return LimitError(
            f"{self.where}: makes values of too many characters: at most {MOST_TEXT} are allowed, {MOST_MADE} in all"
        )

    def fits(self, size: int) -> None:
        """Raises if a value would have too many characters."""
        if size > MOST_TEXT:
            raise self.too_long()

    def measured(self, *values: Any) -> int:
        """The size of values: characters, and elements at any depth. Raises as soon as that is too much."""
        left, size = list(values), 0
        while left:
            value = left.pop()
            if isinstance(value, str):
                size += len(value)
            elif isinstance(value, Mapping):
                left += [*value, *value.values()]
            elif isinstance(value, (list, tuple)):
                left += value
            elif isinstance(value, int):
                size += value.bit_length() // 3
            size += _ELEMENT
            self.fits(size + len(left))
        return size


def open_template(folder: Folder, special: Mapping[str, str]) -> Template | None:
    """The template of a folder: chat_template.jinja, or that of tokenizer_config.json; None if it has none."""
    path = file_in(folder.inner, "chat_template.jinja")
    if path is not None:
        try:
            return Template(read_bytes(path, folder.what).decode("utf-8"), f"{folder.what}: {path}", special)
        except UnicodeDecodeError:
            raise FormatError(f"{folder.what}: {path}: is no text in UTF-8") from None
    given, where = folder.words.values.get("chat_template"), f"{folder.words.where}: chat_template"
    if isinstance(given, list):  # several, by name
        named = [entry for entry in given if isinstance(entry, dict) and entry.get("name") == "default"]
        given = named[0].get("template") if named else None
    if given is None:
        return None
    if not isinstance(given, str):
        raise FormatError(f"{where} is {quote(given)}: expected a text")
    return Template(given, where, special)
