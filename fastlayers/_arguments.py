"""Types that plain arguments of public functions and layers may have: declared once, in annotations, and checked here, with one
wording.

An annotation says which types an argument takes; its range, where there is one, stands in the function's own rule, which calls
`ir.checks`. Here whatever could not even be looked at is refused before a rule sees it: a value of a third-party type, a
flag that is neither True nor False (an array, or the name "no", would count as True), and an integer beyond 64 bits, which
neither kernels nor numpy take and which Python may refuse to print. Tensors are read by `graph.arrays`.
"""

from __future__ import annotations

import functools
import operator
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from .errors import SHORTAGE, ArgumentError, DTypeError, Error, LimitError, refuse_shortage

__all__ = [
    "LARGEST",
    "Check",
    "as_flag",
    "as_mapping",
    "as_names",
    "as_path",
    "checked",
    "checker",
    "listed",
    "no_memory",
    "shown",
]

LARGEST = 2**63 - 1
_LARGEST_FLOAT = 2**1023

# What rules may look at: they compare and print it. Arrays without axes count as numbers.
_PLAIN = frozenset({type(None), bool, str, float})
_MOST_SHOWN = 80
_DEEPEST = 2  # a sequence of pairs
# What an argument is not by its annotation alone; the rest of an annotation is checked by the function's rule.
_WORDS = {
    "bool": "True or False",
    "int": "an int",
    "float": "a number",
    "str": "a str",
    "None": "None",
    "Sequence[int]": "a sequence of ints",
    "Sequence[int | None]": "a sequence of ints",
    "Sequence[float]": "a sequence of numbers",
    "Padding": "ints, or 'same' or 'valid'",
}

# An axis is called as torch calls it; the other word is taken by keyword.
_ALIASES = (("dim", "axis"), ("axis", "dim"))

F = TypeVar("F", bound=Callable[..., Any])
Check = Callable[[tuple[Any, ...], dict[str, Any]], tuple[tuple[Any, ...], dict[str, Any]]]


def shown(value: Any) -> str:
    """A value as errors show it: short, whatever it is."""
    try:
        text = repr(value)
    except Exception:  # of a third-party type, or an int of thousands of digits
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def listed(words: Sequence[str], most: int) -> str:
    """The first words of a list as errors show it, and how many more there are."""
    more = f", and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more


def no_memory(op: str) -> LimitError:
    """Returns the error to raise where numpy finds no memory."""
    return LimitError(f"{op}: no memory for what has to be made of it")


def _words(kind: str) -> str:
    """The words for an annotation."""
    found = [_WORDS[part] for part in _parts(kind) if part in _WORDS]
    return " or ".join(found) or kind


def _parts(kind: str) -> list[str]:
    """The members of a union; bars within brackets do not divide it."""
    return kind.replace("[int | None]", "[int|None]").replace(" | ", "\n").replace("[int|None]", "[int | None]").split("\n")


class _Kind:
    """The values that the annotation of an argument allows."""

    __slots__ = ("allowed", "any", "flag", "ints", "name", "text")

    def __init__(self, text: str) -> None:
        parts = set(_parts(text))
        self.text, self.any = text, text == "Any"
        self.flag = "bool" in parts and not parts & {"int", "float", "str"}
        self.name = "str" in parts and not parts & {"bool", "int", "float"}
        self.ints = not self.flag
        self.allowed = _PLAIN | {np.ndarray} if self.any else _PLAIN
        if self.flag:
            self.allowed = frozenset({bool, type(None)} if "None" in parts else {bool})

    def look(self, op: str, argument: str, value: Any, depth: int = 0) -> Any:
        """The value as rules see it, a number of a third-party type as Python's own; raises where they could not look at it."""
        if self.flag:
            return as_flag(op, argument, value, self.text)
        if value.__class__ in _PLAIN:
            return value
        if isinstance(value, (tuple, list)) and depth < _DEEPEST and not self.name:
            seen = [part if part.__class__ in _PLAIN else self.look(op, argument, part, depth + 1) for part in value]
            return value if self.any else seen if isinstance(value, list) else tuple(seen)
        found = value if value.__class__ in _PLAIN or value.__class__ is int or self.any else _number(value)
        if found is None and value is not None:
            if isinstance(value, str):
                return str(value)
            raise DTypeError(f"{op}: {argument} is {shown(value)} of type {type(value).__name__}: expected {_words(self.text)}")
        if isinstance(found, int) and not -LARGEST <= found <= LARGEST:
            if "float" in self.text and abs(found) < _LARGEST_FLOAT:
                return float(found)
            raise ArgumentError(f"{op}: {argument} has more than 64 bits: expected {_words(self.text)} below 2**63")
        return found


def _number(value: Any) -> Any:
    """A single number, of numpy or of another type that says that it is one, as Python's own; else None."""
    if isinstance(value, (np.ndarray, np.generic)):
        kind = value.dtype.kind if value.ndim == 0 else ""
        return float(value) if kind == "f" else value.item() if kind in ("i", "u", "b") else None
    for read, sign in ((operator.index, "__index__"), (float, "__float__")):
        if hasattr(value, sign):
            try:
                return read(value)
            except Error:  # of a symbolic value
                raise
            except Exception:  # a third-party type may raise anything
                return None
    return None


