"""Everything that wants a GPU, in one call: the tests on it, times next to torch's, compute-sanitizer, the machine code.

    python -m bench.cuda [--only tests times sanitizer ptx] [--rounds 20] [--minutes 9]

Times are those of the GPU (events around a burst of calls, after others that are not counted, taking turns with torch, the best
burst), of kernels that take 100 us or more, arrays on the GPU and shared with torch, TF32 off, results compared. A burst goes
over the same arrays again and again: those that fit the second-level cache are read from it, by either side. `ratio` is torch's
time in that of ours, `floor` the least that the work takes: its bytes, each once, at the speed of a large copy, or its
multiply-adds at that of torch's largest product, both measured first. `host` is what queueing a call costs the processor: where
that is more than the GPU needs, it is what is measured. The clock that counts is the GPU's, so the stopwatch is not asked; its
times are stored as all others are.

The exit status is not zero if a test, the sanitizer or the reader of machine code fails or takes longer than --minutes leave, or
if results differ from torch's; a ratio below its goal is marked. What is not installed is left out, and said so at the end.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import fastlayers as fl
from bench.timing import Times, add_json, store, times_of
from fastlayers.kernels import dispatch
from fastlayers.kernels.table import UNARY, Activation, LstmOptions

__all__ = ["main"]

ROOT = Path(__file__).parent.parent
PARTS = ("tests", "times", "sanitizer", "ptx")
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
    bytes: float  # the least that are read and written
    sums: float = 0.0  # multiply-adds


def _cases(torch: Any) -> Iterator[Callable[[], Timed]]:
    """Made one by one: each holds much memory."""
    kernels = dispatch.variant("cuda").kernels
    functional = torch.nn.functional

    def normal(*shape: int) -> Any:
        return torch.randn(shape, device="cuda", dtype=torch.float32)

    def ours(tensor: Any) -> Any:
        return fl.cuda.array(tensor)

    def elementwise() -> Timed:
        x = normal(1 << 26)
        out = torch.empty_like(x)
        given = ours(x), ours(out), Activation(UNARY["gelu"].code)
        return Timed(
            "gelu 64M", "unary", 0.9, lambda: kernels["unary"](*given), lambda: functional.gelu(x), lambda: out, 1e-5, 2**29
        )

    def softmax() -> Timed:
        x = normal(65536, 1024)
        out = torch.empty_like(x)
        given = ours(x.view(65536, 1024, 1)), ours(out.view(65536, 1024, 1))
        return Timed(
            "softmax 65536x1024", "softmax", 0.9, lambda: kernels["softmax"](*given), lambda: x.softmax(1), lambda: out, 1e-5,
            8 * x.numel(),
        )  # fmt: skip

    def normalization() -> Timed:
        x, weight, bias = normal(65536, 768), normal(768), normal(768)
        out = torch.empty_like(x)
        given = ours(x), ours(weight), ours(bias), ours(out), 1e-5, False
        return Timed(
            "layer_norm 65536x768", "layer_norm", 0.9, lambda: kernels["layer_norm"](*given),
            lambda: functional.layer_norm(x, (768,), weight, bias), lambda: out, 1e-4, 8 * x.numel(),
        )  # fmt: skip

    def pool() -> Timed:
        x = normal(64, 64, 112, 112)
        out = torch.empty((64, 64, 56, 56), device="cuda")
        given = (ours(x.view(64, 64, 1, 112, 112)), ours(out.view(64, 64, 1, 56, 56)), (1, 3, 3), (1, 2, 2), (1, 1, 1),
                 (0, 0, 1, 1, 1, 1), False)  # fmt: skip
        return Timed(
            "max_pool 3x3/2 64x64@112", "max_pool", 0.9, lambda: kernels["max_pool"](*given),
            lambda: functional.max_pool2d(x, 3, 2, 1), lambda: out, 0.0, 4 * (x.numel() + out.numel()),
        )  # fmt: skip

    def attention() -> Timed:
        q, k, v = normal(16, 12, 512, 64), normal(16, 12, 512, 64), normal(16, 12, 512, 64)
        out = torch.empty_like(q)
        given = ours(q), ours(k), ours(v), None, None, ours(out), 0.125, False, 0, 0, False, False
        return Timed(
            "attention 16x12x512x64", "attention", 0.6, lambda: kernels["attention"](*given),
            lambda: functional.scaled_dot_product_attention(q, k, v), lambda: out, 1e-4, 16 * q.numel(),
            2 * q.numel() * 512,
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
                1e-4, 8 * x.numel(), 8 * x.numel() * 128,
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
            lambda: functional.conv2d(x, weight, bias, padding=1), lambda: out, 1e-3, 8 * x.numel(),
            x.numel() * 576,
        )  # fmt: skip

    def product() -> Timed:
        x, weight, bias = normal(4096, 4096), normal(4096, 4096) / 64, normal(4096)
        packed = kernels["linear_pack"](weight.cpu().numpy(), bias.cpu().numpy())
        out = torch.empty((4096, 4096), device="cuda")
        given = ours(x), packed, ours(out), None, IDENTITY
        return Timed(
            "linear 4096x4096x4096", "linear", 0.4, lambda: kernels["linear"](*given),
            lambda: functional.linear(x, weight, bias), lambda: out, 1e-3, 12 * x.numel(), 4096.0**3,
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
            lambda: functional.conv2d(x, weight, bias, padding=1, groups=144), lambda: out, 1e-4, 8 * x.numel(),
            9 * x.numel(),
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
            4 * (x.numel() + out.numel()), x.numel() * 64 * 16,
        )  # fmt: skip

    def batched() -> Timed:
        a, b = normal(64, 512, 512), normal(64, 512, 512)
        out = torch.empty_like(a)
        given = ours(a), ours(b), ours(out), False, IDENTITY
        return Timed(
            "matmul 64x512x512x512", "matmul", 0.4, lambda: kernels["matmul"](*given), lambda: a @ b, lambda: out, 1e-3,
            12 * a.numel(), a.numel() * 512,
        )  # fmt: skip

    yield from (pool, softmax, normalization, elementwise, attention, lstm(1), lstm(32), convolution, product, depthwise,
                transposed, batched)  # fmt: skip


def _burst(torch: Any, call: Callable[[], Any], calls: int) -> tuple[float, float]:
    """Microseconds of a call, of so many in a row: of the GPU, and of the processor."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start = time.perf_counter()
    begin.record()
    for _ in range(calls):
        call()
    end.record()
    host = time.perf_counter() - start
    end.synchronize()
    return float(begin.elapsed_time(end)) * 1000 / calls, host * 1e6 / calls


