"""``python -m tests.fuzz FORMAT``: fuzzes the reader of a format, or all of them in turn; exit status 1 if anything was found.

An input that is kept in the folder of findings is tried again with ``--reproduce FILE``. If the process ends by itself, because
something crashed or hangs below Python, the input is in ``FORMAT-running.bin`` there: its length in 8 bytes, then the input.
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

NAMES = ("npy", "npz", "torch", "safetensors", "index", "checkpoint", "msgpack", "gguf", "hdf5", "keras", "tflite", "onnx", "own",
         "zip", "any")  # fmt: skip


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m tests.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("format", choices=(*NAMES, "all"))
    parser.add_argument("--seconds", type=int, default=60, help="of each format")
    parser.add_argument("--inputs", type=int, default=0, help="as many inputs, whatever time they take")
    parser.add_argument("--engine", choices=("random", "hypothesis", "atheris"), default="random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--findings", type=Path, default=Path("build/fuzz"), help="the folder for what is found")
    parser.add_argument(
        "--coverage", action="store_true", help="print which lines of the reader were reached (slow; needs coverage)"
    )
    parser.add_argument("--reproduce", type=Path, metavar="FILE", help="try this input alone")
    return parser.parse_args()


def _measured(modules: tuple[str, ...]) -> Any:
    import coverage

    root = Path(__file__).parents[2] / "fastlayers"
    names = [f"{root / m}/*" if (root / m).is_dir() else str(root / m) for m in modules]
    return coverage.Coverage(data_file=None, include=names)


def _reproduce(name: str, path: Path) -> int:
    from .session import Session
    from .targets import TARGETS

    content = path.read_bytes()
    if path.name.endswith("-running.bin"):
        content = content[8 : 8 + int.from_bytes(content[:8], "little")]
    with Session(TARGETS[name]) as session:
        session.run(content)
        session.again(content)
    print(session.report())
    for found in session.findings.values():
        print(found.report)
    return 1 if session.findings else 0


def _instrument() -> None:
    """Imports all of fastlayers, its readers and graphs in such a way that Atheris sees which branches they take."""
    import atheris

    root = Path(__file__).parents[2]
    paths = [p.relative_to(root).with_suffix("") for p in (root / "fastlayers").rglob("*.py")]
    names = [".".join(p.parts).removesuffix(".__init__") for p in paths]
    wanted = [n for n in names if n.startswith(("fastlayers.formats", "fastlayers.graph"))]
    with atheris.instrument_imports(include=["fastlayers"], exclude=[n for n in names if n not in wanted]):
        for module in wanted:
            importlib.import_module(module)


def _fuzz(name: str, arguments: argparse.Namespace) -> int:
    if arguments.engine == "atheris":
        _instrument()
    import fastlayers

    from .engines import ENGINES
    from .session import Session
    from .targets import TARGETS

    fastlayers.set_num_threads(1)
    end = time.monotonic() + arguments.seconds
    with Session(TARGETS[name], arguments.findings) as session:

        def done() -> bool:
            return session.inputs >= arguments.inputs if arguments.inputs else time.monotonic() > end

        seconds = 1 << 24 if arguments.inputs else arguments.seconds
        last = ENGINES[arguments.engine](session, done, arguments.seed, seconds)
    print(f"{session.report()}\n  {last}", flush=True)
    return 1 if session.findings else 0


def main() -> int:
    """Runs what the command line says."""
    arguments = _arguments()
    faulthandler.enable()
    if arguments.format == "all":
        # A process each: libFuzzer ends its own, and what stays in memory is told format by format.
        rest = [a for a in sys.argv[1:] if a != "all"]
        return max(subprocess.run([sys.executable, "-m", "tests.fuzz", name, *rest]).returncode != 0 for name in NAMES)
    if arguments.reproduce is not None:
        return _reproduce(arguments.format, arguments.reproduce)
    if not arguments.coverage:
        return _fuzz(arguments.format, arguments)
    from .targets import TARGETS

    measured = _measured(TARGETS[arguments.format].modules)
    for module in [m for m in sys.modules if m.startswith(("fastlayers", "tests."))]:
        del sys.modules[module]
    measured.start()
    status = _fuzz(arguments.format, arguments)
    measured.stop()
    measured.report(show_missing=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
