"""Writes transformers.npz: what transformers computes, in float32, for the checkpoints of transformers_cases.py.

Run from the root of the repository: ``python -m tests.goldens.make_transformers``; made with transformers 5.24 and torch 2.13.
The file has each checkpoint's config.json, the names and shapes of its weights as transformers stores them, and the results.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from safetensors import safe_open
from safetensors.numpy import save_file

from .transformers_cases import CASES, KEPT, TOKENS, Case, weights

transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
transformers.logging.disable_progress_bar()  # type: ignore[no-untyped-call]


def made(case: Case, folder: Path, dtype: str = "float32") -> tuple[Any, dict[str, tuple[int, ...]]]:
    """Writes a checkpoint with weights that follow from names; the network of it, and the shapes of the weights by name."""
    cls = getattr(transformers, case.cls)
    cls(cls.config_class(**case.config)).save_pretrained(folder)
    with safe_open(str(folder / "model.safetensors"), "np") as file:
        shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    if dtype == "float32":
        save_file(weights(shapes), str(folder / "model.safetensors"), {"format": "pt"})
    else:
        from safetensors.torch import save_file as save

        tensors = {name: torch.from_numpy(w).to(getattr(torch, dtype)) for name, w in weights(shapes).items()}
        save(tensors, str(folder / "model.safetensors"), {"format": "pt"})
    return cls.from_pretrained(folder, dtype=torch.float32).eval(), shapes


@torch.no_grad()
def results(case: Case, network: Any) -> dict[str, np.ndarray]:
    """The network's results by optimum's names; of decoders, the tokens after the first prompt too."""
    feeds = case.feeds()
    given = {name: torch.from_numpy(array) for name, array in feeds.items()}
    found = network(**given)
    if case.whole:  # where the longest row decides, each is computed alone
        rows = [network(**{name: t[i : i + 1] for name, t in given.items()}) for i in range(2)]
        found = {"logits": torch.cat([row["logits"] for row in rows])}
    names = ("last_hidden_state", "logits", "start_logits", "end_logits")
    made = {name: found[name].numpy()[..., KEPT if found[name].ndim == 3 else slice(None)] for name in names if name in found}
    if case.decodes and not case.whole:
        ids = torch.from_numpy(feeds["input_ids"][:1])
        after = network.generate(
            ids, max_new_tokens=TOKENS, min_new_tokens=TOKENS, do_sample=False, eos_token_id=None, pad_token_id=0
        )
        made["tokens"] = after[0, ids.shape[1] :].numpy().astype(np.uint8)
    return made


def main() -> None:
    arrays: dict[str, np.ndarray] = {}
    for name, case in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            network, shapes = made(case, Path(folder))
            config = json.loads((Path(folder) / "config.json").read_text())
            told = json.dumps({"config": config, "shapes": shapes}, separators=(",", ":"))
            arrays[f"{name}/checkpoint"] = np.frombuffer(told.encode(), np.uint8)
            arrays.update((f"{name}/{key}", array) for key, array in results(case, network).items())
        print(name)
    np.savez_compressed(Path(__file__).with_name("transformers.npz"), **arrays)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
