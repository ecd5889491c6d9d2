"""The number of threads: what may be set, what the environment may say, what the machine grants (with made-up control groups)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers import _cpus, threads
from fastlayers.kernels import dispatch
from tests.test_dispatch import python

V2 = "30 25 0:26 {within} {mounted} rw,nosuid shared:4 - cgroup2 cgroup rw,nsdelegate\n"
V1 = "31 25 0:27 {within} {mounted} rw,nosuid shared:9 - cgroup cgroup rw,{controllers}\n"
OTHER = "25 1 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw\n"


@pytest.fixture(autouse=True)
def _unset(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = fl.get_num_threads()
    monkeypatch.delenv(threads.VARIABLE, raising=False)
    monkeypatch.delenv("PYTHON_CPU_COUNT", raising=False)
    for name in ("_count", "_granted", "_quota"):
        monkeypatch.setattr(threads, name, None)
    yield
    monkeypatch.undo()
    fl.set_num_threads(before)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Builds a file system from {path: text} and returns how many of its 64 processors may be used."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(64)), raising=False)

    def count(files: dict[str, str]) -> int:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return _cpus.usable_cpus(tmp_path)

    return count


def v2(group: str = "/", within: str = "/", mounted: str = "/sys/fs/cgroup", **limits: str) -> dict[str, str]:
    """A system with control groups of version 2; `limits`: cpu.max by folder, "__" for "/" and "top" for the mount itself."""
    base = mounted.replace("\\040", " ").lstrip("/")
    files = {"proc/self/cgroup": f"0::{group}\n", "proc/self/mountinfo": OTHER + V2.format(within=within, mounted=mounted)}
    for folder, limit in limits.items():
        place = "" if folder == "top" else folder.replace("__", "/") + "/"
        files[f"{base}/{place}cpu.max"] = limit + "\n"
    return files


def test_no_control_groups(machine: Callable[..., int]) -> None:
    assert machine({}) == 64


@pytest.mark.parametrize(
    ("limit", "count"),
    [
        ("max 100000", 64),
        ("200000 100000", 2),
        ("150000 100000", 2),
        ("100000 100000", 1),
        ("1000 100000", 1),
        ("25000 50000", 1),
        ("6400000 100000", 64),
        ("12800000 100000", 64),
        ("300000", 64),
        ("", 64),
        ("garbage here", 64),
        ("0 0", 64),
        ("-1 100000", 64),
        ("200000 0", 64),
    ],
)
def test_quota(machine: Callable[..., int], limit: str, count: int) -> None:
    assert machine(v2(top=limit)) == count


def test_quota_of_the_group_and_of_those_around_it(machine: Callable[..., int]) -> None:
    files = v2(
        "/a/b/c", top="max 100000", a="800000 100000", a__b="300000 100000", a__b__c="max 100000", a__other="100000 100000"
    )
    assert machine(files) == 3


def test_own_quota_is_the_lowest(machine: Callable[..., int]) -> None:
    assert machine(v2("/a/b", a="800000 100000", a__b="500000 100000")) == 5


@pytest.mark.parametrize("group", ["/docker/id", "/../../elsewhere", "/docker/id/../x"])
def test_a_container_sees_its_own_group_as_the_mount(machine: Callable[..., int], group: str) -> None:
    assert machine(v2(group, within="/docker/id", top="400000 100000")) == 4


def test_a_mount_whose_name_has_a_blank(machine: Callable[..., int]) -> None:
    assert machine(v2("/a", mounted="/my\\040groups", a="200000 100000")) == 2


def test_version_1(machine: Callable[..., int]) -> None:
    files = {
        "proc/self/cgroup": "5:cpuset:/other\n4:cpu,cpuacct:/a/b\n1:name=systemd:/\n0::/\n",
        "proc/self/mountinfo": OTHER
        + V1.format(within="/", mounted="/sys/fs/cgroup/cpuset", controllers="cpuset")
        + V1.format(within="/", mounted="/sys/fs/cgroup/cpu,cpuacct", controllers="cpu,cpuacct"),
        "sys/fs/cgroup/cpuset/other/cpu.cfs_quota_us": "100000\n",
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
        "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us": "600000\n",
        "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us": "100000\n",
        "sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us": "-1\n",
        "sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us": "100000\n",
    }
    assert machine(files) == 6


def test_affinity_and_quota_the_lower_one_counts(machine: Callable[..., int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {1, 4, 5})
    assert machine(v2(top="800000 100000")) == 3


def test_default_is_what_this_machine_grants() -> None:
    assert 1 <= fl.get_num_threads() == _cpus.usable_cpus() <= 256


def test_a_changed_affinity_changes_the_number(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bound = {0, 1, 2}
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: bound if pid == os.getpid() else {0}, raising=False)
    monkeypatch.setattr(_cpus, "quota_cpus", lambda: 64)
    assert fl.get_num_threads() == 3
    bound.add(7)
    assert fl.get_num_threads() == 4  # at once for who asks; the engine asks once a second
    threads.refresh()
    assert engine.get_threads() == 4
    # Neither what was set nor what the environment says follows.
    fl.set_num_threads(2)
    bound.clear()
    threads.refresh()
    assert fl.get_num_threads() == engine.get_threads() == 2


def test_a_changed_quota_changes_the_number(monkeypatch: pytest.MonkeyPatch) -> None:
    quota, now = [5], [100.0]
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(64)), raising=False)
    monkeypatch.setattr(_cpus, "quota_cpus", lambda: quota[0])
    monkeypatch.setattr(threads.time, "monotonic", lambda: now[0])
    assert fl.get_num_threads() == 5
    quota[0] = 3
    now[0] += 0.9
    assert fl.get_num_threads() == 5
    now[0] += 0.2
    assert fl.get_num_threads() == 3


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no affinity")
def test_a_run_follows_the_process_not_its_thread() -> None:
    """In a process with two processors at least: a thread that binds itself does not change the number, the process does."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one processor")
    script = """if True:
        import os, threading, time
        import numpy as np
        import fastlayers as fl
        from fastlayers.kernels.aot import _engine
        many = fl.get_num_threads()
        x = np.ones((512, 512), np.float32)
        def bound():
            os.sched_setaffinity(threading.get_native_id(), {min(os.sched_getaffinity(0))})
            for _ in range(3):
                fl.functional.linear(x, x)
            assert fl.get_num_threads() == _engine.get_threads() == many
        thread = threading.Thread(target=bound)
        thread.start()
        thread.join()
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        assert fl.get_num_threads() == 1
        end = time.monotonic() + 60
        while _engine.get_threads() > 1 and time.monotonic() < end:
            fl.functional.linear(x, x)
        print(many > 1, _engine.get_threads())
    """
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout == "True 1\n", done.stderr


