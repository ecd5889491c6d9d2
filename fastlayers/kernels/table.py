"""The list of kernels: dispatch, tests and benchmarks read it, and README.md next to it explains the contract.

To add a kernel: (1) a line here; (2) the function in ``reference/<file>.py``, then in the other folders that will have it, same
name and arguments; (3) cases in ``bench/cases/<file>.py``, which the tests use too. A test fails while one of them is missing.
The build makes of these tables the engine's enums and each compiled kernel's ways in from Python: see ``codegen/``.
"""

from __future__ import annotations

from .._tuples import NamedTuple

__all__ = [
    "ARITHMETIC",
    "BINARY",
    "BORDERS",
    "COMPARE",
    "EXACT_BFLOAT16",
    "FUNCTIONS",
    "HALF_KINDS",
    "HALVES",
    "INTEGER",
    "KERNELS",
    "KINDS",
    "MOST_SAMPLES",
    "NBITS_SUMS",
    "PAD_MODES",
    "PLAIN",
    "REDUCE",
    "SCATTER",
    "UNARY",
    "Activation",
    "GruOptions",
    "Kernel",
    "LstmOptions",
    "RnnOptions",
    "Unary",
]


# Arguments that are no arrays; all others are one, or None where a kernel can do without.
PLAIN = frozenset(
    {"aligned", "border",
     "activation", "alpha", "axes", "batch_first", "beta", "bias", "bits", "causal", "channels", "channels_last", "column",
     "depth", "dilation", "directions_apart", "empty", "epsilon", "exclusive", "factor", "gate", "groups", "half", "heads_last",
     "include_pad", "interleaved", "itemsize", "k_transposed", "kernel", "last", "least", "mode", "norm", "offset", "op",
     "options", "out_last", "out_offset", "out_strides", "p", "packed", "pads", "reverse", "rms", "samples", "scale", "shape",
     "size", "source", "stride", "target", "tile", "transpose_b", "value", "x_last", "x_offset", "x_strides",}
)  # fmt: skip


# Where kernels are implemented; a variant without a kernel runs the reference's.
_ALL = ("reference", "aot", "jit", "cuda")
# Not in Numba: convolution, pooling, recurrent layers, attention, products, normalization, activations and movement are compiled
# there; for what is rarer, or as fast in NumPy's own loops, a machine without the engine runs the reference.
_NOT_JIT = ("reference", "aot", "cuda")
# Nor on GPUs: quantized values, grids, and trees, whose branches differ from one thread to the next.
_HOST = ("reference", "aot")


class Kernel(NamedTuple):
    """One operation of the engine, spelled the same in every variant."""

    name: str
    file: str
    arguments: tuple[str, ...]
    results: tuple[str, ...] = ("cn", "hn", "out", "scores", "state")  # those among the arguments that it writes
    variants: tuple[str, ...] = _ALL

    @property
    def arrays(self) -> tuple[int, ...]:
        """Positions of the arguments that are arrays (or None)."""
        return tuple(i for i, name in enumerate(self.arguments) if name not in PLAIN)


_RECURRENT_WEIGHTS = ("w_ih__dgi", "w_hh__dgh", "b_ih__dg", "b_hh__dg")
_DYNAMIC_WEIGHTS = ("w_ih__dgi", "w_hh__dgh", "ih_zero__dg", "hh_zero__dg", "ih_scale__dg", "hh_scale__dg")
_RECURRENT_FLAGS = ("batch_first", "directions_apart", "reverse")

