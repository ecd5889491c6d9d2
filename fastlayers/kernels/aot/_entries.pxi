"""Part of run.pyx: what begins at a `Runner`, calls of recurrent layers and iterations of loops."""


@cython.final
cdef class LayerCalls:
    """The fast way into the programs of a recurrent layer, by how many arrays they take, while `module.generation` is what it was. `pair`:
    a state is two arrays; `both`: so is the output; `whole`: the results are the state alone."""
    cdef dict runners, module
    cdef object generation
    cdef bint pair, both, whole

    def __init__(self, dict runners, module, generation, bint pair, bint both, bint whole):
        self.runners, self.module, self.generation = runners, module.__dict__, generation
        self.pair, self.both, self.whole = pair, both, whole

    def call(self, x, state):
        """Returns what the layer does, for plain arrays of sizes that have come before; None for all others."""
        cdef tuple arrays = (x,), found = None
        if self.generation is not self.module["generation"]:
            return None
        if state is not None:
            if self.pair and (type(state) is not tuple or PyTuple_GET_SIZE(state) != 2):
                return None
            arrays = (x, (<tuple>state)[0], (<tuple>state)[1]) if self.pair else (x, state)
        for runner in <tuple?>self.runners.get(PyTuple_GET_SIZE(arrays), ()):
            found = (<Runner?>runner).call(arrays)
            if found is not None:
                if self.whole:
                    return found if self.pair else found[0]
                if self.both:
                    return found[:2], found[2:] if self.pair else found[2]
                return found[0], found[1:] if self.pair else found[1]


cdef bint alike(a, b):
    """Whether two values are arrays of the same dtype and shape."""
    if not isinstance(a, cnp.ndarray) or cnp.PyArray_TYPE(<cnp.ndarray>a) != cnp.PyArray_TYPE(<cnp.ndarray>b):
        return False
    return cnp.PyArray_SAMESHAPE(<cnp.ndarray>a, <cnp.ndarray>b)


def rounds(list runners, list names, dict env, list handed, list parts, int64_t at, int64_t most, int threads, meter, n, /):
    """Iterations of a loop from number `at` to below `most`, while each is of sizes that were bound before. `runners`: of the body's segments,
    over `env`, in which the number, the condition and the states have these `names`, and results `handed`. They go on with the iterations, as
    `parts` (of the results that grow) and `meter` do. Returns how many there were; the results of the last one, if the caller has to
    add them; and how many segments of one more were run, or -1."""
    cdef cnp.npy_intp one = 1
    cdef int64_t first = at, kept = 0
    cdef Py_ssize_t i, states = len(names) - 1
    cdef int step, axes = cnp.PyArray_NDIM(<cnp.ndarray?>env[names[0]])
    cdef list results, grown
    while at < most and (<const char *>cnp.PyArray_DATA(<cnp.ndarray?>env[names[1]]))[0]:
        number = cnp.PyArray_EMPTY(axes, &one, cnp.NPY_INT64, 0)  # a new one: an iteration may hand it on
        (<int64_t *>cnp.PyArray_DATA(<cnp.ndarray>number))[0] = at
        env[names[0]] = number
        if deadlines or at % 16 == 0 or meter.rounds <= 0:
            meter.round(n)  # a function of Python: others get their turn, and signals their handlers
        else:
            meter.rounds -= 1
        step = 0
        for runner in runners:
            if not (<Runner?>runner).step(env, (), threads, meter):
                return at - first, None, step
            step += 1
        at += 1
        results = []
        for i in range(len(handed)):
            made = env[handed[i]]
            results.append(made)
            grown = parts[i - states] if i >= states else None
            like = env[names[1]] if i == 0 else grown[0] if grown else made
            if alike(made, like):
                kept += cnp.PyArray_NBYTES(<cnp.ndarray>made)
            else:
                kept = UNCHECKED
        if kept >= UNCHECKED:
            return at - first, results, -1
        for i in range(len(handed)):
            if i < states:
                env[names[1 + i]] = results[i]
            else:
                (<list>parts[i - states]).append(results[i])
    return at - first, None, -1
