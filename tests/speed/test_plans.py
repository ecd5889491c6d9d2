"""The plans of 30 networks and of all cases of the kernels are as they are stored.

A change that is meant: ``python -m tests.speed.plans``, and say why in the commit.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels import dispatch

from .plans import KERNELS, LEVEL, PLANS, differences, model_plan, models

pytestmark = pytest.mark.skipif(LEVEL.partition("/")[2] not in dispatch.levels(), reason=f"{LEVEL} cannot run here")


@pytest.mark.parametrize("which", ["models", "kernels"])
def test_plans_are_as_stored(which: str) -> None:
    assert differences(which) == []


def test_what_is_stored_is_enough() -> None:
    assert len(json.loads(PLANS.read_text())) >= 30 and len(json.loads(KERNELS.read_text())) > 500


def test_plans_are_the_same_every_time_and_with_any_number_of_threads(kept_threads: None) -> None:
    (model,) = [model for name, model in models() if name == "resnet block"]
    plans = []
    for threads in (1, 2):
        fl.set_num_threads(threads)
        plans += [model_plan(model) for _ in range(25)]
    assert all(plan == plans[0] for plan in plans)
    assert np.isfinite(plans[0]["multiply_adds"])  # type: ignore[index]