# Letters after "__" name the axes: n batch or columns, m rows, k summed, c/i/o channels, d h w space, t time, b batch, and of
# recurrent layers d directions, g gates, p peepholes, i inputs, h units, q projections.
KERNELS: tuple[Kernel, ...] = (
    Kernel("linear_pack", "gemm", ("weight__nk", "bias__n")),
    Kernel("linear_half_pack", "gemm", ("weight__nk", "bias__n", "half")),
    Kernel("linear", "gemm", ("x__mk", "packed", "out__mn", "residual__mn", "activation")),
    Kernel(
        "nbits_pack", "nbits", ("weight__nbq", "scale__nb", "zero__nb", "bias__n", "size", "bits", "codes__v"), variants=_HOST
    ),
    Kernel("nbits", "nbits", ("x__mk", "packed", "out__mn", "mode", "activation"), variants=_HOST),
    Kernel("conv_pack", "conv", ("weight__oidhw", "bias__o", "stride", "dilation", "groups")),
    Kernel("conv_half_pack", "conv", ("weight__oidhw", "bias__o", "stride", "dilation", "groups", "half")),
    Kernel("conv", "conv", ("x", "packed", "out", "pads", "mode", "x_last", "out_last", "residual", "activation")),
    Kernel("conv_transpose_pack", "conv_transpose", ("weight__ipdhw", "bias__o", "stride", "dilation", "groups")),
    Kernel("conv_transpose", "conv_transpose", ("x", "packed", "out", "pads", "x_last", "out_last", "activation")),
    Kernel("depthwise_pack", "depthwise", ("weight__o1dhw", "bias__o", "stride", "dilation", "channels")),
    Kernel("depthwise", "depthwise", ("x", "packed", "out", "pads", "mode", "channels_last", "residual", "activation")),
    Kernel("winograd_pack", "winograd", ("weight__oidhw", "bias__o", "tile", "groups", "stride")),
    Kernel("winograd", "winograd", ("x", "packed", "out", "pads", "x_last", "out_last", "residual", "activation")),
    Kernel("unary", "activation", ("x", "out", "activation")),
    Kernel("prelu", "activation", ("x__oci", "slope__c", "out__oci")),
    Kernel("gated", "activation", ("x__o2i", "out__oi", "activation", "gate")),
    Kernel("binary", "binary", ("a", "b", "out", "op", "activation")),
    Kernel("compare", "binary", ("a", "b", "out", "op")),
    Kernel("where", "binary", ("condition", "a", "b", "out")),
    Kernel("integer", "binary", ("a", "b", "out", "op", "source"), variants=_NOT_JIT),
    Kernel("arithmetic", "binary", ("a", "b", "out", "op", "source"), variants=_HOST),
    Kernel("choose", "binary", ("condition", "a", "b", "out", "itemsize"), variants=_HOST),
    Kernel("function", "functions", ("x", "out", "op", "source"), variants=_HOST),
    Kernel("softmax", "softmax", ("x__oni", "out__oni")),
    Kernel("log_softmax", "softmax", ("x__oni", "out__oni")),
    Kernel("lstm_pack", "recurrent", (*_RECURRENT_WEIGHTS, "peephole__dp", "w_hr__dqh", "options")),
    Kernel(
        "lstm", "recurrent", ("x", "packed", "h0__dbh", "c0__dbu", "lengths__b", "out", "hn__dbh", "cn__dbu", *_RECURRENT_FLAGS)
    ),
    Kernel("gru_pack", "recurrent", (*_RECURRENT_WEIGHTS, "options")),
    Kernel("gru", "recurrent", ("x", "packed", "h0__dbh", "lengths__b", "out", "hn__dbh", *_RECURRENT_FLAGS)),
    Kernel("rnn_pack", "recurrent", (*_RECURRENT_WEIGHTS, "options")),
    Kernel("rnn", "recurrent", ("x", "packed", "h0__dbh", "lengths__b", "out", "hn__dbh", *_RECURRENT_FLAGS)),
    Kernel("dynamic_lstm_pack", "recurrent", (*_DYNAMIC_WEIGHTS, "b__dg", "peephole__dp", "options"), variants=_HOST),
    Kernel(
        "dynamic_lstm",
        "recurrent",
        ("x__tbi", "packed", "h0__dbh", "c0__dbh", "lengths__b", "out__tdbh", "hn__dbh", "cn__dbh", "reverse"),
        variants=_HOST,
    ),
    Kernel("max_pool", "pooling", ("x", "out", "kernel", "stride", "dilation", "pads", "channels_last")),
    Kernel(
        "max_pool_places",
        "pool_places",
        ("x", "out", "indices", "kernel", "stride", "dilation", "pads", "source"),
        ("out", "indices"),
        variants=_HOST,
    ),
    Kernel("avg_pool", "pooling", ("x", "out", "kernel", "stride", "dilation", "pads", "include_pad", "channels_last")),
    Kernel("sum_pool", "pooling", ("x", "out", "kernel", "stride", "dilation", "pads", "factor", "channels_last")),
    Kernel("lp_pool", "pooling", ("x", "out", "kernel", "stride", "dilation", "pads", "p", "norm", "channels_last")),
    Kernel("adaptive_pool", "adaptive", ("x", "out", "op", "channels_last")),
    Kernel("time_pool", "time_pooling", ("x", "lengths__n", "mask__nt", "out__nc", "op", "batch_first"), variants=_NOT_JIT),
    Kernel("resize_pack", "resize", ("axes", "size"), variants=_NOT_JIT),
    Kernel("resize", "resize", ("x__odhwi", "packed", "out__oxyzi"), variants=_NOT_JIT),
    Kernel("grid_sample", "grid", ("x__ncp", "grid__nor", "out__nco", "size", "mode", "border", "aligned"), variants=_HOST),
    Kernel("roi_pool", "regions", ("x", "boxes__k5", "out", "scale", "channels_last"), variants=_NOT_JIT),
    Kernel(
        "roi_align",
        "regions",
        ("x", "boxes__k4", "images__k", "out", "scale", "offset", "least", "samples", "op", "channels_last"),
        variants=_NOT_JIT,
    ),
    Kernel("crop", "regions", ("x__nchw", "roi__8", "out__axyz", "value"), variants=_HOST),
    Kernel(
        "suppress",
        "suppression",
        ("boxes__bn4", "scores__bcn", "out__r3", "count", "size", "value", "least", "mode"),
        ("out", "count"),
        variants=_HOST,
    ),
    Kernel("reduce", "reduce", ("x__oni", "out__oi", "op")),
    Kernel("running_sum", "reduce", ("x__oni", "out__oni", "source", "exclusive", "reverse"), variants=_NOT_JIT),
    Kernel("col2im", "reduce", ("x__bkp", "out__bs", "size", "kernel", "stride", "dilation", "pads"), variants=_HOST),
    Kernel("argmax", "ordering", ("x__oni", "out__oi", "reverse"), variants=_HOST),
    Kernel("arg_extreme", "ordering", ("x__oni", "out__oi", "source", "reverse", "last"), variants=_HOST),
    Kernel("topk", "ordering", ("x__oni", "out__oki", "indices__oki", "source", "reverse"), ("out", "indices"), variants=_HOST),
    Kernel(
        "unique",
        "ordering",
        ("x", "out", "indices", "inverse", "counts", "count", "source", "mode"),
        ("out", "indices", "inverse", "counts", "count"),
        variants=_HOST,
    ),
    Kernel("fold", "ordering", ("x__oni", "out__oi", "op", "source"), variants=_HOST),
    Kernel("layer_norm", "norm", ("x__on", "weight__n", "bias__n", "out__on", "epsilon", "rms")),
    Kernel("group_norm", "norm", ("x__oci", "weight__c", "bias__c", "out__oci", "groups", "epsilon")),
    Kernel("affine", "norm", ("x__oci", "scale__c", "shift__c", "out__oci", "activation")),
    Kernel("lrn", "norm", ("x__oci", "out__oci", "size", "alpha", "beta", "bias")),
    Kernel("matmul", "matmul", ("a__bmk", "b__bkn", "out__bmn", "transpose_b", "activation")),
    Kernel(
        "attention",
        "attention",
        (
            "q__bhqd",
            "k__bgkd",
            "v__bgke",
            "mask__bhqk",
            "lengths__b",
            "out__bhqe",
            "scale",
            "causal",
            "offset",
            "empty",
            "k_transposed",
            "heads_last",
        ),
    ),
    Kernel(
        "attention_weights",
        "scores",
        ("x__bhqk", "mask__bhqk", "lengths__b", "scores__bhqk", "out__bhqk", "scale", "causal", "offset", "empty"),
        variants=_NOT_JIT,
    ),
    Kernel("rotary", "rotary", ("x__botid", "cos__btr", "sin__btr", "out__botid", "interleaved"), variants=_NOT_JIT),
    Kernel(
        "linear_attention",
        "linear_attention",
        ("q__btx", "k__bty", "v__btz", "past__bgde", "gate__btw", "beta__btv", "out__bto", "state__bgde", "scale"),
        variants=_HOST,
    ),
    Kernel("fft_pack", "fft", ("size", "op", "scale"), variants=_HOST),
    Kernel("fft", "fft", ("x__bl", "packed", "window__n", "out__bfo", "stride"), variants=_HOST),
    Kernel("overlap_add", "fft", ("x__bfn", "window__n", "out__bl", "stride", "offset", "norm"), variants=_HOST),
    Kernel("additive_scores", "scores", ("q__bqu", "k__bku", "scale__u", "out__bqk"), variants=_NOT_JIT),
    Kernel("transpose", "layout", ("x__brc", "out__bcr")),
    Kernel("copy", "movement", ("x", "out", "shape", "x_offset", "x_strides", "out_offset", "out_strides", "itemsize")),
    Kernel("gather", "movement", ("x__oni", "indices__m", "out__omi", "itemsize")),
    Kernel("embedding", "movement", ("weight__vd", "ids__m", "out__md")),
    Kernel(
        "pick", "indexing", ("x__rm", "indices", "out__pm", "shape", "x_strides", "size", "stride", "itemsize"), variants=_HOST
    ),
    Kernel(
        "scatter",
        "indexing",
        ("x__rm", "indices", "updates__pm", "out__rm", "shape", "out_strides", "size", "stride", "itemsize", "op", "source"),
        variants=_HOST,
    ),
    Kernel("one_hot", "indexing", ("indices__oi", "values", "out__oni", "itemsize"), variants=_HOST),
    Kernel("non_zero", "indexing", ("x", "out", "count", "source"), ("out", "count"), variants=_HOST),
    Kernel("compress", "indexing", ("x__oni", "condition", "out", "count", "itemsize"), ("out", "count"), variants=_HOST),
    Kernel("cut", "indexing", ("x__oni", "starts__1", "ends__1", "out", "count", "itemsize"), ("out", "count"), variants=_HOST),
    Kernel("reverse_sequence", "indexing", ("x", "lengths", "out", "batch_first", "itemsize"), variants=_HOST),
    Kernel("cast", "movement", ("x", "out", "source", "target")),
    Kernel(
        "tree_ensemble_pack",
        "trees",
        ("roots", "feature", "split", "modes", "yes", "no", "missing", "members", "starts", "targets", "weight", "size"),
        variants=_HOST,
    ),
    Kernel("tree_ensemble", "trees", ("x__mk", "packed", "base__n", "out__mn", "op"), variants=_HOST),
    Kernel("places", "classical", ("x", "keys__n", "table__s", "out", "offset"), variants=_HOST),
    Kernel(
        "grams",
        "classical",
        ("x__ml", "first__w", "starts__e", "symbols__g", "nodes__g", "columns__v", "weight__v", "out__mn", "samples", "last"),
        variants=_HOST,
    ),
    Kernel("pair_probabilities", "classical", ("x__mp", "scale__p", "shift__p", "out__mc"), variants=_HOST),
    Kernel(
        "tree_log_prob",
        "tree",
        ("x__bd", "weight__md", "bias__m", "targets__b", "starts__s", "points__p", "codes__p", "out__b"),
        variants=_HOST,
    ),
    Kernel("tree_distribution", "tree", ("x__bm", "order__m", "left__m", "right__m", "out__bn"), variants=_HOST),
    Kernel(
        "tree_argmax",
        "tree",
        ("x__bd", "weight__md", "bias__m", "order__m", "left__m", "right__m", "ids__b", "out__b", "depth"),
        ("ids", "out"),
        variants=_HOST,
    ),
    Kernel(
        "qconv_pack",
        "qconv",
        ("weight__oidhw", "zero__o", "factor__o", "bias__o", "shift__o", "stride", "dilation", "groups"),
        variants=_HOST,
    ),
    Kernel(
        "qconv",
        "qconv",
        ("x", "packed", "x_zero", "x_scale", "out", "pads", "x_last", "out_last", "source", "target", "value"),
        variants=_HOST,
    ),
    Kernel("qmatmul", "qmatmul", ("a__bmk", "b__bkn", "out__bmn", "options"), variants=_HOST),
    Kernel("quantize", "quantize", ("x__oci", "step__c", "zero__c", "out__oci", "target"), variants=_HOST),
    Kernel("dequantize", "quantize", ("x__oci", "step__c", "zero__c", "out__oci", "source"), variants=_HOST),
    Kernel("dynamic_quantize", "quantize", ("x", "out", "step", "zero"), ("out", "step", "zero"), variants=_HOST),
    Kernel("lookup", "quantize", ("x", "table", "out"), variants=_HOST),
    Kernel("qbinary", "quantize", ("a__omi", "b__omi", "out__omi", "op", "options"), variants=_HOST),
    Kernel("qpool", "quantize", ("x", "out", "kernel", "stride", "dilation", "pads", "op", "source", "options"), variants=_HOST),
    Kernel("pad", "padding", ("x__odhwi", "out__oxyzi", "pads", "mode", "value")),
)

