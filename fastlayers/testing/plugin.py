"""Checks of a model's speed as a pytest fixture. Opt-in: ``pytest_plugins = ["fastlayers.testing.plugin"]`` in conftest.py.

    def test_vad(model_speed):
        speed = model_speed("models/vad.onnx", {"input": (1, 576), "state": (2, 1, 128), "sr": ()}, threads=1)
        speed.plan(numpy_steps=0)                      # no clock: compared with __speed__/test_file.json
        speed.instructions(worse=0.02)                 # counted, with --speed-instructions
        speed.time(share_of_limit=0.1)                 # of what the machine can do at this moment
        speed.beside("onnxruntime", at_least=1.0)      # in turns; skipped where it is not installed

    def test_vad_in_the_history(model_speed, benchmark):
        model_speed("models/vad.onnx", ...).benchmark(benchmark)  # pytest-benchmark's table and JSON, with more in the latter

``--speed-update`` writes what is compared. Under pytest-xdist what is timed is skipped: neighbours would be timed too.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl

from ..errors import MissingExtraError
from ..formats.write import whole
from ..report import Limits, limits
from ..report.json import dumps
from .beside import Verdict, beside, session
from .instructions import instructions, why_not
from .plans import plan_differences, plan_of
from .shares import Share, share_of_limit
from .timing import Times, machine

__all__ = ["ModelSpeed", "model_speed"]

_UNSURE = pytest.StashKey[list[str]]()
_LIMITS = pytest.StashKey[Limits]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--speed-update`` and ``--speed-instructions``."""
    group = parser.getgroup("fastlayers")
    group.addoption("--speed-update", action="store_true", help="write the plans and counts that are compared")
    group.addoption("--speed-instructions", action="store_true", help="count instructions too, under valgrind")


def pytest_configure(config: pytest.Config) -> None:
    """The mark."""
    config.addinivalue_line("markers", "speed(worse): how much slower, as a share, is too slow for this test")
    config.stash[_UNSURE] = []


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Lists what could not be judged."""
    if found := config.stash[_UNSURE]:
        terminalreporter.section("speed: not judged")
        for line in found:
            terminalreporter.write_line(line)


def _limits(config: pytest.Config) -> Limits | None:
    """The machine's, measured once; None without the compiled engine."""
    if _LIMITS not in config.stash:
        with suppress(fl.DeviceError):
            config.stash[_LIMITS] = limits()
    return config.stash.get(_LIMITS, None)


@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_update_machine_info(config: pytest.Config, machine_info: dict[str, Any]) -> None:
    """Adds to pytest-benchmark's JSON what our figures depend on."""
    machine_info["fastlayers"] = {"version": fl.__version__, **machine(_limits(config))}


@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_compare_machine_info(
    benchmarksession: Any, machine_info: dict[str, Any], compared_benchmark: dict[str, Any]
) -> None:
    """Says of figures that are compared with those of another processor, or of other kernels, what can be compared."""
    before, now = (about.get("fastlayers", {}) for about in (compared_benchmark["machine_info"], machine_info))
    if differing := [key for key in ("processor", "variant") if key in before and before[key] != now[key]]:
        told = ", ".join(f"{key} {before[key]!r} -> {now[key]!r}" for key in differing)
        benchmarksession.logger.warning(f"fastlayers: {told}: seconds say little; compare extra_info's share_of_limit and plan")


