"""Steps of classical models around their products: positions of keys, counts of sequences of a pool, and probabilities of pairs of classes.
Tasks are runs of values or rows."""

from cpython.dict cimport PyDict_GetItem, PyDict_Size
from cpython.long cimport PyLong_AsLongLong
from cpython.ref cimport PyObject
from cpython.unicode cimport PyUnicode_CheckExact
from libc.math cimport exp, fabs
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memset
cimport numpy as cnp

from ._engine cimport alloc, parallel, release, workers

from ...errors import ShapeError

cnp.import_array()

cdef enum:
    RUN = 8192      # values of a task
    ROUNDS = 100    # of the probabilities' iteration, at most


# ---- positions of keys ----

ctypedef struct Places:
    const int64_t *x
    const int64_t *keys
    const int64_t *table
    int64_t *out
    int64_t size, n, span, offset
    double work


cdef void places_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Places *job = <const Places *>context
    cdef int64_t i, value, low, count, half
    cdef uint64_t at
    for i in range(number * RUN, min((number + 1) * RUN, job.size)):
        value = job.x[i]
        if job.span:
            at = <uint64_t>value - <uint64_t>job.offset
            job.out[i] = job.table[at] if at < <uint64_t>job.span else job.n
            continue
        low, count = 0, job.n
        while count > 0:  # the first key that is not below the value
            half = count // 2
            if job.keys[low + half] < value:
                low, count = low + half + 1, count - half - 1
            else:
                count = half
        job.out[i] = low if low < job.n and job.keys[low] == value else job.n


cdef int plan_places(Places *job, int64_t x, int64_t keys, int64_t table, int64_t out, int64_t offset) except -1:
    if x != out:
        raise ShapeError(f"places: out has {out} elements: expected {x}, the size of x")
    job.size, job.n, job.span, job.offset = x, keys, table, offset
    job.work = <double>x * (20 if table else 100)
    return 0


cdef int run_places(const void *plan, void *const *operands) noexcept nogil:
    """Operands: x, keys, table, out."""
    cdef Places job = (<const Places *>plan)[0]
    cdef int64_t tasks = (job.size + RUN - 1) // RUN
    job.x, job.keys, job.table = <const int64_t *>operands[0], <const int64_t *>operands[1], <const int64_t *>operands[2]
    job.out = <int64_t *>operands[3]
    parallel(places_task, &job, tasks, workers(tasks, job.work))
    return 0


# ---- sequences of a pool ----

ctypedef struct Grams:
    const int64_t *x
    const int32_t *first
    const int32_t *starts
    const int32_t *symbols
    const int32_t *nodes
    const int32_t *columns
    const float *weight
    float *out
    int64_t m, length, words, n, steps, rows
    bint replace
    double work


cdef inline int32_t child_of(const Grams *job, int32_t node, int64_t symbol) noexcept nogil:
    """The node that a symbol leads to, or -1."""
    cdef int32_t low = job.starts[node], stop = job.starts[node + 1], half
    while low < stop:
        half = low + (stop - low) // 2
        if job.symbols[half] < symbol:
            low = half + 1
        else:
            stop = half
    return job.nodes[low] if low < job.starts[node + 1] and job.symbols[low] == symbol else -1


cdef inline void found(const Grams *job, int32_t node, float *out) noexcept nogil:
    cdef int32_t column = job.columns[node]
    if column >= 0:
        out[column] = job.weight[node] + (0 if job.replace else out[column])


cdef void grams_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Grams *job = <const Grams *>context
    cdef int64_t row, i, j, step
    cdef const int64_t *x
    cdef float *out
    cdef int32_t start, node
    for row in range(number * job.rows, min((number + 1) * job.rows, job.m)):
        x, out = job.x + row * job.length, job.out + row * job.n
        memset(out, 0, job.n * sizeof(float))
        for i in range(job.length):
            start = job.first[x[i]] if 0 <= x[i] < job.words else -1
            if start < 0:
                continue
            found(job, start, out)
            step = 1
            while step <= job.steps and i + step < job.length:
                node, j = start, i + step
                while j < job.length:
                    node = child_of(job, node, x[j])
                    if node < 0:
                        break
                    found(job, node, out)
                    j += step
                step += 1


