"""Sequences that run at once, token by token: they join and leave one batch, whatever their lengths, of any number of threads.

There is no thread of its own. Of the threads that wait for tokens one runs a step for all, and the first that needs another token
runs the next. Each row of a batch has the bits that it has alone, so neither the others nor when they begin and end changes one.
"""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .._locks import Lock
from ..errors import Error, LimitError, TimeoutError
from ._decoder import PIECE, Decoder
from ._prefixes import Prefixes
from ._rows import Apart, Rows, Together, Unfit
from ._sequence import Event, Growing

__all__ = ["Running"]

SOON = 0.005  # seconds after which is looked again where nothing can go on: all wait for somebody to take tokens
FEW = 128  # tokens of a prompt that run at once while others wait for their next token


class Running:
    """A batch. May be used from any number of threads at once.

    Args:
        decoder: the network.
        prefixes: caches of earlier sequences; None: every prompt is computed.
        most: sequences that run at once; others wait.
    """

    def __init__(self, decoder: Decoder, prefixes: Prefixes | None, most: int) -> None:
        self._decoder, self._prefixes, self._most = decoder, None if decoder.alone else prefixes, most
        self._lock = Lock()  # for what follows, until the empty line; a stream that is collected may take it again
        self._leads = False  # some thread runs a step
        self._waiters: list[Any] = []
        self._process = os.getpid()
        self._new: deque[Growing] = deque()  # those that have joined since the last step

        # Of who leads.
        self._queue: list[Growing] = []  # wait for a row
        self._sequences: list[Growing] = []  # of each row
        self._rows = self._made()
        self._prompted = False  # whether the last step was a prompt's

    @property
    def nbytes(self) -> int:
        """Bytes of the caches of sequences that run."""
        return self._rows.nbytes

    def _made(self) -> Rows:
        fits = not self._decoder.alone and self._decoder.model._growing is not None
        return Together(self._decoder) if fits else Apart(self._decoder)

    # ---- who wants tokens -------------------------------------------------------------------------------------------

    def events(self, sequences: Sequence[Growing]) -> Iterator[Event]:
        """Events of sequences, to their ends."""
        self.join(sequences)
        try:
            left = list(sequences)
            while left:
                for one in left:
                    yield from one.events()
                left = [one for one in left if one.finish is None]
                if left:
                    self._wait(left)
        finally:
            self.leave(sequences)

    def join(self, sequences: Sequence[Growing]) -> None:
        """Sequences of one request wait for rows."""
        owner = object()
        with self._lock:
            self._here()
            for one in sequences:
                one.owner, one.process = owner, self._process
                self._new.append(one)

    def leave(self, sequences: Sequence[Growing]) -> None:
        """No more of them is wanted."""
        for one in sequences:
            one.gone = True
        with self._lock:
            self._here()
            if self._leads:  # who leads sees to it
                return
            self._leads = True
        try:
            self._settle()
        finally:
            self._follow()

    def step(self) -> bool:
        """A token more of every sequence whose owner keeps up, or a piece of a prompt; whether there was any.

        For who sees to sequences of several owners. False, too, while another thread runs a step.
        """
        with self._lock:
            self._here()
            if self._leads:
                return False
            self._leads = True
        return self._lead()

    def _wait(self, own: Sequence[Growing]) -> None:
        """Returns when there may be something of one of these, after a step if no other thread runs one."""
        with self._lock:
            self._here()
            if not all(one.waits for one in own):
                return
            for one in own:
                if one.process != self._process:  # of before a fork
                    one.process = self._process
                    self._new.append(one)
            waiter = None
            if self._leads:
                waiter = Lock(False)
                waiter.acquire()
                self._waiters.append(waiter)
            else:
                self._leads = True
        if waiter is None:
            if not self._lead():
                time.sleep(SOON)
        else:
            waiter.acquire()

    def _here(self) -> None:
        """A forked child begins anew: who ran a step, and the others, are not in it."""
        if self._process != os.getpid():
            self._process, self._leads, self._waiters = os.getpid(), False, []
            self._new, self._queue, self._sequences, self._rows = deque(), [], [], self._made()

    def _lead(self) -> bool:
        try:
            return self._step()
        except Unfit:
            self._again(Apart(self._decoder))
            return True
        except BaseException:
            self._again(self._made())
            raise
        finally:
            self._follow()

    def _follow(self) -> None:
        """Lets all look whether there is something for them; the first for whom there is nothing runs the next step."""
        with self._lock:
            self._leads = False
            waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter.release()

    def _again(self, rows: Rows) -> None:
        """Computes everything once more: a step was interrupted, and may have left anything half done."""
        every = {id(one): one for one in (*self._sequences, *self._queue)}
        self._queue, self._sequences, self._rows = [*every.values()], [], rows

    # ---- who leads ---------------------------------------------------------------------------------------------------

    def _step(self) -> bool:
        """A piece of a prompt and tokens of all others in turns."""
        self._settle()
        first, second = (self._tokens, self._prompt) if self._prompted else (self._prompt, self._tokens)
        found = first()
        self._prompted ^= found
        return found or second()

    def _settle(self) -> None:
        """Takes out what has ended; what it had computed is kept for others that begin so."""
        while self._new:
            self._queue.append(self._new[0])
            self._new.popleft()
        self._queue = [one for one in self._queue if one.settle()]
        for i in range(len(self._sequences) - 1, -1, -1):
            if not self._sequences[i].settle():
                self._out(i)

    def _out(self, i: int) -> None:
        """Takes a row out."""
        length = self._rows.lengths[i] if self._prefixes is not None else 0
        ids, cache = self._sequences[i].ids[:length], self._rows.remove(i, length)
        self._sequences[i] = self._sequences[-1]
        del self._sequences[-1]
        if self._prefixes is not None and length:
            self._prefixes.add(ids, cache)

    def _todo(self, i: int) -> int:
        """Tokens of a row that were not computed."""
        return len(self._sequences[i].ids) - self._rows.lengths[i]

    def _prompt(self) -> bool:
        """A piece of a prompt: of one that has a row, or of the next. Whether there was one."""
        while (i := next((i for i in range(len(self._sequences)) if self._todo(i) > 1), None)) is None:
            if not self._begin():  # of one that is known but for the last token, that runs with the others
                return False
        one, at = self._sequences[i], self._rows.lengths[i]
        size = FEW if any(self._todo(i) == 1 for i in range(len(self._sequences))) else PIECE
        if self._decoder.alone:  # always cut in the same way
            size = one.prompt - at if at < one.prompt else 1
        logits = self._ran(i, np.array([one.ids[at : at + size]], np.int64))
        if logits is not None and self._todo(i) == 0:
            one.choose(logits[0])
        return True

    def _begin(self) -> bool:
        """Gives the next sequence that waits a row; whether there was one, and room."""
        held = Counter(id(one.owner) for one in self._sequences)
        one = min((one for one in self._queue if not one.ahead), key=lambda one: held[id(one.owner)], default=None)
        if one is None:
            return False
        if len(self._sequences) >= self._most:
            # One whose owner does not take its tokens makes room, or one of a request that has many for a request with fewer.
            # What was computed may be known when its turn comes.
            numbers = range(len(self._sequences))
            i = max(numbers, key=lambda i: (self._sequences[i].left, held[id(self._sequences[i].owner)], i))
            last = self._sequences[i]
            if not last.left and held[id(last.owner)] < held[id(one.owner)] + 2:
                return False
            self._queue.append(last)
            self._out(i)
        length, cache = self._beginning(one)
        try:
            self._rows.add(length, one.most, cache)
        except LimitError as error:
            if self._sequences:  # when another one has ended there may be
                return False
            one.error = error
            self._queue.remove(one)
            return bool(self._queue) and self._begin()
        self._sequences.append(one)
        self._queue.remove(one)
        return True

    def _beginning(self, one: Growing) -> tuple[int, Any]:
        """The most that is known of a sequence: the number of tokens, and where they are."""
        if self._prefixes is None:
            return 0, ()
        found: Any = self._prefixes.find(one.ids)
        length, cache = found or (0, ())
        wanted = np.array(one.ids[:-1], np.int64)
        for i, other in enumerate(self._sequences):
            most = min(len(wanted), self._rows.lengths[i])
            if most <= length:
                continue
            differ = np.flatnonzero(wanted[:most] != np.array(other.ids[:most], np.int64))
            alike = int(differ[0]) if len(differ) else most
            if alike > length:
                length, cache = alike, i
        return length, cache

    def _tokens(self) -> bool:
        """A token more of every sequence whose owner keeps up. Whether there was any."""
        ready = [i for i, one in enumerate(self._sequences) if self._todo(i) == 1 and not one.ahead]
        for to, i in enumerate(ready):  # rows that run together are next to each other
            if i != to:
                self._rows.swap(i, to)
                self._sequences[i], self._sequences[to] = self._sequences[to], self._sequences[i]
        n = len(ready)
        ids = np.array([[one.ids[-1]] for one in self._sequences[:n]], np.int64)
        if not n:
            return False
        try:
            for i in range(n):
                self._rows.grow(i, self._rows.lengths[i] + 1, self._sequences[i].most)
            found: Any = self._rows.append(0, ids)
        except TimeoutError:
            raise
        except Error:  # one of them spoils it for the others: each for itself
            found = [None if logits is None else logits[0] for logits in (self._ran(i, ids[i : i + 1]) for i in range(n))]
        for one, logits in zip(self._sequences, found, strict=False):
            if logits is not None:
                one.choose(logits)
        return True

    def _ran(self, i: int, ids: np.ndarray) -> np.ndarray | None:
        """The logits after ids (1, t) of one row; None where that fails, which ends its sequence."""
        one = self._sequences[i]
        try:
            self._rows.grow(i, self._rows.lengths[i] + ids.shape[1], one.most)
            return self._rows.append(i, ids)
        except TimeoutError:
            raise
        except Error as error:
            one.error = error
            return None