@pytest.mark.parametrize(("text", "count"), [("1", 1), ("7", 7), (" 12 ", 12), ("256", 256), ("007", 7)])
def test_environment(monkeypatch: pytest.MonkeyPatch, text: str, count: int) -> None:
    monkeypatch.setenv(threads.VARIABLE, text)
    assert fl.get_num_threads() == count


@pytest.mark.parametrize("text", ["0", "-1", "257", "two", "2.0", "1e2", "²", "9" * 5000, "1,2", "0x2"])
def test_bad_environment(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(threads.VARIABLE, text)
    for _ in range(2):  # it is told again at the next use
        with pytest.raises(fl.errors.ArgumentError, match=r"^FASTLAYERS_NUM_THREADS: expected an integer from 1 to 256, got '"):
            fl.get_num_threads()
    fl.set_num_threads(3)
    assert fl.get_num_threads() == 3


def test_environment_is_read_at_first_use_not_at_import() -> None:
    script = "import os, fastlayers as fl; os.environ['FASTLAYERS_NUM_THREADS'] = '5'; print(fl.get_num_threads())"
    environment = {**os.environ, threads.VARIABLE: "nonsense"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout == "5\n", done.stderr


@pytest.mark.parametrize("n", [1, 2, 256, np.int64(3), np.uint8(4)])
def test_set(n: Any) -> None:
    fl.set_num_threads(n)
    assert fl.get_num_threads() == n and type(fl.get_num_threads()) is int


def test_the_engine_follows_at_once(engine: Any) -> None:
    for n in (3, 1, 256):
        fl.set_num_threads(n)
        assert engine.get_threads() == n


def test_an_engine_loaded_later_is_told(engine: Any) -> None:
    if not dispatch.levels():
        pytest.skip("this processor can run no level of the engine")
    fl.set_num_threads(5)
    engine.set_threads(1)
    with fl.kernels.use("aot"):
        assert engine.get_threads() == 5


@pytest.mark.parametrize("n", [0, -1, 257, 2**70])
def test_set_out_of_range(n: int) -> None:
    fl.set_num_threads(2)
    with pytest.raises(
        fl.errors.ArgumentError, match=rf"^set_num_threads: n is out of range: expected an integer from 1 to 256, got {n}$"
    ):
        fl.set_num_threads(n)
    assert fl.get_num_threads() == 2


@pytest.mark.parametrize("n", [True, False, 2.0, "2", None, np.float32(2), np.bool_(True), [2]])
def test_set_no_integer(n: Any) -> None:
    with pytest.raises(fl.errors.DTypeError, match=r"^set_num_threads: n is a \w+: expected an integer from 1 to 256, got "):
        fl.set_num_threads(n)


def test_import_starts_no_thread(engine: Any) -> None:
    script = """if True:
        import threading
        from fastlayers import threads
        from fastlayers.kernels.aot import _engine
        print(threading.active_count(), _engine.pool_workers(), threads._count)
    """
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout == "1 0 None\n", done.stderr


@pytest.mark.parametrize(
    ("shared", "own", "want"),
    [
        ("1", "", 1),
        ("1,4", "", 1),
        ("2", "1", 1),
        ("1", "2", 2),  # ours goes before it
        ("0", "", None),
        ("many", "", None),
        ("-3", "", None),
        ("100", "", None),  # an upper bound alone
        ("", "", None),
    ],
)
def test_the_variable_of_other_libraries_is_a_bound(shared: str, own: str, want: int | None) -> None:
    environment = {"OMP_NUM_THREADS": shared} | ({"FASTLAYERS_NUM_THREADS": own} if own else {})
    code = "import fastlayers as fl; from fastlayers import _cpus; print(fl.get_num_threads(), _cpus.usable_cpus())"
    found, usable = map(int, python(code, **environment).split())
    assert found == (usable if want is None else want)


LIMITS = """
import fastlayers
{first}
import numpy as np, fastlayers as fl, threadpoolctl
from fastlayers import threads
fl.functional.relu(np.ones(3))
threads.refresh()
granted = fl.get_num_threads()
def found():
    return [(i["num_threads"], i["version"]) for i in threadpoolctl.threadpool_info() if i["user_api"] == "fastlayers"]
assert found() == [(granted, fl.__version__)], found()
with threadpoolctl.threadpool_limits(7):
    assert fl.get_num_threads() == 7 and found()[0][0] == 7
    with threadpoolctl.threadpool_limits(1, user_api="fastlayers"):
        assert fl.get_num_threads() == 1
    assert fl.get_num_threads() == 7
assert threads._count is None and fl.get_num_threads() == granted, "it follows the machine again"
fl.set_num_threads(3)
with threadpoolctl.threadpool_limits(granted):
    assert fl.get_num_threads() == granted
assert fl.get_num_threads() == 3
with threadpoolctl.threadpool_limits(10**6):
    assert fl.get_num_threads() == threads.MOST
"""


@pytest.mark.skipif(not dispatch.levels(), reason="the compiled engine is not built here")
@pytest.mark.parametrize("first", ["import threadpoolctl", "fastlayers.functional.relu([1.0])"])
def test_threadpoolctl_finds_the_engine_and_gives_back_what_it_limits(first: str) -> None:
    pytest.importorskip("threadpoolctl")
    python(LIMITS.format(first=first))
