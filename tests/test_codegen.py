"""What the build makes of the kernel table: that it is complete and up to date, and that what it cannot read is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import codegen
from codegen import codes, headers, pairs
from fastlayers.kernels import table
from fastlayers.kernels.table import KERNELS, PLAIN, Kernel

ROOT = Path(__file__).parent.parent
DRIVER = """
cdef int plan_scale(Job *job, const cnp.npy_intp *x, tuple mask, bint residual, int op) except -1:
    return 0


cdef int run(const void *plan, void *const *operands) noexcept nogil:
    cdef const Job *job = <const Job *>plan
    return 0
"""
SCALE = Kernel("scale", "scale", ("x__mn", "mask", "residual", "out__mn", "op"))


def test_what_was_made_is_that_of_the_sources(tmp_path: Path) -> None:
    made = ROOT / codegen.MADE
    if not made.exists():
        pytest.skip("the engine was not built here")
    for folder in ("csrc", ""):
        (tmp_path / codegen.AOT / folder).mkdir(parents=True, exist_ok=True)
    for path in (*(ROOT / codegen.AOT / "csrc").iterdir(), *(ROOT / codegen.AOT).glob("*.pyx")):
        (tmp_path / path.relative_to(ROOT)).write_bytes(path.read_bytes())
    for name in ("_tuples.py", "kernels/table.py"):
        (tmp_path / "fastlayers" / name).write_bytes((ROOT / "fastlayers" / name).read_bytes())
    written = codegen.write(tmp_path)
    assert {path.name for path in written} == {path.name for path in made.iterdir()}
    assert [path.name for path in written if path.read_bytes() != (made / path.name).read_bytes()] == []
    assert codegen.write(tmp_path) == [], "files that are right keep their time"


def test_the_table_is_the_one_that_is_imported() -> None:
    assert [tuple(item) for item in codegen.table(ROOT).KERNELS] == [tuple(item) for item in KERNELS]


def test_a_pair_passes_what_its_plan_asks_about() -> None:
    text = pairs.functions(DRIVER, [SCALE], PLAIN)
    assert "plan_scale(&plan, cnp.PyArray_DIMS(x__mn), shape_of(mask), residual is not None, op)" in text
    assert "plan_scale(&plan, x_sizes, mask, residual is not None, op)" in text
    assert "def scale_step(tuple x__mn not None, tuple mask, tuple residual, tuple out__mn, int op):" in text
    assert "make_step(run, &plan, sizeof(Job), 4, plan.work, None)" in text


@pytest.mark.parametrize(
    ("driver", "message"),
    [
        ("", "neither plan_scale nor scale"),
        (DRIVER.replace("int op", "int order"), "order is none of the kernel's"),
        (DRIVER.replace("tuple mask", "float mask"), "cannot take 'float' of the array mask"),
        (DRIVER.replace("<const Job *>plan", "<const Other *>plan"), "expected run_scale"),
        (DRIVER + DRIVER[DRIVER.index("cdef int run") :].replace("run", "run_other"), "found run, run_other"),
    ],
)
def test_a_driver_that_breaks_the_rules_is_refused(driver: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pairs.functions(driver, [SCALE], PLAIN)


def test_structures_and_rows_become_declarations() -> None:
    header = """
    typedef struct {
      const float *x, *from; /* a comment; with a semicolon */
      const float *const *rows;
      int n, list[FL_MOST];
    } fl_one;
    typedef struct fl_kernels {
      int abi;
    #define FL_KERNEL(of, name, result, arguments) result(*name) arguments;
    #include "kernels.def"
    #undef FL_KERNEL
      const fl_one *one;
    } fl_kernels;
    """.replace("\n    ", "\n")
    text = headers.declarations(
        [header], "/* rows */\nFL_KERNEL(f32, sum, void, (const fl_one *p,\n          int64_t from))\n", "x.h"
    )
    for line in (
        "const float *x", 'const float *from_ "from"', "const float *const *rows", "int list[FL_MOST]",
        "void (*sum)(const fl_one *p, int64_t from_) noexcept nogil", "const fl_one *one",
    ):  # fmt: skip
        assert f"        {line}\n" in text, line
    with pytest.raises(ValueError, match="fl_one: cannot read the member"):
        headers.declarations([header.replace("int n,", "int n : 3,")], "", "x.h")
    with pytest.raises(ValueError, match="cannot read every row"):
        headers.declarations([header], "\nFL_KERNEL(f32 sum)\n", "x.h")


def test_codes_have_no_gaps_and_the_number_of_a_build_tells_tables_apart() -> None:
    first = codes.header(table, "structures")
    assert first == codes.header(table, "structures") != codes.header(table, "others")
    with pytest.raises(ValueError, match="fl_scatter_code: codes are"):
        codes._enum("fl_scatter_code", "FL_S_", {"none": 0, "add": 2}, "")
