"""The level x86_amx with its tiles in plain C, on machines without AMX: the same C code around them, the same integers."""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import os
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels import dispatch

from .test_quantized import AWKWARD, KINDS_OF, convolution, expected, layouts

ROOT = Path(__file__).parent.parent.parent
SOURCES = ROOT / "fastlayers/kernels/aot/csrc"
COMPILER = shlex.split(os.environ.get("CC", "")) or ["gcc"]
# How the code around the tiles is compiled: for a level that this machine has.
FLAGS = {
    "x86_v4": ["-march=x86-64-v4"],
    "x86_v3": ["-march=x86-64-v3"],
    "x86_v1": [],
    "neon": [],
}


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
    engine = dispatch._engine()
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
    engine = dispatch._engine()
    assert engine is not None
    with open("/proc/cpuinfo") as file:
        has = "amx_int8" in file.read()
    assert has or not engine.usable("x86_amx")
