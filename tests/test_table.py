"""The kernel table against everything that must agree with it: the variants' functions, the C header, the bench cases."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import bench.cases
import fastlayers as fl
from fastlayers.kernels import dispatch, table
from fastlayers.kernels.table import KERNELS, UNARY, Kernel

from .each import each

needs_engine = pytest.mark.skipif(not dispatch.levels(), reason="the compiled engine is not built here")
KERNELS_H = Path(table.__file__).parent / "aot" / "csrc" / "kernels.h"
FOLDERS = (
    "reference",
    pytest.param("aot", marks=needs_engine),
    pytest.param("jit", marks=pytest.mark.jit),
    pytest.param("cuda", marks=pytest.mark.jit),
)
kernels = each("item", KERNELS)


@cache
def header() -> str:
    """kernels.h without its comments."""
    return re.sub(r"/\*.*?\*/", "", KERNELS_H.read_text(encoding="utf-8"), flags=re.DOTALL)


def defined(name: str) -> int:
    """The value of a numeric macro of kernels.h."""
    found = re.search(rf"^#define {name}\s+(\d+)", header(), flags=re.MULTILINE)
    assert found, f"kernels.h does not define {name}"
    return int(found[1])


def plain(arguments: Iterable[str]) -> list[str]:
    """Names without the axis letters, which a function may repeat or leave out."""
    return [name.split("__")[0] for name in arguments]


def test_names_are_unique() -> None:
    names = [item.name for item in KERNELS]
    assert len(names) == len(set(names))


@kernels
def test_packed_kernels_have_a_pack_kernel_beside_them(item: Kernel) -> None:
    packs = [k for k in KERNELS if k.name == f"{item.name}_pack"]
    assert len(packs) == ("packed" in item.arguments)
    assert all(pack.file == item.file for pack in packs)


@pytest.mark.parametrize("folder", FOLDERS)
@kernels
def test_same_name_and_arguments_in_every_folder(item: Kernel, folder: str) -> None:
    if folder not in item.variants:
        return  # the reference's runs
    module = importlib.import_module(f"fastlayers.kernels.{folder}.{item.file}")
    function = getattr(module, item.name)
    assert plain(inspect.signature(function).parameters) == plain(item.arguments)
    assert function.__doc__, f"{folder}/{item.file}: {item.name} has no docstring"


@needs_engine
@each("item", [item for item in KERNELS if not item.name.endswith("_pack")])  # weights are packed once: there is nothing to run
def test_every_kernel_has_a_step(item: Kernel) -> None:
    module = importlib.import_module(f"fastlayers.kernels.aot.{item.file}")
    step = getattr(module, f"{item.name}_step")
    assert plain(inspect.signature(step).parameters) == plain(item.arguments)


def test_every_kernel_runs_in_the_variant_that_was_asked_for(variant: str) -> None:
    folder = variant.partition("/")[0]
    want = {item.name: variant if folder in item.variants else "reference" for item in KERNELS}
    assert dispatch.info()["operations"] == want


def test_every_kernel_has_a_bench_case() -> None:
    have = {case.kernel for case in bench.cases.all_cases()}
    assert have == {item.name for item in KERNELS if not item.name.endswith("_pack")}


def test_bench_cases_have_labels_of_their_own() -> None:
    ids = [case.id for case in bench.cases.all_cases()]
    assert sorted(ids) == sorted(set(ids)), "the label is the seed and the name in reports"


def test_every_unary_parameter_has_a_default_and_a_place() -> None:
    for name, unary in UNARY.items():
        assert len(unary.parameters) == len(unary.defaults) <= 2, name
        assert not (unary.gate and unary.parameters), name


def test_panel_and_block_are_those_of_the_contract() -> None:
    """Packed weights and the order of summation depend on these two, so a change of either is a change of the contract."""
    assert defined("FL_PANEL") == 16
    assert defined("FL_KC") == 256
    contract = (KERNELS_H.parents[2] / "README.md").read_text(encoding="utf-8")
    assert f"blocks of {defined('FL_KC')} terms" in contract


def test_pad_modes_are_numbered_from_zero() -> None:
    assert list(table.PAD_MODES.values()) == list(range(len(table.PAD_MODES)))


def test_results_are_what_a_kernel_writes() -> None:
    # They say what comes back to a GPU from a kernel that runs on the host.
    smallest = {case.kernel: case for case in sorted(bench.cases.all_cases(), key=lambda case: -case.flops)}
    with fl.kernels.use("reference"):
        for item in (k for k in KERNELS if k.name in smallest):
            case, names = smallest[item.name], plain(item.arguments)
            arguments = case.arguments(np.random.default_rng(0))
            if "packed" in names:
                pack = next(k for k in KERNELS if k.name == f"{item.name}_pack")
                arguments["packed"] = dispatch.kernel(pack.name)(*(arguments["packed"][a] for a in plain(pack.arguments)))
            for name, value in arguments.items():
                if isinstance(value, np.ndarray):
                    value.flags.writeable = name in item.results
            dispatch.kernel(item.name)(*(arguments[name] for name in names))  # raises if it writes anything else
            assert set(item.results) & set(names)
