"""The steps of a node as the compiled engine keeps them, and where the values between them are. See _plan.pyx."""

from libc.stdint cimport int32_t, int64_t

from ._step cimport fl_step_fn

cdef enum:
    ARENA = 0
    CONSTANT = 1
    FIRST = 2        # inputs, then outputs

# An array operand before its program is laid out: `offset` bytes into the buffer `number` of `nbytes` (ARENA), into input or output
# number `space - FIRST`, or an address (CONSTANT). `space` is -1 for NULL.
cdef struct Place:
    int32_t space
    int64_t number
    int64_t nbytes
    int64_t offset

cdef struct Native:
    fl_step_fn run
    const void *plan
    int32_t first      # of its operands
    int32_t count
    int32_t python     # number of the NumPy fallback that this is, or -1


# How many bytes the programs of a model take; each part adds its own and takes them off again when it goes.
cdef class Ledger:
    cdef readonly int64_t nbytes


# Buffer a is `offset` bytes into buffer b (INTO), may take b's place (OVER), or is output number b (OUTPUT).
cdef enum:
    INTO = 0
    OVER = 1
    OUTPUT = 2

cdef struct Link:
    int64_t kind, a, b, offset


# The calls of one node, or of several. Immutable; shared by all programs in which nothing about the node differs.
cdef class Chunk:
    cdef Native *steps
    cdef Place *places
    cdef Link *links
    cdef readonly int count
    cdef int total, linked
    cdef double work, longest
    cdef bint python, loops
    cdef list given     # the step of each call
    cdef list counts    # of several nodes: how many steps each has; else None
    cdef object keep    # what constants point into
    cdef int64_t nbytes
    cdef Ledger ledger
    cdef int count_bytes(self, int64_t nbytes) except -1


cdef struct Span:
    int64_t nbytes
    int64_t offset      # in the arena
    int32_t first, last # the calls that it is needed from and to
    int32_t over        # the buffer whose place it may take, or -1
    int32_t output      # the output that it is, or -1
    int32_t heir        # whether another one has taken over its place


# What keys stand for: open addressing, `size` a power of two.
cdef struct Entry:
    int64_t key, value, offset

cdef struct Map:
    Entry *entries
    int64_t mask

cdef int map_begin(Map *map, int64_t count) except -1
cdef Entry *map_find(Map *map, int64_t key) noexcept nogil   # the entry of a key; one that has the key -1 where it would be


# Sets the offset of every buffer that is no output; returns the size of the arena, or -1 where there is no memory.
cdef int64_t lay_out(Span *spans, int count, int calls) noexcept nogil
