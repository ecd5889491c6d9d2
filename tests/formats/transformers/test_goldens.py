"""Every family beside what transformers computed, without it."""

from __future__ import annotations

from pathlib import Path

import pytest

import fastlayers as fl
from fastlayers.formats.transformers import FAMILIES

from ...each import each
from ...goldens.transformers_cases import CASES
from .checkpoints import compare, golden, written


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
