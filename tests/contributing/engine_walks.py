"""Walks through the C engine: an activation, a kernel, a level. They are done in one copy, which is built once."""

from __future__ import annotations

from .walks import Walk, after, new

__all__ = ["WALKS"]

_FUNCTION = '''

@op("relu_squared", "x", numbers_rule("relu_squared"), activates("relu_squared"))
def relu_squared(x: Tensor) -> np.ndarray:
    """Rectifier squared: ``max(0, x) ** 2``.

    Args:
        x: any shape, any real dtype.

    Returns:
        float32, the shape of x.

    Raises:
        DTypeError: x is complex or not numeric.

    >>> import fastlayers as fl
    >>> fl.functional.relu_squared([-1.0, 3.0])
    array([0., 9.], dtype=float32)
    """
    return run_unary("relu_squared", x, PLAIN["relu_squared"])
'''
_C = "FL_INLINE vf fl_v_relu_squared(vf x, vf a, vf b) { (void)a, (void)b; return vsel((vi)(x <= 0), vset(0), x * x); }\n"

ACTIVATION = Walk(
    "An activation",
    (
        after("fastlayers/kernels/table.py", '    "quick_gelu": Unary(35, ("alpha",), (1.702,), cost=35),  # x sigmoid(a x)\n', '    "relu_squared": Unary(36),  # max(0, x)^2\n'),
        after("fastlayers/kernels/aot/csrc/unary.h", "{ return vsel((vi)(x <= a), b, x); }\n", _C),
        after("fastlayers/kernels/reference/activation.py", '    "quick_gelu": lambda x, a, b: x * _sigmoid(a * x),\n', '    "relu_squared": lambda x, a, b: np.where(x <= 0, 0, x * x),\n'),
        after("fastlayers/kernels/jit/_math.py", '    "quick_gelu": lambda e, x, a, b: x * sigmoid(e, a * x),\n', '    "relu_squared": lambda e, x, a, b: e.select(x <= 0.0, 0.0, x * x),\n'),
        after("fastlayers/kernels/cuda/_math.py", '    "quick_gelu": lambda x, a, b: x * _sigmoid(a * x),\n', '    "relu_squared": lambda x, a, b: _ZERO if x <= _ZERO else x * x,\n'),
        after("fastlayers/functional/_activation.py", '    return run_unary("tanhshrink", x, PLAIN["tanhshrink"])\n', _FUNCTION),
        after("fastlayers/functional/_activation.py", '    "relu6",\n', '    "relu_squared",\n'),
        after("fastlayers/functional/_homes.py", '"relu6 ', "relu_squared "),
        after("fastlayers/layers/activation.py", '    _operation = "tanhshrink"\n', '\n\nclass ReLUSquared(_Elementwise):\n    """`functional.relu_squared` as a layer."""\n\n    _operation = "relu_squared"\n'),
        after("fastlayers/layers/activation.py", '    "ReLU6",\n', '    "ReLUSquared",\n'),
        after("fastlayers/layers/homes.py", '"PReLU QuickGELU ReLU ReLU6 ', "ReLUSquared "),
        after("tests/graph/examples/further.py", '"logsigmoid", "quick_gelu", ', '"relu_squared", '),
        after("tests/kernels/test_accuracy.py", '    "quick_gelu": Bound(3.0, 3.0, 2.0**-23),\n', '    "relu_squared": Bound(0.5, 0.5),\n'),
        after("tests/neon.c", "  case FL_QUICK_GELU: return x * sigmoid(a * x);\n", "  case FL_RELU_SQUARED: return x > 0 ? x * x : 0;\n"),
        after("tests/arguments/layer_calls.py", '"LogSigmoid", "Mish", "QuickGELU", ', '"ReLUSquared", '),
        after("bench/cases/activation.py", '    _unary("quick_gelu", 50, 3072),\n', '    _unary("relu_squared", 64, 1024),\n'),
        after("bench/layers/elementwise.py", '    Row(("PReLU",), "256x1024", partial(prelu, False)),\n', '    Row(("ReLUSquared",), "256x1024", partial(call, fl.ReLUSquared())),\n    Row(("relu_squared",), "256x1024", partial(call, fl.functional.relu_squared)),\n'),
    ),
    (
        "-m tests.api",
        "-m pytest -q -m '' tests/kernels/test_accuracy.py tests/kernels/test_activation.py tests/kernels/test_cases.py -k relu_squared",
        "-m pytest -q tests/graph/test_ops.py tests/graph/test_compiled.py tests/functional/test_public.py -k 'relu_squared or every or further'",
        "-m pytest -q tests/test_bench.py tests/test_docs.py tests/test_api.py",
    ),
    made=frozenset({"tests/api.txt"}),
    other=frozenset({"fastlayers/operators/activation.py", "fastlayers/passes/activation.py"}),
)  # fmt: skip

