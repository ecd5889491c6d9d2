"""Loads a malicious file in a process of its own, watched: what it opened, ran, imported, allocated and took."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import json
import os
import pkgutil
import re
import signal
import sys
import sysconfig
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import fastlayers
from fastlayers.errors import Error

from ..formats import onnx_build
from .cases import Case, Sweep, Told

__all__ = ["HANG", "MEMORY", "Outcome", "watch", "watch_both"]

MEMORY = 50 << 20  # bytes over the file's own size that a load may hold at its worst
_SOON = 0.05
HANG = 30  # seconds after which a load is taken to have no end; the report says which took more than one

# What nothing that is loaded may lead to, by the names of Python's audit events, and modules that may not come in by the way.
_FORBIDDEN = (
    "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.spawn", "os.startfile", "subprocess.", "socket.", "pickle.",
    "marshal.", "compile", "exec", "ctypes.", "shutil.", "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link",
    "os.symlink", "os.truncate", "os.chmod", "os.chown", "os.putenv", "os.listdir", "os.scandir", "glob.", "urllib.", "http.",
    "ftplib.", "smtplib.", "webbrowser.", "tempfile.", "code.__new__", "builtins.input", "import",
)  # fmt: skip


@dataclass
class Outcome:
    """What became of one load. `error` is None where it succeeded; `crash` says what else than a result or an error came."""

    error: str | None = None
    message: str = ""
    ours: bool = True
    seconds: float = 0.0
    peak: int = 0
    size: int = 0
    count: int = 1  # files of a sweep
    loaded: int = 0
    opened: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    crash: str = ""


def watch(case: Case | Sweep, memory: bool = False) -> Outcome | None:
    """What became of the case in a child: from a file, or from `memory`, None if it cannot be. Needs ``os.fork``."""
    _import_everything()
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top) / "model"
        folder.mkdir()
        memory = memory or isinstance(case, Sweep)
        task = _sweep(case) if isinstance(case, Sweep) else _single(case, folder, memory)
        # What comes from memory has no folder: no file at all may be opened.
        return None if task is None else _forked([(task, [] if memory else [folder])], Path(top) / "outcome")[0]


def watch_both(case: Case) -> list[Outcome]:
    """What became of the case from a file and, if it is one file, from memory, one after the other in one child."""
    _import_everything()
    with tempfile.TemporaryDirectory() as top:
        # A case may write next to its folder, so that each load has its own surroundings.
        folder, other = Path(top) / "file" / "model", Path(top) / "memory" / "model"
        folder.mkdir(parents=True)
        other.mkdir(parents=True)
        tasks = [(_single(case, folder, False), [folder]), (_single(case, other, True), [])]
        return _forked([(task, folders) for task, folders in tasks if task is not None], Path(top) / "outcome")


@functools.cache
def _import_everything() -> None:
    """Every module that a load may import when it is needed, so that an import which is then seen is the file's doing."""
    for module in ("json", "mmap", "zlib", "encodings.cp437", "encodings.latin_1"):
        importlib.import_module(module)
    for package in ("formats", "graph", "ir", "layers", "model", "operators", "passes", "program", "stream"):
        top = importlib.import_module(f"fastlayers.{package}")
        for found in pkgutil.walk_packages(top.__path__, top.__name__ + "."):
            importlib.import_module(found.name)
    fastlayers.load(onnx_build.model(onnx_build.graph([onnx_build.node("Relu", "x", "y")], "x", "y")))


def _single(case: Case, folder: Path, memory: bool) -> Callable[[_Watch], Outcome] | None:
    content = case.make(folder)
    if memory and isinstance(content, Path):
        return None
    if isinstance(content, bytes):
        size = len(content)
        if not memory:
            (folder / "model").write_bytes(content)
            content = folder / "model"
    else:
        size = sum(f.lstat().st_size for f in folder.rglob("*") if f.is_file() and not f.is_symlink())
    return lambda watching: _load(lambda: case.read(content), size, watching)


def _sweep(case: Sweep) -> Callable[[_Watch], Outcome]:
    def run(watching: _Watch) -> Outcome:
        total = Outcome(count=0)
        for file in case.contents():
            content = file.content if isinstance(file, Told) else file
            found = _load(lambda content=content: case.read(content), len(content), watching)  # type: ignore[misc]
            total.count += 1
            total.loaded += found.error is None
            if found.seconds >= total.seconds:
                total.seconds = found.seconds
            if found.peak - found.size >= total.peak - total.size:
                total.peak, total.size = found.peak, found.size
            if found.crash or not _is_told(found, file, case):
                total.error, total.ours = found.error, False
                which = file.name if isinstance(file, Told) else content[:64]
                total.message = f"file {total.count}, {which!r}, got {found.error}: {found.message[:1000]}"
                total.crash = found.crash
                break
            total.error = found.error or total.error
        return total

    return run


