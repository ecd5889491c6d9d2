"""Page of every operator and layer of each file format, and what runs it, from the tables of the code: conf.py writes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import keras_names

import fastlayers.formats.keras.model  # noqa: F401  fills LAYERS
from fastlayers.formats.keras.layer import LAYERS
from fastlayers.formats.keras.ops import OPERATIONS
from fastlayers.formats.onnx.canonical import DOMAINS
from fastlayers.formats.onnx.schema import NEWEST, OLDEST, schemas
from fastlayers.formats.tflite.graph import RULES
from fastlayers.formats.tflite.quantized import OWN
from fastlayers.formats.tflite.schema import operator_name
from fastlayers.operators import OPERATORS, Traits
from fastlayers.operators.control import CONTROL
from fastlayers.operators.sequence import SEQUENCES

HEAD = f"""# What of each file format is read

A file that has anything else is refused when it is loaded, by one
error that lists all of it: so is an attribute, an option, a word of a layer's configuration or of a node that nothing reads, each
with its value, unless it is known to change no result (training, names, initial weights; tables in the code say which, and why).

What runs an operator is one of these:

| word | meaning |
| --- | --- |
| native | a step of the compiled engine, for the dtypes and forms that networks use (mostly float32); what is left runs in \
numpy, and `Model.summary` says so |
| numpy | a step in numpy, between native ones |
| stages | the graphs inside are programs of their own, with compiled steps; what is around waits for their values. If, \
Loop and Scan are native where no size depends on what they compute |
| rewritten | other operators of this page take its place when the file is read |

Strings are arrays of objects. What reads or gives them runs in Python between compiled steps (a label of a class, a category),
and so do ZipMap, DictVectorizer and CastMap.

## ONNX

Operator sets {OLDEST} to {NEWEST}; functions of the file are expanded, `If` is settled before the run where its condition can be.
"""
REFUSED = {
    "ImageDecoder": "decodes pictures of nine formats: decode them before",
    "RegexFullMatch": "a pattern of a file may take time without bound",
}  # fmt: skip
NO_OPERATORS = {"CUSTOM", "DELEGATE", "PLACEHOLDER_FOR_GREATER_OP_CODES"}


def how(name: str) -> str:
    """What runs an operator of our graphs' vocabulary."""
    if name in CONTROL or name in SEQUENCES:
        return "stages"
    operator = OPERATORS.get(name)
    if operator is None:
        return "rewritten"
    return "numpy" if operator.lower is None else "native"


def joined(names: Iterable[str]) -> str:
    """Names in alphabetical order."""
    return ", ".join(sorted(names, key=str.lower))


def onnx() -> list[str]:
    """Table of ONNX's own operators and those of other domains, which the browser sorts and filters."""
    rows = [(name, "ai.onnx", schema.since, "refused" if name in REFUSED else how(name)) for name, schema in schemas().items()]
    rows += [(name, domain, 1, how(name)) for domain, table in DOMAINS.items() if domain for name in table]
    lines = ["| operator | domain | since | runs as | streams | note |", "| --- | --- | --- | --- | --- | --- |"]
    for name, domain, since, word in sorted(rows):
        streams = name in OPERATORS and OPERATORS[name].traits.time
        lines.append(f"| {name} | {domain} | {since} | {word} | {'yes' if streams else ''} | {REFUSED.get(name, '')} |")
    return lines


TRAITS: tuple[tuple[str, Callable[[Traits], object]], ...] = (
    ("applied by the operator before, in registers", lambda t: t.unary),
    ("apply an activation to their result", lambda t: "activation" in t.epilogue),
    ("add a residual to their result", lambda t: "residual" in t.epilogue),
    ("read and write channels first or last, each side by itself", lambda t: t.layout is not None and t.layout.kind == "free"),
    ("keep channels last between those", lambda t: t.layout is not None and t.layout.kind == "tied"),
    ("work on 8-bit values between DequantizeLinear and QuantizeLinear", lambda t: t.quantized or t.unary or t.moves),
    ("run step by step in a stream (where time is not the axis that they go along)", lambda t: t.time),
    ("have their multiply-adds counted", lambda t: t.multiply_adds),
)


def traits() -> list[str]:
    """What is known of the operators."""
    lines = ["| | operators |", "| --- | --- |"]
    for text, holds in TRAITS:
        names = [name for name, operator in OPERATORS.items() if "::" not in name and holds(operator.traits)]
        lines.append(f"| {text} | {joined(names)} |")
    return lines


def page() -> str:
    """The whole page."""
    known = {*RULES, *OWN}
    names = [name for name in map(operator_name, range(512)) if not name.startswith("number ")]
    refused = [name for name in names if name not in known | NO_OPERATORS]
    return "\n".join(
        [
            HEAD,
            *onnx(),
            "",
            "## What passes and streams make of operators",
            "",
            'In programs, unless `precision="strict"` asks for none of it; names that ONNX has not are of our own operators.',
            "",
            *traits(),
            "",
            "## TensorFlow Lite",
            "",
            "Float32 and float16 weights, sparse weights, 8-bit networks; all become operators of ONNX's table above.",
            "",
            "| | operators |",
            "| --- | --- |",
            f"| read | {joined(known)} |",
            f"| refused | {joined(refused)}; custom operators and TensorFlow's own (Flex) |",
            "",
            "## Keras",
            "",
            "`.keras` and `.h5`, Sequential and Functional networks of Keras 2 and 3. `Lambda` and classes of users are refused: "
            "nothing in a file is executed. Layers and operations become operators of ONNX's table above.",
            "",
            "All is computed in float32. A layer whose policy computes in float16 or bfloat16 rounds its weights, what comes in "
            "and what goes out to that type, and inside computes in float32: results have the dtype that Keras gives (float32 "
            "with bfloat16's numbers for bfloat16, which numpy lacks), and differ from a backend's by what this rounds within a "
            "layer. Operations on nothing but float16 give float16. float64 policies give float32, computed in it.",
            "",
            "| | names |",
            "| --- | --- |",
            f"| layers | {joined(LAYERS)} |",
            f"| operations (`keras.ops`) | {joined(OPERATIONS)} |",
            f"| layers of Keras 3.15 that are refused | {joined(set(keras_names.LAYERS.split()) - LAYERS.keys())} |",
            f"| operations of Keras 3.15 that are refused | {joined(set(keras_names.OPERATIONS.split()) - OPERATIONS.keys())} |",
            "",
        ]
    )
