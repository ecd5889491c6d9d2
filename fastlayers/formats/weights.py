"""load_weights: tells the format from the content and returns the arrays by name. Knows no format itself."""

from __future__ import annotations

import operator
from typing import Any

from .._arguments import checked
from ..errors import ArgumentError, DTypeError, FormatError
from ._arrays import Array
from .budget import Budget
from .source import SourceLike, open_source, quote

# 16 GiB hold four billion float32 weights, more than a CPU runs at a useful pace, so valid files pass. It is the last fence, not
# the first: a size is trusted only after comparison with the bytes that are there, and what inflates must stay within a ratio.
MAX_BYTES = 16 << 30


@checked
def load_weights(
    source: SourceLike, *, format: str | None = None, mmap: bool = True, max_bytes: int = MAX_BYTES
) -> dict[str, Array]:
    """Reads the arrays of a weights or model file, by name; the format is inferred from the content, never from the file's name.

    Read are safetensors (in shards too: pass the index), torch, GGUF, npz, npy, HDF5, Keras, TensorFlow Lite, ONNX and Flax.

    Names and their order are the file's ("arr_0" for the one array of an npy file, as in an npz). dtypes are retained (float16,
    integers, bool and complex too), but bfloat16 and the 8-bit floats, which numpy lacks, are widened to float32, exactly.
    Arrays are read-only, C-contiguous, aligned and in the machine's byte order. What is no tensor (strings and dates in an npz)
    is checked and left out. Nothing in a file is ever executed.

    Of an ONNX model come initializers and Constants, by the names of their values, those of inner graphs and functions too; types
    of less than a byte are widened to 8 bits or float32. Data in other files is read from below the model's own folder alone, and
    never through a link.

    Of a torch file (torch.save's, old and new, or TorchScript's, whose code is not looked at) come the tensors of nested dicts
    and lists, keys and indices joined with "."; of a module that was saved whole, what its state_dict has. A bare tensor is
    called "tensor". A file that calls anything but what makes tensors and plain values is refused: save the state_dict alone.

    Of a GGUF file quantized tensors come as float32, with the bits that ggml gives them; types that are not read are named.

    Of an HDF5 file (.h5, .weights.h5) come its datasets by their paths, of a .keras archive those of the weights in it; soft and
    external links, data in other files and virtual datasets are refused.

    Args:
        source: a path (str or os.PathLike), the content itself (bytes or another contiguous buffer of bytes), or a binary file
            object, which is read from where it stands to its end and need not be seekable.
        format: the format to insist on, "safetensors", "torch", "gguf", "npz", "npy", "hdf5", "keras", "tflite", "onnx" or
            "msgpack", or "safetensors index"; None for any.
        mmap: maps the file of a path: arrays need no memory of their own where no conversion is due, and are read at first touch.
            The file must then not change while its arrays live; if it is truncated, the operating system kills the process that
            touches them. False reads the file, and copies a buffer that is not ``bytes``: the result depends on nothing outside.
        max_bytes: the most memory that the call may allocate; what is mapped does not count.

    Returns:
        The arrays by name.

    Raises:
        FormatError: the content is broken, truncated, of no known format, or holds no weights.
        UnsupportedError: the content is of a format, or holds a dtype, that is known but not read.
        LimitError: more than `max_bytes` would be needed, or a compressed file inflates beyond reason.
        DTypeError, ShapeError: an argument is of the wrong type, or out of range.
        OSError: from opening or reading a path, as ``open`` raises it: FileNotFoundError, IsADirectoryError, PermissionError.

    >>> import fastlayers as fl
    >>> fl.load_weights(fl.example("silero_vad"))["conv1.weight"].shape
    (128, 129, 3)
    """
    check_format(format, "load_weights")
    budget = Budget(limit(max_bytes, "load_weights"), "load_weights")
    opened = open_source(source, caller="load_weights", mapped=bool(mmap), budget=budget)
    from . import _table  # here, so that importing the package does not import every format

    weights = _table.choose(opened, format).load_weights(opened, budget)
    if not weights:
        raise FormatError(f"{opened.where}: holds no tensors: expected at least one")
    return weights


def check_format(format: Any, caller: str) -> None:
    """Raises unless `format` is a str or None."""
    if format is not None and not isinstance(format, str):
        raise DTypeError(f"{caller}: format must be a string or None, got {quote(format)} of type {type(format).__name__}")


def limit(max_bytes: Any, caller: str) -> int:
    """`max_bytes` as an int of at least 0."""
    try:
        found = operator.index(max_bytes)
    except Exception:  # a third-party type may raise anything
        raise DTypeError(f"{caller}: max_bytes must be an integer, got {type(max_bytes).__name__}") from None
    if found < 0:
        raise ArgumentError(f"{caller}: max_bytes must be at least 0, got {found}")
    return found
