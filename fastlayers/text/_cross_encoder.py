"""Scores of pairs of texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._arguments import shown
from ..errors import ArgumentError, DTypeError, UnsupportedError
from ..formats.source import quote
from ..functional import identity, sigmoid
from ..ir.checks import integer
from ..model.model import Model
from ._network import Network, listed, reporter, tokenized
from ._open import open_folder

__all__ = ["CrossEncoder"]

_ACTIVATIONS: dict[str, Callable[..., Any]] = {"Identity": identity, "Sigmoid": sigmoid}


class CrossEncoder:
    """A network that reads two texts at once and scores them: ``activation(network(tokenize(a, b)))``.

    May be used by any number of threads at once.

    Args:
        path: the folder, as for `Encoder`, of a network whose output is ``logits`` ``(n, labels)``.
        model: a network to run instead of the folder's.
        activation: "sigmoid" or "identity"; None: as the folder says, else sigmoid for one label, and identity for several.

    Raises:
        FormatError: a file of the folder is broken.
        UnsupportedError: the folder names another activation, or the network has other inputs.
        DTypeError, ArgumentError: an argument is wrong.
    """

    def __init__(self, path: Any, *, model: Model | None = None, activation: str | None = None) -> None:
        what = "CrossEncoder"
        folder = open_folder(path, what, model)
        self._network = Network(folder.model, what, ("logits",))
        self._tokenizer = folder.tokenizer()
        if activation not in (None, "sigmoid", "identity"):
            raise ArgumentError(f"{what}: activation is {shown(activation)}: expected 'sigmoid' or 'identity'")
        newer = folder.config.below("sentence_transformers").get("activation_fn", str)
        newest = folder.settings("config_sentence_transformers.json").get("activation_fn", str)
        word = activation or newest or newer or folder.config.get("sbert_ce_default_activation_function", str)
        self._activation = None if word is None else _ACTIVATIONS.get(word.rpartition(".")[2].capitalize())
        if word is not None and self._activation is None:
            raise UnsupportedError(f"{what}: {folder.path}: the activation is {quote(word)}: supported are Sigmoid and Identity")

    @property
    def model(self) -> Model:
        """The network."""
        return self._network.model

    def predict(self, pairs: Any, batch_size: int = 32, progress: Any = False) -> np.ndarray:
        """The scores of pairs of texts, in their order, with the same bits alone and in any batch.

        Args:
            pairs: a sequence of pairs ``(a, b)``, or one pair of two texts; also ids of tokens instead of a pair.
            batch_size: the most pairs that run at once; they are sorted by length, and padded never.
            progress: as in `Encoder.encode`.

        Returns:
            float32 ``(n,)`` if the network has one label, else ``(n, labels)``; without the first axis for one pair alone.

        Raises:
            DTypeError: something is no pair of texts.
            ArgumentError: `batch_size` is below 1.
            MissingExtraError: texts are given, and the extra ``text`` is not installed.
        """
        return self._counted(pairs, batch_size, progress)[0]

    def _counted(self, pairs: Any, batch_size: Any = 32, progress: Any = False) -> tuple[np.ndarray, int]:
        """The scores, and the number of tokens."""
        what = "predict"
        single = isinstance(pairs, (tuple, list)) and len(pairs) == 2 and all(isinstance(part, str) for part in pairs)
        found, alone = ([pairs], True) if single else listed(pairs, what)
        size = integer(what, "batch_size", batch_size, 1)
        tokens = tokenized(found, self._tokenizer, what, pairs=True)
        rows: list[np.ndarray] = [np.zeros(0, np.float32)] * len(tokens)
        self._network.each(tokens, size, rows.__setitem__, reporter(progress, what))
        count = sum(len(one.ids) for one in tokens)
        if not rows:
            return np.zeros(0, np.float32), count
        logits = np.stack(rows)
        if logits.ndim != 2:
            raise UnsupportedError(f"{what}: the network gives {logits.shape[1:]} for a pair: expected one axis, of labels")
        activation = self._activation or (sigmoid if logits.shape[1] == 1 else identity)
        scores = np.asarray(activation(logits))
        scores = scores[:, 0] if scores.shape[1] == 1 else scores
        return np.asarray(scores[0] if alone else scores), count

    def rank(self, query: str, texts: Any, top_k: int | None = None, batch_size: int = 32) -> list[dict[str, Any]]:
        """Texts by how well they answer a query, the best first; of equal ones the earlier.

        Args:
            query: the text that is the first of each pair.
            texts: the others.
            top_k: how many are returned; None: all.
            batch_size: as in `predict`.

        Returns:
            Dicts ``{"corpus_id": number of the text, "score": float, "text": the text}``.

        Raises:
            DTypeError: something is no text.
            UnsupportedError: the network has several labels.
        """
        return self._ranked(query, texts, top_k, batch_size)[0]

    def _ranked(self, query: Any, texts: Any, top_k: Any = None, batch_size: Any = 32) -> tuple[list[dict[str, Any]], int]:
        """The texts, and the number of tokens."""
        if not isinstance(query, str):
            raise DTypeError(f"rank: query is of type {type(query).__name__}: expected a text")
        found = list(texts) if not isinstance(texts, str) else [texts]
        most = len(found) if top_k is None else integer("rank", "top_k", top_k, 0)
        scores, count = self._counted([(query, text) for text in found], batch_size)
        if scores.ndim != 1:
            raise UnsupportedError(f"rank: the network has {scores.shape[1]} labels: expected one, the score")
        order = np.argsort(-scores, kind="stable")[:most]
        return [{"corpus_id": int(i), "score": float(scores[i]), "text": found[i]} for i in order], count
