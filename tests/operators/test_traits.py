"""What is stated of every operator holds, and nothing that holds is left unsaid: each trait against the operator's own reference,
on the examples in `cases`.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers import operators
from fastlayers.errors import Error
from fastlayers.ir.graph import Node
from fastlayers.kernels.reference.activation import evaluate
from fastlayers.kernels.table import UNARY
from fastlayers.operators import OPERATORS, Spec, Traits, View
from fastlayers.operators._traits import UNDECIDED
from fastlayers.operators.control import CONTROL
from fastlayers.operators.families import FAMILIES
from fastlayers.operators.reference import run_operator
from fastlayers.program.cost import multiply_adds
from fastlayers.stream import _shapes, _steps, _windows, rewrite
from tests.source import tree_of

from ..each import each
from .cases import Case, all_cases

NAMES = sorted(name for family in FAMILIES.values() for name in family.split())
CASES = {name: [item for item in all_cases() if item.op == name] for name in NAMES}
PACKAGE = Path(fl.__file__).parent


def traits(op: str) -> Traits:
    return OPERATORS[op].traits


def view(item: Case, arrays: Sequence[np.ndarray | None] | None = None, known: Iterable[int] = (), **more: Any) -> View:
    """The case's node; `known`: inputs whose values it sees. `more`: attributes."""
    arrays = item.inputs if arrays is None else arrays
    node = Node(
        item.op,
        tuple(None if a is None else f"x{i}" for i, a in enumerate(arrays)),
        tuple(f"y{i}" for i in range(max(len(item.want), 1))),
        {**item.attributes, **more},
    )
    seen = set(known)
    specs = [None if a is None else Spec(a.shape, a.dtype) for a in arrays]
    return View(node, specs, [a if i in seen else None for i, a in enumerate(arrays)])


def run(item: Case, arrays: Sequence[np.ndarray | None] | None = None, **more: Any) -> np.ndarray:
    """The first result."""
    arrays = item.inputs if arrays is None else arrays
    n = view(item, arrays, range(len(arrays)), **more)
    return np.asarray(run_operator(n.node, n, arrays)[0])


def parameters(item: Case) -> range:
    return range(item.data, len(item.inputs))


def alike(got: np.ndarray, want: np.ndarray) -> bool:
    want = np.asarray(want, got.dtype)  # a single string is no array
    return got.shape == want.shape and np.array_equal(got, want, equal_nan=got.dtype.kind in "fc")


# ---- a decision for each -------------------------------------------------------------------------------------------------


@each("op", NAMES)
def test_every_operator_has_traits(op: str) -> None:
    assert traits(op) is not UNDECIDED, "give it traits where it is registered: PLAIN if nothing holds of it"


def test_what_is_not_in_the_vocabulary_has_none() -> None:
    assert all(fl.operators.traits_of(op) is UNDECIDED for op in (*CONTROL, "no such operator"))


# ---- elementwise ---------------------------------------------------------------------------------------------------------


def each_by_itself(item: Case) -> bool | None:
    """Whether each element of the result is that of the operator on elements alone; None if the example cannot tell."""
    if all(a is None or a.dtype == np.float32 for a in item.inputs):
        item = item._replace(data=len(item.inputs))
    data = [a for a in item.inputs[: item.data] if a is not None]
    if not data or len(item.want) > 1 or item.want[0] is None:
        return None
    whole = run(item)
    try:
        fits = np.broadcast_shapes(*(a.shape for a in data)) == whole.shape
    except ValueError:
        return False
    if not fits or whole.size < 2:
        return None if fits else False
    for place in np.ndindex(whole.shape):
        cut = []
        for i, a in enumerate(item.inputs):
            if a is None or i >= item.data:
                cut.append(a)
            else:
                at = tuple(min(p, size - 1) for p, size in zip(place[whole.ndim - a.ndim :], a.shape, strict=True))
                cut.append(a[tuple(slice(p, p + 1) for p in at)])
        try:
            one = run(item, cut)
        except Error:
            return False
        if one.size != 1 or not alike(one.reshape(()), whole[place]):
            return False
    return True


@each("op", NAMES)
def test_elementwise_is_said_where_it_holds(op: str) -> None:
    if traits(op).volatile:
        pytest.skip("random values")
    found = {each_by_itself(item) for item in CASES[op]} - {None}
    if not found or op in ("CastLike", "AlignAxes", "OneOf"):  # the second array gives no element
        pytest.skip("no example has elements enough")
    if traits(op).elementwise:
        assert found == {True}
    elif found == {True}:
        assert op in NOT_SAID, "it looks elementwise: say so, or add an example that shows that it is not"


# Elementwise in every example, and not meant to be treated so.
NOT_SAID = {"ByteTable", "QLinearLeakyRelu", "QLinearSigmoid"}  # their tables and scales are arrays that do not broadcast


