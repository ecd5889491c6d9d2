"""Module of each operator in this package: it is imported when a graph first needs one of them."""

from __future__ import annotations

__all__ = ["CONTROL", "FAMILIES", "NESTED", "SEQUENCES", "SIZED"]

# Operators with subgraphs (`control`), and those that know lists and optional values (`sequence`): no OPERATORS.
CONTROL = frozenset(("If", "Loop", "Scan", "SequenceMap"))
# Of these, the ones that may be part of a bound program.
NESTED = frozenset(("If", "Loop", "Scan"))
SEQUENCES = frozenset((
    "CastMap", "ConcatFromSequence", "DictVectorizer", "Optional", "OptionalGetElement", "OptionalHasElement",
    "SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength",
    "SplitToSequence", "ZipMap",
))  # fmt: skip
# Results have sizes that an input gives, and nothing else does: a segment that begins with one is bound by that input's
# values, as a graph is by those of its inputs.
SIZED = frozenset(("CenterCropPad", "ConstantOfShape", "Expand", "OneHot", "Range", "Reshape", "Resize", "Tile", "TopK"))

# In alphabetical order; a test holds the list to what the modules register.
FAMILIES: dict[str, str] = {
    "activation": (
        "Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Celu Clip Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid "
        "HardSwish IsInf IsNaN LeakyRelu Log Mish Neg Not PRelu Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh "
        "Softplus Softsign Sqrt Swish Tan Tanh ThresholdedRelu"
    ),
    "arithmetic": "Add Div Max Mean Min Mod Mul Pow Sub Sum",
    "attention.additive": "AdditiveAttention HardAttention",
    "attention.contrib": "FusedMatMul HeadBias PaddingMask Positions",
    "attention.dot": "DotAttention",
    "attention.flex": "AttentionScores AttentionValues",
    "attention.gqa": "GroupQueryAttention",
    "attention.gqa_quantized": "GroupQueryQuantized",
    "attention.gqa_window": "GroupQueryWindow",
    "attention.linear": "CausalConvWithState LinearAttention SwiGLU",
    "attention.onnx": "Attention",
    "attention.scaled": "Activate ScaledAttention",
    "chance": "Bernoulli Dropout Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike",
    "constant": "Constant ConstantOfShape EyeLike Range",
    "conv": "Conv ConvTranspose",
    "conv_deform": "DeformConv",
    "einsum": "Einsum",
    "elementwise": "Elementwise",
    "embedding": "Embedding",
    "indexing": "Compress Gather GatherElements GatherND NonZero OneHot ScatterElements ScatterND",
    "linear": "Det Gemm Linear MatMul",
    "logic": (
        "And BitCast BitShift BitwiseAnd BitwiseOr BitwiseXor Cast CastLike Equal Greater GreaterOrEqual Less "
        "LessOrEqual Or Where Xor"
    ),
    "losses": "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss",
    "ml.features": "ArrayFeatureExtractor Binarizer FeatureVectorizer Scaler",
    "ml.grams": "TfIdfVectorizer",
    "ml.labels": "CategoryMapper LabelEncoder OneHotEncoder",
    "ml.scores": "Probit SoftmaxZero SvmProbabilities",
    "ml.text": "StringConcat StringConstant StringNormalizer StringSplit",
    "ml.trees": "Trees",
    "movement": "Concat Expand Slice Split Tile Transpose",
    "normalization": (
        "Affine BatchNormalization GroupNormalization Hardmax InstanceNormalization LRN LayerNormalization LogSoftmax "
        "RMSNormalization Softmax"
    ),
    "padding": "Pad",
    "placement": "CenterCropPad Col2Im MaxUnpool ReverseSequence TensorScatter",
    "pooling": "AdaptivePool AveragePool GlobalAveragePool GlobalLpPool GlobalMaxPool LpPool MaxPool TimePool",
    "positional": "AxisPositions RotaryTables RotaryTablesAt SinusoidalEncoding",
    "positional_rotary": "RotaryEmbedding",
    "quantized.blocks": "MatMulBnb4 MatMulNBits",
    "quantized.experts": "MoE QMoE",
    "quantized.gather": "GatherBlockQuantized",
    "quantized.ggml": "BlockEmbedding BlockLinear",
    "quantized.conv": "ConvInteger QLinearConv",
    "quantized.elementwise": (
        "ByteTable QLinearAdd QLinearAveragePool QLinearConcat QLinearGlobalAveragePool QLinearLeakyRelu QLinearMul "
        "QLinearReduceMean QLinearSigmoid QLinearSoftmax QLinearWhere"
    ),
    "quantized.linear": "DynamicQuantizeMatMul MatMulInteger MatMulIntegerToFloat QGemm QLinearMatMul",
    "quantized.quantize": "DequantizeCodes DequantizeLinear DynamicQuantizeLinear QuantizeLinear",
    "quantized.recurrent": "DynamicQuantizeLSTM",
    "recurrent": "GRU LSTM RNN",
    "reduce": (
        "ArgMax ArgMin CumProd CumSum ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin "
        "ReduceProd ReduceSum ReduceSumSquare TopK"
    ),
    "regions": "MaxRoiPool RoiAlign",
    "resampling": "Interpolate Resize",
    "resampling_blocks": "DepthToSpace SpaceToDepth Trilu",
    "resampling_grid": "AffineGrid GridSample",
    "sets": "Unique",
    "shape": "AlignAxes Flatten Identity OneOf Reshape Shape Size Squeeze Unsqueeze",
    "spectral": "BlackmanWindow DFT HammingWindow HannWindow MelWeightMatrix OverlapAdd STFT",
    "stream": "StreamCut StreamFill StreamStart StreamWindow",
    "suppression": "NonMaxSuppression",
    "training": "Adagrad Adam Momentum",
    "tree": "TreeDistribution TreeLogProb",
}
