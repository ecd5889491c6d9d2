"""Answers to requests that cannot be carried out: an HTTP status and a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ArgumentError, DTypeError, Error, LimitError, TimeoutError, UnsupportedError

if TYPE_CHECKING:
    from .app import Request

__all__ = ["Refused", "nothing", "only", "refusal"]


class Refused(Exception):
    """A request that is answered with an error. `reason` is a short word for metrics."""

    def __init__(self, status: int, message: str, reason: str = "invalid", headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        super().__init__(message)
        self.status, self.message, self.reason, self.headers = status, message, reason, headers


# A busy server's clients come back; one that comes back at once only adds to the load.
RETRY = ((b"retry-after", b"1"),)


def refusal(error: BaseException) -> Refused:
    """Maps an error of the library to an answer; any other error is the server's own fault, and its text is not sent."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, TimeoutError):
        return Refused(504, str(error), "timeout")
    if isinstance(error, (LimitError, MemoryError)):
        return Refused(413, str(error) or "not enough memory for this request", "limit")
    if isinstance(error, (ArgumentError, DTypeError, UnsupportedError)):
        return Refused(400, str(error))
    if isinstance(error, Error):
        return Refused(500, str(error), "failed")
    return Refused(500, "internal error: see the server's log", "failed")


def only(request: Request, *verbs: str) -> None:
    """Refuses other methods."""
    if request.verb not in verbs:
        allowed = ((b"allow", ", ".join(verbs).encode()),)
        raise Refused(405, f"the method is {request.verb:.20}: expected {' or '.join(verbs)}", "method", allowed)


def nothing(request: Request) -> Refused:
    """The refusal of a path that means nothing."""
    return Refused(404, f"there is nothing at {request.path[:200].decode('latin-1')!r}", "unknown path")
