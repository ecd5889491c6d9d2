"""One call in torch and in fastlayers, and what is different."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from torch.nn import functional

import fastlayers as fl

from .differences import finite, known
from .draw import Call, Draw, Given
from .plain_table import TABLE as PLAIN
from .sequence_table import TABLE as SEQUENCES
from .window_table import TABLE as WINDOWS

__all__ = ["TABLE", "compared", "draw", "kind_of", "one"]

TABLE = WINDOWS | PLAIN | SEQUENCES
KINDS = sorted(TABLE)
# How far values may be from torch's in float64, as a part of the largest one.
TOLERANCE = 2e-5
# And as multiples of the worst error of torch's own float32.
LOST = 10
WAYS = ("eager", "eager", "eager", "reference", "compiled")


def kind_of(seed: int) -> str:
    """The layer or function of a seed."""
    return str(Draw(seed).some(*KINDS))


def draw(seed: int) -> tuple[Call, str]:
    """The call of a seed, and the way in which fastlayers runs it."""
    d = Draw(seed)
    kind = d.some(*KINDS)
    return TABLE[kind](d, kind), d.some(*WAYS)


def one(seed: int) -> tuple[str, str, Iterator[tuple[str, str]]]:
    """The case of a seed, for `tests.random_walk`."""
    call, way = draw(seed)
    return call.kind, f"{way}: {call.told()}", compared(call, way)


# ---- torch -----------------------------------------------------------------------------------------------------------


def _complex(transform: Any, gives: bool, takes: bool) -> Callable[..., Any]:
    def run(x: Any, *args: Any, **named: Any) -> Any:
        made = transform(torch.view_as_complex(x.contiguous()) if takes else x, *args, **named)
        return torch.view_as_real(made) if gives else made

    return run


def _window(name: str) -> Callable[..., Any]:
    return lambda n, *args, **named: getattr(torch, name)(n, *args, **named, dtype=torch.float64)


FUNCTIONS: dict[str, Any] = {
    "concat": torch.cat, "subtract": torch.sub, "multiply": torch.mul, "divide": torch.div, "clip": torch.clamp,
    "fft": _complex(torch.fft.fft, True, True), "ifft": _complex(torch.fft.ifft, True, True),
    "rfft": _complex(torch.fft.rfft, True, False), "irfft": _complex(torch.fft.irfft, False, True),
    "istft": lambda x, *args, **named: torch.istft(torch.view_as_complex(x.contiguous()), *args, **named),
    "rnn_cell": torch.rnn_tanh_cell,
    "stft": lambda *args, **named: torch.view_as_real(torch.stft(*args, **named, return_complex=True)),
    **{name: _window(name) for name in ("hann_window", "hamming_window", "blackman_window")},
}  # fmt: skip


def _function(name: str) -> Any:
    return FUNCTIONS.get(name) or getattr(functional, name, None) or getattr(torch, name)


def _build(space: Any, call: Call) -> Any:
    """A layer of torch.nn, or of fastlayers."""
    values, named = call.made or ([], {})
    if call.kind not in ("TransformerEncoder", "TransformerDecoder"):
        return getattr(space, call.kind)(*values, **named)
    rest = dict(named)
    count, norm = rest.pop("num_layers"), rest.pop("norm")
    layer = getattr(space, call.kind + "Layer")(**rest)
    return getattr(space, call.kind)(layer, count, space.LayerNorm(rest["d_model"]) if norm else None)


def _filled(layer: Any, seed: int) -> None:
    """Gives torch's layer weights that float32 has."""
    rng = np.random.default_rng(seed)
    for name, tensor in layer.state_dict().items():
        if not tensor.dtype.is_floating_point:
            continue
        x = rng.standard_normal(tuple(tensor.shape)) / np.sqrt(max(1, int(np.prod(tensor.shape[1:]))))
        x = abs(x) + rng.choice([0, 0.1, 1]) if name.endswith("running_var") else x
        tensor.copy_(torch.from_numpy(np.asarray(x, np.float32)))


def _tensors(value: Any, wide: bool) -> Any:
    if isinstance(value, Given):
        x = np.asarray(value.value)
        with np.errstate(over="ignore"):
            made = torch.from_numpy(np.array(x.astype(np.float32) if value.floats else x))
        return made.double() if value.floats and wide else made
    if isinstance(value, (tuple, list)) and any(isinstance(v, (Given, tuple)) for v in value):
        return tuple(_tensors(v, wide) for v in value)
    return value