# The codes below are those of the engine too: the build makes its enums of these tables.
BINARY: dict[str, int] = {
    "add": 0,
    "subtract": 1,
    "multiply": 2,
    "divide": 3,
    "power": 4,
    "minimum": 5,
    "maximum": 6,
    "prelu": 7,
    "squared_difference": 8,
}
COMPARE: dict[str, int] = {"equal": 0, "not_equal": 1, "less": 2, "less_equal": 3, "greater": 4, "greater_equal": 5}

INTEGER: dict[str, int] = {
    "add": 0, "subtract": 1, "multiply": 2, "minimum": 3, "maximum": 4, "and": 5, "or": 6, "xor": 7,
    "equal": 8, "not_equal": 9, "less": 10, "less_equal": 11, "greater": 12, "greater_equal": 13,
}  # fmt: skip

# Functions of two arrays of any dtype but float16. "mod" has the divisor's sign, as Python's, "fmod" the dividend's, as C's; a
# shift by fewer than 0 bits, or by all of them, leaves nothing of a value but its sign.
ARITHMETIC: dict[str, int] = {
    "add": 0, "subtract": 1, "multiply": 2, "divide": 3, "power": 4, "minimum": 5, "maximum": 6, "mod": 7, "fmod": 8, "and": 9,
    "or": 10, "xor": 11, "left": 12, "right": 13, "prelu": 14, "equal": 15, "not_equal": 16, "less": 17, "less_equal": 18,
    "greater": 19, "greater_equal": 20,
}  # fmt: skip
# Functions of one array of any dtype. The first four give booleans.
FUNCTIONS: dict[str, int] = {
    "is_nan": 0, "is_inf": 1, "is_positive_inf": 2, "is_negative_inf": 3, "not": 4, "negative": 5, "abs": 6, "sign": 7, "relu": 8,
    "tan": 9, "asin": 10, "acos": 11, "atan": 12, "sinh": 13, "cosh": 14, "asinh": 15, "acosh": 16, "atanh": 17, "exp": 18,
    "log": 19, "sqrt": 20, "reciprocal": 21, "floor": 22, "ceil": 23, "round": 24, "sin": 25, "cos": 26, "tanh": 27,
    "sigmoid": 28, "erf": 29,
}  # fmt: skip

