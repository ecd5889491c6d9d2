"""Which variant runs: forced by the environment, chosen by `kernels.use`, or the fallback where nothing was compiled."""

from __future__ import annotations

import contextlib
import copy
import gc
import importlib.util
import os
import pickle  # noqa: TID251 - models must survive it; no file is read this way
import re
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers._extras import install
from fastlayers.kernels import dispatch
from fastlayers.kernels.table import KERNELS

ROOT = Path(__file__).parent.parent

# Hides modules as an install without them would: an error of import, or none found.
HIDE = """
import importlib.abc, importlib.util, sys
hidden = {hidden!r}
class Hide(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.startswith(hidden):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hide())
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name.startswith(hidden) else find(name, package)
"""
# The compiled engine, as without a compiler; and Numba.
NO_ENGINE = HIDE.format(hidden=("fastlayers.kernels.aot.", "numba"))
NO_ENGINE_BUT_NUMBA = HIDE.format(hidden=("fastlayers.kernels.aot.",))
NO_NUMBA = HIDE.format(hidden=("numba",))
NUMBA = importlib.util.find_spec("numba") is not None
# A product and its exact answer, through the front.
PRODUCT = """
import numpy as np
x, w = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(12, dtype=np.float32).reshape(4, 3)
def product():
    np.testing.assert_array_equal(fl.functional.linear(x, w, None), x @ w.T)
"""


