"""magika: the types of files from their content."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def answers(folder: Path) -> Any:
    from magika import Magika

    magika = Magika()
    contents = {
        "python": Path(__file__).read_bytes(),
        "html": b"<!doctype html><html><body><p>hello</p></body></html>" * 5,
        "shell": b"#!/bin/bash\nset -e\nfor i in 1 2 3; do echo $i; done\n" * 3,
        "json": b'{"a": [1, 2, 3], "b": {"c": null}}' * 4,
    }
    found = {name: magika.identify_bytes(content) for name, content in contents.items()}
    return {name: {"label": str(result.output.label), "score": result.score} for name, result in found.items()}
