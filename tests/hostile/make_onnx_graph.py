"""ONNX graphs that contradict themselves, and small ones that stand for much: functions, branches, constants that grow."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fastlayers.errors import DTypeError, FormatError, LimitError, ShapeError, UnsupportedError

from ..formats import onnx_build as ob
from ..formats.onnx_build import field, function, node
from .cases import ANY_OF_OURS, Case, Refusal, Sweep, contents

F, L, U, S = FormatError, LimitError, UnsupportedError, ShapeError
X = [ob.value_info("x", (8,))]


def net(*nodes: bytes, inputs: Sequence[bytes] | str = X, outputs: Sequence[bytes] | str = "y", **more: object) -> bytes:
    """A model of these nodes."""
    return ob.model(ob.graph(nodes, inputs, outputs), **more)  # type: ignore[arg-type]


def ints(name: str, *values: int) -> bytes:
    return node("Constant", "", name, value=np.array(values, "i8"))


def scalar(name: str, value: float, dtype: str = "f4") -> bytes:
    return node("Constant", "", name, value=np.array(value, dtype))


def called(*functions: bytes, op: str = "F0", inputs: str = "x") -> bytes:
    return net(node(op, inputs, "y", domain="my"), functions=functions, imports="my")


def doubling(depth: int) -> bytes:
    """Each function calls the next one twice."""
    made = [
        function(f"F{i}", "a", "c", [node(f"F{i + 1}", "a", "b", domain="my"), node(f"F{i + 1}", "b", "c", domain="my")])
        for i in range(depth)
    ]
    return called(*made, function(f"F{depth}", "a", "c", [node("Relu", "a", "c")]))


def chain(depth: int) -> bytes:
    made = [function(f"F{i}", "a", "c", [node(f"F{i + 1}", "a", "c", domain="my")]) for i in range(depth)]
    return called(*made, function(f"F{depth}", "a", "c", [node("Relu", "a", "c")]))


def wide(count: int, inside: int) -> bytes:
    """A function of many nodes, called from many branches."""
    body = [node("Relu", "a" if i == 0 else f"v{i - 1}", "c" if i == inside - 1 else f"v{i}") for i in range(inside)]
    nodes = [node("F0", "x", "y" if i == 0 else f"y{i}", domain="my") for i in range(count)]
    return net(*nodes, functions=[function("F0", "a", "c", body)], imports="my")


def cycle() -> bytes:
    return net(node("Add", "x b", "a"), node("Relu", "a", "b"), node("Relu", "b", "y"))


def branch(*nodes: bytes, out: str = "z", inputs: str = "") -> ob.Graph:
    return ob.graph(nodes, inputs, out)


def chosen(then: bytes, other: bytes, condition: bytes | None = None) -> bytes:
    """An If, whose condition is an input or a constant."""
    inputs = [*X, *([ob.value_info("b", (), 9)] if condition is None else [])]
    nodes = [*([condition] if condition else []), node("If", "b", "y", then_branch=then, else_branch=other)]
    return net(*nodes, inputs=inputs)


RELU = branch(node("Relu", "x", "z"))
TRUE = scalar("b", True, "b1")

GRAPHS: dict[str, tuple[Callable[[], bytes], Refusal | None, str]] = {
    "a graph": (lambda: net(node("Relu", "x", "y")), None, ""),
    "a cycle": (cycle, F, "is part of a cycle"),
    "a node that reads itself": (lambda: net(node("Relu", "y", "y")), F, "a cycle"),
    "a value that nothing writes": (lambda: net(node("Add", "x nowhere", "y")), F, "reads 'nowhere', which nothing writes"),
    "an output that nothing writes": (lambda: net(node("Relu", "x", "z")), F, "output 'y' is written by no node"),
    "a value that two nodes write": (lambda: net(node("Relu", "x", "y"), node("Neg", "x", "y")), F, "writes 'y' a second time"),
    "a node that writes a value twice": (lambda: net(node("Split", "x", "y y")), F, "writes 'y' a second time"),
    "a node that writes an input": (lambda: net(node("Relu", "x", "x"), node("Relu", "x", "y")), F, "writes 'x' a second time"),
    "two inputs of a name": (lambda: net(node("Relu", "x", "y"), inputs=X * 2), F, "two inputs have the name 'x'"),
    "two outputs of a name": (lambda: net(node("Relu", "x", "y"), outputs="y y"), F, "two outputs of the model"),
    "no outputs": (lambda: net(node("Relu", "x", "y"), outputs=""), None, ""),
    "nodes in any order": (lambda: net(node("Relu", "z", "y"), node("Neg", "x", "z")), None, ""),
    "names with signs that formats know": (
        lambda: net(node("Relu", "x", "%s{0}{__class__}%n"), node("Neg", "%s{0}{__class__}%n", "y"), node("{x!r}%d", "x", "q")),
        U, "operator {x!r}%d",
    ),
    "a name of a megabyte": (lambda: net(node("N" * 1_000_000, "x", "y")), U, "operator 'NNNN"),
    "names that are paths": (lambda: net(node("Relu", "x", "../../owned"), node("Neg", "../../owned", "y")), None, ""),
    "names with ends of lines and escapes": (lambda: net(node("A\n\x1b[2J\x07", "x", "y")), U, "operator"),
    "an operator of Python's": (
        lambda: net(node("PyOp", "x", "y", domain="com.microsoft", module="os", compute="system")), U, "PyOp",
    ),
    "an operator of ATen": (lambda: net(node("ATen", "x", "y", domain="org.pytorch.aten", operator="system")), U, "ATen"),
    "no operator set": (lambda: net(node("Relu", "x", "y"), opset=None), F, "does not import"),
    "an operator set of version 0": (lambda: net(node("Relu", "x", "y"), opset=0), F, "imports version 0"),
    "an operator set below 0": (lambda: net(node("Relu", "x", "y"), opset=-17), F, "imports version -17"),
    "an operator set of version 2**62": (lambda: net(node("Relu", "x", "y"), opset=1 << 62), U, "version 4611686018427387904"),
    "two versions of an operator set": (lambda: net(node("Relu", "x", "y")) + field(8, field(2, 9)), F, "imports version"),
    "an operator set of before": (lambda: net(node("Upsample", "x", "y"), opset=1), U, "version 1 of ONNX"),
    "ir_version 0": (lambda: net(node("Relu", "x", "y"), ir=0), F, ""),
    "ir_version 29": (lambda: net(node("Relu", "x", "y"), ir=29), U, "ir_version 29"),
    "a wrong number of inputs": (lambda: net(node("Add", "x", "y")), F, "Add (y)"),
    "too many inputs": (lambda: net(node("Relu", "x " * 1000, "y")), F, "Relu (y)"),
    "an input of no type": (lambda: net(node("Relu", "x", "y"), inputs=[field(1, "x")]), DTypeError, "input 0 has dtype"),
    "an input of 2**62": (lambda: net(node("Relu", "x", "y"), inputs=[ob.value_info("x", (1 << 62,) * 8)]), None, ""),
    "an input that is a map": (
        lambda: net(node("Relu", "x", "y"), inputs=[field(1, "x") + field(2, field(5, field(1, 7)))]), U, "type map",
    ),
    # ---- functions
    "a function": (lambda: called(function("F0", "a", "c", [node("Relu", "a", "c")])), None, ""),
    "a function that calls itself": (
        lambda: called(function("F0", "a", "c", [node("F0", "a", "c", domain="my")])), F, "recursion is not allowed",
    ),
    "functions that call each other": (
        lambda: called(*(function(f"F{i}", "a", "c", [node(f"F{1 - i}", "a", "c", domain="my")]) for i in (0, 1))), F,
        "recursion is not allowed",
    ),
    "a function that calls itself in a branch": (
        lambda: called(
            function("F0", "a b", "c", [node("If", "b", "c", then_branch=branch(node("F0", "a b", "z", domain="my")),
            else_branch=branch(node("Relu", "a", "z")))]), inputs="x x",
        ),
        F, "recursion is not allowed",
    ),
    "functions that double": (lambda: doubling(40), L, "stand for more than 50000 nodes"),
    "functions 100 deep": (lambda: chain(100), L, "more than 64 deep"),
    "functions that multiply": (lambda: wide(1000, 1000), L, "stand for more than 50000 nodes"),
    "a function twice": (lambda: called(*[function("F0", "a", "c", [node("Relu", "a", "c")])] * 2), F, "is there twice"),
    "a function without a name": (lambda: called(function("", "a", "c", [node("Relu", "a", "c")])), F, "has no name"),
    "a function that reads its caller's value": (
        lambda: called(function("F0", "a", "c", [node("Add", "a x", "c")])), F, "reads 'x', which is no input of it",
    ),
    "a function without its output": (lambda: called(function("F0", "a", "c", [node("Relu", "a", "b")])), F, "nothing writes"),
    "too many inputs of a function": (
        lambda: called(function("F0", "a", "c", [node("Relu", "a", "c")]), inputs="x x"), F, "has 2 inputs, the function has 1",
    ),
    "a function that writes its input": (lambda: called(function("F0", "a", "c", [node("Relu", "a", "a")])), F, "an input has"),
    # ---- branches and loops
    "branches": (lambda: chosen(RELU, RELU), None, ""),
    "a branch with inputs": (lambda: chosen(branch(node("Relu", "q", "z"), inputs="q"), RELU), F, "If (y)"),
    "a branch of no outputs": (lambda: chosen(ob.graph([node("Relu", "x", "z")]), RELU), F, "If (y)"),
    "a branch that reads nothing's": (lambda: chosen(branch(node("Relu", "nowhere", "z")), RELU), F, "reads 'nowhere'"),
    "a branch that reads what comes later": (
        lambda: net(TRUE, node("If", "b", "y", then_branch=branch(node("Relu", "y", "z")), else_branch=RELU)), F, "cycle",
    ),
    "a branch that hides a value": (lambda: chosen(branch(node("Relu", "x", "x"), out="x"), RELU), F, "one of a graph around it"),
    "one branch only": (lambda: net(TRUE, node("If", "b", "y", then_branch=RELU)), F, "else_branch is missing"),
    "branches of text": (lambda: net(TRUE, node("If", "b", "y", then_branch="z", else_branch="z")), (F, U), "If"),
    "a megabyte of branches": (
        lambda: net(
            *(node("If", "b", f"y{i}" if i else "y", then_branch=RELU, else_branch=RELU) for i in range(4000)),
            inputs=[*X, ob.value_info("b", (), 9)],
        ),
        L, "more than 2000 graphs",
    ),
    "a loop whose body lacks inputs": (
        lambda: net(ints("m", 3), node("Loop", "m _ x", "y", body=ob.graph([node("Relu", "x", "z")], "", "z"))), F, "Loop",
    ),
    "a scan of 2**40 inputs": (
        lambda: net(node("Scan", "x", "y", body=RELU, num_scan_inputs=1 << 40)), F, "Scan",
    ),
}  # fmt: skip


# ---- a few bytes that stand for gigabytes: nothing of them may be made when the model is loaded ------------------------------


def grown(*nodes: bytes) -> bytes:
    """A network that adds the first number of c, which the nodes make."""
    inputs = [ob.value_info("x", None)]
    return net(*nodes, ints("zero", 0), node("Gather", "c zero", "first"), node("Add", "x first", "y"), inputs=inputs)


def of_shape(*shape: int) -> tuple[bytes, bytes]:
    return ints("s", *shape), node("ConstantOfShape", "s", "c")


def many(count: int, *shape: int) -> bytes:
    """Many results that would each be let pass."""
    made = [node("ConstantOfShape", "s", f"c{i}") for i in range(count)]
    total = [node("Add", f"{f't{i - 1}' if i else 'c0'} c{i}", f"t{i}") for i in range(count)]
    return net(
        ints("s", *shape), *made, *total, ints("zero", 0), node("Gather", f"t{count - 1} zero", "f"), node("Add", "x f", "y")
    )


def doubled(times: int) -> bytes:
    """A constant that is joined to itself again and again."""
    nodes = [node("Concat", f"c{i} c{i}", f"c{i + 1}", axis=0) for i in range(times)]
    return net(node("Constant", "", "c0", value=np.zeros(1024, "f4")), *nodes, ints("zero", 0),
               node("Gather", f"c{times} zero", "f"), node("Add", "x f", "y"))  # fmt: skip


def texts(count: int, times: int) -> bytes:
    """A constant of a megabyte of which many copies would be made."""
    nodes = [node("Transpose" if i % 2 else "Neg", f"c{i}", f"c{i + 1}") for i in range(times)]
    return net(node("Constant", "", "c0", value=np.zeros((count,), "f4")), *nodes, ints("zero", 0),
               *(node("Gather", f"c{i} zero", f"f{i}") for i in range(times)),
               node("Sum", "x " + " ".join(f"f{i}" for i in range(times)), "y"))  # fmt: skip


def in_branches(count: int, *shape: int) -> bytes:
    """Branches each of which would make a constant."""
    then = branch(ints("s", *shape), node("ConstantOfShape", "s", "c"), ints("o", 0), node("Gather", "c o", "z"))
    nodes = [node("If", "b", f"y{i}" if i else "y", then_branch=then, else_branch=RELU) for i in range(count)]
    return net(*nodes, inputs=[*X, ob.value_info("b", (), 9)])


GROWN: dict[str, tuple[Callable[[], bytes], Refusal | None, str]] = {
    "ConstantOfShape of 4 GB": (lambda: grown(*of_shape(1 << 30)), None, ""),
    "ConstantOfShape of 400 MB": (lambda: grown(*of_shape(100_000_000)), None, ""),
    "ConstantOfShape of 60 MB": (lambda: grown(*of_shape(15_000_000)), None, ""),
    "ConstantOfShape of 4 EB": (lambda: grown(*of_shape(1 << 30, 1 << 30)), None, ""),
    "ConstantOfShape whose size overflows": (lambda: grown(*of_shape(1 << 32, 1 << 32)), None, ""),
    "ConstantOfShape of a negative shape": (lambda: grown(*of_shape(-1)), ANY_OF_OURS, "-1"),
    "ConstantOfShape of a million axes": (lambda: grown(*of_shape(*[1] * 100_000)), None, ""),
    "a hundred of 16 MB": (lambda: many(100, 4_000_000), None, ""),
    "Expand to 4 GB": (lambda: grown(scalar("v", 1), ints("s", 1 << 30), node("Expand", "v s", "c")), None, ""),
    "Expand to 200 MB": (lambda: grown(scalar("v", 1), ints("s", 50_000_000), node("Expand", "v s", "c")), None, ""),
    "Tile to 4 GB": (
        lambda: grown(node("Constant", "", "v", value=np.zeros(4, "f4")), ints("s", 1 << 28), node("Tile", "v s", "c")), None, "",
    ),
    "Range to 8 GB": (
        lambda: grown(scalar("a", 0, "i8"), scalar("n", 1 << 30, "i8"), scalar("d", 1, "i8"), node("Range", "a n d", "r"),
                      node("Cast", "r", "c", to=1)), None, "",
    ),
    "Range of 2**62 values": (
        lambda: grown(scalar("a", 0, "i8"), scalar("n", 1 << 62, "i8"), scalar("d", 1, "i8"), node("Range", "a n d", "r"),
                      node("Cast", "r", "c", to=1)), None, "",
    ),
    "Range of steps of 0": (
        lambda: grown(scalar("a", 0, "i8"), scalar("n", 9, "i8"), scalar("d", 0, "i8"), node("Range", "a n d", "r"),
                      node("Cast", "r", "c", to=1)), ANY_OF_OURS, "",
    ),
    "Range of tiny steps": (
        lambda: grown(scalar("a", 0), scalar("n", 1e30), scalar("d", 1e-30), node("Range", "a n d", "c")), ANY_OF_OURS, "",
    ),
    "Range to infinity": (
        lambda: grown(scalar("a", 0), scalar("n", float("inf")), scalar("d", 1), node("Range", "a n d", "c")), ANY_OF_OURS, "",
    ),
    "Resize by 30000": (
        lambda: grown(node("Constant", "", "v", value=np.zeros((1, 1, 1, 1), "f4")),
                      node("Constant", "", "k", value=np.array([1, 1, 3e4, 3e4], "f4")),
                      node("Resize", "v _ k", "c", mode="nearest")),
        None, "",
    ),
    "Resize by infinity": (
        lambda: grown(node("Constant", "", "v", value=np.zeros((1, 1, 1, 1), "f4")),
                      node("Constant", "", "k", value=np.array([1, 1, np.inf, np.nan], "f4")), node("Resize", "v _ k", "c")),
        ANY_OF_OURS, "",
    ),
    "Pad by a gigabyte": (
        lambda: grown(node("Constant", "", "v", value=np.zeros(4, "f4")), ints("p", 0, 1 << 28), node("Pad", "v p", "c")),
        None, "",
    ),
    "OneHot of a gigabyte": (
        lambda: grown(ints("i", *range(64)), scalar("d", 1 << 22, "i8"), node("Constant", "", "v", value=np.zeros(2, "f4")),
                      node("OneHot", "i d v", "c")), None, "",
    ),
    "EyeLike of a gigabyte": (
        lambda: grown(ints("s", 16384, 16384), node("ConstantOfShape", "s", "v"), node("EyeLike", "v", "c")), None, "",
    ),
    "a product of two thin matrices": (
        lambda: grown(node("Constant", "", "v", value=np.zeros((16384, 1), "f4")),
        node("Constant", "", "u", value=np.zeros((1, 16384), "f4")),
                      node("MatMul", "v u", "c")), None, "",
    ),
    "a sum of two thin matrices": (
        lambda: grown(node("Constant", "", "v", value=np.zeros((16384, 1), "f4")),
        node("Constant", "", "u", value=np.zeros((1, 16384), "f4")),
                      node("Add", "v u", "c")), None, "",
    ),
    "Gather of the same row": (
        lambda: grown(node("Constant", "", "v", value=np.zeros((1, 10000), "f4")),
        node("Constant", "", "i", value=np.zeros(30000, "i8")),
                      node("Gather", "v i", "c")), None, "",
    ),
    "a thousand sums of 8 MB": (
        lambda: grown(ints("s", 2_000_000), node("ConstantOfShape", "s", "v"),
                      *(node("ReduceSum", "v", f"f{i}", keepdims=1) for i in range(1000)),
                      node("Sum", " ".join(f"f{i}" for i in range(1000)), "c")), None, "",
    ),
    "products of products": (
        lambda: grown(ints("s", 1000, 1000), node("ConstantOfShape", "s", "v0"),
                      *(node("MatMul", f"v{i} v{i}", f"v{i + 1}") for i in range(100)), node("Neg", "v100", "c")), None, "",
    ),
    "a thin product of much": (
        lambda: grown(ints("s", 4, 600_000), ints("t", 600_000, 4), node("ConstantOfShape", "s", "v"),
                      node("ConstantOfShape", "t", "u"), *(node("MatMul", "v u", f"f{i}") for i in range(300)),
                      node("Sum", " ".join(f"f{i}" for i in range(300)), "c")), None, "",
    ),
    "a pool of a million numbers each": (
        lambda: grown(ints("s", 1, 1, 1500, 1500), node("ConstantOfShape", "s", "v"),
                      node("AveragePool", "v", "c", kernel_shape=[999, 999], pads=[400] * 4)), L, "its windows read",
    ),
    "a convolution of a million weights each": (
        lambda: grown(ints("s", 1, 1, 1500, 1500), node("ConstantOfShape", "s", "v"), ints("t", 1, 1, 800, 800),
                      node("ConstantOfShape", "t", "w"), node("Conv", "v w", "c")), None, "",
    ),
    "suppression among a hundred thousand boxes": (
        lambda: grown(ints("s", 1, 100_000, 4), node("ConstantOfShape", "s", "v"), ints("t", 1, 1, 100_000),
                      node("ConstantOfShape", "t", "w"), scalar("n", 100_000, "i8"), node("NonMaxSuppression", "v w n", "b"),
                      node("Cast", "b", "c", to=1)), None, "",
    ),
    "a Fourier transform of 2**40 values": (
        lambda: grown(node("Constant", "", "v", value=np.zeros((1, 8, 1), "f4")), scalar("n", 1 << 40, "i8"),
                      node("DFT", "v n", "c", axis=1)), None, "",
    ),
    "a window of 2**40 values": (lambda: grown(scalar("n", 1 << 40, "i8"), node("HannWindow", "n", "c")), None, ""),
    "Concat that doubles": (lambda: doubled(20), None, ""),
    "Concat that doubles 60 times": (lambda: doubled(60), ANY_OF_OURS, ""),
    "a hundred copies of a megabyte": (lambda: texts(250_000, 100), None, ""),
    "branches of a gigabyte each": (lambda: in_branches(50, 1 << 28), None, ""),
    "a branch taken, of 4 GB": (
        lambda: chosen(branch(*of_shape(1 << 30), ints("o", 0), node("Gather", "c o", "z")), RELU, TRUE), None, "",
    ),
}  # fmt: skip

CASES: list[Case | Sweep] = [
    *contents("onnx", {f"graph: {name}": file for name, file in GRAPHS.items()}),
    *contents("onnx", {f"grown: {name}": file for name, file in GROWN.items()}),
]
