"""``fastlayers generate``: the text that follows a prompt."""

from __future__ import annotations

import argparse
import sys
from typing import Any, TextIO

import fastlayers as fl

from ..text.opened import network
from ._draw import printable
from ._model import add_storage, number, storage, tell

__all__ = ["EXAMPLES", "arguments", "run"]

EXAMPLES = (
    'fastlayers generate SmolLM2-135M "The capital of France is" --max-tokens 20',
    'fastlayers generate Qwen3-0.6B --chat "Why is the sky blue?" --temperature 0.7 --seed 1',
    'fastlayers generate SmolLM2-135M --stop "." --json < prompt.txt',
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    add = parser.add_argument
    add("model", metavar="FOLDER_OR_GGUF", help="a folder of transformers with a decoder, or a GGUF file")
    add("prompt", nargs="?", help="the text before; without it, standard input")
    add("--chat", action="store_true", help="the prompt is a user's message, written by the folder's chat template")
    add("--system", metavar="TEXT", help="the system's message before it, with --chat")
    add("--max-tokens", type=number(int, 1), default=256, metavar="N", help="the most tokens that follow (256)")
    add("--temperature", type=number(float, 0), default=0.0, metavar="T", help="0: the most probable token each time (0)")
    add("--top-k", type=number(int, 0), metavar="N", help="draw from so many most probable tokens")
    add("--top-p", type=number(float, 0, 1), metavar="P", help="draw from tokens that together have this probability")
    add(
        "--min-p", type=number(float, 0, 1), metavar="P", help="draw from tokens of at least this part of the first's probability"
    )
    add(
        "--repetition-penalty",
        type=number(float, 0),
        default=1.0,
        metavar="X",
        help="make tokens that are there less probable (1)",
    )
    add("--seed", type=number(int, 0), metavar="N", help="of the draws: the same seed gives the same text")
    add("--stop", action="append", metavar="TEXT", help="a text at which it ends (may be given again)")
    add("--threads", type=number(int, 1, 256), default=1, metavar="N", help="how many threads run it (1)")
    add_storage(parser)


def run(options: argparse.Namespace, out: TextIO) -> int:
    """Prints text as it comes."""
    fl.set_num_threads(options.threads)
    generator = fl.text.Generator(options.model, model=network(options.model, **storage(options)))
    prompt: Any = sys.stdin.read() if options.prompt is None else options.prompt
    if options.chat:
        system = [] if options.system is None else [{"role": "system", "content": options.system}]
        prompt = [*system, {"role": "user", "content": prompt}]
    given = {
        name: getattr(options, name)
        for name in ("max_tokens", "temperature", "top_k", "top_p", "min_p", "repetition_penalty", "seed", "stop")
    }
    if options.json:
        found = generator.generate(prompt, logprobs=0, **given)
        tell(out, {"text": found.text, "ids": found.ids, "logprobs": found.logprobs, "finish": found.finish})
        return 0
    for piece in generator.generate(prompt, stream=True, **given):
        out.write("".join(c if c in "\n\t" else printable(c, out.encoding or "ascii") for c in piece))
        out.flush()
    out.write("\n")
    return 0
