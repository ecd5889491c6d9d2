"""Each kernel's ways in from Python, made of its row in the table and of the arguments that its plan takes.

A driver module says what a call is, in two functions::

    cdef int plan_softmax(Job *plan, const cnp.npy_intp *out) except -1      # fills the structure: sizes, parameters, `work`
    cdef int run(const void *plan, void *const *operands) noexcept nogil     # does the work

The second is named ``run_<kernel>``, or ``run`` and anything if it is the only one for plans of its structure.
It includes what is made here: the kernel, which takes arrays and runs at once, and its step, which takes shapes and waits.
The plan's arguments have the names of the kernel's, without the letters of axes, and it takes only those that it asks about;
of an array

    ``const cnp.npy_intp *x``  gives its sizes,
    ``tuple x``                its shape, or None where it is None,
    ``int64_t x``              how many elements it has,
    ``bint x``                 whether it is given,
    ``tuple given``            all arrays in order, or shapes, as they came: what `_fit` compares with packed weights.

``void **owned`` is where a plan puts memory of its own: it is released after the call, or with the step. A kernel whose two
ways in the module defines itself has none made: those that name an index that is out of range, and a few that share more than
a plan.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

__all__ = ["functions"]

SIZES = "const cnp.npy_intp *"
SPACE = 5  # axes of an array whose row names no letters: images, channels, space


class _Plan(NamedTuple):
    struct: str
    parameters: tuple[tuple[str, str], ...]  # type and name
    run: str

    def type_of(self, name: str) -> str:
        return next((kind for kind, other in self.parameters if other == name), "")


def _plan(driver: str, kernel: str) -> _Plan:
    found = re.search(rf"^cdef \w+ plan_{kernel}\(([^)]*)\)", driver, flags=re.MULTILINE)
    if found is None:
        raise ValueError(f"{kernel}: its module has neither plan_{kernel} nor {kernel} and {kernel}_step")
    parts = [" ".join(part.split()) for part in found[1].split(",")]
    pairs = [re.fullmatch(r"(.*?)(\w+)", part) for part in parts]
    (struct, _), *others = [(pair[1].strip(), pair[2]) for pair in pairs if pair]
    struct = struct.rstrip("* ")
    functions = re.findall(r"^cdef int (run\w*)\(const void \*plan, (.*?)(?=^\S|\Z)", driver, flags=re.MULTILINE | re.DOTALL)
    runs = [name for name, body in functions if f"<const {struct} *>plan" in body or name == f"run_{kernel}"]
    named = [name for name in runs if name == f"run_{kernel}"] or runs
    if len(named) != 1:
        raise ValueError(
            f"{kernel}: expected run_{kernel}, or one function alone that runs a {struct}, found {', '.join(runs) or 'none'}"
        )
    return _Plan(struct, tuple(others), named[0])


def _pair(item: Any, plan: _Plan, plain: Collection[str]) -> str:
    """The two functions of one kernel."""
    names = {argument.split("__")[0]: argument for argument in item.arguments}
    arrays = [name for name, argument in names.items() if argument not in plain]
    known = {*names, "given", "owned"}
    for _, name in plan.parameters:
        if name not in known:
            raise ValueError(f"plan_{item.name}: its argument {name} is none of the kernel's, {', '.join(names)}")
    owns, keeps = bool(plan.type_of("owned")), "packed" in names
    called = ", ".join(["&plan", *(_passed(kind, name, names, arrays) for kind, name in plan.parameters)])
    arguments, shapes, sizes = [], [], []
    for name, argument in names.items():
        kind = plan.type_of(name)
        if name not in arrays:
            for listed in (arguments, shapes):
                listed.append(f"{kind} {argument}".strip())
            continue
        needed = " not None" if kind in (SIZES, "int64_t") else ""
        arguments.append(f"cnp.ndarray {argument}{needed}")
        shapes.append(f"tuple {argument}{needed}")
        if kind == SIZES:
            letters = len(argument.partition("__")[2]) or SPACE
            sizes.append(f"    cdef cnp.npy_intp {name}_sizes[{letters}]")
            sizes.append(f'    sizes_of({argument}, {letters}, {name}_sizes, "{item.name}: {name}")')
    at_once = re.sub(r"SIZES\((\w+)\)", lambda m: f"cnp.PyArray_DIMS({names[m[1]]})", called)
    at_once = re.sub(r"SHAPE\((\w+)\)", lambda m: f"shape_of({names[m[1]]})", at_once)
    at_once = re.sub(r"COUNT\((\w+)\)", lambda m: f"cnp.PyArray_SIZE({names[m[1]]})", at_once)
    later = re.sub(r"SIZES\((\w+)\)", r"\1_sizes", called)
    later = re.sub(r"SHAPE\((\w+)\)", lambda m: names[m[1]], later)
    later = re.sub(r"COUNT\((\w+)\)", lambda m: f"volume({names[m[1]]})", later)
    operands = [f"    operands[{i}] = data_of({names[name]})" for i, name in enumerate(arrays)]
    call = [
        f"plan_{item.name}({at_once.replace('OWNED', '&owned')})",
        f'run_plan({plan.run}, &plan, operands, plan.work, "{item.name}")',
    ]
    if owns:
        run = [
            "    cdef void *owned = NULL",
            "    try:",
            *(f"        {line}" for line in call),
            "    finally:",
            "        release(owned)",
        ]
        keep = "kept"
        make = [f"    cdef Kept kept = Kept({'packed' if keeps else 'None'})"]
    else:
        run, make, keep = [f"    {line}" for line in call], [], "packed" if keeps else "None"
    return "\n".join(
        [
            f"def {item.name}({', '.join(arguments)}):",
            f'    """See `reference/{item.file}.py`."""',
            f"    cdef {plan.struct} plan",
            f"    cdef void *operands[{len(arrays)}]",
            *operands,
            *run,
            "",
            "",
            f"def {item.name}_step({', '.join(shapes)}):",
            f'    """The step of `{item.name}`: shapes instead of arrays."""',
            f"    cdef {plan.struct} plan",
            *sizes,
            *make,
            f"    plan_{item.name}({later.replace('OWNED', '&kept.block')})",
            f"    return make_step({plan.run}, &plan, sizeof({plan.struct}), {len(arrays)}, plan.work, {keep})",
            "",
        ]
    )


def _passed(kind: str, name: str, names: dict[str, str], arrays: Sequence[str]) -> str:
    """Expressions passed as one argument of a plan; words in capitals stand for parts that differ between arrays and shapes."""
    if name == "owned":
        return "OWNED"
    if name == "given":
        return f"({', '.join(names[array] for array in arrays)},)"
    if name not in arrays:
        return names[name]
    words = {SIZES: f"SIZES({name})", "tuple": f"SHAPE({name})", "int64_t": f"COUNT({name})"}
    if kind == "bint":
        return f"{names[name]} is not None"
    if kind not in words:
        raise ValueError(f"a plan cannot take {kind!r} of the array {name}")
    return words[kind]


def functions(driver: str, items: Sequence[Any], plain: Collection[str]) -> str:
    """The text that a driver module includes: all pairs that it does not define itself."""
    made = [
        _pair(item, _plan(driver, item.name), plain)
        for item in items
        if not item.name.endswith("_pack") and not re.search(rf"^def {item.name}\(", driver, flags=re.MULTILINE)
    ]
    head = (
        "# Made by codegen/ of kernels/table.py and the plans: change those.\n\n"
        "from fastlayers.kernels.aot._engine cimport release\n"
        "from fastlayers.kernels.aot._step cimport Kept, data_of, make_step, run_plan, shape_of, sizes_of, volume\n"
    )
    return "\n\n".join([head, *made])
