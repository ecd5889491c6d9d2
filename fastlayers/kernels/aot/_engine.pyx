"""The driver's base: picks and loads a level, and gives the other modules its table, threads and memory."""

import importlib.util

import numpy as np

from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
cimport cython
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset
cimport numpy as cnp

from ..._lazy import imported
from ..._machine import memory as machine_memory
from ...errors import LimitError

cnp.import_array()

cdef extern from "<stdint.h>":
    enum:
        PTRDIFF_MAX

cdef extern from "csrc/cpu.h":
    int fl_usable(const char *level)

cdef extern from "csrc/kernels.h":
    const char *FL_CAPSULE

cdef extern from "csrc/pool.h" nogil:
    enum:
        FL_MAX_THREADS
    void fl_parallel(fl_task_fn fn, void *context, int64_t tasks, int threads)
    void fl_parallel_whole(fl_task_fn fn, void *context, int64_t tasks, int threads)
    void fl_run_begin()
    void fl_run_end()
    void fl_run_wake(int threads)
    bint fl_pool_awake()
    void fl_pool_init()
    int fl_pool_recent()
    int fl_pool_close()
    int fl_pool_workers()
    ctypedef struct fl_stops:
        pass
    const fl_stops fl_stop_table
    ctypedef struct fl_watch:
        void (*job)(fl_watch *, int64_t tasks, int threads, int64_t together, int64_t busiest) noexcept nogil
    void fl_watch_jobs(fl_watch *watch)

cdef extern from "csrc/platform.h" nogil:
    int64_t fl_now_ns()

cdef extern from "csrc/lockstep.h" nogil:
    void fl_lockstep(fl_part_fn fn, void *context, int64_t steps, int parts, int threads)

cdef extern from "csrc/memory.h" nogil:
    void *fl_alloc(size_t bytes)
    void *fl_alloc_long(size_t bytes)
    void fl_free(void *block)
    void fl_memory_init()
    size_t fl_memory_kept()
    size_t fl_memory_used()
    void fl_memory_trim()
    void fl_give_back_heap()

cdef extern from *:
    """
    /* Of the calling thread: the most threads that its jobs may use, 0 for no limit; the level that it binds a model for, or NULL. */
    static _Thread_local int fl_limit;
    static _Thread_local const fl_kernels *fl_level_here;
    """
    int fl_limit
    const fl_kernels *fl_level_here

cdef extern from "numpy/arrayobject.h":
    ctypedef struct Allocator "PyDataMemAllocator":
        void *ctx
        void *malloc(void *, size_t) noexcept
        void *calloc(void *, size_t, size_t) noexcept
        void *realloc(void *, void *, size_t) noexcept
        void free(void *, void *, size_t) noexcept
    ctypedef struct Handler "PyDataMem_Handler":
        char name[127]
        unsigned char version
        Allocator allocator
    object PyDataMem_GetHandler()
    object PyDataMem_SetHandler(object)

cdef struct Counter:  # what numpy's arrays are made with while memory is counted; lives as long as they do
    Handler handler
    Handler *below
    PyObject *before   # the capsule of `below`
    PyObject *capsule  # this one's own, borrowed
    int64_t used, most

cdef extern from *:
    "static _Thread_local void *fl_counting;"
    void *fl_counting  # the Counter of the calling thread; NULL: nothing is counted

cdef extern from "csrc/turns.h" nogil:
    void fl_turns_init()
    void fl_want_turn()
    void fl_have_turn()
    int fl_wanted()
    void fl_until_taken()

cdef const fl_kernels *_level = NULL
cdef bint _enabled = False
cdef int _threads = 1
cdef int _most_threads = 1  # so far

RELEASE_GIL = 2e6            # 20 us
cdef double WORK_A_THREAD = 5e5  # 5 us: a thread that waits for it takes up work after about 1,
cdef double WORK_OF_A_PAIR = 5e5 # and where there are two, 5 us of work for both pay;
cdef double WORK_ASLEEP = 4e6    # and one that sleeps, and has to be called, after about 20, which costs the caller 5 to 10;
cdef double WORK_OF_TWO = 4.5e6  # where runs follow each other within 200 us, one is called for 45 us in all
cdef double WORK_IN_A_ROW = 1.5e6 # where each run begins as soon as the one before has ended, one is called for less, and then stays awake
cdef double WORK_OF_A_RUN = 1e7  # 100 us: a run of so much has its workers called at once
cdef size_t ASKED = 1 << 30      # beyond it is asked whether the machine has so much: the system would grant it, and end the process
cdef size_t RECYCLE = 1 << 16    # results from this size on are recycled: smaller ones cost numpy no page faults

