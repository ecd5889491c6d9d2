"""Resampling of one axis by every rule of onnxruntime, torch and TensorFlow: make_resize.py asks them, tests ask fastlayers.

Elements are told by index where one is chosen ("nearest"), else the results of `line`, as multiples of STEP.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

SIZES = (*range(1, 27),)
SCALES = (
    0.1, 0.2, 0.3, 1 / 3, 0.4, 0.45, 0.55, 0.6, 2 / 3, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.3, 1.4, 1.6, 1.7, 1.8, 2.0,
    2.1, 2.2, 2.4, 2.6, 3.0, 3.3, 4.7,
)  # fmt: skip
SOME_SIZES, SOME_SCALES = (1, 2, 3, 5, 8, 13, 20), (0.3, 0.45, 0.6, 0.9, 1.1, 1.3, 1.7, 2.0, 2.4, 3.3)
REGIONS = ((0.0, 1.0), (0.1, 0.9), (-0.2, 1.1), (0.5, 1.5), (0.9, 0.1), (0.3, 0.3), (1 / 7, 6 / 7))
OUTSIDE = 255  # of the input, instead of an index
STEP = 2.0**-12
# Weights are float32, of sums of up to some ten of them; of the golden half a step is missing.
TOLERANCE = 0.5 * STEP + 2e-5
COORDINATES = (
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize",
    "tf_half_pixel_for_nn",
)  # fmt: skip
NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
SMOOTH: tuple[dict[str, Any], ...] = (
    {"mode": "linear"}, {"mode": "cubic"}, {"mode": "cubic", "exclude_outside": 1, "cubic_coeff_a": -0.5},
    *({"mode": mode, "antialias": 1, "exclude_outside": ex} for mode in ("linear", "cubic") for ex in (0, 1)),
)  # fmt: skip


class Pair(NamedTuple):
    """An axis of `size` that becomes `out` long, by a scale if there is one, and what tf_crop_and_resize takes of it."""

    size: int
    out: int
    scale: float | None
    region: tuple[float, float]


def pairs(smooth: bool, made: Callable[[int, float], int]) -> list[Pair]:
    """All cases. made: the size that a scale makes of another."""
    sizes, scales = (SOME_SIZES, SOME_SCALES) if smooth else (SIZES, SCALES)
    lengths = [(size, out, None) for size, out in itertools.product(sizes, sizes)]
    scaled = [(size, made(size, scale), scale) for size, scale in itertools.product(sizes, scales)]
    found = [given for given in (*lengths, *scaled) if given[1]]
    return [Pair(*given, REGIONS[i % len(REGIONS)]) for i, given in enumerate(found)]


def line(size: int) -> np.ndarray:
    """Values that are resampled; no two neighbours are near each other."""
    return ((np.arange(size) * 37 % 61) / 32 - 1).astype(np.float32)


def packed(result: np.ndarray) -> np.ndarray:
    """Results of `line` as they are kept."""
    return np.round(result / STEP).astype(np.int16)


def onnx_pairs(attributes: dict[str, Any]) -> list[Pair]:
    """The cases of a rule of ONNX's Resize: opset 10 has no sizes, onnxruntime crops no axis that keeps its own."""
    found = pairs(attributes["mode"] != "nearest", lambda size, scale: math.floor(np.float32(size) * np.float32(scale)))
    if attributes == FIRST:
        return [pair for pair in found if pair.scale is not None]
    crop = attributes["coordinate_transformation_mode"] == "tf_crop_and_resize"
    return [pair for pair in found if not crop or pair.size != pair.out]


def onnx_rules() -> Iterator[dict[str, Any]]:
    """Attributes of Resize."""
    for coordinates in COORDINATES:
        for rule in (*({"mode": "nearest", "nearest_mode": nearest} for nearest in NEAREST), *SMOOTH):
            yield {"coordinate_transformation_mode": coordinates, **rule}


# As opset 10 has it, where the attribute does not exist.
FIRST: dict[str, Any] = {
    "mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "ceil_if_smaller",
}  # fmt: skip


def label(attributes: dict[str, Any]) -> str:
    """The name of a rule."""
    return "/".join(map(str, attributes.values()))


def torch_pairs(mode: str) -> list[Pair]:
    """The cases of a mode of torch's interpolate."""
    return pairs("nearest" not in mode, lambda size, scale: math.floor(size * scale))


class Torch(NamedTuple):
    """A mode of torch's interpolate along the last of some axes; the others become `beside` long of one."""

    mode: str
    axes: int
    beside: int = 1
    align_corners: bool | None = None

    def arguments(self, pair: Pair, recompute: bool = False) -> dict[str, Any]:
        """What interpolate is called with."""
        given: dict[str, Any] = {"mode": self.mode}
        if self.align_corners:
            given["align_corners"] = True
        if pair.scale is None:
            return given | {"size": (*(self.beside,) * (self.axes - 1), pair.out)}
        if recompute:
            given["recompute_scale_factor"] = True
        return given | {"scale_factor": (*(float(self.beside),) * (self.axes - 1), pair.scale)}

    def x(self, size: int) -> np.ndarray:
        """What is resampled: indices, or `line`."""
        values = np.arange(size, dtype=np.float32) if "nearest" in self.mode else line(size)
        return values.reshape(1, 1, *(1,) * (self.axes - 1), size)


# In two axes torch has other rules where the result has more than 128 rows and columns.
TORCH = (
    *(Torch(mode, axes, beside) for mode in ("nearest", "nearest-exact") for axes, beside in ((1, 1), (2, 1), (2, 128), (3, 1))),
    *(Torch(mode, axes, 1, align) for mode, axes in (("linear", 1), ("bilinear", 2), ("trilinear", 3), ("bicubic", 2))
      for align in (None, True)),
)  # fmt: skip


class TensorFlow(NamedTuple):
    """A method of TensorFlow's resize."""

    method: str
    align_corners: bool = False
    half_pixel: bool = True
    antialias: bool = False


TENSORFLOW = (
    *(TensorFlow(method, *given) for method in ("nearest", "bilinear")
      for given in ((False, False), (True, False), (False, True))),
    TensorFlow("bicubic"), TensorFlow("bilinear", antialias=True), TensorFlow("bicubic", antialias=True),
)  # fmt: skip


def golden(framework: str) -> dict[str, np.ndarray]:
    """What a framework made of all cases of each rule, one after the other, by the rule's name."""
    with np.load(Path(__file__).with_name(f"resize_{framework}.npz")) as file:
        return dict(file)


def cut(values: np.ndarray, given: list[Pair]) -> Iterator[tuple[Pair, np.ndarray]]:
    """Each case with its part of a golden."""
    ends = np.cumsum([pair.out for pair in given])
    assert ends[-1] == len(values)
    return zip(given, np.split(values, ends[:-1]), strict=True)
