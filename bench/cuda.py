"""Everything that wants a GPU, in one call: the tests on it, compute-sanitizer, the machine code, and times beside torch's.

    python -m bench.cuda [--only tests sanitizer ptx times] [--rounds 20]

Times are those of the GPU (events around a burst of calls, taking turns with torch, the best burst), of kernels that take 100 us
or more, arrays on the GPU and shared with torch, TF32 off. `ratio` is torch's time in that of ours. The exit status is not zero
if a test, the sanitizer or the reader of machine code fails, or results differ from torch's; a ratio below its goal is marked.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import fastlayers as fl
from fastlayers.kernels import _dispatch
from fastlayers.kernels.table import UNARY, Activation, LstmOptions

__all__ = ["main"]

ROOT = Path(__file__).parent.parent
PARTS = ("tests", "sanitizer", "ptx", "times")
IDENTITY = Activation(0)
LEAST = 100.0  # microseconds


class Timed(NamedTuple):
    """One kernel and torch's way to the same result; `kernel` decides whether it is on the GPU at all."""

    label: str
    kernel: str
    goal: float
    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    result: Callable[[], Any]  # what ours wrote, as torch's result is shaped
    tolerance: float


def _cases(torch: Any) -> Iterator[Callable[[], Timed]]:
    """Made one by one: each holds much memory."""
    kernels = _dispatch.variant("cuda").kernels
    functional = torch.nn.functional

    def normal(*shape: int) -> Any:
        return torch.randn(shape, device="cuda", dtype=torch.float32)

    def ours(tensor: Any) -> Any:
        return fl.cuda.array(tensor)

    def elementwise() -> Timed:
        x = normal(1 << 26)
        out = torch.empty_like(x)
        given = ours(x), ours(out), Activation(UNARY["gelu"].code)
        return Timed("gelu 64M", "unary", 0.9, lambda: kernels["unary"](*given), lambda: functional.gelu(x), lambda: out, 1e-5)

    def softmax() -> Timed:
        x = normal(65536, 1024)
        out = torch.empty_like(x)
        given = ours(x.view(65536, 1024, 1)), ours(out.view(65536, 1024, 1))
        return Timed(
            "softmax 65536x1024", "softmax", 0.9, lambda: kernels["softmax"](*given), lambda: x.softmax(1), lambda: out, 1e-5
        )

    def normalisation() -> Timed:
        x, weight, bias = normal(65536, 768), normal(768), normal(768)
        out = torch.empty_like(x)
        given = ours(x), ours(weight), ours(bias), ours(out), 1e-5, False
        return Timed(
            "layer_norm 65536x768", "layer_norm", 0.9, lambda: kernels["layer_norm"](*given),
            lambda: functional.layer_norm(x, (768,), weight, bias), lambda: out, 1e-4,
        )  # fmt: skip

    def pool() -> Timed:
        x = normal(64, 64, 112, 112)
        out = torch.empty((64, 64, 56, 56), device="cuda")
        given = (ours(x.view(64, 64, 1, 112, 112)), ours(out.view(64, 64, 1, 56, 56)), (1, 3, 3), (1, 2, 2), (1, 1, 1),
                 (0, 0, 1, 1, 1, 1), False)  # fmt: skip
        return Timed(
            "max_pool 3x3/2 64x64@112", "max_pool", 0.9, lambda: kernels["max_pool"](*given),
            lambda: functional.max_pool2d(x, 3, 2, 1), lambda: out, 0.0,
        )  # fmt: skip

    def attention() -> Timed:
        q, k, v = normal(16, 12, 512, 64), normal(16, 12, 512, 64), normal(16, 12, 512, 64)
        out = torch.empty_like(q)
        given = ours(q), ours(k), ours(v), None, None, ours(out), 0.125, False, 0, 0, False, False
        return Timed(
            "attention 16x12x512x64", "attention", 0.6, lambda: kernels["attention"](*given),
            lambda: functional.scaled_dot_product_attention(q, k, v), lambda: out, 1e-4,
        )  # fmt: skip

    def lstm(batch: int) -> Callable[[], Timed]:
        def make() -> Timed:
            net = torch.nn.LSTM(128, 128).cuda()
            x = normal(100, batch, 128)
            host = [p.detach().cpu().numpy()[None] for p in (net.weight_ih_l0, net.weight_hh_l0, net.bias_ih_l0, net.bias_hh_l0)]
            packed = kernels["lstm_pack"](*host, None, None, LstmOptions())
            out = torch.empty((100, batch, 128), device="cuda")
            given = ours(x), packed, None, None, None, ours(out), None, None, False, False, False
            return Timed(
                f"LSTM T=100 H=128 batch {batch}", "lstm", 1.0, lambda: kernels["lstm"](*given), lambda: net(x)[0], lambda: out,
                1e-4,
            )  # fmt: skip

        return make

    def convolution() -> Timed:
        x, weight, bias = normal(32, 64, 56, 56), normal(64, 64, 3, 3) / 24, normal(64)
        packed = kernels["conv_pack"](
            weight.cpu().numpy()[:, :, None], bias.cpu().numpy(), (1, 1, 1), (1, 1, 1), 1
        )  # fmt: skip
        out = torch.empty((32, 64, 56, 56), device="cuda")
        given = (ours(x.view(32, 64, 1, 56, 56)), packed, ours(out.view(32, 64, 1, 56, 56)), (0, 0, 1, 1, 1, 1), 0, False, False,
                 None, IDENTITY)  # fmt: skip
        return Timed(
            "conv 3x3 32x64@56", "conv", 0.4, lambda: kernels["conv"](*given),
            lambda: functional.conv2d(x, weight, bias, padding=1), lambda: out, 1e-3,
        )  # fmt: skip

    def product() -> Timed:
        x, weight, bias = normal(4096, 4096), normal(4096, 4096) / 64, normal(4096)
        packed = kernels["linear_pack"](weight.cpu().numpy(), bias.cpu().numpy())
        out = torch.empty((4096, 4096), device="cuda")
        given = ours(x), packed, ours(out), None, IDENTITY
        return Timed(
            "linear 4096x4096x4096", "linear", 0.4, lambda: kernels["linear"](*given),
            lambda: functional.linear(x, weight, bias), lambda: out, 1e-3,
        )  # fmt: skip

    def depthwise() -> Timed:
        x, weight, bias = normal(64, 144, 56, 56), normal(144, 1, 3, 3) / 3, normal(144)
        packed = kernels["depthwise_pack"](
            weight.cpu().numpy()[:, :, None], bias.cpu().numpy(), (1, 1, 1), (1, 1, 1), 144
        )  # fmt: skip
        out = torch.empty_like(x)
        given = (ours(x.view(64, 144, 1, 56, 56)), packed, ours(out.view(64, 144, 1, 56, 56)), (0, 0, 1, 1, 1, 1), 0, False, None,
                 IDENTITY)  # fmt: skip
        return Timed(
            "depthwise 3x3 64x144@56", "depthwise", 0.4, lambda: kernels["depthwise"](*given),
            lambda: functional.conv2d(x, weight, bias, padding=1, groups=144), lambda: out, 1e-4,
        )  # fmt: skip

    def transposed() -> Timed:
        x, weight, bias = normal(32, 128, 32, 32), normal(128, 64, 4, 4) / 22, normal(64)
        packed = kernels["conv_transpose_pack"](
            weight.cpu().numpy()[:, :, None], bias.cpu().numpy(), (1, 2, 2), (1, 1, 1), 1
        )  # fmt: skip
        out = torch.empty((32, 64, 64, 64), device="cuda")
        given = (ours(x.view(32, 128, 1, 32, 32)), packed, ours(out.view(32, 64, 1, 64, 64)), (0, 0, 1, 1, 1, 1), False, False,
                 IDENTITY)  # fmt: skip
        return Timed(
            "conv_transpose 4x4/2 32x128@32", "conv_transpose", 0.4, lambda: kernels["conv_transpose"](*given),
            lambda: functional.conv_transpose2d(x, weight, bias, stride=2, padding=1), lambda: out, 1e-3,
        )  # fmt: skip

    def batched() -> Timed:
        a, b = normal(64, 512, 512), normal(64, 512, 512)
        out = torch.empty_like(a)
        given = ours(a), ours(b), ours(out), False, IDENTITY
        return Timed(
            "matmul 64x512x512x512", "matmul", 0.4, lambda: kernels["matmul"](*given), lambda: a @ b, lambda: out, 1e-3
        )  # fmt: skip

    yield from (pool, softmax, normalisation, elementwise, attention, lstm(1), lstm(32), convolution, product, depthwise,
                transposed, batched)  # fmt: skip


