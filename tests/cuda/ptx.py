"""Reads what Numba makes of the kernels: no double precision, no spilled registers, no arrays in local memory, tiles that fit.

    python -m tests.cuda.ptx [module ...]

It needs NVVM (the extra "cuda" brings it), not a GPU. Registers, spills and shared memory are told by ptxas, where that is found.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import fastlayers.kernels
from fastlayers.kernels.table import UNARY

FOLDER = Path(fastlayers.kernels.__file__).parent / "cuda"
CAPABILITIES = ((8, 0), (9, 0))
FUNCTIONS = ("identity", "relu", "gelu", "selu")
# libdevice reduces large angles in double precision, with a table in local memory. Casts of doubles have some as well.
DOUBLE = ("sin", "cos")
SHARED = 48 << 10  # bytes that a block may have without asking
REGISTERS = 1 << 16  # of a multiprocessor


class Report(NamedTuple):
    """One kernel for one capability; `wrong` says what must not be."""

    name: str
    capability: tuple[int, int]
    registers: int
    shared: int
    wrong: tuple[str, ...]


def kernels(modules: Sequence[str] = ()) -> Iterator[tuple[str, Any]]:
    """Every kernel of the folder, and of what makes kernels some."""
    from fastlayers.kernels.cuda import _cuda
    from fastlayers.kernels.cuda._math import function

    names = list(modules) or sorted(p.stem for p in FOLDER.glob("*.py") if not p.stem.startswith("__"))
    found = [importlib.import_module(f"fastlayers.kernels.cuda.{name}") for name in names]
    mine = {module.__name__ for module in found}
    for made in list(_cuda.KERNELS):
        if made.function.__module__ in mine:
            yield made.name, made
    for maker in list(_cuda.MAKERS):
        if maker.__module__ not in mine:
            continue
        if maker.samples is not None:
            for arguments in maker.samples:
                names_of = (getattr(getattr(a, "py_func", a), "__name__", a) for a in arguments)
                yield f"{maker.__name__}({', '.join(map(str, names_of))})", maker(*arguments)
        else:
            everything = UNARY if maker.__name__ == "_unary" else FUNCTIONS
            for name in everything:
                yield f"{maker.__name__}({name})", maker(function(UNARY[name].code))


def read(name: str, kernel: Any, text: str, capability: tuple[int, int], assembler: str | None) -> Report:
    """Looks at a kernel's PTX, and what becomes of it for a capability."""
    wrong = []
    excused = any(f"({n})" in name for n in DOUBLE) or "float64" in name
    if ".f64" in text and not excused:
        wrong.append("double precision")
    # sin and cos count quarters of a turn so, on purpose.
    if re.search(r"cvt\.rni\.[su]", text) and not any(f"({n})" in name for n in DOUBLE):
        wrong.append("floats rounded to nearest, where integers are wanted")
    local = sum(int(n) for n in re.findall(r"\.local .*?\[(\d+)\]", text))
    if local and not excused:
        wrong.append(f"{local} bytes of local arrays")
    registers = shared = 0
    if assembler:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "kernel.ptx")
            source.write_text(text)
            arch = f"-arch=sm_{capability[0]}{capability[1]}"
            done = subprocess.run(
                [assembler, "-v", arch, str(source), "-o", str(source.with_suffix(".o"))],
                capture_output=True,
                text=True,
                check=False,
            )
        told = done.stderr
        if done.returncode:
            wrong.append(f"ptxas: {told.strip()}")
        registers = int((re.search(r"Used (\d+) registers", told) or [0, 0])[1])
        shared = int((re.search(r"(\d+) bytes smem", told) or [0, 0])[1])
        if not re.search(r"\b0 bytes spill stores, 0 bytes spill loads", told):
            wrong.append("spilled registers")
        if -(-registers // 8) * 8 * kernel.most_threads > REGISTERS:
            wrong.append(f"more registers than a block of {kernel.most_threads} can have")
        if shared > SHARED:
            wrong.append(f"{shared} bytes of shared memory")
    return Report(name, capability, registers, shared, tuple(wrong))


def assembler() -> str | None:
    """ptxas, where it is found: on the path, or in NVIDIA's package."""
    found = shutil.which("ptxas")
    if found is None:
        spec = importlib.util.find_spec("nvidia")
        for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
            found = next((str(p) for p in Path(folder).glob("*/bin/ptxas")), found)
    return found


def main(modules: Sequence[str]) -> int:
    """Prints a line a kernel; 1 if anything is wrong."""
    ptxas = assembler()
    if ptxas is None:
        print("ptxas was not found: registers, spills and shared memory are not looked at")
    failed = 0
    for name, kernel in kernels(modules):
        text = kernel.ptx(CAPABILITIES[0])  # which later ones run as well
        for capability in CAPABILITIES:
            report = read(name, kernel, text, capability, ptxas)
            failed += bool(report.wrong)
            what = f"WRONG: {', '.join(report.wrong)}" if report.wrong else "ok"
            sm = f"sm_{capability[0]}{capability[1]}"
            print(
                f"{kernel.name + ' ' + name:<70} {sm} {report.registers:4d} registers {report.shared:6d} B shared  {what}",
                flush=True,
            )
    print(f"{failed} wrong")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
