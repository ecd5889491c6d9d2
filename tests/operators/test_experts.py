"""MoE, QMoE and the windowed cache of GroupQueryAttention next to onnxruntime, and what is refused of them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.errors import Error

onnx: Any = pytest.importorskip("onnx")
helper, numpy_helper = onnx.helper, onnx.numpy_helper
pytestmark = [pytest.mark.onnx, pytest.mark.onnxruntime]

Arrays = list[np.ndarray | None]


def model(op: str, inputs: Arrays, given: tuple[int, ...], outputs: int = 1, **attributes: Any) -> bytes:
    """One node, of which the inputs `given` are the graph's, of any sizes, and the others constants."""
    names = [f"c{i}" if a is not None else "" for i, a in enumerate(inputs)]
    node = helper.make_node(op, names, [f"y{i}" for i in range(outputs)], domain="com.microsoft", **attributes)
    kind = helper.np_dtype_to_tensor_dtype
    made = {n: a for n, a in zip(names, inputs, strict=True) if a is not None}
    free = [n for i, n in enumerate(names) if i in given]
    graph = helper.make_graph(
        [node], "g",
        [helper.make_tensor_value_info(n, kind(made[n].dtype), [f"{n}_{i}" for i in range(made[n].ndim)]) for n in free],
        [helper.make_tensor_value_info(n, 1, None) for n in node.output],
        [numpy_helper.from_array(a, n) for n, a in made.items() if n not in free],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    file: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
    return file


def session(file: bytes) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])


def feeds_of(inputs: Arrays, given: tuple[int, ...]) -> dict[str, np.ndarray]:
    return {f"c{i}": a for i, a in enumerate(inputs) if i in given and a is not None}


def compare(op: str, inputs: Arrays, given: tuple[int, ...], bound: float, **attributes: Any) -> None:
    file = model(op, inputs, given, **attributes)
    want, got = session(file).run(None, feeds_of(inputs, given))[0], fl.load(file).run(feeds_of(inputs, given))["y0"]
    np.testing.assert_allclose(got, want, rtol=0, atol=bound * np.abs(want).max(), err_msg=str(attributes))


RNG = np.random.default_rng(0)
EXPERTS, H = 5, 64


def normal(*shape: int, by: float = 1.0) -> np.ndarray:
    return (RNG.standard_normal(shape) * by).astype(np.float32)


def plain(inner: int = 32, gated: bool = False, tokens: tuple[int, ...] = (7,)) -> Arrays:
    first = inner * (1 + gated)
    router = normal(int(np.prod(tokens)), EXPERTS)
    router[0] = 1  # of equal ones the last is chosen
    weights = normal(EXPERTS, first, H, by=0.2), normal(EXPERTS, H, inner, by=0.2)
    return [normal(*tokens, H), router, weights[0], normal(EXPERTS, first), weights[1], normal(EXPERTS, H)]


@pytest.mark.parametrize("normalize", [0, 1])
def test_experts_are_those_of_onnxruntime(normalize: int, variant: str) -> None:
    for name, k in itertools.product(("relu", "gelu", "silu", "identity"), (1, 3)):
        compare("MoE", plain(), (0, 1), 1e-6, activation_type=name, k=k, normalize_routing_weights=normalize)
    for given in ({"swiglu_limit": 1.5, "activation_alpha": 1.702, "activation_beta": 1.0}, {}):
        inputs = plain(32, True, (2, 3))
        inputs[3] = None
        compare("MoE", inputs, (0, 1), 1e-6, activation_type="swiglu", swiglu_fusion=1, k=2, **given)


