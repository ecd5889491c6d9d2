"""Files that appear whole or not at all, even if others write to the same path, and whatever ends the process."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

__all__ = ["whole"]


@contextmanager
def whole(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write to, which takes the path's place at the end; after an error nothing has changed and nothing is left over.

    It is next to its place under a name that nothing else has. Of several that are written to one path at once, the last one to
    be done stays, whole. A link keeps pointing to where it does, which is written. What is no file, such as a pipe or a
    terminal, is written as it is.

    Raises:
        OSError: the folder does not exist, is full or cannot be written to.
    """
    target = os.path.realpath(path)
    try:
        mode = os.stat(target).st_mode
    except OSError:
        mode = stat.S_IFREG
    if not stat.S_ISREG(mode):
        with open(target, "wb") as file:  # a folder is an error
            yield file
        return
    part, descriptor = _beside(target)
    try:
        with open(descriptor, "wb") as file:
            yield file
            file.flush()
            _sync(descriptor)  # or after a loss of power the name could be there without the content
        if stat.S_IMODE(mode):
            os.chmod(part, stat.S_IMODE(mode))
        os.replace(part, target)
    except OSError as error:
        if error.filename == part:
            error.filename, error.filename2 = os.fspath(path), None
        raise
    finally:
        with suppress(OSError):
            os.unlink(part)
    _sync_folder(os.path.dirname(target))


def _beside(target: str) -> tuple[str, int]:
    """A new file in the same folder, with the permissions that the process gives to new files: its path and descriptor."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    folder, name = os.path.split(target)
    while True:
        # Bytes of the system's own, which a forked child does not share. Long names are cut: the system has a limit.
        part = os.path.join(folder, f"{name[:100]}.{os.urandom(8).hex()}.part")
        try:
            return part, os.open(part, flags, 0o666)
        except FileExistsError:
            continue
        except OSError as error:
            error.filename = target
            raise


def _sync(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):  # file systems that have no such thing
            raise


def _sync_folder(folder: str) -> None:
    """Makes the new name last; not every system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