cdef size_t LARGE_COPY = 1 << 18  # bytes from which on the GIL is given up for a copy

# For `_stop`.
stops = PyCapsule_New(<void *>&fl_stop_table, b"fastlayers.stops", NULL)

fl_pool_init()
fl_memory_init()
fl_turns_init()


cdef const fl_kernels *level() noexcept nogil:
    return _level if fl_level_here == NULL else fl_level_here


cdef int limit_threads(int most) noexcept nogil:
    global fl_limit
    cdef int before = fl_limit
    fl_limit = most
    return before


def thread_limit():
    """For tests: the limit of this thread, 0 for none."""
    return fl_limit


cdef bint enabled() noexcept nogil:
    return _enabled


cdef int workers(int64_t tasks, double work) noexcept nogil:
    cdef bint awake = fl_pool_awake()
    cdef double most = work / (WORK_A_THREAD if awake else WORK_ASLEEP)
    cdef int64_t n = _threads
    if 0 < fl_limit < n:
        n = fl_limit
    if n > tasks:
        n = tasks
    if n > 1 and most < 2 and not awake and work >= WORK_IN_A_ROW and (fl_pool_close() or work >= WORK_OF_TWO and fl_pool_recent()):
        return 2
    if n > 1 and most < 2 and awake and work >= WORK_OF_A_PAIR:
        return 2
    if n > most:
        n = <int64_t>most
    return <int>n if n > 1 else 1


cdef int hands(double work) noexcept nogil:
    cdef double most = work / WORK_A_THREAD
    if most < 2 and work >= WORK_OF_A_PAIR:
        most = 2
    return max(1, <int>min(<double>_most_threads, most))


cdef void parallel(fl_task_fn fn, void *context, int64_t tasks, int threads) noexcept nogil:
    fl_parallel(fn, context, tasks, threads)


cdef void parallel_whole(fl_task_fn fn, void *context, int64_t tasks, int threads) noexcept nogil:
    fl_parallel_whole(fn, context, tasks, threads)


cdef int with_scratch(fl_task_fn fn, void *job, char **memory, int64_t each, int64_t tasks, double work) noexcept nogil:
    cdef int threads = workers(tasks, work)
    if tasks == 0:
        return 0
    memory[0] = <char *>alloc(threads * each) if each else NULL
    if memory[0] == NULL and each:
        return -1
    parallel(fn, job, tasks, threads)
    release(memory[0])
    return 0


cdef void lockstep(fl_part_fn fn, void *context, int64_t steps, int parts, int threads) noexcept nogil:
    fl_lockstep(fn, context, steps, parts, threads)


cdef void want_gil() noexcept nogil:
    fl_want_turn()


cdef void have_gil() noexcept nogil:
    fl_have_turn()


def give_way():
    """Lets a thread go first that waits for the GIL at the end of its run: Python itself would keep it waiting for 5 ms."""
    if fl_wanted():
        with nogil:
            fl_until_taken()


cdef void run_begin() noexcept nogil:
    fl_run_begin()


cdef void run_wake(double work) noexcept nogil:
    if work >= WORK_OF_A_RUN and _threads > 1 and fl_limit != 1:
        fl_run_wake(min(_threads, fl_limit) if fl_limit > 0 else _threads)


cdef void run_end() noexcept nogil:
    fl_run_end()


cdef void *alloc(size_t bytes) noexcept nogil:
    return fl_alloc(bytes)


cdef void release(void *block) noexcept nogil:
    fl_free(block)


cdef void *need(size_t bytes, str what) except? NULL:
    cdef void *block = fl_alloc_long(bytes)
    if block == NULL:
        raise LimitError(f"{what}: no memory for {bytes} bytes")
    return block


cdef float *copied(cnp.ndarray array, str what) except? NULL:
    cdef size_t bytes = cnp.PyArray_NBYTES(array)
    cdef float *to = <float *>need(bytes, what)
    cdef const void *from_ = cnp.PyArray_DATA(array)
    if bytes < LARGE_COPY:
        memcpy(to, from_, bytes)
    else:
        with nogil:
            memcpy(to, from_, bytes)
    return to


