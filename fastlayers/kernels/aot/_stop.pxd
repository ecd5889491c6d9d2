"""Runs that end early: at a deadline of their thread, or because a signal's handler has raised (Ctrl-C). Around every long call."""

from cpython.ref cimport PyObject
from libc.stdint cimport int64_t

cdef extern from "csrc/pool.h" nogil:
    ctypedef struct fl_stop:
        int64_t deadline, ask_at, every
        int (*ask)(fl_stop *) noexcept nogil
        int due  # why the run is to end, or 0


# Is on the stack of the thread that begins the run.
cdef struct Stop:
    fl_stop run      # first: its address is the Stop's
    PyObject *error  # what a signal's handler has raised


# Below this work (the least that two threads share) and while there are no deadlines in any thread, nothing can end a run.
cdef double SHARED
cdef int deadlines

# Before a run of about `work` operations (see _engine.workers): NULL if nothing can end it, else `stop`, to be ended with stop_end.
# Also where the number of threads follows the machine.
cdef Stop *stop_begin(Stop *stop, double work) except? NULL
# Between the steps of a run that has a stop: is it to end?
cdef bint stop_due(Stop *stop) noexcept nogil
# Within a task that takes long: is the run that it belongs to to end? What the task has not done is then left out.
cdef bint due_here() noexcept nogil
# After the run, whatever became of it; takes NULL.
cdef void stop_end(Stop *stop) noexcept
# Raises what ended the run, if anything has; takes NULL. Once, before stop_end.
cdef int stop_raise(Stop *stop) except -1
