"""From the bytes of a file to `proto.Model`: every index that one part uses for another is checked. Decodes no tensor."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...errors import LimitError, UnsupportedError
from .._arrays import MAX_RANK
from ..budget import Budget
from ..source import Source, quote
from .flat import Flat, Table
from .proto import Model, Operator, Options, Quantization, Signature, Subgraph, Tensor
from .schema import OPERATOR_FIELDS, operator_name, options_of

__all__ = ["parse"]

VERSION = 3
# What a tensor or an operator takes as Python objects, at the least.
_EACH = 1 << 10
MOST = 30_000  # of both together
_CUSTOM = 32
_SMALL_TEXT = 1 << 12  # bytes of a metadata buffer that may be text


def parse(source: Source, budget: Budget) -> Model:
    """The model that the file holds.

    Raises:
        FormatError: an offset, an index or a size does not fit what is there.
        UnsupportedError: the data is in other files, or the version of the schema is another.
        LimitError: it would take more memory than is allowed.
    """
    return _Parser(source, budget).model()


class _Parser:
    def __init__(self, source: Source, budget: Budget) -> None:
        self.flat, self.where, self.budget = Flat(source.view, source.where), source.where, budget
        self.left = MOST

    def model(self) -> Model:
        root = self.flat.root()
        version = root.number(0, "I")
        if version != VERSION:
            raise UnsupportedError(f"{self.where}: is of version {version} of TensorFlow Lite's schema: expected {VERSION}")
        codes = [self.code(table) for table in root.tables(1)]
        buffers = tuple(self.buffer(table) for table in root.tables(4))
        subgraphs = tuple(self.subgraph(table, codes, len(buffers)) for table in root.tables(2))
        if not subgraphs:
            self.flat.fail("holds no graph")
        signatures = tuple(self.signature(table, subgraphs) for table in root.tables(7))
        return Model(subgraphs, buffers, signatures, self.metadata(root, buffers))

    def code(self, table: Table) -> tuple[str, int]:
        """An operator's name and version; the number was a byte once, and has a field of its own since."""
        number = max(table.number(0, "b"), table.number(3, "i"))
        name = operator_name(number)
        return (f"CUSTOM {quote(table.text(1))}" if number == _CUSTOM else name), table.number(2, "i", 1)

    def buffer(self, table: Table) -> memoryview | None:
        """The data, which is after the flatbuffer in files of more than 2 GB."""
        start, size = table.number(1, "Q"), table.number(2, "Q")
        if start > 1:
            if start + size > len(self.flat.view):
                self.flat.fail(f"a buffer of {size} bytes begins at {start}, the file has {len(self.flat.view)}: truncated?")
            return self.flat.view[start : start + size]
        return table.data(0)

    def metadata(self, root: Table, buffers: tuple[memoryview | None, ...]) -> dict[str, str]:
        """The description, and every metadata buffer that is short text; others are their own structures."""
        found = {}
        if description := root.text(3):
            found["description"] = description
        for table in root.tables(6):
            name, number = table.text(0), table.number(1, "I")
            if number >= len(buffers):
                self.flat.fail(f"metadata {quote(name)} has the buffer {number}, the file has {len(buffers)}")
            data = bytes((buffers[number] or b"")[:_SMALL_TEXT]).rstrip(b"\0")
            if data.isascii() and data.decode("ascii").isprintable():
                found[name] = data.decode("ascii")
        return found

    # ---- graphs -------------------------------------------------------------------------------------------------------

    def subgraph(self, table: Table, codes: list[tuple[str, int]], buffers: int) -> Subgraph:
        name = table.text(4)
        tensors = tuple(self.tensor(t, buffers) for t in table.tables(0))
        inputs, outputs = (self.numbers(table.ints(i), len(tensors), "a graph's inputs or outputs") for i in (1, 2))
        operators = tuple(self.operator(t, codes, len(tensors)) for t in table.tables(3))
        return Subgraph(name, tensors, inputs, outputs, operators)

    def numbers(self, found: Iterable[int] | None, count: int, what: str, least: int = 0) -> tuple[int, ...]:
        """Indices of tensors."""
        numbers = tuple(found or ())
        if numbers and (min(numbers) < least or max(numbers) >= count):
            self.flat.fail(f"{what} are the tensors {quote(numbers)}: expected {least} to {count - 1}")
        return numbers

    def tensor(self, table: Table, buffers: int) -> Tensor:
        name = table.text(3)
        where = f"tensor {quote(name)}"
        stored, signature = table.ints(0) or (), table.ints(7)
        if any(d < 0 for d in stored) or any(d < -1 for d in signature or ()):
            self.flat.fail(
                f"{where} has the shape {quote(stored)} and the signature {quote(signature)}: expected sizes from 0 up"
            )
        if len(stored) > MAX_RANK or len(signature or ()) > MAX_RANK:
            raise UnsupportedError(f"{self.where}: {where}: has {len(stored)} dimensions, at most {MAX_RANK} are supported")
        buffer = table.number(2, "I")
        if buffer >= max(buffers, 1):
            self.flat.fail(f"{where} has the buffer {buffer}, the file has {buffers}")
        if table.number(10, "I"):
            raise UnsupportedError(f"{self.where}: {where}: its data is in another file, which is not supported")
        shape: tuple[int | None, ...] = tuple(None if d < 0 else d for d in signature) if signature else stored
        if len(shape) != len(stored):
            self.flat.fail(f"{where} has the shape {stored} and the signature {signature}: expected as many axes")
        self.count(0, "tensors")
        return Tensor(
            name, shape, table.number(1, "b"), buffer, self.quantization(table, where), bool(table.number(5, "b")),
            table.table(6), stored,
        )  # fmt: skip

    def quantization(self, tensor: Table, where: str) -> Quantization | None:
        table = tensor.table(4)
        scale = None if table is None else table.vector(2, "f")
        if table is None or scale is None or not len(scale):
            return None
        if table.number(4, "B"):
            raise UnsupportedError(f"{self.where}: {where}: uses custom or block-wise quantization, which is not supported")
        given = table.vector(3, "q")
        zero = np.zeros(len(scale), np.int64) if given is None or not len(given) else given.astype(np.int64)
        if len(zero) == 1 and len(scale) > 1:
            zero = np.repeat(zero, len(scale))
        if len(zero) != len(scale) or not np.isfinite(scale).all() or (scale < 0).any():
            self.flat.fail(f"{where} has {len(scale)} scales and {len(zero)} zero points: expected as many, and finite scales")
        return Quantization(scale.astype(np.float32), zero, table.number(6, "i"))

    def operator(self, table: Table, codes: list[tuple[str, int]], tensors: int) -> Operator:
        number = table.number(0, "I")
        if number >= len(codes):
            self.flat.fail(f"an operator has the code {number}, the file has {len(codes)}")
        name, version = codes[number]
        inputs = self.numbers(table.ints(1), tensors, f"{name}: inputs", -1)
        outputs = self.numbers(table.ints(2), tensors, f"{name}: outputs")
        self.count(len(inputs), "operators")
        return Operator(name, inputs, outputs, self.options(table, name), version, table.data(5), self.unknown(table, name))

    def count(self, inputs: int, what: str) -> None:
        """Counts a tensor or an operator, with so many inputs, against the limits of a file."""
        self.left -= 1
        if self.left < 0:
            raise LimitError(f"{self.where}: has more than {MOST} tensors and operators")
        self.budget.take(_EACH + 32 * inputs, f"{self.where}: its {what}")

    def options(self, operator: Table, name: str) -> Options:
        """The options by name; those of another operator's type are an error, left out ones have their defaults."""
        expected = options_of(name)
        if expected is None:
            return Options({}, {})
        union, fields = expected
        kind, table = operator.number(3, "B"), operator.table(4)
        if kind not in (0, union):
            self.flat.fail(f"{name}: its options are of type {kind}: expected {union}")
        found = {}
        for field in fields:
            if table is None or not kind:
                found[field.name] = field.default
            elif field.code == "list":
                found[field.name] = table.ints(field.number)
            else:
                found[field.name] = table.number(field.number, field.code, field.default)
        return Options(found, {field.name: field.default for field in fields})

    def unknown(self, operator: Table, name: str) -> tuple[str, ...]:
        """Lists the fields of an operator, and of its options, that the schema here lacks."""
        found = [f"field {number}" for number in operator.present() if number not in OPERATOR_FIELDS]
        if operator.number(11, "B"):
            found.append(f"options of a second kind, number {operator.number(11, 'B')}")
        if not name.startswith("CUSTOM") and operator.data(5):
            found.append("options of a custom operator")
        expected, table = options_of(name), operator.table(4)
        if table is not None and operator.number(3, "B"):
            known = {field.number for field in expected[1]} if expected else set()
            found += [f"field {number} of its options" for number in table.present() if number not in known]
        return tuple(found)

    def signature(self, table: Table, subgraphs: tuple[Subgraph, ...]) -> Signature:
        key, number = table.text(2), table.number(4, "I")
        if number >= len(subgraphs):
            self.flat.fail(f"signature {quote(key)} is of graph {number}, the file has {len(subgraphs)}")
        sides = []
        for i in (0, 1):
            pairs = tuple((pair.text(0), pair.number(1, "I")) for pair in table.tables(i))
            self.numbers([number for _, number in pairs], len(subgraphs[number].tensors), f"signature {quote(key)}: its values")
            sides.append(pairs)
        return Signature(key, number, sides[0], sides[1])
