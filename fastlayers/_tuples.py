"""Named tuples that are cheap to declare: `typing.NamedTuple` compiles every annotation, which takes longer than all else that
a small module does when it is imported. To type checkers this is `typing.NamedTuple`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["NamedTuple"]

if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from collections import namedtuple

    # What the class has of its own, or has no use for.
    _NOT_TAKEN = frozenset({"__module__", "__classcell__", "__firstlineno__", "__static_attributes__"})

    class _Maker(type):
        def __new__(cls, name, bases, namespace):
            if not bases:
                return super().__new__(cls, name, bases, namespace)
            fields = [*namespace.get("__annotations__", ())]
            defaults = [namespace[field] for field in fields if field in namespace]
            made = namedtuple(name, fields, defaults=defaults, module=namespace["__module__"])
            for key, value in namespace.items():
                if key not in _NOT_TAKEN and key not in fields:
                    setattr(made, key, value)
            return made

    class NamedTuple(metaclass=_Maker):
        """``class Point(NamedTuple): x: int; y: int = 0``"""
