"""What came of each model of a zoo, as a table of Markdown that grows while the zoo runs."""

from __future__ import annotations

from pathlib import Path

__all__ = ["Table"]


class Table:
    """A file with a line a model; no file where no path is given."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        if path is not None:
            path.write_text(
                "| model | found | largest difference | in numpy | why |\n| --- | --- | --- | --- | --- |\n", encoding="utf-8"
            )

    def add(self, *cells: str) -> None:
        """A line: name, right or what else, distance, operators that ran in numpy, the reason."""
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |\n")
