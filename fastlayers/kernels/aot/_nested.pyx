"""Steps with their own programs: If and Loop whose sizes do not depend on what they compute.

A body is a bound program. It runs over memory that the program around it has laid out: its arena, its inputs and its outputs are
operands of the step, so that an iteration costs neither an allocation nor a call of Python.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy, memset

from ._plan cimport ARENA, CONSTANT, FIRST, Native
from ._step cimport Step, make_step
from ._stop cimport Stop, due_here, stop_due

cdef extern from *:
    "static _Thread_local int64_t fl_rounds_left = 0;"
    int64_t fl_rounds_left

cdef enum:
    MOST_VALUES = 48  # inputs, and results, of a body
    INDEX = -2        # what an input of a loop's body is besides an operand: the round's number,
    GOING = -1        # and whether it was to take place
    MADE = -1         # a result that the body's steps make
    FIXED = -2        # one that is a constant
    UNSETTLED = 8     # iterations, where it is unknown how many


cdef int run_code(const Code *code, int *i, void **bases, Stop *stop) noexcept nogil:
    cdef void *operands[MOST_OPERANDS]
    cdef Operand *operand
    cdef Native *step
    cdef int j, failed
    while i[0] < code.count:
        step = code.steps + i[0]
        if step.python >= 0:
            return 0
        operand = code.operands + step.first
        for j in range(step.count):
            operands[j] = NULL if operand[j].space < 0 else <void *>(<char *>bases[operand[j].space] + operand[j].offset)
        failed = step.run(step.plan, operands)
        if stop != NULL and stop_due(stop):
            return STOPPED
        if failed:
            return failed
        i[0] += 1
    return 0


cdef void grant_rounds(int64_t rounds) noexcept nogil:
    global fl_rounds_left
    fl_rounds_left = rounds


cdef int64_t rounds_left() noexcept nogil:
    return fl_rounds_left


# A result of a body: what its steps make (MADE), a constant (FIXED), or an input that it hands on.
cdef struct Result:
    int32_t source
    const void *constant
    int64_t nbytes


cdef struct Body:
    const Code *code
    int32_t inputs, results
    int32_t takes[MOST_VALUES]   # the operand that each input is
    Result gives[MOST_VALUES]


cdef int run_body(const Body *body, void *arena, void *const *inputs, void *const *results) noexcept nogil:
    """Runs a body once and returns 0, or the code of what failed. A run that is told to end early skips the steps that are left."""
    cdef void *bases[MOST_BASES]
    cdef Code one
    cdef int i, at = FIRST + body.inputs, failed
    bases[ARENA], bases[CONSTANT] = arena, NULL
    for i in range(body.inputs):
        bases[FIRST + i] = inputs[i]
    for i in range(body.results):
        if body.gives[i].source == MADE:
            bases[at] = results[i]
            at += 1
    (<Code *>body.code).runs += 1
    one = body.code[0]
    at = 0
    while at < body.code.count:
        one.count = at + 1  # step by step: the caller of the whole asks for the run's end only when this one is done
        failed = run_code(&one, &at, bases, NULL)
        if failed:
            return failed
        if due_here():
            return STOPPED
    for i in range(body.results):
        if body.gives[i].source == FIXED:
            memcpy(results[i], body.gives[i].constant, body.gives[i].nbytes)
        elif body.gives[i].source >= 0 and results[i] != inputs[body.gives[i].source]:
            memcpy(results[i], inputs[body.gives[i].source], body.gives[i].nbytes)
    return 0


# Operands: the condition, what the branches read, their results, memory for either.
cdef struct Branch:
    Body sides[2]  # the else branch first
    int32_t results, arena


cdef int run_branch(const void *given, void *const *operands) noexcept nogil:
    cdef const Branch *plan = <const Branch *>given
    cdef const Body *side = &plan.sides[(<const uint8_t *>operands[0])[0] != 0]
    cdef void *inputs[MOST_VALUES]
    cdef int i
    for i in range(side.inputs):
        inputs[i] = operands[side.takes[i]]
    return run_body(side, operands[plan.arena], inputs, operands + plan.results)


# Operands: how many iterations, whether there is a first one (either may be NULL), what is passed from iteration to iteration as it is before
# the first, what is read part by part, what else the body reads, the results: what the last iteration hands on, and what grows with the
# iterations; then memory for what is passed on, once more, and for the body.
cdef struct Loop:
    Body body
    int32_t carried, grown, first, results, spare, arena
    int32_t scanned      # of a Scan, how many inputs are read part by part
    int32_t asks         # the body's first result says whether there is to be another round
    int64_t strides[MOST_VALUES]   # of what is read part by part, in bytes: negative where the last part is read first
    uint8_t backwards[MOST_VALUES] # of what grows: whether the first part is the last one
    int32_t count_bytes  # of the number of iterations: 4 or 8
    int64_t settled      # the number of iterations, where what grows with them has been laid out for it: no operand can change it then


cdef int run_loop(const void *given, void *const *operands) noexcept nogil:
    global fl_rounds_left
    cdef const Loop *plan = <const Loop *>given
    cdef const Body *body = &plan.body
    cdef void *now[MOST_VALUES]      # where what is passed on is
    cdef void *inputs[MOST_VALUES]
    cdef void *results[MOST_VALUES]
    cdef int64_t most = -1, round = 0, part
    cdef uint8_t going = 1, after = 1
    cdef int i, failed, asks = plan.asks
    if plan.settled >= 0:
        most = plan.settled
    elif operands[0] != NULL:
        most = (<const int64_t *>operands[0])[0] if plan.count_bytes == 8 else (<const int32_t *>operands[0])[0]
        most = max(most, 0)
    if plan.settled < 0 and operands[1] != NULL:
        going = (<const uint8_t *>operands[1])[0]
    for i in range(plan.carried):
        now[i] = operands[plan.first + i]
    while going and (most < 0 or round < most):
        if fl_rounds_left <= 0:
            return MANY_ROUNDS
        fl_rounds_left -= 1
        for i in range(body.inputs):
            if body.takes[i] == INDEX:
                inputs[i] = &round
            elif body.takes[i] == GOING:
                inputs[i] = &going
            elif plan.first <= body.takes[i] < plan.first + plan.carried:
                inputs[i] = now[body.takes[i] - plan.first]
            elif plan.first + plan.carried <= body.takes[i] < plan.first + plan.carried + plan.scanned:
                part = plan.strides[body.takes[i] - plan.first - plan.carried]
                inputs[i] = <char *>operands[body.takes[i]] + (round * part if part >= 0 else (round + 1 - most) * part)
            else:
                inputs[i] = operands[body.takes[i]]
        if asks:
            results[0] = &after  # the body may read the one that it was called with at any time
        for i in range(plan.carried):
            # A round reads what the one before has made, and makes the next next to it.
            results[asks + i] = operands[plan.results + i] if now[i] != operands[plan.results + i] else operands[plan.spare + i]
            if body.gives[asks + i].source >= 0 and body.takes[body.gives[asks + i].source] == plan.first + i:
                results[asks + i] = now[i]  # it stays as it is
        for i in range(plan.carried, plan.carried + plan.grown):
            part = most - 1 - round if plan.backwards[i - plan.carried] else round
            results[asks + i] = <char *>operands[plan.results + i] + part * body.gives[asks + i].nbytes
        failed = run_body(body, operands[plan.arena], inputs, results)
        if failed:
            return failed
        for i in range(plan.carried):
            now[i] = results[asks + i]
        round += 1
        going = after or plan.settled >= 0
    for i in range(plan.carried):
        if now[i] != operands[plan.results + i]:
            memcpy(operands[plan.results + i], now[i], body.gives[asks + i].nbytes)
    return 0


@cython.final
cdef class Nested:
    """A step of a branch or a loop, how errors name it, and the programs of its bodies, which belong to it."""
    cdef readonly Step step
    cdef readonly str where
    cdef readonly tuple bodies
    cdef readonly bint loops

    def __init__(self, Step step, str where, tuple bodies, bint loops):
        self.step, self.where, self.bodies, self.loops = step, where, bodies, loops


cdef int fill(Body *body, bound, takes, gives, list keep) except -1:
    """`takes`: the operand that each input is; `gives`: (source, constant or None, nbytes) for each result."""
    cdef int i
    if len(takes) > MOST_VALUES or len(gives) > MOST_VALUES:
        raise ValueError("nested: too many values")
    body.code = NULL
    if bound is not None:
        body.code = <const Code *><size_t>bound.code
        keep.append(bound)
    else:
        body.code = &NOTHING
    body.inputs, body.results = len(takes), len(gives)
    for i in range(body.inputs):
        body.takes[i] = takes[i]
    for i in range(body.results):
        source, constant, nbytes = gives[i]
        body.gives[i].source, body.gives[i].nbytes, body.gives[i].constant = source, nbytes, NULL
        if constant is not None:
            keep.append(constant)
            body.gives[i].constant = <const void *><size_t>constant.__array_interface__["data"][0]
    return 0


cdef Code NOTHING
memset(&NOTHING, 0, sizeof(Code))


def branch_step(str where, tuple sides, int results, int arena, int operands):
    """`sides`: of the else branch, then the other: its bound program (None if it has no steps), takes and gives; see `fill`."""
    cdef Branch plan
    cdef list keep = []
    cdef double work = 0
    memset(&plan, 0, sizeof(Branch))
    for i in range(2):
        fill(&plan.sides[i], sides[i][0], sides[i][1], sides[i][2], keep)
        work = max(work, 0.0 if sides[i][0] is None else <double>sides[i][0].work)
    plan.results, plan.arena = results, arena
    bounds = tuple([side[0] for side in sides if side[0] is not None])
    step = make_step(run_branch, &plan, sizeof(Branch), operands, work + 1, keep)
    return Nested(step, where, bounds, any([bound.loops for bound in bounds]))


def loop_step(str where, tuple body, int carried, int grown, int results, int count_bytes, int64_t settled, tuple scanned=None, tuple backwards=()):
    """`settled`: how many iterations there are, or -1. `results`: the operand that is the first result. Of a Scan, `scanned` are the strides
    of what is read part by part, and `backwards` says of what grows whether its first part is the last one."""
    cdef Loop plan
    cdef list keep = []
    memset(&plan, 0, sizeof(Loop))
    bound, takes, gives = body
    fill(&plan.body, bound, takes, gives, keep)
    plan.carried, plan.grown, plan.first, plan.results, plan.asks = carried, grown, 2, results, scanned is None
    plan.spare = results + carried + grown
    plan.arena = plan.spare + carried
    plan.count_bytes, plan.settled = count_bytes, settled
    for stride in scanned or ():
        plan.strides[plan.scanned] = stride
        plan.scanned += 1
    for i, back in enumerate(backwards):
        plan.backwards[<int>i] = back
    work = (100 + (0.0 if bound is None else <double>bound.work)) * (settled if settled >= 0 else UNSETTLED)
    return Nested(make_step(run_loop, &plan, sizeof(Loop), plan.arena + 1, work, keep), where, () if bound is None else (bound,), True)