def _burst(torch: Any, call: Callable[[], Any], calls: int) -> float:
    """Microseconds of a call, of so many in a row."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(calls):
        call()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) * 1000 / calls


def times(rounds: int) -> bool:
    """Prints a line a kernel; whether all results are torch's."""
    if importlib.util.find_spec("torch") is None:
        print("torch is not installed: nothing to compare with")
        return True
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    right = True
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, TF32 off")
    print(f"{'':<28} {'ours us':>10} {'torch us':>10} {'ratio':>6} {'goal':>5}")
    kernels = _dispatch.variant("cuda").kernels
    with torch.no_grad():
        for make in _cases(torch):
            case = make()
            if not hasattr(kernels[case.kernel], "on_device"):
                print(f"{case.label:<28} runs in the reference")
                continue
            try:
                case.ours()
                want = case.theirs()
                torch.cuda.synchronize()
            except fl.Error as error:
                right = False
                print(f"{case.label:<28} FAILED: {error}")
                continue
            worst = float((case.result() - want).abs().max() / want.abs().max())
            single = max(_burst(torch, case.ours, 3), 1.0)
            calls = max(3, min(100, int(5000 / single)))
            best = {"ours": np.inf, "theirs": np.inf}
            for _ in range(rounds):
                best["ours"] = min(best["ours"], _burst(torch, case.ours, calls))
                best["theirs"] = min(best["theirs"], _burst(torch, case.theirs, calls))
            ratio = best["theirs"] / best["ours"]
            notes = [f"off by {worst:.1e} of the largest"] * (worst > case.tolerance)
            right = right and worst <= case.tolerance
            notes += ["below its goal"] * (ratio < case.goal) + ["too short to count"] * (best["ours"] < LEAST)
            print(
                f"{case.label:<28} {best['ours']:10.1f} {best['theirs']:10.1f} {ratio:6.2f} {case.goal:5.1f}  {', '.join(notes)}",
                flush=True,
            )
            del case, want
            torch.cuda.empty_cache()
    return right


