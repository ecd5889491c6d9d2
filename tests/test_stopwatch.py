"""One stopwatch in bench/, one form of JSON: no other module reads the clock, and what one of them stores any reader reads."""

from __future__ import annotations

import ast
import importlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from bench.timing import Times, Watch, each, read, store, take_turns, times_of
from bench.timing import main as compare
from fastlayers.kernels import dispatch
from tests.formats import onnx_build as onnx

BENCH = Path(__file__).parents[1] / "bench"
# Each says in its first lines why.
OWN_CLOCK = {
    "cold_start": "processor time, in a process where nothing else may be imported",
    "encode": "processor time, and the start of a process in which others' engines run",
    "front": "processor time, in processes of others' engines",
    "language": "tokens come one by one, in processes of the engines",
    "cuda": "events of the GPU, and what queueing them costs",
    "idle": "processor time",
    "imports": "in a process where nothing else may be imported",
    "serve": "a request begins with one event of a socket and ends with another",
    "whole": "in a process where nothing else may be imported",
}
# Nothing is compared: children are counted, or seconds of the processor.
NO_FIGURES = {"forks", "served_forks", "idle"}
CLOCKS = re.compile(r"\b(perf_counter|process_time|thread_time|timeit|time\.time|clock_gettime)\b")

compiled = pytest.mark.skipif(not dispatch.levels(), reason="the compiled engine is not built here")


def modules() -> list[Path]:
    return sorted(path for path in BENCH.rglob("*.py") if path.name != "timing.py")


def reads_the_clock(text: str) -> bool:
    """Also in what another process runs, and by differences of the clock that is for deadlines."""
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)]
    return bool(CLOCKS.search(text)) or any("monotonic" in ast.unparse(node) for node in found)


def test_no_other_module_of_bench_reads_the_clock() -> None:
    found = {path.stem: path.read_text(encoding="utf-8") for path in modules()}
    assert {name for name, text in found.items() if reads_the_clock(text)} == set(OWN_CLOCK)
    for name in OWN_CLOCK:
        told = ast.get_docstring(ast.parse(found[name])) or ""
        assert re.search(r"\bclock\b", told), f"{name} does not say why it reads the clock"


def test_what_reads_the_clock_is_found() -> None:
    for text in (
        "from time import perf_counter", "CHILD = 'import time; a = time.process_time()'", "import timeit",
        "import time\ntook = time.monotonic() - begin",
    ):  # fmt: skip
        assert reads_the_clock(text), text
    assert not reads_the_clock("import time\nwhile time.monotonic() < until: time.sleep(1)")


def test_every_benchmark_has_the_option_and_stores_by_it() -> None:
    for path in modules():
        text = path.read_text(encoding="utf-8")
        if path.parent == BENCH and "__main__" in text and path.stem not in NO_FIGURES:
            assert re.search(r"\badd_json\(\w+\)", text) and re.search(r"\bstore\(", text), f"{path.name} has no --json"
            assert "json.dump(" not in text and "write_text(json" not in text, f"{path.name} writes a form of its own"


def checked(path: Path) -> tuple[dict[str, Any], dict[str, dict[str, dict[str, float]]]]:
    """The file of any benchmark."""
    told = json.loads(path.read_text(encoding="utf-8"))
    assert told["format"] == 1 and told["machine"].keys() == {"variant", "threads", "processor", "python"}
    for name, figures in told["times"].items():
        assert ": " in name and figures.keys() == {"best", "median", "p95", "p99", "rounds"}, name
        ordered = [figures[key] for key in ("best", "median", "p95", "p99")]
        assert figures["rounds"] >= 1 and ordered == sorted(ordered) and ordered[0] >= 0, name
    return read(path)


def tiny(folder: Path) -> str:
    """A convolution, as a file."""
    weight = onnx.tensor(np.ones((4, 3, 3, 3), "f4"), "w")
    nodes = [onnx.node("Conv", "x w", "y")]
    values = [onnx.value_info("x", (1, 3, 6, 6))], [onnx.value_info("y", (1, 4, 4, 4))]
    path = folder / "tiny.onnx"
    path.write_bytes(onnx.model(onnx.graph(nodes, *values, [weight])))
    return str(path)


def functions(folder: Path, file: str, text: str) -> list[str]:
    """Folders of what answers at once."""
    made = [folder / name for name in ("own", "onnx", "onnxruntime")]
    for path in made:
        path.mkdir()
        (path / file).write_text(text, encoding="utf-8")
    return [str(path) for path in made]


def function(folder: Path, _: pytest.MonkeyPatch) -> list[str]:
    functions(folder, "handler.py", "handler = lambda *_: 1")
    return [str(folder), "--runs", "1"]


def served(folder: Path, patch: pytest.MonkeyPatch) -> list[str]:
    services = importlib.import_module("bench.services")
    file = Path(tiny(folder)).read_bytes()
    draw: Callable[[np.random.Generator], Any] = lambda rng: {"x": rng.standard_normal((1, 3, 6, 6)).astype("f4")}  # noqa: E731
    patch.setattr(services, "models", lambda: {"silero_vad": (file, draw)})
    return ["--seconds", "0.01", "--rounds", "1", "--size", "8"]


