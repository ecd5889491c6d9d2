"""What `import fastlayers` must not do: load anything heavy, start threads, read the environment, load compiled code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .test_dispatch import python

ROOT = Path(__file__).parent.parent


def loaded() -> list[str]:
    """Modules that importing fastlayers adds to those of numpy."""
    code = "import sys, numpy; before = set(sys.modules); import fastlayers; print(*sorted(set(sys.modules) - before))"
    return python(code).split()


def extras() -> set[str]:
    """Import names of every optional requirement in pyproject.toml; the distributions' names are near enough."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    section = text.split("[project.optional-dependencies]")[1].split("\n[")[0]
    names = {name.replace("-", "_") for name in re.findall(r'"([A-Za-z0-9-]+)', section)}
    return names - {"fastlayers", "setuptools", "cython"} | {"Cython", "llvmlite", "h5py", "torch", "onnx"}


def test_import_loads_no_extra_and_nothing_heavy() -> None:
    assert {"numba", "rich", "pytest"} <= extras()
    heavy = {
        "asyncio",
        "multiprocessing",
        "http",
        "socket",
        "urllib.request",
        "unittest",
        "sqlite3",
        "xml",
        "distutils",
        "setuptools",
    }
    top = {name for module in loaded() for name in (module, module.split(".")[0])}
    assert not top & (extras() | heavy)


def test_import_loads_none_of_our_compiled_modules() -> None:
    code = """
    import sys, fastlayers
    for name, module in list(sys.modules.items()):
        if name.startswith("fastlayers"):
            print(name, getattr(module, "__file__", ""))
    """
    lines = python(code).splitlines()
    assert any(line.startswith("fastlayers.errors ") for line in lines)
    assert not [line for line in lines if line.endswith((".so", ".pyd")) or " " not in line]


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="counts the threads in /proc")
def test_import_starts_no_thread() -> None:
    code = """
    import os, threading, numpy
    before = len(os.listdir("/proc/self/task"))
    import fastlayers
    print(before, len(os.listdir("/proc/self/task")), threading.active_count())
    """
    before, after, in_python = map(int, python(code).split())
    assert (after, in_python) == (before, 1)


def test_import_reads_no_variable_of_the_environment() -> None:
    code = """
    import os, numpy
    asked = []
    class Recorded(dict):
        def __getitem__(self, key): asked.append(key); return super().__getitem__(key)
        def get(self, key, default=None): asked.append(key); return super().get(key, default)
        def __contains__(self, key): asked.append(key); return super().__contains__(key)
    os.environ = Recorded(os.environ)
    import fastlayers
    assert "FASTLAYERS_ISA" not in asked
    print(*[name for name in asked if not name.startswith("PYTHON")])
    fastlayers.kernels.info()
    assert "FASTLAYERS_ISA" in asked, "the recorder works"
    """
    assert python(code) == ""


def test_bad_variables_do_not_break_the_import() -> None:
    shown = python(
        "import fastlayers; print(fastlayers.__version__)", FASTLAYERS_ISA="nonsense", FASTLAYERS_NUM_THREADS="nonsense"
    )
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", shown)


def test_import_writes_nothing_to_the_terminal() -> None:
    assert python("import fastlayers") == ""


def test_the_version_is_said_in_one_place() -> None:
    """In the package, as a literal: the build reads it from the source, and an import asks no metadata."""
    import fastlayers

    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'dynamic = ["version"]' in text and 'version = { attr = "fastlayers._version.__version__" }' in text
    for path in (ROOT / "pyproject.toml", ROOT / "setup.py", *(ROOT / "fastlayers").rglob("*.py")):
        said = path.read_text(encoding="utf-8").count(f'"{fastlayers.__version__}"')
        assert said == (path == ROOT / "fastlayers" / "_version.py"), path


def test_commands_for_optional_parts_name_what_they_need() -> None:
    from fastlayers._extras import PACKAGES, install

    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    section = text.split("[project.optional-dependencies]")[1].split("\n[")[0]
    for extra, packages in PACKAGES.items():
        line = re.search(rf"^{extra} = \[(.*?)\]\s*$", section, flags=re.MULTILINE)
        assert line and re.findall(r'"([^"]+)"', line[1]) == list(packages), extra
    assert install("cuda") == 'pip install "numba>=0.61" "numba-cuda[cu12]>=0.30"'
    # The project is not on the index: its name brings nothing.
    for path in [*(ROOT / "fastlayers").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]:
        assert "pip install fastlayers" not in (told := path.read_text(encoding="utf-8")) and 'install "fastlayers[' not in told
