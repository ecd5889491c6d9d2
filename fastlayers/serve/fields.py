"""Fields of a request's JSON, read one by one. One that is not read is refused: it might change what the client expects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .failures import Refused

__all__ = ["Fields", "Invalid", "described", "prompts_of", "shown"]

_TYPES = {404: "not_found_error", 503: "overloaded_error", 504: "timeout_error"}
MOST = 2**53  # integers beyond are not what JSON's readers elsewhere would read


class Invalid(Refused):
    """A request that is wrong in one of its fields, with the word that clients may compare."""

    def __init__(self, param: str, message: str, code: str | None = None, status: int = 400) -> None:
        super().__init__(status, f"{param}: {message}")
        self.param, self.code = param, code


def shown(value: Any) -> str:
    """A value for a message."""
    if isinstance(value, str):
        return f"{value[:50]!a}"
    if value is None or isinstance(value, (bool, int, float)):
        return f"{value!r:.30}" if not isinstance(value, int) or abs(value) < MOST else "a huge integer"
    return f"{'an object' if isinstance(value, dict) else f'a list of {len(value)}'}"


def described(refused: Refused) -> dict[str, Any]:
    """An error in OpenAI's shape."""
    kind = _TYPES.get(refused.status, "invalid_request_error" if refused.status < 500 else "server_error")
    code = "model_not_found" if refused.reason == "unknown model" else None
    if refused.reason != "invalid":
        code = code or refused.reason.replace(" ", "_")
    param = None
    if isinstance(refused, Invalid):
        param, code = refused.param, refused.code
    return {"message": refused.message, "type": kind, "param": param, "code": code}


class Fields:
    """Fields of an object; null is as if the field were not there.

    Args:
        values: the object.
        where: the beginning of its fields' names in messages.
    """

    def __init__(self, values: Mapping[str, Any], where: str = "") -> None:
        self._left = {name: value for name, value in values.items() if value is not None}
        self._where = where

    def take(self, name: str) -> Any:
        """The value, None if there is none."""
        return self._left.pop(name, None)

    def need(self, name: str) -> Any:
        """The value of a field that must be there."""
        if name not in self._left:
            raise self.invalid(name, "is missing")
        return self._left.pop(name)

    def invalid(self, name: str, message: str, code: str | None = None) -> Invalid:
        """The error of a field."""
        return Invalid(self._where + name[:100].encode("ascii", "backslashreplace").decode(), message, code)

    def text(self, name: str, value: Any) -> str:
        """A value that must be a text."""
        if not isinstance(value, str):
            raise self.invalid(name, f"got {shown(value)}: expected a text")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise self.invalid(name, "has half a surrogate pair, which is no character") from None
        return value

    def integer(self, name: str, least: int, most: int = MOST) -> int | None:
        """An integer."""
        value = self.take(name)
        if value is not None and (type(value) is not int or not least <= value <= most):
            told = f" to {most}" if most < MOST else " or more"
            raise self.invalid(name, f"got {shown(value)}: expected an integer of {least}{told}")
        return value

    def number(self, name: str, least: float, most: float) -> float | None:
        """A number."""
        value = self.take(name)
        if value is None:
            return None
        if type(value) not in (int, float) or not least <= value <= most:
            raise self.invalid(name, f"got {shown(value)}: expected a number of {least:g} to {most:g}")
        return float(value)

    def flag(self, name: str) -> bool:
        """A boolean, false by default."""
        value = self.take(name)
        if value is not None and type(value) is not bool:
            raise self.invalid(name, f"got {shown(value)}: expected true or false")
        return bool(value)

    def below(self, name: str) -> Fields | None:
        """An object."""
        value = self.take(name)
        if value is not None and not isinstance(value, dict):
            raise self.invalid(name, f"got {shown(value)}: expected an object")
        return None if value is None else Fields(value, f"{self._where}{name}.")

    def ends(self, harmless: Mapping[str, tuple[Any, ...] | None]) -> None:
        """Refuses what is left, but for harmless fields: any value where None stands, else the values that change nothing."""
        for name, value in self._left.items():
            if name not in harmless:
                raise self.invalid(name, "is not supported", "unsupported_field")
            values = harmless[name]
            if values is not None and not any(type(value) is type(one) and value == one for one in values):
                raise self.invalid(name, f"got {shown(value)}: supported is {values[0]!r} alone", "unsupported_value")


def prompts_of(fields: Fields, name: str) -> list[Any]:
    """Texts, and lists of ids, of a field that holds one or several."""
    value = fields.need(name)
    many = value if isinstance(value, list) and value and not _is_ids(value) else [value]
    found: list[Any] = []
    for i, one in enumerate(many):
        where = name if many is not value else f"{name}[{i}]"
        if isinstance(one, list) and _is_ids(one) and all(0 <= part < 2**31 for part in one):
            found.append(one)
        elif isinstance(one, str):
            found.append(fields.text(where, one))
        else:
            raise fields.invalid(where, f"got {shown(one)}: expected a text, or a list of ids of tokens that is not empty")
    return found


def _is_ids(value: list[Any]) -> bool:
    return bool(value) and all(type(part) is int for part in value)