@pytest.mark.parametrize("op", [op for op in NAMES if traits(op).unary is not None])
def test_the_function_is_that_of_the_reference(op: str) -> None:
    tried = 0
    for item in CASES[op]:
        if item.inputs[0] is None or item.inputs[0].dtype != np.float32:
            continue
        function = traits(op).unary(view(item, known=range(1, len(item.inputs))))  # type: ignore[misc]
        if function is None:
            continue
        with np.errstate(all="ignore"):
            made = evaluate(item.inputs[0], function).astype(np.float32)
        np.testing.assert_allclose(made, run(item), rtol=3e-7, atol=1e-30)
        tried += 1
    assert tried or op == "Activate"


def test_every_function_of_the_kernels_is_some_operators() -> None:
    found = {traits("Activate").unary(View(Node("Activate", ("x",), ("y",), {"activation": (u.code, *u.defaults)}), [], [])).code  # type: ignore[misc, union-attr]
             for u in UNARY.values()}  # fmt: skip
    assert found == {u.code for u in UNARY.values()}


# ---- what moves elements -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", [op for op in NAMES if traits(op).moves])
def test_what_moves_gives_elements_of_its_input_and_of_any_dtype(op: str) -> None:
    for item in CASES[op]:
        x = item.inputs[0]
        if x is None or x.size > 100 or x.dtype.kind not in "fiu":
            continue
        got = run(item)
        assert set(got.reshape(-1).tolist()) <= set(x.reshape(-1).tolist())
        ranks = np.unique(x, return_inverse=True)[1].reshape(x.shape).astype(np.uint8)  # bytes of the same order
        if item.data == 1 or all(a is None or a.dtype.kind in "iub" for a in item.inputs[1:]):
            same = [ranks, *item.inputs[1:]]
        else:
            continue
        table = np.unique(x)
        assert alike(table[run(item, same)].astype(got.dtype), got)


# ---- layouts -------------------------------------------------------------------------------------------------------------


def last(a: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.moveaxis(a, 1, -1))


@each("op", [op for op in NAMES if traits(op).layout is not None])
def test_layouts_are_told_and_change_nothing_else(op: str) -> None:
    """Every case with its tied inputs, its result, or both with their channels last."""
    layout = traits(op).layout
    assert layout is not None
    tried = 0
    for given in CASES[op]:
        for item in (given, image(given)):
            if item is None:
                continue
            n = view(item, known=parameters(item))
            sides = layout.sides(n) if max((a.ndim for a in item.inputs if a is not None), default=0) >= 3 else None
            if sides is None or n.get("x_last", False):
                continue
            whole, free = run(item), [group for group in sides.ties if not {*group} & {*sides.first}]
            for chosen in (choice for count in range(len(free)) for choice in combinations(free, count + 1)):
                tried += 1
                positions = {i for group in chosen for i in group}
                turned = [last(a) if i in positions and a is not None else a for i, a in enumerate(item.inputs)]
                if layout.turned is not None and -1 in positions:  # constants of channels go with them
                    turned = [a if a is None or i in positions else layout.turned(a) for i, a in enumerate(turned)]
                made = run(item, turned, **layout.told(0 in positions, -1 in positions))
                expected = last(whole) if -1 in positions else whole
                if whole.dtype.kind == "O":
                    assert np.array_equal(made, expected)
                    continue
                np.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-5)
    assert tried


def image(item: Case) -> Case | None:
    """A case of vectors as one of images; None if it has more axes already, or nothing in it."""
    data = [a for a in item.inputs[: item.data] if a is not None]
    if not data or max(a.ndim for a in data) > 2 or not all(a.size for a in data) or item.op == "Affine":
        return None
    main = [i < item.data and a is not None and a.ndim > 0 for i, a in enumerate(item.inputs)]
    wide = [np.resize(a, (2, 3, 2, 2)) if yes and a is not None else a for yes, a in zip(main, item.inputs, strict=True)]
    return item._replace(inputs=tuple(wide), want=(np.zeros(0),))


# ---- sizes and folding ---------------------------------------------------------------------------------------------------


@each("op", NAMES)
def test_what_decides_sizes_steers(op: str) -> None:
    """A result whose sizes are known with the values of an input, and not without them."""
    for item in CASES[op]:
        every = set(range(len(item.inputs)))
        if not all(spec.static for spec in OPERATORS[op].infer(view(item, known=every))):
            continue
        for i in every:
            a = item.inputs[i]
            if a is None or a.dtype.kind not in "iub":
                continue
            if not all(spec.static for spec in OPERATORS[op].infer(view(item, known=every - {i}))):
                # Values that count are data: a binding for each would never be met again.
                assert i in traits(op).steers or traits(op).counts, f"{item.id}: input {i} decides sizes"