def _limits(torch: Any) -> tuple[float, float]:
    """Bytes and multiply-adds that the GPU does in a microsecond: a copy, read and written, and a product, TF32 off."""
    x, a = torch.randn(1 << 28, device="cuda"), torch.randn(8192, 8192, device="cuda")
    y, b = torch.empty_like(x), torch.empty_like(a)
    copy, product = (lambda: y.copy_(x)), (lambda: torch.mm(a, a, out=b))
    took = [min(_burst(torch, call, 5)[0] for _ in range(4)) for call in (copy, product)]
    return 8.0 * x.numel() / took[0], 8192.0**3 / took[1]


def _timed(torch: Any, case: Timed, rounds: int, limits: tuple[float, float], found: dict[str, dict[str, Times]]) -> bool:
    """Prints a line, and adds to `found`; whether the result is torch's."""
    case.result().fill_(float("nan"))  # what is not written shows
    case.ours()
    want = case.theirs()
    torch.cuda.synchronize()
    worst = float((case.result() - want).abs().max() / want.abs().max())
    right = worst <= case.tolerance  # NaN is not
    calls = max(3, min(100, int(5000 / max(_burst(torch, case.ours, 3)[0], 1.0))))
    ours, theirs = [], []
    for _ in range(max(rounds, 1)):
        ours.append(_burst(torch, case.ours, calls))
        theirs.append(_burst(torch, case.theirs, calls)[0])
    sides = {"ours": [gpu for gpu, _ in ours], "torch": theirs, "ours, the processor's part": [h for _, h in ours]}
    found[case.label] = {name: times_of([1e-6 * sample for sample in samples]) for name, samples in sides.items()}
    best, other, host = (min(samples) for samples in sides.values())
    floor = max(case.bytes / limits[0], case.sums / limits[1])
    notes = [f"WRONG: off by {worst:.1e} of the largest"] * (not right) + ["below its goal"] * (other / best < case.goal)
    notes += ["too short to count"] * (best < LEAST) + ["the processor's time"] * (host > 0.9 * best)
    print(
        f"{case.label:<32} {best:9.1f} {other:9.1f} {other / best:6.2f} {case.goal:5.1f} {floor:9.1f} {host:8.1f}  "
        f"{', '.join(notes)}",
        flush=True,
    )
    return right