_MASKS = {"MultiheadAttention": "attn_mask", "TransformerEncoder": "mask", "TransformerEncoderLayer": "src_mask"}


def _causal(call: Call, args: list[Any], named: dict[str, Any]) -> None:
    """torch's flags are hints of what a mask has: the mask says it."""
    values, made = call.made or ([], {})
    steps = 0
    if args[0].ndim == 3:
        arguments = {**dict(zip(inspect.signature(getattr(fl, call.kind)).parameters, values, strict=False)), **made}
        steps = 1 if arguments.get("batch_first") else 0
    for flag, name in (("is_causal", _MASKS.get(call.kind, "")), ("tgt_is_causal", "tgt_mask")):
        if not named.pop(flag, False):
            continue
        queries = args[1] if call.kind == "Transformer" else args[0]
        keys = args[1] if call.kind == "MultiheadAttention" else queries
        hidden, mask = torch.ones(queries.shape[steps], keys.shape[steps], dtype=torch.bool).triu(1), named.get(name)
        if mask is not None:
            hidden = mask | hidden if mask.dtype == torch.bool else mask.masked_fill(hidden, -torch.inf)
        named[name] = hidden


def _torch(call: Call, layer: Any, wide: bool) -> list[Any]:
    args = [_tensors(v, wide) for v in call.given[0]]
    named = {name: _tensors(v, wide) for name, v in call.given[1].items()}
    if layer is None:
        return _flat(_function(call.kind)(*args, **named))
    layer = layer.double() if wide else layer.float()
    if named.pop("lengths", None) is not None:
        lengths = torch.from_numpy(np.asarray(call.given[1]["lengths"].value))
        first = layer.batch_first
        packed = torch.nn.utils.rnn.pack_padded_sequence(args[0], lengths, first, enforce_sorted=False)
        out, state = layer(packed, *args[1:])
        out, _ = torch.nn.utils.rnn.pad_packed_sequence(out, first, total_length=args[0].shape[1 if first else 0])
        return _flat((out, state))
    if "ransformer" in call.kind or call.kind == "MultiheadAttention":
        _causal(call, args, named)
    return _flat(layer(*args, **named))


def _flat(value: Any) -> list[Any]:
    """Arrays, in order."""
    if value is None:
        return []
    if isinstance(value, (tuple, list)):
        return [x for v in value for x in _flat(v)]
    return [value.detach().numpy() if isinstance(value, torch.Tensor) else value]


# ---- fastlayers ------------------------------------------------------------------------------------------------------


def _arrays(value: Any, into: list[Any]) -> Any:
    """The value with each array taken out: a function of them that puts them back."""
    if isinstance(value, Given):
        into.append(value.value)
        at = len(into) - 1
        return lambda arrays: arrays[at]
    if isinstance(value, (tuple, list)) and any(isinstance(v, (Given, tuple)) for v in value):
        parts = [_arrays(v, into) for v in value]
        return lambda arrays: tuple(part(arrays) for part in parts)
    return lambda arrays: value


def _ours(call: Call, weights: dict[str, np.ndarray] | None, way: str) -> list[Any]:
    made: list[Any] = []
    args = [_arrays(v, made) for v in call.given[0]]
    named = {name: _arrays(v, made) for name, v in call.given[1].items()}
    if call.made is None:
        run = getattr(fl.functional, call.kind)
    else:
        run = _build(fl, call)
        if weights is None:
            weights = {name: np.ones(shape, np.float32) for name, shape in run.tensor_shapes().items()}
        run.load_state_dict(weights)

    def function(*arrays: Any) -> Any:
        found = run(*(part(arrays) for part in args), **{name: part(arrays) for name, part in named.items()})
        return tuple(_flat(found)) if isinstance(found, tuple) else found

    if way == "compiled" and made:
        as_arrays = [np.asarray(x) for x in made]
        return _flat(fl.compile(function, *as_arrays)(*as_arrays))
    return _flat(function(*made))


def _of(x: Any) -> bytes:
    return x.tobytes() if isinstance(x, np.ndarray) else repr(x).encode()


