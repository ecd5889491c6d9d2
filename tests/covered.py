"""Prints what tests reached of each package: ``coverage json -q -o FILE && python -m tests.covered FILE``."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path, PurePath

COUNTS = ("num_statements", "missing_lines", "num_branches", "missing_branches")


def package(path: PurePath) -> str:
    """The folder below fastlayers that a file is in; each variant of the kernels is counted by itself."""
    parts = path.parts[path.parts.index("fastlayers") + 1 : -1]
    return "/".join(parts[: 2 if parts[:1] == ("kernels",) else 1]) or "(modules)"


def main(file: Path) -> None:
    """A line per package, and one for all: statements and branches, those that no test reached, and the share of the others."""
    found: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for name, entry in json.loads(file.read_text())["files"].items():
        for row in (package(PurePath(name)), "all"):
            found[row] = [total + entry["summary"][count] for total, count in zip(found[row], COUNTS, strict=True)]
    print(f"{'package':24} {'lines':>7} {'missed':>7} {'branches':>9} {'missed':>7} {'reached':>8}")
    for row, (lines, missed, branches, untaken) in sorted(found.items(), key=lambda item: item[0] == "all"):
        share = 1 - (missed + untaken) / max(lines + branches, 1)
        print(f"{row:24} {lines:7} {missed:7} {branches:9} {untaken:7} {share:8.1%}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