def demo(folder: Path, patch: pytest.MonkeyPatch) -> list[str]:
    """The network in the package alone: the others are not in it."""
    module = importlib.import_module("bench.demo")
    for name in ("exported", "theirs"):
        patch.setattr(module, name, lambda samples, _: module.ours(samples))
    return ["silero.onnx", "--rounds", "1"]


# Arguments, or what makes them in a folder.
Words = list[str] | Callable[[Path, pytest.MonkeyPatch], list[str]]
RUNS: dict[str, tuple[Words, str]] = {
    "whole calls": (["--lengths", "3"], "10->10 layer"),
    "whole lengths": (["--runs", "3"], ""),
    "hierarchical": (["--most", "100"], "100 classes"),
    "demo": (demo, "222 frames of silero"),
    "function time": (function, "cold start"),
    "services threads": (served, "silero_vad, 8 threads"),
    "services cold": (lambda folder, _: [*functions(folder, "cold.py", ""), "--runs", "1"], "cold start"),
}  # fmt: skip
SLOWER: dict[str, tuple[Words, str]] = {
    "peak": (["--rounds", "1"], "product 196x256x1024"),
    "imports": (["--runs", "1"], "import after numpy"),
    "services async": (served, "silero_vad"),
    "cold_start": (lambda folder, _: [tiny(folder), "--runs", "1"], "tiny, import"),
}  # fmt: skip
WITH_OTHERS: dict[str, tuple[Words, str]] = {
    "whole load": (lambda folder, _: [tiny(folder), "--rounds", "1"], "tiny, load"),
    "peers": (["--only", "GlobalAveragePool", "--seconds", "0.01", "--rounds", "1"], "GlobalAveragePool 2048@7"),
    "quantized": (["--only", "product 1x1024", "--rounds", "2"], "product 1x1024->1024"),
    "half": (["--only", "linear 1x1024x1024", "--rounds", "1"], "linear 1x1024x1024"),
    "real": (lambda folder, _: ["tiny", "--folder", str(Path(tiny(folder)).parent), "--loads", "1", "--runs", "1"], "tiny, load"),
}  # fmt: skip


def run(name: str, words: Words, case: str, tmp_path: Path, patch: pytest.MonkeyPatch) -> dict[str, Any]:
    module, *what = name.split()
    given = words(tmp_path, patch) if callable(words) else words
    file = tmp_path / "figures.json"
    importlib.import_module(f"bench.{module}").main([*what, *given, "--json", str(file)])
    told, times = checked(file)
    assert (case in times) if case else not times
    return told


@compiled
@pytest.mark.parametrize("name", RUNS)
def test_benchmarks_store_one_form(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept_threads: None) -> None:
    told = run(name, *RUNS[name], tmp_path, monkeypatch)
    assert name != "services threads" or told["answers_with_other_bits"]["silero_vad, 32 threads: fastlayers"] == 0


@compiled
@pytest.mark.exhaustive
@pytest.mark.parametrize("name", SLOWER)
def test_those_that_take_longer_store_it_too(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept_threads: None
) -> None:
    run(name, *SLOWER[name], tmp_path, monkeypatch)


@compiled
@pytest.mark.exhaustive
@pytest.mark.onnx
@pytest.mark.onnxruntime
@pytest.mark.parametrize("name", WITH_OTHERS)
def test_benchmarks_next_to_others_store_it_too(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept_threads: None
) -> None:
    run(name, *WITH_OTHERS[name], tmp_path, monkeypatch)


def test_a_watch_times_what_is_no_call() -> None:
    watch = Watch()
    with watch:
        pass
    with pytest.raises(fl.TimeoutError), watch:
        raise fl.TimeoutError("late")
    assert len(watch.samples) == 2 and watch.last == watch.samples[1] >= 0
    assert watch.times() == times_of(watch.samples) == Times(min(watch.samples), sum(watch.samples) / 2, watch.samples)
    assert each(times_of([2.0, 6.0, 4.0]), 2) == Times(1.0, 2.0, [1.0, 3.0, 2.0])


def test_calls_can_be_timed_one_by_one() -> None:
    called = [0]

    def call() -> None:
        called[0] += 1

    times = take_turns({"one": call}, 3, 0.0, 0.0)
    assert called == [6] and len(times["one"].samples) == 3  # one before each that counts


def test_two_files_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    store(before, {"a case: of two": {"ours": times_of([2e-6])}, "gone": {"ours": times_of([1.0])}})
    store(after, {"a case: of two": {"ours": times_of([3e-6, 5e-6])}})
    compare([str(before), str(after)])
    *_, line = capsys.readouterr().out.splitlines()
    assert line.split() == ["a", "case:", "of", "two:", "ours", "2.0", "(2.0)", "3.0", "(4.0)", "1.50"]
    (tmp_path / "other.json").write_text("[]", encoding="utf-8")
    with pytest.raises(SystemExit, match=r"other\.json: expected a file that a benchmark wrote"):
        compare([str(before), str(tmp_path / "other.json")])
    with pytest.raises(ValueError, match="colon"):
        store(None, {"case": {"a: b": times_of([1.0])}})
