"""Reading HDF5 by a bounds-checked reader of our own: the part of the format that h5py and Keras write.

`file` (superblock, object headers, groups, attributes) -> `links` (tables of links), `heaps`, `types` (shapes and element types)
-> `data` (what a dataset holds: compact, contiguous or chunked, deflated and shuffled).

A ready-made reader was not taken: the pure-Python one believes sizes (it inflates without a limit and allocates what a shape
says) and brings five packages with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._arrays import Array
from ..budget import Budget
from ..source import Source
from .signature import find

if TYPE_CHECKING:
    from .file import File

NAME = "hdf5"
LOOKS = '89 48 44 46 ("\\x89HDF")'


def sniff(source: Source) -> bool:
    """Whether HDF5's signature stands at 0 or at a power of two from 512 on."""
    return find(source.view) is not None


def load_weights(source: Source, budget: Budget) -> dict[str, Array]:
    """Every dataset of values by its path; texts and dates are left out."""
    file = open_file(source.view, source.where, budget)
    return {path: dataset.read() for path, dataset in file.datasets() if dataset.numeric}


def open_file(view: memoryview, where: str, budget: Budget) -> File:
    """The file whose bytes these are. Raises FormatError if it is broken."""
    from .file import File

    return File(view, where, budget)
