"""Every family beside what transformers computed, without it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.formats.transformers import FAMILIES

from ...each import each
from ...goldens.transformers_cases import CASES
from .checkpoints import compare, golden, named, pieces, written


@pytest.mark.parametrize("name", CASES)
def test_the_same_as_transformers(tmp_path: Path, name: str) -> None:
    model = fl.load(written(tmp_path, name))
    compare(name, model, golden(name)[2])


@each("name", CASES)
def test_nothing_runs_in_numpy(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    model = fl.load(written(tmp_path_factory.mktemp("checkpoint"), name))
    sizes = {key: array.shape for key, array in CASES[name].feeds().items()}
    batch = sizes["input_ids"][0]
    for spec in model.inputs:
        if spec.name not in sizes:
            sizes[spec.name] = (batch, spec.shape[1], 0, spec.shape[3])  # type: ignore[index]
    steps = {step.step.op for step in model.report(sizes).steps if step.in_numpy}
    assert not steps


def test_every_family_has_a_golden() -> None:
    assert {golden(name)[0]["model_type"] for name in CASES} == set(FAMILIES) - {"new"}  # as "gte"


@each("name", CASES)
def test_batches_keep_rows_apart(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    model = fl.load(written(tmp_path_factory.mktemp("checkpoint"), name))
    assert model.batch_axes() == dict.fromkeys((*model.inputs.names, *model.outputs.names), 0)


def results(model: fl.Model, name: str) -> list[bytes]:
    """All bits of two sizes, of decoders in pieces."""
    case, found = CASES[name], []
    for steps in (0, 19):
        given = case.feeds(steps)
        length = given["input_ids"].shape[1]
        ends = (length,) if case.whole else (5, 6, length)
        arrays = [pieces(model, given, ends)] if case.decodes else named(model, given).values()
        found += [np.ascontiguousarray(array).tobytes() for array in arrays]
    return found


@pytest.mark.exhaustive
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("name", CASES)
def test_the_same_bits_on_threads_in_forks_and_from_a_saved_file(tmp_path: Path, name: str, kept_threads: None) -> None:
    fl.set_num_threads(1)
    model = fl.load(written(tmp_path, name))
    wanted = results(model, name)
    model.save(tmp_path / "own.safetensors", packed=True)
    fl.set_num_threads(2)
    assert results(model, name) == wanted
    assert results(fl.load(tmp_path / "own.safetensors"), name) == wanted
    child = os.fork()
    if not child:
        os._exit(0 if results(model, name) == wanted else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
