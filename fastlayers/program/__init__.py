"""Whole models as programs: a graph is bound to the sizes of its inputs, and what remains runs as a list of kernel calls.

``builder`` is what operators are lowered with, ``binder`` walks a graph with sizes known, ``arena`` places intermediate results,
``known`` is a graph whatever the sizes (packed ``weights``, forms of ``branches``), ``segment`` binds it and keeps ``bindings``,
``plain`` and ``kernels.aot.run`` execute. ``stages`` runs what no sizes settle: segments, and loops, branches (their ``bodies``),
lists and single nodes (``interpret``) between them. ``program`` is all of it. Imports go one way.
"""

from .program import Program

__all__ = ["Program"]
