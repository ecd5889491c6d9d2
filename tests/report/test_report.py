"""A report's numbers, and each of its forms: text, JSON, a trace, a page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import fastlayers as fl
from fastlayers._html import shape, shares
from fastlayers.kernels import dispatch
from fastlayers.model.summary import bound
from fastlayers.program.steps import steps, timed
from fastlayers.report import Limits, Report, StepReport
from fastlayers.report._layout import HEIGHT, WIDTH, layout
from fastlayers.report._network import drawing
from fastlayers.report.text import count, limit, three
from tests.formats import onnx_build as onnx
from tests.program.graphs import normal

ENGINE = pytest.mark.skipif(not dispatch.levels(), reason="the compiled engine is not built here")
HOSTILE = "</title></svg><script>alert(1)</script>\"' onload=alert(1) \u202e\n\x00&lt; [red]\ud800"


@pytest.fixture(autouse=True)
def one_thread(kept_threads: None) -> None:
    fl.set_num_threads(1)


def residual() -> fl.Model:
    """Two ways from one convolution, which meet again."""
    nodes = [
        onnx.node("Conv", "x w", "a/first/c"), onnx.node("Conv", "a/first/c v", "a/second/c"),
        onnx.node("Add", "a/second/c a/first/c", "s"), onnx.node("Det", "s", "y"),
    ]  # fmt: skip
    graph = onnx.graph(
        nodes, [onnx.value_info("x", (1, 3, 8, 8))], [onnx.value_info("y", (1, 4))],
        [onnx.tensor(normal(4, 3, 1, 1), "w"), onnx.tensor(normal(4, 4, 1, 1), "v")],
    )  # fmt: skip
    return fl.load(onnx.model(graph), optimize=False)


def staged() -> fl.Model:
    """A loop of n rounds over a product."""
    steps = [onnx.node("MatMul", "s w", "t"), onnx.node("Relu", "t", "s2"), onnx.node("Identity", "c", "c2")]
    states = [onnx.value_info("i", (), 7), onnx.value_info("c", (), 9), onnx.value_info("s", (1, 8))]
    body = onnx.graph(steps, states, [onnx.value_info("c2", (), 9), onnx.value_info("s2", (1, 8))])
    nodes = [onnx.node("NonZero", "x", "nz"), onnx.node("Transpose", "nz", "nt"), onnx.node("Loop", "n _ x", "y", body=body)]
    outputs = [onnx.value_info("y", (1, 8)), onnx.value_info("nt", ("k", 2), 7)]
    graph = onnx.graph(
        nodes, [onnx.value_info("x", (1, 8)), onnx.value_info("n", (), 7)], outputs, [onnx.tensor(normal(8, 8), "w")]
    )
    return fl.load(onnx.model(graph))


FEEDS = {"x": np.ones((1, 8), np.float32), "n": np.array(5)}


@ENGINE
def test_steps_totals_and_edges() -> None:
    report = residual().report()
    assert [s.step.op for s in report.steps] == ["Conv", "Conv", "Add", "Det"]
    assert (report.multiply_adds, report.parameters) == (8 * 8 * 4 * (3 + 4), 4 * 3 + 4 * 4)
    assert [s.step.op for s in report.numpy_steps] == ["Det"]
    assert report.arena is not None and not report.measured and report.total == 0
    first, second, add, _ = report.steps
    assert first.step.makes[0] in second.step.reads and {*first.step.makes, *second.step.makes} <= {*add.step.reads}
    text = report.text()
    assert text == str(report) and "in numpy: Det" in text and "a/second/c" in text
    assert report.text(top=1).count("Conv") == 1
    assert repr(report) == f"<Report: 4 steps, variant={report.variant}, threads=1, 1 in numpy; print it for the table>"
    assert "best run 2.5 us; print" in repr(report._replace(runs=(3e-6, 2.5e-6)))


@ENGINE
def test_a_profile_has_a_time_for_every_run_of_every_step() -> None:
    model = residual()
    report = model.profile(normal(1, 3, 8, 8), runs=7)
    assert report.measured and len(report.runs) == 7 and report.limits is not None
    for row in report.steps:
        assert len(row.seconds) == len(row.begins) == 7 and 0 < row.best <= row.median
    assert sum(report.share(row) for row in report.steps) == pytest.approx(1.0)
    # Steps of a run follow each other.
    for run in range(7):
        ends = [row.begins[run] + row.seconds[run] for row in report.steps]
        assert all(end <= row.begins[run] + 1e-9 for end, row in zip(ends, report.steps[1:], strict=False))
    with pytest.raises(fl.ArgumentError, match="expected an int from 1 to"):
        model.profile(normal(1, 3, 8, 8), runs=0)
    with pytest.raises(fl.ShapeError):
        model.profile(normal(1, 4, 8, 8))


@ENGINE
def test_a_network_in_stages_counts_the_rounds_of_its_parts() -> None:
    report = staged().profile(FEEDS, runs=3)
    rounds = {row.step.op: (row.rounds, row.depth) for row in report.steps}
    assert report.staged and rounds["Linear"] == (5, 1) and rounds["NonZero"] == (0, 0)
    (linear,) = [row for row in report.steps if row.step.op == "Linear"]
    assert linear.total == pytest.approx(5 * linear.best)
    assert "times" in report.text() and json.loads(report.json())["staged"]


def finite(value: object) -> Iterator[bool]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from finite(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from finite(inner)
    else:
        yield value is None or isinstance(value, (str, bool, int, float))


@pytest.mark.parametrize("make", [residual, staged])
def test_json_says_what_the_report_does(make: object) -> None:
    model = make()  # type: ignore[operator]
    report = model.report([s.shape for s in model.inputs])
    found = json.loads(report.json())
    assert found == report.dict() and all(finite(found)) and found["format"] == 1
    assert [s["operator"] for s in found["steps"]] == [s.step.op for s in report.steps]
    assert {"result", "shape", "parameters", "multiply_adds", "bytes", "kernels", "numpy"} <= found["steps"][0].keys()
    assert found["inputs"][0] == {"name": "x", "dtype": "float32", "shape": list(model.inputs[0].shape)}
    assert json.loads(Report._replace(report, runs=(float("nan"),)).json())["seconds"]["best"] is None


@ENGINE
@pytest.mark.parametrize("make", [residual, staged])
def test_events_of_a_trace_follow_each_other(make: object) -> None:
    model = make()  # type: ignore[operator]
    report = model.profile(normal(1, 3, 8, 8) if make is residual else FEEDS, runs=12)
    events = json.loads(report.trace())["traceEvents"]
    rows = {event["tid"] for event in events if event["ph"] == "X"}
    assert rows == set(range(1, 11))  # no more rows than ten
    for row in rows:
        found = [event for event in events if event["ph"] == "X" and event["tid"] == row]
        assert len(found) == sum(bool(s.seconds) for s in report.steps)
        end = 0.0
        for event in found:
            assert event["ts"] >= end - 2e-3 and event["dur"] >= 0
            end = event["ts"] + event["dur"]
    with pytest.raises(fl.ArgumentError, match=r"Model\.profile"):
        model.report([s.shape for s in model.inputs]).trace()


def test_what_is_faster_than_a_limit_is_no_share_of_it() -> None:
    report = residual().report()
    found = {}
    for memory, products in ((1.0, 1e15), (1e15, 1.0), (1e15, 1e15)):
        steps = tuple(StepReport(s.step, seconds=(1e-6,), begins=(0.0,)) for s in report.steps if s.step.multiply_adds)
        about = report._replace(steps=steps, runs=(1e-6,), limits=Limits(products, memory))
        found[memory, products] = [limit(about, row) for row in steps]
        assert "%" not in about.text().splitlines()[2].split()[6] and ("limit cache: " in about.text()) == (memory == 1)
    assert set(found[1.0, 1e15]) == {(0.0, "cache")} and set(found[1e15, 1.0]) == {(0.0, "fewer")}
    assert all(0 < share < 1e-3 for share, _ in found[1e15, 1e15])


class _Page(HTMLParser):
    """The tags and texts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


