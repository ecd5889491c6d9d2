"""A request that belongs to a sequence of another worker: sent on over its socket, and its answer sent back."""

from __future__ import annotations

import asyncio

from .failures import Refused

__all__ = ["forward"]

_KEPT = (b"inference-header-content-length", b"content-type", b"retry-after")
_HEAD = 64 << 10


async def forward(
    path: str, target: bytes, headers: dict[bytes, bytes], body: bytes, seconds: float
) -> tuple[int, tuple[tuple[bytes, bytes], ...], bytes]:
    """The status, headers and body that the worker at this socket answers."""
    try:
        return await asyncio.wait_for(_ask(path, target, headers, body), seconds)
    except (TimeoutError, asyncio.TimeoutError):
        raise Refused(504, f"the worker of this sequence did not answer within {seconds:g} seconds", "timeout") from None
    except (OSError, EOFError, ValueError, asyncio.LimitOverrunError):
        raise Refused(503, "the worker of this sequence is not there: begin it again", "worker lost") from None


async def _ask(
    path: str, target: bytes, headers: dict[bytes, bytes], body: bytes
) -> tuple[int, tuple[tuple[bytes, bytes], ...], bytes]:
    reader, writer = await asyncio.open_unix_connection(path, limit=_HEAD)
    try:
        kept = [(name, headers[name]) for name in (b"inference-header-content-length",) if name in headers]
        lines = [b"POST " + target + b" HTTP/1.1", b"host: worker", b"connection: close", b"content-length: %d" % len(body)]
        writer.write(b"\r\n".join([*lines, *(name + b": " + value for name, value in kept), b"", b""]))
        writer.write(body)
        await writer.drain()
        first, *rest = (await reader.readuntil(b"\r\n\r\n"))[:-4].split(b"\r\n")
        found = [(name.lower(), value.strip()) for name, _, value in (line.partition(b":") for line in rest)]
        length = int(dict(found)[b"content-length"])
        return int(first.split()[1]), tuple(item for item in found if item[0] in _KEPT), await reader.readexactly(length)
    finally:
        writer.close()
