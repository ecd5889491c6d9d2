"""Text that follows a text."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

from .._arguments import as_flag, shown
from .._tuples import NamedTuple
from ..errors import ArgumentError, DTypeError, FormatError
from ..formats.source import quote
from ..ir.checks import integer, number
from ..model.model import Model
from ._chat import Template, open_template
from ._decoder import Decoder
from ._folder import Folder
from ._network import ids_of
from ._open import open_folder
from ._pieces import Pieces
from ._prefixes import Prefixes
from ._running import Running
from ._sampling import Sampling
from ._sequence import Event, Growing, Limits
from ._tokens import Missing, special_tokens

if TYPE_CHECKING:
    from typing_extensions import TypedDict, Unpack

    class _How(TypedDict, total=False):
        """Further arguments of `generate`, in calls whose result has a known type."""

        top_k: int | None
        top_p: float | None
        min_p: float | None
        repetition_penalty: float
        seed: int | None
        stop: str | list[str] | tuple[str, ...] | None
        logprobs: None
        ignore_eos: bool


__all__ = ["Generation", "Generator"]

_MOST_TOP = 1000


class Generation(NamedTuple):
    """Text or ids that follow a prompt, with their probabilities; or, streamed, a piece of them.

    Attributes:
        text: the text; "" for a prompt of ids where there is no tokenizer.
        ids: the tokens, without the one that ends a sequence.
        logprobs: the logarithm of each token's probability, by the logits as they are.
        top: for each token the most probable ones, with their logarithms.
        finish: "stop" (an end token, or a stop string), "length", or None where more follows.
    """

    text: str
    ids: list[int]
    logprobs: list[float]
    top: list[dict[int, float]]
    finish: str | None


class Generator:
    """A decoder that continues texts, token by token: ``token = choose(network(ids so far))``.

    The same prompt and seed give the same tokens alone, in any batch, beside any other calls and on any number of threads. May be
    used by any number of threads at once. Beginnings of prompts that were seen before are not computed again.

    Args:
        path: a GGUF file; or a folder: ``tokenizer.json``, configuration, and weights that `fastlayers.load` reads,
            or an ONNX file with a cache (``past_key_values.0.key``, ..., ``present.0.key``, ...), as optimum and
            onnxruntime-genai's builder write them. Nothing in it is executed.
        model: a network to run instead of the folder's, for example one that was loaded with other options.
        cache_bytes: the most memory for what is known of earlier prompts; 0: none; None: a quarter of what the weights take, of
            32 to 256 MiB.
        batch_size: the most sequences that run at once, of all threads together; each has a cache of its own. Others wait.

    Raises:
        FormatError: a file of the folder is broken.
        UnsupportedError: the network has other inputs and outputs.
        DTypeError, ArgumentError: an argument is wrong.
    """

    def __init__(self, path: Any, *, model: Model | None = None, cache_bytes: int | None = None, batch_size: int = 16) -> None:
        what = "Generator"
        folder = open_folder(path, what, model)
        self._decoder = Decoder(folder.model, what, folder.config)
        self._tokenizer = folder.tokenizer(cut=False)
        most = _share(self._decoder.model) if cache_bytes is None else integer(what, "cache_bytes", cache_bytes, 0)
        self._prefixes = Prefixes(most) if most else None
        self._running = Running(self._decoder, self._prefixes, integer(what, "batch_size", batch_size, 1))
        special = special_tokens(folder.words, folder.inner, what)
        self._ends = _ends(folder, self._tokenizer, special)
        self._longest = _context(folder)
        self._template: Template | None = open_template(folder, special)

    @property
    def model(self) -> Model:
        """The network; its logits are those of the last position alone."""
        return self._decoder.model

    def encode(self, prompt: Any, **variables: Any) -> list[int]:
        """Ids of a prompt: of a text with the special tokens that the tokenizer adds, or of messages, by the folder's template.

        Args:
            prompt: a text, messages, or ids, which stay as they are.
            **variables: for the template of messages, such as ``enable_thinking=False``, ``tools=[...]``.

        Raises:
            DTypeError: the prompt is of another type.
            FormatError: the template refuses the messages, is broken, or is not there.
            LimitError: the template takes too long, or writes too much.
            MissingExtraError: the extra ``text`` is not installed.
        """
        what = "encode"
        if isinstance(prompt, str):
            found: list[int] = self._tokenizer.encode([prompt])[0].ids.tolist()
        elif _is_messages(prompt):
            if self._template is None:
                raise FormatError(f"{what}: messages were given, and the folder has no chat template: expected a text or ids")
            text = self._template.render(list(prompt), variables)
            found = self._tokenizer.encode([text], special=False)[0].ids.tolist()
        else:
            ids = ids_of(prompt, what)
            if ids is None:
                told = f"{shown(prompt)} of type {type(prompt).__name__}"
                raise DTypeError(f"{what}: prompt is {told}: expected a text, ids, or messages: dicts with role and content")
            found = ids
        if not found:
            raise ArgumentError(f"{what}: prompt {shown(prompt)} has no token: expected at least one")
        return found

    def decode(self, ids: Any) -> str:
        """The text of ids, without special tokens."""
        found = [] if len(ids) == 0 else ids_of(ids, "decode")
        if found is None:
            raise DTypeError(f"decode: ids is {shown(ids)} of type {type(ids).__name__}: expected integers")
        return str(self._tokenizer.decode(found))

    @overload
    def generate(
        self, prompt: str, max_tokens: int = ..., temperature: float = ..., *, stream: Literal[False] = ...,
        **how: Unpack[_How],
    ) -> str: ...  # fmt: skip
    @overload
    def generate(
        self, prompt: str, max_tokens: int = ..., temperature: float = ..., *, stream: Literal[True],
        **how: Unpack[_How],
    ) -> Iterator[str]: ...  # fmt: skip
    @overload
    def generate(
        self, prompt: list[str], max_tokens: int = ..., temperature: float = ..., *, stream: Literal[False] = ...,
        **how: Unpack[_How],
    ) -> list[str]: ...  # fmt: skip
    @overload
    def generate(
        self, prompt: list[int], max_tokens: int = ..., temperature: float = ..., *, stream: Literal[False] = ...,
        **how: Unpack[_How],
    ) -> list[int]: ...  # fmt: skip
    @overload
    def generate(
        self, prompt: Any, max_tokens: int = ..., temperature: float = ..., top_k: int | None = ...,
        top_p: float | None = ..., min_p: float | None = ..., repetition_penalty: float = ...,
        seed: int | None = ..., stop: Any = ..., stream: bool = ..., logprobs: int | None = ...,
        ignore_eos: bool = ...,
    ) -> Any: ...  # fmt: skip
    def generate(
        self,
        prompt: Any,
        max_tokens: int = 256,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        repetition_penalty: float = 1.0,
        seed: int | None = None,
        stop: Any = None,
        stream: bool = False,
        logprobs: int | None = None,
        ignore_eos: bool = False,
    ) -> Any:
        """Continues a prompt, or several.

        A random choice depends on seed and position in the sequence alone. Prompts of all threads run as one batch, whatever
        their lengths.

        Args:
            prompt: a text, ids of tokens, or messages (dicts with ``role`` and ``content``); or a list of such.
            max_tokens: the most tokens that follow.
            temperature: 0: the most probable token each time; else logits are divided by it, and tokens are drawn.
            top_k: draws from so many most probable tokens.
            top_p: draws from the most probable tokens that together have this probability.
            min_p: draws from tokens of at least this part of the first one's probability.
            repetition_penalty: divides positive logits of tokens that are there already, and multiplies negative ones.
            seed: of the draws, the same for every prompt; None: another one in each call.
            stop: texts at which a sequence ends, without them, however they are divided into tokens; or one such text.
            stream: whether an iterator comes back, over pieces as they are made: text, never half a character; or ids.
            logprobs: also probabilities, with so many of the most probable tokens each time: results are `Generation` then.
            ignore_eos: whether a sequence goes on after its end token.

        Returns:
            The text that follows a text or messages; a list of the ids that follow ids; a `Generation` with `logprobs`; a list of
            such for several prompts. The end token is left out.

        Raises:
            DTypeError: an argument is of another type.
            ArgumentError: one is out of range; a prompt is empty, or longer than the network can take; several are to stream.
            MissingExtraError: texts are given, and the extra ``text`` is not installed.
        """
        what = "generate"
        prompts, single = _prompts(prompt)
        how = self._how(
            max_tokens, temperature, top_k, top_p, min_p, repetition_penalty, seed, stop, logprobs, ignore_eos
        )  # fmt: skip
        sequences = [self._sequence(i, one, *how) for i, one in enumerate(prompts)]
        texts = [not isinstance(one, list) for one in prompts]
        if as_flag(what, "stream", stream):
            if not single:
                raise ArgumentError(f"{what}: stream is True, and there are {len(prompts)} prompts: expected one")
            return self._pieces(sequences[0], texts[0])
        found = [Generation("", [], [], [], None) for _ in prompts]
        parts: list[list[str]] = [[] for _ in prompts]
        for event in self._running.events(sequences):
            found[event.number] = _joined(found[event.number], event)
            parts[event.number].append(event.text)
        results = [
            one._replace(text="".join(text)) if logprobs is not None else "".join(text) if is_text else one.ids
            for one, text, is_text in zip(found, parts, texts, strict=True)
        ]
        return results[0] if single else results

    def _how(
        self,
        max_tokens: int = 256,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        repetition_penalty: float = 1.0,
        seed: int | None = None,
        stop: Any = None,
        logprobs: int | None = None,
        ignore_eos: bool = False,
    ) -> tuple[Sampling, Limits]:
        """The settings that arguments of `generate` stand for."""
        what = "generate"
        limits = Limits(
            integer(what, "max_tokens", max_tokens, 1),
            frozenset() if as_flag(what, "ignore_eos", ignore_eos) else self._ends,
            _stops(stop),
            None if logprobs is None else integer(what, "logprobs", logprobs, 0, _MOST_TOP),
        )
        sampling = Sampling(
            _at_least(what, "temperature", temperature, 0.0),
            0 if top_k is None else integer(what, "top_k", top_k, 0),
            1.0 if top_p is None else _at_least(what, "top_p", top_p, 0.0, 1.0),
            0.0 if min_p is None else _at_least(what, "min_p", min_p, 0.0, 1.0),
            _at_least(what, "repetition_penalty", repetition_penalty, 1e-6),
            int.from_bytes(os.urandom(8), "little") if seed is None else integer(what, "seed", seed, 0),
        )
        return sampling, limits

    def _sequence(self, i: int, prompt: Any, sampling: Sampling, limits: Limits, text: bool = False) -> Growing:
        """A sequence to be; with `text` also what follows ids becomes one."""
        ids = self.encode(prompt)
        if self._longest is not None:
            left = self._longest - len(ids)
            if left < 1:
                raise ArgumentError(f"generate: the prompt has {len(ids)} tokens: the network takes {self._longest}")
            limits = limits._replace(tokens=min(limits.tokens, left))
        wants_text = text or not isinstance(prompt, list) or limits.stops or (limits.logprobs is not None and self._reads)
        return Growing(i, ids, sampling, limits, Pieces(self._tokenizer, ids, limits.stops) if wants_text else None)

    @property
    def _reads(self) -> bool:
        """Whether there is a tokenizer."""
        return not isinstance(self._tokenizer, Missing)

    def _pieces(self, sequence: Growing, is_text: bool) -> Iterator[Any]:
        for event in self._running.events([sequence]):
            if sequence.limits.logprobs is not None:
                yield _joined(Generation(event.text, [], [], [], None), event)
            elif not is_text and event.token is not None:
                yield event.token
            elif is_text and event.text:
                yield event.text


def _share(model: Model) -> int:
    """Bytes for what is known of earlier prompts, unless somebody says how many."""
    return min(max(sum(array.nbytes for array in model._graph.constants.values()) // 4, 32 << 20), 256 << 20)


def _joined(one: Generation, event: Event) -> Generation:
    """A result with one more token."""
    if event.token is not None:
        one.ids.append(event.token)
        if event.logprob is not None:
            one.logprobs.append(event.logprob)
            one.top.append(event.top)
    return one._replace(finish=event.finish)


def _is_messages(prompt: Any) -> bool:
    return isinstance(prompt, (list, tuple)) and bool(prompt) and all(isinstance(part, Mapping) for part in prompt)


def _prompts(prompt: Any) -> tuple[list[Any], bool]:
    """Prompts, each a text, messages as a tuple, or ids as a list; and whether one alone was given."""
    one = _prompt(prompt)
    if one is not None:
        return [one], True
    if isinstance(prompt, (bytes, Mapping)) or not hasattr(prompt, "__iter__"):
        raise DTypeError(f"generate: prompt is of type {type(prompt).__name__}: expected a text, ids, messages, or several such")
    found = []
    for part in prompt:
        found.append(_prompt(part))
        if found[-1] is None:
            raise DTypeError(f"generate: got {shown(part)} of type {type(part).__name__}: expected a text, ids, or messages")
    return found, False


def _prompt(value: Any) -> Any:
    """A text, messages as a tuple, or ids as a list; None if it is something else."""
    return value if isinstance(value, str) else tuple(value) if _is_messages(value) else ids_of(value, "generate")


def _stops(stop: Any) -> tuple[str, ...]:
    found: tuple[Any, ...] = () if stop is None else tuple(stop) if isinstance(stop, (list, tuple)) else (stop,)
    if not all(isinstance(text, str) and text for text in found):
        raise DTypeError(f"generate: stop is {shown(stop)}: expected a text that is not empty, or a list of such")
    return found


def _at_least(what: str, name: str, value: Any, least: float, most: float = float("inf")) -> float:
    found = number(what, name, value)
    if not least <= found <= most or found == float("inf"):
        raise ArgumentError(f"{what}: {name} is {found}: expected {least} to {most}, and finite")
    return found


def _ends(folder: Folder, tokenizer: Any, special: dict[str, str]) -> frozenset[int]:
    """Ids that end a sequence: those of generation_config.json, else of config.json, and the tokenizer's."""
    settings = folder.settings("generation_config.json")
    source = settings if "eos_token_id" in settings else folder.config
    given = source.values.get("eos_token_id")
    found = [] if given is None else given if isinstance(given, list) else [given]
    if not all(type(i) is int and 0 <= i < 2**31 for i in found):
        raise FormatError(f"{source.where}: eos_token_id is {quote(given)}: expected an id, or a list of ids")
    end = tokenizer.special.get(special.get("eos_token", ""))
    return frozenset(found) | ({end} if end is not None else frozenset())


def _context(folder: Folder) -> int | None:
    """The most tokens of a sequence; None where the network has no limit, or its file does not tell."""
    return folder.config.size("max_position_embeddings") or folder.config.size("n_positions")
