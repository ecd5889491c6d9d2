"""Dense layers, embeddings, and layers that do nothing when a model is used."""

from __future__ import annotations

import re

import numpy as np

from ..activations import activated, known
from ..build import BOOL, INT64, Build, Tensor
from ..layer import Layer, layer


def kernel_and_bias(this: Layer) -> list[str]:
    """The weights of most layers."""
    known(this, "activation")
    names = ["kernel", "bias"] if this.config.get("use_bias", this.config.get("bias", True)) else ["kernel"]
    return [*names, "kernel_scale"] if this.quantized else names


def to_bytes(b: Build, x: Tensor, axes: list[int]) -> tuple[Tensor, Tensor]:
    """x as integers from -127 to 127, the largest along the axes being 127, and what they were multiplied by."""
    largest = b.reduce("Max", b.op("Abs", x), axes, True)
    scale = b.op("Div", np.float32(127), b.op("Add", largest, np.float32(1e-7)))
    return b.op("Clip", b.op("Round", b.op("Mul", x, scale)), np.float32(-127), np.float32(127)), scale


def product(b: Build, x: Tensor, kernel: np.ndarray, bias: np.ndarray | None) -> Tensor:
    """x times a matrix along its last axis, plus a bias."""
    y = b.op("MatMul", x, b.constant(kernel, "kernel"))
    return y if bias is None else b.op("Add", y, b.constant(bias, "bias"))


@layer(
    "Dense", "NoisyDense", "TimeDistributedDense", words="units activation use_bias | output_dim bias", weights=kernel_and_bias
)
def dense(this: Layer, b: Build, x: Tensor) -> Tensor:
    """activation(x kernel + bias) along the last axis."""
    x = b.floats(x)
    units = this.config.get("units", this.config.get("output_dim"))
    inputs = x.sizes[-1]
    kernel = this.weight("kernel", inputs if isinstance(inputs, int) else None, units)
    bias = this.weight("bias", units) if "bias" in this.own else None
    if not this.quantized:
        return activated(this, b, product(b, x, kernel, bias), this.config.get("activation"))
    whole, scale = to_bytes(b, x, [x.rank - 1])
    y = b.op("Div", product(b, whole, kernel, None), b.op("Mul", scale, b.constant(this.weight("kernel_scale", units), "scale")))
    y = y if bias is None else b.op("Add", y, b.constant(bias, "bias"))
    return activated(this, b, y, this.config.get("activation"))


def _einsum_weights(this: Layer) -> list[str]:
    known(this, "activation")
    names = ["kernel", "bias"] if this.config.get("bias_axes") else ["kernel"]
    return [*names, "kernel_scale"] if this.quantized else names


@layer("EinsumDense", words="equation bias_axes activation", weights=_einsum_weights, mask="drop")
def einsum_dense(this: Layer, b: Build, x: Tensor) -> Tensor:
    """An Einstein sum with a kernel; a product of matrices where it is one."""
    x = b.floats(x)
    equation = str(this.config["equation"]).replace(" ", "")
    y = _of_bytes(this, b, equation, x) if this.quantized else contraction(b, equation, x, this.weight("kernel"))
    if "bias" in this.own:
        y = b.op("Add", y, b.constant(this.weight("bias"), "bias"))
    return activated(this, b, y, this.config.get("activation"))


def _of_bytes(this: Layer, b: Build, equation: str, x: Tensor) -> Tensor:
    """The sum with int8 values, where the summed axes are the last of x and the new ones the last of the result."""
    found = re.fullmatch(r"([a-zA-Z]+),([a-zA-Z]+)->([a-zA-Z]+)", equation)
    left, right, out = found.groups() if found else ("", "", "")
    summed = [c for c in left if c in right]
    kept, new = [c for c in left if c not in right], [c for c in right if c not in left]
    if not summed or left != "".join([*kept, *summed]) or out != "".join([*kept, *new]) or len(left) != x.rank:
        this.refuse(f"weights quantized as int8, with the equation {equation:.80}")
    whole, scale = to_bytes(b, x, list(range(len(kept), x.rank)))
    kernel = this.weight("kernel")
    y = contraction(b, equation, whole, kernel)
    sizes = [kernel.shape[right.index(c)] for c in new]
    stored = this.weight("kernel_scale")
    if stored.size != int(np.prod(sizes, dtype=object)):
        this.refuse(f"weights quantized as int8, with scales of shape {stored.shape}")
    # One scale for all that is summed, of x; one for each of the new axes, of the kernel.
    flat = b.reshape(scale, *(b.shape_of(x, i) for i in range(len(kept))), *(1 for _ in new))
    return b.op("Div", y, b.op("Mul", flat, b.constant(stored.reshape(sizes), "scale")))


