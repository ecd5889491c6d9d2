"""Sequences of any lengths in one batch: the bits that each has alone, whoever joins, leaves, waits, is interrupted or fails."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.graph import Graph, Node
from fastlayers.operators.builder import CONSTANT, Call, Ref
from fastlayers.text import Generator
from fastlayers.text._running import Running
from tests.model import test_caches as caches

from .folders import decoder, write_json

# Each with whether its masks are the same for a row of a batch and for it alone, so that they are made of all at once.
KINDS: list[tuple[str, dict[str, Any], bool]] = [
    ("packed", {}, True), ("grouped", {"local_window_size": 7}, True), ("biased", {}, False), ("attention", {}, False),
    ("attention", {"left_window_size": 5}, False), ("padded", {}, False), ("joined", {}, False),
]  # fmt: skip


def network(kind: str, **attributes: Any) -> fl.Model:
    """A decoder of `test_caches` with the names that text models have."""
    graph = caches.decoder(kind, **attributes)._graph
    new = {name: name.replace("past", "past_key_values") for names in caches.PASTS for name in names} | {"ids": "input_ids"}
    nodes = tuple(Node(n.op, tuple(new.get(i or "", i) for i in n.inputs), n.outputs, n.attributes) for n in graph.nodes)
    inputs = tuple(value._replace(name=new.get(value.name, value.name)) for value in graph.inputs)
    return fl.Model(Graph(inputs, graph.outputs, nodes, graph.constants))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("ids")
    write_json(made / "config.json", {"max_position_embeddings": 512})
    return made


@pytest.fixture(scope="module")
def model() -> fl.Model:
    return network("grouped")


def prompts(count: int, seed: int = 0) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    found: list[list[int]] = []
    for n in rng.integers(1, 40, count):
        begin = found[rng.integers(len(found))][: rng.integers(1, 30)] if found and rng.random() < 0.4 else []
        found.append([*begin, *rng.integers(0, caches.VOCABULARY, n).tolist()])
    return found


# All that is told of a token, so that equal results are equal bits of logits.
HOW: dict[str, Any] = {"ignore_eos": True, "logprobs": 50, "temperature": 0.9, "seed": 3}


def alone(folder: Path, model: fl.Model, given: list[list[int]], count: int) -> list[Any]:
    """Results of each in a Generator of its own."""
    return [Generator(folder, model=model, cache_bytes=0, batch_size=1).generate(ids, count, **HOW) for ids in given]


@pytest.mark.parametrize(("kind", "attributes", "alike"), KINDS, ids=str)
def test_rows_have_the_bits_that_they_have_alone(
    folder: Path, kind: str, attributes: dict[str, Any], alike: bool, threads: int
) -> None:
    model, given = network(kind, **attributes), prompts(9)
    want = alone(folder, model, given, 20)
    assert len({tuple(one.ids) for one in want}) == 9
    made = Generator(folder, model=model)
    assert made.model._growing is not None and made.model._growing._alike is alike
    for _ in range(2):  # the second time all prompts are known
        assert made.generate(given, 20, **HOW) == want
    few = Generator(folder, model=model, batch_size=3)  # others wait, and their caches are given to others
    assert few.generate(given, 20, **HOW) == want
    assert few.generate(given[::-1], 20, **HOW) == want[::-1]


def test_variants(folder: Path, variant: str) -> None:
    given = prompts(4)
    with fl.kernels.use(variant):
        model = network("grouped")
        found, want = Generator(folder, model=model).generate(given, 6, **HOW), alone(folder, model, given, 6)
    for one, other in zip(found, want, strict=True):
        assert one.ids == other.ids
        if variant != "reference":  # the sums of numpy's products depend on the number of rows
            assert one == other


def test_they_join_and_leave(folder: Path, model: fl.Model) -> None:
    given = prompts(24, 1)
    want = alone(folder, model, given, 40)
    made, rng = Generator(folder, model=model, batch_size=5, cache_bytes=300_000), np.random.default_rng(0)
    kept: dict[int, Any] = {}
    streams: dict[int, Iterator[Any]] = {}
    while len(kept) < 12:
        if len(streams) < 7 and (new := [i for i in range(24) if i not in streams and i not in kept]):
            i = int(rng.choice(new))
            streams[i] = made.generate(given[i], 40, stream=True, **HOW)
        i = int(rng.choice([*streams]))
        found = []
        for piece in streams[i]:  # some at a time, while others are ahead
            found += piece.ids
            if rng.random() < 0.2:
                break
        kept_so_far = kept.pop((i, "part"), []) + found  # type: ignore[call-overload]
        assert kept_so_far == want[i].ids[: len(kept_so_far)]
        if len(kept_so_far) == 40:
            kept[i] = True
            del streams[i]
        elif rng.random() < 0.05:
            streams.pop(i).close()  # type: ignore[attr-defined]
        else:
            kept[i, "part"] = kept_so_far  # type: ignore[index]
            continue
    for stream in streams.values():
        stream.close()  # type: ignore[attr-defined]
    running = made._running
    assert not running._sequences and not running._queue and not running._rows.lengths
    assert made.generate(given, 40, **HOW) == want


def test_threads(folder: Path, model: fl.Model) -> None:
    given = prompts(16, 2)
    want = alone(folder, model, given, 30)
    made = Generator(folder, model=model, batch_size=6)
    widths: list[int] = []
    append = type(made._running._rows).append

    def watched(self: Any, begin: int, ids: np.ndarray) -> Any:
        widths.append(len(ids))
        return append(self, begin, ids)

    made._running._rows.append = watched.__get__(made._running._rows)  # type: ignore[method-assign]
    found: dict[int, Any] = {}
    ready = threading.Barrier(16)

    def run(i: int) -> None:
        ready.wait()
        if i % 2:
            found[i] = [token for piece in made.generate(given[i], 30, stream=True, **HOW) for token in piece.ids]
        else:
            found[i] = made.generate(given[i], 30, **HOW).ids

    workers = [threading.Thread(target=run, args=(i,)) for i in range(16)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [found[i] for i in range(16)] == [one.ids for one in want]
    assert max(widths) == 6 and sum(width > 1 for width in widths) > 30  # they did run together


def test_one_that_is_not_taken_waits(folder: Path, model: fl.Model) -> None:
    """A stream that nobody reads is a few tokens ahead, and others go on."""
    made = Generator(folder, model=model)
    slow = made.generate([1, 2, 3], 100, stream=True, **HOW)
    first = next(slow)
    made.generate([4, 5], 200, **HOW)
    (one,) = made._running._sequences
    assert one.ahead and len(one.ids) < 40
    assert first.ids + [i for piece in slow for i in piece.ids] == alone(folder, model, [[1, 2, 3]], 100)[0].ids


def test_a_request_of_many_makes_room(folder: Path, model: fl.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Generator(folder, model=model, batch_size=4, cache_bytes=0)
    order: list[int] = []
    many = made.generate  # eight prompts of 100 tokens, then one of 3 of another thread
    given = prompts(8, 4)
    step = made._running._step
    short: dict[str, Any] = {}
    worker = threading.Thread(target=lambda: short.update(one=made.generate([7, 7], 3, **HOW)))

    def watched() -> bool:
        order.append(len(made._running._sequences))
        if len(order) == 20:
            worker.start()
            while not made._running._new:
                pass
        return step()

    monkeypatch.setattr(made._running, "_step", watched)
    found = many(given, 100, **HOW)
    worker.join()
    assert len(order) > 100 and max(order) == 4
    assert found == alone(folder, model, given, 100) and short["one"] == alone(folder, model, [[7, 7]], 3)[0]


def test_what_interrupts_a_step_changes_nothing(folder: Path, model: fl.Model) -> None:
    """Ctrl-C in the thread that runs a step for all ends its own sequences; the others compute again, and have the same bits."""
    given = prompts(6, 5)
    want = alone(folder, model, given, 12)
    made = Generator(folder, model=model, cache_bytes=0)
    running, rng = made._running, np.random.default_rng(1)
    sequences = [made._sequence(i, ids, *made._how(12, **_settings())) for i, ids in enumerate(given)]
    running.join(sequences)
    while any(one.finish is None for one in sequences):
        method = ("_prompt", "_begin", "_tokens", "_ran")[rng.integers(4)]
        plain = getattr(Running, method)

        def broken(*args: Any, plain: Any = plain) -> Any:
            if rng.random() < 0.5:
                plain(running, *args)
            raise KeyboardInterrupt

        if rng.random() < 0.3:
            setattr(running, method, broken)
        try:
            running.step()
        except KeyboardInterrupt:
            pass
        finally:
            running.__dict__.pop(method, None)
        for one in sequences:
            list(one.events())
    running.step()
    assert [one.ids[one.prompt :] for one in sequences] == [one.ids for one in want]
    assert not running._sequences and not running._queue


def _settings() -> dict[str, Any]:
    return {"temperature": 0.9, "seed": 3, "ignore_eos": True}


def test_an_error_ends_its_own_sequence_alone(tmp_path: Path) -> None:
    """The network has 512 positions, and says that it has more."""
    write_json(decoder(tmp_path) / "config.json", {"max_position_embeddings": 4096})
    made = Generator(tmp_path, cache_bytes=0)
    found: dict[int, Any] = {}
    given = [[5] * 500, [6, 7], [8] * 30]

    def run(i: int) -> None:
        try:
            found[i] = made.generate(given[i], 40, **HOW).ids
        except fl.Error as error:
            found[i] = error

    workers = [threading.Thread(target=run, args=(i,)) for i in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert isinstance(found[0], fl.ArgumentError) and "out of range" in str(found[0])
    assert [found[i] for i in (1, 2)] == [Generator(tmp_path).generate(ids, 40, **HOW).ids for ids in given[1:]]
    assert not made._running._sequences


def test_errors_in_a_memory_of_rows(folder: Path) -> None:
    """The network has 600 positions, and its folder says nothing; others of the batch go on."""
    model = network("grouped")
    write_json(folder / "nothing" / "config.json", {})
    made = Generator(folder / "nothing", model=model, cache_bytes=0)
    sequences = [made._sequence(i, ids, *made._how(30, **_settings())) for i, ids in enumerate([[5] * 590, [6, 7]])]
    made._running.join(sequences)
    while made._running.step():
        list(sequences[1].events())
    assert isinstance(sequences[0].error, fl.Error) and sequences[1].error is None
    assert sequences[1].ids[2:] == alone(folder, model, [[6, 7]], 30)[0].ids


def test_memory_is_bounded(folder: Path, model: fl.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sequence whose cache has no room waits for the others to end; one that would never have any ends with an error."""
    given = prompts(4, 6)
    want = alone(folder, model, given, 30)
    bytes_of_one = 2 * 2 * 2 * 16 * 4 * 192  # two layers of keys and values, two heads
    monkeypatch.setattr(type(model._growing), "most", 2 * bytes_of_one)
    made = Generator(folder, model=model, cache_bytes=0)
    assert made.generate(given, 30, **HOW) == want and made._running.nbytes <= 2 * bytes_of_one
    with pytest.raises(fl.LimitError, match="caches of 1 sequences of up to 448 tokens take 229376 bytes: more"):
        made.generate([5] * 400, 30)
    assert made.generate(given, 30, **HOW) == want


