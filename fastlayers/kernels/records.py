"""Records as types of Numba: named tuples of scalars, and of such, which compiled functions take in the place of long lists."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["type_of"]


def type_of(kind: str, names: Mapping[str, Any], kinds: Mapping[str, Any], record: Callable[[tuple[Any, ...], Any], Any]) -> Any:
    """The type of an annotation.

    Args:
        kind: the annotation, as text: a name of `kinds`, or of a named tuple that is annotated so in turn.
        names: the names of the module that it is written in.
        kinds: the types of all but records.
        record: makes the type of a record of those of its fields, and of its class.
    """
    if kind in kinds:
        return kinds[kind]
    made = names[kind]
    inner = vars(sys.modules[made.__module__])
    # typing.NamedTuple makes a ForwardRef of the text.
    fields = (getattr(field, "__forward_arg__", field) for field in inspect.get_annotations(made).values())
    return record(tuple(type_of(str(field), inner, kinds, record) for field in fields), made)
