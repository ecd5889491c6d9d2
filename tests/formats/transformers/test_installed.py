"""Every family beside the installed transformers: checkpoints that it writes, weights of 16 bits, and longer texts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fastlayers as fl

from ...goldens.transformers_cases import CASES, Case
from .checkpoints import compare, named

pytestmark = pytest.mark.transformers
ENCODERS = [name for name, case in CASES.items() if not case.decodes and not case.places]


@pytest.mark.parametrize("name", CASES)
def test_the_same_results(tmp_path: Path, name: str) -> None:
    from ...goldens import make_transformers as make

    network, _ = make.made(CASES[name], tmp_path)
    compare(name, fl.load(tmp_path), make.results(CASES[name], network))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["bert", "llama 3", "qwen3_moe", "t5"])
def test_weights_of_16_bits(tmp_path: Path, name: str, dtype: str) -> None:
    from ...goldens import make_transformers as make

    network, _ = make.made(CASES[name], tmp_path, dtype)
    compare(name, fl.load(tmp_path), make.results(CASES[name], network))


@pytest.mark.parametrize("name", ENCODERS)
def test_longer_texts(tmp_path: Path, name: str) -> None:
    """As long as the tables allow, or beyond where distances are sorted into their last buckets."""
    import torch

    from ...goldens import make_transformers as make

    case = CASES[name]
    steps = 300 if case.cls.startswith(("T5", "ModernBert", "NomicBert")) else 38
    longer = {"max_position_embeddings": 512} if "max_position_embeddings" in case.config else {}
    steps = 300 if longer else steps
    case = Case(case.cls, {**case.config, **longer}, case.types)
    network, _ = make.made(case, tmp_path)
    given = case.feeds(steps)
    with torch.no_grad():
        found = network(**{key: torch.from_numpy(array) for key, array in given.items()})
    for key, got in named(fl.load(tmp_path), given).items():
        want, kept = found[key].numpy(), given["attention_mask"] > 0
        if got.shape[:2] == kept.shape:
            got, want = got[kept], want[kept]
        assert float(np.abs(got - want).max()) <= 1e-5 * float(np.abs(want).max())
