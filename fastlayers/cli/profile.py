"""``fastlayers profile``: the time of every step, and how near it is to what this machine can do."""

from __future__ import annotations

import argparse
from typing import TextIO

from ..model.summary import MOST_RUNS
from ._faces import add_faces, show
from ._model import add_arguments, add_inputs, given, load, number
from ._progress import waiting

__all__ = ["EXAMPLES", "arguments", "run"]

EXAMPLES = (
    "fastlayers profile model.onnx --top 10",
    "fastlayers profile model.onnx --shape 1,3,224,224 --html profile.html --trace profile.json",
    "fastlayers profile model.onnx --inputs real.npz --json > profile.json",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    add_arguments(parser)
    add_inputs(parser)
    parser.add_argument(
        "--runs",
        type=number(int, 1, MOST_RUNS),
        default=20,
        metavar="N",
        help="how often the model runs; the shortest time of each step counts (20)",
    )
    parser.add_argument("--top", type=number(int, 0), default=0, metavar="N", help="only the N longest steps; all by default")
    add_faces(parser, trace=True)


def run(options: argparse.Namespace, out: TextIO) -> int:
    """Prints the steps with their times."""
    model = load(options)
    arrays = given(model, options, out)
    with waiting("profiling"):
        report = model.profile(arrays, options.runs)
    show(report, options, out, options.top)
    return 0
