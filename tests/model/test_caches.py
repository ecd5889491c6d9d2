"""Decoders with caches that are given back: they grow where they are, and nobody who goes on from an older one sees it."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.graph import Graph, Node, Value
from tests.program.graphs import normal

pytestmark = pytest.mark.without("cuda")

VOCABULARY, HEADS, GROUPS, WIDTH, LAYERS = 50, 4, 2, 16, 2
INT, FLOAT = np.dtype(np.int64), np.dtype(np.float32)
PASTS, PRESENTS = ([[f"{word}.{i}.{part}" for part in ("key", "value")] for i in range(LAYERS)] for word in ("past", "present"))
Feeds = dict[str, Any]


def grouped(i: int, packed: bool, attributes: Any) -> list[Node]:
    """As onnxruntime-genai's builder writes a layer."""
    parts: tuple[str | None, ...] = (f"q{i}", f"k{i}", f"v{i}") if not packed else (f"qkv{i}", None, None)
    nodes = [] if packed else [Node("Split", (f"qkv{i}", "sizes"), parts, {"axis": 2})]
    inputs = (*parts, *PASTS[i], "ends", "total", "cos", "sin", None, attributes.pop("bias", None))
    given = {"num_heads": HEADS, "kv_num_heads": GROUPS, "do_rotary": 1, **attributes}
    return [*nodes, Node("GroupQueryAttention", inputs, (f"y{i}", *PRESENTS[i]), given)]


def attention(i: int, attributes: Any) -> list[Node]:
    """ONNX's Attention, and, with the mask that it makes of one of ones and zeros, onnxruntime's MultiHeadAttention."""
    given = {"q_num_heads": HEADS, "kv_num_heads": GROUPS, "is_causal": 1, **attributes}
    padded = given.pop("padded", False)
    mask = Node("PaddingMask", ("attention_mask", f"q{i}", f"k{i}", PASTS[i][0]), (f"mask{i}",), {"filter": -1e30})
    parts = (f"q{i}", f"k{i}", f"v{i}")
    inputs = (*parts, f"mask{i}" if padded else "seen", *PASTS[i])
    nodes = [Node("Split", (f"qkv{i}", "sizes"), parts, {"axis": 2}), Node("Attention", inputs, (f"y{i}", *PRESENTS[i]), given)]
    return [*nodes[:1], mask, *nodes[1:]]


def joined(i: int, attributes: Any) -> list[Node]:
    """As torch's exporter spells it out, with the keys of each group repeated for its heads."""
    nodes = [Node("Split", (f"qkv{i}", "sizes"), (f"q{i}", f"k{i}", f"v{i}"), {"axis": 2})]
    for part, past, present in (("q", None, ""), *zip("kv", PASTS[i], PRESENTS[i], strict=True)):
        one, two = f"{part}{i}.0", f"{part}{i}.1" if past is None else f"{part}{i}.new"
        nodes.append(Node("Reshape", (f"{part}{i}", "heads" if past is None else "groups"), (one,), {}))
        nodes.append(Node("Transpose", (one,), (two,), {"perm": (0, 2, 1, 3)}))
        if past is None:
            continue
        size = f"{part}{i}.size"
        nodes += [
            Node("Concat", (past, two), (present,), {"axis": -2}),
            Node("Shape", (present,), (f"{size}.all",), {}),
            Node("Gather", (f"{size}.all", "two"), (f"{size}.keys",), {"axis": 0}),
            Node("Gather", (f"{size}.all", "zero"), (f"{size}.batch",), {"axis": 0}),
            Node("Concat", (f"{size}.batch", "groups1", "repeats", f"{size}.keys", "width"), (f"{size}.five",), {"axis": 0}),
            Node("Concat", (f"{size}.batch", "heads1", f"{size}.keys", "width"), (f"{size}.four",), {"axis": 0}),
            Node("Unsqueeze", (present, "two"), (f"{part}{i}.2",), {}),
            Node("Expand", (f"{part}{i}.2", f"{size}.five"), (f"{part}{i}.3",), {}),
            Node("Reshape", (f"{part}{i}.3", f"{size}.four"), (f"{part}{i}.1",), {}),
        ]
    return [
        *nodes,
        Node("Transpose", (f"k{i}.1",), (f"k{i}.t",), {"perm": (0, 1, 3, 2)}),
        Node("MatMul", (f"q{i}.1", f"k{i}.t"), (f"s{i}.0",), {}),
        Node("Mul", (f"s{i}.0", "scale"), (f"s{i}.1",), {}),
        Node("Add", (f"s{i}.1", "bias"), (f"s{i}.2",), {}),
        Node("Softmax", (f"s{i}.2",), (f"s{i}.3",), {"axis": -1}),
        Node("MatMul", (f"s{i}.3", f"v{i}.1"), (f"y{i}.0",), {}),
        Node("Transpose", (f"y{i}.0",), (f"y{i}.1",), {"perm": (0, 2, 1, 3)}),
        Node("Reshape", (f"y{i}.1", "flat"), (f"y{i}",), {}),
    ]