def _run(*command: str) -> bool:
    print("+", *command, flush=True)
    return subprocess.run(command, cwd=ROOT, check=False).returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    if "cuda" not in fl.kernels.available():
        print("there is no GPU here, or Numba's CUDA target is not installed")
        return 1
    python, failed = sys.executable, []
    tests = ("tests/cuda", "tests/kernels", "tests/program", "tests/test_table.py", "tests/test_dispatch.py")
    if "tests" in options.only and not _run(python, "-m", "pytest", "-q", "-m", "gpu", *tests):
        failed.append("tests")
    if "sanitizer" in options.only:
        sanitizer = shutil.which("compute-sanitizer")
        if sanitizer is None:
            print("compute-sanitizer is not installed")
        else:
            for tool in ("memcheck", "racecheck"):
                command = (python, "-m", "pytest", "-q", "-x", "-m", "gpu", "tests/cuda")
                if not _run(sanitizer, "--tool", tool, "--error-exitcode", "1", "--target-processes", "all", *command):
                    failed.append(f"sanitizer {tool}")
    if "ptx" in options.only and not _run(python, "-m", "tests.cuda.ptx"):
        failed.append("ptx")
    if "times" in options.only and not times(options.rounds):
        failed.append("times")
    print("FAILED:" if failed else "all right", *failed)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