class ModelSpeed:
    """A model, what it is fed, and the checks. Each may be used alone."""

    def __init__(
        self, request: pytest.FixtureRequest, model: fl.Model, feeds: Mapping[str, np.ndarray], path: Any, key: str
    ) -> None:
        self.model, self.feeds, self._path, self._key = model, dict(feeds), path, key
        self._config, self._node = request.config, request.node
        self._file = Path(request.path).parent / "__speed__" / f"{Path(request.path).stem}.json"
        mark = request.node.get_closest_marker("speed")
        self._worse: float | None = None if mark is None else mark.kwargs.get("worse", mark.args[0] if mark.args else None)

    def plan(self, **most: float) -> None:
        """Fails if the plan is no longer the stored one, or a total is more than it may be.

        Args:
            **most: the most of `multiply_adds`, `bytes`, `parameters`, `numpy_steps` or `arena_bytes`.
        """
        now = plan_of(self.model.report(self.feeds))
        for name, bound in most.items():
            if name not in now or not isinstance(now[name], int):
                raise fl.ArgumentError(
                    f"plan: {name!r} is no total of this plan: expected some of {[k for k in now if k != 'steps']}"
                )
            if now[name] > bound:
                pytest.fail(f"{self._key}: {name} is {now[name]}: expected at most {bound}", pytrace=False)
        self._stored(f"plan {now['variant']}", now, plan_differences)

    def instructions(self, worse: float = 0.02, runs: int = 20) -> int | None:
        """Fails if a call takes more instructions than stored, by more than a share. Only with ``--speed-instructions``, and
        where valgrind is.
        """
        if not self._config.getoption("--speed-instructions"):
            return None
        if reason := why_not():
            self._unsure(f"instructions: {reason}")
            return None
        now = instructions(self.model if self._path is None else self._path, self.feeds, runs)
        allowed = self._allowed(worse)

        def compare(before: int, now: int) -> list[str]:
            return [f"{before} instructions a call -> {now}, {now / before - 1:+.1%}"] if now > before * (1 + allowed) else []

        self._stored("instructions", now, compare)
        return now

    def time(self, share_of_limit: float, seconds: float = 1.0) -> Share | None:
        """Fails if a call takes longer than what the machine's limit allows, divided by `share_of_limit`."""
        if self._alone():
            return None
        report = self.model.report(self.feeds)
        arrays = self.feeds
        found = _share(lambda: self.model.run(arrays), report.multiply_adds, report.bytes, seconds, share_of_limit)
        if not found.sure:
            self._unsure(str(found))
        if found.below(share_of_limit):
            pytest.fail(f"{self._key}: {found}: expected at least {share_of_limit:.1%}", pytrace=False)
        return found

    def beside(
        self, other: str | os.PathLike[str] | fl.Model | Callable[[], Any], at_least: float = 1.0, seconds: float = 1.0
    ) -> Verdict | None:
        """Fails if the model is not `at_least` so many times as fast as another, by more than what the mark ``speed`` allows.

        Args:
            other: "onnxruntime", the path of a model or a model, which get the same arrays, or a function.
            at_least: how many times as fast it has to be.
            seconds: how long to measure, about.
        """
        if self._alone():
            return None
        arrays = self.feeds
        try:
            verdict = beside(lambda: self.model.run(arrays), self._other(other), seconds)
        except MissingExtraError as error:
            self._unsure(str(error))
            return None
        worse = (1.0 + self._allowed(0.0)) / at_least - 1.0
        if verdict.slower(worse):
            pytest.fail(f"{self._key}: {verdict}: expected at least {at_least:g} times as fast", pytrace=False)
        if not verdict.sure(worse):
            self._unsure(str(verdict))
        return verdict

    def benchmark(self, benchmark: Any) -> None:
        """Times a call with pytest-benchmark, whose JSON gets what the figures belong to as `extra_info`: variant, threads,
        shapes, multiply-adds, bytes, numpy steps and a digest of the plan; and 95th and 99th percentiles, and the share of the
        machine's limit that the fastest call reaches.

        Args:
            benchmark: pytest-benchmark's fixture of that name.
        """
        run, arrays = self.model.run, self.feeds
        benchmark(lambda: run(arrays))
        report = self.model.report(arrays)
        plan = plan_of(report)
        told: dict[str, Any] = {key: plan[key] for key in ("variant", "multiply_adds", "bytes", "numpy_steps")}
        told["plan"] = hashlib.sha256(dumps(plan).encode()).hexdigest()[:16]
        told |= {"threads": report.threads, "shapes": {name: list(array.shape) for name, array in arrays.items()}}
        if stats := getattr(benchmark.stats, "stats", None):  # None with --benchmark-disable
            times = Times(stats.min, stats.median, list(stats.data))
            told |= {"p95": times.percentile(0.95), "p99": times.percentile(0.99)}
            if (found := _limits(self._config)) and not report.inner:
                told["share_of_limit"] = sum(found.least(row.step, report.threads) for row in report.steps) / times.best
        benchmark.extra_info.update(told)

    def _other(self, other: Any) -> Callable[[], Any]:
        if other == "onnxruntime":
            if self._path is None:
                raise fl.ArgumentError("beside: onnxruntime needs the model's file: expected model_speed(path, ...)")
            return session(self._path, self.feeds, self.model.num_threads or 1)
        if callable(other) and not isinstance(other, fl.Model):
            return other  # type: ignore[no-any-return]
        model = other if isinstance(other, fl.Model) else fl.load(other)
        return lambda: model.run(self.feeds)

    def _allowed(self, otherwise: float) -> float:
        return otherwise if self._worse is None else self._worse

    def _alone(self) -> bool:
        if "PYTEST_XDIST_WORKER" not in os.environ:
            return False
        self._unsure("not timed: other workers run at the same time")
        return True

    def _unsure(self, why: str) -> None:
        self._config.stash[_UNSURE].append(f"{self._node.nodeid}: {why}")

    def _stored(self, what: str, now: Any, compare: Callable[[Any, Any], list[str]]) -> None:
        """Compares with what the file has, or writes it there."""
        found = json.loads(self._file.read_text(encoding="utf-8")) if self._file.exists() else {}
        mine = found.setdefault(self._key, {})
        if self._config.getoption("--speed-update"):
            mine[what] = now
            self._file.parent.mkdir(exist_ok=True)
            with whole(self._file) as file:
                file.write((dumps(dict(sorted(found.items()))) + "\n").encode())
        elif what not in mine:
            self._unsure(f"nothing is stored as {what!r}: --speed-update stores it")
        elif lines := compare(mine[what], now):
            listed = "\n  ".join(lines)
            pytest.fail(f"{self._key} is not as stored in {self._file} (--speed-update stores it):\n  {listed}", pytrace=False)


