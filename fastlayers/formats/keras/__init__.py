"""Reading Keras: ``.keras`` archives and whole models in HDF5 (``.h5``), as Keras 2 and 3 write them.

`archive` (bytes -> configuration, weights) -> `model` (layers by name, from the closed tables of `layers`) -> `calls` (what calls
what) -> a graph of `operators`, built by `build`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._arrays import Array
from ..budget import Budget
from ..source import Source

if TYPE_CHECKING:
    from ...ir.graph import Graph

NAME = "keras"
LOOKS = "a zip archive with config.json"


def sniff(source: Source) -> bool:
    """Whether it is a zip archive with a configuration and weights."""
    if not source.starts_with(b"PK\x03\x04"):
        return False
    names = {member.name for member in source.archive().members}
    return "config.json" in names and any(name.startswith("model.weights.") for name in names)


def load_weights(source: Source, budget: Budget) -> dict[str, Array]:
    """The datasets of the weights in a .keras archive, by their paths."""
    from . import archive

    file = archive.weights(source, budget)
    return {path: dataset.read() for path, dataset in file.datasets() if dataset.numeric}


def is_model(source: Source) -> bool:
    """Whether it is a .keras archive, or an HDF5 file (which may turn out to hold weights alone)."""
    from .. import hdf5

    return sniff(source) or hdf5.sniff(source)


def load_graph(source: Source, budget: Budget) -> tuple[Graph, dict[str, str]]:
    """The model as a graph of operators, and its metadata."""
    from .model import load_graph as load

    return load(source, budget)
