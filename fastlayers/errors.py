"""The errors that fastlayers raises: one base class, one subclass a kind, each also the builtin that a caller would expect."""

from __future__ import annotations

import builtins
import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

__all__ = [
    "ArgumentError",
    "DTypeError",
    "DeviceError",
    "Error",
    "FormatError",
    "LimitError",
    "MissingExtraError",
    "ShapeError",
    "TimeoutError",
    "UnsupportedError",
    "WeightsError",
]


class Error(Exception):
    """Base of every error that fastlayers raises on purpose.

    A message says what was being done, which argument was wrong, what came and what was expected, for example
    ``conv2d: weight has 16 input channels, x has 3 (groups=1): expected weight of shape (o, 3, kh, kw), got (32, 16, 3, 3)``.
    """

    def __str__(self) -> str:
        # KeyError prints the repr of its argument, which would wrap our sentences in quotes.
        return str(self.args[0]) if len(self.args) == 1 else super().__str__()


class FormatError(Error, ValueError):
    """A file is broken, truncated, malicious, or not of the format that it claims."""


class UnsupportedError(Error, NotImplementedError):
    """A file or a call is valid but asks for something that fastlayers does not do."""


class ArgumentError(Error, ValueError):
    """An argument's value breaks the rule of the operation: a number out of range, a name that is none of those expected."""


class ShapeError(ArgumentError):
    """An array's shape, size or number of dimensions breaks the rule of the operation."""


class DTypeError(Error, TypeError):
    """An argument's type or dtype is not one that the operation takes."""


class WeightsError(Error, KeyError):
    """Weights are missing, left over or of the wrong shape, or a layer was called before it had any."""


class MissingExtraError(Error, ImportError):
    """A feature needs an optional package; the message has the ``pip install`` that brings it."""


class DeviceError(Error, RuntimeError):
    """A device, kernel variant or instruction-set level does not exist or cannot be used on this machine."""


class LimitError(Error, MemoryError):
    """Something would take more memory, time or depth than it was allowed."""


class TimeoutError(Error, builtins.TimeoutError):
    """A run was given `timeout` seconds and is not done."""


C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])

# What may be raised where the machine is short of something for the moment: see `refuse_shortage`.
SHORTAGE = (MemoryError, OSError, ImportError, RuntimeError, SystemError)
_SHORT = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN)
_NO_THREAD = "can't start new thread"
# What Python says, then, of extensions and of its own compiler, which do not.
_UNSAID = ("without setting an exception", "without exception set")
# What the C library says, then, of a library that it was to load.
_NOT_LOADED = ("cannot allocate", "cannot create", "failed to map", "memory protection", *map(os.strerror, _SHORT))


def is_shortage(error: BaseException) -> bool:
    """Whether memory, file handles or threads were lacking, so that the same call may succeed later."""
    if isinstance(error, Error):
        return isinstance(error, LimitError)
    if isinstance(error, OSError):
        return error.errno in _SHORT
    if isinstance(error, RuntimeError):
        return str(error).startswith(_NO_THREAD)
    if isinstance(error, ImportError):
        return any(words in str(error) for words in _NOT_LOADED)
    if isinstance(error, SystemError):
        return any(words in str(error) for words in _UNSAID)
    return isinstance(error, MemoryError)


def refuse_shortage(error: BaseException, doing: str) -> None:
    """Raises a `LimitError` in place of Python's error of a shortage; leaves every other error, and ours, as it is.

    Nothing is kept of a call that fails so: the next one tries again.
    """
    if is_shortage(error) and not isinstance(error, Error):
        what = "memory" if isinstance(error, MemoryError) else "memory, file handle or thread"
        raise LimitError(f"{doing}: no {what} for it at the moment: {error}") from error


def refuses_shortage(doing: str) -> Callable[[F], F]:
    """A decorator for what is called from outside and imports, opens or allocates as it begins: see `refuse_shortage`."""

    def decorated(function: F) -> F:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except SHORTAGE as error:
                refuse_shortage(error, doing)
                raise

        return call  # type: ignore[return-value]

    return decorated


def refuse_shortage_in(*methods: str) -> Callable[[C], C]:
    """`refuses_shortage` for methods of a class, by name."""

    def decorated(kind: C) -> C:
        for name in methods:
            setattr(kind, name, refuses_shortage(name.strip("_"))(getattr(kind, name)))
        return kind

    return decorated


# What Python and numpy raise where attributes or shapes of a file are nonsense.
_FOREIGN = (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError)


@contextmanager
def ours(where: Callable[[], str]) -> Iterator[None]:
    """Meanwhile errors of Python and numpy become ours; `where` says, once there is one, what was being done."""
    try:
        yield
    except Error:
        raise
    except MemoryError as error:
        raise LimitError(f"{where()}: no memory for its result: {error}") from error
    except RecursionError as error:
        raise LimitError(f"{where()}: is nested too deeply: the stack is exhausted") from error
    except _FOREIGN as error:
        raise ShapeError(f"{where()}: inconsistent attributes or input shapes: {error}") from error
