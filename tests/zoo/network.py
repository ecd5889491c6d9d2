"""Networks of the zoo: made, run here and by whom they came from, compared; see `networks`. Prints a line of JSON for each."""

from __future__ import annotations

import json
import logging
import os
import resource
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import fastlayers as fl

from .classical import _Heard
from .exporting import Made, distance, itself
from .networks_cases import make, prepare
from .sets import apart_as_sets, spread
from .steps import steps_apart

SECONDS = 600  # of a processor, for a network: what else the machine does must not decide
# Of the largest number: float32 sums in another order, through some hundred layers; float16 values have 11 bits.
TOLERANCE = {"": 2e-4, "half": 2e-2, "quantized": 5e-2}


def tells(made: Made) -> bool:
    """Whether some result depends on what was given, by much more than what is tolerated: on one of two images, say."""
    for _, want in made.runs:
        for array in want.values():
            if array.dtype.kind != "f" or array.ndim == 0 or len(array) < 2:
                continue
            if np.isfinite(array).all() and distance(array[0], array[1]) > 10 * TOLERANCE[""]:
                return True
    return any(len(array) < 2 for array in made.runs[-1][1].values()) or made.sets is not None


def _operators(heard: _Heard) -> str:
    """Which ran in numpy, each once."""
    return " ".join(word for word in heard.text().split() if not word.startswith("x") or not word[1:].isdigit())


def compare(made: Made) -> dict[str, Any]:
    """Loads and runs it in every way; the worst of what was found."""
    if not tells(made):
        return {"word": "tells nothing", "why": "its results are the same whatever it is given"}
    heard = _Heard()
    log = logging.getLogger("fastlayers")
    log.setLevel(logging.INFO)
    log.addHandler(heard)
    worst, where, numpy = 0.0, "", ""
    allowed = TOLERANCE[made.form]
    for (_, want), near in zip(made.runs, made.sets or [], strict=False):
        allowed = max(allowed, spread(want, near, made.batched))
    for optimize in (True, False):
        numpy = numpy or _operators(heard)  # of the network as it is used: with passes
        heard.said.clear()
        try:
            model = fl.load(made.file, optimize=optimize)
        except fl.Error as error:
            return {"word": "refused", "why": str(error)}
        ways: list[tuple[str, Any]] = [(f"optimize={optimize}", model)]
        if optimize:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "net.safetensors"
                model.save(path)
                ways.append(("our own file", fl.load(path.read_bytes())))
        for way, loaded in ways:
            for threads in (1, 2) if way == "optimize=True" else (1,):
                loaded.num_threads = threads
                for size, (feeds, want) in enumerate(made.runs):
                    given = (
                        dict(zip((spec.name for spec in loaded.inputs), feeds.values(), strict=True))
                        if made.positional
                        else feeds
                    )
                    try:
                        got = loaded.run(given)
                    except fl.Error as error:
                        return {"word": "refused", "why": f"size {size}: {error}", "numpy": numpy or _operators(heard)}
                    if made.positional:
                        got = dict(zip(want, got.values(), strict=True))
                    if made.sets:
                        parted = {"rows": apart_as_sets(got, want, made.sets[size], made.batched)}
                    else:
                        parted = {name: distance(got[name], want[name]) for name in want}
                    for name, apart in parted.items():
                        if not apart <= worst:
                            worst, where = apart, f"{name}, {way}, size {size}, {threads} threads"
    why = ""
    if worst > allowed and not made.sets:
        # A network may make much of last bits: then no result is right to more than its own runtime is, by a few draws.
        own = made.itself if made.positional else itself(made.file, made.runs)
        allowed, why = max(allowed, 3 * own), f"{'Keras' if made.positional else 'ONNX Runtime'} is {own:.1e} from itself"
    if not worst <= allowed:
        return {"word": "wrong", "why": f"{where}; {why}".strip("; "), "distance": worst, "numpy": numpy}
    if made.form == "quantized":
        steps = steps_apart(made.file, made.runs[-1][0])
        if steps.wrong:
            return {"word": "wrong", "why": f"step {steps.wrong}", "distance": worst, "numpy": numpy}
        why = f"{steps.count} steps: {steps.flips:.0e} of their integers differ, by one; {why}".rstrip("; ")
    return {"word": "right", "why": why, "distance": worst, "numpy": numpy}


def one(name: str) -> None:
    """Prints what came of the network of this name."""
    try:
        made = make(name)
    except Exception as error:
        found: dict[str, Any] = {"word": "not exported", "why": f"{type(error).__name__}: {error}"[:500]}
    else:
        found = compare(made)
    print(json.dumps({"name": name, "seconds": time.process_time(), **found}), flush=True)


def main(names: list[str]) -> None:
    """Each network in a process of its own, forked from one that has imported what they come from; one at a time."""
    warnings.simplefilter("ignore")
    for family in dict.fromkeys(name.split()[0] for name in names):
        prepare(family)
    for name in names:
        child = os.fork()
        if child == 0:
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))
            try:
                one(name)
            except BaseException as error:
                print(json.dumps({"name": name, "word": "wrong", "why": f"{type(error).__name__}: {error}"[:500]}), flush=True)
            os._exit(0)
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if ended:
            slow = ended == -signal.SIGXCPU
            found = ("too slow", f"more than {SECONDS} s") if slow else ("wrong", f"its process ended with {ended}")
            print(json.dumps({"name": name, "word": found[0], "why": found[1]}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