def _given(call: Call) -> list[Any]:
    found: list[Any] = []
    for value in (*call.given[0], *call.given[1].values()):
        _arrays(value, found)
    return found


def _words(error: BaseException) -> str:
    """The message without its figures."""
    return re.sub(r"-?\d+(\.\d+)?(e[-+]?\d+)?", "#", str(error).partition("\n")[0])[:150]


def compared(call: Call, way: str) -> Iterator[tuple[str, str]]:
    """What there is to say of a call: ("fault" or a kind of refusal, words)."""
    layer, weights, wanted, refused = None, None, None, None
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.backends.mha.set_fastpath_enabled(False)  # which gives zeros where a mask hides a step
        try:
            if call.made is not None:
                layer = _build(torch.nn, call).eval()
                _filled(layer, call.seed)
                weights = {name: tensor.numpy().copy() for name, tensor in layer.state_dict().items()}
            wanted = [_torch(call, layer, wide) for wide in (True, False)]
        except Exception as error:
            refused = error
    before = [_of(x) for x in _given(call)]
    try:
        with fl.kernels.use("reference") if way == "reference" else nullcontext(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = _ours(call, weights, way)
    except fl.Error as error:
        if refused is None:
            words = f"{type(error).__name__}: {_words(error)}"
            yield ("refused" if known(call, "refused", str(error)) else "fault"), f"refused: {words}"
        return
    except Exception as error:
        yield "fault", f"foreign {type(error).__name__}: {error}"
        return
    if before != [_of(x) for x in _given(call)]:
        yield "fault", "the call changed its inputs"
    if any(np.may_share_memory(x, y) for x in found for y in _given(call) if isinstance(y, np.ndarray)):
        told = "the result shares memory with an input"
        yield ("differs" if known(call, "values", told) else "fault"), told
    if refused is not None:
        words = f"{type(refused).__name__}: {_words(refused)}"
        yield ("torch refuses" if known(call, "torch", str(refused)) else "fault"), f"torch refuses: {words}"
        return
    assert wanted is not None
    for told in _compare(found, *wanted, finite(call)):
        yield ("differs" if known(call, "values", told) else "fault"), told


def _compare(found: list[Any], wide: list[Any], single: list[Any], finite: bool) -> Iterator[str]:
    """`finite`: whether all inputs are; then what float32 cannot compute may be anything that is not."""
    if len(found) != len(wide):
        yield f"{len(found)} results, torch has {len(wide)}"
        return
    for i, (got, exact, rough) in enumerate(zip(found, wide, single, strict=True)):
        if not isinstance(got, np.ndarray) or got.shape != exact.shape:
            yield f"result {i} has shape {np.shape(got)}, torch's {exact.shape}"
            continue
        if got.dtype != (np.float32 if exact.dtype.kind == "f" else np.int64):
            yield f"result {i} has dtype {got.dtype}"
            continue
        near = _near(got, exact) | _near(got, rough)
        if finite and exact.dtype.kind == "f" and exact.size:
            lost = ~_near(rough, exact)  # by float32
            near |= lost & ~np.isfinite(rough) | ~np.isfinite(got) & (lost | (abs(exact) > 3e38))
            with np.errstate(all="ignore"):
                near |= abs(got - exact) <= LOST * np.fmax.reduce(abs(rough - exact), axis=None, initial=0)
        if not near.all():
            at = tuple(int(k) for k in np.argwhere(~near)[0])
            most = abs(exact[np.isfinite(exact)]).max(initial=0)
            yield (
                f"result {i}: {int((~near).sum())} of {near.size} values differ, at {at} {got[at]} for {exact[at]} "
                f"({rough[at]} in float32), the largest is {most:.3g}"
            )


def _near(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    if want.dtype.kind != "f":
        return np.asarray(got == want)
    with np.errstate(all="ignore"):
        want = want.astype(np.float64)
        most = abs(want[abs(want) < 3e38]).max(initial=0)
        close = abs(got.astype(np.float64) - want) <= TOLERANCE * most + 1e-36
        large = (abs(want) > 3e38) & (abs(got) > 3e38) & (np.signbit(got) == np.signbit(want))
        return np.asarray(close | large | (np.isnan(got) & np.isnan(want)))