def contraction(b: Build, equation: str, x: Tensor, kernel: np.ndarray) -> Tensor:
    """einsum(equation, x, kernel)."""
    found = re.fullmatch(r"([a-zA-Z.]+),([a-zA-Z.]+)->([a-zA-Z.]+)", equation)
    if found is None:
        raise ValueError(f"equation {equation:.80}")
    left, right, out = found.groups()
    if "..." in equation:
        letters = [c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if c not in equation]
        more = "".join(letters[: x.rank - len(left.replace("...", ""))])
        left, out, right = left.replace("...", more), out.replace("...", more), right.replace("...", "")
    if len(left) != x.rank or len(right) != kernel.ndim:
        raise ValueError(f"equation {equation:.80} for shapes {x.shape} and {kernel.shape}")
    summed = [c for c in right if c in left]
    kept = [c for c in left if c not in right]
    new = [c for c in right if c not in left]
    # The summed axes last in x and first in the kernel, the new ones after the kept: a product.
    if out == "".join([*kept, *new]) and left == "".join([*kept, *summed]) and len(set(left)) == len(left):
        order = [right.index(c) for c in (*summed, *new)]
        inner = int(np.prod([kernel.shape[right.index(c)] for c in summed], dtype=object))
        flat = np.transpose(kernel, order).reshape(inner, -1)
        rows = x if len(summed) == 1 else b.reshape(x, *(b.shape_of(x, i) for i in range(len(kept))), inner)
        y = b.op("MatMul", rows, b.constant(flat, "kernel"))
        if len(new) == 1:
            return y
        return b.reshape(y, *(b.shape_of(x, i) for i in range(len(kept))), *(kernel.shape[right.index(c)] for c in new))
    return b.op("Einsum", x, b.constant(kernel, "kernel"), equation=f"{left},{right}->{out}")


_TABLE = "output_dim mask_zero | dropout"


@layer("Embedding", words=_TABLE, weights=lambda this: ["embeddings"], mask="own")
def embedding(this: Layer, b: Build, x: Tensor) -> Tensor:
    """Rows of a table; with mask_zero the mask is where x is not 0."""
    table = this.weight("embeddings", this.config["input_dim"], this.config["output_dim"])
    if this.get("dropout") and this.context.version < (2, 0):
        this.refuse("dropout of embeddings, which Keras 1 scales by")
    mask = None
    if this.get("mask_zero"):
        mask = b.op("Not", b.op("Equal", x, b.operand(0, x.dtype)))
    made = b.op("Gather", b.constant(table, "embeddings"), b.cast(x, INT64), axis=0)
    return made.masked(mask)


def _both_ways(this: Layer) -> list[str]:
    return ["embeddings"] if this.get("tie_weights", True) else ["embeddings", "reverse_embeddings"]


@layer("ReversibleEmbedding", words=f"tie_weights logit_soft_cap {_TABLE}", weights=_both_ways, mask="own")
def reversible_embedding(this: Layer, b: Build, x: Tensor, reverse: bool = False) -> Tensor:
    """Rows of a table, or with `reverse` the products with all of them."""
    if not reverse:
        return embedding(this, b, x)
    tied = this.get("tie_weights", True)
    kernel = this.weight("embeddings").T if tied else this.weight("reverse_embeddings")
    logits = b.op("MatMul", b.floats(x), b.constant(kernel, "kernel"))
    cap = this.get("logit_soft_cap")
    return logits if cap is None else b.op("Mul", b.op("Tanh", b.op("Div", logits, float(cap))), float(cap))


@layer(
    "Identity", "Dropout", "SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D", "GaussianDropout", "GaussianNoise",
    "AlphaDropout", "ActivityRegularization", "RandomFlip", "RandomRotation", "RandomZoom", "RandomTranslation",
    "RandomContrast", "RandomBrightness", "RandomHeight", "RandomWidth", "GradientReversal", "StochasticDepth",
)  # fmt: skip
def identity(this: Layer, b: Build, x: Tensor) -> Tensor:
    """A layer that changes values only while a model is trained."""
    return x


@layer("Masking", words="mask_value", mask="own")
def masking(this: Layer, b: Build, x: Tensor) -> Tensor:
    """Steps whose every number is mask_value are masked, and made zeros."""
    same = b.op("Equal", x, b.operand(this.get("mask_value", 0.0), x.dtype))
    other = b.reduce("Max", b.cast(b.op("Not", same), np.int32), [-1], True)
    made = b.op("Mul", x, b.cast(other, x.dtype))
    return made.masked(b.squeeze(b.cast(other, BOOL), -1))
