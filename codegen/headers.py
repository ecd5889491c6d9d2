"""Declarations for Cython from the engine's headers. They keep to a part of C that is easily read; the rest is refused."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable

__all__ = ["declarations"]

_ARGUMENTS = r"\(((?:[^()]|\([^()]*\))*)\)"
_ROW = re.compile(r"FL_KERNEL\((\w+),\s*(\w+),\s*([\w *]+?),\s*" + _ARGUMENTS + r"\)")
_POINTER = re.compile(r"([\w *]+?)\s*\(\*(\w+)\)\s*" + _ARGUMENTS)
_MEMBER = re.compile(r"((?:const )?\w+)\s+(.+)", flags=re.DOTALL)
_DECLARATOR = re.compile(r"((?:\*\s*(?:const\b)?\s*)*)(\w+)((?:\[\w+\])*)")


def _without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)


def _named(name: str) -> str:
    """A member under a name that Cython takes."""
    return f'{name}_ "{name}"' if keyword.iskeyword(name) else name


def _arguments(text: str) -> str:
    """A function's arguments; their names are of no consequence to callers."""
    return ", ".join(
        re.sub(r"\b(\w+)$", lambda m: m[1] + "_" * keyword.iskeyword(m[1]), part.strip()) for part in text.split(",")
    )


def _function(result: str, name: str, arguments: str) -> str:
    return f"{result} (*{_named(name)})({_arguments(arguments)}) noexcept nogil"


def _members(body: str, where: str) -> list[str]:
    lines = []
    for part in filter(None, (" ".join(piece.split()) for piece in body.split(";"))):
        if found := _POINTER.fullmatch(part):
            lines.append(_function(found[1], found[2], found[3]))
            continue
        found = _MEMBER.fullmatch(part)
        for declarator in found[2].split(",") if found else [""]:
            one = _DECLARATOR.fullmatch(declarator.strip())
            if found is None or one is None:
                raise ValueError(f"{where}: cannot read the member {part!r}")
            stars = " ".join(one[1].replace("*", " * ").split()).replace("* *", "**").replace("* const", "*const")
            lines.append(f"{found[1]} {stars}{' ' if stars.endswith('const') else ''}{_named(one[2])}{one[3]}")
    return lines


def _block(head: str, lines: Iterable[str]) -> list[str]:
    return [f"    {head}:", *(f"        {line}" for line in lines)]


def declarations(texts: Iterable[str], rows: str, include: str) -> str:
    """The structures, enums and whole values that the headers define, as Cython declares them.

    Args:
        texts: the headers, each before those that use it.
        rows: the text of ``kernels.def``.
        include: the header that includes all of them.
    """
    functions = [_function(result, name, arguments) for _, name, result, arguments in _ROW.findall(_without_comments(rows))]
    if len(functions) != rows.count("\nFL_KERNEL("):
        raise ValueError("kernels.def: cannot read every row")
    out = []
    for text in texts:
        clean = _without_comments(text)
        out += _block("enum", re.findall(r"^#define (FL_[A-Z_]+) -?\d+\s*$", clean, flags=re.MULTILINE) or ["pass"])
        for found in re.finditer(
            r"^(?:enum (\w*) ?\{([^}]*)\}|typedef struct(?: \w+)? \{([^}]*)\} (\w+));", clean, flags=re.MULTILINE
        ):
            if found[4]:
                body = re.sub(r'#define FL_KERNEL.*\n#include "kernels.def"\n#undef FL_KERNEL\n', "KERNELS;\n", found[3])
                before, kernels, after = body.partition("KERNELS;\n")
                members = _members(before, found[4]) + (functions if kernels else []) + _members(after, found[4])
                out += _block(f"ctypedef struct {found[4]}", members)
            else:
                out += _block(
                    f"enum {found[1]}".rstrip(), (part.split("=")[0].strip() for part in found[2].split(",") if part.strip())
                )
    return f'# Made by codegen/ of the headers: change these.\ncdef extern from "{include}" nogil:\n' + "\n".join(out) + "\n"
