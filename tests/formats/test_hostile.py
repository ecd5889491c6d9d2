"""Every reader against damage of every kind: whatever the bytes are, out come arrays or an error of ours, in little memory."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fastlayers.errors import Error, FormatError, LimitError, UnsupportedError
from fastlayers.formats import load_weights

from . import torch_build
from .build import VALID as PLAIN
from .build import npy, npz, safetensors_of
from .gguf_build import SMALL as GGUF
from .measure import allocations
from .test_msgpack import SMALL as FLAX

VALID = {**PLAIN, "torch zip": torch_build.SMALL_ZIP, "torch legacy": torch_build.SMALL_LEGACY, "msgpack": FLAX, "gguf": GGUF}

QUIET = settings(derandomize=True, deadline=None, max_examples=40, database=None)
DTYPES = st.sampled_from(["<f4", "<f8", "<f2", "<i8", "<i4", "u1", "?", "<c8"]).map(np.dtype)
ARRAYS = DTYPES.flatmap(lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)))
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)


def check(content: bytes) -> bool:
    """Loads it; True if that gave arrays, which are then read from end to end."""
    try:
        weights = load_weights(content, max_bytes=1 << 20)
    except (FormatError, UnsupportedError, LimitError):
        return False
    for array in weights.values():
        assert array.flags.c_contiguous and array.flags.aligned and not array.flags.writeable
        array.tobytes()
    return True


@pytest.mark.parametrize("kind", VALID)
def test_truncated_at_every_byte(kind: str) -> None:
    content = VALID[kind]
    assert check(content)
    for length in range(len(content)):
        assert not check(content[:length]), length


@pytest.mark.parametrize("kind", VALID)
@pytest.mark.sampled(4)
def test_every_bit_flipped(kind: str) -> None:
    content = bytearray(VALID[kind])
    with allocations() as measured:
        for position in range(len(content)):
            for bit in range(8):
                content[position] ^= 1 << bit
                check(bytes(content))
                content[position] ^= 1 << bit
    assert measured.peak < 8 << 20


@pytest.mark.parametrize("kind", VALID)
def test_bytes_appended_inserted_removed_or_replaced(kind: str) -> None:
    content, rng = VALID[kind], random.Random(0)
    assert not check(content + b"\0")
    for _ in range(600):
        at, size = rng.randrange(len(content)), rng.choice((1, 2, 4, 8))
        value = rng.choice((bytes(size), b"\xff" * size, rng.randbytes(size), b"9" * size, content[at : at + size] * 2))
        check(content[:at] + value + content[at + size :])
        check(content[:at] + value + content[at:])
        check(content[:at] + content[at + size :])


@pytest.mark.parametrize("kind", VALID)
def test_what_follows_a_valid_beginning(kind: str) -> None:
    content, rng = VALID[kind], random.Random(1)
    for length in (4, 6, 8, 9, 10, 30):
        for _ in range(30):
            assert not check(content[:length] + rng.randbytes(rng.randrange(200)))


@QUIET
@given(st.binary(max_size=200))
def test_any_bytes(content: bytes) -> None:
    check(content)


@QUIET
@given(st.dictionaries(NAMES.filter(lambda name: name != "__metadata__"), ARRAYS, min_size=1, max_size=4))
def test_safetensors_round_trip(arrays: dict[str, np.ndarray]) -> None:
    weights = load_weights(safetensors_of(arrays))
    assert list(weights) == list(arrays)
    for name, array in arrays.items():
        assert weights[name].dtype == array.dtype and weights[name].shape == array.shape
        assert weights[name].tobytes() == array.tobytes()


@QUIET
@given(ARRAYS, st.sampled_from(["<", ">"]), st.sampled_from(["C", "F"]))
def test_npy_round_trip(array: np.ndarray, byte_order: str, order: str) -> None:
    stored = array.astype(array.dtype.newbyteorder(byte_order), order=order)  # type: ignore[call-overload]
    loaded = load_weights(npy(stored))["arr_0"]
    assert loaded.dtype == array.dtype and loaded.shape == array.shape
    assert loaded.tobytes() == array.tobytes()


@QUIET
@given(st.dictionaries(st.from_regex(r"[a-z./é]{1,9}", fullmatch=True), ARRAYS, min_size=1, max_size=3), st.booleans())
def test_npz_round_trip(arrays: dict[str, np.ndarray], compressed: bool) -> None:
    weights = load_weights(npz({f"x{name}": array for name, array in arrays.items()}, compressed))
    for name, array in arrays.items():
        loaded = weights[f"x{name}".removesuffix(".npy")]
        assert loaded.dtype == array.dtype and loaded.tobytes() == array.tobytes()


def test_errors_are_builtins_too() -> None:
    assert issubclass(FormatError, ValueError) and issubclass(LimitError, MemoryError) and issubclass(UnsupportedError, Error)