def as_names(op: str, argument: str, value: Any) -> tuple[str, ...]:
    """Several names, in any sequence or set of them."""
    if not isinstance(value, (str, bytes)):
        try:
            found = tuple(value)
        except Exception:  # a third-party type may raise anything
            found = (None,)
        if all(isinstance(name, str) for name in found):
            return found
    raise DTypeError(f"{op}: {argument} is {shown(value)} of type {type(value).__name__}: expected a list of names")


def as_mapping(op: str, argument: str, value: Any) -> Mapping[str, Any]:
    """A dict, or what is like one."""
    if not isinstance(value, Mapping):
        raise DTypeError(f"{op}: {argument} is of type {type(value).__name__}: expected a dict by name")
    return value


def as_path(op: str, value: Any) -> str:
    """The path of a file, which the system could take."""
    try:
        path = os.fsdecode(os.fspath(value))
        sound = path and "\0" not in path and os.fsencode(path)
    except (TypeError, UnicodeError):
        sound = False
    if not sound:
        kind = ArgumentError if isinstance(value, (str, bytes)) else DTypeError
        raise kind(f"{op}: path is {shown(value)!a} of type {type(value).__name__}: expected the path of a file")
    return path


def as_flag(op: str, argument: str, value: Any, kind: str = "bool") -> Any:
    """True or False, given as such, as numpy's, or as 1 or 0; None where `kind` takes it. Anything else is a DTypeError."""
    if value.__class__ is bool or (value is None and "None" in kind):
        return value
    if isinstance(value, np.bool_) or (type(value) is int and value in (0, 1)):
        return bool(value)
    if isinstance(value, np.ndarray):
        if value.ndim == 0 and value.dtype == np.bool_:
            return bool(value)
        raise DTypeError(f"{op}: {argument} is an array of shape {value.shape}: expected {_words(kind)}")
    raise DTypeError(f"{op}: {argument} is {shown(value)} of type {type(value).__name__}: expected {_words(kind)}")


_KINDS: dict[str, _Kind] = {}


def _kind(annotation: Any) -> _Kind | None:
    """The kind of an annotation; None for tensors and whatever else has its own reader."""
    if not isinstance(annotation, str) or not (annotation == "Any" or all(part in _WORDS for part in _parts(annotation))):
        return None
    if annotation not in _KINDS:
        _KINDS[annotation] = _Kind(annotation)
    return _KINDS[annotation]


def _plain(value: Any) -> bool:
    """Whether it is an int of 64 bits, or a tuple of such: what is given most."""
    if value.__class__ is int:
        return -LARGEST <= value <= LARGEST
    if value.__class__ is tuple:
        for part in value:  # noqa: SIM110 - a loop: it stands before calls of microseconds
            if part.__class__ is not int or not -LARGEST <= part <= LARGEST:
                return False
        return True
    return False


def _looked(kinds: Mapping[str, _Kind | None], op: str, names: Sequence[str], values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values as rules see them."""
    pairs = [(kinds.get(name), name, value) for name, value in zip(names, values, strict=False)]
    seen = [value if kind is None else kind.look(op, name, value) for kind, name, value in pairs]
    return (*seen, *values[len(seen) :])


def checker(op: str, function: Any, skip: int = 0) -> tuple[int, Check]:
    """Returns a function that checks the plain arguments of a call, and the number of arguments before the first of them.

    The first `skip` parameters are left out. Annotations are read when the first call needs them, not on import.
    """
    code = function.__code__
    names = code.co_varnames[skip : code.co_argcount + code.co_kwonlyargcount]
    annotations = function.__annotations__
    first = 0
    while first < code.co_argcount - skip and "Tensor" in annotations.get(names[first], ""):
        first += 1
    kinds: dict[str, _Kind | None] = {}
    rest: list[_Kind | None] = []
    own, other = next(((a, b) for a, b in _ALIASES if a in names and b not in names), ("", ""))

    def check(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if not kinds:
            kinds.update((name, _kind(annotations.get(name))) for name in names)
            rest.extend(kinds[name] for name in names[first : code.co_argcount - skip])
        if other and other in kwargs:
            if own in kwargs or names.index(own) < len(args):
                raise ArgumentError(f"{op}: {own} and {other} are both given: expected one, they mean the same")
            kwargs = {own if name == other else name: value for name, value in kwargs.items()}
        # Two loops, and no call in them for what is as it should be: they stand before calls of microseconds.
        for kind, value in zip(rest, args[first:], strict=False):
            if kind is None or value.__class__ in kind.allowed:
                continue
            if not (kind.ints and _plain(value)):
                args = _looked(kinds, op, names, args)
                break
        for name, value in kwargs.items():
            kind = kinds.get(name)
            if kind is None or value.__class__ in kind.allowed:
                continue
            if not (kind.ints and _plain(value)):
                kwargs = dict(zip(kwargs, _looked(kinds, op, tuple(kwargs), tuple(kwargs.values())), strict=True))
                break
        return args, kwargs

    return first, check


def checked(function: F) -> F:
    """Decorates a public function that is made of others; those that are recorded themselves are checked by `graph.ops`."""
    name = function.__qualname__
    first, check = checker(name, function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs or len(args) > first:
            args, kwargs = check(args, kwargs)
        try:
            return function(*args, **kwargs)
        except SHORTAGE as error:
            refuse_shortage(error, name)
            raise

    return call  # type: ignore[return-value]
