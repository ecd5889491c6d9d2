"""``python -m fastlayers``: the same as the command ``fastlayers``."""

from __future__ import annotations

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
