"""Pairs of an input of a network and the output that is its next value: by what exporters call them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import ArgumentError, ShapeError

__all__ = ["check", "find"]

# Where a name of an input has the left, that of its output may have the right.
_WORDS = (
    ("past_key_values", "present"), ("past_key_values", "present_key_values"), ("past_key_value", "present_key_value"),
    ("past", "present"), ("prev", "next"), ("previous", "next"), ("previous", "new"), ("prev", "new"), ("old", "new"),
    ("initial", "final"), ("init", "final"), ("in", "out"), ("input", "output"),
)  # fmt: skip
_BEHIND = ("N", "n", "_n", "_out", "_next", "_new", "_output", "_updated", "_o", "Out", "Next", "_final", ".out", ".1")
_BEFORE = ("new_", "next_", "out_", "output_", "updated_", "present_", "final_", "r_", "n")

# An input that is called otherwise is none, whatever an output is called: "audio" and "audio_out" are no state.
_STATE = re.compile(
    r"state|hidden|cache|past|prev|mem|lstm|gru|rnn|buf|ctx|context|hist|cell|carry|init|(^|[_./\-])[hcs]([_./\-]?\d|[_./\-]|$)",
    re.IGNORECASE,
)


def _candidates(name: str) -> set[str]:
    """Names that the output of an input may have."""
    plain = re.sub(r"_?0$", "", name)  # h0 -> hn, h_0 -> h_n
    found = {stem + end for stem in {name, plain} for end in _BEHIND if stem}
    found |= {start + name for start in _BEFORE}
    parts = re.split(r"([._/\-]|(?<=[a-z])(?=[A-Z]))", name)
    for word, other in _WORDS:
        if word == name.lower() and word in ("in", "input"):
            continue  # what it is called says nothing else
        # A separate word, anywhere in the name; several words hang together.
        pattern = rf"(?<![A-Za-z]){re.escape(word)}(?![a-zA-Z])"
        found.add(re.sub(pattern, other, name, count=1))
        found.add(re.sub(pattern, other.capitalize(), name, count=1))
        found.update(re.sub(pattern, "", name, count=1).strip("._/-") + end for end in ("", *_BEHIND))
    found.add(re.sub(r"_(len|length)$", r"_next_\1", name))
    found.discard("")
    if len(parts) == 1 and plain != name:
        found.add(plain)
    found.discard(name)
    return found


def _fit(a: Any, b: Any) -> bool:
    """Whether an output may become an input: the same dtype and rank, no other fixed sizes."""
    if type(a) is not type(b) or (a.dtype != b.dtype and "V" not in (a.dtype.kind, b.dtype.kind)):
        return False
    if a.shape is None or b.shape is None:
        return True
    return len(a.shape) == len(b.shape) and all(
        not (isinstance(p, int) and isinstance(q, int)) or p == q for p, q in zip(a.shape, b.shape, strict=True)
    )


def find(inputs: Sequence[Any], outputs: Sequence[Any]) -> dict[str, str]:
    """The pairs that names tell: input -> output. Empty if there are none.

    Raises:
        ShapeError: an input, or an output, could belong to several.
    """
    pairs: dict[str, str] = {}
    for value in inputs:
        names = _candidates(value.name) if _STATE.search(value.name) else set()
        fits = [o.name for o in outputs if o.name in names and _fit(value, o)]
        if len(fits) > 1:
            raise ArgumentError(
                f"stream: input {value.name!r} may be the state that any of the outputs {fits} gives: name it, for example "
                f"state={{{value.name!r}: {fits[0]!r}}}"
            )
        if fits:
            pairs[value.name] = fits[0]
    if pairs and len(pairs) == len(inputs):
        raise ArgumentError(
            f"stream: by their names all inputs would be states, {pairs}, and none would come with every call: name those that "
            f"are, state={{input: output}}, or the axis of time"
        )
    for output in sorted(set(pairs.values())):
        owners = [name for name, other in pairs.items() if other == output]
        if len(owners) > 1:
            raise ArgumentError(
                f"stream: output {output!r} may be the state of any of the inputs {owners}: name it, for example "
                f"state={{{owners[0]!r}: {output!r}}}"
            )
    return pairs


def check(state: Mapping[str, str], inputs: Sequence[Any], outputs: Sequence[Any]) -> dict[str, str]:
    """The pairs that a caller named, if they can be."""
    ins, outs = {v.name: v for v in inputs}, {v.name: v for v in outputs}
    if not isinstance(state, Mapping) or not all(isinstance(n, str) for pair in state.items() for n in pair):
        raise ArgumentError(f"stream: state is {state!r}: expected a dict of names, input: output")
    for name, output in state.items():
        if name not in ins or output not in outs:
            what, known = (name, list(ins)) if name not in ins else (output, list(outs))
            raise ArgumentError(
                f"stream: state has {what!r}, which is no {'in' if name not in ins else 'out'}put: expected some of {known}"
            )
        if not _fit(ins[name], outs[output]):
            raise ShapeError(f"stream: state has {name!r}: {output!r}, but {outs[output]} cannot become {ins[name]}")
    if len(set(state.values())) < len(state):
        raise ArgumentError(f"stream: state names an output twice: {dict(state)}")
    return dict(state)