def hostile() -> Report:
    """A measured report all of whose names are an attack."""
    report = residual().report()
    steps = tuple(
        StepReport(s.step._replace(op=HOSTILE, name=f"{HOSTILE}/{HOSTILE}"), seconds=(1e-6,), begins=(0.0,)) for s in report.steps
    )
    values = tuple(v._replace(name=HOSTILE) for v in report.inputs)
    return report._replace(
        steps=steps, inputs=values, outputs=values, notes=(HOSTILE,), runs=(1e-6,), limits=Limits(1e10, 1e10), variant=HOSTILE
    )


def test_names_in_pages_are_escaped() -> None:
    report = hostile()
    pages = [report.html(HOSTILE), report._repr_html_()]
    for text, scripts in zip(pages, (1, 0), strict=True):
        text.encode()  # no lone surrogates
        page = _Page(text)
        assert page.tags.count("script") == scripts and "onload" not in page.attributes and "</svg><script>" in page.text
        assert not re.search("[\u202e\x00\ud800]", text)
        for svg in re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL):
            ElementTree.fromstring(svg)
    assert "script-src 'sha256-" in pages[0] and "http" not in re.sub(r'xmlns="[^"]*"|http-equiv', "", pages[0])


@ENGINE
def test_calls_that_became_one_step_are_timed_as_one_and_those_after_them_as_themselves() -> None:
    pairs = ["Mul x x a", "Add a x b", "Mul b x c", "Sub c b d", "Mul d a e", "Add e x f", "Mul f d g"]
    nodes = [onnx.node(op, f"{one} {other}", out) for op, one, other, out in map(str.split, pairs)]
    nodes += [onnx.node("MatMul", "g w", "m"), onnx.node("Softmax", "m", "y")]
    graph = onnx.graph(
        nodes, [onnx.value_info("x", (256, 256))], [onnx.value_info("y", (256, 256))], [onnx.tensor(normal(256, 256), "w")]
    )
    model, x = fl.load(onnx.model(graph)), normal(256, 256)
    binding = bound(model, {"x": x})
    assert binding.plan is not None and binding.bound is not None
    rows = steps(binding.plan)
    places = timed(binding.bound)
    assert len(rows) == 3 and rows[0].op == "Elementwise"
    assert places[:3] == [[0], [1], [2]] and len(rows[0].calls) == len(pairs)
    report = model.profile({"x": x}, 3)
    assert [len(row.seconds) for row in report.steps] == [3] * 3
    begins = np.array([row.begins for row in report.steps])
    ends = begins + np.array([row.seconds for row in report.steps])
    assert (begins[1:] >= ends[:-1] - 1e-9).all()  # each begins when the one before has ended


