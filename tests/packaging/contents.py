"""Looks into an sdist, unless its name is empty, and a wheel: what they must hold, what they must not, and how large they are."""

from __future__ import annotations

import re
import sys
import tarfile
import zipfile
from pathlib import Path

# Installed, without the demo's data: below an eighth of onnxruntime 1.32's 75.6 MB, bytecode of neither counted.
MOST_BYTES = 9_450_000
ROOT = Path(__file__).parent.parent.parent


def check_sdist(path: str) -> None:
    """The sdist must build and test itself: every source, test and benchmark file, and nothing that a build makes."""
    with tarfile.open(path) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    made = [name for name in names if re.search(r"\.(so|pyd|py[co])$|__pycache__|kernels/aot/(made/.*|\w+\.c)$", name)]
    assert not made, f"sdist holds what a build makes: {made}"
    folders = ("codegen", "fastlayers", "tests", "bench")
    wanted = {str(p.relative_to(ROOT)) for f in folders for p in (ROOT / f).rglob("*") if p.suffix in SOURCES}
    wanted |= {"setup.py", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"}
    wanted = {name for name in wanted if not re.search(r"kernels/aot/(made/.*|\w+\.c)$", name)}
    assert wanted <= names, f"sdist lacks {sorted(wanted - names)}"
    print(f"sdist: {len(names)} names, {Path(path).stat().st_size / 1e6:.2f} MB")


def check_wheel(path: str) -> None:
    """The wheel holds what runs: Python, the compiled engine, the demo's data; no source of the engine and no tests."""
    with zipfile.ZipFile(path) as archive:
        sizes = {item.filename: item.file_size for item in archive.infolist()}
    stray = [
        n
        for n in sizes
        if n.endswith((".c", ".h", ".def", ".pyx", ".pxd", ".pxi"))
        or n.split("/")[0] in ("codegen", "tests", "bench")
        or "__pycache__" in n
    ]
    assert not stray, f"wheel holds {stray}"
    modules = {n.split("/")[-1].split(".")[0] for n in sizes if n.endswith((".so", ".pyd"))}
    drivers = {p.stem for p in (ROOT / "fastlayers" / "kernels" / "aot").glob("*.pyx")}
    assert drivers <= modules, f"wheel lacks the driver's {sorted(drivers - modules)}"
    assert modules - drivers, "wheel has no instruction-set level"
    python = {p.relative_to(ROOT).as_posix() for p in (ROOT / "fastlayers").rglob("*.py")}
    assert python <= set(sizes), f"wheel lacks {sorted(python - set(sizes))}"
    assert "fastlayers/py.typed" in sizes
    stubs = {p.relative_to(ROOT).as_posix() for p in (ROOT / "fastlayers").rglob("*.pyi")}
    assert stubs <= set(sizes), f"wheel lacks {sorted(stubs - set(sizes))}"
    data = sum(size for name, size in sizes.items() if name.startswith("fastlayers/data/"))
    assert data, "wheel has no demo data"
    total = sum(sizes.values()) - data
    print(f"wheel: {len(sizes)} files, {total / 1e6:.2f} MB and {data / 1e6:.2f} MB of demo data, modules {sorted(modules)}")
    assert total <= MOST_BYTES, f"{total} bytes installed are more than {MOST_BYTES}"


SOURCES = {".py", ".pyi", ".pyx", ".pxd", ".c", ".h", ".def", ".sh", ".npz", ".json", ".txt", ".typed", ".safetensors", ".wav"}

if __name__ == "__main__":
    if sys.argv[1]:
        check_sdist(sys.argv[1])
    check_wheel(sys.argv[2])
