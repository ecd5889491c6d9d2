"""Writes hdf5_*.h5 (gzipped), small files of every kind of storage that is read, and hdf5.npz with what is in them. Needs h5py.

python tests/goldens/make_hdf5.py
"""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import h5py
import ml_dtypes
import numpy as np

HERE = Path(__file__).parent


def fill(file: h5py.File, chunked: bool | None, many: int) -> None:
    rng = np.random.default_rng(0)

    def number(*shape: int) -> np.ndarray:
        return np.round(rng.standard_normal(shape) * 64) / 64

    file.attrs["text"], file.attrs["bytes"], file.attrs["names"] = "hällo" * 100, b"abc", [b"a", b"bcd"]
    file.attrs["numbers"], file.attrs["one"] = np.arange(5), np.float32(2.5)
    group = file.create_group("a/b")
    for i in range(12):
        group.create_dataset(f"x{i}", data=number(3, i).astype("f4"))
        group.attrs[f"k{i}"] = f"v{i}" * i
    for name in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">f4", ">i8"):
        file[f"types/{name}"] = (number(2, 3) * 5).astype("f8").clip(0).astype(name)
    file["types/bool"] = np.array([True, False])
    file["types/bfloat16"] = number(7).astype(ml_dtypes.bfloat16)
    file["types/bfloat16"].attrs["dtype"] = "bfloat16"
    file["types/text"] = "no tensor"
    file["types/texts"] = np.array([b"ab", b"c"])
    file["scalar"], file["empty"], file["null"] = np.float32(3), np.zeros((0, 4), "f4"), h5py.Empty("f4")
    file.create_group("nothing")
    if chunked is not None:
        file.create_dataset("chunks/one", data=number(6, 7).astype("f4"), compression="gzip", chunks=(6, 7))
    many_group = file.create_group("many")
    for i in range(many):
        many_group.create_dataset(f"n{i:04d}", data=np.float32(i))
    if chunked:
        file.create_dataset("chunks/plain", data=number(9, 4, 5).astype("f4"), chunks=(4, 3, 5))
        file.create_dataset("chunks/gzip", data=number(50, 33).astype("f4"), compression="gzip", shuffle=True, chunks=(7, 10))
        file.create_dataset("chunks/sum", data=number(20).astype("f8"), fletcher32=True, chunks=(8,))


def main() -> None:
    stored: dict[str, np.ndarray] = {}
    kinds: dict[str, tuple[dict[str, Any], bool | None, int]] = {
        "earliest": ({}, True, 300),
        "userblock": ({"userblock_size": 1024}, True, 5),
        "tracked": ({"track_order": True}, True, 100),
        "latest": ({"libver": "latest"}, None, 300),
        "v110": ({"libver": ("v110", "v110")}, False, 20),
    }
    for kind, (options, chunked, many) in kinds.items():
        memory = io.BytesIO()
        with h5py.File(memory, "w", **options) as file:
            fill(file, chunked, many)

            def visit(name: str, item: Any) -> None:
                if isinstance(item, h5py.Dataset) and item.shape is not None and item.dtype.kind not in "OS":
                    array = np.asarray(item)
                    wide = array.dtype.kind == "V"
                    stored[name.replace("/", "|")] = array.view(ml_dtypes.bfloat16).astype("f4") if wide else array

            file.visititems(visit)
        (HERE / f"hdf5_{kind}.h5.gz").write_bytes(gzip.compress(memory.getvalue(), mtime=0))
    flat = {name: array for name, array in stored.items() if not name.startswith("many|")}
    np.savez_compressed(HERE / "hdf5.npz", **flat)


if __name__ == "__main__":
    main()
