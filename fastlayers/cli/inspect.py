"""``fastlayers inspect``: a model's inputs, outputs and steps."""

from __future__ import annotations

import argparse
from typing import TextIO

from ._draw import printable
from ._model import add_arguments, feeds, load

__all__ = ["arguments", "run"]


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    add_arguments(parser)


def run(options: argparse.Namespace, out: TextIO) -> int:
    """Prints the table."""
    model = load(options)
    text = model.summary(feeds(model, options))
    if model.metadata:
        text += "\nmetadata: " + ", ".join(f"{key} ({len(value)} characters)" for key, value in model.metadata.items())
    out.writelines(printable(line, out.encoding or "ascii") + "\n" for line in text.splitlines())
    return 0
