"""Whole Keras models in HDF5: the configuration is an attribute (CVE-2024-3660, CVE-2025-9905)."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any

from fastlayers.errors import FormatError, LimitError, UnsupportedError

from ..formats.test_hdf5 import FLOAT, contiguous, file_of, hard, header, soft, space
from ..formats.test_keras_hostile import X, functional, given, layer, sequential
from .cases import ANY_OF_OURS, Case, Refusal, Sweep, contents, network, sweeps, weights
from .make_hdf5 import attribute, heap, text_type
from .make_keras import CODE, NAMED, SYSTEM, nested

F, L, U = FormatError, LimitError, UnsupportedError
LOOSE = functional(given(4), layer("ReLU", "y", [X]))


def fixed(name: bytes, *texts: bytes, shape: tuple[int, ...] | None = None) -> bytes:
    """An attribute of texts of one size."""
    size = max(map(len, texts), default=1)
    data = b"".join(text.ljust(size, b"\0") for text in texts)
    return attribute(name, text_type(size, False), (len(texts),) if shape is None else shape, data)


def h5(config: Any, *more: bytes, version: bytes = b"2.15.0", weights: bool = True) -> bytes:
    """A whole model: the configuration as it is given, and a Dense layer's weights if it is to have some."""
    text = config if isinstance(config, bytes) else json.dumps(config).encode()
    told = [fixed(b"model_config", text, shape=()), fixed(b"keras_version", version, shape=()), *more]
    return whole(told, [b"dense"], [b"kernel:0", b"bias:0"]) if weights else whole(told, [], [])


def whole(told: list[bytes], layers: list[bytes], names: list[bytes], kernel: tuple[int, ...] = (4, 3)) -> bytes:
    """A file with these attributes of its root, and a group of weights."""

    def parts(at: list[int]) -> list[bytes]:
        size = 4
        for n in kernel:
            size *= n
        group = [fixed(b"layer_names", *layers), hard(b"dense", at[2])] if layers else []
        inner = [fixed(b"weight_names", *names), hard(b"kernel:0", at[3]), hard(b"bias:0", at[4])]
        return [
            header(*told, hard(b"model_weights", at[1])), header(*group), header(*inner),
            header(space(*kernel), FLOAT, contiguous(at[5], size)), header(space(3), FLOAT, contiguous(at[5], 12)),
            bytes(max(size, 12)),
        ]  # fmt: skip

    at = [96]
    for part in parts([0] * 6):
        at.append(at[-1] + len(part))
    return file_of(*parts(at))


def pointed(pointer: tuple[int, int, int] | None = None, text: bytes = b"", **more: Any) -> bytes:
    """A model whose configuration is a text of any length; the pointer tells its length, place (0: right) and number."""

    def file(at: int) -> bytes:
        length, place, index = pointer or (len(text), 0, 1)
        told = attribute(b"model_config", text_type(), (), struct.pack("<IQI", length, place or at, index))
        return file_of(header(told), heap(text, **more))

    return file(96 + len(file(0)) - 96 - len(heap(text, **more)))


def dense(**config: Any) -> bytes:
    return h5(sequential(layer("Dense", units=3, **config)))


