"""Matrix products and direct convolutions next to what one core can do at most, probed in the same run, in turns.

    python -m bench.peak [--variant aot/x86_v3] [--rounds 500]

One thread. Operations count a multiply-add as two and include the taps that fall into padding; the last column is the share of
the taps that do not. Job and probe alternate call by call: "of probe" compares the best of each, "paired" is the median of the
ratios of neighbours in time, which a clock that changes its speed touches least. The last line is a product with one row against
a probe that reads as many bytes.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

import fastlayers as fl
from bench.cases import normal
from bench.timing import Times, add_json, store, take_turns
from fastlayers.kernels import dispatch
from fastlayers.kernels.table import Activation

IDENTITY = Activation(0)


class Job(NamedTuple):
    """A call of a kernel, its operations, and the share of them that do not multiply padding."""

    label: str
    call: Callable[[], None]
    flops: float
    inside: float = 1.0


def product(m: int, k: int, n: int) -> Job:
    """x (m, k) times packed weights, into an output that exists."""
    rng = np.random.default_rng(0)
    packed = dispatch.kernel("linear_pack")(normal(rng, n, k, fan_in=k), normal(rng, n))
    linear, x, out = dispatch.kernel("linear"), normal(rng, m, k), np.empty((m, n), np.float32)
    return Job(f"product {m}x{k}x{n}", lambda: linear(x, packed, out, None, IDENTITY), 2.0 * m * k * n)


def convolution(c: int, o: int, kernel: tuple[int, int], size: tuple[int, int]) -> Job:
    """Channels-last convolution, stride 1, padded so that the size stays."""
    rng = np.random.default_rng(0)
    ones = (1, 1, 1)
    weight = normal(rng, o, c, 1, *kernel, fan_in=c * kernel[0] * kernel[1])
    packed = dispatch.kernel("conv_pack")(weight, normal(rng, o), ones, ones, 1)
    pads = (0, 0, *(side for k in kernel for side in (k // 2, k // 2)))
    conv, x, out = dispatch.kernel("conv"), normal(rng, 1, 1, *size, c), np.empty((1, 1, *size, o), np.float32)
    inside = 1.0
    for k, n in zip(kernel, size, strict=True):
        inside *= sum(n - abs(tap - k // 2) for tap in range(k)) / (k * n)
    label = f"conv {'x'.join(map(str, kernel))} {c}->{o} @{'x'.join(map(str, size))}"
    flops = 2.0 * size[0] * size[1] * o * c * kernel[0] * kernel[1]
    return Job(label, lambda: conv(x, packed, out, pads, 0, True, True, None, IDENTITY), flops, inside)


def jobs() -> list[Job]:
    """The shapes that are compared with the machine's limit."""
    return [
        product(196, 256, 1024),
        product(784, 1152, 128),
        product(128, 768, 3072),
        convolution(64, 64, (3, 3), (56, 56)),
        convolution(512, 512, (3, 3), (7, 7)),
        convolution(32, 64, (5, 5), (56, 56)),
        convolution(64, 64, (1, 3), (1, 4000)),
    ]


def row(label: str, work: float, times: dict[str, Times], probed: float) -> str:
    """A line of the report; `work` and `probed` are the operations, or bytes, of a call on the two sides."""
    job, probe = times["job"], times["probe"]
    speed, limit = work / job.best, probed / probe.best
    pairs = statistics.median(work / a / (probed / b) for a, b in zip(job.samples, probe.samples, strict=True))
    milliseconds = f"{job.best * 1e3:8.3f} {job.median * 1e3:8.3f}"
    return f"{label:28} {speed / 1e9:7.1f} {milliseconds} {limit / 1e9:7.1f} {speed / limit:9.1%} {pairs:9.1%}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.peak", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--variant", default="aot", help="as for fastlayers.kernels.use (default: the best compiled level)")
    parser.add_argument("--rounds", type=int, default=500, help="calls a job and probe")
    add_json(parser)
    options = parser.parse_args(arguments)
    fl.set_num_threads(1)
    with fl.kernels.use(options.variant):
        if not fl.kernels.current().startswith("aot/"):
            parser.error("the probes are compiled: a variant aot/... is needed")
        from fastlayers.kernels.aot import _engine

        print(f"variant={fl.kernels.current()} threads=1")
        print(f"{'':28} {'GF/s':>7} {'best ms':>8} {'median':>8} {'probe':>7} {'of probe':>9} {'paired':>9} {'inside':>7}")
        found: dict[str, dict[str, Times]] = {}
        for job in jobs():
            # As many operations as the job has: the best of longer stretches is worse where something else runs next to them.
            length = round(job.flops / 2 / (_engine.probe_fma(1000) / 1000))
            done = 2.0 * _engine.probe_fma(length)
            times = found[job.label] = take_turns(
                {"probe": partial(_engine.probe_fma, length), "job": job.call}, options.rounds, 0
            )
            print(row(job.label, job.flops, times, done) + f" {job.inside:7.1%}", flush=True)

        one = product(1, 4096, 4096)
        buffer = np.ones(4096 * 4096, np.float32)
        calls = {"probe": lambda: _engine.probe_read(buffer), "job": one.call}
        times = found[f"{one.label} from memory"] = take_turns(calls, options.rounds, 0)
        print(f"\n{'':28} {'GB/s':>7} {'best ms':>8} {'median':>8} {'probe':>7} {'of probe':>9} {'paired':>9}")
        print(row(one.label, buffer.nbytes, times, buffer.nbytes))
        store(options.json, found)


if __name__ == "__main__":
    main()
