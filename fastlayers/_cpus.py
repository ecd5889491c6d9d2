"""Number of processors that the machine grants this process: by its affinity, and by the quotas of its control groups."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from ._groups import files

__all__ = ["bound_cpus", "quota_cpus", "usable_cpus"]

_QUOTAS = {"cgroup2": ("cpu.max",), "cgroup": ("cpu.cfs_quota_us", "cpu.cfs_period_us")}


def usable_cpus(root: Path = Path("/")) -> int:
    """Number of processors this process may use, at least 1: those it is bound to, or fewer if its control group has a quota."""
    return min(bound_cpus(), quota_cpus(root))


def bound_cpus() -> int:
    """Number of processors the process is bound to, whatever the calling thread has bound itself to."""
    if sys.version_info >= (3, 13) and (os.environ.get("PYTHON_CPU_COUNT") or "cpu_count" in sys._xoptions):
        return os.process_cpu_count() or 1  # Python was told
    if hasattr(os, "sched_getaffinity"):
        # That of the process is its first thread's, which has its number.
        return len(os.sched_getaffinity(os.getpid())) or 1
    return os.cpu_count() or 1


def quota_cpus(root: Path = Path("/")) -> int:
    """Processors whose time the control groups grant, at least 1; more than any machine has if there is no quota.

    A part of a processor counts as a whole one: with a quota of 1.5, one thread would leave a third of it unused.
    """
    return max(1, min([-(-quota // period) for quota, period in _quotas(root)], default=1 << 20))


def _quotas(root: Path) -> Iterator[tuple[int, int]]:
    """(microseconds of processor time, period) of each limit on this process; "max" and -1 mean none."""
    for kind, texts in files("cpu", _QUOTAS, root):
        words = texts[0].split() if kind == "cgroup2" else texts
        if len(words) == 2 and all(word.isascii() and word.isdigit() for word in words):
            quota, period = int(words[0]), int(words[1])
            if quota > 0 and period > 0:
                yield quota, period
