"""The list of kernels: dispatch, tests and benchmarks read it, and README.md beside it explains the contract.

To add a kernel: (1) a line here; (2) the function in ``reference/<file>.py``, then in the other folders that will have it, same
name and arguments; (3) cases in ``bench/cases/<file>.py``, which the tests use too. A test fails while one of them is missing.
"""

from __future__ import annotations

from .._tuples import NamedTuple

__all__ = [
    "ARITHMETIC",
    "BINARY",
    "BORDERS",
    "COMPARE",
    "FUNCTIONS",
    "INTEGER",
    "KERNELS",
    "KINDS",
    "MOST_SAMPLES",
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
     "activation", "alpha", "axes", "batch_first", "beta", "bias", "causal", "channels", "channels_last", "column", "depth",
     "dilation", "directions_apart", "empty", "epsilon", "exclusive", "factor", "gate", "groups", "heads_last", "include_pad",
     "interleaved", "itemsize", "k_transposed", "kernel", "last", "least", "mode", "norm", "offset", "op", "options", "out_last",
     "out_offset", "out_strides", "p", "packed", "pads", "reverse", "rms", "samples", "scale", "shape", "size", "source",
     "stride", "target", "tile", "transpose_b", "value", "x_last", "x_offset", "x_strides",}
)  # fmt: skip


class Kernel(NamedTuple):
    """One operation of the engine, spelt the same in every variant."""

    name: str
    file: str
    arguments: tuple[str, ...]
    results: tuple[str, ...] = ("cn", "hn", "out", "scores", "state")  # those among the arguments that it writes

    @property
    def arrays(self) -> tuple[int, ...]:
        """Positions of the arguments that are arrays (or None)."""
        return tuple(i for i, name in enumerate(self.arguments) if name not in PLAIN)


_RECURRENT_WEIGHTS = ("w_ih__dgi", "w_hh__dgh", "b_ih__dg", "b_hh__dg")
_RECURRENT_FLAGS = ("batch_first", "directions_apart", "reverse")

