"""examples/g2p.py writes the phonemes that g2p-en's own code writes."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl

from .wheels import wheel_file

ROOT = Path(__file__).parent.parent.parent
SCRIPT = ROOT / "examples" / "g2p.py"
GOLDEN = [line.partition(" ") for line in (ROOT / "tests/goldens/g2p.txt").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def checkpoint() -> Path:
    return wheel_file("g2p-en==2.1.0", "g2p_en/checkpoint20.npz")


def test_the_script(checkpoint: Path) -> None:
    assert len(GOLDEN) > 200
    command = [sys.executable, str(SCRIPT), str(checkpoint), *(word for word, _, _ in GOLDEN)]
    done = subprocess.run(command, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [phonemes for _, _, phonemes in GOLDEN]


def test_every_variant_and_batches(checkpoint: Path, variant: str) -> None:
    """All words at once, padded to the longest."""
    space: dict[str, Any] = runpy.run_path(str(SCRIPT))
    model, letters = space["G2p"](str(checkpoint)), space["LETTERS"]
    spelt = [[letters.index(c if c in letters else "<unk>") for c in [*word, "</s>"]] for word, _, _ in GOLDEN]
    lengths = np.array([len(ids) for ids in spelt])
    ids = np.zeros((lengths.max(), len(spelt)), np.int64)
    for j, word in enumerate(spelt):
        ids[: len(word), j] = word
    _, h = model.encoder(model.letters[ids], lengths=lengths)
    found = fl.functional.greedy_search(model.step, h[0], 2, 3, 20)
    for tokens, length, (word, _, phonemes) in zip(found.tokens, found.lengths, GOLDEN, strict=True):
        assert " ".join(space["PHONEMES"][i] for i in tokens[:length]) == phonemes, word
    beams = fl.functional.beam_search(model.step, h[0][:20], 2, 3, 20, 4)
    assert (beams.scores[:, 0] >= found.scores[:20] - 1e-4).mean() >= 0.9  # beams may lose the greedy path, but seldom do
