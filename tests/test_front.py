"""Chart of README: drawn from the figures that are committed with it; README is short, and has its parts."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench import front

ROOT = Path(__file__).parent.parent
NAMESPACE = "{http://www.w3.org/2000/svg}"

pytestmark = pytest.mark.skipif(not (ROOT / "docs").exists(), reason="the source distribution has no pages")


def test_the_chart_is_drawn_from_its_figures() -> None:
    from docs.make_front import draw

    told = json.loads((ROOT / "docs" / "front.json").read_text(encoding="utf-8"))
    drawn = draw(told)
    assert drawn == (ROOT / "docs" / "front.svg").read_text(encoding="utf-8"), "python -m docs.make_front"
    assert told["machine"]["processor"] and told["versions"]["fastlayers"]
    assert list(told["cases"]) == [case for case in front.CASES if case in told["cases"]] and len(told["cases"]) > 1
    bars = ElementTree.fromstring(drawn).findall(f"{NAMESPACE}rect")[1:]  # the first is the paper
    values = [figures[unit] for case in told["cases"].values() for figures in case["engines"].values() for unit in ("ms", "MB")]
    assert len(bars) == len(values)
    first = next(iter(told["cases"].values()))["engines"]
    widths = [float(bar.get("width", "nan")) for bar in bars[: 2 * len(first) : 2]]
    times = [figures["ms"] for figures in first.values()]
    assert widths == pytest.approx([width * max(widths) / max(times) for width in times], abs=0.06)


def test_figures_are_the_best_of_all_rounds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With processes that only tell figures: one engine is missing, and times and memory are the least of three."""
    child = "import sys, os, json; path = sys.argv[3] + '/n'; n = os.path.exists(path) and int(open(path).read()) or 0\n"
    child += "with open(path, 'w') as f: f.write(str(n + 1))\nif sys.argv[2] == 'torch': raise SystemExit('is not here')\n"
    child += "print(json.dumps([1.0 / (n + 1), 100.0 + n]))"
    monkeypatch.setattr(front, "_CHILD", child)
    monkeypatch.setattr(front, "ENGINES", ("fastlayers", "torch"))
    front.main(["run", str(tmp_path), "silero", "--json", str(tmp_path / "f.json")])
    told = json.loads((tmp_path / "f.json").read_text(encoding="utf-8"))
    assert told["cases"]["silero"]["engines"] == {"fastlayers": {"ms": 200.0, "MB": 100.0}}  # runs 0, 2 and 4
    assert "torch: is not here" in capsys.readouterr().err
    front.main(["run", str(tmp_path), "minilm", "--json", str(tmp_path / "f.json")])
    assert set(json.loads((tmp_path / "f.json").read_text(encoding="utf-8"))["cases"]) == {"silero", "minilm"}


def test_readme_is_short_and_has_its_parts() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) < 150
    heads = [line for line in lines if line.startswith("## ")]
    assert heads.index("## Try it") > heads.index("## Four reasons") and "## When to use something else" in heads
