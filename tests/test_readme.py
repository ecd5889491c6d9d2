"""The blocks of README and the pages in docs/, as they stand, in order, with files that the package brings."""

from __future__ import annotations

import inspect
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers import cli
from fastlayers.cli import demo
from fastlayers.kernels import dispatch
from fastlayers.model.custom import forget
from tests.examples.wheels import wheel_file
from tests.formats.transformers.checkpoints import written

ROOT = Path(__file__).parent.parent


def blocks(page: str = "README.md") -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def prepared(folder: Path) -> None:
    """Checkpoints, which the package does not bring."""
    for name, case in (("encoder", "bert"), ("decoder", "llama")):
        (folder / name).mkdir()
        written(folder / name, case)


def text_folders(folder: Path) -> None:
    """Every folder that README and the page on texts name."""
    from tests.text import folders

    folders.sentence_transformer(folder / "all-MiniLM-L6-v2")
    folders.bert(folder / "reranker", labels=1)
    folders.bert(folder / "sentiment", labels=2)
    for name in ("small-llama", "SmolLM2-135M"):
        folders.decoder(folder / name)


def images() -> None:
    """A network of images in ``model.onnx``, and samples of what it sees in ``images.npz``."""
    rng = np.random.default_rng(0)
    net = fl.Sequential(fl.Conv2d(3, 32, 3), fl.ReLU(), fl.Conv2d(32, 64, 3), fl.ReLU(), fl.Flatten(), fl.Linear(64 * 28**2, 10))
    net.load_state_dict({name: rng.standard_normal(shape) * 0.05 for name, shape in net.tensor_shapes().items()})
    fl.compile(net, fl.graph.Input("image", (1, 3, 32, 32))).export("model.onnx")
    np.savez("images.npz", image=rng.standard_normal((4, 1, 3, 32, 32), np.float32))


def speech(probabilities: list[float]) -> np.ndarray:
    """Those of the recording, one for each whole window of 512 samples."""
    assert len(probabilities) == 221
    return np.array(probabilities)


