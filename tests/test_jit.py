"""Numba's engine beyond its kernels' numbers: what is compiled when, threads, calls at once, forks, warming up."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import fastlayers as fl
from bench.cases import all_cases
from fastlayers import cli
from fastlayers.kernels import dispatch

pytest.importorskip("numba")
pytestmark = pytest.mark.jit
ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def jit() -> Iterator[None]:
    with fl.kernels.use("jit"):
        yield


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def network() -> fl.Sequential:
    net = fl.Sequential(fl.Conv2d(3, 20, 3, padding=1), fl.ReLU(), fl.Conv2d(20, 24, 3, stride=2), fl.Tanh())
    net.load_state_dict({"0.weight": numbers(20, 3, 3, 3), "0.bias": numbers(20), "2.weight": numbers(24, 20, 3, 3) / 10,
                         "2.bias": numbers(24)})  # fmt: skip
    return net


def test_numba_is_imported_and_spelt_in_one_module_alone() -> None:
    folder = Path(dispatch.__file__).parent / "jit"
    texts = {path.name: path.read_text() for path in folder.glob("*.py")}
    assert {name for name, text in texts.items() if re.search(r"\bnumba\b", text)} == {"_njit.py", "users.py"}
    assert {name for name, text in texts.items() if "njit(" in text} == {"_njit.py"}  # "users.py" is about what users compiled
    text = (folder / "_njit.py").read_text()
    assert text.count("numba.njit(") == 1
    for flag in ("nnan", "ninf", "reassoc"):
        assert f'"{flag}"' not in text.split("FASTMATH =")[1]


def test_a_model_agrees_with_the_reference() -> None:
    x = numbers(2, 3, 33, 31)
    net = network()
    got = fl.compile(net, x)(x)
    with fl.kernels.use("reference"):
        np.testing.assert_allclose(got, net(x), rtol=0, atol=2e-5)


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    x = numbers(8, 3, 64, 64)
    net, before = network(), fl.get_num_threads()
    try:
        results = []
        for threads in (1, 2, 3):
            fl.set_num_threads(threads)
            results.append(net(x))
    finally:
        fl.set_num_threads(before)
    for other in results[1:]:
        np.testing.assert_array_equal(results[0].view(np.uint32), other.view(np.uint32))


def test_many_threads_may_call_at_once() -> None:
    x = numbers(4, 3, 64, 64)
    net = network()
    want = net(x)
    wrong: list[int] = []

    def work() -> None:
        for i in range(5):
            if not np.array_equal(net(x), want):
                wrong.append(i)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_an_error_of_a_task_reaches_the_caller() -> None:
    from fastlayers.kernels.jit._threads import spread

    def run(first: int, last: int) -> None:
        if last == 4:
            raise ZeroDivisionError

    before = fl.get_num_threads()
    fl.set_num_threads(2)
    try:
        with pytest.raises(ZeroDivisionError):
            spread(4, 1e9, run)
    finally:
        fl.set_num_threads(before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_computes() -> None:
    code = """
    import os, warnings
    import numpy as np, fastlayers as fl
    warnings.simplefilter("ignore")
    fl.kernels.use("jit")
    fl.set_num_threads(2)
    x = np.ones((4000, 1000), np.float32)
    want = fl.functional.relu(x)
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(fl.functional.relu(x), want) else 1)
    print(os.waitpid(child, 0)[1])
    """
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(line[4:] for line in code.splitlines())],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.strip() == "0", done.stderr


def test_warmup_compiles_what_a_model_needs_and_no_more(tmp_path: Path) -> None:
    code = """
    import numpy as np, fastlayers as fl
    from fastlayers.kernels import dispatch
    fl.kernels.use("jit")
    model = fl.compile(lambda x: fl.functional.softmax(fl.functional.relu(x), -1), fl.graph.Input("x", ("n", 5)))
    from fastlayers.kernels.jit import _njit
    seen = []
    seconds = fl.kernels.warmup(model, report=lambda *about: seen.append(about))
    assert seconds > 0 and seen[-1][:2] == (len(seen), len(seen))
    late = []
    _njit.listeners.append(lambda name, seconds: late.append(name))
    model(np.ones((3, 5), np.float32))
    print(late, sorted(name for _, _, name, _ in seen))
    """
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(line[4:] for line in code.splitlines())],
        cwd=ROOT, env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    late, names = done.stdout.strip().split("] [")
    assert late == "["
    assert "softmax._rows_task" in names and "_tile.block" not in names
    assert list(tmp_path.rglob("*.nbi")), "the disk cache was to be written"


def test_warmup_of_names() -> None:
    assert fl.kernels.warmup(["unary"]) >= 0
    with pytest.raises(fl.ArgumentError, match="there are no kernels"):
        fl.kernels.warmup(["relu"])
    with pytest.raises(fl.DTypeError, match="expected a model"):
        fl.kernels.warmup(3)  # type: ignore[arg-type]
    with fl.kernels.use("reference"):
        assert fl.kernels.warmup() == 0


def test_the_command_warmup(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fl.compile(lambda x: fl.functional.relu(x), fl.graph.Input("x", ("n", 5))).save(tmp_path / "model")
    with fl.kernels.use("jit"):
        assert cli.main(["warmup", str(tmp_path / "model")]) == 0
    out = capsys.readouterr().out
    assert "activation._pieces" in out and out.splitlines()[-1].startswith("ready: kernels took")


def test_a_model_can_be_saved_with_packed_weights_of_another_variant(tmp_path: Path) -> None:
    x = numbers(1, 3, 9, 9)
    made = fl.compile(network(), x)
    want = made(x)
    made.save(tmp_path / "model", packed=True)
    np.testing.assert_array_equal(fl.load(tmp_path / "model")(x), want)


def test_the_benchmark_stores_its_figures(tmp_path: Path, kept_threads: None) -> None:
    from bench.jit import main
    from bench.timing import read

    case = min((case for case in all_cases() if case.kernel == "softmax"), key=lambda case: case.moved)
    assert main(["--only", case.id, "--all", "--plain", "--json", str(tmp_path / "figures.json")]) == 0
    _, times = read(tmp_path / "figures.json")
    assert times[case.id].keys() == {"aot", "jit", "plain numpy"}
