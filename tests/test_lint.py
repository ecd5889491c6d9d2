"""Rules of the source that ruff and mypy do not know: arrows between packages, file lengths, forbidden calls, docstrings.

One test a rule: it goes through all files, each of which is read and parsed once, and lists every offender.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from fastlayers import _forks
from tests.source import text_of, tree_of

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "fastlayers"
PYTHON = sorted(PACKAGE.rglob("*.py"))
CYTHON = sorted([*PACKAGE.rglob("*.pyx"), *PACKAGE.rglob("*.pxd"), *PACKAGE.glob("kernels/aot/*.pxi")])
C = sorted((PACKAGE / "kernels" / "aot" / "csrc").iterdir())
TESTS = sorted(
    [*(ROOT / "tests").rglob("*.py"), *(ROOT / "bench").rglob("*.py"), *(ROOT / "codegen").rglob("*.py"), ROOT / "setup.py"]
)
MOST_LINES = 600

# Every package and module below fastlayers, from the lowest on: each imports those before it alone. A private file is named
# without its underscore, "fastlayers" is what the package itself exports.
STOREYS = (
    "version", "tuples", "errors", "ggml", "lazy", "habits", "groups", "log", "html", "windows", "machine", "cpus", "locks",
    "foreign", "distinct", "masked", "extras", "arguments", "deadline", "held", "pages", "codes", "threadpools", "threads",
    "forks", "example",
    "kernels", "cuda", "ir", "rules", "calls", "operators", "batch", "program", "passes", "graph", "functional", "layers",
    "formats", "stream", "report", "model", "fastlayers", "text", "onnx_backend", "ort", "testing", "integrations", "serve",
    "cli", "__main__",
)  # fmt: skip
# What is below a storey and none of its business nevertheless.
FORBIDDEN = {
    "formats": {"kernels", "calls", "functional", "layers", "passes"},
    "program": {"cuda"},
    "report": {"functional", "layers", "formats", "stream"},
    "stream": {"layers", "formats", "kernels", "batch"},
    "batch": {"kernels", "calls"},
    "integrations": {"kernels", "calls", "layers", "formats", "ort"},
    "serve": {"ort", "testing", "integrations"},
    "ort": {"functional", "layers"},
    "freeze": set(STOREYS),  # runs in PyInstaller
}
# Their files have an underscore so that users see functions alone; packages above import them like any other.
HIDDEN_FILES = {"functional", "graph"}
ABOVE_KERNELS = set(STOREYS[STOREYS.index("kernels") + 1 :])


def offenders(paths: Iterable[Path], rule: Callable[[Path], Iterable[object]]) -> list[str]:
    """Every complaint of a rule, with its file."""
    return [f"{path.relative_to(ROOT).as_posix()}: {complaint}" for path in paths for complaint in rule(path)]


def storey(name: str) -> str:
    """First name below the package: "fastlayers.kernels.table" is of "kernels", "fastlayers._log" of "log"."""
    first = name.split(".")[1] if "." in name else "fastlayers"
    found = first if first.startswith("__") else first.removeprefix("_")
    return found if found in STOREYS or found in FORBIDDEN or found.startswith("__") else "fastlayers"


def storey_of(path: Path) -> str:
    """The storey of a file."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return "fastlayers" if parts == ("__init__",) else parts[0] if parts[0].startswith("__") else parts[0].removeprefix("_")


