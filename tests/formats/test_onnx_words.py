"""Every attribute that a schema has is read by the operator or by the rule for it, ignored with a reason, or refused."""

from __future__ import annotations

import ast
import functools
import inspect
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.formats.onnx import ml_trees
from fastlayers.formats.onnx.canonical import DOMAINS, RULES, complaints
from fastlayers.formats.onnx.schema import CONSTANT_DTYPES, NEWEST, Attribute, Schema, schemas
from fastlayers.formats.onnx.words import IGNORED, VALUES
from fastlayers.operators import OPERATORS, chance, control, sequence
from fastlayers.operators.control import CONTROL
from fastlayers.operators.ml import labels, maps
from fastlayers.operators.sequence import SEQUENCES
from tests.each import each

from . import onnx_build as ob

# The operators of each domain as they are declared.
SCHEMAS: dict[tuple[str, str], Schema] = {
    **{("", op): schema for op, schema in schemas().items()},
    **{(domain, op): schema for domain, table in DOMAINS.items() for op, (schema, _) in table.items()},
}
ATTRIBUTES = [(domain, op, name) for (domain, op), schema in SCHEMAS.items() for name in schema.attributes]
# What one value of each type looks like.
SOME: dict[str, Any] = {
    "i": 1, "f": 1.0, "s": "text", "t": np.ones(1, np.float32), "x": np.ones(1, np.float32), "is": (1,), "fs": (1.0,),
    "ss": ("text",), "g": ob.read(ob.model(ob.graph([ob.node("Relu", "x", "y")], "x", "y"))).graph, "y": None,
}  # fmt: skip


# ---- what the code of an operator names ------------------------------------------------------------------------------------


def functions(value: Any) -> Iterator[types.FunctionType]:
    """The functions of this package in a value: itself, what it wraps, holds in a closure, or lists."""
    if isinstance(value, functools.partial):
        yield from functions(value.func)
        yield from functions([*value.args, *value.keywords.values()])
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from functions(item)
    elif isinstance(value, types.FunctionType) and value.__module__.startswith("fastlayers"):
        yield value
    elif isinstance(value, type) and value.__module__.startswith("fastlayers"):
        yield from functions([member for member in vars(value).values() if isinstance(member, types.FunctionType)])
    elif hasattr(value, "__wrapped__"):
        yield from functions(value.__wrapped__)


