"""The enums of the table's codes as a C header, and a number that two builds share only if their tables and structures agree."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

__all__ = ["header"]

# Name of the enum, prefix of its members, the table; and the name of how many there are.
ENUMS = (
    ("fl_unary_code", "FL_", "UNARY", "FL_UNARY_COUNT"),
    ("fl_binary_code", "FL_", "BINARY", "FL_BINARY_COUNT"),
    ("fl_compare_code", "FL_", "COMPARE", "FL_COMPARE_COUNT"),
    ("fl_reduce_code", "FL_REDUCE_", "REDUCE", "FL_REDUCE_COUNT"),
    ("fl_integer_code", "FL_I_", "INTEGER", ""),
    ("fl_arithmetic_code", "FL_A_", "ARITHMETIC", ""),
    ("fl_function_code", "FL_F_", "FUNCTIONS", ""),
    ("fl_scatter_code", "FL_S_", "SCATTER", ""),
    ("fl_kind_code", "FL_", "KINDS", "FL_KIND_COUNT"),
)


def _enum(name: str, prefix: str, codes: Mapping[str, int], count: str) -> str:
    if sorted(codes.values()) != list(range(len(codes))):
        raise ValueError(f"{name}: codes are {sorted(codes.values())}: expected 0 to {len(codes) - 1}, each once")
    members = [f"  {prefix}{member.upper()} = {code}" for member, code in codes.items()]
    if count:
        members.append(f"  {count} = {len(codes)}")
    return f"enum {name} {{\n" + ",\n".join(members) + "\n};\n"


def header(table: Any, structures: str) -> str:
    """``codes.h``. `structures`: the text of the headers that a level and the driver share."""
    enums = []
    for name, prefix, attribute, count in ENUMS:
        codes = {member: getattr(value, "code", value) for member, value in getattr(table, attribute).items()}
        enums.append(_enum(name, prefix, codes, count))
    each = [f"  {'GATED' if unary.gate else 'ALONE'}(FL_{name.upper()}, {name})" for name, unary in table.UNARY.items()]
    text = "\n".join(enums)
    text += "\n/* Every elementwise function: GATED those that may gate, ALONE the others. */\n"
    text += "#define FL_UNARY_EACH(ALONE, GATED) \\\n" + " \\\n".join(each) + "\n"
    abi = zlib.crc32((text + structures).encode()) & 0x7FFFFFFF
    return (
        "/* Made by codegen/ of kernels/table.py: change that. */\n#ifndef FL_CODES_H\n#define FL_CODES_H\n\n"
        f"#define FL_ABI {abi} /* of these codes and of the structures that a level and the driver share */\n\n{text}\n#endif\n"
    )
