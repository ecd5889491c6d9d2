"""Decoders beside onnxruntime, onnxruntime-genai and llama.cpp, on the same random weights: prompts, tokens, memory, requests.

    python -m bench.language make FOLDER [--networks llama,smollm,qwen]   needs transformers, torch, onnxruntime-genai, gguf
    python -m bench.language run FOLDER [--networks llama] [--threads 1,2] [--files q4_0.gguf] [--engines fastlayers,llama.cpp]
    python -m bench.language serve FOLDER [--networks llama] [--threads 2] [--requests 1,4,16]

Networks: one in the manner of Llama with 213 million weights, and the shapes of SmolLM2-135M and Qwen2-0.5B. Of each there is
the folder of transformers (hf), what onnxruntime-genai's builder makes of it (int4, fp32), and GGUF files (q4_0, q8_0; any
other that lies there by `--files`). Each engine runs in a process of its own; for one that is not installed its error is told.

`run` tells the tokens a second of prompts of 128 and of 1,024 tokens, those that follow 1, 4 and 8 sequences of 128 at once (best
of --rounds), and the most memory. `serve` sends so many requests at once for 64 tokens each after prompts of 40 to 120 words, to
`fastlayers serve`, to llama.cpp's server (``pip install llama-cpp-python[server]``), and to threads that share a model of
onnxruntime-genai: tokens a second of all, and the time to the first token at p50 and p99. Both read the clock in processes of the
engines, whose tokens come one by one.
"""

from __future__ import annotations

import argparse
import ctypes
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.encode import peak
from bench.timing import Times, add_json, store, times_of

# Words of transformers' configurations.
NETWORKS: dict[str, tuple[str, dict[str, int]]] = {
    "llama": ("Llama", {"num_hidden_layers": 16, "hidden_size": 1024, "intermediate_size": 2816, "num_attention_heads": 16,
                        "num_key_value_heads": 4, "vocab_size": 32000}),
    "smollm": ("Llama", {"num_hidden_layers": 30, "hidden_size": 576, "intermediate_size": 1536, "num_attention_heads": 9,
                         "num_key_value_heads": 3, "vocab_size": 49152}),
    "qwen": ("Qwen2", {"num_hidden_layers": 24, "hidden_size": 896, "intermediate_size": 4864, "num_attention_heads": 14,
                       "num_key_value_heads": 2, "vocab_size": 151936}),
}  # fmt: skip
FILES = {
    "genai-int4": ("fastlayers", "onnxruntime", "genai"),
    "q4_0.gguf": ("fastlayers", "llama.cpp"),
    "q8_0.gguf": ("fastlayers", "llama.cpp"),
    "genai-fp32": ("fastlayers", "onnxruntime", "genai"),
    "hf": ("fastlayers",),
}
PROMPT, NEW = 128, 32
Generate = Callable[[np.ndarray, int], Any]  # ids (n, t) and the number of tokens that are to follow each


# ---- files ----------------------------------------------------------------------------------------------------------


def make(folder: Path, name: str) -> None:
    """All files of a network."""
    import torch
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    kind, words = NETWORKS[name]
    torch.manual_seed(0)
    config = getattr(transformers, f"{kind}Config")(
        **words, max_position_embeddings=2048, tie_word_embeddings=True, bos_token_id=0, eos_token_id=1
    )
    getattr(transformers, f"{kind}ForCausalLM")(config).eval().save_pretrained(folder / "hf")
    tokens = Tokenizer(models.BPE())
    tokens.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokens.decoder = decoders.ByteLevel()
    special = ["<s>", "</s>", "<unk>"]
    texts = [str(path) for path in Path(transformers.__file__).parent.glob("*.py")]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokens.train(
        texts, trainers.BpeTrainer(vocab_size=32000, special_tokens=special, initial_alphabet=alphabet, show_progress=False)
    )
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokens, bos_token="<s>", eos_token="</s>", unk_token="<unk>")
    fast.save_pretrained(folder / "hf")
    for precision in ("int4", "fp32"):
        out = folder / f"genai-{precision}"
        command = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", str(folder / "hf"), "-o", str(out)]
        done = subprocess.run(
            [*command, "-p", precision, "-e", "cpu", "-c", str(folder / "cache")], capture_output=True, text=True
        )
        if done.returncode:
            print(f"{out}: {(done.stderr.strip().splitlines() or ['failed'])[-1]}", flush=True)
    for precision in ("Q4_0", "Q8_0"):
        gguf_of(folder, kind, words, config.rms_norm_eps, precision)


