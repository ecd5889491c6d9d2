"""Parts of a program: chunks, the calls of one node each, and a plan of the memory between them.

A chunk names the buffers that its calls use by index. A program for other sizes takes over the chunks of all nodes that it leaves
alone, and lays out the memory of all of them again, in C: that costs some microseconds for hundreds of nodes.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy, memmove, memset

from ._engine cimport alloc, need, release
from ._step cimport Step

cdef enum:
    ALIGN = 64
    MOST_MOVED = 64 # buffers of repeated chunks
    OBJECTS = 400   # bytes that a step and what belongs to it take, about


@cython.final
cdef class Ledger:
    """Counts the bytes that programs take."""


cdef struct Moved:
    int64_t old, new, space, offset


cdef Moved *find(Moved *table, int count, int64_t key) noexcept nogil:
    """The row of a buffer; NULL if there is none."""
    cdef int i
    for i in range(count):
        if table[i].old == key:
            return table + i
    return NULL


@cython.final
cdef class Chunk:
    """Calls of steps: each a Step (or a NumPy fallback, of any other class) and (space, number, nbytes, offset) or None for every operand.

    `links`: (kind, a, b, offset) each; `nbytes`: what belongs to these calls alone, such as weights packed for them."""

    def __cinit__(self, list calls, list links, object keep, Ledger ledger, int64_t nbytes):
        cdef int at = 0, i = 0
        cdef Place *to
        cdef Native *native
        cdef Step step
        self.count, self.keep, self.ledger, self.given = len(calls), keep, ledger, []
        for _, places in calls:
            self.total += len(places)
        self.steps = <Native *>need((self.count + 1) * sizeof(Native), "load")
        self.places = <Place *>need((self.total + 1) * sizeof(Place), "load")
        self.linked = len(links)
        self.links = <Link *>need((self.linked + 1) * sizeof(Link), "load")
        for i in range(self.linked):
            self.links[i].kind, self.links[i].a, self.links[i].b, self.links[i].offset = links[i]
        i = 0
        for given, places in calls:
            self.given.append(given)
            native = self.steps + i
            native.first, native.count, native.python = at, len(places), -1
            native.run, native.plan = NULL, NULL
            inner = getattr(given, "step", given)  # of a user's function, a branch or a loop
            if inner is not given:
                loops = getattr(given, "loops", None)
                self.python, self.loops = self.python or loops is None, self.loops or loops is True
            if isinstance(inner, Step):
                step = inner
                native.run, native.plan = step.run, step.plan
                self.work += step.work
                self.longest = max(self.longest, step.work)
            else:
                self.python, native.python = True, i
            for place in places:
                to = self.places + at
                if place is None:
                    to.space, to.number, to.nbytes, to.offset = -1, -1, 0, 0
                else:
                    to.space, to.number, to.nbytes, to.offset = place
                at += 1
            i += 1
        self.count_bytes(nbytes)

    @staticmethod
    def repeated(list chunks, list moved, numbers, dict constants, dict steps, object keep):
        """The calls of these chunks over other buffers, as one chunk; None if there are too many buffers.

        `moved`: (old, new, space, offset) each: a buffer's number, or of an input -space, then the new one's number, its space, and how many
        bytes further on the array is; `numbers` gives those of all others. `constants`: other addresses, by those that the chunks have, None for
        the same. `steps`: other steps, by their positions."""
        cdef Chunk chunk = chunks[0], made = Chunk.__new__(Chunk, [], [], keep, chunk.ledger, 0)
        cdef Moved[MOST_MOVED] table
        cdef Moved *row
        cdef int i, count = len(moved), linked = 0
        cdef Place *to
        cdef Link *link
        cdef Native *native
        cdef Step step
        if count > MOST_MOVED:
            return None
        for i in range(count):
            table[i].old, table[i].new, table[i].space, table[i].offset = moved[i]
        for item in chunks:
            chunk = item
            made.count, made.total, linked = made.count + chunk.count, made.total + chunk.total, linked + chunk.linked
        release(made.steps)
        release(made.places)
        release(made.links)
        made.steps, made.places, made.links = NULL, NULL, NULL
        made.steps = <Native *>need((made.count + 1) * sizeof(Native), "load")
        made.places = <Place *>need((made.total + 1) * sizeof(Place), "load")
        made.links = <Link *>need((linked + 1) * sizeof(Link), "load")
        made.count = made.total = 0
        if len(chunks) > 1:
            made.counts = []
        for item in chunks:
            chunk = item
            for i in range(chunk.count):
                native = made.steps + made.count + i
                native[0] = chunk.steps[i]
                native.first += made.total
            for i in range(chunk.total):
                to = made.places + made.total + i
                to[0] = chunk.places[i]
                if to.space == CONSTANT:
                    if constants is not None:
                        to.offset = constants[to.offset]
                elif to.space >= 0:
                    row = find(table, count, to.number if to.space == ARENA else -<int64_t>to.space)
                    if row == NULL:
                        if count == MOST_MOVED or to.space != ARENA:
                            return None
                        row = table + count
                        row.old, row.new, row.space, row.offset = to.number, next(numbers), ARENA, 0
                        count += 1
                    to.number, to.space = row.new, <int32_t>row.space
                    to.offset += row.offset
            for i in range(chunk.linked):
                link = made.links + made.linked
                link[0] = chunk.links[i]
                row = find(table, count, link.a)
                if row != NULL:
                    link.a = row.new
                    row = find(table, count, link.b)
                if row != NULL:
                    link.b = row.new
                    made.linked += 1
            made.count, made.total = made.count + chunk.count, made.total + chunk.total
            made.given.extend(chunk.given)
            made.work, made.longest = made.work + chunk.work, max(made.longest, chunk.longest)
            if made.counts is not None:
                made.counts.append(chunk.count)
        for position, given in steps.items():
            step, i = given, position
            made.steps[i].run, made.steps[i].plan, made.given[i] = step.run, step.plan, given
        made.count_bytes(0)
        return made

    cdef int count_bytes(self, int64_t nbytes) except -1:
        """Tells the ledger what this takes, `nbytes` besides."""
        nbytes += OBJECTS + self.linked * <int64_t>sizeof(Link) + self.count * (<int64_t>sizeof(Native) + OBJECTS) + self.total * <int64_t>sizeof(Place)
        self.ledger.nbytes += nbytes - self.nbytes
        self.nbytes = nbytes
        return 0

    def __dealloc__(self):
        if self.nbytes:
            self.ledger.nbytes -= self.nbytes
        release(self.steps)
        release(self.places)
        release(self.links)


cdef int map_begin(Map *map, int64_t count) except -1:
    cdef int64_t size = 16
    while size < 2 * count:
        size *= 2
    map.entries = <Entry *>need(size * sizeof(Entry), "load")
    memset(map.entries, 255, size * sizeof(Entry))
    map.mask = size - 1
    return 0


cdef Entry *map_find(Map *map, int64_t key) noexcept nogil:
    cdef int64_t at = key * <int64_t>2654435761 >> 7 & map.mask
    while map.entries[at].key != key and map.entries[at].key != -1:
        at = (at + 1) & map.mask
    return map.entries + at


cdef struct Hole:
    int64_t offset, size


cdef int64_t padded(int64_t nbytes) noexcept nogil:
    return (max(nbytes, 1) + ALIGN - 1) // ALIGN * ALIGN


cdef int give_back(Hole *holes, int count, int64_t offset, int64_t size) noexcept nogil:
    """Adds a hole, joined to its neighbours; returns how many there are."""
    cdef int at = 0
    while at < count and holes[at].offset <= offset:
        at += 1
    if at < count and offset + size == holes[at].offset:
        size += holes[at].size
        memmove(holes + at, holes + at + 1, (count - at - 1) * sizeof(Hole))
        count -= 1
    if at and holes[at - 1].offset + holes[at - 1].size == offset:
        holes[at - 1].size += size
        return count
    memmove(holes + at + 1, holes + at, (count - at) * sizeof(Hole))
    holes[at].offset, holes[at].size = offset, size
    return count + 1


cdef int64_t lay_out(Span *spans, int count, int calls) noexcept nogil:
    """As `program.arena.layout`, which says it plainly: the smallest hole that fits, else more memory."""
    cdef int i, j, call, holes_count = 0, best, next = 0
    cdef int64_t top = 0, size
    cdef Hole *holes = <Hole *>alloc((count + 1) * sizeof(Hole))
    cdef int32_t *ends = <int32_t *>alloc((calls + 1) * sizeof(int32_t))   # the first buffer that ends with a call
    cdef int32_t *after = <int32_t *>alloc((count + 1) * sizeof(int32_t))  # the next one that ends with the same
    cdef Span *span
    cdef Span *old
    if holes == NULL or ends == NULL or after == NULL:
        release(holes)
        release(ends)
        release(after)
        return -1
    memset(ends, 255, (calls + 1) * sizeof(int32_t))
    for i in range(count - 1, -1, -1):
        spans[i].heir = 0
        if spans[i].output < 0:
            after[i] = ends[spans[i].last]
            ends[spans[i].last] = i
    for call in range(calls):
        # Buffers are numbered in the order in which calls first use them.
        while next < count and spans[next].first <= call:
            span = spans + next
            next += 1
            if span.output >= 0:
                continue
            size = padded(span.nbytes)
            old = spans + span.over if span.over >= 0 else NULL
            if old != NULL and old.output < 0 and old.last == call and not old.heir and padded(old.nbytes) == size:
                span.offset, old.heir = old.offset, 1
                continue
            best = -1
            for j in range(holes_count):
                if holes[j].size >= size and (best < 0 or holes[j].size < holes[best].size):
                    best = j
            if best >= 0:
                span.offset = holes[best].offset
                holes[best].offset += size
                holes[best].size -= size
                if not holes[best].size:
                    memmove(holes + best, holes + best + 1, (holes_count - best - 1) * sizeof(Hole))
                    holes_count -= 1
            elif holes_count and holes[holes_count - 1].offset + holes[holes_count - 1].size == top:
                holes_count -= 1
                span.offset = holes[holes_count].offset  # the last hole grows
                top = span.offset + size
            else:
                span.offset = top
                top += size
        i = ends[call]
        while i >= 0:
            if not spans[i].heir:
                holes_count = give_back(holes, holes_count, spans[i].offset, padded(spans[i].nbytes))
            i = after[i]
    release(holes)
    release(ends)
    release(after)
    return top


def layout(list values, int calls):
    """Offsets of (nbytes, first, last, over) each, in the order in which calls first use them, and the size of the arena."""
    cdef int i, count = len(values)
    cdef int64_t top
    cdef Span *spans = <Span *>need((count + 1) * sizeof(Span), "load")
    try:
        for i in range(count):
            spans[i].nbytes, spans[i].first, spans[i].last, spans[i].over = values[i]
            spans[i].output = -1
        top = lay_out(spans, count, calls)
        if top < 0:
            raise MemoryError("load: no memory for a plan")
        return [spans[i].offset for i in range(count)], top
    finally:
        release(spans)
