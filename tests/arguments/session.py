"""Calls run in children with limits on memory and processor time: one that hangs, dies or takes too much is told by its name."""

from __future__ import annotations

import json
import mmap
import os
import resource
import signal
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from . import judge
from .calls import Call
from .pool import EXTREME, FORMS, POOL

__all__ = ["Report", "Trial", "run", "trials"]

SECONDS = 5  # of processor time for one call
ROOM = 1 << 30  # bytes that a child may take beyond what it has before its first call


_FUNCTIONS, _CALLED = ("function", "type"), ("source", "attention", "custom_encoder", "custom_decoder")


class Trial(NamedTuple):
    """A call with some of its arguments replaced: by values of the pool, or by other forms of themselves."""

    call: int
    replaced: tuple[tuple[str, str], ...]

    def text(self, calls: list[Call]) -> str:
        return f"{calls[self.call].name}: " + ", ".join(f"{a} = {label}" for a, label in self.replaced)


class Report(NamedTuple):
    """How many calls ran, how many were answered and refused, and what was wrong: the trial and why."""

    ran: int
    answered: int
    refused: int
    faults: list[tuple[str, str]]


def trials(calls: list[Call], singles: int | None, doubles: int, seed: int) -> list[Trial]:
    """Trials drawn from a seed: so many of all that replace one argument (None: all of them), so many that replace two."""
    rng = np.random.default_rng(seed)
    all_singles = []
    seen: Counter[Any] = Counter()
    for i, call in enumerate(calls):
        for argument, value in call.arguments.items():
            key = (call.name, argument, type(value))
            seen[key] += 1
            labels = [label for label, (kind, _) in FORMS.items() if type(value) is kind]
            if seen[key] == 1:
                own = _FUNCTIONS if callable(value) or argument in _CALLED else ()  # what those raise is the caller's
                labels += [label for label in POOL if label not in call.slow and label not in own]
            all_singles += [Trial(i, ((argument, label),)) for label in labels]
    if singles is not None and singles < len(all_singles):
        all_singles = [all_singles[k] for k in sorted(rng.choice(len(all_singles), singles, replace=False))]
    pairs = []
    wide = [i for i, call in enumerate(calls) if sum(not callable(v) for v in call.arguments.values()) > 1]
    for _ in range(doubles):
        i = int(rng.choice(wide))
        labels = [label for label in POOL if label not in calls[i].slow]
        two = rng.choice([a for a, v in calls[i].arguments.items() if not callable(v)], 2, replace=False)
        drawn = [(str(a), labels[rng.integers(len(labels))]) for a in two]
        if not any(a in _CALLED and label in _FUNCTIONS for a, label in drawn):
            pairs.append(Trial(i, tuple(drawn)))
    return all_singles + sorted(pairs)


def _given(call: Call, trial: Trial) -> tuple[dict[str, Any], bool]:
    """The arguments of a trial, and whether they mean what those of the call mean."""
    given, same = dict(call.arguments), True
    for argument, label in trial.replaced:
        if label in FORMS:
            given[argument] = FORMS[label][1](given[argument])
        else:
            given[argument], same = POOL[label](), False
    return given, same


def _judged(call: Call, trial: Trial) -> judge.Outcome:
    given, same = _given(call, trial)
    outcome = judge.attempt(call.run, given, call.files)
    if outcome.results is None:
        return outcome
    for argument, label in trial.replaced:
        fault = None if label in FORMS else judge.misread(call.kinds.get(argument, ""), given[argument])
        if fault:
            return outcome._replace(fault=fault)
    if same:
        plain = judge.attempt(call.run, call.arguments)
        fault = judge.differs(outcome.results, plain.results or [], bits=True)
        return outcome._replace(fault=fault and f"another result for the same argument: {fault}")
    return outcome


def _extreme(call: Call, trial: Trial) -> bool:
    """Whether a number that float32 can hardly take is given for a number, not for a size."""
    return any(label in EXTREME and not call.kinds.get(a, "").startswith("int") for a, label in trial.replaced)


