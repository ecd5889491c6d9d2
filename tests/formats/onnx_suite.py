"""ONNX's own backend suite over `fastlayers.onnx_backend`: its cases by name, and what we leave out, each with its reason."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from functools import cache

# Patterns of names of cases, from their beginning: why they are left out. Each must be refused by an error of ours.
LEFT_OUT: dict[str, str] = {
    "gradient_of_": "Gradient: only forward passes are computed",
    "image_decoder_": "ImageDecoder: reads pictures of nine formats, for which programs of their own are needed",
    "regex_full_match_": "RegexFullMatch: a pattern may take time without bound",
}
# Cases that run, and that cannot be compared, or agree or not: what they expect is not what the operators' texts settle.
UNCHECKED: dict[str, str] = {
    "attention_4d_causal_fp16_expanded": "float16: ours is a rounding off, and nearer to the exact result",
    "bernoulli": "numbers of numpy's global generator, at any state",
    "resize_downsample_scales_(linear|cubic)_align_corners$": "of a length that is not whole, as torch's and onnxruntime's is",
    "loop16_seq_none$": "the suite takes the length of an array without axes",
}


@cache
def cases() -> dict[str, Callable[[], object]]:
    """What runs and checks each case, by its name without "test_" and the device."""
    from onnx.backend.test import BackendTest

    import fastlayers.onnx_backend

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classes = BackendTest(fastlayers.onnx_backend, __name__).test_cases
    found: dict[str, Callable[[], object]] = {}
    for kind, made in sorted(classes.items()):
        if "Real" in kind:  # whole networks, which are downloaded
            continue
        for name in dir(made):
            if name.startswith("test_") and name.endswith("_cpu"):
                found.setdefault(f"{name[5:-4]}", getattr(made(name), name))
    return found


@cache
def operators() -> dict[str, str]:
    """The operator that a case is for, by the case's name: the first of its model's nodes."""
    from onnx import load
    from onnx.backend.test.loader import load_model_tests

    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in ("node", "simple", "pytorch-converted", "pytorch-operator"):
            for case in load_model_tests(kind=kind):
                model = case.model or load(f"{case.model_dir}/model.onnx")
                ops = {node.op_type for node in model.graph.node}
                found[case.name[5:]] = next(iter(ops)) if len(ops) == 1 else "(several)"
    return found


def reason(table: dict[str, str], name: str) -> str | None:
    """Why a case is in a table, or None if it is not."""
    return next((why for pattern, why in table.items() if re.match(pattern, name)), None)
