"""Runs a reader on one input after the other and watches it: errors, time, memory; keeps the inputs that broke a promise."""

from __future__ import annotations

import faulthandler
import gc
import hashlib
import mmap
import re
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from .targets import Target

__all__ = ["GROWTH", "LOADED", "SLOW", "Finding", "Hang", "Session"]

SLOW = 1.0  # seconds of CPU time that no input may take
HANG = 5.0  # seconds of CPU time after which a reader is stopped
DEAD = 60  # seconds after which the process ends itself, because what hangs is not Python
GROWTH = 50 << 20  # bytes over the input's size that the process may grow by, at its worst
STAYS = 48 << 20  # bytes that may stay of all inputs together, after the first WARM
WARM = 5_000
CHECKED = 10_000  # inputs between two looks at what stays
_SLOT = 1 << 20
_PACKAGE = re.compile(r".*/(fastlayers/.*)$")
Key = tuple[Any, ...]
LOADED: Key = ("loaded",)


class Hang(BaseException):
    """Raised in a reader that takes too long; no reader catches it."""


@dataclass
class Finding:
    """An input that broke a promise; `key` tells findings apart."""

    kind: str  # the name of the exception, "slow", "memory" or "stays"
    key: Key
    content: bytes
    report: str
    count: int = 1

    @property
    def name(self) -> str:
        """A name of its own for a file."""
        return f"{self.kind}-{hashlib.sha1(repr(self.key).encode()).hexdigest()[:8]}"


