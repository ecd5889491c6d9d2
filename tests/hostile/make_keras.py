"""Keras archives: configurations that name what is to be run (CVE-2025-1550, 8747, 9906), that contradict themselves or stand for
much, weights that do not fit, and members that lead elsewhere."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any

from fastlayers.errors import FormatError, LimitError, ShapeError, UnsupportedError

from ..formats import build
from ..formats.build import Entry
from ..formats.test_hdf5 import FLOAT, contiguous, file_of, hard, header, message, soft, space
from ..formats.test_keras_hostile import CASES as ONCE
from ..formats.test_keras_hostile import EMPTY, X, archive, call, functional, given, layer, sequential
from .cases import ANY_OF_OURS, Case, Refusal, Sweep, contents, network, sweeps, weights

F, L, U = FormatError, LimitError, UnsupportedError
RELU = layer("ReLU", "y", [X])


def stored(**shapes: tuple[int, ...]) -> bytes:
    """An HDF5 file with zeros of these shapes at layers/dense/vars/<n>, whatever they are called here."""

    def size(shape: tuple[int, ...]) -> int:
        count = 4
        for n in shape:
            count *= n
        return count

    def dataset(shape: tuple[int, ...], at: int) -> bytes:
        return header(space(*shape), FLOAT, contiguous(at, size(shape)))

    names = [str(i).encode() for i in range(len(shapes))]

    def made(at: int) -> bytes:
        groups = [header(hard(b"layers", 0)), header(hard(b"dense", 0)), header(hard(b"vars", 0))]
        places, here = [], 96
        for group in groups:
            here += len(group)
            places.append(here)
        leaf = header(*(hard(name, 0) for name in names))
        here += len(leaf)
        heads = []
        for shape in shapes.values():
            heads.append(here)
            here += len(dataset(shape, 0))
        body = [header(hard(n, p)) for n, p in zip((b"layers", b"dense", b"vars"), places, strict=True)]
        body.append(header(*(hard(name, p) for name, p in zip(names, heads, strict=True))))
        body += [dataset(shape, at) for shape in shapes.values()]
        return file_of(body[0], *body[1:], bytes(max(map(size, shapes.values()), default=0)))

    return made(len(made(0)) - max(map(size, shapes.values()), default=0))


def dense(units: Any = 3, kernel: tuple[int, ...] = (4, 3), bias: tuple[int, ...] = (3,), **more: Any) -> bytes:
    """A network of one Dense layer."""
    return archive(sequential(layer("Dense", units=units, **more)), stored(kernel=kernel, bias=bias))


def one(kind: str, shape: tuple[Any, ...] = (4,), **config: Any) -> bytes:
    """A network of one layer without weights."""
    return archive(sequential(layer(kind, "y", **config), shape=shape))


def configured(module: str | None, kind: str, config: dict[str, Any], registered: str | None = None) -> bytes:
    """A configuration that names something to be imported and called."""
    made: dict[str, Any] = {"class_name": kind, "config": {"name": "y", "trainable": False, **config}}
    told = {"module": module, "registered_name": registered}
    return archive(sequential({**made, **{key: value for key, value in told.items() if value is not None}}))


def plain_zip(*members: Entry, config: Any = None) -> bytes:
    """An archive whose members are as they are given, besides the usual ones."""
    usual = [
        Entry("metadata.json", b'{"keras_version": "3.15.1"}'),
        Entry("config.json", json.dumps(config or functional(given(4), RELU)).encode()),
        Entry("model.weights.h5", EMPTY),
    ]
    return build.archive(*usual, *members)


def nested(depth: int, key: str = "layers") -> bytes:
    """JSON objects in one another."""
    return b'{"a":' * depth + b"1" + b"}" * depth


CODE = {"class_name": "__lambda__", "config": {"code": "4wEAAAAAAAAA", "defaults": None, "closure": None}}
SYSTEM = {"module": "os", "class_name": "function", "config": "system", "registered_name": "system"}

# Names that Keras imported, or would, and what each would do.
NAMED: dict[str, tuple[str | None, str, dict[str, Any]]] = {
    "os.system": ("os", "system", {"command": "touch owned"}),
    "subprocess.Popen": ("subprocess", "Popen", {"args": "touch owned"}),
    "builtins.eval": ("builtins", "eval", {"source": "1"}),
    "builtins.exec": ("builtins", "exec", {}),
    "builtins.open": ("builtins", "open", {"file": "/etc/passwd"}),
    "importlib.import_module": ("importlib", "import_module", {"name": "os"}),
    "pickle.loads": ("pickle", "loads", {"data": "gASVIA=="}),
    "numpy.load": ("numpy", "load", {"file": "x.npy", "allow_pickle": True}),
    "keras.config.enable_unsafe_deserialization": ("keras.config", "enable_unsafe_deserialization", {}),
    "keras.src.saving.serialization_lib": ("keras.src.saving.serialization_lib", "enable_unsafe_deserialization", {}),
    "keras.utils.get_file": ("keras.utils", "get_file", {"origin": "http://127.0.0.1/owned", "extract": True}),
    "keras.src.utils.file_utils.get_file": ("keras.src.utils.file_utils", "get_file", {"fname": "../../owned"}),
    "keras.src.models.cloning.clone_model": ("keras.src.models.cloning", "clone_model", {}),
    "keras.models.load_model": ("keras.models", "load_model", {"filepath": "/tmp/evil.keras", "safe_mode": False}),
    "keras.src.saving.saving_lib.load_weights_only": ("keras.src.saving.saving_lib", "load_weights_only", {}),
    "keras.layers.Lambda": ("keras.layers", "Lambda", {"function": CODE, "output_shape": None}),
    "keras.layers.TorchModuleWrapper": (
        "keras.layers",
        "TorchModuleWrapper",
        {"module": {"class_name": "x", "config": "UEsDBA=="}},
    ),
    "keras.layers.TFSMLayer": ("keras.layers", "TFSMLayer", {"filepath": "/tmp/evil", "call_endpoint": "serve"}),
    "keras.layers.JaxLayer": ("keras.layers", "JaxLayer", {"call_fn": CODE}),
    "keras.layers.StringLookup": ("keras.layers", "StringLookup", {"vocabulary": "/etc/passwd"}),
    "keras.layers.IntegerLookup": ("keras.layers", "IntegerLookup", {"vocabulary": "http://127.0.0.1/"}),
    "keras.layers.TextVectorization": ("keras.layers", "TextVectorization", {"vocabulary": "/etc/passwd", "standardize": CODE}),
    "keras.layers.Pipeline": ("keras.layers", "Pipeline", {"layers": [SYSTEM]}),
    "keras.utils.FeatureSpace": ("keras.utils", "FeatureSpace", {}),
    "keras.callbacks.LambdaCallback": ("keras.callbacks", "LambdaCallback", {}),
    "torch.load": ("torch", "load", {"f": "/tmp/evil.pt"}),
    "torch.hub.load": ("torch.hub", "load", {}),
    "__main__.Evil": ("__main__", "Evil", {}),
    "no module": (None, "Evil", {}),
    "a module of dots": ("..", "Evil", {}),
    "builtins.__class__": ("builtins", "__class__", {}),
    "a class of signs": ("os", "system('touch owned')#{0}%s", {}),
}

FILES: dict[str, tuple[Callable[[], bytes], Refusal | None, str]] = {
    "a layer": (dense, None, ""),
    "layers that call": (lambda: archive(functional(given(4), RELU)), None, ""),
    **{
        f"names {name}": (lambda m=module, n=kind, c=config: configured(m, n, c), U,
        "the model needs what is not supported")  # type: ignore[misc]
        for name, (module, kind, config) in NAMED.items()
    },
    "unsafe deserialization, then a lambda": (
        lambda: archive(sequential({"module": "keras.config", "class_name": "enable_unsafe_deserialization", "config": {}},
                                   layer("Lambda", function=CODE))), U, "a function of Python's own (Lambda), which is never run",
    ),
    "a Dense that is registered": (lambda: configured("keras.layers", "Dense", {"units": 3}, "os>system"), U, "layer os>system"),
    "a Dense of another module": (lambda: archive(sequential({**layer("Dense", units=3), "module": "os"})), F, "has no weight"),
    "a Dense with a path as its name": (lambda: archive(sequential(layer("ReLU", "../../owned"))), None, ""),
    "a function as an activation": (lambda: dense(activation=SYSTEM), U, "activation"),
    "a path as an activation": (lambda: dense(activation="os.system"), U, "activation"),
    "an import as an activation": (lambda: dense(activation="__import__('os').system('touch owned')"), U, "activation"),
    "a lambda as an initializer": (lambda: dense(kernel_initializer=CODE), None, ""),  # words of training are not looked at
    "code as a constraint": (lambda: dense(kernel_constraint=SYSTEM), None, ""),
    "code to compile with": (
        lambda: archive({**functional(given(4), RELU), "compile_config": {"loss": CODE, "optimizer": SYSTEM}}), None, "",
    ),
    "code to build with": (
        lambda: archive({**functional(given(4), RELU), "build_config": SYSTEM, "fn": CODE, "module": "os"}), U,
        "Functional with fn=",
    ),
    "code as a dtype": (lambda: dense(dtype=SYSTEM), (F, U), ""),
    "code as an argument": (lambda: archive(functional(given(4), layer("ReLU", "y", [call(SYSTEM)]))), ANY_OF_OURS, ""),
    "a model of a class": (
        lambda: archive({"module": "os", "class_name": "system", "config": {"layers": []}}), U, "of class 'system'",
    ),
    # ---- the archive
    "members that lead out": (lambda: plain_zip(Entry("../../owned", b"x"), Entry("/etc/owned", b"x")), None, ""),
    "assets that lead out": (lambda: plain_zip(Entry("assets/../../../owned", b"x"), Entry("assets/", b"")), None, ""),
    "two configurations": (lambda: plain_zip(Entry("config.json", b"{}")), F, "config.json"),
    "no weights": (
        lambda: build.archive(Entry("metadata.json", b"{}"), Entry("config.json", b"{}"), Entry("model.weights.npz", b"")), U,
        "never unpickled",
    ),
    "no metadata": (
        lambda: build.archive(Entry("config.json", b"{}"), Entry("model.weights.h5", EMPTY)), F, "has no metadata.json",
    ),
    "weights that are no HDF5": (lambda: archive(functional(given(4), RELU), b"x" * 999), F, "has no signature"),
    "weights that are an archive": (lambda: archive(functional(given(4), RELU), archive({})), F, "has no signature"),
    "a configuration of 5 MB": (lambda: archive(b" " * (5 << 20)), L, "at most 4194304"),
    "a configuration of 100 MB in 100 kB": (
        lambda: plain_zip(Entry("x", b"")).replace(b"zzzz", b"") and build.archive(
            Entry("metadata.json", b"{}"), Entry("config.json", b" " * (100 << 20), deflated=True),
            Entry("model.weights.h5", EMPTY)),
        L, "at most 4194304",
    ),
    "a configuration of a million lists": (lambda: archive(b"[" + b"[]," * 1_000_000 + b"[]]"), L, "more than 250000 items"),
    "a configuration of a million names": (
        lambda: archive(b"{" + b",".join(b'"%x":0' % i for i in range(300_000)) + b"}"), L, "more than 250000 items",
    ),
    "weights of a bomb": (
        lambda: build.archive(Entry("metadata.json", b"{}"),
        Entry("config.json", json.dumps(functional(given(4), RELU)).encode()),
                              Entry("model.weights.h5", bytes(1 << 25), deflated=True)), L, "rejected as a decompression bomb",
    ),
    # ---- JSON
    "objects 100000 deep": (lambda: archive(nested(100_000)), F, "is no JSON"),
    "objects 900 deep in a layer": (
        lambda: archive(json.dumps(sequential(layer("ReLU", x=0))).replace('"x": 0', '"x": ' + nested(900).decode()).encode()),
        U, "ReLU with x=",
    ),
    "a name twice": (lambda: archive(b'{"class_name": "Sequential", "class_name": "Functional"}'), F, "has a name twice"),
    "a name twice, escaped": (lambda: archive(b'{"class_name": "Sequential", "cl\\u0061ss_name": 1}'), F, "has a name twice"),
    "bytes that are no text": (lambda: archive(b'{"class_name": "\xff\xfe"}'), F, "is no JSON"),
    "a number of 100000 digits": (lambda: archive(b'{"class_name": ' + b"9" * 100_000 + b"}"), F, "is no JSON"),
    "half an object": (lambda: archive(b'{"class_name": "Sequential"'), F, "is no JSON"),
    "surrogates": (lambda: archive(sequential(layer("ReLU", "\ud800"))), None, ""),
    # ---- numbers
    **{
        f"{value!r:.20} units": (lambda v=value: dense(v), (F, L, U), "")  # type: ignore[misc]
        for value in (-3, 0, 10**12, 10**30, 3.5, True, float("nan"), float("inf"), "3", [3], {"class_name": "x"})
    },
    **{
        f"{kind} by {value!r:.20}": (lambda k=kind, s=shape, w=word, v=value: one(k, s, **{w: v}),
        None if fits else ANY_OF_OURS, "")  # type: ignore[misc]
        for kind, shape, word, value, fits in (
            ("RepeatVector", (4,), "n", 10**12, True), ("RepeatVector", (4,), "n", 10**30, False),
            ("RepeatVector", (4,), "n", -1, False), ("UpSampling1D", (4, 4), "size", 10**9, True),
            ("UpSampling2D", (4, 4, 4), "size", [10**9, 10**9], True), ("UpSampling2D", (4, 4, 4), "size", -1, False),
            ("UpSampling2D", (4, 4, 4), "size", float("nan"), False), ("ZeroPadding1D", (4, 4), "padding", 10**12, True),
            ("ZeroPadding2D", (4, 4, 4), "padding", 10**30, False), ("Reshape", (4,), "target_shape", [10**9] * 3, False),
            ("Reshape", (4,), "target_shape", [-1, -1], False), ("Reshape", (4,), "target_shape", [10**30], False),
            ("Reshape", (4,), "target_shape", ["a"], False), ("Reshape", (4,), "target_shape", [1] * 1000, False),
            ("Permute", (4, 4), "dims", [7, 9], False), ("Permute", (4, 4), "dims", [1, 1], False),
            ("Cropping1D", (4, 4), "cropping", 10**30, False), ("MaxPooling1D", (4, 4), "pool_size", 10**12, False),
            ("CategoryEncoding", (4,), "num_tokens", 10**12, True),
            ("LeakyReLU", (4,), "negative_slope", "nan", True), ("Discretization", (4,), "bin_boundaries", [[1], [2, 3]], False),
            ("Flatten", (4,), "data_format", "/etc/passwd", False),
        )
    },
    # ---- weights
    "a kernel of another shape": (lambda: dense(kernel=(5, 3)), ANY_OF_OURS, ""),
    "a kernel of more axes": (lambda: dense(kernel=(4, 3, 1)), F, "weight 'kernel' has shape"),
    "a bias of another shape": (lambda: dense(bias=(4,)), F, "weight 'bias' has shape"),
    "a kernel of nothing": (lambda: dense(kernel=(4, 0), bias=(0,)), (F, ShapeError), ""),
    "one weight too many": (
        lambda: archive(sequential(layer("Dense", units=3)), stored(a=(4, 3), b=(3,), c=(3,))), F, "that no layer",
    ),
    "one weight too few": (lambda: archive(sequential(layer("Dense", units=3)), stored(a=(4, 3))), F, "has no weight 'bias'"),
    "weights elsewhere": (
        lambda: archive(sequential(layer("Dense", units=3)), file_of(header(soft(b"layers", 64)))), U, "ExternalLink",
    ),
    "weights in other files": (
        lambda: archive(sequential(layer("Dense", units=3)), _external()), U, "is stored in other files",
    ),
}  # fmt: skip


def _external() -> bytes:
    """The kernel in /etc/passwd: CVE-2026-1669."""
    raw = stored(a=(4, 3))
    old = header(space(4, 3), FLOAT, contiguous(0, 48))
    at = raw.index(old[:64])
    lists = message(7, struct.pack("<B3xHHQQQQ", 1, 1, 1, 96, 1, 0, 48))
    moved = header(space(4, 3), FLOAT, contiguous(0, 48), lists)
    return raw[:at] + moved + raw[at + len(old) :] + bytes(64)


CASES: list[Case | Sweep] = [
    *contents(
        "keras",
        {f"once: {name}": (lambda raw=raw: raw, error, text) for name, (raw, error, text) in ONCE.items()  # type: ignore[misc]
                  if name != "a causal mask" and not name.startswith("models")},
    ),
    *contents("keras", FILES),
    *contents("keras", {"weights alone": (lambda: archive(sequential(layer("Lambda")), stored(a=(4, 3))), None, "")}, weights),
    *sweeps("keras", "a small archive", dense, network, 3),
    *sweeps("keras", "a small archive's weights", dense, weights, 17),
]  # fmt: skip
