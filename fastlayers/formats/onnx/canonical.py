"""Nodes of any opset in the newest form, which is the vocabulary of `operators`: what was an attribute may now be an input.

To teach an old form: a rule here, ``<name>(node, version, make) -> nodes``, and its name in `RULES`. Most operators need none.
Two forms that the newest opset cannot say are our own. ``flatten=True`` on Softmax and its kin (before opset 13): x is first made
a matrix, of the axes before `axis` and those from it on. ``AlignAxes(b, a, axis)`` (how opset 6 broadcast): b with as many axes
of size 1 at its end as put its first axis below axis `axis` of a.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..._lazy import Registry
from ...errors import FormatError, UnsupportedError
from ...ir.graph import Node
from ...operators.graphs import GraphBuilder, trimmed
from ...operators.narrow import NARROW
from ...operators.shapes import DTYPES
from ..source import quote
from . import decomposed, words
from .schema import NEWEST, OLDEST, UNCHANGED, Schema, matches, schemas

__all__ = ["Called", "canonical", "check_counts", "complaints", "name_of", "short"]


Rule = Callable[[Node, int, GraphBuilder], list[Node]]


def short(text: str) -> str:
    """A name out of a file as errors print it: as it is if it looks like one, else quoted and cut off."""
    return text if text.isprintable() and len(text) <= 80 else quote(text)


def name_of(op: str, outputs: tuple[str, ...]) -> str:
    """Name of a node in errors."""
    return f"{short(op)} ({short(next((o for o in outputs if o), '-'))})"


class Called(tuple[str, Sequence[str]]):
    """An operator and its outputs: as text, what `name_of` says. Made for every node, and text only where there is an error."""

    __slots__ = ()

    def __str__(self) -> str:
        return name_of(self[0], tuple(self[1]))


def _changed(
    node: Node, inputs: tuple[str | None, ...] | None = None, drop: tuple[str, ...] = (), op: str = "", **new: Any
) -> Node:
    """The node with other inputs, without some attributes, with new ones."""
    attributes = {k: v for k, v in node.attributes.items() if k not in drop}
    given = trimmed(node.inputs if inputs is None else inputs)
    return Node(op or node.op, given, node.outputs, {**attributes, **new})


def _integers(make: GraphBuilder, node: Node, attribute: str) -> str | None:
    """An attribute as a constant vector, or None if it was not given."""
    values = node.attributes.get(attribute)
    if values is None:
        return None
    return make.constant(np.array(values, np.int64).reshape(-1), f"{node.outputs[0]}/{attribute}")


def _number(make: GraphBuilder, node: Node, attribute: str) -> str | None:
    """An attribute as a constant float32, or None if it was not given."""
    value = node.attributes.get(attribute)
    return None if value is None else make.constant(np.array(value, np.float32), f"{node.outputs[0]}/{attribute}")


# ---- attributes that became inputs -----------------------------------------------------------------------------------


def _axes(until: int) -> Rule:
    def rule(node: Node, version: int, make: GraphBuilder) -> list[Node]:
        if version >= until:
            return [node]
        return [_changed(node, (node.inputs[0], _integers(make, node, "axes")), ("axes",))]

    return rule


def _split(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    inputs = node.inputs
    if version < 13:
        inputs = (inputs[0], _integers(make, node, "split"))
    new = _changed(node, inputs, ("split",))
    if version < 18 and (len(inputs) < 2 or inputs[1] is None):
        new = _changed(new, num_outputs=len(node.outputs))
    return [new]


def _pad(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    if version >= 11:
        return [node]
    return [_changed(node, (node.inputs[0], _integers(make, node, "pads"), _number(make, node, "value")), ("pads", "value"))]


def _slice(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    if version >= 10:
        return [node]
    names = ("starts", "ends", "axes")
    return [_changed(node, (node.inputs[0], *(_integers(make, node, name) for name in names)), names)]


def _top_k(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    return [node if version >= 10 else _changed(node, (node.inputs[0], _integers(make, node, "k")), ("k",))]


def _clip(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    if version >= 11:
        return [node]
    return [_changed(node, (node.inputs[0], _number(make, node, "min"), _number(make, node, "max")), ("min", "max"))]


def _dft(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    if version >= 20:
        return [node]
    axis = make.constant(np.array(node.attributes.get("axis", 1), np.int64), f"{node.outputs[0]}/axis")
    return [_changed(node, (*(*node.inputs, None)[:2], axis), ("axis",))]


# ---- modes that are gone ---------------------------------------------------------------------------------------------


def _is_test(node: Node, version: int) -> None:
    if version < 7 and not node.attributes.get("is_test", 0):
        raise UnsupportedError(f"{node.op} without is_test: only inference is supported")


def _dropout(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    _is_test(node, version)
    return [node if version >= 12 else _changed(node, node.inputs[:1], ("is_test", "ratio"))]


def _batch_normalization(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    attributes = dict(_changed(node, drop=("is_test", "spatial")).attributes)
    if version < 14 and (version < 7 or any(node.outputs[1:])) and not node.attributes.get("is_test", 0):
        attributes["training_mode"] = 1  # from opset 7 on, a node with more than the first output was training
    if node.attributes.get("spatial", 1) != 1:
        if attributes.get("training_mode", 0):
            raise UnsupportedError("BatchNormalization with spatial=0 in training mode")
        return decomposed.each_normalization(node, make)
    outputs = node.outputs if attributes.get("training_mode", 0) else node.outputs[:1]
    made = [Node(node.op, node.inputs, outputs[:3], attributes)]
    return made if version >= 14 or not any(outputs[3:]) else [*made, *decomposed.batch_moments(node, make)]


def _softmax(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    return [node if version >= 13 else _changed(node, axis=node.attributes.get("axis", 1), flatten=True)]


def _recurrent(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    return [_changed(node, drop=("output_sequence",))]  # outputs without a name are not made


def _scan(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    """Before opset 9 everything has an axis for the batch, and its lengths come first."""
    if version >= 9:
        return [node]
    return [_changed(node, drop=("directions",), scan_input_directions=node.attributes.get("directions", ()), batched=1)]


def _roi_align(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    return [node if version >= 16 else _changed(node, coordinate_transformation_mode="output_half_pixel")]


def _group_normalization(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    """Before opset 21, scale and bias have one number a group."""
    return [node if version >= 21 else _changed(node, per_group=1)]


# ---- operators that are gone -----------------------------------------------------------------------------------------


def _scatter(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    return [_changed(node, op="ScatterElements")]


def _upsample(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    """Resize of opset 10, which has no inputs for regions and sizes."""
    x, given = node.inputs[0], node.attributes
    if version < 7:
        scales = np.array([1, 1, given["height_scale"], given["width_scale"]], np.float32)
    elif version < 9:
        scales = np.array(given["scales"], np.float32)
    else:
        return [_old_resize(node, node.inputs)]
    return [_old_resize(node, (x, make.constant(scales, f"{node.outputs[0]}/scales")))]


def _resize(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    return [node if version >= 11 else _old_resize(node, node.inputs)]


def _old_resize(node: Node, inputs: tuple[str | None, ...]) -> Node:
    # Opset 10 does not say how positions are rounded. This is what onnxruntime does.
    mode = node.attributes.get("mode", "nearest")
    attributes = {
        "mode": "linear" if mode == "bilinear" else mode,
        "coordinate_transformation_mode": "asymmetric",
        "nearest_mode": "ceil_if_smaller" if node.op == "Resize" else "floor",
    }
    return Node("Resize", (inputs[0], None, *inputs[1:]), node.outputs, attributes)


# ---- broadcasting as it was before opset 7 ---------------------------------------------------------------------------


def _broadcast(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    axis = node.attributes.get("axis")
    new = _changed(node, drop=("axis", "broadcast"))
    # Without an axis the ends of both shapes belong together, as in numpy.
    return [new] if version >= 7 or axis is None else _aligned(new, axis, make)


def _prelu(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    return [node] if version >= 7 else _aligned(node, 1, make)  # one slope a channel


def _aligned(node: Node, axis: int, make: GraphBuilder) -> list[Node]:
    a, b = node.inputs[:2]
    name = make.name(f"{node.outputs[0]}/aligned")
    return [Node("AlignAxes", (b, a), (name,), {"axis": axis}), _changed(node, (a, name))]


def _gemm(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    return [_changed(node, drop=("broadcast",))]


# ---- dtypes as attributes --------------------------------------------------------------------------------------------


def _typed(attribute: str) -> Rule:
    def rule(node: Node, version: int, make: GraphBuilder) -> list[Node]:
        number = node.attributes.get(attribute)
        known = number in DTYPES or (number == 8 and node.op == "Cast") or (number in NARROW and node.op != "BitCast")
        if number is not None and not known:
            raise UnsupportedError(f"{node.op}: attribute {attribute}={number}, a dtype that numpy does not have")
        return [node]

    return rule


# The operators of each attribute that names a dtype.
_TYPED = {
    "to": "BitCast Cast",
    "dtype": "Bernoulli EyeLike RandomNormal RandomNormalLike RandomUniform RandomUniformLike",
    "output_dtype": "DequantizeLinear QuantizeLinear",
    "output_datatype": "BlackmanWindow HammingWindow HannWindow MelWeightMatrix",
}
RULES: dict[str, Rule] = {
    "BatchNormalization": _batch_normalization,
    "Clip": _clip,
    "DFT": _dft,
    "Dropout": _dropout,
    "GRU": _recurrent,
    "Gemm": _gemm,
    "GroupNormalization": _group_normalization,
    "LSTM": _recurrent,
    "LpNormalization": decomposed.lp_normalization,
    "MeanVarianceNormalization": decomposed.mean_variance_normalization,
    "PRelu": _prelu,
    "Pad": _pad,
    "RNN": _recurrent,
    "ReduceSum": _axes(13),
    "Resize": _resize,
    "RoiAlign": _roi_align,
    "Scan": _scan,
    "Scatter": _scatter,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _axes(13),
    "TopK": _top_k,
    "Unsqueeze": _axes(13),
    "Upsample": _upsample,
    **{op: _typed(attribute) for attribute, ops in _TYPED.items() for op in ops.split()},
    **dict.fromkeys(("Hardmax", "LogSoftmax", "Softmax"), _softmax),
    **{f"Reduce{name}": _axes(18) for name in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare")},
    **dict.fromkeys(("Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor"), _broadcast),
}


# ---- other domains ---------------------------------------------------------------------------------------------------


# Domain: operator: what its nodes look like, and the rule that turns them into nodes of ONNX's own domain.
def _domain(name: str) -> dict[str, tuple[Schema, Rule]]:
    """The operators of a domain; most models need none of them, nor the modules that they are in."""
    if name == "ai.onnx.ml":
        from . import ml

        return ml.TABLE
    if name == "ai.onnx.preview.training":
        from . import domains

        return domains.OTHERS[name]
    from . import contrib, quantized

    if name == "com.microsoft":
        return {**contrib.MICROSOFT, **quantized.TABLE}
    return contrib.PREVIEW if name else contrib.PLAIN


DOMAINS: Registry[dict[str, tuple[Schema, Rule]]] = Registry(
    ("", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training", "com.microsoft"), _domain
)

# ---- the way in ------------------------------------------------------------------------------------------------------


def _entry(op: str, domain: str, version: int) -> tuple[Schema, Rule] | None:
    """Schema and rule of an operator in the tables of `DOMAINS`; None for ONNX's own of the newest form."""
    if not domain and op in schemas() and version >= schemas()[op].since:
        return None
    found: tuple[Schema, Rule] | None = DOMAINS.get(domain, {}).get(op)
    return found


