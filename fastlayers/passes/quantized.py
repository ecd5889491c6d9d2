"""Float operators between values that are dequantized before them and quantized after them work on the bytes themselves.

before (D: DequantizeLinear, Q: QuantizeLinear)   after
Q(Relu(Conv(D(x), D(w), D(b))))                   QLinearConv(x, w, b), limited to what Relu leaves
Q(MatMul(D(x), D(w))), Q(Gemm(...))               QLinearMatMul (also of two matrices that are computed), QGemm
MatMul(D(x), D(w)), Gemm(...)                     MatMulIntegerToFloat
Q(Add(D(a), D(b))), Mul, pools, Softmax, Concat   QLinearAdd, ...
Q(f(D(x))) of single values, Q(D(x))             ByteTable: what comes out for each of the 256 bytes
Q(MaxPool(D(x))), Transpose, Reshape, ...         the same of bytes, then a table if scales differ
Mul(Cast(MatMulInteger(a, b)), Mul(s, t))         MatMulIntegerToFloat(a, b, s, t)

Tables and what moves bytes give the same values as before. Sums of products do not: they become exact sums of integers that are
rounded once, as QLinearConv and its kin are defined and as ONNX Runtime computes such graphs, while float32 sums of the same
values have their own errors. A bias in other steps than x's times w's is rounded to those. The pass is left out under
precision="strict".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._tuples import NamedTuple
from ..ir.graph import Node
from ..operators import OPERATORS, Spec, View
from ..operators.quantized.parameters import BYTES, dequantized, quantized
from ._net import Net, of_columns

__all__ = ["apply"]


class Quant(NamedTuple):
    """Quantized values and their parameters: scale and zero point by name and as arrays, the axis of channels."""

    name: str
    scale_name: str
    zero_name: str
    scale: np.ndarray
    zero: np.ndarray
    axis: int | None


def apply(net: Net) -> None:
    """See the module. The net must have its DequantizeLinear of constants still (`fold` with `keep`)."""
    change = _Change(net)
    for _, node in list(net.each("MatMulInteger")):
        change.dynamic(node)
    for _, node in list(net.each()):
        if net.made.get(node.outputs[0]) is None or net.producer(node.outputs[0]) is not node:
            continue  # gone meanwhile
        change.visit(node)


class _Change:
    def __init__(self, net: Net) -> None:
        self.net = net

    # ---- what is around a node ---------------------------------------------------------------------------------------------

    def of(self, name: str | None, kinds: tuple[Any, ...] = BYTES, channels: bool = False) -> Quant | None:
        """Finds the quantized value that a value was dequantized from; one scale for all of it unless `channels`."""
        node = self.net.producer(name)
        return None if node is None or node.op != "DequantizeLinear" else self.parameters(node, node.inputs[0], kinds, channels)

    def parameters(self, node: Node, x: str | None, kinds: tuple[Any, ...], channels: bool = False) -> Quant | None:
        net = self.net
        scale, spec = net.value(node.inputs[1]), net.spec(x)
        zero_name = node.inputs[2] if len(node.inputs) > 2 else None
        zero = net.value(zero_name)
        if scale is None or spec is None or spec.dtype not in kinds or (zero_name is not None and zero is None) or x is None:
            return None
        if node.attributes.get("block_size", 0) or scale.dtype != np.float32 or node.attributes.get("output_dtype", 0) > 13:
            return None
        if scale.ndim > 1 or (zero is not None and zero.ndim > 1) or (scale.size != 1 and not channels):
            return None
        if not (np.isfinite(scale) & (scale > 0)).all():  # order is preserved, and steps can be divided by
            return None
        if zero is None or zero_name is None:
            zero = np.zeros(scale.shape, spec.dtype)
            zero_name = net.constant(zero, f"{node.outputs[0]}/zero")
        return Quant(
            x, str(node.inputs[1]), zero_name, scale, zero, None if scale.size == 1 else int(node.attributes.get("axis", 1))
        )

    def behind(self, name: str) -> tuple[Node, Quant] | None:
        """The one quantization of a value that nothing else reads, and its scale and zero point."""
        node = self.net.single(name)
        if node is None or node.op != "QuantizeLinear":
            return None
        found = self.parameters(node, node.outputs[0], BYTES)
        if found is None or node.attributes.get("precision", 1) != 1:
            return None
        return node, found

    def put(self, at: Node, node: Node, *gone: Node) -> None:
        """The node in place of another, where it reads others' inputs; those are gone."""
        self.net.replace(self.net.position(at), node, *gone)

    def limited(self, end: Node, table: np.ndarray, make: Any, *gone: Node) -> None:
        """Nodes up to the quantization `end`: make(outputs), then a table, if it changes anything."""
        every = np.arange(256, dtype=np.uint8)
        if (table.view(np.uint8) == every).all() and table.dtype == self.net.specs[end.outputs[0]].dtype:
            self.put(end, make(end.outputs), *gone)
            return
        name = f"{end.outputs[0]}/bytes"
        while name in self.net.made:
            name += "'"
        inner = make((name,))
        # The first of the nodes that go leaves its place to what makes the bytes.
        first = gone[-1]
        self.net.specs[name] = Spec(self.net.specs[end.outputs[0]].shape, table.dtype)
        place = self.net.position(first)
        self.put(end, Node("ByteTable", (name, self.net.constant(table, name)), end.outputs, {}), *gone[:-1])
        self.net.replace(place, inner)

    # ---- nodes -----------------------------------------------------------------------------------------------------------------

    def visit(self, node: Node) -> None:
        """Changes a node if it can be."""
        if sum(bool(name) for name in node.outputs) != 1:
            return
        traits = self.net.traits(node)
        if traits.quantized is not None:
            forms = {
                "convolution": self.convolution,
                "product": self.product,
                "pair": self.pair,
                "one": self.one,
                "all": self.concat,
            }
            forms[traits.quantized.form](node, traits.quantized.op)
        elif traits.moves:
            self.move(node)
        elif traits.unary is not None:
            self.function(node)
        elif node.op == "QuantizeLinear":
            self.requantize(node)

    def bias(self, name: str | None, x: Quant, w: Quant, count: int) -> tuple[bool, str | None]:
        """Whether a bias can be one of integers, and its name: in steps of x's times w's."""
        if name is None:
            return True, None
        step = np.broadcast_to(x.scale.reshape(()) * w.scale.reshape(-1), (count,)).astype(np.float64)
        values = self.net.value(name)
        node = self.net.producer(name)
        if values is None and node is not None and node.op == "DequantizeLinear":
            stored, scale = self.net.value(node.inputs[0]), self.net.value(node.inputs[1])
            zero = self.net.value(node.inputs[2]) if len(node.inputs) > 2 else None
            if stored is None or scale is None or stored.dtype != np.int32 or (zero is not None and zero.any()):
                return False, None
            if stored.shape == (count,) and np.allclose(scale.reshape(-1), step, rtol=1e-6, atol=0):
                return True, node.inputs[0]
            values = dequantized(stored, scale.reshape(-1))
        if values is None or not of_columns(values, count) or values.dtype != np.float32:
            return False, None
        with np.errstate(all="ignore"):
            whole = np.rint(np.broadcast_to(values.reshape(-1).astype(np.float64), (count,)) / step)
        if not (np.abs(whole) < 1 << 31).all():
            return False, None
        return True, self.net.constant(whole.astype(np.int32), str(name))

    def weights(self, name: str | None, rank: int | None, axes: tuple[int, ...]) -> Quant | None:
        """Known weights of bytes with one scale, or one per index of one of these axes."""
        found = self.of(name, channels=True)
        values = None if found is None else self.net.value(found.name)
        if found is None or values is None or (rank is not None and values.ndim != rank):
            return None
        return found if found.axis is None or found.axis % values.ndim in axes else None

    def convolution(self, node: Node, op: str) -> None:
        net = self.net
        x, w = self.of(node.inputs[0]), self.weights(node.inputs[1], None, (0,))
        if x is None or w is None:
            return
        acts: list[Node] = []
        out = node.outputs[0]
        following = net.single(out)
        if (
            following is not None
            and following.op in ("Relu", "Clip")
            and all(net.parameter(i) is not None for i in following.inputs[1:] if i is not None)
        ):
            acts, out = [following], following.outputs[0]
        found, count = self.behind(out), int(net.value(w.name).shape[0])  # type: ignore[union-attr]
        right, bias = self.bias(node.inputs[2] if len(node.inputs) > 2 else None, x, w, count)
        if found is None or not right or len(node.inputs) > 3 or (bias and net.rank(node.inputs[2]) != 1):
            return
        end, y = found
        inputs: list[str | None] = [*_names(x), *_names(w), y.scale_name, y.zero_name, *([bias] if bias else [])]
        table = self.limits(acts[0], y) if acts else np.arange(256, dtype=np.uint8).view(y.zero.dtype)
        made = {name: value for name, value in node.attributes.items() if name != "direct"}  # sums of integers have one value
        self.limited(end, table, lambda outputs: Node(op, tuple(inputs), outputs, made), *acts, node)

    def limits(self, act: Node, y: Quant) -> np.ndarray:
        """Range of bytes that a Relu or a Clip keeps: it preserves their order, so it can follow the rounding."""
        low, high = (
            (0.0, None)
            if act.op == "Relu"
            else (self.net.parameter((*act.inputs, None)[1]), self.net.parameter((*act.inputs, None, None)[2]))
        )
        every = np.arange(256, dtype=np.uint8).view(y.zero.dtype)
        for bound, pick in ((low, np.maximum), (high, np.minimum)):
            if bound is not None:
                limit = quantized(np.asarray(np.float32(bound) / y.scale.reshape(())), y.zero.reshape(()), y.zero.dtype)
                every = pick(every, limit)
        return every

    def product(self, node: Node, op: str) -> None:
        net, get = self.net, node.attributes.get
        x, gemm = self.of(node.inputs[0]), node.op == "Gemm"
        w = self.weights(node.inputs[1], 2, (0,) if get("transB", 0) else (1,))
        if x is not None and w is None and not gemm:
            self.computed(node, op, x)
        if x is None or w is None:
            return
        if gemm and (get("transA", 0) or get("alpha", 1.0) != 1 or get("beta", 1.0) != 1):
            return
        values = net.value(w.name)
        assert values is not None
        count = values.shape[0 if get("transB", 0) else 1]
        right, bias = self.bias(node.inputs[2] if gemm and len(node.inputs) > 2 else None, x, w, count)
        found = self.behind(node.outputs[0])
        if not right:
            return
        if found is not None:
            end, y = found
            last: list[str | None] = [y.scale_name, y.zero_name]
            inputs: list[str | None] = [*_names(x), *_names(w)]
            self.put(end, Node(op, tuple([*inputs, bias, *last] if gemm else [*inputs, *last]), end.outputs, _trans(node)), node)
        elif net.rank(node.inputs[0]) not in (None, 1):
            self.floats(node, x, w, values.T if get("transB", 0) else None)

    def computed(self, node: Node, op: str, x: Quant) -> None:
        """A product of two matrices that are both computed, each with one scale."""
        w, found = self.of(node.inputs[1]), self.behind(node.outputs[0])
        if w is None or found is None or any(self.net.rank(name) in (None, 1) for name in node.inputs):
            return
        end, y = found
        self.put(end, Node(op, (*_names(x), *_names(w), y.scale_name, y.zero_name), end.outputs, {}), node)

    def floats(self, node: Node, x: Quant, w: Quant, turned: np.ndarray | None) -> None:
        """A product whose result stays float: so does its bias."""
        net = self.net
        name = w.name if turned is None else net.constant(np.ascontiguousarray(turned), w.name)
        inputs: list[str | None] = [x.name, name, x.scale_name, w.scale_name, x.zero_name, w.zero_name]
        if len(node.inputs) > 2 and node.inputs[2] is not None:
            bias = self.float_bias(node.inputs[2])
            count = (turned if turned is not None else net.value(w.name)).shape[1]  # type: ignore[union-attr]
            if bias is None or bias.size not in (1, count):
                return
            inputs.append(net.constant(np.array(np.broadcast_to(bias.reshape(-1), (count,)), np.float32), node.inputs[2]))
        self.put(node, Node("MatMulIntegerToFloat", tuple(inputs), node.outputs, {}))

    def float_bias(self, name: str) -> np.ndarray | None:
        """A known bias as floats, dequantized if it has to be."""
        values, node = self.net.value(name), self.net.producer(name)
        if values is None and node is not None and node.op == "DequantizeLinear":
            stored, scale = self.net.value(node.inputs[0]), self.net.value(node.inputs[1])
            zero = self.net.value(node.inputs[2]) if len(node.inputs) > 2 else None
            if stored is None or scale is None or stored.ndim > 1 or (zero is not None and zero.any()):
                return None
            values = dequantized(stored, scale.reshape(-1))
        return values if values is not None and values.dtype == np.float32 and values.ndim < 2 else None

    def pair(self, node: Node, op: str) -> None:
        a, b, found = self.of(node.inputs[0]), self.of(node.inputs[1]), self.behind(node.outputs[0])
        if a is None or b is None or found is None or a.zero.dtype != b.zero.dtype:
            return
        end, y = found
        inputs = (*_names(a), *_names(b), y.scale_name, y.zero_name)
        self.put(end, Node(op, inputs, end.outputs, {}), node)

    def one(self, node: Node, op: str) -> None:
        x, found = self.of(node.inputs[0]), self.behind(node.outputs[0])
        if x is None or found is None or node.attributes.get("flatten", False):
            return
        end, y = found
        attributes = dict(node.attributes)
        if node.op == "ReduceMean":
            axes = self.net.value(node.inputs[1]) if len(node.inputs) > 1 else None
            if axes is None or not axes.size or attributes.get("x_last", False):
                return
            attributes = {"axes": tuple(int(a) for a in axes.reshape(-1)), "keepdims": attributes.get("keepdims", 1)}
        if node.op == "AveragePool" and x.zero.dtype != y.zero.dtype:
            return
        self.put(end, Node(op, (*_names(x), y.scale_name, y.zero_name), end.outputs, attributes), node)

    def concat(self, node: Node, op: str) -> None:
        parts, found = [self.of(name) for name in node.inputs], self.behind(node.outputs[0])
        given = [part for part in parts if part is not None]
        if found is None or len(given) != len(parts):
            return
        end, y = found
        inputs = (y.scale_name, y.zero_name, *(name for part in given for name in _names(part)))
        self.put(end, Node(op, inputs, end.outputs, node.attributes), node)

    def move(self, node: Node) -> None:
        x, found = self.of(node.inputs[0]), self.behind(node.outputs[0])
        if x is None or found is None or len(node.outputs) != 1:
            return
        end, y = found
        table = _between(x, y)

        def make(outputs: tuple[str, ...]) -> Node:
            return Node(node.op, (x.name, *node.inputs[1:]), outputs, node.attributes)

        if table.dtype == x.zero.dtype and (table.view(np.uint8) == np.arange(256, dtype=np.uint8)).all():
            self.put(end, make(end.outputs), node)
            return
        name = f"{node.outputs[0]}/moved"
        if name in self.net.made:
            return
        self.net.specs[name] = Spec(self.net.specs[node.outputs[0]].shape, x.zero.dtype)
        self.put(end, Node("ByteTable", (name, self.net.constant(table, name)), end.outputs, {}))
        self.net.replace(self.net.position(node), make((name,)))

    def function(self, node: Node) -> None:
        x, found = self.of(node.inputs[0]), self.behind(node.outputs[0])
        constants = [self.net.value(name) for name in node.inputs[1:]]
        if (
            x is None
            or found is None
            or any(c is None or c.size != 1 for c, n in zip(constants, node.inputs[1:], strict=True) if n)
        ):
            return
        rank = self.net.rank(node.inputs[0])
        if (rank is None and self.net.function(node) is None) or rank != self.net.rank(node.outputs[0]):
            return  # a constant of more axes gives the result as many
        end, y = found
        floats = _floats(x)
        view = View(node, [Spec(floats.shape, floats.dtype), *(None if c is None else Spec(c.shape, c.dtype) for c in constants)],
                    [None, *constants])  # fmt: skip
        run = OPERATORS[node.op].run
        assert run is not None
        with np.errstate(all="ignore"):
            table = _steps(np.asarray(run(view, floats, *constants)[0]), y)
        name = self.net.constant(table, end.outputs[0])
        self.put(end, Node("ByteTable", (x.name, name), end.outputs, {}), node)

    def requantize(self, node: Node) -> None:
        x, y = self.of(node.inputs[0]), self.parameters(node, node.outputs[0], BYTES)
        if x is None or y is None or node.attributes.get("precision", 1) != 1:
            return
        table = _between(x, y)
        if table.dtype == x.zero.dtype and (table.view(np.uint8) == np.arange(256, dtype=np.uint8)).all():
            self.put(node, Node("Identity", (x.name,), node.outputs, {}))
        else:
            self.put(node, Node("ByteTable", (x.name, self.net.constant(table, node.outputs[0])), node.outputs, {}))

    def dynamic(self, node: Node) -> None:
        """MatMulInteger, its sums as floats, times the product of two scales."""
        net = self.net
        cast = net.single(node.outputs[0])
        mul = net.single(cast.outputs[0]) if cast is not None and cast.op == "Cast" and cast.attributes.get("to") == 1 else None
        if cast is None or mul is None or mul.op != "Mul":
            return
        scales = net.producer(mul.inputs[1 if mul.inputs[0] == cast.outputs[0] else 0])
        weight = net.value(node.inputs[1])
        if scales is None or scales.op != "Mul" or weight is None or weight.ndim != 2 or net.rank(node.inputs[0]) in (None, 1):
            return
        for a, w in (scales.inputs[:2], scales.inputs[1::-1]):
            known, spec = net.value(w), net.spec(a)
            if known is None or known.size not in (1, weight.shape[1]) or known.dtype != np.float32 or known.ndim > 1:
                continue
            if spec is None or spec.shape is None or any(d != 1 for d in spec.shape) or spec.dtype != np.float32:
                continue
            if len(spec.shape) > (net.rank(node.inputs[0]) or 0):
                continue  # the result has as many axes
            zeros = (*node.inputs[2:], None, None)[:2]
            inputs = (*node.inputs[:2], a, w, *zeros)
            self.put(mul, Node("MatMulIntegerToFloat", inputs, mul.outputs, {}), cast, node)
            return


def _names(x: Quant) -> tuple[str, str, str]:
    return x.name, x.scale_name, x.zero_name


def _trans(node: Node) -> dict[str, Any]:
    return {"transB": 1} if node.attributes.get("transB", 0) else {}


def _floats(x: Quant) -> np.ndarray:
    """Value that each byte represents."""
    return dequantized(np.arange(256, dtype=np.uint8).view(x.zero.dtype), x.scale.reshape(()), x.zero.reshape(()))


def _steps(floats: np.ndarray, y: Quant) -> np.ndarray:
    return quantized(floats.astype(np.float32) / y.scale.reshape(()), y.zero.reshape(()), y.zero.dtype)


def _between(x: Quant, y: Quant) -> np.ndarray:
    """Table that maps each byte to the byte of another scale."""
    with np.errstate(all="ignore"):
        return _steps(_floats(x), y)
