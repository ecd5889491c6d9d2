"""Runs a bound program: an array of steps over one arena, in one call, without Python between them.

A `Bound` is what one set of input shapes becomes: functions, plans and addresses, the last as (space, offset), since arena, inputs and outputs
lie elsewhere in every run. A `Runner` takes a call from Python to the bound program of its shapes in a fraction of a microsecond, and gives
every unusual call (other shapes, dtypes, names) back to Python by returning None.
"""

cimport cython
from cpython.dict cimport PyDict_GetItem, PyDict_Size
from cpython.ref cimport PyObject
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcmp
cimport numpy as cnp

import numpy as np

from ._engine cimport RELEASE_GIL, alloc, count_begin, count_end, empty, has_room, limit_threads, release, run_begin, run_end
from ._step cimport Step, fl_step_fn, out_of_range

from ...errors import LimitError, ShapeError, UnsupportedError

cnp.import_array()

cdef extern from "csrc/platform.h" nogil:
    int64_t fl_now_ns()

cdef enum:
    ARENA = 0
    CONSTANT = 1
    FIRST = 2        # inputs, then outputs
    MOST_OPERANDS = 16
    MOST_BASES = 66  # 64 inputs and outputs: more of them take the general path through Python's heap
    MOST_AXES = 32   # of arrays that are made here
    PYTHON_WORK = 1000000
    RAISED = -3      # what a user's function returns instead of raising

cdef struct Operand:
    int32_t space      # ARENA, CONSTANT (offset is the address), or FIRST + number of an input or output; -1 for NULL
    int64_t offset

cdef struct Native:
    fl_step_fn run
    const void *plan
    int32_t first      # of its operands
    int32_t count
    int32_t python     # number of the numpy step that this is, or -1


cdef int axes_of(tuple shape) except -1:
    if len(shape) > MOST_AXES:
        raise UnsupportedError(f"run: an array has {len(shape)} axes: at most {MOST_AXES} are supported")
    return len(shape)


@cython.final
cdef class PythonStep:
    """A numpy step: a function of arrays, made over the run's memory, whose results are copied into it."""
    cdef object function, store
    cdef tuple inputs, outputs   # of (shape, dtype), or None

    def __init__(self, function, store, tuple inputs, tuple outputs):
        self.function, self.store, self.inputs, self.outputs = function, store, inputs, outputs
        for spec in inputs + outputs:
            if spec is not None:
                axes_of(spec[0])


@cython.final
cdef class UsersStep:
    """A native step of a user's function, and the same function as a numpy step: its errors come from there."""
    cdef Step step
    cdef PythonStep instead

    def __init__(self, Step step, PythonStep instead):
        self.step, self.instead = step, instead


