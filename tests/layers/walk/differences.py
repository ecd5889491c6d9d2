"""Where fastlayers is meant to differ from torch, and why."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .draw import Call, Given

__all__ = ["DIFFERENCES", "Difference", "finite", "known"]


def _always(call: Call) -> bool:
    return True


def _arrays(call: Call) -> list[np.ndarray]:
    """The first three arrays, which are no masks, and those of pairs."""
    flat = [part for x in call.given[0][:3] for part in (x if isinstance(x, tuple) and not isinstance(x, Given) else (x,))]
    return [np.asarray(x.value) for x in flat if isinstance(x, Given)]


def _empty(call: Call) -> bool:
    return any(not x.size for x in _arrays(call))


def finite(call: Call) -> bool:
    """Whether all arrays are."""
    return all(np.isfinite(x).all() for x in _arrays(call) if x.dtype.kind == "f")


def _not_finite(call: Call) -> bool:
    return not finite(call)


def _hidden(call: Call) -> bool:
    """Whether NaN comes from hiding all keys, or from a key that is hidden."""
    return (
        finite(call)
        or _empty(call)
        or len(call.given[0]) > 3
        or any("mask" in name or "causal" in name for name in call.given[1])
    )


def _far(call: Call) -> bool:
    """Whether products of values leave float32."""
    return any((abs(x[x != 0]) > 1e15).any() or (abs(x[x != 0]) < 1e-15).any() for x in _arrays(call) if x.dtype.kind == "f")


def _large(call: Call) -> bool:
    """Whether values are infinite, NaN, or nearly so."""
    return any(not (abs(x) < 1e15).all() for x in _arrays(call) if x.dtype.kind == "f")


def _no_eps(call: Call) -> bool:
    """Whether nothing is added to a variance."""
    return any(isinstance(v, float) and v == 0 for part in (call.made, call.given) if part for v in (*part[0], *part[1].values()))


class Difference(NamedTuple):
    """A pattern of the names of layers and functions, what happens, a pattern of its words, and why that is as it should be.

    What happens is "refused": we raise, and torch works; "torch": it raises, and we work; "values": results differ. `when` says
    which calls it is about.
    """

    kinds: str
    what: str
    words: str
    reason: str
    when: Callable[[Call], bool] = _always


_ATTENTION = r"MultiheadAttention|Transformer.*|scaled_dot_product_attention"
_SHUFFLES = r"PixelShuffle|PixelUnshuffle|pixel_shuffle|pixel_unshuffle"
DIFFERENCES: tuple[Difference, ...] = (
    # ---- what torch refuses, and we compute
    Difference(".*", "torch", "", "arrays without values have results without values, or sums of nothing", _empty),
    Difference(r".*[Cc]onv.*", "torch", "non-empty|expected weight to be at least", "as above: of weights"),
    Difference("(G|)RUCell|GRU|RNN.*|LSTM.*", "torch", "input_size must be", "as above: of inputs without features"),
    Difference("(Adaptive|adaptive_).*", "torch", "'NoneType' has no len", "None for all axes is None for each"),
    Difference(".*([Aa]vg_?[Pp]ool|[Ll][Pp]_?[Pp]ool)3d", "torch", "smaller than kernel", "padding counts, as in two axes"),
    Difference(".*([Aa]vg|[Mm]ax)_?[Pp]ool.*", "torch", "(at most|equal to) half", "padding is less than a window spans"),
    Difference("(LPPool|lp_pool)1d", "torch", "must be Tensor, not tuple", "of one axis too, sizes may be a tuple"),
    Difference(".*[Nn]orm.*", "torch", "Expected more than 1|must be positive", "a value alone is its own mean"),
    Difference("(layer|rms)_norm", "torch", "must be tuple of ints, not int", "an int is taken, as by the layer"),
    Difference("batch_norm", "torch", "'momentum'", "momentum is of training alone"),
    Difference("LocalResponseNorm|local_response_norm", "torch", "Expected 3D", "channels may be the last axis"),
    Difference("LocalResponseNorm|local_response_norm", "torch", "view size is not", "the order of memory does not matter"),
    Difference("gelu", "torch", "positional argument", "an argument may be given by position or by name"),
    Difference("clip", "torch", "must not be None", "no bounds leave x as it is"),
    Difference("Dropout1d", "torch", "Expected 2D or 3D", "at inference it does nothing, whatever the axes are"),
    Difference(r"[Cc]onv\dd", "torch", "'same' is not supported", "with a stride, it is TensorFlow's rule"),
    Difference("stft", "torch", "hop_length=0", "a quarter of n_fft, and 1 at least"),
    Difference("scaled_dot.*", "torch", "Dimension out of range", "a mask broadcasts, and may have one axis"),
    Difference("istft", "torch", r"min\(\): Expected", "a frame in the middle of which the signal ends has no values"),
    Difference("istft", "torch", "overlap add min", "a window that comes when a model runs is not checked: NaN"),
    # ---- what we refuse, and torch computes
    Difference("(Adaptive|adaptive_).*", "refused", "is 0: expected|at least one number", "pools give a value, of some"),
    Difference(r".*[Mm]ax_?[Pp]ool\dd", "refused", "positions of the largest", "return_indices is for layers that there are not"),
    Difference(r".*[Aa]vg_?[Pp]ool\dd", "refused", "divisor_override", "a divisor counts values: it is above 0"),
    Difference(r"(LPPool|lp_pool)\dd", "refused", "norm_type", "below 1 it is no norm; of infinity it is a maximum"),
    Difference(r"(Circular|Reflection|Replication)Pad\dd|pad", "refused", "mode=", "negative pads cut in constant mode alone"),
    Difference("CELU|celu", "refused", "alpha is", "the formula bends for an alpha above 0 alone"),
    Difference("CosineSimilarity|cosine_similarity", "refused", "have no axes", "numbers are no vectors"),
    Difference("clip", "refused", "is nan", "NaN is no bound"),
    Difference(_SHUFFLES, "refused", r"expected \(n, c, h, w\)", "at most one axis of batches"),
    Difference("scaled_dot.*", "refused", "equal batches and heads", "nothing is repeated without enable_gqa"),
    Difference(r"BatchNorm\dd", "refused", "expected .+ channels along", "num_features is checked without weights too"),
    Difference("Upsample|interpolate", "refused", "sizes of at least|size is", "as pools: there is at least one value"),
    Difference("istft", "refused", "no window of the", "what no window reaches is unknown, torch has zeros"),
    Difference("LSTM|GRU|RNN.*", "refused", "layers x directions", "states are checked with lengths too, where torch may crash"),
    Difference("prelu", "torch", "Mismatch of parameter", "the only axis of an array is that of its channels"),
    Difference("Embedding", "refused", "max_norm", "reading must not change the table"),
    Difference(".*", "refused", "^(?!.*inconsistent).*expected", "arguments are checked without values too", _empty),
    Difference("MultiheadAttention", "refused", "add_bias_kv", "not supported"),
    # ---- results
    Difference("Dropout.*", "values", "shares memory", "says that it returns x itself"),
    Difference(_SHUFFLES, "values", "has shape", "torch returns x as it is where there are no values", _empty),
    Difference(r"[Cc]onv\dd", "values", "has shape", "torch forgets the outputs where there are no inputs", _empty),
    Difference(_ATTENTION, "values", "for nan", "who sees no key has zeros, in torch NaN; hidden keys are not read", _hidden),
    Difference(_ATTENTION, "values", "nan for 0", "a score that is NaN gives NaN; torch has zeros in some places", _not_finite),
    Difference(_ATTENTION, "values", "for nan", "minus infinity alone gives zeros, as a mask does", _not_finite),
    Difference(r"InstanceNorm\dd|instance_norm|batch_norm", "values", "nan for", "equal values by eps=0: 0 / 0", _no_eps),
    Difference("(LSTM|GRU|RNN|lstm|gru|rnn).*", "values", "", "a gate is 1e-38 at least, not 0: huge states show it", _large),
    Difference(".*[Nn]orm.*", "values", "", "variances of such values leave float32, in which they are summed", _far),
    Difference("CosineSimilarity|cosine_similarity", "values", "", "it divides by the product of both norms", _far),
    Difference("gelu|GELU|silu|SiLU", "values", r"e-\d\d for -0\.0", "as above: their factor is 1e-38 at least"),
    Difference("[Tt]anhshrink", "values", "", "x and its tanh cancel where x is small", finite),
    Difference("I?R?FFT|i?r?fft|i?stft", "values", "", "what is not finite spreads to sums of other parts", _not_finite),
    Difference("istft", "values", "nan for 0", "what no window reaches is unknown, torch has zeros"),
    Difference("Upsample|interpolate", "values", "for nan", "a tap of weight 0 is left out", _not_finite),
    Difference("blackman_window", "values", "e-17 for 0.0", "cosines cancel to a rounding error, as in numpy"),
)  # fmt: skip


def known(call: Call, what: str, words: str) -> bool:
    """Whether the table has it."""
    return any(
        d.what == what and re.fullmatch(d.kinds, call.kind) and re.search(d.words, words) and d.when(call) for d in DIFFERENCES
    )