@ENGINE
def test_a_network_of_many_inputs_is_profiled_as_it_is_run() -> None:
    names = [f"x{i}" for i in range(90)]
    graph = onnx.graph(
        [onnx.node("Concat", " ".join(names), "y", axis=0)], [onnx.value_info(name, (1, 3)) for name in names],
        [onnx.value_info("y", (90, 3))], [],
    )  # fmt: skip
    model = fl.load(onnx.model(graph))
    feeds = {name: np.full((1, 3), i, np.float32) for i, name in enumerate(names)}
    assert np.array_equal(model.run(feeds)["y"][:, 0], np.arange(90))
    report = model.profile(feeds, 2)
    assert len(report.inputs) == 90 and report.total > 0


@ENGINE
def test_pictures_keep_their_size_on_narrow_screens() -> None:
    """They scroll in their boxes: shrunk to a telephone's width their words were three pixels high."""
    page = residual().profile(normal(1, 3, 8, 8), 2).html("narrow")
    assert "@media(max-width:700px){.picture svg{min-width:var(--wide)}}" in page
    pictures = re.findall(r"<svg [^>]*>", page)
    assert len(pictures) == 3 and all(re.search(r"--wide:\d+px;max-width:var\(--wide\);width:100%", one) for one in pictures)


def _contrast(one: Sequence[float], other: Sequence[float]) -> float:
    """The ratio of two colours of bytes, as the Web Content Accessibility Guidelines define it: 4.5 is asked of small words."""

    def light(colour: Sequence[float]) -> float:
        linear = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