# Letters after "__" name the axes: n batch or columns, m rows, k summed, c/i/o channels, d h w space, t time, b batch, and of
# recurrent layers d directions, g gates, p peepholes, i inputs, h units, q projections.
KERNELS: tuple[Kernel, ...] = (
    Kernel("linear_pack", "gemm", ("weight__nk", "bias__n")),
    Kernel("linear", "gemm", ("x__mk", "packed", "out__mn", "residual__mn", "activation")),
    Kernel("conv_pack", "conv", ("weight__oidhw", "bias__o", "stride", "dilation", "groups")),
    Kernel("conv", "conv", ("x", "packed", "out", "pads", "mode", "x_last", "out_last", "residual", "activation")),
    Kernel("conv_transpose_pack", "conv_transpose", ("weight__iodhw", "bias__o", "stride", "dilation", "groups")),
    Kernel("conv_transpose", "conv_transpose", ("x", "packed", "out", "pads", "x_last", "out_last", "activation")),
    Kernel("depthwise_pack", "depthwise", ("weight__o1dhw", "bias__o", "stride", "dilation", "channels")),
    Kernel("depthwise", "depthwise", ("x", "packed", "out", "pads", "mode", "channels_last", "residual", "activation")),
    Kernel("winograd_pack", "winograd", ("weight__oidhw", "bias__o", "tile")),
    Kernel("winograd", "winograd", ("x", "packed", "out", "pads", "x_last", "out_last", "residual", "activation")),
    Kernel("unary", "activation", ("x", "out", "activation")),
    Kernel("prelu", "activation", ("x__oci", "slope__c", "out__oci")),
    Kernel("gated", "activation", ("x__o2i", "out__oi", "activation", "gate")),
    Kernel("binary", "binary", ("a", "b", "out", "op", "activation")),
    Kernel("compare", "binary", ("a", "b", "out", "op")),
    Kernel("where", "binary", ("condition", "a", "b", "out")),
    Kernel("integer", "binary", ("a", "b", "out", "op", "source")),
    Kernel("arithmetic", "binary", ("a", "b", "out", "op", "source")),
    Kernel("choose", "binary", ("condition", "a", "b", "out", "itemsize")),
    Kernel("function", "functions", ("x", "out", "op", "source")),
    Kernel("softmax", "softmax", ("x__oni", "out__oni")),
    Kernel("log_softmax", "softmax", ("x__oni", "out__oni")),
    Kernel("lstm_pack", "recurrent", (*_RECURRENT_WEIGHTS, "peephole__dp", "w_hr__dqh", "options")),
    Kernel(
        "lstm",
        "recurrent",
        ("x", "packed", "h0__dbh", "c0__dbh", "lengths__b", "out", "hn__dbh", "cn__dbh", *_RECURRENT_FLAGS),
    ),
    Kernel("gru_pack", "recurrent", (*_RECURRENT_WEIGHTS, "options")),
    Kernel("gru", "recurrent", ("x", "packed", "h0__dbh", "lengths__b", "out", "hn__dbh", *_RECURRENT_FLAGS)),
    Kernel("rnn_pack", "recurrent", (*_RECURRENT_WEIGHTS, "options")),
    Kernel("rnn", "recurrent", ("x", "packed", "h0__dbh", "lengths__b", "out", "hn__dbh", *_RECURRENT_FLAGS)),
    Kernel("max_pool", "pooling", ("x", "out", "kernel", "stride", "dilation", "pads", "channels_last")),
    Kernel(
        "max_pool_places",
        "pool_places",
        ("x", "out", "indices", "kernel", "stride", "dilation", "pads", "source"),
        ("out", "indices"),
    ),
    Kernel("avg_pool", "pooling", ("x", "out", "kernel", "stride", "dilation", "pads", "include_pad", "channels_last")),
    Kernel("sum_pool", "pooling", ("x", "out", "kernel", "stride", "dilation", "pads", "factor", "channels_last")),
    Kernel("lp_pool", "pooling", ("x", "out", "kernel", "stride", "dilation", "pads", "p", "norm", "channels_last")),
    Kernel("adaptive_pool", "adaptive", ("x", "out", "op", "channels_last")),
    Kernel("time_pool", "time_pooling", ("x", "lengths__n", "mask__nt", "out__nc", "op", "batch_first")),
    Kernel("resize_pack", "resize", ("axes", "size")),
    Kernel("resize", "resize", ("x__odhwi", "packed", "out__odhwi")),
    Kernel("grid_sample", "grid", ("x__ncp", "grid__nor", "out__nco", "size", "mode", "border", "aligned")),
    Kernel("roi_pool", "regions", ("x", "boxes__k5", "out", "scale", "channels_last")),
    Kernel(
        "roi_align",
        "regions",
        ("x", "boxes__k4", "images__k", "out", "scale", "offset", "least", "samples", "op", "channels_last"),
    ),
    Kernel(
        "suppress",
        "suppression",
        ("boxes__bn4", "scores__bcn", "out__r3", "count", "size", "value", "least", "mode"),
        ("out", "count"),
    ),
    Kernel("reduce", "reduce", ("x__oni", "out__oi", "op")),
    Kernel("running_sum", "reduce", ("x__oni", "out__oni", "source", "exclusive", "reverse")),
    Kernel("argmax", "argmax", ("x__oni", "out__oi", "reverse")),
    Kernel("arg_extreme", "ordering", ("x__oni", "out__oi", "source", "reverse", "last")),
    Kernel("topk", "ordering", ("x__oni", "out__oki", "indices__oki", "source", "reverse"), ("out", "indices")),
    Kernel("fold", "ordering", ("x__oni", "out__oi", "op", "source")),
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
    ),
    Kernel("rotary", "rotary", ("x__botid", "cos__btr", "sin__btr", "out__botid", "interleaved")),
    Kernel(
        "linear_attention",
        "linear_attention",
        ("q__btx", "k__bty", "v__btz", "past__bgde", "gate__btw", "beta__btv", "out__bto", "state__bgde", "scale"),
    ),
    Kernel("fft_pack", "fft", ("size", "op", "scale")),
    Kernel("fft", "fft", ("x__bl", "packed", "window__n", "out__bfo", "stride")),
    Kernel("overlap_add", "fft", ("x__bfn", "window__n", "out__bl", "stride", "offset", "norm")),
    Kernel("additive_scores", "scores", ("q__bqu", "k__bku", "scale__u", "out__bqk")),
    Kernel("transpose", "layout", ("x__brc", "out__bcr")),
    Kernel("copy", "movement", ("x", "out", "shape", "x_offset", "x_strides", "out_offset", "out_strides", "itemsize")),
    Kernel("gather", "movement", ("x__oni", "indices__m", "out__omi", "itemsize")),
    Kernel("embedding", "movement", ("weight__vd", "ids__m", "out__md")),
    Kernel("pick", "indexing", ("x__rm", "indices", "out__pm", "shape", "x_strides", "size", "stride", "itemsize")),
    Kernel(
        "scatter",
        "indexing",
        ("x__rm", "indices", "updates__pm", "out__rm", "shape", "out_strides", "size", "stride", "itemsize", "op", "source"),
    ),
    Kernel("one_hot", "indexing", ("indices__oi", "values", "out__oni", "itemsize")),
    Kernel("reverse_sequence", "indexing", ("x", "lengths", "out", "batch_first", "itemsize")),
    Kernel("cast", "movement", ("x", "out", "source", "target")),
    Kernel(
        "tree_ensemble_pack",
        "trees",
        ("roots", "feature", "split", "modes", "yes", "no", "missing", "members", "starts", "targets", "weight", "size"),
    ),
    Kernel("tree_ensemble", "trees", ("x__mk", "packed", "base__n", "out__mn", "op")),
    Kernel(
        "tree_log_prob",
        "tree",
        ("x__bd", "weight__md", "bias__m", "targets__b", "starts__s", "points__p", "codes__p", "out__b"),
    ),
    Kernel("tree_distribution", "tree", ("x__bm", "order__m", "left__m", "right__m", "out__bn")),
    Kernel(
        "tree_argmax",
        "tree",
        ("x__bd", "weight__md", "bias__m", "order__m", "left__m", "right__m", "ids__b", "out__b", "depth"),
        ("ids", "out"),
    ),
    Kernel(
        "qconv_pack",
        "qconv",
        ("weight__oidhw", "zero__o", "factor__o", "bias__o", "shift__o", "stride", "dilation", "groups"),
    ),
    Kernel(
        "qconv",
        "qconv",
        ("x", "packed", "x_zero", "x_scale", "out", "pads", "x_last", "out_last", "source", "target", "value"),
    ),
    Kernel("quantize", "quantise", ("x__oci", "step__c", "zero__c", "out__oci", "target")),
    Kernel("dequantize", "quantise", ("x__oci", "step__c", "zero__c", "out__oci", "source")),
    Kernel("dynamic_quantize", "quantise", ("x", "out", "step", "zero"), ("out", "step", "zero")),
    Kernel("lookup", "quantise", ("x", "table", "out")),
    Kernel("qbinary", "quantise", ("a__omi", "b__omi", "out__omi", "op", "options")),
    Kernel("qpool", "quantise", ("x", "out", "kernel", "stride", "dilation", "pads", "op", "source", "options")),
    Kernel("pad", "padding", ("x__odhwi", "out__odhwi", "pads", "mode", "value")),
)

