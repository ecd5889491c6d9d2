"""Settings of a server: addresses, limits, and the operations that clients may ask for."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ..errors import ArgumentError

__all__ = ["Settings"]

MB = 1 << 20


@dataclass(frozen=True)
class Settings:
    """See `fastlayers serve --help`. Times are in seconds, sizes in bytes; counts are of one worker."""

    source: str  # a model file, or a folder of models
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    name: str | None = None  # under which a file, or a folder that is one model, is served

    control: bool = False  # whether requests may load and unload models
    page: bool = False
    log: str = "requests"  # or "events"

    precision: str = "default"  # of `fastlayers.load`, as the next
    weights: str = "float32"

    batch: int = 16  # the most rows that are run together; 1 turns batching off
    batch_delay: float = 0.0  # how long a request waits for others though nothing runs
    threads: int = 0  # runs that go on at once; 0: the number of threads that fastlayers may use

    queue: int = 256  # inference requests that wait or run; more are refused
    timeout: float = 30.0  # from a request's last header to its answer
    receive_timeout: float = 20.0  # from a request's first byte to its last
    send_timeout: float = 20.0  # until the client has read an answer
    idle_timeout: float = 60.0  # of a connection between requests
    connections: int = 1000
    max_body: int = 64 * MB
    max_json: int = 4 * MB  # what the parser has made of it is ten times as large
    max_bodies: int = 512 * MB  # all that is being received, together
    max_head: int = 64 << 10

    completions: int = 16  # prompts of a model that grow at once, each with a cache; others wait
    cache: int | None = None  # bytes of a decoder, for what is known of earlier prompts; None: as `Generator` has it
    max_texts: int = 2048  # that one request embeds or ranks
    max_prompt: int = 32768  # tokens of all prompts of a request
    max_tokens: int = 4096  # that follow all prompts of a request

    sequences: int = 1000
    sequence_idle: float = 60.0

    drain: float = 0.0  # after SIGTERM: not ready, but still accepting
    stop_timeout: float = 30.0  # then: until requests that have begun are cut off

    def __post_init__(self) -> None:
        counts = ("workers", "batch", "queue", "completions", "connections", "sequences")
        for field in fields(self):
            value = getattr(self, field.name)
            least = 1 if field.name in counts or field.name.startswith("max_") else 0
            if isinstance(value, (int, float)) and not isinstance(value, bool) and not least <= value < 2**63:
                raise ArgumentError(f"serve: {field.name} is {value}: expected at least {least}")
        for name in ("timeout", "receive_timeout", "send_timeout", "idle_timeout", "sequence_idle"):
            if getattr(self, name) == 0:
                raise ArgumentError(f"serve: {name} is 0: expected more seconds than that")
        if self.port > 65535:
            raise ArgumentError(f"serve: port is {self.port}: expected at most 65535")
