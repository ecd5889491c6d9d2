"""Whole networks next to ONNX Runtime and OpenVINO: times on one thread and two, and how near their results are.

    python -m bench.networks export FOLDER [word ...]             writes NAME.onnx and NAME.npz of each network
    python -m bench.networks run FOLDER [word ...] --json F       times; --threads 1 2, --variant x86_v3 x86_v4
    python -m bench.networks accuracy FOLDER [word ...] --json F  errors against the same file evaluated in float64
    python -m bench.networks table --json F                       what a file says: sorted by ratio, and means by family

`export` needs torch, torchvision, timm and transformers; the rest ``pip install ".[bench,compare,onnx]"``, OpenVINO if it is
there, `accuracy` torch. A word is part of a name. Figures are added to the file, so that a few networks at a time can be measured
and one be measured again. `ratio` is the time of the faster peer over ours, each the median of three runs' best, which alternate
in bursts as `bench.peers` has them; `limit` is the share that the machine's limits (multiply-adds or bytes from memory, step by
step) have of our time. ``python -m docs.make_performance`` draws pictures from the JSON.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench import network_files
from bench.peers import ENGINES, Model, answers, bursts, ratio, start, summary
from bench.timing import Times, Watch, add_json, read, store, times_of

__all__ = ["add", "case_name", "export", "main", "report", "rows_of", "run", "scaling"]

TOLERANCE = 2e-3  # of the largest result: `accuracy` says more, this is whether a time counts
RUNS = 3  # whose median counts


def chosen(words: Sequence[str], names: Iterable[str]) -> list[str]:
    """The names that contain one of the words; all without words."""
    return [name for name in names if not words or any(word in name for word in words)]


def file_of(folder: Path, name: str) -> Path:
    """Path of a network's file, whether it exists or not; its inputs are next to it."""
    return folder / f"{name.replace(' ', '__')}.onnx"


# ---- files --------------------------------------------------------------------------------------------------------------


def export(folder: Path, words: Sequence[str]) -> int:
    """Writes what is not there yet; how many could not be made."""
    folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in chosen(words, network_files.NAMES):
        path = file_of(folder, name)
        if path.exists() and path.with_suffix(".npz").exists():
            continue
        try:
            case = network_files.made(name)
        except Exception as error:  # one that a newer library has no more, say: the others count
            failed += 1
            print(f"{name:50} not made: {type(error).__name__}: {' '.join(str(error).split())[:200]}", flush=True)
            continue
        put(path, case.content, case.feeds)
        print(f"{name:50} {len(case.content) / 1e6:8.1f} MB", flush=True)
        del case
        gc.collect()
    return failed


def put(path: Path, content: bytes, feeds: Mapping[str, np.ndarray]) -> None:
    """Writes a network and its inputs."""
    np.savez(path.with_suffix(".npz"), **{f"in {name}": x for name, x in feeds.items()})  # type: ignore[arg-type]
    part = path.with_suffix(".part")
    part.write_bytes(content)
    os.replace(part, path)


def taken(folder: Path, name: str) -> Model:
    """Reads the network that `put` wrote."""
    path = file_of(folder, name)
    with np.load(path.with_suffix(".npz")) as kept:
        feeds = {key.removeprefix("in "): kept[key] for key in kept.files if key.startswith("in ")}
    return Model(name, network_files.family_of(name), path.read_bytes(), feeds)


# ---- times --------------------------------------------------------------------------------------------------------------


def case_name(name: str, variant: str, threads: int) -> str:
    """Name, in a file of figures, of a network that is measured in this way."""
    return f"{name}, {variant}, {threads} thread{'s' * (threads > 1)}"


def here() -> str:
    """The kernels that run here if none are asked for."""
    import fastlayers as fl

    return fl.kernels.current().removeprefix("aot/")


def run(folder: Path, names: Sequence[str], threads: int, variant: str, options: argparse.Namespace, watch: Watch) -> None:
    """Measures networks while there is time, prints a line of each and adds its figures to a file."""
    if not names or 0 < options.until <= sum(watch.samples):
        return
    engines = start(threads, options.without, variant)
    try:
        for name in names:
            if 0 < options.until <= sum(watch.samples):
                return
            with watch:
                row, times = one(engines, taken(folder, name), options.seconds)
            row |= {"threads": threads, "variant": variant or here()}
            print(line(row), flush=True)
            if options.json is not None:
                case = case_name(name, row["variant"], threads)
                add(options.json, {case: row}, {case: times})
    finally:
        for engine in engines.values():
            engine.stop()