def texts(value: Any) -> Iterator[str]:
    """Every text in constants."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from texts((*value, *value.values()))
    elif isinstance(value, (tuple, frozenset)):
        for item in value:
            yield from texts(item)


def named(op: str, *roots: Any) -> set[str]:
    """All texts that functions, and what they call, have in their code, in tables (at the operator's place), and in closures."""
    found: set[str] = set()
    waiting, seen = list(functions(list(roots))), set[Any]()
    while waiting:
        function = waiting.pop()
        if function.__code__ in seen and not function.__closure__:
            continue
        if id(function) in seen:
            continue
        seen.update((function.__code__, id(function)))
        codes: list[types.CodeType] = [function.__code__]
        for code in codes:
            codes.extend(c for c in code.co_consts if isinstance(c, types.CodeType))
            found.update(text for constant in code.co_consts for text in texts(constant))
            for name in code.co_names:
                known = function.__globals__.get(name)
                if isinstance(known, dict):
                    known = (known[op],) if op in known else () if known.keys() & OPERATORS.keys() else tuple(known.items())
                found.update(texts(known if isinstance(known, (tuple, frozenset)) else ()))
                if not isinstance(known, types.ModuleType):
                    waiting.extend(functions(known))
                else:  # of which the attributes are names too
                    waiting.extend(functions([getattr(known, other, None) for other in code.co_names if other != "object"]))
        for cell in function.__closure__ or ():
            found.update(texts(cell.cell_contents))
            waiting.extend(functions(cell.cell_contents))
    return found


# Operators whose functions are found in tables as they run: the texts of their whole modules count.
MODULES: dict[str, Any] = {
    **dict.fromkeys(CONTROL, control), **dict.fromkeys(SEQUENCES, sequence),
    **dict.fromkeys(("CastMap", "DictVectorizer", "ZipMap"), maps),
    **dict.fromkeys(("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"), chance),
}  # fmt: skip


@functools.cache
def of_operator(op: str) -> set[str]:
    if op in MODULES:
        parsed = ast.walk(ast.parse(inspect.getsource(MODULES[op])))
        return {node.value for node in parsed if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    operator = OPERATORS.get(op)
    return set() if operator is None else named(op, operator.infer, operator.run, operator.lower)


@functools.cache
def reading(domain: str, op: str) -> set[str]:
    """The texts in the rule for an operator and in the operators that it may become."""
    entry = DOMAINS.get(domain, {}).get(op)
    rule = named(op, RULES.get(op) if entry is None else entry[1])
    found = rule | of_operator(op)
    for other in rule & OPERATORS.keys():
        found |= of_operator(other)
    return found


# What is read by others: a constant's value, texts of which are refused, by `graph`; CastLike's where it becomes a Cast.
# And names that are put together.
ELSEWHERE = {
    ("", "Constant"): {"value", "sparse_value", "value_string", "value_strings"} | set(CONSTANT_DTYPES),
    ("", "CastLike"): of_operator("Cast"),
    ("com.microsoft", "FusedGemm"): {"activation_alpha", "activation_beta"},
    ("com.microsoft", "FusedMatMul"): {f"trans{batch}{side}" for batch in ("", "Batch") for side in "AB"},
    ("com.microsoft", "TransposeMatMul"): {"transA", "transB"},
    ("ai.onnx.ml", "LabelEncoder"): {f"{side}_{kind}" for side in ("keys", "values") for kind, _ in labels._LISTS},
    **{
        ("ai.onnx.ml", f"TreeEnsemble{name}"): {f"nodes_{which}" for which in ml_trees._LISTS}
        | {f"{side}_{which}" for which in ("ids", "nodeids", "treeids", "weights")}
        | {f"{which}_as_tensor" for which in ("base_values", "nodes_values", f"{side}_weights")}
        for name, side in (("Classifier", "class"), ("Regressor", "target"))
    },
    ("ai.onnx.ml", "TreeEnsemble"): {f"nodes_{side}{kind}" for side in ("true", "false") for kind in ("leafs", "nodeids")}
    | {"nodes_featureids"},
}
REFUSED = {("", op) for op in ("ImageDecoder", "RegexFullMatch")}


@each("domain, op, name", ATTRIBUTES)
def test_every_attribute_is_read_or_ignored(domain: str, op: str, name: str) -> None:
    if (domain, op) in REFUSED:
        assert op not in OPERATORS and op not in RULES
        return
    read = name in reading(domain, op) | ELSEWHERE.get((domain, op), set())
    restricted = len(VALUES.get(op, {}).get(name, (1, 2))) == 1  # anything else is refused
    assert read or restricted or name in IGNORED.get((domain, op), {}), f"{domain}:{op}: nothing reads {name}"


def test_what_is_ignored_is_of_an_operator_and_has_a_reason() -> None:
    for (domain, op), words in IGNORED.items():
        assert set(words) <= set(SCHEMAS[domain, op].attributes) and all(words.values()), (domain, op)


# ---- what is refused -------------------------------------------------------------------------------------------------------


def attributes(schema: Schema, version: int) -> dict[str, Any]:
    """Those that must be there."""
    needed = [(n, a) for n, a in schema.attributes.items() if a.required and a.first <= version < a.gone]
    return {name: SOME[a.type] for name, a in needed}


def told(domain: str, op: str, version: int, **more: Any) -> list[str]:
    given = {**attributes(SCHEMAS[domain, op], version), **more}
    known = {name: values[0] for name, values in VALUES.get(op, {}).items() if name in given and name not in more}
    return complaints(op, domain, version, {**given, **known}, "it")


@each("domain, op", SCHEMAS)
def test_an_unknown_attribute_is_refused(domain: str, op: str) -> None:
    schema = SCHEMAS[domain, op]
    for version in {NEWEST, max(schema.since, 6), 1} if not domain else {1, 9}:
        if domain or version >= max(schema.since, 6):
            assert told(domain, op, version) == []
            (line,) = told(domain, op, version, whatever=3)
            assert line.endswith(": attribute whatever")


@each("op, name", [(op, name) for (domain, op), s in SCHEMAS.items() if not domain for name in s.attributes])
def test_an_attribute_of_another_opset_is_refused(op: str, name: str) -> None:
    schema = SCHEMAS["", op]
    attribute: Attribute = schema.attributes[name]
    value = VALUES.get(op, {}).get(name, (SOME[attribute.type],))[0]
    for version in range(max(schema.since, 6), NEWEST + 1):
        there = attribute.first <= version < attribute.gone
        text = "" if there else f"attribute {name} in opset {version}"
        assert [line for line in told("", op, version, **{name: value}) if name in line and "opset" in line] == (
            [] if there else [f"operator {op}: {text}"]
        )


@each("op, name", [(op, name) for op, values in VALUES.items() for name in values])
def test_a_value_that_is_none_is_refused_when_it_is_loaded(op: str, name: str) -> None:
    value = "whatever" if isinstance(VALUES[op][name][0], str) else 77
    found = 0
    for domain, other in SCHEMAS:
        if other == op and name in SCHEMAS[domain, other].attributes:
            attribute = SCHEMAS[domain, other].attributes[name]
            version = 1 if domain else max(attribute.first, SCHEMAS[domain, other].since, 6)
            (line,) = told(domain, other, version, **{name: value})
            assert f"attribute {name}={value!r}, expected {VALUES[op][name][0]!r}" in line
            for known in VALUES[op][name]:
                assert told(domain, other, version, **{name: known}) == []
            found += 1
    assert found


def test_the_error_names_operator_attribute_and_value() -> None:
    nodes = [ob.node("Resize", "x _ s", "y", coordinate_transformation_mode="tf"), ob.node("Relu", "y", "z", whatever=1)]
    made = ob.model(ob.graph(nodes, "x", "z", [ob.tensor(np.ones(4, np.float32), "s")]), opset=13)
    with pytest.raises(fl.UnsupportedError) as caught:
        fl.load(made)
    assert "operator Relu: attribute whatever: 1 time" in str(caught.value)
    assert "operator Resize: attribute coordinate_transformation_mode='tf', expected 'half_pixel' or" in str(caught.value)