def times(rounds: int, path: Path | None = None) -> bool | None:
    """Prints a line a kernel; whether all results are torch's, None where there is no torch that sees the GPU."""
    try:
        import torch
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    right = True
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, TF32 off")
    kernels = dispatch.variant("cuda").kernels
    found: dict[str, dict[str, Times]] = {}
    with torch.no_grad():
        limits = _limits(torch)
        torch.cuda.empty_cache()
        print(f"a copy moves {limits[0] / 1e6:.2f} TB/s, a product does {2 * limits[1] / 1e6:.1f} TFLOP/s")
        print(f"{'':<32} {'ours us':>9} {'torch us':>9} {'ratio':>6} {'goal':>5} {'floor us':>9} {'host us':>8}")
        for make in _cases(torch):
            try:
                case = make()
                if hasattr(kernels[case.kernel], "on_device"):
                    right = _timed(torch, case, rounds, limits, found) and right
                else:
                    print(f"{case.label:<32} runs in the reference")
            except Exception as error:
                right = False
                print(f"{make.__name__:<32} FAILED: {type(error).__name__}: {error}", flush=True)
            case = None  # type: ignore[assignment]
            torch.cuda.empty_cache()
    store(path, found, gpu=torch.cuda.get_device_name(), torch=torch.__version__)
    return right


def _run(until: float, *command: str, **environment: str) -> bool:
    print("+", *command, flush=True)
    child = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **environment}, start_new_session=True)
    try:
        return child.wait(max(until - time.monotonic(), 1.0)) == 0
    except subprocess.TimeoutExpired:
        print("it took longer than --minutes leave, and was ended", flush=True)
        return False
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)  # and what it has started
            child.wait()


def _tests(until: float) -> list[str]:
    tests = ("tests/cuda", "tests/test_table.py", "tests/test_dispatch.py", "tests/program", "tests/kernels")
    return [] if _run(until, *PYTEST, "-m", "gpu", *tests) else ["tests"]


def _sanitizer() -> str | None:
    """compute-sanitizer, on the path or where NVIDIA's toolkits are."""
    homes = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ] + ["/usr/local/cuda"]
    known = (str(Path(home, folder, "compute-sanitizer")) for home in homes for folder in ("bin", "compute-sanitizer"))
    return shutil.which("compute-sanitizer") or next((path for path in known if Path(path).is_file()), None)


def _sanitized(until: float, sanitizer: str) -> list[str]:
    """Each array has memory of its own, to the byte; races and barriers are those of kernels with shared memory."""
    failed = []
    shared = [f"tests/cuda/test_{name}.py" for name in ("attention", "conv", "movement", "norm", "product", "recurrent", "reduce",
              "scores", "softmax")]  # fmt: skip
    more = ("binary", "bins", "conv_transpose", "window")
    for tool in ("memcheck", "racecheck", "synccheck"):
        files = [*shared, *(f"tests/cuda/test_{name}.py" for name in more)] if tool == "memcheck" else shared
        command = (sanitizer, "--tool", tool, "--error-exitcode", "1", "--report-api-errors", "no", *PYTEST, "-x", *files)
        if not _run(until, *command, FASTLAYERS_EXACT_MEMORY="1"):
            failed.append(f"sanitizer {tool}")
    return failed


# Warnings of other libraries are theirs, and nothing is written next to the tests.
PYTEST = (sys.executable, "-m", "pytest", "-q", "-W", "default", "-p", "no:cacheprovider")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=600.0)
    add_json(parser)
    options = parser.parse_args()
    until = time.monotonic() + 60 * options.minutes
    # What one part compiles the others read, also where neither the package nor a home can be written.
    os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(tempfile.gettempdir(), "fastlayers-bench-cuda")))
    if "cuda" not in fl.kernels.available():
        print("there is no GPU here, or Numba's CUDA target is not installed")
        return 1
    failed: list[str] = []
    missing: list[str] = []
    tested = importlib.util.find_spec("pytest") is not None
    if "tests" in options.only:
        failed += _tests(until) if tested else []
        missing += [] if tested else ["tests, for want of pytest"]
    if "times" in options.only:
        right = times(options.rounds, options.json)
        failed += ["times"] if right is False else []
        missing += ["times, for want of a torch that sees the GPU"] if right is None else []
    if "sanitizer" in options.only:
        sanitizer = _sanitizer()
        failed += _sanitized(until, sanitizer) if sanitizer is not None and tested else []
        missing += [] if sanitizer is not None and tested else ["compute-sanitizer, for want of it or of pytest"]
    if "ptx" in options.only and not _run(until, sys.executable, "-m", "tests.cuda.ptx"):
        failed.append("ptx")
    if missing:
        print("LEFT OUT:", *missing, sep="\n  ")
    print("FAILED:" if failed else "all right", ", ".join(failed))
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
