"""Traits of operators, which passes, streams, folding, costs and documents ask for, stated once where the operator is
registered.

To register an operator, give it `Traits`: one of the sets below (`PLAIN` where nothing special holds), or one of them with more
said through `_replace`. What is not said is what is safe: the operator is left alone. A test demands a decision for each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._tuples import NamedTuple

if TYPE_CHECKING:
    from ..kernels.table import Activation
    from ._base import Spec, View

__all__ = [
    "EACH",
    "MOVES",
    "PLAIN",
    "UNDECIDED",
    "Layout",
    "Quantized",
    "Scaling",
    "Sides",
    "Traits",
    "elements",
    "function",
    "one_input",
    "same_shape",
    "uncounted",
]


class Sides(NamedTuple):
    """Values of a node that must have their channels at the same place.

    Attributes:
        ties: groups of positions of inputs that go together; -1 is the result.
        first: positions whose channels must come first.
        gains: positions that make it worthwhile to put channels last.
    """

    ties: tuple[tuple[int, ...], ...] = ()
    first: tuple[int, ...] = ()
    gains: tuple[int, ...] = ()


class Layout(NamedTuple):
    """Treatment by an operator of channels that come last in memory.

    Attributes:
        kind: "free": x and the result may each have either layout; "tied": both must have the same.
        sides: what holds for a node, or None if it must stay as it is.
        told: the attributes that tell the node whether x and its result have their channels last.
        turned: what a constant becomes that is broadcast to values whose channels are last; None: constants stay as they are.
    """

    kind: Literal["free", "tied"]
    sides: Callable[[View], Sides | None]
    told: Callable[[bool, bool], Mapping[str, Any]]
    turned: Callable[[np.ndarray], np.ndarray] | None = None


class Quantized(NamedTuple):
    """The operator that does the same to 8-bit values, and how its inputs are arranged.

    Attributes:
        op: its name.
        form: "convolution" or "product" of x, a weight and a bias; "pair" of arrays; "one" array; "all" inputs alike.
    """

    op: str
    form: Literal["convolution", "product", "pair", "one", "all"]


class Scaling(NamedTuple):
    """Scaling of an operator's weights by a factor and a summand per channel of its result.

    Attributes:
        axis: the axis of the channels in the result.
        channels: the number of channels of a weight.
        weight: the weight times the factors (float64).
        rounds: whether weight and bias are float32; else both stay float64.
    """

    axis: Callable[[View], int]
    channels: Callable[[View, np.ndarray], int]
    weight: Callable[[View, np.ndarray, np.ndarray], np.ndarray]
    rounds: bool = True


class Traits(NamedTuple):
    """Properties of an operator.

    Attributes:
        unary: the function of input 0 as kernels take it, for a node's attributes and constants; None if there is none for
            these. An operator that has it can be an epilogue of another, or a table of 256 bytes.
        elementwise: every element of the result depends on the elements of the inputs at its place alone (after broadcasting).
        moves: the result's elements are elements of input 0, chosen by position, or by size where scales are positive: right for
            values of any dtype, 8-bit ones included.
        layout: how it deals with channels last; None: its values stay as they are.
        time: the rule by which a stream runs it step by step (`stream`); "" if it needs the whole sequence.
        rows: whether the rows of a batch, along axis 0, are independent: what users say of their operators. Others have rules.
        sizes: the rule by which a stream follows a vector of sizes through it; "" if it computes with them.
        whole: what it does to all steps at once, for errors of streams: "averages over".
        work: what folding constants through it costs: "elements" of inputs and results, "products" of matrices of such sizes, or,
            where nothing better is known, "pairs" of elements.
        multiply_adds: multiplications with an addition, from sizes that are known and the result's spec; None: 0.
        nothing: whether a node's result is its input 0, from its inputs and the result's spec; None: never.
        epilogue: what it can do to its result before it is stored: "activation", "residual".
        weights: positions of inputs that its kernels want as constants.
        halves: positions of the weights that its kernels take in 16 bits as well.
        scaling: how factors and summands per channel go into its weights; None: they cannot.
        line: from a constant and its position among the two inputs, the factor and the summand that it is to the other input;
            None if it is not such a map.
        padding: the value that it pads with, where it pads itself; None if it does not, or if that is unknown.
        quantized: the operator that does the same to 8-bit values.
        steers: positions of inputs whose values decide the results' sizes; integer inputs of a graph that reach one belong to a
            binding.
        counts: sizes of its results depend on the values of its inputs, whatever else is known: the most that they may be, for
            an operator whose kernels count them into `Builder.counter` (None where these inputs have none); or None.
        volatile: never folded (random values).
        limited: its results are never below -1 or above 1.
        shape_only: `run` needs the inputs' specs alone, not their values (Shape, Size).
        why: what decided which of several algorithms its kernels run, for reports; None: there is one.
    """

    unary: Callable[[View], Activation | None] | None = None
    elementwise: bool = False
    moves: bool = False
    layout: Layout | None = None
    time: str = ""
    rows: bool = False
    sizes: str = ""
    whole: str = ""
    work: Literal["elements", "products", "pairs"] = "pairs"
    multiply_adds: Callable[[View, Spec], int] | None = None
    nothing: Callable[[View, Spec], bool] | None = None
    epilogue: tuple[str, ...] = ()
    weights: tuple[int, ...] = ()
    halves: tuple[int, ...] = ()
    scaling: Scaling | None = None
    line: Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray] | None] | None = None
    padding: Callable[[View], float | None] | None = None
    quantized: Quantized | None = None
    steers: tuple[int, ...] = ()
    counts: Callable[[View], Sequence[Spec] | None] | None = None
    volatile: bool = False
    limited: bool = False
    shape_only: bool = False
    why: Callable[[View], str] | None = None


def _broadcast_sides(n: View) -> Sides | None:
    """Whatever varies has as many axes as the result; constants are single elements, or one per channel (see `_turned`)."""
    ties: list[int] = []
    ranks = set()
    constants: list[tuple[int, ...]] = []
    for i, spec in enumerate(n.inputs):
        if spec is None:
            continue
        if spec.shape is None:
            return None
        if n.value(i) is None:
            ranks.add(len(spec.shape))
            ties.append(i)
        else:
            constants.append(spec.shape)  # type: ignore[arg-type]
    if len(ranks) != 1 or not all(_of_channels(shape, max(ranks)) for shape in constants):
        return None
    return Sides(((*ties, -1),))


def _of_channels(shape: tuple[int, ...], rank: int) -> bool:
    """Whether an array broadcasts to so many axes as a single element, or as one of each channel where channels are axis 1."""
    return len(shape) <= rank and all(size == 1 or rank - len(shape) + axis == 1 for axis, size in enumerate(shape))


def _turned(constant: np.ndarray) -> np.ndarray:
    """A constant of a node of which `_broadcast_sides` has said sides, as it broadcasts to arrays whose channels are last."""
    return constant if constant.size == 1 else constant.reshape(-1)


def elements(spec: Spec | None) -> int:
    """The number of elements of a value whose sizes are known; 0 if they are not."""
    return math.prod(spec.shape) if spec is not None and spec.static else 0  # type: ignore[arg-type]


def same_shape(n: View, result: Spec) -> bool:
    """Whether the result has input 0's shape, as far as that can be told."""
    first = n.shape(0)
    return first is not None and first == result.shape and None not in first and sum(not isinstance(d, int) for d in first) <= 1


def uncounted(n: View) -> None:
    """Results whose sizes no kernel counts."""


def one_input(n: View, result: Spec) -> bool:
    """Whether it has one input alone."""
    return len(n.inputs) == 1 and n.shape(0) is not None


UNDECIDED = Traits()  # of an operator without declared traits: users' own ones
PLAIN = Traits(time="")  # of an operator for which it was decided that nothing holds
MOVES = Traits(moves=True, work="elements")
EACH = Traits(
    elementwise=True, layout=Layout("tied", _broadcast_sides, lambda x, out: {}, _turned), time="elementwise", work="elements"
)


def function(unary: Callable[[View], Activation | None]) -> Traits:
    """The traits of an elementwise function of one array that the engine has."""
    return EACH._replace(unary=unary)
