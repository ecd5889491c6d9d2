"""``fastlayers embed``: a vector for every line of text."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TextIO

import numpy as np

import fastlayers as fl

from ..formats.write import whole
from ..report.text import plural
from ..text.opened import network
from ._model import add_storage, notes, number, say, storage
from ._progress import waiting

__all__ = ["EXAMPLES", "arguments", "run"]

EXAMPLES = (
    "fastlayers embed all-MiniLM-L6-v2 < lines.txt > vectors.txt",
    "fastlayers embed bge-small-en lines.txt -o vectors.npy --prompt query",
    "echo 'a sentence' | fastlayers embed all-MiniLM-L6-v2 --json",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    add = parser.add_argument
    add("folder", metavar="FOLDER", help="a folder of sentence-transformers or transformers")
    add("lines", nargs="?", metavar="FILE", help="a text per line, in UTF-8; without it, standard input")
    add("-o", "--output", metavar="OUT.npy", help="where vectors go; without it each is a line of numbers")
    add("--batch-size", type=number(int, 1), default=32, metavar="N", help="texts that run at once (32)")
    add("--prompt", metavar="NAME", help="put the folder's prompt of this name in front of each text")
    add("--normalize", choices=("yes", "no"), help="whether vectors have length 1; without it, as the folder says")
    add("--threads", type=number(int, 1, 256), default=1, metavar="N", help="how many threads run it (1)")
    add_storage(parser)


def run(options: argparse.Namespace, out: TextIO) -> int:
    """Prints or writes vectors."""
    fl.set_num_threads(options.threads)
    encoder = fl.text.Encoder(options.folder, model=network(options.folder, **storage(options)))
    if options.lines:
        with open(options.lines, encoding="utf-8", errors="replace") as file:
            texts = file.read().splitlines()
    else:
        texts = sys.stdin.read().splitlines()
    unit = None if options.normalize is None else options.normalize == "yes"
    with waiting("embedding") as update:
        vectors = encoder.encode(
            texts, options.batch_size, unit, lambda done, all_: update(done / all_), prompt_name=options.prompt
        )
    if options.output:
        with whole(options.output) as target:
            np.save(target, vectors)
        say(notes(options, out), f"{plural(len(vectors), 'vector')} of {plural(vectors.shape[1], 'value')} in {options.output}")
        return 0
    for row in vectors:
        say(out, json.dumps(row.tolist()) if options.json else " ".join(f"{value:.9g}" for value in row))
    return 0
