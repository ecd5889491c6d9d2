"""The kinds of requests of `tests.serve.load`: how each is sent, and what its answer must be."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastlayers.serve.datatypes import DATATYPES, datatype, dump, from_bytes, to_bytes

from .load_models import ABSURD, STREAMS, Feeds, write

if TYPE_CHECKING:
    from .load import Load

__all__ = [
    "GONE",
    "HANGS",
    "KINDS",
    "RECEIVE",
    "REFUSED",
    "RIGHT",
    "WEIGHTS",
    "Answer",
    "Case",
    "Client",
    "Fault",
    "infer",
    "judge",
    "request",
]

WEIGHTS = 4  # sets of weights that "swap" goes through
HANGS = 120.0  # seconds without an answer
RECEIVE = 8  # seconds until a request must have come, as the server is told


class Case(NamedTuple):
    """A request, and what each set of weights answers to it alone."""

    model: str
    feeds: Feeds
    expected: list[Feeds]


class Answer(NamedTuple):
    status: int  # 0: the connection was closed before a byte of it
    headers: dict[str, str]
    body: bytes


class Fault(Exception):
    """What must not happen."""


def request(path: str, body: bytes = b"", *headers: str, verb: str = "POST", length: int | None = None) -> bytes:
    lines = [f"{verb} {path} HTTP/1.1", "host: x", f"content-length: {len(body) if length is None else length}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def infer(case: Case, binary: bool, *headers: str, out: bool | None = None, packed: bool = False, **parameters: Any) -> bytes:
    """A request for inference; `out`: whether the answer is binary, if the request is not."""
    inputs, parts = [], []
    for name, array in case.feeds.items():
        about: dict[str, Any] = {"name": name, "datatype": datatype(array.dtype), "shape": list(array.shape)}
        if binary:
            parts.append(to_bytes(array))
            about["parameters"] = {"binary_data_size": len(parts[-1])}
        else:
            about["data"] = array.tolist() if array.ndim else dump(array)
        inputs.append(about)
    parameters["binary_data_output"] = binary if out is None else out
    text = json.dumps({"id": "7", "inputs": inputs, "parameters": parameters}).encode()
    body = b"".join([text, *parts])
    more = (f"inference-header-content-length: {len(text)}",) if binary else ()
    if packed:
        body, more = zlib.compress(body), (*more, "content-encoding: deflate")
    return request(f"/v2/models/{case.model}/infer", body, *more, *headers)


def same(a: np.ndarray, b: np.ndarray, text: bool) -> bool:
    """Whether all bits are equal; those of NaN are lost in JSON."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if text and a.dtype.kind == "f":
        return bool(((a.view(f"u{a.itemsize}") == b.view(f"u{b.itemsize}")) | (np.isnan(a) & np.isnan(b))).all())
    return to_bytes(a) == to_bytes(b)


def outputs(answer: Answer) -> list[tuple[str, np.ndarray, bool]]:
    """The tensors of an answer, each with whether it came as text."""
    length = int(answer.headers.get("inference-header-content-length", len(answer.body)))
    rest, found = memoryview(answer.body)[length:], []
    for about in json.loads(answer.body[:length])["outputs"]:
        name, shape, size = about["datatype"], tuple(about["shape"]), about.get("parameters", {}).get("binary_data_size")
        if size is None:
            found.append((about["name"], np.array(about["data"], DATATYPES[name]).reshape(shape), True))
        else:
            found.append((about["name"], from_bytes("answer", name, shape, int(np.prod(shape)), rest[:size]), False))
            rest = rest[size:]
    return found


def right(answer: Answer, expected: Feeds) -> bool:
    found = outputs(answer)
    return [name for name, *_ in found] == list(expected) and all(same(a, expected[n], text) for n, a, text in found)


