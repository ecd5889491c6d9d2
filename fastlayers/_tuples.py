"""Named tuples that are cheap to declare: `typing.NamedTuple` compiles every annotation and `collections.namedtuple` the text of
a constructor, which takes longer than all else that a small module does when it is imported. Here the constructor of each
number of fields is compiled with this module, and gets the fields' names. To type checkers this is `typing.NamedTuple`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["NamedTuple"]

if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from collections import _tuplegetter, namedtuple
    from types import FunctionType

    _new = tuple.__new__

    # fmt: off
    # By the number of fields; the names are only to be there, see `_constructor`.
    _CONSTRUCTORS = (
        lambda _cls: _new(_cls, ()),
        lambda _cls, a: _new(_cls, (a,)),
        lambda _cls, a, b: _new(_cls, (a, b)),
        lambda _cls, a, b, c: _new(_cls, (a, b, c)),
        lambda _cls, a, b, c, d: _new(_cls, (a, b, c, d)),
        lambda _cls, a, b, c, d, e: _new(_cls, (a, b, c, d, e)),
        lambda _cls, a, b, c, d, e, f: _new(_cls, (a, b, c, d, e, f)),
        lambda _cls, a, b, c, d, e, f, g: _new(_cls, (a, b, c, d, e, f, g)),
        lambda _cls, a, b, c, d, e, f, g, h: _new(_cls, (a, b, c, d, e, f, g, h)),
        lambda _cls, a, b, c, d, e, f, g, h, i: _new(_cls, (a, b, c, d, e, f, g, h, i)),
        lambda _cls, a, b, c, d, e, f, g, h, i, j: _new(_cls, (a, b, c, d, e, f, g, h, i, j)),
        lambda _cls, a, b, c, d, e, f, g, h, i, j, k: _new(_cls, (a, b, c, d, e, f, g, h, i, j, k)),
        lambda _cls, a, b, c, d, e, f, g, h, i, j, k, m: _new(_cls, (a, b, c, d, e, f, g, h, i, j, k, m)),
    )
    # fmt: on

    def _constructor(name, fields, defaults):
        if len(fields) >= len(_CONSTRUCTORS):
            return namedtuple(name, fields, defaults=defaults).__new__
        code = _CONSTRUCTORS[len(fields)].__code__.replace(co_varnames=("_cls", *fields), co_name="__new__")
        made = FunctionType(code, {"_new": _new, "__builtins__": {}}, "__new__", defaults)
        made.__qualname__ = f"{name}.__new__"  # what a wrong call is told
        return made

    # What the class defines itself, or has no use for.
    _NOT_TAKEN = frozenset({"__module__", "__classcell__", "__firstlineno__", "__static_attributes__"})

    class _Methods:
        """Methods that `collections.namedtuple` gives every class."""

        __slots__ = ()

        @classmethod
        def _make(cls, iterable):
            made = _new(cls, iterable)
            if len(made) != len(cls._fields):
                raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
            return made

        def _replace(self, /, **given):
            made = self._make(map(given.pop, self._fields, self))
            if given:
                raise ValueError(f"Got unexpected field names: {list(given)!r}")
            return made

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self):
            named = ", ".join([f"{field}={value!r}" for field, value in zip(self._fields, self, strict=True)])
            return f"{type(self).__name__}({named})"

        def __getnewargs__(self):
            return tuple(self)

    class _Maker(type):
        def __new__(cls, name, bases, namespace):
            if not bases:
                return super().__new__(cls, name, bases, namespace)
            fields = tuple(namespace.get("__annotations__", ()))
            defaults = {field: namespace[field] for field in fields if field in namespace}
            made = {key: value for key, value in namespace.items() if key not in _NOT_TAKEN and key not in defaults}
            made |= {field: _tuplegetter(at, f"Alias for field number {at}") for at, field in enumerate(fields)}
            made |= {
                "__slots__": (), "__module__": namespace["__module__"], "__match_args__": fields, "_fields": fields,
                "_field_defaults": defaults,
            }  # fmt: skip
            made.setdefault("__new__", _constructor(name, fields, tuple(defaults.values())))
            return type(name, (_Methods, tuple), made)

    class NamedTuple(metaclass=_Maker):
        """``class Point(NamedTuple): x: int; y: int = 0``"""
