"""Labels of texts, and of their tokens."""

from __future__ import annotations

from typing import Any, overload

import numpy as np

from .._arguments import shown
from ..errors import FormatError, UnsupportedError
from ..formats.source import quote
from ..functional import sigmoid, softmax
from ..ir.checks import integer
from ..model.model import Model
from ._network import Network, listed, tokenized
from ._open import open_folder
from ._settings import Settings
from ._tokens import Tokens

__all__ = ["Classifier"]

_PROBLEMS = ("regression", "single_label_classification", "multi_label_classification")


class Classifier:
    """A network that labels texts, or each of their tokens: ``softmax(logits)``, or the sigmoid for labels that do not exclude
    each other, with the names that the folder's ``id2label`` has.

    May be used by any number of threads at once.

    Args:
        path: the folder, as for `Encoder`, of a network whose output is ``logits``: ``(n, labels)`` for texts, ``(n, t, labels)``
            for tokens.
        model: a network to run instead of the folder's.

    Raises:
        FormatError: a file of the folder is broken.
        UnsupportedError: the network has other inputs.
        DTypeError, ArgumentError: an argument is wrong.
    """

    def __init__(self, path: Any, *, model: Model | None = None) -> None:
        what = "Classifier"
        folder = open_folder(path, what, model)
        self._network = Network(folder.model, what, ("logits",))
        self._tokenizer = folder.tokenizer()
        self.labels = _labels(folder.config)
        self._problem: str | None = folder.config.get("problem_type", str)
        if self._problem not in (None, *_PROBLEMS):
            raise FormatError(f"{folder.config.where}: problem_type is {quote(self._problem)}: expected one of {_PROBLEMS}")

    @property
    def model(self) -> Model:
        """The network."""
        return self._network.model

    @overload
    def __call__(self, texts: str, top_k: int | None = ..., batch_size: int = ..., group: bool = ...) -> list[dict[str, Any]]: ...
    @overload
    def __call__(
        self, texts: list[str], top_k: int | None = ..., batch_size: int = ..., group: bool = ...
    ) -> list[list[dict[str, Any]]]: ...
    @overload
    def __call__(self, texts: Any, top_k: int | None = ..., batch_size: int = ..., group: bool = ...) -> Any: ...
    def __call__(self, texts: Any, top_k: int | None = 1, batch_size: int = 32, group: bool = True) -> Any:
        """Labels of texts, in their order, with the same bits alone and in any batch.

        Args:
            texts: a text, or a sequence of them; also ids of tokens instead of a text.
            top_k: how many labels of a text, the most probable first; None: all. Networks of tokens have one for each token.
            batch_size: the most texts that run at once; they are sorted by length, and padded never.
            group: for networks of tokens: whether neighbors with one label (``B-LOC``, ``I-LOC``) become one entry ``LOC``, and
                ``O`` is left out; its score is the mean.

        Returns:
            For each text a list of dicts ``{"label": name, "score": probability}``; of tokens they have also ``"start"`` and
            ``"end"``, positions in the text, and its ``"text"`` there. For one text alone its list.

        Raises:
            DTypeError: texts are of another type.
            ArgumentError: `top_k` or `batch_size` is out of range.
            UnsupportedError: the network's output has another number of axes.
            MissingExtraError: texts are given, and the extra ``text`` is not installed.
        """
        what = "Classifier"
        found, single = listed(texts, what)
        size = integer(what, "batch_size", batch_size, 1)
        most = None if top_k is None else integer(what, "top_k", top_k, 1)
        tokens = tokenized(found, self._tokenizer, what, places=True)
        results: list[Any] = [None] * len(tokens)

        def use(i: int, logits: np.ndarray) -> None:
            if logits.ndim not in (1, 2):
                raise UnsupportedError(f"{what}: the network gives {logits.shape} for a text: expected (labels,) or (t, labels)")
            values = self._probabilities(logits)
            results[i] = self._best(values, most) if values.ndim == 1 else self._spans(found[i], tokens[i], values, group)

        self._network.each(tokens, size, use)
        return results[0] if single else results

    def _probabilities(self, logits: np.ndarray) -> np.ndarray:
        if self._problem == "regression":
            return logits
        if logits.ndim == 1 and (self._problem == "multi_label_classification" or logits.size == 1):
            return np.asarray(sigmoid(logits))
        return np.asarray(softmax(logits, -1))

    def _name(self, i: int) -> str:
        return self.labels.get(i, f"LABEL_{i}")

    def _best(self, values: np.ndarray, most: int | None) -> list[dict[str, Any]]:
        return [{"label": self._name(int(i)), "score": float(values[i])} for i in np.argsort(-values, kind="stable")[:most]]

    def _spans(self, text: Any, tokens: Tokens, values: np.ndarray, group: bool) -> list[dict[str, Any]]:
        """One entry per token that is not special, or per group of neighbors with one label."""
        found: list[dict[str, Any]] = []
        scores: list[list[float]] = []
        last = ""
        for i, row in enumerate(values):
            if tokens.special[i]:
                last = ""
                continue
            best = int(row.argmax())
            label, (start, end) = self._name(best), tokens.offsets[i]
            begins, name = (label[:2] == "B-", label[2:]) if group and label[:2] in ("B-", "I-") else (False, label)
            if group and name == "O":
                last = ""
                continue
            if group and name == last and not begins:
                found[-1]["end"] = end
                scores[-1].append(float(row[best]))
            else:
                found.append({"label": name, "score": 0.0, "start": start, "end": end})
                scores.append([float(row[best])])
            last = name
        for entry, parts in zip(found, scores, strict=True):
            entry["score"] = sum(parts) / len(parts)
            entry["text"] = text[entry["start"] : entry["end"]] if isinstance(text, str) else ""
        return found


def _labels(config: Settings) -> dict[int, str]:
    """Names by number."""
    found = {}
    for key, name in config.texts("id2label").items():
        if not (key.isascii() and key.isdigit() and len(key) < 10):
            raise FormatError(f"{config.where}: id2label has the key {shown(key)}: expected numbers")
        found[int(key)] = name
    return found
