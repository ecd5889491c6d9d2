"""Detectors of the zoo: torchvision's, YOLO's of ultralytics, RT-DETR of transformers."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .exporting import NEAR, Made, exported, runs_of, session_of, settled
from .torchvision_ops import import_torchvision

__all__ = ["DETECTORS", "RTDETR", "YOLO", "detector", "rtdetr", "yolo"]

DETECTORS = [
    "retinanet_resnet50_fpn", "ssd300_vgg16", "ssdlite320_mobilenet_v3_large", "fcos_resnet50_fpn",
    "fasterrcnn_mobilenet_v3_large_320_fpn", "fasterrcnn_resnet50_fpn", "maskrcnn_resnet50_fpn", "keypointrcnn_resnet50_fpn",
]  # fmt: skip
YOLO = ["yolov5n", "yolov8n", "yolo11n", "yolov8n-seg", "yolov8n-pose"]
RTDETR = ["transformers", "ultralytics"]
DRAWS = 8  # how often inputs are moved


def near(file: bytes, feeds: dict[str, np.ndarray]) -> list[dict[str, np.ndarray]]:
    """What ONNX Runtime gives for inputs that differ by some last bits.

    Which of two boxes is left is decided by last bits where scores or overlaps nearly tie, and of some thousand boxes some do.
    """
    session, rng = session_of(file), np.random.default_rng(1)
    outputs = [o.name for o in session.get_outputs()]
    found = []
    for _ in range(DRAWS):
        moved = {name: (x + NEAR * rng.standard_normal(x.shape)).astype(x.dtype) for name, x in feeds.items()}
        found.append(dict(zip(outputs, session.run(None, moved), strict=True)))
    return found


def detector(name: str) -> Made:
    import torch

    torchvision = import_torchvision()
    torch.manual_seed(0)
    short = {"min_size": 128, "max_size": 160} if "rcnn" in name or "retina" in name or "fcos" in name else {}
    if "320" in name and "rcnn" not in name:
        short = {}
    given = {"weights": None, "weights_backbone": None, "num_classes": 2 if "keypoint" in name else 7, **short}
    if "rcnn" in name:
        given |= {"box_score_thresh": 0.0, "box_detections_per_img": 20}
    if "retina" in name or "fcos" in name:
        given |= {"score_thresh": 0.0, "detections_per_img": 50}
    rng = np.random.default_rng(0)
    feeds = [{"x": rng.random((3, 128, side)).astype(np.float32)} for side in (160, 128)]
    net = settled(getattr(torchvision.models.detection, name)(**given), [torch.tensor(given["x"]) for given in feeds])
    # Scores that are exactly 1 tie, and which boxes are left then depends on the last bits of what comes before: logits up to 8.
    if "rcnn" in name:
        layer, logits = net.roi_heads.box_predictor.cls_score, []
        hook = layer.register_forward_hook(lambda layer, x, y: logits.append(float(y.detach().abs().max())))
        with torch.no_grad():
            net([torch.tensor(feeds[0]["x"])])
            layer.weight *= 8 / max(logits)
        hook.remove()

    class Listed(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def forward(self, x: Any) -> Any:
            return tuple(self.net([x])[0].values())

    file = exported(Listed().eval(), (torch.tensor(feeds[0]["x"]),), ["x"], {"x": {1: "h", 2: "w"}})
    runs = runs_of(file, feeds)
    return Made(file, runs, sets=[near(file, given) for given, _ in runs])


def _planes(net: Any, *shapes: tuple[int, ...]) -> Made:
    """A network from images to whatever it gives, of any size of image."""
    import torch

    rng = np.random.default_rng(0)
    feeds = [{"x": rng.random(shape).astype(np.float32)} for shape in shapes]
    axes = {"x": {0: "n", **({2: "h", 3: "w"} if shapes[0][2:] != shapes[1][2:] else {})}}
    file = exported(net, (torch.tensor(feeds[0]["x"]),), ["x"], axes)
    return Made(file, runs_of(file, feeds))


def _queries(made: Made) -> Made:
    """Results are rows of each image, whose order and choice their scores decide."""
    return made._replace(sets=[near(made.file, given) for given, _ in made.runs], batched=True)


def yolo(name: str) -> Made:
    """Boxes and scores of all cells, before any is left out: what ultralytics exports by default."""
    os.environ.setdefault("YOLO_OFFLINE", "true")
    os.environ.setdefault("YOLO_VERBOSE", "false")
    import torch

    import_torchvision()
    from ultralytics.nn import tasks

    torch.manual_seed(0)
    kind = {"seg": tasks.SegmentationModel, "pose": tasks.PoseModel}.get(name.partition("-")[2], tasks.DetectionModel)
    net = settled(kind(f"{name}.yaml", ch=3, verbose=False), torch.rand(2, 3, 128, 160))
    head = net.model[-1]
    head.export, head.format, head.dynamic = True, "onnx", True
    return _planes(net, (1, 3, 128, 160), (2, 3, 96, 128))


def rtdetr(name: str) -> Made:
    """Queries chosen by their scores, then decoded by attention that samples where it is told to."""
    os.environ.setdefault("YOLO_OFFLINE", "true")
    import torch

    import_torchvision()
    torch.manual_seed(0)
    if name == "ultralytics":
        from ultralytics.nn.tasks import RTDETRDetectionModel

        net: Any = settled(RTDETRDetectionModel("rtdetr-l.yaml", ch=3, verbose=False), torch.rand(2, 3, 160, 160))
        net.model[-1].export, net.model[-1].format = True, "onnx"
        return _queries(_planes(net, (1, 3, 160, 160), (2, 3, 160, 160)))
    from transformers import RTDetrConfig, RTDetrForObjectDetection, RTDetrResNetConfig

    backbone = RTDetrResNetConfig(
        depths=[2, 2, 2, 2], hidden_sizes=[64, 128, 256, 512], layer_type="basic", out_features=["stage2", "stage3", "stage4"]
    )
    config = RTDetrConfig(
        backbone_config=backbone, encoder_in_channels=[128, 256, 512], num_labels=7, num_queries=60, decoder_layers=2,
        d_model=64, encoder_hidden_dim=64, decoder_in_channels=[64, 64, 64], encoder_ffn_dim=96, decoder_ffn_dim=96,
    )  # fmt: skip
    whole = settled(RTDetrForObjectDetection(config), torch.rand(2, 3, 128, 128))

    class Called(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = whole

        def forward(self, x: Any) -> Any:
            made = self.net(pixel_values=x)
            return made.logits, made.pred_boxes

    return _queries(_planes(Called().eval(), (1, 3, 128, 128), (2, 3, 128, 128)))
