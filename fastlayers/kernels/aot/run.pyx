"""Runs a bound program: an array of steps over one arena, in one call, without Python between them.

A `Bound` is what one set of input shapes becomes: functions, plans and addresses, the last as (space, offset), since arena, inputs and outputs
are elsewhere in every run. A `Runner` takes a call from Python to the bound program of its shapes in a fraction of a microsecond, and gives
every unusual call (other shapes, dtypes, names) back to Python by returning None.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem, PyDict_Size
from cpython.ref cimport PyObject
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcmp, memcpy
cimport numpy as cnp

import numpy as np

from ._engine cimport RELEASE_GIL, alloc, count_begin, count_end, empty, has_room, have_gil, limit_threads, need, release, run_begin, run_end, run_wake, step_clock, want_gil
from ._key cimport write_key
from ._nested cimport MANY_ROUNDS, MOST_BASES, MOST_OPERANDS, STOPPED, Code, Operand, grant_rounds, rounds_left, run_code
from ._plan cimport ARENA, CONSTANT, FIRST, INTO, OUTPUT, OVER, Chunk, Entry, Ledger, Map, Native, Place, Span, lay_out, map_begin, map_find
from ._step cimport MOST_AXES, PythonStep, Step, UsersStep, axes_of, index_error
from ._stop cimport SHARED, Stop, deadlines, stop_begin, stop_due, stop_end, stop_raise

from ._engine import give_way
from ._nested import Nested
from ...errors import LimitError, ShapeError

cnp.import_array()

cdef extern from "csrc/platform.h" nogil:
    int64_t fl_now_ns()

cdef enum:
    MOST_COUNTERS = 16  # sizes that the steps of a program may count
    WASTE = 65536    # bytes of an array that a smaller one may leave unused
    KEY_ROOM = 2048  # what longer keys bind takes the general path
    PYTHON_WORK = 1000000
    ENDLESS = 1000000000  # of what may run for any time
    UNCHECKED = 1 << 20  # bytes that iterations may make before somebody compares them with a limit
    RAISED = -3      # what a user's function returns instead of raising

cdef int64_t _ticks = 0


cdef int64_t tick() noexcept:  # a number that rises with every run: of two programs, that with the smaller one has not run for longer
    global _ticks
    _ticks += 1
    return _ticks


@cython.final
cdef class Bound:
    """A program bound to shapes. Immutable; may run on any number of threads at once."""
    cdef Native *steps
    cdef Operand *operands
    cdef int count
    cdef readonly int inputs, outputs
    cdef readonly size_t arena
    cdef int64_t most           # bytes that arena and NumPy fallbacks may take together
    cdef readonly double work, longest
    cdef bint python
    cdef readonly bint loops    # how long those run is unknown
    cdef readonly bint counting # some outputs are as large as a run says, and out_specs have the most
    cdef int64_t rounds         # that they may take together
    cdef Code code_             # for steps that have this as a body
    cdef list chunks
    cdef readonly list counts   # how many steps each node has become, the copies to outputs last: fewer than calls where merged
    cdef list given             # the step of each call
    cdef Ledger ledger
    cdef readonly int64_t nbytes
    cdef readonly tuple out_specs  # (shape, dtype) of every output
    cdef public int64_t used, calls  # when it ran last, and how often
    cdef cnp.npy_intp *out_shape  # of all outputs, one after the other
    cdef int *out_ndim
    cdef int *out_type
    cdef int *out_axis          # which size is counted, or -1
    cdef int *out_counter

    def __cinit__(self, list chunks, int inputs, tuple outputs, int64_t most, Ledger ledger, int64_t nbytes, int64_t rounds, tuple counted):
        """`chunks`: of every node, in order; `outputs`: (shape, dtype) each; `nbytes`: what is retained besides, for `ledger`; `counted`: of
        every output None, or the axis whose size a run counts, and the counter."""
        cdef int i, j, total = 0
        self.inputs, self.outputs, self.chunks, self.given, self.ledger = inputs, len(outputs), chunks, [], ledger
        self.out_specs, self.most, self.rounds, self.counts = outputs, most, rounds, []
        for item in chunks:
            self.counts += (<Chunk?>item).counts or [(<Chunk>item).count]
            self.count, total = self.count + (<Chunk>item).count, total + (<Chunk>item).total
        self.nbytes = nbytes + 1000 + self.count * <int64_t>(sizeof(Native) + 16) + total * <int64_t>sizeof(Operand) + self.outputs * <int64_t>(MOST_AXES * sizeof(cnp.npy_intp) + 300)
        self.steps = <Native *>alloc((self.count + 1) * sizeof(Native))
        self.operands = <Operand *>alloc((total + 1) * sizeof(Operand))
        self.out_shape = <cnp.npy_intp *>alloc((self.outputs * MOST_AXES + 1) * sizeof(cnp.npy_intp))
        self.out_ndim = <int *>alloc((4 * self.outputs + 1) * sizeof(int))
        if self.steps == NULL or self.operands == NULL or self.out_shape == NULL or self.out_ndim == NULL:
            raise LimitError("load: no memory for the steps of a program")
        ledger.nbytes += self.nbytes
        self.out_type = self.out_ndim + self.outputs
        self.out_axis, self.out_counter = self.out_type + self.outputs, self.out_type + 2 * self.outputs
        for i in range(self.outputs):
            shape, dtype = outputs[i]
            self.out_axis[i], self.out_counter[i] = counted[i] or (-1, 0)
            self.counting = self.counting or self.out_axis[i] >= 0
            self.out_ndim[i], self.out_type[i] = axes_of(shape), (<cnp.dtype?>dtype).type_num
            for j in range(len(shape)):
                self.out_shape[MOST_AXES * i + j] = shape[j]
        self.put_together(total)
        self.code_.steps, self.code_.operands, self.code_.count = self.steps, self.operands, self.count

    cdef int put_together(self, int total) except -1:
        """Joins the chunks' calls, and gives every value its place."""
        cdef Map links[3]
        cdef Map found
        cdef Span *spans = NULL
        cdef Chunk chunk
        cdef Native *native
        cdef Place *place
        cdef Operand *operand
        cdef Span *span
        cdef Entry *entry
        cdef int i, at = 0, call = 0, values = 0, linked = 0, calls = self.count
        cdef int64_t number, offset, arena
        for item in self.chunks:
            linked += (<Chunk>item).linked
        links[0].entries = links[1].entries = links[2].entries = found.entries = NULL
        try:
            for i in range(3):
                map_begin(links + i, linked)
            map_begin(&found, total)
            spans = <Span *>need((total + 1) * sizeof(Span), "load")
            for item in self.chunks:
                chunk = item
                for i in range(chunk.linked):
                    entry = map_find(links + chunk.links[i].kind, chunk.links[i].a)
                    entry.key, entry.value, entry.offset = chunk.links[i].a, chunk.links[i].b, chunk.links[i].offset
            for item in self.chunks:
                chunk = item
                give_way()  # to runs of known sizes, which would wait for all of this
                self.python, self.loops = self.python or chunk.python, self.loops or chunk.loops
                self.work += chunk.work
                self.longest = max(self.longest, chunk.longest)
                self.given.extend(chunk.given)
                for i in range(chunk.count):
                    native = self.steps + call
                    native[0] = chunk.steps[i]
                    if native.python >= 0:
                        native.python = call
                        self.work += PYTHON_WORK
                    for place in chunk.places[native.first : native.first + native.count]:
                        operand = self.operands + at
                        at += 1
                        operand.space, operand.offset = place.space, place.offset
                        if place.space != ARENA:
                            continue
                        number, offset = place.number, 0
                        entry = map_find(links + INTO, number)
                        while entry.key != -1:
                            number, offset = entry.value, offset + entry.offset
                            entry = map_find(links + INTO, number)
                        entry = map_find(&found, number)
                        if entry.key == -1:
                            entry.key, entry.value = number, values
                            span = spans + values
                            values += 1
                            span.nbytes, span.first, span.over, span.output, span.offset = 0, call, -1, -1, number
                        span = spans + entry.value
                        span.last = call
                        span.nbytes = max(span.nbytes, offset + place.nbytes)
                        # The value's number for now; the place follows when all are known.
                        operand.space, operand.offset = -2 - <int32_t>entry.value, offset + place.offset
                    native.first = at - native.count
                    call += 1
            for i in range(values):
                number = spans[i].offset
                entry = map_find(links + OVER, number)
                if entry.key != -1:
                    entry = map_find(&found, entry.value)
                    if entry.key != -1:
                        spans[i].over = <int32_t>entry.value
                entry = map_find(links + OUTPUT, number)
                if entry.key != -1:
                    spans[i].output = <int32_t>entry.value
            with nogil:
                arena = lay_out(spans, values, calls)
            if arena < 0:
                raise LimitError("load: no memory for the steps of a program")
            self.arena = arena
            for i in range(at):
                operand = self.operands + i
                if operand.space <= -2:
                    span = spans + (-2 - operand.space)
                    if span.output >= 0:
                        operand.space = FIRST + self.inputs + span.output
                    else:
                        operand.space = ARENA
                        operand.offset += span.offset
        finally:
            for i in range(3):
                release(links[i].entries)
            release(found.entries)
            release(spans)
        return 0

    @property
    def code(self):
        """The address of its steps, for a step that keeps it as a body: None if some of them are Python's."""
        return None if self.python else <size_t>&self.code_

    @property
    def runs(self):
        """Number of runs, alone or as a body."""
        return self.calls + self.code_.runs

    @property
    def nested(self):
        """Its branches and loops, in order."""
        return [given for given in self.given if isinstance(given, Nested)]

    def touch(self):
        """Counts as a run, for who keeps what ran last."""
        self.used = tick()

    def places(self):
        """Positions of each call's operands: (space, offset) each, as a program made again would have them too."""
        cdef int i, j
        return [
            [(self.operands[j].space, self.operands[j].offset) for j in range(self.steps[i].first, self.steps[i].first + self.steps[i].count)]
            for i in range(self.count)
        ]

    def __dealloc__(self):
        if self.out_type != NULL:
            self.ledger.nbytes -= self.nbytes
        release(self.steps)
        release(self.operands)
        release(self.out_shape)
        release(self.out_ndim)

    cdef int execute(self, void **bases, held, meter=None) except -1:
        """Runs all steps; `bases` holds the addresses of arena, 0, inputs and outputs; the arena's is filled in here.

        `held` keeps the inputs and outputs: arrays that a user's function gets may outlive the run, in a traceback for one."""
        cdef int i = 0, failed = 0
        cdef int64_t others = rounds_left()  # of a run that has called a user's function, within which this one is
        cdef Stop memory
        cdef Stop *stop = NULL
        cdef object owner = None, counting = count_begin(self.most) if self.python else None
        bases[ARENA] = NULL
        try:
            if self.work >= SHARED or deadlines or self.loops:
                stop = stop_begin(&memory, ENDLESS if self.loops else self.work)
            if self.loops:
                grant_rounds(self.rounds if meter is None else meter.rounds)
            if self.python:
                # For the same reason the arena belongs to an object here, whose memory is recycled as well.
                try:
                    owner = empty(1, [<cnp.npy_intp>(self.arena + 64) // 4])
                except LimitError:
                    raise MemoryError from None
                bases[ARENA] = <void *>((<size_t>cnp.PyArray_DATA(<cnp.ndarray>owner) + 63) // 64 * 64)
            elif self.arena:
                bases[ARENA] = alloc(self.arena) if has_room(self.arena) else NULL
                if bases[ARENA] == NULL:
                    raise MemoryError
            while i < self.count:
                if stop != NULL and stop_due(stop):
                    break
                if self.steps[i].python >= 0:
                    self.python_step(i, bases, owner, held)
                    i += 1
                    continue
                if self.work < RELEASE_GIL and not self.loops:
                    failed = run_code(&self.code_, &i, bases, stop)
                else:
                    with nogil:
                        run_begin()
                        run_wake(self.work)
                        failed = run_code(&self.code_, &i, bases, stop)
                        run_end()
                        want_gil()
                    have_gil()
                if failed == RAISED:
                    self.python_step(i, bases, owner, held)
                    i += 1
                    continue
                if failed == -2:
                    raise self.wrong_index(i, bases)
                if failed == STOPPED:
                    break
                if failed == MANY_ROUNDS:
                    raise LimitError(f"{self.given[i].where}: its loop, with all others of this run, takes more than {self.rounds if meter is None else meter.most} iterations: pass a larger max_rounds to load if the model is to be trusted")
                if failed:
                    raise LimitError("run: no memory for scratch")
            if stop != NULL:
                stop_raise(stop)
        except LimitError:
            raise
        except MemoryError as error:
            raise LimitError(f"run: no memory for a step, or the {self.arena} bytes of intermediate results: {error}") from None
        finally:
            if self.loops:
                if meter is not None:
                    meter.rounds = rounds_left()
                grant_rounds(others)
            if stop != NULL:
                stop_end(stop)
            if owner is None:
                release(bases[ARENA])
            count_end(counting)
        return 0

    cdef object wrong_index(self, int i, void **bases):
        """The error of step i, which has found an index out of range."""
        cdef Step step = self.given[i] if isinstance(self.given[i], Step) else None
        cdef Operand *operand
        if step is None or step.indices is None:
            return ShapeError("run: an index is out of range")
        operand = self.operands + self.steps[i].first + <int>step.indices[0]
        return index_error("run: index", <const int64_t *>(<char *>bases[operand.space] + operand.offset), step.indices)

    cdef int python_step(self, int i, void **bases, owner, held) except -1:
        cdef object given = self.given[i]
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

    cdef object cut(self, tuple results, const int64_t *counters):
        """The results, of which some have more room than what was counted takes."""
        cdef cnp.npy_intp sizes[MOST_AXES]
        cdef cnp.ndarray array
        cdef list made = list(results)
        cdef int i
        for i in range(self.outputs):
            if self.out_axis[i] < 0:
                continue
            memcpy(sizes, self.out_shape + MOST_AXES * i, self.out_ndim[i] * sizeof(cnp.npy_intp))
            sizes[self.out_axis[i]] = min(max(counters[self.out_counter[i]], <int64_t>0), <int64_t>sizes[self.out_axis[i]])
            array = cnp.PyArray_SimpleNewFromData(self.out_ndim[i], sizes, self.out_type[i], cnp.PyArray_DATA(<cnp.ndarray>made[i]))
            cnp.set_array_base(array, made[i])
            made[i] = array if cnp.PyArray_NBYTES(<cnp.ndarray>made[i]) - cnp.PyArray_NBYTES(array) < WASTE else array.copy()
        return tuple(made)

    def run(self, list inputs, outputs=None, int threads=0, meter=None):
        """Runs on contiguous inputs of the bound shapes and dtypes; returns a tuple of fresh outputs, or fills the ones given.
        `meter` counts the rounds of its loops, where this is a part of a run."""
        cdef void *few[MOST_BASES]
        cdef void **bases = few
        cdef int64_t counters[MOST_COUNTERS]
        cdef int i, before, total = FIRST + self.inputs + self.outputs + 1
        if len(inputs) != self.inputs:
            raise ValueError(f"run: {len(inputs)} inputs: expected {self.inputs}")
        if total > MOST_BASES:
            bases = <void **>alloc(total * sizeof(void *))
            if bases == NULL:
                raise LimitError("run: no memory")
        self.used, self.calls = tick(), self.calls + 1
        before = limit_threads(threads)
        if not threads:
            limit_threads(before)  # within a run that has called a user's function, that one's
        try:
            bases[ARENA] = bases[CONSTANT] = NULL
            bases[total - 1] = <void *>counters
            for i in range(self.inputs):
                bases[FIRST + i] = cnp.PyArray_DATA(<cnp.ndarray?>inputs[i])
            if outputs is None:
                outputs = self.outcome(bases, FIRST + self.inputs)
            else:
                for i in range(self.outputs):
                    bases[FIRST + self.inputs + i] = cnp.PyArray_DATA(<cnp.ndarray?>outputs[i])
            self.execute(bases, (inputs, outputs) if self.python else None, meter)
            outputs = self.cut(tuple(outputs), counters) if self.counting else outputs
        finally:
            limit_threads(before)
            if bases != few:
                release(bases)
        return outputs

    def profile(self, list inputs, int repeat, int threads=0):
        """Runs with the GIL held, workers awake, on at most `threads` if given. Returns (repeat, calls, 2): ns from a run's to a call's begin, and the call's own."""
        cdef cnp.ndarray times = np.empty((repeat, self.count, 2), np.int64), arena = np.empty(self.arena + 64, np.uint8)
        cdef cnp.ndarray room = np.empty(FIRST + self.inputs + self.outputs + 1, np.intp)
        cdef int64_t counters[MOST_COUNTERS]
        cdef int64_t *to = <int64_t *>cnp.PyArray_DATA(times), begin, start
        cdef void **bases = <void **>cnp.PyArray_DATA(room), *operands[MOST_OPERANDS]
        cdef Operand *operand
        cdef int i, j, before
        if len(inputs) != self.inputs:
            raise ValueError(f"profile: {len(inputs)} inputs: expected {self.inputs}")
        for i in range(self.inputs):
            bases[FIRST + i] = cnp.PyArray_DATA(<cnp.ndarray?>inputs[i])
        bases[ARENA], bases[CONSTANT] = <void *>((<size_t>cnp.PyArray_DATA(arena) + 63) // 64 * 64), NULL
        bases[FIRST + self.inputs + self.outputs] = <void *>counters
        results = self.outcome(bases, FIRST + self.inputs)
        before = limit_threads(threads)
        run_begin()
        try:
            run_wake(self.work)
            for _ in range(repeat):
                grant_rounds(self.rounds)
                begin = fl_now_ns()
                for i in range(self.count):
                    operand = self.operands + self.steps[i].first
                    start = step_clock(i)
                    if self.steps[i].python >= 0:
                        self.python_step(i, bases, arena, (inputs, results))
                    else:
                        for j in range(self.steps[i].count):
                            operands[j] = NULL if operand[j].space < 0 else <void *>(<char *>bases[operand[j].space] + operand[j].offset)
                        if self.steps[i].run(self.steps[i].plan, operands):
                            if not isinstance(self.given[i], UsersStep):
                                raise LimitError("profile: a step failed")
                            self.python_step(i, bases, arena, (inputs, results))
                    to[0], to[1], to = start - begin, fl_now_ns() - start, to + 2
        finally:
            run_end()
            limit_threads(before)
        return times


@cython.final
cdef class Runner:
    """The fast way into a program: plain arrays of the dtypes that the graph wants, of sizes that were bound before."""
    cdef tuple names
    cdef tuple out_names
    cdef bytes by_value        # of each input, whether its values belong to the binding
    cdef int64_t largest       # elements of such an input: of larger ones the shape alone does
    cdef dict bounds           # by key
    cdef Bound recent          # and what ran last
    cdef bytes recent_key
    cdef public int threads

    def __init__(self, tuple names, tuple out_names, tuple by_value, int64_t largest):
        self.names, self.out_names, self.largest, self.bounds = names, out_names, largest, {}
        self.by_value = bytes([i in by_value for i in range(len(names))]) + b"\0"

    def key(self, list arrays, bint plain=False):
        """Returns the key that binds arrays, as bytes; None where a program does not take them as they are, or, of `plain` ones, at once."""
        cdef char few[KEY_ROOM]
        cdef int64_t length
        cdef bytes made
        cdef PyObject *values[MOST_BASES]
        cdef int i, n = len(arrays)
        if n > MOST_BASES or n != PyTuple_GET_SIZE(self.names):
            return None
        for i in range(n):
            values[i] = <PyObject *>arrays[i]
        length = write_key(values, n, self.by_value, self.largest, few, KEY_ROOM, plain)
        if length <= KEY_ROOM:
            return None if length < 0 else few[:length]
        made = PyBytes_FromStringAndSize(NULL, length)
        write_key(values, n, self.by_value, self.largest, PyBytes_AS_STRING(made), length, plain)
        return made

    def remember(self, bytes key, Bound bound):
        """Calls of this key run `bound` from now on."""
        if FIRST + bound.inputs + bound.outputs < MOST_BASES:
            self.bounds[key] = bound
            self.recent_key, self.recent = key, bound

    def forget(self, bytes key):
        """Undoes `remember`."""
        if self.recent is self.bounds.pop(key, None):
            self.recent = self.recent_key = None

    cdef Bound find(self, PyObject **values, void **bases):
        """Looks up the binding for these arrays, whose addresses are then in `bases`; None if there is none."""
        cdef char key[KEY_ROOM]
        cdef int64_t length
        cdef Bound bound = self.recent
        cdef PyObject *found
        cdef int i, n = <int>PyTuple_GET_SIZE(self.names)
        if bound is None:
            return None
        length = write_key(values, n, self.by_value, self.largest, key, KEY_ROOM, True)
        if length < 0 or length > KEY_ROOM:
            return None
        if length != PyBytes_GET_SIZE(self.recent_key) or memcmp(key, PyBytes_AS_STRING(self.recent_key), length):
            made = key[:length]
            found = PyDict_GetItem(self.bounds, made)
            if found == NULL:
                return None
            bound = <Bound>found
            self.recent_key, self.recent = made, bound
        bound.used = tick()
        for i in range(n):
            bases[FIRST + i] = cnp.PyArray_DATA(<cnp.ndarray>values[i])
        return bound

    cdef object finish(self, Bound bound, void **bases, given, int threads=0, meter=None):
        cdef object results = bound.outcome(bases, FIRST + bound.inputs)
        cdef int before, most = threads or self.threads
        cdef object held = (given, results) if bound.python else None
        cdef int64_t counters[MOST_COUNTERS]
        bases[CONSTANT], bases[FIRST + bound.inputs + bound.outputs] = NULL, <void *>counters
        if most:
            before = limit_threads(most)
            try:
                bound.execute(bases, held, meter)
            finally:
                limit_threads(before)
        else:
            bound.execute(bases, held, meter)
        return bound.cut(results, counters) if bound.counting else results

    def run(self, feeds):
        """Outputs by name for inputs by name, or None where this is no call of the usual kind."""
        cdef void *bases[MOST_BASES]
        cdef PyObject *values[MOST_BASES]
        cdef Bound bound
        cdef int i, n = PyTuple_GET_SIZE(self.names)
        if self.recent is None or type(feeds) is not dict or PyDict_Size(feeds) != n:
            return None
        for i in range(n):
            values[i] = PyDict_GetItem(feeds, <object>PyTuple_GET_ITEM(self.names, i))
        bound = self.find(values, bases)
        if bound is None:
            return None
        # While the GIL is given up, and within NumPy fallbacks, others could take the arrays out of the dict.
        keep = list(feeds.values()) if bound.python or bound.work >= RELEASE_GIL else None
        results = self.finish(bound, bases, keep)
        return {<object>PyTuple_GET_ITEM(self.out_names, i): <object>PyTuple_GET_ITEM(results, i) for i in range(bound.outputs)}

    cpdef call(self, tuple arrays, int threads=0, meter=None):
        """A tuple of outputs for inputs by position, or None. `meter`: see `Bound.run`."""
        cdef void *bases[MOST_BASES]
        cdef PyObject *values[MOST_BASES]
        cdef Bound bound
        cdef int i
        if self.recent is None or PyTuple_GET_SIZE(arrays) != PyTuple_GET_SIZE(self.names):
            return None
        for i in range(PyTuple_GET_SIZE(arrays)):
            values[i] = PyTuple_GET_ITEM(arrays, i)
        bound = self.find(values, bases)
        return None if bound is None else self.finish(bound, bases, arrays, threads, meter)

    cpdef bint step(self, dict env, tuple done, int threads, meter) except -1:
        """Runs on values by name, which the results join and those of `done` leave. Returns whether it could; see `call`."""
        cdef void *bases[MOST_BASES]
        cdef PyObject *values[MOST_BASES]
        cdef Bound bound
        cdef int i
        if self.recent is None:
            return False
        for i in range(PyTuple_GET_SIZE(self.names)):
            values[i] = PyDict_GetItem(env, <object>PyTuple_GET_ITEM(self.names, i))
        bound = self.find(values, bases)
        if bound is None:
            return False
        results = self.finish(bound, bases, list(env.values()) if bound.python else None, threads, meter)
        for i in range(bound.outputs):
            env[<object>PyTuple_GET_ITEM(self.out_names, i)] = <object>PyTuple_GET_ITEM(results, i)
        for name in done:
            del env[name]
        return True


include "_entries.pxi"