LENGTHS = [
    Node("ReduceSum", ("attention_mask", "one"), ("sum",), {"keepdims": 0}),
    Node("Sub", ("sum", "one"), ("ends",), {}),
    Node("Shape", ("attention_mask",), ("shape",), {}),
    Node("Gather", ("shape", "at"), ("total",), {"axis": 0}),
]
# 0 for what a query may see, and what forbids the rest: what comes later, and padding.
MASK = [
    Node("Shape", ("x0",), ("sizes.x",), {}),
    Node("Gather", ("sizes.x", "at"), ("queries",), {"axis": 0}),
    Node("Shape", (PASTS[0][0],), ("sizes.past",), {}),
    Node("Gather", ("sizes.past", "second"), ("earlier",), {"axis": 0}),
    Node("Add", ("earlier", "queries"), ("keys",), {}),
    Node("Range", ("none", "keys", "at"), ("positions",), {}),
    Node("Range", ("earlier", "keys", "at"), ("own",), {}),
    Node("Unsqueeze", ("own", "one"), ("own.column",), {}),
    Node("LessOrEqual", ("positions", "own.column"), ("earlier.or.own",), {}),
    Node("Cast", ("attention_mask",), ("there",), {"to": 9}),
    Node("Unsqueeze", ("there", "middle"), ("there.four",), {}),
    Node("And", ("there.four", "earlier.or.own"), ("seen",), {}),
    Node("Where", ("seen", "allowed", "forbidden"), ("bias",), {}),
]
KINDS: dict[str, Any] = {
    "packed": lambda i, **a: grouped(i, True, a),
    "grouped": lambda i, **a: grouped(i, False, a),
    "biased": lambda i, **a: grouped(i, False, {"bias": "bias", **a}),
    "attention": lambda i, **a: attention(i, a),
    "padded": lambda i, **a: attention(i, {"padded": True, **a}),
    "joined": lambda i, **a: joined(i, a),
}


