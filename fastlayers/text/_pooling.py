"""Hidden states of tokens as one vector of a text: the modules that folders of sentence-transformers list."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import FormatError, UnsupportedError, WeightsError
from ..formats.source import quote
from ..formats.weights import load_weights
from ..functional import gelu, identity, layer_norm, leaky_relu, linear, relu, sigmoid, silu, tanh
from ._folder import Folder
from ._settings import Settings, file_in, parsed, read_bytes, read_settings

__all__ = ["Pooling", "normalized", "read_modules"]

# As sentence-transformers joins them, with the words of older files.
_MODES = {
    "cls": "pooling_mode_cls_token", "max": "pooling_mode_max_tokens", "mean": "pooling_mode_mean_tokens",
    "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens", "weightedmean": "pooling_mode_weightedmean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}  # fmt: skip
_ACTIVATIONS: dict[str, Callable[..., Any]] = {
    "GELU": gelu, "Identity": identity, "LeakyReLU": leaky_relu, "ReLU": relu, "SiLU": silu, "Sigmoid": sigmoid, "Tanh": tanh
}  # fmt: skip
_MOST_MODULES = 32
Step = Callable[[np.ndarray], np.ndarray]


class Pooling:
    """Vectors of texts from the states of their tokens: the chosen reductions, joined.

    Args:
        modes: "mean", "cls", "max", "lasttoken", "weightedmean" (position i has weight i + 1), "mean_sqrt_len_tokens".
        prompt: whether tokens of a prompt in front of the text count.
    """

    def __init__(self, modes: Sequence[str] = ("mean",), prompt: bool = True) -> None:
        self.modes, self.prompt = tuple(modes), prompt

    @property
    def step(self) -> int | None:
        """The one token whose state is the vector, as an index; None if it depends on others."""
        return {"cls": 0, "lasttoken": -1}.get(self.modes[0]) if self.prompt and len(self.modes) == 1 else None

    def __call__(self, states: np.ndarray, skip: int = 0) -> np.ndarray:
        """float32 ``(modes d,)`` of the states ``(t, d)`` of one text without its first `skip` tokens.

        One text at a time: the order in which numpy sums depends on its length alone.
        """
        skip = 0 if self.prompt else min(skip, len(states) - 1)
        with np.errstate(all="ignore"):
            return np.concatenate([_pooled(states[skip:], mode, skip) for mode in self.modes]).astype(np.float32, copy=False)


def _pooled(states: np.ndarray, mode: str, skipped: int) -> np.ndarray:
    count = len(states)
    if mode in ("cls", "lasttoken"):
        return np.asarray(states[0 if mode == "cls" else -1])
    if mode == "max":
        return np.asarray(states.max(axis=0))
    if mode == "weightedmean":
        weights = np.arange(skipped + 1, skipped + count + 1, dtype=np.float32)
        return np.asarray((states * weights[:, None]).sum(axis=0) / weights.sum())
    return np.asarray(states.sum(axis=0) / np.float32(count if mode == "mean" else np.sqrt(count)))


def normalized(vectors: np.ndarray) -> np.ndarray:
    """Rows divided by their Euclidean norms, of 1e-12 at least."""
    with np.errstate(all="ignore"):
        norms = np.sqrt(np.stack([np.square(row).sum() for row in vectors])) if len(vectors) else np.zeros(0, np.float32)
        return np.asarray(vectors / np.maximum(norms, np.float32(1e-12))[:, None], np.float32)


def read_modules(path: str, what: str) -> tuple[str, list[tuple[str, str]]]:
    """The folder of the network below `path`, and the kinds and folders of the modules after it, by modules.json."""
    file = file_in(path, "modules.json")
    if file is None:
        return "", [("Pooling", "1_Pooling")] if file_in(path, "1_Pooling") else []
    where = f"{what}: {file}"
    listed = parsed(read_bytes(file, what), where)
    if not isinstance(listed, list) or not 1 <= len(listed) <= _MOST_MODULES:
        raise FormatError(f"{where}: expected a list of 1 to {_MOST_MODULES} modules")
    found = []
    for entry in listed:
        settings = Settings(where, entry if isinstance(entry, dict) else {})
        kind, folder = settings.get("type", str, ""), settings.get("path", str, "")
        # The name of a class, which is compared and never imported; its folder must be in this one.
        if folder and (folder in (".", "..") or any(c in folder for c in "/\\:\0")):
            raise FormatError(f"{where}: path is {quote(folder)}: expected the name of a folder next to it")
        found.append((kind.rpartition(".")[2], folder))
    if found[0][0] != "Transformer":
        raise UnsupportedError(f"{where}: begins with the module {quote(found[0][0])}: only Transformer is supported there")
    return found[0][1], found[1:]


def steps_of(folder: Folder, modules: list[tuple[str, str]]) -> tuple[Pooling, list[Step], bool]:
    """The pooling, what follows it, and whether vectors are normalized at the end."""
    pooling, steps, normal = Pooling(), [], False
    for i, (kind, name) in enumerate(modules):
        settings = read_settings(os.path.join(folder.path, name), "config.json", folder.what)
        if kind == "Pooling" and i == 0:
            pooling = _pooling(settings)
        elif kind in _STEPS:
            steps.append(_STEPS[kind](folder, name, settings))
        elif kind == "Normalize":
            steps.append(normalized)
        elif kind != "Dropout":
            known = "Pooling (first), Dense, LayerNorm, Normalize, Dropout"
            raise UnsupportedError(f"{folder.what}: {folder.path}: has the module {quote(kind)}: supported are {known}")
    if steps and steps[-1] is normalized:
        steps, normal = steps[:-1], True
    return pooling, steps, normal


def _pooling(settings: Settings) -> Pooling:
    given = settings.values.get("pooling_mode")
    if given is None:
        modes = [mode for mode, word in _MODES.items() if settings.get(word, bool, False)] or ["mean"]
    else:
        modes = [given] if isinstance(given, str) else given
        if not isinstance(modes, list) or not modes or not all(isinstance(mode, str) and mode in _MODES for mode in modes):
            raise FormatError(f"{settings.where}: pooling_mode is {quote(given)}: expected some of {', '.join(_MODES)}")
    return Pooling(modes, settings.get("include_prompt", bool, True))


def _weights(folder: Folder, name: str, shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """The arrays of a module's file, which are exactly those of these shapes, as float32."""
    below = os.path.join(folder.path, name)
    file = file_in(below, "model.safetensors") or file_in(below, "pytorch_model.bin")
    if file is None:
        raise FormatError(f"{folder.what}: {below}: has neither model.safetensors nor pytorch_model.bin")
    found = load_weights(file)
    got = {key: array.shape for key, array in found.items()}
    if got != shapes:
        raise WeightsError(f"{folder.what}: {file}: has {quote(got)}: expected {quote(shapes)}")
    return {key: np.asarray(array, np.float32) for key, array in found.items()}