class Client:
    """Sends one request after the other, on one connection for many of them or on one for each."""

    def __init__(self, load: Load, rng: np.random.Generator) -> None:
        self.load, self.rng = load, rng
        self.line: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self.line is None:
            self.line = await asyncio.open_connection("127.0.0.1", self.load.port, limit=1 << 20)
        return self.line

    def leave(self) -> None:
        """Closes the connection at once."""
        if self.line is not None:
            self.line[1].transport.abort()
            self.line = None

    async def ask(self, data: bytes, parts: int = 1, pause: float = 0.0, fresh: bool = False) -> Answer:
        """The answer to a request that is sent in so many parts."""
        if fresh:
            self.leave()
        _, writer = await self.connect()
        step = -(-len(data) // parts)
        for at in range(0, len(data), step):
            writer.write(data[at : at + step])
            with suppress(OSError):  # it may be answered, and cut off, before it has said all
                await writer.drain()
            if pause:
                await asyncio.sleep(pause)
        answer = await self.read()
        if fresh or self.rng.random() < 0.2:
            self.leave()
        return answer

    async def read(self) -> Answer:
        reader, _ = await self.connect()
        try:
            head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), HANGS)).decode("latin-1").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
            body = await asyncio.wait_for(reader.readexactly(int(headers["content-length"])), HANGS)
        except (asyncio.IncompleteReadError, ConnectionResetError, BrokenPipeError) as error:
            self.leave()
            if getattr(error, "partial", b""):
                raise Fault("the connection was closed in the middle of an answer") from None
            return Answer(0, {}, b"")
        except (TimeoutError, asyncio.TimeoutError):
            self.leave()
            raise Fault(f"no answer for {HANGS:g} s") from None
        if headers.get("connection") == "close":
            self.leave()
        return Answer(int(head[0].split()[1]), headers, body)

    def case(self, *models: str) -> Case:
        chosen = self.load.cases[str(self.rng.choice(models or self.load.names))]
        return chosen[self.rng.integers(len(chosen))]


# ---- kinds of requests ----------------------------------------------------------------------------------------------


def judge(answer: Answer, case: Case) -> None:
    if answer.status != 200 or not right(answer, case.expected[0]):
        raise Fault(f"{case.model}: {answer.status} {answer.body[:200]!r} for {case.feeds!r:.200}")


def refused(answer: Answer, *statuses: int) -> None:
    if answer.status not in statuses or (answer.status and "error" not in json.loads(answer.body)):
        raise Fault(f"{answer.status} {answer.body[:200]!r}: expected {statuses}")


def answered(binary: bool, *models: str, **options: Any) -> Callable[[Client], Awaitable[None]]:
    """Any model, or one of these."""

    async def ask(client: Client) -> None:
        case = client.case(*models)
        judge(await client.ask(infer(case, binary, **options)), case)

    return ask


async def chunked(client: Client) -> None:
    case = client.case()
    head, _, body = infer(case, True).partition(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if not line.startswith(b"content-length")]
    cut = int(client.rng.integers(1, len(body)))
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:cut], body[cut:], b""))
    judge(await client.ask(b"\r\n".join([*lines, b"transfer-encoding: chunked", b"", chunks])), case)


async def pipelined(client: Client) -> None:
    cases = [client.case() for _ in range(3)]
    _, writer = await client.connect()
    writer.write(b"".join(infer(case, bool(i % 2)) for i, case in enumerate(cases)))
    for case in cases:
        judge(await client.read(), case)


async def sequence(client: Client) -> None:
    """A stream in pieces, each of which comes to any worker."""
    name = str(client.rng.choice(STREAMS))
    case, ident = client.case(name), int(client.rng.integers(1, 2**62))
    ((of, x),) = case.feeds.items()
    axis = 0 if name == "sums" else 1
    pieces = np.array_split(x, min(x.shape[axis], 3), axis)
    stream = client.load.models[name][0].stream()
    for i, piece in enumerate(pieces):
        flags = {"sequence_id": ident, "sequence_start": not i, "sequence_end": i == len(pieces) - 1}
        part = Case(name, {of: np.ascontiguousarray(piece)}, [])
        answer = await client.ask(infer(part, bool(client.rng.random() < 0.5), **flags), fresh=bool(client.rng.random() < 0.5))
        judge(answer, part._replace(expected=[stream.run(part.feeds)]))


