"""GroupQueryAttention with caches of 8 and 4 bits, and of float16, next to onnxruntime; and what is refused of them."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.errors import ArgumentError, DTypeError, Error, ShapeError, UnsupportedError

onnx: Any = pytest.importorskip("onnx")
TensorProto, helper = onnx.TensorProto, onnx.helper
pytestmark = [pytest.mark.onnx, pytest.mark.onnxruntime]

H, G, D = 4, 2, 16  # heads of queries, of keys, their width
NAMES = ("query", "key", "value", "past_key", "past_value", "seqlens_k", "total", "cos", "sin", "", "", "", "k_scale", "v_scale")


def model(bits: int, kind: str = "PER_TENSOR", io: int = TensorProto.FLOAT, **more: Any) -> bytes:
    cache = {8: TensorProto.INT8, 4: TensorProto.UINT8}.get(bits, io)
    types = [io] * 3 + [cache] * 2 + [TensorProto.INT32] * 2 + [io] * 2 + [TensorProto.INT32] * 3 + [TensorProto.FLOAT] * 2
    names = [*(NAMES if bits else NAMES[:9])]
    if not more.get("do_rotary"):
        names[7:9] = "", ""
    shapes = [("b", "s", H * D), *[("b", "s", G * D)] * 2, *[("b", G, "p", D * (bits or 8) // 8)] * 2, ("b",), (1,)]
    shapes += [("c", D // 2)] * 2 + [()] * 3 + [(1,) if kind == "PER_TENSOR" else (1, G, 1, D)] * 2
    given = [helper.make_tensor_value_info(n, t, shape) for n, t, shape in zip(names, types, shapes, strict=False) if n]
    words = {"k_quant_type": kind, "v_quant_type": kind, "kv_cache_bit_width": bits} if bits else {}
    node = helper.make_node(
        "GroupQueryAttention", names, ["y", "nk", "nv"], domain="com.microsoft", num_heads=H, kv_num_heads=G, **{**words, **more}
    )
    made = [helper.make_tensor_value_info(name, t, None) for name, t in (("y", io), ("nk", cache), ("nv", cache))]
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    proto: bytes = helper.make_model(
        helper.make_graph([node], "g", given, made), opset_imports=opsets, ir_version=10
    ).SerializeToString()
    return proto


def feeds(bits: int, kind: str, b: int, s: int, past: int, total: int, rotary: bool) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(past + s)
    found = {n: rng.standard_normal((b, s, h * D)).astype(np.float32) for n, h in zip(NAMES, (H, G, G), strict=False)}
    shape, shared = (b, G, past, D * bits // 8), (1,) if kind == "PER_TENSOR" else (1, G, 1, D)
    for name in ("past_key", "past_value"):
        found[name] = rng.integers(*((-128, 128) if bits == 8 else (0, 256)), shape).astype(np.int8 if bits == 8 else np.uint8)
    found |= {"seqlens_k": np.full(b, total - 1, np.int32), "total": np.array([total], np.int32)}
    if rotary:
        found |= {name: rng.uniform(-1, 1, (64, D // 2)).astype(np.float32) for name in ("cos", "sin")}
    for name in ("k_scale", "v_scale"):
        found[name] = (rng.uniform(0.5, 1, shared) * (0.02 if bits == 8 else 0.3)).astype(np.float32)
    return found


def by_onnxruntime(file: bytes, given: dict[str, np.ndarray]) -> list[np.ndarray]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return list(onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"]).run(None, given))


@pytest.mark.parametrize("bits", [8, 4])
def test_as_onnxruntime_answers(bits: int, variant: str) -> None:
    """Prompts, single tokens, prompts after others, buffers with room, windows, rotated keys. Caches are equal to the bit."""
    cases = ((1, 1, 5, 6), (2, 1, 5, 6), (2, 7, 0, 7), (1, 4, 9, 13), (1, 1, 32, 6), (2, 3, 16, 3), (3, 1, 0, 1))
    for kind, (b, s, past, total), rotary in itertools.product(("PER_TENSOR", "PER_CHANNEL"), cases, (0, 1)):
        for window in (-1, 3):
            file = model(bits, kind, do_rotary=rotary, local_window_size=window)
            given = feeds(bits, kind, b, s, past, total, bool(rotary))
            want, got = by_onnxruntime(file, given), list(fl.load(file).run(given).values())
            np.testing.assert_allclose(got[0], want[0], rtol=0, atol=3e-6 * np.abs(want[0]).max())
            for i in (1, 2):  # beyond the tokens that there are, what a cache has is undefined
                assert (got[i].shape, got[i].dtype) == (want[i].shape, want[i].dtype)
                np.testing.assert_array_equal(got[i][:, :, :total], want[i][:, :, :total])


def test_tokens_of_a_cache_that_is_given_back(tmp_path: Path) -> None:
    """One after the other as all at once; from our own file too."""
    path = tmp_path / "m.safetensors"
    fl.load(model(8)).save(path)
    network, given = fl.load(path), feeds(8, "PER_TENSOR", 1, 6, 0, 6, False)
    whole = network.run(given)
    past = {name: given[name] for name in ("past_key", "past_value")}
    for t in range(6):
        step = {**given, **past, "seqlens_k": np.array([t], np.int32), "total": np.array([t + 1], np.int32)}
        step |= {name: given[name][:, t : t + 1] for name in ("query", "key", "value")}
        made = network.run(step)
        past = {"past_key": made["nk"], "past_value": made["nv"]}
        np.testing.assert_allclose(made["y"][:, 0], whole["y"][:, t], rtol=0, atol=2e-6)
    np.testing.assert_array_equal(made["nk"], whole["nk"])


@pytest.mark.parametrize("bits", [0, 8, 4])
def test_past_and_present_in_one_buffer(bits: int) -> None:
    """By `out=`: the memory that is given as past has the present after the call, as with onnxruntime's shared buffers."""
    network, other = fl.load(model(bits)), fl.load(model(bits))
    given = feeds(bits or 8, "PER_TENSOR", 2, 5, 12, 5, False)
    past = {name: np.zeros((2, G, 12, D), np.float32) if not bits else 0 * given[name] for name in ("past_key", "past_value")}
    if not bits:
        given = {name: array for name, array in given.items() if "scale" not in name}
    shared, apart = {name: array.copy() for name, array in past.items()}, past
    for t in range(5):
        step = {**given, "seqlens_k": np.full(2, t, np.int32), "total": np.array([t + 1], np.int32)}
        step |= {name: given[name][:, t : t + 1] for name in ("query", "key", "value")}
        buffers = {"nk": shared["past_key"], "nv": shared["past_value"]}
        found = network.run({**step, **shared}, out=buffers)
        assert found["nk"] is buffers["nk"]
        want = other.run({**step, **apart})
        apart = {"past_key": np.array(want["nk"]), "past_value": np.array(want["nv"])}
        np.testing.assert_allclose(found["y"], want["y"], rtol=0, atol=1e-6)
        for name in apart:
            np.testing.assert_array_equal(shared[name][:, :, : t + 1], apart[name][:, :, : t + 1])
    with pytest.raises(ArgumentError, match="share memory"):
        network.run({**step, **shared}, out={"nk": shared["past_key"], "nv": shared["past_key"]})


