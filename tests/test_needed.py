"""What a process imports: what its networks need and nothing else, and that nobody notices that the rest comes later."""

from __future__ import annotations

import ast
import importlib
import os
import re
import signal
import sys
import textwrap
import threading
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

import fastlayers as fl
from fastlayers import _lazy
from fastlayers.formats import _table
from fastlayers.formats.budget import Budget
from fastlayers.formats.source import open_source
from fastlayers.functional._homes import HOMES as FUNCTIONS
from fastlayers.kernels import dispatch
from fastlayers.layers.homes import HOMES as LAYERS
from fastlayers.operators import OPERATORS
from fastlayers.operators.families import FAMILIES
from fastlayers.passes import PASSES

from .formats import onnx_build as onnx
from .formats.test_hostile import VALID
from .test_dispatch import python

PACKAGE = Path(fl.__file__).parent
# Of Python's and numpy's own, none of which any of these scenes needs, and each of which takes a millisecond or more.
HEAVY = (
    "logging",
    "inspect",
    "dataclasses",
    "concurrent",
    "zipfile",
    "tempfile",
    "pickle",
    "numpy.ma",
    "numpy.random",
    "numpy.fft",
)
# What every model brings in.
CORE = {
    "formats": {"_arrays", "_refused", "budget", "graphs", "source", "_table", "weights", "onnx"},
    "layers": {"homes"},
    "functional": {"_homes"},
}
# What a first run does not need: other outputs, other sizes, reports, loops.
LATER = {
    "kernels": {"warming"},
    "model": {"stream", "summary", "values"},
    "operators": {"sequence"},
    "program": {"alike", "arena", "cost", "merged", "nested", "plain"},
}


def loaded(scene: str) -> tuple[dict[str, set[str]], set[str]]:
    """Modules that a scene imports in a fresh process after numpy: of ours, by package; and the names of all others."""
    before = "import sys, numpy as np\nbefore = set(sys.modules)\n"
    shown = python(before + textwrap.dedent(scene) + "\nprint('MODULES', *sorted(set(sys.modules) - before))")
    ours, others = defaultdict(set), set()
    for name in shown.split("MODULES ")[1].split():
        parts = name.split(".")
        if parts[0] != "fastlayers":
            others.add(name)
        elif len(parts) > 2:
            ours[parts[1]].add(".".join(parts[2:]))
    return dict(ours), others


def kernel_files(ours: dict[str, set[str]]) -> set[str]:
    """The compiled files of kernels."""
    return {name.removeprefix("aot.") for name in ours["kernels"] if name.startswith("aot.") and "._" not in name}


def convolutional() -> bytes:
    """Conv, Relu, GlobalAveragePool, Flatten, Gemm."""
    rng = np.random.default_rng(0)
    nodes = [
        onnx.node("Conv", "x w", "a", pads=[1, 1, 1, 1], kernel_shape=[3, 3]),
        onnx.node("Relu", "a", "b"),
        onnx.node("GlobalAveragePool", "b", "c"),
        onnx.node("Flatten", "c", "d"),
        onnx.node("Gemm", "d v", "y", transB=1),
    ]
    weights = [onnx.tensor(rng.standard_normal((8, 3, 3, 3)).astype("f4"), "w"), onnx.tensor(np.ones((4, 8), "f4"), "v")]
    values = [onnx.value_info("x", (1, 3, 8, 8))], [onnx.value_info("y", (1, 4))]
    return onnx.model(onnx.graph(nodes, *values, weights))


