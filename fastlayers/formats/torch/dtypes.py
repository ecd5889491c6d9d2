"""The element types of torch's storages: how they are in the file, and which of them are read."""

from __future__ import annotations

from .._arrays import Codec, codec, widen_bfloat16, widen_float8

CODECS: dict[str, Codec] = {
    "bool": codec("?"),
    "uint8": codec("u1"),
    "int8": codec("i1"),
    "uint16": codec("<u2"),
    "int16": codec("<i2"),
    "uint32": codec("<u4"),
    "int32": codec("<i4"),
    "uint64": codec("<u8"),
    "int64": codec("<i8"),
    "float16": codec("<f2"),
    "float32": codec("<f4"),
    "float64": codec("<f8"),
    "complex64": codec("<c8"),
    "complex128": codec("<c16"),
    "bfloat16": codec("<u2", widen_bfloat16),
    "float8_e4m3fn": codec("u1", widen_float8(4, 7, "fn")),
    "float8_e5m2": codec("u1", widen_float8(5, 15, "ieee")),
    "float8_e4m3fnuz": codec("u1", widen_float8(4, 8, "fnuz")),
    "float8_e5m2fnuz": codec("u1", widen_float8(5, 16, "fnuz")),
    "float8_e8m0fnu": codec("u1", widen_float8(8, 127, "scale")),
}

# Known, but not read: bytes an element. Those of less than a byte count as the bytes that hold them.
_OTHERS = {"complex32": 4, "qint8": 1, "quint8": 1, "qint32": 4, "quint4x2": 1, "quint2x4": 1}

ITEMSIZES: dict[str, int] = {name: kind.stored.itemsize for name, kind in CODECS.items()} | _OTHERS

_CLASSES = {
    "Double": "float64",
    "Float": "float32",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Long": "int64",
    "Int": "int32",
    "Short": "int16",
    "Char": "int8",
    "Byte": "uint8",
    "Bool": "bool",
    "ComplexHalf": "complex32",
    "ComplexFloat": "complex64",
    "ComplexDouble": "complex128",
    "QInt8": "qint8",
    "QUInt8": "quint8",
    "QInt32": "qint32",
    "QUInt4x2": "quint4x2",
    "QUInt2x4": "quint2x4",
    "Untyped": "uint8",
    "_Untyped": "uint8",
}

# The dtype of each class of storages, by the class's full name.
STORAGES: dict[str, str] = {
    f"{module}.{name}Storage": dtype for name, dtype in _CLASSES.items() for module in ("torch", "torch.cuda", "torch.storage")
}

# The names of dtypes themselves: a global of the module "torch".
DTYPES: dict[str, str] = {f"torch.{name}": name for name in ITEMSIZES}