cdef bint fits(Counter *counter, size_t bytes) noexcept nogil:
    """Counts bytes, if that many are left."""
    if bytes > <size_t>PTRDIFF_MAX or <int64_t>bytes > counter.most - counter.used:
        return False
    counter.used += <int64_t>bytes
    return True


cdef void *counted_malloc(void *context, size_t size) noexcept:
    cdef Counter *counter = <Counter *>context
    cdef const Allocator *below = &counter.below.allocator
    return below.malloc(below.ctx, size) if fits(counter, size) else NULL


cdef void *counted_calloc(void *context, size_t count, size_t size) noexcept:
    cdef Counter *counter = <Counter *>context
    cdef const Allocator *below = &counter.below.allocator
    if size and count > <size_t>PTRDIFF_MAX // size:
        return NULL
    return below.calloc(below.ctx, count, size) if fits(counter, count * size) else NULL


cdef void *counted_realloc(void *context, void *block, size_t size) noexcept:
    # The old size is not known, so the new one must fit next to it; it is what will be given back.
    cdef Counter *counter = <Counter *>context
    cdef const Allocator *below = &counter.below.allocator
    return below.realloc(below.ctx, block, size) if fits(counter, size) else NULL


cdef void counted_free(void *context, void *block, size_t size) noexcept:
    cdef Counter *counter = <Counter *>context
    cdef const Allocator *below = &counter.below.allocator
    counter.used -= <int64_t>size
    below.free(below.ctx, block, size)


cdef void drop_counter(object capsule) noexcept:
    cdef Counter *counter = <Counter *>PyCapsule_GetPointer(capsule, b"mem_handler")
    Py_DECREF(<object>counter.before)
    free(counter)


cdef object count_begin(int64_t most):
    """From here on no array of numpy's may take this thread beyond `most` bytes, until `count_end` gets what is returned: None if
    something is counted already, and goes on being so."""
    global fl_counting
    if fl_counting != NULL:
        return None
    cdef Counter *counter = <Counter *>malloc(sizeof(Counter))
    if counter == NULL:
        raise MemoryError
    counter.used, counter.most, counter.below = 0, most, NULL
    memcpy(counter.handler.name, b"fastlayers", 11)
    counter.handler.version = 1
    counter.handler.allocator = Allocator(counter, counted_malloc, counted_calloc, counted_realloc, counted_free)
    before = PyDataMem_GetHandler()
    counter.below = <Handler *>PyCapsule_GetPointer(before, b"mem_handler")
    capsule = PyCapsule_New(counter, b"mem_handler", drop_counter)
    Py_INCREF(before)
    counter.before, counter.capsule = <PyObject *>before, <PyObject *>capsule
    PyDataMem_SetHandler(capsule)
    fl_counting = counter
    return before, capsule


cdef int count_end(object begun) except -1:
    global fl_counting
    if begun is not None:
        fl_counting = NULL
        PyDataMem_SetHandler(begun[0])
    return 0


@cython.final
cdef class Counted:
    """Within it, what numpy's arrays and the engine's results take in this thread is counted: no more than `most` bytes at once.

    What would be more raises MemoryError (numpy) or LimitError. Inside another one it does nothing: the outer one counts."""
    cdef int64_t most
    cdef object begun

    def __init__(self, most):
        self.most = most

    def __enter__(self):
        self.begun = count_begin(self.most)

    def __exit__(self, *error):
        count_end(self.begun)


cdef bint has_room(size_t bytes) noexcept nogil:
    cdef Counter *counter = <Counter *>fl_counting
    return counter == NULL or <int64_t>bytes <= counter.most - counter.used


@cython.final
@cython.no_gc
@cython.freelist(16)
cdef class Block:
    """Owns the memory of one recycled result; the array's base."""
    cdef void *data
    cdef int64_t bytes       # that are counted
    cdef object owner        # of their counter, or None

    def __dealloc__(self):
        fl_free(self.data)
        if self.owner is not None:
            (<Counter *>PyCapsule_GetPointer(self.owner, b"mem_handler")).used -= self.bytes