def quantized(bits: int, block: int, zeros: bool, inner: int = 32, weights: bool = False) -> Arrays:
    x, router, _, b1, _, b2 = plain(inner, True)

    def one(rows: int, terms: int) -> list[Any]:
        blocks = -(-terms // block) if block else 1
        packed = (rows, -(-blocks * bits // 8)) if block else (-(-rows * bits // 8),)
        scales = normal(EXPERTS, rows, *([blocks] if block else []), by=0.05)
        origin = RNG.integers(0, 256, (EXPERTS, *packed)).astype(np.uint8) if zeros else None
        return [RNG.integers(0, 256, (EXPERTS, rows, terms * bits // 8)).astype(np.uint8), scales, origin]

    (w1, s1, z1), (w2, s2, z2) = one(2 * inner, H), one(H, inner)
    made = [x, router, w1, s1, b1, w2, s2, b2, None, None, None, z1, z2, None, np.abs(router) if weights else None]
    while made[-1] is None:
        made.pop()
    return made


SWIGLU: dict[str, Any] = {"activation_type": "swiglu", "swiglu_fusion": 1, "k": 2, "normalize_routing_weights": 1}


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_quantized_experts_are_those_of_onnxruntime(bits: int, variant: str) -> None:
    """Its products of 8 bits in blocks are of integers at every level: those are compared at level 4."""
    for block, zeros, inner in itertools.product((0, 16, 32, 128), (False, True), (32, 48)):
        sizes = {"block_size": block} if block else {}
        level = 4 if bits == 8 or (bits == 4 and inner == 32) else 0
        # The reference rounds sums of float64, and a number that then falls to the other integer is a hundredth of the result.
        bound = 2e-6 if level == 0 or variant != "reference" else 2e-2
        inputs = quantized(bits, block, zeros, inner)
        compare("QMoE", inputs, (0, 1), bound, expert_weight_bits=bits, accuracy_level=level, **sizes, **SWIGLU)
    for normalize in (0, 1):
        given = {**SWIGLU, "normalize_routing_weights": normalize, "expert_weight_bits": bits}
        compare("QMoE", quantized(bits, 0, False, weights=True), (0, 1, 14), 2e-6, **given)


def test_a_token_has_the_same_bits_in_any_company() -> None:
    inputs = quantized(4, 32, False)
    run = fl.load(model("QMoE", inputs, (0, 1), expert_weight_bits=4, block_size=32, **SWIGLU)).run
    x, router, *_ = inputs
    assert x is not None and router is not None
    whole = run({"c0": x, "c1": router})["y0"]
    for i in range(len(x)):
        np.testing.assert_array_equal(run({"c0": x[i : i + 1], "c1": router[i : i + 1]})["y0"][0], whole[i])


WRONG: list[tuple[str, dict[int, Any], dict[str, Any]]] = [
    ("k is 0", {}, {"k": 0}),
    ("k is 6", {}, {"k": 6}),
    ("expert_weight_bits is 3", {}, {"expert_weight_bits": 3}),
    ("block_size is 24", {}, {"block_size": 24}),
    ("activation_type='tanh'", {}, {"activation_type": "tanh"}),
    ("swiglu_fusion=0", {}, {"swiglu_fusion": 0}),
    ("input 2 has shape", {2: lambda a: a[:, :, :-1]}, {}),
    ("input 3 has shape", {3: lambda a: a[:, :, :-1]}, {}),
    ("input 3, the scales of input 2, is missing", {3: lambda a: None}, {}),
    ("input 7 has shape", {5: lambda a: a[:, :-1]}, {}),
    ("input 7 has shape \\(4", {7: lambda a: a[:-1]}, {}),
    ("input 11 has shape", {11: lambda a: a[:, :-1]}, {}),
    ("input 2 has dtype", {2: lambda a: a.astype(np.int32)}, {}),
    ("input 6 has NaN", {6: lambda a: a * np.float32(np.nan)}, {}),
    ("quant_type=.fp4", {}, {"quant_type": "fp4"}),
    ("use_sparse_mixer=1", {}, {"use_sparse_mixer": 1}),
    ("weights_prepacked=1", {}, {"weights_prepacked": 1}),
]


@pytest.mark.parametrize(("text", "changes", "attributes"), WRONG, ids=[text for text, *_ in WRONG])
def test_experts_that_do_not_fit_are_refused_at_load(text: str, changes: dict[int, Any], attributes: dict[str, Any]) -> None:
    inputs = quantized(4, 32, True)
    for i, change in changes.items():
        inputs[i] = change(inputs[i])
    with pytest.raises(Error, match=text):
        fl.load(model("QMoE", inputs, (0, 1), **{**SWIGLU, "expert_weight_bits": 4, "block_size": 32, **attributes}))


# ---- a cache of the last keys ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [8, 11])
def test_windows_are_those_of_onnxruntime(rows: int, variant: str) -> None:
    """A prompt, a chunk, then token by token: what the cache has does not depend on the pieces."""
    cos, sin = (f(np.arange(64)[:, None] * 0.5 ** np.arange(8)).astype(np.float32) for f in (np.cos, np.sin))
    for more in ({}, {"softcap": 2.0}, {"sinks": normal(4)}, {"do_rotary": 1}, {"do_rotary": 1, "rotary_interleaved": 1}):
        caches: list[np.ndarray] = [normal(2, 2, rows, 16), normal(2, 2, rows, 16)]
        entries = 2
        past, total = caches, 0
        for steps in (13, 1, 1, 1, 1, 1):
            total += steps
            ends = np.array([total - 1] * entries, np.int32)
            tail = [cos, sin] if more.get("do_rotary") else [None, None]
            sinks = [None, None, more["sinks"]] if "sinks" in more else []
            inputs = [normal(entries, steps, 64), normal(entries, steps, 32), normal(entries, steps, 32), *past, ends,
                      np.array(total, np.int32), *tail, *sinks]  # fmt: skip
            while inputs[-1] is None:
                inputs.pop()
            attributes = {"num_heads": 4, "kv_num_heads": 2, "local_window_size": 8, "sliding_window_cache": 1,
                          **{k: v for k, v in more.items() if k != "sinks"}}  # fmt: skip
            file = model("GroupQueryAttention", inputs, tuple(range(7)), 3, **attributes)
            want = session(file).run(None, feeds_of(inputs, tuple(range(7))))
            got = fl.load(file).run(feeds_of(inputs, tuple(range(7))))
            step = rows - 7
            held = total if total <= rows else total - step * -(-(total - rows) // step)
            np.testing.assert_allclose(got["y0"], want[0], rtol=0, atol=2e-6)
            for i in (1, 2):
                np.testing.assert_allclose(got[f"y{i}"][:, :, :held], want[i][:, :, :held], rtol=0, atol=1e-6)
            past = want[1:]


@pytest.mark.parametrize(("text", "change"), [("has room for 8 keys", {"local_window_size": 9}), ("local_window_size=-1", {})])
def test_caches_that_are_too_small_are_refused(text: str, change: dict[str, int]) -> None:
    caches = [normal(1, 1, 8, 8) for _ in range(2)]
    inputs: Arrays = [*(normal(1, 1, 8) for _ in range(3)), *caches, np.zeros(1, np.int32), np.array(1, np.int32)]
    file = model("GroupQueryAttention", inputs, (), 3, num_heads=1, kv_num_heads=1, sliding_window_cache=1, **change)
    with pytest.raises(Error, match=text):
        fl.load(file)


# ---- convolutions with a state ------------------------------------------------------------------------------------------


def test_convolutions_with_a_state_are_those_of_onnxruntime(variant: str) -> None:
    for activation, bias, steps in itertools.product(("none", "silu"), (False, True), (1, 2, 7)):
        inputs: Arrays = [normal(2, 6, steps), normal(6, 1, 3), normal(6) if bias else None, normal(2, 6, 2)]
        file = model("CausalConvWithState", inputs, (0, 3), 2, activation=activation, ndim=1)
        want, got = session(file).run(None, feeds_of(inputs, (0, 3))), fl.load(file).run(feeds_of(inputs, (0, 3)))
        np.testing.assert_allclose(got["y0"], want[0], rtol=0, atol=2e-6)
        np.testing.assert_array_equal(got["y1"], want[1])


@pytest.mark.parametrize("attribute", ["ndim=2", "dilation=2", "channels_last=1", "state_window=2", "activation='tanh'"])
def test_other_convolutions_with_a_state_are_refused(attribute: str) -> None:
    inputs: Arrays = [normal(2, 6, 5), normal(6, 1, 3), None, normal(2, 6, 2)]
    name, value = attribute.split("=")
    given = {name: value.strip("'") if "'" in value else int(value)}
    with pytest.raises(Error, match=attribute if "'" not in value else "activation is 'tanh'"):
        fl.load(model("CausalConvWithState", inputs, (0, 3), 2, **given))


def test_a_model_keeps_to_its_kernels() -> None:
    """Whatever is `use`d between a call and one of another size."""
    inputs = quantized(4, 32, False)
    file = model("QMoE", inputs, (0, 1), expert_weight_bits=4, block_size=32, **SWIGLU)
    x, router, *_ = inputs
    assert x is not None and router is not None
    want, made = fl.load(file).run({"c0": x, "c1": router})["y0"], fl.load(file)
    made.run({"c0": x[:1], "c1": router[:1]})
    with fl.kernels.use("reference"):
        np.testing.assert_array_equal(made.run({"c0": x, "c1": router})["y0"], want)
