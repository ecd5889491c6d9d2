"""Declarations that the driver's modules share: the level's table, threads, scratch memory, results. See csrc/*.h for each
contract."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t
cimport numpy as cnp

# The structures, codes and functions of csrc/kernels.h, which the build reads there: see codegen/.
include "made/level.pxi"

cdef enum:
    WEIGHT_WORK = 12  # a weight's share of reading, in the operations that `workers` counts: few rows are bound by it

cdef extern from "csrc/kernels.h" nogil:
    int64_t FL_ATTENTION_SCRATCH(int64_t d, int64_t e)

cdef extern from "csrc/pool.h" nogil:
    ctypedef void (*fl_task_fn)(void *context, int64_t task, int worker) noexcept nogil

cdef extern from "csrc/lockstep.h" nogil:
    enum:
        FL_LOCKSTEP_PARTS
    ctypedef void (*fl_part_fn)(void *context, int64_t step, int64_t part) noexcept nogil


# The table of the selected level, or of the one that this thread binds a model for; never NULL while a kernel runs.
cdef const fl_kernels *level() noexcept nogil
# Is a compiled variant in use? Only objects that were made under it and are called without dispatch have to ask.
cdef bint enabled() noexcept nogil
# How many threads a job of `tasks` tasks and `work` operations (about: 100 a nanosecond) gets; also how many slots of scratch it needs.
cdef int workers(int64_t tasks, double work) noexcept nogil
# For plans, which cut a job of so much work: among how many threads at most. Later runs may have fewer; the most that there have been
# count, since a finer cut costs one thread nothing that could be measured (SqueezeNet, ShuffleNet, DenseNet-121, ResNet-50).
cdef int hands(double work) noexcept nogil
# Limits what `workers` gives to jobs of the calling thread (0: no limit); returns the limit before, which the caller puts back.
cdef int limit_threads(int most) noexcept nogil
# Runs the tasks on `threads` (a result of `workers`) threads.
cdef void parallel(fl_task_fn fn, void *context, int64_t tasks, int threads) noexcept nogil
cdef void parallel_whole(fl_task_fn fn, void *context, int64_t tasks, int threads) noexcept nogil
# Runs the tasks of a job with `each` bytes of scratch for every thread, whose address is put into the job (`memory`) and is released
# after them. Returns 0, or -1 where there is no memory.
cdef int with_scratch(fl_task_fn fn, void *job, char **memory, int64_t each, int64_t tasks, double work) noexcept nogil
# Steps that follow each other, each cut into at most FL_LOCKSTEP_PARTS parts, as one job.
cdef void lockstep(fl_part_fn fn, void *context, int64_t steps, int parts, int threads) noexcept nogil
# Brackets jobs that follow each other closely: in between, workers stay awake for some microseconds. Every begin has its end.
cdef void run_begin() noexcept nogil
# After a begin: the workers of a run of so much work are called, if that pays.
cdef void run_wake(double work) noexcept nogil
cdef void run_end() noexcept nogil
# The time, where a profile begins a step: for `watch_jobs`.
cdef int64_t step_clock(int64_t step) noexcept nogil
# Scratch: 64-byte aligned, NULL where there is no memory.
cdef void *alloc(size_t bytes) noexcept nogil
# Around the wait for the GIL at the end of a run that gave it up: who works in Python meanwhile hands it over (`give_way`).
cdef void want_gil() noexcept nogil
cdef void have_gil() noexcept nogil

cdef void release(void *block) noexcept nogil

# Around the wait for the GIL at the end of a run that gave it up: who works in Python meanwhile hands it over (`give_way`).
cdef void want_gil() noexcept nogil
cdef void have_gil() noexcept nogil
# The same with the GIL held, raising LimitError in the name of `what`; and a copy of a contiguous array in such memory.
cdef void *need(size_t bytes, str what) except? NULL
cdef float *copied(cnp.ndarray array, str what) except? NULL
# A new float32 array, not initialized, writable and C-contiguous; raises MemoryError.
cdef cnp.ndarray empty(int ndim, cnp.npy_intp *shape)
# Between the two, memory of this thread is counted, see `Counted`; and whether so many bytes are left where it is.
cdef object count_begin(int64_t most)
cdef int count_end(object begun) except -1
cdef bint has_room(size_t bytes) noexcept nogil
# Below this many operations (see `workers`) releasing the GIL costs more than it brings.
cdef double RELEASE_GIL
