"""Sizes that a file leaves open: given in any of the forms of --shape, or guessed, and told; never a traceback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers import cli
from fastlayers.cli._sizes import TRIED, candidates, given_sizes, hint
from fastlayers.errors import ArgumentError
from fastlayers.ir.graph import Graph, Node, Value
from fastlayers.model.specs import Specs, TensorSpec
from tests.formats import onnx_build as onnx
from tests.program.graphs import graph, node, normal

F32 = np.dtype(np.float32)
SOON = {"bench": ("--seconds", "0"), "profile": ("--runs", "1")}


@pytest.fixture(autouse=True)
def one_thread() -> None:
    fl.set_num_threads(1)


def saved(made: Graph, path: Path) -> str:
    fl.Model(made).save(path)
    return str(path)


@pytest.fixture
def wide(tmp_path: Path) -> str:
    """A convolution whose window needs 40 samples."""
    made = graph({"sound": ("batch", 1, "time")}, [node("y = Conv(sound, w)")], ["y"], {"w": normal(2, 1, 40)})
    return saved(made, tmp_path / "wide.safetensors")


@pytest.fixture
def two(tmp_path: Path) -> str:
    """A sequence that wants 33 steps at least, and a vector that wants one."""
    nodes = [node("a = Conv(sound, w)"), node("y = Add(a, gain)")]
    made = graph({"sound": (1, 1, None), "gain": (1, 2, None)}, nodes, ["y"], {"w": normal(2, 1, 33)})
    return saved(made, tmp_path / "two.safetensors")


@pytest.fixture
def odd(tmp_path: Path) -> str:
    """A network for 37 steps, which the file does not say."""
    made = graph({"x": ("n", "time")}, [node("y = Add(x, b)")], ["y"], {"b": normal(1, 37)})
    return saved(made, tmp_path / "odd.safetensors")


def output(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> tuple[str, str]:
    assert cli.main(list(arguments)) == code
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return captured.out, captured.err


@pytest.mark.parametrize("command", ["inspect", "run", "bench", "profile", "compare"])
def test_sizes_are_guessed_upwards_and_told(command: str, wide: str, capsys: pytest.CaptureFixture[str]) -> None:
    more = ["--seconds", "0"] if command == "bench" else []
    out, _ = output(capsys, command, wide, *more)
    assert "sizes are guessed: --shape sound=1,1,64" in out
    out, _ = output(capsys, command, wide, *more, "--shape", "sound=1,1,64")  # what is told can be given
    assert "sizes are guessed" not in out


@pytest.mark.parametrize(
    ("given", "shape"),
    [
        (["1,1,50"], "1x2x11"),
        (["sound=3x1x50"], "3x2x11"),
        (["time=50"], "1x2x11"),
        (["time=50", "batch=2"], "2x2x11"),
        (["batch=2"], "2x2x25"),
    ],
)
def test_every_form_of_shape(given: list[str], shape: str, wide: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = [part for text in given for part in ("--shape", text)]
    assert f" {shape} " in output(capsys, "inspect", wide, *options)[0]


def test_each_open_size_may_need_another(two: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "sizes are guessed: --shape sound=1,1,64 --shape gain=1,2,1" in output(capsys, "inspect", two)[0]


@pytest.mark.parametrize("command", ["inspect", "run", "bench", "profile"])
def test_what_cannot_be_guessed_is_asked_for(command: str, odd: str, capsys: pytest.CaptureFixture[str]) -> None:
    made = fl.Model(graph({"x": ("n", "time"), "b": ("n", 37)}, [node("y = Concat(x, b)", axis=0)], ["y"]))
    made.save(odd)
    out, err = output(capsys, command, odd, code=2)
    assert "give them, as in --shape x=1,N --shape b=1,37" in err and err.count("\n") == 1
    if command == "inspect":  # inputs and outputs are there all the same
        assert "input x float32['n', 'time']" in out and "output y" in out
    assert "sizes are guessed" in output(capsys, command, odd, "--shape", "time=37")[0]


@pytest.mark.parametrize("command", ["inspect", "run", "bench", "profile", "compare", "convert"])
@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ("sound=-1,1,50", "--shape sound=-1,1,50: expected sizes of at least 0"),
        ("time=-1", "expected sizes of at least 0"),
        ("sound=1000000000,1,50000", "would take 400000000000000 bytes"),
        (f"time={2**63}", "below 2\\*\\*63"),
        ("sound=a", "expected sizes separated by commas"),
        ("time=1,2", "'time' is the name of a size: expected one number"),
        ("q=1", "with one of the names sound, or of the sizes batch, time"),
    ],
)
def test_sizes_that_cannot_be(
    command: str, shape: str, message: str, wide: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = [str(tmp_path / "new.safetensors")] if command == "convert" else []
    if command == "convert" and "would take" in message:
        pytest.skip("it writes the file without running it, and says why")
    _, err = output(capsys, command, wide, *target, "--shape", shape, code=2)
    assert message.replace("\\", "") in err and err.startswith(f"fastlayers {command}: --shape")


def test_a_shape_without_a_name_among_several_inputs(two: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, err = output(capsys, "inspect", two, "--shape", "1,1,50", code=2)
    assert "the model has the inputs sound, gain: expected NAME=1,1,50" in err


def specs(**shapes: Any) -> Specs:
    return Specs(TensorSpec(name, shape, F32) for name, shape in shapes.items())


@pytest.mark.parametrize("command", ["inspect", "run", "bench", "profile"])
def test_integers_that_sizes_are_read_from_are_ones_where_zeros_will_not_do(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = graph({"x": (1, 3, 1), "shape": ((3,), np.int64)}, [node("y = Expand(x, shape)")], ["y"])
    out, _ = output(capsys, command, saved(made, tmp_path / "expand.safetensors"), *SOON.get(command, ()))
    assert "sizes are guessed: --value shape=1" in out
    out, _ = output(capsys, command, str(tmp_path / "expand.safetensors"), "--value", "shape=3", *SOON.get(command, ()))
    assert "guessed" not in out


@pytest.mark.parametrize("command", ["inspect", "run", "bench", "profile"])
def test_strings_are_empty(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [onnx.node("StringNormalizer", "x", "y", case_change_action="LOWER")]
    string = [onnx.value_info("x", ("n",), 8)], [onnx.value_info("y", ("n",), 8)]
    (tmp_path / "strings.onnx").write_bytes(onnx.model(onnx.graph(nodes, *string, [])))
    assert "sizes are guessed: --shape x=1" in output(capsys, command, str(tmp_path / "strings.onnx"), *SOON.get(command, ()))[0]


def test_candidates() -> None:
    inputs = specs(x=("n", "t", 4), h=(2, "n", 8), k=())
    sizes = given_sizes([], inputs)
    tried = [guess.shapes for guess in candidates(inputs, sizes)]
    assert tried == [{"x": (1, t, 4), "h": (2, 1, 8), "k": ()} for t in TRIED]  # n is a batch wherever it stands
    assert hint(inputs, sizes, tried[1]) == "--shape x=1,16,4 --shape h=2,1,8"
    (only,) = candidates(inputs, given_sizes(["t=3", "n=5"], inputs))
    assert only == ({"x": (5, 3, 4), "h": (2, 5, 8), "k": ()}, True)
    pictures = [guess.shapes["x"] for guess in candidates(specs(x=(None, 3, None, None)), given_sizes([], specs()))]
    assert pictures[0] == (1, 3, 224, 224) and (1, 3, 1, 1) in pictures
    with pytest.raises(ArgumentError, match="leaves the rank of x open: give --shape x="):
        list(candidates(specs(x=None), sizes))
    huge = specs(x=(None, *(f"s{i}" for i in range(12))))
    assert max(np.prod(g.shapes["x"], dtype=float) for g in candidates(huge, given_sizes([], huge))) <= 1 << 26


def test_one_array_for_one_input_may_have_any_name(wide: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = normal(1, 1, 45)
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "x.npz", x)
    want = fl.load(wide)(x)
    for name in ("x.npy", "x.npz"):
        output(capsys, "run", wide, str(tmp_path / name), "-o", str(tmp_path / "out"))
        with np.load(tmp_path / "out.npz") as results:
            np.testing.assert_array_equal(results["y"], want)
    _, err = output(capsys, "run", wide, "-o", str(tmp_path / "out.json"), code=2)
    assert "expected a name ending in .npz" in err and not list(tmp_path.glob("out.json*"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bench", "m", "--seconds", "-1"], "expected a number at least 0, got '-1'"),
        (["bench", "m", "--seconds", "nan"], "expected a number at least 0"),
        (["profile", "m", "--runs", "0"], "expected an integer from 1 to 10000, got '0'"),
        (["run", "m", "--threads", "many"], "expected an integer from 1 to 256, got 'many'"),
        (["demo", "--threshold", "x"], "expected a number between 0 and 1, got 'x'"),
    ],
)
def test_numbers_of_options(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, err = output(capsys, *arguments, code=2)
    assert message in err


def test_names_of_files_do_not_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "x\x1b[2J" + "n" * 200
    made = Graph((Value(name, (None, 3), F32),), (Value("y", (None, 3), F32),), (Node("Relu", (name,), ("y",), {}),), {})
    fl.Model(made).save(tmp_path / "m.safetensors")
    for command in ("inspect", "run"):
        out, _ = output(capsys, command, str(tmp_path / "m.safetensors"))
        assert "\x1b" not in out and "sizes are guessed: --shape 'x" in out
    _, err = output(capsys, "run", str(tmp_path / "m.safetensors"), "--shape", "1,2", code=2)
    assert "\x1b" not in err


def test_no_prefix_comes_twice(wide: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, err = output(capsys, "run", wide, "--shape", "sound=1,2,50", code=2)
    assert err.startswith("fastlayers run: input 'sound' has shape (1, 2, 50)")


def test_bench_counts_runs_by_the_time_that_passed(
    wide: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every third look at the clock comes half a second late, which no median shows."""
    from types import SimpleNamespace

    from fastlayers.cli import bench
    from fastlayers.testing import timing

    now = [0.0, 0]

    def clock() -> float:
        now[1] += 1
        now[0] += 0.5 if now[1] % 3 == 0 else 0.001
        return now[0]

    for module in (bench, timing):
        monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=clock, monotonic=clock))
    out, _ = output(capsys, "bench", wide, "--shape", "1,1,50", "--seconds", "10")
    runs, rate = int(out.split(" runs:")[0].split()[-1]), float(out.split(" a second")[0].split()[-1])
    assert rate == pytest.approx(runs / 10, abs=1)
