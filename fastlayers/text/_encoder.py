"""Vectors of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._arguments import as_flag, as_path, shown
from ..errors import ArgumentError, DTypeError, ShapeError
from ..formats.source import quote
from ..functional import linear
from ..ir.checks import integer
from ..model.model import Model
from ._network import Network, listed, reporter, tokenized
from ._open import open_folder
from ._pooling import Pooling, normalized, read_modules, steps_of

__all__ = ["Encoder"]

_SIMILARITIES = ("cosine", "dot", "euclidean", "manhattan")


class Encoder:
    """A network that makes vectors of texts: ``pool(network(tokenize(text)))``, with what the folder lists after it.

    Reads folders of sentence-transformers (``modules.json``, ``1_Pooling/config.json``, ``config_sentence_transformers.json``)
    and of transformers, whose token states are averaged then. May be used by any number of threads at once.

    Args:
        path: a GGUF file; or a folder: ``tokenizer.json``, configuration, and weights that `fastlayers.load` reads,
            or ``model.onnx`` or ``onnx/model.onnx``. Nothing in it is executed.
        model: a network to run instead of the folder's, for example one that was loaded with other options: ``input_ids``
            ``(n, t)``, and any of ``attention_mask``, ``token_type_ids`` and ``position_ids``, to states ``(n, t, d)``.
        similarity: "cosine", "dot", "euclidean" or "manhattan"; None: as the folder says, else "cosine".

    Raises:
        FormatError: a file of the folder is broken.
        UnsupportedError: the folder has a module, or the network an input, that is not supported.
        DTypeError, ArgumentError: an argument is wrong.
    """

    def __init__(self, path: Any, *, model: Model | None = None, similarity: str | None = None) -> None:
        what = "Encoder"
        below, modules = read_modules(as_path(what, path), what)
        folder = open_folder(path, what, model, below=below)
        self._network = Network(folder.model, what, ("token_embeddings", "last_hidden_state"))
        self._tokenizer = folder.tokenizer()
        self._pooling, self._steps, self._normalize = steps_of(folder, modules)
        if folder.pooling is not None:
            self._pooling, self._normalize = Pooling((folder.pooling,)), True
        if self._pooling.step is not None:
            self._network.select(self._pooling.step)
        settings = folder.settings("config_sentence_transformers.json")
        self.prompts: dict[str, str] = settings.texts("prompts")
        self._prompt = self._prompt_of("Encoder", settings.get("default_prompt_name", str), None)
        word = similarity if similarity is not None else settings.get("similarity_fn_name", str, "cosine")
        if word not in _SIMILARITIES:
            raise ArgumentError(f"{what}: similarity is {shown(word)}: expected one of {', '.join(_SIMILARITIES)}")
        self._similarity: str = word

    @property
    def model(self) -> Model:
        """The network."""
        return self._network.model

    def encode(
        self,
        texts: Any,
        batch_size: int = 32,
        normalize: bool | None = None,
        progress: Any = False,
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
    ) -> np.ndarray:
        """The vectors of texts, in their order.

        Texts are sorted by length and run in batches of equal lengths, longest first: nothing is padded, and a text has the same
        bits alone and in any batch. Longer texts are truncated as the folder says.

        Args:
            texts: a text, or a sequence of them; also ids of tokens instead of a text, which are used as they are.
            batch_size: the most texts that run at once.
            normalize: whether vectors have length 1; None: if the folder says so.
            progress: True writes how much is done to stderr; or a function that is told how many texts are done, and of how many.
            prompt_name: the name of the text in `prompts` that is put in front of each; None: as the folder says.
            prompt: that text itself.

        Returns:
            float32 ``(n, d)``; ``(d,)`` for one text alone.

        Raises:
            DTypeError: texts are of another type.
            ArgumentError: `batch_size` is below 1, there is no such prompt, or ids are out of range.
            MissingExtraError: texts are given, and the extra ``text`` is not installed.
        """
        return self._counted(texts, batch_size, normalize, progress, prompt_name, prompt)[0]

    def _counted(
        self, texts: Any, batch_size: Any = 32, normalize: Any = None, progress: Any = False, prompt_name: Any = None,
        prompt: Any = None,
    ) -> tuple[np.ndarray, int]:  # fmt: skip
        """The vectors, and the number of tokens."""
        what = "encode"
        found, single = listed(texts, what)
        size = integer(what, "batch_size", batch_size, 1)
        unit = as_flag(what, "normalize", normalize, "bool | None")
        before = self._prompt if prompt_name is prompt is None else self._prompt_of(what, prompt_name, prompt)
        skip = 0
        if before:
            found = [before + text if isinstance(text, str) else text for text in found]
            skip = 0 if self._pooling.prompt else self._length_of(before)
        tokens = tokenized(found, self._tokenizer, what)
        rows: list[np.ndarray] = [np.zeros(0, np.float32)] * len(tokens)

        def use(i: int, states: np.ndarray) -> None:
            rows[i] = states if states.ndim == 1 else self._pooling(states, skip if isinstance(found[i], str) else 0)

        self._network.each(tokens, size, use, reporter(progress, what))
        vectors = np.stack(rows) if rows else np.zeros((0, self._width()), np.float32)
        if len(vectors):
            for step in self._steps:
                vectors = step(vectors)
            if self._normalize if unit is None else unit:
                vectors = normalized(vectors)
        return vectors[0] if single else vectors, sum(len(one.ids) for one in tokens)

    def similarity(self, a: Any, b: Any) -> np.ndarray:
        """Similarity of each vector of `a` to each of `b`: their cosine, dot product, or negated distance.

        Args:
            a: ``(n, d)``, or one vector ``(d,)``.
            b: ``(m, d)``, or one vector ``(d,)``.

        Returns:
            float32 ``(n, m)``; larger is more similar.

        Raises:
            ShapeError: the sizes do not fit.
        """
        left, right = _vectors(a, "a"), _vectors(b, "b")
        if left.shape[1] != right.shape[1]:
            raise ShapeError(f"similarity: vectors of a have {left.shape[1]} values, of b {right.shape[1]}: expected as many")
        if self._similarity in ("cosine", "dot"):
            if self._similarity == "cosine":
                left, right = normalized(left), normalized(right)
            return np.asarray(linear(left, right))
        order = 2 if self._similarity == "euclidean" else 1
        made = [np.linalg.norm(right - row, ord=order, axis=1) for row in left]
        return -np.stack(made) if made else np.zeros((0, len(right)), np.float32)

    def _prompt_of(self, what: str, name: str | None, prompt: str | None) -> str:
        """The text in front of all others."""
        if prompt is not None:
            if not isinstance(prompt, str):
                raise DTypeError(f"{what}: prompt is of type {type(prompt).__name__}: expected a text")
            return prompt
        if name is None:
            return ""
        if name not in self.prompts:
            raise ArgumentError(f"{what}: prompt_name is {shown(name)}: the folder has {quote(list(self.prompts))}")
        return self.prompts[name]

    def _length_of(self, prompt: str) -> int:
        """Number of tokens that a prompt takes, without a special one at its end."""
        (found,) = tokenized([prompt], self._tokenizer, "encode")
        return len(found.ids) - (int(found.ids[-1]) in self._tokenizer.special.values())

    def _width(self) -> int:
        """Values of a vector; 0 where that is known by running alone."""
        shape: Sequence[Any] = self._network.shape or ()
        width = shape[-1] if shape and isinstance(shape[-1], int) and not self._steps else 0
        return width * len(self._pooling.modes)


def _vectors(value: Any, name: str) -> np.ndarray:
    """Rows of float32."""
    found = np.asarray(value)
    if found.dtype.kind not in "fiu" or found.ndim not in (1, 2):
        raise ShapeError(f"similarity: {name} has shape {found.shape} and dtype {found.dtype}: expected vectors (n, d)")
    return np.ascontiguousarray(np.atleast_2d(found), np.float32)