def python(code: str, **environment: str) -> str:
    """Runs code in a fresh process, every warning an error there; returns what it printed."""
    keep = {name: value for name, value in os.environ.items() if not name.startswith("FASTLAYERS_")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        cwd=ROOT,
        env={**keep, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_available_names_levels_best_first_and_reference_last() -> None:
    *compiled, last = fl.kernels.available()
    assert last == "reference"
    if "cuda" in compiled:
        assert compiled.pop() == "cuda"
    if NUMBA:
        assert compiled.pop() == "jit"
    assert compiled == [f"aot/{name}" for name in dispatch.LEVELS if name in dispatch.levels()]


@pytest.mark.parametrize("level", [*dispatch.levels(), *sorted({"jit", "reference"} & {*fl.kernels.available()})])
def test_environment_forces_a_level(level: str) -> None:
    shown = python("import fastlayers as fl; print(fl.kernels.info()['variant'])", FASTLAYERS_ISA=level)
    assert shown == (f"aot/{level}" if level in dispatch.LEVELS else level)


@pytest.mark.parametrize(
    "value", sorted({"x86_v9", "X86_V3 ", "aot/x86_v3", "neon", "x86_v1", "-march=native"} - {*dispatch.levels()})
)
def test_environment_with_a_level_that_cannot_run_is_an_error_at_first_use(value: str) -> None:
    code = f"""
    import fastlayers as fl  # not here
    {PRODUCT.replace(chr(10), chr(10) + "    ")}
    for _ in range(2):  # and not only once
        try:
            product()
        except fl.DeviceError as error:
            print(error)
    """
    first, second = python(code, FASTLAYERS_ISA=value).splitlines()
    assert first == second
    assert "FASTLAYERS_ISA" in first
    assert repr(value) in first
    for valid in (*dispatch.levels(), "reference"):
        assert valid in first.split("expected")[1]


def test_environment_is_read_at_first_use() -> None:
    code = "import os, fastlayers as fl; os.environ['FASTLAYERS_ISA'] = 'reference'; print(fl.kernels.info()['variant'])"
    assert python(code, FASTLAYERS_ISA="nonsense") == "reference"


def test_empty_environment_variable_is_none() -> None:
    assert python("import fastlayers as fl; print(fl.kernels.current())", FASTLAYERS_ISA="") == fl.kernels.available()[0]


def test_use_sets_the_variant_at_once(variant: str) -> None:
    assert fl.kernels.current() == variant
    assert fl.kernels.info()["variant"] == variant


def test_use_as_a_function_stays_and_as_a_context_manager_restores() -> None:
    before = fl.kernels.current()
    try:
        fl.kernels.use("reference")
        assert fl.kernels.current() == "reference"
        with fl.kernels.use("aot" if dispatch.levels() else "reference"):
            assert fl.kernels.current() == fl.kernels.available()[0]
        assert fl.kernels.current() == "reference"
    finally:
        fl.kernels.use(before)
    assert fl.kernels.current() == before


def test_use_nests_and_restores_after_an_error() -> None:
    before = fl.kernels.current()
    with fl.kernels.use("reference"):
        for name in fl.kernels.available():
            with contextlib.suppress(ZeroDivisionError), fl.kernels.use(name):
                assert fl.kernels.current() == name
                raise ZeroDivisionError
            assert fl.kernels.current() == "reference"
    assert fl.kernels.current() == before


@pytest.mark.parametrize("name", ["", "avx2", "aot/avx2", "aot/", "Reference", "JIT", "CUDA", None, 3, ("reference",)])
def test_use_refuses_other_names_and_changes_nothing(name: object) -> None:
    before, generation = fl.kernels.current(), dispatch.generation
    with pytest.raises(fl.DeviceError, match=r"expected|must be") as caught:
        fl.kernels.use(name)  # type: ignore[arg-type]
    assert "reference" in str(caught.value)
    assert (fl.kernels.current(), dispatch.generation) == (before, generation)


@pytest.mark.parametrize("environment", [{}, {"FASTLAYERS_ISA": "cuda"}], ids=["use", "environment"])
def test_cuda_where_it_cannot_be_used_is_one_clear_error(environment: dict[str, str]) -> None:
    code = f"""
    import fastlayers as fl
    from fastlayers._extras import install
    from fastlayers.kernels import dispatch
    if "cuda" in fl.kernels.available():
        raise SystemExit
    generation = dispatch.generation
    try:
        {"fl.kernels.current()" if environment else "fl.kernels.use('cuda')"}
    except (fl.DeviceError, fl.MissingExtraError) as error:
        assert "cannot be used on this machine: " in str(error) or install("cuda") in str(error), error
        assert "'cuda'" in str(error) or "FASTLAYERS_ISA" in str(error)
    else:
        raise AssertionError
    assert dispatch.generation == generation
    """
    python(code, **environment)


def test_info_says_what_runs(variant: str) -> None:
    info = fl.kernels.info()
    assert info["variant"] == variant
    assert info["available"] == fl.kernels.available()
    assert info["threads"] == fl.get_num_threads()
    assert set(info["operations"]) == {item.name for item in KERNELS}
    info["operations"].clear()
    assert fl.kernels.info()["operations"], "info() gives a copy"


def test_results_follow_the_variant(variant: str) -> None:
    x = np.linspace(-3, 3, 101, dtype=np.float32)
    # tanh within 1e-6 of float64 is far coarser than any variant's bound, and far finer than a wrong function.
    np.testing.assert_allclose(fl.functional.tanh(x), np.tanh(x.astype(np.float64)), rtol=0, atol=1e-6)


def test_without_the_engine_it_warns_once_at_first_use_and_computes() -> None:
    code = f"""
    {NO_ENGINE.replace(chr(10), chr(10) + "    ")}
    import warnings
    import fastlayers as fl
    {PRODUCT.replace(chr(10), chr(10) + "    ")}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        product()
        product()
        net = fl.Linear(3, 4)
        net.load_state_dict({{"weight": w, "bias": np.ones(4, np.float32)}})
        np.testing.assert_array_equal(net(x), x @ w.T + 1)
    assert [item.category for item in caught] == [RuntimeWarning], caught
    told = str(caught[0].message)
    assert "compiled engine is missing" in told, told
    tree = __import__("pathlib").Path(fl.__file__).parents[1]
    assert (f"this is the source tree {{tree}}, which is not built" in told) == (tree / "setup.py").exists(), told
    assert fl.kernels.available() == ("reference",)
    assert set(fl.kernels.info()["operations"].values()) == {{"reference"}}
    """
    python(code)


@pytest.mark.jit
def test_without_the_engine_numba_comes_before_numpy() -> None:
    code = f"""
    {NO_ENGINE_BUT_NUMBA.replace(chr(10), chr(10) + "    ")}
    import warnings
    import fastlayers as fl
    {PRODUCT.replace(chr(10), chr(10) + "    ")}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        product()
    assert [item.category for item in caught] == [RuntimeWarning], caught
    assert "Numba" in str(caught[0].message), caught[0].message
    assert set(fl.kernels.available()) - {{"cuda"}} == {{"jit", "reference"}}
    assert fl.kernels.info()["operations"]["linear"] == "jit"
    """
    python(code)


@pytest.mark.parametrize("environment", [{}, {"FASTLAYERS_ISA": "jit"}], ids=["use", "environment"])
def test_without_numba_asking_for_it_names_the_extra(environment: dict[str, str]) -> None:
    code = f"""
    {NO_NUMBA.replace(chr(10), chr(10) + "    ")}
    import fastlayers as fl
    try:
        {"fl.kernels.current()" if environment else "fl.kernels.use('jit')"}
    except fl.MissingExtraError as error:
        print(error)
    assert "jit" not in fl.kernels.available()
    """
    assert install("jit") in python(code, **environment)


@pytest.mark.jit
def test_numba_is_imported_when_its_kernels_are_asked_for_and_not_before() -> None:
    code = """
    import sys
    import numpy as np
    import fastlayers as fl
    fl.functional.relu(np.ones(3, np.float32))
    assert "jit" in fl.kernels.available()
    assert "numba" not in sys.modules and "llvmlite" not in sys.modules
    fl.kernels.use("jit")
    from fastlayers.kernels.jit import _njit
    compiled = []
    _njit.listeners.append(lambda name, seconds: compiled.append(name))
    assert not compiled
    fl.functional.relu(np.ones(3, np.float32))
    print(*sorted(compiled))
    """
    assert python(code) == "_unary.apply activation._pieces"


@pytest.mark.jit
def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    code = "import numpy as np, fastlayers as fl; fl.kernels.use('jit'); print(fl.functional.relu(np.ones(1, np.float32))[0])"
    assert python(code, NUMBA_CACHE_DIR=str(tmp_path / "file")) == "1.0"


def test_without_the_engine_reference_can_be_asked_for_silently() -> None:
    code = f"""
    {NO_ENGINE.replace(chr(10), chr(10) + "    ")}
    import fastlayers as fl
    {PRODUCT.replace(chr(10), chr(10) + "    ")}
    product()
    """
    python(code, FASTLAYERS_ISA="reference")


def test_without_the_engine_asking_for_it_is_an_error() -> None:
    code = f"""
    {NO_ENGINE.replace(chr(10), chr(10) + "    ")}
    import fastlayers as fl
    try:
        fl.kernels.use("aot")
    except fl.DeviceError as error:
        print(error)
    """
    assert "expected one of reference" in python(code)


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (ImportError("engine.so: undefined symbol: PyWhat"), fl.DeviceError),
        (ModuleNotFoundError("No module named 'numpy.linalg'", name="numpy.linalg"), ModuleNotFoundError),
        (fl.LimitError("no file handle for it at the moment"), fl.LimitError),
    ],
    ids=["broken", "another module is missing", "a shortage"],
)
def test_only_an_engine_that_was_not_built_counts_as_missing(
    monkeypatch: pytest.MonkeyPatch, error: Exception, raised: type[Exception]
) -> None:
    def fails(name: str) -> Any:
        raise error

    monkeypatch.setattr(dispatch, "imported", fails)
    with pytest.raises(raised):
        dispatch.engine()