def shown_after(block: str, page: str) -> str:
    """The output that a page shows right below a block of Python."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.match(r"```\n\n```text\n(.*?)^```", text.partition(block)[2], flags=re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    prepared(tmp_path)
    yield {}
    forget("Swirl", "com.example")


def test_the_blocks_run_in_order(names: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    (twenty,) = blocks()
    assert len([line for line in twenty.splitlines() if line]) <= 20
    exec(twenty, names)
    found = speech(names["found"])
    assert found.max() > 0.99 and np.mean(found > 0.5) > 0.85  # it is speech nearly all along: see the demo
    want, _ = demo.probabilities(demo.load_network(), demo.load_recording())
    np.testing.assert_allclose(found, want[:221], rtol=0, atol=1e-5)
    assert capsys.readouterr().out == shown_after(twenty, "README.md")


def test_the_published_network_finds_the_speech(names: dict[str, Any]) -> None:
    path = wheel_file("silero-vad==6.2.3", "silero_vad/data/silero_vad.onnx")
    exec(blocks()[0].replace('fl.example("silero_vad")', repr(str(path))), names)
    found = speech(names["found"])
    assert found.max() > 0.99 and np.mean(found > 0.5) > 0.85


# Pages whose blocks of Python do not run here, and why.
ELSEWHERE = {
    "docs/export.md": "each needs its framework: tests/examples/test_export.py",
    "docs/cuda.md": "needs a GPU: tests/cuda",
    "docs/onnxruntime.md": "in a process of its own: tests/ort/test_page.py",
    "docs/start/first-steps.md": "with the output that it shows: tests/test_tutorials.py",
    **{f"docs/tutorials/{path.name}": "the same" for path in (ROOT / "docs" / "tutorials").glob("*.md")},
}
ALL = {p.relative_to(ROOT).as_posix() for p in (ROOT / "docs").rglob("*.md") if p.parent.name != "layers"}
PAGES = sorted(ALL - ELSEWHERE.keys())
# Plain blocks without a line that begins with "fastlayers ", by what they begin with, and why they do not run.
NOT_RUN = {
    "python3 -m venv": "builds the package: the steps install and readme of .ci/run",
    "git clone": "the same",
    "pip install": "fetches packages",
    "pyinstaller": "fetches packages: tests/packaging/deploy.py",
    "python -m fastlayers.ort": "its program stands for the reader's: tests/ort/test_stand_in.py",
    "curl": "needs a server of the reader's models: tests/serve",
    "from openai": "needs a server and OpenAI's client: tests/serve/test_openai_client.py",
    "import tritonclient": "needs a server and Triton's client: tests/serve",
    "the packaged recording": "what the demo prints: test_the_demo_prints_what_readme_shows",
}


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)])
def test_the_blocks_of_a_page_run_in_order(page: str, names: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    if page == "docs/how-to/text.md":
        text_folders(Path())
    for _ in range(2 if page == "docs/how-to/operators.md" else 1):  # as a cell of a notebook
        for block in blocks(page):
            exec(block, names)
    capsys.readouterr()
    if page == "docs/models.md":
        assert names["results"]["output"].shape == (1, 1)
    elif page == "docs/start/layers.md":
        assert names["y"].shape == (8, 10)
        np.testing.assert_allclose(names["probabilities"].sum(1), 1.0, rtol=1e-6)
        np.testing.assert_array_equal(np.concatenate([names["first"], names["rest"]], axis=1), names["whole"])
    elif page == "docs/how-to/operators.md":
        np.testing.assert_array_equal(names["y"], np.maximum(np.roll(names["x"], 1, axis=-1) * 2, 0))
    elif page == "docs/how-to/streaming.md":
        assert len(names["found"]) == 222 and np.mean(np.array(names["found"]) > 0.5) > 0.85


def test_every_block_of_python_is_run() -> None:
    """Blocks of another form would be passed over in silence: only those fences are Python."""
    odd = [
        f"{page}: {fence}"
        for page in ["README.md", *PAGES]
        for fence in re.findall(r"^ *(```+ *\S.*)$", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
        if fence != "```python" and "literalinclude" not in fence and ("py" in fence.lower() or "code" in fence)
    ]
    assert odd == []


def plain(page: str) -> list[list[str]]:
    """The lines of each block without a language."""
    found: list[list[str]] = []
    inside: str | None = None
    for line in (ROOT / page).read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            inside = line[3:] if inside is None else None
            found += [[]] if inside == "" else []
        elif inside == "":
            found[-1].append(line)
    return found


PLAIN = [(page, block) for page in ("README.md", *ELSEWHERE, *PAGES) if (ROOT / page).exists() for block in plain(page)]


def test_every_other_block_is_of_commands_or_says_why_not() -> None:
    odd = [
        f"{page}: {block[0]}"
        for page, block in PLAIN
        if not any(block[0].startswith(begin) for begin in ("fastlayers ", "python -m ", *NOT_RUN))
    ]
    assert odd == []
    assert [b for b in NOT_RUN if not any(block[0].startswith(b) for _, block in PLAIN)] == []


@pytest.mark.skipif(not dispatch.levels(), reason="the compiled engine is not built here")
def test_commands_run_as_they_stand(names: dict[str, Any], kept_threads: None) -> None:
    lines = [line.split("  #")[0] for _, block in PLAIN for line in block if line.startswith("fastlayers ")]
    assert len(lines) > 10
    images()
    for line in lines:
        words = shlex.split(line)[1:]
        if words[0] == "serve" or words[0] == "doctor":  # until a signal; of tests/cli/test_doctor.py
            assert cli._parser().parse_args(words).command == words[0]
        else:
            assert cli.main([*words, *(["--seconds", "0"] if words[0] == "bench" else [])]) == 0, line


def test_the_demo_prints_what_readme_shows(capsys: pytest.CaptureFixture[str]) -> None:
    shown = next(block for _, block in PLAIN if block[0].startswith("the packaged recording"))
    assert cli.main(["demo"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert (printed[0], printed[3]) == (shown[0], shown[3]) and len(printed) == len(shown)
    assert re.sub(r"[\d.]+", "0", printed[4]) == re.sub(r"[\d.]+", "0", shown[4])


def test_the_page_on_models_has_every_option_of_load() -> None:
    text = (ROOT / "docs" / "models.md").read_text(encoding="utf-8").split("## Running")[0]
    told = set(re.findall(r"^\| `(\w+)` \|", text, flags=re.MULTILINE))
    parameters = inspect.signature(fl.load).parameters
    assert told == set(parameters) - {"source"}