@pytest.mark.skipif(not dispatch.levels(), reason="the engine is not built")
def test_a_network_brings_its_operators_and_kernels_alone(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(convolutional())
    ours, others = loaded(f"""
        import fastlayers
        session = fastlayers.load({str(tmp_path / "net.onnx")!r})
        session.run({{"x": np.ones((1, 3, 8, 8), np.float32)}})
    """)
    shared = {"builder", "calls", "families", "fused", "graphs", "meter", "narrow", "reference", "shapes", "window"}
    families = {name for name in ours["operators"] if not name.startswith("_")} - shared
    # `control` and `sequence` say which operators are not plain; the others are what these here, and the rules of theirs, need.
    plain = {"activation", "arithmetic", "control", "conv", "linear", "normalization", "pooling", "sequence", "shape"}
    assert families <= plain, families - plain
    compiled = kernel_files(ours)
    window = {"adaptive", "conv", "padding", "pooling", "winograd"}
    assert compiled <= {"activation", "gemm", "layout", "movement", "reduce", "run"} | window
    assert not [name for name in ours["kernels"] if name.startswith(("jit", "cuda"))]
    for package, names in CORE.items():
        assert {name for name in ours.get(package, ()) if not name.startswith("onnx.")} <= names, package
    assert not ours["formats"] & {f"onnx.{name}" for name in ("contrib", "domains", "quantized")}
    wanted = {"fold", "conv_separable", "activation", "layout", "linear", "conv_direct", "repeated", "residual"}
    assert {name for name in ours["passes"] if not name.startswith("_")} <= wanted
    assert not {name for name in others if name.startswith((*HEAVY, "json"))}
    assert not {package: found for package, names in LATER.items() if (found := ours[package] & names)}


@pytest.mark.skipif(not dispatch.levels(), reason="the engine is not built")
def test_our_own_file_brings_neither_passes_nor_readers_of_others(tmp_path: Path) -> None:
    fl.load(convolutional()).save(tmp_path / "net.safetensors")
    ours, others = loaded(f"""
        import fastlayers
        model = fastlayers.load({str(tmp_path / "net.safetensors")!r})
        model.run({{"x": np.ones((1, 3, 8, 8), np.float32)}})
    """)
    read = {"_arrays", "_table", "budget", "graphs", "own", "own_words", "safetensors", "source", "weights"}
    assert ours["formats"] <= read | {"onnx", "onnx.schema"}  # which say what attributes operators have
    assert "passes" not in ours
    assert not {name for name in others if name.startswith(HEAVY)}
    assert not {package: found for package, names in LATER.items() if (found := ours[package] & names)}


def test_a_layer_brings_itself_alone() -> None:
    ours, others = loaded("""
        import fastlayers as fl
        layer = fl.Linear(10, 10)
        layer.load_state_dict({"weight": np.ones((10, 10)), "bias": np.ones(10)})
        layer(np.ones(10, np.float32))
    """)
    assert set(ours) <= {"calls", "functional", "graph", "ir", "kernels", "layers", "rules"}
    assert {name for name in ours["layers"] if not name.startswith("_")} - {"homes"} == {"linear"}
    assert ours["functional"] - {"_activation_names", "_homes", "_recorded", "_types"} == {"_linear"}
    assert kernel_files(ours) <= {"gemm", "run"}
    assert not {name for name in others if name.startswith(HEAVY)}


@pytest.mark.parametrize(
    ("kind", "modules"),
    [
        ("safetensors", {"safetensors"}),
        ("npy", {"npy"}),
        ("gguf", {"gguf"}),
        ("msgpack", {"msgpack", "hdf5"}),  # HDF5 may begin anywhere
    ],
)
def test_weights_bring_their_format_alone(kind: str, modules: set[str], tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(VALID[kind])
    ours, others = loaded(f"""
        import fastlayers as fl
        assert fl.load_weights({str(tmp_path / "file")!r})
    """)
    assert set(ours) <= {"formats", "layers"}
    read = {name.split(".")[0] for name in ours["formats"] if not name.startswith("_")}
    assert read - {"budget", "source", "weights"} <= modules
    assert not {name for name in others if name.startswith(("logging", "inspect", "numpy.ma"))}


# ---- the lists say what there is ----------------------------------------------------------------------------------------


def test_every_family_registers_what_the_list_says() -> None:
    folder = PACKAGE / "operators"
    modules = {".".join(p.relative_to(folder).with_suffix("").parts): p for p in folder.rglob("[a-z]*.py")}
    files = {name for name, p in modules.items() if re.search(r"^ *register\(", p.read_text("utf-8"), re.MULTILINE)}
    assert set(FAMILIES) == files
    assert {name for name in OPERATORS if "::" not in name} == set(_lazy.by_name(FAMILIES))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_every_family_registers_its_own_operators() -> None:
    """Each in a process in which no other was imported for another's sake."""
    shown = python("""
        import importlib, os
        from fastlayers.operators import OPERATORS
        from fastlayers.operators.families import FAMILIES
        for family, names in FAMILIES.items():
            child = os.fork()
            if child == 0:
                importlib.import_module(f"fastlayers.operators.{family}")
                os._exit(any(OPERATORS.found(name) is None for name in names.split()))
            if os.waitpid(child, 0)[1]:
                print(family)
    """)
    assert shown == ""


@pytest.mark.parametrize(("package", "homes"), [("functional", FUNCTIONS), ("layers", LAYERS)])
def test_every_public_name_has_its_home(package: str, homes: dict[str, str]) -> None:
    for module, names in homes.items():
        exported = set(importlib.import_module(f"fastlayers.{package}.{module}").__all__)
        assert set(names.split()) <= exported
    checked = ast.parse((PACKAGE / package / "__init__.py").read_text(encoding="utf-8"))
    stars = {node.module for node in ast.walk(checked) if isinstance(node, ast.ImportFrom) and node.level == 1}
    assert set(homes) == stars - {"homes", "_homes"}, "what type checkers see"
    found = getattr(fl, package)
    assert sorted(_lazy.by_name(homes)) == sorted(found.__all__)
    assert set(found.__all__) <= set(dir(found))
    assert all(getattr(found, name) is not None for name in found.__all__)
    with pytest.raises(AttributeError, match=f"fastlayers.{package}.*'nothing'"):
        found.nothing  # noqa: B018


@pytest.mark.parametrize("package", ["functional", "graph"])
def test_no_function_has_the_name_of_a_module(package: str) -> None:
    """Importing the module would put it in the function's place."""
    assert not {path.stem for path in (PACKAGE / package).glob("*.py")} & set(getattr(fl, package).__all__)


def test_completion_shows_what_is_public_and_nothing_else() -> None:
    shown = {name for name in dir(fl) if not name.startswith("_")}
    modules = {"cuda", "formats", "ort", "stream", "text"}  # which `fl.` finds too
    assert shown - set(fl.__all__) <= modules | {"model"}
    assert {name for name in dir(fl.functional) if not name.startswith("_")} == set(fl.functional.__all__)


def test_everything_can_be_imported_at_once() -> None:
    python("from fastlayers import *; Linear, load, functional, compile, __version__")


@pytest.mark.parametrize("kind", VALID)
def test_one_byte_never_hides_a_format(kind: str) -> None:
    source = open_source(VALID[kind], caller="test", mapped=False, budget=Budget(1 << 30, "test"))
    for name in _table.FORMATS:
        module = _table.module_of(name)
        assert name == module.NAME
        assert _table.may_be(source, name) or not module.sniff(source), name


def test_passes_are_modules_and_need_operators() -> None:
    """That a pass does nothing without what it needs is tested on every graph of tests/graph, in rewrites.py."""
    for item in PASSES:
        assert callable(importlib.import_module(f"fastlayers.passes.{item.name}").apply)
        named = [name for needs in item.needs for need in needs if isinstance(need, str) for name in need.split()]
        assert item.needs and all(name in OPERATORS for name in named)
        # What is asked of traits holds of some operator, and not of all.
        asked = [need for needs in item.needs for need in needs if not isinstance(need, str)]
        for need in asked:
            assert len({bool(need(operator.traits)) for operator in OPERATORS.values()}) == 2, item.name


# ---- threads and forks --------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_waits_for_another_threads_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the child the module would be half made, and its lock shut for ever."""
    (tmp_path / "slow_to_come.py").write_text("import time\ntime.sleep(0.3)\nthere = True\n")
    monkeypatch.setattr(fl, "__path__", [*fl.__path__, str(tmp_path)])  # forks wait for modules of this package
    name = "fastlayers.slow_to_come"
    thread = threading.Thread(target=_lazy.imported, args=(name,))
    thread.start()
    while name not in sys.modules:
        pass
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks next to threads
        child = os.fork()
    if child == 0:
        signal.alarm(5)
        os._exit(0 if _lazy.imported(name).there else 1)
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
    del sys.modules[name]


def test_all_threads_find_an_entry_that_one_of_them_looks_up() -> None:
    python("""
        import threading
        import fastlayers as fl
        from fastlayers.operators import OPERATORS
        found, start = [], threading.Barrier(8)
        def ask(names):
            start.wait()
            found.extend((OPERATORS["LSTM"].name, fl.functional.conv2d.__name__, fl.Conv2d.__name__) for _ in range(3))
        threads = [threading.Thread(target=ask, args=((),)) for _ in range(8)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        assert set(found) == {("LSTM", "conv2d", "Conv2d")} and len(found) == 24
    """)


def test_registry() -> None:
    asked: list[str] = []

    def find(name: str) -> str | None:
        asked.append(name)
        return None if name == "none" else name.upper()

    registry: _lazy.Registry[str] = _lazy.Registry(("a", "b", "none"), find)
    assert registry and asked == []
    assert registry["a"] == registry["a"] == registry.get("a") == "A" and asked == ["a"]
    assert "b" in registry and "none" not in registry and "c" not in registry
    assert registry.get("c", 5) == 5 and registry.setdefault("c", "own") == "own" and registry["c"] == "own"
    assert registry.found("none") is None
    assert dict(registry) == {**registry} == {"a": "A", "b": "B", "c": "own"} and len(registry) == 3
    assert sorted(registry) == sorted(registry.keys()) == ["a", "b", "c"] and set(registry.values()) == {"A", "B", "own"}
    with pytest.raises(KeyError):
        registry["none"]
