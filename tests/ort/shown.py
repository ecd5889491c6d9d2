"""A module that ``python -m fastlayers.ort -m`` can run."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    import onnxruntime

    print(__name__, sys.argv[1:], onnxruntime._stands_in)