def test_caches_of_float16() -> None:
    """They come and go as they are, and sums between are float32's."""
    file = model(0, io=TensorProto.FLOAT16)
    for b, s, past, total in ((1, 1, 5, 6), (2, 7, 0, 7), (1, 4, 9, 13)):
        given = {n: a for n, a in feeds(8, "PER_TENSOR", b, s, past, total, False).items() if "scale" not in n}
        half = {n: (a / 64 if "past" in n else a).astype(np.float16) if a.dtype != np.int32 else a for n, a in given.items()}
        want, got = by_onnxruntime(file, half), list(fl.load(file).run(half).values())
        for a, c in zip(got, want, strict=True):
            assert (a.shape, a.dtype) == (c.shape, np.float16)
            np.testing.assert_allclose(a, c, rtol=0, atol=2e-3 * max(np.abs(c).max(), 1))


def test_what_is_refused() -> None:
    for words, text in (
        ({"kv_cache_bit_width": 3}, "kv_cache_bit_width is 3"),
        ({"v_quant_type": "NONE"}, "PER_TENSOR, NONE"),
        ({"k_quant_type": "PER_ROW", "v_quant_type": "PER_ROW"}, "PER_ROW, PER_ROW"),
        ({"sliding_window_cache": 1, "local_window_size": 4}, "a window of quantized keys"),
        ({"kv_cache_bit_width": 4}, "has dtype int8: expected uint8"),
    ):
        with pytest.raises((UnsupportedError, ShapeError, DTypeError), match=text):
            fl.load(model(8, **words)).run(feeds(8, "PER_TENSOR", 1, 1, 5, 6, False))
    good = feeds(8, "PER_CHANNEL", 1, 1, 5, 6, False)
    network = fl.load(model(8, "PER_CHANNEL"))
    for name, wrong in (
        ("k_scale", np.ones((1, G, 1, D - 1), np.float32)),
        ("v_scale", np.ones((G, 1, 1, D), np.float32)),
        ("past_key", good["past_key"].astype(np.uint8)),
        ("past_value", good["past_value"][..., :-1].copy()),
        ("seqlens_k", np.array([-1], np.int32)),
        ("seqlens_k", np.array([1 << 30], np.int32)),
        ("total", np.array([-5], np.int32)),
    ):
        with pytest.raises(Error):
            network.run({**good, name: wrong})
