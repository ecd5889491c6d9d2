"""Small real files of every format, made from what the tests have: nothing of it is stored twice."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import fastlayers as fl
from fastlayers.ir.graph import Graph
from fastlayers.model.model import Model
from tests.formats import (
    build,
    gguf_build,
    onnx_build,
    test_gguf_models,
    test_hdf5,
    test_keras,
    test_keras_hostile,
    test_msgpack,
    test_onnx_models,
    test_tflite,
)
from tests.formats import torch_build as tb
from tests.formats.tflite_build import small
from tests.formats.transformers.checkpoints import golden, stored
from tests.goldens.transformers_cases import weights
from tests.program.graphs import graph, node
from tests.program.test_stages import decoder, rows
from tests.stream.nets import compiled, conv_lstm, tcn
from tests.text.folders import byte_pairs, word_pieces, write_json
from tests.text.test_vocabulary import as_metadata

from .mutate.folder import join

__all__ = ["LARGEST", "corpus"]

GOLDENS = Path(__file__).parents[1] / "goldens"
LARGEST = 120_000  # bytes; Keras and HDF5 keep kilobytes for every group
_ARRAYS: dict[str, Any] = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3), "b.c": np.array(True), "e": np.zeros((0, 2), np.int64),
    "half": np.ones((2, 2), np.float16),
    "z": np.array([1 + 2j], np.complex64), "d": np.arange(3.0),
}  # fmt: skip


@cache
def corpus(format: str) -> dict[str, bytes]:
    """The files of a format by what they are; those of "any" are the first of every format."""
    if format == "any":
        return {f"{name} {kind}": content for name in _MAKERS for kind, content in list(corpus(name).items())[:4]}
    return dict(_MAKERS[format]())


Files = Iterator[tuple[str, bytes]]


def _npy() -> Files:
    for name, array in _ARRAYS.items():
        yield name, build.npy(array)
    yield "fortran", build.npy(np.asfortranarray(np.arange(24.0).reshape(2, 3, 4)))
    yield "big endian", build.npy(np.arange(5, dtype=">i4"))
    yield "version 2", build.npy(_ARRAYS["a"], (2, 0))
    yield "version 3", build.npy(_ARRAYS["a"], (3, 0))
    yield "text", build.npy(np.array(["ab", "c"]))
    yield "dates", build.npy(np.array(["2020-01-01"], "M8[D]"))
    yield "records", build.npy(np.zeros(2, [("x", "<f4"), ("y", "<i8", (2,))]))


def _npz() -> Files:
    yield "stored", build.npz(_ARRAYS)
    yield "deflated", build.npz(_ARRAYS, compressed=True)
    yield "one", build.npz({"x": _ARRAYS["a"]})
    yield "one deflated", build.npz({"x": np.zeros((50, 40), np.float32)}, compressed=True)
    yield "texts and numbers", build.npz({"names": np.array(["ab", "c"]), "a": _ARRAYS["a"]})
    yield "many", build.npz({f"layer.{i}/w": np.full(3, i, np.int8) for i in range(12)})
    yield "order and ends", build.npz({"f": np.asfortranarray(np.ones((2, 3))), "b": np.arange(4, dtype=">u2")}, compressed=True)
    yield "64-bit ends", build.archive(build.Entry("a.npy", build.npy(_ARRAYS["a"])), end64=True)
    yield (
        "a comment",
        build.archive(build.Entry("a.npy", build.npy(_ARRAYS["a"]), True), build.Entry("readme.txt", b"x"), comment=b"hello"),
    )


def _torch() -> Files:
    yield "small zip", tb.SMALL_ZIP
    yield "small legacy", tb.SMALL_LEGACY
    yield (
        "deflated",
        tb.zipped(
            tb.dict_({"a": tb.tensor(tb.storage()), "b": tb.dict_({"c": tb.tensor(tb.storage("1", 6))})}),
            {"0": tb.FLOATS, "1": tb.FLOATS},
            deflated=True,
        ),
    )
    code = tb.call("numpy.dtype", tb.text("f4"), b"\x89", b"\x88")
    dtype = (
        code + tb.tuple_(tb.number(3), tb.text("<"), tb.NONE, tb.NONE, tb.NONE, tb.number(-1), tb.number(-1), tb.number(0)) + b"b"
    )
    empty = tb.call("numpy.core.multiarray._reconstruct", tb.named("numpy.ndarray"), tb.sizes(0), b"C\1b")
    array = empty + tb.tuple_(tb.number(1), tb.sizes(2, 3), dtype, b"\x89", b"C\x18" + tb.FLOATS) + b"b"
    buffer = tb.call("numpy._core.numeric._frombuffer", b"C\x18" + tb.FLOATS, dtype, tb.sizes(6), tb.text("C"))
    yield "arrays of numpy", tb.zipped(tb.dict_({"a": array, "b": buffer, "c": tb.tensor(tb.storage())}))
    for path in sorted(GOLDENS.glob("torch_*.pt")):
        yield path.stem, path.read_bytes()


def _safetensors() -> Files:
    plain = {name: array for name, array in _ARRAYS.items() if array.dtype.kind != "c"}
    yield "several", build.safetensors_of(plain)
    yield "one", build.safetensors_of({"w": _ARRAYS["a"]})
    yield "complex", build.safetensors_of({"z": _ARRAYS["z"]})
    yield "metadata", build.safetensors({"w": ("F32", [2, 2], bytes(16))}, {"format": "pt", "x": "é"})
    for dtype, size in (("BF16", 12), ("F8_E4M3", 6), ("F8_E5M2", 6), ("U16", 12), ("I8", 6)):
        yield dtype, build.safetensors({"w": (dtype, [2, 3], bytes(range(size)))})
    yield "empty ones", build.safetensors({"w": ("F32", [0, 3], b""), "v": ("I64", [], bytes(8)), "u": ("BOOL", [1, 0], b"")})
    yield "all dtypes", (GOLDENS / "all_dtypes.safetensors").read_bytes()
    yield "not aligned", build.safetensors({"a": ("U8", [1], b"x"), "b": ("F64", [1], bytes(8))}, align=1)


def _index() -> Files:
    first, second = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
    shards = {first: {"a": _ARRAYS["a"], "c": _ARRAYS["d"]}, second: {"b": _ARRAYS["half"]}}
    files = [(name, build.safetensors_of(arrays)) for name, arrays in shards.items()]

    def index(value: Any) -> bytes:
        return join([("model.safetensors.index.json", json.dumps(value).encode()), *files])

    where = {name: shard for shard, arrays in shards.items() for name in arrays}
    yield "two shards", index({"metadata": {"total_size": 56}, "weight_map": where})
    yield "no metadata", index({"weight_map": where})
    yield (
        "other metadata",
        index({"weight_map": dict(reversed(where.items())), "metadata": {"total_size": 56.0, "x": [1, {"y": None}]}}),
    )
    one = {"weight_map": {"a": first, "c": first}}
    yield "one shard", join([("i.json", json.dumps(one).encode()), files[0]])
    yield "indented", join([("i.json", json.dumps({"metadata": {}, "weight_map": where}, indent=2).encode()), *files])
    yield "too few", index({"weight_map": {"a": first, "b": second}})
    yield "a shard that is not there", index({"weight_map": {**where, "d": "model-00003-of-00003.safetensors"}})
    bf16 = build.safetensors({"x": ("BF16", [2], b"abcd"), "y": ("F8_E4M3", [3], b"abc")})
    yield "widened", join([("i.json", b'{"weight_map":{"x":"s.safetensors","y":"s.safetensors"}}'), ("s.safetensors", bf16)])


def _checkpoint() -> Files:
    """Folders of transformers and of sentence-transformers, their largest file last."""

    def folder(name: str, tokenizer: Callable[[Path], Any], shards: bool = False, **more: Any) -> bytes:
        config, shapes, _ = golden(name)
        held = weights(shapes)
        with tempfile.TemporaryDirectory() as made:
            tokenizer(Path(made))
            files = [(path.name, path.read_bytes()) for path in sorted(Path(made).iterdir())]
        files += [(other.replace("__", "/"), json.dumps(value).encode()) for other, value in more.items()]
        if shards:
            names = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
            parts = {file: sorted(held)[i::2] for i, file in enumerate(names)}
            places = {name: file for file, inside in parts.items() for name in inside}
            files.append(("model.safetensors.index.json", json.dumps({"weight_map": places}).encode()))
            files += [(file, stored({n: held[n] for n in inside}, "BF16")[0]) for file, inside in parts.items()]
        else:
            files.append(("model.safetensors", stored(held, "F16")[0]))
        return join([("config.json", json.dumps(config).encode()), *files])

    def chatting(path: Path) -> None:
        word_pieces(path)
        words = {"eos_token": "a", "chat_template": "{% for m in messages %}{{ m.content | trim }}{{ eos_token }}{% endfor %}"}
        write_json(path / "tokenizer_config.json", words)

    parts = ("Transformer", "Pooling", "Normalize")
    modules = [{"idx": i, "name": str(i), "path": f"{i}_{part}" if i else "", "type": f"sentence_transformers.models.{part}"}
               for i, part in enumerate(parts)]  # fmt: skip
    sentences: dict[str, Any] = {
        "modules.json": modules,
        "1_Pooling__config.json": {"word_embedding_dimension": 36, "pooling_mode": "mean"},
        "sentence_bert_config.json": {"max_seq_length": 30, "do_lower_case": True},
        "config_sentence_transformers.json": {"prompts": {"query": "the "}, "default_prompt_name": "query"},
    }
    yield "bert", folder("bert", word_pieces, **sentences)
    yield "bert in shards", folder("bert words", word_pieces, shards=True)
    for name in ("modernbert", "distilbert", "t5", "deberta-v2, v3"):
        yield name, folder(name, word_pieces)
    for name in ("llama", "gpt2", "qwen3_moe", "gemma3"):
        yield name, folder(name, chatting, shards=name == "llama")


def _msgpack() -> Files:
    array, mapped, two = test_msgpack.array, test_msgpack.mapped, test_msgpack.TWO
    yield "Flax's own", (GOLDENS / "flax.msgpack").read_bytes()
    yield "small", test_msgpack.SMALL
    yield "chunks", mapped(w=mapped(**test_msgpack.CHUNKED, chunks=mapped(**{"0": two, "1": two})))
    yield "nested", mapped(params=mapped(dense=mapped(kernel=two, bias=two)))
    yield "scalar", mapped(x=array(b"\x90", "float64", bytes(8)), y=b"\xcb" + bytes(8), n=b"\xc0")
    yield "half", mapped(x=array(b"\x92\x01\x02", "bfloat16", bytes(4)), y=array(b"\x91\x04", "float8_e4m3fn", b"abcd"))
    yield "numpy's scalar", mapped(x=array(b"\x90", "int32", bytes(4), kind=3), y=two)
    yield "lists", mapped(x=b"\x92" + two + two, y=b"\xdc\0\1" + two)
    yield "widths", b"\xde\0\2\xd9\1a" + two + b"\xda\0\1b\xc8\0" + two[1:]
    yield "complex", mapped(c=b"\xc7\x13\2" + b"\x92\xcb" + bytes(8) + b"\xcb" + bytes(8), x=two)


def _gguf() -> Files:
    b = gguf_build
    yield "small", b.SMALL
    for kind, (number, terms, _) in b.BLOCKS.items():
        raw = b.blocks(kind, 4, wild=kind == "Q4_1")
        yield kind, b.gguf({"w": (number, (2, 2 * terms), raw.tobytes())}, alignment=8)
    lists = {
        "tokens": ["<s>", "a", "é"],
        "scores": [0.5, -1.0],
        "types": (9, b"\5" + bytes(3) + b"\2" + bytes(15)),
        "flags": [True],
    }
    yield "lists", b.gguf({"a": (0, (2,), bytes(8)), "b": (30, (3,), bytes(6))}, lists, version=2)
    yield "no tensors", b.gguf({}, lists)
    with tempfile.TemporaryDirectory() as made:
        for kind, tokenizer in (("gpt2", byte_pairs(Path(made))), ("bert", word_pieces(Path(made)))):
            given = as_metadata(tokenizer, kind, pre="gpt-2", bos_token_id=0, cls_token_id=2, seperator_token_id=3)
            types = given["tokenizer.ggml.token_type"].tolist()
            yield f"{kind}'s vocabulary", b.gguf({}, {**given, "tokenizer.ggml.token_type": types})
    networks = ("llama", "qwen2", "bert")
    yield from ((name, content) for name, content in test_gguf_models.goldens() if name.startswith(networks))
    yield "integers", b.gguf({name: (24 + i, (1, 2), bytes(2 << i)) for i, name in enumerate("abcd")}, alignment=1)


def hdf5_of(tree: dict[str, Any]) -> bytes:
    """An HDF5 file of groups (dicts) and datasets (float32 arrays), with headers of version 1 and links in them."""
    header, hard, space, contiguous = test_hdf5.header, test_hdf5.hard, test_hdf5.space, test_hdf5.contiguous

    def written(item: Any, at: int) -> bytes:
        if not isinstance(item, dict):
            data = np.ascontiguousarray(item, np.float32)
            size = len(header(space(*data.shape), test_hdf5.FLOAT, contiguous(0, 0)))
            held = header(space(*data.shape), test_hdf5.FLOAT, contiguous(at + size, data.nbytes)) + data.tobytes()
            return held + bytes(-len(held) % 8)
        size = len(header(*(hard(name.encode(), 0) for name in item)))
        links, behind = [], b""
        for name, inner in item.items():
            links.append(hard(name.encode(), at + size + len(behind)))
            behind += written(inner, at + size + len(behind))
        return header(*links) + behind

    return test_hdf5.file_of(written(tree, 96))


def _hdf5() -> Files:
    t = test_hdf5
    numbers = np.arange(6, dtype="<f4")
    at = t.behind(t.space(2, 3), t.FLOAT, t.contiguous(0, 24))
    yield "one", t.one(t.space(2, 3), t.FLOAT, t.contiguous(at, 24), data=numbers.tobytes())
    import zlib

    yield "chunks", t.chunk_file((5,), (3,), zlib.compress(numbers[:3].tobytes()), [(0,), (3,)])
    yield "chunks of two axes", t.chunk_file((4, 3), (2, 2), zlib.compress(bytes(16)), [(0, 0), (0, 2), (2, 0), (2, 2)])
    yield (
        "groups",
        hdf5_of(
            {"layers": {"dense": {"vars": {"0": np.ones((2, 3)), "1": np.zeros(3)}}, "relu": {"vars": {}}}, "x": np.ones(())}
        ),
    )
    yield "flat", hdf5_of({f"w{i}": np.full((i,), i) for i in range(6)})
    yield "symbols", _symbols()
    for kind in ("v110", "userblock", "latest"):
        yield kind, t.content(kind)
    for suffix, name in ((".h5", "2|channels_first"), (".h5", "3|keras_1"), (".h5", "3|half_precision")):
        version, label = name.split("|")
        yield label, test_keras.stored(version)[f"{label}|file|{suffix}"].tobytes()


def _symbols() -> bytes:
    """A group of the old kind: a symbol table, a tree of nodes, a heap of names."""
    import struct

    t = test_hdf5
    root = len(t.header(t.message(17, bytes(16))))
    heap_at = 96 + root
    names = b"\0" * 8 + b"a\0\0\0\0\0\0\0" + b"bb\0\0\0\0\0\0"
    tree_at = heap_at + 32 + len(names)
    leaf_at = tree_at + 24 + 24
    data_at = leaf_at + 8 + 2 * 40
    made = t.header(t.space(2), t.FLOAT, t.contiguous(0, 8))
    made = t.header(t.space(2), t.FLOAT, t.contiguous(data_at + len(made), 8)) + struct.pack("<2f", 1, 2)
    second = t.header(t.space(), t.FLOAT, t.contiguous(data_at + len(made) - 8, 4))
    heap = b"HEAP" + struct.pack("<B3xQQQ", 0, len(names), t.END, heap_at + 32) + names
    node_ = b"TREE" + struct.pack("<BBHQQ", 0, 0, 1, t.END, t.END) + struct.pack("<QQQ", 0, leaf_at, 16)
    leaf = (
        b"SNOD" + struct.pack("<BxH", 1, 2) + struct.pack("<QQ24x", 8, data_at) + struct.pack("<QQ24x", 16, data_at + len(made))
    )
    return t.file_of(t.header(t.message(17, struct.pack("<QQ", tree_at, heap_at))), heap, node_, leaf, made, second)


def _keras() -> Files:
    k = test_keras_hostile
    layer, call, tensor = k.layer, k.call, k.tensor
    dense = {"layers": {"dense": {"vars": {"0": np.ones((4, 3)), "1": np.zeros(3)}}}}
    yield "dense", k.archive(k.sequential(layer("Dense", units=3, activation="relu", use_bias=True)), hdf5_of(dense))
    plain = [
        layer("ReLU", max_value=6.0),
        layer("Reshape", target_shape=[2, 2]),
        layer("Permute", dims=[2, 1]),
        layer("Flatten"),
        layer("Softmax", axis=-1),
    ]
    yield "plain", k.archive(k.sequential(*plain))
    images = [
        layer("ZeroPadding2D", padding=[[1, 1], [0, 2]]),
        layer("MaxPooling2D", pool_size=[2, 2], strides=[2, 2], padding="same"),
        layer("UpSampling2D", size=[2, 2]),
        layer("GlobalAveragePooling2D"),
    ]
    yield "images", k.archive(k.sequential(*images, shape=(8, 8, 3)))
    conv = {"layers": {"conv2d": {"vars": {"0": np.ones((3, 3, 2, 4)), "1": np.zeros(4)}}}}
    yield (
        "conv",
        k.archive(
            k.sequential(layer("Conv2D", filters=4, kernel_size=[3, 3], padding="same", activation="swish"), shape=(5, 5, 2)),
            hdf5_of(conv),
        ),
    )
    gru = {"layers": {"gru": {"cell": {"vars": {"0": np.ones((4, 9)), "1": np.ones((3, 9)), "2": np.zeros((2, 9))}}}}}
    yield (
        "GRU",
        k.archive(k.sequential(layer("GRU", units=3, return_sequences=True, reset_after=True), shape=(5, 4)), hdf5_of(gru)),
    )
    lstm = {"layers": {"lstm": {"cell": {"vars": {"0": np.ones((4, 12)), "1": np.ones((3, 12)), "2": np.zeros(12)}}}}}
    yield "LSTM", k.archive(k.sequential(layer("LSTM", units=3), shape=(5, 4)), hdf5_of(lstm))
    x = call(tensor("x"))
    add = layer("Add", "y", [call([tensor("x"), tensor("r")])])
    yield "functional", k.archive(k.functional(k.given(4), layer("ReLU", "r", [x]), add))
    calls = layer("ReLU", "r", [x, call(tensor("r"))])
    yield (
        "a layer twice",
        k.archive(k.functional(k.given(4), calls, layer("Concatenate", "y", [call([tensor("r"), tensor("r", 1)])], axis=-1))),
    )
    inner = k.functional(k.given(4), layer("ReLU", "y", [x]))
    yield (
        "a model in a model",
        k.archive(k.functional(k.given(4), {**inner, "name": "m", "inbound_nodes": [x]}, outputs=("m", 0, 0))),
    )
    yield "wrapped", k.archive(k.sequential(layer("TimeDistributed", layer=layer("Softmax")), shape=(3, 4)))
    for version, label, suffix in test_keras.FILES:
        content = test_keras.stored(version)[f"{label}|file|{suffix}"]
        if content.nbytes < LARGEST:
            yield f"{version} {label} {suffix}", content.tobytes()


def _tflite() -> Files:
    yield "small", small()
    for name, case in test_tflite.goldens().items():
        if len(case.content) < LARGEST:
            yield name, case.content


_ONNX = (
    "classifier 13", "mobile 17", "inception 13", "rnn 9", "gru 13", "lstm 21", "branch by size 13", "branch by number 21",
    "shapes 11", "shapes 21", "doubles 13", "integers 13",
)  # fmt: skip


def _onnx() -> Files:
    ob = onnx_build
    yield "tensors", build.VALID["onnx"]
    for name in _ONNX:
        yield name, test_onnx_models.data(name)
    with np.load(GOLDENS / "quantized.npz") as file:
        for name in file.files:
            if name.endswith("/model"):
                yield name, file[name].tobytes()
    yield "every type", (GOLDENS / "onnx_tensors.onnx").read_bytes()
    data, model = ("data.bin", np.arange(8, dtype="<f4").tobytes()), ob.external((2, 4), "w", location="data.bin")
    yield (
        "external",
        join(
            [
                (
                    "model.onnx",
                    ob.model(
                        ob.graph(
                            [ob.node("MatMul", "x w", "y")],
                            [ob.value_info("x", ("n", 2))],
                            [ob.value_info("y", ("n", 4))],
                            [model],
                        )
                    ),
                ),
                data,
            ]
        ),
    )
    parts = [
        ob.external((2,), "w", location="data.bin", offset=8, length=8),
        ob.external((1,), "v", location="data.bin", offset=4, length=4),
    ]
    yield "external parts", join([("model.onnx", ob.model(ob.graph([ob.node("Add", "w v", "y")], "", "y", parts))), data])
    yield (
        "external golden",
        join(
            [
                ("model.onnx", (GOLDENS / "onnx_external.onnx").read_bytes()),
                ("onnx_external.bin", (GOLDENS / "onnx_external.bin").read_bytes()),
            ]
        ),
    )
    body = ob.graph([ob.node("Add", "c x", "c2"), ob.node("Identity", "d", "d2")], [ob.value_info("i", (), 7), ob.value_info("d",
    (), 9), ob.value_info("c", (2,))],
                    [ob.value_info("d2", (), 9), ob.value_info("c2", (2,))])  # fmt: skip
    loop = ob.graph(
        [ob.node("Loop", "m t x", "y", body=body)],
        [ob.value_info("x", (2,)), ob.value_info("m", (), 7)],
        "y",
        [ob.tensor(np.array(True), "t")],
    )
    yield "a loop", ob.model(loop)
    twice = ob.function("Twice", "a", "b", [ob.node("Add", "a a", "b")], domain="my")
    calls = ob.graph(
        [ob.node("Twice", "x", "h", domain="my"), ob.node("Twice", "h", "y", domain="my")], [ob.value_info("x", (2,))], "y"
    )
    yield "functions", ob.model(calls, functions=[twice], imports="my")
    arithmetic = [
        ob.node("Shape", "x", "s"),
        ob.node("Gather", "s i", "g"),
        ob.node("ConstantOfShape", "g", "o"),
        ob.node("Range", "z n d", "r"),
        ob.node("Add", "o r", "y"),
    ]
    numbers = [ob.tensor(np.array([0]), "i"), *(ob.tensor(np.float32(v), n) for n, v in (("z", 0), ("n", 4), ("d", 1)))]
    yield "computed", ob.model(ob.graph(arithmetic, [ob.value_info("x", (4, 2))], "y", numbers))
    constants = [
        ob.node("Constant", "", "a", value=np.arange(4, dtype=np.float32)),
        ob.node("Tile", "a k", "b"),
        ob.node("Einsum", "b b", "y", equation="i,j->ij"),
    ]
    yield "constants", ob.model(ob.graph(constants, "", "y", [ob.tensor(np.array([3]), "k")]))


def _own() -> Files:
    makers: dict[str, Callable[[], Model]] = {
        "loop": lambda: Model(decoder()), "sizes by numbers": lambda: Model(rows()), "recurrent": lambda: compiled(conv_lstm(),
        "n", 4, "time"),
        "dilated": lambda: compiled(tcn(), "n", 4, "time"), "two nodes": lambda: Model(_two()),
    }  # fmt: skip
    for name in ("branch by size 13", "branch by number 21", "shapes 13", "doubles 13", "integers 13", "rnn 9"):
        makers[name] = lambda name=name: fl.load(test_onnx_models.data(name))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m"
        for name, make in makers.items():
            make().save(path)
            yield name, path.read_bytes()
        compiled(tcn(), 1, 4, 9).save(path, packed=True)
        yield "packed", path.read_bytes()


def _two() -> Graph:
    nodes = [node("h = MatMul(x, w)"), node("y = Add(h, b)")]
    return graph({"x": ("n", 4)}, nodes, ["y"], {"w": np.ones((4, 3), np.float32), "b": np.zeros(3, np.float32)})


def _zip() -> Files:
    yield from list(_npz())
    yield "empty", build.archive()
    yield "texts", build.archive(build.Entry("a.txt", b"hello" * 30, True), build.Entry("b/", b""), build.Entry("b/c", b"x"))
    yield from ((name, content) for name, content in _torch() if content.startswith(b"PK"))


_MAKERS: dict[str, Callable[[], Files]] = {
    "npy": _npy, "npz": _npz, "torch": _torch, "safetensors": _safetensors, "index": _index,
    "checkpoint": _checkpoint, "msgpack": _msgpack, "hdf5": _hdf5,
    "keras": _keras, "gguf": _gguf,
    "tflite": _tflite, "onnx": _onnx, "own": _own, "zip": _zip,
}  # fmt: skip
