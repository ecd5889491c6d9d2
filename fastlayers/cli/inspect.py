"""``fastlayers inspect``: a model's inputs, outputs and steps."""

from __future__ import annotations

import argparse
from typing import TextIO

from .._arguments import shown
from ..model.specs import Specs
from ._faces import add_faces, show
from ._model import add_arguments, feeds, load, notes, say

__all__ = ["EXAMPLES", "arguments", "run"]

LONGEST = 100  # characters of a value that are shown
EXAMPLES = (
    "fastlayers inspect model.onnx",
    "fastlayers inspect model.onnx --shape 8,3,224,224 --html model.html",
    "fastlayers inspect model.onnx --json | jq '.steps[] | select(.numpy) | .operator'",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    add_arguments(parser)
    add_faces(parser, trace=False)


def run(options: argparse.Namespace, out: TextIO) -> int:
    """Prints what goes in and comes out, which needs no sizes, and then the table."""
    model = load(options)
    told = notes(options, out)
    if not options.json:
        say(out, f"{options.model}: runs on {model.variant}", *_sides("input", model.inputs), *_sides("output", model.outputs))
        say(out, *(f"metadata {key}: {_clipped(value)}" for key, value in model.metadata.items()))
    show(model.report(feeds(model, options, told)), options, out)
    return 0


def _sides(what: str, specs: Specs) -> list[str]:
    return [f"{what} {s.name} {s.dtype.name}{'' if s.shape is None else list(s.shape)}" for s in specs]


def _clipped(text: str) -> str:
    """A text of a file on one line."""
    return text if text.isprintable() and len(text) <= LONGEST else f"{shown(text)} ({len(text)} characters)"
