"""Networks: torchvision, timm, transformers and Keras, exported now with random weights, run here and by ONNX Runtime or Keras.

    python -m tests.zoo.networks [family or word ...] [--table FILE]     in an environment with requirements-networks.txt

Each is made in a process of its own, which ends with it: torch's exporter keeps what it took. A network is run at two sizes, with
passes and without, on one thread and two, and from our own saved file; some also as float16 and with quantized weights. Prints a
line a network: right, refused (why) or wrong (where), the largest distance as a share of the largest number, seconds of a
processor, and what ran in numpy; `--table` writes the same as a table of Markdown. Exits with 1 if one is wrong, or refused
though ONNX Runtime takes it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .networks_cases import KEPT, NAMES
from .table import Table

ROOT = Path(__file__).parents[2]


def found(names: list[str], folder: str) -> Iterator[dict[str, Any]]:
    """What the processes of networks of one family found, as they end; `folder` is for what families share."""
    command = [sys.executable, "-m", "tests.zoo.network", *names]
    environment = {**os.environ, KEPT: folder}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT, env=environment
    ) as process:
        left = dict.fromkeys(names)
        for line in process.stdout or ():
            if line.startswith("{"):
                result: dict[str, Any] = json.loads(line)
                left.pop(result["name"], None)
                yield result
    for name in left:
        yield {"name": name, "word": "not exported", "why": f"its process ended with {process.returncode}"}


def main() -> int:
    """Runs all networks, or those of the families given, and those whose names have one of the words given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--table", type=Path)
    given = parser.parse_args()
    words, table = given.names, Table(given.table)
    counts: Counter[str] = Counter()
    native = 0
    families = {name.split()[0] for name in NAMES}
    names = [
        name
        for name in NAMES
        if not words or any(word == name.split()[0] if word in families else word in name for word in words)
    ]
    with tempfile.TemporaryDirectory() as folder:
        for family in dict.fromkeys(name.split()[0] for name in names):
            for result in found([name for name in names if name.split()[0] == family], folder):
                counts[result["word"]] += 1
                native += result["word"] == "right" and not result.get("numpy")
                why = " ".join(result.get("why", "").split())[:150]
                distance, seconds, numpy = (
                    result.get(key, default) for key, default in (("distance", 0), ("seconds", 0), ("numpy", ""))
                )
                table.add(result["name"], result["word"], f"{distance:.1e}", numpy, why)
                told = f"{result['name']:48} {result['word']:13} {distance:8.1e} {seconds:5.1f} s  {numpy}"
                print(told + (" | " if why else "") + why, flush=True)
    print(f"{sum(counts.values())} networks: " + ", ".join(f"{count} {word}" for word, count in counts.most_common()))
    print(f"{native} of those right run without numpy")
    return int(bool(counts["wrong"] + counts["refused"] + counts["tells nothing"]))


if __name__ == "__main__":
    sys.exit(main())
