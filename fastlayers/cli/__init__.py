"""The command ``fastlayers``: parses, calls, prints. What a subcommand needs is imported when it runs."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Sequence

from .._version import __version__
from ..errors import Error

__all__ = ["CODES", "main"]

# Exit codes. 1 is a finding of a command that judges; 2 is whatever kept a command from doing its work.
_FAILED = 2
_INTERRUPTED = 130
CODES = (
    "exit codes: 0 done; 1 a finding: something differs (compare), is slower (bench --against) or is wrong (doctor); 2 it could "
    "not be done, or wrong arguments: one line on stderr says why, as JSON with --json; 130 interrupted"
)
# Commands about a model file; each is a module with `arguments(parser)`, `run(options, out)` and `EXAMPLES`.
_MODEL_COMMANDS = {
    "inspect": (
        "list a model's steps",
        "Lists the steps of a model: shapes, parameters, multiply-adds, bytes, and which kernels run them.",
    ),
    "profile": (
        "time a model's steps",
        "Times every step of a model, and says how near it is to what one core of this machine can do.",
    ),
    "bench": (
        "time a model",
        "Runs a model for a while and prints percentiles of its time; or alternates with another model or engine. "
        "Exit code 1: it is slower than the other.",
    ),
    "run": ("run a model once", "Runs a model on arrays of a file, or on seeded random values, and says what comes out."),
    "compare": (
        "find where a model's values differ",
        "Compares a model's outputs, and on request every value between, with stored arrays, ONNX Runtime, or its own plain "
        "form. Exit code 1: something differs.",
    ),
    "convert": (
        "write a model as one file that loads faster",
        "Reads a model of any format and writes graph and weights to one safetensors file; or, with --arrays, the arrays alone.",
    ),
    "quantize": (
        "make a network of integers",
        "Quantizes weights, or with samples also what they multiply, as far as results stay as near as asked; writes ONNX or one "
        "safetensors file, and prints what each layer costs and adds to the error.",
    ),
    "warmup": (
        "compile what a model needs",
        "Compiles the Numba kernels that a model needs and keeps them in Numba's disk cache, if that can be written.",
    ),
    "embed": (
        "make vectors of lines of text",
        "Makes a vector of every line of text, with a folder of sentence-transformers or transformers. Needs the extra `text`.",
    ),
    "generate": (
        "continue a text",
        "Writes the text that follows a prompt, with a decoder of transformers. Needs the extra `text`.",
    ),
    "serve": (
        "serve models over HTTP",
        "Serves models by the Open Inference Protocol version 2, for KServe's and Triton's clients, and text models for OpenAI's."
        " Needs the extra `serve`.",
    ),
}

_EXAMPLES = {
    "demo": ("fastlayers demo", "fastlayers demo recording.wav --threshold 0.7", "fastlayers demo --json"),
    "doctor": ("fastlayers doctor", "fastlayers doctor --json | jq '.findings[] | select(.wrong)'"),
    "completion": (
        "fastlayers completion bash > ~/.local/share/bash-completion/completions/fastlayers",
        "fastlayers completion zsh >> ~/.zshrc",
        "fastlayers completion fish > ~/.config/fish/completions/fastlayers.fish",
    ),
}


class _Help(argparse.HelpFormatter):
    """Text is wrapped, but for lists of examples, which are shown as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith("examples:"):
            examples, _, rest = text.partition("\n\n")
            return f"{examples}\n\n{super()._fill_text(rest, width, indent)}"
        return super()._fill_text(text, width, indent)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one subcommand and returns the process's exit code; a fastlayers error becomes one line on stderr."""
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
        message = _sentence(error).removeprefix(f"{arguments.command}: ")
        if getattr(arguments, "json", False):
            told = {"command": arguments.command, "error": type(error).__name__, "message": message, "exit_code": _FAILED}
            print(json.dumps(told), file=sys.stderr)
        else:
            print(f"fastlayers {arguments.command}: {message}", file=sys.stderr)
        return _FAILED
    except KeyboardInterrupt:
        return _INTERRUPTED
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fastlayers", description="Fast CPU inference for trained networks.", epilog=CODES, formatter_class=_Help
    )
    parser.add_argument("--version", action="version", version=f"fastlayers {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    demo = commands.add_parser(
        "demo",
        help="find the speech in a recording",
        description="Finds the speech in a recording with a small trained network, frame by frame, and says how fast that went.",
    )
    demo.add_argument("file", nargs="?", help="a 16 kHz mono WAV file; without it, the recording that is part of the package")
    demo.add_argument(
        "--threshold", type=_probability, default=0.5, metavar="P", help="from this probability on, a frame is speech (0.5)"
    )
    demo.add_argument(
        "--model",
        metavar="ONNX",
        type=_file,
        help="silero-vad's ONNX file, to be run instead of the packaged network, whose weights are others",
    )

    commands.add_parser(
        "doctor",
        help="say what this installation can do, and whether it works",
        description="Says what this installation has, what runs and why, and checks a few results. Exit code 1: not all is well.",
    )
    for name, (help_, about) in _MODEL_COMMANDS.items():
        command = commands.add_parser(name, help=help_, description=about)
        importlib.import_module(f".{name}", __package__).arguments(command)
    shells = commands.add_parser(
        "completion",
        help="let a shell complete commands and options",
        description="Prints a script for a shell, which then completes commands, options and names of files.",
    )
    shells.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell")
    for name, command in commands.choices.items():
        examples = _EXAMPLES.get(name) or importlib.import_module(f".{name}", __package__).EXAMPLES
        command.formatter_class = _Help
        command.epilog = "examples:\n" + "\n".join(f"  {line}" for line in examples) + f"\n\n{CODES}"
        if name != "completion":
            command.add_argument("--json", action="store_true", help="print JSON on stdout and remarks on stderr, for scripts")
    return parser


def _file(text: str) -> str:
    from ._model import file

    return file(text)


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

        return demo.run(arguments.file, arguments.threshold, sys.stdout, arguments.model, arguments.json)
    if arguments.command in _MODEL_COMMANDS:
        return int(importlib.import_module(f".{arguments.command}", __package__).run(arguments, sys.stdout))
    if arguments.command == "completion":
        from . import completion

        return completion.run(_parser(), arguments.shell, sys.stdout)
    from . import doctor

    return doctor.run(sys.stdout, arguments.json)


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and not isinstance(error, Error):
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return "".join(c if c.isprintable() else "?" for c in " ".join(str(error).split()))
