"""``fastlayers compare``: whether a model's values are another engine's, and which layer is the first that differs."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TextIO

import numpy as np

from ..errors import ArgumentError, ShapeError
from ..formats import load_weights
from ..model.comparison import Row, compared, onnxruntime_values, plain_values, values
from ..model.model import Model
from ..report.text import plural, short, table
from ._draw import printable
from ._model import add_arguments, feeds, file, load, notes, tell
from ._progress import waiting

__all__ = ["EXAMPLES", "arguments", "run"]

EXAMPLES = (
    "fastlayers compare model.onnx --against onnxruntime",
    "fastlayers compare model.onnx --against other.onnx",
    "fastlayers compare model.onnx arrays.npz --layers --tolerance 1e-5",
)

_DIFFERS = 1
_ENGINES = {"onnxruntime": onnxruntime_values, "plain": plain_values}


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    add_arguments(parser)
    parser.add_argument(
        "arrays",
        nargs="?",
        help="an npz or safetensors file with an array for every input, perhaps called in_NAME, and expected ones called "
        "out_NAME; seeded random values without it",
    )
    parser.add_argument(
        "--against",
        type=file,
        metavar="OTHER",
        help="stored: the arrays called out_ in the file; onnxruntime; plain: the graph as written, in numpy; or another model "
        "file. By default the first if there are any, else plain",
    )
    parser.add_argument("--layers", action="store_true", help="compare every value between inputs and outputs too")
    parser.add_argument(
        "--tolerance",
        type=float,
        default=1e-4,
        metavar="T",
        help="how far a value may be off: a part of max(1, its largest expected magnitude) (1e-4)",
    )


def run(options: argparse.Namespace, out: TextIO) -> int:
    """Prints a row for every value; 0 if all are within the tolerance."""
    if not options.tolerance >= 0:
        raise ArgumentError(f"compare: --tolerance {options.tolerance}: expected a number of at least 0")
    model = load(options)
    given, stored = _arrays(model, options, out)
    against = options.against or ("stored" if stored else "plain")
    if against == "stored":
        if not stored:
            raise ShapeError("compare: --against stored: expected a file with arrays called out_NAME")
        want = _stored(model, stored)
        if not options.layers:
            names = {spec.name for spec in model.outputs}
            want = {name: array for name, array in want.items() if name in names} or want
    else:
        engine = _ENGINES.get(against) or _other(model, options)
        outputs = [spec.name for spec in model.outputs]
        with waiting(f"running {against}"):
            want = engine(options.model, given, outputs)
    rows = compared(model, given, want)
    if against != "stored" and (options.layers or _bad(rows, options.tolerance)):
        # What differs is looked for among all values as soon as an output does.
        made = list(values(model))
        with waiting("comparing every value"):
            every = engine(options.model, given, [*made, *(name for name in want if name not in set(made))])
            layers = compared(model, given, {name: array for name, array in every.items() if array.dtype.kind in "fiub"})
    else:
        layers = rows
    return _tell(rows, layers, against, options, out)


def _other(model: Model, options: argparse.Namespace) -> Callable[..., dict[str, np.ndarray]]:
    """The values of another model file: inputs and outputs of the same names or, where there are as many, places."""
    plain = {"model": options.against, "precision": "default", "weights": "float32"}  # what is compared may be the rounding
    other = load(argparse.Namespace(**{**vars(options), **plain}))
    sides = [(model.inputs.names, other.inputs.names), (model.outputs.names, other.outputs.names)]
    for (mine, theirs), what in zip(sides, ("inputs", "outputs"), strict=True):
        if len(mine) != len(theirs):
            raise ArgumentError(f"compare: {options.against} has {len(theirs)} {what}: expected {len(mine)}")
    inputs, outputs = (
        {a: a if set(mine) == set(theirs) else b for a, b in zip(mine, theirs, strict=True)} for mine, theirs in sides
    )
    made = set(other.value_names)

    def run(_: str, given: Mapping[str, np.ndarray], names: Sequence[str]) -> dict[str, np.ndarray]:
        theirs = {name: outputs.get(name, name) for name in names if name in outputs or name in made}
        results = other.run({inputs[name]: array for name, array in given.items()}, list(dict.fromkeys(theirs.values())))
        return {name: results[their] for name, their in theirs.items()}

    return run


def _arrays(model: Model, options: argparse.Namespace, out: TextIO) -> tuple[Mapping[str, np.ndarray], dict[str, np.ndarray]]:
    if not options.arrays:
        return feeds(model, options, notes(options, out)), {}
    found = load_weights(options.arrays)
    stored = {name.removeprefix("out_"): array for name, array in found.items() if name.startswith("out_")}
    inputs = {_plain(spec.name): spec.name for spec in model.inputs}
    given = {}
    for name, array in found.items():
        if name not in stored and not name.startswith("out_"):
            name = name.removeprefix("in_")
            given[inputs.get(_plain(name), name)] = array
    return given, stored


def _plain(name: str) -> str:
    """A name as the keyword of np.savez that it may have been: what is no letter or digit as an underscore."""
    return "".join(c if c.isalnum() else "_" for c in name)


def _stored(model: Model, stored: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    known = {_plain(name): name for name in (*values(model), *(spec.name for spec in model.outputs))}
    return {known.get(_plain(name), name): array for name, array in stored.items()}


def _bad(rows: list[Row], tolerance: float) -> list[Row]:
    return [row for row in rows if not row.error <= tolerance]


def _tell(rows: list[Row], layers: list[Row], against: str, options: argparse.Namespace, out: TextIO) -> int:
    bad, first = _bad(rows, options.tolerance), _bad(layers, options.tolerance)
    shown = layers if options.layers else rows
    if options.json:
        tell(
            out,
            {
                "agrees": not (bad or first),
                "against": against,
                "tolerance": options.tolerance,
                "first_that_differs": first[0].name if first else None,
                "values": [
                    {"value": r.name, "operator": r.op, "shape": list(r.shape), "error": float(r.error), "worst": r.note}
                    for r in shown
                ],
            },
        )
        return _DIFFERS if bad or first else 0
    lines = table(
        ["value", "operator", "shape", "error", "worst"],
        [[short(row.name), row.op, "x".join(map(str, row.shape)) or "-", f"{row.error:.2g}", row.note] for row in shown],
        3,
    ).splitlines()
    whom = {
        "stored": f"arrays of {os.path.basename(options.arrays or '')}",
        "plain": "the plain graph",
        "onnxruntime": "ONNX Runtime",
    }
    lines.append(f"{plural(len(shown), 'value')} next to {whom.get(against, against)}, tolerance {options.tolerance:g}")
    if first:
        lines.append(
            f"first that differs: {first[0].op or 'value'} ({first[0].name}), off by {first[0].error:.2g}: {first[0].note}"
        )
    elif bad:
        lines.append(
            "outputs differ, but no value does when all of them are kept: it comes from fused operations; see --no-passes"
        )
    else:
        lines.append("all agree")
    out.writelines(printable(line, out.encoding or "ascii") + "\n" for line in lines)
    return _DIFFERS if bad or first else 0
