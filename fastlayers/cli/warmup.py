"""``fastlayers warmup``: compiles the Numba kernels that a model needs, so that they are in the disk cache."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

import fastlayers as fl

from ..kernels.warming import Report
from ._model import add_arguments, feeds, load, notes, say, tell

__all__ = ["EXAMPLES", "arguments", "run"]

EXAMPLES = ("fastlayers warmup model.onnx --shape 1,3,224,224",)


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    add_arguments(parser)


def run(options: argparse.Namespace, out: TextIO) -> int:
    """Compiles, runs the model once, and says how long compiling took; nothing of it where the compiled engine runs."""
    if fl.kernels.current().startswith("aot/"):
        if options.json:
            tell(out, {"seconds": 0.0})
        else:
            say(out, f"nothing to do: {fl.kernels.current()} runs, which is compiled; FASTLAYERS_ISA=jit chooses Numba's kernels")
        return 0
    with fl.kernels.use("jit"):
        model = load(options)
        told = notes(options, out)
        with _progress(told) as report:
            seconds = fl.kernels.warmup(model, feeds(model, options, told), report=report)
    if options.json:
        tell(out, {"seconds": seconds})
        return 0
    say(out, f"ready: kernels took {seconds:.1f} s")
    return 0


@contextmanager
def _progress(out: TextIO) -> Iterator[Report]:
    """A bar on a terminal with rich, else one line per kernel."""
    if out.isatty() and importlib.util.find_spec("rich") is not None:
        progress = importlib.import_module("rich.progress")
        console = importlib.import_module("rich.console")
        with progress.Progress(console=console.Console(file=out)) as bar:
            task = bar.add_task("compiling", total=None)

            def show(done: int, total: int, name: str, seconds: float) -> None:
                bar.update(task, completed=done, total=total, description=name)

            yield show
        return
    yield _lines(out)


def _lines(out: TextIO) -> Callable[[int, int, str, float], None]:
    def show(done: int, total: int, name: str, seconds: float) -> None:
        out.write(f"{done:3d} of {total}  {name} {seconds:.2f} s\n")
        out.flush()

    return show
