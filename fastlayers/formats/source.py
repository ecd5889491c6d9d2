"""Opening what a reader is given (a path, bytes, a file object) as one read-only view of bytes. Decodes nothing."""

from __future__ import annotations

import errno
import io
import os
import reprlib
import stat
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from .._held import map_of
from ..errors import ArgumentError, DTypeError, FormatError, LimitError
from .budget import Budget

if TYPE_CHECKING:
    from ._zip import Archive

_CHUNK = 1 << 20
_LONGEST = 120  # characters of a name or a value in an error
_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = _LONGEST


class Readable(Protocol):
    """A binary file object; only ``read`` is used."""

    def read(self, size: int, /) -> bytes: ...


SourceLike: TypeAlias = str | os.PathLike[str] | os.PathLike[bytes] | bytes | bytearray | memoryview | Readable


class Source:
    """The bytes of one opened file, and the words that errors about it begin with.

    `path` is the file's, None if it was given as bytes or an object; `mapped` is whether files next to it are to be mapped.
    """

    def __init__(self, view: memoryview, where: str, path: str | bytes | None = None, mapped: bool = False) -> None:
        self.view = view
        self.where = where
        self.path = path
        self.mapped = mapped
        self._archive: Archive | None = None

    def __len__(self) -> int:
        return len(self.view)

    def starts_with(self, magic: bytes, at: int = 0) -> bool:
        """Whether the bytes at offset `at` are `magic`."""
        return bytes(self.view[at : at + len(magic)]) == magic

    def archive(self) -> Archive:
        """The directory of the zip archive that the content is, read once. Raises FormatError if it is broken."""
        if self._archive is None:
            from ._zip import read_archive

            self._archive = read_archive(self.view, self.where)
        return self._archive


def open_source(source: Any, *, caller: str, mapped: bool, budget: Budget) -> Source:
    """Opens `source` once. What is read into memory is taken from `budget`; what is mapped, or ``bytes`` already, is not."""
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        where = f"{caller}: {_clip_path(os.fsdecode(path))}"
        return Source(_open_path(path, where, mapped, budget), where, path, mapped)
    where = f"{caller}: <{type(source).__name__}>"
    if hasattr(source, "read") and not _is_buffer(source):
        name = getattr(source, "name", None)
        if isinstance(name, str):
            where = f"{caller}: {_clip_path(name)}"
        return Source(_read_stream(source, where, budget), where)
    try:
        view = memoryview(source)
    except (TypeError, ValueError):  # numpy has arrays that no buffer describes
        from .elsewhere import of_object

        got = f"{type(source).__name__}{of_object(source)}"
        raise DTypeError(f"{caller}: source must be a path, bytes or a binary file object, got {got}") from None
    if view.format not in ("B", "b", "c") or not view.c_contiguous:
        raise DTypeError(f"{where}: source must be a contiguous buffer of bytes, got items of format {view.format!r}")
    view = view.cast("B") if view.nbytes else memoryview(b"")
    if isinstance(source, bytes) or (view.readonly and mapped):
        return Source(view, where)
    # A writable buffer may change under the checks, or under the arrays.
    budget.take(view.nbytes, where)
    return Source(memoryview(bytes(view)), where)


def beside(path: str | bytes, file: str, where: str) -> str:
    """The path of `file` next to the file at `path`: in its folder or, for links of a cache, where the files are together."""
    given = os.fsdecode(path)
    folders = [os.path.realpath(os.path.dirname(given)), os.path.dirname(os.path.realpath(given))]
    real = os.path.realpath(os.path.join(folders[0], file))
    if os.path.dirname(real) not in folders:
        raise FormatError(f"{where}: {quote(file)} is a link that leads out of its folder")
    return real


def quote(value: object) -> str:
    """`value` for an error message: its repr, shortened in length and depth, since names and values come from files."""
    try:
        return _clip(_REPR.repr(value))
    except ValueError:  # an int of thousands of digits
        return f"a value of type {type(value).__name__}"


def _clip(text: str) -> str:
    return text if len(text) <= _LONGEST + 2 else f"{text[:_LONGEST]}..."


def _clip_path(path: str) -> str:
    """The end of a path tells more than its beginning."""
    return path if len(path) <= _LONGEST else f"...{path[-_LONGEST:]}"


def _is_buffer(source: object) -> bool:
    """Whether it has a buffer's interface; ``mmap`` objects have ``read`` too, but are best taken in place."""
    try:
        memoryview(source)  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


def _open_path(path: str | bytes, where: str, mapped: bool, budget: Budget) -> memoryview:
    # O_NONBLOCK: opening a FIFO or a device must not wait for the other side. Everything else is asked of the descriptor, so that
    # the file that was checked is the file that is read.
    flags = os.O_RDONLY
    for name in ("O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY", "O_BINARY"):
        flags |= getattr(os, name, 0)
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError as error:
        from .elsewhere import at_nothing

        raise FileNotFoundError(error.errno, f"{error.strerror}{at_nothing(os.fsdecode(path))}", path) from None
    except ValueError as error:  # a null byte, or what no encoding has
        raise ArgumentError(f"{where.encode('ascii', 'replace').decode()}: is no path: {error}") from error
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            from .elsewhere import in_folder

            raise IsADirectoryError(errno.EISDIR, f"{os.strerror(errno.EISDIR)}{in_folder(os.fsdecode(path))}", path)
        if not stat.S_ISREG(status.st_mode):
            raise FormatError(f"{where}: is no regular file: open it and pass the file object to read from a pipe or a device")
        return view_of(descriptor, status.st_size, where, mapped, budget)
    finally:
        os.close(descriptor)


def view_of(descriptor: int, size: int, where: str, mapped: bool, budget: Budget) -> memoryview:
    """The content of an opened regular file of `size` bytes: mapped if it is to be and can be, else read."""
    if size == 0:
        return memoryview(b"")
    view = _map(descriptor, size, where) if mapped else None
    return _read_file(descriptor, size, where, budget) if view is None else view


def _map(descriptor: int, size: int, where: str) -> memoryview | None:
    """The mapped file, or None where the file system cannot map."""
    import mmap

    try:
        return memoryview(map_of(mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)))
    except (ValueError, OverflowError):
        raise FormatError(f"{where}: was {size} bytes long when it was opened, and is shorter now") from None
    except OSError:
        return None


def _read_file(descriptor: int, size: int, where: str, budget: Budget) -> memoryview:
    content = budget.empty((size,), "u1", where).data
    done = 0
    with io.FileIO(descriptor, closefd=False) as file:
        while done < size:
            count = file.readinto(content[done : done + (_CHUNK << 6)])
            if not count:
                raise FormatError(f"{where}: was {size} bytes long when it was opened, and ends after {done}")
            done += count
    return content.toreadonly()


def _read_stream(stream: Readable, where: str, budget: Budget) -> memoryview:
    content = bytearray()
    while True:
        chunk = stream.read(min(_CHUNK, budget.left + 1))
        if not isinstance(chunk, (bytes, bytearray, memoryview)):
            hint = "open it in binary mode" if isinstance(chunk, str) else "only blocking binary files can be read"
            raise DTypeError(f"{where}: read() gave {type(chunk).__name__}, expected bytes: {hint}")
        if not chunk:
            return memoryview(content).toreadonly()
        budget.take(len(chunk), where)
        try:
            content += chunk
        except MemoryError:
            raise LimitError(f"{where}: the machine has no memory for more than {len(content)} bytes of it") from None