def _dense(folder: Folder, name: str, settings: Settings) -> Step:
    inner, outer = settings.size("in_features"), settings.size("out_features")
    if inner is None or outer is None:
        raise FormatError(f"{settings.where}: expected in_features and out_features")
    word = settings.get("activation_function", str, "torch.nn.modules.activation.Tanh")
    activation = _ACTIVATIONS.get(word.rpartition(".")[2]) if word.startswith("torch.nn.") else None
    if activation is None:
        raise UnsupportedError(f"{settings.where}: activation_function is {quote(word)}: supported are {', '.join(_ACTIVATIONS)}")
    for key in ("module_input_name", "module_output_name"):
        if settings.get(key, str, "sentence_embedding") != "sentence_embedding":
            raise UnsupportedError(f"{settings.where}: {key} is {quote(settings.values[key])}: expected sentence_embedding")
    shapes: dict[str, tuple[int, ...]] = {"linear.weight": (outer, inner)}
    if settings.get("bias", bool, True):
        shapes["linear.bias"] = (outer,)
    residual = settings.get("use_residual", bool, False)
    if residual and inner != outer:
        shapes["residual.weight"] = (outer, inner)
    w = _weights(folder, name, shapes)

    def apply(x: np.ndarray) -> np.ndarray:
        y = activation(linear(x, w["linear.weight"], w.get("linear.bias")))
        if residual:
            y = y + (x if inner == outer else linear(x, w["residual.weight"]))
        return np.asarray(y)

    return apply


def _layer_norm(folder: Folder, name: str, settings: Settings) -> Step:
    size = settings.size("dimension")
    if size is None:
        raise FormatError(f"{settings.where}: expected dimension")
    w = _weights(folder, name, {"norm.weight": (size,), "norm.bias": (size,)})
    return lambda x: np.asarray(layer_norm(x, size, w["norm.weight"], w["norm.bias"]))


_STEPS: dict[str, Callable[[Folder, str, Settings], Step]] = {"Dense": _dense, "LayerNorm": _layer_norm}
