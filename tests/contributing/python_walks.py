"""Walks that need no compiler: an operator, a Keras layer, a family of checkpoints, a layer, a variant."""

from __future__ import annotations

from .walks import Walk, after, new

__all__ = ["WALKS"]

OPERATOR = Walk(
    "An ONNX operator",
    (
        after("fastlayers/operators/activation.py", '    "Tan": np.tan,', ' "Cube": lambda x: x * x * x,'),
        after("fastlayers/operators/families.py", '"Softplus Softsign Sqrt Swish Tan ', "Cube "),
        after("fastlayers/formats/onnx/schema.py", "\nCos 7 1 1\n", "Cube 28 1 1\n"),
        after(
            "tests/operators/cases/elementwise.py",
            '    each("Tan", math.tan, native=False),\n',
            '    each("Cube", lambda v: v**3, native=False),\n',
        ),
    ),
    (
        "-m pytest -q tests/operators/test_cases.py tests/operators/test_graph.py tests/operators/test_inference.py -k 'Cube or every'",
        "-m pytest -q tests/formats/test_onnx_words.py tests/formats/test_own_words.py -k 'attribute or operation'",
        "-m pytest -q tests/test_docs.py tests/test_lint.py",
    ),
    other=frozenset({"fastlayers/formats/onnx/canonical.py"}),
)

KERAS = Walk(
    "A Keras layer",
    (
        after(
            "fastlayers/formats/keras/layers/shapes.py",
            "from ..layer import Layer, layer\n",
            '\n\n@layer("Negation", mask="drop")\n'
            "def negation(this: Layer, b: Build, x: Tensor) -> Tensor:\n"
            '    """The values with their signs changed."""\n'
            '    return b.op("Neg", x)\n',
        ),
        after(
            "tests/formats/test_keras_further.py",
            "\nfrom __future__ import annotations\n",
            "\nimport numpy as np\n\nimport fastlayers as fl\nfrom tests.formats.test_keras_hostile import archive, layer, sequential\n\n\n"
            "def test_negation() -> None:\n"
            '    model = fl.load(archive(sequential(layer("Negation"))))\n'
            "    x = np.ones((2, 4), np.float32)\n"
            "    np.testing.assert_array_equal(model(x), -x)\n\n\n",
        ),
    ),
    (
        "-m pytest -q tests/formats/test_keras_further.py tests/formats/test_keras_words.py -k 'negation or word or declared'",
        "-m pytest -q tests/test_docs.py tests/test_lint.py",
    ),
    other=frozenset({"tests/goldens/make_keras_models.py", "tests/goldens/keras_models_3.npz"}),
)

FAMILY = Walk(
    "A family of checkpoints",
    (
        new(
            "fastlayers/formats/transformers/tinybert.py",
            '"""TinyBERT: BERT under another name."""\n\nfrom __future__ import annotations\n\n'
            "from . import bert\nfrom .build import Network\n\n"
            '__all__ = ["OTHERS", "write"]\n\nPREFIX = bert.PREFIX\nOTHERS = bert.OTHERS\n\n\n'
            'def write(n: Network) -> None:\n    """Writes the network."""\n'
            "    n.config.only(student=True)\n    bert.write(n)\n",
        ),
        after("fastlayers/formats/transformers/__init__.py", "FAMILIES: dict[str, str] = {\n", '    "tinybert": "",\n'),
        after("docs/how-to/checkpoints.md", "RoBERTa, T5's encoder, ", "TinyBERT, "),
    ),
    (
        "-c 'import tempfile, pathlib, fastlayers as fl; from tests.formats.transformers.checkpoints import compare, golden, written; "
        'folder = written(pathlib.Path(tempfile.mkdtemp()), "bert", model_type="tinybert", student=True); '
        'compare("bert", fl.load(folder), golden("bert")[2])\'',
        "-m pytest -q tests/formats/transformers -k 'refused or known or bert'",
        "-m pytest -q tests/test_docs.py tests/test_lint.py",
    ),
    other=frozenset(
        {"fastlayers/formats/transformers/config.py", "tests/goldens/transformers.npz", "tests/goldens/transformers_cases.py"}
    ),
)