_HEADER = """\
/* Hinge losses: y = max(0, 1 - t x), elementwise. */
static void fl_f32_hinge(const float *x, const float *t, float *y, int64_t n) {
  int64_t i = 0;
  for (; i + VW <= n; i += VW)
    vstore(y + i, vmax(vset(0), vset(1) - vload(t + i) * vload(x + i)));
  if (i < n)
    vput_part(y + i, vmax(vset(0), vset(1) - vget_part(t + i, n - i, 0) * vget_part(x + i, n - i, 0)), n - i);
}
"""
_DRIVER = '''\
"""Hinge losses. One task: they are as fast as memory is."""

from libc.stdint cimport int64_t
cimport numpy as cnp

from ._engine cimport fl_kernels, level

cnp.import_array()

ctypedef struct Job:
    const fl_kernels *table
    int64_t size
    double work


cdef void plan_hinge(Job *job, int64_t x) noexcept:
    job.table = level()
    job.size = x
    job.work = <double>x


cdef int run_hinge(const void *plan, void *const *operands) noexcept nogil:
    cdef const Job *job = <const Job *>plan
    job.table.hinge(<const float *>operands[0], <const float *>operands[1], <float *>operands[2], job.size)
    return 0


include "made/hinge.pxi"
'''
_REFERENCE = '''\
"""Hinge losses in plain numpy."""

from __future__ import annotations

import numpy as np

__all__ = ["hinge"]


def hinge(x__n: np.ndarray, t__n: np.ndarray, out__n: np.ndarray) -> None:
    """out = max(0, 1 - t x), computed in float64."""
    out__n[...] = np.maximum(0, 1 - t__n.astype(np.float64) * x__n)
'''
_BENCH = '''\
"""Hinge losses."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import Case, normal


def _hinge(n: int) -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        return {"x": normal(rng, n), "t": np.sign(normal(rng, n)), "out": np.empty(n, np.float32)}

    return Case("hinge", str(n), arguments, flops=3.0 * n, moved=12.0 * n)


CASES = tuple(_hinge(n) for n in (1, 7, 4096))
'''

KERNEL = Walk(
    "A kernel",
    (
        after("fastlayers/kernels/table.py", '    Kernel("softmax", "softmax", ("x__oni", "out__oni")),\n', '    Kernel("hinge", "hinge", ("x__n", "t__n", "out__n"), variants=_HOST),\n'),
        new("fastlayers/kernels/aot/csrc/hinge.h", _HEADER),
        after("fastlayers/kernels/aot/csrc/kernels.def", "/* direct.h */\n", "FL_KERNEL(f32, hinge, void, (const float *x, const float *t, float *y, int64_t n))\n"),
        after("fastlayers/kernels/aot/csrc/level.h", '#include "rotary.h"\n', '#include "hinge.h"\n'),
        new("fastlayers/kernels/aot/hinge.pyx", _DRIVER),
        new("fastlayers/kernels/reference/hinge.py", _REFERENCE),
        new("bench/cases/hinge.py", _BENCH),
    ),
    (
        "-m pytest -q tests/test_table.py tests/test_lint.py",
        "-m pytest -q -m '' tests/kernels/test_cases.py -k hinge",
    ),
    other=frozenset({"codegen/pairs.py", "fastlayers/kernels/README.md"}),
)  # fmt: skip

LEVEL = Walk(
    "A level of instructions",
    (
        after("setup.py", '        "x86_v1": ["-O2", "-fno-tree-vectorize"],\n', '        "x86_v2": ["-march=x86-64-v2"],\n'),
        new("fastlayers/kernels/aot/csrc/_x86_v2.c", '/* The x86_v2 level: see level.h. */\n#define FL_LEVEL x86_v2\n#include "vec_x86_v1.h"\n#include "level.h"\n'),
        after("fastlayers/kernels/aot/csrc/cpu.h", '  return (!strcmp(level, "x86_v1") && has >= 1) || ', '(!strcmp(level, "x86_v2") && has >= 3) || '),
        after("fastlayers/kernels/dispatch.py", 'LEVELS = ("x86_amx", "x86_v4", "x86_v3", ', '"x86_v2", '),
        after("docs/explanation/variants.md", "| `aot/neon` | compiled, for 64-bit ARM |\n", "| `aot/x86_v2` | compiled, for SSE4.2 |\n"),
        after("fastlayers/kernels/README.md", "Order in which a variant is chosen: `x86_amx`, `x86_v4`, `x86_v3`, ", "`x86_v2`, "),
    ),
    (
        "-c 'import fastlayers as fl; assert \"aot/x86_v2\" in fl.kernels.available()'",
        "-m pytest -q -m '' tests/kernels/test_matmul.py tests/kernels/test_accuracy.py tests/test_dispatch.py -k 'x86_v2 or level'",
        "-m pytest -q tests/test_lint.py tests/test_table.py",
    ),
    other=frozenset({"fastlayers/kernels/aot/csrc/vec.h", "fastlayers/kernels/aot/csrc/shapes.h", "tests/neon.c", "_x86_amx.c"}),
)  # fmt: skip

WALKS = (ACTIVATION, KERNEL, LEVEL)