cdef cnp.ndarray empty(int ndim, cnp.npy_intp *shape):
    cdef size_t bytes = 4
    cdef int i
    for i in range(ndim):
        if shape[i] and bytes > (<size_t>PTRDIFF_MAX) / <size_t>shape[i]:
            raise _no_memory(ndim, shape)
        bytes *= <size_t>shape[i]
    if bytes > ASKED and bytes > <size_t>machine_memory() // 4 * 3:
        raise _no_memory(ndim, shape)
    if bytes < RECYCLE:
        return cnp.PyArray_EMPTY(ndim, shape, cnp.NPY_FLOAT32, 0)
    cdef Block block = Block.__new__(Block)
    cdef Counter *counter = <Counter *>fl_counting
    if counter != NULL:
        if not fits(counter, bytes):
            raise _no_memory(ndim, shape)
        block.bytes, block.owner = <int64_t>bytes, <object>counter.capsule
    block.data = fl_alloc(bytes)
    if block.data == NULL:
        raise _no_memory(ndim, shape)
    cdef cnp.ndarray array = cnp.PyArray_SimpleNewFromData(ndim, shape, cnp.NPY_FLOAT32, block.data)
    cnp.set_array_base(array, block)
    return array


cdef object _no_memory(int ndim, cnp.npy_intp *shape):
    return LimitError(f"fastlayers: no memory for a float32 result of shape {tuple([shape[i] for i in range(ndim)])}")


def empty_array(tuple shape):
    """An uninitialized float32 array; large ones live in recycled memory."""
    cdef cnp.npy_intp dims[32]
    cdef int i, n = len(shape)
    if n > 32:  # numpy says whether it has so many axes
        return np.empty(shape, np.float32)
    for i in range(n):
        dims[i] = shape[i]
    return empty(n, dims)


def multiplies_bfloat16():
    """Does the level multiply bfloat16, where weights are stored so?"""
    return level().halves.native(FL_BRAIN) != 0


def multiplies_three_bytes():
    """Are exact products with weights of 8 bits those of integers of three bytes, which take less time than floats?"""
    cdef fl_nbits bytes_
    memset(&bytes_, 0, sizeof(bytes_))
    bytes_.bits = 8
    return level().nbits_three(&bytes_) != 0


def usable(str name):
    """Is level `name` built, and can this processor run it?"""
    if not fl_usable(name.encode()):
        return False
    return importlib.util.find_spec(f"{__package__}._{name}") is not None


cdef const fl_kernels *table_of(str name) except NULL:
    cdef const fl_kernels *table
    capsule = imported(f"{__package__}._{name}").table
    table = <const fl_kernels *>PyCapsule_GetPointer(capsule, FL_CAPSULE)
    if table.abi != FL_ABI:
        raise ImportError(f"fastlayers: level {name} was built for another version of the engine (abi {table.abi}, need {FL_ABI})")
    return table


def select(str name):
    """Makes `name` the level of all kernels from now on. The caller has asked `usable`."""
    global _level, _enabled
    _level, _enabled = table_of(name), True


def bind_under(name, bint fine=False):
    """Makes `name` (None: that of all) the level of what this thread packs, plans and runs, with sums in finer blocks if `fine`.
    Returns the arguments that undo it."""
    global fl_level_here
    cdef const fl_kernels *table = fl_level_here
    before = (None, False) if table == NULL else (table.name.decode(), table.fine == NULL)
    if name is None:
        fl_level_here = NULL
    else:
        table = table_of(name)
        fl_level_here = table.fine if fine else table
    return before


def deselect():
    """Another variant runs from now on: objects that call the engine straight away step aside. Calls in flight are not disturbed."""
    global _enabled
    _enabled = False


def set_threads(int n):
    """The most threads that one call may use."""
    global _threads, _most_threads
    _threads = min(n, FL_MAX_THREADS)
    _most_threads = max(_most_threads, _threads)


def get_threads():
    """Returns the number of threads that was set last."""
    return _threads


def pool_workers():
    """Worker threads that exist now."""
    return fl_pool_workers()


cdef struct Watched:
    fl_watch watch
    int64_t *rows
    int64_t room, count, step

cdef Watched _watched


cdef void _watched_job(fl_watch *watch, int64_t tasks, int threads, int64_t together, int64_t busiest) noexcept nogil:
    cdef int64_t *row = _watched.rows + 5 * _watched.count
    _watched.count += 1
    if _watched.count <= _watched.room:
        row[0], row[1], row[2], row[3], row[4] = _watched.step, tasks, threads, together, busiest