def _child(path: str) -> None:
    """Runs the trials of a file from the one that its first line names; writes how far it is, and what is wrong."""
    from fastlayers.kernels import dispatch

    from . import table

    job = json.loads(Path(path).read_text())
    calls = table.calls()
    todo = [Trial(c, tuple(map(tuple, r))) for c, r in job["trials"]]
    for call in {t.call for t in todo}:
        judge.attempt(calls[call].run, calls[call].arguments)  # what is made once is made before the limits
    warnings.simplefilter("error")
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, resource.RLIM_INFINITY))
    place = mmap.mmap(os.open(path + ".place", os.O_RDWR), 8)
    answered: list[tuple[int, list[np.ndarray]]] = []
    with open(path + ".out", "a", encoding="utf-8") as out:

        def tell(**what: Any) -> None:
            out.write(json.dumps(what) + "\n")
            out.flush()

        def watched(i: int, what: Callable[[], judge.Outcome]) -> judge.Outcome:
            place[:8] = i.to_bytes(8, "little")
            signal.setitimer(signal.ITIMER_PROF, SECONDS)  # which ends the process: a kernel would not notice less
            outcome = what()
            signal.setitimer(signal.ITIMER_PROF, 0)
            return outcome

        def compare() -> None:
            with dispatch.switch("reference"):
                for i, results in answered:
                    trial = todo[i]
                    want = watched(i, lambda t=trial: judge.attempt(calls[t.call].run, _given(calls[t.call], t)[0]))
                    if want.results is None and want.error.startswith("LimitError"):
                        continue  # it needs more memory for the same
                    if want.results is None:
                        tell(fault=i, why=f"the reference says {want.fault or want.error}")
                    elif fault := judge.differs(results, want.results):
                        tell(fault=i, why=f"wrong next to the reference: {fault}")
            answered.clear()

        for i in range(job["first"], len(todo)):
            call = calls[todo[i].call]
            outcome = watched(i, lambda c=call, t=todo[i]: _judged(c, t))
            if outcome.fault:
                tell(fault=i, why=outcome.fault)
            elif (
                outcome.results is not None
                and call.compared
                and not _extreme(call, todo[i])
                and sum(a.nbytes for a in outcome.results) < 1 << 18
            ):
                answered.append((i, outcome.results))
            tell(done=i, answered=outcome.results is not None)
            if len(answered) == 400:
                compare()
        compare()


def run(calls: list[Call], todo: list[Trial]) -> Report:
    """Runs trials in children, a new one after each that dies."""
    faults: list[tuple[str, str]] = []
    done = answered = first = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "job")
        while first < len(todo):
            Path(path).write_text(json.dumps({"trials": todo, "first": first}))
            Path(path + ".place").write_bytes(bytes(8))
            Path(path + ".out").write_text("")
            made = subprocess.run(
                [sys.executable, "-m", "tests.arguments.session", path],
                capture_output=True,
                text=True,
                check=False,
                env={**os.environ, "TMPDIR": folder},  # what a child that dies leaves behind goes with it
            )
            at = first
            for line in map(json.loads, Path(path + ".out").read_text().splitlines()):
                if "fault" in line:
                    faults.append((todo[line["fault"]].text(calls), line["why"]))
                else:
                    done, answered, at = done + 1, answered + line["answered"], line["done"] + 1
            if not made.returncode:
                break
            place = int.from_bytes(Path(path + ".place").read_bytes(), "little")
            what = "does not come back" if made.returncode == -signal.SIGPROF else f"died with {made.returncode}"
            faults.append((todo[place].text(calls), f"{what}: {made.stderr[-600:]}"))
            first = max(at, place + 1)
    return Report(done, answered, done - answered, faults)


def grouped(report: Report) -> Iterator[str]:
    """The faults, those of the same call, argument and kind together."""
    groups: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for text, why in report.faults:
        name, _, rest = text.partition(": ")
        what = "misread" if " was taken for " in why else why.partition(":")[0][:60]
        key = (name, rest.partition(" = ")[0], what, why.rpartition(" at ")[2] if " at " in why else "")
        groups.setdefault(key, []).append((rest.partition(" = ")[2], why))
    for (name, argument, *_), found in groups.items():
        yield f"{name}, {argument}: {len(found)} times, as with {', '.join(label for label, _ in found[:8])}: {found[0][1][:300]}"


if __name__ == "__main__":
    _child(sys.argv[1])
