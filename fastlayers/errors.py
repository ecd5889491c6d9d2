"""The errors that fastlayers raises: one base class, one subclass a kind, each also the builtin that a caller would expect."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
    """An argument's shape, size or number of dimensions, or a plain argument's value, breaks the rule of the operation."""


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
