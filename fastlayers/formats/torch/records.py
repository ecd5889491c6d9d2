"""Plain values and inert records that a torch file's pickles become. Nothing here can run anything."""

from __future__ import annotations

from typing import Any, NoReturn

from ..._tuples import NamedTuple
from ...errors import FormatError, LimitError, UnsupportedError
from ..budget import Budget
from ..source import quote

# One opcode makes at most one object, of at most this many bytes with its place on the stack or in the memo.
_COST = 256
_MOST_TENSORS = 1 << 18  # made by the pickle; one takes as long as a few dozen opcodes
_MOST_STEPS = 1 << 23  # some ten seconds; a network of 10,000 tensors takes 300,000


class Global(NamedTuple):
    """A class or function that the file names. It is never looked up, only compared with names that we know."""

    name: str


class Record:
    """An object of a class of which we know nothing, or need to know nothing."""

    __slots__ = ("args", "name", "parts")

    def __init__(self, name: str, args: object) -> None:
        self.name = name
        self.args = args
        self.parts: list[object] = []  # states set, items added: all that came after it was made

    def __repr__(self) -> str:
        return f"an object of {self.name[:100]}"


class Dict(list[tuple[Any, Any]]):
    """A dict as a list of its pairs: its keys come from the file and are never hashed."""

    __slots__ = ()

    def __repr__(self) -> str:  # for errors: short, whatever is in it
        return f"a dict of {len(self)} items"


class Set(list[Any]):
    """A set as a list, for the same reason."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"a set of {len(self)} items"


class Refused(NamedTuple):
    """Stands for a tensor of a kind that is not read; an error only if it has a name in the result."""

    what: str


class Storage(NamedTuple):
    """A run of elements in the file; `begin` and `nbytes` are those of the view, in bytes, within the whole storage `key`."""

    key: str
    dtype: str
    numel: int  # of the whole storage
    whole: int  # bytes of the whole storage
    begin: int
    nbytes: int


class Tensor(NamedTuple):
    """A checked view of a storage: offset and strides in elements, all of them within it."""

    storage: Storage
    dtype: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    elements: int


class Context:
    """State of one load: the words errors begin with, how much work is left, and which unknown functions were called."""

    def __init__(self, where: str, budget: Budget) -> None:
        self.where = where
        self.budget = budget
        self.unknown: dict[str, None] = {}
        self.tensors = 0
        self._allowed = min(_MOST_STEPS, budget.left // _COST)
        self.left = self._allowed

    @property
    def steps(self) -> int:
        """Number of steps taken."""
        return self._allowed - self.left

    def charge(self, steps: int) -> None:
        """Counts opcodes, or what costs as much. Raises LimitError when there are too many."""
        self.left -= steps
        if self.left < 0:
            self.budget.check((self._allowed + 1) * _COST, f"{self.where}: the pickle")
            raise LimitError(f"{self.where}: the pickle takes more than {_MOST_STEPS} steps: no file of weights needs as many")

    def charge_tensor(self) -> None:
        """Counts a tensor that is described: a few bytes can describe one again and again."""
        self.tensors += 1
        if self.tensors > _MOST_TENSORS:
            raise LimitError(f"{self.where}: the pickle makes more than {_MOST_TENSORS} tensors: no file of weights has as many")

    def charge_bytes(self, count: int) -> None:
        """Counts the memory of a string read, of up to 4 bytes a character."""
        self.charge(4 * count // _COST)

    def fail(self, why: str) -> NoReturn:
        """Raises FormatError."""
        raise FormatError(f"{self.where}: {why}")

    def check_unknown(self) -> None:
        """Raises UnsupportedError if the pickle called anything that we do not know."""
        if self.unknown:
            names = [quote(name) for name in self.unknown]
            some = ", ".join(names[:5]) + (f", ... ({len(names)} in all)" if len(names) > 5 else "")
            raise UnsupportedError(
                f"{self.where}: the pickle calls {some}: nothing in a file is ever executed, so what it would make is unknown: "
                "save the state_dict alone"
            )
