"""Every test is run by a step of .ci/run: whatever marks an item has, some step's ``-m`` takes it."""

from __future__ import annotations

import ast
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import DEFAULT, EXTRAS

ROOT = Path(__file__).parent.parent
RUN = ROOT / ".ci" / "run"
# Marks that choose items. "gpu" is for machines that no step has: tests/cuda runs under the simulator, in the step "cuda".
CHOOSING = ("exhaustive", *EXTRAS)
# Steps that are too long for every run: they are called by name, and by a hosted workflow once a week.
WEEKLY = {
    "wheels",
    "serve",
    "walks",
    "coverage",
    "deploy",
    "sdist",
    "ort_packages",
    "zoo",
    "zoo_classical",
    "ray",
    "dask",
    "joblib",
    "spark",
    "kserve",
    "transformers",
}
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")

pytestmark = pytest.mark.skipif(not RUN.exists(), reason="the source distribution has no .ci/run")


def chosen(expression: str, marks: set[str]) -> bool:
    """What pytest makes of a -m expression; of these operators alone."""

    def value(node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            assert node.id in CHOOSING, f"{node.id}: no such mark"
            return node.id in marks
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return not value(node.operand)
        assert isinstance(node, ast.BoolOp), ast.dump(node)
        return (all if isinstance(node.op, ast.And) else any)(map(value, node.values))

    return value(ast.parse(expression, mode="eval").body)


def steps() -> dict[str, str]:
    """The text of each step of .ci/run, by its name."""
    text = RUN.read_text(encoding="utf-8").replace("\\\n", " ")
    names = re.findall(r"^step_(\w+)\(\)", text, flags=re.MULTILINE)
    return dict(zip(names, re.split(r"^step_\w+\(\)", text, flags=re.MULTILINE)[1:], strict=True))


def expressions() -> dict[str, str]:
    """The -m of each step that runs tests, README's command among them."""
    found = {name: re.search(r"""-m (?:"(.*?)"|(\w+) tests)""", text) for name, text in steps().items()}
    return {"tests": DEFAULT, **{name: e[1] or e[2] for name, e in found.items() if e}}


def test_no_set_of_marks_is_without_a_step() -> None:
    taken = expressions()
    assert {"exhaustive", "onnx", "jit"} <= set(taken)
    for count in range(len(CHOOSING) + 1):
        for marks in itertools.combinations(CHOOSING, count):
            assert any(chosen(expression, set(marks)) for expression in taken.values()), marks


def test_the_default_leaves_out_what_is_exhaustive_and_nothing_else() -> None:
    assert re.search(r'^addopts = "[^"]*-m \'(.*?)\'"', PROJECT, flags=re.MULTILINE)[1] == DEFAULT  # type: ignore[index]
    command = re.search(
        r"^## Try it\n.*?^```\w*\n.*?\n(.*?)\n", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    assert command and not re.search(r" (-m (?!pytest)|-k|tests/)", command[1])


def test_every_step_runs_by_default() -> None:
    listed = re.search(r"^every=\((.*?)\)", RUN.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert listed and listed[1].split() == [name for name in steps() if name not in WEEKLY]


def test_hosted_workflows_run_every_step() -> None:
    named = []
    for workflow in ("ci", "weekly"):
        text = (ROOT / ".github" / "workflows" / f"{workflow}.yml").read_text(encoding="utf-8")
        matrix = re.search(r"^ +step: \[(.*?)\]", text, flags=re.MULTILINE | re.DOTALL)
        assert matrix
        named.append(matrix[1].replace(",", " ").split())
        assert "bash .ci/run ${{ matrix.step }}" in text
    assert named == [[name for name in steps() if (name in WEEKLY) == weekly] for weekly in (False, True)]
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        for line in re.findall(r"run: bash \.ci/run ([\w ]+)", path.read_text(encoding="utf-8")):
            assert set(line.split()) <= set(steps()), path.name


def test_hooks_that_are_run_before_a_commit_exist() -> None:
    text = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    entries = [entry.split()[0] for entry in re.findall(r"^ +entry: (.*)$", text, flags=re.MULTILINE)]
    dev = PROJECT.partition("\ndev = [")[2].partition("\n]")[0]
    for entry in entries:
        if entry.startswith("."):
            assert os.access(ROOT / entry, os.X_OK), entry
        else:
            assert f'"{entry}>=' in dev, f"{entry} is not of the extra dev"


def test_marks_are_declared() -> None:
    declared = set(re.findall(r'^    "(\w+)(?:\(.*?\))?: ', PROJECT.split("markers = [")[1].split("\n]")[0], flags=re.MULTILINE))
    assert declared == {*CHOOSING, "gpu", "later", "sampled", "without"}


def test_what_needs_an_extra_is_marked() -> None:
    """A test that imports what the extra "test" does not install would be skipped in silence, or fail, in README's command."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        for mark, module in EXTRAS.items():
            needs = re.search(rf"""importorskip\("{module}"|^ *import {module}\b|^ *from {module}\b""", text, flags=re.MULTILINE)
            assert not needs or re.search(rf"pytest\.mark\.{mark}\b", text), (
                f"{path.name} needs {module} and has no test marked {mark}"
            )


def test_marked_tests_of_the_jit_step_are_in_its_paths() -> None:
    """Apart from the tests that take `variant`: outside of tests/kernels, they run under "jit" where somebody has Numba."""
    paths = re.search(r"-m jit (.*?)\n", steps()["jit"])
    assert paths
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        name = path.relative_to(ROOT).as_posix()
        if re.search(
            r"^@pytest\.mark\.jit|^pytestmark = pytest\.mark\.jit|marks=pytest\.mark\.jit",
            path.read_text(encoding="utf-8"),
            re.MULTILINE,
        ):
            # The kernels' machine code is read by the step "cuda".
            assert any(name.startswith(p) for p in paths[1].split()) or name == "tests/cuda/test_ptx.py", name


@pytest.mark.exhaustive
def test_items_are_left_out_as_the_marks_say(tmp_path: Path) -> None:
    """pytest, with the tree's conftest.py, on items of every kind."""
    (tmp_path / "conftest.py").write_text("from tests.conftest import *  # noqa: F403\n")
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "def test_plain(): pass\n"
        "@pytest.mark.exhaustive\ndef test_exhaustive(): pass\n"
        "@pytest.mark.without('reference')\ndef test_without(variant): pass\n"
        "@pytest.mark.later('reference')\ndef test_later(variant): pass\n"
        "def test_variants(variant): pass\n"
        "@pytest.mark.sampled(4)\n@pytest.mark.parametrize('i', range(100))\ndef test_sampled(i): pass\n"
    )
    (tmp_path / "test_missing.py").write_text("import pytest\nimport no_such_module\npytestmark = pytest.mark.missing\n")
    (tmp_path / "pytest.ini").write_text(
        f"[pytest]\naddopts = -m '{DEFAULT}'\nmarkers =\n    "
        + "\n    ".join(["exhaustive", "without", "later", "sampled", "jit", "gpu", "missing\n"])
    )

    def items(*arguments: str) -> list[str]:
        command = [sys.executable, "-c", f"""
import sys, tests.conftest
tests.conftest._MISSING.add("missing")
sys.path.insert(0, {str(ROOT)!r})
import pytest
sys.exit(pytest.main([{str(tmp_path)!r}, "-q", "--collect-only", "-p", "no:cacheprovider", *sys.argv[1:]]))"""]  # fmt: skip
        done = subprocess.run([*command, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return [line.partition("::")[2] for line in done.stdout.splitlines() if "::" in line]

    default, every = items(), items("-m", "")
    assert set(default) < set(every)
    late = set(every) - set(default)
    assert "test_plain" in default and "test_exhaustive" in late
    assert "test_later[reference]" in late and "test_variants[reference]" in default
    assert not any(name == "test_without[reference]" for name in every)
    sampled = [name for name in default if name.startswith("test_sampled")]
    assert (
        "test_sampled[0]" in sampled
        and 15 <= len(sampled) <= 40
        and sum(name.startswith("test_sampled") for name in every) == 100
    )