@ENGINE
def test_pictures_have_the_colours_of_the_page_around_them() -> None:
    report = residual().profile(normal(1, 3, 8, 8), 2)
    page = report.html("dark")
    assert not re.search(r"background:#|fill=\"#(?!\w+\" fill-opacity)|fill-opacity=\"1", page + report._repr_html_())
    for light_or_dark in re.findall(r"--ground:#.*?}", page):
        named = dict(re.findall(r"--(\w+):#(\w+)", light_or_dark))
        ground, ink = (
            [int(c * (6 // len(c)) if len(c) == 3 else c, 16) for c in re.findall(f"({'.' * (len(named[n]) // 3)})", named[n])]
            for n in ("soft", "ink")
        )
        for share in np.linspace(0, 1, 21):
            red, opacity = re.findall(r'fill="#(\w{6})" fill-opacity="([\d.]+)"', shares(share))[0]
            fill = [int(red[i : i + 2], 16) * float(opacity) + ground[i // 2] * (1 - float(opacity)) for i in (0, 2, 4)]
            assert _contrast(fill, ink) > 4.5, (share, light_or_dark)


def test_shapes_are_tuples_without_quotes() -> None:
    model = fl.compile(fl.functional.relu, fl.graph.Input("x", ("b", "time", 64)))
    for text in (model.report((2, 3, 64)).html("x"), model._repr_html_(), model.stream(axis=1)._repr_html_()):
        assert re.search(r"\(b, (time|None), 64\)", text) and "[" not in re.sub(
            "<(style|script)>.*?</", "", text, flags=re.DOTALL
        )
    assert [shape(sizes) for sizes in ((3,), (), (None, 2), None)] == ["(3,)", "()", "(None, 2)", "any"]


def test_names_are_clipped() -> None:
    report = residual().report()
    long = report._replace(steps=tuple(s._replace(step=s.step._replace(name="n" * 10_000)) for s in report.steps))
    assert len(long.html()) < len(report.html()) + 10_000


def test_the_picture_has_a_box_for_each_step_and_a_path_for_each_edge() -> None:
    report = residual().report()
    svg = ElementTree.fromstring(drawing(report))
    name = "{http://www.w3.org/2000/svg}"
    assert len(list(svg.iter(f"{name}rect"))) == len(report.steps) and len(list(svg.iter(f"{name}path"))) == 4
    assert [e.get("stroke-dasharray") for e in svg.iter(f"{name}rect")].count("4 2") == len(report.numpy_steps)


def test_large_networks_share_boxes() -> None:
    report = residual().report()
    many = report._replace(
        steps=tuple(
            report.steps[0]._replace(
                step=report.steps[0].step._replace(name=f"block{i // 10}/layer/c{i}", makes=(i + 1,), reads=(i,))
            )
            for i in range(1000)
        )
    )
    svg = ElementTree.fromstring(drawing(many))
    assert len(list(svg.iter("{http://www.w3.org/2000/svg}rect"))) == 100
    flat = many._replace(
        steps=tuple(s._replace(step=s.step._replace(name=f"n{i}", op=f"o{i}")) for i, s in enumerate(many.steps))
    )
    assert len(list(ElementTree.fromstring(drawing(flat)).iter("{http://www.w3.org/2000/svg}rect"))) <= 400


def test_boxes_do_not_overlap_and_edges_go_on() -> None:
    rng = np.random.default_rng(0)
    edges = [(int(rng.integers(max(0, b - 9), b)), b) for b in range(1, 120) for _ in range(2)]
    made = layout(120, edges, 700)
    places = list(made.places.values())
    assert len(places) == 120 and len(made.paths) == len(set(edges))
    for i, a in enumerate(places):
        assert 0 <= a.x <= made.width - WIDTH and 0 <= a.y <= made.height - HEIGHT
        assert all(abs(a.x - b.x) >= WIDTH or abs(a.y - b.y) >= HEIGHT for b in places[:i])
    for a, b in edges:
        assert (made.places[a].band, made.places[a].x) < (made.places[b].band, made.places[b].x)
    assert layout(0, []).places == {} and layout(1, [(0, 0), (0, 5)]).paths == []


def test_notebooks_show_models_layers_streams_and_reports() -> None:
    model = residual()
    net = fl.Sequential(fl.Linear(4, 6), fl.GRU(6, 2))
    stream = fl.compile(lambda x: fl.functional.relu(x), fl.graph.Input("x", (1, "time"))).stream(axis=1)
    for shown, words in (
        (model, ["a/second/c", "float32", "<svg"]),
        (staged(), ["report", "nt"]),
        (net, ["weight_ih_l0", "not loaded", "30"]),
        (stream, ["Stream", "relu"]),
        (model.report(), ["Det", "<svg"]),
    ):
        text = shown._repr_html_()
        assert all(word in text for word in words), text
        assert _Page(text).tags
    model.close()
    assert "closed" in model._repr_html_()


@ENGINE
def test_the_command_writes_all_forms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from fastlayers import cli

    path = tmp_path / "net.safetensors"
    residual().save(path)
    page, trace = tmp_path / "page.html", tmp_path / "trace.json"
    command = ["profile", str(path), "--runs", "2", "--html", str(page), "--trace", str(trace), "--json"]
    assert cli.main(command) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["seconds"]["best"] > 0 and f"written to {page}" in told.err
    assert "<svg" in page.read_text(encoding="utf-8") and json.loads(trace.read_text())["traceEvents"]
    assert cli.main(["inspect", str(path), "--html", str(page)]) == 0
    assert "written to" in capsys.readouterr().out


def test_no_number_has_an_exponent() -> None:
    for number, told in ((1770.4, "1770"), (999.6, "1000"), (999.4, "999"), (27068.3, "27068"), (1.234, "1.23")):
        assert three(number) == told
    for number, told in ((999.7, "1 k"), (999_700, "1 M"), (999_400, "999 k"), (1234, "1.23 k"), (12, "12"), (5e18, "5000000 T")):
        assert count(number) == told
