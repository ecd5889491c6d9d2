"""Runs that end early; see _stop.pxd. Jobs of the pool leave out their tasks when a run is to end: see csrc/pool.h."""

from cpython.exc cimport PyErr_CheckSignals
from cpython.pycapsule cimport PyCapsule_GetPointer
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.stdint cimport INT64_MAX, int64_t

from . import _engine
from ..._deadline import late
from ...errors import Error
from ...threads import refresh

cdef extern from "csrc/platform.h" nogil:
    int64_t fl_now_ns()
    bint fl_may_be_main()

cdef extern from "csrc/pool.h" nogil:
    enum:
        FL_FORKED
    int64_t FL_NEVER
    ctypedef struct fl_stops:
        void (*begin)(fl_stop *) noexcept nogil
        void (*end)(fl_stop *) noexcept nogil
        int (*due)(fl_stop *) noexcept nogil
        int (*due_here)() noexcept nogil
        void (*place)() noexcept nogil

cdef extern from *:
    """
    static _Thread_local int64_t fl_until = INT64_MAX;
    static _Thread_local PyObject *fl_asked = 0;
    """
    int64_t fl_until     # the deadline of this thread's runs
    PyObject *fl_asked   # a function that raises once they are to end, or NULL; `_deadline` holds it

cdef double LONG = 1e8        # operations, about a millisecond: shorter runs are not asked whether a signal has come
SHARED = 4e6
deadlines = 0
cdef int64_t ASK_NS = 20000000      # how often signals are looked for, which takes the GIL
cdef int64_t REFRESH_NS = 1000000000  # how often the machine is asked for its processors

cdef const fl_stops *table = <const fl_stops *>PyCapsule_GetPointer(_engine.stops, b"fastlayers.stops")
cdef int64_t refresh_at = 0


def set_deadline(int64_t nanoseconds):
    """Runs of this thread end so long from now, or never if that is negative."""
    global fl_until, deadlines
    deadlines += (nanoseconds >= 0) - (fl_until != FL_NEVER)
    fl_until = FL_NEVER if nanoseconds < 0 else fl_now_ns() + min(nanoseconds, INT64_MAX // 4)


def set_asked(function):
    """Runs of this thread end once `function` raises; None for none. The caller that sets it holds a reference until another is set."""
    global fl_asked
    fl_asked = NULL if function is None else <PyObject *>function


cdef int handle_signals(fl_stop *run) noexcept with gil:
    """Runs the handlers of signals that have come, and asks the function of this thread; 1 if one has raised."""
    try:
        PyErr_CheckSignals()
        if fl_asked != NULL:
            (<object>fl_asked)()
    except BaseException as error:
        Py_INCREF(error)
        (<Stop *>run).error = <PyObject *>error
        return 1
    return 0


cdef int follow_machine() except -1:
    """The number of threads, and the workers' place, follow what the machine grants."""
    global refresh_at
    cdef int64_t now = fl_now_ns()
    if now >= refresh_at:
        refresh_at = now + REFRESH_NS
        refresh()
        table.place()
    return 0


cdef Stop *stop_begin(Stop *stop, double work) except? NULL:
    cdef bint asks
    if work >= SHARED:
        follow_machine()
    asks = work >= LONG and (fl_asked != NULL or fl_may_be_main())  # Python runs signals' handlers in the main thread alone
    if not asks and fl_until == FL_NEVER:
        return NULL
    stop.error = NULL
    stop.run.deadline, stop.run.every, stop.run.ask = fl_until, ASK_NS, handle_signals
    stop.run.ask_at = fl_now_ns() + ASK_NS if asks else FL_NEVER
    table.begin(&stop.run)
    return stop


cdef bint stop_due(Stop *stop) noexcept nogil:
    return table.due(&stop.run)


cdef bint due_here() noexcept nogil:
    return table.due_here()


cdef void stop_end(Stop *stop) noexcept:
    if stop != NULL:
        table.end(&stop.run)


cdef int stop_raise(Stop *stop) except -1:
    if stop == NULL or not stop.run.due:
        return 0
    if stop.error != NULL:
        error = <object>stop.error
        Py_DECREF(error)
        stop.error = NULL
        raise error
    if stop.run.due == FL_FORKED:
        raise Error("run: a signal's handler has forked within it, and this is the child, which has lost a part of it: run it again")
    raise late()
