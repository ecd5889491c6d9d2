"""``python -m codegen``: writes the files again that are out of date, and names them."""

from pathlib import Path

from . import write

for path in write(Path(__file__).parent.parent):
    print(path)
