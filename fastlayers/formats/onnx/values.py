"""The messages of onnx.proto that describe values: tensors, sparse tensors, types, and the entries of texts. One method each."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..._tuples import NamedTuple
from ...errors import FormatError, LimitError, UnsupportedError
from .._arrays import MAX_RANK, Array
from ..budget import Budget
from ..source import Source, quote
from . import tensor as tensors
from .elements import ELEMENTS, PLAIN, RAW_DATA, STRING_DATA, Elements
from .proto import Pending, Place, ValueInfo
from .wire import MAX_VARINT, fields, signed, skip, varints

if TYPE_CHECKING:
    from array import array as Numbers

    from .external import ExternalFiles

MAX_DEPTH = 64  # messages in one another

# What a message becomes in memory at most, without its texts and elements; a test measures the smallest message of each sort.
_MESSAGE_BYTES = 1000
_BATCH = 256  # messages that are taken from the budget at once
_FEW = 256  # bytes of a tensor that is small
_MOST_ENTRIES = 32  # of an external tensor; four are known, and writers may add some

# Values of the fields that are read; a field of another number is skipped.
_TENSOR = frozenset((1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14))
_SPARSE = frozenset((1, 2, 3))
_VALUE_INFO = frozenset((1, 2))
_TYPE = frozenset((1, 4, 5, 7, 8, 9))
_TENSOR_TYPE = frozenset((1, 2))
_ENTRY = frozenset((1, 2))

# An array, or None if its type is not supported, which is noted.
Value = Array | Pending | None


class _Pieces(NamedTuple):
    """Parts of a TensorProto: the positions of its runs of bytes; `external` is None unless its data is in another file."""

    code: int
    dims: list[int]
    field: int
    raw: tuple[int, int] | None
    runs: list[tuple[int, int]]
    numbers: Numbers[int] | None
    strings: list[str | bytes]
    external: list[tuple[int, int]] | None


class ValueParser:
    """One reading of one file. What is valid but not supported is noted in `refused`, so that one error can name it all."""

    def __init__(self, source: Source, budget: Budget) -> None:
        self.refused: list[str] = []
        self._view = source.view
        self._where = source.where
        self._budget = budget
        self._source = source
        self._files: ExternalFiles | None = None
        self._messages_left = 0

    def _count(self, messages: int = 1) -> None:
        """Counts messages and items of which something stays in memory, against what the description may take."""
        self._messages_left -= messages
        if self._messages_left < 0:
            batches = -(self._messages_left // _BATCH)
            self._budget.take(batches * _BATCH * _MESSAGE_BYTES, f"{self._where}: its description")
            self._messages_left += batches * _BATCH

    def _text(self, at: int, end: int) -> str:
        """Raises UnicodeDecodeError, which the caller of all this turns into ours."""
        return self._view[at:end].tobytes().decode()

    def _entry(self, at: int, end: int, where: object) -> tuple[str, str]:
        """StringStringEntryProto."""
        self._count()
        texts = ["", "", ""]
        for tag, a, b in fields(self._view, at, end, where):
            if tag in (0x0A, 0x12):
                texts[tag >> 3] = self._text(a, b)
            else:
                skip(tag, _ENTRY, where)
        return texts[1], texts[2]

    # ------------------------------------------------------------------ tensors

    def _tensor(self, at: int, end: int, where: object, kind: str, called: str | None = None) -> tuple[str, Value, str]:
        """TensorProto: its name, its array, and ONNX's name of the element type if numpy lacks it, else "".

        For errors: `kind` is what it is ("attribute"), `called` the name of that, None if it is the tensor's own.
        """
        self._count()
        view = self._view
        name = ""
        code = field = 0
        dims: list[int] = []
        raw: tuple[int, int] | None = None
        runs: list[tuple[int, int]] = []
        numbers: Numbers[int] | None = None
        strings: list[str | bytes] = []
        external: list[tuple[int, int]] = []
        is_external = False
        for tag, a, b in fields(view, at, end, where):
            if tag == 0x08:
                dims.append(a if a < 1 << 63 else signed(a))
                if len(dims) > MAX_RANK:
                    raise UnsupportedError(f"{where}: a tensor has more than {MAX_RANK} dimensions")
            elif tag == 0x10:
                code = a
            elif tag == 0x4A:
                raw = a, b
            elif tag == 0x42:
                name = self._text(a, b) if a < b else ""
            elif tag in (0x22, 0x25, 0x2A, 0x3A, 0x51, 0x52, 0x5A):  # typed values: packed, or fixed ones that are not
                field = self._same_field(field, tag >> 3, where)
                runs.append((a, b))
                if len(runs) > 1:
                    self._count()
            elif tag in (0x28, 0x38, 0x58):  # typed varints that are not packed
                field = self._same_field(field, tag >> 3, where)
                if numbers is None:
                    from array import array as numbers_of

                    numbers = numbers_of("Q")
                numbers.append(a)
            elif tag == 0x32:
                field = self._same_field(field, STRING_DATA, where)
                strings.append(self._string(a, b))
            elif tag == 0x0A:
                dims.extend(self._dims(a, b, where))
            elif tag == 0x6A:
                self._count()
                external.append((a, b))
                if len(external) > _MOST_ENTRIES:
                    raise FormatError(f"{where}: a tensor's external data has more than {_MOST_ENTRIES} entries")
            elif tag == 0x70:
                is_external = a == 1
            elif tag == 0x1A:
                self._count()
                self.refused.append(f"{where}: a tensor is cut into segments, which is not supported")
            else:
                skip(tag, _TENSOR, where)
        if code in PLAIN and raw is not None and not field and not is_external:
            dtype = PLAIN[code]
            size = raw[1] - raw[0]
            if size <= _FEW and math.prod(dims) * dtype.itemsize == size > 0 < min(dims, default=1):
                # What most tensors are: a few plain values. In general below, they would take four times as long. The bytes of a
                # new object are aligned, and cannot be written to.
                array = np.frombuffer(view[raw[0] : raw[1]].tobytes(), dtype)
                return name, array if len(dims) == 1 else array.reshape(dims), ""
        pieces = _Pieces(code, dims, field, raw, runs, numbers, strings, external if is_external else None)
        return name, *self._general_tensor(pieces, Place(where, kind, name if called is None else called))

    def _general_tensor(self, pieces: _Pieces, where: object) -> tuple[Value, str]:
        """The array and the name of the widened type of a tensor of any sort."""
        elements = self._elements(pieces.code, where)
        if elements is None:
            return None, ""
        shape = tensors.shape_of(pieces.dims, where)
        field, raw, runs, numbers = pieces.field, pieces.raw, pieces.runs, pieces.numbers
        if raw is not None and (raw[0] < raw[1] or not field):
            if field:
                raise FormatError(f"{where}: has its elements both in raw_data and in a field of its own type")
            field, runs = RAW_DATA, [raw]
        if pieces.external is not None:
            if pieces.strings or numbers is not None or any(a < b for a, b in runs):
                raise FormatError(f"{where}: has elements in the model and in an external file")
            field, content = RAW_DATA, self._external(pieces.external, tensors.nbytes_of(elements, shape, where), where)
        else:
            content = self._joined(runs, where)
        if numbers is not None and runs:
            raise FormatError(f"{where}: has some of its values packed and some not")
        payload = tensors.Payload(field, content, None if numbers is None else np.frombuffer(numbers, np.uint64), pieces.strings)
        return tensors.build(elements, shape, payload, self._budget, where), elements.name if elements.widened else ""

    def _elements(self, code: int, where: object) -> Elements | None:
        """The element type, None if it is not supported, which is noted."""
        try:
            return tensors.element_type(code, where)
        except UnsupportedError as error:
            self._count()
            self.refused.append(str(error))
            return None

    def _dims(self, at: int, end: int, where: object) -> list[int]:
        """A packed run of sizes."""
        if end - at > MAX_RANK * MAX_VARINT:
            raise UnsupportedError(f"{where}: a tensor has more than {MAX_RANK} dimensions")
        return [signed(size) for size in varints(self._view, at, end, where)]

    def _same_field(self, before: int, field: int, where: object) -> int:
        if before not in (0, field):
            raise FormatError(f"{where}: has its elements in more than one field")
        return field

    def _joined(self, runs: list[tuple[int, int]], where: object) -> memoryview:
        if not runs:
            return memoryview(b"")
        if len(runs) == 1:
            return self._view[slice(*runs[0])]
        self._budget.take(sum(b - a for a, b in runs), where)
        return memoryview(b"".join(self._view[a:b] for a, b in runs))

    def _external(self, entries: list[tuple[int, int]], nbytes: int, where: object) -> memoryview:
        found: dict[str, str] = {}
        for a, b in entries:
            key, value = self._entry(a, b, where)
            if key in found:
                raise FormatError(f"{where}: external data gives {quote(key)} twice")
            found[key] = value
        if self._files is None:
            from .external import ExternalFiles

            self._files = ExternalFiles(self._source, self._budget)
        return self._files.data(found, nbytes, where)

    def _string(self, at: int, end: int) -> str | bytes:
        """A string that may be any bytes."""
        self._count()
        try:
            return self._text(at, end)
        except UnicodeDecodeError:
            return self._view[at:end].tobytes()

    def _sparse(self, at: int, end: int, where: object, kind: str, called: str | None = None) -> tuple[str, Value, str]:
        """SparseTensorProto, as `_tensor` gives tensors; the name is that of the values."""
        self._count()
        parts: dict[int, tuple[str, Value, str]] = {}
        dims: list[int] = []
        for tag, a, b in fields(self._view, at, end, where):
            if tag in (0x0A, 0x12):
                if tag >> 3 in parts:
                    raise FormatError(f"{where}: has its values or indices twice")
                parts[tag >> 3] = self._tensor(a, b, where, "sparse values" if tag == 0x0A else "sparse indices")
            elif tag == 0x18:
                dims.append(signed(a))
            elif tag == 0x1A:
                dims.extend(self._dims(a, b, where))
            else:
                skip(tag, _SPARSE, where)
            if len(dims) > MAX_RANK:
                raise UnsupportedError(f"{where}: a sparse tensor has more than {MAX_RANK} dimensions")
        if parts.keys() != {1, 2}:
            raise FormatError(f"{where}: has no values or no indices")
        name, values, widened = parts[1]
        place = Place(where, kind, name if called is None else called)
        values, indices = _made(values), _made(parts[2][1])
        if values is None or indices is None:
            return name, None, ""
        return name, tensors.densify(values, indices, tensors.shape_of(dims, place), self._budget, place), widened

    # ------------------------------------------------------------------ types

    def _value_info(self, at: int, end: int, depth: int, where: object) -> ValueInfo:
        """ValueInfoProto."""
        self._count()
        name = ""
        info = _UNKNOWN
        for tag, a, b in fields(self._view, at, end, where):
            if tag == 0x0A:
                name = self._text(a, b)
            elif tag == 0x12:
                info = self._type(a, b, depth + 1, where)
            else:
                skip(tag, _VALUE_INFO, where)
        if not name:
            raise FormatError(f"{where}: has no name")
        return ValueInfo(name, *info[1:])

    def _type(self, at: int, end: int, depth: int, where: object) -> ValueInfo:
        """TypeProto, as a ValueInfo without a name."""
        if depth > MAX_DEPTH:
            raise LimitError(f"{where}: is nested more than {MAX_DEPTH} messages deep")
        info = _UNKNOWN
        for tag, a, b in fields(self._view, at, end, where):
            if tag == 0x0A:
                info = self._tensor_type("tensor", a, b, where)
            elif tag == 0x22:
                info = self._nested_type("sequence", 1, a, b, depth, where)
            elif tag == 0x4A:
                info = self._nested_type("optional", 1, a, b, depth, where)
            elif tag == 0x2A:
                info = self._nested_type("map", 2, a, b, depth, where)
            elif tag == 0x42:
                info = self._tensor_type("sparse tensor", a, b, where)
            elif tag == 0x3A:
                info = ValueInfo("", None, None, "opaque", 0)
            else:
                skip(tag, _TYPE, where)
        return info

    def _nested_type(self, kind: str, number: int, at: int, end: int, depth: int, where: object) -> ValueInfo:
        """TypeProto.Sequence, .Optional and .Map: the field with this number is the type of what is in it."""
        inner = _UNKNOWN
        for tag, a, b in fields(self._view, at, end, where):
            if tag == number << 3 | 2:
                inner = self._type(a, b, depth + 2, where)
        return ValueInfo("", None, None, f"{kind}({inner.kind})", inner.elem_type)

    def _tensor_type(self, kind: str, at: int, end: int, where: object) -> ValueInfo:
        """TypeProto.Tensor and .SparseTensor."""
        code = 0
        shape: list[int | str | None] | None = None
        for tag, a, b in fields(self._view, at, end, where):
            if tag == 0x08:
                code = a
            elif tag == 0x12:
                shape = []
                for field, start, stop in fields(self._view, a, b, where):
                    if field == 0x0A:
                        shape.append(self._dimension(start, stop, where))
            else:
                skip(tag, _TENSOR_TYPE, where)
        elements = ELEMENTS.get(code)
        dtype = elements.dtype if elements and kind == "tensor" else None
        return ValueInfo("", None if shape is None or kind != "tensor" else tuple(shape), dtype, kind, code)

    def _dimension(self, at: int, end: int, where: object) -> int | str | None:
        """TensorShapeProto.Dimension; a negative size is how some writers say that it is not known."""
        size: int | str | None = None
        for tag, a, b in fields(self._view, at, end, where):
            if tag == 0x08:
                size = a if a < 1 << 63 else None
            elif tag == 0x12:
                size = self._text(a, b) or None
        return size


_UNKNOWN = ValueInfo("", None, None, "", 0)


def _made(value: Value) -> Array | None:
    return value.array() if isinstance(value, Pending) else value
