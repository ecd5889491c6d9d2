"""Time of one class's log-probability over the number of classes: it grows with the logarithm of it.

    python -m bench.hierarchical [--most 100000]

Classes come up as words do (inversely as their rank); a batch of 64 vectors of 128. torch's columns need torch: log_softmax of a
linear layer over all classes, and AdaptiveLogSoftmaxWithLoss, whose clusters are its answer to the same question.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import fastlayers as fl
from bench.layers.hierarchical import BATCH, WIDTH, plain, ready
from bench.timing import Times, add_json, store, take_turns


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.hierarchical", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--most", type=int, default=100_000, help="the largest number of classes")
    add_json(parser)
    options = parser.parse_args(arguments)
    fl.set_num_threads(1)
    torch: Any = importlib.import_module("torch") if importlib.util.find_spec("torch") else None
    if torch is not None:
        torch.set_num_threads(1)
        torch.set_grad_enabled(False)
    print(f"microseconds a vector, best of all rounds; variant={fl.kernels.current()}")
    print(f"{'classes':>9} {'path':>6} {'ours':>8} {'ours / log2 n':>14} {'argmax':>8} {'all, torch':>11} {'adaptive':>9}")
    found: dict[str, dict[str, Times]] = {}
    n = 100
    while n <= options.most:
        layer, _, x, targets = ready(n)
        calls = {"ours": lambda: layer.log_prob(x, targets), "argmax": lambda: layer.predict(x)}  # noqa: B023 - called at once
        if torch is not None:
            calls["torch"] = plain(torch, n)
            cut = torch.nn.AdaptiveLogSoftmaxWithLoss(WIDTH, n, [max(n // 20, 1), max(n // 4, 2)])
            tx, ti = torch.tensor(x), torch.tensor(targets)
            calls["adaptive"] = lambda: cut(tx, ti)  # noqa: B023
        found[f"{n} classes"] = take_turns(calls, 6, 0.05)
        times = {name: t.best * 1e6 / BATCH for name, t in found[f"{n} classes"].items()}
        path = np.diff(layer.tree.starts)[targets].mean()
        rest = "".join(f"{times[name]:{width}.2f}" for name, width in (("torch", 12), ("adaptive", 10)) if name in times)
        ours = times["ours"]
        print(f"{n:9} {path:6.1f} {ours:8.3f} {ours / math.log2(n):14.4f} {times['argmax']:8.2f}{rest}", flush=True)
        n *= 10
    store(options.json, found, batch=BATCH)


if __name__ == "__main__":
    main()
