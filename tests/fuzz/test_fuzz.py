"""A short round of every reader, with inputs that are the same every time; and that the fuzzer finds what it is to find."""

from __future__ import annotations

import gc
import mmap
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from fastlayers.errors import FormatError

from .__main__ import NAMES
from .corpus import LARGEST, corpus
from .engines import randomly
from .mutate import MUTATORS
from .session import Session
from .targets import TARGETS, Target

REGRESSIONS = sorted((Path(__file__).parent / "regressions").glob("*.bin"))
# About a second each.
INPUTS = {"keras": 300, "tflite": 900, "onnx": 1000, "own": 800, "index": 1000, "any": 1200, "torch": 1200, "npy": 4000}


def ran(target: Target, inputs: int, seed: int = 0) -> Session:
    with Session(target) as session:
        randomly(session, lambda: session.inputs >= inputs, seed, 0)
    return session


def test_every_reader_has_all_that_it_needs() -> None:
    assert tuple(TARGETS) == NAMES and {*MUTATORS, "any"} == {*NAMES}
    for name in NAMES:
        contents = corpus(name)
        assert len(contents) >= 8 and max(map(len, contents.values())) <= LARGEST
        with Session(TARGETS[name]) as session:
            for content in contents.values():
                session.run(content)
        assert not session.findings and session.loaded > len(contents) // 2, session.report()


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES)
def test_a_short_round(name: str) -> None:
    session = ran(TARGETS[name], INPUTS.get(name, 2000))
    assert not session.findings, "\n".join(f"{f.report}\n{f.content!r}" for f in session.findings.values())
    assert session.loaded > session.inputs // 100 and session.errors["FormatError"] > session.inputs // 10, session.report()


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: path.stem)
@pytest.mark.sampled(4)
def test_what_was_found_once(path: Path) -> None:
    """The name of the file is the format, and what went wrong with it."""
    with Session(TARGETS[path.stem.partition("-")[0]]) as session:
        session.run(path.read_bytes())
        session.again(path.read_bytes())
    assert not session.findings, next(iter(session.findings.values())).report


HELD: list[bytearray | mmap.mmap] = []


def _foreign(content: bytes) -> bool:
    return {}[content]  # type: ignore[no-any-return]


def _hanging(content: bytes) -> bool:
    while True:
        pass


def _slow(content: bytes) -> bool:
    end = time.process_time() + 0.15
    while time.process_time() < end:
        pass
    return True


def _large(content: bytes) -> bool:
    return len(bytearray(80 << 20)) > 0


def _deep(content: bytes) -> bool:
    return _deep(content)


def _warning(content: bytes) -> bool:
    warnings.warn("x", RuntimeWarning, stacklevel=1)
    return True


def _of_another_kind(content: bytes) -> bool:
    raise OSError("x")


BUGS: dict[str, Callable[[bytes], bool]] = {
    "KeyError": _foreign, "hang": _hanging, "slow": _slow, "memory": _large, "RecursionError": _deep, "RuntimeWarning": _warning,
    "OSError": _of_another_kind,
}  # fmt: skip


@pytest.mark.parametrize("kind", BUGS)
@pytest.mark.sampled(3)
def test_planted_bugs_are_found(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.session.SLOW", 0.1)
    monkeypatch.setattr("tests.fuzz.session.HANG", 0.5)
    if kind == "memory" and not sys.platform.startswith("linux"):
        pytest.skip("only Linux tells how much memory one input took")

    def read(content: bytes) -> bool:
        if content == b"bad":
            return BUGS[kind](content)
        raise FormatError("good")

    with Session(Target("npy", read, (FormatError,), ()), tmp_path) as session:
        for content in (b"good", b"bad", b"good", b"bad") if kind != "hang" else (b"good", b"bad", b"good"):
            session.run(content)
    (found,) = session.findings.values()
    assert found.kind == kind and found.content == b"bad", found
    assert (tmp_path / f"npy-{found.name}.bin").read_bytes() == b"bad"
    assert (tmp_path / f"npy-{found.name}.txt").read_text()


@pytest.mark.exhaustive
def test_memory_that_stays_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("only Linux tells how much memory there is now")
    monkeypatch.setattr("tests.fuzz.session.WARM", 10)
    monkeypatch.setattr("tests.fuzz.session.CHECKED", 10)

    def read(content: bytes) -> bool:
        HELD.append(mmap.mmap(-1, 2 << 20))  # pages of its own: what other tests have freed is not used again
        HELD[-1].write(b"\1" * (2 << 20))
        return True

    gc.collect()
    with Session(Target("npy", read, (), ())) as session:
        for _ in range(100):
            session.run(b"x")
    HELD.clear()
    assert [f.kind for f in session.findings.values()] == ["stays"]


def test_the_same_seed_gives_the_same_inputs() -> None:
    seen: list[list[bytes]] = []
    for seed in (1, 1, 2):
        seen.append([])

        def read(content: bytes) -> bool:
            seen[-1].append(content)
            raise FormatError("x")

        ran(Target("zip", read, (FormatError,), ()), 200, seed)
    assert seen[0][:40] == seen[1][:40] != seen[2][:40]


def test_a_crash_leaves_the_input_behind(tmp_path: Path) -> None:
    """Of a process that is killed: what it read is in a file."""
    code = (
        "import os, sys; from pathlib import Path\n"
        "from tests.fuzz.session import Session; from tests.fuzz.targets import Target\n"
        "with Session(Target('npy', lambda c: os.kill(os.getpid(), 9), (), ()), Path(sys.argv[1])) as s: s.run(b'evil')"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=Path(__file__).parents[2], check=False)
    left = (tmp_path / "npy-running.bin").read_bytes()
    assert done.returncode == -9 and left[8 : 8 + int.from_bytes(left[:8], "little")] == b"evil"