# The numbers are those of `enum fl_binary_code` and `enum fl_compare_code`.
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

# The numbers are those of `enum fl_integer_code`.
INTEGER: dict[str, int] = {
    "add": 0, "subtract": 1, "multiply": 2, "minimum": 3, "maximum": 4, "and": 5, "or": 6, "xor": 7,
    "equal": 8, "not_equal": 9, "less": 10, "less_equal": 11, "greater": 12, "greater_equal": 13,
}  # fmt: skip

# Functions of two arrays of any dtype but float16; the numbers are those of `enum fl_arithmetic_code`.
ARITHMETIC: dict[str, int] = {
    "add": 0, "subtract": 1, "multiply": 2, "divide": 3, "power": 4, "minimum": 5, "maximum": 6, "mod": 7, "fmod": 8, "and": 9,
    "or": 10, "xor": 11, "left": 12, "right": 13, "prelu": 14, "equal": 15, "not_equal": 16, "less": 17, "less_equal": 18,
    "greater": 19, "greater_equal": 20,
}  # fmt: skip
# Functions of one array of any dtype; the numbers are those of `enum fl_function_code`. The first four give booleans.
FUNCTIONS: dict[str, int] = {
    "is_nan": 0, "is_inf": 1, "is_positive_inf": 2, "is_negative_inf": 3, "not": 4, "negative": 5, "abs": 6, "sign": 7, "relu": 8,
    "tan": 9, "asin": 10, "acos": 11, "atan": 12, "sinh": 13, "cosh": 14, "asinh": 15, "acosh": 16, "atanh": 17, "exp": 18,
    "log": 19, "sqrt": 20, "reciprocal": 21, "floor": 22, "ceil": 23, "round": 24, "sin": 25, "cos": 26, "tanh": 27,
    "sigmoid": 28, "erf": 29,
}  # fmt: skip