@each("op", NAMES)
def test_what_counts_is_said(op: str) -> None:
    """A result whose sizes are not known with all that steers them."""
    found = [spec for item in CASES[op] for spec in OPERATORS[op].infer(view(item, known=traits(op).steers))]
    assert (traits(op).counts is not None) == any(not spec.static for spec in found)


@pytest.mark.parametrize("op", [op for op in NAMES if traits(op).shape_only])
def test_what_needs_shapes_alone_reads_no_value(op: str) -> None:
    for item in CASES[op]:
        n = view(item)
        made = OPERATORS[op].run(n, *(None for _ in item.inputs))  # type: ignore[misc]
        assert alike(np.asarray(made[0]), run(item))


@pytest.mark.parametrize("op", [op for op in NAMES if traits(op).nothing is not None])
def test_a_node_that_does_nothing_gives_its_input(op: str) -> None:
    for item in CASES[op]:
        n = view(item, known=parameters(item))
        result = OPERATORS[op].infer(n)[0]
        first = n.inputs[0]
        if first is not None and first.dtype == result.dtype and traits(op).nothing(n, result):  # type: ignore[misc]
            assert alike(run(item), item.inputs[0])  # type: ignore[arg-type]


# ---- costs ---------------------------------------------------------------------------------------------------------------


def test_products_have_costs() -> None:
    assert [op for op in NAMES if traits(op).work == "products" and traits(op).multiply_adds is None] == []


def spec(*shape: int) -> Spec:
    return Spec(shape, np.dtype(np.float32))


COSTS: list[tuple[str, dict[str, Any], list[Spec | None], Spec, int]] = [
    ("Conv", {}, [spec(2, 6, 9, 9), spec(4, 3, 3, 3), None], spec(2, 4, 7, 7), 2 * 4 * 49 * 27),
    ("ConvTranspose", {}, [spec(2, 6, 5, 5), spec(6, 4, 3, 3)], spec(2, 4, 7, 7), 2 * 6 * 25 * 36),
    ("QLinearConv", {}, [spec(2, 6, 9, 9), spec(), spec(), spec(4, 3, 3, 3)], spec(2, 4, 7, 7), 2 * 4 * 49 * 27),
    ("Linear", {}, [spec(7, 5), spec(3, 5)], spec(7, 3), 105),
    ("MatMul", {}, [spec(2, 7, 5), spec(2, 5, 3)], spec(2, 7, 3), 210),
    ("MatMul", {}, [spec(5), spec(5)], spec(), 5),
    ("Gemm", {"transA": 1}, [spec(5, 7), spec(5, 3)], spec(7, 3), 105),
    ("LSTM", {}, [spec(10, 2, 3), spec(1, 16, 3), spec(1, 16, 4)], spec(10, 1, 2, 4), 20 * (48 + 64)),
    ("ScaledAttention", {}, [spec(2, 7, 4), spec(2, 9, 4), spec(2, 9, 5)], spec(2, 7, 5), 14 * 9 * 9),
    ("ScaledAttention", {"transposed": True}, [spec(2, 7, 4), spec(2, 4, 9), spec(2, 9, 5)], spec(2, 7, 5), 14 * 9 * 9),
    ("Attention", {}, [spec(1, 2, 7, 4), spec(1, 2, 9, 4), spec(1, 2, 9, 4)], spec(1, 2, 7, 4), 2 * 7 * 9 * 8),
    ("Relu", {}, [spec(3, 4)], spec(3, 4), 0),
    ("If", {}, [spec(1)], spec(3, 4), 0),
]


@pytest.mark.parametrize(("op", "attributes", "inputs", "out", "want"), COSTS, ids=[f"{c[0]}{c[1] or ''}{c[4]}" for c in COSTS])
def test_multiply_adds(op: str, attributes: dict[str, Any], inputs: list[Spec | None], out: Spec, want: int) -> None:
    names = tuple(None if s is None else f"x{i}" for i, s in enumerate(inputs))
    assert multiply_adds(Node(op, names, ("y",), attributes), inputs, [out]) == want


# ---- streams and quantized values ----------------------------------------------------------------------------------------


def test_rules_of_streams_are_those_that_operators_name() -> None:
    assert _shapes and _steps and _windows  # which fill them
    assert set(rewrite.RULES) == {traits(op).time for op in NAMES} - {""}
    assert set(rewrite.SIZED) == {traits(op).sizes for op in NAMES} - {""}


def test_elementwise_operators_go_step_by_step() -> None:
    wrong = [op for op in NAMES if traits(op).elementwise and traits(op).time != "elementwise"]
    assert wrong == []


LIMITED = [op for op in NAMES if traits(op).limited]