def statements(body: Iterable[ast.AST], function: str = "") -> Iterator[tuple[ast.AST, str]]:
    """All statements, with the function that each is in; without the expressions, which are most of a tree."""
    for node in body:
        yield node, function
        within = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else function
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from statements(getattr(node, part, ()), within)


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Absolute names of all that a file imports, at the top or in functions, with the lines; `from . import a` gives `….a`."""
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    for node, _ in statements(tree_of(path).body):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = [*package[: len(package) - node.level + 1]] if node.level else []
            base = ".".join([*parts, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def test_storey_and_imported_names() -> None:
    names = {name for _, name in imported(PACKAGE / "kernels" / "dispatch.py")}
    assert {"fastlayers.errors.DeviceError", "fastlayers.kernels.table.KERNELS", "numpy"} <= names
    assert storey("fastlayers.errors.DeviceError") == "errors"
    assert storey("fastlayers._log.logger") == "log"
    assert storey("fastlayers.load") == "fastlayers"


def ours(path: Path) -> Iterator[tuple[int, str]]:
    """Imports of the package in a file."""
    for line, name in imported(path):
        if name.split(".")[0] == "fastlayers" and name != "fastlayers.*":
            yield line, name


def upward(path: Path) -> Iterator[str]:
    mine = storey_of(path)
    for line, name in ours(path):
        other = storey(name)
        up = mine in STOREYS and STOREYS.index(other) > STOREYS.index(mine)
        if mine != "fastlayers" and other != mine and (up or other in FORBIDDEN.get(mine, set())):
            yield f"line {line}: {mine} may not import {name}"


def test_arrows_point_down() -> None:
    assert offenders(PYTHON, upward) == []


def circles(package: Path) -> list[set[str]]:
    """Sets of files of a package that reach one another, by their names in it: by imports within functions too, but for those for
    types alone.
    """

    def name_of(path: Path) -> str:
        parts = path.relative_to(package).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    names = {name_of(path): path for path in package.rglob("*.py")}
    arrows: dict[str, set[str]] = {}
    for name, path in names.items():
        typed = {
            line
            for node, _ in statements(tree_of(path).body)
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            for inner, _ in statements(node.body)
            for line in [getattr(inner, "lineno", 0)]
        }
        found = {
            full.removeprefix("fastlayers.")
            for line, full in imported(path)
            if line not in typed and full.startswith("fastlayers.")
        }
        # "a.b.c" is the file c of the package a.b, or something that the file a.b has.
        arrows[name] = {
            part for full in found for part in [full if full in names else full.rpartition(".")[0]] if part in names
        } - {name}
    reach = {name: set(to) for name, to in arrows.items()}
    for middle in names:
        for name in names:
            if middle in reach[name]:
                reach[name] |= reach[middle]
    knots = {
        frozenset({name, *(other for other in reach[name] if name in reach[other])}) for name in names if name in reach[name]
    }
    return sorted(map(set, knots), key=sorted)


def test_there_is_no_circle_of_files() -> None:
    assert circles(PACKAGE) == []


def test_a_circle_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    package = tmp_path / "fastlayers"
    for name, text in {
        "a": "from . import b\n", "b": "def f():\n    from .c import g\n", "c": "from .a import f\n",
        "d": "if TYPE_CHECKING:\n    from .e import x\n", "e": "from .d import y\n",
    }.items():  # fmt: skip
        (package / "sub").mkdir(parents=True, exist_ok=True)
        (package / "sub" / f"{name}.py").write_text(text)
    assert circles(package) == [{"sub.a", "sub.b", "sub.c"}]


def test_every_package_has_its_storey() -> None:
    """A new folder or module is told what it may import; nothing is listed that is not there."""
    found = {storey_of(path) for path in PYTHON}
    assert found == {*STOREYS, "freeze"}


def foreign_private(path: Path) -> Iterator[str]:
    mine = storey_of(path)
    for line, name in ours(path):
        private = any(part.startswith("_") and not part.startswith("__") for part in name.split(".")[2:])
        if private and storey(name) not in {mine, *HIDDEN_FILES}:
            yield f"line {line}: {name} is private to {storey(name)}"


def test_no_package_imports_private_parts_of_another() -> None:
    assert offenders(PYTHON, foreign_private) == []


def upward_of_compiled(path: Path) -> Iterator[str]:
    for name in re.findall(r"^\s*(?:c?import|from)\s+(\S+)", text_of(path), flags=re.MULTILINE):
        # fastlayers/kernels/aot/x.pyx: three dots are fastlayers.kernels' parent
        above = storey(name) if name.startswith("fastlayers.") else name[3:].split(".")[0] if name.startswith("...") else ""
        if above in ABOVE_KERNELS:
            yield f"may not import {name}"


def test_compiled_modules_import_nothing_above_them() -> None:
    assert offenders(CYTHON, upward_of_compiled) == []


def imported_late(path: Path) -> Iterator[str]:
    """Modules that a function imports, and that a fork would not wait for: see fastlayers/_forks.py."""
    if path.parent.name in PROGRAMS:
        return
    for node, function in statements(tree_of(path).body):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names.append(node.module)
        late = {name.partition(".")[0] for name in names} if function else set()
        if late - _forks._IMPORTED - OPTIONAL:
            yield f"{function} imports {late}"


# Packages that are looked for once, and never while a model is called; folders of whole programs.
OPTIONAL, PROGRAMS = {"llvmlite", "numba", "onnx", "onnxruntime"}, {"cli", "integrations", "serve", "testing"}


def test_a_fork_waits_for_every_import_within_a_function() -> None:
    assert offenders(PYTHON, imported_late) == []


def test_files_are_short() -> None:
    long = {path: len(text_of(path).splitlines()) for path in (*PYTHON, *CYTHON, *C, *TESTS)}
    assert offenders(long, lambda path: [f"{long[path]} lines"] * (long[path] > MOST_LINES)) == []


# Phrases that the field has others for, and that have no other use here: unknown, the caller, again, alternate, trusted,
# third-party, reference implementation, untrusted files, with a stride of, split, distinguished, passed, subnormals, integers,
# fastlayers errors, spatial axes, learned, most probable, applied. Plain texts: a pattern of all of them takes a minute.
PHRASES = (
    "nobody", "whoever", "called anew", "take turns", "takes turns", " is believed", "foreign type", "meaning in numpy",
    "numpy meaning", "of strangers", " by turns", "side by side", "a number a channel", "floats apart", "bytes apart",
    "values apart", "told apart", "taken apart", "handed on", "handed over", "handed down", "handed back", "handed to",
    "normal numbers", "whole numbers", "seeded numbers", "error of ours", "errors of ours", "arrays of ours", "operator of ours",
    "axis of space", "axes of space", "learnt", "likeliest", " its say", " their say",
)  # fmt: skip
# Spelled with z, as torch, Keras, ONNX and numpy do.
STEMS = (
    "custom equal factor final general initial linear maxim minim normal optim organ parallel priorit quant recogn regular "
    "serial special standard synchron token vector visual"
)
OTHER_WORDS = PHRASES + tuple(f"{stem}is{end}" for stem in STEMS.split() for end in ("e", "i", "a"))


def other_words(path: Path) -> list[str]:
    text = re.sub(r"\s*\n\s*(?:[#*] )?", " ", text_of(path)).lower()  # as one line, comments without their marks
    return [words for words in OTHER_WORDS if words in text]


def test_words_are_those_of_the_field() -> None:
    assert offenders([*PYTHON, *CYTHON, *C], other_words) == []


# A docstring says what the thing is or does, noun or verb first.
STUBS = re.compile(r"(?:What|Who|Whom|Whose|Where|How|Which|Of|That of|Those of)\b")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def stubs(path: Path) -> list[str]:
    """Docstrings of a file that begin with a relative clause or a genitive."""
    if path.suffix == ".py":
        found = [ast.get_docstring(node) or "" for node in ast.walk(tree_of(path)) if isinstance(node, DOCUMENTED)]
    else:
        found = re.findall(r'"""\s*([^"\n]*)', text_of(path))
    return [text.splitlines()[0] for text in found if STUBS.match(text)]


def test_docstrings_begin_with_a_noun_or_a_verb() -> None:
    scripts = [path for folder in ("bench", "codegen") for path in sorted((ROOT / folder).rglob("*.py"))]
    assert offenders([*PYTHON, *CYTHON, *scripts], stubs) == []


def executed(path: Path) -> Iterator[str]:
    for line, name in imported(path):
        if name.split(".")[0] in {"pickle", "_pickle", "cPickle", "marshal", "shelve", "dill"}:
            yield f"line {line}: imports {name}"
    for node in ast.walk(tree_of(path)):
        name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
        if name in {"eval", "exec", "compile", "__import__"}:
            yield f"line {node.lineno}: calls {name}"


def test_nothing_is_executed_or_unpickled() -> None:
    assert offenders(PYTHON, executed) == []


def executed_in_compiled(path: Path) -> list[str]:
    return re.findall(r"\b(?:eval|exec)\(|\bpickle\b", text_of(path))


def test_nothing_is_executed_in_compiled_modules() -> None:
    assert offenders(CYTHON, executed_in_compiled) == []


LOCKS = ("Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "Event", "Barrier")


def foreign_locks(path: Path) -> list[str]:
    if path.name in ("_locks.py", "_forks.py") and path.parent == PACKAGE:
        return []  # makes them, or is called by the process that forks alone
    found = re.findall(rf"\b(?:threading|_thread|multiprocessing)\.(?:{'|'.join(LOCKS)}|allocate_lock)\b", text_of(path))
    found += re.findall(rf"from +_thread +import .*\b(?:{'|'.join(LOCKS)}|allocate_lock)\b", text_of(path))
    return found + re.findall(r"import +_thread\b|(?:from|import) +(?:queue|multiprocessing)\b|from +threading\b", text_of(path))


def test_locks_are_those_that_a_forked_child_finds_open() -> None:
    assert offenders([*PYTHON, *CYTHON], foreign_locks) == [], "expected fastlayers._locks.Lock"


def without_docstring(path: Path) -> list[str]:
    if path.suffix == ".py":
        found: object = ast.get_docstring(tree_of(path))
    elif path.suffix in (".c", ".h"):
        found = text_of(path).startswith("/* ")
    else:
        found = re.match(r'(?:#.*\n)*"""\S', text_of(path))
    return [] if found else ["does not begin by saying what it is"]


def test_every_file_says_what_it_is() -> None:
    assert offenders([*PYTHON, *CYTHON, *(p for p in C if p.suffix in (".c", ".h"))], without_docstring) == []


def asserted(path: Path) -> Iterator[str]:
    for node in ast.walk(tree_of(path)):
        # `assert name is not None` tells the type checker what the code before it has made sure of.
        if isinstance(node, ast.Assert) and not re.fullmatch(r"[\w.]+ is not None", ast.unparse(node.test)):
            yield f"line {node.lineno}: {ast.unparse(node)}"


def test_errors_are_raised_and_not_asserted() -> None:
    """`python -O` drops assertions, so no check of a user's input may be one. Kernels state what their callers guarantee."""
    assert offenders([path for path in PYTHON if "kernels" not in path.parts], asserted) == []


def test_every_rule_finds_an_offender(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each rule, on a file that breaks it: a rule that finds nothing anywhere would pass for ever."""
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    monkeypatch.setattr(f"{__name__}.PACKAGE", tmp_path / "fastlayers")
    wrong, compiled = tmp_path / "fastlayers" / "graph" / "wrong.py", tmp_path / "fastlayers" / "kernels" / "aot" / "wrong.pyx"
    for path in (wrong, compiled):
        path.parent.mkdir(parents=True)
    long = f"def many({', '.join(f'a{i}' for i in range(MOST_ARGUMENTS + 1))}): pass\n"
    wrong.write_text(
        "import pickle\nfrom threading import Lock\nfrom ..model import Model\nfrom ..ir._x import y\nassert Model\neval('1')\n"
        + long
        + "def f():\n    class A:\n        import nowhere  # rows n floats\n        # apart, normalised\n"
    )
    compiled.write_text("from ...model import Model\neval('1')\n")
    rules: dict[Callable[[Path], Iterable[object]], int] = {
        upward: 1,
        imported_late: 1,
        foreign_private: 1,
        executed: 2,
        foreign_locks: 1,
        asserted: 1,
        without_docstring: 1,
        arguments_of: 1,
        other_words: 2,
    }
    assert {rule: len(offenders([wrong], rule)) for rule in rules} == rules
    rules = {upward_of_compiled: 1, executed_in_compiled: 1, without_docstring: 1}
    assert {rule: len(offenders([compiled], rule)) for rule in rules} == rules


def test_environment_variables_are_documented() -> None:
    """Every variable that the package or its build reads is explained in the documentation or at the top of setup.py."""
    sources = [*PYTHON, *CYTHON, *C, ROOT / "setup.py"]
    used = {name for path in sources for name in re.findall(r"\bFASTLAYERS_[A-Z_]+\b", path.read_text(encoding="utf-8"))}
    page = ROOT / "docs" / "reference" / "environment.md"
    explained = page.read_text(encoding="utf-8") + (ROOT / "setup.py").read_text(encoding="utf-8").split('"""')[1]
    assert {name for name in used if name not in explained} == set()


def test_no_macro_has_the_name_of_a_value() -> None:
    """In what is included behind it, the compiler would take the macro without a word."""
    texts = [re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL) for path in C]
    values = {
        name for text in texts for body in re.findall(r"\benum\s*\w*\s*\{([^}]*)\}", text) for name in re.findall(r"FL_\w+", body)
    }
    macros = {
        name for text in texts for name in re.findall(r"^[ \t]*#[ \t]*define[ \t]+(FL_\w+)(?![\w(])", text, flags=re.MULTILINE)
    }
    assert len(values) > 20 and len(macros) > 50
    assert values & macros == set()


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
    # Clang refuses what it does not know, where an install then goes on without the engine: these both compilers know.
    known = {"-ffp-contract=fast", "-fno-math-errno", "-fno-asynchronous-unwind-tables", "-ftree-vectorize",
             "-fno-tree-vectorize", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined",
             "-fno-omit-frame-pointer"}  # fmt: skip
    assert {flag for flag in flags if flag.startswith("-f")} - known == set()
    assert not {"-ffast-math", "-Ofast", "-march=native", "-mtune=native", "-fopenmp"} & set(flags)


MOST_ARGUMENTS = 12


def arguments_of(path: Path) -> Iterator[str]:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef):
            count = len([*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs])
            if count > MOST_ARGUMENTS:
                yield f"{node.name} has {count} arguments"


def test_plans_are_not_lists_of_arguments() -> None:
    """What is computed of shapes goes to a kernel as one record, of which a field is not mistaken for its neighbour."""
    assert offenders((PACKAGE / "kernels").rglob("*.py"), arguments_of) == []
