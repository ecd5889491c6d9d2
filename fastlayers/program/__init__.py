"""Whole models as programs: a graph is bound to the sizes of its inputs, and what remains runs as a list of kernel calls.

``builder`` is what operators are lowered with, ``binder`` walks a graph with sizes known, ``arena`` places intermediate results,
``program`` keeps packed weights and bindings, ``plain`` and ``kernels.aot.run`` execute. ``stages`` runs what no sizes settle:
segments as programs, and loops, branches, lists and single nodes (``interpret``) between them.
"""

from .program import Program

__all__ = ["Program"]