def test_a_network_that_needs_one_length_runs_row_by_row(folder: Path, model: fl.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    given = prompts(5, 7)
    want = alone(folder, model, given, 12)
    made = Generator(folder, model=model)
    monkeypatch.setattr(type(model._growing), "append", lambda *_: None)
    assert made.generate(given, 12, **HOW) == want
    assert type(made._running._rows).__name__ == "Apart"


def test_a_network_with_scales_of_whole_arrays(folder: Path) -> None:
    """A network that depends on the rest of a batch, or on how a prompt is cut, runs alone and always cut alike."""
    graph = network("grouped")._graph
    nodes = list(graph.nodes)
    at = next(i for i, node in enumerate(nodes) if node.outputs == ("qkv0",))
    few = Node("DynamicQuantizeLinear", ("x0",), ("x0.q", "x0.s", "x0.z"), {})
    back = Node("DequantizeLinear", ("x0.q", "x0.s", "x0.z"), ("x0.few",), {})
    nodes[at : at + 1] = [few, back, Node("MatMul", ("x0.few", nodes[at].inputs[1]), nodes[at].outputs, {})]
    model = fl.Model(Graph(graph.inputs, graph.outputs, tuple(nodes), graph.constants))
    given = prompts(6, 8)
    want = alone(folder, model, given, 12)
    made = Generator(folder, model=model, batch_size=2)
    assert made._decoder.alone and made.generate(given, 12, **HOW) == want
    sequences = [made._sequence(i, ids, *made._how(12, **_settings())) for i, ids in enumerate(given)]
    running = made._running
    running.join(sequences)
    for i in range(400):
        running.step()
        if i in (5, 40):
            running._again(running._made())
        for one in sequences:
            list(one.events())
    assert [one.ids[one.prompt :] for one in sequences] == [one.ids for one in want]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_in_the_middle(folder: Path, model: fl.Model) -> None:
    """A child goes on with its streams and begins others, whatever other threads of the parent were doing."""
    given = prompts(3, 9)
    want = alone(folder, model, given, 60)
    made = Generator(folder, model=model)
    stream = made.generate(given[0], 60, stream=True, **HOW)
    first = [token for _ in range(5) for token in next(stream).ids]
    ending = threading.Event()

    def run() -> None:
        while not ending.is_set():
            assert made.generate(given[1], 60, **HOW) == want[1]

    worker = threading.Thread(target=run)
    worker.start()
    try:
        for _ in range(3):
            child = os.fork()
            if not child:
                right = first + [token for piece in stream for token in piece.ids] == want[0].ids
                os._exit(0 if right and made.generate(given[2], 60, **HOW) == want[2] else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        ending.set()
        worker.join()
    assert first + [token for piece in stream for token in piece.ids] == want[0].ids


@pytest.mark.exhaustive
def test_nothing_is_left_of_a_thousand_requests(folder: Path, model: fl.Model) -> None:
    made = Generator(folder, model=model, cache_bytes=1 << 20)
    rng = np.random.default_rng(0)
    sizes = []
    for i in range(1000):
        made.generate(rng.integers(0, 50, rng.integers(1, 60)).tolist(), 5, ignore_eos=True)
        if i % 100 == 99:
            sizes.append(_resident())
    assert not made._running._sequences and made._running.nbytes < 1 << 20
    assert max(sizes[3:]) - sizes[3] < 4 << 20


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_bindings_have_no_array_of_each_query_and_key(folder: Path, model: fl.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """One for each layer and for each set of sizes would soon be more than the caches."""
    monkeypatch.setattr("fastlayers.text._running.PIECE", 128)
    made = Generator(folder, model=model)
    made.generate([5, 6] * 200, 2, ignore_eos=True)
    grown = made.model._main.grown
    calls = [call for kept in grown.bindings.values() for call in grown.plan(*kept.made_for).calls if isinstance(call, Call)]
    refs = [ref for call in calls for ref in call.args if isinstance(ref, Ref)]
    assert max(math.prod(ref.shape) for ref in refs) >= 128 * 300  # the values themselves are there
    assert max(ref.buffer.nbytes for ref in refs if ref.buffer.space == CONSTANT) < 128 * 300


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_weights_packed_before_a_fork_are_not_packed_again(folder: Path) -> None:
    def packed_by_child(called: bool) -> int:
        """The bytes that a call in a forked child packs."""
        made = Generator(folder, model=network("grouped"))
        if called:
            made.generate([5], 2, ignore_eos=True)
        before, (mine, theirs) = fl.memory().packed, os.pipe()
        child = os.fork()
        if not child:
            made.generate([5] * 30, 5, ignore_eos=True)
            os.write(theirs, b"%d" % (fl.memory().packed - before))
            os._exit(0)
        os.close(theirs)
        with os.fdopen(mine) as told:
            found = int(told.read())
        assert os.waitpid(child, 0)[1] == 0
        return found

    assert packed_by_child(False) > 0 == packed_by_child(True)
