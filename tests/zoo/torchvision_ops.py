"""torchvision's own operators in Python, where its compiled ones do not load: those of the package index need torch with CUDA."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["import_torchvision"]

_kept: list[Any] = []


def import_torchvision() -> Any:
    """torchvision, whose detectors can be called and exported."""
    import torch

    try:
        torch.ops.torchvision.nms  # noqa: B018  (already there)
    except (AttributeError, RuntimeError):
        library = torch.library.Library("torchvision", "DEF")
        library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.define(
            "roi_align(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width, int sampling_ratio, "
            "bool aligned) -> Tensor"
        )
        # Others are only looked up, when shapes are declared for them.
        for name in ("qnms", "qroi_align"):
            library.define(f"{name}(Tensor x) -> Tensor")
        _kept.append(library)
    try:
        import torchvision

        torchvision.extension._assert_has_ops()
        return torchvision
    except RuntimeError:
        pass
    import torchvision

    for name in ("extension", "ops.boxes", "ops.roi_align"):  # functions of the package hide some of them
        module: Any = sys.modules[f"torchvision.{name}"]
        module._assert_has_ops, module._has_ops = _there, _yes
    _kept[0].impl("nms", _nms, "CPU")
    _kept[0].impl("roi_align", _roi_align, "CPU")
    return torchvision


def _there() -> None:
    """In the place of a check; torch compiles it with what calls it."""


def _yes() -> bool:
    return True


def _nms(boxes: Any, scores: Any, threshold: float) -> Any:
    import torch

    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    order, kept = scores.sort(descending=True, stable=True)[1], []
    while len(order):
        first, rest = order[0], order[1:]
        kept.append(first)
        low = torch.maximum(boxes[first, :2], boxes[rest, :2])
        high = torch.minimum(boxes[first, 2:], boxes[rest, 2:])
        both = (high - low).clamp(min=0).prod(1)
        order = rest[both / (area[first] + area[rest] - both) <= threshold]
    return torch.stack(kept) if kept else torch.zeros(0, dtype=torch.int64)


def _roi_align(x: Any, boxes: Any, scale: float, height: int, width: int, samples: int, aligned: bool) -> Any:
    compiled: Any = sys.modules["torchvision.ops.roi_align"]
    compiled = compiled._roi_align
    return getattr(compiled, "__wrapped__", compiled)(x, boxes, scale, height, width, samples, aligned)