def decoder(kind: str = "packed", **attributes: Any) -> fl.Model:
    """A network of two layers, with the attention of a kind; lengths come from the attention mask."""
    size, wide = HEADS * WIDTH, (HEADS + 2 * GROUPS) * WIDTH
    angles = np.arange(600)[:, None] / 50 ** (np.arange(WIDTH // 2) / (WIDTH // 2))
    whole = {
        "one": [1], "at": 1, "second": 2, "none": 0, "zero": [0], "two": [2], "middle": [1, 2], "groups1": [GROUPS],
        "heads1": [HEADS], "repeats": [HEADS // GROUPS], "width": [WIDTH], "flat": [0, 0, size], "heads": [0, 0, HEADS, WIDTH],
        "groups": [0, 0, GROUPS, WIDTH], "sizes": [size, GROUPS * WIDTH, GROUPS * WIDTH],
    }  # fmt: skip
    floats = {"cos": np.cos(angles), "sin": np.sin(angles), "scale": 0.25, "allowed": 0, "forbidden": -3e38}
    constants = {name: np.array(value, INT) for name, value in whole.items()}
    constants.update((name, np.array(value, FLOAT)) for name, value in floats.items())
    constants["table"], constants["head"] = normal(VOCABULARY, size), normal(size, VOCABULARY)
    nodes = [Node("Gather", ("table", "ids"), ("x0",), {}), *LENGTHS, *MASK]
    for i in range(LAYERS):
        constants[f"in{i}"], constants[f"out{i}"] = normal(size, wide) / 4, normal(size, size) / 4
        nodes.append(Node("MatMul", (f"x{i}", f"in{i}"), (f"qkv{i}",), {}))
        nodes += KINDS[kind](i, **attributes)
        nodes.append(Node("MatMul", (f"y{i}", f"out{i}"), (f"z{i}",), {}))
        nodes.append(Node("Add", (f"x{i}", f"z{i}"), (f"x{i + 1}",), {}))
    nodes.append(Node("MatMul", (f"x{LAYERS}", "head"), ("logits",), {}))
    caches = [Value(name, ("b", GROUPS, "past", WIDTH), FLOAT) for names in PASTS for name in names]
    presents = [Value(name, ("b", GROUPS, "total", WIDTH), FLOAT) for names in PRESENTS for name in names]
    inputs = (Value("ids", ("b", "s"), INT), Value("attention_mask", ("b", "total"), INT), *caches)
    return fl.Model(Graph(inputs, (Value("logits", ("b", "s", VOCABULARY), FLOAT), *presents), tuple(nodes), constants))


def feeds(model: fl.Model, ids: Any, caches: Feeds | None = None, lengths: Any = None) -> Feeds:
    """The inputs of a call with these tokens: caches of an earlier one's results, or empty ones."""
    ids = np.atleast_2d(np.asarray(ids, INT))
    names = [spec.name for spec in model.inputs if spec.name.startswith("past")]
    empty = np.zeros((len(ids), GROUPS, 0, WIDTH), FLOAT)
    past = {name: empty if caches is None else caches[name.replace("past", "present")] for name in names}
    total = past[names[0]].shape[2] + ids.shape[1]
    mask = np.ones((len(ids), total), INT) if lengths is None else (np.arange(total) < np.reshape(lengths, (-1, 1))).astype(INT)
    return {"ids": ids, "attention_mask": mask, **past}


def plain(results: Feeds) -> Feeds:
    """Copies of results, in which a model knows nothing of its own."""
    return {name: np.array(a, order="C") for name, a in results.items()}


def same(one: Feeds, other: Feeds) -> None:
    """That results have the same bits."""
    assert list(one) == list(other)
    for name, array in one.items():
        assert np.array_equal(array, other[name]), name


def tokens(count: int, batch: int = 1) -> Any:
    return np.random.default_rng(count).integers(0, VOCABULARY, (batch, count))


def memory_of(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


@pytest.fixture
def threads() -> Iterator[None]:
    before = fl.get_num_threads()
    yield
    fl.set_num_threads(before)


@pytest.mark.parametrize("kind", KINDS)
def test_a_cache_that_is_given_back_grows_where_it_is(variant: str, kind: str) -> None:
    model, ids = decoder(kind), tokens(12)
    whole = model.run(feeds(model, ids))
    now = model.run(feeds(model, ids[:, :3]))
    now, places = model.run(feeds(model, ids[:, 3:4], now)), set()
    for i in range(4, 12):
        now = model.run(feeds(model, ids[:, i : i + 1], now))
        places.add(memory_of(now["present.0.key"]))
        assert now["logits"].shape == (1, 1, VOCABULARY)
        assert now["present.1.value"].shape == (1, GROUPS, i + 1, WIDTH)
    assert len(places) == 1
    for name in list(now)[1:]:
        np.testing.assert_allclose(now[name], whole[name], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(now["logits"][:, 0], whole["logits"][:, -1], rtol=1e-3, atol=1e-3)


def test_forks_stale_caches_and_copies_of_them_go_on_alike() -> None:
    model, ids = decoder(), tokens(10)
    old = model.run(feeds(model, ids[:, :5]))
    start = model.run(feeds(model, ids[:, 5:6], old))
    before = plain(start)
    first = model.run(feeds(model, [7], start))
    kept = plain(first)
    second = model.run(feeds(model, [8], start))  # of the same past
    same(start, before)
    same(first, kept)
    same(first, model.run(feeds(model, [7], before)))
    same(second, model.run(feeds(model, [8], before)))
    further = model.run(feeds(model, [9], second))
    same(further, model.run(feeds(model, [9], plain(second))))
    again = model.run(feeds(model, [9], second))  # stale now
    same(again, further)
    same(model.run(feeds(model, [3], first)), model.run(feeds(model, [3], kept)))
    same(first, kept)


def test_caches_of_other_forms_are_copied() -> None:
    model, other, ids = decoder(), decoder(), tokens(6)
    start = model.run(feeds(model, ids[:, 5:], model.run(feeds(model, ids[:, :5]))))
    given = plain(start)
    want = model.run(feeds(model, [7], given))

    def each(change: Any) -> Feeds:
        return {name: change(a) for name, a in given.items()}

    def frozen(array: np.ndarray) -> np.ndarray:
        array = array.copy()
        array.flags.writeable = False
        return array

    def apart(array: np.ndarray) -> np.ndarray:
        return np.repeat(array, 2, 2)[:, :, ::2]

    for change in (frozen, apart, lambda a: a.astype(np.float64), lambda a: a.astype(">f4"), lambda a: a.tolist() and a):
        same(model.run(feeds(model, [7], each(change))), want)
    for array in each(lambda a: a).values():
        assert array.flags.writeable  # nothing was done to what is not ours
    same(model.run(feeds(model, [7], given)), want)
    same(other.run(feeds(other, [7], start)), want)  # of another model
    same(model.run(feeds(model, [7], start)), want)  # to which it was no use, as it was a copy there
    swapped = {**given, "present.0.key": given["present.1.key"]}
    views = model.run(feeds(model, [1], given))
    mixed = {**views, "present.0.key": views["present.1.key"]}  # one array twice
    same(model.run(feeds(model, [2], mixed)), model.run(feeds(model, [2], plain(mixed))))
    assert not np.array_equal(model.run(feeds(model, [7], swapped))["logits"], want["logits"])


def test_results_are_views_that_cannot_be_written_to() -> None:
    model = decoder()
    first = model.run(feeds(model, tokens(3)))
    assert all(a.flags.writeable and a.flags.c_contiguous for a in first.values())
    second = model.run(feeds(model, [1], first))
    assert second["logits"].flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        second["present.0.key"][...] = 0
    out = {name: np.empty(a.shape, a.dtype) for name, a in plain(second).items()}
    assert model.run(feeds(model, [1], first), out=out)["present.0.key"] is out["present.0.key"]
    same(out, second)


@pytest.mark.parametrize("threads_", [1, 2])
@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        *((kind, {}) for kind in KINDS),
        ("packed", {"local_window_size": 5}),
        ("packed", {"causal": 1, "scale": 0.1}),
        ("packed", {"softcap": 3.0}),
        ("attention", {"softcap": 3.0}),
        ("attention", {"left_window_size": 5}),
    ],
)
def test_a_prompt_in_pieces_has_the_bits_of_the_whole(threads: None, threads_: int, kind: str, attributes: Any) -> None:
    fl.set_num_threads(threads_)
    model, ids = decoder(kind, **attributes), tokens(200)
    whole = model.run(feeds(model, ids))
    for sizes in ((70, 1, 1, 60, 3, 65), (1, 199), (199, 1)):
        now, logits, at = None, [], 0
        for size in sizes:
            now = model.run(feeds(model, ids[:, at : at + size], now))
            logits.append(now["logits"])
            at += size
        assert np.array_equal(np.concatenate(logits, 1), whole["logits"])
        for name in list(whole)[1:]:
            assert np.array_equal(now[name], whole[name]), name  # type: ignore[index]


@pytest.mark.parametrize("kind", ["attention", "joined", "padded"])
def test_padding_on_the_left(kind: str) -> None:
    """Caches of entries that begin later: the mask says so, with every call."""
    model, ids, begins = decoder(kind), tokens(14, 2), np.array([[4], [0]])
    growing, now, want = model._growing, None, None
    for begin, end in ((0, 6), (6, 7), (7, 8), (8, 11), (11, 12), (12, 14)):
        given = feeds(model, ids[:, begin:end], now)
        mask = (np.arange(end) >= begins).astype(INT)
        now = model.run({**given, "attention_mask": mask})
        model._growing = None
        want = model.run({**feeds(model, ids[:, begin:end], want), "attention_mask": mask})
        model._growing = growing
        same(now, want)


@pytest.mark.parametrize("threads_", [1, 2])
def test_rows_of_different_lengths_have_the_bits_that_they_have_alone(threads: None, threads_: int) -> None:
    fl.set_num_threads(threads_)
    model, lengths = decoder(), np.array([3, 90, 41])
    ids, more = tokens(90, 3), tokens(8, 3)
    alone = [model.run(feeds(model, ids[b : b + 1, : lengths[b]])) for b in range(3)]
    now = model.run(feeds(model, ids, None, lengths))
    for i in range(8):
        for b in range(3):
            alone[b] = model.run(feeds(model, more[b : b + 1, i : i + 1], alone[b]))
        lengths = lengths + 1
        now = model.run(feeds(model, more[:, i : i + 1], now, lengths))
        for b in range(3):
            assert np.array_equal(now["logits"][b], alone[b]["logits"][0]), (i, b)
            for name in list(now)[1:]:
                assert np.array_equal(now[name][b, :, : lengths[b]], alone[b][name][0]), (i, b, name)


def test_past_and_present_in_one_buffer() -> None:
    """A past of the most keys that there will be; the lengths say how many there are."""
    model, ids = decoder(), tokens(20, 2)
    caches = {f"present.{i}.{part}": np.zeros((2, GROUPS, 32, WIDTH), FLOAT) for i in range(LAYERS) for part in ("key", "value")}
    now: Feeds | None = None
    places = set()
    for i in range(20):
        now = model.run(feeds(model, ids[:, i : i + 1], now))
        given = {**feeds(model, ids[:, i : i + 1], caches), "attention_mask": np.ones((2, i + 1), INT)}
        caches = model.run(given)
        assert np.array_equal(caches["logits"], now["logits"])
        assert np.array_equal(caches["present.1.key"][:, :, : i + 1], now["present.1.key"])
        assert caches["present.0.key"].shape == (2, GROUPS, 32, WIDTH)
        places.add(memory_of(caches["present.0.key"]))
    assert len(places) <= 2
    # Going back is a fork: what was there before stays.
    before = plain(caches)
    back = {**feeds(model, [[1], [2]], caches), "attention_mask": np.ones((2, 11), INT)}
    again = model.run(back)
    same(caches, before)
    same(again, model.run({**back, **{n.replace("present", "past"): a for n, a in before.items() if n != "logits"}}))
    # As the operator has it: after the last key there is nothing, whatever the buffer has there.
    assert before["present.0.key"][:, :, 19].any() and not again["present.0.key"][:, :, 11:].any()
    full = {**feeds(model, [[1], [2]], caches), "attention_mask": np.ones((2, 32), INT)}
    assert model.run(full)["present.0.key"].shape[2] == 32


def test_two_threads_that_go_on_from_one_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    from fastlayers.program.segment import Binding

    model, run, both = decoder(), Binding.run, threading.Barrier(2)

    def waiting(*args: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            both.wait(60)  # until both have their caches
        return run(*args)

    monkeypatch.setattr(Binding, "run", waiting)
    start = model.run(feeds(model, [4], model.run(feeds(model, tokens(30)))))
    wanted = [model.run(feeds(model, [i], plain(start))) for i in range(2)]
    for _ in range(20):
        base = model.run(feeds(model, [4], model.run(feeds(model, tokens(30)))))
        found: list[Any] = [None, None]
        gate = threading.Barrier(2)

        def go(i: int, base: Feeds = base, found: list[Any] = found, gate: threading.Barrier = gate) -> None:
            gate.wait()
            found[i] = model.run(feeds(model, [i], base))

        workers = [threading.Thread(target=go, args=(i,)) for i in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        for i in range(2):
            same(found[i], wanted[i])


def test_the_memory_of_caches_goes_with_them() -> None:
    model = decoder()
    growing = model._growing
    now = model.run(feeds(model, [1], model.run(feeds(model, tokens(3)))))
    assert len(growing._known) == 1
    for i in range(300):
        now = model.run(feeds(model, [i % VOCABULARY], now))
        assert len(growing._known) == 1
    room = now["present.0.key"].base.nbytes
    assert room < 2 * now["present.0.key"].nbytes + 300_000
    for _ in range(5):
        model.run(feeds(model, [2], model.run(feeds(model, [1], model.run(feeds(model, tokens(3)))))))
    assert len(growing._known) == 1
    gc.disable()
    try:
        del now
        assert not growing._known
    finally:
        gc.enable()


@pytest.mark.parametrize("kind", KINDS)
def test_no_token_binds_anything(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    from fastlayers.program.segment import Segment

    model = decoder(kind)
    now = model.run(feeds(model, [1], model.run(feeds(model, tokens(3)))))
    made = []
    bind = Segment._bind
    monkeypatch.setattr(Segment, "_bind", lambda *args: made.append(1) or bind(*args))
    for i in range(500):
        now = model.run(feeds(model, [i % VOCABULARY], now))
    assert 0 < len(made) < 6


def test_wrong_caches_get_the_errors_that_they_had() -> None:
    model = decoder()
    now = model.run(feeds(model, [1], model.run(feeds(model, tokens(3)))))
    good = feeds(model, [1], now)
    for name, change in {
        "past.0.key": lambda a: a[:, :1],
        "past.0.value": lambda a: a[..., :3],
        "past.1.key": lambda a: a[:, :, :2],
        "attention_mask": lambda a: a[:, :0],
        "ids": lambda a: a + VOCABULARY,
        "past.1.value": lambda a: a.astype(np.complex64),
    }.items():
        with pytest.raises(fl.Error):
            model.run({**good, name: change(good[name])})
        good = feeds(model, [1], model.run(feeds(model, [1], plain(now))))
    with pytest.raises(fl.Error, match="lacks"):
        model.run({n: a for n, a in good.items() if n != "past.0.key"})


def test_a_file_cannot_ask_for_writing_to_its_inputs() -> None:
    model = decoder(in_place=1)
    caches = plain(model.run(feeds(model, [1], model.run(feeds(model, tokens(3))))))
    before = plain(caches)
    model.run(feeds(model, [1], caches))
    same(caches, before)


def test_streams_keep_the_caches() -> None:
    model, ids = decoder(), tokens(9)
    stream = model.stream()
    now: Feeds | None = None
    for i in range(9):
        now = model.run(feeds(model, ids[:, i : i + 1], now))
        logits = stream(ids[:, i : i + 1], np.ones((1, i + 1), INT))
        assert np.array_equal(logits, now["logits"])
        if i == 5:
            other = stream.clone()
            fork = plain(now)
    mine = other(ids[:, :1], np.ones((1, 7), INT))
    assert np.array_equal(mine, model.run(feeds(model, ids[:, :1], fork))["logits"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["past.0.key", "present.1.value"])
def test_a_cache_that_something_else_reads_does_not_grow(kind: str, name: str) -> None:
    graph = decoder(kind)._graph
    more = Node("ReduceMax", (name,), ("largest",), {"keepdims": 0})
    outputs = (*graph.outputs, Value("largest", None, FLOAT))
    model = fl.Model(Graph(graph.inputs, outputs, (*graph.nodes, more), graph.constants))
    assert model._growing is None
    now = model.run(feeds(model, [1], model.run(feeds(model, tokens(3)))))
    past = name.replace("past", "present")
    want = now[past] if name == past else now[past][:, :, :3]
    assert now["largest"] == want.max()
