"""Compiled kernels: Cython loop nests over C microkernels, one small extension an instruction-set level. What programs are made
of comes from here; it is imported when it is asked for.
"""

from ..._lazy import exports

__getattr__, __dir__ = exports(
    __name__,
    {
        "_elementwise": "elementwise_step", "_engine": "Counted", "_nested": "branch_step loop_step", "_plan": "Chunk Ledger",
        "_step": "PythonStep UsersStep foreign_step",
    },
)  # fmt: skip