def one(engines: Mapping[str, Any], model: Model, seconds: float) -> tuple[dict[str, Any], dict[str, Times]]:
    """Figures of a network, and all times: of an engine, the median of the best times of some runs counts."""
    names, notes = answers(engines, model, TOLERANCE)
    first = bursts(engines, names, 0.0, 1)  # a call each
    longest = max((times.best for times in first.values()), default=0.0)
    rounds = max(1, min(5, int(seconds / (2 * longest)))) if longest else 1  # a burst has a call to warm up, and another
    runs = [bursts(engines, names, seconds, rounds) for _ in range(RUNS)]
    taken_by = {name: statistics.median(found[name].best for found in runs if name in found) for name in runs[0]}
    samples = {name: times_of([t for found in runs if name in found for t in found[name].samples]) for name in runs[0]}
    row: dict[str, Any] = {
        "network": model.name, "family": model.family, "seconds": taken_by, "ratio": ratio(taken_by),
        "ratios": [ratio({name: times.best for name, times in found.items()}) for found in runs], "notes": notes,
        "limit": None, "numpy": {}, "numpy_share": 0.0, "staged": False, "multiply_adds": 0,
    }  # fmt: skip
    if "fastlayers" in names:
        state, about = engines["fastlayers"].ask("about", 3)
        if state == "ok":
            row |= {key: about[key] for key in ("numpy", "numpy_share", "staged", "multiply_adds")}
            row["limit"] = about["least"] / taken_by["fastlayers"]
        else:
            notes["profile"] = about
    return row, samples


def line(row: Mapping[str, Any]) -> str:
    """A network in words."""
    cells = "  ".join(f"{name} {1e3 * seconds:9.3f}" for name, seconds in row["seconds"].items())
    limit = "" if row["limit"] is None else f"  {row['limit']:4.0%} of the limit"
    name = case_name(row["network"], row["variant"], row["threads"])
    return f"{name:60} {_two(row['ratio'])}  {cells}{limit}  {_numpy(row)}{row['notes'] or ''}"


def _two(number: float | None) -> str:
    return "   - " if number is None else f"{number:5.2f}"


def _numpy(row: Mapping[str, Any]) -> str:
    """Steps that run in numpy, and their share of the time."""
    words = [f"{op} x{count}" if count > 1 else op for op, count in sorted(row["numpy"].items())]
    return ("in stages " if row["staged"] else "") + (f"numpy {row['numpy_share']:.1%}: {' '.join(words)} " if words else "")


def add(path: Path, cases: Mapping[str, Any], times: Mapping[str, Mapping[str, Times]], what: str = "cases") -> None:
    """Adds figures to a file, or begins it; what it knows of these cases is replaced, all else stays."""
    told, before = read(path) if path.exists() else ({}, {})
    told.setdefault(what, {}).update(cases)
    kept = {f"{case}: {name}": figures for case, turns in before.items() if case not in times for name, figures in turns.items()}
    store(path, times, kept, **{key: value for key, value in told.items() if key not in ("format", "machine")})


# ---- accuracy -----------------------------------------------------------------------------------------------------------


def accuracy(folder: Path, names: Sequence[str], path: Path | None, missing: bool) -> None:
    """Prints errors of networks and adds them to a file; the float64 results are kept beside the networks."""
    from bench.accuracy import measured

    known = read(path)[0].get("accuracy", {}) if missing and path is not None and path.exists() else {}
    for name in names:
        if name in known:
            continue
        try:
            row = measured(taken(folder, name), file_of(folder, name).with_suffix(".double.npz"))
        except Exception as error:  # what one cannot be evaluated says nothing of the others
            print(f"{name:50} not evaluated: {type(error).__name__}: {' '.join(str(error).split())[:200]}", flush=True)
            continue
        print(errors_line(row), flush=True)
        if path is not None:
            add(path, {name: row}, {}, "accuracy")
        gc.collect()


def errors_line(row: Mapping[str, Any]) -> str:
    """The errors of a network in words: worst and rms, ours and ONNX Runtime's, and how many times theirs ours are."""
    cells = "  ".join(
        " ".join(_error(row[name][kind]) for kind in ("worst", "rms")) for name in ("onnxruntime", "default", "strict")
    )
    times = " ".join(
        "    -" if row[f"{name}_ratio"] is None else f"{row[f'{name}_ratio']:5.2f}" for name in ("default", "strict")
    )
    far = "" if row["near"] else "  far from all: badly conditioned, or integers hang on last bits"
    return f"{row['network']:50} {cells}  {times}{far}"


def _error(share: float | None) -> str:
    """An error; a file has none for those that are infinite, or no numbers."""
    return f"{'-':>8}" if share is None else f"{share:8.1e}"


# ---- what a file says ---------------------------------------------------------------------------------------------------


