"""Products with weights of few bits in C, by every way to multiply that a level has: by itself a machine takes one of them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from fastlayers.kernels import dispatch

from .test_amx import COMPILER, FLAGS, ROOT, SOURCES, compiler

pytestmark = [pytest.mark.skipif(not compiler(), reason="needs a C compiler and the sources"), pytest.mark.exhaustive]
CROSS, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"


def checked(compiler: list[str], level: str, run: list[str], to: Path, *flags: str) -> str:
    """Output of the checks of a level. -O1: they are compiled in seconds, and are no faster in all otherwise."""
    common = ["-O1", "-ffp-contract=fast", "-fno-math-errno", "-Wno-psabi", "-DFL_NO_MODULE", f'-DSOURCE="_{level}.c"']
    files = [f"-I{SOURCES}", f"-I{ROOT / 'tests'}", str(ROOT / "tests/nbits.c"), "-o", str(to), "-lm"]
    command = [*compiler, *common, *flags, *files]
    made = subprocess.run(command, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    done = subprocess.run([*run, str(to)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 failures" in done.stdout
    return done.stdout


@pytest.mark.parametrize("level", [name for name in dispatch.levels() if name in FLAGS])
def test_every_way_to_multiply_has_the_same_bits(level: str, tmp_path: Path) -> None:
    """With and without the processor's own instruction, where it has that; against plain sums too."""
    checked(COMPILER, level, [], tmp_path / "check", *FLAGS[level])


@pytest.mark.skipif("x86_v4" not in dispatch.levels(), reason="needs AVX-512, whose encoding stands in for AVX-VNNI's")
def test_products_of_quads_in_256_bits(tmp_path: Path) -> None:
    """The code for AVX-VNNI, which few processors have, with the instruction that AVX-512 has of the same width."""
    said = checked(COMPILER, "x86_v3", [], tmp_path / "check", *FLAGS["x86_v3"], "-DFL_NBITS_EVEX")
    if ", dot 1" not in said:
        pytest.skip("the processor has no VNNI")


@pytest.mark.skipif(not shutil.which(CROSS) or not shutil.which(EMULATOR), reason=f"needs {CROSS} and {EMULATOR}")
@pytest.mark.parametrize(("processor", "dot"), [("max", 1), ("cortex-a57", 0)])
def test_neon_with_and_without_its_dot_product(processor: str, dot: int, tmp_path: Path) -> None:
    said = checked([CROSS, "-static"], "neon", [EMULATOR, "-cpu", processor], tmp_path / "check")
    assert f", dot {dot}" in said
