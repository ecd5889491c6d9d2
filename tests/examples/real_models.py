"""Trained ONNX models that wheels carry, with what ONNX Runtime answers for them (tests/goldens/real_onnx.npz, thinned)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .wheels import wheel_file

__all__ = ["MODELS", "Real", "differences", "feeds_of", "path_of", "thinned"]

GOLDENS = Path(__file__).parent.parent / "goldens" / "real_onnx.npz"
MOST = 6000  # values that are kept of each output


class Real(NamedTuple):
    """A model: the name of its golden, the wheel it is in, its place there, and how near its results must be."""

    name: str
    wheel: str
    member: str
    tolerance: float


_SILERO = ("", "_16k_op15", "_half", "_op18_ifless", "_openvino_16k", "_16k_sequence")
_OCR = ("ch_ppocr_mobile_v2.0_cls_infer", "ch_PP-OCRv4_det_infer", "ch_PP-OCRv4_rec_infer")
MODELS = (
    *(Real(f"silero_vad__silero_vad{n}", "silero-vad==6.2.3", f"silero_vad/data/silero_vad{n}.onnx", 1e-4) for n in _SILERO),
    *(
        Real(f"rapidocr_onnxruntime__{n}", "rapidocr-onnxruntime==1.4.4", f"rapidocr_onnxruntime/models/{n}.onnx", 1e-4)
        for n in _OCR
    ),
    Real("magika__model", "magika==1.0.3", "magika/models/standard_v3_3/model.onnx", 1e-4),
    Real("basic_pitch__nmp", "basic-pitch==0.4.0", "basic_pitch/saved_models/icassp_2022/nmp.onnx", 2e-3),
)


def path_of(real: Real) -> Path:
    """The model's file, fetched if need be; skips the test where it cannot be had."""
    return wheel_file(real.wheel, real.member)


def thinned(array: np.ndarray) -> np.ndarray:
    """Every so-many-th number of a result, so that a golden stays small; all of a small one."""
    flat = array.reshape(-1)
    return flat[:: -(-flat.size // MOST) | 1]  # an odd step meets every column


def feeds_of(real: Real, names: Sequence[str]) -> dict[str, np.ndarray]:
    """The golden's inputs by the model's names, in which some characters have become "_"."""
    with np.load(GOLDENS) as file:
        given = {key.split("/in_")[1]: file[key] for key in file.files if key.startswith(f"{real.name}/in_")}
    plain = {"".join(c if c.isalnum() else "_" for c in name): name for name in names}
    feeds = {plain[key]: array for key, array in given.items() if key in plain}
    if len(given) == len(names) == 1 and not feeds:
        feeds = {names[0]: next(iter(given.values()))}
    return feeds


def differences(real: Real, results: Sequence[Any]) -> list[float]:
    """How far each result is from the golden's at most; infinity where the shape or a NaN differs."""
    found = []
    with np.load(GOLDENS) as file:
        for i, result in enumerate(results):
            shape, want = tuple(file[f"{real.name}/shape_{i}"]), file[f"{real.name}/out_{i}"].astype(np.float64)
            got = np.asarray(result)
            off = np.abs(thinned(got) - want).max(initial=0.0) if got.shape == shape else np.inf
            found.append(float("inf") if np.isnan(off) else float(off))
    return found
