"""Calls that are right, of every public function, layer and method: one argument of each is replaced at a time, then two."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import fastlayers as fl

from ..graph.examples import EXAMPLES, Example
from ..graph.examples._base import declared

__all__ = ["Call", "functions", "of"]


class Call(NamedTuple):
    """`run(**arguments)`; `kinds` are the annotations of the arguments that have one."""

    name: str
    run: Callable[..., Any]
    arguments: dict[str, Any]
    kinds: dict[str, str]
    compared: bool = True  # whether every variant gives the same values
    slow: frozenset[str] = frozenset()  # values of the pool that are right, and take long
    files: bool = False  # whether it opens files, for which Python has errors of its own


def of(name: str, function: Callable[..., Any], run: Callable[..., Any] | None = None, /, **given: Any) -> Call:
    """A call by name; what is not given has its default, so that it is replaced as well."""
    parameters = {n: p for n, p in inspect.signature(function).parameters.items() if n != "self"}
    arguments = {
        n: given.get(n, p.default)
        for n, p in parameters.items()
        if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL) and (n in given or p.default is not p.empty)
    }
    arguments.update((n, v) for n, v in given.items() if n not in arguments)
    kinds = {n: str(p.annotation) for n, p in parameters.items() if p.annotation is not p.empty}
    return Call(name, run or function, arguments, kinds)


def _example(example: Example) -> Call:
    function = getattr(fl.functional, example.op)
    tensors = example.arrays()
    entry = declared(example.op)
    if entry is None:
        return of(example.op, function, **dict(zip(inspect.signature(function).parameters, tensors)), **example.attributes)  # noqa: B905
    given = {entry.tensors[0][1:]: tensors} if entry.variadic else dict(zip(entry.tensors, tensors))  # noqa: B905
    given.update(example.attributes)
    if "state" in inspect.signature(function).parameters:
        states = [given.pop(n) for n in ("h0", "c0") if n in given]
        given["state"] = None if states[0] is None else tuple(states) if len(states) == 2 else states[0]
    return of(example.op, function, **given)


_TABLE = np.log([[0.1, 0.6, 0.3], [0.2, 0.1, 0.7], [0.998, 1e-3, 1e-3]])


def _step(tokens: Any, state: Any) -> Any:
    return _TABLE[tokens % 3], state


@functools.cache
def functions() -> list[Call]:
    """Every function of `fl.functional`, in several ways where the examples of tests/graph have several."""
    F = fl.functional
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4, 6)).astype(np.float32)
    tree, weight = fl.ClassTree.huffman([5, 3, 2, 1]), rng.standard_normal((3, 6)).astype(np.float32)
    state = np.arange(6.0).reshape(2, 3)
    # These take their tree as arrays where they are recorded.
    made = [_example(example) for example in EXAMPLES if not example.op.startswith("hierarchical")]
    made += [
        of("swish", F.swish, x=x),
        of("hierarchical_log_prob", F.hierarchical_log_prob, x=x, targets=np.array([0, 3, 1, 2]), weight=weight, tree=tree),
        of("hierarchical_log_softmax", F.hierarchical_log_softmax, x=x, weight=weight, tree=tree, bias=np.zeros(3)),
        of("hierarchical_argmax", F.hierarchical_argmax, x=x, weight=weight, tree=tree, bias=np.zeros(3)),
        of("hann_window", F.hann_window, window_length=5, periodic=True),
        of("hamming_window", F.hamming_window, window_length=5, periodic=False),
        of("blackman_window", F.blackman_window, window_length=5, periodic=True),
        of("melscale_fbanks", F.melscale_fbanks, n_freqs=9, f_min=0.0, f_max=400.0, n_mels=3, sample_rate=800, norm="slaney",
           mel_scale="slaney"),
        of("rotary_tables", F.rotary_tables, length=5, dim=4),
        of("sinusoidal_encoding", F.sinusoidal_encoding, length=5, dim=4),
        of("greedy_search", F.greedy_search, step=_step, state=state, start=0, end=2, max_length=5),
        of("greedy_search", F.greedy_search, step=_step, state=None, start=np.array([0, 1]), end=2, max_length=5),
        of("beam_search", F.beam_search, step=_step, state=state, start=0, end=2, max_length=5, beams=2),
        of("beam_search", F.beam_search, step=_step, state={"a": (state, state)}, start=[0, 1], end=2, max_length=4, beams=3,
           length_penalty=0.6),
        of("dropout", F.dropout, x=x, p=0.5, training=True, seed=3),
        of("dropout", F.dropout, x=x, p=0.5, training=True, seed=3, noise_shape=(4, 1)),
    ]  # fmt: skip
    return made
