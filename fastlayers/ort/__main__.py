"""``python -m fastlayers.ort script.py arguments ...``, or ``-m module arguments ...``: runs it with fastlayers in place of
onnxruntime, as `install` would.
"""

from __future__ import annotations

import os
import runpy
import sys

from ._stand_in import install

USAGE = "usage: python -m fastlayers.ort [-m module | script.py] [argument ...]"


def main(arguments: list[str]) -> int:
    """Runs a script or a module with its arguments.

    Returns:
        2 if neither is named, else 0; what it exits with itself is its own.
    """
    if not arguments or arguments[0] in ("-h", "--help") or arguments == ["-m"]:
        print(USAGE, file=sys.stderr)
        return 0 if arguments and arguments[0] != "-m" else 2
    install()
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        sys.path.insert(0, os.getcwd())  # as Python itself has it
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return 0
    sys.argv = arguments
    sys.path.insert(0, os.path.dirname(os.path.abspath(arguments[0])))
    runpy.run_path(arguments[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