async def slow(client: Client) -> None:
    case = client.case()
    judge(await client.ask(infer(case, True, "connection: close"), parts=5, pause=0.05), case)


async def unread(client: Client) -> None:
    """Begins to read the answer late."""
    case = client.case("mlp large")
    _, writer = await client.connect()
    writer.write(infer(case, True))
    await asyncio.sleep(0.5)
    judge(await client.read(), case)


async def swapped(client: Client) -> None:
    """The model that is replaced: with one set of weights that was there at the time, or as not there while it was unloaded."""
    load, case = client.load, client.case("swap")
    oldest = load.floor
    answer = await client.ask(infer(case, bool(client.rng.random() < 0.5)))
    allowed = load.history[oldest:]
    if answer.status == 404 and None in allowed:
        return
    if answer.status != 200 or not any(i is not None and right(answer, case.expected[i]) for i in allowed):
        raise Fault(f"swap: {answer.status} {answer.body[:200]!r}: not one of the weights {allowed} that were there")


async def reload(client: Client) -> None:
    """Replaces the weights of "swap", by itself or with the model unloaded before."""
    load = client.load
    async with load.changing:
        weights = len(load.history) % WEIGHTS
        whole = client.rng.random() < 0.3
        for state, action in ((None, "unload"), (weights, "load")) if whole else ((weights, "load"),):
            load.history.append(state)
            if state is not None:
                write("swap", state, load.folder / "swap")
            answer = await client.ask(request(f"/v2/repository/models/swap/{action}", b"{}"))
            if answer.status != 200:
                raise Fault(f"{action}: {answer.status} {answer.body[:200]!r}")
            load.floor = len(load.history) - 1
            await swapped(client)


async def broken(client: Client) -> None:
    """A file that is none is refused when it is loaded."""
    (client.load.folder / "broken.onnx").write_bytes(b"\x08\x07" + client.rng.bytes(50))
    refused(await client.ask(request("/v2/repository/models/broken/load", b"{}")), 400)
    refused(await client.ask(infer(client.case("mlp")._replace(model="broken"), True)), 404)


async def about(client: Client) -> None:
    name = str(client.rng.choice(client.load.names)).partition("/")[0]
    paths = ["", "/v2", "/v2/models", f"/v2/models/{name}", f"/v2/models/{name}/config", f"/v2/models/{name}/stats", "/metrics"]
    answer = await client.ask(request(str(client.rng.choice(paths[1:])), verb="GET"))
    if answer.status != 200 or not answer.body:
        raise Fault(f"{answer.status} {answer.body[:200]!r}")


def changed(change: Callable[[dict[str, Any]], Any], *statuses: int) -> Callable[[Client], Awaitable[None]]:
    """A request in JSON of which something was changed."""

    async def ask(client: Client) -> None:
        case = client.case("mlp", "cnn", "lstm", "trees", "several", "softmax", "topk")
        text = json.loads(infer(case, False).partition(b"\r\n\r\n")[2])
        change(text)
        refused(await client.ask(request(f"/v2/models/{case.model}/infer", json.dumps(text).encode())), *statuses)

    return ask


def fixed(*data: bytes, statuses: Sequence[int]) -> Callable[[Client], Awaitable[None]]:
    """One of these requests, on a connection of its own."""

    async def ask(client: Client) -> None:
        refused(await client.ask(data[client.rng.integers(len(data))], fresh=True), *statuses)

    return ask


async def absurd(client: Client) -> None:
    name = str(client.rng.choice(list(ABSURD)))
    feeds = {"n": np.array(ABSURD[name], np.int64)}
    refused(await client.ask(infer(Case(name, feeds, []), bool(client.rng.random() < 0.5))), 400, 413)


async def deadline(client: Client) -> None:
    """A loop that takes longer than the request says."""
    refused(await client.ask(infer(Case("loop", {"n": np.array(10**6)}, []), True, timeout=20_000)), 504)