cdef int plan_grams(Grams *job, const cnp.npy_intp *x, const cnp.npy_intp *first, const cnp.npy_intp *out, int64_t samples, bint last) noexcept:
    job.m, job.length, job.words, job.n = x[0], x[1], first[0], out[1]
    job.steps, job.replace = samples, last
    job.rows = max(RUN // max(job.length * samples + job.n, <int64_t>1), <int64_t>1)
    job.work = <double>job.m * (100.0 * job.length * samples + 4.0 * job.n)
    return 0


cdef int run_grams(const void *plan, void *const *operands) noexcept nogil:
    """Operands: x, first, starts, symbols, nodes, columns, weight, out."""
    cdef Grams job = (<const Grams *>plan)[0]
    cdef int64_t tasks = (job.m + job.rows - 1) // job.rows
    job.x, job.first, job.starts = <const int64_t *>operands[0], <const int32_t *>operands[1], <const int32_t *>operands[2]
    job.symbols, job.nodes, job.columns = <const int32_t *>operands[3], <const int32_t *>operands[4], <const int32_t *>operands[5]
    job.weight, job.out = <const float *>operands[6], <float *>operands[7]
    parallel(grams_task, &job, tasks, workers(tasks, job.work))
    return 0


# ---- probabilities of classes from those of their pairs ----

ctypedef struct Pairs:
    const float *x
    const double *scale
    const double *shift
    float *out
    double *scratch
    int64_t m, pairs, c, rows
    double work


cdef void pairs_row(const Pairs *job, const float *x, float *out, double *q) noexcept nogil:
    """`q`: c * c numbers, and after them 2 c: the probabilities and their products with q."""
    cdef int64_t c = job.c, i, j, k = 0, turn
    cdef double *p = q + c * c
    cdef double *qp = p + c
    cdef double one, two, total, wrong, step, grown
    memset(q, 0, c * c * sizeof(double))
    for i in range(c):
        p[i] = 1.0 / c
        for j in range(i + 1, c):
            one = 1 / (1 + exp(x[k] * job.scale[k] + job.shift[k]))
            one = 1e-7 if one < 1e-7 else 1 - 1e-7 if one > 1 - 1e-7 else one
            two = 1 - one
            q[j * c + j] += one * one
            q[i * c + i] += two * two
            q[i * c + j] = q[j * c + i] = -one * two
            k += 1
    for turn in range(ROUNDS):
        total = wrong = 0
        for i in range(c):
            qp[i] = 0
            for j in range(c):
                qp[i] += q[i * c + j] * p[j]
            total += p[i] * qp[i]
        for i in range(c):
            wrong = max(wrong, fabs(qp[i] - total))
        if not wrong >= 0.005 / c:
            break
        for i in range(c):
            step = (total - qp[i]) / q[i * c + i]
            grown = 1 + step
            p[i] += step
            total = (total + step * (step * q[i * c + i] + 2 * qp[i])) / (grown * grown)
            for j in range(c):
                qp[j] = (qp[j] + step * q[i * c + j]) / grown
                p[j] /= grown
    for i in range(c):
        out[i] = <float>p[i]


cdef void pairs_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Pairs *job = <const Pairs *>context
    cdef int64_t row
    for row in range(number * job.rows, min((number + 1) * job.rows, job.m)):
        pairs_row(job, job.x + row * job.pairs, job.out + row * job.c, job.scratch + worker * (job.c + 2) * job.c)


cdef int plan_pair_probabilities(Pairs *job, const cnp.npy_intp *x, const cnp.npy_intp *scale, const cnp.npy_intp *shift, const cnp.npy_intp *out) except -1:
    job.m, job.pairs, job.c = x[0], x[1], out[1]
    if job.pairs != job.c * (job.c - 1) // 2 or scale[0] != job.pairs or shift[0] != job.pairs or out[0] != job.m:
        raise ShapeError(f"pair_probabilities: {job.m} rows of {job.pairs} pairs, {scale[0]} and {shift[0]} factors, {out[0]} rows "
                         f"of {job.c} classes: expected c (c - 1) / 2 pairs")
    job.rows = max(RUN // max(8 * job.c * job.c, <int64_t>1), <int64_t>1)
    job.work = <double>job.m * (600.0 * job.pairs + 200.0 * job.c * job.c)
    return 0


cdef int run_pairs(const void *plan, void *const *operands) noexcept nogil:
    """Operands: x, scale, shift, out."""
    cdef Pairs job = (<const Pairs *>plan)[0]
    cdef int64_t tasks = (job.m + job.rows - 1) // job.rows
    cdef int threads = workers(tasks, job.work)
    if tasks == 0 or job.c == 0:
        return 0
    job.x, job.scale, job.shift = <const float *>operands[0], <const double *>operands[1], <const double *>operands[2]
    job.out = <float *>operands[3]
    job.scratch = <double *>alloc(threads * (job.c + 2) * job.c * sizeof(double))
    if job.scratch == NULL:
        return -1
    parallel(pairs_task, &job, tasks, threads)
    release(job.scratch)
    return 0


# ---- strings and dicts of Python ----

def codes(array, dict numbers):
    """The number of each string of an array, one more than all for others; None for what is no array of strings alone."""
    cdef cnp.ndarray given, made
    cdef PyObject **items
    cdef PyObject *found
    cdef int64_t *to
    cdef int64_t i, count, other = PyDict_Size(numbers)
    if not cnp.PyArray_Check(array):
        return None
    given = array
    if cnp.PyArray_TYPE(given) == cnp.NPY_UNICODE:
        given = given.astype(object)
    if cnp.PyArray_TYPE(given) != cnp.NPY_OBJECT:
        return None
    if not cnp.PyArray_ISCARRAY_RO(given):
        given = given.copy()
    made = cnp.PyArray_EMPTY(cnp.PyArray_NDIM(given), cnp.PyArray_DIMS(given), cnp.NPY_INT64, 0)
    items, to, count = <PyObject **>cnp.PyArray_DATA(given), <int64_t *>cnp.PyArray_DATA(made), cnp.PyArray_SIZE(given)
    for i in range(count):
        if items[i] == NULL or not PyUnicode_CheckExact(<object>items[i]):
            return None
        found = PyDict_GetItem(numbers, <object>items[i])
        to[i] = other if found == NULL else PyLong_AsLongLong(<object>found)
    return made


def dicts(cnp.ndarray scores not None, tuple keys):
    """A dict for each row of scores (n, keys), which are float32."""
    cdef list made = []
    cdef const float *x = <const float *>cnp.PyArray_DATA(scores)
    cdef int64_t i, j, count = len(keys)
    for i in range(cnp.PyArray_DIM(scores, 0)):
        row = {}
        for j in range(count):
            row[keys[j]] = <double>x[i * count + j]
        made.append(row)
    return made


include "made/classical.pxi"
