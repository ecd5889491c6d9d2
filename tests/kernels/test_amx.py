"""The level x86_amx with its tiles in plain C, on machines without AMX: the same C code around them, the same results."""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import itertools
import os
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels import dispatch
from fastlayers.kernels.halves import rounded
from fastlayers.kernels.reference import recurrent as reference
from fastlayers.kernels.table import HALVES, UNARY, Activation, GruOptions, LstmOptions, RnnOptions

from .test_half_conv import LAYOUTS, PROBLEMS, wanted
from .test_half_conv import conv as half_conv
from .test_halves import BRAIN, SIZES, linear, normal
from .test_nbits import EXACT, INTEGER, ZEROS, product, rows, weights
from .test_quantized import AWKWARD, KINDS_OF, convolution, expected, layouts

ROOT = Path(__file__).parent.parent.parent
SOURCES = ROOT / "fastlayers/kernels/aot/csrc"
COMPILER = shlex.split(os.environ.get("CC", "")) or ["gcc"]
# How the code around the tiles is compiled: for a level that this machine has.
FLAGS = {"x86_v4": ["-march=x86-64-v4"], "x86_v3": ["-march=x86-64-v3"], "x86_v1": [], "neon": []}


def compiled(source: Path, level: str, to: Path, *flags: str) -> Path:
    """A file made of `source` for a level, its tiles emulated."""
    vectors = f'-DFL_VECTORS="vec_{level}.h"'
    common = ["-O2", "-ffp-contract=fast", "-fno-math-errno", "-Wno-psabi", "-DFL_TILES_EMULATED", vectors, *FLAGS[level]]
    made = subprocess.run(
        [*COMPILER, *common, *flags, f"-I{SOURCES}", str(source), "-o", str(to), "-lm"], capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr
    return to


def compiler() -> bool:
    """Are there a compiler, Python's headers and the engine's sources?"""
    headers = Path(sysconfig.get_paths()["include"], "Python.h").exists()
    with contextlib.suppress(OSError):
        return headers and SOURCES.exists() and not subprocess.run([*COMPILER, "--version"], capture_output=True).returncode
    return False


pytestmark = [
    pytest.mark.skipif(not dispatch.levels(), reason="the compiled engine is not built here"),
    pytest.mark.skipif(sys.platform == "win32" or not compiler(), reason="needs a C compiler and Python's headers"),
]


def below() -> list[str]:
    return [name for name in dispatch.levels() if name in FLAGS]


@pytest.fixture(scope="module", params=[*below()[:1], *(pytest.param(n, marks=pytest.mark.exhaustive) for n in below()[1:])])
def emulated(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of a level in this process whose tiles are emulated, over one that the processor has."""
    level, name = request.param, f"x86_emulated_over_{request.param}"
    made = compiled(
        SOURCES / "_x86_amx.c", level, tmp_path_factory.mktemp("amx") / "_x86_amx.so", "-shared", "-fPIC", f"-DFL_BELOW={level}",
        f"-I{sysconfig.get_paths()['include']}",
    )  # fmt: skip
    full = "fastlayers.kernels.aot._x86_amx"
    spec = importlib.util.spec_from_file_location(full, made, loader=importlib.machinery.ExtensionFileLoader(full, str(made)))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[f"fastlayers.kernels.aot._{name}"] = module
    yield name
    del sys.modules[f"fastlayers.kernels.aot._{name}"]


@contextlib.contextmanager
def bound(level: str) -> Iterator[None]:
    """What this thread plans meanwhile is for the level."""
    engine = dispatch.engine()
    assert engine is not None
    with fl.kernels.use("aot"):
        engine.bind_under(level)
        try:
            yield
        finally:
            engine.bind_under(None)


@pytest.mark.parametrize("count", [1, 2])
def test_tiles_give_the_reference_integers(count: int, emulated: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shapes of the other levels' tests, on one thread and two, with channels first and last by turns."""
    before = fl.get_num_threads()
    fl.set_num_threads(count)
    try:
        tiled = [i for i, case in enumerate(AWKWARD) if case[3] != case[0][1] or case[3] == 1]  # all but depthwise ones
        for i in tiled:
            large = np.prod(AWKWARD[i][1]) > 500
            for n, kinds in enumerate(KINDS_OF if count == 1 and not large else KINDS_OF[2:3]):
                layout = layouts(i)[n % len(layouts(i))]
                want = expected(i, kinds)
                with bound(emulated):
                    got = convolution(i, kinds, *layout)
                np.testing.assert_array_equal(got, want, err_msg=f"{AWKWARD[i]} {kinds} {layout}")
    finally:
        fl.set_num_threads(before)


IDENTITY, RELU, GELU = (Activation(UNARY[name].code) for name in ("identity", "relu", "gelu"))


def by_tiles(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """x Wᵀ in bfloat16 with the sums of the instruction: of 32 terms those at even and at odd places apart, each rounded to
    float32 when a product is added, then both together and to the tiles before, blocks of 256 terms last."""
    terms = x.shape[1]
    x, weight = (np.pad(rounded(a, BRAIN), ((0, 0), (0, -terms % 32))).astype(np.float64) for a in (x, weight))
    whole = np.zeros((x.shape[0], weight.shape[0]), np.float32)
    for block in range(0, terms, 256):
        total = np.zeros_like(whole)
        for tile in range(block, min(block + 256, x.shape[1]), 32):
            sums = [np.zeros_like(whole), np.zeros_like(whole)]
            for k in range(32):
                sums[k % 2] = (x[:, tile + k, None] * weight[:, tile + k] + sums[k % 2]).astype(np.float32)
            total += sums[0] + sums[1]
        whole += total
    return whole


def test_tiles_of_bfloat16_give_the_sums_of_the_instruction(emulated: str) -> None:
    """Bit for bit, one row and many, edges of tiles and panels, more than one block of terms."""
    edges = [(1, 1040, 70), (16, 31, 65), (17, 32, 64), (31, 33, 16), (32, 64, 47), (33, 63, 15), (64, 95, 17), (65, 289, 33)]
    for m, k, n in SIZES + edges:
        x, weight = normal(m, k, seed=1), normal(n, k)
        want = by_tiles(x, weight)
        bias, residual = normal(n), normal(m, n)
        with bound(emulated):
            found = linear(x, weight, None, BRAIN, None, IDENTITY)
            np.testing.assert_array_equal(found, want, err_msg=f"{m} {k} {n}")
            found = linear(x, weight, bias, BRAIN, residual, RELU)
            np.testing.assert_array_equal(found, np.maximum(want + bias + residual, 0), err_msg=f"{m} {k} {n}")
            close = linear(x, weight, bias, BRAIN, None, GELU)
        with fl.kernels.use("reference"):
            plain = linear(rounded(x, BRAIN), weight, bias, BRAIN, None, GELU)
        np.testing.assert_allclose(close, plain, rtol=2e-5, atol=2e-5, err_msg=f"{m} {k} {n}")


def test_a_row_in_tiles_has_the_same_bits_in_every_batch_and_with_any_threads(emulated: str) -> None:
    before = fl.get_num_threads()
    try:
        for k, n in ((257, 129), (40, 1040)):
            x, weight, bias = normal(70, k), normal(n, k), normal(n)
            with bound(emulated):
                fl.set_num_threads(1)
                whole = linear(x, weight, bias, BRAIN, None, RELU)
                for rows in (slice(0, 1), slice(1, 3), slice(2, 18), slice(3, 20), slice(4, 37), slice(5, 70)):
                    found = linear(np.ascontiguousarray(x[rows]), weight, bias, BRAIN, None, RELU)
                    np.testing.assert_array_equal(found, whole[rows])
                fl.set_num_threads(2)
                np.testing.assert_array_equal(linear(x, weight, bias, BRAIN, None, RELU), whole)
    finally:
        fl.set_num_threads(before)


def test_extreme_numbers_in_tiles_of_bfloat16(emulated: str) -> None:
    """NaN and infinity stay in their column and row, also where a tile is filled up; subnormals are zeros."""
    weight = normal(33, 40)
    weight[0, 0], weight[1, 1], weight[2, 39], weight[32, 39] = np.nan, np.inf, -np.inf, 1e-39
    for m in (1, 9, 20, 35):
        x = rounded(normal(m, 40), BRAIN)
        with bound(emulated):
            found = linear(x, weight, None, BRAIN, None, RELU)
            assert np.isnan(found[:, 0]).all()
            np.testing.assert_array_equal(found[:, 1], np.where(x[:, 1] > 0, np.inf, 0))
            np.testing.assert_array_equal(found[:, 2], np.where(x[:, 39] < 0, np.inf, 0))
            assert np.isfinite(found[:, 3:]).all()
            x[0, 5] = np.nan
            found = linear(x, weight, None, BRAIN, None, IDENTITY)
            assert np.isnan(found[0]).all() and np.isfinite(found[1:, 3:]).all()
    tiny = np.full((3, 40), 1e-39, np.float32)
    tiny[1] = 2.0**-126 * (1 - 2.0**-20)  # would round to a normal number
    small, smaller = np.full((1, 40), 2.0**-60, np.float32), np.full((5, 40), 2.0**-80, np.float32)
    with bound(emulated):
        for x, w in ((tiny, np.full((5, 40), 1e30, np.float32)), (small, smaller)):
            np.testing.assert_array_equal(linear(x, w, None, BRAIN, None, IDENTITY), np.zeros((len(x), 5)))


def test_convolutions_of_bfloat16_in_tiles_agree_with_the_reference(emulated: str) -> None:
    for i, case in enumerate(PROBLEMS):
        residual, layout = normal(*case.out_shape, seed=3), LAYOUTS[i % 4]
        with bound(emulated):
            found = half_conv(case, layout, BRAIN, residual, RELU)
            first = half_conv(case._replace(x=case.x[:1]), layout, BRAIN, residual[:1], RELU)
        message = f"{case.x.shape} {case.weight.shape}"
        np.testing.assert_allclose(found, wanted(case, BRAIN, residual, RELU), rtol=3e-5, atol=3e-5, err_msg=message)
        np.testing.assert_array_equal(first, found[:1], err_msg=message)


def test_few_bits_in_tiles_have_the_bits_of_the_level_below(emulated: str) -> None:
    """Rows around one tile of lines and more than meet weights unpacked, few panels and several, on one thread and two."""
    before = fl.get_num_threads()
    sizes = ((8, 1, 40), (15, 65, 100), (16, 130, 33), (17, 64, 256), (67, 47, 300), (3, 80, 64))
    kinds = itertools.product((2, 4, 8), (16, 32, 64, 128, 256), ZEROS)
    try:
        for i, (bits, block, zeros) in enumerate(kinds):
            m, n, k = sizes[i % len(sizes)]
            given = weights(n, k, bits, block, zeros, scale=(np.float16, np.float32)[i % 2])
            for mode in (INTEGER, EXACT):
                fl.set_num_threads(1)
                with bound(emulated.removeprefix("x86_emulated_over_")):
                    want = product(rows(m, k), given, mode)
                fl.set_num_threads(1 + i % 2)
                with bound(emulated):
                    found = product(rows(m, k), given, mode)
                np.testing.assert_array_equal(found, want, err_msg=f"{m} {n} {k} {bits} {block} {zeros} {mode}")
    finally:
        fl.set_num_threads(before)


def layer(get: Callable[[str], Any], kind: str, x: np.ndarray, h: int, options: Any) -> np.ndarray:
    """The output of an LSTM, a GRU or an RNN of h units, with kernels that `get` finds."""
    gates, i = {"lstm": 4, "gru": 3, "rnn": 1}[kind], x.shape[2]
    scale = np.float32(1 / np.sqrt(h + i))
    given = [normal(1, gates * h, i) * scale, normal(1, gates * h, h, seed=1) * scale, normal(1, gates * h) * scale, None]
    also, states = ([None, None], [None, None]) if kind == "lstm" else ([], [None])
    packed, out = get(f"{kind}_pack")(*given, *also, options), np.full((*x.shape[:2], h), np.nan, np.float32)
    get(kind)(x, packed, *states, None, out, *states, False, False, False)
    return out


@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES)
def test_layers_with_tiles_agree_with_the_reference(half: int, emulated: str) -> None:
    """In every batch and on two threads with the same bits; weights in float16 stay with the level below."""
    before = fl.get_num_threads()
    cases: list[tuple[str, Any]] = [
        ("lstm", LstmOptions(half=half)), ("gru", GruOptions(half=half)), ("gru", GruOptions(reset_after=False, half=half)),
        ("rnn", RnnOptions(half=half)),
    ]  # fmt: skip
    tolerance = 2e-2 if half == BRAIN else 1e-5  # bfloat16 rounds x and h to 8 bits
    try:
        for kind, options in cases:
            for b, i, h in ((1, 5, 7), (3, 33, 65), (20, 31, 40)):
                x = normal(3, b, i)
                want = layer(lambda name: getattr(reference, name), kind, x, h, options)
                fl.set_num_threads(1)
                with bound(emulated):
                    found = layer(dispatch.kernel, kind, x, h, options)
                    one = layer(dispatch.kernel, kind, np.ascontiguousarray(x[:, :1]), h, options)
                    fl.set_num_threads(2)
                    np.testing.assert_array_equal(layer(dispatch.kernel, kind, x, h, options), found)
                np.testing.assert_allclose(found, want, rtol=0, atol=tolerance, err_msg=f"{kind} {b} {i} {h}")
                np.testing.assert_array_equal(one, found[:, :1])
    finally:
        fl.set_num_threads(before)


@pytest.mark.exhaustive
@pytest.mark.parametrize("level", below())
def test_tiles_read_nothing_past_their_operands(level: str, tmp_path: Path) -> None:
    """In C, under the sanitizers where the compiler has them; shapes that the processor would refuse end the program."""
    try:
        checks = compiled(
            ROOT / "tests/tiles.c", level, tmp_path / "tiles", f"-I{ROOT / 'tests'}", "-fsanitize=address,undefined",
            "-fno-sanitize-recover=undefined",
        )  # fmt: skip
    except AssertionError:
        checks = compiled(ROOT / "tests/tiles.c", level, tmp_path / "tiles", f"-I{ROOT / 'tests'}")
    keep = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run([checks], capture_output=True, text=True, env=keep)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 failures" in done.stdout


@pytest.mark.skipif("x86_v4" not in dispatch.levels(), reason="needs x86_v4, which it is compiled as")
def test_the_level_is_built_of_tile_instructions(tmp_path: Path) -> None:
    """The extension that ships has them, and is left alone by a processor without."""
    module = importlib.util.find_spec("fastlayers.kernels.aot._x86_amx")
    if module is None or module.origin is None:
        pytest.skip("built by a compiler without AMX")
    code = Path(module.origin).read_bytes()
    assert code.count(b"\xc4\xe2") >= 8  # the VEX prefix of LDTILECFG, TILEZERO, TDPBUSD ...
    # TDPBUSD, TDPBSUD and TDPBF16PS: VEX.128.0F38.W0 5E after 66 and F3, and 5C after F3, on registers
    for name, prefix, operation, least in (("bytes", 1, 0x5E, 8), ("few bits", 2, 0x5E, 4), ("bfloat16", 2, 0x5C, 8)):
        found = [i for i in range(len(code) - 4) if code[i] == 0xC4 and code[i + 1] & 31 == 2 and code[i + 2] & 0x87 == prefix
                 and code[i + 3] == operation and code[i + 4] >= 0xC0]  # fmt: skip
        assert len(found) >= least, f"no tiles of {name}"
    engine = dispatch.engine()
    assert engine is not None
    with open("/proc/cpuinfo") as file:
        has = "amx_int8" in file.read()
    assert has or not engine.usable("x86_amx")
