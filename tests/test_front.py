"""Chart of README: drawn from the figures that are committed with it; README is short, and has its parts."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench import front
from bench.timing import read

ROOT = Path(__file__).parent.parent
NAMESPACE = "{http://www.w3.org/2000/svg}"

pytestmark = pytest.mark.skipif(not (ROOT / "docs").exists(), reason="the source distribution has no pages")


def test_the_chart_is_drawn_from_its_figures() -> None:
    from docs.make_front import COLOURS, draw

    about, times = read(ROOT / "docs" / "front.json")
    drawn = draw(ROOT / "docs" / "front.json")
    assert drawn == (ROOT / "docs" / "front.svg").read_text(encoding="utf-8"), "python -m docs.make_front"
    assert about["machine"]["processor"] and about["versions"]["fastlayers"]
    assert set(times) <= set(front.CASES.values()) and len(times) > 1
    bars = ElementTree.fromstring(drawn).findall(f"{NAMESPACE}rect")[1:]  # the first is the paper
    assert len(bars) == 2 * sum(map(len, times.values()))
    first = times[next(title for title in front.CASES.values() if title in times)]
    widths = [float(bar.get("width", "nan")) for bar in bars[: 2 * len(first) : 2]]
    best = [first[engine]["best"] for engine in COLOURS if engine in first]
    assert widths == pytest.approx([width * max(widths) / max(best) for width in best], abs=0.06)


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
    about, times = read(tmp_path / "f.json")
    title = front.CASES["silero"]
    assert list(times[title]) == ["fastlayers"] and times[title]["fastlayers"]["best"] == 0.2  # runs 0, 2 and 4
    assert times[title]["fastlayers"]["rounds"] == 3 and about["memory"] == {title: {"fastlayers": 100.0}}
    assert "torch: is not here" in capsys.readouterr().err
    front.main(["run", str(tmp_path), "minilm", "--json", str(tmp_path / "f.json")])
    about, times = read(tmp_path / "f.json")
    assert set(times) == set(about["memory"]) == {title, front.CASES["minilm"]}


def test_readme_is_short_and_has_its_parts() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) < 150
    heads = [line for line in lines if line.startswith("## ")]
    assert heads.index("## Try it") > heads.index("## Four reasons") and "## When to use something else" in heads
