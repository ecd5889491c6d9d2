"""What families of networks share, without a framework."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .exporting import Made, put, taken


def test_what_is_kept_is_what_was_made(tmp_path: Path) -> None:
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([[1, 2]])
    made = Made(b"a file", [({"x": x, "a.b/c": y}, {"/net/out.0": x + 1}), ({"x": x[:0], "a.b/c": y}, {"/net/out.0": x[1:]})])
    put(made, tmp_path / "timm net.npz")
    again = taken(tmp_path / "timm net.npz")
    assert again.file == made.file and len(again.runs) == 2
    for parts, kept in zip(made.runs, again.runs, strict=True):
        for want, got in zip(parts, kept, strict=True):
            assert list(got) == list(want)
            for name, array in want.items():
                assert got[name].dtype == array.dtype
                np.testing.assert_array_equal(got[name], array)
