"""Definition of an operator: a shape rule, a reference implementation, and the kernel calls that it becomes. Families of
operators are in the files next to it.

To add an operator: (1) in the file of its family write ``<name>_infer(n)``, ``<name>_run(n, *arrays)`` or ``<name>_lower(n,
b)``, ``register`` them with the operator's `Traits` (`_traits`), and add the name to `families`; (2) if old opsets spell it
differently, a rule in ``formats/onnx/canonical.py``; (3) cases in tests/operators/.

- ``infer(n) -> list[Spec]``: the outputs' shapes and dtypes from the inputs'. While a model is loaded, sizes may be names or
  None, and a shape None; an unknown size is None. When a model is bound, all sizes of inputs are ints, and so must
  be the result's, else the model runs in stages (`program.stages`). ``n.values[i]`` is an input's array where it is known
  beforehand (constants, shapes, small integers).
- ``run(n, *arrays) -> tuple of arrays``: plain numpy, any dtype; the oracle, what folds constants, and the step where no kernel
  is. None stands for an input that was left out. Results need not be contiguous or fresh; they are copied where it matters.
- ``lower(n, b)``: sizes are known: asks the builder `b` for memory and says which kernels are to be called (see
  `builder`). It may decline by returning False before it has called anything of `b`: then `run` becomes a NumPy fallback.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._lazy import Registry, by_name, imported
from .._tuples import NamedTuple
from ..errors import DTypeError, ShapeError, ours
from ..ir.graph import Dim, Node, Shape
from ._traits import UNDECIDED, Traits
from .families import FAMILIES

if TYPE_CHECKING:
    from .builder import Builder

__all__ = ["BOOL", "FLOAT32", "INT64", "MAX_ROUNDS", "OPERATORS", "Operator", "Spec", "View", "ints", "register", "traits_of"]

# Iterations of all loops together that one run may take, if `load` was told nothing else.
MAX_ROUNDS = 1_000_000

FLOAT32, INT64, BOOL = np.dtype(np.float32), np.dtype(np.int64), np.dtype(np.bool_)


class Spec(NamedTuple):
    """Shape and dtype of an array before it is computed. `shape` is None if not even the rank is known."""

    shape: Shape | None
    dtype: np.dtype[Any]

    @property
    def static(self) -> bool:
        """Whether every size is known."""
        if self.shape is None:
            return False
        for size in self.shape:  # noqa: SIM110 (a generator takes twice as long, and new sizes ask this of every value)
            if type(size) is not int:
                return False
        return True


class View:
    """A node with what is known of its inputs."""

    __slots__ = ("inputs", "node", "values")

    def __init__(self, node: Node, inputs: Sequence[Spec | None], values: Sequence[np.ndarray | None]) -> None:
        self.node, self.inputs, self.values = node, inputs, values

    @property
    def op(self) -> str:
        """The operator's name."""
        return self.node.op

    @property
    def where(self) -> str:
        """Name of the node in errors: operator and first output."""
        return f"{self.node.op} ({self.node.outputs[0] if self.node.outputs else '-'})"

    def has(self, i: int) -> bool:
        """Whether input i was given."""
        return i < len(self.inputs) and self.inputs[i] is not None

    def spec(self, i: int) -> Spec:
        """Input i, which must be there."""
        spec = self.inputs[i] if i < len(self.inputs) else None
        if spec is None:
            raise ShapeError(f"{self.where}: input {i} is missing: expected an array")
        return spec

    def shape(self, i: int) -> Shape | None:
        """The shape of input i."""
        return self.spec(i).shape

    def sizes(self, i: int) -> tuple[int, ...]:
        """The shape of input i where all sizes are known, as in `lower`."""
        return self.spec(i).shape  # type: ignore[return-value]

    def value(self, i: int) -> np.ndarray | None:
        """Input i's array if it is known beforehand; None if not, or if it was left out."""
        return self.values[i] if i < len(self.values) else None

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute, or its default."""
        return self.node.attributes.get(name, default)

    def float32(self, *positions: int) -> bool:
        """Whether these inputs (all that were given, by default) are float32."""
        inputs = self.inputs
        for spec in [inputs[i] for i in positions if i < len(inputs)] if positions else inputs:
            if spec is not None and spec.dtype != FLOAT32:
                return False
        return True

    def wants(self, i: int) -> bool:
        """Whether output i is used by somebody."""
        return i < len(self.node.outputs) and bool(self.node.outputs[i])

    def fail(self, text: str) -> ShapeError:
        """A ShapeError that names the node."""
        return ShapeError(f"{self.where}: {text}")

    def wrong_dtype(self, text: str) -> DTypeError:
        """A DTypeError that names the node."""
        return DTypeError(f"{self.where}: {text}")


class Operator(NamedTuple):
    """The functions of one operator, see the module's docstring, and what holds of it.

    `attributes` are those that nodes in files may have, None where the formats' schemas say it.
    """

    name: str
    infer: Callable[[View], list[Spec]]
    run: Callable[..., Sequence[np.ndarray]] | None
    lower: Callable[[View, Builder], Any] | None
    traits: Traits = UNDECIDED
    attributes: frozenset[str] | None = None


def _find(name: str) -> Operator | None:
    """The operator that the module of its family registers."""
    imported(f"{__package__}.{_HOMES[name]}")
    return OPERATORS.found(name)


_HOMES = by_name(FAMILIES)
OPERATORS: Registry[Operator] = Registry(_HOMES, _find)


def traits_of(op: str) -> Traits:
    """Traits of an operator; `UNDECIDED` for one that is not in the vocabulary (loops, branches, sequences)."""
    operator = OPERATORS.get(op)
    return UNDECIDED if operator is None else operator.traits


def register(
    name: str,
    infer: Callable[[View], list[Spec]],
    run: Callable[..., Sequence[np.ndarray]] | None = None,
    lower: Callable[[View, Builder], Any] | None = None,
    traits: Traits = UNDECIDED,
) -> None:
    """Adds an operator to the vocabulary; see `_traits` for what must be decided about it.

    A module whose import ended early, for want of memory, is imported again, and then registers its operators again.
    """

    def checked(n: View) -> list[Spec]:
        """The rule; where a file's attributes or shapes are nonsense to it, the error is ours."""
        try:
            return infer(n)
        except Exception as error:
            with ours(lambda: n.where):
                raise error

    OPERATORS[name] = Operator(name, checked, run, lower, traits)


def ints(array: np.ndarray | Sequence[int] | None) -> list[int] | None:
    """A known one-dimensional integer array as plain ints."""
    return None if array is None else [int(v) for v in np.asarray(array).reshape(-1)]


def attributes(**values: Any) -> Mapping[str, Any]:
    """Attributes of a node that were given."""
    return {name: value for name, value in values.items() if value is not None}


def unknown(rank: int | None, dtype: np.dtype[Any]) -> Spec:
    """A spec of known rank and unknown sizes."""
    if rank is not None and rank > 64:  # numpy's most; what a file claims to be computed may be any number
        raise ValueError(f"the result would have {rank} axes")
    return Spec(None if rank is None else (None,) * rank, dtype)


def dim(value: Any) -> Dim:
    """A size as an int where it is a number."""
    return int(value) if isinstance(value, (int, np.integer)) else value