def _is_told(found: Outcome, file: bytes | Told, case: Sweep) -> bool:
    """Whether a file of a sweep got what it must get."""
    if not found.ours:
        return False
    if not isinstance(file, Told):
        return found.error is None or found.error in [e.__name__ for e in case.errors]
    if file.error is None:
        return found.error is None
    return found.error == file.error.__name__ and re.search(file.match, found.message) is not None


class _Watch:
    """Looks on at what the interpreter does, while `on`."""

    def __init__(self, allowed: list[str]) -> None:
        self.on = False
        self.opened: list[str] = []
        self.events: list[str] = []
        self._allowed = allowed

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event == "open":
            path, mode, flags = arguments
            name = os.fsdecode(path) if isinstance(path, (str, bytes, os.PathLike)) else f"descriptor {path}"
            writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC) if isinstance(flags, int) else 0
            if writes or (isinstance(mode, str) and set(mode) & set("wax+")):
                self.events.append(f"open for writing: {name}")
            if isinstance(path, int):
                return
            # Where no link is followed, the name itself is all that is opened.
            if isinstance(flags, int) and flags & getattr(os, "O_NOFOLLOW", 0):
                real = os.path.join(os.path.realpath(os.path.dirname(name)), os.path.basename(name))
            else:
                real = os.path.realpath(name)
            if not any(real == a or real.startswith(a + os.sep) for a in self._allowed):
                self.opened.append(name)
        elif event.startswith(_FORBIDDEN) and not (event == "import" and arguments[0] in sys.modules):
            self.events.append(f"{event} {arguments!r}"[:200])


def _load(call: Callable[[], Any], size: int, watching: _Watch) -> Outcome:
    """Twice: for how long it takes and how the process grows, which counting would falsify; then for what Python holds, be it
    never touched, if that is soon done: what takes longer does touch it."""
    found = Outcome(size=size)
    seconds = 0.0
    for counting in (False, True):
        if counting:
            seconds = found.seconds
            if seconds > _SOON:
                break
            tracemalloc.start()
        else:
            _reset_peak()
            before = _resident()
        watching.on = True
        begin = time.perf_counter()
        try:
            result = call()
            found.error, found.loaded = None, 1
            del result
        except Error as error:
            found.error, found.message = type(error).__name__, str(error)
        except BaseException as error:
            found.error, found.message, found.ours = type(error).__name__, str(error), False
            found.crash = f"{type(error).__name__}: {error}"[:300]
        finally:
            found.seconds = time.perf_counter() - begin
            watching.on = False
            if counting:
                found.peak = max(found.peak, tracemalloc.get_traced_memory()[1])
                tracemalloc.stop()
            else:
                found.peak = _resident(peak=True) - before
    found.seconds = seconds
    return found


def _reset_peak() -> None:
    with contextlib.suppress(OSError):  # not Linux, or not allowed: what Python and numpy allocate is counted all the same
        Path("/proc/self/clear_refs").write_text("5")


def _resident(peak: bool = False) -> int:
    """Bytes of this process in memory, now or at most since `_reset_peak`; 0 where the system does not say."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    word = "VmHWM:" if peak else "VmRSS:"
    # Pages of mapped files are the system's, and are counted with the file's own size.
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith(word)), 0)


def _forked(tasks: list[tuple[Callable[[_Watch], Outcome], list[Path]]], answer: Path) -> list[Outcome]:
    """Runs the tasks in a fork, each watched by a hook of its own; what ends the child too early is the last outcome."""
    always = [os.path.realpath(p) for p in (sys.prefix, sys.base_prefix, sysconfig.get_paths()["stdlib"])]
    always += [str(Path(__file__).resolve().parents[2] / "fastlayers")]
    child = os.fork()
    if child == 0:
        status = 1
        try:
            gc.freeze()  # what the parent has is not looked through, which would copy its pages
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            with answer.open("w") as file:
                for task, folders in tasks:
                    signal.alarm(HANG)
                    # Names that are opened below a folder's descriptor are told without that folder: taken to be the model's.
                    os.chdir(folders[0] if folders else answer.parent)
                    watching = _Watch([*always, *(os.path.realpath(p) for p in folders)])
                    sys.addaudithook(watching)
                    outcome = task(watching)
                    outcome.opened, outcome.events = watching.opened[:5], watching.events[:5]
                    print(json.dumps(asdict(outcome)), file=file, flush=True)
            status = 0
        finally:
            os._exit(status)
    _, ended = os.waitpid(child, 0)
    found = [Outcome(**json.loads(line)) for line in answer.read_text().splitlines()] if answer.exists() else []
    if os.WIFSIGNALED(ended):
        number = os.WTERMSIG(ended)
        found.append(Outcome(ours=False, crash="took no end" if number == signal.SIGALRM else f"killed by signal {number}"))
    elif len(found) < len(tasks):
        found.append(Outcome(ours=False, crash="the child died without a word"))
    return found