FILES: dict[str, tuple[Callable[[], bytes], Refusal | None, str]] = {
    "a layer": (dense, None, ""),
    "layers that call": (lambda: h5(LOOSE, weights=False), None, ""),
    "a text of any length": (lambda: pointed(text=json.dumps(sequential(layer("ReLU"))).encode()), None, ""),
    **{
        f"names {name}": (
            lambda m=module, n=kind, c=config: h5(sequential({"module": m, "class_name": n, "config": {"name": "y", **c}})),
            U,  # type: ignore[misc]
            "the model needs what is not supported",
        )
        for name, (module, kind, config) in NAMED.items()
    },
    "a lambda of before, as code": (
        lambda: h5(sequential(layer("Lambda", function=["4wEAAAA=", None, None], function_type="lambda", module="__main__"))), U,
        "a function of Python's own (Lambda), which is never run",
    ),
    "a lambda of before, by name": (
        lambda: h5(sequential(layer("Lambda", function="system", function_type="function", module="os"))), U, "(Lambda)",
    ),
    "a lambda in a wrapper": (
        lambda: h5(sequential(layer("TimeDistributed", layer=layer("Lambda", function=CODE)))), U, "(Lambda)",
    ),
    "a lambda as an activation": (lambda: dense(activation=CODE), U, "activation"),
    "a class of the caller's": (lambda: h5(sequential(layer("mine>Evil"))), U, "layer mine>Evil"),
    "an operation of TensorFlow": (
        lambda: h5(functional(given(4), layer("TFOpLambda", "y", [[["x", 0, 0, {}]]], function="io.read_file"))), U,
        "io.read_file",
    ),
    "an operation by a path": (
        lambda: h5(functional(given(4), layer("TFOpLambda", "y", [[["x", 0, 0, {}]]], function="os.system"))), U, "os.system",
    ),
    "a node of TensorFlow": (
        lambda: h5(sequential(layer("TensorFlowOpLayer", node_def="PyFunc", constants={}))), U, "TensorFlowOpLayer",
    ),
    "a model of a class": (lambda: h5({"class_name": "Evil", "config": {}}), U, "of class 'Evil'"),
    "code to train with": (
        lambda: h5(sequential(layer("Dense", units=3)),
        fixed(b"training_config", json.dumps({"loss": SYSTEM}).encode(), shape=())),
        None, "",
    ),
    "optimizer weights elsewhere": (
        lambda: h5(sequential(layer("Dense", units=3)), soft(b"optimizer_weights", 64)), U, "ExternalLink",
    ),
    # ---- the configuration
    "no configuration": (lambda: whole([fixed(b"keras_version", b"2.15.0", shape=())], [], []), U, "holds weights alone"),
    "a configuration that is a list": (lambda: whole([fixed(b"model_config", b"{", b"}")], [], []), U, "holds weights alone"),
    "half a configuration": (lambda: h5(b'{"class_name": "Sequential"'), F, "model_config: is no JSON"),
    "a configuration that is no text": (lambda: h5(b'{"class_name": "\xff"}'), F, "is not UTF-8"),
    "a name twice": (lambda: h5(b'{"class_name": "Sequential", "class_name": "Model"}'), F, "has a name twice"),
    "objects 6000 deep": (lambda: h5(nested(6000)), F, "is no JSON"),
    "a configuration of 5 MB": (lambda: pointed(text=b" " * (5 << 20)), L, "model_config has 5242880 bytes"),
    "a configuration of a million lists": (lambda: pointed(text=b"[" + b"[]," * 1_000_000 + b"[]]"), L, "more than 250000 items"),
    "a configuration longer than its text": (lambda: pointed((1 << 31, 0, 1), b"{}"), F, "no class_name"),
    "a configuration beyond the file": (lambda: pointed((2, 1 << 60, 1), b"{}"), F, "are not in the file"),
    "a configuration of no heap": (lambda: pointed((2, 8, 1), b"{}"), F, "does not begin with GCOL"),
    "a configuration that the heap lacks": (lambda: pointed((2, 0, 9), b"{}"), F, "has no object 9"),
    "a configuration whose heap is": (lambda: pointed(text=b"{}", size=1 << 60), F, "are not in the file"),
    "two configurations": (
        lambda: h5(LOOSE, fixed(b"model_config", b"{}", shape=())), F, "attribute 'model_config' is there twice",
    ),
    "a version of text": (lambda: h5(LOOSE, version=b"x.y"), F, "keras_version is 'x.y'"),
    "a version of digits": (lambda: h5(LOOSE, version=b"9" * 4000 + b".0"), F, "keras_version is"),
    # ---- the weights
    "a kernel of another shape": (
        lambda: whole([fixed(b"model_config", json.dumps(sequential(layer("Dense", units=3))).encode(), shape=()),
                       fixed(b"keras_version", b"2.15.0", shape=())], [b"dense"], [b"kernel:0", b"bias:0"], (5, 3)), F,
        "weight 'kernel' has shape (5, 3)",
    ),
    "one weight too few": (
        lambda: whole([fixed(b"model_config", json.dumps(sequential(layer("Dense", units=3))).encode(), shape=()),
                       fixed(b"keras_version", b"2.15.0", shape=())], [b"dense"], [b"kernel:0"]), F, "the file has 1 weights",
    ),
    "weights of another layer": (
        lambda: h5(sequential(layer("ReLU"))), F, "weights of a layer 'dense', which the model does not",
    ),
    "names of weights that lead out": (
        lambda: whole([fixed(b"model_config", json.dumps(sequential(layer("Dense", units=3))).encode(), shape=()),
                       fixed(b"keras_version", b"2.15.0", shape=())], [b"dense"], [b"../../etc/passwd", b"/etc/passwd"]), F,
        "has no dataset '../../etc/passwd'",
    ),
    "names of layers that lead out": (
        lambda: whole([fixed(b"model_config", json.dumps(sequential(layer("Dense", units=3))).encode(), shape=()),
                       fixed(b"keras_version", b"2.15.0", shape=())], [b"../.."], []), F, "has no group",
    ),
    "no names of layers": (
        lambda: whole([fixed(b"model_config", json.dumps(sequential(layer("Dense", units=3))).encode(), shape=()),
                       fixed(b"keras_version", b"2.15.0", shape=())], [], []), F, "has no weight 'kernel'",
    ),
    **{
        f"{value!r:.20} units": (lambda v=value: h5(sequential(layer("Dense", units=v))), ANY_OF_OURS, "")  # type: ignore[misc]
        for value in (-3, 0, 10**12, 10**30, 3.5, float("nan"), "3", [3])
    },
}  # fmt: skip

CASES: list[Case | Sweep] = [
    *contents("keras h5", FILES),
    *contents(
        "keras h5", {"weights alone of a lambda": (lambda: h5(sequential(layer("Lambda", function=CODE))), None, "")}, weights
    ),
    *sweeps("keras h5", "a small model", dense, network, 11),
]