# What a scattered row does to the one that is there.
SCATTER: dict[str, int] = {"none": 0, "add": 1, "mul": 2, "max": 3, "min": 4}

# The dtypes of values, by numpy's names.
KINDS: dict[str, int] = {
    "float32": 0,
    "float64": 1,
    "float16": 2,
    "int8": 3,
    "uint8": 4,
    "int16": 5,
    "uint16": 6,
    "int32": 7,
    "int64": 8,
    "bool": 9,
    "uint32": 10,
    "uint64": 11,
}

PAD_MODES: dict[str, int] = {"zeros": 0, "reflect": 1, "replicate": 2, "circular": 3}
# Ways over the results of a direct convolution, by their numbers in aot/_conv.pxd.
CONV_WALKS: tuple[str, ...] = ("rows", "swapped", "lines", "inside", "blocks")
# What is outside an image that is read at any positions.
BORDERS: dict[str, int] = {"zeros": 0, "border": 1, "reflection": 2}

# How a product with weights of few bits is summed: floats, or integers for each block, of rows that are rounded to bytes.
NBITS_SUMS: dict[str, int] = {"exact": 0, "integer": 1}

MOST_SAMPLES = 128  # of a box's bin along each axis: a picture has no more to tell
# l1 sums |x|; l2 is the root of the sum of x^2; log_sum is log(sum of x), log_sum_exp log(sum of exp(x)).
REDUCE: dict[str, int] = {
    "sum": 0, "mean": 1, "max": 2, "min": 3, "prod": 4, "sum_square": 5, "l1": 6, "l2": 7, "log_sum": 8, "log_sum_exp": 9
}  # fmt: skip