def rows_of(told: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The networks of a file, those that are furthest behind first."""
    return sorted(told.get("cases", {}).values(), key=lambda row: (row["ratio"] is not None, row["ratio"]))


def scaling(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], tuple[float, float]]:
    """By network and variant: how many times as fast two threads are as one, ours and the faster peer's."""
    found: dict[tuple[str, str], dict[int, Mapping[str, float]]] = {}
    for row in rows:
        found.setdefault((row["network"], row["variant"]), {})[row["threads"]] = row["seconds"]
    factors = {}
    for key, by_threads in found.items():
        if {1, 2} <= by_threads.keys() and all("fastlayers" in times and len(times) > 1 for times in by_threads.values()):
            one, two = (
                (times["fastlayers"], min(t for name, t in times.items() if name != "fastlayers"))
                for times in (by_threads[1], by_threads[2])
            )
            factors[key] = (one[0] / two[0], one[1] / two[1])
    return factors


def report(told: Mapping[str, Any]) -> str:
    """The table of a file: its networks by ratio, geometric mean and least by family, what is behind and what runs in numpy."""
    rows = rows_of(told)
    factors, lines = scaling(rows), []
    for variant, threads in sorted({(row["variant"], row["threads"]) for row in rows}, reverse=True):
        some = [row for row in rows if (row["variant"], row["threads"]) == (variant, threads)]
        engines = [name for name in ENGINES if any(name in row["seconds"] for row in some)]
        lines += ["", f"{variant}, {threads} thread{'s' * (threads > 1)}; milliseconds"]
        lines.append(
            f"{'network':52} {'ratio':>5} " + " ".join(f"{name:>11}" for name in engines) + "  2/1 ours theirs  limit  in numpy"
        )
        for row in some:
            cells = [f"{1e3 * row['seconds'][name]:11.3f}" if name in row["seconds"] else f"{'-':>11}" for name in engines]
            two = factors.get((row["network"], variant))
            both = f"{two[0]:8.2f} {two[1]:6.2f}" if two else f"{'-':>8} {'-':>6}"
            limit = "-" if row["limit"] is None else f"{row['limit']:.0%}"
            notes = " ".join(f"({name}: {why})" for name, why in row["notes"].items())
            lines.append(
                f"{row['network']:52} {_two(row['ratio'])} {' '.join(cells)}  {both}  {limit:>5}  {_numpy(row)}{notes}".rstrip()
            )
        lines.append("")
        for family, (mean, least, count) in summary(some).items():
            behind = sum(row["ratio"] < 1 for row in some if row["ratio"] and family in (row["family"], "all"))
            lines.append(f"{family:20} geometric mean {mean:5.2f}  least {least:5.2f}  of {count:2}, {behind} below 1")
    if near := sorted(told.get("accuracy", {}).values(), key=lambda row: -(row["default_ratio"] or 0)):
        title = "  ".join(f"{name + ' worst':>12}  rms" for name in ("theirs", "ours", "strict"))
        lines += ["", f"errors against float64, shares of the largest and of the rms result{'':6}{title}, rms over theirs"]
        lines += map(errors_line, near)
    return "\n".join(lines[1:])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.networks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("export", "run", "accuracy", "table"))
    parser.add_argument("folder", type=Path, nargs="?", help="where the files are; `table` needs none")
    parser.add_argument("words", nargs="*", help="of the networks that are wanted")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--variant", nargs="+", default=[""], help="our kernels, such as x86_v3; the best of this machine")
    parser.add_argument("--seconds", type=float, default=0.25, help="time of each engine in a run, of which there are three")
    parser.add_argument("--without", action="append", default=[], help="an engine that is left out")
    parser.add_argument("--missing", action="store_true", help="only what the file of figures has not yet")
    parser.add_argument("--until", type=float, default=0.0, metavar="S", help="begins no network after so many seconds")
    add_json(parser)
    options = parser.parse_args(arguments)
    if options.what == "table":
        if options.json is None:
            parser.error("table: expected --json FILE, which is what it reads")
        print(report(read(options.json)[0]))
        return 0
    if options.folder is None:
        parser.error(f"{options.what}: expected a folder")
    if options.what == "export":
        return int(export(options.folder, options.words) > 0)
    names = [name for name in chosen(options.words, network_files.NAMES) if file_of(options.folder, name).exists()]
    if options.what == "accuracy":
        accuracy(options.folder, names, options.json, options.missing)
        return 0
    known = read(options.json)[0].get("cases", {}) if options.missing and options.json and options.json.exists() else {}
    watch = Watch()
    for variant in options.variant:
        for threads in options.threads:
            wanted = [name for name in names if case_name(name, variant or here(), threads) not in known]
            run(options.folder, wanted, threads, variant, options, watch)
    return 0


if __name__ == "__main__":
    sys.exit(main())