def test_an_engine_that_was_not_built_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(dispatch, "imported", fails)
    assert dispatch.engine() is None


def _net() -> Any:
    """A layer, its inputs' shape, and data."""
    net = fl.Conv2d(8, 8, 3, padding=1)
    rng = np.random.default_rng(0)
    net.load_state_dict({name: rng.standard_normal(shape).astype(np.float32) for name, shape in net.tensor_shapes().items()})
    return net, fl.graph.Input("x", ("n", 8, 12, 12)), rng.standard_normal((2, 8, 12, 12)).astype(np.float32)


@pytest.mark.parametrize("name", [*dispatch.levels(), "reference"])
def test_a_model_of_a_variant_that_is_asked_for(name: str, tmp_path: Path) -> None:
    """It runs under that variant, whatever the current one is, and so do its files, streams, copies and pickles."""
    name = name if name == "reference" else f"aot/{name}"
    net, shape, x = _net()
    with dispatch.switch(name):
        want = fl.compile(net, shape)(x)
    before = fl.kernels.current()
    model = fl.compile(net, shape, variant=name)
    model.save(tmp_path / "net.fastlayers")
    loaded = fl.load(tmp_path / "net.fastlayers", variant=name)
    for found in (model, loaded, copy.copy(model), copy.deepcopy(loaded), pickle.loads(pickle.dumps(loaded))):
        assert found.variant == name
        np.testing.assert_array_equal(found(x).view(np.int32), want.view(np.int32))
    assert fl.kernels.current() == before


def test_use_warns_of_models_that_keep_their_variant() -> None:
    gc.collect()
    other = next((name for name in fl.kernels.available() if name not in (fl.kernels.current(), "cuda", "jit")), None)
    if other is None:
        pytest.skip("there is one variant here")
    net, shape, _ = _net()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asked = fl.compile(net, shape, variant=fl.kernels.current())
        before = len([model for model in dispatch.models if model.variant != other])
        kept = fl.compile(net, shape)
        with fl.kernels.use(other):
            pass
        with dispatch.switch(other):  # ours
            pass
    (warning,) = caught
    assert warning.category is RuntimeWarning and warning.filename == __file__
    told = re.search(rf"(\d+) under {re.escape(kept.variant)}", str(warning.message))
    assert told and int(told[1]) == before + 1 and f"load(..., variant={other!r})" in str(warning.message)
    assert asked.variant == kept.variant


def test_variants_that_cannot_be_had() -> None:
    net, shape, _ = _net()
    for variant, message in (
        ("avx512", "compile: variant 'avx512' is unknown: expected one of "),
        ("aot/neon" if "neon" not in dispatch.levels() else "aot/x86_v1", "is not available on this machine"),
        (3, "compile: variant: expected a str such as 'aot' or 'reference', got int"),
    ):
        with pytest.raises(fl.Error, match=message):
            fl.compile(net, shape, variant=variant)
