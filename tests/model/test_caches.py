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
Feeds = dict[str, Any]


def decoder(packed: bool = True, **attributes: Any) -> fl.Model:
    """As onnxruntime-genai's builder writes them: lengths come from the attention mask."""
    size, wide = HEADS * WIDTH, (HEADS + 2 * GROUPS) * WIDTH
    angles = np.arange(600)[:, None] / 50 ** (np.arange(WIDTH // 2) / (WIDTH // 2))
    constants = {
        "one": np.array([1], INT), "at": np.array(1, INT), "cos": np.cos(angles).astype(FLOAT),
        "sin": np.sin(angles).astype(FLOAT), "table": normal(VOCABULARY, size), "head": normal(size, VOCABULARY),
    }  # fmt: skip
    nodes = [
        Node("ReduceSum", ("attention_mask", "one"), ("sum",), {"keepdims": 0}),
        Node("Sub", ("sum", "one"), ("ends",), {}),
        Node("Shape", ("attention_mask",), ("shape",), {}),
        Node("Gather", ("shape", "at"), ("total",), {"axis": 0}),
        Node("Gather", ("table", "ids"), ("x0",), {}),
    ]
    caches, presents = [], []
    for i in range(LAYERS):
        constants[f"in{i}"], constants[f"out{i}"] = normal(size, wide) / 4, normal(size, size) / 4
        nodes.append(Node("MatMul", (f"x{i}", f"in{i}"), (f"qkv{i}",), {}))
        parts: tuple[str | None, ...] = (f"qkv{i}", None, None)
        if not packed:
            parts, sizes = (f"q{i}", f"k{i}", f"v{i}"), [size, GROUPS * WIDTH, GROUPS * WIDTH]
            constants[f"sizes{i}"] = np.array(sizes, INT)
            nodes.append(Node("Split", (f"qkv{i}", f"sizes{i}"), parts, {"axis": 2}))
        past, present = ([f"{word}.{i}.{part}" for part in ("key", "value")] for word in ("past", "present"))
        given = {"num_heads": HEADS, "kv_num_heads": GROUPS, "do_rotary": 1, **attributes}
        inputs = (*parts, *past, "ends", "total", "cos", "sin")
        nodes.append(Node("GroupQueryAttention", inputs, (f"y{i}", *present), given))
        nodes.append(Node("MatMul", (f"y{i}", f"out{i}"), (f"z{i}",), {}))
        nodes.append(Node("Add", (f"x{i}", f"z{i}"), (f"x{i + 1}",), {}))
        caches += [Value(name, ("b", GROUPS, "past", WIDTH), FLOAT) for name in past]
        presents += [Value(name, ("b", GROUPS, "total", WIDTH), FLOAT) for name in present]
    nodes.append(Node("MatMul", (f"x{LAYERS}", "head"), ("logits",), {}))
    inputs = (Value("ids", ("b", "s"), INT), Value("attention_mask", ("b", "total"), INT), *caches)
    return fl.Model(Graph(inputs, (Value("logits", ("b", "s", VOCABULARY), FLOAT), *presents), tuple(nodes), constants))


def feeds(model: fl.Model, ids: Any, caches: Feeds | None = None, lengths: Any = None) -> Feeds:
    """What a call with these tokens takes: caches of an earlier one's results, or empty ones."""
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


@pytest.mark.parametrize("packed", [True, False])
def test_a_cache_that_is_given_back_grows_where_it_is(variant: str, packed: bool) -> None:
    model, ids = decoder(packed), tokens(12)
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
@pytest.mark.parametrize("attributes", [{}, {"local_window_size": 5}, {"causal": 1, "scale": 0.1}, {"softcap": 3.0}])
def test_a_prompt_in_pieces_has_the_bits_of_the_whole(threads: None, threads_: int, attributes: Any) -> None:
    fl.set_num_threads(threads_)
    model, ids = decoder(**attributes), tokens(200)
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
    full = {**feeds(model, [[1], [2]], caches), "attention_mask": np.ones((2, 32), INT)}
    assert model.run(full)["present.0.key"].shape[2] == 32


def test_two_threads_that_go_on_from_one_cache() -> None:
    model = decoder()
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


def test_no_token_binds_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    from fastlayers.program.segment import Segment

    model = decoder()
    now = model.run(feeds(model, [1], model.run(feeds(model, tokens(3)))))
    made = []
    bind = Segment._bind
    monkeypatch.setattr(Segment, "_bind", lambda *args: made.append(1) or bind(*args))
    for i in range(500):
        now = model.run(feeds(model, [i % VOCABULARY], now))
    assert 0 < len(made) < 8


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