async def late(client: Client) -> None:
    """Is still sending when the time for it is over; what it sends after the answer may cut that off (status 0)."""
    refused(await client.ask(infer(client.case("mlp"), True), parts=40, pause=RECEIVE / 20, fresh=True), 408, 0)


async def cut(client: Client) -> None:
    """Goes away in the middle of a body."""
    data = infer(client.case(), bool(client.rng.random() < 0.5))
    _, writer = await client.connect()
    writer.write(data[: client.rng.integers(1, len(data))])
    await asyncio.sleep(client.rng.random() / 100)
    client.leave()


async def gone(client: Client) -> None:
    """Goes away before the answer, of a long run too."""
    case = client.case() if client.rng.random() < 0.9 else Case("loop", {"n": np.array(300_000)}, [])
    _, writer = await client.connect()
    writer.write(infer(case, True))
    await asyncio.sleep(client.rng.random() / 100)
    client.leave()


MODEL = "/v2/models/mlp/infer"
RIGHT, REFUSED, GONE = "right", "refused", "left"
# By kind: how often, what asks, and what becomes of it if all is well.
KINDS: dict[str, tuple[float, Callable[[Client], Awaitable[None]], str]] = {
    "JSON": (25, answered(False), RIGHT),
    "binary": (25, answered(True), RIGHT),
    "binary, answer in JSON": (4, answered(True, out=False), RIGHT),
    "JSON compressed, answer binary": (4, answered(False, out=True, packed=True), RIGHT),
    "in chunks": (4, chunked, RIGHT),
    "three at once": (2, pipelined, RIGHT),
    "sequence": (4, sequence, RIGHT),
    "large JSON": (0.1, answered(False, "mlp large"), RIGHT),
    "large binary": (0.2, answered(True, "mlp large"), RIGHT),
    "slow client": (1, slow, RIGHT),
    "answer read late": (0.2, unread, RIGHT),
    "replaced model": (8, swapped, RIGHT),
    "reload": (0.3, reload, RIGHT),
    "metadata, statistics, metrics": (2, about, RIGHT),
    "load of a broken file": (0.1, broken, REFUSED),
    "wrong shape": (2, changed(lambda text: text["inputs"][0]["shape"].append(2), 400), REFUSED),
    "wrong datatype": (2, changed(lambda text: text["inputs"][0].update(datatype="FP128"), 400), REFUSED),
    "wrong names": (2, changed(lambda text: text.update(outputs=[{"name": "nobody"}]), 400), REFUSED),
    "unknown model or path": (
        2, fixed(request("/v2/models/nobody/infer", b"{}"), request("/v2/models/mlp/versions/9/infer", b"{}"),
                 request("/nowhere", verb="GET"), statuses=(404,)), REFUSED,
    ),
    "broken JSON": (
        2, fixed(request(MODEL, b"{"), request(MODEL, b"[" * 100_000), request(MODEL, b"\xff"),
                 request(MODEL, b'{"inputs": [' + b"[1,2]," * 30_000 + b'"x'), statuses=(400,)), REFUSED,
    ),
    "huge claims": (
        1, fixed(request(MODEL, b"{}", length=10**12), request(MODEL, b"", "inference-header-content-length: 9", length=1 << 40),
                 statuses=(413,)), REFUSED,
    ),
    "too much JSON": (0.05, fixed(request(MODEL, b'{"inputs": [' + b" " * (5 << 20)), statuses=(413,)), REFUSED),
    "bad heads": (
        1, fixed(b"\x00\x01\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", request(MODEL, b"{}", "content-length: 3"),
                 statuses=(400,)), REFUSED,
    ),
    "long heads": (0.2, fixed(b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 30_000, statuses=(431, 0)), REFUSED),
    "absurd sizes": (2, absurd, REFUSED),
    "deadline": (0.5, deadline, REFUSED),
    "never ends": (0.02, late, REFUSED),
    "leaves in the body": (2, cut, GONE),
    "leaves before the answer": (2, gone, GONE),
}  # fmt: skip
