"""The metadata of a distribution named onnxruntime, for packages that ask which is installed."""

from __future__ import annotations

from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

from ._environment import VERSION

__all__ = ["StandIn"]


class StandIn(Distribution):
    """Name, version and a word on what it is; no files."""

    def read_text(self, filename: Any) -> str | None:
        """The text of METADATA, the one file that there is; None for all others."""
        if filename in ("METADATA", "PKG-INFO", ""):
            return (
                f"Metadata-Version: 2.1\nName: onnxruntime\nVersion: {VERSION}\nSummary: fastlayers.ort in place of onnxruntime\n"
            )
        return "onnxruntime\n" if filename == "top_level.txt" else None

    def locate_file(self, path: Any) -> Any:
        """The path that a file would have."""
        return Path(__file__).parent / path
