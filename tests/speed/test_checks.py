"""The checks of `fastlayers.testing`: a planted slow-down fails each, a noisy neighbour none. What is timed is exhaustive."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import fastlayers as fl
from fastlayers.kernels import dispatch
from fastlayers.testing import Share, Times, Verdict, instructions, plan_differences, plan_of, share_of_limit, shares, take_turns
from fastlayers.testing import instructions as counted
from fastlayers.testing.instructions import why_not

from .planted import LAYERS, SHAPES, feeds, network

ENGINE = pytest.mark.skipif(not dispatch.levels(), reason="the compiled engine is not built here")


@pytest.fixture(autouse=True)
def one_thread(kept_threads: None) -> None:
    fl.set_num_threads(1)


def test_a_plan_tells_what_changed() -> None:
    plan = plan_of(network().report(SHAPES))
    assert json.loads(json.dumps(plan)) == plan and plan_differences(plan, plan) == []
    more = plan_differences(plan, plan_of(network(1).report(SHAPES)))
    assert any(line.startswith("new: Linear") for line in more) and any(line.startswith("multiply_adds: ") for line in more)
    changed = {**plan, "steps": [plan["steps"][0].replace(": linear", ": numpy"), *plan["steps"][1:]], "numpy_steps": 1}
    assert [line.rpartition(" -> ")[2] for line in plan_differences(plan, changed)] == ["numpy", "1"]
    with fl.kernels.use("reference"):
        assert plan_differences(plan, plan_of(network().report(SHAPES)))[0].startswith("variant: ") == bool(dispatch.levels())


def times(*samples: float) -> Times:
    return Times(min(samples), sorted(samples)[len(samples) // 2], list(samples))


def test_noise_for_a_part_of_the_time_is_no_slow_down() -> None:
    one, two = times(1.0, 1.1), times(2.0, 2.2)
    assert Verdict(two, one, 2.0, (2.0, 1.9, 2.1)).slower(0.5) and not Verdict(one, one, 1.0, (1.0, 1.0, 1.0)).slower(0.0)
    noisy = Verdict(two, one, 2.0, (2.0, 1.01, 2.1))
    assert not noisy.slower(0.5) and not noisy.sure(0.5)
    assert not Verdict(one, one, 2.0, (2.0, 2.0, 2.0)).slower(0.5), "the fastest calls are as fast"
    assert Share(0.2, (0.2, 0.2, 0.21), 0.01).below(0.3) and not Share(0.2, (0.2, 0.4, 0.2), 0.01).below(0.3)
    drifting = Share(0.2, (0.2, 0.2, 0.2), 0.5)
    assert not drifting.below(0.3) and not drifting.sure and "unsure" in str(drifting)


def test_what_is_below_is_measured_again_until_it_is_sure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each case: what is measured in turn, how often it is, and whether the call is slow."""
    low, high = Share(0.2, (0.2, 0.2, 0.2), 0.01), Share(0.2, (0.2, 0.4, 0.2), 0.01)
    most, unsure, unsure_high = shares.TIMES, low._replace(drift=0.5), high._replace(drift=0.5)
    for found, times, slow in (
        ([high], 1, False),
        ([unsure_high], 1, False),
        ([low, low, high], 3, False),
        ([low, unsure, unsure_high], 3, False),
        ([low] * most, most, True),
        ([unsure, low] * most, 2 * most, True),
        ([low, *[unsure] * 40], shares.TRIES + 1, False),
        ([low] * (most - 1) + [unsure] * 6 + [low], most + 6, True),
        ([unsure] * (shares.TRIES - most + 2) + [low] * most, shares.TRIES + 1, False),
    ):
        left = list(found)
        monkeypatch.setattr(shares, "_measured", lambda *a, left=left: left.pop(0))
        assert share_of_limit(lambda: None, 1.0, least=0.3).below(0.3) is slow and len(found) - len(left) == times, found
    left = [low, low]
    monkeypatch.setattr(shares, "_measured", lambda *a: left.pop(0))
    assert share_of_limit(lambda: None, 1.0).below(0.3) and len(left) == 1, "without a bar it is measured once"