def gguf_of(folder: Path, kind: str, words: dict[str, int], eps: float, precision: str) -> None:
    """A GGUF file with the weights of the folder of transformers, and its vocabulary."""
    import gguf
    from safetensors.numpy import load_file

    heads, groups, width = words["num_attention_heads"], words["num_key_value_heads"], words["hidden_size"]
    quantized = gguf.GGMLQuantizationType[precision]
    w = gguf.GGUFWriter(folder / f"{precision.lower()}.gguf", kind.lower())
    for add, value in (
        (w.add_block_count, words["num_hidden_layers"]), (w.add_context_length, 2048), (w.add_embedding_length, width),
        (w.add_feed_forward_length, words["intermediate_size"]), (w.add_head_count, heads), (w.add_head_count_kv, groups),
        (w.add_layer_norm_rms_eps, eps), (w.add_rope_dimension_count, width // heads), (w.add_rope_freq_base, 10000.0),
        (w.add_vocab_size, words["vocab_size"]), (w.add_tokenizer_model, "gpt2"), (w.add_tokenizer_pre, "gpt-2"),
        (w.add_bos_token_id, 0), (w.add_eos_token_id, 1),
    ):  # fmt: skip
        add(value)
    told = json.loads((folder / "hf" / "tokenizer.json").read_text())["model"]
    vocabulary = sorted(told["vocab"], key=told["vocab"].get)
    vocabulary += [f"[unused{i}]" for i in range(len(vocabulary), words["vocab_size"])]
    w.add_token_list(vocabulary)
    w.add_token_types([3, 3, 3, *[1 if i < len(told["vocab"]) else 5 for i in range(3, len(vocabulary))]])
    w.add_token_merges([one if isinstance(one, str) else " ".join(one) for one in told["merges"]])
    weights = {}
    for part in sorted((folder / "hf").glob("*.safetensors")):
        weights |= load_file(part)
    names = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
             "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm",
             "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}  # fmt: skip
    tensors = {"token_embd.weight": weights["model.embed_tokens.weight"], "output_norm.weight": weights["model.norm.weight"]}
    for i in range(words["num_hidden_layers"]):
        for to, source in names.items():
            for part in ("weight", "bias"):
                array = weights.get(f"model.layers.{i}.{source}.{part}")
                if array is not None and kind == "Llama" and to in ("attn_q", "attn_k"):  # pairs next to each other
                    n = heads if to == "attn_q" else groups
                    array = array.reshape(n, 2, len(array) // n // 2, -1).swapaxes(1, 2).reshape(array.shape)
                if array is not None:
                    tensors[f"blk.{i}.{to}.{part}"] = array
    for name, array in tensors.items():
        array = np.ascontiguousarray(array, np.float32)
        if array.ndim == 1:
            w.add_tensor(name, array)
        else:
            w.add_tensor(name, gguf.quants.quantize(array, quantized), raw_dtype=quantized)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


# ---- engines --------------------------------------------------------------------------------------------------------


def by_fastlayers(path: Path, threads: int) -> Generate:
    import fastlayers as fl

    fl.set_num_threads(threads)
    made = fl.text.Generator(path, cache_bytes=0)
    return lambda ids, new: made.generate(ids.tolist(), new, ignore_eos=True)


def by_onnxruntime(path: Path, threads: int) -> Generate:
    import onnxruntime

    sizes = json.loads((path / "genai_config.json").read_text())["model"]["decoder"]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(path / "model.onnx", options, providers=["CPUExecutionProvider"])
    inputs, outputs = {i.name: i for i in session.get_inputs()}, [o.name for o in session.get_outputs()]

    def generate(ids: np.ndarray, new: int) -> Any:
        n, total, found = len(ids), 0, []
        pasts = [name for name in inputs if name.startswith("past")]
        cache = {name: np.zeros((n, sizes["num_key_value_heads"], 0, sizes["head_size"]), np.float32) for name in pasts}
        while len(found) < new:
            total += ids.shape[1]
            feeds = {"input_ids": ids, "attention_mask": np.ones((n, total), np.int64)}
            if "position_ids" in inputs:
                feeds["position_ids"] = np.tile(np.arange(total - ids.shape[1], total), (n, 1))
            got = dict(zip(outputs, session.run(None, {**feeds, **cache}), strict=True))
            cache = {name: got[name.replace("past_key_values", "present")] for name in cache}
            ids = got["logits"][:, -1].argmax(-1)[:, None]
            found.append(ids[:, 0])
        return np.stack(found, 1)

    return generate


def genai_of(path: Path, threads: int) -> Any:
    import onnxruntime_genai

    config = json.loads((path / "genai_config.json").read_text())
    config["model"]["decoder"]["session_options"]["intra_op_num_threads"] = threads
    (path / "genai_config.json").write_bytes(json.dumps(config).encode())
    return onnxruntime_genai, onnxruntime_genai.Model(str(path))


def by_genai(path: Path, threads: int, told: Callable[[], object] = bool) -> Generate:
    """`told` is called for every token."""
    og, model = genai_of(path, threads)

    def generate(ids: np.ndarray, new: int) -> Any:
        (n, t), given = ids.shape, og.GeneratorParams(model)
        given.set_search_options(max_length=t + new, min_length=t + new, do_sample=False, batch_size=n)
        made = og.Generator(model, given)
        made.append_tokens(ids.astype(np.int32) if n > 1 else ids[0].astype(np.int32))
        for _ in range(new):
            made.generate_next_token()
            told()
        return np.array([made.get_sequence(i)[t:] for i in range(n)])

    return generate


def by_llama_cpp(path: Path, threads: int) -> Generate:
    import llama_cpp as ll

    by_llama_cpp.quiet = ll.llama_log_callback(lambda *_: None)  # type: ignore[attr-defined]  # kept: it is called later
    ll.llama_log_set(by_llama_cpp.quiet, ctypes.c_void_p(0))  # type: ignore[attr-defined]
    ll.llama_backend_init()
    model = ll.llama_model_load_from_file(str(path).encode(), ll.llama_model_default_params())
    words = ll.llama_vocab_n_tokens(ll.llama_model_get_vocab(model))
    contexts: dict[tuple[int, int], Any] = {}

    def context(n: int, length: int) -> Any:
        if (n, length) not in contexts:
            given = ll.llama_context_default_params()
            given.n_ctx, given.n_seq_max, given.n_batch = n * (-(-length // 256) * 256), n, 512
            given.n_threads = given.n_threads_batch = threads
            contexts.clear()
            contexts[n, length] = ll.llama_init_from_model(model, given)
        return contexts[n, length]

    def generate(ids: np.ndarray, new: int) -> Any:
        n, t = ids.shape
        own, batch = context(n, t + max(new, NEW)), ll.llama_batch_init(512, 0, 1)
        ll.llama_memory_clear(ll.llama_get_memory(own), True)

        def run(tokens: list[tuple[int, int, int, bool]]) -> None:
            """Each is a token, its position, its sequence, and whether logits are wanted."""
            batch.n_tokens = len(tokens)
            for i, (token, at, sequence, wanted) in enumerate(tokens):
                batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = token, at, 1, wanted
                batch.seq_id[i][0] = sequence
            if ll.llama_decode(own, batch):
                raise SystemExit("llama_decode failed")

        def best(i: int) -> int:
            return int(np.ctypeslib.as_array(ll.llama_get_logits_ith(own, i), (words,)).argmax())

        found = np.zeros((n, new), np.int64)
        for s, row in enumerate(ids.tolist()):
            for at in range(0, t, 512):
                piece = row[at : at + 512]
                run([(token, at + i, s, at + i == t - 1) for i, token in enumerate(piece)])
            found[s, 0] = best(len(piece) - 1)
        for step in range(1, new):
            run([(int(found[s, step - 1]), t + step - 1, s, True) for s in range(n)])
            found[:, step] = [best(s) for s in range(n)]
        ll.llama_batch_free(batch)
        return found

    return generate


ENGINES: dict[str, Callable[[Path, int], Generate]] = {
    "fastlayers": by_fastlayers, "onnxruntime": by_onnxruntime, "genai": by_genai, "llama.cpp": by_llama_cpp
}  # fmt: skip


def one(engine: str, path: Path, threads: int, prompts: list[int], sequences: list[int], rounds: int) -> dict[str, Any]:
    """All that is told of an engine, in this process."""
    rng, found = np.random.default_rng(0), {}
    generate = ENGINES[engine](path, threads)
    for length in prompts:
        ids = rng.integers(3, 15000, (1, length))
        generate(ids[:, :9], 2)
        found[f"prompt {length}"] = length / min(timed(generate, ids, 1) for _ in range(rounds))
    for n in sequences:
        ids = rng.integers(3, 15000, (n, PROMPT))
        tokens = np.asarray(generate(ids, NEW))
        found.setdefault("tokens", tokens[0, :6].tolist())
        few, all_ = (min(timed(generate, ids, new) for _ in range(rounds)) for new in (1, NEW))
        found[f"decode {n}"] = n * (NEW - 1) / (all_ - few)
        found[f"MB {n}"] = peak()
    return found


def timed(generate: Generate, ids: np.ndarray, new: int) -> float:
    before = time.perf_counter()
    generate(ids, new)
    return time.perf_counter() - before


# ---- requests -------------------------------------------------------------------------------------------------------


def texts(count: int, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    words = ["import", "self", "return", "model", "tokens", "def", "class", "config", "value", "None", "batch", "size"]
    return [" ".join(rng.choice(words, n)) for n in rng.integers(40, 121, count)]


def server(engine: str, path: Path, threads: int, port: int) -> list[str]:
    """The command of a server."""
    if engine == "fastlayers":
        return [sys.executable, "-m", "fastlayers", "serve", str(path), "--port", str(port), "--log", "events"]
    return [sys.executable, "-m", "llama_cpp.server", "--model", str(path), "--port", str(port), "--n_threads", str(threads),
            "--n_threads_batch", str(threads), "--n_ctx", "2048", "--verbose", "false"]  # fmt: skip


def asked(port: int, text: str, new: int) -> tuple[float, int]:
    """Seconds to the first token of a completion, and its tokens."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    model = json.loads(got(connection, "GET", "/v1/models"))["data"][0]["id"]
    begin = time.perf_counter()
    fields = {"model": model, "prompt": text, "max_tokens": new, "temperature": 0, "stream": True}
    connection.request("POST", "/v1/completions", json.dumps(fields), {"content-type": "application/json"})
    response, first, count = connection.getresponse(), 0.0, 0
    if response.status != 200:
        raise SystemExit(response.read()[:300].decode())
    for line in response:
        if line.startswith(b"data: {"):
            first = first or time.perf_counter() - begin
            count += 1
    return first, new if count else 0


def got(connection: http.client.HTTPConnection, verb: str, path: str) -> bytes:
    connection.request(verb, path)
    return connection.getresponse().read()


def at_once(ask: Callable[[str], tuple[float, int]], count: int, rounds: int) -> dict[str, float]:
    """Figures of so many requests at once, each of which is followed by the next."""
    firsts: list[float] = []
    tokens = [0]

    def client(i: int) -> None:
        for text in texts(rounds, i):
            first, made = ask(text)
            firsts.append(first)
            tokens[0] += made

    begin = time.perf_counter()
    workers = [threading.Thread(target=client, args=(i,)) for i in range(count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    seconds = time.perf_counter() - begin
    p50, p99 = np.percentile(firsts, [50, 99]) * 1e3
    return {"tokens/s": tokens[0] / seconds, "first ms p50": p50, "p99": p99}


def serve(engine: str, path: Path, threads: int, counts: list[int], rounds: int, new: int = 64) -> dict[int, Any]:
    """Prints figures of a server, and returns them by the number of requests at once."""
    found: dict[int, Any] = {}
    told = f"{path.parent.name}, {threads} threads, {path.name}, {engine}"
    if engine == "genai":
        for count in counts:
            found[count] = at_once(threads_of_genai(path, threads, new), count, rounds)
            print(f"{told}, {count} at once: {shown(found[count])}", flush=True)
        return found
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "FASTLAYERS_NUM_THREADS": str(threads)}
    process = subprocess.Popen(
        server(engine, path, threads, port), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment
    )
    try:
        while process.poll() is None:
            try:
                asked(port, "import", 2)
                break
            except OSError:
                time.sleep(0.2)
        else:
            assert process.stderr is not None
            print(f"{told}: {(process.stderr.read().decode().strip().splitlines() or ['failed'])[-1][:110]}", flush=True)
            return found
        for count in counts:
            figures = at_once(lambda text: asked(port, text, new), count, rounds)
            status = Path(f"/proc/{process.pid}/status").read_text()
            figures["MB"] = next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))
            found[count] = figures
            print(f"{told}, {count} at once: {shown(figures)}", flush=True)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
    return found


def threads_of_genai(path: Path, threads: int, new: int) -> Callable[[str], tuple[float, int]]:
    """Requests of threads that share a model; each has a generator of its own."""
    from tokenizers import Tokenizer

    og, model = genai_of(path, threads)
    tokenizer = Tokenizer.from_file(str(path.parent / "hf" / "tokenizer.json"))

    def ask(text: str) -> tuple[float, int]:
        ids, given = tokenizer.encode(text).ids, og.GeneratorParams(model)
        given.set_search_options(max_length=len(ids) + new, min_length=len(ids) + new, do_sample=False)
        begin, first = time.perf_counter(), 0.0
        made = og.Generator(model, given)
        made.append_tokens(np.array(ids, np.int32))
        for _ in range(new):
            made.generate_next_token()
            first = first or time.perf_counter() - begin
        return first, new

    return ask


# ---- the command ----------------------------------------------------------------------------------------------------


def shown(figures: dict[str, Any]) -> str:
    return "  ".join(f"{key} {value if isinstance(value, list) else format(value, '.4g')}" for key, value in figures.items())


def run(engine: str, path: Path, threads: int, options: list[str]) -> dict[str, Any] | str:
    """Figures of a process of its own; the last line of its error where it fails."""
    command = [sys.executable, "-m", "bench.language", "one", str(path), "--engines", engine, "--threads", str(threads)]
    command += options
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["failed"])[-1][:110]
    return json.loads(done.stdout.strip().splitlines()[-1])  # type: ignore[no-any-return]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("make", "run", "serve", "one"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("--files", default=",".join(FILES))
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--requests", default="1,4,16")
    parser.add_argument("--prompts", default="128,1024", help="tokens of prompts (run)")
    parser.add_argument("--sequences", default="1,4,8", help="sequences at once (run)")
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many (run), or requests of each client (serve)")
    add_json(parser)
    given = parser.parse_args(arguments)
    if given.command == "one":
        numbers = ([int(n) for n in text.split(",") if n] for text in (given.prompts, given.sequences))
        print(json.dumps(one(given.engines, given.folder, int(given.threads), *numbers, given.rounds)))
        return
    found: dict[str, dict[str, Times]] = {}
    about: dict[str, Any] = {}
    options = ["--prompts", given.prompts, "--sequences", given.sequences, "--rounds", str(given.rounds)]
    for name in given.networks.split(","):
        if given.command == "make":
            make(given.folder / name, name)
            continue
        for threads in map(int, given.threads.split(",")):
            for file in given.files.split(","):
                path = given.folder / name / file
                for engine in FILES.get(file, FILES["q4_0.gguf"]) if path.exists() else ():
                    if engine not in given.engines.split(","):
                        continue
                    if given.command == "serve":
                        if engine != "onnxruntime":
                            counts = [int(n) for n in given.requests.split(",")]
                            about[f"{name}, {threads} threads, {file}, {engine}"] = serve(
                                engine, path, threads, counts, given.rounds
                            )
                        continue
                    told = run(engine, path, threads, options)
                    text = told if isinstance(told, str) else shown(told)
                    print(f"{name}, {threads} threads, {file}, {engine}: {text}", flush=True)
                    for what, rate in () if isinstance(told, str) else told.items():
                        if what.startswith(("prompt", "decode")):  # of a token
                            found.setdefault(f"{name}, {threads} threads, {file}, {what}", {})[engine] = times_of([1 / rate])
    if given.command != "make":
        store(given.json, found, served=about)


if __name__ == "__main__":
    main()
