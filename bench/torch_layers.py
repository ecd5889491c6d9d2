"""Calls of layers next to torch: same weights and inputs, numpy in and out here, tensors made beforehand there; one thread each.

    python -m bench.torch_layers [--only lstm] [--rounds 12] [--variant aot/x86_v3] [--json rows.json]

Both alternate in short bursts in one process, and their results are compared first. The rows are in `bench.layers`.
Needs torch.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import fastlayers as fl
from bench.layers import all_rows
from bench.timing import Times, add_json, store, take_turns


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.torch_layers", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", default="", help="rows whose name or label has this in it")
    parser.add_argument("--rounds", type=int, default=12, help="bursts a side")
    parser.add_argument("--burst", type=float, default=0.1, help="seconds a burst")
    parser.add_argument("--variant", default="", help="as for fastlayers.kernels.use")
    add_json(parser)
    options = parser.parse_args(arguments)
    import torch

    torch.set_num_threads(1)
    fl.set_num_threads(1)
    if options.variant:
        fl.kernels.use(options.variant)
    print(f"variant={fl.kernels.current()} torch={torch.__version__} threads=1")
    print("microseconds, best and median; ratio: torch / ours, above 1 where ours is faster")
    print(f"{'':44} {'ours':>9} {'median':>9} {'torch':>9} {'median':>9} {'ratio':>6} {'median':>6} {'ours GF/s':>9}")
    rows: list[dict[str, Any]] = []
    found: dict[str, dict[str, Times]] = {}
    with torch.no_grad():
        for row in all_rows():
            if options.only.lower() not in row.id.lower():
                continue
            pair = row.make()
            if pair.theirs is None:
                continue
            call = pair.theirs(torch)
            ours, theirs = np.asarray(pair.ours()), np.asarray(call())
            error = float(np.max(np.abs(ours - theirs)) / max(1.0, float(np.max(np.abs(theirs)))))
            if ours.shape != theirs.shape or not error <= row.tolerance:
                raise SystemExit(f"{row.id}: results differ by {error:.1e} of the largest")
            times = take_turns({"ours": pair.ours, "torch": call}, options.rounds, options.burst)
            found[row.id] = times
            a, b = times["ours"], times["torch"]
            rows.append({"label": row.id, "ratio": b.best / a.best})
            print(
                f"{row.id:44} {a.best * 1e6:9.1f} {a.median * 1e6:9.1f} {b.best * 1e6:9.1f} {b.median * 1e6:9.1f}"
                f" {b.best / a.best:6.2f} {b.median / a.median:6.2f} {pair.flops / a.best / 1e9:9.1f}",
                flush=True,
            )
    slower = [line["label"] for line in rows if line["ratio"] < 1]
    mean = math.exp(sum(math.log(line["ratio"]) for line in rows) / len(rows)) if rows else math.nan
    print(
        f"\n{len(rows) - len(slower)} of {len(rows)} at least as fast as torch, geometric mean {mean:.2f}"
        + "".join(f"\n  slower: {s}" for s in slower)
    )
    store(options.json, found, torch=torch.__version__)


if __name__ == "__main__":
    main()
