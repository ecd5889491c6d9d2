"""``fastlayers serve``: models over HTTP. What it does is in `fastlayers.serve`; here are the words for it."""

from __future__ import annotations

import argparse
from typing import TextIO

from .._example import FILES
from ..errors import ArgumentError
from ._model import add_storage, file

__all__ = ["EXAMPLES", "arguments", "run"]

EXAMPLES = (
    "fastlayers serve silero_vad --page                     # the packaged example",
    "fastlayers serve model.onnx",
    "fastlayers serve models/ --workers 2 --page            # models/NAME.onnx, or models/NAME/VERSION/model.onnx",
    "curl localhost:8000/v2/models/model                    # its inputs and outputs",
    "fastlayers serve Qwen3-0.6B/                           # a folder with config.json, weights and tokenizer.json",
    """curl localhost:8000/v1/completions -d '{"model": "Qwen3-0.6B", "prompt": "Once", "max_tokens": 20}'""",
)

# Options in other units than those of `Settings`, with their units.
_MEGA = ("cache", "max_body", "max_json", "max_bodies")


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    add = parser.add_argument
    add(
        "source",
        nargs="?",
        type=file,
        metavar="FILE_OR_FOLDER",
        help="a model, or a folder of models: NAME.onnx, or NAME/VERSION/model.onnx; a text model's folder or GGUF file",
    )
    add("--model-dir", "--model_dir", dest="folder", metavar="FOLDER", help="the same, as KServe says it")
    add("--model-name", "--model_name", dest="name", metavar="NAME", help="serve a file, or a folder of one model, as this")
    add("--host", metavar="ADDRESS", help="where to listen (127.0.0.1: this machine alone)")
    add("--port", "--http-port", "--http_port", type=int, metavar="N", help="(8000; 0: any free one, which the log names)")
    add("--workers", type=int, metavar="N", help="processes, which share the weights' memory (1)")
    add("--threads", type=int, metavar="N", help="of each worker: runs at once, and threads of a run (the machine's, divided)")
    add("--control", action="store_true", default=None, help="let requests load and unload models of the folder")
    add("--page", action="store_true", default=None, help="show models, load and latency at /")
    add("--log", choices=("requests", "events"), help="whether each request is a line on stderr (requests)")
    add_storage(parser)
    batches = parser.add_argument_group("batches", "of requests for models whose files name the axis, or config.toml does")
    batches.add_argument("--batch", type=int, metavar="ROWS", help="the most that run together; 1: none do (16)")
    batches.add_argument("--batch-delay", type=float, metavar="S", help="wait so long for others, though nothing runs (0)")
    limits = parser.add_argument_group("limits", "of each worker; beyond them a request gets an error")
    for name, kind, unit, text in (
        ("queue", int, "N", "requests that wait or run (256)"),
        ("timeout", float, "S", "from the end of a request to its answer (30)"),
        ("receive-timeout", float, "S", "from the first byte of a request to its last (20)"),
        ("send-timeout", float, "S", "until an answer is read (20)"),
        ("idle-timeout", float, "S", "of a connection between requests (60)"),
        ("connections", int, "N", "(1000)"),
        ("max-body", int, "MB", "of a request (64)"),
        ("max-json", int, "MB", "of a request's JSON, which is parsed while all others wait (4)"),
        ("max-bodies", int, "MB", "of all requests that are being received (512)"),
        ("completions", int, "N", "prompts of a model that grow at once; others wait (16)"),
        ("cache", int, "MB", "of a decoder, for what is known of earlier prompts (a quarter of its weights, 32 to 256)"),
        ("max-texts", int, "N", "that a request embeds or ranks (2048)"),
        ("max-prompt", int, "N", "tokens of all prompts of a request (32768)"),
        ("max-tokens", int, "N", "that follow all prompts of a request (4096)"),
        ("sequences", int, "N", "streams that are open (1000)"),
        ("sequence-idle", float, "S", "until a stream is forgotten (60)"),
        ("drain", float, "S", "after SIGTERM, not ready but still accepting (0)"),
        ("stop-timeout", float, "S", "then, until requests are cut off (30)"),
    ):
        limits.add_argument(f"--{name}", type=kind, metavar=unit, help=text)


def run(options: argparse.Namespace, out: TextIO) -> int:
    """Serves until a signal."""
    from ..serve import Settings, serve

    given = {
        key: value
        for key, value in vars(options).items()
        if value is not None and key not in ("command", "folder", "json", "source")
    }
    if (options.source is None) == (options.folder is None):
        raise ArgumentError("serve: expected one file or folder, as FILE_OR_FOLDER or --model-dir")
    for name in _MEGA:
        if name in given:
            given[name] <<= 20
    source = options.source or options.folder
    for name in FILES:
        if source == file(name):
            given.setdefault("name", name)
    return serve(Settings(source=source, **given))
