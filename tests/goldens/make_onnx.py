"""Makes the goldens of the ONNX reader with the onnx package: every element type in both encodings, and data in another file.

Run from the root of the repository: ``python -m tests.goldens.make_onnx``.
Made with onnx 1.23.2, ml_dtypes 0.6.0, numpy 2.4.6. No seed: all codes of the small types, a few values of the others.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = Path(__file__).parent

PLAIN = ("FLOAT", "UINT8", "INT8", "UINT16", "INT16", "INT32", "INT64", "BOOL", "FLOAT16", "DOUBLE", "UINT32", "UINT64")
WIDENED = (
    *("BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT8E8M0"),
    *("UINT4", "INT4", "FLOAT4E2M1", "UINT2", "INT2", "FLOAT6E2M3", "FLOAT6E3M2"),
)
BITS = {"UINT4": 4, "INT4": 4, "FLOAT4E2M1": 4, "UINT2": 2, "INT2": 2, "FLOAT6E2M3": 6, "FLOAT6E3M2": 6}


def numbers(name: str) -> np.ndarray:
    """An array of the type, of odd length where that matters for packing."""
    dtype = helper.tensor_dtype_to_np_dtype(getattr(TensorProto, name))
    if name in WIDENED:
        count = 1 << BITS.get(name, 8)
        codes = np.arange(-1, count, dtype=np.int64) % count
        if name == "BFLOAT16":
            return (codes * 257).astype(np.uint16).view(dtype)
        return codes.astype(np.uint8).view(dtype)
    if np.dtype(dtype).kind == "f":
        return np.array([0.0, -0.0, 1.5, -2.25, np.inf, -np.inf, np.nan], dtype)
    if name == "BOOL":
        return np.array([True, False, True])
    info = np.iinfo(dtype)
    return np.array([info.min, info.max, 0, 1, info.max // 3], dtype)


def typed(array: np.ndarray, name: str, label: str) -> TensorProto:
    """The tensor in its field of typed numbers."""
    raw = numpy_helper.from_array(array, label)
    tensor = TensorProto(name=label, data_type=raw.data_type, dims=raw.dims)
    if name in ("FLOAT", "DOUBLE"):
        getattr(tensor, "float_data" if name == "FLOAT" else "double_data").extend(array.tolist())
    elif name in ("INT64", "UINT64", "UINT32"):
        getattr(tensor, "int64_data" if name == "INT64" else "uint64_data").extend(array.tolist())
    elif name in BITS and BITS[name] != 6:
        tensor.int32_data.extend(raw.raw_data)
    elif array.dtype.kind in "iub":
        tensor.int32_data.extend(int(v) for v in array)
    else:
        tensor.int32_data.extend(array.view(f"u{array.dtype.itemsize}").tolist())
    return tensor


def expected(tensor: TensorProto, name: str) -> np.ndarray:
    """What the onnx package reads, in a type that numpy has."""
    array = numpy_helper.to_array(tensor)
    if name in PLAIN:
        return array
    return array.astype({"U": np.uint8, "I": np.int8}.get(name[0], np.float32))


def save(path: Path, tensors: list[TensorProto], **options: object) -> None:
    """A model of nothing but initializers."""
    graph = helper.make_graph([], "tensors", [], [], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=14, producer_name="make_onnx")
    onnx.save(model, path, **options)  # type: ignore[arg-type]


def main() -> None:
    """Writes onnx_tensors.onnx, what must come out of it (.npz), and onnx_external.onnx with its data (.bin)."""
    tensors: list[TensorProto] = []
    arrays: dict[str, np.ndarray] = {}
    for name in PLAIN + WIDENED:
        array = numbers(name)
        raw = numpy_helper.from_array(array, f"{name}.raw")
        for tensor in (raw, typed(array, name, f"{name}.typed")):
            tensors.append(tensor)
            arrays[tensor.name] = expected(tensor, name)
    save(HERE / "onnx_tensors.onnx", tensors)
    np.savez_compressed(HERE / "onnx_tensors.npz", **arrays)

    (HERE / "onnx_external.bin").unlink(missing_ok=True)  # onnx.save appends
    outside = [numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(2, 3) + i, f"w{i}") for i in range(3)]
    save(HERE / "onnx_external.onnx", outside, save_as_external_data=True, location="onnx_external.bin", size_threshold=0)
    (HERE / "onnx_external.bin").chmod(0o644)


if __name__ == "__main__":
    main()