class Activation(NamedTuple):
    """An elementwise function as kernels take it: its number in ``aot/csrc/kernels.h`` and up to two parameters."""

    code: int
    a: float = 0.0
    b: float = 0.0


class Unary(NamedTuple):
    """An elementwise function as users name it.

    Attributes:
        code: its number, also in the engine.
        parameters: the names of up to two, which are a and b of the formulas.
        defaults: theirs.
        cost: operations per element, as the engine's `workers` counts them; to read and write an element costs 10.
        gate: whether `gated` may multiply by it; it has no parameters then.
    """

    code: int
    parameters: tuple[str, ...] = ()
    defaults: tuple[float, ...] = ()
    cost: float = 10
    gate: bool = False


UNARY: dict[str, Unary] = {
    "identity": Unary(0, gate=True),
    "relu": Unary(1, gate=True),  # max(0, x)
    "clip": Unary(2, ("min", "max"), (float("-inf"), float("inf"))),  # min(max(x, a), b); ReLU6 is a = 0, b = 6
    "leaky_relu": Unary(3, ("negative_slope",), (0.01,)),  # x >= 0 ? x : a x
    "elu": Unary(4, ("alpha",), (1.0,), cost=40),  # x > 0 ? x : a (exp(x) - 1)
    "selu": Unary(5, ("alpha", "scale"), (1.6732632423543772, 1.0507009873554805), cost=40),  # b (x > 0 ? x : a (exp(x) - 1))
    "sigmoid": Unary(6, cost=35, gate=True),  # 1 / (1 + exp(-x))
    "tanh": Unary(7, cost=45, gate=True),
    "gelu": Unary(8, cost=50, gate=True),  # x Phi(x), with erf
    "gelu_tanh": Unary(9, cost=45, gate=True),  # 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
    "silu": Unary(10, cost=35, gate=True),  # x sigmoid(x)
    "hardsigmoid": Unary(11, ("alpha", "beta"), (1 / 6, 0.5)),  # min(max(a x + b, 0), 1)
    "hardswish": Unary(12, gate=True),  # x min(max(x / 6 + 1/2, 0), 1)
    "softplus": Unary(13, ("beta", "threshold"), (1.0, 20.0), cost=80),  # a x > b ? x : log(1 + exp(a x)) / a
    "softsign": Unary(14, cost=20, gate=True),  # x / (1 + |x|)
    "mish": Unary(15, cost=50, gate=True),  # x tanh(softplus(x))
    "exp": Unary(16, cost=35, gate=True),
    "log": Unary(17, cost=40, gate=True),
    "erf": Unary(18, cost=45, gate=True),
    "sqrt": Unary(19, cost=15, gate=True),
    "square": Unary(20),
    "negative": Unary(21),
    "abs": Unary(22),
    "reciprocal": Unary(23, cost=20),  # 1 / x
    "floor": Unary(24),
    "ceil": Unary(25),
    "round": Unary(26),  # ties to even
    "sign": Unary(27),  # -1, 0, 1, or NaN
    "sin": Unary(28, cost=200),
    "cos": Unary(29, cost=200),
    "celu": Unary(30, ("alpha",), (1.0,), cost=45),  # x > 0 ? x : a (exp(x / a) - 1)
    "shrink": Unary(31, ("lambd", "bias"), (0.5, 0.0)),  # x < -a ? x + b : x > a ? x - b : 0
    "threshold": Unary(32, ("threshold", "value"), (0.0, 0.0)),  # x > a ? x : b
    "tanhshrink": Unary(33, cost=50),  # x - tanh(x)
    "logsigmoid": Unary(34, cost=80),  # -log(1 + exp(-x))
    "quick_gelu": Unary(35, ("alpha",), (1.702,), cost=35),  # x sigmoid(a x)
}