def _schema(op: str, domain: str, version: int) -> Schema | None:
    entry = _entry(op, domain, version)
    return schemas().get(op) if entry is None and not domain else None if entry is None else entry[0]


def complaints(op: str, domain: str, version: int, attributes: Mapping[str, Any], name: object) -> list[str]:
    """Lists the unsupported parts of a node; empty if there is none. `name` is how errors name the node.

    Raises:
        FormatError: an attribute has the wrong type, or one that must be there is missing.
    """
    schema = _schema(op, domain, version)
    if domain == "" and (not 1 <= version <= NEWEST or (version < OLDEST and op not in UNCHANGED)):
        return [f"opset {version}: expected {OLDEST} to {NEWEST}"]

    def label() -> str:
        return f"operator {short(op)}" + (f" of domain {short(domain)}, version {version}" if domain else "")

    if schema is None:
        return [label() + (" (`fl.operator` adds one)" if domain else "")]
    if not domain and version < schema.since:
        return [f"{label()} in opset {version}: it came with opset {schema.since}"]
    found = []
    for attribute, value in attributes.items():
        known = schema.attributes.get(attribute)
        if known is None or not (domain or known.first <= version < known.gone):
            found.append(f"{label()}: attribute {short(attribute)}" + (f" in opset {version}" if known else ""))
        elif not matches(value, known.type):
            raise FormatError(f"onnx: {name}: attribute {attribute} is of the wrong type: {type(value).__name__}")
    for attribute, known in schema.attributes.items():
        if known.required and attribute not in attributes and known.first <= version < known.gone:
            raise FormatError(f"onnx: {name}: attribute {attribute} is missing")
    return found + [f"{label()}: {text}" for text in words.wrong(op, attributes)]


