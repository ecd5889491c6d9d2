"""jinja2's immutable sandbox with the limits that `_chat` states. Imported where a template is rendered."""

from __future__ import annotations

import json
import time
from functools import wraps
from typing import Any

from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from ._chat import FILTERS, METHODS, Budget, Refused

__all__ = ["environment"]

_MOST_WIDTH = 64
_MOST_DIGITS = 4096  # of integers


class _Generation(Extension):
    """``{% generation %}``, by which templates mark answers for training: its content."""

    tags = {"generation"}  # noqa: RUF012 - as jinja2 declares it

    def parse(self, parser: Any) -> Any:
        line = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)


class _Counted(NodeTransformer):
    """Lets every round of a loop, every macro and block count, and joins texts by a method that measures them."""

    def _step(self, node: Any) -> Any:
        self.generic_visit(node)
        call = nodes.Call(nodes.EnvironmentAttribute("step"), [], [], None, None)
        node.body.insert(0, nodes.ExprStmt(call).set_lineno(node.lineno))
        return node

    visit_For = visit_Macro = visit_CallBlock = visit_Block = visit_FilterBlock = _step  # noqa: N815

    def visit_Concat(self, node: Any) -> Any:  # noqa: N802
        self.generic_visit(node)
        return nodes.Call(nodes.EnvironmentAttribute("joined"), node.nodes, [], None, None).set_lineno(node.lineno)


class _Environment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset(("+", "*", "**", "%"))

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True, lstrip_blocks=True, optimized=False, cache_size=0, extensions=[_Generation, loopcontrols],
            finalize=self._written,
        )  # fmt: skip
        self.budget = Budget()
        for name in {*self.filters} - FILTERS:
            del self.filters[name]
        for name, function in list(self.filters.items()):
            self.filters[name] = self._measured(function)
        self.filters["tojson"] = self._tojson
        self.filters["join"], self.filters["replace"], self.filters["indent"] = self._join, self._replace, self._indent
        for name in {*self.globals} - {"range", "dict", "namespace"}:
            del self.globals[name]
        self.globals.update(raise_exception=_raise, strftime_now=time.strftime)

    def step(self) -> str:
        """Counts a step."""
        return self.budget.step()

    def joined(self, *values: Any) -> str:
        """The operator ``~``."""
        self.budget.measured(*values)
        return str(self.budget.kept("".join(map(str, values))))

    def getitem(self, value: Any, argument: Any) -> Any:
        """An element, or a copy of several."""
        found = super().getitem(value, argument)
        return self.budget.kept(found) if isinstance(argument, slice) else found

    def _parse(self, *arguments: Any) -> Any:
        return _Counted().visit(super()._parse(*arguments))

    def _written(self, value: Any) -> Any:
        self.budget.step()
        self.budget.measured(value)
        return value

    def is_safe_attribute(self, owner: Any, name: str, value: Any) -> bool:
        """Whether a template may have an attribute: of texts, lists and dicts, the methods that are listed."""
        known = _methods(owner)
        return bool(super().is_safe_attribute(owner, name, value)) and (known is None or name in known)

    def wrap_str_format(self, value: Any) -> None:
        """No method formats texts: a width may be any."""

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """An operator whose result may be much longer than its operands."""
        self.budget.step()
        size = self.budget.measured(left, right)
        numbers = isinstance(left, (int, float)) and isinstance(right, (int, float))
        if operator == "%" and not numbers:
            raise TypeError("% formats no text here")
        if (operator == "**" and not (numbers and abs(left) < 2**32 and abs(right) < 64)) or (numbers and size > _MOST_DIGITS):
            raise self.budget.too_long()
        if operator == "*" and not numbers:
            count = right if isinstance(right, int) else left
            self.budget.fits(size * count if isinstance(count, int) else size)
        return self.budget.kept(super().call_binop(context, operator, left, right))

    def call(self, context: Any, function: Any, *arguments: Any, **named: Any) -> Any:
        """A call of a method, a macro, or a function of the globals."""
        self.budget.step()
        owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
        known = _methods(owner)
        if known is not None:
            if name not in known:
                raise TypeError(f"{type(owner).__name__}.{name} cannot be called here")
            self.budget.measured(owner, arguments, named)
            if name == "replace":
                return self._replace(owner, *arguments)
            if name == "join":
                return self._join(arguments[0], str(owner))
        return self.budget.kept(super().call(context, function, *arguments, **named))

    def _measured(self, function: Any) -> Any:
        @wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            self.budget.step()
            # jinja2 passes its own context first to those that ask for it.
            self.budget.measured(*(a for a in arguments if isinstance(a, (str, int, float, list, tuple, dict))), named)
            return self.budget.kept(function(*arguments, **named))

        return call

    def _tojson(
        self, value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
    ) -> str:
        self.budget.measured(value)
        if indent is not None and not (isinstance(indent, int) and 0 <= indent <= _MOST_WIDTH):
            raise self.budget.too_long()
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def _join(self, values: Any, d: str = "", attribute: Any = None) -> str:
        parts = [self.getitem(value, attribute) if attribute is not None else value for value in values]
        self.budget.fits(self.budget.measured(parts) + len(str(d)) * len(parts))
        return str(self.budget.kept(str(d).join(map(str, parts))))

    def _replace(self, text: Any, old: str, new: str, count: int | None = None) -> str:
        text, count = str(text), -1 if count is None else count
        self.budget.fits(len(text) + text.count(old) * len(new))
        return str(self.budget.kept(text.replace(old, new, count)))

    def _indent(self, text: Any, width: Any = 4, first: bool = False, blank: bool = False) -> str:
        space = width if isinstance(width, str) else " " * min(width, _MOST_WIDTH + 1)
        if len(space) > _MOST_WIDTH:
            raise self.budget.too_long()
        lines = str(text).splitlines()
        self.budget.fits(self.budget.measured(text) + len(lines) * len(space))
        return "\n".join(space + line if (i or first) and (line or blank) else line for i, line in enumerate(lines))


def _methods(owner: Any) -> frozenset[str] | None:
    return next((names for kind, names in METHODS.items() if isinstance(owner, kind)), None)


def _raise(message: Any) -> None:
    raise Refused(str(message))


def environment() -> _Environment:
    """A fresh environment, whose budget counts one rendering."""
    return _Environment()