@dataclass
class Session:
    """What was tried with one reader, and what was found. Use as a context manager: signals and limits are put back after it."""

    target: Target
    folder: Path | None = None
    judge_stays: bool = True  # False where an engine keeps things in memory itself
    inputs: int = 0
    loaded: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    findings: dict[Key, Finding] = field(default_factory=dict)
    slowest: tuple[float, bytes] = (0.0, b"")
    peak: int = 0  # bytes that the worst input made the process grow by
    grown: int = 0  # bytes that stay of all inputs after the first ones
    seconds: float = 0.0

    def __enter__(self) -> Session:
        self._begun, self._running, self._stack = 0.0, False, ""
        self._clock, self._cpu = time.perf_counter(), time.process_time()
        self._signal: Any = None
        self._slot: Any = None
        self._settled = -1
        self._warnings = warnings.catch_warnings()
        self._warnings.__enter__()
        warnings.simplefilter("error")
        if hasattr(signal, "setitimer"):
            self._signal = signal.signal(signal.SIGPROF, self._tick)
            signal.setitimer(signal.ITIMER_PROF, SLOW / 4, SLOW / 4)
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            # The input that is being read, in a file of its own: whatever ends the process, it is there.
            path = self.folder / f"{self.target.name}-running.bin"
            path.write_bytes(bytes(_SLOT))
            with path.open("r+b") as file:
                self._slot = mmap.mmap(file.fileno(), _SLOT)
        self._baseline = _reset_peak()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._clock
        faulthandler.cancel_dump_traceback_later()
        if self._signal is not None:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, self._signal)
        self._warnings.__exit__(None, None, None)
        if self._slot is not None and self.folder is not None:
            self._slot.close()
            (self.folder / f"{self.target.name}-running.bin").unlink()

    def _tick(self, number: int, frame: FrameType | None) -> None:
        """Called now and then while CPU time goes by: stops a reader that has had enough of it."""
        if not self._running:
            return
        if time.process_time() - self._begun > HANG:
            self._running = False
            raise Hang
        if not self._stack and time.process_time() - self._begun > SLOW / 2:
            self._stack = "".join(traceback.format_stack(frame))

    def run(self, content: bytes) -> Key | None:
        """One input. Returns where it ended, which is the same for inputs that end alike; None for a finding."""
        if self.inputs % 256 == 0:
            faulthandler.dump_traceback_later(DEAD, exit=True)
        if self._slot is not None:
            self._slot[: len(content) + 8] = len(content).to_bytes(8, "little") + content
        self.inputs += 1
        self._stack = ""
        error: BaseException | None = None
        self._begun, self._running = time.process_time(), True
        try:
            loaded = self.target.read(content)
            self._running = False
        except KeyboardInterrupt:
            raise
        except BaseException as raised:
            self._running = False
            error = raised
        taken = time.process_time() - self._begun
        where: Key
        if error is None:
            self.loaded += loaded
            where = LOADED
        else:
            name = type(error).__name__
            self.errors[name] += 1
            where = (name, *_lines(error.__traceback__))
            if error.__context__ is not None:  # what Python raised first says more
                where += _lines(error.__context__.__traceback__)
            if not isinstance(error, self.target.errors):
                report = "".join(traceback.format_exception(error))
                self._found("hang" if isinstance(error, Hang) else name, where[:1] + where[-4:], content, report)
                return None
            error.__traceback__ = None
            error.__context__ = error.__cause__ = None
        if taken > self.slowest[0]:
            self.slowest = (taken, content)
        if taken > SLOW:
            self._slow(content, taken)
        peak = _peak() - self._baseline
        if peak > GROWTH // 2:
            self.again(content)
        if self.inputs == WARM or (self.inputs > WARM and self.inputs % CHECKED == 0):
            self._stays(content)
        return where

    def _slow(self, content: bytes, taken: float) -> None:
        """Another time, for what is only slow once (imports, another process) is no matter."""
        stack = self._stack
        begun = time.process_time()
        self._begun, self._running = begun, True
        with suppress(*self.target.errors, Hang):
            self.target.read(content)
        self._running = False
        if (again := min(taken, time.process_time() - begun)) > SLOW:
            places = re.findall(r'File ".*/(fastlayers/[^"]*)", line \d+, in (\w+)', stack)
            self._found("slow", ("slow", *places[-3:]), content, f"took {again:.2f} s of CPU time, here in the middle:\n{stack}")

    def again(self, content: bytes) -> None:
        """The input once more, for what it takes in memory: was it this one, or what stays of those before?"""
        gc.collect()
        self._baseline = _reset_peak()
        with suppress(BaseException):
            self.target.read(content)
        peak = _peak() - self._baseline
        self.peak = max(self.peak, peak)
        if peak > GROWTH + len(content):
            key = ("memory", self.target.name)
            self._found("memory", key, content, f"the process grew by {peak >> 20} MB for an input of {len(content)} bytes")
        gc.collect()
        self._baseline = _reset_peak()

    def _stays(self, content: bytes) -> None:
        gc.collect()
        self.peak = max(self.peak, _peak() - self._baseline)
        now = _reset_peak()
        self._baseline = now
        if self._settled < 0:
            self._settled = now
        self.grown = now - self._settled
        if self.judge_stays and self.grown > STAYS:
            report = f"{self.grown >> 20} MB stay of {self.inputs - WARM} inputs; the last one is in the file"
            self._found("stays", ("stays",), content, report)

    def _found(self, kind: str, key: Key, content: bytes, report: str) -> None:
        if key in self.findings:
            self.findings[key].count += 1
            return
        found = self.findings[key] = Finding(kind, key, content, report)
        if self.folder is not None:
            path = self.folder / f"{self.target.name}-{found.name}"
            path.with_suffix(".bin").write_bytes(content)
            path.with_suffix(".txt").write_text(report, encoding="utf-8", errors="backslashreplace")
            last = report.strip().rpartition("\n")[2]
            print(f"  finding: {path}.bin: {last[:200]}", file=sys.stderr, flush=True)

    def report(self) -> str:
        """What was done, in a few lines."""
        self.peak = max(self.peak, _peak() - self._baseline)
        seconds = max(self.seconds or time.perf_counter() - self._clock, 1e-9)
        busy = max(time.process_time() - self._cpu, 1e-9)
        errors = ", ".join(f"{name} {count}" for name, count in self.errors.most_common())
        lines = [
            f"{self.target.name}: {self.inputs} inputs in {seconds:.1f} s ({self.inputs / seconds:.0f}/s, "
            f"{self.inputs / busy:.0f} of CPU time), "
            f"{self.loaded} loaded; {errors}",
            f"  slowest {self.slowest[0] * 1e3:.1f} ms ({len(self.slowest[1])} bytes); memory: peak +{self.peak / 2**20:.1f} MB, "
            f"stays +{self.grown / 2**20:.1f} MB; findings: {len(self.findings)}",
        ]  # fmt: skip
        lines += [
            f"  {f.name} ({f.count} times): {f.report.strip().rpartition(chr(10))[2][:160]}" for f in self.findings.values()
        ]
        return "\n".join(lines)


def _lines(trace: TracebackType | None) -> tuple[tuple[str, int], ...]:
    """Where in fastlayers an error came up: files and lines, from the outside in."""
    found = []
    while trace is not None:
        code = trace.tb_frame.f_code
        if "/fastlayers/" in code.co_filename or "\\fastlayers\\" in code.co_filename:
            found.append((code.co_filename.rpartition("fastlayers")[2], trace.tb_lineno))
        trace = trace.tb_next
    return tuple(found[-8:])


try:
    import resource

    def _peak() -> int:
        """Bytes of this process in memory at most since `_reset_peak` (on Linux)."""
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10

except ImportError:  # Windows

    def _peak() -> int:
        return 0


def _reset_peak() -> int:
    """Bytes of this process in memory, from which on `_peak` counts; what it is elsewhere than on Linux only grows."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return _peak()
    return _peak()