def canonical(node: Node, domain: str, version: int, make: GraphBuilder) -> list[Node]:
    """The node in the newest form: usually one. `complaints` has found nothing wrong with it.

    Raises:
        FormatError: it has no outputs, or not even its first input.
        UnsupportedError: it is in a mode that is not supported.
    """
    # Old forms had other counts, but none had fewer than one input where the newest has one.
    schema = _schema(node.op, domain, version)
    if schema is not None and schema.least and (not node.inputs or node.inputs[0] is None) and schema.most is not None:
        raise FormatError(f"onnx: {name_of(node.op, node.outputs)}: its first input is missing")
    if not node.outputs:
        raise FormatError(f"onnx: {node.op}: has no outputs")
    entry = _entry(node.op, domain, version)
    if entry is not None:
        _check_counts(node, entry[0], True)
    rule = RULES.get(node.op) if entry is None else entry[1]
    return [node] if rule is None else rule(node, version, make)


def check_counts(node: Node) -> None:
    """Raises FormatError if a node in the newest form has too few or too many inputs or outputs."""
    schema = schemas().get(node.op)
    if schema is not None:
        _check_counts(node, schema)


def _check_counts(node: Node, schema: Schema, gaps: bool = False) -> None:
    """`gaps`: whether inputs among the first may be left out."""
    name, count = Called((node.op, node.outputs)), len(node.inputs)
    given = count if gaps else next((i for i, v in enumerate(node.inputs[: schema.least]) if v is None), count)
    if min(given, count) < schema.least or (schema.most is not None and count > schema.most):
        most = "more" if schema.most is None else schema.most
        got = f"{count} inputs" if given == count else f"{count} inputs, of which number {given} is left out"
        raise FormatError(f"onnx: {name}: has {got}: expected {schema.least} to {most}")
    if schema.outputs is not None and len(node.outputs) > schema.outputs:
        raise FormatError(f"onnx: {name}: has {len(node.outputs)} outputs: expected at most {schema.outputs}")