@pytest.mark.parametrize("op", LIMITED)
def test_limited_results_are_limited(op: str) -> None:
    x = np.array([[-np.inf, -1e30, -3.0, -0.5, 0.0, 0.5, 7.0, 1e30, np.nan]], np.float32)
    for column in (x[:, :-1], x[:, 1:-1], x[:, 2:3]):
        for attributes in ({}, {"alpha": 5.0, "beta": -3.0}):
            view = View(Node(op, ("x",), ("y",), attributes), [Spec(column.shape, column.dtype)], [None])
            with np.errstate(all="ignore"):
                y = OPERATORS[op].run(view, column)[0]  # type: ignore[misc]
            assert not (np.abs(y) > 1).any()


def test_some_operators_are_limited() -> None:
    assert {"Softmax", "Sigmoid", "Tanh"} <= set(LIMITED) and not {"Relu", "LogSoftmax", "Gelu"} & set(LIMITED)


def test_quantized_operators_exist() -> None:
    named = [found.op for op in NAMES if (found := traits(op).quantized) is not None]
    assert named and all(op in OPERATORS for op in named)


# ---- no lists next to them ------------------------------------------------------------------------------------------------


def lists(source: str) -> Iterator[tuple[int, list[str]]]:
    """Collections of three names of operators or more: what is a fact about operators belongs to their traits.

    Left out are the arguments of `Pass` and `each`, which are the nodes of a pattern.
    """
    known = {*NAMES, *CONTROL}
    tree = ast.parse(source)
    pattern = {
        id(inner)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and ast.unparse(call.func).split(".")[-1] in ("Pass", "each")
        for inner in ast.walk(call)
    }
    documents = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef))
        and isinstance(node.body[0], ast.Expr)
        and isinstance(node.body[0].value, ast.Constant)
    }
    for node in ast.walk(tree):
        if id(node) in pattern or id(node) in documents:
            continue
        words: list[Any] = []
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            words = [e.value for e in node.elts if isinstance(e, ast.Constant)]
        elif isinstance(node, ast.Dict):
            words = [k.value for k in node.keys if isinstance(k, ast.Constant)]
        elif isinstance(node, ast.Call):
            words = [a.value for a in node.args if isinstance(a, ast.Constant)] + [k.arg for k in node.keywords]
        elif isinstance(node, ast.BoolOp):
            words = [c.value for part in node.values for c in ast.walk(part) if isinstance(c, ast.Constant)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            words = list(node.value.split())
        found = [word for word in words if isinstance(word, str) and word in known]
        if len(found) >= 3:
            yield node.lineno, found


FOLDERS = ("passes", "stream", "program")


@pytest.mark.parametrize("path", sorted(p for f in FOLDERS for p in (PACKAGE / f).rglob("*.py")), ids=lambda p: p.stem)
def test_no_list_of_operators_is_kept_by_hand(path: Path) -> None:
    assert list(lists(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "text",
    ['A = {"Relu", "Tanh", "Abs"}', 'A = {"Relu": 1, "Tanh": 2, "Abs": 3}', 'A = "Relu Tanh Abs".split()',
     "f(Relu=1, Tanh=2, Abs=3)", 'a = op == "Relu" or op == "Tanh" or op == "Abs"', 'A = frozenset(("Relu", "Tanh", "Abs"))'],
)  # fmt: skip
def test_lists_of_operators_are_found(text: str) -> None:
    assert list(lists(text))


def literals() -> Iterator[tuple[str, Path]]:
    """What is written out in the package's modules and should be there once: tables of three entries, numbers of many digits."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.parent.name in ("jit", "cuda", "reference"):  # formulas have numbers of their own
            continue
        tree = tree_of(path)
        for node in tree.body:
            value = getattr(node, "value", None)
            if isinstance(value, ast.Dict) and len(value.keys) > 2 and all(isinstance(key, ast.Constant) for key in value.keys):
                yield ast.unparse(value), path
        floats = (e.value for e in ast.walk(tree) if isinstance(e, ast.Constant) and isinstance(e.value, float))
        for number in floats:
            if not number.is_integer() and len(repr(number).strip("0")) > 8:
                yield f"{number:.6g}", path


def test_tables_and_numbers_are_written_once() -> None:
    homes: dict[str, set[Path]] = {}
    for text, path in literals():
        homes.setdefault(text, set()).add(path)
    assert "1.67326" in homes  # SELU's
    assert {text: sorted(p.name for p in found) for text, found in homes.items() if len(found) > 1} == {}


def test_every_operator_is_registered_in_one_place() -> None:
    call, folder = re.compile(r'^ *register\(\s*"([^"]+)"', re.MULTILINE), Path(operators.__file__).parent
    names = Counter(name for path in folder.rglob("*.py") for name in call.findall(path.read_text("utf-8")))
    assert len(names) > 150 and not [name for name, count in names.items() if count > 1]
