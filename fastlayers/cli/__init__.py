"""The command ``fastlayers``: parses, calls, prints. What a subcommand needs is imported when it runs."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from .. import __version__
from ..errors import Error

__all__ = ["main"]

# Exit codes: 1 is for `doctor` (something is wrong with the installation), 2 for whatever kept a command from doing its work.
_FAILED = 2
_INTERRUPTED = 130
# Commands about a model file; each is a module with `arguments(parser)` and `run(options, out)`.
_MODEL_COMMANDS = {
    "inspect": (
        "list a model's steps",
        "Lists the steps of a model: shapes, parameters, multiply-adds, bytes, and which kernels run them.",
    ),
    "profile": (
        "time a model's steps",
        "Times every step of a model, and says how near it is to what one core of this machine can do.",
    ),
    "bench": ("time a model", "Runs a model for a while and prints percentiles of its time."),
    "run": ("run a model once", "Runs a model on arrays of a file, or on seeded numbers, and says what comes out."),
    "compare": (
        "find where a model's numbers differ",
        "Compares a model's outputs, and on request every value between, with stored arrays, ONNX Runtime, or its own plain "
        "form. Exit code 1: something differs.",
    ),
    "convert": (
        "write a model as one file that loads faster",
        "Reads a model of any format and writes graph and weights to one safetensors file; or, with --weights, the arrays alone.",
    ),
    "warmup": (
        "compile what a model needs",
        "Compiles the Numba kernels that a model needs and keeps them in Numba's disk cache, if that can be written.",
    ),
    "serve": (
        "serve models over HTTP",
        "Serves models by the Open Inference Protocol version 2, for KServe's and Triton's clients. Needs the extra `serve`.",
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one subcommand and returns the process's exit code; an error of ours becomes one line on stderr."""
    try:
        arguments = _parser().parse_args(argv)
    except SystemExit as end:  # --help and --version end with 0, wrong arguments with 2
        return int(end.code or 0)
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has gone, as with `| head`: nothing more to say
        return 0
    except (Error, OSError) as error:
        # Some errors begin with what was being done, which may be the command itself.
        print(f"fastlayers {arguments.command}: {_sentence(error).removeprefix(f'{arguments.command}: ')}", file=sys.stderr)
        return _FAILED
    except KeyboardInterrupt:
        return _INTERRUPTED
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fastlayers", description="Fast CPU inference for trained networks.")
    parser.add_argument("--version", action="version", version=f"fastlayers {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    demo = commands.add_parser(
        "demo",
        help="find the speech in a recording",
        description="Finds the speech in a recording with a small trained network, frame by frame, and says how fast that went.",
    )
    demo.add_argument("file", nargs="?", help="a 16 kHz mono WAV file; without it, the recording that is part of the package")
    demo.add_argument(
        "--threshold",
        type=_probability,
        default=0.5,
        metavar="P",
        help="from this probability on, a frame is speech (0.5)",
    )
    demo.add_argument("--model", metavar="ONNX", help="silero-vad's ONNX file, to be run instead of the packaged weights")

    commands.add_parser(
        "doctor",
        help="say what this installation can do, and whether it works",
        description="Says what this installation has, what runs and why, and checks a few results. Exit code 1: not all is well.",
    )
    for name, (help_, about) in _MODEL_COMMANDS.items():
        command = commands.add_parser(name, help=help_, description=about)
        importlib.import_module(f".{name}", __package__).arguments(command)
    return parser


def _probability(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < 1.0:
        raise argparse.ArgumentTypeError(f"expected a number between 0 and 1, got {text!r}")
    return value


def _run(arguments: argparse.Namespace) -> int:
    if arguments.command == "demo":
        from . import demo

        return demo.run(arguments.file, arguments.threshold, sys.stdout, arguments.model)
    if arguments.command in _MODEL_COMMANDS:
        return int(importlib.import_module(f".{arguments.command}", __package__).run(arguments, sys.stdout))
    from . import doctor

    return doctor.run(sys.stdout)


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and not isinstance(error, Error):
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return "".join(c if c.isprintable() else "?" for c in " ".join(str(error).split()))
