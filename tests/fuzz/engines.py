"""Who chooses the inputs: Atheris, guided by coverage; random values or hypothesis, guided by where readers end."""

from __future__ import annotations

import os
import random
import sys
from bisect import bisect
from collections.abc import Callable
from typing import Any

from .corpus import corpus
from .mutate import LARGEST, mutate
from .session import LOADED, Session

__all__ = ["ENGINES", "Pool"]

KEPT = 1000  # inputs of a kind that are kept, and changed further
_BATCH = 500


class Pool:
    """The corpus and what has been added to it, each chosen the more often the shorter it is."""

    def __init__(self, session: Session, seed: int) -> None:
        self.rng = random.Random(f"{seed} {session.target.name}")
        self.session = session
        self._known: set[Any] = set()
        # What was loaded is changed most of the time: what is broken already mostly ends where it did.
        self._good, self._broken = _Choice(), _Choice()
        for content in corpus(session.target.name).values():
            self._known.add(session.run(content))
            self._good.add(content)

    def tried(self, content: bytes) -> None:
        """Runs it; keeps it if it ended where none has, and now and then if it was loaded."""
        where = self.session.run(content)
        if where is None or len(content) > LARGEST // 4:
            return
        if where == LOADED:
            if self.rng.random() < 0.05 and len(self._good.contents) < KEPT:
                self._good.add(content)
        elif where not in self._known and len(self._broken.contents) < KEPT:
            self._broken.add(content)
        self._known.add(where)

    def made(self) -> bytes:
        """A new input."""
        chosen = self._broken if self._broken.contents and self.rng.random() < 0.15 else self._good
        return mutate(self.session.target.name, self.rng, chosen.one(self.rng), self._good.one(self.rng))

    @property
    def places(self) -> int:
        """In how many different places inputs have ended."""
        return len(self._known)


class _Choice:
    """Inputs with their chances."""

    def __init__(self) -> None:
        self.contents: list[bytes] = []
        self._chances: list[float] = []  # running sums

    def add(self, content: bytes) -> None:
        self.contents.append(content)
        # Short ones take less time; but what time they take would not be the same another time.
        self._chances.append((self._chances[-1] if self._chances else 0.0) + 1 / (len(content) + 200))

    def one(self, rng: random.Random) -> bytes:
        return self.contents[bisect(self._chances, rng.random() * self._chances[-1], hi=len(self.contents) - 1)]


Done = Callable[[], bool]


def randomly(session: Session, done: Done, seed: int, _: int) -> str:
    """Our mutators with random values, until it is done."""
    pool = Pool(session, seed)
    while not done():
        for _ in range(20):
            pool.tried(pool.made())
            if done():
                break
    return f"ended in {pool.places} different places"


def with_hypothesis(session: Session, done: Done, seed: int, _: int) -> str:
    """Our mutators with values that hypothesis chooses, which likes small ones, the same ones and those at an edge."""
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded
    from hypothesis import strategies as st

    pool = Pool(session, seed)
    rounds = 0
    while not done():
        rounds += 1

        @seeded(seed + rounds)
        @settings(
            max_examples=_BATCH, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
        )
        @given(st.integers(0, 1 << 32), st.integers(1, 4))
        def example(number: int, times: int) -> None:
            if done():
                return
            pool.rng.seed(number)
            for _ in range(times):
                pool.tried(pool.made())

        example()
    return f"ended in {pool.places} different places"


def with_atheris(session: Session, done: Done, seed: int, seconds: int) -> str:
    """libFuzzer with our mutators and its own. It ends the process: nothing that comes after this call is run."""
    import atheris

    rng = random.Random(seed)
    contents = list(corpus(session.target.name).values())
    session.judge_stays = False  # the corpus of libFuzzer grows in this process
    folder = f"{session.folder}/{session.target.name}-corpus"
    os.makedirs(folder, exist_ok=True)
    for i, content in enumerate(contents):
        with open(f"{folder}/seed-{i}", "wb") as file:
            file.write(content)

    def one(content: bytes) -> None:
        session.run(content)
        if done():
            session.__exit__()
            print(session.report(), flush=True)
            sys.stderr.flush()
            os._exit(1 if session.findings else 0)

    def change(content: bytes, most: int, number: int) -> bytes:
        rng.seed(number)
        if rng.random() < 0.2:
            return bytes(atheris.Mutate(content, most))
        other = rng.choice(contents)
        return mutate(session.target.name, rng, content or other, other)[:most]

    options = [
        f"-seed={seed or 1}",
        f"-max_len={LARGEST // 2}",
        "-timeout=60",  # seconds; what is slow the session finds itself, in time of the processor
        "-mutate_depth=1",
        f"-max_total_time={seconds + 60}",
        "-print_final_stats=0",
        "-verbosity=0",
    ]
    atheris.Setup([sys.argv[0], *options, folder], one, custom_mutator=change)
    atheris.Fuzz()
    return ""


ENGINES: dict[str, Callable[[Session, Done, int, int], str]] = {
    "random": randomly, "hypothesis": with_hypothesis, "atheris": with_atheris,
}  # fmt: skip
