"""Tensors' data in files next to the model's: nothing outside of its folder is opened, and nothing through a link.

Every part of a location is opened by itself, relative to the folder before it, refusing links; what was opened is then asked
what it is, so that nothing can be exchanged between a check and its use.
"""

from __future__ import annotations

import os
import stat
from typing import NoReturn

from ...errors import FormatError, UnsupportedError
from ..budget import Budget
from ..source import Source, quote, view_of

# A mapped file costs a descriptor for as long as an array of it lives, and a process may have about a thousand.
_MOST_MAPPED = 64
_MOST_PARTS = 64  # folders in a location
_MOST_DIGITS = 19  # of 2**63 - 1

# dir_fd is what lets a part be opened in the folder that was checked; Windows has neither, and links there need privileges.
_CAN_WALK = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW") and hasattr(os, "O_DIRECTORY")


class ExternalFiles:
    """The external files of one model, each opened once."""

    def __init__(self, source: Source, budget: Budget) -> None:
        self._source = source
        self._budget = budget
        self._views: dict[tuple[str, ...], memoryview] = {}

    def data(self, entries: dict[str, str], nbytes: int, where: object) -> memoryview:
        """The `nbytes` bytes that the entries of an `external_data` field point to. Unknown keys are ignored."""
        location = entries.get("location", "")
        offset = _number(entries, "offset", where)
        length = _number(entries, "length", where)
        if length is not None and length != nbytes:
            raise FormatError(f"{where}: external data has the length {length}, the tensor takes {nbytes} bytes")
        view = self._open(location, where)
        at = offset or 0
        if at + nbytes > len(view):
            raise FormatError(
                f"{where}: external data from {at} to {at + nbytes} ends beyond the {len(view)} bytes of file {quote(location)}"
            )
        return view[at : at + nbytes]

    def _open(self, location: str, where: object) -> memoryview:
        parts = _parts(location, where)
        view = self._views.get(parts)
        if view is not None:
            return view
        if self._source.path is None:
            raise UnsupportedError(
                f"{where}: its data is in another file ({quote(location)}), but the model came from memory or a file object, "
                "which has no folder: load it by its path"
            )
        try:
            descriptor = _walk(os.path.dirname(os.fsdecode(self._source.path)) or os.curdir, parts, where)
        except OSError as error:
            raise FormatError(f"{where}: external file {quote(location)} cannot be opened: {error.strerror or error}") from None
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise FormatError(f"{where}: external file {quote(location)} is no regular file")
            if status.st_nlink != 1:
                raise FormatError(
                    f"{where}: external file {quote(location)} is a hard link ({status.st_nlink} names): only files of their own "
                    "are read, since a link may lead out of the model's folder; copy it"
                )
            mapped = self._source.mapped and len(self._views) < _MOST_MAPPED
            name = f"{where}: external file {quote(location)}"
            view = self._views[parts] = view_of(descriptor, status.st_size, name, mapped, self._budget)
            return view
        finally:
            os.close(descriptor)


def _parts(location: str, where: object) -> tuple[str, ...]:
    """The folders and the file of a location; raises FormatError unless it is relative and stays below where it begins."""

    def refuse(why: str) -> NoReturn:
        raise FormatError(
            f"{where}: external data has the location {quote(location)}, which {why}: expected a path below the model's folder, "
            "without '..'"
        )

    if not location:
        refuse("is empty")
    if "\0" in location or "\\" in location:
        refuse("has a backslash or a null")
    if (
        os.path.isabs(location)
        or location.startswith("/")
        or os.path.splitdrive(location)[0]
        or (os.name == "nt" and ":" in location)
    ):
        refuse("is absolute")
    parts = tuple(part for part in location.split("/") if part not in ("", "."))
    if ".." in parts:
        refuse("leads upwards")
    if not parts or location.endswith("/"):
        refuse("names no file")
    if len(parts) > _MOST_PARTS:
        refuse(f"has {len(parts)} parts")
    return parts


def _walk(folder: str, parts: tuple[str, ...], where: object) -> int:
    """A descriptor of the file; the model's own folder may be reached by a link, nothing below it."""
    flags = os.O_RDONLY
    for name in ("O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY", "O_BINARY"):
        flags |= getattr(os, name, 0)
    if not _CAN_WALK:
        return _open_checked(folder, parts, flags, where)
    here = os.open(folder, flags | os.O_DIRECTORY)
    try:
        for part in parts[:-1]:
            below = _step(part, flags | os.O_DIRECTORY, here, where)
            os.close(here)
            here = below
        return _step(parts[-1], flags, here, where)
    finally:
        os.close(here)


def _step(part: str, flags: int, folder: int, where: object) -> int:
    try:
        return os.open(part, flags | os.O_NOFOLLOW, dir_fd=folder)
    except OSError:
        if _is_link(part, folder):
            _refuse_link(part, where)
        raise


def _is_link(part: str, folder: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(part, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _open_checked(folder: str, parts: tuple[str, ...], flags: int, where: object) -> int:
    """Opens a file where folders cannot be held open: checks every part of the path before, and afterwards that the file is the
    same."""
    path = folder
    for part in parts:
        path = os.path.join(path, part)
        seen = os.lstat(path)
        junction: int = getattr(seen, "st_reparse_tag", 0)
        if stat.S_ISLNK(seen.st_mode) or junction:
            _refuse_link(part, where)
    descriptor = os.open(path, flags)
    opened = os.fstat(descriptor)
    if (opened.st_dev, opened.st_ino) != (seen.st_dev, seen.st_ino):
        os.close(descriptor)
        _refuse_link(parts[-1], where)
    return descriptor


def _refuse_link(part: str, where: object) -> NoReturn:
    raise FormatError(
        f"{where}: external data is after the symbolic link {quote(part)}: links are not followed, since they may lead out of "
        "the model's folder; put the file itself next to the model"
    )


def _number(entries: dict[str, str], key: str, where: object) -> int | None:
    text = entries.get(key)
    if not text:
        return None
    if len(text) > _MOST_DIGITS or not (text.isascii() and text.isdigit()):
        raise FormatError(f"{where}: external data has the {key} {quote(text)}, expected a whole number from 0 up")
    return int(text)
