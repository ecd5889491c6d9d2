"""Vectors of texts: `fastlayers.text.Encoder` beside sentence-transformers (torch and ONNX), fastembed, OpenVINO and CTranslate2.

    python -m bench.encode make FOLDER [--networks minilm,bge]    random weights; needs torch, transformers, optimum[onnxruntime]
    python -m bench.encode run FOLDER [--peers fastlayers,fastembed] [--networks minilm] [--threads 1,2] [--texts 1000]

Texts have 5 to 400 words, evenly spread, of a fixed seed. Each engine runs in a process of its own, in float32; for one that is
not installed its error is told. Told are texts a second, of the clock and of processor time (sorted by length where the engine
does not do it itself), the most memory, the time of one text of 12 words, of all from the process's start to the first vector
(``--texts 0`` for that alone), and processor time of a second in which nothing is asked. "fastlayers saved" runs
what ``Model.save(packed=True)`` wrote; ``forks`` tells what four forked workers take together (Pss), beside one process.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .timing import Times, add_json, store, times_of

# transformers' words of each network, its longest text, its pooling
NETWORKS: dict[str, tuple[str, dict[str, Any], int, str]] = {
    "minilm": ("BertModel", {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12,
                             "intermediate_size": 1536}, 256, "mean"),
    "bge": ("BertModel", {}, 512, "cls"),
    "modernbert": ("ModernBertModel", {"reference_compile": False}, 512, "mean"),
}  # fmt: skip
WORDS = [first + second + third for first in "bcdfghklmnprstvw" for second in "aeiou" for third in "lmnrst"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
BATCH = 32


def texts(count: int) -> list[str]:
    """Texts of 5 to 400 words."""
    rng = np.random.default_rng(0)
    lengths = rng.permutation(np.linspace(5, 400, count).round().astype(int))
    return [" ".join(rng.choice(WORDS, n)) for n in lengths]


def make(root: Path, name: str) -> None:
    """A folder as sentence-transformers has them, and its network in ONNX."""
    import torch
    import transformers
    from optimum.exporters.onnx import main_export
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    kind, words, longest, pooling = NETWORKS[name]
    folder = root / name
    vocabulary = {word: i for i, word in enumerate([*SPECIAL, *WORDS])}
    torch.manual_seed(0)
    made = getattr(transformers, kind)
    own = {"vocab_size": 30522, "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "cls_token_id": 2, "sep_token_id": 3}
    made(made.config_class(**{**own, **words})).eval().save_pretrained(folder)
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", [("[CLS]", 2), ("[SEP]", 3)]
    )
    names: dict[str, Any] = {
        "pad_token": "[PAD]",
        "unk_token": "[UNK]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "mask_token": "[MASK]",
    }
    if kind == "ModernBertModel":
        names["model_input_names"] = ["input_ids", "attention_mask"]
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=longest, **names)
    fast.save_pretrained(folder)
    parts = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    listed = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{part}"}
        for i, (path, part) in enumerate(parts)
    ]
    write(folder, "modules.json", listed)
    write(folder, "sentence_bert_config.json", {"max_seq_length": longest, "do_lower_case": False})
    width = words.get("hidden_size", 768)
    write(
        folder,
        "1_Pooling/config.json",
        {"word_embedding_dimension": width, f"pooling_mode_{pooling}_token{'s' * (pooling == 'mean')}": True},
    )
    main_export(str(folder), folder / "onnx", task="feature-extraction", library_name="transformers")
    import fastlayers as fl

    model = fl.load(folder)
    ids = np.ones((1, 12), np.int64)
    model.run(dict.fromkeys(model.inputs.names, ids))  # packs
    model.save(folder / "saved.safetensors", packed=True)


def write(folder: Path, name: str, value: Any) -> None:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(json.dumps(value).encode())


# ---- engines: each gives a function of texts to vectors -------------------------------------------------------------------


def by_fastlayers(folder: Path, threads: int, **load: Any) -> Callable[[list[str]], Any]:
    import fastlayers as fl

    fl.set_num_threads(threads)
    if load.pop("saved", False):
        load = {"model": fl.load(folder / "saved.safetensors")}
    elif load:
        load = {"model": fl.load(folder, **load)}
    return fl.text.Encoder(folder, **load).encode


def by_bfloat16(folder: Path, threads: int) -> Callable[[list[str]], Any]:
    return by_fastlayers(folder, threads, weights="bfloat16")


def by_saved(folder: Path, threads: int) -> Callable[[list[str]], Any]:
    return by_fastlayers(folder, threads, saved=True)


def by_torch(folder: Path, threads: int) -> Callable[[list[str]], Any]:
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(threads)
    model = SentenceTransformer(str(folder), device="cpu")
    return lambda found: model.encode(found, batch_size=BATCH)


def by_optimum(folder: Path, threads: int) -> Callable[[list[str]], Any]:
    import onnxruntime
    from sentence_transformers import SentenceTransformer

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    words = {"provider": "CPUExecutionProvider", "file_name": "onnx/model.onnx", "session_options": options}
    model = SentenceTransformer(str(folder), device="cpu", backend="onnx", model_kwargs=words)
    return lambda found: model.encode(found, batch_size=BATCH)


def by_fastembed(folder: Path, threads: int) -> Callable[[list[str]], Any]:
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    pooling = PoolingType.CLS if NETWORKS[folder.name][3] == "cls" else PoolingType.MEAN
    width = json.loads((folder / "config.json").read_text())["hidden_size"]
    TextEmbedding.add_custom_model(
        "own/own", pooling=pooling, normalization=True, sources=ModelSource(hf="own/own"), dim=width, model_file="onnx/model.onnx"
    )
    model = TextEmbedding("own/own", threads=threads, specific_model_path=str(folder))
    return in_order(lambda found: list(model.embed(found, batch_size=BATCH)), str.__len__)


def by_openvino(folder: Path, threads: int) -> Callable[[list[str]], Any]:
    import openvino

    words = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
    model = openvino.Core().compile_model(str(folder / "onnx" / "model.onnx"), "CPU", words)
    names = {name for given in model.inputs for name in given.names}
    return tokenized(folder, lambda given: next(iter(model({k: v for k, v in given.items() if k in names}).values())))


def by_onnxruntime(folder: Path, threads: int) -> Callable[[list[str]], Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(folder / "onnx" / "model.onnx"), options, providers=["CPUExecutionProvider"])
    names = {given.name for given in session.get_inputs()}
    return tokenized(folder, lambda given: session.run(None, {k: v for k, v in given.items() if k in names})[0])


def by_ctranslate2(folder: Path, threads: int) -> Callable[[list[str]], Any]:
    import ctranslate2

    path = folder / "ctranslate2"
    if not path.exists():
        ctranslate2.converters.TransformersConverter(str(folder)).convert(str(path))
    model = ctranslate2.Encoder(str(path), device="cpu", compute_type="float32", intra_threads=threads, inter_threads=1)

    def run(given: dict[str, np.ndarray]) -> np.ndarray:
        rows = [row[: mask.sum()].tolist() for row, mask in zip(given["input_ids"], given["attention_mask"], strict=True)]
        return np.array(model.forward_batch(rows).last_hidden_state)

    return tokenized(folder, run)


def tokenized(folder: Path, run: Callable[[dict[str, np.ndarray]], np.ndarray]) -> Callable[[list[str]], Any]:
    """Vectors by a network alone: texts are sorted and padded in batches, states are pooled and normalized with numpy."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(NETWORKS[folder.name][2])
    tokenizer.enable_padding()

    def encode(found: list[str]) -> list[np.ndarray]:
        vectors: list[np.ndarray] = []
        for i in range(0, len(found), BATCH):
            tokens = tokenizer.encode_batch(found[i : i + BATCH])
            ids, mask = (np.array([getattr(t, key) for t in tokens], np.int64) for key in ("ids", "attention_mask"))
            states = run({"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)})
            if NETWORKS[folder.name][3] == "cls":
                pooled = states[:, 0]
            else:
                pooled = (states * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
            vectors += list(pooled / np.linalg.norm(pooled, axis=1, keepdims=True))
        return vectors

    return in_order(encode, str.__len__)


def in_order(encode: Callable[[list[str]], list[Any]], key: Callable[[str], int]) -> Callable[[list[str]], Any]:
    """The vectors of texts, which are sorted by length meanwhile."""

    def sorted_(found: list[str]) -> Any:
        order = sorted(range(len(found)), key=lambda i: -key(found[i]))
        made: list[Any] = [None] * len(found)
        for i, vector in zip(order, encode([found[i] for i in order]), strict=True):
            made[i] = vector
        return np.array(made)

    return sorted_


ENGINES = {
    "fastlayers": by_fastlayers, "fastlayers saved": by_saved, "fastlayers bfloat16": by_bfloat16,
    "sentence-transformers": by_torch, "sentence-transformers onnx": by_optimum, "fastembed": by_fastembed,
    "openvino": by_openvino, "ctranslate2": by_ctranslate2, "onnxruntime": by_onnxruntime,
}  # fmt: skip


# ---- measuring ------------------------------------------------------------------------------------------------------------


def one(engine: str, folder: Path, threads: int, count: int) -> dict[str, Any]:
    """All that is told of an engine, in this process."""
    encode = ENGINES[engine](folder, threads)
    short = " ".join(WORDS[:12])
    vector = np.asarray(encode([short]))[0]
    found: dict[str, Any] = {"first": time.monotonic() - started(), "first cpu": time.process_time(), "first MB": peak()}
    wanted = texts(count)
    if count:
        encode(wanted[: max(8, count // 8)])
        before, used = time.perf_counter(), time.process_time()
        encode(wanted)
        found["texts/s"] = count / (time.perf_counter() - before)
        found["of processor time"] = count / (time.process_time() - used)
    runs = []
    for _ in range(15):
        before = time.perf_counter()
        encode([short])
        runs.append(time.perf_counter() - before)
    found["one ms"] = 1e3 * statistics.median(runs)
    found["runs"] = runs
    found["MB"] = peak()
    used = time.process_time()
    time.sleep(1)
    found["idle ms"] = 1e3 * (time.process_time() - used)
    return {**found, "vector": vector[:8].astype(float).tolist()}


def started() -> float:
    """When this process was started, by the clock of `time.monotonic`."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    return ticks / os.sysconf("SC_CLK_TCK")


def peak() -> float:
    """The most memory so far, in MB."""
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


def forks(engine: str, folder: Path, threads: int, workers: int = 4) -> dict[str, float]:
    """MB (Pss) that this process and its workers take together, which were forked after a text was encoded and encode more."""
    encode = ENGINES[engine](folder, threads)
    encode(texts(8))
    alone, pipes = pss("self"), []
    for _ in range(workers):
        (read, done), (wait, go) = os.pipe(), os.pipe()
        child = os.fork()
        if not child:
            for end in (read, go):  # so that it ends when its parent does
                os.close(end)
            encode(texts(8))
            os.write(done, b"x")
            os.read(wait, 1)
            os._exit(0)
        os.close(done)
        pipes.append((child, read, go))
    if not all(os.read(read, 1) for _, read, _ in pipes):
        raise RuntimeError("a worker has failed")
    told = {"one MB": alone, "workers": workers, "all MB": pss("self") + sum(pss(str(child)) for child, _, _ in pipes)}
    for child, _, go in pipes:
        os.write(go, b"x")
        os.waitpid(child, 0)
    return told


def pss(process: str) -> float:
    """A process's share of memory, in MB: what several have, each has a part of."""
    found = re.search(r"^Pss:\s+(\d+)", Path(f"/proc/{process}/smaps_rollup").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) / 1024


def run(what: str, engine: str, folder: Path, threads: int, count: int) -> dict[str, Any] | str:
    """Figures of a process of its own; the last line of its error where it fails."""
    command = [
        sys.executable,
        "-m",
        "bench.encode",
        what,
        str(folder),
        "--peers",
        engine,
        "--threads",
        str(threads),
        "--texts",
        str(count),
    ]
    from .cold_start import environment  # here: a process that is timed imports no more than it must

    given = {**environment(), "OMP_NUM_THREADS": str(threads), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=given, check=False)
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["failed"])[-1][:110]
    return json.loads(done.stdout.strip().splitlines()[-1])  # type: ignore[no-any-return]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("make", "run", "forks", "one", "fork"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("--peers", default=",".join(ENGINES))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--texts", type=int, default=1000)
    add_json(parser)
    given = parser.parse_args(arguments)
    if given.command == "one":
        print(json.dumps(one(given.peers, given.folder, int(given.threads), given.texts)))
        return
    if given.command == "fork":
        print(json.dumps(forks(given.peers, given.folder, int(given.threads))))
        return
    import fastlayers

    compileall.compile_dir(str(Path(fastlayers.__file__).parent), quiet=1)  # as an installed package is
    found: dict[str, dict[str, Times]] = {}
    about: dict[str, dict[str, Any]] = {}
    for name in given.networks.split(","):
        if given.command == "make":
            make(given.folder, name)
            continue
        for threads in map(int, given.threads.split(",")):
            wanted: Any = None
            case = f"{name}, {threads} threads"
            for engine in given.peers.split(","):
                told = run("one" if given.command == "run" else "fork", engine, given.folder / name, threads, given.texts)
                if isinstance(told, str):
                    print(f"{case}, {engine}: {told}", flush=True)
                    continue
                if "vector" in told:
                    vector = np.array(told.pop("vector"))
                    wanted = vector if wanted is None else wanted
                    told["off"] = float(np.abs(vector - wanted).max())
                if runs := told.pop("runs", None):
                    found.setdefault(f"{case}, one text", {})[engine] = times_of(runs)
                if rate := told.get("texts/s"):
                    found.setdefault(f"{case}, a text of many", {})[engine] = times_of([1 / rate])
                about.setdefault(case, {})[engine] = told
                figures = "  ".join(f"{key} {value:.3g}" for key, value in told.items())
                print(f"{case}, {engine:27} {figures}", flush=True)
    if given.command != "make":
        store(given.json, found, engines=about)


if __name__ == "__main__":
    main()
