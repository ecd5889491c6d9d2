"""``fastlayers inspect``: a model's inputs, outputs and steps."""

from __future__ import annotations

import argparse
from typing import TextIO

from .._arguments import shown
from ..model.specs import Specs
from ..model.summary import described
from ._model import add_arguments, feeds, load, say

__all__ = ["arguments", "run"]

LONGEST = 100  # characters of a value that are shown


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    add_arguments(parser)


def run(options: argparse.Namespace, out: TextIO) -> int:
    """Prints what goes in and comes out, which needs no sizes, and then the table."""
    model = load(options)
    say(out, f"{options.model}: runs on {model.variant}", *_sides("input", model.inputs), *_sides("output", model.outputs))
    say(out, *(f"metadata {key}: {_clipped(value)}" for key, value in model.metadata.items()))
    say(out, *described(model, feeds(model, options, out)).splitlines())
    return 0


def _sides(what: str, specs: Specs) -> list[str]:
    return [f"{what} {s.name} {s.dtype.name}{'' if s.shape is None else list(s.shape)}" for s in specs]


def _clipped(text: str) -> str:
    """A text of a file on one line."""
    return text if text.isprintable() and len(text) <= LONGEST else f"{shown(text)} ({len(text)} characters)"
