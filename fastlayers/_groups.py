"""Linux' control groups: the files in which this process's own group, and every group around it, state their limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from .errors import is_shortage

__all__ = ["files"]


def files(controller: str, names: Mapping[str, tuple[str, ...]], root: Path = Path("/")) -> Iterator[tuple[str, list[str]]]:
    """(kind, texts of the files) for each group that has limits on this process; "" for a file that is not there.

    Nothing where there are no control groups or they cannot be read.

    Args:
        controller: version 1's name of what is limited: "cpu", "memory".
        names: of the files to read, by kind: "cgroup2", or "cgroup" for version 1.
        root: where the file system begins.

    Raises:
        OSError: there is no file handle left to read them with.
    """
    groups = _groups(controller, root)
    for kind, within, mounted in _mounts(controller, root):
        path = groups.get(kind)
        if path is None:
            continue
        # Inside a container the mount may begin below the group that the process is told; then the mount is all that shows.
        relative = path.relative_to(within) if path.is_relative_to(within) else PurePosixPath()
        if ".." in relative.parts:
            relative = PurePosixPath()
        for folder in (relative, *relative.parents):
            place = root / str(mounted).lstrip("/") / folder
            yield kind, [_read(place / name).strip() for name in names[kind]]


def _groups(controller: str, root: Path) -> dict[str, PurePosixPath]:
    """This process's control groups by kind: "cgroup2", or "cgroup" for version 1's controller."""
    groups = {}
    for line in _read(root / "proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            groups["cgroup2"] = PurePosixPath(path)
        elif controller in controllers.split(","):
            groups["cgroup"] = PurePosixPath(path)
    return groups


def _mounts(controller: str, root: Path) -> Iterator[tuple[str, PurePosixPath, PurePosixPath]]:
    """(kind, path of the group that the mount shows as its root, where it is mounted) of the file systems of control groups."""
    for line in _read(root / "proc/self/mountinfo").splitlines():
        left, separator, right = line.partition(" - ")
        fields, kinds = left.split(), right.split()
        if not separator or len(fields) < 5 or len(kinds) < 3:
            continue
        if kinds[0] == "cgroup2" or (kinds[0] == "cgroup" and controller in kinds[2].split(",")):
            yield kinds[0], PurePosixPath(_unescaped(fields[3])), PurePosixPath(_unescaped(fields[4]))


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError as error:
        if is_shortage(error):
            raise
        return ""


def _unescaped(text: str) -> str:
    """mountinfo writes blanks and backslashes as octal escapes."""
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text
