"""Which module of this package has which operators: it is imported when a graph first needs one of them."""

from __future__ import annotations

__all__ = ["CONTROL", "FAMILIES", "SEQUENCES"]

# Operators with graphs of their own (`control`), and those that know lists and optional values (`sequence`): no OPERATORS.
CONTROL = frozenset(("If", "Loop", "Scan", "SequenceMap"))
SEQUENCES = frozenset((
    "CastMap", "ConcatFromSequence", "DictVectorizer", "Optional", "OptionalGetElement", "OptionalHasElement",
    "SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength",
    "SplitToSequence", "ZipMap",
))  # fmt: skip

# In alphabetical order; a test holds the list to what the modules register.
FAMILIES: dict[str, str] = {
    "arithmetic": "Add Div Max Mean Min Mod Mul Pow Sub Sum",
    "attention": "Activate ScaledAttention",
    "attention_flex": "AttentionScores AttentionValues",
    "attention_layers": "AdditiveAttention DotAttention HardAttention",
    "attention_onnx": "Attention",
    "blocks": "DepthToSpace SpaceToDepth Trilu",
    "chance": "Bernoulli Dropout Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike",
    "constant": "Constant ConstantOfShape EyeLike Range",
    "contrib": "FusedMatMul HeadBias PaddingMask Positions",
    "contrib_gqa": "GroupQueryAttention",
    "conv": "Conv ConvTranspose",
    "deform": "DeformConv",
    "einsum": "Einsum",
    "elementwise": "Elementwise",
    "embedding": "Embedding",
    "gathering": "Compress Gather GatherElements GatherND NonZero OneHot ScatterElements ScatterND",
    "grid": "AffineGrid GridSample",
    "linear_attention": "CausalConvWithState LinearAttention SwiGLU",
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
    "normal": (
        "Affine BatchNormalization GroupNormalization Hardmax InstanceNormalization LRN LayerNormalization LogSoftmax "
        "RMSNormalization Softmax"
    ),
    "padding": "Pad",
    "placement": "CenterCropPad Col2Im MaxUnpool ReverseSequence TensorScatter",
    "pooling": "AdaptivePool AveragePool GlobalAveragePool GlobalLpPool GlobalMaxPool LpPool MaxPool TimePool",
    "positions": "AxisPositions RotaryTables RotaryTablesAt SinusoidalEncoding",
    "product": "Det Gemm Linear MatMul",
    "quantized": "DequantizeLinear DynamicQuantizeLinear QuantizeLinear",
    "quantized_blocks": "MatMulNBits",
    "quantized_conv": "ConvInteger QLinearConv",
    "quantized_elementwise": (
        "ByteTable QLinearAdd QLinearAveragePool QLinearConcat QLinearGlobalAveragePool QLinearLeakyRelu QLinearMul "
        "QLinearReduceMean QLinearSigmoid QLinearSoftmax QLinearWhere"
    ),
    "quantized_product": "DynamicQuantizeMatMul MatMulInteger MatMulIntegerToFloat QGemm QLinearMatMul",
    "quantized_recurrent": "DynamicQuantizeLSTM",
    "recurrent": "GRU LSTM RNN",
    "reduce": (
        "ArgMax ArgMin CumProd CumSum ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin "
        "ReduceProd ReduceSum ReduceSumSquare TopK"
    ),
    "regions": "MaxRoiPool RoiAlign",
    "resize": "Interpolate Resize",
    "rotary": "RotaryEmbedding",
    "sets": "Unique",
    "shape": "AlignAxes Flatten Identity Reshape Shape Size Squeeze Unsqueeze",
    "spectral": "BlackmanWindow DFT HammingWindow HannWindow MelWeightMatrix OverlapAdd STFT",
    "stream": "StreamCut StreamFill StreamStart StreamWindow",
    "suppression": "NonMaxSuppression",
    "training": "Adagrad Adam Momentum",
    "tree": "TreeDistribution TreeLogProb",
    "unary": (
        "Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Celu Clip Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid "
        "HardSwish IsInf IsNaN LeakyRelu Log Mish Neg Not PRelu Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh "
        "Softplus Softsign Sqrt Swish Tan Tanh ThresholdedRelu"
    ),
}
