"""Checkpoints for tests: folders of weights that follow from names, and runs of their models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import fastlayers as fl

from ...goldens.transformers_cases import CASES, KEPT, weights
from ..build import safetensors, safetensors_of

GOLDENS = Path(__file__).parents[2] / "goldens" / "transformers.npz"


def golden(name: str) -> tuple[dict[str, Any], dict[str, Any], dict[str, np.ndarray]]:
    """A case's configuration, the shapes of its weights, and what transformers computes."""
    with np.load(GOLDENS) as file:
        told = json.loads(file[f"{name}/checkpoint"].tobytes())
        found = {
            key.rpartition("/")[2]: file[key] for key in file if key.startswith(f"{name}/") and not key.endswith("checkpoint")
        }
    return told["config"], told["shapes"], found


def written(folder: Path, name: str = "bert", **words: Any) -> Path:
    """The checkpoint of a case, with other words in its configuration (None: without it)."""
    config, shapes, _ = golden(name)
    config = {word: value for word, value in {**config, **words}.items() if value is not None}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes(safetensors_of(weights(shapes)))
    return folder


def stored(arrays: dict[str, np.ndarray], kind: str) -> tuple[bytes, dict[str, np.ndarray]]:
    """A file of float16 or bfloat16, and the values that it has."""
    wide = {name: np.ascontiguousarray(array, np.float32).reshape(array.shape) for name, array in arrays.items()}
    if kind == "F16":
        wide = {name: array.astype(np.float16).astype(np.float32) for name, array in wide.items()}
        held = {name: array.astype("<f2") for name, array in wide.items()}
    else:
        held = {name: (array.view(np.uint32) >> 16).astype("<u2") for name, array in wide.items()}
        wide = {name: (array.astype(np.uint32) << 16).view(np.float32) for name, array in held.items()}
    return safetensors({name: (kind, list(array.shape), array.tobytes()) for name, array in held.items()}), wide


def named(model: fl.Model, given: dict[str, Any]) -> dict[str, np.ndarray]:
    """The model's results by name."""
    found = model(**given)
    return dict(zip(model.outputs.names, found if isinstance(found, tuple) else (found,), strict=True))


class Generation:
    """Calls of a decoder, each with the keys and values of those before."""

    def __init__(self, model: fl.Model, batch: int = 1) -> None:
        self.model, self.mask = model, np.zeros((batch, 0), np.int64)
        self.past: dict[str, np.ndarray] = {
            spec.name: np.zeros((batch, spec.shape[1], 0, spec.shape[3]), np.float32)  # type: ignore[index]
            for spec in model.inputs
            if spec.name.startswith("past_key_values.")
        }

    def __call__(self, ids: np.ndarray, mask: np.ndarray, positions: np.ndarray) -> np.ndarray:
        self.mask = np.concatenate((self.mask, mask), 1)
        found = named(self.model, {"input_ids": ids, "attention_mask": self.mask, "position_ids": positions, **self.past})
        self.past = {name.replace("present.", "past_key_values."): found[name] for name in found if name != "logits"}
        return found["logits"]


def pieces(model: fl.Model, given: dict[str, np.ndarray], ends: tuple[int, ...]) -> np.ndarray:
    """The scores of prompts that come in pieces."""
    generation, start, found = Generation(model, len(given["input_ids"])), 0, []
    for end in ends:
        found.append(generation(*(given[name][:, start:end] for name in ("input_ids", "attention_mask", "position_ids"))))
        start = end
    return np.concatenate(found, 1)


def greedy(model: fl.Model, ids: np.ndarray, count: int) -> list[int]:
    """The likeliest tokens after a prompt."""
    generation, made, at = Generation(model), [], 0
    for _ in range(count):
        steps = ids.shape[1]
        scores = generation(ids, np.ones((1, steps), np.int64), np.arange(at, at + steps)[None])
        made.append(int(scores[0, -1].argmax()))
        ids, at = np.array([[made[-1]]]), at + steps
    return made


def compare(name: str, model: fl.Model, want: dict[str, np.ndarray], tolerance: float = 1e-5) -> None:
    """Raises unless the model computes what transformers does: whole, padded or not, and in pieces."""
    case = CASES[name]
    given = case.feeds()
    kept = given["attention_mask"] > 0
    for rows in (slice(None), slice(0, 1)):
        part = {key: array[rows] for key, array in given.items()}
        got = {"logits": pieces(model, part, (11,) if case.whole else (5, 6, 11))} if case.decodes else named(model, part)
        for key, found in got.items():
            whole, mine = want[key][rows], kept[rows]
            found = found[..., KEPT] if found.ndim == 3 else found
            assert found.shape == whole.shape
            if found.shape[:2] == mine.shape:
                found, whole = found[mine], whole[mine]
            assert float(np.abs(found - whole).max()) <= tolerance * float(np.abs(whole).max()), (name, key, rows)
    if "tokens" in want:
        assert greedy(model, given["input_ids"][:1], len(want["tokens"])) == want["tokens"].tolist()
