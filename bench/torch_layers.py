"""Layer calls beside torch: same weights and inputs, numpy in and out here, tensors made beforehand there; one thread each.

    python -m bench.torch_layers [--only lstm] [--rounds 12] [--variant aot/x86_v3] [--json rows.json]

Both take turns in short bursts in one process, and their results are compared first. The shapes are those of common networks.
Needs torch.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import fastlayers as fl
from bench.cases import normal
from bench.timing import take_turns

# batch, inputs, outputs
LINEAR = [(1, 256, 256), (1, 1024, 1024), (1, 4096, 4096), (8, 1024, 1024), (128, 768, 3072), (128, 768, 768)]
# channels, size, kernel, outputs, and what differs from the defaults; padded so that stride 1 keeps the size
CONV2D: list[tuple[int, int, int, int, dict[str, int]]] = [
    (64, 56, 3, 64, {}),
    (128, 28, 3, 128, {}),
    (256, 14, 3, 256, {}),
    (512, 7, 3, 512, {}),
    (64, 56, 3, 64, {"relu": 1}),
    (64, 56, 3, 128, {"stride": 2}),
    (64, 56, 3, 64, {"batch": 8}),
    (64, 56, 1, 256, {}),
    (256, 14, 1, 1024, {}),
    (3, 224, 7, 64, {"stride": 2}),
    (3, 224, 3, 32, {"stride": 2}),
    (32, 56, 5, 64, {}),
    (32, 112, 3, 32, {"groups": 32}),
    (576, 14, 3, 576, {"groups": 576}),
    (144, 56, 3, 144, {"stride": 2, "groups": 144}),
    (120, 28, 5, 120, {"groups": 120}),
]
CONV1D: list[tuple[int, int, int, int, dict[str, int]]] = [(64, 4000, 3, 64, {}), (32, 10000, 11, 32, {"dilation": 4})]
# steps, batch, inputs, hidden units, directions
LSTM = [
    (1, 1, 128, 128, 1),
    (100, 1, 64, 64, 1),
    (100, 1, 128, 128, 1),
    (100, 1, 256, 256, 1),
    (100, 1, 512, 512, 1),
    (100, 16, 256, 256, 1),
    (50, 32, 512, 512, 1),
    (100, 8, 128, 128, 2),
]


class Pair(NamedTuple):
    """The same layer twice; each call gives its first result as something that numpy takes."""

    label: str
    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    flops: float


def linear(torch: Any, batch: int, inputs: int, outputs: int) -> Pair:
    rng = np.random.default_rng(0)
    x, w, b = normal(rng, batch, inputs), normal(rng, outputs, inputs, fan_in=inputs), normal(rng, outputs)
    layer = fl.Linear(inputs, outputs)
    layer.load_state_dict({"weight": w, "bias": b})
    tx, tw, tb = map(torch.from_numpy, (x, w, b))
    label = f"linear B{batch} {inputs}->{outputs}"
    return Pair(label, lambda: layer(x), lambda: torch.nn.functional.linear(tx, tw, tb), 2.0 * batch * inputs * outputs)


def convolution(torch: Any, axes: int, c: int, size: int, k: int, o: int, options: dict[str, int]) -> Pair:
    rng = np.random.default_rng(0)
    stride, groups, dilation = (options.get(name, 1) for name in ("stride", "groups", "dilation"))
    padding, batch, relu = dilation * (k - 1) // 2, options.get("batch", 1), "relu" in options
    x = normal(rng, batch, c, *[size] * axes)
    w, b = normal(rng, o, c // groups, *[k] * axes, fan_in=c // groups * k**axes), normal(rng, o)
    kind = fl.Conv2d if axes == 2 else fl.Conv1d
    act = "relu" if relu else None  # one layer does both here; torch's eager mode has two calls, the second in place
    layer = kind(c, o, k, stride=stride, padding=padding, dilation=dilation, groups=groups, activation=act)
    layer.load_state_dict({"weight": w, "bias": b})
    f = torch.nn.functional
    run = f.conv2d if axes == 2 else f.conv1d
    tx, tw, tb = map(torch.from_numpy, (x, w, b))

    def theirs() -> Any:
        y = run(tx, tw, tb, stride, padding, dilation, groups)
        return torch.relu_(y) if relu else y

    out = (size + 2 * padding - dilation * (k - 1) - 1) // stride + 1
    label = f"conv{axes}d {'x'.join([str(k)] * axes)} {c}->{o} @{size} " + " ".join(f"{n} {v}" for n, v in options.items())
    return Pair(label.strip(), lambda: layer(x), theirs, 2.0 * batch * o * out**axes * (c // groups) * k**axes)


def lstm(torch: Any, steps: int, batch: int, inputs: int, hidden: int, directions: int) -> Pair:
    rng = np.random.default_rng(0)
    x = normal(rng, steps, batch, inputs)
    layer = fl.LSTM(inputs, hidden, bidirectional=directions == 2)
    net = torch.nn.LSTM(inputs, hidden, bidirectional=directions == 2).eval()
    state = {name: normal(rng, *tensor.shape, fan_in=hidden) for name, tensor in net.state_dict().items()}
    layer.load_state_dict(state)
    net.load_state_dict({name: torch.from_numpy(array) for name, array in state.items()})
    tx = torch.from_numpy(x)
    label = f"lstm T{steps} B{batch} I{inputs} H{hidden}" + (" bidirectional" if directions == 2 else "")
    return Pair(label, lambda: layer(x)[0], lambda: net(tx)[0], 2.0 * steps * batch * directions * 4 * hidden * (inputs + hidden))


def pairs(torch: Any, only: str) -> Iterator[Pair]:
    """Every pair whose kind contains `only`, one at a time, so that no two keep their weights in the caches."""
    makers: list[tuple[str, Callable[[], Pair]]] = [
        *(("linear", lambda a=args: linear(torch, *a)) for args in LINEAR),  # type: ignore[misc]
        *(("conv2d", lambda a=args: convolution(torch, 2, *a)) for args in CONV2D),  # type: ignore[misc]
        *(("conv1d", lambda a=args: convolution(torch, 1, *a)) for args in CONV1D),  # type: ignore[misc]
        *(("lstm", lambda a=args: lstm(torch, *a)) for args in LSTM),  # type: ignore[misc]
    ]
    for kind, make in makers:
        if only in kind:
            yield make()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.torch_layers", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", default="", help="linear, conv, conv1d, conv2d or lstm")
    parser.add_argument("--rounds", type=int, default=12, help="bursts a side")
    parser.add_argument("--burst", type=float, default=0.1, help="seconds a burst")
    parser.add_argument("--variant", default="", help="as for fastlayers.kernels.use")
    parser.add_argument("--json", type=Path, help="writes the rows to this file as well")
    options = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    fl.set_num_threads(1)
    if options.variant:
        fl.kernels.use(options.variant)
    print(f"variant={fl.kernels.current()} torch={torch.__version__} threads=1")
    print("microseconds, best and median; ratio: torch / ours, above 1 where ours is faster")
    print(f"{'':44} {'ours':>9} {'median':>9} {'torch':>9} {'median':>9} {'ratio':>6} {'median':>6} {'ours GF/s':>9}")
    rows: list[dict[str, Any]] = []
    with torch.no_grad():
        for pair in pairs(torch, options.only):
            ours, theirs = np.asarray(pair.ours()), pair.theirs().numpy()
            # Two correct float32 sums in different orders: an error of a few ulp of the largest result.
            error = float(np.max(np.abs(ours - theirs)) / max(1.0, float(np.max(np.abs(theirs)))))
            if not error < 1e-4:
                raise SystemExit(f"{pair.label}: results differ by {error:.1e} of the largest")
            times = take_turns({"ours": pair.ours, "torch": pair.theirs}, options.rounds, options.burst)
            a, b = times["ours"], times["torch"]
            rows.append(
                {"label": pair.label, "ours": a, "torch": b, "ratio": b.best / a.best, "median ratio": b.median / a.median}
            )
            print(
                f"{pair.label:44} {a.best * 1e6:9.1f} {a.median * 1e6:9.1f} {b.best * 1e6:9.1f} {b.median * 1e6:9.1f}"
                f" {b.best / a.best:6.2f} {b.median / a.median:6.2f} {pair.flops / a.best / 1e9:9.1f}",
                flush=True,
            )
    slower = [row["label"] for row in rows if row["ratio"] < 1]
    mean = math.exp(sum(math.log(row["ratio"]) for row in rows) / len(rows)) if rows else math.nan
    print(
        f"\n{len(rows) - len(slower)} of {len(rows)} at least as fast as torch, geometric mean {mean:.2f}"
        + "".join(f"\n  slower: {s}" for s in slower)
    )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
