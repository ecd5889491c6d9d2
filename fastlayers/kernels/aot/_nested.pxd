"""Runs steps one after the other, and the steps that have their own programs: branches and loops. See _nested.pyx."""

from libc.stdint cimport int32_t, int64_t

from ._plan cimport Native
from ._stop cimport Stop

cdef enum:
    MOST_OPERANDS = 64
    MOST_BASES = 67  # 64 inputs and outputs, and counters: more of them take the general path through Python's heap
    STOPPED = -4     # the run is to end early
    MANY_ROUNDS = -5 # its loops take more iterations than they may

cdef struct Operand:
    int32_t space      # ARENA, CONSTANT (offset is the address), or FIRST + number of an input or output; -1 for NULL
    int64_t offset

# The steps of a bound program, which owns them.
cdef struct Code:
    Native *steps
    Operand *operands
    int32_t count
    int64_t runs   # how often it ran as a body; several threads may add to it, and lose some

# Runs compiled steps from i on, until a NumPy fallback or the end; i is then its number. A step whose run is to end early is not
# done; `stop` may be NULL.
cdef int run_code(const Code *code, int *i, void **bases, Stop *stop) noexcept nogil

# The loops of this thread's run may take so many iterations together; and how many of these are left.
cdef void grant_rounds(int64_t rounds) noexcept nogil
cdef int64_t rounds_left() noexcept nogil
