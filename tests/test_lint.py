"""Rules of the source that ruff and mypy do not know: arrows between packages, file lengths, forbidden calls, docstrings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "fastlayers"
PYTHON = sorted(PACKAGE.rglob("*.py"))
CYTHON = sorted([*PACKAGE.rglob("*.pyx"), *PACKAGE.rglob("*.pxd")])
C = sorted((PACKAGE / "kernels" / "aot" / "csrc").iterdir())
TESTS = sorted([*(ROOT / "tests").rglob("*.py"), *(ROOT / "bench").rglob("*.py"), ROOT / "setup.py"])
MOST_LINES = 600

# What each storey may not import: all above it, and what is none of its business. A storey is the first name below fastlayers.
TOP = {"model", "cli", "__main__"}
ENGINE = {"operators", "program", "stream"}
FORBIDDEN = {
    "errors": {"kernels", "functional", "layers", "formats", "graph", "threads", *ENGINE, *TOP},
    "threads": {"functional", "layers", "formats", "graph", *ENGINE, *TOP},
    "kernels": {"functional", "layers", "formats", "graph", *ENGINE, *TOP},
    "graph": {"layers", "formats", "stream", *TOP},
    "functional": {"layers", "formats", *ENGINE, *TOP},
    "layers": {"formats", *ENGINE, *TOP},
    "operators": {"layers", "formats", "stream", *TOP},
    "program": {"functional", "layers", "formats", "stream", *TOP},
    "stream": {"layers", "formats", "kernels", "cli", "__main__"},
    "formats": {"kernels", "functional", "layers", "stream", *TOP},
    "model": {"cli", "__main__"},
    "cli": {"__main__"},
}
# Arrows that point up, and are to go: what is above is asked for types, or for one function. No other may be added.
DEBTS = {
    ("graph", "functional"), ("graph", "operators"), ("graph", "program"), ("operators", "program"),
    ("stream", "model"),
}  # fmt: skip
# The storeys from the lowest on.
STOREYS = (
    "errors", "threads", "kernels", "graph", "functional", "layers", "operators", "program", "formats", "stream", "model", "cli"
)  # fmt: skip


def identify(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def storey(name: str) -> str:
    """First name below the package: "fastlayers.kernels.table" is of "kernels"; a private file is named like its public one."""
    return name.split(".")[1].removeprefix("_") if "." in name else ""


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Absolute names of all that a file imports, at the top or in functions, with the lines; `from . import a` gives `….a`."""
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = [*package[: len(package) - node.level + 1]] if node.level else []
            base = ".".join([*parts, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def test_storey_and_imported_names() -> None:
    names = {name for _, name in imported(PACKAGE / "kernels" / "_dispatch.py")}
    assert {"fastlayers.errors.DeviceError", "fastlayers.kernels.table.KERNELS", "numpy"} <= names
    assert storey("fastlayers.errors.DeviceError") == "errors"


@pytest.mark.parametrize("path", PYTHON, ids=identify)
def test_arrows_point_down(path: Path) -> None:
    mine = storey(".".join(path.relative_to(ROOT).with_suffix("").parts))
    banned = FORBIDDEN.get(mine, set())
    wrong = [f"line {line}: {name}" for line, name in imported(path) if name.startswith("fastlayers.") and storey(name) in banned]
    assert not wrong, f"{mine} may not import from {sorted(banned)}"


def test_every_package_has_its_storey() -> None:
    """A new folder is told what it may import, and no arrow points up but those that are known."""
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders <= set(FORBIDDEN)
    found = set()
    for path in PYTHON:
        mine = storey(".".join(path.relative_to(ROOT).with_suffix("").parts))
        for _, name in imported(path):
            other = storey(name) if name.startswith("fastlayers.") else mine
            if mine in STOREYS and other in STOREYS and STOREYS.index(other) > STOREYS.index(mine):
                found.add((mine, other))
    assert found == DEBTS


@pytest.mark.parametrize("path", CYTHON, ids=identify)
def test_compiled_modules_import_nothing_above_them(path: Path) -> None:
    found = re.findall(r"^\s*(?:c?import|from)\s+(\S+)", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for name in found:
        assert not (name.startswith("fastlayers.") and storey(name) in FORBIDDEN["kernels"]), name
        # fastlayers/kernels/aot/x.pyx: three dots are fastlayers.kernels' parent
        assert not (name.startswith("...") and name[3:].split(".")[0] in FORBIDDEN["kernels"]), name


@pytest.mark.parametrize("path", [*PYTHON, *CYTHON, *C, *TESTS], ids=identify)
def test_files_are_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


@pytest.mark.parametrize("path", PYTHON, ids=identify)
def test_nothing_is_executed_or_unpickled(path: Path) -> None:
    for line, name in imported(path):
        assert name.split(".")[0] not in {"pickle", "_pickle", "cPickle", "marshal", "shelve", "dill"}, (
            f"line {line}: imports {name}"
        )
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in {"eval", "exec", "compile", "__import__"}, f"line {node.lineno}: calls {node.func.id}"


LOCKS = ("Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "Event", "Barrier")


@pytest.mark.parametrize("path", [*PYTHON, *CYTHON], ids=identify)
def test_locks_are_those_that_a_forked_child_finds_open(path: Path) -> None:
    if path.name in ("_locks.py", "_forks.py") and path.parent == PACKAGE:
        pytest.skip("makes them, or is called by the process that forks alone")
    text = path.read_text(encoding="utf-8")
    found = re.findall(rf"\b(?:threading|_thread|multiprocessing)\.(?:{'|'.join(LOCKS)}|allocate_lock)\b", text)
    found += re.findall(rf"from +_thread +import .*\b(?:{'|'.join(LOCKS)}|allocate_lock)\b", text)
    found += re.findall(r"import +_thread\b|(?:from|import) +(?:queue|multiprocessing)\b|from +threading\b", text)
    assert not found, "expected fastlayers._locks.Lock"


@pytest.mark.parametrize("path", CYTHON, ids=identify)
def test_nothing_is_executed_in_compiled_modules(path: Path) -> None:
    assert not re.search(r"\b(?:eval|exec)\(|\bpickle\b", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", [*PYTHON, *CYTHON], ids=identify)
def test_every_module_says_what_it_is(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        assert ast.get_docstring(ast.parse(text)), "no module docstring"
    else:
        assert re.match(r'(?:#.*\n)*"""\S', text), "no module docstring"


@pytest.mark.parametrize("path", [p for p in C if p.suffix in (".c", ".h")], ids=identify)
def test_every_c_file_says_what_it_is(path: Path) -> None:
    assert path.read_text(encoding="utf-8").startswith("/* ")


@pytest.mark.parametrize("path", PYTHON, ids=identify)
def test_errors_are_raised_and_not_asserted(path: Path) -> None:
    """`python -O` drops assertions, so no check of a user's input may be one. Kernels state what their callers guarantee."""
    if "kernels" in path.parts:
        pytest.skip("kernels may assert what their callers guarantee")
    asserts = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Assert)]
    # `assert name is not None` tells the type checker what the code before it has made sure of.
    assert not [node.lineno for node in asserts if not re.fullmatch(r"[\w.]+ is not None", ast.unparse(node.test))]


def test_environment_variables_are_documented() -> None:
    """Every variable that the package or its build reads is explained in README.md or at the top of setup.py."""
    sources = [*PYTHON, *CYTHON, *C, ROOT / "setup.py"]
    used = {name for path in sources for name in re.findall(r"\bFASTLAYERS_[A-Z_]+\b", path.read_text(encoding="utf-8"))}
    explained = (ROOT / "README.md").read_text(encoding="utf-8") + (ROOT / "setup.py").read_text(encoding="utf-8").split('"""')[1]
    assert {name for name in used if name not in explained} == set()


def test_readme_has_the_two_commands_that_ci_runs() -> None:
    """.ci/run takes them from the same place, so what is printed there is what is tested."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"^## Try it\n.*?^```\w*\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    assert block, "README.md needs a fenced block below '## Try it'"
    install, test = block[1].splitlines()
    assert "pip install" in install
    assert install.endswith("fastlayers demo")
    assert "python -m pytest" in test
    if (ROOT / ".ci" / "run").exists():  # which is not part of the source distribution
        assert "/^## Try it/" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_no_flag_that_changes_results_or_hosts() -> None:
    """-ffast-math drops NaN and the order of summation, -march=native ties a wheel to its builder, OpenMP hangs after a fork."""
    text = (ROOT / "setup.py").read_text(encoding="utf-8")
    flags = re.findall(r"[\"'](-[^\"']+)[\"']", text)
    assert "-ffp-contract=fast" in flags
    assert not {"-ffast-math", "-Ofast", "-march=native", "-mtune=native", "-fopenmp"} & set(flags)
