"""How many processors the machine grants this process: its affinity, and the quotas of its control groups."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

__all__ = ["usable_cpus"]


def usable_cpus(root: Path = Path("/")) -> int:
    """How many processors this process may use, at least 1: what it is bound to, or less if its control group has a quota.

    A part of a processor counts as a whole one: with a quota of 1.5, one thread would leave a third of it unused.
    """
    bound: int | None
    if sys.version_info >= (3, 13):
        bound = os.process_cpu_count()
    elif hasattr(os, "sched_getaffinity"):
        bound = len(os.sched_getaffinity(0))
    else:
        bound = os.cpu_count()
    quotas = [-(-quota // period) for quota, period in _quotas(root)]
    return max(1, min([bound or 1, *quotas]))


def _quotas(root: Path) -> Iterator[tuple[int, int]]:
    """(microseconds of processor time, period) of each limit on this process: of its control group and of every group around it.

    Linux only; nothing where there are no control groups or they cannot be read. `root` is where the file system begins.
    """
    groups = _groups(root)
    for kind, within, mounted in _mounts(root):
        path = groups.get(kind)
        if path is None:
            continue
        # Inside a container the mount may begin below the group that the process is told; then the mount is all that shows.
        relative = path.relative_to(within) if path.is_relative_to(within) else PurePosixPath()
        if ".." in relative.parts:
            relative = PurePosixPath()
        for folder in (relative, *relative.parents):
            yield from _quota(root / str(mounted).lstrip("/") / folder, kind)


def _groups(root: Path) -> dict[str, PurePosixPath]:
    """This process's control groups by kind: "cgroup2", or "cgroup" for version 1's controller of processor time."""
    groups = {}
    for line in _read(root / "proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            groups["cgroup2"] = PurePosixPath(path)
        elif "cpu" in controllers.split(","):
            groups["cgroup"] = PurePosixPath(path)
    return groups


def _mounts(root: Path) -> Iterator[tuple[str, PurePosixPath, PurePosixPath]]:
    """(kind, path of the group that the mount shows as its root, where it is mounted) of the file systems of control groups."""
    for line in _read(root / "proc/self/mountinfo").splitlines():
        left, separator, right = line.partition(" - ")
        fields, kinds = left.split(), right.split()
        if not separator or len(fields) < 5 or len(kinds) < 3:
            continue
        if kinds[0] == "cgroup2" or (kinds[0] == "cgroup" and "cpu" in kinds[2].split(",")):
            yield kinds[0], PurePosixPath(_unescaped(fields[3])), PurePosixPath(_unescaped(fields[4]))


def _quota(folder: Path, kind: str) -> Iterator[tuple[int, int]]:
    """The limit that one group's own files state, if any: "max" and -1 mean none."""
    if kind == "cgroup2":
        words = _read(folder / "cpu.max").split()
    else:
        words = [_read(folder / "cpu.cfs_quota_us").strip(), _read(folder / "cpu.cfs_period_us").strip()]
    if len(words) == 2 and all(word.isascii() and word.isdigit() for word in words):
        quota, period = int(words[0]), int(words[1])
        if quota > 0 and period > 0:
            yield quota, period


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def _unescaped(text: str) -> str:
    """mountinfo writes blanks and backslashes as octal numbers."""
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text