_FUNCTION = '''

def sharpmax(x: Tensor, dim: int = -1) -> np.ndarray:
    """Softmax of doubled logits: ``exp(2x) / sum(exp(2x))``.

    Args:
        x: any shape, any real dtype.
        dim: the axis along which the results sum to 1.

    Returns:
        float32, the shape of x.

    Raises:
        ShapeError: there is no such axis.
        DTypeError: x is complex or not numeric.

    >>> import fastlayers as fl
    >>> fl.functional.sharpmax([1000.0, 1000.0])
    array([0.5, 0.5], dtype=float32)
    """
    x = x if isinstance(x, Symbol) else as_float32(x, "sharpmax", "x")
    axis("sharpmax", dim, len(x.shape))
    return softmax(multiply(x, 2.0), dim)
'''

LAYER = Walk(
    "A layer",
    (
        after("fastlayers/functional/_activation_softmax.py", "    return softmax(multiply(x, -1.0), dim)\n", _FUNCTION),
        after("fastlayers/functional/_activation_softmax.py", '["log_softmax", ', '"sharpmax", '),
        after("fastlayers/functional/_homes.py", '"_activation_softmax": "log_softmax ', "sharpmax "),
        after("fastlayers/layers/activation.py", "from ..functional import glu, log_softmax, prelu, ", "sharpmax, "),
        after("fastlayers/layers/activation.py", '    "SELU",\n', '    "Sharpmax",\n'),
        after(
            "fastlayers/layers/activation.py",
            "    _function = staticmethod(softmin)\n",
            '\n\nclass Sharpmax(_AlongAxis):\n    """`functional.sharpmax` as a layer."""\n\n    _function = staticmethod(sharpmax)\n',
        ),
        after("fastlayers/layers/homes.py", '"PReLU QuickGELU ReLU ReLU6 SELU ', "Sharpmax "),
        after("tests/graph/examples/further.py", '"logsigmoid", "quick_gelu", ', '"sharpmax", '),
        after("tests/arguments/layer_calls.py", '"LogSoftmax", "Softmin", ', '"Sharpmax", '),
        after(
            "bench/layers/elementwise.py",
            '    Row(("PReLU",), "256x1024", partial(prelu, False)),\n',
            '    Row(("Sharpmax",), "256x1024", partial(call, fl.Sharpmax(-1))),\n'
            '    Row(("sharpmax",), "256x1024", partial(call, fl.functional.sharpmax)),\n',
        ),
    ),
    (
        "-m tests.api",
        "-m pytest -q tests/functional/test_public.py tests/graph/test_ops.py tests/graph/test_compiled.py -k 'sharpmax or further or every'",
        "-m pytest -q tests/test_arguments.py tests/test_bench.py tests/test_import.py -k 'every or timed or public or differ'",
        "-m pytest -q tests/test_docs.py tests/test_lint.py tests/test_api.py",
    ),
    made=frozenset({"tests/api.txt"}),
)

VARIANT = Walk(
    "A variant of the kernels",
    (
        after("fastlayers/kernels/dispatch.py", '(("jit",) if _numba() else ()), *cuda, ', '"plain", '),
        new("fastlayers/kernels/plain/__init__.py", '"""Kernels in numpy that compute in float32."""\n'),
        new(
            "fastlayers/kernels/plain/binary.py",
            '"""Arithmetic in float32."""\n\nfrom __future__ import annotations\n\nimport numpy as np\n\n__all__ = ["where"]\n\n\n'
            "def where(condition: np.ndarray, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:\n"
            '    """out = a where the condition holds, else b."""\n'
            "    np.copyto(out, np.where(condition, a, b))\n",
        ),
        after("tests/test_table.py", 'FOLDERS = (\n    "reference",\n', '    "plain",\n'),
        after(
            "fastlayers/kernels/table.py",
            'Kernel("where", "binary", ("condition", "a", "b", "out")',
            ', variants=(*_ALL, "plain")',
        ),
        after("tests/conftest.py", '    found: list[Any] = ["reference", ', '"plain", '),
        after("docs/explanation/variants.md", "| `reference` | plain numpy |\n", "| `plain` | numpy in float32 |\n"),
    ),
    (
        '-c \'import fastlayers as fl; fl.kernels.use("plain"); assert fl.kernels.info()["operations"]["where"] == "plain"\'',
        "-m pytest -q tests/test_table.py tests/test_lint.py tests/test_needed.py",
        "-m pytest -q tests/kernels/test_binary.py -k 'where and plain'",
    ),
)

WALKS = (OPERATOR, KERAS, FAMILY, LAYER, VARIANT)
