"""Ten thousand texts from several clients: the server's memory after the first thousand is its memory after the last."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.text import folders

from .load import levels
from .servers import Server, serving
from .test_completions import opened, read

pytestmark = [pytest.mark.serve, pytest.mark.exhaustive]

REQUESTS, CLIENTS, PART = 10_000, 6, 1_000
# Megabytes that the second to the last part may take more than the first: what is retained for the next request follows from the
# largest batch so far, which is one of chance. A leak of a kilobyte a request would be 9.
MORE = 6.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("models")
    folders.sentence_transformer(folder / "enc")
    folders.decoder(folder / "gen")
    with serving(folder, "--cache", "4", "--threads", "2") as made:
        yield made


def ask(server: Server, i: int) -> None:
    """Request number i: vectors; completions whole, streamed, left half-way; of texts and lengths that never come again."""
    rng = np.random.default_rng(i)
    text = " ".join(f"{word}" for word in rng.choice(["cat", "dog", "the", "asks", str(i)], rng.integers(1, 40)))
    given: dict[str, Any] = {"model": "gen", "prompt": text, "max_tokens": int(rng.integers(1, 12)), "seed": i}
    kind = i % 8
    if kind < 4:
        status, found = server.ask("/v1/embeddings", {"model": "enc", "input": [text] * (1 + kind)})
        assert status == 200 and len(found["data"]) == 1 + kind, found
    elif kind < 6:
        status, found = server.ask("/v1/completions", given)
        assert status == 200 and found["usage"]["completion_tokens"] <= given["max_tokens"], found
    elif kind == 6:
        assert b"data: [DONE]" in read(opened(server, "completions", {**given, "stream": True}))
    else:
        with opened(server, "completions", {**given, "max_tokens": 400, "ignore_eos": True, "stream": True}) as left:
            assert left.recv(100)


def test_memory_is_flat(server: Server) -> None:
    told, faults = [], []
    for start in range(0, REQUESTS, PART):
        numbers = iter(range(start, start + PART))

        def client(numbers: Iterator[int] = numbers) -> None:
            i = start
            try:
                for i in numbers:  # a range's iterator gives each number to one thread
                    ask(server, i)
            except Exception as fault:
                faults.append(f"{i}: {fault!r}")

        workers = [threading.Thread(target=client) for _ in range(CLIENTS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert not faults, faults[:3]
        told.append(levels(server.process.pid))
    print([f"{part['Rss MB']:.1f} MB, {part['files']:.0f} files" for part in told])
    for level, more in (("Rss MB", MORE), ("Pss MB", MORE), ("files", 8), ("threads", 8)):
        values = [part[level] for part in told]
        assert max(values[1:]) <= values[0] + more, (level, values)
