"""The interpreter of pickle opcodes: a stack, a memo, and no way to anything outside of them.

Classes and functions are names only (`records.Global`); what "calling" one gives is decided in `allowed`, from a closed list.
Every opcode counts as a step, and so does every 64 bytes of strings, so that time and memory are bounded by `Context`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from ...errors import UnsupportedError
from . import allowed
from .records import Context, Dict, Global, Record, Set

_LONGEST_NAME = 1000  # bytes of a module's or a class's name
_LONGEST_INT = 255  # bytes: all that the opcode LONG1 can have; printing longer ones would take quadratic time

_U2 = struct.Struct("<H")
_I4 = struct.Struct("<i")
_U4 = struct.Struct("<I")
_U8 = struct.Struct("<Q")
_F8 = struct.Struct(">d")


class Machine:
    """Reads one pickle after the other from a view, from `at` on. `load_id` turns what stands for a storage into its record."""

    def __init__(self, view: memoryview, context: Context, load_id: Callable[[Any], object], at: int = 0) -> None:
        self.at = at
        self._view = view
        self._context = context
        self._load_id = load_id
        self._stack: list[Any] = []
        self._marks: list[list[Any]] = []
        self._memo: dict[int, Any] = {}

    def run(self) -> object:
        """The value of the pickle that begins at `at`, which is then after it."""
        self._stack, self._marks, self._memo = [], [], {}
        charge = self._context.charge
        while True:
            charge(1)
            opcode = self._byte()
            step = _STEPS.get(opcode)
            if step is not None:
                step(self)
            elif opcode == _STOP:
                return self._stop()
            else:
                self._refuse(opcode)

    def _stop(self) -> object:
        value = self._pop()
        if self._stack or self._marks:
            self._context.fail("the pickle leaves more than one value after")
        self._context.check_unknown()
        return value

    def _refuse(self, opcode: int) -> None:
        if chr(opcode) in _REFUSED:
            raise UnsupportedError(f"{self._context.where}: the pickle's opcode {_REFUSED[chr(opcode)]} is not supported")
        self._context.fail(f"the pickle has an unknown opcode, 0x{opcode:02x}, at byte {self.at - 1}")

    # Bytes

    def _byte(self) -> int:
        if self.at >= len(self._view):
            self._context.fail("the pickle ends too early: truncated?")
        self.at += 1
        return self._view[self.at - 1]

    def _number(self, kind: struct.Struct) -> int:
        (value,) = kind.unpack(self._bytes(kind.size))
        return int(value)

    def _bytes(self, count: int) -> bytes:
        end = self.at + count
        if end > len(self._view):
            self._context.fail(f"{count} bytes of the pickle's byte {self.at} on end beyond it: truncated?")
        self._context.charge_bytes(count)
        found = bytes(self._view[self.at : end])
        self.at = end
        return found

    def _line(self) -> str:
        line, found, _ = bytes(self._view[self.at : self.at + _LONGEST_NAME]).partition(b"\n")
        if not found:
            self._context.fail(f"the name at the pickle's byte {self.at} has no end: truncated?")
        self.at += len(line) + 1
        return self._text(line)

    def _text(self, raw: bytes) -> str:
        try:
            return raw.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return self._context.fail(f"the text before the pickle's byte {self.at} is not UTF-8")

    # The stack

    def _push(self, value: object) -> None:
        self._stack.append(value)

    def _pop(self) -> Any:
        if not self._stack:
            self._context.fail(f"the pickle's opcode before byte {self.at} finds nothing on the stack")
        return self._stack.pop()

    def _top(self) -> Any:
        if not self._stack:
            self._context.fail(f"the pickle's opcode before byte {self.at} finds nothing on the stack")
        return self._stack[-1]

    def _pop_mark(self) -> list[Any]:
        if not self._marks:
            self._context.fail(f"the pickle's opcode before byte {self.at} finds no mark on the stack")
        items, self._stack = self._stack, self._marks.pop()
        return items

    def _mark(self) -> None:
        self._marks.append(self._stack)
        self._stack = []

    def _tuple(self, count: int) -> None:
        items = [self._pop() for _ in range(count)]
        self._push(tuple(reversed(items)))

    # The memo

    def _put(self, index: int) -> None:
        # Writers count up from 0 or 1, so an index beyond the steps taken is none of theirs.
        if index > self._context.steps:
            self._context.fail(f"the pickle remembers a value as number {index}, without as many before")
        self._memo[index] = self._top()

    def _memoize(self) -> None:
        self._put(len(self._memo))

    def _get(self, index: int) -> None:
        if index not in self._memo:
            self._context.fail(f"the pickle reads memo entry {index}, which was never stored")
        self._push(self._memo[index])

    # Values

    def _long(self, count: int) -> None:
        if count > _LONGEST_INT:
            self._context.fail(f"the pickle has an integer of {count} bytes, at most {_LONGEST_INT} are allowed")
        self._push(int.from_bytes(self._bytes(count), "little", signed=True))

    def _float(self) -> None:
        (value,) = _F8.unpack(self._bytes(8))
        self._push(value)

    def _string(self, count: int) -> None:
        """A str of Python 2: text if it is ASCII, else bytes."""
        raw = self._bytes(count)
        self._push(raw.decode("ascii") if raw.isascii() else raw)

    def _protocol(self) -> None:
        version = self._byte()
        if not 2 <= version <= 5:
            raise UnsupportedError(f"{self._context.where}: is of pickle protocol {version}, supported are 2 to 5")

    def _frame(self) -> None:
        length = self._number(_U8)
        if length > len(self._view) - self.at:
            self._context.fail(f"the pickle's frame of {length} bytes ends beyond it: truncated?")

    # Containers

    def _append(self, items: list[Any]) -> None:
        target = self._top()
        if type(target) is list:
            target.extend(items)
        elif type(target) is Record:
            target.parts.extend(items)
        else:
            self._context.fail(f"the pickle appends to a {_kind(target)}, expected a list")

    def _append_one(self) -> None:
        self._append([self._pop()])

    def _add(self) -> None:
        items, target = self._pop_mark(), self._top()
        if type(target) is not Set:
            self._context.fail(f"the pickle adds items to a {_kind(target)}, expected a set")
        target.extend(items)

    def _set(self, items: list[Any]) -> None:
        target = self._top()
        if type(target) is Dict:
            target.extend(self._pairs(items))
        elif type(target) is Record:
            target.parts.extend(items)
        else:
            self._context.fail(f"the pickle sets an item of a {_kind(target)}, expected a dict")

    def _set_one(self) -> None:
        value = self._pop()
        self._set([self._pop(), value])

    def _pairs(self, items: list[Any]) -> Dict:
        if len(items) % 2:
            self._context.fail(f"the pickle fills a dict from {len(items)} values, expected keys and values in turn")
        return Dict(zip(items[::2], items[1::2], strict=True))

    # Names and calls

    def _global(self, module: Any, name: Any) -> None:
        if not (isinstance(module, str) and isinstance(name, str) and len(module) + len(name) <= 2 * _LONGEST_NAME):
            self._context.fail(f"the pickle names a global by a {_kind(module)} and a {_kind(name)}, expected two short strings")
        self._context.charge_bytes(len(module) + len(name))
        self._push(allowed.resolve(module, name))

    def _global_line(self) -> None:
        module = self._line()
        self._global(module, self._line())

    def _stack_global(self) -> None:
        name = self._pop()
        self._global(self._pop(), name)

    def _reduce(self) -> None:
        function, args = self._arguments()
        self._push(allowed.call(function, args, self._context))

    def _new(self) -> None:
        made, args = self._arguments()
        self._push(allowed.make(made, args, self._context))

    def _new_ex(self) -> None:
        named = self._pop()
        made, args = self._arguments()
        self._push(allowed.make(made, (*args, named), self._context))

    def _arguments(self) -> tuple[Global, tuple[Any, ...]]:
        args, called = self._pop(), self._pop()
        if type(called) is not Global or type(args) is not tuple:
            self._context.fail(f"the pickle calls a {_kind(called)} with a {_kind(args)}, expected a global and a tuple")
        return called, args

    def _build(self) -> None:
        state, target = self._pop(), self._top()
        if type(target) is Record:
            target.parts.append(state)
        elif type(target) is not Dict:  # a state_dict has an attribute, `_metadata`, which says nothing of its tensors
            self._context.fail(f"the pickle sets the state of a {_kind(target)}, expected an object")

    def _persistent(self) -> None:
        self._push(self._load_id(self._pop()))


def _kind(value: object) -> str:
    return type(value).__name__


_STOP = ord(".")

_STEPS: dict[int, Callable[[Machine], None]] = {
    ord(code) if isinstance(code, str) else code: step
    for code, step in {
        "\x80": Machine._protocol,
        "\x95": Machine._frame,
        "(": Machine._mark,
        "0": lambda m: (m._pop(), None)[1],
        "1": lambda m: (m._pop_mark(), None)[1],
        "2": lambda m: m._push(m._top()),
        "N": lambda m: m._push(None),
        "\x88": lambda m: m._push(True),
        "\x89": lambda m: m._push(False),
        "J": lambda m: m._push(m._number(_I4)),
        "K": lambda m: m._push(m._byte()),
        "M": lambda m: m._push(m._number(_U2)),
        "\x8a": lambda m: m._long(m._byte()),
        "\x8b": lambda m: m._long(m._number(_U4)),
        "G": Machine._float,
        "U": lambda m: m._string(m._byte()),
        "T": lambda m: m._string(m._number(_U4)),
        "\x8c": lambda m: m._push(m._text(m._bytes(m._byte()))),
        "X": lambda m: m._push(m._text(m._bytes(m._number(_U4)))),
        "\x8d": lambda m: m._push(m._text(m._bytes(m._number(_U8)))),
        "C": lambda m: m._push(m._bytes(m._byte())),
        "B": lambda m: m._push(m._bytes(m._number(_U4))),
        "\x8e": lambda m: m._push(m._bytes(m._number(_U8))),
        "\x96": lambda m: m._push(m._bytes(m._number(_U8))),
        ")": lambda m: m._push(()),
        "\x85": lambda m: m._tuple(1),
        "\x86": lambda m: m._tuple(2),
        "\x87": lambda m: m._tuple(3),
        "t": lambda m: m._push(tuple(m._pop_mark())),
        "]": lambda m: m._push([]),
        "l": lambda m: m._push(m._pop_mark()),
        "a": Machine._append_one,
        "e": lambda m: m._append(m._pop_mark()),
        "}": lambda m: m._push(Dict()),
        "d": lambda m: m._push(m._pairs(m._pop_mark())),
        "s": Machine._set_one,
        "u": lambda m: m._set(m._pop_mark()),
        "\x8f": lambda m: m._push(Set()),
        "\x90": Machine._add,
        "\x91": lambda m: m._push(Set(m._pop_mark())),
        "q": lambda m: m._put(m._byte()),
        "r": lambda m: m._put(m._number(_U4)),
        "\x94": Machine._memoize,
        "h": lambda m: m._get(m._byte()),
        "j": lambda m: m._get(m._number(_U4)),
        "c": Machine._global_line,
        "\x93": Machine._stack_global,
        "R": Machine._reduce,
        "\x81": Machine._new,
        "\x92": Machine._new_ex,
        "b": Machine._build,
        "Q": Machine._persistent,
    }.items()
}

_REFUSED = {
    "I": "INT (of protocol 0)",
    "L": "LONG (of protocol 0)",
    "F": "FLOAT (of protocol 0)",
    "S": "STRING (of protocol 0)",
    "V": "UNICODE (of protocol 0)",
    "g": "GET (of protocol 0)",
    "p": "PUT (of protocol 0)",
    "P": "PERSID (of protocol 0)",
    "i": "INST (of protocol 0)",
    "o": "OBJ (of protocol 1)",
    "\x82": "EXT1 (classes by number)",
    "\x83": "EXT2 (classes by number)",
    "\x84": "EXT4 (classes by number)",
    "\x97": "NEXT_BUFFER (data outside of the file)",
    "\x98": "READONLY_BUFFER (data outside of the file)",
}