_share = share_of_limit


@pytest.fixture
def model_speed(request: pytest.FixtureRequest) -> Iterator[Callable[..., ModelSpeed]]:
    """Makes a `ModelSpeed` of a file or model, and shapes or arrays by the names of inputs (zeros of integers, else seeded)."""
    before = fl.get_num_threads()
    made: list[str] = []

    def make(model: Any, feeds: Mapping[str, Any], threads: int = 1, **options: Any) -> ModelSpeed:
        fl.set_num_threads(threads)
        path = None if isinstance(model, fl.Model) else os.fspath(model)
        loaded: fl.Model = model if path is None else fl.load(path, **options)
        key = re.sub(r"[^\w.\[\]-]+", "_", request.node.name) + (f" {len(made) + 1}" if made else "")
        made.append(key)
        return ModelSpeed(request, loaded, _arrays(loaded, feeds), None if options else path, key)

    yield make
    fl.set_num_threads(before)


def _arrays(model: fl.Model, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
    rng, found = np.random.default_rng(0), {}
    for spec in model.inputs:
        if spec.name not in feeds:
            raise fl.ArgumentError(f"model_speed: feeds lacks {spec.name!r}: expected shapes or arrays for {model.inputs.names}")
        value = feeds[spec.name]
        if not isinstance(value, tuple):
            found[spec.name] = np.asarray(value)
        elif spec.dtype.kind == "f":
            found[spec.name] = rng.standard_normal(value).astype(spec.dtype)
        else:
            found[spec.name] = np.full(value, model._only.get(spec.name, 0), spec.dtype)
    return found
