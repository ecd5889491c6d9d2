"""Changes of layout: transpositions, as strided copies."""

from libc.stdint cimport int64_t
cimport numpy as cnp

from ._step cimport make_step, run_plan
from .movement cimport Copy, plan_copy, run_copy

cnp.import_array()


cdef void plan_transpose(Copy *plan, int64_t b, int64_t r, int64_t c) noexcept:
    cdef int64_t *shape = [b, c, r]
    cdef int64_t *x_steps = [r * c, 1, c]
    cdef int64_t *out_steps = [r * c, r, 1]
    plan.x_start = plan.out_start = 0
    plan_copy(plan, 3, shape, x_steps, out_steps, sizeof(float))


def transpose(cnp.ndarray x__brc, cnp.ndarray out__bcr):
    """Swaps the last two axes: x (b, r, c) to out (b, c, r)."""
    cdef Copy plan
    cdef void *operands[2]
    plan_transpose(&plan, cnp.PyArray_DIM(x__brc, 0), cnp.PyArray_DIM(x__brc, 1), cnp.PyArray_DIM(x__brc, 2))
    operands[0], operands[1] = cnp.PyArray_DATA(x__brc), cnp.PyArray_DATA(out__bcr)
    run_plan(run_copy, &plan, operands, plan.work, "transpose")


def transpose_step(tuple x__brc, tuple out__bcr):
    """The step of `transpose`: shapes instead of arrays."""
    cdef Copy plan
    plan_transpose(&plan, x__brc[0], x__brc[1], x__brc[2])
    return make_step(run_copy, &plan, sizeof(Copy), 2, plan.work, None)