cdef int64_t step_clock(int64_t step) noexcept nogil:
    _watched.step = step
    return fl_now_ns()


def watch_jobs(cnp.ndarray rows=None):
    """To foresee what more threads would do, see csrc/pool.h: from now on a row (step of a profile, tasks, threads, ns of all tasks together
    and of the busiest thread) is written for each job of this thread that is cut. Without `rows`: no longer; returns how many there were."""
    fl_watch_jobs(NULL)
    if rows is None:
        return _watched.count
    if rows.ndim != 2 or rows.shape[1] != 5 or rows.dtype != np.int64 or not rows.flags.c_contiguous:
        raise ValueError("watch_jobs: rows must be int64, contiguous, of 5 columns")
    _watched.watch.job, _watched.rows = _watched_job, <int64_t *>cnp.PyArray_DATA(rows)
    _watched.room, _watched.count = rows.shape[0], 0
    fl_watch_jobs(&_watched.watch)
    return 0


cdef struct ProbeJob:
    int *worker
    int64_t *runs
    int64_t *inner
    unsigned long long *mark
    int64_t steps, inner_tasks


cdef void _probe_inner(void *context, int64_t task, int worker) noexcept nogil:
    (<int64_t *>context)[task] += 1


cdef void _probe_task(void *context, int64_t task, int worker) noexcept nogil:
    cdef ProbeJob *job = <ProbeJob *>context
    cdef unsigned long long mark = task
    cdef int64_t step
    for step in range(job.steps):
        mark = mark * 6364136223846793005ULL + 1442695040888963407ULL
    job.mark[task] = mark
    job.worker[task] = worker
    job.runs[task] += 1
    if job.inner_tasks:
        fl_parallel(_probe_inner, job.inner + task * job.inner_tasks, job.inner_tasks, FL_MAX_THREADS)


def parallel_probe(int64_t tasks, int threads, int64_t steps=0, int64_t inner=0, int64_t repeat=1):
    """For tests: does one job `repeat` times, in one run, and returns arrays by task.

    "worker" did it last; "runs" and "inner" say how often it, and each task of the job that it starts itself, was done; "mark" is
    what `steps` steps of a generator (about 1.5 ns each) lead to.
    """
    result = {
        "worker": np.full(tasks, -1, np.intc), "runs": np.zeros(tasks, np.int64),
        "inner": np.zeros((tasks, inner), np.int64), "mark": np.zeros(tasks, np.ulonglong),
    }
    cdef int64_t k
    cdef ProbeJob job
    job.worker = <int *>cnp.PyArray_DATA(result["worker"])
    job.runs = <int64_t *>cnp.PyArray_DATA(result["runs"])
    job.inner = <int64_t *>cnp.PyArray_DATA(result["inner"])
    job.mark = <unsigned long long *>cnp.PyArray_DATA(result["mark"])
    job.steps, job.inner_tasks = steps, inner
    with nogil:
        fl_run_begin()
        for k in range(repeat):
            fl_parallel(_probe_task, &job, tasks, threads)
        fl_run_end()
    return result


def memory_kept():
    """Bytes on the free list."""
    return fl_memory_kept()


def memory_used():
    """Bytes of large blocks in use: results that live, memory of runs, packed weights."""
    return fl_memory_used()


def memory_trim():
    """Gives the free list back to the system, and what malloc keeps."""
    with nogil:
        fl_memory_trim()
        fl_give_back_heap()


def level_info():
    """Name, vector width in floats and tallest tile of the selected level."""
    return {"name": _level.name.decode(), "width": _level.width, "mr": _level.mr}


def probe_fma(int64_t rounds):
    """Runs the multiply-add probe and returns how many multiply-adds it did."""
    with nogil:
        result = _level.probe_fma(rounds)
    return result


def probe_read(cnp.ndarray x):
    """Runs the reading probe over x, float32 and contiguous, and returns the sum of its elements."""
    if x.dtype != np.float32 or not x.flags.c_contiguous:  # a typed memoryview would say so too, in 60 KB of code
        raise TypeError("probe_read: x must be float32 and contiguous")
    cdef const float *first = <const float *>cnp.PyArray_DATA(x)
    cdef int64_t count = x.size
    cdef float total
    with nogil:
        total = _level.probe_read(first, count)
    return total