# What a scattered row does to the one that is there; the numbers are those of `enum fl_scatter_code`.
SCATTER: dict[str, int] = {"none": 0, "add": 1, "mul": 2, "max": 3, "min": 4}

# The numbers are those of `enum fl_kind_code`, the names numpy's.
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
# What lies outside an image that is read at any places.
BORDERS: dict[str, int] = {"zeros": 0, "border": 1, "reflection": 2}

# The numbers are those of `enum fl_reduce_code`, which has the formulas.
MOST_SAMPLES = 128  # of a box's bin along each axis: a picture has no more to tell
REDUCE: dict[str, int] = {
    "sum": 0, "mean": 1, "max": 2, "min": 3, "prod": 4, "sum_square": 5, "l1": 6, "l2": 7, "log_sum": 8, "log_sum_exp": 9
}  # fmt: skip


class Activation(NamedTuple):
    """An elementwise function as kernels take it: its number in ``aot/csrc/kernels.h`` and up to two parameters."""

    code: int
    a: float = 0.0
    b: float = 0.0


class Unary(NamedTuple):
    """An elementwise function as users name it: number, names of its parameters, and their defaults."""

    code: int
    parameters: tuple[str, ...] = ()
    defaults: tuple[float, ...] = ()


# The numbers are those of `enum fl_unary_code`; the order of parameters is that of its (a, b).
UNARY: dict[str, Unary] = {
    "identity": Unary(0),
    "relu": Unary(1),
    "clip": Unary(2, ("min", "max"), (float("-inf"), float("inf"))),
    "leaky_relu": Unary(3, ("negative_slope",), (0.01,)),
    "elu": Unary(4, ("alpha",), (1.0,)),
    "selu": Unary(5, ("alpha", "scale"), (1.6732632423543772, 1.0507009873554805)),
    "sigmoid": Unary(6),
    "tanh": Unary(7),
    "gelu": Unary(8),
    "gelu_tanh": Unary(9),
    "silu": Unary(10),
    "hardsigmoid": Unary(11, ("alpha", "beta"), (1 / 6, 0.5)),
    "hardswish": Unary(12),
    "softplus": Unary(13, ("beta", "threshold"), (1.0, 20.0)),
    "softsign": Unary(14),
    "mish": Unary(15),
    "exp": Unary(16),
    "log": Unary(17),
    "erf": Unary(18),
    "sqrt": Unary(19),
    "square": Unary(20),
    "negative": Unary(21),
    "abs": Unary(22),
    "reciprocal": Unary(23),
    "floor": Unary(24),
    "ceil": Unary(25),
    "round": Unary(26),
    "sign": Unary(27),
    "sin": Unary(28),
    "cos": Unary(29),
    "celu": Unary(30, ("alpha",), (1.0,)),
    "shrink": Unary(31, ("lambd", "bias"), (0.5, 0.0)),
    "threshold": Unary(32, ("threshold", "value"), (0.0, 0.0)),
    "tanhshrink": Unary(33),
    "logsigmoid": Unary(34),
    "quick_gelu": Unary(35, ("alpha",), (1.702,)),
}

_SIGMOID, _TANH = Activation(UNARY["sigmoid"].code), Activation(UNARY["tanh"].code)


class LstmOptions(NamedTuple):
    """What an LSTM does with its sums; the defaults have the fastest path.

    Attributes:
        activations: for each direction, the functions of the gates i f o, of the cell's input g, and of c where it becomes h;
            entries past the number of directions are not read.
        clip: sums of i f g o, peepholes included, are clipped to -clip .. clip; 0: they are not.
        couple_input_forget: f = 1 - i.
    """

    activations: tuple[tuple[Activation, Activation, Activation], ...] = ((_SIGMOID, _TANH, _TANH),) * 2
    clip: float = 0.0
    couple_input_forget: bool = False


class GruOptions(NamedTuple):
    """What a GRU does with its sums; the defaults have the fastest path.

    Attributes:
        activations: for each direction, the functions of the gates r z, and of n.
        clip: as in `LstmOptions`.
        reset_after: whether r multiplies the product R_n h + b_n, or h before the product.
    """

    activations: tuple[tuple[Activation, Activation], ...] = ((_SIGMOID, _TANH),) * 2
    clip: float = 0.0
    reset_after: bool = True


class RnnOptions(NamedTuple):
    """What a simple RNN does with its sums.

    Attributes:
        activations: for each direction, the function of the sums.
        clip: as in `LstmOptions`.
    """

    activations: tuple[Activation, ...] = (_TANH,) * 2
    clip: float = 0.0
