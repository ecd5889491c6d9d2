"""The machine's memory as its control groups grant it (with made-up file systems)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fastlayers import _machine

GB = 1 << 30
V2 = "30 25 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup rw\n"
V1 = "31 25 0:27 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """The bytes that a machine of 64 GB grants whose file system is made of {path: text}."""
    sizes = {"SC_PHYS_PAGES": 64 * GB // 4096, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(os, "sysconf", lambda name: sizes[name], raising=False)
    monkeypatch.setattr(_machine, "_physical", _machine._physical.__wrapped__)

    def granted(files: dict[str, str]) -> int:
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return _machine.memory(tmp_path)

    return granted


def test_no_control_groups(machine: Callable[..., int]) -> None:
    assert machine({}) == 64 * GB


@pytest.mark.parametrize(
    ("limits", "granted"),
    [
        (("max", "max", "max"), 64 * GB),
        ((str(GB), "max", "max"), GB),
        (("max", str(3 * GB), "max"), 3 * GB),
        (("max", "max", str(2 * GB)), 2 * GB),
        ((str(5 * GB), str(3 * GB), str(4 * GB)), 3 * GB),
        (("max", "0", "none"), 64 * GB),
        (("max", str(1000 * GB), ""), 64 * GB),
    ],
)
def test_the_least_of_nested_groups(machine: Callable[..., int], limits: tuple[str, ...], granted: int) -> None:
    files = {"proc/self/cgroup": "0::/a/b\n", "proc/self/mountinfo": V2}
    for folder, limit in zip(("", "a/", "a/b/"), limits, strict=True):
        files[f"sys/fs/cgroup/{folder}memory.max"] = limit + "\n"
    files["sys/fs/cgroup/other/memory.max"] = "1\n"
    assert machine(files) == granted


def test_version_1(machine: Callable[..., int]) -> None:
    files = {
        "proc/self/cgroup": "5:cpu:/x\n4:memory:/a/b\n0::/\n",
        "proc/self/mountinfo": V1,
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        "sys/fs/cgroup/memory/a/memory.limit_in_bytes": f"{6 * GB}\n",
        "sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": f"{7 * GB}\n",
    }
    assert machine(files) == 6 * GB


def test_a_container_sees_its_own_group_as_the_mount(machine: Callable[..., int]) -> None:
    files = {
        "proc/self/cgroup": "0::/docker/id\n",
        "proc/self/mountinfo": V2.replace(" / /sys", " /docker/id /sys"),
        "sys/fs/cgroup/memory.max": f"{GB}\n",
    }
    assert machine(files) == GB