# How weights may be stored in 16 bits; the values are those of `enum fl_half_kind`, where 0 is float32.
HALVES: dict[str, int] = {"float16": 1, "bfloat16": 2}
# And those of products: of bfloat16 where nothing else is rounded, whatever the processor multiplies.
EXACT_BFLOAT16 = 3
HALF_KINDS: dict[str, int] = {**HALVES, "bfloat16 alone": EXACT_BFLOAT16}

_SIGMOID, _TANH = Activation(UNARY["sigmoid"].code), Activation(UNARY["tanh"].code)


class LstmOptions(NamedTuple):
    """Options of an LSTM's step; the defaults have the fastest path.

    Attributes:
        activations: for each direction, the functions of the gates i f o, of the cell's input g, and of c where it becomes h;
            entries past the number of directions are not read.
        clip: sums of i f g o, peepholes included, are clipped to -clip .. clip; 0: they are not.
        couple_input_forget: f = 1 - i.
        half: 0, or how W, R and projections are stored: one of `HALVES`.
    """

    activations: tuple[tuple[Activation, Activation, Activation], ...] = ((_SIGMOID, _TANH, _TANH),) * 2
    clip: float = 0.0
    couple_input_forget: bool = False
    half: int = 0


class GruOptions(NamedTuple):
    """Options of a GRU's step; the defaults have the fastest path.

    Attributes:
        activations: for each direction, the functions of the gates r z, and of n.
        clip: as in `LstmOptions`.
        reset_after: whether r multiplies the product R_n h + b_n, or h before the product.
        half: as in `LstmOptions`.
    """

    activations: tuple[tuple[Activation, Activation], ...] = ((_SIGMOID, _TANH),) * 2
    clip: float = 0.0
    reset_after: bool = True
    half: int = 0


class RnnOptions(NamedTuple):
    """Options of a simple RNN's step.

    Attributes:
        activations: for each direction, the function of the sums.
        clip: as in `LstmOptions`.
        half: as in `LstmOptions`.
    """

    activations: tuple[Activation, ...] = (_TANH,) * 2
    clip: float = 0.0
    half: int = 0