def test_contestants_take_turns() -> None:
    calls: list[str] = []
    found = take_turns({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, 3, burst=0, sample=0)
    assert calls[-4:] == ["a", "a", "b", "b"] and [len(t.samples) for t in found.values()] == [3, 3]
    assert found["a"].dict().keys() == {"best", "median", "p95", "p99", "rounds"}
    assert times(*range(1, 101)).percentile(0.95) == 96


TESTS = """
import numpy as np, os, fastlayers as fl, pytest
from tests.speed.planted import SHAPES, network

def test_plan(model_speed):
    speed = model_speed(network(int(os.environ["MORE"])), SHAPES)
    speed.plan(numpy_steps=0)
    speed.instructions()

def test_bound(model_speed):
    with pytest.raises(pytest.fail.Exception, match="multiply_adds is [0-9]+: expected at most 5"):
        model_speed(network(), SHAPES).plan(multiply_adds=5)
    with pytest.raises(fl.ArgumentError, match="is no total of this plan"):
        model_speed(network(), SHAPES).plan(seconds=5)
    with pytest.raises(fl.ArgumentError, match="feeds lacks 'x'"):
        model_speed(network(), {})
"""


@ENGINE
@pytest.mark.exhaustive
def test_the_plugin_stores_plans_and_fails_where_they_change(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["fastlayers.testing.plugin"]')
    (tmp_path / "test_it.py").write_text(TESTS)

    def run(more: int, *options: str) -> str:
        root = str(Path(__file__).parents[2])
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *options, str(tmp_path)]
        environment = {**os.environ, "MORE": str(more), "PYTHONPATH": root}
        environment.pop("PYTEST_XDIST_WORKER", None)
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    assert "2 passed" in run(0, "--speed-update")
    stored = json.loads((tmp_path / "__speed__" / "test_it.json").read_text())
    assert len(stored["test_plan"][f"plan {network().variant}"]["steps"]) == LAYERS
    slower = run(1)
    assert "1 failed, 1 passed" in slower and "new: Linear" in slower and "--speed-update stores it" in slower


BENCHMARK = """
from tests.speed.planted import SHAPES, network

def test_it(model_speed, benchmark):
    model_speed(network(), SHAPES).benchmark(benchmark)
"""


@ENGINE
@pytest.mark.exhaustive
def test_figures_of_pytest_benchmark_say_what_they_belong_to(tmp_path: Path) -> None:
    pytest.importorskip("pytest_benchmark")
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["fastlayers.testing.plugin"]')
    (tmp_path / "test_it.py").write_text(BENCHMARK)

    def run(*options: str) -> str:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *options, "test_it.py"]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        environment.pop("PYTEST_XDIST_WORKER", None)
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert "1 passed" in done.stdout, done.stdout + done.stderr
        return done.stdout + done.stderr

    run("--benchmark-disable")
    assert "fastlayers:" not in run("--benchmark-save=a", "--benchmark-max-time=0.1")
    (stored,) = (tmp_path / ".benchmarks").rglob("*_a.json")
    found = json.loads(stored.read_text())
    (one,) = found["benchmarks"]
    about, stats = one["extra_info"], one["stats"]
    assert about["multiply_adds"] == LAYERS * 64 * 256 * 256 and about["shapes"] == {"x": [64, 256]}
    assert (about["variant"], about["threads"], about["numpy_steps"]) == (network().variant, 1, 0)
    assert stats["min"] <= about["p95"] <= about["p99"] <= stats["max"] and 0 < about["share_of_limit"] < 3
    assert found["machine_info"]["fastlayers"]["processor"] and len(about["plan"]) == 16
    found["machine_info"]["fastlayers"] |= {"processor": "another", "variant": "aot/other"}
    stored.write_text(json.dumps(found))
    told = run("--benchmark-compare", "--benchmark-max-time=0.1")
    assert "fastlayers: processor 'another' -> " in told and "compare extra_info's share_of_limit" in told


@pytest.mark.exhaustive
@pytest.mark.skipif(bool(why_not()), reason=f"instructions cannot be counted: {why_not()}")
def test_instructions_are_the_same_every_time_and_find_one_more_layer() -> None:
    first, again = (instructions(network(), feeds(), 3) for _ in range(2))
    assert abs(first - again) < 0.005 * first
    assert instructions(network(1), feeds(), 3) > 1.03 * first


def test_what_is_missing_for_counting_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(fl.DeviceError, match="instructions: "):
        counted(network(), feeds())
