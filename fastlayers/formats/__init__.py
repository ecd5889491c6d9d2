"""Reading files of weights and of whole networks: the public entries, and one module per file format. No kernel is imported here.

``load_weights`` opens the source once (`source`), asks each format of `_table` whether it knows the content, and lets that one
decode it. Sizes that a file claims are compared with the bytes that are there; every large allocation passes through a `Budget`.

To add a format:

1. write ``<name>.py`` with ``NAME``, ``LOOKS``, ``sniff(source)`` and ``load_weights(source, budget)``, as `_table.Format` says;
2. add the module to `_table.FORMATS` (and take its line out of `foreign`, which names the formats that are known but not read);
3. add a small valid file of it to ``VALID`` of ``tests/formats/test_hostile.py``: truncations and bit flips are then tested.
"""

from .weights import MAX_BYTES, load_weights

__all__ = ["MAX_BYTES", "load_weights"]