@cython.final
cdef class Bound:
    """A program bound to shapes. Immutable; may run on any number of threads at once."""
    cdef Native *steps
    cdef Operand *operands
    cdef int count
    cdef readonly int inputs, outputs
    cdef readonly size_t arena
    cdef int64_t most           # bytes that arena and numpy steps may take together
    cdef readonly double work, longest
    cdef bint python
    cdef tuple keep
    cdef tuple out_specs        # (shape, dtype) of every output
    cdef cnp.npy_intp *out_shape  # of all outputs, one after the other
    cdef int *out_ndim
    cdef int *out_type

    def __cinit__(self, list calls, tuple keep, int inputs, tuple outputs, size_t arena, int64_t most):
        """`calls`: (Step or PythonStep, ((space, offset) or None, ...)) each; `keep` holds what constants point into."""
        cdef int i = 0, at = 0, j, total = 0
        cdef Step step
        cdef Native *native
        self.count, self.inputs, self.outputs, self.arena, self.keep = len(calls), inputs, len(outputs), arena, (keep, calls)
        self.out_specs, self.most = outputs, most
        for _, places in calls:
            total += len(places)
        self.steps = <Native *>alloc((self.count + 1) * sizeof(Native))
        self.operands = <Operand *>alloc((total + 1) * sizeof(Operand))
        self.out_shape = <cnp.npy_intp *>alloc((self.outputs * MOST_AXES + 1) * sizeof(cnp.npy_intp))
        self.out_ndim = <int *>alloc((2 * self.outputs + 1) * sizeof(int))
        if self.steps == NULL or self.operands == NULL or self.out_shape == NULL or self.out_ndim == NULL:
            raise LimitError("load: no memory for the steps of a program")
        self.out_type = self.out_ndim + self.outputs
        for step_, places in calls:
            native = self.steps + i
            native.first, native.count, native.python = at, len(places), -1
            if isinstance(step_, UsersStep):
                # If it raises, arrays over the arena are made.
                self.python = True
                step_ = (<UsersStep>step_).step
            if isinstance(step_, PythonStep):
                native.python = i
                self.python = True
                self.work += PYTHON_WORK
            else:
                step = step_
                native.run, native.plan = step.run, step.plan
                self.work += step.work
                self.longest = max(self.longest, step.work)
            for place in places:
                self.operands[at].space, self.operands[at].offset = (-1, 0) if place is None else place
                at += 1
            i += 1
        at = 0
        for i in range(self.outputs):
            shape, dtype = outputs[i]
            self.out_ndim[i], self.out_type[i] = axes_of(shape), (<cnp.dtype?>dtype).type_num
            for j in range(len(shape)):
                self.out_shape[MOST_AXES * i + j] = shape[j]

    def __dealloc__(self):
        release(self.steps)
        release(self.operands)
        release(self.out_shape)
        release(self.out_ndim)

    cdef int execute(self, void **bases, held) except -1:
        """Runs all steps; `bases` holds the addresses of arena, 0, inputs and outputs; the arena's is filled in here.

        `held` keeps the inputs and outputs: arrays that a user's function gets may outlive the run, in a traceback for one."""
        cdef int i = 0, failed = 0
        cdef bint many = self.longest > RELEASE_GIL
        cdef object owner = None, counting = count_begin(self.most) if self.python else None
        bases[ARENA] = NULL
        try:
            if self.python:
                # For the same reason the arena belongs to an object here.
                owner = cnp.PyArray_EMPTY(1, [<cnp.npy_intp>self.arena + 64], cnp.NPY_UINT8, 0)
                bases[ARENA] = <void *>((<size_t>cnp.PyArray_DATA(<cnp.ndarray>owner) + 63) // 64 * 64)
            elif self.arena:
                bases[ARENA] = alloc(self.arena) if has_room(self.arena) else NULL
                if bases[ARENA] == NULL:
                    raise MemoryError
            while i < self.count:
                if self.steps[i].python >= 0:
                    self.python_step(i, bases, owner, held)
                    i += 1
                    continue
                if self.work < RELEASE_GIL:
                    failed = self.stretch(&i, bases)
                else:
                    with nogil:
                        if many:
                            run_begin()
                        failed = self.stretch(&i, bases)
                        if many:
                            run_end()
                if failed == RAISED:
                    self.python_step(i, bases, owner, held)
                    i += 1
                    continue
                if failed == -2:
                    raise self.wrong_index(i, bases)
                if failed:
                    raise LimitError("run: no memory for scratch")
        except LimitError:
            raise
        except MemoryError as error:
            raise LimitError(f"run: no memory for a step, or the {self.arena} bytes of intermediate results: {error}") from None
        finally:
            if owner is None:
                release(bases[ARENA])
            count_end(counting)
        return 0

    cdef object wrong_index(self, int i, void **bases):
        """The error of step i, which has found an index out of range."""
        cdef Step step = self.keep[1][i][0]
        cdef Operand *operand
        if step.indices is None:
            return ShapeError("run: an index is out of range")
        at, count, least, most = step.indices
        operand = self.operands + self.steps[i].first + <int>at
        return out_of_range("run: index", <const int64_t *>(<char *>bases[operand.space] + operand.offset), count, least, most)

    cdef int stretch(self, int *i, void **bases) noexcept nogil:
        """Runs native steps from i on, until a numpy step or the end; i is then its number."""
        cdef void *operands[MOST_OPERANDS]
        cdef Operand *operand
        cdef Native *step
        cdef int j, failed
        while i[0] < self.count:
            step = self.steps + i[0]
            if step.python >= 0:
                return 0
            operand = self.operands + step.first
            for j in range(step.count):
                operands[j] = NULL if operand[j].space < 0 else <void *>(<char *>bases[operand[j].space] + operand[j].offset)
            failed = step.run(step.plan, operands)
            if failed:
                return failed
            i[0] += 1
        return 0

    cdef int python_step(self, int i, void **bases, owner, held) except -1:
        cdef object given = self.keep[1][i][0]
        cdef PythonStep step = (<UsersStep>given).instead if isinstance(given, UsersStep) else given
        cdef Operand *operand = self.operands + self.steps[i].first
        cdef int n = len(step.inputs), j
        inputs = [self.view(step.inputs[j], operand + j, bases, owner, held, False) for j in range(n)]
        outputs = [self.view(step.outputs[j], operand + n + j, bases, owner, held, True) for j in range(len(step.outputs))]
        step.store(step.function(*inputs), outputs)
        return 0

    cdef object view(self, spec, Operand *operand, void **bases, owner, held, bint writeable):
        cdef cnp.npy_intp shape[MOST_AXES]
        cdef int j, ndim
        cdef cnp.ndarray array
        if spec is None:
            return None
        ndim = len(spec[0])
        for j in range(ndim):
            shape[j] = spec[0][j]
        array = cnp.PyArray_SimpleNewFromData(ndim, shape, (<cnp.dtype?>spec[1]).type_num, <char *>bases[operand.space] + operand.offset)
        cnp.set_array_base(array, owner if operand.space == ARENA else self if operand.space == CONSTANT else held)
        if not writeable:
            array.flags.writeable = False
        return array

    cdef object outcome(self, void **bases, int at):
        """Makes fresh outputs, sets their bases from bases[at] on, and returns them as a tuple."""
        cdef int i
        cdef cnp.ndarray array
        cdef list made = []
        for i in range(self.outputs):
            if self.out_type[i] == cnp.NPY_FLOAT32:
                array = empty(self.out_ndim[i], self.out_shape + MOST_AXES * i)
            else:
                try:
                    array = cnp.PyArray_EMPTY(self.out_ndim[i], self.out_shape + MOST_AXES * i, self.out_type[i], 0)
                except MemoryError as error:
                    raise LimitError(f"run: no memory for an output: {error}") from None
            bases[at + i] = cnp.PyArray_DATA(array)
            made.append(array)
        return tuple(made)

    def run(self, list inputs, outputs=None, int threads=0):
        """Runs on contiguous inputs of the bound shapes and dtypes; returns a tuple of fresh outputs, or fills the ones given."""
        cdef void *few[MOST_BASES]
        cdef void **bases = few
        cdef int i, before, total = FIRST + self.inputs + self.outputs
        if len(inputs) != self.inputs:
            raise ValueError(f"run: {len(inputs)} inputs: expected {self.inputs}")
        if total > MOST_BASES:
            bases = <void **>alloc(total * sizeof(void *))
            if bases == NULL:
                raise LimitError("run: no memory")
        before = limit_threads(threads)
        if not threads:
            limit_threads(before)  # within a run that has called a user's function, that one's
        try:
            bases[ARENA] = bases[CONSTANT] = NULL
            for i in range(self.inputs):
                bases[FIRST + i] = cnp.PyArray_DATA(<cnp.ndarray?>inputs[i])
            if outputs is None:
                outputs = self.outcome(bases, FIRST + self.inputs)
            else:
                for i in range(self.outputs):
                    bases[FIRST + self.inputs + i] = cnp.PyArray_DATA(<cnp.ndarray?>outputs[i])
            self.execute(bases, (inputs, outputs) if self.python else None)
        finally:
            limit_threads(before)
            if bases != few:
                release(bases)
        return outputs


    def profile(self, list inputs, int repeat):
        """Runs `repeat` times with the GIL held, and returns the shortest time of each call in nanoseconds."""
        cdef cnp.ndarray times = np.full(self.count, np.iinfo(np.int64).max, np.int64)
        cdef int64_t *least = <int64_t *>cnp.PyArray_DATA(times)
        cdef void *bases[MOST_BASES]
        cdef void *operands[MOST_OPERANDS]
        cdef int i, j, r
        cdef int64_t start, took
        cdef Operand *operand
        cdef cnp.ndarray arena = np.empty(self.arena + 64, np.uint8)
        if FIRST + self.inputs + self.outputs > MOST_BASES or len(inputs) != self.inputs:
            raise ValueError(f"profile: {len(inputs)} inputs: expected {self.inputs}, at most {MOST_BASES - FIRST} with the outputs")
        for i in range(self.inputs):
            bases[FIRST + i] = cnp.PyArray_DATA(<cnp.ndarray?>inputs[i])
        bases[ARENA], bases[CONSTANT] = <void *>((<size_t>cnp.PyArray_DATA(arena) + 63) // 64 * 64), NULL
        results = self.outcome(bases, FIRST + self.inputs)
        for r in range(repeat):
            for i in range(self.count):
                operand = self.operands + self.steps[i].first
                start = fl_now_ns()
                if self.steps[i].python >= 0:
                    self.python_step(i, bases, arena, (inputs, results))
                else:
                    for j in range(self.steps[i].count):
                        operands[j] = NULL if operand[j].space < 0 else <void *>(<char *>bases[operand[j].space] + operand[j].offset)
                    if self.steps[i].run(self.steps[i].plan, operands):
                        if not isinstance(self.keep[1][i][0], UsersStep):
                            raise LimitError("profile: a step failed")
                        self.python_step(i, bases, arena, (inputs, results))
                took = fl_now_ns() - start
                if took < least[i]:
                    least[i] = took
        return times


cdef struct Input:
    int type
    int ndim
    bint by_value            # its numbers belong to the binding
    cnp.npy_intp shape[MOST_AXES]


@cython.final
cdef class Recent:
    """The binding that was used last, with what it is for."""
    cdef Bound bound
    cdef Input *inputs
    cdef tuple values

    def __dealloc__(self):
        release(self.inputs)


@cython.final
cdef class Runner:
    """The fast way into a model: plain float32 (or whatever the graph wants) arrays of the shapes of the last call."""
    cdef tuple names
    cdef tuple out_names
    cdef Recent recent
    cdef public int threads

    def __init__(self, tuple names, tuple out_names):
        self.names, self.out_names = names, out_names

    def remember(self, Bound bound, list arrays, tuple by_value):
        """Makes `bound` the one that the next call tries. `arrays` are inputs that it fits, contiguous; `by_value` says whose numbers count."""
        cdef Recent recent = Recent.__new__(Recent)
        cdef int i, j, n = len(arrays)
        cdef cnp.ndarray array
        if FIRST + n + bound.outputs > MOST_BASES:
            return
        recent.inputs = <Input *>alloc((n + 1) * sizeof(Input))
        if recent.inputs == NULL:
            return
        for i in range(n):
            array = arrays[i]
            if cnp.PyArray_NDIM(array) > MOST_AXES:
                return
            recent.inputs[i].type, recent.inputs[i].ndim = cnp.PyArray_TYPE(array), cnp.PyArray_NDIM(array)
            recent.inputs[i].by_value = i in by_value
            for j in range(recent.inputs[i].ndim):
                recent.inputs[i].shape[j] = cnp.PyArray_DIM(array, j)
        recent.values = tuple([arrays[i].tobytes() if i in by_value else None for i in range(n)])
        recent.bound = bound
        self.recent = recent

    cdef bint fits(self, Recent recent, int i, PyObject *value, void **bases) noexcept:
        cdef cnp.ndarray array
        cdef const Input *want = recent.inputs + i
        cdef int j
        if value == NULL or not cnp.PyArray_CheckExact(<object>value):
            return False
        array = <cnp.ndarray>value
        if cnp.PyArray_TYPE(array) != want.type or cnp.PyArray_NDIM(array) != want.ndim or not cnp.PyArray_ISCARRAY_RO(array):
            return False
        for j in range(want.ndim):
            if cnp.PyArray_DIM(array, j) != want.shape[j]:
                return False
        if want.by_value and memcmp(<const char *>(<bytes>PyTuple_GET_ITEM(recent.values, i)), cnp.PyArray_DATA(array), cnp.PyArray_NBYTES(array)):
            return False
        bases[FIRST + i] = cnp.PyArray_DATA(array)
        return True

    cdef object finish(self, Bound bound, void **bases, given):
        cdef object results = bound.outcome(bases, FIRST + bound.inputs)
        cdef int before
        cdef object held = (given, results) if bound.python else None
        bases[CONSTANT] = NULL
        if self.threads:
            before = limit_threads(self.threads)
            try:
                bound.execute(bases, held)
            finally:
                limit_threads(before)
        else:
            bound.execute(bases, held)
        return results

    def run(self, feeds):
        """Outputs by name for inputs by name, or None where this is no call of the usual kind."""
        cdef void *bases[MOST_BASES]
        cdef Recent recent = self.recent
        cdef int i, n
        if recent is None or type(feeds) is not dict:
            return None
        n = PyTuple_GET_SIZE(self.names)
        if PyDict_Size(feeds) != n:
            return None
        for i in range(n):
            if not self.fits(recent, i, PyDict_GetItem(feeds, <object>PyTuple_GET_ITEM(self.names, i)), bases):
                return None
        # While the GIL is given up, and within numpy steps, others could take the arrays out of the dict.
        keep = list(feeds.values()) if recent.bound.python or recent.bound.work >= RELEASE_GIL else None
        results = self.finish(recent.bound, bases, keep)
        return {<object>PyTuple_GET_ITEM(self.out_names, i): <object>PyTuple_GET_ITEM(results, i) for i in range(recent.bound.outputs)}

    def call(self, tuple arrays):
        """A tuple of outputs for inputs by position, or None."""
        cdef void *bases[MOST_BASES]
        cdef Recent recent = self.recent
        cdef int i
        if recent is None or PyTuple_GET_SIZE(arrays) != PyTuple_GET_SIZE(self.names):
            return None
        for i in range(PyTuple_GET_SIZE(arrays)):
            if not self.fits(recent, i, <PyObject *>PyTuple_GET_ITEM(arrays, i), bases):
                return None
        return self.finish(recent.bound, bases, arrays)
